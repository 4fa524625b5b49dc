//! Statements taken apart. A *shape* is a statement with a mark in the place of each value. A *digest* is a shape whose
//! lists of values are cut to one: `IN (?, ?)` and `IN (?, ?, ?)` are two shapes of one digest.

use crate::lexer::{is_blank, is_word, tokens, Dialect, Kind, Token};

/// Stands for a value within a shape: a byte that no UTF-8 has.
pub const MARK: u8 = 0xff;

/// Behind these words a minus belongs to the number behind it, not between two values.
const BEFORE_SIGN: &[&str] = &[
    "select", "and", "or", "not", "where", "between", "limit", "offset", "then", "else", "when", "case",
    "like", "on",
];

/// A value as it is written: bytes `start` to `end` of the statement, its sign included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

/// A statement taken apart: its text without comments, white space as one blank, values as marks. Kept between
/// statements, so that most of them allocate nothing.
#[derive(Default)]
pub struct Shape {
    pub text: Vec<u8>,
    pub values: Vec<Value>,
    /// Where the mark of each value stands in the text.
    pub places: Vec<usize>,
    /// The first word, in upper case.
    pub verb: Vec<u8>,
    /// Whether a quote, a comment or a parenthesis does not end, so something of the text is missing.
    pub cut: bool,
}

impl Shape {
    /// Takes a statement apart, in the place of the one before. Values are places in `statement`.
    pub fn take(&mut self, statement: &[u8], dialect: Dialect) {
        self.text.clear();
        self.values.clear();
        self.places.clear();
        self.verb.clear();
        let from = statement.iter().take_while(|byte| is_blank(byte)).count();
        let bare = &statement[from..from + bare_length(&statement[from..])];
        let (mut depth, mut closed, mut piece) = (0, true, 0);
        for token in tokens(bare, dialect) {
            closed = token.closed;
            if token.kind.is_value() {
                self.add_value(token, piece, from);
                piece = self.text.len();
                continue;
            }
            let written = &bare[token.start..token.end];
            match token.kind {
                Kind::Blank => {
                    let again = self.text.len() > piece && self.text.ends_with(b" ");
                    let first = self.text.is_empty() && self.values.is_empty();
                    if !again && !first {
                        self.text.push(b' ');
                    }
                    continue;
                }
                Kind::Symbol => depth += i64::from(written == b"(") - i64::from(written == b")"),
                _ if self.verb.is_empty() => self.verb.extend(written.to_ascii_uppercase()),
                _ => {}
            }
            self.text.extend_from_slice(written);
        }
        while self.text.len() > piece && is_blank(&self.text[self.text.len() - 1]) {
            self.text.pop();
        }
        self.cut = depth > 0 || !closed;
    }

    fn add_value(&mut self, token: Token, piece: usize, from: usize) {
        let mut start = token.start;
        if token.kind == Kind::Number && is_signed(&self.text[piece..]) {
            self.text.pop();
            start -= 1;
        }
        self.values.push(Value { kind: token.kind, start: from + start, end: from + token.end });
        self.places.push(self.text.len());
        self.text.push(MARK);
    }

    /// What stands around the values: one piece more than these.
    pub fn pieces(&self) -> Vec<Vec<u8>> {
        let ends = self.places.iter().copied().chain([self.text.len()]);
        let begins = [0].into_iter().chain(self.places.iter().map(|place| place + 1));
        begins.zip(ends).map(|(begin, end)| self.text[begin..end].to_vec()).collect()
    }
}

/// A statement without the `;` and the white space behind it.
fn bare_length(text: &[u8]) -> usize {
    let without_blanks =
        |length: usize| text[..length].iter().rposition(|byte| !is_blank(byte)).map_or(0, |at| at + 1);
    let mut length = without_blanks(text.len());
    length = text[..length].iter().rposition(|byte| *byte != b';').map_or(0, |at| at + 1);
    without_blanks(length)
}

/// Whether the minus at the end of a piece is a sign.
fn is_signed(piece: &[u8]) -> bool {
    let Some(before) = piece.strip_suffix(b"-") else { return false };
    let before = before.strip_suffix(b" ").unwrap_or(before);
    let Some(last) = before.last() else { return false };
    if b"(,=<>+*/%|&!-".contains(last) {
        return true;
    }
    let word = before.iter().rposition(|byte| !is_word(*byte)).map_or(before, |at| &before[at + 1..]);
    BEFORE_SIGN.iter().any(|one| word.eq_ignore_ascii_case(one.as_bytes()))
}

/// A shape with one list in the place of lists of any length, and one row in the place of several. Values stand as `?`.
pub fn digest(shape: &[u8]) -> Vec<u8> {
    const LIST: &[u8] = b"(?, ...)";
    let mut lists = Vec::with_capacity(shape.len());
    let mut at = 0;
    while at < shape.len() {
        match list_end(shape, at) {
            Some((end, count)) if count > 1 || is_in(&lists) => {
                lists.extend_from_slice(LIST);
                at = end;
            }
            _ => {
                lists.push(if shape[at] == MARK { b'?' } else { shape[at] });
                at += 1;
            }
        }
    }
    let mut rows = Vec::with_capacity(lists.len());
    at = 0;
    while at < lists.len() {
        let row = row_length(&lists[at..], LIST);
        if row == 0 {
            rows.push(lists[at]);
            at += 1;
            continue;
        }
        let (one, mut end) = (&lists[at..at + row], at + row);
        rows.extend_from_slice(one);
        while let Some(next) = after_comma(&lists, end).filter(|next| lists[*next..].starts_with(one)) {
            end = next + row;
        }
        at = end;
    }
    rows
}

/// The end of a list of values in parentheses, and how many they are.
fn list_end(shape: &[u8], at: usize) -> Option<(usize, usize)> {
    if shape[at] != b'(' {
        return None;
    }
    let mut end = without_blank(shape, at + 1);
    let mut count = 0;
    while shape.get(end) == Some(&MARK) {
        count += 1;
        match after_comma(shape, end + 1) {
            Some(next) if shape.get(next) == Some(&MARK) => end = next,
            _ => {
                end = without_blank(shape, end + 1);
                return (shape.get(end) == Some(&b')')).then_some((end + 1, count));
            }
        }
    }
    None
}

fn without_blank(text: &[u8], at: usize) -> usize {
    at + usize::from(text.get(at) == Some(&b' '))
}

/// What stands behind a comma, which may have a blank on each side.
fn after_comma(text: &[u8], at: usize) -> Option<usize> {
    let comma = without_blank(text, at);
    (text.get(comma) == Some(&b',')).then(|| without_blank(text, comma + 1))
}

/// Whether a text ends in the word IN.
fn is_in(text: &[u8]) -> bool {
    let text = text.strip_suffix(b" ").unwrap_or(text);
    let (before, word) = text.split_at(text.len().saturating_sub(2));
    word.eq_ignore_ascii_case(b"in") && !before.last().is_some_and(|byte| is_word(*byte))
}

fn row_length(text: &[u8], list: &[u8]) -> usize {
    if text.starts_with(list) {
        return list.len();
    }
    [&b"(?)"[..], b"( ?)", b"(? )", b"( ? )"]
        .iter()
        .find(|row| text.starts_with(row))
        .map_or(0, |row| row.len())
}
