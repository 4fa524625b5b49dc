//! Reads a workload from a TOML file. The format is described in docs/guides/own-workloads.md.

use super::body::Body;
use super::content::{Condition, Content, Question, Table, Text};
use super::document::{float, integer, Document, Entry, Section};
use super::expression::Expression;
use super::frame::Frame;
use super::mistake::{Mistakes, Source};
use super::program::{wait_of, Action, Draft, Mode, Transaction, Wait};
use super::request::{self, Request};
use super::sql::{self, Piece, Stop};
use super::variable::{Names, Variable};
use crate::error::Result;
use crate::random::Random;
use crate::session::{Value, REQUEST_MARK};
use crate::workload::options;
use std::path::Path;
use toml::de::{DeTable, DeValue};

const TOP: [&str; 10] = [
    "title",
    "options",
    "setup",
    "tables",
    "finish",
    "start",
    "transactions",
    "invariants",
    "cleanup",
    "description",
];
/// Sections whose statements may stand in a file.
const WITH_FILES: [&str; 3] = ["setup", "finish", "cleanup"];
const START: [&str; 7] = ["sql", "request", "headers", "body", "expect", "into", "list"];
const TRANSACTION: [&str; 7] =
    ["name", "weight", "atomic", "keying_time", "think_time", "values", "statements"];

/// The options that a file declares: their names. Mistakes elsewhere in the file are for `parse` to tell.
pub fn option_names(text: &str) -> Vec<String> {
    let (document, _) = DeTable::parse_recoverable(text);
    let options = document.get_ref().get("options").and_then(|entry| entry.get_ref().as_table());
    options.map_or(Vec::new(), |table| table.keys().map(|name| name.get_ref().to_string()).collect())
}

/// The files that a file names: where in its text, and their names. Mistakes are for `parse` to tell.
pub fn included(text: &str) -> Vec<(usize, String)> {
    let (document, _) = DeTable::parse_recoverable(text);
    let named = WITH_FILES.iter().filter_map(|key| {
        let section = document.get_ref().get(*key)?.get_ref().as_table()?;
        let entry = section.get("file")?;
        Some((entry.span().start, entry.get_ref().as_str()?.to_owned()))
    });
    named.collect()
}

/// Reads the file `name` with `text` in it; `given` are values for its options.
pub fn parse(
    name: &str,
    text: &str,
    folder: &Path,
    given: &[(String, String)],
    mode: Mode,
) -> Result<Content> {
    let document = Document { source: Source { name, text }, mistakes: Mistakes::default().into() };
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        document.mistake(error.span().map_or(0, |span| span.start), error.message(), "mend the TOML");
    }
    if !errors.is_empty() {
        document.mistakes.into_inner().or(())?;
        unreachable!("there are mistakes");
    }
    let root = Section::new(&document, root.get_ref(), 0, "a workload's file", &TOP);
    let script = Reader::new(root, folder, given).read(mode);
    let mistakes = document.mistakes.take();
    mistakes.or(script)
}

struct Reader<'a> {
    root: Section<'a>,
    folder: &'a Path,
    /// Holds the values of the options.
    frame: Frame,
    /// The built-in names and those of the options; each part of the file goes on from here.
    common: Names,
    constants: Vec<(usize, Variable)>,
}

impl<'a> Reader<'a> {
    fn new(root: Section<'a>, folder: &'a Path, given: &[(String, String)]) -> Self {
        let mut reader =
            Reader { root, folder, frame: Frame::default(), common: Names::default(), constants: Vec::new() };
        reader.options(given);
        reader.frame = Frame::new(reader.common.all().len(), 0);
        for (slot, value) in &reader.constants {
            reader.frame.variables[*slot].copy_from(value);
        }
        reader
    }

    fn document(&self) -> &'a Document<'a> {
        self.root.document
    }

    fn mistake(&self, at: usize, message: impl Into<String>, hint: impl Into<String>) {
        self.document().mistake(at, message, hint);
    }

    fn read(mut self, mode: Mode) -> Content {
        let mut dropped = Vec::new();
        let setup = self.texts("setup", &mut dropped);
        let tables: Vec<Table> = self
            .root
            .sections("tables", &["name", "rows", "columns"])
            .iter()
            .filter_map(|it| self.table(it))
            .collect();
        tables.iter().for_each(|table| dropped.push(table.name.clone()));
        let finish = self.texts("finish", &mut Vec::new());
        let cleanup = self.texts("cleanup", &mut Vec::new());
        let mut seen = Vec::new();
        dropped.retain(|name| {
            let first = !seen.contains(&name.to_lowercase());
            seen.push(name.to_lowercase());
            first
        });
        let mut draft = Draft { names: self.common.clone(), statements: Vec::new() };
        let start = self.start(&mut draft);
        let transactions = self.transactions(&mut draft);
        let invariants = self.invariants(&transactions);
        let mut mistakes = self.document().mistakes.take();
        let program = draft.finish(self.document().source.name, mode, transactions, &mut mistakes);
        *self.document().mistakes.borrow_mut() = mistakes;
        let constants = std::mem::take(&mut self.constants);
        Content { program, setup, finish, cleanup, dropped, tables, start, invariants, constants }
    }

    /// Declares the options, with the values given for them or their defaults.
    fn options(&mut self, given: &[(String, String)]) {
        let declared = self.root.entries("options");
        for (at, name, entry) in &declared {
            let mut value = Variable::default();
            if !set_literal(&mut value, entry.get_ref()) {
                self.mistake(
                    *at,
                    format!("the option {name} has no plain default"),
                    "give a number, a text, true or false",
                );
                value.set(Value::Null);
            }
            if let Some((_, text)) = given.iter().find(|(given, _)| given == name) {
                if !set_given(&mut value, text) {
                    let hint = format!("its default is {}", value.value().to_owned());
                    self.mistake(*at, format!("the option {name} cannot be {text:?}"), hint);
                }
            }
            let slot = self.declare(*at, name);
            self.constants.push((slot, value));
        }
        for (name, _) in given {
            if !declared.iter().any(|(_, declared, _)| declared == name) {
                let unknown = options::unknown("option", name, declared.iter().map(|(_, name, _)| *name));
                self.mistake(0, unknown.message(), unknown.hint_text());
            }
        }
    }

    fn declare(&mut self, at: usize, name: &str) -> usize {
        self.document().check_name(at, name);
        self.common.write(name)
    }

    /// The statements of the section `[key]`, from its list or its file, with the options' values put in.
    fn texts(&self, key: &'static str, created: &mut Vec<String>) -> Vec<Text> {
        let mut all = Vec::new();
        let Some(section) = self.root.section(key, &["statements", "file"]) else { return all };
        if let Some((at, name)) = section.text("file") {
            match std::fs::read_to_string(self.folder.join(name)) {
                Err(error) => self.mistake(
                    at,
                    format!("{name} cannot be read: {error}"),
                    "a path counts from this file",
                ),
                Ok(text) => {
                    let source = Source { name, text: &text };
                    self.split(at, &text, |start| source.place(start), created, &mut all);
                }
            }
        }
        for entry in section.array("statements") {
            match entry.get_ref().as_str() {
                Some(text) => {
                    let at = entry.span().start;
                    self.split(at, text, |_| self.document().source.place(at), created, &mut all);
                }
                None => self.mistake(
                    entry.span().start,
                    format!("a statement of {key} is no text"),
                    "put it in quotes",
                ),
            }
        }
        all
    }

    /// Splits text at its semicolons. `place` says where a statement stands that starts at a byte of it.
    fn split(
        &self,
        at: usize,
        text: &str,
        place: impl Fn(usize) -> String,
        created: &mut Vec<String>,
        all: &mut Vec<Text>,
    ) {
        let mut from = 0;
        while from < text.len() {
            let scan = sql::scan(text, from, false);
            if let Stop::Unclosed(what) = scan.stop {
                return self.mistake(at, format!("{what} does not end"), "close it");
            }
            created.extend(sql::created_table(&scan.pieces).map(str::to_owned));
            if !scan.pieces.is_empty() {
                all.push(Text { sql: self.fixed(at, &scan.pieces), place: place(scan.start) });
            }
            from = scan.next.max(from + 1);
        }
    }

    /// The text of a statement in which only options stand for values.
    fn fixed(&self, at: usize, pieces: &[Piece]) -> String {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Variable { name, position } => match self.constant(name) {
                    Some(value) => text.push_str(&value.to_string()),
                    None if *position == sql::Position::Quoted => text.push_str(&format!(":{name}")),
                    None => self.unknown_option(at, name),
                },
            }
        }
        text
    }

    fn constant(&self, name: &str) -> Option<crate::session::Owned> {
        let slot = self.common.find(name)?;
        self.constants
            .iter()
            .find(|(constant, _)| *constant == slot)
            .map(|(_, value)| value.value().to_owned())
    }

    fn unknown_option(&self, at: usize, name: &str) {
        let allowed = self.common.set().skip(super::variable::BUILT_IN.len());
        let hint = options::unknown("option", name, allowed).hint_text().to_owned();
        self.mistake(at, format!("there is no option :{name}"), hint);
    }

    fn table(&self, section: &Section<'a>) -> Option<Table> {
        let (_, name) = section.required_text("name")?;
        let mut names = self.common.clone();
        let rows = self.rows(section, &mut names.clone());
        let (mut columns, mut draws) = (Vec::new(), Vec::new());
        for (at, column, entry) in section.entries("columns") {
            let expression = self.document().expression(entry, &mut names);
            expression.walk(&mut |part| {
                if matches!(part, Expression::Call { function: super::function::Function::Sequence, .. }) {
                    self.mistake(at, "a sequence belongs to a client, and there is none yet", "use row()");
                }
            });
            draws.push((names.write(column), expression));
            columns.push(column.to_owned());
        }
        if columns.is_empty() {
            self.mistake(
                section.at,
                format!("the table {name} has no columns"),
                "add columns = { id = \"row()\" }",
            );
        }
        self.complain_of_unset(&names);
        Some(Table {
            name: name.to_owned(),
            rows,
            columns,
            draws,
            names: names.all().to_vec(),
            memories: names.memories(),
            place: self.document().source.place(section.at),
        })
    }

    /// The number of rows: a number, or an expression of options.
    fn rows(&self, section: &Section<'a>, names: &mut Names) -> i64 {
        let Some(entry) = section.get("rows") else {
            self.mistake(section.at, "tables has no rows", "add rows = 1000");
            return 0;
        };
        let (at, expression) = (entry.span().start, self.document().expression(entry, names));
        self.complain_of_unset(names);
        if !names.never_set().is_empty() {
            return 0;
        }
        let mut frame = self.frame.clone();
        frame.variables.resize(names.all().len(), Variable::default());
        frame.memories.resize(names.memories(), Default::default());
        match frame.number(&expression, names.all(), &mut Random::new(0, 0)) {
            Ok(rows) if (0.0..=1e12).contains(&rows) => rows as i64,
            Ok(rows) => {
                self.mistake(at, format!("a table cannot have {rows} rows"), "0 to 10^12");
                0
            }
            Err(error) => {
                self.mistake(at, error.message(), error.hint_text());
                0
            }
        }
    }

    fn complain_of_unset(&self, names: &Names) {
        for (name, line) in names.never_set() {
            let hint = options::unknown("variable", name, names.set()).hint_text().to_owned();
            let place = format!("{}:{line}", self.document().source.name);
            self.document().mistakes.borrow_mut().add(
                place,
                format!("nothing sets the variable :{name}"),
                hint,
            );
        }
    }

    fn start(&self, draft: &mut Draft) -> Vec<Question> {
        let mut all = Vec::new();
        let Some(section) = self.root.section("start", &["statements"]) else { return all };
        for entry in section.array("statements") {
            let at = entry.span().start;
            let Some(table) = entry.get_ref().as_table() else {
                self.mistake(
                    at,
                    "a statement of start is no table",
                    "write { sql = \"SELECT ...\", into = \"name\" }",
                );
                continue;
            };
            let statement = Section::new(self.document(), table, at, "a statement of start", &START);
            if let Some(request) = request::read(&statement, &mut draft.names) {
                if let Some((at, _)) = statement.text("list") {
                    self.mistake(at, "list belongs to sql", "take values of a request with into");
                }
                all.push(self.asked(at, request));
            } else if let Some((at, text)) = statement.required_text("sql") {
                let text = self.fixed(at, &self.document().single(at, text).pieces);
                let list = statement.text("list");
                let slots = match list {
                    Some((_, name)) => vec![draft.names.write(name)],
                    None => self.document().captured(&statement, &mut draft.names),
                };
                let place = self.document().source.place(at);
                all.push(Question { text, values: Vec::new(), slots, whole: list.is_some(), place });
            }
        }
        all
    }

    /// A request in which only options stand for values.
    fn asked(&self, at: usize, request: Request) -> Question {
        let (mut text, mut values) = (String::new(), Vec::new());
        for piece in &request.pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Variable { name, .. } => {
                    text.push(REQUEST_MARK);
                    match self.constant(name) {
                        Some(value) => values.push(value),
                        None => self.unknown_option(at, name),
                    }
                }
            }
        }
        Question { text, values, slots: request.into, whole: false, place: self.document().source.place(at) }
    }

    fn transactions(&self, draft: &mut Draft) -> Vec<Transaction> {
        let mut all: Vec<Transaction> = Vec::new();
        for section in self.root.sections("transactions", &TRANSACTION) {
            if let Some(transaction) = self.transaction(&section, draft) {
                if all.iter().any(|other| other.name == transaction.name) {
                    self.mistake(
                        section.at,
                        format!("there are two transactions {}", transaction.name),
                        "rename one",
                    );
                }
                all.push(transaction);
            }
        }
        if all.iter().map(|transaction| transaction.weight).sum::<u64>() == 0 {
            self.mistake(0, "there is no transaction to run", "add [[transactions]] with a weight above 0");
        }
        all
    }

    fn transaction(&self, section: &Section<'a>, draft: &mut Draft) -> Option<Transaction> {
        let (_, name) = section.required_text("name")?;
        let weight = section.integer("weight").unwrap_or(1);
        if !(0..=1_000_000_000).contains(&weight) {
            self.mistake(
                section.at,
                format!("the weight of {name} cannot be {weight}"),
                "0 to 1,000,000,000",
            );
        }
        let statements = section.array("statements");
        if statements.is_empty() {
            self.mistake(
                section.at,
                format!("the transaction {name} has no statements"),
                "add statements = [\"...\"]",
            );
        }
        let mut body = Body::new(self.document(), draft);
        body.values(section);
        // One statement that commits by itself needs no transaction around it.
        let alone = statements.len() == 1 && !body.is_repeated(&statements[0]);
        let atomic = self.is_atomic(section, statements) && !alone;
        if atomic {
            body.push(section.at, Action::Begin);
        }
        statements.iter().for_each(|entry| body.statement(entry));
        if atomic {
            body.push(section.at, Action::Commit);
        }
        let steps = body.close();
        Some(Transaction {
            name: name.to_owned(),
            weight: weight.clamp(0, 1_000_000_000) as u64,
            keying: self.wait(section, "keying_time"),
            thinking: self.wait(section, "think_time"),
            steps,
            restored: Vec::new(),
        })
    }

    /// Whether a transaction of the database holds the statements together: requests know of none.
    fn is_atomic(&self, section: &Section<'a>, statements: &[Entry<'a>]) -> bool {
        let atomic = section.flag("atomic");
        if !statements.iter().any(request::is_request) {
            return atomic.unwrap_or(true);
        }
        if atomic == Some(true) {
            let hint = "leave atomic out: each request stands alone";
            self.mistake(section.at, "requests cannot be atomic", hint);
        }
        false
    }

    fn wait(&self, section: &Section<'a>, key: &str) -> Wait {
        let Some((at, text)) = section.text(key) else { return Wait::None };
        wait_of(text).unwrap_or_else(|| {
            let hint = "write \"5ms\", \"uniform(1ms, 5ms)\" or \"exponential(5ms)\"; units: us, ms, s";
            self.mistake(at, format!("{key} cannot be {text:?}"), hint);
            Wait::None
        })
    }

    fn invariants(&self, transactions: &[Transaction]) -> Vec<Condition> {
        let sections = self.root.sections("invariants", &["name", "query", "expect"]);
        sections.iter().filter_map(|section| self.invariant(section, transactions)).collect()
    }

    fn invariant(&self, section: &Section<'a>, transactions: &[Transaction]) -> Option<Condition> {
        let (_, name) = section.required_text("name")?;
        let (query_at, query) = section.required_text("query")?;
        let (expect_at, expect) = section.required_text("expect")?;
        let query = self.fixed(query_at, &self.document().single(query_at, query).pieces);
        let mut names = self.common.clone();
        names.write("acknowledged");
        names.write("unknown");
        for transaction in transactions {
            names.write(&format!("acknowledged_{}", transaction.name));
        }
        let expect = match expect.trim() {
            "no rows" => None,
            _ => section.get("expect").map(|entry| self.document().expression(entry, &mut names)),
        };
        Some(Condition {
            name: name.to_owned(),
            query,
            expect,
            names: names.all().to_vec(),
            memories: names.memories(),
            place: self.document().source.place(expect_at),
        })
    }
}

/// Sets a variable to a plain TOML value; false for what is none.
fn set_literal(variable: &mut Variable, value: &DeValue<'_>) -> bool {
    match (value, integer(value), float(value)) {
        (_, Some(number), _) => variable.set(Value::Int(number)),
        (_, _, Some(number)) => variable.set(Value::Float(number)),
        (DeValue::Boolean(value), ..) => variable.set_bool(*value),
        (DeValue::String(text), ..) => variable.set(Value::Text(text)),
        _ => return false,
    }
    true
}

/// Sets an option to a value given as text, of the type that it has; false if the text is none of it.
fn set_given(variable: &mut Variable, text: &str) -> bool {
    if variable.as_bool().is_some() {
        return text.parse().map(|value| variable.set_bool(value)).is_ok();
    }
    let is_text = matches!(variable.value(), Value::Text(_));
    let is_int = matches!(variable.value(), Value::Int(_));
    match (is_text, is_int) {
        (true, _) => variable.set(Value::Text(text)),
        (_, true) => match text.parse() {
            Ok(number) => variable.set(Value::Int(number)),
            Err(_) => return false,
        },
        _ => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => variable.set(Value::Float(number)),
            _ => return false,
        },
    }
    true
}
