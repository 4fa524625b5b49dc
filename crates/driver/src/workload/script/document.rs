//! A TOML document as its reader wants it: typed questions, and every mistake noted with its line.

use super::mistake::{Mistakes, Source};
use crate::workload::options;
use std::cell::RefCell;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

pub type Entry<'a> = Spanned<DeValue<'a>>;

/// A document's text and the mistakes found in it so far.
pub struct Document<'a> {
    pub source: Source<'a>,
    pub mistakes: RefCell<Mistakes>,
}

impl Document<'_> {
    pub fn mistake(&self, at: usize, message: impl Into<String>, hint: impl Into<String>) {
        self.mistakes.borrow_mut().add(self.source.place(at), message, hint);
    }
}

/// One table of a document.
#[derive(Clone, Copy)]
pub struct Section<'a> {
    pub document: &'a Document<'a>,
    table: &'a DeTable<'a>,
    /// Where it starts, in bytes.
    pub at: usize,
    /// What it is called in messages.
    what: &'a str,
}

impl<'a> Section<'a> {
    /// Names the keys that `table` may have; others are mistakes.
    pub fn new(
        document: &'a Document<'a>,
        table: &'a DeTable<'a>,
        at: usize,
        what: &'a str,
        keys: &[&'static str],
    ) -> Self {
        for key in table.keys() {
            if !keys.contains(&key.get_ref().as_ref()) {
                let unknown =
                    options::unknown(&format!("key of {what}"), key.get_ref(), keys.iter().copied());
                document.mistake(key.span().start, unknown.message(), unknown.hint_text());
            }
        }
        Section { document, table, at, what }
    }

    pub fn get(&self, key: &str) -> Option<&'a Entry<'a>> {
        self.table.get(key)
    }

    fn typed<T>(&self, key: &str, wanted: &str, take: impl Fn(&'a DeValue<'a>) -> Option<T>) -> Option<T> {
        let entry = self.get(key)?;
        let taken = take(entry.get_ref());
        if taken.is_none() {
            self.document.mistake(entry.span().start, format!("{key} of {} is not {wanted}", self.what), "");
        }
        taken
    }

    pub fn text(&self, key: &str) -> Option<(usize, &'a str)> {
        let text = self.typed(key, "a text in quotes", DeValue::as_str)?;
        Some((self.start_of(key), text))
    }

    /// A text that must be there.
    pub fn required_text(&self, key: &str) -> Option<(usize, &'a str)> {
        if self.get(key).is_none() {
            self.document.mistake(
                self.at,
                format!("{} has no {key}", self.what),
                format!("add {key} = \"...\""),
            );
        }
        self.text(key)
    }

    pub fn flag(&self, key: &str) -> Option<bool> {
        self.typed(key, "true or false", DeValue::as_bool)
    }

    pub fn integer(&self, key: &str) -> Option<i64> {
        self.typed(key, "a whole number", integer)
    }

    pub fn array(&self, key: &str) -> &'a [Entry<'a>] {
        self.typed(key, "a list in [ ]", DeValue::as_array).map_or(&[], |array| array)
    }

    /// Names and values of a table, in the order in which they are written.
    pub fn entries(&self, key: &str) -> Vec<(usize, &'a str, &'a Entry<'a>)> {
        let Some(table) = self.typed(key, "a table", DeValue::as_table) else { return Vec::new() };
        table.iter().map(|(name, entry)| (name.span().start, name.get_ref().as_ref(), entry)).collect()
    }

    /// The section `[key]`; empty where there is none.
    pub fn section(&self, key: &'static str, keys: &[&'static str]) -> Option<Section<'a>> {
        let table = self.typed(key, "a table", DeValue::as_table)?;
        Some(Section::new(self.document, table, self.start_of(key), key, keys))
    }

    /// The sections `[[key]]`.
    pub fn sections(&self, key: &'static str, keys: &[&'static str]) -> Vec<Section<'a>> {
        let each = self.array(key).iter().filter_map(|entry| match entry.get_ref() {
            DeValue::Table(table) => Some(Section::new(self.document, table, entry.span().start, key, keys)),
            _ => {
                self.document.mistake(
                    entry.span().start,
                    format!("{key} must be tables"),
                    format!("write [[{key}]]"),
                );
                None
            }
        });
        each.collect()
    }

    fn start_of(&self, key: &str) -> usize {
        self.get(key).map_or(self.at, |entry| entry.span().start)
    }
}

pub fn integer(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok()
}

pub fn float(value: &DeValue<'_>) -> Option<f64> {
    value.as_float()?.as_str().replace('_', "").parse().ok()
}
