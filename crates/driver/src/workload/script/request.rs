//! A request to an application, as a TOML file has it, turned into the text that a session prepares.

use super::document::{float, integer, Document, Entry, Section};
use super::expression::is_name_byte;
use super::sql::{Piece, Position};
use super::variable::Names;
use crate::session::REQUEST_MARK;
use toml::de::DeValue;

/// The keys of a statement that say more of its request.
pub const KEYS: [&str; 3] = ["headers", "body", "expect"];

/// A request as it was read: its text with variables in it, and the variables that take something from the answer.
pub struct Request {
    pub pieces: Vec<Piece>,
    pub into: Vec<usize>,
}

/// Whether an entry of a list of statements is a request.
pub fn is_request(entry: &Entry<'_>) -> bool {
    entry.get_ref().as_table().is_some_and(|table| table.contains_key("request"))
}

/// Reads the request of a statement; `None` where it has none.
pub fn read(section: &Section<'_>, names: &mut Names) -> Option<Request> {
    let (at, line) = section.text("request")?;
    let mut writer = Writer { document: section.document, pieces: Vec::new(), literal: String::new() };
    writer.line(at, line);
    for (at, name, entry) in section.entries("headers") {
        match entry.get_ref().as_str() {
            Some(value) => writer.line(at, &format!("{name}: {value}")),
            None => section.document.mistake(at, format!("the header {name} is no text"), "put it in quotes"),
        }
    }
    writer.statuses(section);
    let mut into = Vec::new();
    for (at, name, entry) in section.entries("into") {
        section.document.check_name(at, name);
        match entry.get_ref().as_str() {
            Some(place) => writer.expect(at, place),
            None => section.document.mistake(
                at,
                format!("{name} does not say what it takes"),
                "write \"body /path/to/value\" or \"header NAME\"",
            ),
        }
        into.push(names.write(name));
    }
    if let Some(body) = section.get("body") {
        writer.literal.push('\n');
        writer.json(body);
    }
    writer.flush();
    Some(Request { pieces: writer.pieces, into })
}

struct Writer<'a> {
    document: &'a Document<'a>,
    pieces: Vec<Piece>,
    /// Text that has not become a piece yet.
    literal: String,
}

impl Writer<'_> {
    fn flush(&mut self) {
        if !self.literal.is_empty() {
            self.pieces.push(Piece::Text(std::mem::take(&mut self.literal)));
        }
    }

    fn variable(&mut self, name: &str) {
        self.flush();
        self.pieces.push(Piece::Variable { name: name.to_owned(), position: Position::Value });
    }

    /// A line of the request's head.
    fn line(&mut self, at: usize, text: &str) {
        if text.contains(|letter: char| letter.is_control()) {
            let hint = "path and headers are one line each";
            return self.document.mistake(at, "a request has a control character", hint);
        }
        self.template(text, |literal| literal.to_owned());
        self.literal.push('\n');
    }

    /// Text in which `:name` stands for a variable and `::` for a colon.
    fn template(&mut self, text: &str, write: impl Fn(&str) -> String) {
        let mut rest = text;
        while let Some(colon) = rest.find(':') {
            let behind = &rest[colon + 1..];
            let name = name_at(behind);
            let kept = if name.is_empty() { colon + 1 } else { colon };
            self.literal.push_str(&write(&rest[..kept]));
            if !name.is_empty() {
                self.variable(name);
            }
            rest = match name.is_empty() {
                true => behind.strip_prefix(':').unwrap_or(behind),
                false => &behind[name.len()..],
            };
        }
        self.literal.push_str(&write(rest));
    }

    /// What is expected of the answer or taken from it.
    fn expect(&mut self, at: usize, text: &str) {
        let known = text == "body" || text.starts_with("body /") || text.starts_with("header ");
        if !known || text.contains(|letter: char| letter.is_control()) {
            let hint = "write \"body /path/to/value\" or \"header NAME\"";
            return self.document.mistake(at, format!("an answer has no {text:?}"), hint);
        }
        self.literal.push_str(&format!("< {text}\n"));
    }

    /// The statuses of `expect`: one or a list.
    fn statuses(&mut self, section: &Section<'_>) {
        let Some(entry) = section.get("expect") else { return };
        let entries = match entry.get_ref() {
            DeValue::Array(entries) => entries.iter().collect(),
            _ => vec![entry],
        };
        for entry in entries {
            match integer(entry.get_ref()) {
                Some(status @ 200..=599) => self.literal.push_str(&format!("< {status}\n")),
                _ => self.document.mistake(
                    entry.span().start,
                    "expect is no status of HTTP",
                    "write expect = 201, or expect = [200, 404]",
                ),
            }
        }
    }

    /// A value as JSON. A text that is one variable and nothing else becomes that variable's value, of its type.
    fn json(&mut self, entry: &Entry<'_>) {
        let value = entry.get_ref();
        match (value, integer(value), float(value)) {
            (_, Some(number), _) => self.literal.push_str(&number.to_string()),
            (_, _, Some(number)) if number.is_finite() => {
                self.literal.push_str(&serde_json::Value::from(number).to_string());
            }
            (DeValue::Boolean(value), ..) => self.literal.push_str(&value.to_string()),
            (DeValue::String(text), ..) => self.json_text(text),
            (DeValue::Array(entries), ..) => {
                self.literal.push('[');
                for (number, entry) in entries.iter().enumerate() {
                    self.literal.push_str(if number > 0 { "," } else { "" });
                    self.json(entry);
                }
                self.literal.push(']');
            }
            (DeValue::Table(table), ..) => {
                self.literal.push('{');
                for (number, (name, entry)) in table.iter().enumerate() {
                    self.literal.push_str(if number > 0 { "," } else { "" });
                    self.literal.push_str(&format!("\"{}\":", escaped(name.get_ref())));
                    self.json(entry);
                }
                self.literal.push('}');
            }
            _ => self.document.mistake(
                entry.span().start,
                "this value has no form in JSON",
                "write a number, a text, true, false, a list or a table",
            ),
        }
    }

    fn json_text(&mut self, text: &str) {
        match text.strip_prefix(':') {
            Some(name) if !name.is_empty() && name_at(name) == name => self.variable(name),
            _ => {
                self.literal.push('"');
                self.template(text, escaped);
                self.literal.push('"');
            }
        }
    }
}

/// The name at the start of a text; empty where there is none.
fn name_at(text: &str) -> &str {
    if text.starts_with(|letter: char| letter.is_ascii_digit()) {
        return "";
    }
    let end = text.bytes().position(|byte| !is_name_byte(byte)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// A piece of a JSON text without quotes around it. JSON escapes control characters, so no `REQUEST_MARK` comes out.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    debug_assert!(!quoted.contains(REQUEST_MARK));
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::mistake::{Mistakes, Source};
    use super::*;
    use toml::de::DeTable;

    const KNOWN: [&str; 5] = ["request", "headers", "body", "expect", "into"];

    /// The text of a request with `<name>` for variables, and the names that it sets; or its mistakes.
    fn request(toml: &str) -> Result<(String, Vec<String>), String> {
        let source = Source { name: "a.toml", text: toml };
        let document = Document { source, mistakes: Mistakes::default().into() };
        let (root, _) = DeTable::parse_recoverable(toml);
        let section = Section::new(&document, root.get_ref(), 0, "a statement", &KNOWN);
        let mut names = Names::default();
        let request = read(&section, &mut names).expect("a request");
        document.mistakes.take().or(()).map_err(|error| error.to_string())?;
        let text = request.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Variable { name, .. } => format!("<{name}>"),
        });
        Ok((text.collect(), request.into.iter().map(|slot| names.all()[*slot].clone()).collect()))
    }

    #[test]
    fn a_request_is_written_with_its_variables() {
        let toml = "request = \"POST /v3/users/:id?at=::x\"\n\
                    headers = { X-Auth-Token = \":token\" }\n\
                    expect = [201, 409]\n\
                    into = { key = \"body /user/id\", mark = \"header X-Mark\" }\n\
                    body.user = { name = \":name\", mail = \"\\\"a\\\" :name@b\", on = true, n = [1, 0.5] }";
        let (text, names) = request(toml).unwrap();
        assert_eq!(
            text,
            "POST /v3/users/<id>?at=:x\nX-Auth-Token: <token>\n< 201\n< 409\n< body /user/id\n\
             < header X-Mark\n\n{\"user\":{\"name\":<name>,\"mail\":\"\\\"a\\\" <name>@b\",\"on\":true,\"n\":[1,0.5]}}"
        );
        assert_eq!(names, ["key", "mark"]);
    }

    #[test]
    fn a_colon_before_no_name_stays() {
        let (text, _) = request("request = \"GET /a:1/b: /c::d/e\"").unwrap();
        assert_eq!(text, "GET /a:1/b: /c:d/e\n");
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (toml, told) in [
            ("request = \"GET /\"\nexpect = \"ok\"", "a.toml:2: expect is no status"),
            ("request = \"GET /\"\ninto = { a = \"cookie b\" }", "a.toml:2: an answer has no"),
            ("request = \"GET /\"\nbody = 2024-01-01", "a.toml:2: this value has no form in JSON"),
            ("request = \"GET /\\n\"", "a.toml:1: a request has a control character"),
            ("request = \"GET /\"\nheaders = { A = 1 }", "a.toml:2: the header A is no text"),
        ] {
            let mistakes = request(toml).unwrap_err();
            assert!(mistakes.contains(told), "{mistakes}");
        }
    }
}
