//! From a URL to a connection: the library, the file, and what the URL sets.

use super::connection::{not_opened, Connection};
use super::library::Library;
use super::statement::Prepared;
use crate::error::{Error, Result};
use crate::session::{First, Owned, Target};

/// What the URL may set: a pragma's name, and its words in the order of the numbers by which SQLite reads them back.
/// No words: a whole number. In the order in which they must be applied.
const PRAGMAS: &[(&str, &[&str])] = &[
    ("page_size", &[]),
    ("auto_vacuum", &["none", "full", "incremental"]),
    ("encoding", &["UTF-8", "UTF-16le", "UTF-16be"]),
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
/// The library's path; without one, what the dynamic loader finds.
const LIBRARY: &str = "library";

pub(super) fn load_library(target: &Target) -> Result<&'static Library> {
    Library::load(target.parameter(LIBRARY))
}

/// Loads the library, opens the file (or makes it), and sets the URL's pragmas.
pub(super) fn open(target: &Target) -> Result<Connection> {
    target.allow_parameters()?;
    if !target.host.is_empty() {
        return Err(Error::user("SQLite has no server: the URL names a host")
            .hint("write sqlite:///PATH, with three slashes"));
    }
    let path = target.path();
    let connection = Connection::open(load_library(target)?, &path)?;
    // The file is read only now; what is no database is found out here.
    Prepared::new(&connection, "PRAGMA schema_version")
        .and_then(|mut statement| statement.run(&connection, std::iter::empty(), &mut ()))
        .map_err(|error| not_opened(&path, &error))?;
    for (name, words) in PRAGMAS {
        if let Some(value) = target.parameter(name) {
            set_pragma(&connection, name, words, value)?;
        }
    }
    Ok(connection)
}

/// Whether a transaction takes the write lock when it begins.
pub(super) fn begins_immediately(target: &Target) -> Result<bool> {
    match target.parameter(TRANSACTION) {
        None | Some("deferred") => Ok(false),
        Some("immediate") => Ok(true),
        Some(_) => Err(Error::user("the URL parameter transaction takes deferred or immediate")),
    }
}

/// Sets a pragma, and makes sure that SQLite took it: it passes over what it does not understand.
fn set_pragma(connection: &Connection, name: &str, words: &[&str], value: &str) -> Result<()> {
    let number = words.iter().position(|word| word.eq_ignore_ascii_case(value));
    if number.is_none() && (!words.is_empty() || value.parse::<i64>().is_err()) {
        let allowed = if words.is_empty() { "a whole number".to_owned() } else { words.join(", ") };
        return Err(Error::user(format!("the URL parameter {name} takes {allowed}, not {value:?}")));
    }
    ask(connection, &format!("PRAGMA {name} = '{value}'"))?;
    let shown = ask(connection, &format!("PRAGMA {name}"))?;
    let is_number_of_word = number.is_some_and(|number| shown == number.to_string());
    if shown.eq_ignore_ascii_case(value) || is_number_of_word {
        return Ok(());
    }
    Err(Error::user(format!("SQLite did not take {name} = {value}: it is {shown}")).hint(
        "page_size, auto_vacuum and encoding are fixed once the file holds a table; other values may be out of \
         bounds",
    ))
}

/// The first column of the first row as text.
fn ask(connection: &Connection, sql: &str) -> Result<String> {
    let mut answer = First::<Owned>::default();
    Prepared::new(connection, sql)?
        .run(connection, std::iter::empty(), &mut answer)
        .map_err(Error::while_connecting)?;
    Ok(answer.0.map_or_else(String::new, |value| value.to_string()))
}
