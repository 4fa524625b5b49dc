//! Values as they cross a session: parameters in, columns out.

use std::fmt;
use std::io::Write;

/// One value, borrowed. Decimals, dates and times travel as text; engines convert them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    Int(i64),
    Float(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl Value<'_> {
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The value as an integer: also from text such as "12" or "12.00". Null and what is no integer give `None`.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(n) => Some(*n),
            Value::Float(x) if x.fract() == 0.0 && x.abs() < 9.0e15 => Some(*x as i64),
            Value::Text(text) => integer_of(text),
            Value::Bytes(bytes) => std::str::from_utf8(bytes).ok().and_then(integer_of),
            _ => None,
        }
    }

    /// The value as a float: also from text. Null and what is no number give `None`.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Float(x) => Some(*x),
            Value::Text(text) => text.trim().parse().ok(),
            Value::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.trim().parse().ok(),
            Value::Null => None,
        }
    }

    /// The text of a text value (bytes too where they are UTF-8).
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    pub fn to_owned(&self) -> Owned {
        match self {
            Value::Null => Owned::Null,
            Value::Int(n) => Owned::Int(*n),
            Value::Float(x) => Owned::Float(*x),
            Value::Text(text) => Owned::Text((*text).to_owned()),
            Value::Bytes(bytes) => Owned::Bytes(bytes.to_vec()),
        }
    }
}

fn integer_of(text: &str) -> Option<i64> {
    let text = text.trim();
    match text.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|b| b == b'0') => whole.parse().ok(),
        Some(_) => None,
        None => text.parse().ok(),
    }
}

/// The float of 64 bits that is written as one of 32 bits is: 0.1, and not the 0.10000000149 that its bits are.
pub(crate) fn widened(number: f32) -> f64 {
    let mut text = [0u8; 32];
    let mut rest = &mut text[..];
    // The longest there is takes 15 bytes.
    let _ = write!(rest, "{number:e}");
    let left = rest.len();
    let length = text.len() - left;
    let written = std::str::from_utf8(&text[..length]).ok().and_then(|text| text.parse().ok());
    written.unwrap_or_else(|| number.into())
}

/// A value that outlives the answer it came with.
#[derive(Clone, Debug, PartialEq)]
pub enum Owned {
    Null,
    Int(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Owned {
    pub fn borrow(&self) -> Value<'_> {
        match self {
            Owned::Null => Value::Null,
            Owned::Int(n) => Value::Int(*n),
            Owned::Float(x) => Value::Float(*x),
            Owned::Text(text) => Value::Text(text),
            Owned::Bytes(bytes) => Value::Bytes(bytes),
        }
    }
}

impl fmt::Display for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owned::Null => f.write_str("NULL"),
            Owned::Int(n) => write!(f, "{n}"),
            Owned::Float(x) => write!(f, "{x}"),
            Owned::Text(text) => f.write_str(text),
            Owned::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
        }
    }
}

/// The same memory, ready for values of another lifetime: collecting in place keeps the allocation.
pub(crate) fn emptied<'a>(mut values: Vec<Value<'_>>) -> Vec<Value<'a>> {
    values.clear();
    values.into_iter().map(|_| Value::Null).collect()
}

/// One row on its way into a table, built cell by cell. Cleared and used again for every row of a bulk load.
#[derive(Debug, Default)]
pub struct RowBuffer {
    bytes: Vec<u8>,
    cells: Vec<Slot>,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Null,
    Int(i64),
    Float(f64),
    Text { from: usize, to: usize },
    Bytes { from: usize, to: usize },
}

impl RowBuffer {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.cells.clear();
    }

    pub fn null(&mut self) -> &mut Self {
        self.cells.push(Slot::Null);
        self
    }

    pub fn int(&mut self, value: i64) -> &mut Self {
        self.cells.push(Slot::Int(value));
        self
    }

    pub fn float(&mut self, value: f64) -> &mut Self {
        self.cells.push(Slot::Float(value));
        self
    }

    pub fn text(&mut self, value: &str) -> &mut Self {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(value.as_bytes());
        self.cells.push(Slot::Text { from, to: self.bytes.len() });
        self
    }

    /// Text that is written straight into the buffer, for instance by `format_args!`.
    pub fn display(&mut self, value: impl fmt::Display) -> &mut Self {
        let from = self.bytes.len();
        // Writing to a Vec cannot fail.
        let _ = write!(self.bytes, "{value}");
        self.cells.push(Slot::Text { from, to: self.bytes.len() });
        self
    }

    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.cells.push(Slot::Bytes { from, to: self.bytes.len() });
        self
    }

    /// The cells in order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = Value<'_>> {
        self.cells.iter().map(|cell| match *cell {
            Slot::Null => Value::Null,
            Slot::Int(n) => Value::Int(n),
            Slot::Float(x) => Value::Float(x),
            // Only `text` and `display` make such a cell, and both write whole UTF-8 strings.
            Slot::Text { from, to } => {
                Value::Text(std::str::from_utf8(&self.bytes[from..to]).unwrap_or_default())
            }
            Slot::Bytes { from, to } => Value::Bytes(&self.bytes[from..to]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_from_every_form_a_server_sends() {
        assert_eq!(Value::Text("12").as_i64(), Some(12));
        assert_eq!(Value::Text("-12.00").as_i64(), Some(-12));
        assert_eq!(Value::Bytes(b"7").as_i64(), Some(7));
        assert_eq!(Value::Float(3.0).as_i64(), Some(3));
        assert_eq!(Value::Text("1.5").as_i64(), None);
        assert_eq!(Value::Null.as_i64(), None);
    }

    #[test]
    fn a_short_float_is_the_number_that_it_is_written_as() {
        for number in [0.0, -0.0, 0.1, 1.1, -2.5e10, f32::MIN_POSITIVE, f32::MAX, -f32::MAX, f32::EPSILON] {
            assert_eq!(widened(number).to_string(), number.to_string());
        }
        assert_eq!((widened(f32::INFINITY), widened(f32::NEG_INFINITY)), (f64::INFINITY, f64::NEG_INFINITY));
        assert!(widened(f32::NAN).is_nan());
    }

    #[test]
    fn a_row_buffer_gives_back_what_was_put_in() {
        let mut row = RowBuffer::default();
        row.int(1).text("é").null().float(0.5).bytes(&[0, 255]).display(format_args!("{}-{}", 1, 2));
        let values: Vec<Value<'_>> = row.values().collect();
        assert_eq!(
            values,
            [
                Value::Int(1),
                Value::Text("é"),
                Value::Null,
                Value::Float(0.5),
                Value::Bytes(&[0, 255]),
                Value::Text("1-2")
            ]
        );
    }
}
