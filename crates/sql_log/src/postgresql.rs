//! What PostgreSQL's log tells: lines of text are cut into entries, and entries make statements.
//!
//! In a text a further line of a message begins with a tab, so an entry ends where the next line without one begins. The
//! last one may go on behind the end of the file.

mod messages;
mod rows;

pub use messages::{Entry, Messages};
pub use rows::{csv_begins, RowForm, Rows};

use crate::lexer::is_blank;
use crate::moment::Moments;
use crate::reason::{CUT_OFF, LAST, NO_ENTRY, TOO_LONG};
use crate::{finder, Fault, Minutes, Sink};
use crate::{Map, Set};
use regex::bytes::{Captures, Regex, RegexBuilder};

const SEVERITIES: &[&str] = &["LOG", "ERROR", "FATAL", "PANIC", "WARNING", "NOTICE", "INFO"];
/// Stands in a log for a database or a user that a session has not told yet.
const UNKNOWN: &[u8] = b"[unknown]";
/// A long statement's memory is not kept for the next one.
const SPARE_BYTES_MOST: usize = 64 << 10;
/// Bytes that a line of an entry counts beside its text.
const LINE_COSTS: usize = 64;

/// What says more of an entry, in the order in which the server writes it.
const ABOUT: [&[u8]; 7] = [b"DETAIL", b"HINT", b"QUERY", b"CONTEXT", b"LOCATION", b"BACKTRACE", b"STATEMENT"];
/// Whether a label begins an entry, and does not say more of one.
fn is_severe(label: &[u8]) -> bool {
    SEVERITIES.iter().any(|one| one.as_bytes() == label)
        || label.strip_prefix(b"DEBUG").is_some_and(|rest| matches!(rest, [] | [b'1'..=b'5']))
}

/// An entry as far as it was read; its parts are its message and what was written about it.
#[derive(Default)]
struct Open {
    line: u64,
    severity: Vec<u8>,
    name: Vec<u8>,
    moment: Vec<u8>,
    zone: Vec<u8>,
    epoch: Option<f64>,
    database: Vec<u8>,
    at_s: Option<f64>,
    message: Vec<u8>,
    detail: Vec<u8>,
    context: Vec<u8>,
    last: Vec<u8>,
    ended: bool,
    room: usize,
    over: bool,
    /// Whether lines are lost within it, or bytes changed, so that it holds something of another entry.
    damaged: bool,
    /// The place in the order of what was said of it last.
    rank: Option<usize>,
}

impl Open {
    /// In the memory of one that is told.
    fn new(line: u64, name: &[u8], found: &Found<'_>, at_s: Option<f64>, room: usize, spare: Open) -> Open {
        let mut opened =
            Open { line, at_s, room, epoch: None, over: false, damaged: false, rank: None, ..spare };
        let database = if found.database == UNKNOWN { b"" } else { found.database };
        found.label.clone_into(&mut opened.severity);
        name.clone_into(&mut opened.name);
        found.moment.clone_into(&mut opened.moment);
        found.zone.clone_into(&mut opened.zone);
        database.clone_into(&mut opened.database);
        opened.epoch = std::str::from_utf8(found.epoch).ok().and_then(|text| text.parse().ok());
        for part in [&mut opened.message, &mut opened.detail, &mut opened.context] {
            part.clear();
            part.shrink_to(SPARE_BYTES_MOST);
        }
        opened
    }

    fn append(&mut self, text: &[u8]) {
        self.ended = text.ends_with(b"\n");
        let Some(room) = self.room.checked_sub(text.len() + LINE_COSTS) else {
            self.over = true;
            return;
        };
        self.room = room;
        match &self.last[..] {
            b"DETAIL" => self.detail.extend_from_slice(text),
            b"CONTEXT" => self.context.extend_from_slice(text),
            label if is_severe(label) => self.message.extend_from_slice(text),
            _ => {}
        }
    }

    /// Begins with more of an entry. The server writes each part once, in an order, and all with one moment where that
    /// is a fine one.
    fn go_on(&mut self, found: &Found<'_>, text: &[u8]) {
        let rank = ABOUT.iter().position(|label| *label == found.label);
        self.damaged |= rank <= self.rank || (found.moment.contains(&b'.') && found.moment != self.moment);
        self.rank = rank;
        self.begin(found.label, text);
    }

    fn begin(&mut self, label: &[u8], text: &[u8]) {
        label.clone_into(&mut self.last);
        match label {
            b"DETAIL" => self.detail.clear(),
            b"CONTEXT" => self.context.clear(),
            _ => {}
        }
        self.append(text);
    }
}

/// Cuts texts into entries. The lines of different processes may stand among each other where they name them.
pub struct Texts {
    anchored: Regex,
    anywhere: Regex,
    /// Whether the prefix says enough to be found in the midst of a line.
    telling: bool,
    whole: bool,
    entry_most: usize,
    open: Map<Vec<u8>, Open>,
    lost: Set<Vec<u8>>,
    moments: Moments,
    /// The numbers of the pattern's groups.
    groups: [Option<usize>; GROUPS.len()],
    /// The memory of an entry that was told.
    spare: Open,
}

/// What a pattern names, in the order of `Found`.
const GROUPS: [&str; 7] = ["label", "session", "process", "moment", "zone", "epoch", "database"];

/// What a line's prefix tells; what it does not tell is empty.
struct Found<'a> {
    label: &'a [u8],
    session: &'a [u8],
    process: &'a [u8],
    moment: &'a [u8],
    zone: &'a [u8],
    epoch: &'a [u8],
    database: &'a [u8],
}

impl<'a> Found<'a> {
    fn of(captures: &Captures<'a>, groups: &[Option<usize>; GROUPS.len()]) -> Found<'a> {
        let [label, session, process, moment, zone, epoch, database] = groups.map(|number| {
            number.and_then(|number| captures.get(number)).map_or(&b""[..], |one| one.as_bytes())
        });
        Found { label, session, process, moment, zone, epoch, database }
    }
}

impl Texts {
    /// With a pattern that a line's prefix fits, and its label; the message follows. Fails for what is no pattern.
    pub fn new(pattern: &str, whole: bool, entry_most: usize) -> Result<Texts, Fault> {
        let made = |pattern: &str| {
            RegexBuilder::new(pattern).unicode(false).dot_matches_new_line(true).size_limit(64 << 20).build()
        };
        let anywhere = made(pattern)?;
        let telling =
            anywhere.capture_names().flatten().any(|name| matches!(name, "moment" | "epoch" | "session"));
        let anchored = made(&format!(r"\A(?:{pattern})"))?;
        let number = |name: &str| anchored.capture_names().position(|one| one == Some(name));
        Ok(Texts {
            groups: GROUPS.map(number),
            spare: Open::default(),
            anchored,
            anywhere,
            telling,
            whole,
            entry_most,
            open: Map::default(),
            lost: Set::default(),
            moments: Moments::default(),
        })
    }

    /// Takes a line: an empty one stands for what is damaged. `process` and `at_s` are of a line that was wrapped in
    /// another log, which tells them where the prefix does not.
    #[allow(clippy::too_many_arguments)]
    pub fn line(
        &mut self,
        number: u64,
        line: &[u8],
        process: &[u8],
        at_s: Option<f64>,
        messages: &mut Messages,
        minutes: &mut Minutes<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        if line.is_empty() {
            // The last entries may go on in what is damaged.
            self.end(false, messages, minutes, sink)?;
            return messages.take(&Entry::lacks(number, CUT_OFF), sink);
        }
        if let Some(more) = line.strip_prefix(b"\t") {
            return self.more(number, more, process, messages, sink);
        }
        let Some(captures) = self.anchored.captures(line) else {
            if line.iter().all(is_blank) {
                return Ok(());
            }
            // What has no tab may be the rest of the entry before, so that one's end is not certain.
            if let Some(opened) = self.open.remove(process) {
                self.lost.insert(process.to_vec());
                messages.take(&Entry::lacks(opened.line, CUT_OFF), sink)?;
            }
            return messages.take(&Entry::lacks(number, NO_ENTRY), sink);
        };
        let lost = !self.lost.is_empty() && self.lost.remove(process);
        let found = Found::of(&captures, &self.groups);
        let (label, text) = (found.label, &line[captures.get(0).map_or(0, |all| all.end())..]);
        let name = [found.session, found.process, process];
        let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or(b"");
        if !is_severe(label) {
            return self.about(number, &found, text, (process, name), lost, messages, sink);
        }
        let spare = std::mem::take(&mut self.spare);
        let mut opened = Open::new(number, name, &found, at_s, self.entry_most, spare);
        opened.damaged = self.holds_another(text);
        opened.begin(label, text);
        match self.open.get_mut(process) {
            Some(before) => {
                let before = std::mem::replace(before, opened);
                let told = self.tell(&before, messages, minutes, sink);
                self.spare = before;
                told
            }
            None => {
                self.open.insert(process.to_vec(), opened);
                Ok(())
            }
        }
    }

    /// Takes a line that says more of an entry.
    #[allow(clippy::too_many_arguments)]
    fn about(
        &mut self,
        number: u64,
        found: &Found<'_>,
        text: &[u8],
        (process, name): (&[u8], &[u8]),
        lost: bool,
        messages: &mut Messages,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        let holds_another = self.holds_another(text);
        match self.open.get_mut(process) {
            Some(opened) if opened.name == name => {
                opened.go_on(found, text);
                opened.damaged |= holds_another;
                Ok(())
            }
            // The line that it belongs to is lost, and perhaps the end of the entry before.
            opened => {
                if let Some(opened) = opened {
                    opened.damaged = true;
                }
                if lost {
                    self.lost.insert(process.to_vec());
                    return Ok(());
                }
                messages.take(&Entry::lacks(number, CUT_OFF), sink)
            }
        }
    }

    fn more(
        &mut self,
        number: u64,
        more: &[u8],
        process: &[u8],
        messages: &mut Messages,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        let holds_another = self.holds_another(more);
        if let Some(opened) = self.open.get_mut(process) {
            opened.append(more);
            opened.damaged |= holds_another;
            return Ok(());
        }
        // What is of an entry that was left out already is not told twice.
        if !self.lost.insert(process.to_vec()) {
            return Ok(());
        }
        messages.take(&Entry::lacks(number, CUT_OFF), sink)
    }

    fn holds_another(&self, line: &[u8]) -> bool {
        self.telling && finder!(b":  ").find(line).is_some() && self.anywhere.is_match(line)
    }

    /// The last entry of each process, whose end is certain only where more is told about it, or where the file is
    /// `whole`.
    pub fn end(
        &mut self,
        whole: bool,
        messages: &mut Messages,
        minutes: &mut Minutes<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        let mut open: Vec<_> = self.open.iter().map(|(process, open)| (open.line, process.clone())).collect();
        open.sort();
        for (_, process) in open {
            self.end_of(&process, whole && self.whole, messages, minutes, sink)?;
        }
        self.lost.clear();
        Ok(())
    }

    /// The last entry of one process, whose end may be certain.
    pub fn end_of(
        &mut self,
        process: &[u8],
        certain: bool,
        messages: &mut Messages,
        minutes: &mut Minutes<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        let Some(opened) = self.open.remove(process) else { return Ok(()) };
        if certain || (!is_severe(&opened.last) && opened.ended) {
            return self.tell(&opened, messages, minutes, sink);
        }
        messages.take(&Entry::lacks(opened.line, LAST), sink)
    }

    fn tell(
        &mut self,
        opened: &Open,
        messages: &mut Messages,
        minutes: &mut Minutes<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        if opened.over {
            return messages.take(&Entry::lacks(opened.line, TOO_LONG), sink);
        }
        if opened.damaged {
            return messages.take(&Entry::lacks(opened.line, CUT_OFF), sink);
        }
        let (mut at_s, mut whole) = (opened.at_s.or(opened.epoch), false);
        if !opened.moment.is_empty() {
            at_s = self.moments.at_s(&opened.moment, &opened.zone, minutes)?;
            whole = !opened.moment.contains(&b'.');
        } else if opened.epoch.is_some() {
            at_s = opened.epoch;
        }
        let bare = |text: &'_ [u8]| text.strip_suffix(b"\n").unwrap_or(text).len();
        messages.take(
            &Entry {
                line: opened.line,
                severity: &opened.severity,
                message: &opened.message[..bare(&opened.message)],
                detail: &opened.detail[..bare(&opened.detail)],
                context: &opened.context[..bare(&opened.context)],
                session: &opened.name,
                database: &opened.database,
                at_s,
                whole,
                lacks: "",
            },
            sink,
        )
    }
}
