//! Plans of statements.

use super::dialect::DIALECT;
use super::Mysql;
use crate::error::{Error, Fate, Result};
use crate::session::plan::{asked, only_text};
use crate::session::{Session, Statement, Value};

/// MySQL's later format leaves out which rows are read before a statement is executed, and how an UPDATE finds its rows.
const FIRST_FORMAT: &str = "SET SESSION explain_json_format_version = 1";

pub(super) async fn plan(
    session: &mut Mysql,
    executed: bool,
    sql: &str,
    prepared: Option<Statement>,
    parameters: &[Value<'_>],
) -> Result<String> {
    if !session.server_version().contains("MariaDB") {
        // It tells actual rows in that later format alone.
        if executed {
            return Err(Error::user(
                "MySQL counts no rows of a plan in the format in which plans are compared",
            ));
        }
        match session.text(FIRST_FORMAT, &mut ()).await {
            // Before 8.1 there is the one format.
            Err(error) if error.fate() == Fate::Lost => return Err(error),
            _ => {}
        }
    }
    let before = DIALECT.explaining(executed).unwrap_or_default();
    only_text(asked(session, before, sql, prepared, parameters).await?)
}
