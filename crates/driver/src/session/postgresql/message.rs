//! The messages of PostgreSQL's protocol 3: reading with every length checked, and writing.

use crate::error::{Code, Error, Fate, Result};

/// What helps where statements are prepared in one session of the server and executed in another.
pub(super) const UNNAMED: &str =
    "a pooler that gives each transaction another session of the server, such as PgBouncer, loses prepared statements: \
     add ?statements=unnamed to the URL";

/// The type byte and the length.
pub(super) const HEADER_BYTES: usize = 5;
/// The server's own limit of what it allocates in one piece (`MaxAllocSize`), and so of a message.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// What a server sends.
pub(super) mod answer {
    pub const AUTHENTICATION: u8 = b'R';
    pub const BIND_COMPLETE: u8 = b'2';
    pub const COMMAND_COMPLETE: u8 = b'C';
    pub const COPY_IN: u8 = b'G';
    pub const COPY_BOTH: u8 = b'W';
    pub const DATA_ROW: u8 = b'D';
    pub const ERROR: u8 = b'E';
    pub const NOTICE: u8 = b'N';
    pub const NOTIFICATION: u8 = b'A';
    pub const PARAMETER_DESCRIPTION: u8 = b't';
    pub const PARAMETER_STATUS: u8 = b'S';
    pub const BACKEND_KEY: u8 = b'K';
    pub const PROTOCOL_VERSION: u8 = b'v';
    pub const READY: u8 = b'Z';
    pub const ROW_DESCRIPTION: u8 = b'T';
}

/// Type and length of the payload of a message, from its header.
#[inline]
pub(super) fn header(bytes: &[u8; HEADER_BYTES]) -> Result<(u8, usize)> {
    let [kind, length @ ..] = *bytes;
    // The length counts itself.
    match (u32::from_be_bytes(length) as usize).checked_sub(4) {
        Some(length) if length <= MESSAGE_BYTES_MAX => Ok((kind, length)),
        _ => Err(Error::protocol(format!(
            "the server announced a message of a wrong length (type {:?})",
            char::from(kind)
        ))),
    }
}

/// Appends one message: its type, its length, and the body that `body` writes.
#[inline]
pub(super) fn put(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    put_sized(out, 4, body);
}

/// Appends a message without a type, which only the first of a connection is.
pub(super) fn put_untyped(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    put_sized(out, 4, body);
}

/// Appends a value with its length before it.
#[inline]
pub(super) fn put_value(out: &mut Vec<u8>, value: impl FnOnce(&mut Vec<u8>)) {
    put_sized(out, 0, value);
}

#[inline]
fn put_sized(out: &mut Vec<u8>, counted_besides: usize, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - start - 4 + counted_besides) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

pub(super) fn put_string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

pub(super) fn put_sync(out: &mut Vec<u8>) {
    put(out, b'S', |_| {});
}

/// Reads a payload from its start. A read beyond the end is an error of the server's.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(payload: &'a [u8]) -> Self {
        Reader { rest: payload }
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(short)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(short)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    #[inline]
    pub fn i32(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// A string that a zero ends.
    pub fn string(&mut self) -> Result<&'a [u8]> {
        let end = self.rest.iter().position(|&byte| byte == 0).ok_or_else(short)?;
        let text = self.bytes(end)?;
        self.u8()?;
        Ok(text)
    }
}

#[cold]
fn short() -> Error {
    Error::protocol("a message of the server's ends before what it promises")
}

/// The rows that a CommandComplete says were changed: none for a SELECT.
pub(super) fn affected(tag: &[u8]) -> u64 {
    let tag = tag.strip_suffix(b"\0").unwrap_or(tag);
    let mut words = tag.split(|&byte| byte == b' ');
    match words.next() {
        Some(b"INSERT" | b"UPDATE" | b"DELETE" | b"MERGE" | b"COPY") => {
            let count = words.next_back().and_then(|count| std::str::from_utf8(count).ok());
            count.and_then(|count| count.parse().ok()).unwrap_or_default()
        }
        _ => 0,
    }
}

/// How an error is labelled by which the server says that it would answer a prepared statement with other columns than
/// it has described: a table was altered. PostgreSQL refuses that statement until it is prepared anew.
const STALE: &str = "other columns than prepared";

/// Whether a statement must be prepared anew.
pub(super) fn is_stale(error: &Error) -> bool {
    matches!(error.code(), Code::Stale(_))
}

/// What an ErrorResponse or a NoticeResponse says.
#[derive(Default)]
struct Said {
    severity: String,
    code: String,
    message: String,
    detail: String,
    routine: String,
}

impl Said {
    fn parse(payload: &[u8]) -> Self {
        let mut said = Said::default();
        let mut reader = Reader::new(payload);
        while let (Ok(field @ 1..), Ok(text)) = (reader.u8(), reader.string()) {
            let text = String::from_utf8_lossy(text).into_owned();
            match field {
                // The severity that is never translated; servers before 9.6 have the other only.
                b'V' => said.severity = text,
                b'S' if said.severity.is_empty() => said.severity = text,
                b'C' => said.code = text,
                b'M' => said.message = text,
                b'D' => said.detail = format!(": {text}"),
                b'R' => said.routine = text,
                _ => {}
            }
        }
        said
    }
}

/// The level, the code and the words of a NoticeResponse. `None` for what a statement was asked to tell (INFO) and for
/// what a log is meant for.
pub(super) fn warning(payload: &[u8]) -> Option<[String; 3]> {
    let Said { severity, code, message, detail, .. } = Said::parse(payload);
    matches!(severity.as_str(), "WARNING" | "NOTICE").then(|| [severity, code, message + &detail])
}

/// The error that an ErrorResponse stands for.
pub(super) fn server_error(payload: &[u8]) -> Error {
    let Said { severity, code, message, detail, routine } = Said::parse(payload);
    let (words, fate) = match code.as_str() {
        "40001" => ("serialization failure", Fate::Retry),
        "40P01" => ("deadlock", Fate::Retry),
        "55P03" => ("lock not available", Fate::Retry),
        "23505" => ("duplicate key", Fate::Failed),
        "42P01" => ("no such table", Fate::Failed),
        // One state for all that is not supported. The name of the server's function is never translated.
        "0A000" if routine == "RevalidateCachedQuery" => (STALE, Fate::Failed),
        "57P01" | "57P02" | "57P03" => ("server shutdown", Fate::Lost),
        _ => ("error", Fate::Failed),
    };
    let fate = if matches!(severity.as_str(), "FATAL" | "PANIC") { Fate::Lost } else { fate };
    let own = match Code::state(&code) {
        Code::State(state) if words == STALE => Code::Stale(state),
        own => own,
    };
    let error =
        Error::server(&format!("{code} {words}"), fate, format!("{message}{detail} (SQLSTATE {code})"));
    let error = error.coded(own);
    match code.as_str() {
        "42P05" | "26000" => error.hint(UNNAMED),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(fields: &[(u8, &str)]) -> Error {
        let mut payload = Vec::new();
        for (field, text) in fields {
            payload.push(*field);
            put_string(&mut payload, text);
        }
        payload.push(0);
        server_error(&payload)
    }

    #[test]
    fn errors_are_told_apart_by_their_state() {
        let deadlock =
            error(&[(b'S', "FEHLER"), (b'V', "ERROR"), (b'C', "40P01"), (b'M', "deadlock detected")]);
        assert_eq!((deadlock.label(), deadlock.fate()), ("40P01 deadlock", Fate::Retry));
        let unique = error(&[(b'V', "ERROR"), (b'C', "23505"), (b'M', "duplicate"), (b'D', "Key (a)=(1)")]);
        assert_eq!((unique.label(), unique.fate()), ("23505 duplicate key", Fate::Failed));
        assert_eq!(unique.message(), "duplicate: Key (a)=(1) (SQLSTATE 23505)");
        let fatal = error(&[(b'V', "FATAL"), (b'C', "53300"), (b'M', "too many clients")]);
        assert_eq!(fatal.fate(), Fate::Lost);
        for lost in ["42P05", "26000"] {
            let error = error(&[(b'V', "ERROR"), (b'C', lost), (b'M', "prepared statement")]);
            assert!(error.hint_text().contains("?statements=unnamed"));
        }
    }

    #[test]
    fn a_statement_that_must_be_prepared_anew_is_told_from_what_is_not_supported() {
        let fields = [(b'V', "ERROR"), (b'C', "0A000"), (b'M', "der Ergebnistyp")];
        assert!(!is_stale(&error(&fields)));
        assert!(is_stale(&error(&[&fields[..], &[(b'R', "RevalidateCachedQuery")]].concat())));
    }

    #[test]
    fn only_changes_count_as_affected() {
        assert_eq!(affected(b"INSERT 0 5\0"), 5);
        assert_eq!(affected(b"UPDATE 12\0"), 12);
        assert_eq!(affected(b"SELECT 12\0"), 0);
        assert_eq!(affected(b"BEGIN\0"), 0);
        assert_eq!(affected(b"UPDATE x\0"), 0);
    }

    #[test]
    fn a_length_counts_itself() {
        let mut out = Vec::new();
        put(&mut out, b'Q', |out| put_string(out, "ab"));
        assert_eq!(out, b"Q\0\0\0\x07ab\0");
        assert_eq!(header(out.first_chunk().unwrap()).unwrap(), (b'Q', 3));
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        assert!(header(b"D\0\0\0\x03").is_err());
        assert!(header(b"D\xFF\xFF\xFF\xFF").is_err());
        assert!(header(b"D\x7F\xFF\xFF\xFF").is_err());
    }

    proptest! {
        #[test]
        fn no_error_message_makes_the_parser_panic(payload in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = server_error(&payload);
            let _ = warning(&payload);
            let _ = affected(&payload);
        }
    }
}
