//! A script in the form that runs: statements with slots instead of names, steps with jumps instead of branches.

use super::expression::Expression;
use super::mistake::{Mistakes, Source};
use super::request::Request;
use super::sql::{self, Piece, Position};
use super::variable::Names;
use crate::random::Random;
use crate::session::REQUEST_MARK;
use crate::workload::commits::Boundary;
use crate::workload::{options, Pause};

/// How statements reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Prepared where the server can infer the parameters' types, as text otherwise.
    Auto,
    Prepared,
    /// All as text, variables put in as they are: pgbench's default.
    Simple,
}

#[derive(Debug)]
pub struct Program {
    pub mode: Mode,
    /// The variables' names by slot.
    pub names: Vec<String>,
    pub statements: Vec<Statement>,
    pub transactions: Vec<Transaction>,
    /// How many places functions keep something in, and which of them are sequences.
    pub memories: usize,
    pub sequences: Vec<usize>,
    /// Some statement changes the schema, so that others cannot be prepared before it has run.
    pub changes_schema: bool,
}

#[derive(Debug)]
pub struct Transaction {
    pub name: String,
    pub weight: u64,
    pub keying: Wait,
    pub thinking: Wait,
    pub steps: Vec<Step>,
    /// Variables that must be put back before the transaction is tried again.
    pub restored: Vec<usize>,
}

/// A wait outside of the latency.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Wait {
    #[default]
    None,
    Fixed {
        ns: u64,
    },
    Uniform {
        low_ns: u64,
        high_ns: u64,
    },
    /// Cut off at ten times the mean, as TPC-C prescribes.
    Exponential {
        mean_ns: u64,
    },
}

impl Wait {
    fn draw_ns(self, random: &mut Random) -> u64 {
        match self {
            Wait::None => 0,
            Wait::Fixed { ns } => ns,
            Wait::Uniform { low_ns, high_ns } => low_ns + random.below(high_ns - low_ns + 1),
            Wait::Exponential { mean_ns } => (random.exponential().min(10.0) * mean_ns as f64) as u64,
        }
    }
}

/// `5ms`, `1.5s`, `20us`; at most a day.
pub fn duration_ns(text: &str) -> Option<u64> {
    let unit_at = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let unit_ns = match &text[unit_at..] {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let ns = text[..unit_at].trim().parse::<f64>().ok()? * unit_ns;
    (0.0..=86_400e9).contains(&ns).then_some(ns as u64)
}

/// `5ms`, `uniform(1ms, 5ms)`, `exponential(5ms)`.
pub fn wait_of(text: &str) -> Option<Wait> {
    let text = text.trim();
    let Some((law, arguments)) = text.split_once('(') else {
        return duration_ns(text).map(|ns| Wait::Fixed { ns });
    };
    let arguments = arguments.strip_suffix(')')?;
    match (law.trim(), arguments.split_once(',')) {
        ("exponential", None) => Some(Wait::Exponential { mean_ns: duration_ns(arguments.trim())? }),
        ("uniform", Some((low, high))) => {
            let (low_ns, high_ns) = (duration_ns(low.trim())?, duration_ns(high.trim())?);
            (low_ns <= high_ns).then_some(Wait::Uniform { low_ns, high_ns })
        }
        _ => None,
    }
}

impl Transaction {
    pub fn pause(&self, random: &mut Random) -> Pause {
        Pause { before_ns: self.keying.draw_ns(random), after_ns: self.thinking.draw_ns(random) }
    }
}

#[derive(Clone, Debug)]
pub struct Step {
    /// File and line.
    pub place: String,
    pub action: Action,
}

#[derive(Clone, Debug)]
pub enum Action {
    Set { slot: usize, expression: Expression },
    Execute(usize),
    Begin,
    Commit,
    Rollback,
    Sleep { duration: Expression, unit_ns: f64 },
    JumpUnless { condition: Expression, to: usize },
    Jump(usize),
}

/// What a statement is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Sql,
    /// A request to an application.
    Request,
}

impl Form {
    /// What stands for a value in the text that is prepared.
    pub fn mark(self) -> u8 {
        match self {
            Form::Sql => b'?',
            Form::Request => REQUEST_MARK as u8,
        }
    }
}

#[derive(Debug)]
pub struct Statement {
    pub place: String,
    pub form: Form,
    pub parts: Vec<Part>,
    /// May be prepared; else it is sent as text.
    pub preparable: bool,
    pub capture: Capture,
    /// A transaction that begins or ends in other words than those of an action.
    pub boundary: Boundary,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Text(String),
    /// A parameter: the variable's slot.
    Value(usize),
    /// A variable whose value is put into the text.
    Name(usize),
}

/// Which columns of an answer become variables.
#[derive(Clone, Debug, PartialEq)]
pub enum Capture {
    Nothing,
    /// The columns in order; null where there is no row.
    Columns(Vec<usize>),
    /// pgbench's `\gset`: every column into the variable of its name behind the prefix; there must be one row.
    Named {
        prefix: String,
    },
    /// pgbench's `\aset`: likewise, but of the last row, and without one nothing changes.
    LastNamed {
        prefix: String,
    },
}

impl Statement {
    /// Whether its text depends on variables' values.
    pub fn is_templated(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Name(_)))
    }

    pub fn has_parameters(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Value(_)))
    }
}

/// Statements on their way into a program: variables still go by their names, since what sets them may come later.
#[derive(Debug, Default)]
pub struct Draft {
    pub names: Names,
    pub statements: Vec<DraftStatement>,
}

#[derive(Debug)]
pub struct DraftStatement {
    pub place: String,
    pub line: usize,
    pub form: Form,
    pub pieces: Vec<Piece>,
    pub question: bool,
    pub capture: Capture,
}

impl Draft {
    /// Takes in a statement and gives the step that it makes.
    pub fn statement(
        &mut self,
        source: &Source<'_>,
        at: usize,
        pieces: Vec<Piece>,
        question: bool,
    ) -> Action {
        match sql::control(&pieces) {
            Some(sql::Control::Begin) => return Action::Begin,
            Some(sql::Control::Commit) => return Action::Commit,
            Some(sql::Control::Rollback) => return Action::Rollback,
            None => {}
        }
        self.push(DraftStatement {
            place: source.place(at),
            line: source.line(at),
            form: Form::Sql,
            pieces,
            question,
            capture: Capture::Nothing,
        })
    }

    /// Takes in a request and gives the step that it makes.
    pub fn request(&mut self, source: &Source<'_>, at: usize, request: Request) -> Action {
        let Request { pieces, into } = request;
        self.push(DraftStatement {
            place: source.place(at),
            line: source.line(at),
            form: Form::Request,
            pieces,
            question: false,
            capture: if into.is_empty() { Capture::Nothing } else { Capture::Columns(into) },
        })
    }

    fn push(&mut self, statement: DraftStatement) -> Action {
        self.statements.push(statement);
        Action::Execute(self.statements.len() - 1)
    }

    /// Resolves the variables of all statements, and complains of those that nothing sets.
    pub fn finish(
        mut self,
        file: &str,
        mode: Mode,
        mut transactions: Vec<Transaction>,
        mistakes: &mut Mistakes,
    ) -> Program {
        let captures = self
            .statements
            .iter()
            .any(|statement| matches!(statement.capture, Capture::Named { .. } | Capture::LastNamed { .. }));
        let drafts = std::mem::take(&mut self.statements);
        let mut changes_schema = false;
        let mut statements = Vec::with_capacity(drafts.len());
        for draft in drafts {
            self.names.line = draft.line;
            let DraftStatement { place, form, pieces, question, capture, .. } = draft;
            let preparable = match form {
                Form::Request => true,
                Form::Sql => {
                    let word = sql::first_word(&pieces);
                    changes_schema |= matches!(word.as_str(), "CREATE" | "ALTER" | "DROP");
                    sql::is_preparable(&word) && mode != Mode::Simple
                }
            };
            let parts = resolve(&mut self.names, pieces, captures);
            let boundary = match parts.first() {
                Some(Part::Text(text)) => Boundary::of(text),
                _ => Boundary::None,
            };
            let statement = Statement { place, form, parts, preparable, capture, boundary };
            statements.push(complete(statement, question, mode, mistakes));
        }
        if !captures {
            self.complain_of_unset(file, mistakes);
        }
        let mut sequences = Vec::new();
        for transaction in &mut transactions {
            find_sequences(&transaction.steps, &mut sequences);
            transaction.restored = restored(&transaction.steps, &statements);
        }
        Program {
            mode,
            names: self.names.all().to_vec(),
            statements,
            transactions,
            memories: self.names.memories(),
            sequences,
            changes_schema,
        }
    }

    fn complain_of_unset(&self, file: &str, mistakes: &mut Mistakes) {
        for (name, line) in self.names.never_set() {
            let hint = options::unknown("variable", name, self.names.set()).hint_text().to_owned();
            mistakes.add(format!("{file}:{line}"), format!("nothing sets the variable :{name}"), hint);
        }
    }
}

/// Gives pieces their slots. A name within quotes that nothing sets is no variable.
fn resolve(names: &mut Names, pieces: Vec<Piece>, captures: bool) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let part = match piece {
            Piece::Text(text) => Part::Text(text),
            Piece::Variable { name, position: Position::Quoted } => {
                if names.is_written(&name) || (captures && names.find(&name).is_some()) {
                    Part::Name(names.read(&name))
                } else {
                    Part::Text(format!(":{name}"))
                }
            }
            Piece::Variable { name, position: Position::Value } => Part::Value(names.read(&name)),
            Piece::Variable { name, position: Position::Name } => Part::Name(names.read(&name)),
        };
        match (parts.last_mut(), part) {
            (Some(Part::Text(before)), Part::Text(text)) => before.push_str(&text),
            (_, part) => parts.push(part),
        }
    }
    parts
}

/// Settles how a statement is sent. Outside of what can be prepared no parameter can stand.
fn complete(mut statement: Statement, question: bool, mode: Mode, mistakes: &mut Mistakes) -> Statement {
    if question && statement.preparable {
        if statement.has_parameters() && mode == Mode::Prepared {
            let hint = "use the operator's function, or mode=simple";
            mistakes.add(&statement.place, "a ? outside of quotes cannot stand beside parameters", hint);
        }
        statement.preparable = false;
    }
    statement
}

fn find_sequences(steps: &[Step], sequences: &mut Vec<usize>) {
    use super::function::Function;
    let mut note = |part: &Expression| {
        if let Expression::Call { function: Function::Sequence, memory, .. } = part {
            sequences.push(*memory);
        }
    };
    for step in steps {
        match &step.action {
            Action::Set { expression, .. } => expression.walk(&mut note),
            Action::Sleep { duration: expression, .. } | Action::JumpUnless { condition: expression, .. } => {
                expression.walk(&mut note);
            }
            _ => {}
        }
    }
}

/// Variables whose values a second try must find, wherever it begins: at the first step, or with a statement or a
/// transaction before which others have committed.
fn restored(steps: &[Step], statements: &[Statement]) -> Vec<usize> {
    let begins = steps.iter().enumerate().filter(|(_, step)| matches!(step.action, Action::Begin));
    let begins = std::iter::once(0).chain(begins.map(|(number, _)| number));
    let mut all: Vec<usize> = begins.flat_map(|begin| set_after_read(steps, begin, statements)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Variables that the steps from one on set and may read before they have set them.
fn set_after_read(steps: &[Step], from: usize, statements: &[Statement]) -> Vec<usize> {
    let (mut certain, mut early, mut written) = (Vec::new(), Vec::new(), Vec::new());
    // Within a branch nothing is certain to be set; the farthest jump tells where branches end.
    let mut branch_end = 0;
    for (number, step) in steps.iter().enumerate().skip(from) {
        let mut read = |expression: &Expression| {
            expression.walk(&mut |part| match part {
                Expression::Variable(slot) if !certain.contains(slot) => early.push(*slot),
                _ => {}
            });
        };
        let mut set = Vec::new();
        match &step.action {
            Action::Set { slot, expression } => {
                read(expression);
                set.push(*slot);
            }
            Action::Sleep { duration, .. } => read(duration),
            Action::JumpUnless { condition, to } => {
                read(condition);
                branch_end = branch_end.max(*to);
            }
            Action::Jump(to) => branch_end = branch_end.max(*to),
            Action::Execute(statement) => {
                let statement = &statements[*statement];
                for part in &statement.parts {
                    match part {
                        Part::Value(slot) | Part::Name(slot) if !certain.contains(slot) => early.push(*slot),
                        _ => {}
                    }
                }
                match &statement.capture {
                    Capture::Columns(slots) => set.extend(slots),
                    // The columns are not known yet: any variable may be set.
                    Capture::Named { .. } | Capture::LastNamed { .. } => written.push(usize::MAX),
                    Capture::Nothing => {}
                }
            }
            Action::Begin | Action::Commit | Action::Rollback => {}
        }
        written.extend(&set);
        if number >= branch_end {
            certain.extend(set);
        }
    }
    early.retain(|slot| written.contains(slot) || written.contains(&usize::MAX));
    early
}
