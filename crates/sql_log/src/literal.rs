//! What a literal stands for.

use crate::lexer::{is_blank, Dialect, Kind};
use crate::values::Plain;
use std::borrow::Cow;

/// A literal as it counts. One that was `bound` is in quotes whatever its type, so there a number counts as one.
pub fn plain<'a>(
    literal: &'a [u8],
    kind: Kind,
    dialect: Dialect,
    bound: bool,
    held: &'a mut Vec<u8>,
) -> Plain<'a> {
    match kind {
        Kind::Parameter => Plain::Unknown,
        Kind::Number => Plain::Number(literal),
        Kind::Text => match unquoted(literal, dialect) {
            Some(Cow::Borrowed(text)) => of_text(literal, text, bound),
            Some(Cow::Owned(text)) => {
                *held = text;
                of_text(literal, held, bound)
            }
            None => Plain::Binary(literal),
        },
        _ => Plain::Binary(literal),
    }
}

fn of_text<'a>(literal: &'a [u8], text: &'a [u8], bound: bool) -> Plain<'a> {
    match std::str::from_utf8(text) {
        Ok(_) if bound && is_number(text) => Plain::Number(text),
        Ok(text) => Plain::Text(text),
        Err(_) => Plain::Binary(literal),
    }
}

/// Whether a bound value is a number: one with a nought before it is the text of a code.
fn is_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, fraction) = match digits.iter().position(|byte| *byte == b'.') {
        Some(at) => (&digits[..at], Some(&digits[at + 1..])),
        None => (digits, None),
    };
    let fits =
        |part: &[u8], most: usize| (1..=most).contains(&part.len()) && part.iter().all(u8::is_ascii_digit);
    fits(whole, 18) && (whole.len() == 1 || whole[0] != b'0') && fraction.is_none_or(|part| fits(part, 6))
}

/// What a text in quotes stands for; None where it is written in codes, which only the server resolves.
pub fn unquoted(literal: &[u8], dialect: Dialect) -> Option<Cow<'_, [u8]>> {
    if literal.first() == Some(&b'$') {
        let tag = literal[1..].iter().position(|byte| *byte == b'$').map_or(literal.len(), |at| at + 2);
        let (tag, rest) = literal.split_at(tag);
        return Some(Cow::Borrowed(rest.strip_suffix(tag).unwrap_or(rest)));
    }
    let mysql = dialect == Dialect::MySql;
    let escapes = mysql || matches!(literal.first(), Some(b'e' | b'E'));
    let open = literal.iter().position(|byte| matches!(byte, b'\'' | b'"'))?;
    debug_assert!(literal[..open]
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || is_blank(byte)));
    let quote = literal[open];
    let inner = &literal[open + 1..];
    let inner = inner.strip_suffix(&[quote]).unwrap_or(inner);
    let escaped = escapes && inner.contains(&b'\\');
    if !escaped && !inner.contains(&quote) {
        return Some(Cow::Borrowed(inner));
    }
    let mut text = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte == quote {
            bytes.next();
            text.push(quote);
        } else if byte == b'\\' && escapes {
            match bytes.next() {
                Some(escaped) => escape(escaped, mysql, &mut text)?,
                None => text.push(byte),
            }
        } else {
            text.push(byte);
        }
    }
    Some(Cow::Owned(text))
}

/// A letter behind a backslash. `\%` and `\_` stay as they are in MySQL's texts, because LIKE reads them.
fn escape(escaped: u8, mysql: bool, text: &mut Vec<u8>) -> Option<()> {
    match (escaped, mysql) {
        (b'n', _) => text.push(b'\n'),
        (b't', _) => text.push(b'\t'),
        (b'r', _) => text.push(b'\r'),
        (b'b', _) => text.push(8),
        (b'f', false) => text.push(12),
        (b'0', true) => text.push(0),
        (b'Z', true) => text.push(0x1a),
        (b'%' | b'_', true) => text.extend([b'\\', escaped]),
        (b'x' | b'u' | b'U' | b'0'..=b'7', false) => return None,
        (other, _) => text.push(other),
    }
    Some(())
}
