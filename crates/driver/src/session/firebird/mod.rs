//! Firebird, embedded or over its network protocol, through its client library's object interfaces: a point select
//! takes 6.3 us of CPU where the library's older functions (`isc_dsql_execute`, `isc_dsql_fetch`) take 8.0, since those
//! translate every call's parameters into a message, which here is laid out once per statement.

mod attach;
mod bulk;
mod cancel;
mod connection;
mod interfaces;
mod library;
mod message;
mod statement;
mod status;
mod text;

use super::engine_cpu::EngineCpu;
use super::{
    Answer, Concrete, Dialect, First, Identity, Numbered, Owned, Placeholder, RowBuffer, Rows, Session,
    Statement, Target, Traffic, Value,
};
use crate::error::{Error, Fate, Result};
use cancel::Cancel;
use connection::Connection;
use statement::{Prepared, Shape};
use std::sync::Arc;
use std::time::{Duration, Instant};

const DEFINITION_PATIENCE: Duration = Duration::from_secs(30);
const DEFINITION_PAUSE: Duration = Duration::from_millis(20);

/// The attachment's own. Each transaction sees them as they were when it first looked.
const COUNTERS: &str = "SELECT r.MON$RECORD_SEQ_READS AS \"rows read in scans\", \
    r.MON$RECORD_IDX_READS AS \"rows read by an index\", i.MON$PAGE_FETCHES AS \"pages looked at\", \
    i.MON$PAGE_READS AS \"pages read\" FROM MON$ATTACHMENTS a \
    JOIN MON$RECORD_STATS r ON r.MON$STAT_ID = a.MON$STAT_ID \
    JOIN MON$IO_STATS i ON i.MON$STAT_ID = a.MON$STAT_ID WHERE a.MON$ATTACHMENT_ID = CURRENT_CONNECTION";

static DIALECT: Dialect = Dialect {
    name: "firebird",
    placeholder: Placeholder::Question,
    identity: Identity::GeneratedByDefault,
    double: "DOUBLE PRECISION",
    timestamp: "TIMESTAMP",
    now: "LOCALTIMESTAMP",
    text: "BLOB SUB_TYPE TEXT",
    table_suffix: "",
    char_padded: true,
    for_update: true,
    update_returning: true,
    clustered: false,
    truncate: false,
    multi_row_insert: false,
    after_load: None,
    explain: None,
    explain_executed: None,
    warnings: None,
    counters: Some(COUNTERS),
    limit: "FETCH FIRST {} ROWS ONLY",
    passed_over: None,
    procedures: None,
};

/// A session on one attachment.
pub struct Firebird {
    statements: Numbered<Prepared>,
    connection: Connection,
    version: String,
    engine_cpu: EngineCpu,
    rows_received: u64,
    /// Goes last, because detaching waits for the server too.
    _cancel: Arc<Cancel>,
}

impl Firebird {
    /// Runs `task` and counts the thread's CPU time for the engine's.
    fn counted<T>(&mut self, task: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.engine_cpu.enter();
        let result = task(self);
        self.engine_cpu.leave();
        result
    }

    fn read_version(&mut self) -> Result<String> {
        let sql = "SELECT rdb$get_context('SYSTEM', 'ENGINE_VERSION') FROM rdb$database";
        let mut version = First::<Owned>::default();
        self.run_text(sql, &mut version)?;
        match version.0 {
            Some(Owned::Text(version)) => Ok(version),
            _ => Err(Error::protocol("the server does not say its version")),
        }
    }

    fn run_text<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        let mut statement = Prepared::new(&mut self.connection, sql.to_owned())?;
        match statement.shape() {
            Shape::Begin => return self.connection.begin().map(|()| Answer::default()),
            Shape::Commit => return self.connection.commit().map(|()| Answer::default()),
            Shape::Rollback => return self.connection.rollback().map(|()| Answer::default()),
            Shape::Definition => {
                self.let_go_of_tables()?;
                return self.define(statement);
            }
            _ => {}
        }
        rows.names(statement.column_names());
        let answer = statement.run(&mut self.connection, &[], rows)?;
        statement.release(&mut self.connection)?;
        // The monitoring tables show one state for as long as a transaction lasts.
        self.connection.end_reader()?;
        Ok(answer)
    }

    /// Executes DDL. What two sessions define at the same time can conflict in the tables that hold definitions, and no
    /// transaction runner is there to try again.
    fn define(&mut self, mut statement: Prepared) -> Result<Answer> {
        let deadline = Instant::now() + DEFINITION_PATIENCE;
        loop {
            match statement.run(&mut self.connection, &[], &mut ()) {
                Err(error)
                    if error.fate() == Fate::Retry
                        && self.connection.explicit().is_none()
                        && Instant::now() < deadline =>
                {
                    std::thread::sleep(DEFINITION_PAUSE);
                }
                answer => return answer,
            }
        }
    }

    /// Prepared statements and the reading transaction hold the tables that they use against DDL.
    fn let_go_of_tables(&mut self) -> Result<()> {
        for statement in self.statements.iter_mut() {
            statement.release(&mut self.connection)?;
        }
        self.connection.end_reader()
    }
}

impl Concrete for Firebird {
    const BLOCKING: bool = true;
}

impl Session for Firebird {
    fn load_library(target: &Target) {
        let _ = attach::load_library(target);
    }

    async fn connect(target: &Target) -> Result<Self> {
        let (library, status, attachment) = attach::attach(target)?;
        let cancel = Arc::new(Cancel::new(library.status(), &attachment, target.host.is_empty()));
        target.shared.interrupts.add(&cancel);
        let connection = Connection::new(status, attachment);
        let engine_cpu = EngineCpu::new(target.host.is_empty());
        let (statements, version) = (Numbered::default(), String::new());
        let mut session =
            Firebird { statements, connection, version, engine_cpu, rows_received: 0, _cancel: cancel };
        let version = session.read_version().map_err(Error::while_connecting)?;
        let major: u32 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
        session.connection.end_reader()?;
        session.connection.suit(major);
        session.version = format!("Firebird {version}");
        Ok(session)
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn server_version(&self) -> &str {
        &self.version
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let sql = locking(sql);
        let prepared = self.counted(|session| Prepared::new(&mut session.connection, sql))?;
        Ok(self.statements.add(prepared))
    }

    async fn deallocate(&mut self, statement: Statement) -> Result<()> {
        match self.statements.take(statement) {
            Some(mut prepared) => self.counted(|session| prepared.release(&mut session.connection)),
            None => Ok(()),
        }
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        let answer = self.counted(|session| match session.statements.get_mut(statement.0 as usize) {
            Some(prepared) => prepared.run(&mut session.connection, parameters, rows),
            None => Err(Error::internal("a statement of another session")),
        })?;
        self.rows_received += answer.rows;
        Ok(answer)
    }

    async fn text<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        self.counted(|session| session.run_text(sql, rows))
    }

    /// The plan as the engine words it; empty where a statement needs none.
    async fn plan(
        &mut self,
        _executed: bool,
        sql: &str,
        prepared: Option<Statement>,
        _parameters: &[Value<'_>],
    ) -> Result<String> {
        let known = prepared.map(|statement| statement.0 as usize);
        self.counted(|session| match known.and_then(|number| session.statements.get_mut(number)) {
            Some(prepared) => prepared.plan(&mut session.connection),
            None => {
                let mut statement = Prepared::new(&mut session.connection, sql.to_owned())?;
                let plan = statement.plan(&mut session.connection);
                statement.release(&mut session.connection).and(plan)
            }
        })
    }

    async fn begin(&mut self) -> Result<()> {
        self.counted(|session| session.connection.begin())
    }

    async fn commit(&mut self) -> Result<()> {
        self.counted(|session| session.connection.commit())
    }

    async fn rollback(&mut self) -> Result<()> {
        self.counted(|session| session.connection.rollback())
    }

    async fn bulk_insert(
        &mut self,
        table: &str,
        columns: &[&str],
        next: impl FnMut(&mut RowBuffer) -> bool,
    ) -> Result<u64> {
        self.counted(|session| bulk::insert(&mut session.connection, table, columns, next))
    }

    async fn drop_table(&mut self, table: &str) -> Result<()> {
        let mut found = First::<i64>::default();
        // Firebird 6 is the first to know DROP TABLE IF EXISTS.
        let name = table.to_ascii_uppercase().replace('\'', "''");
        let sql = format!("SELECT COUNT(*) FROM rdb$relations WHERE rdb$relation_name = '{name}'");
        self.text(&sql, &mut found).await?;
        if found.0.unwrap_or(0) > 0 {
            self.text(&format!("DROP TABLE {table}"), &mut ()).await?;
        }
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        Traffic { rows_received: self.rows_received, ..Traffic::default() }
    }

    fn engine_cpu_ns(&self) -> Option<u64> {
        self.engine_cpu.used_ns()
    }

    async fn close(self) {}
}

/// `FOR UPDATE` alone only keeps rows from being sent ahead; `WITH LOCK` is what locks them.
fn locking(sql: &str) -> String {
    match sql.strip_suffix(" FOR UPDATE") {
        Some(query) => format!("{query} WITH LOCK"),
        None => sql.to_owned(),
    }
}
