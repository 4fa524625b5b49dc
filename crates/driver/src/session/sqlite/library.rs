//! SQLite's C library, loaded at run time: its functions, each looked up once, and its numbers.

use crate::error::{Error, Result};
use crate::session::library::{self, Libraries};
use std::ffi::{c_char, c_int, c_uint, c_void, CStr};

/// What the dynamic loader is asked for where the URL names no library.
const DEFAULT_LIBRARY: &str = "libsqlite3.so.0";
const REMEDY: &str = "name it in the URL: sqlite:///PATH?library=/path/to/libsqlite3.so.0; \
    `dyno engines fetch sqlite` obtains one";

/// A connection, as the library sees it.
#[repr(C)]
pub(super) struct Database {
    _opaque: [u8; 0],
}

/// A prepared statement, as the library sees it.
#[repr(C)]
pub(super) struct Program {
    _opaque: [u8; 0],
}

/// What frees bound text and bytes. Null says that they stay where they are until the statement is reset.
type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;
pub(super) const STATIC: Destructor = None;

/// What sqlite3_stmt_status tells of a statement, by the numbers of its counters.
pub(super) const COUNTERS: [(&str, c_int); 4] = [
    ("rows stepped over in full scans", 1),
    ("sorts", 2),
    ("rows put in automatic indexes", 3),
    ("steps of SQLite's machine", 4),
];

/// Declares the functions as fields without their prefix, and looks all of them up.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $answer:ty)?;)*) => {
        /// The functions of one loaded library. They are called without a look-up and without a lock.
        pub(super) struct Library {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
        }

        impl Library {
            /// The name of the function that is missing, if one is.
            fn resolve(library: &libloading::Library) -> std::result::Result<Self, &'static str> {
                // SAFETY: dlsym(3) knows no types. These are those of SQLite's C interface, which SQLite promises to
                // keep.
                unsafe {
                    Ok(Library {
                        $($name: {
                            let name = concat!("sqlite3_", stringify!($name));
                            *library.get(name.as_bytes()).map_err(|_| name)?
                        },)*
                    })
                }
            }
        }
    };
}

functions! {
    bind_blob64: fn(*mut Program, c_int, *const c_void, u64, Destructor) -> c_int;
    bind_double: fn(*mut Program, c_int, f64) -> c_int;
    bind_int64: fn(*mut Program, c_int, i64) -> c_int;
    bind_null: fn(*mut Program, c_int) -> c_int;
    bind_parameter_count: fn(*mut Program) -> c_int;
    bind_text64: fn(*mut Program, c_int, *const c_char, u64, Destructor, u8) -> c_int;
    busy_timeout: fn(*mut Database, c_int) -> c_int;
    close: fn(*mut Database) -> c_int;
    column_blob: fn(*mut Program, c_int) -> *const c_void;
    column_bytes: fn(*mut Program, c_int) -> c_int;
    column_count: fn(*mut Program) -> c_int;
    column_double: fn(*mut Program, c_int) -> f64;
    column_int64: fn(*mut Program, c_int) -> i64;
    column_name: fn(*mut Program, c_int) -> *const c_char;
    column_text: fn(*mut Program, c_int) -> *const u8;
    column_type: fn(*mut Program, c_int) -> c_int;
    errmsg: fn(*mut Database) -> *const c_char;
    extended_result_codes: fn(*mut Database, c_int) -> c_int;
    finalize: fn(*mut Program) -> c_int;
    get_autocommit: fn(*mut Database) -> c_int;
    interrupt: fn(*mut Database);
    libversion: fn() -> *const c_char;
    open_v2: fn(*const c_char, *mut *mut Database, c_int, *const c_char) -> c_int;
    prepare_v3: fn(
        *mut Database, *const c_char, c_int, c_uint, *mut *mut Program, *mut *const c_char
    ) -> c_int;
    reset: fn(*mut Program) -> c_int;
    step: fn(*mut Program) -> c_int;
    stmt_status: fn(*mut Program, c_int, c_int) -> c_int;
    threadsafe: fn() -> c_int;
    total_changes64: fn(*mut Database) -> i64;
}

impl Library {
    /// Loads the library at `path` (or the dynamic loader's own find), once per process.
    pub fn load(path: Option<&str>) -> Result<&'static Self> {
        static LOADED: Libraries<&'static Library> = Libraries::new();
        LOADED.get(path.unwrap_or(DEFAULT_LIBRARY), |path| {
            let file = library::open(path, "SQLite's library", REMEDY)?;
            let library = Self::resolve(&file).map_err(|missing| {
                Error::connect(format!(
                    "{path:?} is not the library of SQLite 3.37 or later: it has no {missing}"
                ))
                .hint(REMEDY)
            })?;
            // SAFETY: sqlite3_threadsafe takes no argument and may be called at any time.
            if unsafe { (library.threadsafe)() } == 0 {
                let message =
                    format!("{path:?} was built for one thread, and each client has a thread of its own");
                return Err(Error::connect(message).hint("build SQLite without -DSQLITE_THREADSAFE=0"));
            }
            std::mem::forget(file);
            Ok(Box::leak(Box::new(library)))
        })
    }

    pub fn version(&self) -> String {
        // SAFETY: sqlite3_libversion gives a constant that ends with a zero.
        unsafe { CStr::from_ptr((self.libversion)()) }.to_string_lossy().into_owned()
    }
}

pub(super) const OK: c_int = 0;
pub(super) const ERROR: c_int = 1;
pub(super) const BUSY: c_int = 5;
pub(super) const LOCKED: c_int = 6;
pub(super) const READ_ONLY: c_int = 8;
pub(super) const INTERRUPT: c_int = 9;
pub(super) const INPUT_OUTPUT: c_int = 10;
pub(super) const CORRUPT: c_int = 11;
pub(super) const FULL: c_int = 13;
pub(super) const CANNOT_OPEN: c_int = 14;
pub(super) const CONSTRAINT: c_int = 19;
pub(super) const NOT_A_DATABASE: c_int = 26;
pub(super) const ROW: c_int = 100;
pub(super) const DONE: c_int = 101;
/// Extended result codes hold the plain one in their lowest byte.
pub(super) const BUSY_SNAPSHOT: c_int = BUSY | (2 << 8);
pub(super) const CONSTRAINT_PRIMARY_KEY: c_int = CONSTRAINT | (6 << 8);
pub(super) const CONSTRAINT_UNIQUE: c_int = CONSTRAINT | (8 << 8);

pub(super) const OPEN_READ_WRITE: c_int = 0x2;
pub(super) const OPEN_CREATE: c_int = 0x4;
pub(super) const OPEN_NO_MUTEX: c_int = 0x8000;
pub(super) const PREPARE_PERSISTENT: c_uint = 1;

/// Types of a value; anything else is NULL.
pub(super) const INTEGER: c_int = 1;
pub(super) const FLOAT: c_int = 2;
pub(super) const TEXT: c_int = 3;
pub(super) const BLOB: c_int = 4;

pub(super) const UTF8: u8 = 1;
