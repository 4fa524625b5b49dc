//! What a server was asked, read from its logs byte for byte: lines, entries, statements, tokens, digests, groups.

pub mod anonymise;
pub mod groups;
pub mod lexer;
pub mod lines;
pub mod literal;
mod moment;
pub mod mysql;
mod number;
pub mod postgresql;
pub mod shape;
pub mod values;

use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};
use std::error::Error;

/// Its hash is drawn for each map, so that a log cannot be made to collide.
type Map<K, V> = HashMap<K, V, RandomState>;
type Set<K> = HashSet<K, RandomState>;

/// What finds a text in each line of a log: it is made once, because that takes longer than to look through a line.
macro_rules! finder {
    ($text:expr) => {{
        static FINDER: std::sync::LazyLock<memchr::memmem::Finder<'static>> =
            std::sync::LazyLock::new(|| memchr::memmem::Finder::new($text));
        &*FINDER
    }};
}
use finder;

pub type Fault = Box<dyn Error + Send + Sync>;

/// A statement that was executed `times`, in `took_s` all together, or None where the log does not tell. `line` is where
/// it begins; `rest` names what is no statement (a command of the protocol), or why one is left out.
///
/// `session` is the connection, as the log names it, and `database` the one that it was in; both are empty where the log
/// does not tell. `at_s` is when the statement began, in seconds since 1970. `whole_s` is the whole second that the log
/// tells where it has no finer time. `bound` tells that the values of `$1` were put into the text, as texts in quotes
/// whatever their type. `rows` were sent, `affected` changed and `examined` read; `failed` says that it ended in an
/// error. `sampled` says that the log holds one of several statements, which `times` weighs. An EXECUTE `executes` a
/// statement that the log tells beside it.
#[derive(Clone, Debug, Default)]
pub struct Seen<'a> {
    pub text: &'a [u8],
    pub line: u64,
    pub took_s: Option<f64>,
    pub times: u64,
    pub rest: &'a str,
    pub session: &'a [u8],
    pub at_s: Option<f64>,
    pub database: &'a [u8],
    pub bound: bool,
    pub rows: Option<u64>,
    pub affected: Option<u64>,
    pub failed: bool,
    pub whole_s: Option<f64>,
    pub sampled: bool,
    pub examined: Option<u64>,
    pub executes: &'a [u8],
}

impl<'a> Seen<'a> {
    /// Something at a line that is no statement.
    pub fn rest(line: u64, rest: &'a str) -> Seen<'a> {
        Seen { line, rest, times: 1, ..Seen::default() }
    }
}

/// Where what was seen goes.
pub type Sink<'a> = dyn FnMut(&Seen<'_>) -> Result<(), Fault> + 'a;

/// Tells the moments of a log: seconds since 1970 of a minute as the log writes it, such as `2026-11-22T16:00` or
/// `261122 16:00`, in the zone that stands behind it.
pub type Minutes<'a> = dyn FnMut(&str, &str) -> Result<Option<f64>, Fault> + 'a;

/// What a log tells of a statement where its end, or its begin, is not certain.
pub mod reason {
    pub const CUT_OFF: &str = "entry that is cut off";
    pub const LAST: &str = "last entry, which may go on behind the end of the log (--whole takes it)";
    pub const TOO_LONG: &str = "entry that is too long";
    pub const NO_ENTRY: &str = "line that is no entry";
    pub const DOUBT: &str = "entry whose begin or end is not certain";
    pub const TOLD_TWICE: &str = "EXECUTE whose statement is logged beside it";
}
