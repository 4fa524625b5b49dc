//! The status vector that every call fills, and what its codes mean for the driver.

use super::interfaces::{call, Master, Status as StatusInterface, Util, STATE_ERRORS};
use crate::error::{Code, Error, Fate, Result};
use std::ffi::{c_char, c_uint};

/// Codes by which a statement is told to be worth another try, or the connection to be gone. The first that stands in
/// a status vector names the error, so the telling ones come before those that accompany them.
const KNOWN: &[(isize, &str, Fate)] = &[
    (335_544_741, "connection_lost", Fate::Lost),
    (NETWORK_ERROR, "network_error", Fate::Lost),
    (335_544_726, "network_read", Fate::Lost),
    (335_544_727, "network_write", Fate::Lost),
    (335_544_856, "attachment_shut_down", Fate::Lost),
    // Nobody asks for that but the driver, when it gives the session up.
    (335_544_794, "cancelled", Fate::Lost),
    (335_544_528, "database_shut_down", Fate::Lost),
    (335_544_324, "attachment_gone", Fate::Lost),
    (335_544_333, "internal_consistency", Fate::Lost),
    (335_544_510, "lock_timeout", Fate::Retry),
    (335_544_451, "update_conflict", Fate::Retry),
    (335_544_345, "lock_conflict", Fate::Retry),
    (335_544_336, "deadlock", Fate::Retry),
    (READ_ONLY_TRANSACTION, "read_only_transaction", Fate::Failed),
    (335_544_665, "unique_key_violation", Fate::Failed),
    (335_544_349, "duplicate_key", Fate::Failed),
    (335_544_466, "foreign_key_violation", Fate::Failed),
    (335_544_347, "not_valid", Fate::Failed),
    (335_544_580, "table_unknown", Fate::Failed),
    (335_544_578, "column_unknown", Fate::Failed),
    (335_544_634, "syntax_error", Fate::Failed),
    (STRING_TRUNCATION, "string_truncation", Fate::Failed),
    (335_544_321, "arithmetic_error", Fate::Failed),
    (INPUT_OUTPUT, "input_output", Fate::Failed),
    (SQL_ERROR, "sql_error", Fate::Failed),
];
/// Also where the library finds no engine, and so turns to a server of this host.
pub(super) const NETWORK_ERROR: isize = 335_544_721;
pub(super) const STRING_TRUNCATION: isize = 335_544_914;
pub(super) const SQL_ERROR: isize = 335_544_569;
const INPUT_OUTPUT: isize = 335_544_344;
const NO_SPACE_HINT: &str =
    "the disk is full: make room beside the database, and for Firebird's temporary files";
const READ_ONLY_TRANSACTION: isize = 335_544_361;

/// What a connect may fail with, and the way out of it.
const CONNECT_HINTS: &[(isize, &str)] = &[
    (335_544_472, "give the user and password in the URL: firebird://USER:PASSWORD@HOST:PORT/PATH"),
    (NETWORK_ERROR, "is the server up, and are host and port right?"),
    (
        335_544_379,
        "the database was made by another version of Firebird: restore it from a backup with this one",
    ),
    (
        335_544_323,
        "the file is no Firebird database: name another file, or remove it and add create=1 to the URL",
    ),
    (
        335_545_106,
        "the library's directory must hold firebird.conf and plugins/, or FIREBIRD must name one that does",
    ),
    (
        335_544_375,
        "the library's directory must hold plugins/ with the engine, or FIREBIRD must name one that does",
    ),
    (
        335_544_734,
        "the file does not exist or cannot be opened: check the path and its permissions, or add create=1",
    ),
    (335_544_732, "the directory does not exist, or may not be written to"),
    (335_544_345, "another process holds the database: stop it, or connect through a server"),
    (INPUT_OUTPUT, "check that the directory exists, that the file may be written, and that no other process has it open"),
];

const ARGUMENT_END: isize = 0;
const ARGUMENT_CODE: isize = 1;
const ARGUMENT_COUNTED_STRING: isize = 3;
/// An errno of the operating system.
const ARGUMENT_UNIX: isize = 7;
/// The library's vectors have at most 20 entries before they are continued elsewhere; this only bounds a broken one.
const VECTOR_LIMIT: usize = 200;

/// One status vector, filled again by each call of its session.
pub(super) struct Status {
    interface: *mut StatusInterface,
    util: *mut Util,
}

impl Status {
    /// # Safety
    /// `master` and `util` are the library's, which is never unloaded.
    pub unsafe fn new(master: *mut Master, util: *mut Util) -> Self {
        Status { interface: call!(master, get_status), util }
    }

    pub fn get(&self) -> *mut StatusInterface {
        self.interface
    }

    /// The error that the last call left, if it left one.
    #[inline]
    pub fn check(&mut self) -> Result<()> {
        // SAFETY: IStatus lives until dispose, which Drop alone calls.
        if unsafe { call!(self.interface, get_state) } & STATE_ERRORS == 0 {
            return Ok(());
        }
        Err(self.take().0)
    }

    /// As `check`, for what happens while connecting.
    pub fn check_connect(&mut self) -> Result<()> {
        // SAFETY: IStatus lives until dispose, which Drop alone calls.
        if unsafe { call!(self.interface, get_state) } & STATE_ERRORS == 0 {
            return Ok(());
        }
        let (error, causes) = self.take();
        let known = CONNECT_HINTS.iter().find(|(code, _)| causes.codes.contains(code));
        let hint = if causes.no_space { NO_SPACE_HINT } else { known.map_or("", |(_, hint)| hint) };
        Err(Error::connect(error.message()).coded(error.code()).hint(hint))
    }

    /// Forgets the last call's error.
    pub fn clear(&mut self) {
        // SAFETY: IStatus lives until dispose, which Drop alone calls.
        unsafe { call!(self.interface, init) };
    }

    fn take(&mut self) -> (Error, Causes) {
        let text = self.text();
        let causes = Causes::of(&self.vector(), &text);
        self.clear();
        (causes.error(&text), causes)
    }

    /// A copy of the vector, without its end.
    fn vector(&self) -> Vec<isize> {
        let mut copy = Vec::new();
        // SAFETY: getErrors gives a vector that ends with ARGUMENT_END; each argument is followed by its value, a
        // counted string by two.
        unsafe {
            let vector = call!(self.interface, get_errors);
            while copy.len() < VECTOR_LIMIT && *vector.add(copy.len()) != ARGUMENT_END {
                let values = if *vector.add(copy.len()) == ARGUMENT_COUNTED_STRING { 2 } else { 1 };
                for _ in 0..=values {
                    copy.push(*vector.add(copy.len()));
                }
            }
        }
        copy
    }

    fn text(&self) -> String {
        let mut buffer = vec![0u8; 2048];
        // SAFETY: IUtil's formatStatus writes no more than the length says, which is the buffer's.
        let length = unsafe {
            call!(
                self.util,
                format_status,
                buffer.as_mut_ptr().cast::<c_char>(),
                buffer.len() as c_uint,
                self.interface
            )
        };
        buffer.truncate(length as usize);
        String::from_utf8_lossy(&buffer).trim_end_matches('\0').trim().replace("\n-", "; ").replace('\n', " ")
    }
}

/// What a status vector tells.
#[derive(Debug, PartialEq)]
struct Causes {
    codes: Vec<isize>,
    /// The disk is full, whatever else went wrong because of it.
    no_space: bool,
}

impl Causes {
    fn of(vector: &[isize], text: &str) -> Self {
        let (mut codes, mut rest) = (Vec::new(), vector);
        let mut no_space = text.contains("No space left on device");
        while let [kind, value, ..] = *rest {
            match kind {
                ARGUMENT_CODE => codes.push(value),
                ARGUMENT_UNIX => no_space |= value == libc::ENOSPC as isize,
                _ => {}
            }
            rest = rest.get(if kind == ARGUMENT_COUNTED_STRING { 3.. } else { 2.. }).unwrap_or_default();
        }
        Causes { codes, no_space }
    }

    fn error(&self, text: &str) -> Error {
        let known = KNOWN.iter().find(|(code, ..)| self.codes.contains(code));
        let first = self.codes.first().copied().unwrap_or_default();
        let (code, word, fate) = known.copied().unwrap_or((first, "error", Fate::Failed));
        let (code, word) = if self.no_space { (INPUT_OUTPUT, "disk_full") } else { (code, word) };
        let error = Error::refused(Code::Firebird(code), word, fate, text);
        if self.no_space {
            error.hint(NO_SPACE_HINT)
        } else {
            error
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        // SAFETY: IStatus is IDisposable: it is disposed of once, when nothing uses it any more.
        unsafe { call!(self.interface, dispose) };
    }
}

/// True where a statement was refused because it writes and its transaction only reads.
pub(super) fn is_read_only_refusal(error: &Error) -> bool {
    error.code() == Code::Firebird(READ_ONLY_TRANSACTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(vector: &[isize], text: &str) -> Error {
        Causes::of(vector, text).error(text)
    }

    #[test]
    fn the_telling_code_names_the_error_wherever_it_stands() {
        // "deadlock; update conflicts with concurrent update", with a text of counted length between them.
        let error = error_of(&[1, 335_544_336, 3, 5, 1234, 1, 335_544_451], "deadlock");
        assert_eq!((error.label(), error.fate()), ("335544451 update_conflict", Fate::Retry));
        let error = error_of(&[1, 335_544_741, 1, 335_544_336], "gone");
        assert_eq!((error.label(), error.fate()), ("335544741 connection_lost", Fate::Lost));
    }

    #[test]
    fn an_unknown_code_is_shown_as_it_is() {
        let error = error_of(&[1, 335_545_000, 4, 7], "who knows");
        assert_eq!((error.label(), error.fate()), ("335545000 error", Fate::Failed));
        assert_eq!(error_of(&[], "nothing").label(), "0 error");
    }

    #[test]
    fn a_full_disk_is_said_to_be_one() {
        let enospc = libc::ENOSPC as isize;
        for (vector, text) in [
            (
                vec![1, INPUT_OUTPUT, 2, 77, 1, 335_544_737, ARGUMENT_UNIX, enospc],
                "I/O error during \"write\"",
            ),
            (vec![1, 335_544_675], "sort error; No space left on device"),
        ] {
            let error = error_of(&vector, text);
            assert_eq!((error.label(), error.fate()), ("335544344 disk_full", Fate::Failed));
            assert!(error.hint_text().contains("make room"), "{error}");
        }
        let other = error_of(&[1, INPUT_OUTPUT, ARGUMENT_UNIX, libc::EIO as isize], "I/O error");
        assert_eq!((other.label(), other.hint_text()), ("335544344 input_output", ""));
        let lost = error_of(&[1, 335_544_333, ARGUMENT_UNIX, enospc], "internal consistency");
        assert_eq!((lost.label(), lost.fate()), ("335544344 disk_full", Fate::Lost));
    }

    #[test]
    fn a_vector_that_is_cut_off_is_no_danger() {
        for vector in [&[1][..], &[3, 1], &[1, 335_544_336, 3, 5]] {
            let _ = Causes::of(vector, "");
        }
    }
}
