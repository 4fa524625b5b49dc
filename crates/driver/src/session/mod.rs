//! What a workload needs of a database connection. One folder per protocol or embedded engine implements it.

mod any;
mod dialect;
mod engine_cpu;
mod hands_on;
mod left;
mod library;
mod numbered;
mod open;
mod opening;
mod plan;
mod rows;
mod salted;
mod target;
mod value;

pub mod firebird;
pub mod http;
pub mod mysql;
pub mod postgresql;
pub mod sqlite;

pub(crate) use any::{by_protocol, AnySession};
pub(crate) use dialect::{is_name_byte, pieces, Syntax};
pub use dialect::{Dialect, Identity, Placeholder, ProcedureSql, VectorSql};
pub(crate) use hands_on::hands_on;
pub use http::MARK as REQUEST_MARK;
pub(crate) use left::end_what_was_left;
pub(crate) use numbered::Numbered;
pub(crate) use open::open;
pub use opening::{Isolation, Opening};
pub(crate) use rows::whole_number;
pub use rows::{Answer, Cell, Collect, Decode, Each, First, Row, Rows, Undecoded};
use salted::Hash;
pub use salted::Salted;
pub(crate) use target::{Encryption, Statements};
pub use target::{Protocol, Target, PARAMETERS as URL_PARAMETERS};
pub(crate) use value::{emptied, widened};
pub use value::{Owned, RowBuffer, Value};

pub use crate::io::Traffic;

use crate::error::{Error, Result};
use std::borrow::Cow;
use std::task::Poll;

/// A statement that a session has prepared: its number among those that the session holds, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement(pub u32);

/// One connection. It lives and dies on one thread, so nothing about it needs to be `Send`.
///
/// `execute`, `begin`, `commit` and `rollback` are the path of an operation: after warm-up they allocate nothing and
/// take no lock. SQL is written with `?` for parameters and is put into the session's own form by `prepare`.
pub trait Session: Sized + 'static {
    /// False where what is at the other end takes requests and no SQL.
    const TAKES_SQL: bool = true;

    /// Loads the library that sessions of an embedded engine live on. A library may change how its thread computes, and
    /// threads inherit that from the one that begins them: so the one that begins all others loads it, as in an
    /// application. Where that fails, `connect` says why.
    fn load_library(_target: &Target) {}

    /// Opens a session within `target.connect_timeout`; errors are of kind `Connect` or `User`.
    async fn connect(target: &Target) -> Result<Self>;

    fn dialect(&self) -> &'static Dialect;

    /// How the server stores and searches vectors; `None` where it does not.
    fn vector_sql(&self) -> Option<VectorSql> {
        None
    }

    /// The server's own words for its version.
    fn server_version(&self) -> &str;

    /// Prepares `sql` (parameters as `?`) for the life of the session; an application's session prepares a request.
    async fn prepare(&mut self, sql: &str) -> Result<Statement>;

    /// Lets go of a prepared statement, here and at the server. Its number may be given to the next one.
    async fn deallocate(&mut self, statement: Statement) -> Result<()>;

    /// What tells statements apart that are not of one kind: their text. Of a request it is the first line.
    fn telling(text: &str) -> Cow<'_, str> {
        text.into()
    }

    /// `telling`, asked of a session whose type does not say of which kind it is.
    fn telling_of<'t>(&self, text: &'t str) -> Cow<'t, str> {
        Self::telling(text)
    }

    /// Executes a prepared statement. Every row of the answer is read; each is shown to `rows`.
    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer>;

    /// Whether `send`, `poll_answer` and `unusual_answer` may do the work of `execute` for now. They are no futures within
    /// futures, each of which is gone through twice for an answer.
    #[inline]
    fn can_send(&self) -> bool {
        false
    }

    /// Sends one execution of a prepared statement of which nobody looks at the rows. True where the running task will be
    /// woken by its answer, so that nothing is to be polled before.
    fn send(&mut self, _statement: Statement, _parameters: &[Value<'_>]) -> Result<bool> {
        Err(Error::internal("a session that sends nothing by itself was asked to"))
    }

    /// The answer to what was sent, once it is here. `None`: it is not plain, and `unusual_answer` reads it.
    fn poll_answer(&mut self, _statement: Statement) -> Poll<Result<Option<Answer>>> {
        Poll::Ready(Ok(None))
    }

    /// The answer to what was sent with these parameters, of which `poll_answer` has made nothing.
    async fn unusual_answer(&mut self, statement: Statement, parameters: &[Value<'_>]) -> Result<Answer> {
        self.execute(statement, parameters, &mut ()).await
    }

    /// Executes the same statement once per `width` parameters, all in flight together where the protocol can.
    async fn execute_batch<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        width: usize,
        rows: &mut R,
    ) -> Result<Answer> {
        let mut sum = Answer::default();
        for one in parameters.chunks(width.max(1)) {
            sum += self.execute(statement, one, rows).await?;
        }
        Ok(sum)
    }

    /// Executes one statement given as text, without parameters, in the session's own SQL.
    async fn text<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer>;

    /// How the engine would execute a statement with these values, in the engine's own form: JSON where it has one.
    /// Nothing is executed; or, where the dialect has a word for it, the statement is, and its plan has the rows that
    /// each step expected and gave. `prepared` is the statement where the session has prepared it.
    async fn plan(
        &mut self,
        executed: bool,
        sql: &str,
        prepared: Option<Statement>,
        parameters: &[Value<'_>],
    ) -> Result<String> {
        match self.dialect().explaining(executed) {
            Some(before) => plan::only_text(plan::asked(self, before, sql, prepared, parameters).await?),
            None => Err(Error::user("it tells no plan of a statement")),
        }
    }

    async fn begin(&mut self) -> Result<()>;

    async fn commit(&mut self) -> Result<()>;

    /// Rolls back; fine outside of a transaction too.
    async fn rollback(&mut self) -> Result<()>;

    /// Inserts rows as fast as the protocol allows (multi-row INSERT, COPY, a batch) and commits them.
    /// `next` fills the buffer with one row in the order of `columns`, or returns false at the end.
    async fn bulk_insert(
        &mut self,
        table: &str,
        columns: &[&str],
        next: impl FnMut(&mut RowBuffer) -> bool,
    ) -> Result<u64>;

    /// Drops a table; one that is not there is no error.
    async fn drop_table(&mut self, table: &str) -> Result<()> {
        self.text(&format!("DROP TABLE IF EXISTS {table}"), &mut ()).await.map(drop)
    }

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    /// CPU time spent inside an embedded engine's calls so far; `None` where the engine is another process.
    fn engine_cpu_ns(&self) -> Option<u64> {
        None
    }

    /// Says goodbye. Dropping a session closes it too, without the courtesy.
    async fn close(self);
}

/// A session of one protocol, which is known where it is compiled.
pub trait Concrete: Session {
    /// Calls of this session block the thread (an embedded engine): each client then gets a thread of its own.
    const BLOCKING: bool;

    /// An answer can take so little work that a call through a pointer would show in it: runs of workloads that send
    /// short statements (`Workload::BRIEF`) are compiled for this very session.
    const BRIEF: bool = false;
}

/// The statement that inserts one row of a table by parameters.
fn insert_of(table: &str, columns: &[&str]) -> String {
    let marks = vec!["?"; columns.len()].join(", ");
    format!("INSERT INTO {table} ({}) VALUES ({marks})", columns.join(", "))
}
