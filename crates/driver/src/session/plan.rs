//! Asking for a plan by a statement that stands before the statement it is of.

use super::{Collect, Owned, Session, Statement, Value};
use crate::error::{Error, Result};

/// What the engine answers to `before` and a statement, where that takes parameters like the statement itself.
pub(super) async fn asked<S: Session>(
    session: &mut S,
    before: &str,
    sql: &str,
    prepared: Option<Statement>,
    parameters: &[Value<'_>],
) -> Result<Collect> {
    let (sql, mut answer) = (format!("{before} {sql}"), Collect::default());
    match prepared {
        Some(_) => {
            let statement = session.prepare(&sql).await?;
            session.execute(statement, parameters, &mut answer).await?;
        }
        None => {
            session.text(&sql, &mut answer).await?;
        }
    }
    Ok(answer)
}

/// The text that an answer of one row and one column holds.
pub(super) fn only_text(answer: Collect) -> Result<String> {
    match answer.rows.into_iter().next().and_then(|row| row.into_iter().next()) {
        Some(Owned::Text(text)) => Ok(text),
        Some(Owned::Bytes(bytes)) => {
            String::from_utf8(bytes).map_err(|_| Error::protocol("a plan is no text"))
        }
        _ => Err(Error::protocol("the answer to EXPLAIN holds no plan")),
    }
}
