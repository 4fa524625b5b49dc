//! Values as literals in a statement's text, which mean the same in every `sql_mode`.

use crate::session::Value;
use std::io::Write;

/// Appends a value as a literal; bytes in hexadecimal.
pub(super) fn put_literal(out: &mut Vec<u8>, value: Value<'_>) {
    // Writing to a Vec cannot fail.
    let _ = match value {
        Value::Null => out.write_all(b"NULL"),
        Value::Int(n) => write!(out, "{n}"),
        Value::Float(x) => write!(out, "{x:e}"),
        // A backslash escapes unless the session's `sql_mode` has NO_BACKSLASH_ESCAPES, which a statement may set.
        Value::Text(text) if text.contains(['\\', '\0']) => {
            out.extend_from_slice(b"_utf8mb4 ");
            put_hex(out, text.as_bytes());
            Ok(())
        }
        Value::Text(text) => {
            out.push(b'\'');
            for byte in text.bytes() {
                if byte == b'\'' {
                    out.push(b'\'');
                }
                out.push(byte);
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
