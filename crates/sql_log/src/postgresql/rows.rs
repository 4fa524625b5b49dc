//! PostgreSQL's log as CSV and as JSON, whose entries have an end of their own: a row of CSV ends with its line, outside of
//! quotes, and an object of JSON with its brace.

use super::is_severe;
use super::messages::{of_json, Entry, Messages};
use crate::lexer::is_blank;
use crate::moment::Moments;
use crate::reason::{CUT_OFF, NO_ENTRY, TOO_LONG};
use crate::{Fault, Minutes, Sink};
use memchr::{memchr, memchr2};

/// So many columns have PostgreSQL 9.0 to 12, 13, and 14 and later. A row with others is made of pieces of two.
const COLUMNS: [usize; 3] = [23, 24, 26];
const DATABASE: usize = 2;
const SESSION: usize = 5;
const LABEL: usize = 11;
const STATE: usize = 12;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;
const CONTEXT: usize = 18;
const LINE_COSTS: usize = 64;
/// Objects within objects are followed so far.
const DEPTH_MOST: usize = 32;

/// How entries are written. `Cluster` is CloudNativePG's JSON, which holds them by the names of CSV's columns.
#[derive(Clone, Copy, PartialEq)]
pub enum RowForm {
    Csv,
    Json,
    Cluster,
}

/// Cuts lines into entries.
pub struct Rows {
    written: RowForm,
    entry_most: usize,
    row: Vec<u8>,
    start: u64,
    odd: bool,
    room: usize,
    /// Whether something stood in the file before.
    begun: bool,
    fields: Vec<Vec<u8>>,
    moments: Moments,
}

impl Rows {
    pub fn new(written: RowForm, entry_most: usize) -> Rows {
        let (row, fields, moments) = (Vec::new(), Vec::new(), Moments::default());
        Rows { written, entry_most, row, start: 0, odd: false, room: 0, begun: false, fields, moments }
    }

    pub fn line(
        &mut self,
        number: u64,
        line: &[u8],
        messages: &mut Messages,
        minutes: &mut Minutes<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        if self.written != RowForm::Csv {
            return self.object(number, line, messages, minutes, sink);
        }
        let begins = csv_begins(line);
        if self.start > 0 && (begins || !self.odd) {
            self.told(messages, minutes, sink)?;
        }
        if self.start == 0 && !begins {
            if self.begun && line.iter().all(is_blank) {
                return Ok(());
            }
            let lacks = if self.begun { NO_ENTRY } else { CUT_OFF };
            self.begun = true;
            return messages.take(&Entry::lacks(number, lacks), sink);
        }
        if self.start == 0 {
            (self.start, self.room, self.begun) = (number, self.entry_most, true);
            self.row.clear();
        }
        match self.room.checked_sub(line.len() + LINE_COSTS) {
            Some(room) => {
                self.room = room;
                self.row.extend_from_slice(line);
            }
            None => (self.room, self.row) = (0, Vec::new()),
        }
        self.odd ^= line.iter().filter(|byte| **byte == b'"').count() % 2 == 1;
        Ok(())
    }

    /// The row at the end of a file.
    pub fn end(
        &mut self,
        messages: &mut Messages,
        minutes: &mut Minutes<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        self.begun = false;
        if self.start > 0 {
            return self.told(messages, minutes, sink);
        }
        Ok(())
    }

    fn told(
        &mut self,
        messages: &mut Messages,
        minutes: &mut Minutes<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        let line = std::mem::take(&mut self.start);
        self.odd = false;
        if self.row.is_empty() {
            return messages.take(&Entry::lacks(line, TOO_LONG), sink);
        }
        let count = fields(&self.row, &mut self.fields).filter(|count| COLUMNS.contains(count));
        let fields = &self.fields;
        let whole = count.is_some()
            && is_severe(&fields[LABEL])
            && fields[STATE].len() == 5
            && fields[STATE].iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        if !whole {
            return messages.take(&Entry::lacks(line, CUT_OFF), sink);
        }
        let (moment, zone) = moment_of(&fields[0]);
        let entry = Entry {
            line,
            severity: &fields[LABEL],
            message: &fields[MESSAGE],
            detail: &fields[DETAIL],
            context: &fields[CONTEXT],
            session: &fields[SESSION],
            database: &fields[DATABASE],
            at_s: self.moments.at_s(moment, zone, minutes)?,
            ..Entry::default()
        };
        messages.take(&entry, sink)
    }

    fn object(
        &mut self,
        number: u64,
        line: &[u8],
        messages: &mut Messages,
        minutes: &mut Minutes<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        if line.iter().all(is_blank) {
            return Ok(());
        }
        let cluster = self.written == RowForm::Cluster;
        let Some(mut pairs) = Json::pairs(line) else {
            return messages.take(&Entry::lacks(number, CUT_OFF), sink);
        };
        if cluster {
            let of_server = pairs.iter().any(|(key, value)| *key == b"logger" && *value == b"\"postgres\"");
            let record = pairs.iter().find(|(key, _)| *key == b"record").map(|(_, value)| *value);
            match record {
                Some(record) => pairs = Json::pairs(record).unwrap_or_default(),
                None if !of_server => return Ok(()),
                None => pairs.clear(),
            }
        }
        let text = |name: &[u8]| {
            let found = pairs.iter().find(|(key, value)| *key == name && value.starts_with(b"\""));
            found.map_or(Vec::new(), |(_, value)| of_json(value))
        };
        let severity = text(b"error_severity");
        if severity.is_empty() {
            return messages.take(&Entry::lacks(number, NO_ENTRY), sink);
        }
        let written = text(if cluster { b"log_time" } else { b"timestamp" });
        let (moment, zone) = moment_of(&written);
        let entry = Entry {
            line: number,
            severity: &severity,
            message: &text(b"message"),
            detail: &text(b"detail"),
            context: &text(b"context"),
            session: &text(b"session_id"),
            database: &text(if cluster { b"database_name" } else { b"dbname" }),
            at_s: self.moments.at_s(moment, zone, minutes)?,
            ..Entry::default()
        };
        messages.take(&entry, sink)
    }
}

/// A moment and the zone behind it.
fn moment_of(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().skip(11).position(|byte| *byte == b' ') {
        Some(at) => (&text[..at + 11], &text[at + 12..]),
        None => (text, b""),
    }
}

/// Whether a row of CSV begins here: its moment, then its user, its database, its process, its client, its session and the
/// number of its line.
pub fn csv_begins(line: &[u8]) -> bool {
    let form = b"dddd-dd-dd dd:dd:dd";
    let fits = |(wanted, byte): (&u8, &u8)| match wanted {
        b'd' => byte.is_ascii_digit(),
        _ => wanted == byte,
    };
    if line.len() <= form.len() || !form.iter().zip(line).all(fits) {
        return false;
    }
    let Some(comma) = memchr(b',', line) else { return false };
    let zone = |byte: &u8| byte.is_ascii_alphanumeric() || b" .:+-".contains(byte);
    let mut rest = &line[comma + 1..];
    if comma > 40 || !line[form.len()..comma].iter().all(zone) {
        return false;
    }
    for column in [b'"', b'"', b'd', b'"', b'x', b'd'] {
        let length = match column {
            b'"' if rest.starts_with(b"\"") => match quoted(rest, None) {
                Some(length) => length,
                None => return false,
            },
            b'"' => 0,
            b'd' => rest.iter().take_while(|byte| byte.is_ascii_digit()).count(),
            _ => rest.iter().take_while(|byte| byte.is_ascii_hexdigit() || **byte == b'.').count(),
        };
        if rest.get(length) != Some(&b',') {
            return false;
        }
        rest = &rest[length + 1..];
    }
    true
}

/// The length of a field in quotes, whose text goes `into` another; None for one that does not end.
fn quoted(text: &[u8], mut into: Option<&mut Vec<u8>>) -> Option<usize> {
    let mut at = 1;
    loop {
        let end = at + memchr(b'"', &text[at..])?;
        let doubled = text.get(end + 1) == Some(&b'"');
        if let Some(into) = &mut into {
            into.extend_from_slice(&text[at..end + usize::from(doubled)]);
        }
        if !doubled {
            return Some(end + 1);
        }
        at = end + 2;
    }
}

/// Takes a row apart, and counts its fields; None for what is no row, or has no end.
fn fields(row: &[u8], found: &mut Vec<Vec<u8>>) -> Option<usize> {
    let (mut count, mut rest) = (0, row);
    loop {
        if found.len() == count {
            found.push(Vec::new());
        }
        let field = &mut found[count];
        field.clear();
        let length = if rest.starts_with(b"\"") {
            quoted(rest, Some(field))?
        } else {
            let length = memchr2(b',', b'\n', rest)?;
            field.extend_from_slice(&rest[..length]);
            length
        };
        if field.contains(&b'"') && !rest.starts_with(b"\"") {
            return None;
        }
        count += 1;
        match rest.get(length) {
            Some(b',') => rest = &rest[length + 1..],
            Some(b'\n') if rest.len() == length + 1 => return Some(count),
            _ => return None,
        }
    }
}

type Pairs<'a> = Vec<(&'a [u8], &'a [u8])>;

/// JSON as it stands in a text.
struct Json<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Json<'a> {
    /// The names of an object, which is all of a text, with their values as they are written; None for what is none, and
    /// for one that has a name twice, because it is made of pieces of two.
    fn pairs(text: &'a [u8]) -> Option<Pairs<'a>> {
        let mut json = Json { text, at: 0 };
        json.blanks();
        let mut pairs = Pairs::new();
        json.object(0, Some(&mut pairs))?;
        json.blanks();
        (json.at == text.len()).then_some(pairs)
    }

    fn blanks(&mut self) {
        self.at += self.text[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn takes(&mut self, byte: u8) -> bool {
        let fits = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(fits);
        fits
    }

    fn object(&mut self, depth: usize, into: Option<&mut Pairs<'a>>) -> Option<()> {
        let mut pairs = Pairs::new();
        if depth > DEPTH_MOST || !self.takes(b'{') {
            return None;
        }
        self.blanks();
        while !self.takes(b'}') {
            if !pairs.is_empty() && !self.takes(b',') {
                return None;
            }
            self.blanks();
            let key = self.string()?;
            self.blanks();
            if !self.takes(b':') {
                return None;
            }
            self.blanks();
            let start = self.at;
            self.value(depth + 1)?;
            if pairs.iter().any(|(known, _)| *known == key) {
                return None;
            }
            pairs.push((key, &self.text[start..self.at]));
            self.blanks();
        }
        if let Some(into) = into {
            *into = pairs;
        }
        Some(())
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH_MOST || !self.takes(b'[') {
            return None;
        }
        let mut first = true;
        self.blanks();
        while !self.takes(b']') {
            if !first && !self.takes(b',') {
                return None;
            }
            first = false;
            self.blanks();
            self.value(depth + 1)?;
            self.blanks();
        }
        Some(())
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.text.get(self.at)? {
            b'"' => self.string().map(|_| ()),
            b'{' => self.object(depth, None),
            b'[' => self.array(depth),
            _ => {
                let word = self.text[self.at..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
                    .count();
                let written = &self.text[self.at..self.at + word];
                self.at += word;
                let number = std::str::from_utf8(written).ok()?.parse::<f64>();
                (matches!(written, b"true" | b"false" | b"null") || number.is_ok()).then_some(())
            }
        }
    }

    /// What stands between two quotes, as it is written.
    fn string(&mut self) -> Option<&'a [u8]> {
        if !self.takes(b'"') {
            return None;
        }
        let start = self.at;
        loop {
            self.at += memchr2(b'"', b'\\', self.text.get(self.at..)?)?;
            if self.takes(b'"') {
                return Some(&self.text[start..self.at - 1]);
            }
            let digits = self.text.get(self.at + 2..self.at + 6);
            self.at += match self.text.get(self.at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
                b'u' if digits?.iter().all(u8::is_ascii_hexdigit) => 6,
                _ => return None,
            };
        }
    }
}
