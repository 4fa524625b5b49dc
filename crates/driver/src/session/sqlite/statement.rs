//! A prepared statement: its parameters bound, its rows read.

use super::connection::Connection;
use super::library::{self, Library, Program};
use crate::error::{Code, Error, Fate, Result};
use crate::session::{Answer, Row, Rows, Value};
use std::ffi::{c_int, CStr};
use std::ptr;

/// A statement of one connection, which must outlive it.
pub(super) struct Prepared {
    library: &'static Library,
    program: *mut Program,
    parameters: c_int,
    columns: c_int,
}

impl Prepared {
    pub fn new(connection: &Connection, sql: &str) -> Result<Self> {
        let length =
            c_int::try_from(sql.len()).map_err(|_| Error::user("the statement is longer than 2 GiB"))?;
        let (library, database) = (connection.library, connection.database);
        let (mut program, mut tail, flags) = (ptr::null_mut(), ptr::null(), library::PREPARE_PERSISTENT);
        // SAFETY: sqlite3_prepare_v3 reads no more than the length that is given, and sets `tail` to a place within.
        let rest = unsafe {
            let start = sql.as_ptr().cast();
            let code = (library.prepare_v3)(database, start, length, flags, &mut program, &mut tail);
            connection.check(code)?;
            tail.offset_from(start) as usize
        };
        if program.is_null() {
            return Err(Error::refused(
                Code::Sqlite(library::ERROR),
                "error",
                Fate::Failed,
                "the text holds no statement",
            ));
        }
        // SAFETY: sqlite3_bind_parameter_count and sqlite3_column_count want a statement that is not finalized.
        let mut prepared = unsafe {
            Prepared {
                library,
                program,
                parameters: (library.bind_parameter_count)(program),
                columns: (library.column_count)(program),
            }
        };
        if !sql.get(rest..).unwrap_or_default().trim().is_empty() {
            prepared.finalize();
            return Err(Error::refused(
                Code::Sqlite(library::ERROR),
                "error",
                Fate::Failed,
                "more than one statement in one text",
            ));
        }
        Ok(prepared)
    }

    /// Executes it once. SQLite borrows the parameters, which live as long as this call, and at the start of the next one
    /// others take their place before anything is read.
    pub fn run<'v, R: Rows>(
        &mut self,
        connection: &Connection,
        parameters: impl ExactSizeIterator<Item = Value<'v>>,
        rows: &mut R,
    ) -> Result<Answer> {
        self.bind(connection, parameters)?;
        self.step_to_end(connection, rows)
    }

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
            let (library, program) = (self.library, self.program);
            // SAFETY: the statement is not finalized. sqlite3_bind_text64 and _blob64 with SQLITE_STATIC read no more than the
            // length, and want what they are given to stay for as long as it may be read. That is within a step, and `run`,
            // the only caller, steps to the end while the values live. What a failure leaves bound is bound anew before a step.
            let code = unsafe {
                match value {
                    Value::Null => (library.bind_null)(program, index),
                    Value::Int(number) => (library.bind_int64)(program, index, number),
                    Value::Float(number) => (library.bind_double)(program, index, number),
                    Value::Text(text) => {
                        let (start, length) = (text.as_ptr().cast(), text.len() as u64);
                        (library.bind_text64)(program, index, start, length, library::STATIC, library::UTF8)
                    }
                    Value::Bytes(bytes) => {
                        let (start, length) = (bytes.as_ptr().cast(), bytes.len() as u64);
                        (library.bind_blob64)(program, index, start, length, library::STATIC)
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
            // SAFETY: sqlite3_step wants a statement that is not finalized, on one thread at a time.
            match unsafe { (self.library.step)(self.program) } {
                library::ROW => {
                    // SQLite prepares a statement anew where a table was altered, and `*` may then be other columns.
                    if R::READS && answer.rows == 0 {
                        // SAFETY: sqlite3_column_count wants a statement that is not finalized.
                        self.columns = unsafe { (self.library.column_count)(self.program) };
                    }
                    answer.rows += 1;
                    if R::READS {
                        rows.row(&Current(self));
                    }
                }
                code => break code,
            }
        };
        answer.affected = (connection.changes() - changes_before) as u64;
        if let Some(counts) = rows.counts() {
            for (title, counter) in library::COUNTERS {
                // SAFETY: sqlite3_stmt_status wants a statement that is not finalized. The 1 has it count anew.
                counts.push((title, unsafe { (self.library.stmt_status)(self.program, counter, 1) }.into()));
            }
        }
        // The message belongs to the step; the reset would give the same error once more.
        let result = if code == library::DONE { Ok(answer) } else { Err(connection.error(code)) };
        // SAFETY: sqlite3_reset wants a statement that is not finalized. After it sqlite3_step, which alone reads what
        // was bound, begins with the next call's parameters.
        unsafe { (self.library.reset)(self.program) };
        result
    }

    pub fn column_names(&self) -> Vec<String> {
        let name = |column| {
            // SAFETY: sqlite3_column_name gives a text that ends with a zero and lives until the statement is
            // finalized, or null where memory is short.
            let name = unsafe { (self.library.column_name)(self.program, column) };
            if name.is_null() {
                return String::new();
            }
            // SAFETY: it is not null, as was looked at.
            unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
        };
        (0..self.columns).map(name).collect()
    }

    fn finalize(&mut self) {
        // SAFETY: sqlite3_finalize takes each statement once, and a null one without effect.
        unsafe { (self.library.finalize)(self.program) };
        self.program = ptr::null_mut();
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
        let (library, program, column) = (self.0.library, self.0.program, column as c_int);
        // SAFETY: sqlite3_step has just given a row with this column. sqlite3_column_text and _blob give memory that
        // lives until the next step, which needs the statement that this row borrows.
        unsafe {
            match (library.column_type)(program, column) {
                library::INTEGER => Value::Int((library.column_int64)(program, column)),
                library::FLOAT => Value::Float((library.column_double)(program, column)),
                library::TEXT => {
                    let start = (library.column_text)(program, column);
                    let bytes = content(start, (library.column_bytes)(program, column));
                    std::str::from_utf8(bytes).map_or(Value::Bytes(bytes), Value::Text)
                }
                library::BLOB => {
                    let start = (library.column_blob)(program, column).cast();
                    Value::Bytes(content(start, (library.column_bytes)(program, column)))
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
