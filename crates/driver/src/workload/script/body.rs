//! The statements of one transaction of a TOML file, turned into steps.

use super::document::{Document, Entry, Section};
use super::expression::Expression;
use super::function::Function;
use super::program::{duration_ns, Action, Capture, Draft, Step};
use super::request;
use toml::de::DeValue;

const STATEMENT: [&str; 11] =
    ["sql", "request", "headers", "body", "expect", "into", "values", "if", "repeat", "sleep", "rollback"];

/// The steps of one transaction as they are read.
pub struct Body<'r, 'a> {
    document: &'a Document<'a>,
    draft: &'r mut Draft,
    steps: Vec<Step>,
    /// Jumps from a roll-back to the end.
    rollbacks: Vec<usize>,
}

impl<'r, 'a> Body<'r, 'a> {
    pub fn new(document: &'a Document<'a>, draft: &'r mut Draft) -> Self {
        Body { document, draft, steps: Vec::new(), rollbacks: Vec::new() }
    }

    pub fn push(&mut self, at: usize, action: Action) {
        self.steps.push(Step { place: self.document.source.place(at), action });
    }

    /// Sets the variables of `values`, in order.
    pub fn values(&mut self, section: &Section<'a>) {
        for (at, name, entry) in section.entries("values") {
            self.document.check_name(at, name);
            let expression = self.document.expression(entry, &mut self.draft.names);
            let slot = self.draft.names.write(name);
            self.push(at, Action::Set { slot, expression });
        }
    }

    pub fn is_repeated(&self, entry: &Entry<'_>) -> bool {
        entry.get_ref().as_table().is_some_and(|table| table.contains_key("repeat"))
    }

    pub fn statement(&mut self, entry: &'a Entry<'a>) {
        let at = entry.span().start;
        match entry.get_ref() {
            DeValue::String(text) => {
                self.sql(at, text, Vec::new());
            }
            DeValue::Table(table) => {
                self.detailed(Section::new(self.document, table, at, "a statement", &STATEMENT));
            }
            _ => self.document.mistake(
                at,
                "a statement is neither text nor table",
                "write \"SELECT ...\" or { sql = \"...\" }",
            ),
        }
    }

    fn sql(&mut self, at: usize, text: &str, into: Vec<usize>) {
        let scan = self.document.single(at, text);
        let action = self.draft.statement(&self.document.source, at, scan.pieces, scan.question);
        if let (Action::Execute(statement), false) = (&action, into.is_empty()) {
            self.draft.statements[*statement].capture = Capture::Columns(into);
        }
        self.push(at, action);
    }

    /// A statement with its conditions: `if` around `repeat` around `values` and the statement.
    fn detailed(&mut self, section: Section<'a>) {
        let at = section.at;
        let deeds = ["sql", "request", "sleep", "rollback"];
        if deeds.into_iter().filter(|key| section.get(key).is_some()).count() != 1 {
            let hint = "give exactly one of sql, request, sleep and rollback";
            return self.document.mistake(at, "a statement does not say what to do", hint);
        }
        let skip = section.get("if").map(|entry| self.jump_unless(entry));
        let repeat = section.get("repeat").map(|entry| self.open_repeat(at, entry));
        self.values(&section);
        if let Some((at, text)) = section.text("sql") {
            let into = self.document.captured(&section, &mut self.draft.names);
            self.sql(at, text, into);
        }
        if let Some(request) = request::read(&section, &mut self.draft.names) {
            let action = self.draft.request(&self.document.source, at, request);
            self.push(at, action);
        }
        self.complain_of_idle_keys(&section);
        if let Some((at, text)) = section.text("sleep") {
            self.sleep(at, text);
        }
        if section.flag("rollback") == Some(true) {
            self.push(at, Action::Rollback);
            self.rollbacks.push(self.steps.len());
            self.push(at, Action::Jump(0));
        }
        if let Some((start, counter)) = repeat {
            self.close_repeat(at, start, counter);
        }
        if let Some(jump) = skip {
            self.aim(jump);
        }
    }

    /// What belongs to a request says nothing of a statement.
    fn complain_of_idle_keys(&self, section: &Section<'a>) {
        let idle = request::KEYS.into_iter().filter_map(|key| Some((key, section.get(key)?)));
        for (key, entry) in idle.filter(|_| section.get("request").is_none()) {
            let hint = "write request = \"POST /path\", or leave it out";
            self.document.mistake(entry.span().start, format!("{key} belongs to a request"), hint);
        }
    }

    fn jump_unless(&mut self, entry: &Entry<'_>) -> usize {
        let condition = self.document.expression(entry, &mut self.draft.names);
        self.push(entry.span().start, Action::JumpUnless { condition, to: 0 });
        self.steps.len() - 1
    }

    /// Counts a variable down that no script can name.
    fn open_repeat(&mut self, at: usize, entry: &Entry<'_>) -> (usize, usize) {
        let expression = self.document.expression(entry, &mut self.draft.names);
        let counter = self.draft.names.write(&format!("repeat #{}", self.steps.len()));
        self.push(at, Action::Set { slot: counter, expression });
        let zero = Box::new([Expression::Int(0), Expression::Variable(counter)]);
        let condition = call(Function::Less, zero);
        self.push(at, Action::JumpUnless { condition, to: 0 });
        (self.steps.len() - 1, counter)
    }

    fn close_repeat(&mut self, at: usize, start: usize, counter: usize) {
        let one = Box::new([Expression::Variable(counter), Expression::Int(1)]);
        let expression = call(Function::Subtract, one);
        self.push(at, Action::Set { slot: counter, expression });
        self.push(at, Action::Jump(start));
        self.aim(start);
    }

    fn sleep(&mut self, at: usize, text: &str) {
        match duration_ns(text.trim()) {
            Some(ns) => self.push(at, Action::Sleep { duration: Expression::Int(ns as i64), unit_ns: 1.0 }),
            None => self.document.mistake(
                at,
                format!("a sleep cannot be {text:?}"),
                "write \"5ms\"; units: us, ms, s",
            ),
        }
    }

    /// Lets a jump lead to the step that comes next.
    fn aim(&mut self, jump: usize) {
        let next = self.steps.len();
        if let Action::JumpUnless { to, .. } | Action::Jump(to) = &mut self.steps[jump].action {
            *to = next;
        }
    }

    pub fn close(mut self) -> Vec<Step> {
        for jump in std::mem::take(&mut self.rollbacks) {
            self.aim(jump);
        }
        self.steps
    }
}

fn call(function: Function, arguments: Box<[Expression]>) -> Expression {
    Expression::Call { function, memory: 0, arguments }
}
