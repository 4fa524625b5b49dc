//! A connection to a file, and what its errors mean.

use super::library::{self, Database, Library};
use crate::error::{Code, Error, Fate, Result};
use crate::io::Interrupt;
use std::ffi::{c_int, CStr, CString};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

const BUSY_TIMEOUT_MS: c_int = 5_000;

pub(super) struct Connection {
    pub library: &'static Library,
    pub database: *mut Database,
    /// As other threads know it.
    pub known: Arc<Known>,
}

/// A connection for as long as it is open.
pub(super) struct Known {
    library: &'static Library,
    open: Mutex<Option<Open>>,
}

struct Open(*mut Database);

// SAFETY: SQLite says of sqlite3_interrupt, the one call that is made by it, that any thread may make it while the
// connection is open.
unsafe impl Send for Open {}

impl Interrupt for Known {
    fn interrupt(&self) {
        // Held until the call is over, so that nobody closes the connection meanwhile.
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Open(database)) = &*open {
            // SAFETY: sqlite3_interrupt may be called from any thread until the connection closes, for which Drop
            // waits.
            unsafe { (self.library.interrupt)(*database) };
        }
    }

    /// There is nobody else who would have to answer.
    fn cut(&self) {}
}

impl Connection {
    /// Opens the file at `path`, or makes it.
    pub fn open(library: &'static Library, path: &str) -> Result<Self> {
        let name = CString::new(path).map_err(|_| Error::user("the file's path holds a zero byte"))?;
        let mut database = ptr::null_mut();
        // Without SQLite's own mutex: a session stays on its thread.
        let flags = library::OPEN_READ_WRITE | library::OPEN_CREATE | library::OPEN_NO_MUTEX;
        // SAFETY: sqlite3_open_v2 wants a name that ends with a zero. Drop closes the handle, as must be done even
        // where opening failed.
        let code = unsafe { (library.open_v2)(name.as_ptr(), &mut database, flags, ptr::null()) };
        let known = Arc::new(Known { library, open: Mutex::new(Some(Open(database))) });
        let connection = Connection { library, database, known };
        connection.check(code).map_err(|error| not_opened(path, &error))?;
        // SAFETY: both functions want an open connection, which `check` has shown it to be.
        unsafe {
            (library.extended_result_codes)(database, 1);
            (library.busy_timeout)(database, BUSY_TIMEOUT_MS);
        }
        Ok(connection)
    }

    pub fn is_autocommit(&self) -> bool {
        // SAFETY: sqlite3_get_autocommit wants a connection that is not closed: Drop alone closes it.
        unsafe { (self.library.get_autocommit)(self.database) != 0 }
    }

    /// Rows changed since the connection was opened.
    pub fn changes(&self) -> i64 {
        // SAFETY: sqlite3_total_changes64 wants a connection that is not closed: Drop alone closes it.
        unsafe { (self.library.total_changes64)(self.database) }
    }

    #[inline]
    pub fn check(&self, code: c_int) -> Result<()> {
        if code == library::OK {
            return Ok(());
        }
        Err(self.error(code))
    }

    pub fn error(&self, code: c_int) -> Error {
        // SAFETY: sqlite3_errmsg gives a text that ends with a zero and lives until the connection's next call; of a
        // null handle it says "out of memory".
        let message =
            unsafe { CStr::from_ptr((self.library.errmsg)(self.database)) }.to_string_lossy().into_owned();
        let (word, fate) = meaning(code);
        let no_table = code == library::ERROR && message.contains("no such table: ");
        let own = if no_table { Code::SqliteNoTable(code) } else { Code::Sqlite(code) };
        let error = Error::refused(own, word, fate, message);
        match code & 0xff {
            library::FULL => error.hint("make room beside the database, and for SQLite's temporary files"),
            _ => error,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.known.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        // SAFETY: sqlite3_close takes each handle once, and only when its statements are finalized, which the session
        // declares before it.
        unsafe { (self.library.close)(self.database) };
    }
}

/// A result code's word, and whether a retry cures it.
fn meaning(code: c_int) -> (&'static str, Fate) {
    match code {
        library::BUSY_SNAPSHOT => ("busy_snapshot", Fate::Retry),
        library::CONSTRAINT_UNIQUE | library::CONSTRAINT_PRIMARY_KEY => ("unique_violation", Fate::Failed),
        _ => match code & 0xff {
            library::BUSY => ("busy", Fate::Retry),
            library::LOCKED => ("locked", Fate::Retry),
            // Nobody asks for that but the driver, when it gives the session up.
            library::INTERRUPT => ("interrupted", Fate::Lost),
            library::CONSTRAINT => ("constraint", Fate::Failed),
            library::FULL => ("disk_full", Fate::Failed),
            library::INPUT_OUTPUT => ("input_output", Fate::Failed),
            library::CORRUPT | library::NOT_A_DATABASE => ("corrupt", Fate::Failed),
            library::READ_ONLY => ("read_only", Fate::Failed),
            library::CANNOT_OPEN => ("cannot_open", Fate::Failed),
            _ => ("error", Fate::Failed),
        },
    }
}

/// What keeps a file from being opened, with the remedy.
pub(super) fn not_opened(path: &str, error: &Error) -> Error {
    let code = match error.code() {
        Code::Sqlite(code) => code & 0xff,
        _ => library::ERROR,
    };
    let hint = match code {
        library::CORRUPT | library::NOT_A_DATABASE => {
            "the file is no SQLite database, or is damaged: name another file"
        }
        library::BUSY | library::LOCKED => "another process has locked the file: stop it",
        _ => "check that the directory exists and that the file may be read and written",
    };
    Error::connect(format!("SQLite cannot open {path}: {}", error.message())).hint(hint)
}
