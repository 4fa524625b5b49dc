//! SQLite, built into the driver. Each session is a connection of its own to the file.

use super::engine_cpu::EngineCpu;
use super::{
    Answer, Dialect, Identity, Placeholder, Row, RowBuffer, Rows, Session, Statement, Target, Traffic, Value,
};
use crate::error::{Error, Fate, Result};
use libsqlite3_sys as ffi;
use std::ffi::{c_int, CStr, CString};
use std::ptr;
use std::time::Instant;

static DIALECT: Dialect = Dialect {
    name: "sqlite",
    placeholder: Placeholder::Question,
    identity: Identity::RowId,
    double: "DOUBLE PRECISION",
    timestamp: "TIMESTAMP",
    now: "CURRENT_TIMESTAMP",
    text: "TEXT",
    table_suffix: "",
    char_padded: false,
    for_update: false,
    update_returning: true,
    clustered: true,
    truncate: false,
    multi_row_insert: true,
    after_load: None,
    limit: "LIMIT {}",
};

/// What the URL may set: a pragma's name, and its words in the order of the numbers by which SQLite reads them back.
/// No words: a whole number. In the order in which they must be applied.
const PRAGMAS: &[(&str, &[&str])] = &[
    ("page_size", &[]),
    ("auto_vacuum", &["none", "full", "incremental"]),
    ("locking_mode", &["normal", "exclusive"]),
    ("journal_mode", &["delete", "truncate", "persist", "memory", "wal", "off"]),
    ("synchronous", &["off", "normal", "full", "extra"]),
    ("temp_store", &["default", "file", "memory"]),
    ("cache_size", &[]),
    ("mmap_size", &[]),
    ("wal_autocheckpoint", &[]),
    ("busy_timeout", &[]),
];
/// How a transaction begins: `immediate` takes the write lock at once, `deferred` when it first writes.
const TRANSACTION: &str = "transaction";
const BUSY_TIMEOUT_MS: c_int = 5_000;

/// A session on one connection.
pub struct Sqlite {
    statements: Vec<Prepared>,
    begin: Prepared,
    begin_immediate: Prepared,
    commit: Prepared,
    rollback: Prepared,
    connection: Connection,
    version: String,
    engine_cpu: EngineCpu,
    rows_received: u64,
    /// The last transaction ended because another had the write lock.
    lost_the_lock: bool,
    patience: std::time::Duration,
}

impl Sqlite {
    /// Runs `task` and counts the thread's CPU time for the engine's.
    fn counted<T>(&mut self, task: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.engine_cpu.enter();
        let result = task(self);
        self.engine_cpu.leave();
        result
    }

    fn run<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        match self.statements.get_mut(statement.0 as usize) {
            Some(prepared) => prepared.run(&self.connection, parameters, rows),
            None => Err(Error::internal("a statement of another session")),
        }
    }

    /// Takes the write lock for a bulk load, queueing with the other loaders for longer than a transaction would.
    fn begin_load(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.patience;
        loop {
            match self.begin_immediate.run(&self.connection, &[], &mut ()) {
                Err(error) if error.fate() == Fate::Retry && Instant::now() < deadline => {}
                other => return other.map(drop),
            }
        }
    }

    fn load(&self, sql: &str, mut next: impl FnMut(&mut RowBuffer) -> bool) -> Result<u64> {
        let mut insert = Prepared::new(&self.connection, sql)?;
        let (mut row, mut rows) = (RowBuffer::default(), 0);
        while {
            row.clear();
            next(&mut row)
        } {
            insert.bind(&self.connection, row.values())?;
            insert.step_to_end(&self.connection, &mut ())?;
            rows += 1;
        }
        Ok(rows)
    }
}

impl Session for Sqlite {
    const BLOCKING: bool = true;

    async fn connect(target: &Target) -> Result<Self> {
        let names: Vec<&str> = PRAGMAS.iter().map(|(name, _)| *name).chain([TRANSACTION]).collect();
        target.allow(&names)?;
        if !target.host.is_empty() {
            return Err(Error::user("SQLite has no server: the URL names a host")
                .hint("write sqlite:///PATH, with three slashes"));
        }
        let begin = match target.parameter(TRANSACTION) {
            None | Some("deferred") => "BEGIN DEFERRED",
            Some("immediate") => "BEGIN IMMEDIATE",
            Some(_) => return Err(Error::user("the URL parameter transaction takes deferred or immediate")),
        };
        let connection = Connection::open(&target.path())?;
        for (name, words) in PRAGMAS {
            if let Some(value) = target.parameter(name) {
                connection.set_pragma(name, words, value)?;
            }
        }
        // SAFETY: gives a constant string.
        let version = unsafe { CStr::from_ptr(ffi::sqlite3_libversion()) }.to_string_lossy();
        Ok(Sqlite {
            begin: Prepared::new(&connection, begin)?,
            begin_immediate: Prepared::new(&connection, "BEGIN IMMEDIATE")?,
            lost_the_lock: false,
            commit: Prepared::new(&connection, "COMMIT")?,
            rollback: Prepared::new(&connection, "ROLLBACK")?,
            statements: Vec::new(),
            connection,
            version: format!("SQLite {version}"),
            engine_cpu: EngineCpu::new(true),
            rows_received: 0,
            patience: target.answer_timeout,
        })
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn server_version(&self) -> &str {
        &self.version
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.statements.push(Prepared::new(&self.connection, &DIALECT.placeholders(sql))?);
        Ok(Statement(self.statements.len() as u32 - 1))
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        let answer = self.counted(|session| session.run(statement, parameters, rows));
        match &answer {
            Ok(answer) => self.rows_received += answer.rows,
            Err(error) => self.lost_the_lock = error.fate() == Fate::Retry,
        }
        answer
    }

    async fn text<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        self.counted(|session| {
            let mut statement = Prepared::new(&session.connection, sql)?;
            rows.names(&statement.column_names());
            statement.run(&session.connection, &[], rows)
        })
    }

    /// SQLite does not let a transaction that has read wait for the write lock, as that might never end. One that was
    /// refused it is therefore tried again with the lock taken, and waited for, first.
    async fn begin(&mut self) -> Result<()> {
        let lock_first = std::mem::take(&mut self.lost_the_lock);
        self.counted(|session| {
            let begin = if lock_first { &mut session.begin_immediate } else { &mut session.begin };
            begin.run(&session.connection, &[], &mut ()).map(drop)
        })
    }

    async fn commit(&mut self) -> Result<()> {
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.counted(|session| session.commit.run(&session.connection, &[], &mut ()).map(drop))
    }

    async fn rollback(&mut self) -> Result<()> {
        // Some errors, such as a full disk, have rolled back already.
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.counted(|session| session.rollback.run(&session.connection, &[], &mut ()).map(drop))
    }

    async fn bulk_insert(
        &mut self,
        table: &str,
        columns: &[&str],
        next: impl FnMut(&mut RowBuffer) -> bool,
    ) -> Result<u64> {
        let marks = vec!["?"; columns.len()].join(", ");
        let sql = format!("INSERT INTO {table} ({}) VALUES ({marks})", columns.join(", "));
        self.begin_load()?;
        let rows = self.counted(|session| session.load(&sql, next));
        let end = if rows.is_ok() { self.commit().await } else { self.rollback().await };
        end.and(rows)
    }

    fn traffic(&self) -> Traffic {
        Traffic { rows_received: self.rows_received, ..Traffic::default() }
    }

    fn engine_cpu_ns(&self) -> Option<u64> {
        self.engine_cpu.used_ns()
    }

    async fn close(self) {}
}

struct Connection(*mut ffi::sqlite3);

impl Connection {
    fn open(path: &str) -> Result<Self> {
        let name = CString::new(path).map_err(|_| Error::user("the file's path holds a zero byte"))?;
        let mut database = ptr::null_mut();
        // Without SQLite's own mutex: a session stays on its thread.
        let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_NOMUTEX;
        // SAFETY: the name outlives the call; the handle is closed by Drop, as it must be even where opening failed.
        let code = unsafe { ffi::sqlite3_open_v2(name.as_ptr(), &mut database, flags, ptr::null()) };
        let connection = Connection(database);
        connection.check(code).map_err(|error| not_opened(path, &error))?;
        // SAFETY: the handle is open.
        unsafe {
            ffi::sqlite3_extended_result_codes(database, 1);
            ffi::sqlite3_busy_timeout(database, BUSY_TIMEOUT_MS);
        }
        // The file is read only now; what is no database is found out here.
        Prepared::new(&connection, "PRAGMA schema_version")
            .and_then(|mut statement| statement.run(&connection, &[], &mut ()))
            .map_err(|error| not_opened(path, &error))?;
        Ok(connection)
    }

    /// Sets a pragma, and makes sure that SQLite took it: it passes over what it does not understand.
    fn set_pragma(&self, name: &str, words: &[&str], value: &str) -> Result<()> {
        let number = words.iter().position(|word| word.eq_ignore_ascii_case(value));
        if number.is_none() && (!words.is_empty() || value.parse::<i64>().is_err()) {
            let allowed = if words.is_empty() { "a whole number".to_owned() } else { words.join(", ") };
            return Err(Error::user(format!("the URL parameter {name} takes {allowed}, not {value:?}")));
        }
        self.ask(&format!("PRAGMA {name} = {value}"))?;
        let shown = self.ask(&format!("PRAGMA {name}"))?;
        let is_number_of_word = number.is_some_and(|number| shown == number.to_string());
        if shown.eq_ignore_ascii_case(value) || is_number_of_word {
            return Ok(());
        }
        Err(Error::user(format!("SQLite did not take {name} = {value}: it is {shown}")).hint(
            "page_size and auto_vacuum are fixed once the file holds a table; other values may be out of bounds",
        ))
    }

    /// The first column of the first row as text.
    fn ask(&self, sql: &str) -> Result<String> {
        let mut answer = super::First::<super::Owned>::default();
        Prepared::new(self, sql)?.run(self, &[], &mut answer).map_err(Error::while_connecting)?;
        Ok(answer.0.map_or_else(String::new, |value| value.to_string()))
    }

    fn is_autocommit(&self) -> bool {
        // SAFETY: the handle is open.
        unsafe { ffi::sqlite3_get_autocommit(self.0) != 0 }
    }

    /// Rows changed since the connection was opened.
    fn changes(&self) -> i64 {
        // SAFETY: the handle is open.
        unsafe { ffi::sqlite3_total_changes64(self.0) }
    }

    #[inline]
    fn check(&self, code: c_int) -> Result<()> {
        if code == ffi::SQLITE_OK {
            return Ok(());
        }
        Err(self.error(code))
    }

    fn error(&self, code: c_int) -> Error {
        // SAFETY: the message is the library's and valid until its next call; a null handle gives "out of memory".
        let message = unsafe { CStr::from_ptr(ffi::sqlite3_errmsg(self.0)) }.to_string_lossy().into_owned();
        let (word, fate) = meaning(code);
        let error = Error::server(&format!("{code} {word}"), fate, message);
        match code & 0xff {
            ffi::SQLITE_FULL => error.hint("make room beside the database, and for SQLite's temporary files"),
            _ => error,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the handle is owned; its statements are finalized, since the session declares them before it.
        unsafe { ffi::sqlite3_close(self.0) };
    }
}

/// A result code's word, and whether a retry cures it.
fn meaning(code: c_int) -> (&'static str, Fate) {
    match code {
        ffi::SQLITE_BUSY_SNAPSHOT => ("busy_snapshot", Fate::Retry),
        ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY => {
            ("unique_violation", Fate::Failed)
        }
        _ => match code & 0xff {
            ffi::SQLITE_BUSY => ("busy", Fate::Retry),
            ffi::SQLITE_LOCKED => ("locked", Fate::Retry),
            ffi::SQLITE_CONSTRAINT => ("constraint", Fate::Failed),
            ffi::SQLITE_FULL => ("disk_full", Fate::Failed),
            ffi::SQLITE_IOERR => ("input_output", Fate::Failed),
            ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => ("corrupt", Fate::Failed),
            ffi::SQLITE_READONLY => ("read_only", Fate::Failed),
            ffi::SQLITE_CANTOPEN => ("cannot_open", Fate::Failed),
            _ => ("error", Fate::Failed),
        },
    }
}

fn not_opened(path: &str, error: &Error) -> Error {
    let hint = match error.label().split(' ').nth(1) {
        Some("corrupt") => "the file is no SQLite database, or is damaged: name another file",
        Some("busy" | "locked") => "another process has locked the file: stop it",
        _ => "check that the directory exists and that the file may be read and written",
    };
    Error::connect(format!("SQLite cannot open {path}: {}", error.message())).hint(hint)
}

struct Prepared {
    statement: *mut ffi::sqlite3_stmt,
    parameters: c_int,
    columns: c_int,
}

impl Prepared {
    fn new(connection: &Connection, sql: &str) -> Result<Self> {
        let length =
            c_int::try_from(sql.len()).map_err(|_| Error::user("the statement is longer than 2 GiB"))?;
        let (mut statement, mut tail, flags) = (ptr::null_mut(), ptr::null(), ffi::SQLITE_PREPARE_PERSISTENT);
        // SAFETY: the text is passed with its length, and `tail` points into it.
        let rest = unsafe {
            let start = sql.as_ptr().cast();
            let code = ffi::sqlite3_prepare_v3(connection.0, start, length, flags, &mut statement, &mut tail);
            connection.check(code)?;
            tail.offset_from(start) as usize
        };
        if statement.is_null() {
            return Err(Error::server("1 error", Fate::Failed, "the text holds no statement"));
        }
        // SAFETY: the statement is live.
        let mut prepared = unsafe {
            Prepared {
                statement,
                parameters: ffi::sqlite3_bind_parameter_count(statement),
                columns: ffi::sqlite3_column_count(statement),
            }
        };
        if !sql.get(rest..).unwrap_or_default().trim().is_empty() {
            prepared.finalize();
            return Err(Error::server("1 error", Fate::Failed, "more than one statement in one text"));
        }
        Ok(prepared)
    }

    fn run<R: Rows>(
        &mut self,
        connection: &Connection,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        self.bind(connection, parameters.iter().copied())?;
        self.step_to_end(connection, rows)
    }

    /// Binds all parameters. They are borrowed by SQLite until `step_to_end` has ended, so the caller keeps them.
    fn bind<'v>(
        &mut self,
        connection: &Connection,
        parameters: impl ExactSizeIterator<Item = Value<'v>>,
    ) -> Result<()> {
        if parameters.len() != self.parameters as usize {
            return Err(Error::internal(format!(
                "the statement takes {} parameters, {} were given",
                self.parameters,
                parameters.len()
            )));
        }
        for (index, value) in (1..).zip(parameters) {
            let statement = self.statement;
            // SAFETY: the statement is live, and text and bytes are passed with their length.
            let code = unsafe {
                match value {
                    Value::Null => ffi::sqlite3_bind_null(statement, index),
                    Value::Int(number) => ffi::sqlite3_bind_int64(statement, index, number),
                    Value::Float(number) => ffi::sqlite3_bind_double(statement, index, number),
                    Value::Text(text) => {
                        let (start, length) = (text.as_ptr().cast(), text.len() as u64);
                        let encoding = ffi::SQLITE_UTF8 as u8;
                        ffi::sqlite3_bind_text64(
                            statement,
                            index,
                            start,
                            length,
                            ffi::SQLITE_STATIC(),
                            encoding,
                        )
                    }
                    Value::Bytes(bytes) => {
                        let (start, length) = (bytes.as_ptr().cast(), bytes.len() as u64);
                        ffi::sqlite3_bind_blob64(statement, index, start, length, ffi::SQLITE_STATIC())
                    }
                }
            };
            connection.check(code)?;
        }
        Ok(())
    }

    fn step_to_end<R: Rows>(&mut self, connection: &Connection, rows: &mut R) -> Result<Answer> {
        let mut answer = Answer::default();
        let changes_before = connection.changes();
        let code = loop {
            // SAFETY: the statement is live.
            match unsafe { ffi::sqlite3_step(self.statement) } {
                ffi::SQLITE_ROW => {
                    answer.rows += 1;
                    if R::READS {
                        rows.row(&Current(self));
                    }
                }
                code => break code,
            }
        };
        answer.affected = (connection.changes() - changes_before) as u64;
        // The message belongs to the step; the reset would give the same error once more.
        let result = if code == ffi::SQLITE_DONE { Ok(answer) } else { Err(connection.error(code)) };
        // SAFETY: the statement is live; after the reset nothing reads the borrowed parameters.
        unsafe { ffi::sqlite3_reset(self.statement) };
        result
    }

    fn column_names(&self) -> Vec<String> {
        let name = |column| {
            // SAFETY: the column exists; the name is the statement's.
            let name = unsafe { ffi::sqlite3_column_name(self.statement, column) };
            if name.is_null() {
                return String::new();
            }
            // SAFETY: as above.
            unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
        };
        (0..self.columns).map(name).collect()
    }

    fn finalize(&mut self) {
        // SAFETY: the statement is owned; a null one does nothing.
        unsafe { ffi::sqlite3_finalize(self.statement) };
        self.statement = ptr::null_mut();
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.finalize();
    }
}

/// The row that a statement stands on.
struct Current<'a>(&'a Prepared);

impl Row for Current<'_> {
    fn columns(&self) -> usize {
        self.0.columns as usize
    }

    fn value(&self, column: usize) -> Value<'_> {
        if column >= self.columns() {
            return Value::Null;
        }
        let (statement, column) = (self.0.statement, column as c_int);
        // SAFETY: the statement stands on a row that has the column; text and bytes live until the next step, which
        // needs the statement that this row borrows.
        unsafe {
            match ffi::sqlite3_column_type(statement, column) {
                ffi::SQLITE_INTEGER => Value::Int(ffi::sqlite3_column_int64(statement, column)),
                ffi::SQLITE_FLOAT => Value::Float(ffi::sqlite3_column_double(statement, column)),
                ffi::SQLITE_TEXT => {
                    let start = ffi::sqlite3_column_text(statement, column);
                    let bytes = content(start, ffi::sqlite3_column_bytes(statement, column));
                    std::str::from_utf8(bytes).map_or(Value::Bytes(bytes), Value::Text)
                }
                ffi::SQLITE_BLOB => {
                    let start = ffi::sqlite3_column_blob(statement, column).cast();
                    Value::Bytes(content(start, ffi::sqlite3_column_bytes(statement, column)))
                }
                _ => Value::Null,
            }
        }
    }
}

/// # Safety
/// `start` is null or has `length` bytes that outlive `'a`.
unsafe fn content<'a>(start: *const u8, length: c_int) -> &'a [u8] {
    if start.is_null() {
        return &[];
    }
    std::slice::from_raw_parts(start, length.max(0) as usize)
}
