//! The small parts of a TOML file: names, statements and expressions.

use super::document::{float, integer, Document, Entry, Section};
use super::expression::{self, Expression};
use super::function::Language;
use super::sql::{self, Stop};
use super::variable::Names;
use toml::de::DeValue;

impl Document<'_> {
    pub fn check_name(&self, at: usize, name: &str) {
        let first = name.bytes().next().unwrap_or(b'0');
        if first.is_ascii_digit() || !name.bytes().all(expression::is_name_byte) {
            self.mistake(
                at,
                format!("{name:?} cannot name a variable"),
                "use letters, digits and _, no digit first",
            );
        }
    }

    /// One statement without a semicolon in its middle.
    pub fn single(&self, at: usize, text: &str) -> sql::Scan {
        let scan = sql::scan(text, 0, false);
        match scan.stop {
            Stop::Unclosed(what) => self.mistake(at, format!("{what} does not end"), "close it"),
            _ if !text[scan.next..].trim().is_empty() => {
                self.mistake(at, "there is more than one statement", "put each into a text of its own");
            }
            _ if scan.pieces.is_empty() => self.mistake(at, "there is no statement", "write one"),
            _ => {}
        }
        scan
    }

    /// An expression: a text in the language, or a plain number or truth value.
    pub fn expression(&self, entry: &Entry<'_>, names: &mut Names) -> Expression {
        let at = entry.span().start;
        names.line = self.source.line(at);
        let value = entry.get_ref();
        match (value, integer(value), float(value)) {
            (_, Some(number), _) => Expression::Int(number),
            (_, _, Some(number)) => Expression::Double(number),
            (DeValue::Boolean(value), ..) => Expression::Bool(*value),
            (DeValue::String(text), ..) => {
                expression::parse(text, Language::Extended, names).unwrap_or_else(|fault| {
                    let place = if text.is_empty() { String::new() } else { format!(" in {text:?}") };
                    self.mistake(at, format!("{}{place}", fault.message), fault.hint);
                    Expression::Null
                })
            }
            _ => {
                self.mistake(
                    at,
                    "this is no expression",
                    "write a number or a text such as \"uniform(1, 10)\"",
                );
                Expression::Null
            }
        }
    }

    /// The variables named by `into`: one or a list.
    pub fn captured(&self, section: &Section<'_>, names: &mut Names) -> Vec<usize> {
        let Some(entry) = section.get("into") else { return Vec::new() };
        let entries = match entry.get_ref() {
            DeValue::Array(entries) => entries.iter().collect(),
            _ => vec![entry],
        };
        let mut slots = Vec::new();
        for entry in entries {
            match entry.get_ref().as_str() {
                Some(name) => {
                    self.check_name(entry.span().start, name);
                    slots.push(names.write(name));
                }
                None => {
                    self.mistake(entry.span().start, "into names variables", "write into = [\"a\", \"b\"]")
                }
            }
        }
        slots
    }
}
