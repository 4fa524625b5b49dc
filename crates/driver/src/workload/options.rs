//! The options of workloads: what there are, their types and limits, and how a job's values are checked.

use crate::error::{Error, Result};
use crate::session::Target;
use serde::Serialize;
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;
use strsim::levenshtein;

/// What there is to know of a workload before it is made.
#[derive(Debug)]
pub struct About {
    pub name: &'static str,
    pub description: &'static str,
    pub options: &'static [OptionSpec],
    pub transactions: &'static [&'static str],
    pub read_only: bool,
    /// Whether each of its transactions writes a row into the ledger, where the job has one.
    pub keeps_ledger: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    pub name: &'static str,
    pub kind: OptionType,
    pub help: &'static str,
    /// Data made with one value of it serve a run with any other.
    pub shapes_data: bool,
    /// Where it is on, no transaction writes.
    pub reads_only: bool,
    /// Where it is on, the server must have procedures (`Dialect::procedures`).
    pub needs_procedures: bool,
}

/// The type of an option with its default and what is allowed.
#[derive(Clone, Copy, Debug)]
pub enum OptionType {
    Int {
        default: i64,
        min: i64,
        max: i64,
    },
    Float {
        default: f64,
        min: f64,
        max: f64,
    },
    Bool {
        default: bool,
    },
    Choice {
        default: &'static str,
        allowed: &'static [&'static str],
    },
    Text {
        default: &'static str,
    },
    /// A number, or the one word that stands for something else.
    NumberOr {
        default: f64,
        min: f64,
        max: f64,
        word: &'static str,
    },
}

/// An option whose values are of type `T`: declared once, and asked for by its declaration.
#[derive(Clone, Copy, Debug)]
pub struct Typed<T> {
    spec: OptionSpec,
    values: PhantomData<T>,
}

impl<T> Typed<T> {
    const fn new(name: &'static str, kind: OptionType, help: &'static str) -> Self {
        Typed {
            spec: OptionSpec {
                name,
                kind,
                help,
                shapes_data: true,
                reads_only: false,
                needs_procedures: false,
            },
            values: PhantomData,
        }
    }

    /// The same option as one that only the run looks at, so that it does not shape the data.
    pub const fn for_the_run(mut self) -> Self {
        self.spec.shapes_data = false;
        self
    }

    /// What there is to know of it.
    pub const fn spec(&self) -> OptionSpec {
        self.spec
    }
}

impl Typed<i64> {
    pub const fn int(name: &'static str, default: i64, min: i64, max: i64, help: &'static str) -> Self {
        Typed::new(name, OptionType::Int { default, min, max }, help)
    }
}

impl Typed<f64> {
    pub const fn float(name: &'static str, default: f64, min: f64, max: f64, help: &'static str) -> Self {
        Typed::new(name, OptionType::Float { default, min, max }, help)
    }
}

impl Typed<bool> {
    pub const fn flag(name: &'static str, default: bool, help: &'static str) -> Self {
        Typed::new(name, OptionType::Bool { default }, help)
    }

    /// Where it is on, no transaction writes.
    pub const fn that_only_reads(mut self) -> Self {
        self.spec.reads_only = true;
        self
    }

    /// Where it is on, the server must have procedures.
    pub const fn that_needs_procedures(mut self) -> Self {
        self.spec.needs_procedures = true;
        self
    }
}

impl Typed<&'static str> {
    pub const fn choice(
        name: &'static str,
        default: &'static str,
        allowed: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Typed::new(name, OptionType::Choice { default, allowed }, help)
    }

    pub const fn text(name: &'static str, default: &'static str, help: &'static str) -> Self {
        Typed::new(name, OptionType::Text { default }, help)
    }
}

impl Typed<Value> {
    pub const fn number_or(
        name: &'static str,
        default: f64,
        min: f64,
        max: f64,
        word: &'static str,
        help: &'static str,
    ) -> Self {
        Typed::new(name, OptionType::NumberOr { default, min, max, word }, help)
    }
}

impl OptionSpec {
    fn default(&self) -> Value {
        match self.kind {
            OptionType::Int { default, .. } => json!(default),
            OptionType::Float { default, .. } | OptionType::NumberOr { default, .. } => json!(default),
            OptionType::Bool { default } => json!(default),
            OptionType::Choice { default, .. } | OptionType::Text { default } => json!(default),
        }
    }

    fn allowed(&self) -> String {
        match self.kind {
            OptionType::Int { min, max, .. } => format!("a whole number of {min} to {max}"),
            OptionType::Float { min, max, .. } => format!("a number of {min} to {max}"),
            OptionType::Bool { .. } => "true or false".to_owned(),
            OptionType::Choice { allowed, .. } => format!("one of {}", allowed.join(", ")),
            OptionType::Text { .. } => "a text".to_owned(),
            OptionType::NumberOr { min, max, word, .. } => format!("a number of {min} to {max}, or {word}"),
        }
    }

    fn accepts(&self, value: &Value) -> bool {
        match self.kind {
            OptionType::Int { min, max, .. } => value.as_i64().is_some_and(|n| (min..=max).contains(&n)),
            OptionType::Float { min, max, .. } => value.as_f64().is_some_and(|x| (min..=max).contains(&x)),
            OptionType::Bool { .. } => value.is_boolean(),
            OptionType::Choice { allowed, .. } => value.as_str().is_some_and(|text| allowed.contains(&text)),
            OptionType::Text { .. } => value.is_string(),
            OptionType::NumberOr { min, max, word, .. } => {
                value.as_str() == Some(word) || value.as_f64().is_some_and(|x| (min..=max).contains(&x))
            }
        }
    }

    fn describe(&self) -> Value {
        let (kind, allowed) = match self.kind {
            OptionType::Int { min, max, .. } => ("int", json!({"min": min, "max": max})),
            OptionType::Float { min, max, .. } => ("float", json!({"min": min, "max": max})),
            OptionType::Bool { .. } => ("bool", Value::Null),
            OptionType::Choice { allowed, .. } => ("choice", json!(allowed)),
            OptionType::Text { .. } => ("text", Value::Null),
            OptionType::NumberOr { min, max, word, .. } => {
                ("number_or", json!({"min": min, "max": max, "word": word}))
            }
        };
        json!({"name": self.name, "type": kind, "default": self.default(), "allowed": allowed, "help": self.help,
               "shapes_data": self.shapes_data, "reads_only": self.reads_only,
               "needs_procedures": self.needs_procedures})
    }
}

impl Serialize for About {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        json!({
            "name": self.name,
            "description": self.description,
            "options": self.options.iter().map(OptionSpec::describe).collect::<Vec<_>>(),
            "transactions": self.transactions,
            "read_only": self.read_only,
            "keeps_ledger": self.keeps_ledger,
        })
        .serialize(serializer)
    }
}

/// What a job says beside its options. Few workloads look at it before they are given a session.
#[derive(Clone, Debug)]
pub struct Circumstances {
    /// `None` where the workload is looked at without a server.
    pub target: Option<Target>,
    pub clients: u32,
    pub seed: u64,
    pub duration_s: f64,
    pub operations: Option<u64>,
    /// 0 in closed loop.
    pub rate_per_s: f64,
    /// What relative paths among the options count from; empty: the process's own folder.
    pub folder: PathBuf,
    /// The second of a recording at which its replay ends; `None` plays all of it.
    pub until_s: Option<f64>,
}

impl Default for Circumstances {
    fn default() -> Self {
        Circumstances {
            target: None,
            clients: 1,
            seed: 0,
            duration_s: 0.0,
            operations: None,
            rate_per_s: 0.0,
            folder: PathBuf::new(),
            until_s: None,
        }
    }
}

/// A value for every option of a workload.
#[derive(Clone, Debug)]
pub struct Options {
    values: BTreeMap<&'static str, Value>,
    circumstances: Circumstances,
}

impl Options {
    /// Fills in defaults and refuses unknown names and values that are not allowed.
    pub fn resolve(
        about: &'static About,
        given: &Map<String, Value>,
        circumstances: &Circumstances,
    ) -> Result<Self> {
        let mut values: BTreeMap<&'static str, Value> =
            about.options.iter().map(|option| (option.name, option.default())).collect();
        for (name, value) in given {
            let Some(option) = about.options.iter().find(|option| option.name == name) else {
                let what = format!("option of {}", about.name);
                return Err(unknown(&what, name, about.options.iter().map(|option| option.name)));
            };
            if !option.accepts(value) {
                return Err(Error::user(format!("option {name} of {} cannot be {value}", about.name))
                    .hint(format!("give {}", option.allowed())));
            }
            values.insert(option.name, value.clone());
        }
        Ok(Options { values, circumstances: circumstances.clone() })
    }

    /// The value of an option; 0 where this member of a family of workloads has no such option.
    pub fn int(&self, option: Typed<i64>) -> i64 {
        self.value(option).and_then(Value::as_i64).unwrap_or_default()
    }

    /// Like `int`.
    pub fn float(&self, option: Typed<f64>) -> f64 {
        self.value(option).and_then(Value::as_f64).unwrap_or_default()
    }

    /// Like `int`: false where there is no such option.
    pub fn flag(&self, option: Typed<bool>) -> bool {
        self.value(option).and_then(Value::as_bool).unwrap_or_default()
    }

    /// Like `int`: empty where there is no such option.
    pub fn text(&self, option: Typed<&'static str>) -> &str {
        self.value(option).and_then(Value::as_str).unwrap_or_default()
    }

    /// The value as the job gives it, of an option of any type.
    pub fn value<T>(&self, option: Typed<T>) -> Option<&Value> {
        self.values.get(option.spec.name)
    }

    pub fn circumstances(&self) -> &Circumstances {
        &self.circumstances
    }
}

/// The options of a workload that is a file: those that are not the workload's `own` are the file's, and become its
/// `variables`.
pub(super) fn of_file(
    file: &str,
    given: &Map<String, Value>,
    own: impl Fn(&str) -> bool,
) -> Map<String, Value> {
    let (mut options, mut variables) = (Map::new(), Vec::new());
    for (name, value) in given {
        if own(name) {
            options.insert(name.clone(), value.clone());
        } else {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            variables.push(format!("{name}={text}"));
        }
    }
    if let Some(text) = options.get("variables").and_then(Value::as_str) {
        variables.push(text.to_owned());
    }
    options.insert("variables".to_owned(), variables.join(",").into());
    options.insert("file".to_owned(), file.into());
    options
}

/// The error for a name that does not exist: names the nearest one and lists the rest.
pub(crate) fn unknown<'a>(what: &str, name: &str, allowed: impl Iterator<Item = &'a str>) -> Error {
    let allowed: Vec<&str> = allowed.collect();
    let nearest = allowed.iter().min_by_key(|candidate| levenshtein(name, candidate));
    let error = Error::user(format!("unknown {what} {name:?}"));
    match nearest {
        Some(near) if levenshtein(name, near) <= 1 + name.len() / 3 => {
            error.hint(format!("did you mean {near}? there are: {}", allowed.join(", ")))
        }
        Some(_) => error.hint(format!("there are: {}", allowed.join(", "))),
        None => error.hint("it takes none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: Typed<i64> = Typed::int("tables", 1, 1, 100, "");
    const DISTRIBUTION: Typed<&str> = Typed::choice("distribution", "uniform", &["uniform", "zipfian"], "");

    static ABOUT: About = About {
        name: "example",
        description: "",
        options: &[TABLES.spec(), DISTRIBUTION.spec()],
        transactions: &["example"],
        read_only: true,
        keeps_ledger: false,
    };

    fn resolve(text: &str) -> Result<Options> {
        Options::resolve(&ABOUT, &serde_json::from_str(text).unwrap(), &Circumstances::default())
    }

    #[test]
    fn defaults_are_filled_in() {
        let options = resolve(r#"{"tables": 7}"#).unwrap();
        assert_eq!((options.int(TABLES), options.text(DISTRIBUTION)), (7, "uniform"));
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let error = resolve(r#"{"table": 7}"#).err().unwrap();
        assert!(error.hint_text().contains("did you mean tables?"), "{error}");
    }

    #[test]
    fn a_wrong_value_is_answered_with_what_is_allowed() {
        for text in [r#"{"tables": 0}"#, r#"{"tables": "7"}"#, r#"{"distribution": "normal"}"#] {
            let error = resolve(text).err().unwrap();
            assert!(error.hint_text().starts_with("give "), "{error}");
        }
    }
}
