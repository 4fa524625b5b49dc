//! SQL cut into tokens, as far as telling values from the rest needs it. A statement is bytes: what is no UTF-8 stands in
//! it as the client sent it. Joined, the tokens are the statement. What does not end goes to its end.

use crate::finder;
use memchr::{memchr, memchr2, memmem};

/// Whose SQL it is: double quotes hold a text in MySQL's, and a name in PostgreSQL's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    MySql,
    PostgreSql,
}

/// What a token is. `Blank` is white space or a comment; `Binary` a value in hexadecimal, bits, or other characters than
/// UTF-8; `Parameter` a value's place, `$1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Blank,
    Binary,
    Text,
    Parameter,
    Number,
    Name,
    Symbol,
}

impl Kind {
    pub fn is_value(self) -> bool {
        matches!(self, Kind::Binary | Kind::Text | Kind::Parameter | Kind::Number)
    }
}

/// A piece of a statement as it is written: bytes `start` to `end`. `closed` is false for a quote or a comment that does
/// not end, which can only be the last token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
    pub closed: bool,
}

/// Of MariaDB and MySQL, as `SHOW CHARACTER SET` lists them, but for UTF-8's own.
const OTHER_CHARACTER_SETS: &[&str] = &[
    "armscii8", "ascii", "big5", "binary", "cp850", "cp852", "cp866", "cp932", "cp1250", "cp1251", "cp1256",
    "cp1257", "dec8", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "geostd8", "greek", "hebrew", "hp8",
    "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7", "macce", "macroman", "sjis", "swe7",
    "tis620", "ucs2", "ujis", "utf16", "utf16le", "utf32",
];
const UTF_8: &[&str] = &["utf8", "utf8mb3", "utf8mb4"];
/// Longest first, because the shorter ones are their beginnings.
const SYMBOLS: &[&[u8]] = &[b"<=>", b"->>", b"<>", b"!=", b"<=", b">=", b":=", b"||", b"&&", b"->", b"::"];

/// The tokens of a statement.
pub struct Tokens<'a> {
    text: &'a [u8],
    dialect: Dialect,
    at: usize,
}

pub fn tokens(text: &[u8], dialect: Dialect) -> Tokens<'_> {
    Tokens { text, dialect, at: 0 }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let start = self.at;
        let first = *self.text.get(start)?;
        let (kind, end, closed) = self.token(first, start);
        self.at = end;
        Some(Token { kind, start, end, closed })
    }
}

type Found = (Kind, usize, bool);

impl Tokens<'_> {
    fn token(&self, first: u8, at: usize) -> Found {
        let mysql = self.dialect == Dialect::MySql;
        match first {
            _ if is_blank(&first) => {
                let more = self.text[at..].iter().take_while(|byte| is_blank(byte)).count();
                (Kind::Blank, at + more, true)
            }
            b'-' if self.peek(at + 1) == b'-' && self.is_comment(at) => self.line_comment(at),
            b'#' if mysql => self.line_comment(at),
            b'/' if self.peek(at + 1) == b'*' => self.comment(at),
            b'\'' => self.quoted(Kind::Text, at, mysql),
            b'"' if mysql => self.quoted(Kind::Text, at, true),
            b'"' => self.quoted(Kind::Name, at, false),
            b'`' if mysql => self.quoted(Kind::Name, at, false),
            b'0'..=b'9' => self.number(at),
            b'.' if self.peek(at + 1).is_ascii_digit() => self.number(at),
            b'$' => self.dollar(at),
            b'@' => self.variable(at),
            _ if begins_name(first) => self.marked(at).unwrap_or_else(|| self.name(at)),
            _ => self.symbol(at),
        }
    }

    /// The byte at a place; NUL behind the end.
    fn peek(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    /// MySQL takes two minuses for a comment only with white space behind them.
    fn is_comment(&self, at: usize) -> bool {
        self.dialect == Dialect::PostgreSql || self.text.get(at + 2).is_none_or(is_blank)
    }

    fn line_comment(&self, at: usize) -> Found {
        let end = memchr(b'\n', &self.text[at..]).map_or(self.text.len(), |length| at + length);
        (Kind::Blank, end, true)
    }

    /// MySQL carries out what stands in `/*! */`; it takes hints from `/*+ */`, as extensions of PostgreSQL do.
    /// PostgreSQL's comments nest.
    fn comment(&self, at: usize) -> Found {
        let rest = &self.text[at + 2..];
        let carried_out = rest.starts_with(b"!") || rest.starts_with(b"M!");
        let is_code = rest.starts_with(b"+") || (carried_out && self.dialect == Dialect::MySql);
        let kind = if is_code { Kind::Symbol } else { Kind::Blank };
        let (mut from, mut depth) = (at + 2, 1);
        while let Some(length) = memchr2(b'*', b'/', &self.text[from..]) {
            from += length;
            match (self.peek(from), self.peek(from + 1)) {
                (b'*', b'/') => depth -= 1,
                (b'/', b'*') if self.dialect == Dialect::PostgreSql => depth += 1,
                _ => {
                    from += 1;
                    continue;
                }
            }
            from += 2;
            if depth == 0 {
                return (kind, from, true);
            }
        }
        (kind, self.text.len(), false)
    }

    /// From quote to quote; a doubled quote stands for itself, and with `escapes` so does any byte behind a backslash.
    fn quoted(&self, kind: Kind, at: usize, escapes: bool) -> Found {
        let (end, closed) = quote_end(self.text, at + 1, self.text[at], escapes);
        (kind, end, closed)
    }

    fn number(&self, at: usize) -> Found {
        if let Some(end) = self.hexadecimal(at) {
            return (Kind::Binary, end, true);
        }
        let whole = self.digits(at);
        let fraction = if self.peek(whole) == b'.' { self.digits(whole + 1) } else { whole };
        let mut exponent = fraction;
        if matches!(self.peek(fraction), b'e' | b'E') {
            let digits = fraction + 1 + usize::from(matches!(self.peek(fraction + 1), b'+' | b'-'));
            exponent = if self.peek(digits).is_ascii_digit() { self.digits(digits) } else { fraction };
        }
        for end in [exponent, fraction, whole] {
            if end > at && !goes_on(self.peek(end)) {
                return (Kind::Number, end, true);
            }
        }
        if whole == at {
            return (Kind::Symbol, at + 1, true);
        }
        (Kind::Name, self.word(at), true)
    }

    fn digits(&self, at: usize) -> usize {
        at + self.text[at.min(self.text.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    /// The end of `0x1f` or `0b01`.
    fn hexadecimal(&self, at: usize) -> Option<usize> {
        let fits: fn(&u8) -> bool = match (self.peek(at), self.peek(at + 1)) {
            (b'0', b'x') => u8::is_ascii_hexdigit,
            (b'0', b'b') => |byte| matches!(byte, b'0' | b'1'),
            _ => return None,
        };
        let length = self.text[at + 2..].iter().take_while(|byte| fits(byte)).count();
        (length > 0 && !is_word(self.peek(at + 2 + length))).then_some(at + 2 + length)
    }

    /// The end of `x'1f'` or `b'01'`.
    fn hexadecimal_in_quotes(&self, at: usize) -> Option<usize> {
        if !matches!(self.peek(at), b'x' | b'X' | b'b' | b'B') || self.peek(at + 1) != b'\'' {
            return None;
        }
        let length = self.text[at + 2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        (self.peek(at + 2 + length) == b'\'').then_some(at + 3 + length)
    }

    /// `$1`, or a text of PostgreSQL's between `$tag$` and `$tag$`.
    fn dollar(&self, at: usize) -> Found {
        let digits = self.digits(at + 1);
        if digits > at + 1 {
            return (Kind::Parameter, digits, true);
        }
        let word = at + 1 + self.text[at + 1..].iter().take_while(|byte| is_word(**byte)).count();
        if self.dialect == Dialect::MySql || self.peek(word) != b'$' {
            return (Kind::Symbol, at + 1, true);
        }
        let tag = &self.text[at..=word];
        match memmem::find(&self.text[word + 1..], tag) {
            Some(length) => (Kind::Text, word + 1 + length + tag.len(), true),
            None => (Kind::Text, self.text.len(), false),
        }
    }

    fn variable(&self, at: usize) -> Found {
        let name = at + 1 + usize::from(self.peek(at + 1) == b'@');
        if begins_name(self.peek(name)) && name < self.text.len() {
            return (Kind::Name, self.word(name), true);
        }
        (Kind::Symbol, at + 1, true)
    }

    /// A literal with letters before its quote.
    fn marked(&self, at: usize) -> Option<Found> {
        if let Some(end) = self.hexadecimal_in_quotes(at) {
            return Some((Kind::Binary, end, true));
        }
        let (next, mysql) = (self.peek(at + 1), self.dialect == Dialect::MySql);
        match self.text[at] {
            b'n' | b'N' if next == b'\'' => Some(self.quoted(Kind::Text, at + 1, mysql)),
            b'e' | b'E' if next == b'\'' && !mysql => Some(self.quoted(Kind::Text, at + 1, true)),
            b'u' | b'U' if next == b'&' && !mysql && self.peek(at + 2) == b'\'' => {
                Some(self.quoted(Kind::Binary, at + 2, false))
            }
            b'_' if mysql => self.introduced(at),
            _ => None,
        }
    }

    /// A text may say its characters: `_utf8mb4'a'`. In others than UTF-8 its bytes mean something else.
    fn introduced(&self, at: usize) -> Option<Found> {
        let name_end = self.word(at);
        let name = self.text.get(at + 1..name_end)?;
        let is_in = |names: &[&str]| names.iter().any(|one| name.eq_ignore_ascii_case(one.as_bytes()));
        let is_utf_8 = is_in(UTF_8);
        if !is_utf_8 && !is_in(OTHER_CHARACTER_SETS) {
            return None;
        }
        let literal = name_end + self.text[name_end..].iter().take_while(|byte| is_blank(byte)).count();
        if matches!(self.peek(literal), b'\'' | b'"') {
            let kind = if is_utf_8 { Kind::Text } else { Kind::Binary };
            return Some(self.quoted(kind, literal, true));
        }
        let end = self.hexadecimal_in_quotes(literal).or_else(|| self.hexadecimal(literal))?;
        Some((Kind::Binary, end, true))
    }

    fn name(&self, at: usize) -> Found {
        (Kind::Name, self.word(at), true)
    }

    /// The end of a word that begins here.
    fn word(&self, at: usize) -> usize {
        at + self.text[at..].iter().take_while(|byte| goes_on(**byte)).count()
    }

    fn symbol(&self, at: usize) -> Found {
        let rest = &self.text[at..];
        let length = SYMBOLS.iter().find(|symbol| rest.starts_with(symbol)).map_or(1, |symbol| symbol.len());
        (Kind::Symbol, at + length, true)
    }
}

/// The end of what a quote before `at` opened, and whether it is closed.
fn quote_end(text: &[u8], mut at: usize, quote: u8, escapes: bool) -> (usize, bool) {
    loop {
        let rest = &text[at.min(text.len())..];
        let found = if escapes { memchr2(quote, b'\\', rest) } else { memchr(quote, rest) };
        let Some(length) = found else { return (text.len(), false) };
        let place = at + length;
        if text[place] != quote || text.get(place + 1) == Some(&quote) {
            at = place + 2;
            continue;
        }
        return (place + 1, true);
    }
}

/// The quote or comment of MySQL's that is open behind whole lines: of the one that was open before them, its first byte,
/// `/` for a comment; 0 stands for none.
pub fn open_quote(text: &[u8], state: u8) -> u8 {
    let mut from = 0;
    match state {
        0 if memchr::memchr3(b'\'', b'"', b'`', text).is_none() && finder!(b"/*").find(text).is_none() => {
            return 0;
        }
        0 => {}
        b'/' => match finder!(b"*/").find(text) {
            Some(length) => from = length + 2,
            None => return state,
        },
        quote => match quote_end(text, 0, quote, quote != b'`') {
            (end, true) => from = end,
            (_, false) => return state,
        },
    }
    let last = tokens(&text[from..], Dialect::MySql).find(|token| !token.closed);
    let Some(open) = last else { return 0 };
    let written = &text[from + open.start..from + open.end];
    if written.starts_with(b"/*") {
        return b'/';
    }
    written.iter().copied().find(|byte| matches!(byte, b'\'' | b'"' | b'`')).unwrap_or(0)
}

pub fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Letters beyond ASCII count as letters, as both servers have it.
fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

pub fn is_word(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit()
}

fn goes_on(byte: u8) -> bool {
    is_word(byte) || byte == b'$'
}
