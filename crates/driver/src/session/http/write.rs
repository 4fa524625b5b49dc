//! Values in the places of a request, each written so that it stays within its place.

use crate::error::{Error, Result};
use crate::session::Value;
use std::io::Write;

/// What stands around a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A path or a query: percent-encoded.
    Path,
    /// A header's value: as it is, without control characters.
    Header,
    /// A whole JSON value: a number stays one, text is quoted.
    Json,
    /// Within a JSON text: escaped.
    JsonText,
}

/// Appends a value.
pub(super) fn put(place: Place, value: Value<'_>, out: &mut Vec<u8>) -> Result<()> {
    match (place, value) {
        (_, Value::Bytes(_)) => {
            Err(Error::user("bytes have no place in a request").hint("give a text, such as digits"))
        }
        (_, Value::Float(number)) if !number.is_finite() => {
            Err(Error::user(format!("{number} has no place in a request")))
        }
        (Place::Json, Value::Null) => {
            out.extend_from_slice(b"null");
            Ok(())
        }
        (_, Value::Null) => Err(Error::user("a null stands in a path, a header or a text")),
        (_, Value::Int(number)) => {
            // Writing to a Vec cannot fail.
            let _ = write!(out, "{number}");
            Ok(())
        }
        (_, Value::Float(number)) => {
            let _ = write!(out, "{number}");
            Ok(())
        }
        (Place::Path, Value::Text(text)) => {
            put_percent_encoded(text, out);
            Ok(())
        }
        (Place::Header, Value::Text(text)) => put_header(text, out),
        (Place::Json, Value::Text(text)) => put_json(text, out),
        (Place::JsonText, Value::Text(text)) => {
            let from = out.len();
            put_json(text, out)?;
            out.pop();
            out.remove(from);
            Ok(())
        }
    }
}

fn put_percent_encoded(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

fn put_header(text: &str, out: &mut Vec<u8>) -> Result<()> {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(Error::user("a value for a header has a control character"));
    }
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// With its quotes.
fn put_json(text: &str, out: &mut Vec<u8>) -> Result<()> {
    serde_json::to_writer(out, text).map_err(|error| Error::internal(format!("a text as JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(place: Place, value: Value<'_>) -> String {
        let mut out = Vec::new();
        put(place, value, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_place_has_its_own_form() {
        let text = Value::Text("a \"b\"/ü");
        assert_eq!(written(Place::Path, text), "a%20%22b%22%2F%C3%BC");
        assert_eq!(written(Place::Header, text), "a \"b\"/ü");
        assert_eq!(written(Place::Json, text), "\"a \\\"b\\\"/ü\"");
        assert_eq!(written(Place::JsonText, text), "a \\\"b\\\"/ü");
        assert_eq!(written(Place::Json, Value::Float(0.5)), "0.5");
        assert_eq!(written(Place::Json, Value::Null), "null");
        assert_eq!(written(Place::Path, Value::Int(-3)), "-3");
    }

    #[test]
    fn what_has_no_form_is_refused() {
        for (place, value) in [
            (Place::Header, Value::Text("a\nb")),
            (Place::Path, Value::Null),
            (Place::Json, Value::Bytes(b"a")),
            (Place::Json, Value::Float(f64::NAN)),
        ] {
            assert!(put(place, value, &mut Vec::new()).is_err(), "{place:?} {value:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_comes_back_from_json(text in "\\PC*|[\\x00-\\x7f]*") {
            let whole = written(Place::Json, Value::Text(&text));
            prop_assert_eq!(serde_json::from_str::<String>(&whole).unwrap(), text.clone());
            let piece = written(Place::JsonText, Value::Text(&text));
            prop_assert_eq!(serde_json::from_str::<String>(&format!("\"{piece}\"")).unwrap(), text);
        }
    }
}
