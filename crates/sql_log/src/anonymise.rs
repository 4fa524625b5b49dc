//! Statements whose values say nothing of anybody: each literal, comment and database is replaced by what a keyed hash
//! makes of it. The same value becomes the same one wherever it stands, in quotes or not, so that what is equal stays
//! equal. Its type stays, its length, and a number's order of magnitude. The key is kept nowhere.

use crate::lexer::{is_blank, tokens, Dialect, Kind};
use crate::Set;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::borrow::Cow;

/// Rounds of the network that permutes the numbers of one length.
const ROUNDS: u8 = 6;
/// Longer whole numbers are replaced digit by digit.
const PERMUTED_DIGITS_MOST: usize = 18;
/// In what is quoted for a text these words stay, because servers read them as such.
const WORDS: &[&[u8]] = &[b"true", b"false", b"null"];

/// Replaces values by the hash of one key.
pub struct Anonymiser {
    keyed: Hmac<Sha256>,
    databases: Set<Vec<u8>>,
}

impl Anonymiser {
    pub fn new(key: &[u8]) -> Option<Anonymiser> {
        Some(Anonymiser { keyed: Hmac::new_from_slice(key).ok()?, databases: Set::default() })
    }

    /// A database's other name. What is called so in later statements gets it too.
    pub fn database(&mut self, name: &[u8]) -> Vec<u8> {
        if name.is_empty() {
            return Vec::new();
        }
        if !self.databases.contains(name) {
            self.databases.insert(name.to_vec());
        }
        self.name(name)
    }

    fn name(&self, name: &[u8]) -> Vec<u8> {
        let mut made = b"db_".to_vec();
        made.extend(self.stream(b"database", name).take(8).map(|byte| b'a' + byte % 26));
        made
    }

    /// A statement with other values.
    pub fn statement(&self, statement: &[u8], dialect: Dialect) -> Vec<u8> {
        let mut made = Vec::with_capacity(statement.len());
        for token in tokens(statement, dialect) {
            let written = &statement[token.start..token.end];
            match token.kind {
                Kind::Number => made.extend(self.number(written)),
                Kind::Text => self.text(written, &mut made),
                Kind::Binary => self.binary(written, &mut made),
                Kind::Blank => self.comment(written, token.closed, &mut made),
                Kind::Symbol if written.starts_with(b"/*") => {
                    self.code(written, token.closed, dialect, &mut made)
                }
                Kind::Name => made.extend_from_slice(&self.named(written)),
                Kind::Symbol | Kind::Parameter => made.extend_from_slice(written),
            }
        }
        made
    }

    /// Bytes without end that only the key tells.
    fn stream<'a>(&'a self, kind: &'a [u8], text: &'a [u8]) -> impl Iterator<Item = u8> + 'a {
        (0_u64..).flat_map(move |block| {
            let mut keyed = self.keyed.clone();
            keyed.update(kind);
            keyed.update(&block.to_le_bytes());
            keyed.update(text);
            keyed.finalize().into_bytes()
        })
    }

    /// A number of as many digits. 0 and 1 stay, because they say yes or no.
    fn number(&self, written: &[u8]) -> Vec<u8> {
        let whole = written.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut made = self.whole(&written[..whole]);
        let rest = &written[whole..];
        let exponent = rest.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(rest.len());
        let digits = self.stream(b"fraction", rest);
        made.extend(rest.iter().zip(digits).enumerate().map(|(at, (byte, other))| {
            if byte.is_ascii_digit() && at < exponent {
                b'0' + other % 10
            } else {
                *byte
            }
        }));
        made
    }

    fn whole(&self, digits: &[u8]) -> Vec<u8> {
        let noughts = digits.iter().take_while(|byte| **byte == b'0').count();
        let (noughts, bare) = digits.split_at(noughts);
        if bare.is_empty() || bare == b"1" {
            return digits.to_vec();
        }
        let mut made = noughts.to_vec();
        if bare.len() > PERMUTED_DIGITS_MOST {
            made.extend(self.stream(b"digits", bare).take(bare.len()).map(|byte| b'1' + byte % 9));
            return made;
        }
        let least = 10_u64.pow(bare.len() as u32 - 1).max(2);
        let number = bare.iter().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        let count = 10_u64.pow(bare.len() as u32) - least;
        made.extend(format!("{}", least + self.permuted(number - least, count)).into_bytes());
        made
    }

    /// Another number below `count`, and another one for each.
    fn permuted(&self, number: u64, count: u64) -> u64 {
        let half = (64 - count.leading_zeros()).div_ceil(2).max(1);
        let mask = (1_u64 << half) - 1;
        let mut found = number;
        loop {
            let (mut left, mut right) = (found >> half, found & mask);
            for round in 0..ROUNDS {
                let asked = [&right.to_le_bytes()[..], &count.to_le_bytes(), &[round]].concat();
                let mut bytes = [0; 8];
                self.stream(b"round", &asked).take(8).zip(&mut bytes).for_each(|(byte, place)| *place = byte);
                (left, right) = (right, left ^ (u64::from_le_bytes(bytes) & mask));
            }
            found = (left << half) | right;
            if found < count {
                return found;
            }
        }
    }

    /// What stands between the quotes of a text, letter by letter: letters become letters, digits digits.
    fn text(&self, written: &[u8], made: &mut Vec<u8>) {
        let (open, inner, close) = parts(written);
        made.extend_from_slice(open);
        if inner.iter().all(u8::is_ascii_digit) {
            made.extend(self.whole(inner));
        } else if WORDS.iter().any(|word| inner.eq_ignore_ascii_case(word)) {
            made.extend_from_slice(inner);
        } else if is_day(inner) {
            self.moment(inner, made);
        } else {
            self.letters(inner, made);
        }
        made.extend_from_slice(close);
    }

    /// A day of any month, and any time of day where one is written.
    fn moment(&self, written: &[u8], made: &mut Vec<u8>) {
        let (day, time) = written.split_at(10);
        let number = self.stream(b"day", day).take(4).fold(0_u32, |sum, byte| sum * 256 + u32::from(byte));
        let (year, month, of_month) = (2000 + number % 28, 1 + number / 28 % 12, 1 + number / 336 % 28);
        made.extend(format!("{year:04}-{month:02}-{of_month:02}").into_bytes());
        // The hour's first digit is 0 or 1, so that its second may be any.
        const HIGHEST: [u8; 9] = [0, 1, 9, 0, 5, 9, 0, 5, 9];
        for (at, (byte, other)) in time.iter().zip(self.stream(b"time", time)).enumerate() {
            let highest = HIGHEST.get(at).copied().unwrap_or(9);
            made.push(if byte.is_ascii_digit() { b'0' + other % (highest + 1) } else { *byte });
        }
    }

    fn letters(&self, inner: &[u8], made: &mut Vec<u8>) {
        let mut escaped = false;
        for (byte, other) in inner.iter().zip(self.stream(b"text", inner)) {
            // What stands behind a backslash, or is no letter, rules how the rest is read.
            let kept = escaped;
            escaped = !escaped && *byte == b'\\';
            made.push(match byte {
                _ if kept => *byte,
                b'0'..=b'9' => b'0' + other % 10,
                b'A'..=b'Z' => b'A' + other % 26,
                b'a'..=b'z' => b'a' + other % 26,
                // Of a letter beyond ASCII the first byte counts.
                0x80..=0xbf => continue,
                0xc0.. => b'a' + other % 26,
                _ => *byte,
            });
        }
    }

    fn binary(&self, written: &[u8], made: &mut Vec<u8>) {
        let bits = matches!(written, [b'b' | b'B', b'\'', ..] | [b'0', b'b', ..]);
        if let [b'0', b'x' | b'b', digits @ ..] = written {
            made.extend_from_slice(&written[..2]);
            self.hexadecimal(digits, bits, made);
        } else if matches!(written, [b'x' | b'X' | b'b' | b'B', b'\'', ..]) {
            let (open, inner, close) = parts(written);
            made.extend_from_slice(open);
            self.hexadecimal(inner, bits, made);
            made.extend_from_slice(close);
        } else if let Some(at) = written.iter().position(|byte| matches!(byte, b'\'' | b'"')) {
            // A text with an introducer; a hexadecimal one has its letter just before the quote.
            let mark =
                if at > 0 && matches!(written[at - 1], b'x' | b'X' | b'b' | b'B') { at - 1 } else { at };
            made.extend_from_slice(&written[..mark]);
            match mark == at {
                true => self.text(&written[mark..], made),
                false => self.binary(&written[mark..], made),
            }
        } else if let Some(at) = written.windows(2).position(|pair| pair == b"0x" || pair == b"0b") {
            made.extend_from_slice(&written[..at]);
            self.binary(&written[at..], made);
        }
    }

    fn hexadecimal(&self, digits: &[u8], bits: bool, made: &mut Vec<u8>) {
        let (name, base) = if bits { (&b"bits"[..], 2) } else { (&b"hexadecimal"[..], 16) };
        made.extend(
            self.stream(name, digits)
                .take(digits.len())
                .map(|byte| b"0123456789abcdef"[(byte % base) as usize]),
        );
    }

    fn comment(&self, written: &[u8], closed: bool, made: &mut Vec<u8>) {
        let open = match written {
            [b'/', b'*', b'M', b'!', ..] => 4,
            [b'/', b'*', b'!' | b'+', ..] => 3,
            [b'/', b'*', ..] | [b'-', b'-', ..] => 2,
            [b'#', ..] => 1,
            _ => return made.extend_from_slice(written),
        };
        // PostgreSQL's comments nest, so the outer one may be open behind the end of an inner one.
        let close = if closed && written.starts_with(b"/*") { 2 } else { 0 };
        let inner = &written[open..written.len() - close];
        made.extend_from_slice(&written[..open]);
        let letters = inner.iter().zip(self.stream(b"comment", inner));
        made.extend(letters.map(|(byte, other)| match byte {
            // MySQL tells by the blank behind them whether two minuses begin a comment.
            blank if is_blank(blank) => *blank,
            _ => b'a' + other % 26,
        }));
        made.extend_from_slice(&written[written.len() - close..]);
    }

    /// What a server carries out within a comment.
    fn code(&self, written: &[u8], closed: bool, dialect: Dialect, made: &mut Vec<u8>) {
        let mark = if written.starts_with(b"/*M!") { 4 } else { 3 };
        let version = written[mark..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let close = if closed { 2 } else { 0 };
        let (from, inner) = (made.len(), mark + version..written.len() - close);
        made.extend_from_slice(&written[..inner.start]);
        made.extend(self.statement(&written[inner.clone()], dialect));
        made.extend_from_slice(&written[inner.end..]);
        // A comment in it that hid the begin or the end of another one hides it no longer.
        let found = tokens(&made[from..], dialect).next();
        if found.is_none_or(|token| token.end != made.len() - from || token.closed != closed) {
            made.truncate(from);
            self.comment(written, closed, made);
        }
    }

    fn named<'a>(&self, written: &'a [u8]) -> Cow<'a, [u8]> {
        let quote = written.first().copied().filter(|byte| matches!(byte, b'`' | b'"'));
        let bare = match quote {
            Some(quote) => written[1..].strip_suffix(&[quote]).unwrap_or(&written[1..]),
            None => written,
        };
        if !self.databases.contains(bare) {
            return Cow::Borrowed(written);
        }
        Cow::Owned(self.name(bare))
    }
}

/// A text with what opens and what closes it.
fn parts(written: &[u8]) -> (&[u8], &[u8], &[u8]) {
    if written.first() == Some(&b'$') {
        let tag = written[1..].iter().position(|byte| *byte == b'$').map_or(written.len(), |at| at + 2);
        let (open, rest) = written.split_at(tag);
        let inner = rest.strip_suffix(open).unwrap_or(rest);
        return (open, inner, &rest[inner.len()..]);
    }
    let open = written.iter().position(|byte| matches!(byte, b'\'' | b'"')).map_or(0, |at| at + 1);
    let (open, rest) = written.split_at(open);
    let quote = open.last().copied().unwrap_or(b'\'');
    let inner = rest.strip_suffix(&[quote]).unwrap_or(rest);
    (open, inner, &rest[inner.len()..])
}

/// Whether a text begins with a day, and goes on with a time of day or not at all.
fn is_day(text: &[u8]) -> bool {
    let fits = |form: &[u8], text: &[u8]| {
        form.iter()
            .zip(text)
            .all(|(wanted, byte)| if *wanted == b'd' { byte.is_ascii_digit() } else { wanted == byte })
    };
    text.len() >= 10
        && fits(b"dddd-dd-dd", text)
        && (text.len() == 10
            || (text.len() >= 19 && matches!(text[10], b' ' | b'T') && fits(b"dd:dd:dd", &text[11..])))
}
