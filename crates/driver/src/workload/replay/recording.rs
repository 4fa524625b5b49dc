//! The file of a recording: sessions with their statements, and when each was sent. `docs/reference/recording.md` has its
//! form; `src/dbdyno/sql_logs/recording.py` writes it. A statement is read when it is due, so a recording may be larger
//! than memory. Whatever the file says is checked before it is used.

use crate::error::{Error, Result};
use crate::session::Protocol;
use serde::Deserialize;
use std::fs::File;
use std::os::unix::fs::FileExt;

const MAGIC: &[u8; 8] = b"dynorply";
const VERSION: u32 = 1;
const HEADER_BYTES: u64 = 48;
const SESSION_BYTES: u64 = 40;
const STATEMENT_BYTES: usize = 56;
/// No server takes a longer statement.
const TEXT_BYTES_MAX: usize = 1 << 30;
const ABOUT_BYTES_MAX: u64 = 1 << 30;
const OPENING_SEEN: u32 = 1;
const FAILED: u32 = 1;
const MEND: &str = "make the recording again: dyno init replay --from LOG";

/// What a recording says of itself.
#[derive(Clone, Debug, Deserialize)]
pub struct About {
    /// Whose SQL it holds, as `Protocol::as_str` has it.
    pub protocol: String,
    /// What is to be taken off each time in the file: when the first session was opened.
    pub origin_ns: u64,
    /// From there to the end of the last session.
    pub length_ns: u64,
    /// How many sessions were open at one time at most.
    pub open_most: u32,
    /// The types of transactions, each of a statement's verb.
    pub kinds: Vec<String>,
    pub statements: Vec<Kind>,
    /// Names of databases; empty where the log does not tell.
    pub databases: Vec<String>,
}

/// Statements that differ in their values alone.
#[derive(Clone, Debug, Deserialize)]
pub struct Kind {
    pub digest: String,
    /// Its place in `About::kinds`.
    pub kind: u32,
}

/// Where a statement stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    offset: u64,
    size: u32,
}

impl Place {
    #[cfg(test)]
    pub fn new(offset: u64, size: u32) -> Self {
        Place { offset, size }
    }
}

/// A connection that was recorded; times count from the recording's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    pub opened_ns: u64,
    pub closed_ns: u64,
    /// False where the log begins later than the connection, or tells of no connection.
    pub opening_seen: bool,
    pub first: Option<Place>,
    pub statements: u64,
}

/// A statement without its text, which lies in the buffer that it was read into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub due_ns: u64,
    pub next: Option<Place>,
    /// Its place in `About::statements`.
    pub statement: u32,
    /// Its place in `About::databases`.
    pub database: u32,
    pub failed: bool,
    /// `None` where the log does not say.
    pub rows: Option<u64>,
    pub affected: Option<u64>,
}

/// A recording that is open for reading.
#[derive(Debug)]
pub struct Recording {
    path: String,
    file: File,
    about: About,
    /// What chooses each of the databases, where there are several and a session can choose.
    choosing: Vec<Option<String>>,
    /// By the time of their opening.
    visits: Vec<Visit>,
    /// Where the statements end.
    statements_end: u64,
}

impl Recording {
    pub fn open(path: &str) -> Result<Self> {
        let (file, header) = Header::of(path)?;
        let about = header.about(path, &file)?;
        let visits = header.visits(path, &file, about.origin_ns)?;
        let (path, choosing) = (path.to_owned(), choosing(&about));
        Ok(Recording { path, file, about, choosing, visits, statements_end: header.sessions_offset })
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    pub fn visits(&self) -> &[Visit] {
        &self.visits
    }

    /// The transaction type of a statement that was read.
    #[inline]
    pub fn kind(&self, statement: u32) -> usize {
        self.about.statements[statement as usize].kind as usize
    }

    /// What puts a session into the database of a statement that was read; `None` where it is there already.
    pub fn choosing(&self, database: u32) -> Option<&str> {
        self.choosing.get(database as usize)?.as_deref()
    }

    /// The text without its values of a statement that was read.
    pub fn digest(&self, statement: u32) -> &str {
        self.about.statements.get(statement as usize).map_or("", |kind| &kind.digest)
    }

    /// Reads a statement; its text is then in `buffer`, which grows as it must and is reused.
    pub fn read(&self, place: Place, buffer: &mut Vec<u8>) -> Result<Recorded> {
        self.require_within(place)?;
        buffer.resize(place.size as usize, 0);
        self.fill(place, buffer)?;
        self.recorded(place, Fields(buffer))
    }

    /// Reads a statement without its text.
    pub fn head(&self, place: Place) -> Result<Recorded> {
        self.require_within(place)?;
        let mut head = [0; STATEMENT_BYTES];
        self.fill(place, &mut head)?;
        self.recorded(place, Fields(&head))
    }

    fn require_within(&self, Place { offset, size }: Place) -> Result<()> {
        if (size as usize) < STATEMENT_BYTES || size as usize > STATEMENT_BYTES + TEXT_BYTES_MAX {
            return Err(self.damaged(offset, "a statement has an impossible size"));
        }
        let ends = offset.checked_add(u64::from(size));
        if offset < HEADER_BYTES || ends.is_none_or(|end| end > self.statements_end) {
            return Err(self.damaged(offset, "a statement lies outside of the statements"));
        }
        Ok(())
    }

    fn fill(&self, place: Place, bytes: &mut [u8]) -> Result<()> {
        self.file
            .read_exact_at(bytes, place.offset)
            .map_err(|error| self.damaged(place.offset, &format!("a statement cannot be read: {error}")))
    }

    fn recorded(&self, Place { offset, size }: Place, fields: Fields<'_>) -> Result<Recorded> {
        let next = place_of(fields.long(16), fields.short(24));
        if next.is_some_and(|next| next.offset < offset + u64::from(size)) {
            return Err(self.damaged(offset, "a statement is followed by an earlier one"));
        }
        let (statement, database) = (fields.short(28), fields.short(36));
        if statement as usize >= self.about.statements.len()
            || database as usize >= self.about.databases.len()
        {
            return Err(self.damaged(offset, "a statement is of no kind that the recording has"));
        }
        Ok(Recorded {
            due_ns: fields.long(0).saturating_sub(self.about.origin_ns),
            next,
            statement,
            database,
            failed: fields.short(32) & FAILED != 0,
            rows: told(fields.long(40)),
            affected: told(fields.long(48)),
        })
    }

    /// The text of the statement that was read into `buffer` from `place`.
    pub fn text<'b>(&self, place: Place, buffer: &'b [u8]) -> Result<&'b str> {
        std::str::from_utf8(buffer.get(STATEMENT_BYTES..).unwrap_or_default())
            .map_err(|_| self.damaged(place.offset, "a statement is not in UTF-8"))
    }

    #[cold]
    fn damaged(&self, offset: u64, what: &str) -> Error {
        damaged(&self.path, offset, what)
    }
}

/// What a recording says of itself, and how many sessions it has.
pub fn about(path: &str) -> Result<(About, u64)> {
    let (file, header) = Header::of(path)?;
    Ok((header.about(path, &file)?, header.sessions))
}

#[cold]
fn damaged(path: &str, offset: u64, what: &str) -> Error {
    Error::user(format!("{path}, byte {offset}: {what}")).hint(MEND).fatal()
}

/// The parts of the file.
struct Header {
    sessions_offset: u64,
    sessions: u64,
    about_offset: u64,
    about_bytes: u64,
}

impl Header {
    fn of(path: &str) -> Result<(File, Self)> {
        let unreadable = |error: std::io::Error| {
            Error::user(format!("{path} cannot be read: {error}"))
                .hint("give a recording: dyno init replay --from LOG -o NAME.replay")
        };
        let file = File::open(path).map_err(unreadable)?;
        let file_bytes = file.metadata().map_err(unreadable)?.len();
        let mut bytes = [0; HEADER_BYTES as usize];
        if file.read_exact_at(&mut bytes, 0).is_err() || &bytes[..8] != MAGIC {
            return Err(Error::user(format!("{path} is no recording"))
                .hint("make one from a log: dyno init replay --from LOG -o NAME.replay"));
        }
        let fields = Fields(&bytes);
        let version = fields.short(8);
        if version != VERSION {
            return Err(Error::user(format!(
                "{path} is a recording of version {version}, and this driver reads version {VERSION}"
            ))
            .hint(MEND));
        }
        let header = Header {
            sessions_offset: fields.long(16),
            sessions: fields.long(24),
            about_offset: fields.long(32),
            about_bytes: fields.long(40),
        };
        if header.about_offset == 0 {
            return Err(Error::user(format!("{path} was never finished")).hint(MEND));
        }
        header.check(path, file_bytes)?;
        Ok((file, header))
    }

    /// Whether all parts lie in the file, in their order.
    fn check(&self, path: &str, file_bytes: u64) -> Result<()> {
        let sessions_end = self
            .sessions
            .checked_mul(SESSION_BYTES)
            .and_then(|bytes| bytes.checked_add(self.sessions_offset));
        let about_end = self.about_offset.checked_add(self.about_bytes);
        let fits = self.sessions_offset >= HEADER_BYTES
            && sessions_end.is_some_and(|end| end <= self.about_offset)
            && about_end.is_some_and(|end| end <= file_bytes)
            && self.about_bytes <= ABOUT_BYTES_MAX;
        match fits {
            true => Ok(()),
            false => Err(damaged(path, 16, "its parts do not lie in the file: it may have been cut short")),
        }
    }

    fn about(&self, path: &str, file: &File) -> Result<About> {
        let broken = |error: String| damaged(path, self.about_offset, &error);
        let mut bytes = vec![0; self.about_bytes as usize];
        file.read_exact_at(&mut bytes, self.about_offset).map_err(|error| broken(error.to_string()))?;
        let about: About = serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
        if about.kinds.is_empty() || about.statements.iter().any(|one| one.kind as usize >= about.kinds.len())
        {
            return Err(broken("a statement is of no kind".to_owned()));
        }
        Ok(about)
    }

    fn visits(&self, path: &str, file: &File, origin_ns: u64) -> Result<Vec<Visit>> {
        // No more than the file holds, because `check` has seen that it does.
        let mut bytes = vec![0; (self.sessions * SESSION_BYTES) as usize];
        file.read_exact_at(&mut bytes, self.sessions_offset)
            .map_err(|error| damaged(path, self.sessions_offset, &error.to_string()))?;
        let visits: Vec<Visit> =
            bytes.chunks_exact(SESSION_BYTES as usize).map(|one| visit(one, origin_ns)).collect();
        let in_order = visits.windows(2).all(|pair| pair[0].opened_ns <= pair[1].opened_ns);
        if !in_order || visits.iter().any(|visit| visit.closed_ns < visit.opened_ns) {
            return Err(damaged(path, self.sessions_offset, "its sessions are not in their order"));
        }
        Ok(visits)
    }
}

fn visit(bytes: &[u8], origin_ns: u64) -> Visit {
    let fields = Fields(bytes);
    Visit {
        opened_ns: fields.long(0).saturating_sub(origin_ns),
        closed_ns: fields.long(8).saturating_sub(origin_ns),
        first: place_of(fields.long(16), fields.short(24)),
        opening_seen: fields.short(28) & OPENING_SEEN != 0,
        statements: fields.long(32),
    }
}

/// A statement for each database. Sessions of PostgreSQL have one from their opening on, which the URL names.
fn choosing(about: &About) -> Vec<Option<String>> {
    if about.databases.len() < 2 || about.protocol != Protocol::Mysql.as_str() {
        return Vec::new();
    }
    let sql = |name: &String| (!name.is_empty()).then(|| format!("USE `{}`", name.replace('`', "``")));
    about.databases.iter().map(sql).collect()
}

fn place_of(offset: u64, size: u32) -> Option<Place> {
    (offset != 0).then_some(Place { offset, size })
}

fn told(number: u64) -> Option<u64> {
    (number != u64::MAX).then_some(number)
}

/// Numbers in little endian, at places that the caller knows to be there.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn long(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    fn short(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }
}
