//! The slow log and the general log of MariaDB, MySQL and Percona Server.
//!
//! An entry of a slow log is a head of lines that begin with `#`, then perhaps `use DATABASE;` and
//! `SET timestamp=...;`, then the statement, which ends with `;` at the end of a line, or
//! `# administrator command: ...;`. A general log has a line for each command of a connection; a statement's further
//! lines follow its first, and it ends where the next command begins. The server writes three lines of its own when it
//! opens either file. (`sql/log.cc` of each server has the forms.)
//!
//! What looks like the next entry may also stand within a text in quotes. Where a quote is open at such a line, both
//! readings are followed: if the text ends later, as an entry does, neither is taken.

mod general;
mod slow;

pub use general::{general_begins, General};
pub use slow::{slow_begins, Slow};

use crate::lexer::{is_blank, open_quote};
use crate::reason::{CUT_OFF, DOUBT, LAST, TOO_LONG};
use crate::{finder, Fault, Minutes, Seen, Sink};
use std::collections::VecDeque;

/// So far both readings of an open quote are followed; then the entry counts as cut.
const DOUBT_LINES_MOST: usize = 10_000;
/// A long statement's memory is not kept for the next one.
const SPARE_BYTES_MOST: usize = 64 << 10;
/// Bytes that a line of an entry counts beside its text.
const LINE_COSTS: usize = 64;

/// An entry as it stands in the log: its head, and its statement.
#[derive(Default)]
pub struct Entry {
    line: u64,
    head: Vec<u8>,
    body: Vec<u8>,
    last_line: usize,
    start: u64,
    quote: u8,
    /// Of the head's lines that stand in an order, the last one's place in it.
    rank: Option<usize>,
    room: usize,
    over: bool,
    /// Whether damage stands behind it, so that its end is not certain.
    broken: bool,
}

impl Entry {
    /// In the memory of one that is told.
    fn new(line: u64, room: usize, spare: Entry) -> Entry {
        let Entry { mut head, mut body, .. } = spare;
        head.clear();
        body.clear();
        body.shrink_to(SPARE_BYTES_MOST);
        Entry { line, room, head, body, ..Entry::default() }
    }

    /// Adds a line to the statement.
    fn take(&mut self, number: u64, line: &[u8]) {
        if self.start == 0 {
            self.start = number;
        }
        self.quote = open_quote(line, self.quote);
        self.append(line);
    }

    fn append(&mut self, line: &[u8]) {
        match self.room.checked_sub(line.len() + LINE_COSTS) {
            Some(room) => {
                self.room = room;
                self.last_line = self.body.len();
                self.body.extend_from_slice(line);
            }
            None => self.over = true,
        }
    }

    fn last(&self) -> &[u8] {
        &self.body[self.last_line..]
    }
}

/// Cuts lines into entries of one form.
pub trait Form {
    /// Whether a line is the first one of an entry.
    fn begins(&mut self, line: &[u8]) -> bool;
    /// Begins an entry with its first line.
    fn first(&mut self, entry: &mut Entry, number: u64, line: &[u8]);
    /// Whether a line belongs to the entry's head, which takes it.
    fn joins(&mut self, entry: &mut Entry, line: &[u8]) -> bool;
    /// Whether an entry whose quotes are closed is whole where another begins, or at the end of a file.
    fn has_end(&self, entry: &Entry, last: bool) -> bool;
    /// What a whole entry tells.
    fn told(&mut self, entry: &Entry, minutes: &mut Minutes<'_>, sink: &mut Sink<'_>) -> Result<(), Fault>;
    /// What is left when all files are read.
    fn ended(&mut self, _sink: &mut Sink<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

/// An entry with an open quote, behind which lines look like other entries.
struct Doubt {
    entry: Entry,
    kept: Vec<(u64, Vec<u8>)>,
    entries: u64,
}

/// Reads the files of one log, one after another.
pub struct Reader<F: Form> {
    form: F,
    entry: Option<Entry>,
    doubt: Option<Doubt>,
    again: VecDeque<(u64, Vec<u8>)>,
    before: u64,
    entry_most: usize,
    /// The memory of the entry before.
    spare: Entry,
}

impl<F: Form> Reader<F> {
    /// An entry of more than so many bytes is left out, because one statement must not fill the memory.
    pub fn new(form: F, entry_most: usize) -> Reader<F> {
        let (again, spare) = (VecDeque::new(), Entry::default());
        Reader { form, entry: None, doubt: None, again, before: 0, entry_most, spare }
    }

    /// Takes the next line; an empty one stands for what is damaged.
    pub fn line(
        &mut self,
        number: u64,
        line: &[u8],
        minutes: &mut Minutes<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        self.step(number, line, minutes, sink)?;
        self.read_again(minutes, sink)
    }

    /// Ends a file.
    pub fn end(&mut self, minutes: &mut Minutes<'_>, sink: &mut Sink<'_>) -> Result<(), Fault> {
        while let Some(doubt) = self.doubt.take() {
            if doubt.entry.quote == 0 && self.form.has_end(&doubt.entry, true) {
                sink(&Seen { times: 1 + doubt.entries, ..Seen::rest(doubt.entry.line, DOUBT) })?;
            } else {
                self.cut(doubt, sink)?;
                self.read_again(minutes, sink)?;
            }
        }
        if self.before > 0 {
            sink(&Seen::rest(self.before, CUT_OFF))?;
            self.before = 0;
        }
        match self.entry.take() {
            Some(entry) => self.ended_entry(&entry, true, minutes, sink),
            None => Ok(()),
        }
    }

    /// Ends the log.
    pub fn ended(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        self.form.ended(sink)
    }

    fn read_again(&mut self, minutes: &mut Minutes<'_>, sink: &mut Sink<'_>) -> Result<(), Fault> {
        while let Some((number, line)) = self.again.pop_front() {
            self.step(number, &line, minutes, sink)?;
        }
        Ok(())
    }

    fn step(
        &mut self,
        number: u64,
        line: &[u8],
        minutes: &mut Minutes<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        if let Some(doubt) = self.doubt.take() {
            return self.follow(doubt, number, line, minutes, sink);
        }
        if line.is_empty() {
            // What is damaged ends what was begun.
            if let Some(mut entry) = self.entry.take() {
                entry.broken = true;
                self.ended_entry(&entry, true, minutes, sink)?;
            }
            return sink(&Seen::rest(number, CUT_OFF));
        }
        if let Some(entry) = &mut self.entry {
            if self.form.joins(entry, line) {
                return Ok(());
            }
        }
        if let Some(entry) = self.entry.take_if(|entry| breaks(&self.form, entry, line)) {
            self.ended_entry(&entry, true, minutes, sink)?;
            return sink(&Seen::rest(number, CUT_OFF));
        }
        let opened = is_opened(line);
        if !opened && !self.form.begins(line) {
            match &mut self.entry {
                Some(entry) => entry.take(number, line),
                None if self.before == 0 && !line.iter().all(is_blank) && !is_title(line) => {
                    self.before = number;
                }
                None => {}
            }
            return Ok(());
        }
        if let Some(mut entry) = self.entry.take_if(|entry| entry.quote != 0 && entry.start > 0) {
            entry.take(number, line);
            let entries = u64::from(!line.starts_with(b"#"));
            self.doubt = Some(Doubt { entry, kept: vec![(number, line.to_vec())], entries });
            return Ok(());
        }
        if let Some(entry) = self.entry.take() {
            self.ended_entry(&entry, false, minutes, sink)?;
            self.spare = entry;
        }
        if !opened {
            let mut entry = Entry::new(number, self.entry_most, std::mem::take(&mut self.spare));
            self.form.first(&mut entry, number, line);
            self.entry = Some(entry);
        }
        Ok(())
    }

    /// Goes on behind a line that looks like another entry. Lines that turn out to be of others are read again.
    fn follow(
        &mut self,
        mut doubt: Doubt,
        number: u64,
        line: &[u8],
        minutes: &mut Minutes<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        let begins = self.form.begins(line) || is_opened(line);
        if begins && doubt.entry.quote == 0 && self.form.has_end(&doubt.entry, false) {
            sink(&Seen { times: 1 + doubt.entries, ..Seen::rest(doubt.entry.line, DOUBT) })?;
            return self.step(number, line, minutes, sink);
        }
        doubt.kept.push((number, line.to_vec()));
        let is_entry = line.starts_with(b"# Query_time: ")
            || line.first().is_some_and(|byte| *byte == b'\t' || byte.is_ascii_digit());
        doubt.entries += u64::from(begins && is_entry);
        doubt.entry.take(number, line);
        if doubt.kept.len() >= DOUBT_LINES_MOST {
            return self.cut(doubt, sink);
        }
        self.doubt = Some(doubt);
        Ok(())
    }

    fn cut(&mut self, doubt: Doubt, sink: &mut Sink<'_>) -> Result<(), Fault> {
        for kept in doubt.kept.into_iter().rev() {
            self.again.push_front(kept);
        }
        sink(&Seen::rest(doubt.entry.line, CUT_OFF))
    }

    fn ended_entry(
        &mut self,
        entry: &Entry,
        last: bool,
        minutes: &mut Minutes<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        if entry.over {
            return sink(&Seen::rest(entry.line, TOO_LONG));
        }
        if entry.quote == 0 && self.form.has_end(entry, last) {
            return self.form.told(entry, minutes, sink);
        }
        let may_go_on = last && !entry.broken && entry.quote == 0 && self.form.has_end(entry, false);
        sink(&Seen::rest(entry.line, if may_go_on { LAST } else { CUT_OFF }))
    }
}

/// Whether the file ends in the head of an entry behind this one.
fn breaks(form: &impl Form, entry: &Entry, line: &[u8]) -> bool {
    let begun = line.starts_with(b"#") && !line.ends_with(b"\n");
    begun && entry.quote == 0 && entry.start > 0 && form.has_end(entry, false)
}

/// What a server writes first when it opens the file: its version.
fn is_opened(line: &[u8]) -> bool {
    let bare = line.strip_suffix(b"\n").unwrap_or(line);
    bare.ends_with(b" started with:") && finder!(b", Version: ").find(bare).is_some()
}

/// What a server writes behind that line.
fn is_title(line: &[u8]) -> bool {
    let lower = line.to_ascii_lowercase();
    if lower.starts_with(b"tcp port: ") && finder!(b"socket: ").find(&lower).is_some() {
        return true;
    }
    let mut words = line.split(is_blank).filter(|word| !word.is_empty());
    ["Time", "Id", "Command", "Argument"]
        .iter()
        .all(|title| words.next().is_some_and(|word| word.starts_with(title.as_bytes())))
}

/// A statement without what stands around it: blanks, and the `;` that the server or the client wrote.
fn bare(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let start = text.iter().position(|byte| !blank(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !blank(byte) && *byte != b';').map_or(start, |at| at + 1);
    &text[start..end.max(start)]
}

/// Takes from the beginning of a text as long as a rule says so.
fn spanned(text: &[u8], fits: impl Fn(&u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|byte| fits(byte)).count())
}

/// A whole number at the beginning of a text, of at most so many digits.
fn whole(text: &[u8], most: usize) -> Option<u64> {
    let (digits, _) = spanned(text, u8::is_ascii_digit);
    (1..=most).contains(&digits.len()).then(|| std::str::from_utf8(digits).ok()?.parse().ok())?
}

/// A number with decimals at the beginning of a text, and its length.
fn decimal(text: &[u8], most: usize) -> Option<(f64, usize)> {
    let (digits, rest) = spanned(text, u8::is_ascii_digit);
    if !(1..=most).contains(&digits.len()) {
        return None;
    }
    let fraction = match rest.split_first() {
        Some((b'.', rest)) => spanned(rest, u8::is_ascii_digit).0.len(),
        _ => 0,
    };
    let length = digits.len() + if fraction > 0 { fraction + 1 } else { 0 };
    Some((std::str::from_utf8(&text[..length]).ok()?.parse().ok()?, length))
}
