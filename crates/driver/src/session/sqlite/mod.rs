//! SQLite, as a library in the driver's process. Each session is a connection of its own to the file.

mod connection;
mod library;
mod open;
mod statement;

use super::engine_cpu::EngineCpu;
use super::{
    insert_of, plan::asked, Answer, Concrete, Dialect, Identity, Numbered, Owned, Placeholder, RowBuffer,
    Rows, Session, Statement, Target, Traffic, Value,
};
use crate::error::{Error, Fate, Result};
use connection::Connection;
use serde_json::json;
use statement::Prepared;
use std::time::Instant;

static DIALECT: Dialect = Dialect {
    name: "sqlite",
    placeholder: Placeholder::Question,
    identity: Identity::RowId,
    double: "DOUBLE PRECISION",
    timestamp: "TIMESTAMP",
    now: "CURRENT_TIMESTAMP",
    text: "TEXT",
    table_suffix: "",
    char_padded: false,
    for_update: false,
    update_returning: true,
    clustered: true,
    truncate: false,
    multi_row_insert: true,
    after_load: None,
    explain: None,
    explain_executed: None,
    warnings: None,
    counters: None,
    limit: "LIMIT {}",
    passed_over: None,
    procedures: None,
};

/// A session on one connection.
pub struct Sqlite {
    statements: Numbered<Prepared>,
    begin: Prepared,
    begin_immediate: Prepared,
    commit: Prepared,
    rollback: Prepared,
    connection: Connection,
    version: String,
    engine_cpu: EngineCpu,
    rows_received: u64,
    /// The last transaction ended because another had the write lock.
    lost_the_lock: bool,
    patience: std::time::Duration,
}

impl Sqlite {
    /// Runs `task` and counts the thread's CPU time for the engine's.
    fn counted<T>(&mut self, task: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.engine_cpu.enter();
        let result = task(self);
        self.engine_cpu.leave();
        result
    }

    fn run<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        match self.statements.get_mut(statement.0 as usize) {
            Some(prepared) => prepared.run(&self.connection, parameters.iter().copied(), rows),
            None => Err(Error::internal("a statement of another session")),
        }
    }

    /// Takes the write lock for a bulk load, queueing with the other loaders for longer than a transaction would.
    fn begin_load(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.patience;
        loop {
            match self.begin_immediate.run(&self.connection, std::iter::empty(), &mut ()) {
                Err(error) if error.fate() == Fate::Retry && Instant::now() < deadline => {}
                other => return other.map(drop),
            }
        }
    }

    fn load(&self, sql: &str, mut next: impl FnMut(&mut RowBuffer) -> bool) -> Result<u64> {
        let mut insert = Prepared::new(&self.connection, sql)?;
        let (mut row, mut rows) = (RowBuffer::default(), 0);
        while {
            row.clear();
            next(&mut row)
        } {
            insert.run(&self.connection, row.values(), &mut ())?;
            rows += 1;
        }
        Ok(rows)
    }
}

impl Concrete for Sqlite {
    const BLOCKING: bool = true;

    const BRIEF: bool = true;
}

impl Session for Sqlite {
    fn load_library(target: &Target) {
        let _ = open::load_library(target);
    }

    async fn connect(target: &Target) -> Result<Self> {
        let begin = if open::begins_immediately(target)? { "BEGIN IMMEDIATE" } else { "BEGIN DEFERRED" };
        let connection = open::open(target)?;
        target.shared.interrupts.add(&connection.known);
        Ok(Sqlite {
            begin: Prepared::new(&connection, begin)?,
            begin_immediate: Prepared::new(&connection, "BEGIN IMMEDIATE")?,
            lost_the_lock: false,
            commit: Prepared::new(&connection, "COMMIT")?,
            rollback: Prepared::new(&connection, "ROLLBACK")?,
            statements: Numbered::default(),
            version: format!("SQLite {}", connection.library.version()),
            connection,
            engine_cpu: EngineCpu::new(true),
            rows_received: 0,
            patience: target.answer_timeout,
        })
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn server_version(&self) -> &str {
        &self.version
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        Ok(self.statements.add(Prepared::new(&self.connection, &DIALECT.placeholders(sql))?))
    }

    async fn deallocate(&mut self, statement: Statement) -> Result<()> {
        drop(self.statements.take(statement));
        Ok(())
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        let answer = self.counted(|session| session.run(statement, parameters, rows));
        match &answer {
            Ok(answer) => self.rows_received += answer.rows,
            Err(error) => self.lost_the_lock = error.fate() == Fate::Retry,
        }
        answer
    }

    async fn text<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        self.counted(|session| {
            let mut statement = Prepared::new(&session.connection, sql)?;
            rows.names(&statement.column_names());
            statement.run(&session.connection, std::iter::empty(), rows)
        })
    }

    /// The rows of the plan as JSON: `[number, number of the row above, what is done]`.
    async fn plan(
        &mut self,
        _executed: bool,
        sql: &str,
        prepared: Option<Statement>,
        parameters: &[Value<'_>],
    ) -> Result<String> {
        let rows = asked(self, "EXPLAIN QUERY PLAN", sql, prepared, parameters).await?.rows;
        let steps = rows.iter().filter_map(|row| match row.as_slice() {
            [Owned::Int(number), Owned::Int(above), _, Owned::Text(what)] => {
                Some(json!([number, above, what]))
            }
            _ => None,
        });
        Ok(steps.collect::<serde_json::Value>().to_string())
    }

    /// SQLite does not let a transaction that has read wait for the write lock, as that might never end. One that was
    /// refused it is therefore tried again with the lock taken, and waited for, first.
    async fn begin(&mut self) -> Result<()> {
        let lock_first = std::mem::take(&mut self.lost_the_lock);
        self.counted(|session| {
            let begin = if lock_first { &mut session.begin_immediate } else { &mut session.begin };
            begin.run(&session.connection, std::iter::empty(), &mut ()).map(drop)
        })
    }

    async fn commit(&mut self) -> Result<()> {
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.counted(|session| session.commit.run(&session.connection, std::iter::empty(), &mut ()).map(drop))
    }

    async fn rollback(&mut self) -> Result<()> {
        // Some errors, such as a full disk, have rolled back already.
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.counted(|session| {
            session.rollback.run(&session.connection, std::iter::empty(), &mut ()).map(drop)
        })
    }

    async fn bulk_insert(
        &mut self,
        table: &str,
        columns: &[&str],
        next: impl FnMut(&mut RowBuffer) -> bool,
    ) -> Result<u64> {
        self.begin_load()?;
        let rows = self.counted(|session| session.load(&insert_of(table, columns), next));
        let end = if rows.is_ok() { self.commit().await } else { self.rollback().await };
        end.and(rows)
    }

    fn traffic(&self) -> Traffic {
        Traffic { rows_received: self.rows_received, ..Traffic::default() }
    }

    fn engine_cpu_ns(&self) -> Option<u64> {
        self.engine_cpu.used_ns()
    }

    async fn close(self) {}
}
