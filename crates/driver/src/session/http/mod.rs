//! HTTP/1.1 as a session: a request is a statement, and what is taken from its answer is a row.
//!
//! So everything that drives a database drives an application too: clients, pace, errors by kind, scripts with
//! captures. What an application has none of (SQL, transactions, bulk loads) is refused.

mod answer;
mod body;
mod connection;
mod status;
mod take;
mod template;
mod write;

pub use template::MARK;

use super::{
    Answer, Concrete, Dialect, Identity, Numbered, Placeholder, RowBuffer, Rows, Session, Statement, Target,
    Traffic, Value,
};
use crate::error::{Error, Result};
use connection::Connection;
use std::borrow::Cow;
use template::Template;

/// An application takes requests, so no workload writes SQL for it.
static DIALECT: Dialect = Dialect {
    name: "http",
    placeholder: Placeholder::Question,
    identity: Identity::RowId,
    double: "",
    timestamp: "",
    now: "",
    text: "",
    table_suffix: "",
    char_padded: false,
    for_update: false,
    update_returning: false,
    clustered: false,
    truncate: false,
    multi_row_insert: false,
    after_load: None,
    explain: None,
    explain_executed: None,
    warnings: None,
    counters: None,
    limit: "",
    passed_over: None,
    procedures: None,
};

/// One client of an application, on a connection that is kept between requests where the application keeps it.
pub struct Http {
    connection: Connection,
    prepared: Numbered<Template>,
}

impl Concrete for Http {
    const BLOCKING: bool = false;
}

impl Session for Http {
    const TAKES_SQL: bool = false;

    async fn connect(target: &Target) -> Result<Self> {
        target.allow_parameters()?;
        if !(target.user.is_empty() && target.password.is_empty() && target.database.is_empty()) {
            return Err(Error::user("the URL of an application has a host and a port only")
                .hint("write http://HOST:PORT; a path and headers belong to each request"));
        }
        Ok(Http { connection: Connection::open(target).await?, prepared: Numbered::default() })
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn server_version(&self) -> &str {
        "HTTP/1.1"
    }

    /// Prepares a request, written as `Template` reads it.
    async fn prepare(&mut self, request: &str) -> Result<Statement> {
        Ok(self.prepared.add(Template::parse(request, self.connection.host())?))
    }

    async fn deallocate(&mut self, statement: Statement) -> Result<()> {
        drop(self.prepared.take(statement));
        Ok(())
    }

    /// Headers and body may hold what is nobody's business.
    fn telling(request: &str) -> Cow<'_, str> {
        request.lines().next().unwrap_or_default().replace(MARK, "?").into()
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        let template = self
            .prepared
            .get(statement.0 as usize)
            .ok_or_else(|| Error::internal("a request that was never prepared"))?;
        self.connection.exchange(template, parameters, rows).await
    }

    async fn text<R: Rows>(&mut self, request: &str, rows: &mut R) -> Result<Answer> {
        let template = Template::parse(request, self.connection.host())?;
        self.connection.exchange(&template, &[], rows).await
    }

    async fn begin(&mut self) -> Result<()> {
        Err(no_transactions())
    }

    async fn commit(&mut self) -> Result<()> {
        Err(no_transactions())
    }

    async fn rollback(&mut self) -> Result<()> {
        Ok(())
    }

    async fn bulk_insert(
        &mut self,
        table: &str,
        _columns: &[&str],
        _next: impl FnMut(&mut RowBuffer) -> bool,
    ) -> Result<u64> {
        Err(Error::user(format!("an application cannot load the table {table}"))
            .hint("prepare the data with the URL of the database"))
    }

    fn traffic(&self) -> Traffic {
        self.connection.traffic()
    }

    async fn close(self) {}
}

fn no_transactions() -> Error {
    Error::user("an application has no transactions of ours")
        .hint("leave BEGIN and COMMIT out: each request stands alone")
}
