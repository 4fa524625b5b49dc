//! Slow logs. MySQL writes `use` only where it differs from the entry before, and the time so in old versions, so both
//! stay from file to file.

use super::{bare, decimal, spanned, whole, Entry, Form};
use crate::lexer::{is_blank, tokens, Dialect, Kind};
use crate::moment::Moments;
use crate::reason::CUT_OFF;
use crate::{finder, Fault, Minutes, Seen, Sink};
use memchr::memmem::Finder;

/// The lines of a head that stand in this order.
const RANKS: [&[u8]; 3] = [b"# Time: ", b"# User@Host: ", b"# Query_time: "];
const COMMAND: &[u8] = b"# administrator command: ";
/// Statements that hold others, each with a `;` of its own, so the end of a file may cut them behind one.
const COMPOUND: &[&str] = &["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"];
/// What MariaDB takes outside of a procedure too, with a `;` behind each statement of it.
const BLOCKS: &[&str] = &["DECLARE", "IF", "CASE", "LOOP", "FOR", "WHILE", "REPEAT"];
/// So many statements without `SET timestamp` before them tell that the server does not write it before each.
const UNSTAMPED_MOST: usize = 64;

/// Whether an entry of a slow log begins here.
pub fn slow_begins(line: &[u8]) -> bool {
    rank(line).is_some()
}

/// The place of a head's line among those that stand in an order.
fn rank(line: &[u8]) -> Option<usize> {
    let rank = RANKS.iter().position(|key| line.starts_with(key))?;
    let rest = &line[RANKS[rank].len()..];
    let fits = match rank {
        0 => is_time(rest),
        1 => {
            let host = finder!(b"] @ ").find(rest);
            host.is_some_and(|at| {
                rest[..at].contains(&b'[') && rest[at..].contains(&b'[') && rest[at + 1..].contains(&b']')
            })
        }
        _ => decimal(rest, 18).is_some_and(|(_, length)| {
            let (blanks, more) = spanned(&rest[length..], is_blank);
            !blanks.is_empty() && more.starts_with(b"Lock_time: ")
        }),
    };
    fits.then_some(rank)
}

fn is_time(text: &[u8]) -> bool {
    let (digits, rest) = spanned(text, u8::is_ascii_digit);
    (digits.len() == 6 && rest.starts_with(b" "))
        || (digits.len() == 4 && rest.len() > 7 && rest[0] == b'-' && rest[6] == b'T')
}

/// A statement without `SET timestamp` before it. Only servers before 5.1 write none, so if one stands before a later
/// statement, a piece of this one is lost.
struct Unstamped {
    text: Vec<u8>,
    session: Vec<u8>,
    database: Vec<u8>,
    seen: Seen<'static>,
}

impl Unstamped {
    fn of(seen: &Seen<'_>) -> Unstamped {
        let (text, session, database) = (seen.text.to_vec(), seen.session.to_vec(), seen.database.to_vec());
        let Seen { line, took_s, times, at_s, rows, affected, failed, whole_s, sampled, examined, .. } =
            *seen;
        let seen = Seen {
            line,
            took_s,
            times,
            at_s,
            rows,
            affected,
            failed,
            whole_s,
            sampled,
            examined,
            ..Seen::default()
        };
        Unstamped { text, session, database, seen }
    }

    fn tell(&self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let (text, session, database) = (&self.text[..], &self.session[..], &self.database[..]);
        sink(&Seen { text, session, database, ..self.seen.clone() })
    }
}

/// Reads slow logs.
#[derive(Default)]
pub struct Slow {
    whole: bool,
    /// Whether the server writes `SET timestamp` before each statement, as soon as that is known.
    stamps: Option<bool>,
    unstamped: Vec<Unstamped>,
    used: Vec<u8>,
    written: Vec<u8>,
    mariadb: bool,
    moments: Moments,
}

/// What the lines of a head tell.
#[derive(Default)]
struct Head<'a> {
    took_s: Option<f64>,
    time: Option<&'a [u8]>,
    started: Option<&'a [u8]>,
    session: Option<&'a [u8]>,
    schema: Option<&'a [u8]>,
    rows: Option<u64>,
    affected: Option<u64>,
    examined: Option<u64>,
    failed: bool,
    limit: u64,
    mariadb: bool,
    /// Whether the time that it took has decimals.
    finer: bool,
}

impl<'a> Head<'a> {
    fn of(head: &'a [u8]) -> Head<'a> {
        let mut told = Head { limit: 1, ..Head::default() };
        for line in head.split(|byte| *byte == b'\n') {
            told.take(line);
        }
        told
    }

    fn take(&mut self, line: &'a [u8]) {
        let Some(rest) = line.strip_prefix(b"# ") else { return };
        if rest.starts_with(b"Query_time: ") {
            let took = decimal(&rest[12..], 9);
            self.took_s = self.took_s.or(took.map(|(took_s, _)| took_s));
            self.finer |= took.is_some_and(|(_, length)| rest[12..12 + length].contains(&b'.'));
            self.started = self.started.or_else(|| word_behind(rest, finder!(b" Start: ")));
            self.session = self.session.or_else(|| digits_behind(rest, finder!(b" Thread_id: ")));
            self.rows = self.rows.or_else(|| number_behind(rest, finder!(b" Rows_sent: ")));
            self.examined = self.examined.or_else(|| number_behind(rest, finder!(b" Rows_examined: ")));
            self.affected = self.affected.or_else(|| number_behind(rest, finder!(b" Rows_affected: ")));
            self.take_errors(rest);
        } else if let Some(time) = rest.strip_prefix(b"Time: ") {
            self.time = self.time.or(Some(time.trim_ascii_end()));
        } else if rest.starts_with(b"User@Host: ") {
            self.session = self.session.or_else(|| digits_behind(rest, finder!(b" Id: ")));
        } else if let Some(thread) = rest.strip_prefix(b"Thread_id: ") {
            let (digits, behind) = spanned(thread, u8::is_ascii_digit);
            self.session = self.session.or((!digits.is_empty()).then_some(digits));
            self.mariadb |= finder!(b"  QC_hit: ").find(behind).is_some();
            if let Some(schema) = behind.strip_prefix(b"  Schema: ") {
                self.take_schema(schema);
            }
            self.take_errors(rest);
        } else if let Some(schema) = rest.strip_prefix(b"Schema: ") {
            self.take_schema(schema);
            self.take_errors(rest);
        } else if let Some(count) = rest.strip_prefix(b"Rows_affected: ") {
            self.affected = self.affected.or_else(|| whole(count, 18));
        } else if rest.starts_with(b"Log_slow_rate_type: ") {
            self.limit = number_behind(rest, finder!(b"  Log_slow_rate_limit: ")).unwrap_or(1).max(1);
        }
    }

    fn take_schema(&mut self, text: &'a [u8]) {
        let end = finder!(b"  ").find(text).unwrap_or(text.len());
        self.schema = self.schema.or(Some(&text[..end]));
    }

    fn take_errors(&mut self, line: &[u8]) {
        for key in [finder!(b" Last_errno: "), finder!(b" Errno: ")] {
            self.failed |= number_behind(line, key).is_some_and(|number| number > 0);
        }
    }
}

fn behind<'a>(line: &'a [u8], key: &Finder<'_>) -> Option<&'a [u8]> {
    key.find(line).map(|at| &line[at + key.needle().len()..])
}

fn number_behind(line: &[u8], key: &Finder<'_>) -> Option<u64> {
    whole(behind(line, key)?, 18)
}

fn digits_behind<'a>(line: &'a [u8], key: &Finder<'_>) -> Option<&'a [u8]> {
    let rest = behind(line, key)?;
    let (digits, _) = spanned(spanned(rest, |byte| *byte == b' ').1, u8::is_ascii_digit);
    (!digits.is_empty()).then_some(digits)
}

fn word_behind<'a>(line: &'a [u8], key: &Finder<'_>) -> Option<&'a [u8]> {
    let (word, _) = spanned(behind(line, key)?, |byte| !is_blank(byte));
    (!word.is_empty()).then_some(word)
}

/// The first line of a text, and what follows.
fn line_of(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(memchr::memchr(b'\n', text).map_or(text.len(), |at| at + 1))
}

/// The database of `use NAME;`.
fn used(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(b"use ")?.strip_suffix(b";\n").filter(|name| !name.contains(&b';'))
}

/// The seconds of `SET timestamp=N;`, as the server writes it.
fn stamped(line: &[u8]) -> Option<f64> {
    let mut rest = line.strip_prefix(b"SET ")?;
    for key in [&b"last_insert_id="[..], b"insert_id="] {
        if let Some(value) = rest.strip_prefix(key) {
            rest = spanned(value, u8::is_ascii_digit).1.strip_prefix(b",")?;
        }
    }
    let rest = rest.strip_prefix(b"timestamp=")?;
    let (stamp_s, length) = decimal(rest, 12)?;
    (&rest[length..] == b";\n").then_some(stamp_s)
}

impl Slow {
    pub fn new(whole: bool) -> Slow {
        Slow { whole, ..Slow::default() }
    }

    /// The database and the second that the server writes before a statement, and the statement with the number of
    /// lines before it.
    fn context(body: &[u8]) -> (Option<&[u8]>, Option<f64>, &[u8], u64) {
        let (mut text, mut lines, mut database, mut stamp_s) = (body, 0, None, None);
        let (line, rest) = line_of(text);
        if let Some(name) = used(line) {
            (database, text, lines) = (Some(name), rest, lines + 1);
        }
        let (line, rest) = line_of(text);
        if let Some(second) = stamped(line) {
            (stamp_s, text, lines) = (Some(second), rest, lines + 1);
        }
        (database, stamp_s, text, lines)
    }

    /// When a statement began, and the whole second that says so where no finer time does. MariaDB's `SET timestamp` is
    /// the begin. MySQL's `# Time` is the end, and `SET timestamp` too where times are in the form of before 5.7; later
    /// ones tell microseconds with `# Time` alone.
    fn begun(
        &mut self,
        head: &Head<'_>,
        stamp_s: Option<f64>,
        took_s: f64,
        minutes: &mut Minutes<'_>,
    ) -> Result<(Option<f64>, Option<f64>), Fault> {
        if let Some(started) = head.started {
            return Ok((self.moments.at_s(started, b"", minutes)?, None));
        }
        if self.written.get(4) == Some(&b'-') {
            let Some(time) = head.time else {
                // These versions write it in each entry, so this one's is lost.
                return Ok((None, None));
            };
            let end_s = self.moments.at_s(time, b"", minutes)?;
            return Ok((end_s.map(|end_s| end_s - took_s), None));
        }
        let written_s =
            if self.written.is_empty() { None } else { self.moments.at_s(&self.written, b"", minutes)? };
        let Some(whole_s) = stamp_s.or(written_s) else { return Ok((None, None)) };
        if let Some(written_s) = written_s.filter(|_| !self.mariadb && self.written.contains(&b'.')) {
            return Ok((Some(whole_s + written_s % 1.0 - took_s), None));
        }
        let at_s = if self.mariadb { whole_s } else { whole_s - took_s };
        Ok((Some(at_s), (whole_s.fract() == 0.0).then_some(whole_s)))
    }
}

fn is_compound(text: &[u8]) -> bool {
    let upper = text[..text.len().min(1 << 16)].to_ascii_uppercase();
    let mut words = upper.split(|byte| !crate::lexer::is_word(*byte)).filter(|word| !word.is_empty());
    match words.next() {
        Some(b"CREATE" | b"ALTER") => words.any(|word| COMPOUND.iter().any(|one| one.as_bytes() == word)),
        Some(b"BEGIN") => words.next() == Some(b"NOT") && words.next() == Some(b"ATOMIC"),
        Some(first) if BLOCKS.iter().any(|one| one.as_bytes() == first) => {
            // `END IF label` is the longest end.
            let ends: Vec<_> = words.collect();
            ends.iter().rev().take(3).any(|word| *word == b"END")
        }
        _ => false,
    }
}

/// Whether something stands behind a `;`. A server logs each statement in an entry of its own, so what lay between two
/// of them is lost.
fn is_several(text: &[u8]) -> bool {
    if memchr::memchr(b';', text).is_none() || is_compound(text) {
        return false;
    }
    let mut ended = false;
    tokens(text, Dialect::MySql).any(|token| {
        let written = &text[token.start..token.end];
        let ends = written == b";";
        ended |= ends;
        // The head of the next entry is a comment too, and may have lost its end.
        let is_head = written.starts_with(b"#") && text[..token.start].ends_with(b"\n");
        ended && !ends && (token.kind != Kind::Blank || is_head)
    })
}

impl Form for Slow {
    fn begins(&mut self, line: &[u8]) -> bool {
        line.starts_with(b"# ") && slow_begins(line)
    }

    fn first(&mut self, entry: &mut Entry, _number: u64, line: &[u8]) {
        entry.rank = rank(line);
        entry.head.extend_from_slice(line);
    }

    fn joins(&mut self, entry: &mut Entry, line: &[u8]) -> bool {
        if entry.start > 0 || !line.starts_with(b"#") || command(line).is_some() {
            return false;
        }
        if let Some(rank) = rank(line) {
            if entry.rank.is_some_and(|before| rank <= before) {
                return false;
            }
            entry.rank = Some(rank);
        }
        if entry.head.len() < entry.room {
            entry.head.extend_from_slice(line);
        }
        true
    }

    fn has_end(&self, entry: &Entry, last: bool) -> bool {
        if entry.body.is_empty() {
            return false;
        }
        let line = entry.last();
        if last && self.whole && !entry.broken {
            return line.strip_suffix(b"\n").unwrap_or(line).ends_with(b";");
        }
        line.ends_with(b";\n") && !(last && is_compound(Slow::context(&entry.body).2))
    }

    fn told(&mut self, entry: &Entry, minutes: &mut Minutes<'_>, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let head = Head::of(&entry.head);
        let (database, stamp_s, text, lines) = Slow::context(&entry.body);
        if let Some(name) = database {
            name.clone_into(&mut self.used);
        }
        if let Some(time) = head.time {
            time.clone_into(&mut self.written);
        }
        let Some(took_s) = head.took_s.filter(|_| !text.is_empty()) else {
            return sink(&Seen::rest(entry.line, CUT_OFF));
        };
        self.mariadb |= head.mariadb;
        let (at_s, whole_s) = self.begun(&head, stamp_s, took_s, minutes)?;
        let command = command(text).map(|name| format!("command {}", String::from_utf8_lossy(name)));
        if command.is_none() && is_several(bare(text)) {
            return sink(&Seen::rest(entry.line, CUT_OFF));
        }
        let used = std::mem::take(&mut self.used);
        let seen = Seen {
            text: if command.is_some() { b"" } else { bare(text) },
            line: entry.start + lines,
            took_s: Some(took_s * head.limit as f64),
            times: head.limit,
            rest: command.as_deref().unwrap_or(""),
            session: head.session.unwrap_or(b""),
            at_s,
            database: head.schema.unwrap_or(&used),
            rows: head.rows,
            affected: head.affected,
            failed: head.failed,
            whole_s,
            sampled: head.limit > 1,
            examined: head.examined,
            ..Seen::default()
        };
        // Servers that write whole seconds alone are older than the rule.
        let told = if stamp_s.is_some() || command.is_some() || !head.finer {
            self.stamped(stamp_s.is_some(), sink).and_then(|()| sink(&seen))
        } else {
            self.unstamped(&seen, entry.line, sink)
        };
        self.used = used;
        told
    }

    fn ended(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        std::mem::take(&mut self.unstamped).iter().try_for_each(|held| held.tell(sink))
    }
}

impl Slow {
    /// Takes in that `SET timestamp` stands before a statement, if it does.
    fn stamped(&mut self, is_stamped: bool, sink: &mut Sink<'_>) -> Result<(), Fault> {
        if !is_stamped || self.stamps.is_some() {
            return Ok(());
        }
        self.stamps = Some(true);
        let held = std::mem::take(&mut self.unstamped);
        held.iter().try_for_each(|held| sink(&Seen::rest(held.seen.line, CUT_OFF)))
    }

    fn unstamped(&mut self, seen: &Seen<'_>, line: u64, sink: &mut Sink<'_>) -> Result<(), Fault> {
        match self.stamps {
            Some(true) => sink(&Seen::rest(line, CUT_OFF)),
            Some(false) => sink(seen),
            None => {
                self.unstamped.push(Unstamped::of(seen));
                if self.unstamped.len() < UNSTAMPED_MOST {
                    return Ok(());
                }
                self.stamps = Some(false);
                std::mem::take(&mut self.unstamped).iter().try_for_each(|held| held.tell(sink))
            }
        }
    }
}

/// The name of a command of the protocol.
fn command(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(COMMAND)?;
    let (name, _) = spanned(rest, |byte| crate::lexer::is_word(*byte) || *byte == b' ');
    (!name.is_empty()).then_some(name)
}
