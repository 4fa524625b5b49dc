//! A request with places for values. Its text is written for `Session::prepare`, not for people:
//!
//! ```text
//! POST /v3/users/MARK
//! X-Auth-Token: MARK
//! < 201
//! < body /user/id
//!
//! {"user":{"name":MARK}}
//! ```
//! A line with `<` says what is expected of the answer (a status) or taken from it. Without a status any of 200 to 299
//! will do. Where a `MARK` stands decides how its value is written.

use super::take::Take;
use super::write::{self, Place};
use crate::error::{Error, Result};
use crate::session::Value;
use std::io::Write;

/// Stands for a value: neither a head nor JSON may hold this character, so it needs no escape.
pub const MARK: char = '\u{1a}';

/// Headers that the session writes itself.
const OWN_HEADERS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];

#[derive(Debug)]
pub(super) struct Template {
    /// Method and path as they were written, for messages.
    asked: String,
    method: String,
    head: Vec<Part>,
    body: Vec<Part>,
    values: usize,
    statuses: Vec<u16>,
    takes: Vec<Take>,
}

#[derive(Debug, PartialEq)]
enum Part {
    Text(String),
    Value(Place),
}

impl Template {
    /// Reads a request's text; `host` is the value of the header of that name.
    pub fn parse(text: &str, host: &str) -> Result<Self> {
        let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let first = lines.next().unwrap_or_default();
        let (method, path) = first
            .split_once(' ')
            .filter(|(method, path)| is_method(method) && is_path(path))
            .ok_or_else(|| no_request(first))?;
        let mut template = Template {
            asked: first.replace(MARK, ":"),
            method: method.to_owned(),
            head: vec![Part::Text(format!("{method} "))],
            body: parts_of_json(body),
            values: 0,
            statuses: Vec::new(),
            takes: Vec::new(),
        };
        template.put_parts(path, Place::Path);
        template.put_parts(&format!(" HTTP/1.1\r\nHost: {host}\r\n"), Place::Header);
        let mut typed = body.is_empty();
        for line in lines {
            match line.strip_prefix("< ") {
                Some(expected) => template.expect(expected)?,
                None => typed |= template.header(line)?.eq_ignore_ascii_case("content-type"),
            }
        }
        if !typed {
            template.put_parts("Content-Type: application/json\r\n", Place::Header);
        }
        let all = template.head.iter().chain(&template.body);
        template.values = all.filter(|part| matches!(part, Part::Value(_))).count();
        Ok(template)
    }

    /// Takes in a line `Name: value` and gives the name.
    fn header<'l>(&mut self, line: &'l str) -> Result<&'l str> {
        let wrong = |what: &str| Error::user(format!("the header {:?} {what}", line.replace(MARK, ":")));
        let (name, value) = line.split_once(": ").ok_or_else(|| wrong("has no value"))?;
        if !is_token(name) || !value.chars().all(|letter| letter == MARK || !letter.is_control()) {
            return Err(wrong("has a character that no header may have"));
        }
        if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return Err(wrong("is written by the driver").hint("leave it out"));
        }
        self.put_parts(&format!("{name}: {value}\r\n"), Place::Header);
        Ok(name)
    }

    /// Takes in what follows `<`.
    fn expect(&mut self, expected: &str) -> Result<()> {
        match expected.parse::<u16>() {
            Ok(status) => self.statuses.push(status),
            Err(_) => self.takes.push(Take::parse(expected)?),
        }
        Ok(())
    }

    fn put_parts(&mut self, text: &str, place: Place) {
        for (number, piece) in text.split(MARK).enumerate() {
            if number > 0 {
                self.head.push(Part::Value(place));
            }
            if !piece.is_empty() {
                self.head.push(Part::Text(piece.to_owned()));
            }
        }
    }

    pub fn asked(&self) -> &str {
        &self.asked
    }

    /// Whether it asks for a head alone, whose answer has no body whatever it announces.
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// Whether it changes nothing, by what RFC 9110 says of its method.
    pub fn is_safe(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }

    pub fn takes(&self) -> &[Take] {
        &self.takes
    }

    pub fn accepts(&self, status: u16) -> bool {
        match &self.statuses[..] {
            [] => (200..300).contains(&status),
            statuses => statuses.contains(&status),
        }
    }

    /// Appends the request with its values to `out`; `body` is memory to write its body in. On an error `out` is as
    /// it was.
    pub fn put(&self, values: &[Value<'_>], body: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<()> {
        if values.len() != self.values {
            let message = format!("{} takes {} values and got {}", self.asked, self.values, values.len());
            return Err(Error::internal(message));
        }
        let from = out.len();
        let outcome = self.put_all(values, body, out);
        if outcome.is_err() {
            out.truncate(from);
        }
        outcome.map_err(|error| error.at(&self.asked))
    }

    fn put_all(&self, values: &[Value<'_>], body: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<()> {
        let mut values = values.iter();
        put(&self.head, &mut values, out)?;
        body.clear();
        put(&self.body, &mut values, body)?;
        // A POST without a body says so; of a GET nobody expects one.
        if !body.is_empty() || matches!(self.method.as_str(), "POST" | "PUT" | "PATCH") {
            // Writing to a Vec cannot fail.
            let _ = write!(out, "Content-Length: {}\r\n", body.len());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
        Ok(())
    }
}

fn put(parts: &[Part], values: &mut std::slice::Iter<'_, Value<'_>>, out: &mut Vec<u8>) -> Result<()> {
    for part in parts {
        match part {
            Part::Text(text) => out.extend_from_slice(text.as_bytes()),
            Part::Value(place) => write::put(*place, *values.next().unwrap_or(&Value::Null), out)?,
        }
    }
    Ok(())
}

/// Divides JSON at its marks: within quotes stands a piece of text, elsewhere a whole value.
fn parts_of_json(json: &str) -> Vec<Part> {
    let (mut parts, mut literal) = (Vec::new(), String::new());
    let (mut quoted, mut escaped) = (false, false);
    for letter in json.chars() {
        if letter == MARK {
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            parts.push(Part::Value(if quoted { Place::JsonText } else { Place::Json }));
            continue;
        }
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ => {}
        }
        literal.push(letter);
    }
    if !literal.is_empty() {
        parts.push(Part::Text(literal));
    }
    parts
}

fn is_method(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.chars().all(|letter| letter == MARK || letter.is_ascii_graphic())
}

/// What RFC 9110 calls a token: the characters of a header's name.
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn no_request(line: &str) -> Error {
    Error::user(format!("{:?} is no request to an application", line.replace(MARK, ":")))
        .hint("drive an application by a script with requests such as \"GET /users/:id\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(text: &str, values: &[Value<'_>]) -> Result<String> {
        let (mut body, mut out) = (Vec::new(), Vec::new());
        Template::parse(text, "h:80")?.put(values, &mut body, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_request_is_written_as_the_protocol_has_it() {
        let text = "POST /v3/users/\u{1a}?all\nX-Auth-Token: \u{1a}\n< 201\n\n\
                    {\"n\":\u{1a},\"t\":\"a\\\"\u{1a}\"}";
        let values = [Value::Text("a/b"), Value::Text("secret"), Value::Int(7), Value::Text("\"q\"")];
        assert_eq!(
            sent(text, &values).unwrap(),
            "POST /v3/users/a%2Fb?all HTTP/1.1\r\nHost: h:80\r\nX-Auth-Token: secret\r\n\
             Content-Type: application/json\r\nContent-Length: 22\r\n\r\n{\"n\":7,\"t\":\"a\\\"\\\"q\\\"\"}"
        );
    }

    #[test]
    fn only_what_has_a_body_announces_one() {
        assert_eq!(sent("GET /a", &[]).unwrap(), "GET /a HTTP/1.1\r\nHost: h:80\r\n\r\n");
        assert_eq!(
            sent("POST /a", &[]).unwrap(),
            "POST /a HTTP/1.1\r\nHost: h:80\r\nContent-Length: 0\r\n\r\n"
        );
        let own = sent("PUT /a\nContent-Type: text/json\n\n1", &[]).unwrap();
        assert_eq!(own.matches("Content-Type").count(), 1);
    }

    #[test]
    fn statuses_and_captures_are_kept() {
        let template = Template::parse("GET /a\n< 200\n< 404\n< body /id", "h").unwrap();
        assert!(template.accepts(404) && !template.accepts(201));
        assert_eq!(template.takes().len(), 1);
        let any = Template::parse("HEAD /a", "h").unwrap();
        assert!(any.is_head() && any.accepts(204) && !any.accepts(301));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let wrong = [
            "",
            "SELECT 1",
            "DROP TABLE IF EXISTS a",
            "GET a",
            "GET /a b",
            "GET /a\nHost: other",
            "GET /a\nno header",
            "GET /a\nB ad: 1",
            "GET /a\n< somewhere else",
        ];
        for text in wrong {
            assert!(Template::parse(text, "h").is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_value_cannot_add_a_header() {
        let (mut body, mut out) = (Vec::new(), b"before".to_vec());
        let template = Template::parse("GET /a\nX-Token: \u{1a}", "h").unwrap();
        let error = template.put(&[Value::Text("a\r\nEvil: 1")], &mut body, &mut out).unwrap_err();
        assert!(error.message().starts_with("GET /a: "), "{error}");
        assert_eq!(out, b"before");
    }
}
