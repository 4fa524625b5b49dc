//! Values as they stand in the text of a statement.

use crate::session::Value;
use std::fmt::Write;

/// The statement that executes a prepared one of this name; `None` where a value has no text that the server would take
/// for it. Every value is quoted: the server reads it as what the parameter's type is.
pub(super) fn execution(name: &str, parameters: &[Value<'_>]) -> Option<String> {
    let mut sql = format!("EXECUTE {name}");
    for (place, value) in parameters.iter().enumerate() {
        sql.push_str(if place == 0 { "(" } else { ", " });
        // Writing to a String cannot fail.
        match value {
            Value::Null => sql.push_str("NULL"),
            Value::Int(number) => drop(write!(sql, "'{number}'")),
            Value::Float(number) => drop(write!(sql, "'{number}'")),
            Value::Text(text) => put_text(&mut sql, text),
            Value::Bytes(_) => return None,
        }
    }
    if !parameters.is_empty() {
        sql.push(')');
    }
    Some(sql)
}

/// A text in quotes. A backslash means itself only in some settings of the server, so it is written as an escape.
fn put_text(sql: &mut String, text: &str) {
    sql.push_str(if text.contains('\\') { "E'" } else { "'" });
    for letter in text.chars() {
        if matches!(letter, '\'' | '\\') {
            sql.push(letter);
        }
        sql.push(letter);
    }
    sql.push('\'');
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
}
