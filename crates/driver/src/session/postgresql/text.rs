//! Values as they stand in the text of a statement.

use super::message::put_string;
use crate::session::Value;
use std::io::Write;

/// The statement that executes a prepared one of this name; `None` where a value has no text that the server would take
/// for it.
pub(super) fn execution(name: &str, parameters: &[Value<'_>]) -> Option<String> {
    if parameters.is_empty() {
        return Some(format!("EXECUTE {name}"));
    }
    let (mut pieces, last) = (vec![format!("EXECUTE {name}(")], ")".to_owned());
    pieces.resize(parameters.len(), ", ".to_owned());
    pieces.push(last);
    with_literals(&pieces, parameters)
}

/// A statement with values between its pieces; `None` where a value has no text that the server would take for it.
pub(super) fn with_literals(pieces: &[String], parameters: &[Value<'_>]) -> Option<String> {
    if parameters.iter().any(|value| matches!(value, Value::Bytes(_))) {
        return None;
    }
    let mut sql = Vec::new();
    put_with_literals(&mut sql, pieces, parameters);
    // A message's text ends with a zero.
    sql.pop();
    String::from_utf8(sql).ok()
}

/// Appends a statement with values between its pieces, as a message holds it.
#[inline]
pub(super) fn put_with_literals(out: &mut Vec<u8>, pieces: &[String], parameters: &[Value<'_>]) {
    for (place, piece) in pieces.iter().enumerate() {
        out.extend_from_slice(piece.as_bytes());
        if let Some(value) = parameters.get(place) {
            put_literal(out, value);
        }
    }
    put_string(out, "");
}

/// Every value is quoted: the server reads it as what the parameter's type is, and no minus sign meets another.
fn put_literal(out: &mut Vec<u8>, value: &Value<'_>) {
    // Writing to a Vec cannot fail.
    let _ = match value {
        Value::Null => out.write_all(b"NULL"),
        Value::Int(number) => write!(out, "'{number}'"),
        Value::Float(number) => write!(out, "'{number}'"),
        Value::Text(text) => {
            put_quoted(out, text);
            Ok(())
        }
        Value::Bytes(bytes) => {
            out.extend_from_slice(b"E'\\\\x");
            bytes.iter().for_each(|byte| drop(write!(out, "{byte:02x}")));
            out.write_all(b"'")
        }
    };
}

/// A text in quotes. A backslash means itself only in some settings of the server, so it is written as an escape.
fn put_quoted(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(if text.contains('\\') { b"E'" } else { b"'" });
    for byte in text.bytes() {
        if matches!(byte, b'\'' | b'\\') {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prepared_statement_is_executed_by_its_name_with_values_in_quotes() {
        let values =
            [Value::Int(-7), Value::Null, Value::Text("it's"), Value::Text("a\\b"), Value::Float(0.5)];
        let sql = execution("s3", &values).unwrap();
        assert_eq!(sql, r"EXECUTE s3('-7', NULL, 'it''s', E'a\\b', '0.5')");
        assert_eq!(execution("s0", &[]).unwrap(), "EXECUTE s0");
        assert_eq!(execution("s0", &[Value::Bytes(b"\x00")]), None);
    }

    #[test]
    fn a_statement_goes_out_with_its_values_in_it() {
        let pieces = ["SELECT 1-", ", ", ""].map(str::to_owned);
        let mut out = Vec::new();
        put_with_literals(&mut out, &pieces, &[Value::Int(-2), Value::Bytes(&[0, 255])]);
        assert_eq!(out, b"SELECT 1-'-2', E'\\\\x00ff'\0");
    }
}
