//! What a file holds, whichever its format: a program, and what is done around it.

use super::expression::Expression;
use super::frame::Frame;
use super::program::Program;
use super::variable::Variable;
use crate::error::{Error, Result};
use crate::random::Random;
use crate::session::{Collect, Owned, Session, Value};
use crate::workload::{CheckAgainst, Invariant};

/// A whole workload.
#[derive(Debug)]
pub struct Content {
    pub program: Program,
    /// Statements as text: before the load, after it, and at the end of all.
    pub setup: Vec<Text>,
    pub finish: Vec<Text>,
    pub cleanup: Vec<Text>,
    /// Tables that are dropped before `setup` and at the end.
    pub dropped: Vec<String>,
    pub tables: Vec<Table>,
    /// Asked once per run before the first client starts.
    pub start: Vec<Question>,
    pub invariants: Vec<Condition>,
    /// The values of the options, by slot.
    pub constants: Vec<(usize, Variable)>,
}

/// A statement that is sent as it is written.
#[derive(Debug)]
pub struct Text {
    pub sql: String,
    /// File and line.
    pub place: String,
}

/// A statement or a request whose answer's columns become variables of all clients.
#[derive(Debug)]
pub struct Question {
    pub text: String,
    /// The values of a request's variables; in a statement they stand in the text.
    pub values: Vec<Owned>,
    pub slots: Vec<usize>,
    /// Whether the first column of all rows becomes a list, not the columns of the first row.
    pub whole: bool,
    pub place: String,
}

impl Question {
    pub async fn ask<S: Session>(&self, session: &mut S) -> Result<Collect> {
        let mut rows = Collect::default();
        let values: Vec<Value<'_>> = self.values.iter().map(Owned::borrow).collect();
        let asked = match &values[..] {
            [] => session.text(&self.text, &mut rows).await,
            values => match session.prepare(&self.text).await {
                Ok(prepared) => session.execute(prepared, values, &mut rows).await,
                Err(error) => Err(error),
            },
        };
        asked.map_err(|error| error.at(&self.place))?;
        Ok(rows)
    }

    /// What the variables become. A list without a value is a mistake, because nothing can be drawn from it.
    pub fn answers(&self, rows: Collect) -> Result<Vec<(usize, Variable)>> {
        if self.whole {
            let values = rows.rows.into_iter().filter_map(|row| row.into_iter().next());
            let values: Vec<Owned> = values.filter(|value| !matches!(value, Owned::Null)).collect();
            if values.is_empty() {
                let hint = "load data into its table, or draw something else";
                return Err(Error::user("the list has no value").hint(hint).at(&self.place));
            }
            return Ok(self.slots.iter().map(|slot| (*slot, Variable::of_list(values.clone()))).collect());
        }
        let found = |column: usize| rows.rows.first().and_then(|row| row.get(column));
        let columns = self.slots.iter().enumerate().map(|(column, slot)| {
            let mut value = Variable::default();
            value.set(found(column).map_or(Value::Null, |cell| cell.borrow()));
            (*slot, value)
        });
        Ok(columns.collect())
    }
}

/// A table that is loaded with drawn rows.
#[derive(Debug)]
pub struct Table {
    pub name: String,
    pub rows: i64,
    pub columns: Vec<String>,
    /// For each column the slot and what is drawn into it.
    pub draws: Vec<(usize, Expression)>,
    pub names: Vec<String>,
    pub memories: usize,
    pub place: String,
}

/// Something about the data that must be true.
#[derive(Debug)]
pub struct Condition {
    pub name: String,
    pub query: String,
    /// What must hold of each row, or `None` where there must be no row.
    pub expect: Option<Expression>,
    pub names: Vec<String>,
    pub memories: usize,
    pub place: String,
}

impl Content {
    /// A frame with the options' values.
    pub fn frame(&self, variables: usize, memories: usize) -> Frame {
        let mut frame = Frame::new(variables, memories);
        for (slot, value) in self.constants.iter().filter(|(slot, _)| *slot < variables) {
            frame.variables[*slot].copy_from(value);
        }
        frame
    }

    /// `None` where the condition needs a run and none is known.
    pub async fn judge<S: Session>(
        &self,
        condition: &Condition,
        session: &mut S,
        against: CheckAgainst<'_>,
    ) -> Result<Option<Invariant>> {
        let mut rows = Collect::default();
        session.text(&condition.query, &mut rows).await.map_err(|error| error.at(&condition.place))?;
        let invariant = |holds, detail: String| Ok(Some(Invariant::new(&condition.name, holds, detail)));
        let Some(expect) = &condition.expect else {
            return invariant(rows.rows.is_empty(), format!("{} rows, none expected", rows.rows.len()));
        };
        let mut frame = self.frame(condition.names.len(), condition.memories);
        let slot_of = |name: &str| condition.names.iter().position(|known| known.eq_ignore_ascii_case(name));
        if let Some(told) = against.acknowledged {
            let by_name =
                told.by_transaction.iter().map(|(name, count)| (format!("acknowledged_{name}"), *count));
            let totals =
                [("acknowledged".to_owned(), told.acknowledged), ("unknown".to_owned(), told.unknown)];
            for (name, count) in totals.into_iter().chain(by_name) {
                if let Some(slot) = slot_of(&name) {
                    frame.variables[slot] = Variable::int(count as i64);
                }
            }
            // A transaction that was never acknowledged is not among the counts.
            for (slot, name) in condition.names.iter().enumerate() {
                if name.starts_with("acknowledged_") && !frame.variables[slot].is_set() {
                    frame.variables[slot] = Variable::int(0);
                }
            }
        } else if needs_run(expect, &condition.names) {
            return Ok(None);
        }
        if rows.rows.is_empty() {
            return invariant(false, "no row, and at least one expected".to_owned());
        }
        for row in &rows.rows {
            for (name, cell) in rows.names.iter().zip(row) {
                if let Some(slot) = slot_of(name) {
                    frame.variables[slot].set(cell.borrow());
                }
            }
            let holds = frame.truth(expect, &condition.names, &mut Random::new(0, 0));
            if !holds.map_err(|error| error.at(&condition.place))? {
                return invariant(false, shown(&rows.names, row));
            }
        }
        let detail = match &rows.rows[..] {
            [row] => shown(&rows.names, row),
            all => format!("{} rows", all.len()),
        };
        invariant(true, detail)
    }
}

fn shown(names: &[String], row: &[Owned]) -> String {
    let cells = names.iter().zip(row).map(|(name, cell)| format!("{name} {cell}"));
    cells.collect::<Vec<_>>().join(", ")
}

/// Whether a condition compares with what clients were told.
fn needs_run(expect: &Expression, names: &[String]) -> bool {
    let mut needs = false;
    expect.walk(&mut |part| {
        if let Expression::Variable(slot) = part {
            let name = &names[*slot];
            needs |= name == "acknowledged" || name == "unknown" || name.starts_with("acknowledged_");
        }
    });
    needs
}
