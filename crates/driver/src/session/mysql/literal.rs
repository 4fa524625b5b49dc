//! Values as literals in a statement's text.

use crate::session::Value;
use std::io::Write;

/// Appends a value as a literal; bytes in hexadecimal.
pub(super) fn put_literal(out: &mut Vec<u8>, value: Value<'_>) {
    // Writing to a Vec cannot fail.
    let _ = match value {
        Value::Null => out.write_all(b"NULL"),
        Value::Int(n) => write!(out, "{n}"),
        Value::Float(x) => write!(out, "{x:e}"),
        Value::Text(text) => {
            out.push(b'\'');
            for byte in text.bytes() {
                match byte {
                    0 => out.extend_from_slice(b"\\0"),
                    b'\'' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                    _ => out.push(byte),
                }
            }
            out.write_all(b"'")
        }
        Value::Bytes([]) => out.write_all(b"''"),
        Value::Bytes(bytes) => {
            put_hex(out, bytes);
            Ok(())
        }
    };
}

fn put_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"0x");
    for byte in bytes {
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}
