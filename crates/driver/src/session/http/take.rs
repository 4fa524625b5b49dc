//! What a script takes from an answer: headers, and places in a JSON body.

use crate::error::{Error, Fate, Result};
use crate::session::{Owned, Row, Value};

/// One thing to be taken.
#[derive(Debug, PartialEq)]
pub(super) enum Take {
    /// `header X-Subject-Token`
    Header(String),
    /// `body /user/id`: a JSON pointer (RFC 6901); `body` alone is the whole of it.
    Body(String),
}

impl Take {
    pub fn parse(text: &str) -> Result<Self> {
        match text.split_once(' ').unwrap_or((text, "")) {
            ("header", name) if !name.is_empty() => Ok(Take::Header(name.to_owned())),
            ("body", pointer) if pointer.is_empty() || pointer.starts_with('/') => {
                Ok(Take::Body(pointer.to_owned()))
            }
            _ => Err(Error::user(format!("{text:?} is nothing that an answer has"))
                .hint("write \"header NAME\" or \"body /path/to/value\"")),
        }
    }
}

/// What was taken from one answer: a row with a column for each `Take`.
#[derive(Debug, Default)]
pub(super) struct Taken(Vec<Option<Owned>>);

impl Taken {
    /// Makes room for the values of another answer.
    pub fn start(&mut self, takes: &[Take]) {
        self.0.clear();
        self.0.resize(takes.len(), None);
    }

    /// Notes a header of the answer; of several with one name the first counts.
    pub fn header(&mut self, takes: &[Take], name: &str, value: &[u8]) {
        for (take, taken) in takes.iter().zip(&mut self.0) {
            if taken.is_none() && matches!(take, Take::Header(wanted) if wanted.eq_ignore_ascii_case(name)) {
                *taken = Some(Owned::Text(String::from_utf8_lossy(value).into_owned()));
            }
        }
    }

    /// Takes the values of the body, and complains of what the answer did not have.
    pub fn finish(&mut self, takes: &[Take], body: &[u8]) -> Result<()> {
        if takes.iter().any(|take| matches!(take, Take::Body(_))) {
            let json: serde_json::Value = serde_json::from_slice(body)
                .map_err(|error| missing(format!("the body of the answer is no JSON: {error}")))?;
            for (take, taken) in takes.iter().zip(&mut self.0) {
                if let Take::Body(pointer) = take {
                    *taken = json.pointer(pointer).map(value_of);
                }
            }
        }
        match takes.iter().zip(&self.0).find(|(_, taken)| taken.is_none()) {
            None => Ok(()),
            Some((Take::Header(name), _)) => Err(missing(format!("the answer has no header {name}"))),
            Some((Take::Body(pointer), _)) => Err(missing(format!("the answer's body has no {pointer}"))),
        }
    }
}

impl Row for Taken {
    fn columns(&self) -> usize {
        self.0.len()
    }

    fn value(&self, column: usize) -> Value<'_> {
        self.0.get(column).and_then(Option::as_ref).map_or(Value::Null, Owned::borrow)
    }
}

/// Truth values go as 1 and 0, as those of a database do. Of a list or an object its length is what a script can use.
fn value_of(json: &serde_json::Value) -> Owned {
    match json {
        serde_json::Value::Null => Owned::Null,
        serde_json::Value::Bool(value) => Owned::Int(i64::from(*value)),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => Owned::Int(number),
            None => Owned::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Owned::Text(text.clone()),
        serde_json::Value::Array(items) => Owned::Int(items.len() as i64),
        serde_json::Value::Object(fields) => Owned::Int(fields.len() as i64),
    }
}

fn missing(message: String) -> Error {
    Error::server("value missing", Fate::Failed, message)
        .hint("compare `into` with what the application answers")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(texts: &[&str], headers: &[(&str, &str)], body: &str) -> Result<Vec<Owned>> {
        let takes: Vec<Take> = texts.iter().map(|text| Take::parse(text).unwrap()).collect();
        let mut taken = Taken::default();
        taken.start(&takes);
        headers.iter().for_each(|(name, value)| taken.header(&takes, name, value.as_bytes()));
        taken.finish(&takes, body.as_bytes())?;
        Ok((0..taken.columns()).map(|column| taken.value(column).to_owned()).collect())
    }

    #[test]
    fn values_come_typed_and_in_order() {
        let body =
            r#"{"user":{"id":"ab","age":7,"ratio":0.5,"on":true,"none":null},"users":[1,2,3],"a/b":1}"#;
        let texts = [
            "body /user/id",
            "header X-Subject-Token",
            "body /user/age",
            "body /user/ratio",
            "body /user/on",
            "body /user/none",
            "body /users",
            "body /a~1b",
        ];
        let headers = [("x-subject-token", "gAAA"), ("X-Subject-Token", "later")];
        assert_eq!(
            taken(&texts, &headers, body).unwrap(),
            [
                Owned::Text("ab".to_owned()),
                Owned::Text("gAAA".to_owned()),
                Owned::Int(7),
                Owned::Float(0.5),
                Owned::Int(1),
                Owned::Null,
                Owned::Int(3),
                Owned::Int(1),
            ]
        );
    }

    #[test]
    fn what_is_not_there_is_an_error_of_its_own_kind() {
        for (text, body) in [("header X-A", ""), ("body /id", "{}"), ("body /id", "<html>"), ("body /id", "")]
        {
            assert_eq!(taken(&[text], &[], body).unwrap_err().label(), "value missing", "{text} {body}");
        }
        // Nobody reads a body of which nothing is wanted.
        assert!(taken(&[], &[], "<html>").unwrap().is_empty());
    }

    #[test]
    fn what_no_answer_has_is_refused() {
        for text in ["", "header", "header ", "body user/id", "cookie a"] {
            assert!(Take::parse(text).is_err(), "{text:?}");
        }
    }
}
