//! The statements that entries of PostgreSQL's log tell of.
//!
//! `log_statement` writes a statement before it runs, `log_min_duration_statement` afterwards with its duration, and
//! auto_explain its plan: all three may tell of the same statement, which counts once. A statement with parameters has
//! three steps, and its time is that of all three.

use crate::lexer::{tokens, Dialect, Kind, Token};
use crate::reason::CUT_OFF;
use crate::Map;
use crate::{finder, Fault, Seen, Sink};
use regex::bytes::{Captures, Regex};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Ends a value that `log_parameter_max_length` cut.
const CUT: &[u8] = b"...'";
const NAME_BYTES_MOST: usize = 200;
const PARAMETER_DIGITS_MOST: usize = 5;
/// JSON and YAML write both as strings of JSON.
const OBJECT: &str = r#"(?s-u)\A\s*\{?\s*"?Query Text"?: ("(?:[^"\\]|\\.)*")(?:,?\s*"?Query Parameters"?: ("(?:[^"\\]|\\.)*"))?"#;
const XML: &str =
    r"(?s-u)\A.*?<Query-Text>(.*?)</Query-Text>(?:\s*<Query-Parameters>(.*?)</Query-Parameters>)?";
const TEXT: &str = r"(?s-u)\A\s*Query Text: (.*?)(?:\n\s*Query Parameters: (.*?))?(?:\n[^\n]*\((?:cost|actual|rows)[ =][^\n]*.*)?\z";
static PLANS: LazyLock<Option<[Regex; 3]>> =
    LazyLock::new(|| Some([Regex::new(OBJECT).ok()?, Regex::new(XML).ok()?, Regex::new(TEXT).ok()?]));

const WRITES: &[&str] = &["Insert on", "Update on", "Delete on", "Merge on"];
const READS: &[&str] =
    &["Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Heap Scan", "Tid Scan", "Sample Scan"];
/// A step with its rows a loop and its loops, and what it passed over.
static STEPS: LazyLock<Option<[Regex; 2]>> = LazyLock::new(|| {
    let step = r"(?-u)^\s*(?:->\s+)?([A-Z][A-Za-z ]*)[^(]*(?:\(cost[^)]*\) )?\(actual [^)]*?rows=(\d+(?:\.\d+)?) loops=(\d+)\)";
    let removed = r"(?-u)^\s*Rows Removed by (?:Filter|Index Recheck): (\d+)";
    Some([Regex::new(step).ok()?, Regex::new(removed).ok()?])
});

/// What the server writes before a statement, with its duration or without, and before its values. Within a statement that
/// was written in the same way they show that the begin of an entry is lost, whatever its prefix.
static IN_MIDST: LazyLock<Option<[Regex; 2]>> = LazyLock::new(|| {
    let values = r":  (?:[Qq]uery )?[Pp]arameters: \$1 = ";
    let timed = r"\d ms  (?:statement: |(?:parse|bind|execute) [^ \n]+: |plan:\n)";
    let untimed = r"[A-Z]:  (?:statement: |execute [^ \n]+: )";
    Some([
        Regex::new(&format!("(?-u){untimed}|{values}")).ok()?,
        Regex::new(&format!("(?-u){timed}|{values}")).ok()?,
    ])
});

/// Whether another entry seems to begin within the text of one, which tells its duration or does not.
fn holds_another(text: &[u8], timed: bool) -> bool {
    (finder!(b":  ").find(text).is_some() || finder!(b" ms  ").find(text).is_some())
        && IN_MIDST.as_ref().is_some_and(|begun| begun[usize::from(timed)].is_match(text))
}

/// What the server wrote at a time. `at_s` is when it wrote, in seconds since 1970; `whole` says that this is a whole
/// second. `lacks` says why an entry cannot be read; its message is empty then.
#[derive(Default)]
pub struct Entry<'a> {
    pub line: u64,
    pub severity: &'a [u8],
    pub message: &'a [u8],
    pub detail: &'a [u8],
    pub context: &'a [u8],
    pub session: &'a [u8],
    pub database: &'a [u8],
    pub at_s: Option<f64>,
    pub whole: bool,
    pub lacks: &'a str,
}

impl<'a> Entry<'a> {
    pub fn lacks(line: u64, lacks: &'a str) -> Entry<'a> {
        Entry { line, lacks, ..Entry::default() }
    }
}

/// `$1` and its like with their literals of SQL.
type Parameters = Vec<(u32, Vec<u8>)>;

/// A statement whose session may still tell more of it. A plan's time does not count the planning, so it serves where no
/// other is told.
struct Pending {
    line: u64,
    named: bool,
    database: Vec<u8>,
    written_s: Option<f64>,
    whole: bool,
    text: Vec<u8>,
    /// What an EXECUTE stands for, where the log tells it.
    executes: Vec<u8>,
    values: Parameters,
    took_s: Option<f64>,
    began_s: Option<f64>,
    plan_took_s: Option<f64>,
    rows: PlanRows,
    failed: bool,
}

impl Pending {
    fn new(entry: &Entry<'_>, text: &[u8], values: Parameters, took_s: Option<f64>) -> Pending {
        Pending {
            line: entry.line,
            named: !entry.session.is_empty(),
            database: entry.database.to_vec(),
            written_s: entry.at_s,
            whole: entry.whole,
            text: text.to_vec(),
            executes: executed(text, entry.detail).unwrap_or_default(),
            values,
            took_s,
            began_s: entry.at_s.map(|at_s| at_s - took_s.unwrap_or(0.0)),
            plan_took_s: None,
            rows: PlanRows::default(),
            failed: false,
        }
    }

    fn tell(&self, session: &[u8], sink: &mut Sink<'_>) -> Result<(), Fault> {
        let text = put_in(&self.text, &self.values);
        let text = bare(&text);
        if text.is_empty() {
            return Ok(());
        }
        sink(&Seen {
            text,
            executes: bare(&self.executes),
            line: self.line,
            took_s: self.took_s.or(self.plan_took_s),
            times: 1,
            session,
            at_s: self.began_s,
            database: &self.database,
            bound: !self.values.is_empty(),
            failed: self.failed,
            whole_s: self.written_s.filter(|_| self.whole),
            rows: self.rows.sent,
            affected: self.rows.changed,
            examined: self.rows.read,
            ..Seen::default()
        })
    }
}

/// What one connection asked last, and how long the steps before the next statement took.
#[derive(Default)]
struct Session {
    pending: Option<Pending>,
    ahead_s: f64,
}

impl Session {
    fn flush(&mut self, name: &[u8], sink: &mut Sink<'_>) -> Result<(), Fault> {
        self.pending.take().map_or(Ok(()), |pending| pending.tell(name, sink))
    }
}

/// The statements of one log, whose files may follow one another.
#[derive(Default)]
pub struct Messages {
    sessions: Map<Vec<u8>, Session>,
}

impl Messages {
    /// Tells the statements that are complete with this entry, and what is none.
    pub fn take(&mut self, entry: &Entry<'_>, sink: &mut Sink<'_>) -> Result<(), Fault> {
        if entry.severity != b"LOG" {
            self.failed(entry);
            let severe = format!("message {}", String::from_utf8_lossy(entry.severity));
            return sink(&Seen::rest(entry.line, if entry.lacks.is_empty() { &severe } else { entry.lacks }));
        }
        if !self.sessions.contains_key(entry.session) {
            self.sessions.insert(entry.session.to_vec(), Session::default());
        }
        let Some(session) = self.sessions.get_mut(entry.session) else { return Ok(()) };
        let (took_s, message) = match duration(entry.message) {
            Some((took_s, rest)) => (Some(took_s), rest),
            None => (None, entry.message),
        };
        match (took_s, message) {
            (Some(took_s), b"") => {
                // A duration alone (`log_duration`) is of the statement before it.
                if let Some(pending) =
                    session.pending.as_mut().filter(|one| one.took_s.is_none() && one.named)
                {
                    pending.took_s = Some(took_s);
                }
                Ok(())
            }
            (Some(took_s), [b'p', b'l', b'a', b'n', b':', blank, plan @ ..])
                if blank.is_ascii_whitespace() =>
            {
                session.planned(entry, plan, took_s, sink)
            }
            _ => match step(message) {
                Some(("execute", text)) => session.asked(entry, text, of_detail(entry.detail), took_s, sink),
                Some(("execute fetch from", _)) => sink(&Seen::rest(entry.line, "fetch of more rows")),
                Some((kind, _)) => {
                    session.ahead_s += took_s.unwrap_or(0.0);
                    sink(&Seen::rest(entry.line, &format!("{kind} of a statement")))
                }
                None => match message.strip_prefix(b"statement: ") {
                    Some(text) => session.asked(entry, text, Vec::new(), took_s, sink),
                    None => self.other(entry, message, sink),
                },
            },
        }
    }

    fn other(&mut self, entry: &Entry<'_>, message: &[u8], sink: &mut Sink<'_>) -> Result<(), Fault> {
        let mut rest = "message LOG";
        if message.starts_with(b"disconnection: session time") {
            if let Some(mut session) = self.sessions.remove(entry.session) {
                session.flush(entry.session, sink)?;
            }
            rest = "disconnection";
        } else if message.starts_with(b"connection authorized: ") {
            rest = "connection";
        }
        let about = Seen { session: entry.session, at_s: entry.at_s, ..Seen::rest(entry.line, rest) };
        sink(&Seen { database: entry.database, ..about })
    }

    /// The statements of which no more is told.
    pub fn ended(&mut self, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let mut every: Vec<_> = self.sessions.iter_mut().collect();
        every.sort_by_key(|(_, session)| session.pending.as_ref().map(|pending| pending.line));
        every.into_iter().try_for_each(|(name, session)| session.flush(name, sink))
    }

    /// An error is of the statement before it, where that was logged before it ran and had no end yet.
    fn failed(&mut self, entry: &Entry<'_>) {
        if entry.severity != b"ERROR" || entry.session.is_empty() {
            return;
        }
        let session = self.sessions.get_mut(entry.session);
        if let Some(pending) = session.and_then(|one| one.pending.as_mut()).filter(|one| one.took_s.is_none())
        {
            pending.failed = true;
        }
    }
}

impl Session {
    fn asked(
        &mut self,
        entry: &Entry<'_>,
        text: &[u8],
        values: Parameters,
        took_s: Option<f64>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        let (timed, took_s) = (took_s.is_some(), took_s.map(|took_s| took_s + self.ahead_s));
        self.ahead_s = 0.0;
        if holds_another(text, timed) || holds_another(entry.detail, timed) {
            self.flush(entry.session, sink)?;
            return sink(&Seen::rest(entry.line, CUT_OFF));
        }
        let mut asked = Pending::new(entry, text, values, took_s);
        match self.pending.take() {
            Some(before)
                if before.plan_took_s.is_some() && before.took_s.is_none() && before.text == text =>
            {
                asked.plan_took_s = before.plan_took_s;
                asked.rows = before.rows;
                if asked.values.is_empty() {
                    asked.values = before.values;
                }
            }
            Some(before) => before.tell(entry.session, sink)?,
            None => {}
        }
        self.pending = Some(asked);
        Ok(())
    }

    fn planned(
        &mut self,
        entry: &Entry<'_>,
        plan: &[u8],
        took_s: f64,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        let found = planned(plan).filter(|_| entry.context.is_empty());
        let Some((text, parameters)) = found else {
            let within = !entry.context.is_empty();
            let rest = if within { "plan within a function" } else { "plan without its statement" };
            return sink(&Seen::rest(entry.line, rest));
        };
        let values = of_list(&parameters);
        let same = |one: &&mut Pending| one.plan_took_s.is_none() && one.text == text;
        if let Some(before) = self.pending.as_mut().filter(same) {
            before.plan_took_s = Some(took_s);
            before.rows = PlanRows::of(plan);
            if before.values.is_empty() {
                before.values = values;
            }
            return Ok(());
        }
        self.flush(entry.session, sink)?;
        let mut pending = Pending::new(entry, &text, values, Some(took_s));
        (pending.took_s, pending.plan_took_s) = (None, Some(took_s));
        pending.rows = PlanRows::of(plan);
        self.pending = Some(pending);
        Ok(())
    }
}

/// The seconds of `duration: 1.5 ms`, and what stands behind it.
fn duration(message: &[u8]) -> Option<(f64, &[u8])> {
    let rest = message.strip_prefix(b"duration: ")?;
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let (number, rest) = (&rest[..length], rest[length..].strip_prefix(b" ms")?);
    let fits = number.len() <= 19 && number.first().is_some_and(u8::is_ascii_digit);
    let took_ms: f64 = std::str::from_utf8(number).ok().filter(|_| fits)?.parse().ok()?;
    let rest = if rest.is_empty() { rest } else { rest.strip_prefix(b"  ")? };
    Some((took_ms / 1000.0, rest))
}

/// A step of a statement with parameters, and the statement.
fn step(message: &[u8]) -> Option<(&'static str, &[u8])> {
    let kind = ["parse", "bind", "execute fetch from", "execute"]
        .into_iter()
        .find(|kind| message.strip_prefix(kind.as_bytes()).is_some_and(|rest| rest.starts_with(b" ")))?;
    let rest = &message[kind.len() + 1..];
    let name = finder!(b": ").find(rest)?;
    (name <= NAME_BYTES_MOST && !rest[..name].contains(&b'\n')).then(|| (kind, &rest[name + 2..]))
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn trimmed(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_space(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_space(byte)).map_or(start, |at| at + 1);
    &text[start..end]
}

/// A statement without blanks around it, and without its `;`.
fn bare(text: &[u8]) -> &[u8] {
    let text = trimmed(text);
    trimmed(text.strip_suffix(b";").unwrap_or(text))
}

/// Of a line of DETAIL; empty where it tells none.
fn of_detail(detail: &[u8]) -> Parameters {
    let detail = trimmed(detail);
    for key in [&b"parameters: "[..], b"query parameters: "] {
        if detail.len() >= key.len() && detail[..key.len()].eq_ignore_ascii_case(key) {
            return of_list(&detail[key.len()..]);
        }
    }
    Vec::new()
}

/// Of `$1 = 'a', $2 = NULL`; empty where that is not a list from its begin to its end.
fn of_list(text: &[u8]) -> Parameters {
    let mut values = Parameters::new();
    let mut rest = text;
    while !rest.is_empty() {
        let Some((number, literal, more)) = parameter(rest) else { return Vec::new() };
        values.push((number, literal.to_vec()));
        rest = more;
    }
    values
}

fn parameter(text: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let rest = text.strip_prefix(b"$")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&rest[..digits]).ok().filter(|_| digits <= PARAMETER_DIGITS_MOST)?;
    let rest = rest[digits..].strip_prefix(b" = ")?;
    let length = if rest.starts_with(b"NULL") {
        4
    } else {
        let first = tokens(rest, Dialect::PostgreSql).next()?;
        (rest[0] == b'\'' && first.closed).then_some(first.end)?
    };
    let (literal, more) = rest.split_at(length);
    let more = match more.strip_prefix(b", ") {
        Some(more) => more,
        None if more.iter().all(u8::is_ascii_whitespace) => b"",
        None => return None,
    };
    Some((number.parse().ok()?, literal, more))
}

/// A statement with literals in the place of the parameters whose values are known. One that was cut stays unknown.
fn put_in<'a>(statement: &'a [u8], values: &Parameters) -> Cow<'a, [u8]> {
    if values.is_empty() {
        return Cow::Borrowed(statement);
    }
    let mut text = Vec::with_capacity(statement.len() + 16 * values.len());
    for token in tokens(statement, Dialect::PostgreSql) {
        let written = &statement[token.start..token.end];
        let number = std::str::from_utf8(&written[1..]).ok().filter(|_| token.kind == Kind::Parameter);
        let number = number.and_then(|digits| digits.parse::<u32>().ok());
        // The last one counts where one is told twice.
        let literal = values.iter().rev().find(|(known, _)| Some(*known) == number);
        text.extend_from_slice(literal.map_or(written, |(_, literal)| {
            if literal.ends_with(CUT) {
                written
            } else {
                literal
            }
        }));
    }
    Cow::Owned(text)
}

/// What `EXECUTE name(values)` stands for, if the server says beside it what was prepared.
fn executed(text: &[u8], detail: &[u8]) -> Option<Vec<u8>> {
    let prepared = trimmed(detail).strip_prefix(b"prepare: ")?;
    let is =
        |text: &[u8], token: &Token, word: &[u8]| text[token.start..token.end].eq_ignore_ascii_case(word);
    let mut body = tokens(prepared, Dialect::PostgreSql).filter(|token| token.kind != Kind::Blank);
    if !is(prepared, &body.next()?, b"prepare") {
        return None;
    }
    let begin = body.find(|token| is(prepared, token, b"as"))?.end;
    let mut asked = tokens(text, Dialect::PostgreSql).filter(|token| token.kind != Kind::Blank);
    if !is(text, &asked.next()?, b"execute") {
        return None;
    }
    let (mut values, mut depth, mut start) = (Parameters::new(), 0, 0);
    for token in asked {
        let written = &text[token.start..token.end];
        let ends = depth == 1 && (written == b"," || written == b")");
        depth += i32::from(written == b"(") - i32::from(written == b")");
        if ends {
            values.push((values.len() as u32 + 1, trimmed(&text[start..token.start]).to_vec()));
        }
        if ends || (depth == 1 && written == b"(") {
            start = token.end;
        }
    }
    Some(put_in(trimmed(&prepared[begin..]), &values).into_owned())
}

/// What a plan as text tells of the rows of its execution (`auto_explain.log_analyze`).
#[derive(Clone, Copy, Default)]
struct PlanRows {
    sent: Option<u64>,
    changed: Option<u64>,
    read: Option<u64>,
}

impl PlanRows {
    /// The first step sends, one that writes changes what the step below it gives, and scans of tables read.
    fn of(plan: &[u8]) -> PlanRows {
        let Some([step, removed]) = STEPS.as_ref().filter(|_| finder!(b" (actual ").find(plan).is_some())
        else {
            return PlanRows::default();
        };
        let number = |text: Option<regex::bytes::Match<'_>>| -> f64 {
            text.and_then(|text| std::str::from_utf8(text.as_bytes()).ok()?.parse().ok()).unwrap_or(0.0)
        };
        let (mut rows, mut read, mut loops, mut writes) = (Vec::new(), 0.0, 0.0, false);
        for line in plan.split(|byte| *byte == b'\n') {
            if let Some(found) = step.captures(line) {
                let name = found.get(1).map_or(&b""[..], |name| name.as_bytes());
                let name = name.strip_prefix(b"Parallel ").unwrap_or(name);
                let is_of = |names: &[&str]| names.iter().any(|one| name.starts_with(one.as_bytes()));
                loops = if is_of(READS) { number(found.get(3)) } else { 0.0 };
                writes |= rows.is_empty() && is_of(WRITES);
                rows.push(number(found.get(2)) * number(found.get(3)));
                read += number(found.get(2)) * loops;
            } else if let Some(found) = removed.captures(line) {
                read += number(found.get(1)) * loops;
            }
        }
        let whole = |rows: Option<&f64>| rows.map(|rows| rows.round() as u64);
        let changed = if writes { whole(rows.get(1)) } else { None };
        let sent = if writes && rows.first() == Some(&0.0) { None } else { whole(rows.first()) };
        PlanRows { sent, changed, read: whole((!rows.is_empty()).then_some(&read)) }
    }
}

/// The statement of what stands behind `plan:`, and its parameters as they were written; None where it tells none.
fn planned(plan: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let [object, xml, text] = PLANS.as_ref()?;
    let both = |found: Captures<'_>, of: fn(&[u8]) -> Vec<u8>| {
        let part = |number| found.get(number).map_or(Vec::new(), |one| of(one.as_bytes()));
        (part(1), part(2))
    };
    if let Some(found) = object.captures(plan) {
        return Some(both(found, of_json));
    }
    if let Some(found) = xml.captures(plan) {
        return Some(both(found, of_xml));
    }
    text.captures(plan).map(|found| both(found, <[u8]>::to_vec))
}

/// What a string of JSON stands for; its quotes are part of it.
pub(super) fn of_json(literal: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(literal.len());
    let mut rest = &literal[1..literal.len() - 1];
    while let Some((byte, more)) = rest.split_first() {
        rest = more;
        if *byte != b'\\' {
            text.push(*byte);
            continue;
        }
        let Some((escaped, more)) = rest.split_first() else { break };
        rest = more;
        match escaped {
            b'n' => text.push(b'\n'),
            b't' => text.push(b'\t'),
            b'r' => text.push(b'\r'),
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'u' => {
                let (letter, length) = of_code(rest);
                rest = &rest[length.min(rest.len())..];
                text.extend(letter.encode_utf8(&mut [0; 4]).bytes());
            }
            other => text.push(*other),
        }
    }
    text
}

/// The letter of the code behind `\u`, which may be half of one, and how long all of it is.
fn of_code(text: &[u8]) -> (char, usize) {
    let unit = |at: usize| {
        let digits = std::str::from_utf8(text.get(at..at + 4)?).ok()?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(0).unwrap_or(0xfffd);
    let second = text.get(4..6).filter(|two| *two == b"\\u").and_then(|_| unit(6));
    let pair = [first, second.unwrap_or(0)];
    match char::decode_utf16(pair).next() {
        Some(Ok(letter)) if letter.len_utf16() == 2 => (letter, 10),
        Some(Ok(letter)) => (letter, 4),
        _ => (char::REPLACEMENT_CHARACTER, 4),
    }
}

fn of_xml(written: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = memchr::memchr(b'&', rest) {
        text.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let end = memchr::memchr(b';', rest).filter(|end| *end <= 10);
        let letter = end.and_then(|end| entity(&rest[1..end]));
        match (letter, end) {
            (Some(letter), Some(end)) => {
                text.extend(letter.encode_utf8(&mut [0; 4]).bytes());
                rest = &rest[end + 1..];
            }
            _ => {
                text.push(b'&');
                rest = &rest[1..];
            }
        }
    }
    text.extend_from_slice(rest);
    text
}

fn entity(name: &[u8]) -> Option<char> {
    match name {
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"amp" => Some('&'),
        b"quot" => Some('"'),
        b"apos" => Some('\''),
        [b'#', b'x', digits @ ..] => {
            char::from_u32(u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?)
        }
        [b'#', digits @ ..] => char::from_u32(std::str::from_utf8(digits).ok()?.parse().ok()?),
        _ => None,
    }
}
