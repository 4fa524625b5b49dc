//! The protocol of MariaDB and MySQL: prepared statements in binary, or text where the URL says `statements=text`.

mod answer;
mod auth;
mod autocommit;
mod bulk;
mod channel;
mod decoder;
mod dialect;
mod execution;
mod handshake;
mod left;
mod literal;
mod packet;
mod plan;
mod refusal;
mod row;
mod skim;

use super::{
    pieces, Answer, Concrete, Dialect, Numbered, RowBuffer, Rows, Session, Statement, Statements, Syntax,
    Target, Traffic, Value, VectorSql,
};
use crate::error::{Fate, Result};
use channel::Channel;
use decoder::Decoder;
use dialect::{DIALECT, DIALECT_OF_ANY_ENGINE};
pub(super) use left::end;
use row::{Cells, Column};
use std::rc::Rc;
use std::task::Poll;

mod command {
    pub const QUIT: u8 = 0x01;
    pub const QUERY: u8 = 0x03;
    pub const PREPARE: u8 = 0x16;
    pub const EXECUTE: u8 = 0x17;
    pub const CLOSE: u8 = 0x19;
}

/// One connection to a MariaDB or MySQL server.
pub struct Mysql {
    channel: Channel,
    version: String,
    dialect: &'static Dialect,
    deprecate_eof: bool,
    cache_metadata: bool,
    statements_as_text: bool,
    prepared: Numbered<Prepared>,
    columns: Vec<Column>,
    cells: Cells,
    rows_received: u64,
    /// Of answers in text, and of those in binary, that define their columns.
    decoders: [Rc<Decoder>; 2],
    /// Between `begin` and `commit` or `rollback`.
    in_transaction: bool,
    autocommit: bool,
}

enum Prepared {
    Binary {
        id: u32,
        parameters: usize,
        /// Knows the columns of its answers.
        decoder: Rc<Decoder>,
        /// The types that the server was told last; told again only when they change.
        types: Vec<u8>,
    },
    /// The statement's text between its placeholders.
    Text { pieces: Vec<String> },
}

/// How the rows of an answer are encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Text,
    /// Of this prepared statement.
    Binary(usize),
}

impl Concrete for Mysql {
    const BLOCKING: bool = false;

    const BRIEF: bool = true;
}

impl Session for Mysql {
    async fn connect(target: &Target) -> Result<Self> {
        let statements_as_text = target.statements()? == Statements::Text;
        let agreed = handshake::connect(target).await?;
        Ok(Mysql {
            channel: agreed.channel,
            version: agreed.version,
            dialect: if target.storage_engine.is_some() { &DIALECT_OF_ANY_ENGINE } else { &DIALECT },
            deprecate_eof: agreed.deprecate_eof,
            cache_metadata: agreed.cache_metadata,
            statements_as_text,
            prepared: Numbered::default(),
            columns: Vec::new(),
            cells: Cells::default(),
            rows_received: 0,
            decoders: [false, true].map(|binary| Rc::new(Decoder::of_answer(binary))),
            in_transaction: false,
            autocommit: true,
        })
    }

    fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    fn vector_sql(&self) -> Option<VectorSql> {
        self.version.contains("MariaDB").then_some(VectorSql::MariaDb)
    }

    fn server_version(&self) -> &str {
        &self.version
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let prepared = if self.statements_as_text {
            Prepared::Text { pieces: pieces(sql, &Syntax::MYSQL) }
        } else {
            self.command(command::PREPARE, sql.as_bytes())?;
            self.prepared_answer().await.map_err(|error| error.at(format_args!("preparing {sql:?}")))?
        };
        Ok(self.prepared.add(prepared))
    }

    async fn deallocate(&mut self, statement: Statement) -> Result<()> {
        match self.prepared.take(statement) {
            // The server gives no answer to it.
            Some(Prepared::Binary { id, .. }) => self.command(command::CLOSE, &id.to_le_bytes()),
            Some(Prepared::Text { .. }) | None => Ok(()),
        }
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        let set = self.put_autocommit(false);
        let encoding = self.put_execute(statement, parameters)?;
        self.channel.send()?;
        if set.is_some() {
            self.autocommit_answer(set).await?;
        }
        // As `answer` does, with one level of future less: each is gone through twice for every answer.
        if self.skims::<R>() {
            std::future::poll_fn(|_| self.channel.poll_inbox()).await?;
            if let Some(answer) = self.skimmed(rows, encoding) {
                return Ok(answer);
            }
        }
        self.whole_answer(rows, encoding).await
    }

    #[inline]
    fn can_send(&self) -> bool {
        self.deprecate_eof && self.autocommit
    }

    #[inline]
    fn send(&mut self, statement: Statement, parameters: &[Value<'_>]) -> Result<bool> {
        self.put_execute(statement, parameters)?;
        self.channel.ask()
    }

    #[inline]
    fn poll_answer(&mut self, statement: Statement) -> Poll<Result<Option<Answer>>> {
        let encoding = self.encoding(statement);
        self.channel.poll_inbox().map(|here| here.map(|()| self.skimmed(&mut (), encoding)))
    }

    async fn unusual_answer(&mut self, statement: Statement, _: &[Value<'_>]) -> Result<Answer> {
        self.whole_answer(&mut (), self.encoding(statement)).await
    }

    async fn execute_batch<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        width: usize,
        rows: &mut R,
    ) -> Result<Answer> {
        let set = self.put_autocommit(true);
        let mut encoding = Encoding::Text;
        for one in parameters.chunks(width.max(1)) {
            encoding = self.put_execute(statement, one)?;
        }
        self.channel.send()?;
        self.autocommit_answer(set).await?;
        let (mut sum, mut failure) = (Answer::default(), None);
        // The answers come in order; each is read, whatever became of those before it.
        for _ in parameters.chunks(width.max(1)) {
            self.channel.expect(1);
            match self.answer(rows, encoding).await {
                Ok(answer) => sum += answer,
                Err(error) if error.fate() == Fate::Lost => return Err(error),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(sum), Err)
    }

    async fn text<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        let set = self.put_autocommit(false);
        self.command(command::QUERY, sql.as_bytes())?;
        self.autocommit_answer(set).await?;
        self.answer(rows, Encoding::Text).await
    }

    async fn plan(
        &mut self,
        executed: bool,
        sql: &str,
        prepared: Option<Statement>,
        parameters: &[Value<'_>],
    ) -> Result<String> {
        plan::plan(self, executed, sql, prepared, parameters).await
    }

    async fn begin(&mut self) -> Result<()> {
        self.in_transaction = true;
        self.query("BEGIN", &mut ()).await.map(drop)
    }

    async fn commit(&mut self) -> Result<()> {
        self.in_transaction = false;
        self.query("COMMIT", &mut ()).await.map(drop)
    }

    async fn rollback(&mut self) -> Result<()> {
        self.in_transaction = false;
        self.query("ROLLBACK", &mut ()).await.map(drop)
    }

    async fn bulk_insert(
        &mut self,
        table: &str,
        columns: &[&str],
        next: impl FnMut(&mut RowBuffer) -> bool,
    ) -> Result<u64> {
        bulk::insert(self, table, columns, next).await
    }

    fn traffic(&self) -> Traffic {
        Traffic { rows_received: self.rows_received, ..self.channel.traffic() }
    }

    async fn close(mut self) {
        // The connection goes away in any case.
        let _ = self.command(command::QUIT, &[]);
    }
}

impl Mysql {
    /// That of the answers to a prepared statement.
    #[inline]
    fn encoding(&self, statement: Statement) -> Encoding {
        match self.statements_as_text {
            true => Encoding::Text,
            false => Encoding::Binary(statement.0 as usize),
        }
    }

    async fn query<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        self.command(command::QUERY, sql.as_bytes())?;
        self.answer(rows, Encoding::Text).await
    }

    /// Puts a command into the outbox.
    fn put(&mut self, command: u8, body: &[u8]) {
        let start = self.channel.start(0);
        let out = self.channel.outbox();
        out.push(command);
        out.extend_from_slice(body);
        self.channel.end(start);
    }

    fn command(&mut self, command: u8, body: &[u8]) -> Result<()> {
        self.put(command, body);
        self.channel.send()
    }

    async fn bulk_statement(&mut self, sql: &[u8]) -> Result<Answer> {
        self.command(command::QUERY, sql)?;
        self.answer(&mut (), Encoding::Text).await
    }
}
