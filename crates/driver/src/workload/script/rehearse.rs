//! Evaluates what a script certainly evaluates, before there is a server: expressions that cannot be are mistakes.

use super::content::{Content, Table};
use super::expression::Expression;
use super::frame::{Counter, Frame, Memory};
use super::program::{Action, Capture, Step};
use super::variable::{Variable, CLIENT_ID};
use crate::error::{Error, Mistake};
use crate::random::Random;
use std::sync::Arc;

/// The expressions that fail in the first row of each table, and in the first steps of each transaction.
pub fn rehearse(content: &Content) -> Vec<Mistake> {
    let rows = content.tables.iter().filter(|table| table.rows > 0).filter_map(|table| row(content, table));
    let transactions = &content.program.transactions;
    rows.chain(transactions.iter().flat_map(|transaction| steps(content, &transaction.steps))).collect()
}

/// The first column of a table that cannot be drawn.
fn row(content: &Content, table: &Table) -> Option<Mistake> {
    let mut frame = content.frame(table.names.len(), table.memories);
    let mut random = Random::new(0, 0);
    frame.row = 1;
    table.draws.iter().zip(&table.columns).find_map(|((slot, expression), column)| {
        let failed = frame.assign(*slot, expression, &table.names, &mut random).err()?;
        Some(mistake(&table.place, &failed.at(format!("{column} of {}", table.name))))
    })
}

/// The steps that fail among those that are carried out whatever a server answers: up to the first branch, and without
/// those that need an answer.
fn steps(content: &Content, steps: &[Step]) -> Vec<Mistake> {
    let program = &content.program;
    let mut frame = content.frame(program.names.len(), program.memories);
    frame.variables[CLIENT_ID] = Variable::int(0);
    for memory in &program.sequences {
        frame.memories[*memory] = Memory::Counter(Arc::new(Counter::new(0, 1)));
    }
    content.start.iter().flat_map(|question| &question.slots).for_each(|slot| forget(&mut frame, *slot));
    let (mut random, mut found) = (Random::new(0, 0), Vec::new());
    for step in steps {
        let failed = match &step.action {
            Action::Set { slot, expression } if is_known(expression, &frame) => {
                frame.assign(*slot, expression, &program.names, &mut random).err()
            }
            Action::Set { slot, .. } => {
                forget(&mut frame, *slot);
                None
            }
            Action::Sleep { duration, .. } if is_known(duration, &frame) => {
                frame.number(duration, &program.names, &mut random).err()
            }
            Action::Execute(number) => match &program.statements[*number].capture {
                Capture::Nothing => None,
                Capture::Columns(slots) => {
                    slots.iter().for_each(|slot| forget(&mut frame, *slot));
                    None
                }
                // Any variable may be set by the columns.
                Capture::Named { .. } | Capture::LastNamed { .. } => break,
            },
            Action::JumpUnless { condition, .. } => {
                if is_known(condition, &frame) {
                    found.extend(
                        frame
                            .truth(condition, &program.names, &mut random)
                            .err()
                            .map(|it| mistake(&step.place, &it)),
                    );
                }
                break;
            }
            Action::Jump(_) => break,
            _ => None,
        };
        found.extend(failed.map(|failed| mistake(&step.place, &failed)));
    }
    found
}

fn mistake(place: &str, error: &Error) -> Mistake {
    Mistake {
        place: place.to_owned(),
        message: error.message().to_owned(),
        hint: error.hint_text().to_owned(),
    }
}

fn forget(frame: &mut Frame, slot: usize) {
    frame.variables[slot] = Variable::default();
}

fn is_known(expression: &Expression, frame: &Frame) -> bool {
    let mut known = true;
    expression.walk(&mut |part| {
        if let Expression::Variable(slot) = part {
            known &= frame.variables[*slot].is_set();
        }
    });
    known
}
