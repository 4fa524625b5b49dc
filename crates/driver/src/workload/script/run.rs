//! Runs a program on a session. After the first round of a client's statements nothing is allocated.

use super::frame::Frame;
use super::program::{Action, Capture, Mode, Part, Program, Statement};
use super::rounds::Turn;
use super::text::write_double;
use super::variable::Variable;
use crate::error::{Error, Fate, Kind, Result};
use crate::io;
use crate::random::Random;
use crate::session::{self, emptied, Answer, Row, Rows, Session, Value};
use crate::workload::commits::{Boundary, Commits};
use crate::workload::Outcome;
use std::collections::HashMap;

/// Of a statement whose text depends on variables, the most forms that one client keeps prepared.
const MOST_VARIANTS: usize = 256;

/// What one client keeps between transactions.
pub struct Client {
    frame: Frame,
    /// Which statement is next, where each is sent by itself.
    pub turn: Turn,
    ready: Vec<Ready>,
    /// The variables that the transaction under way must find again if it is tried again.
    restored: Vec<Variable>,
    standing: Standing,
    commits: Commits,
    in_transaction: bool,
    /// Where a statement's text is put together.
    sql: Vec<u8>,
    /// Empty between statements; kept for its memory.
    parameters: Vec<Value<'static>>,
    caught: Caught,
}

/// From where on a transaction of the script is tried again: whatever committed before is not repeated.
#[derive(Default)]
struct Standing {
    kind: usize,
    /// The step that the next try begins with, and what it draws from; `None` for the draws of the whole.
    step: usize,
    random: Option<Random>,
    /// The next try goes on from there.
    again: bool,
}

/// How a statement is executed on a client's session.
#[derive(Debug)]
pub enum Ready {
    /// Not decided before the first execution.
    Open,
    Prepared(session::Statement),
    Variants(HashMap<Vec<u8>, session::Statement>),
    Text,
}

impl Client {
    /// Prepares the statements that can be prepared now.
    pub async fn new<S: Session>(program: &Program, frame: Frame, session: &mut S) -> Result<Self> {
        let mut ready = Vec::with_capacity(program.statements.len());
        let mut sql = Vec::new();
        for statement in &program.statements {
            ready.push(match (statement.preparable, statement.is_templated()) {
                (false, _) => Ready::Text,
                (true, true) => Ready::Variants(HashMap::new()),
                (true, false) if program.changes_schema => Ready::Open,
                (true, false) => prepared(program, statement, &frame, session, &mut sql).await?,
            });
        }
        Ok(Client {
            restored: vec![Variable::default(); frame.variables.len()],
            frame,
            turn: Turn::default(),
            ready,
            standing: Standing::default(),
            commits: Commits::default(),
            in_transaction: false,
            sql,
            parameters: Vec::new(),
            caught: Caught::new(program),
        })
    }

    /// Begins a try; gives the step that it begins with.
    fn begin(&mut self, kind: usize, slots: &[usize], random: &mut Random) -> usize {
        self.in_transaction = false;
        if std::mem::take(&mut self.standing.again) {
            self.commits.rolled_back();
            // The try before this one failed: its changes must not be seen.
            self.restore(slots);
            *random = self.standing.random.unwrap_or(*random);
        } else {
            self.standing = Standing { kind, ..Standing::default() };
            self.commits.begin();
            self.remember(slots);
        }
        self.standing.step
    }

    /// Notes a statement that is to be executed next: where something committed before it, and no transaction is open,
    /// nothing before it is repeated.
    fn stand(&mut self, step: usize, slots: &[usize], random: &Random) {
        if self.commits.committed && !self.commits.is_open() {
            (self.standing.step, self.standing.random) = (step, Some(*random));
            self.remember(slots);
        }
    }

    fn remember(&mut self, slots: &[usize]) {
        slots.iter().for_each(|&slot| self.restored[slot].copy_from(&self.frame.variables[slot]));
    }

    fn restore(&mut self, slots: &[usize]) {
        slots.iter().for_each(|&slot| self.frame.variables[slot].copy_from(&self.restored[slot]));
    }

    /// Has the next try go on where this one failed.
    pub fn try_again(&mut self) {
        self.standing.again = true;
    }

    /// Ends a transaction that failed: its variables are what they were before that part of it which did. Whether another
    /// part has changed rows for good.
    pub fn fail(&mut self, program: &Program) -> bool {
        let Standing { kind, .. } = std::mem::take(&mut self.standing);
        self.restore(&program.transactions[kind].restored);
        self.commits.rolled_back();
        self.commits.changed
    }

    /// Goes on with the variables of the client before, whose connection was lost.
    pub fn take_over(&mut self, lost: Client) {
        self.frame.variables = lost.frame.variables;
        self.turn = lost.turn;
    }
}

/// Prepares a statement, or finds that the server cannot infer its parameters' types and text must do.
pub async fn prepared<S: Session>(
    program: &Program,
    statement: &Statement,
    frame: &Frame,
    session: &mut S,
    sql: &mut Vec<u8>,
) -> Result<Ready> {
    render(statement, frame, Values::Marks, sql)?;
    let refused = match session.prepare(text_of(sql)).await {
        Ok(prepared) => return Ok(Ready::Prepared(prepared)),
        Err(error) => error.at(&statement.place),
    };
    let by_server = refused.kind() == Kind::Server && refused.fate() == Fate::Failed;
    if !(by_server && program.mode == Mode::Auto && statement.has_parameters()) {
        return Err(refused);
    }
    // If the same statement with a literal in each place is fine, only the parameters' types were in doubt.
    render(statement, frame, Values::Ones, sql)?;
    match session.prepare(text_of(sql)).await {
        Ok(_) => Ok(Ready::Text),
        Err(_) => Err(refused),
    }
}

/// Runs transaction `kind` once.
pub async fn perform<S: Session>(
    program: &Program,
    kind: usize,
    client: &mut Client,
    session: &mut S,
    random: &mut Random,
) -> Result<Outcome> {
    let transaction = &program.transactions[kind];
    let mut next = client.begin(kind, &transaction.restored, random);
    let mut outcome = Outcome::Committed;
    while let Some(step) = transaction.steps.get(next) {
        if matches!(step.action, Action::Begin | Action::Execute(_)) {
            client.stand(next, &transaction.restored, random);
        }
        next += 1;
        let frame = &mut client.frame;
        match &step.action {
            Action::Set { slot, expression } => {
                frame
                    .assign(*slot, expression, &program.names, random)
                    .map_err(|error| error.at(&step.place))?;
            }
            Action::Execute(statement) => execute(program, *statement, client, session).await?,
            Action::Begin => {
                session.begin().await?;
                client.in_transaction = true;
                client.commits.done(Boundary::Opens, false);
            }
            Action::Commit => {
                session.commit().await?;
                (client.in_transaction, outcome) = (false, Outcome::Committed);
                client.commits.done(Boundary::Commits, false);
            }
            Action::Rollback => {
                session.rollback().await?;
                (client.in_transaction, outcome) = (false, Outcome::RolledBack);
                client.commits.done(Boundary::RollsBack, false);
            }
            Action::Sleep { duration, unit_ns } => {
                let units =
                    frame.number(duration, &program.names, random).map_err(|error| error.at(&step.place))?;
                io::sleep_ns((units.max(0.0) * unit_ns) as u64).await;
            }
            Action::JumpUnless { condition, to } => {
                let holds =
                    frame.truth(condition, &program.names, random).map_err(|error| error.at(&step.place))?;
                next = if holds { next } else { *to };
            }
            Action::Jump(to) => next = *to,
        }
    }
    if client.in_transaction {
        let place = transaction.steps.last().map_or("", |step| step.place.as_str());
        return Err(
            Error::user(format!("{place}: the script ends within a transaction")).hint("end it with COMMIT")
        );
    }
    Ok(outcome)
}

async fn execute<S: Session>(
    program: &Program,
    number: usize,
    client: &mut Client,
    session: &mut S,
) -> Result<()> {
    let statement = &program.statements[number];
    let result = execute_here(program, number, client, session).await;
    // A lost connection is no fault of the statement.
    let answer = result.map_err(|error| match error.fate() {
        Fate::Failed | Fate::Retry => error.at(&statement.place),
        Fate::Lost | Fate::Fatal => error,
    })?;
    client.commits.done(statement.boundary, answer.affected > 0);
    Ok(())
}

async fn execute_here<S: Session>(
    program: &Program,
    number: usize,
    client: &mut Client,
    session: &mut S,
) -> Result<Answer> {
    let statement = &program.statements[number];
    let Client { frame, ready, sql, parameters, caught, .. } = client;
    if matches!(ready[number], Ready::Open) {
        ready[number] = prepared(program, statement, frame, session, sql).await?;
    }
    let prepared = match &mut ready[number] {
        // The columns' names come with text for certain, and are needed once.
        _ if caught.needs_names(number, statement) => None,
        Ready::Prepared(prepared) => Some(*prepared),
        Ready::Variants(variants) => variant(variants, statement, frame, session, sql).await?,
        Ready::Open | Ready::Text => None,
    };
    caught.start(number);
    let answer = match prepared {
        Some(prepared) => {
            let mut values = emptied(std::mem::take(parameters));
            for part in &statement.parts {
                if let Part::Value(slot) = part {
                    values.push(value_of(program, frame, *slot)?);
                }
            }
            let result = match statement.capture {
                Capture::Nothing => session.execute(prepared, &values, &mut ()).await,
                _ => session.execute(prepared, &values, caught).await,
            };
            *parameters = emptied(values);
            result?
        }
        None => {
            check_set(program, statement, frame)?;
            let values = if program.mode == Mode::Simple { Values::Raw } else { Values::Literals };
            render(statement, frame, values, sql)?;
            session.text(text_of(sql), caught).await?
        }
    };
    caught.store(program, number, frame)?;
    Ok(answer)
}

/// The prepared form of a statement for the names that its variables hold now; `None` where there are too many.
async fn variant<S: Session>(
    variants: &mut HashMap<Vec<u8>, session::Statement>,
    statement: &Statement,
    frame: &Frame,
    session: &mut S,
    sql: &mut Vec<u8>,
) -> Result<Option<session::Statement>> {
    render(statement, frame, Values::Marks, sql)?;
    if let Some(&prepared) = variants.get(sql.as_slice()) {
        return Ok(Some(prepared));
    }
    if variants.len() >= MOST_VARIANTS {
        return Ok(None);
    }
    let prepared = session.prepare(text_of(sql)).await?;
    variants.insert(sql.clone(), prepared);
    Ok(Some(prepared))
}

fn value_of<'a>(program: &Program, frame: &'a Frame, slot: usize) -> Result<Value<'a>> {
    let variable = &frame.variables[slot];
    match variable.is_set() {
        true => Ok(variable.value()),
        false => Err(unset(program, slot)),
    }
}

fn check_set(program: &Program, statement: &Statement, frame: &Frame) -> Result<()> {
    let unset_slot = statement.parts.iter().find_map(|part| match part {
        Part::Value(slot) | Part::Name(slot) if !frame.variables[*slot].is_set() => Some(*slot),
        _ => None,
    });
    unset_slot.map_or(Ok(()), |slot| Err(unset(program, slot)))
}

fn unset(program: &Program, slot: usize) -> Error {
    Error::user(format!("the variable :{} is used before it is set", program.names[slot]))
}

/// How variables in the place of values are put into a statement's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    /// A mark for each: `?` in SQL.
    Marks,
    /// `1`, to see whether the rest is right.
    Ones,
    /// As SQL literals.
    Literals,
    /// As they are.
    Raw,
}

/// Puts a statement's text together.
fn render(statement: &Statement, frame: &Frame, values: Values, sql: &mut Vec<u8>) -> Result<()> {
    sql.clear();
    for part in &statement.parts {
        match (part, values) {
            (Part::Text(text), _) => sql.extend_from_slice(text.as_bytes()),
            (Part::Value(_), Values::Marks) => sql.push(statement.form.mark()),
            (Part::Value(_), Values::Ones) => sql.push(b'1'),
            (Part::Value(slot), Values::Literals) => write_value(&frame.variables[*slot], true, sql)?,
            (Part::Value(slot) | Part::Name(slot), _) => write_value(&frame.variables[*slot], false, sql)?,
        }
    }
    Ok(())
}

/// Writes a variable as SQL text, quoted if it is text and `quoted` asks for it.
fn write_value(variable: &Variable, quoted: bool, sql: &mut Vec<u8>) -> Result<()> {
    use std::io::Write;
    if let Some(value) = variable.as_bool() {
        sql.extend_from_slice(if value { b"true" } else { b"false" });
        return Ok(());
    }
    match variable.value() {
        Value::Null => sql.extend_from_slice(b"NULL"),
        // Writing to a Vec cannot fail.
        Value::Int(value) => drop(write!(sql, "{value}")),
        Value::Float(value) => write_double(sql, value),
        Value::Text(text) if !quoted => sql.extend_from_slice(text.as_bytes()),
        // Whether a backslash escapes within quotes depends on the server's settings.
        Value::Text(text) if text.contains(['\\', '\0']) => {
            return Err(Error::user("a text with a backslash cannot be put into a statement sent as text")
                .hint("let the statement be prepared"));
        }
        Value::Text(text) => {
            sql.push(b'\'');
            text.bytes().for_each(|byte| match byte {
                b'\'' => sql.extend_from_slice(b"''"),
                byte => sql.push(byte),
            });
            sql.push(b'\'');
        }
        Value::Bytes(_) => {
            return Err(Error::user("bytes cannot be put into a statement sent as text")
                .hint("let the statement be prepared"));
        }
    }
    Ok(())
}

/// A statement with its variables' values in it.
pub fn text_with_values(program: &Program, statement: &Statement, frame: &Frame) -> Result<String> {
    check_set(program, statement, frame)?;
    let values = if program.mode == Mode::Simple { Values::Raw } else { Values::Literals };
    let mut sql = Vec::new();
    render(statement, frame, values, &mut sql)?;
    Ok(text_of(&sql).to_owned())
}

fn text_of(sql: &[u8]) -> &str {
    // Put together from texts alone.
    std::str::from_utf8(sql).unwrap_or_default()
}

/// Catches columns of an answer for variables.
struct Caught {
    /// For each statement which column goes where: pairs of column and slot. `None` until the names are known.
    columns: Vec<Option<Vec<(usize, usize)>>>,
    /// For statements whose columns go by their names: variables by name, with the prefix taken off.
    wanted: Vec<Vec<(String, usize)>>,
    current: usize,
    rows: u64,
    values: Vec<Variable>,
}

impl Caught {
    fn new(program: &Program) -> Self {
        let columns = program.statements.iter().map(|statement| match &statement.capture {
            Capture::Nothing => Some(Vec::new()),
            Capture::Columns(slots) => Some(slots.iter().copied().enumerate().collect()),
            Capture::Named { .. } | Capture::LastNamed { .. } => None,
        });
        let wanted = program.statements.iter().map(|statement| match &statement.capture {
            Capture::Named { prefix } | Capture::LastNamed { prefix } => {
                let named = program.names.iter().enumerate();
                named
                    .filter_map(|(slot, name)| Some((name.strip_prefix(prefix.as_str())?.to_owned(), slot)))
                    .collect()
            }
            _ => Vec::new(),
        });
        let (columns, wanted) = (columns.collect(), wanted.collect());
        Caught { columns, wanted, current: 0, rows: 0, values: Vec::new() }
    }

    fn needs_names(&self, number: usize, statement: &Statement) -> bool {
        self.columns[number].is_none() && statement.capture != Capture::Nothing
    }

    fn start(&mut self, number: usize) {
        (self.current, self.rows) = (number, 0);
        let count = self.columns[number].as_ref().map_or(0, Vec::len);
        if self.values.len() < count {
            self.values.resize_with(count, Variable::default);
        }
    }

    /// Moves what was caught into the variables.
    fn store(&mut self, program: &Program, number: usize, frame: &mut Frame) -> Result<()> {
        let capture = &program.statements[number].capture;
        match (capture, self.rows) {
            (Capture::Nothing, _) | (Capture::LastNamed { .. }, 0) => return Ok(()),
            (Capture::Named { .. }, rows) if rows != 1 => {
                return Err(Error::user(format!("\\gset needs one row, and there were {rows}"))
                    .hint("use \\aset where there may be none or many"));
            }
            _ => {}
        }
        let columns = self.columns[number].as_deref().unwrap_or_default();
        for (&(_, slot), value) in columns.iter().zip(&mut self.values) {
            if self.rows == 0 {
                value.set(Value::Null);
            }
            std::mem::swap(&mut frame.variables[slot], value);
        }
        Ok(())
    }
}

impl Rows for Caught {
    fn names(&mut self, names: &[String]) {
        if self.columns[self.current].is_some() {
            return;
        }
        let wanted = &self.wanted[self.current];
        let slot_of = |name: &String| wanted.iter().find(|(wanted, _)| wanted.eq_ignore_ascii_case(name));
        let pairs: Vec<(usize, usize)> =
            names.iter().enumerate().filter_map(|(column, name)| Some((column, slot_of(name)?.1))).collect();
        if self.values.len() < pairs.len() {
            self.values.resize_with(pairs.len(), Variable::default);
        }
        self.columns[self.current] = Some(pairs);
    }

    fn row(&mut self, row: &dyn Row) {
        self.rows += 1;
        if let Some(columns) = &self.columns[self.current] {
            for (&(column, _), value) in columns.iter().zip(&mut self.values) {
                value.set(row.value(column));
            }
        }
    }
}
