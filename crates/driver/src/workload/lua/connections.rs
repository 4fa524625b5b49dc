//! The connections of one client's script: the session that the driver opened for the client, and others of the same
//! kind that the script opens beside it.

use crate::error::{Code, Error, Result};
use crate::session::{self, open, Answer, Numbered, Rows, Session, Target, Traffic, Value};
use crate::workload::commits::{Boundary, Commits};
use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

/// What a server cannot prepare is sent as text: MySQL's "not supported in the prepared statement protocol".
const UNPREPARABLE: Code = Code::Mysql(1295);
/// As many as the number of a request has room for.
const OTHERS_MAX: usize = 0xFFFF;

/// Connections by number: 0 is the driver's session, which it lends for each call.
pub(super) struct Connections {
    target: Option<Target>,
    first: First,
    /// Number 1 and on. The sessions are of the type of the driver's.
    others: Vec<Option<Box<dyn Any>>>,
    statements: Vec<Statements>,
    /// What of the event under way is committed, by connection.
    commits: Vec<Commits>,
    /// What went over connections that are closed, the driver's session included where the script had it opened anew.
    gone: Traffic,
    /// The same with what has gone over all that are open but the driver's session.
    beside: Rc<Cell<Traffic>>,
}

/// Whether the script has the driver's session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Unused,
    Open,
    /// The script closed it. The session stays open until the script wants a connection again.
    Closed,
}

/// The statements that a connection has prepared, each text once.
#[derive(Default)]
struct Statements {
    by_text: HashMap<String, usize>,
    all: Numbered<Shared>,
}

/// A statement of one text, and how often the script has prepared it without closing it.
struct Shared {
    statement: Statement,
    boundary: Boundary,
    users: usize,
}

enum Statement {
    Prepared(session::Statement),
    Transaction(Transaction),
    Text(String),
}

/// A statement that is a call of the session's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transaction {
    Begin,
    Commit,
    Rollback,
}

impl Connections {
    pub fn new(target: Option<Target>) -> Self {
        let (others, statements, commits) = (Vec::new(), Vec::new(), Vec::new());
        let (gone, beside) = (Traffic::default(), Rc::default());
        Connections { target, first: First::Unused, others, statements, commits, gone, beside }
    }

    /// All connections are lost. What went over them stays counted.
    pub fn lose(&mut self) {
        self.gone = self.beside.get();
        self.first = First::Unused;
        self.others.clear();
        self.statements.clear();
        self.commits.clear();
    }

    /// What goes over the connections but the driver's session, as it grows.
    pub fn beside(&self) -> Rc<Cell<Traffic>> {
        Rc::clone(&self.beside)
    }

    fn note_traffic<S: Session>(&self) {
        let open = self.others.iter().flatten().filter_map(|other| other.downcast_ref::<S>());
        self.beside.set(open.fold(self.gone, |sum, session| sum + session.traffic()));
    }

    /// An event begins.
    pub fn begin(&mut self) {
        self.commits.iter_mut().for_each(Commits::begin);
    }

    /// Whether the event under way has changed rows for good.
    pub fn changed(&self) -> bool {
        self.commits.iter().any(|commits| commits.changed)
    }

    /// Gives the script a connection: the driver's session first.
    pub async fn connect<S: Session>(&mut self, session: &mut S) -> Result<usize> {
        let number = match self.first {
            First::Unused => 0,
            First::Closed => {
                let gone = replace(session, self.target()?).await?;
                self.gone = self.gone + gone;
                0
            }
            First::Open => {
                let opened: Box<dyn Any> = Box::new(open::<S>(self.target()?).await?);
                let free = self.others.iter().position(Option::is_none);
                let place = free.unwrap_or(self.others.len());
                if place >= OTHERS_MAX {
                    return Err(Error::user("a client's script has opened 65,536 connections").fatal());
                }
                self.others.resize_with(self.others.len().max(place + 1), || None);
                self.others[place] = Some(opened);
                place + 1
            }
        };
        if number == 0 {
            self.first = First::Open;
        }
        self.forget_statements(number);
        self.note_traffic::<S>();
        Ok(number)
    }

    pub async fn disconnect<S: Session>(&mut self, connection: usize) {
        if connection == 0 {
            self.first = First::Closed;
        } else if let Some(other) = self.others.get_mut(connection - 1).and_then(Option::take) {
            if let Ok(session) = other.downcast::<S>() {
                self.gone = self.gone + session.traffic();
                session.close().await;
            }
        }
    }

    pub async fn reconnect<S: Session>(&mut self, connection: usize, session: &mut S) -> Result<()> {
        let target = self.target()?.clone();
        let gone = replace(self.session(connection, session)?, &target).await?;
        self.gone = self.gone + gone;
        self.forget_statements(connection);
        self.note_traffic::<S>();
        Ok(())
    }

    /// Executes one statement given as text.
    pub async fn query<S: Session, R: Rows>(
        &mut self,
        connection: usize,
        session: &mut S,
        sql: &str,
        rows: &mut R,
    ) -> Result<Answer> {
        let answer = execute_text(self.session(connection, session)?, sql, rows).await;
        self.done::<S>(connection, Boundary::of(sql), answer)
    }

    fn done<S: Session>(
        &mut self,
        connection: usize,
        boundary: Boundary,
        answer: Result<Answer>,
    ) -> Result<Answer> {
        if connection > 0 {
            self.note_traffic::<S>();
        }
        let answer = answer?;
        if let Some(commits) = self.commits.get_mut(connection) {
            commits.done(boundary, answer.affected > 0);
        }
        Ok(answer)
    }

    /// Prepares a statement, or finds the one of the same text; returns its number on this connection.
    pub async fn prepare<S: Session>(
        &mut self,
        connection: usize,
        session: &mut S,
        sql: &str,
    ) -> Result<usize> {
        let statements = &mut self.statements[connection];
        if let Some(&number) = statements.by_text.get(sql) {
            statements.all.get_mut(number).ok_or_else(unknown_number)?.users += 1;
            return Ok(number);
        }
        let statement = match Transaction::of(sql) {
            Some(transaction) => Statement::Transaction(transaction),
            None => match self.session(connection, session)?.prepare(sql).await {
                Ok(statement) => Statement::Prepared(statement),
                Err(error) if error.code() == UNPREPARABLE => Statement::Text(sql.to_owned()),
                Err(error) => return Err(error),
            },
        };
        let statements = &mut self.statements[connection];
        let number =
            statements.all.add(Shared { statement, boundary: Boundary::of(sql), users: 1 }).0 as usize;
        statements.by_text.insert(sql.to_owned(), number);
        Ok(number)
    }

    /// Lets go of a statement, with the last of those that share it also at the server.
    pub async fn close_statement<S: Session>(
        &mut self,
        connection: usize,
        session: &mut S,
        number: usize,
    ) -> Result<()> {
        let statements = self.statements.get_mut(connection).ok_or_else(unknown_number)?;
        let shared = statements.all.get_mut(number).ok_or_else(unknown_number)?;
        shared.users -= 1;
        if shared.users > 0 {
            return Ok(());
        }
        statements.by_text.retain(|_, known| *known != number);
        match statements.all.take(session::Statement(number as u32)).map(|shared| shared.statement) {
            Some(Statement::Prepared(statement)) => {
                self.session(connection, session)?.deallocate(statement).await
            }
            _ => Ok(()),
        }
    }

    /// Executes a statement by its number.
    pub async fn execute<S: Session, R: Rows>(
        &mut self,
        connection: usize,
        session: &mut S,
        statement: usize,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        let known = self.statements.get(connection).and_then(|statements| statements.all.get(statement));
        let Shared { statement, boundary, .. } = known.ok_or_else(unknown_number)?;
        let boundary = *boundary;
        let answer = match statement {
            Statement::Prepared(statement) => {
                let statement = *statement;
                self.session(connection, session)?.execute(statement, parameters, rows).await
            }
            Statement::Transaction(transaction) => {
                let transaction = *transaction;
                transaction.perform(self.session(connection, session)?).await
            }
            Statement::Text(sql) => {
                let sql = sql.clone();
                execute_text(self.session(connection, session)?, &sql, rows).await
            }
        };
        self.done::<S>(connection, boundary, answer)
    }

    /// Rolls back on all connections but the driver's session, which the driver itself rolls back.
    pub async fn rollback_others<S: Session>(&mut self) -> Result<()> {
        self.commits.iter_mut().for_each(Commits::rolled_back);
        for other in self.others.iter_mut().flatten() {
            if let Some(session) = other.downcast_mut::<S>() {
                session.rollback().await?;
            }
        }
        Ok(())
    }

    /// The session of a connection.
    fn session<'a, S: Session>(&'a mut self, connection: usize, first: &'a mut S) -> Result<&'a mut S> {
        if connection == 0 {
            return Ok(first);
        }
        let other = self.others.get_mut(connection - 1).and_then(Option::as_mut);
        other.and_then(|other| other.downcast_mut::<S>()).ok_or_else(unknown_number)
    }

    fn target(&self) -> Result<&Target> {
        self.target.as_ref().ok_or_else(|| Error::internal("the script wants a connection without a server"))
    }

    fn forget_statements(&mut self, connection: usize) {
        if self.statements.len() <= connection {
            self.statements.resize_with(connection + 1, Statements::default);
            self.commits.resize_with(connection + 1, Commits::default);
        }
        self.commits[connection].rolled_back();
        self.statements[connection] = Statements::default();
    }
}

impl Transaction {
    /// What begins and ends transactions, in the spellings of the engines.
    fn of(sql: &str) -> Option<Self> {
        let sql = sql.trim().trim_end_matches(';').trim_end();
        let is = |words: &[&str]| words.iter().any(|word| sql.eq_ignore_ascii_case(word));
        if is(&["begin", "start transaction"]) {
            Some(Transaction::Begin)
        } else if is(&["commit"]) {
            Some(Transaction::Commit)
        } else {
            is(&["rollback"]).then_some(Transaction::Rollback)
        }
    }

    async fn perform<S: Session>(self, session: &mut S) -> Result<Answer> {
        match self {
            Transaction::Begin => session.begin().await,
            Transaction::Commit => session.commit().await,
            Transaction::Rollback => session.rollback().await,
        }
        .map(|()| Answer::default())
    }
}

async fn execute_text<S: Session, R: Rows>(session: &mut S, sql: &str, rows: &mut R) -> Result<Answer> {
    match Transaction::of(sql) {
        Some(transaction) => transaction.perform(session).await,
        None => session.text(sql, rows).await,
    }
}

/// Opens a session in the place of another. What went over that one.
async fn replace<S: Session>(session: &mut S, target: &Target) -> Result<Traffic> {
    let fresh = open::<S>(target).await?;
    let old = std::mem::replace(session, fresh);
    let traffic = old.traffic();
    old.close().await;
    Ok(traffic)
}

#[cold]
fn unknown_number() -> Error {
    Error::internal("the script names a connection or a statement that it does not have")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_begin_and_end_in_every_spelling() {
        for (sql, expected) in [
            ("BEGIN", Some(Transaction::Begin)),
            (" start TRANSACTION ; ", Some(Transaction::Begin)),
            ("Commit;", Some(Transaction::Commit)),
            ("ROLLBACK", Some(Transaction::Rollback)),
            ("BEGIN WORK", None),
            ("ROLLBACK TO a", None),
            ("SELECT 1", None),
        ] {
            assert_eq!(Transaction::of(sql), expected, "{sql}");
        }
    }
}
