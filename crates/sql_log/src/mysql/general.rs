//! General logs. Old servers write the time only where it differs from the line before.

use super::{bare, spanned, Entry, Form};
use crate::lexer::{is_blank, open_quote, tokens, Dialect, Kind};
use crate::moment::Moments;
use crate::reason::{CUT_OFF, TOLD_TWICE};
use crate::Map;
use crate::{finder, Fault, Minutes, Seen, Sink};
use memchr::memchr_iter;

/// As MySQL 5.0 and before write them: each name has eleven letters, filled with blanks.
const OLD_NAMES: &[&str] = &[
    "Sleep",
    "Quit",
    "Init DB",
    "Query",
    "Field List",
    "Create DB",
    "Drop DB",
    "Refresh",
    "Shutdown",
    "Statistics",
    "Processlist",
    "Connect",
    "Kill",
    "Debug",
    "Ping",
    "Time",
    "Delayed ins",
    "Change user",
    "Binlog Dump",
    "Table Dump",
    "Connect Out",
    "Register Sl",
    "Prepare",
    "Execute",
    "Long Data",
    "Close stmt",
    "Reset stmt",
    "Set option",
    "Fetch",
    "Daemon",
    "Error",
];
const OLD_NAME_LENGTH: usize = 11;
/// So far behind the time a command has its name.
const NAMED_BYTES: usize = 40;

/// A command of a connection. A line that has its form is one, whether its name is known or not.
struct Command<'a> {
    time: &'a [u8],
    id: &'a [u8],
    name: &'a [u8],
    text: &'a [u8],
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Tabs,
    Padded,
}

/// Whether a command of a general log begins here.
pub fn general_begins(line: &[u8]) -> bool {
    command(line, Shape::Tabs).or_else(|| command(line, Shape::Padded)).is_some()
}

fn command(line: &[u8], shape: Shape) -> Option<Command<'_>> {
    let time_length = time_length(line, shape == Shape::Tabs);
    let (time, rest) = line.split_at(time_length);
    let (blanks, behind) = spanned(rest, is_blank);
    if time.is_empty() {
        let fits = match shape {
            Shape::Tabs => line.starts_with(b"\t\t") && is_padded_number(&line[2..]),
            Shape::Padded => blanks.len() >= 2,
        };
        if !fits {
            return None;
        }
    } else if blanks.is_empty() {
        return None;
    }
    let (id, rest) = spanned(behind, u8::is_ascii_digit);
    let rest = if id.is_empty() { None } else { rest.strip_prefix(b" ") }?;
    let (name, text) = match shape {
        Shape::Tabs => named(rest)?,
        Shape::Padded => padded(rest)?,
    };
    Some(Command { time, id, name, text })
}

/// Four blanks and digits or more, of which the last is a digit, and a blank.
fn is_padded_number(text: &[u8]) -> bool {
    let (number, _) = spanned(text, |byte| *byte == b' ' || byte.is_ascii_digit());
    let number = number.strip_suffix(b" ").unwrap_or(number);
    number.len() >= 5 && number.last().is_some_and(u8::is_ascii_digit)
}

/// A command's name up to the tab behind it, and its text.
fn named(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, text) = spanned(rest, is_of_name);
    match text {
        _ if !is_name(name) => None,
        [b'\t', text @ ..] => Some((name, text)),
        [] | [b'\n'] => Some((name, b"")),
        _ => None,
    }
}

fn padded(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, text) = rest.split_at_checked(OLD_NAME_LENGTH)?;
    let bare = name.trim_ascii_end();
    if !OLD_NAMES.iter().any(|known| known.as_bytes() == bare) {
        return None;
    }
    match text {
        [b' ', text @ ..] => Some((bare, text)),
        [] | [b'\n'] => Some((bare, b"")),
        _ => None,
    }
}

/// The length of `261122 16:00:00` or, with `new` ones, of `2026-11-22T16:00:00.000001Z`; 0 for neither.
fn time_length(line: &[u8], new: bool) -> usize {
    if fits(line, b"dddddd _d:dd:dd") {
        return 15;
    }
    if !new || !fits(line, b"dddd-dd-ddTdd:dd:dd") {
        return 0;
    }
    let mut length = 19;
    if line.get(length) == Some(&b'.') {
        length += 1 + spanned(&line[length + 1..], u8::is_ascii_digit).0.len();
    }
    let zone = &line[length..];
    length
        + match zone.first() {
            Some(b'Z') => 1,
            Some(b'+' | b'-') if fits(&zone[1..], b"dd:dd") => 6,
            Some(b'+' | b'-') if fits(&zone[1..], b"dddd") => 5,
            _ => 0,
        }
}

/// Whether a text begins as a form says: `d` stands for a digit, `_` for a digit or a blank.
fn fits(text: &[u8], form: &[u8]) -> bool {
    text.len() >= form.len()
        && form.iter().zip(text).all(|(wanted, byte)| match wanted {
            b'd' => byte.is_ascii_digit(),
            b'_' => byte.is_ascii_digit() || *byte == b' ',
            _ => wanted == byte,
        })
}

/// Whether a command stands in the midst of a text: the one before it was cut, or a byte before this one was changed. As
/// long as one byte alone is another, of its time, its number and its name two can be read.
fn holds_another(text: &[u8]) -> bool {
    let mut begins = memchr_iter(b'\n', text).map(|end| end + 1).chain([0]);
    begins.any(|begin| begins_command(&text[begin..]))
        || memchr_iter(b'\t', text).any(|tab| ends_in_command(&text[..tab]))
}

/// Whether a text begins with a line of a command, of which the number or the name may be changed.
fn begins_command(line: &[u8]) -> bool {
    let time = time_length(line, true);
    let Some(rest) = line[time..].strip_prefix(if time > 0 { &b"\t"[..] } else { b"\t\t" }) else {
        return false;
    };
    let (blanks, rest) = spanned(rest, |byte| *byte == b' ');
    let (id, behind) = spanned(rest, u8::is_ascii_digit);
    if !id.is_empty() {
        let padded = blanks.len() + id.len() >= 5;
        return time > 0
            || (padded && (is_nearly_named(behind) || is_nearly_named(behind.get(1..).unwrap_or(b""))));
    }
    memchr_iter(b'\t', &rest[..rest.len().min(NAMED_BYTES)]).any(|tab| {
        OLD_NAMES.iter().any(|name| {
            let before = rest[..tab].strip_suffix(name.as_bytes());
            before
                .is_some_and(|before| blanks.len() + before.len() >= 5 && before.last().is_none_or(is_blank))
        })
    })
}

/// Whether a text begins with the name of a command, of which one byte may be another.
fn is_nearly_named(text: &[u8]) -> bool {
    OLD_NAMES.iter().any(|name| {
        text.len() >= name.len() && name.bytes().zip(text).filter(|(byte, found)| byte != *found).count() <= 1
    })
}

/// Whether what stands before a tab ends in the number and the name of a command.
fn ends_in_command(before: &[u8]) -> bool {
    let length = before.iter().rev().take_while(|byte| is_of_name(byte)).count();
    let (front, name) = before.split_at(before.len() - length);
    front.last().is_some_and(u8::is_ascii_digit) && name.strip_prefix(b" ").is_some_and(is_title)
}

/// Whether a name is one of a command, and no word of SQL, as far as its letters tell it.
fn is_title(name: &[u8]) -> bool {
    name.len() >= 4 && is_name(name)
}

fn is_of_name(byte: &u8) -> bool {
    byte.is_ascii_alphabetic() || *byte == b' '
}

/// Words of letters with a blank between, of which the first begins with a capital and goes on in small letters, as no
/// word of SQL in capitals does.
fn is_name(name: &[u8]) -> bool {
    name.first().is_some_and(u8::is_ascii_uppercase)
        && name.get(1).is_some_and(u8::is_ascii_lowercase)
        && name.split(|byte| *byte == b' ').all(|word| !word.is_empty())
}

/// A statement that is told when the next command of its session says whether it is logged beside itself.
struct Held {
    text: Vec<u8>,
    line: u64,
    at_s: Option<f64>,
    whole_s: Option<f64>,
    database: Vec<u8>,
}

impl Held {
    fn tell(&self, session: &[u8], twice: bool, sink: &mut Sink<'_>) -> Result<(), Fault> {
        sink(&Seen {
            text: if twice { b"" } else { &self.text },
            line: self.line,
            times: 1,
            rest: if twice { TOLD_TWICE } else { "" },
            session,
            at_s: self.at_s,
            database: &self.database,
            whole_s: self.whole_s,
            ..Seen::default()
        })
    }
}

/// Reads general logs.
#[derive(Default)]
pub struct General {
    whole: bool,
    shape: Option<Shape>,
    written: Vec<u8>,
    databases: Map<Vec<u8>, Vec<u8>>,
    executes: Map<Vec<u8>, Held>,
    moments: Moments,
}

impl General {
    pub fn new(whole: bool) -> General {
        General { whole, ..General::default() }
    }

    /// A file has one form, which its first command tells.
    fn command<'a>(&mut self, line: &'a [u8]) -> Option<Command<'a>> {
        if !matches!(line.first(), Some(b'\t' | b' ' | b'0'..=b'9')) {
            return None;
        }
        if let Some(shape) = self.shape {
            return command(line, shape);
        }
        [Shape::Tabs, Shape::Padded].into_iter().find_map(|shape| {
            let found = command(line, shape)?;
            self.shape = Some(shape);
            Some(found)
        })
    }
}

/// An entry's head holds its time, its connection and its command, each behind a NUL.
fn parts(head: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let mut parts = head.splitn(3, |byte| *byte == 0);
    let mut next = || parts.next().unwrap_or(b"");
    (next(), next(), next())
}

fn is_executed(name: &[u8]) -> bool {
    matches!(name, b"Query" | b"Execute")
}

/// The database that a command chooses; None where it chooses none.
fn chosen(name: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    match name {
        b"Init DB" => Some(text.to_vec()),
        b"Connect" | b"Change user" => {
            let at = finder!(b" on ").find(text)?;
            let database = &text[at + 4..];
            let end = finder!(b" using ").find(database).unwrap_or(database.len());
            Some(database[..end].to_vec())
        }
        b"Query" | b"Execute" => used(text),
        _ => None,
    }
}

fn used(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() < 4 || !text[..3].eq_ignore_ascii_case(b"use") || !is_blank(&text[3]) {
        return None;
    }
    let name = bare(&text[4..]);
    match name.strip_prefix(b"`").and_then(|name| name.strip_suffix(b"`")) {
        Some(quoted) => {
            let mut plain = Vec::new();
            let mut bytes = quoted.iter().copied();
            while let Some(byte) = bytes.next() {
                plain.push(byte);
                if byte == b'`' && bytes.next() != Some(b'`') {
                    return None;
                }
            }
            (!plain.is_empty()).then_some(plain)
        }
        None => {
            let fits =
                !name.is_empty() && !name.iter().any(|byte| is_blank(byte) || matches!(byte, b'`' | b';'));
            fits.then(|| name.to_vec())
        }
    }
}

/// Whether a statement carries out a prepared one, which the server logs beside it.
fn executes(text: &[u8]) -> bool {
    let mut first = tokens(text, Dialect::MySql).filter(|token| token.kind != Kind::Blank);
    first.next().is_some_and(|token| text[token.start..token.end].eq_ignore_ascii_case(b"execute"))
}

impl Form for General {
    fn begins(&mut self, line: &[u8]) -> bool {
        self.command(line).is_some()
    }

    fn first(&mut self, entry: &mut Entry, number: u64, line: &[u8]) {
        let Some(found) = self.command(line) else { return };
        entry.head = [found.time, b"\0", found.id, b"\0", found.name].concat();
        entry.start = number;
        let ended: &[u8] = if line.ends_with(b"\n") { b"\n" } else { b"" };
        let text = if found.text.is_empty() { ended } else { found.text };
        // The texts of other commands are names and the like, which no quotes rule.
        entry.quote = if is_executed(found.name) { open_quote(text, 0) } else { 0 };
        entry.append(text);
    }

    fn joins(&mut self, _entry: &mut Entry, _line: &[u8]) -> bool {
        false
    }

    fn has_end(&self, entry: &Entry, last: bool) -> bool {
        let alone = !is_executed(parts(&entry.head).2) && entry.last().ends_with(b"\n");
        !last || (self.whole && !entry.broken) || alone
    }

    fn told(&mut self, entry: &Entry, minutes: &mut Minutes<'_>, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let (time, session, name) = parts(&entry.head);
        if !time.is_empty() {
            time.clone_into(&mut self.written);
        }
        let at_s =
            if self.written.is_empty() { None } else { self.moments.at_s(&self.written, b"", minutes)? };
        let whole_s = at_s.filter(|_| !self.written.contains(&b'.'));
        let text = entry.body.strip_suffix(b"\n").unwrap_or(&entry.body);
        if text.contains(&b'\t') && holds_another(text) {
            return sink(&Seen::rest(entry.line, CUT_OFF));
        }
        let executed = is_executed(name) && !text.iter().all(is_blank);
        if let Some(database) = chosen(name, text) {
            self.databases.insert(session.to_vec(), database);
        }
        let database = self.databases.get(session).cloned().unwrap_or_default();
        if let Some(held) = self.executes.remove(session) {
            held.tell(session, name == b"Execute", sink)?;
        }
        let line = entry.line;
        if name == b"Query" && executed && executes(text) {
            let held = Held { text: bare(text).to_vec(), line, at_s, whole_s, database };
            self.executes.insert(session.to_vec(), held);
            return Ok(());
        }
        let rest = format!("command {}", String::from_utf8_lossy(name));
        sink(&Seen {
            text: if executed { bare(text) } else { b"" },
            line,
            times: 1,
            rest: if executed { "" } else { &rest },
            session,
            at_s,
            database: &database,
            whole_s,
            ..Seen::default()
        })?;
        if name == b"Quit" {
            self.databases.remove(session);
        }
        Ok(())
    }

    fn ended(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let mut held: Vec<_> = std::mem::take(&mut self.executes).into_iter().collect();
        held.sort_by_key(|(_, held)| held.line);
        held.iter().try_for_each(|(session, held)| held.tell(session, false, sink))
    }
}
