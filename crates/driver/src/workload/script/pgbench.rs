//! Reads pgbench's script files, and plain SQL files, which are scripts without commands.
//! The commands and their rules are those of pgbench 15's manual, section "Custom Scripts".

use super::content::{Content, Text};
use super::expression::{self, Expression};
use super::function::Language;
use super::mistake::{Mistakes, Source};
use super::program::{Action, Capture, Draft, Mode, Step, Transaction, Wait};
use super::sql::{self, Stop};
use super::variable::Variable;
use crate::error::{Error, Result};
use crate::session::Value;
use crate::workload::options;
use std::path::Path;

const COMMANDS: [&str; 9] = ["set", "setrandom", "sleep", "if", "elif", "else", "endif", "gset", "aset"];

/// Reads one file into the steps of a transaction; its statements and variables go into `draft`.
pub fn parse(source: &Source<'_>, draft: &mut Draft, mistakes: &mut Mistakes) -> Vec<Step> {
    let mut reader = Reader { source, draft, mistakes, steps: Vec::new(), branches: Vec::new() };
    reader.read();
    reader.steps
}

/// An `\if` that has not ended.
struct Branch {
    at: usize,
    /// The jump that passes the branch at hand, to be aimed at the next one.
    pending: Option<usize>,
    /// The jumps from the ends of branches, to be aimed at the end.
    ends: Vec<usize>,
    had_else: bool,
}

struct Reader<'a> {
    source: &'a Source<'a>,
    draft: &'a mut Draft,
    mistakes: &'a mut Mistakes,
    steps: Vec<Step>,
    branches: Vec<Branch>,
}

impl Reader<'_> {
    fn read(&mut self) {
        let mut from = 0;
        while from < self.source.text.len() {
            let scan = sql::scan(self.source.text, from, true);
            if let Stop::Unclosed(what) = scan.stop {
                self.mistake(scan.start, &format!("{what} does not end"), "close it");
                break;
            }
            if scan.stop == Stop::Joined {
                self.mistake(
                    scan.start,
                    "statements joined by \\; are not supported",
                    "end each with a semicolon",
                );
            }
            if !scan.pieces.is_empty() {
                let action = self.draft.statement(self.source, scan.start, scan.pieces, scan.question);
                self.push(scan.start, action);
            }
            from = match scan.stop {
                Stop::Backslash => self.command(scan.next),
                _ => scan.next.max(from + 1),
            };
        }
        while let Some(branch) = self.branches.pop() {
            self.mistake(branch.at, "\\if has no \\endif", "close the branch with \\endif");
        }
    }

    fn mistake(&mut self, at: usize, message: &str, hint: &str) {
        self.mistakes.add(self.source.place(at), message, hint);
    }

    fn push(&mut self, at: usize, action: Action) {
        self.steps.push(Step { place: self.source.place(at), action });
    }

    /// Reads the command whose backslash is at `at`; returns where its line ends.
    fn command(&mut self, at: usize) -> usize {
        let end = line_end(self.source.text, at + 1);
        let line = &self.source.text[at + 1..end];
        let word = &line[..line.find(char::is_whitespace).unwrap_or(line.len())];
        let arguments = at + 1 + word.len();
        self.draft.names.line = self.source.line(at);
        match word.to_ascii_lowercase().as_str() {
            "set" => self.set(arguments, end),
            "setrandom" => self.set_random(at, &self.source.text[arguments..end]),
            "sleep" => self.sleep(at, &self.source.text[arguments..end]),
            "if" => self.open_branch(at, arguments, end),
            "elif" => self.next_branch(at, Some((arguments, end))),
            "else" => self.next_branch(at, None),
            "endif" => self.close_branch(at),
            "gset" => self.capture(at, &self.source.text[arguments..end], false),
            "aset" => self.capture(at, &self.source.text[arguments..end], true),
            "startpipeline" | "endpipeline" | "syncpipeline" => {
                let message = format!("\\{word} is not supported: each statement waits for its answer");
                self.mistake(at, &message, "take the pipeline commands out");
            }
            "shell" | "setshell" => {
                self.mistake(
                    at,
                    &format!("\\{word} is not supported: scripts start no commands"),
                    "use \\set",
                );
            }
            other => {
                let unknown = options::unknown("command", other, COMMANDS.into_iter());
                self.mistake(at, &format!("there is no command \\{word}"), unknown.hint_text());
            }
        }
        end
    }

    /// Reads `self.source.text[from..to]` as an expression.
    fn expression(&mut self, from: usize, to: usize) -> Expression {
        match expression::parse(&self.source.text[from..to], Language::Pgbench, &mut self.draft.names) {
            Ok(expression) => expression,
            Err(fault) => {
                self.mistake(from + fault.at, &fault.message, &fault.hint);
                Expression::Null
            }
        }
    }

    fn set(&mut self, from: usize, end: usize) {
        let text = &self.source.text[from..end];
        let name_at = from + text.len() - text.trim_start().len();
        let name = self.source.text[name_at..end].split(char::is_whitespace).next().unwrap_or_default();
        let expression = self.expression(name_at + name.len(), end);
        if let Some(slot) = self.target(name_at, name) {
            self.push(name_at, Action::Set { slot, expression });
        }
    }

    /// The slot of a variable that a command sets.
    fn target(&mut self, at: usize, name: &str) -> Option<usize> {
        let valid = name.bytes().all(expression::is_name_byte)
            && !name.starts_with(|letter: char| letter.is_ascii_digit());
        if valid && !name.is_empty() {
            return Some(self.draft.names.write(name));
        }
        self.mistake(
            at,
            &format!("{name:?} cannot name a variable"),
            "use letters, digits and _, no digit first",
        );
        None
    }

    /// `\setrandom name low high [uniform | gaussian parameter | exponential parameter]`, as pgbench had it before 9.6.
    fn set_random(&mut self, at: usize, arguments: &str) {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let (name, text) = match words[..] {
            [name, low, high] | [name, low, high, "uniform"] => (name, format!("random({low}, {high})")),
            [name, low, high, law @ ("gaussian" | "exponential"), parameter] => {
                (name, format!("random_{law}({low}, {high}, {parameter})"))
            }
            _ => {
                let hint =
                    "write \\setrandom name low high [uniform | gaussian parameter | exponential parameter]";
                return self.mistake(at, "\\setrandom does not have this form", hint);
            }
        };
        match expression::parse(&text, Language::Pgbench, &mut self.draft.names) {
            Err(fault) => self.mistake(at, &fault.message, &fault.hint),
            Ok(expression) => {
                if let Some(slot) = self.target(at, name) {
                    self.push(at, Action::Set { slot, expression });
                }
            }
        }
    }

    /// `\sleep 5 ms`, `\sleep 5ms`, `\sleep :n us`; seconds without a unit.
    fn sleep(&mut self, at: usize, arguments: &str) {
        let mut words = arguments.split_whitespace();
        let (first, second, rest) = (words.next().unwrap_or_default(), words.next(), words.next());
        let (number, unit) = match second {
            Some(unit) => (first, unit),
            None if first.starts_with(':') => (first, "s"),
            None => match first.split_at(first.bytes().take_while(u8::is_ascii_digit).count()) {
                (number, "") => (number, "s"),
                split => split,
            },
        };
        let unit_ns = match unit.to_ascii_lowercase().as_str() {
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => return self.mistake(at, &format!("{unit:?} is no unit of time"), "write us, ms or s"),
        };
        let form = "write \\sleep with a whole number or a variable, and us, ms or s";
        if rest.is_some() || !(number.starts_with(':') || number.parse::<u32>().is_ok()) {
            return self.mistake(at, "\\sleep does not have this form", form);
        }
        match expression::parse(number, Language::Pgbench, &mut self.draft.names) {
            Ok(duration) => self.push(at, Action::Sleep { duration, unit_ns }),
            Err(fault) => self.mistake(at, &fault.message, form),
        }
    }

    fn open_branch(&mut self, at: usize, from: usize, end: usize) {
        let condition = self.expression(from, end);
        self.push(at, Action::JumpUnless { condition, to: 0 });
        let pending = Some(self.steps.len() - 1);
        self.branches.push(Branch { at, pending, ends: Vec::new(), had_else: false });
    }

    /// `\elif` with its condition's place, or `\else`.
    fn next_branch(&mut self, at: usize, condition: Option<(usize, usize)>) {
        let word = if condition.is_some() { "\\elif" } else { "\\else" };
        let Some(mut branch) = self.branches.pop() else {
            return self.mistake(at, &format!("{word} has no \\if"), "start the branch with \\if");
        };
        if branch.had_else {
            self.mistake(at, &format!("{word} comes after \\else"), "let \\else be the last branch");
        }
        self.push(at, Action::Jump(0));
        branch.ends.push(self.steps.len() - 1);
        self.aim(branch.pending.take());
        match condition {
            Some((from, end)) => {
                let condition = self.expression(from, end);
                self.push(at, Action::JumpUnless { condition, to: 0 });
                branch.pending = Some(self.steps.len() - 1);
            }
            None => branch.had_else = true,
        }
        self.branches.push(branch);
    }

    fn close_branch(&mut self, at: usize) {
        match self.branches.pop() {
            None => self.mistake(at, "\\endif has no \\if", "start the branch with \\if"),
            Some(branch) => {
                branch.ends.into_iter().chain(branch.pending).for_each(|jump| self.aim(Some(jump)))
            }
        }
    }

    /// Lets a jump lead to the step that comes next.
    fn aim(&mut self, jump: Option<usize>) {
        let next = self.steps.len();
        if let Some(Action::JumpUnless { to, .. } | Action::Jump(to)) =
            jump.map(|jump| &mut self.steps[jump].action)
        {
            *to = next;
        }
    }

    fn capture(&mut self, at: usize, arguments: &str, last: bool) {
        let prefix = arguments.trim().to_owned();
        let statement = match self.steps.last() {
            Some(Step { action: Action::Execute(statement), .. }) => &mut self.draft.statements[*statement],
            _ => return self.mistake(at, "no statement stands before this", "write SELECT ... \\gset"),
        };
        if statement.capture != Capture::Nothing {
            return self.mistake(
                at,
                "the statement's columns are captured twice",
                "keep one of \\gset and \\aset",
            );
        }
        statement.capture = if last { Capture::LastNamed { prefix } } else { Capture::Named { prefix } };
    }
}

/// Where the line at `from` ends; a backslash before the end carries it on.
fn line_end(text: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        let Some(length) = text[at..].find('\n') else { return text.len() };
        let end = at + length;
        if !text[from..end].trim_end_matches('\r').ends_with('\\') {
            return end;
        }
        at = end + 1;
    }
}

/// `a.sql@2,b.sql`: files with their weights, 1 where none is given.
pub fn weighted_files(text: &str) -> Result<Vec<(String, u64)>> {
    let mut files = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        files.push(match part.rsplit_once('@') {
            Some((name, weight))
                if !weight.is_empty() && weight.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                let weight = weight.parse::<u32>().map_err(|_| {
                    Error::user(format!("the weight of {name} cannot be {weight}")).hint("0 to 4,294,967,295")
                })?;
                (name.to_owned(), u64::from(weight))
            }
            _ => (part.to_owned(), 1),
        });
    }
    if files.iter().map(|(_, weight)| weight).sum::<u64>() == 0 {
        return Err(Error::user("no file has a weight above 0").hint("write a.sql@2,b.sql@1"));
    }
    Ok(files)
}

/// pgbench scripts (name, text, weight), each of which is one transaction.
pub fn content(
    files: &[(String, String, u64)],
    setup: Option<(String, String)>,
    given: &[(String, String)],
    mode: Mode,
) -> Result<Content> {
    let (mut draft, mut mistakes) = (Draft::default(), Mistakes::default());
    let mut constants = Vec::new();
    for (name, value) in given {
        let mut variable = Variable::default();
        variable.set(Value::Text(value));
        constants.push((draft.names.write(name), variable));
    }
    let mut transactions: Vec<Transaction> = Vec::new();
    for (name, text, weight) in files {
        let steps = parse(&Source { name, text }, &mut draft, &mut mistakes);
        if steps.is_empty() {
            mistakes.add(name, "the script does nothing", "write a statement");
        }
        let stem =
            Path::new(name).file_stem().map_or(name.clone(), |stem| stem.to_string_lossy().into_owned());
        let taken = transactions.iter().filter(|other| other.name.split('#').next() == Some(&stem)).count();
        let name = if taken == 0 { stem } else { format!("{stem}#{}", taken + 1) };
        let (keying, thinking) = (Wait::None, Wait::None);
        transactions.push(Transaction {
            name,
            weight: *weight,
            keying,
            thinking,
            steps,
            restored: Vec::new(),
        });
    }
    let (mut statements, mut dropped) = (Vec::new(), Vec::new());
    if let Some((name, text)) = &setup {
        split(&Source { name, text }, &mut statements, &mut dropped, &mut mistakes);
    }
    let file = files.first().map_or("", |(name, ..)| name.as_str());
    let program = draft.finish(file, mode, transactions, &mut mistakes);
    mistakes.or(Content {
        program,
        setup: statements,
        finish: Vec::new(),
        cleanup: Vec::new(),
        dropped,
        tables: Vec::new(),
        start: Vec::new(),
        invariants: Vec::new(),
        constants,
    })
}

/// Splits an SQL file into statements, and finds the tables that it makes.
fn split(
    source: &Source<'_>,
    statements: &mut Vec<Text>,
    created: &mut Vec<String>,
    mistakes: &mut Mistakes,
) {
    let mut from = 0;
    while from < source.text.len() {
        let scan = sql::scan(source.text, from, false);
        if let sql::Stop::Unclosed(what) = scan.stop {
            return mistakes.add(source.place(scan.start), format!("{what} does not end"), "close it");
        }
        created.extend(sql::created_table(&scan.pieces).map(str::to_owned));
        let text: String = scan.pieces.iter().map(sql::Piece::to_string).collect();
        if !text.is_empty() {
            statements.push(Text { sql: text, place: source.place(scan.start) });
        }
        from = scan.next.max(from + 1);
    }
}
