//! A session that asks for the plan of each kind of statement, and executes no write. It takes the place of the session,
//! so that the transactions are those of the load, with all that follows from what they read.

use super::kinds;
use super::verb::Verb;
use crate::error::{Error, Fate, Result};
use crate::session::{hands_on, Answer, AnySession, Row, RowBuffer, Rows, Session, Statement, Target, Value};

/// What a write would have given back is not known without it.
const RETURNED: Value<'static> = Value::Int(1);
const COLUMNS_RETURNED: usize = 16;

pub(super) struct Explaining {
    session: AnySession,
    escaped_texts: bool,
    /// What each connection is told first.
    opening: Vec<String>,
    /// The text of each statement that was prepared, by its number.
    prepared: Vec<String>,
    /// A transaction is open. It is always rolled back, whatever a read may have called.
    held: bool,
}

struct Returned;

impl Row for Returned {
    fn columns(&self) -> usize {
        COLUMNS_RETURNED
    }

    fn value(&self, column: usize) -> Value<'_> {
        if column < COLUMNS_RETURNED {
            RETURNED
        } else {
            Value::Null
        }
    }
}

impl Explaining {
    async fn hold(&mut self) -> Result<()> {
        if !self.held {
            self.session.begin().await?;
            self.held = true;
        }
        Ok(())
    }

    async fn let_go(&mut self) -> Result<()> {
        if std::mem::take(&mut self.held) {
            self.session.rollback().await?;
        }
        Ok(())
    }

    /// Asks for the plan of a statement of a kind that was not met before.
    async fn look(
        &mut self,
        sql: &str,
        verb: Verb,
        prepared: Option<Statement>,
        parameters: &[Value<'_>],
    ) -> Result<()> {
        if matches!(verb, Verb::Session | Verb::Begin | Verb::End) {
            return Ok(());
        }
        let Some(text) = kinds::unmet(sql, self.escaped_texts) else { return Ok(()) };
        if verb == Verb::Other {
            kinds::keep(text, Err(Error::user("no engine has a plan for such a statement")));
            return Ok(());
        }
        self.hold().await?;
        let executed = kinds::executed();
        let outcome = if executed && verb != Verb::Read {
            Err(Error::user("no write is executed for its plan"))
        } else if executed && self.session.dialect().explain_executed.is_none() {
            Err(Error::user("it counts no rows of a plan"))
        } else {
            self.session.plan(executed, sql, prepared, parameters).await
        };
        match &outcome {
            Err(error) if error.fate() == Fate::Lost => return outcome.map(drop),
            // Some servers do nothing more in a transaction in which something has failed.
            Err(_) => self.let_go().await?,
            Ok(_) => {}
        }
        kinds::keep(text, outcome);
        Ok(())
    }

    fn text_of(&self, statement: Statement) -> String {
        self.prepared.get(statement.0 as usize).cloned().unwrap_or_default()
    }
}

/// What a statement that is not executed is taken to have done, `times` over.
fn taken_for_done<R: Rows>(verb: Verb, times: usize, rows: &mut R) -> Answer {
    let times = times as u64;
    match verb {
        Verb::Read => Answer { rows: times, affected: 0 },
        Verb::Write { returning } => {
            if returning && R::READS {
                rows.row(&Returned);
            }
            Answer { rows: u64::from(returning) * times, affected: times }
        }
        _ => Answer::default(),
    }
}

impl Session for Explaining {
    /// Some are: `AnySession::is_blocking` tells.
    async fn connect(target: &Target) -> Result<Self> {
        Ok(Explaining {
            session: AnySession::connect(target).await?,
            escaped_texts: target.protocol.has_escaped_texts(),
            opening: target.opening.clone(),
            prepared: Vec::new(),
            held: false,
        })
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let statement = match self.session.prepare(sql).await {
            Ok(statement) => statement,
            Err(error) => {
                if error.fate() != Fate::Lost {
                    self.let_go().await?;
                }
                return Err(error);
            }
        };
        let number = statement.0 as usize;
        self.prepared.resize(self.prepared.len().max(number + 1), String::new());
        sql.clone_into(&mut self.prepared[number]);
        Ok(statement)
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        self.execute_batch(statement, parameters, parameters.len(), rows).await
    }

    async fn execute_batch<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        width: usize,
        rows: &mut R,
    ) -> Result<Answer> {
        let sql = self.text_of(statement);
        let verb = Verb::of(&sql);
        let first = parameters.get(..width).unwrap_or(parameters);
        self.look(&sql, verb, Some(statement), first).await?;
        match verb {
            Verb::Read if R::READS => {
                self.hold().await?;
                match parameters.len() == width {
                    true => self.session.execute(statement, parameters, rows).await,
                    false => self.session.execute_batch(statement, parameters, width, rows).await,
                }
            }
            Verb::Session => self.session.execute(statement, parameters, rows).await,
            _ => Ok(taken_for_done(verb, parameters.len().checked_div(width).unwrap_or(1), rows)),
        }
    }

    async fn text<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        if self.opening.iter().any(|opening| opening == sql) {
            return self.session.text(sql, rows).await;
        }
        let verb = Verb::of(sql);
        self.look(sql, verb, None, &[]).await?;
        match verb {
            Verb::Read if R::READS => {
                self.hold().await?;
                self.session.text(sql, rows).await
            }
            Verb::Session => self.session.text(sql, rows).await,
            Verb::Begin => self.begin().await.map(|()| Answer::default()),
            Verb::End => self.let_go().await.map(|()| Answer::default()),
            _ => Ok(taken_for_done(verb, 1, rows)),
        }
    }

    async fn begin(&mut self) -> Result<()> {
        self.let_go().await?;
        self.hold().await
    }

    async fn commit(&mut self) -> Result<()> {
        self.let_go().await
    }

    async fn rollback(&mut self) -> Result<()> {
        self.let_go().await
    }

    async fn bulk_insert(
        &mut self,
        _table: &str,
        _columns: &[&str],
        _next: impl FnMut(&mut RowBuffer) -> bool,
    ) -> Result<u64> {
        Ok(0)
    }

    async fn drop_table(&mut self, _table: &str) -> Result<()> {
        Ok(())
    }

    async fn close(mut self) {
        // The connection goes away in any case.
        let _ = self.let_go().await;
        self.session.close().await;
    }

    hands_on!(session: dialect vector_sql server_version telling_of deallocate traffic);
}
