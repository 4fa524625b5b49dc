//! The protocol of PostgreSQL: named prepared statements, integers and floats in binary. Where the URL says
//! `statements=unnamed` each execution prepares anew, and where it says `statements=text` values stand in the text.

mod answers;
mod auth;
mod bulk;
mod channel;
mod handshake;
mod hosts;
mod left;
mod message;
mod pooler;
mod skim;
mod template;
mod text;
mod value;

use super::{
    pieces,
    plan::{asked, only_text},
    Answer, Collect, Concrete, Dialect, Identity, Numbered, Placeholder, ProcedureSql, RowBuffer, Rows,
    Session, Statement, Statements, Syntax, Target, Traffic, Value, VectorSql,
};
use crate::error::{Code, Error, Fate, Result};
use channel::Channel;
use handshake::Entered;
pub(super) use left::end;
use message::{is_stale, put, put_string, put_sync};
use std::sync::atomic::Ordering;
use std::task::Poll;
use template::Template;
use text::{execution, put_with_literals, with_literals};
use value::{put_parameters, Columns, Place};

static DIALECT: Dialect = Dialect {
    name: "postgresql",
    placeholder: Placeholder::Dollar,
    identity: Identity::GeneratedByDefault,
    double: "DOUBLE PRECISION",
    timestamp: "TIMESTAMP",
    now: "CURRENT_TIMESTAMP",
    text: "TEXT",
    table_suffix: "",
    char_padded: true,
    for_update: true,
    update_returning: true,
    clustered: false,
    truncate: true,
    multi_row_insert: true,
    after_load: Some("VACUUM (ANALYZE)"),
    explain: Some("EXPLAIN (FORMAT JSON, COSTS OFF)"),
    explain_executed: Some("EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF, SUMMARY OFF)"),
    warnings: None,
    counters: None,
    limit: "LIMIT {}",
    passed_over: Some("23505"),
    procedures: Some(ProcedureSql::Postgresql),
};

/// The state in a ReadyForQuery that says: no transaction is open.
const IDLE: u8 = b'I';

/// The state that says: the transaction has failed, and is to be rolled back.
const FAILED: u8 = b'E';

/// The server plans a prepared statement anew for each of its first five executions, and decides at the sixth whether one
/// plan will do for all values.
const PLANS_UNTIL_SETTLED: u32 = 6;

/// One connection to a PostgreSQL server.
pub struct Postgresql {
    channel: Channel,
    version: String,
    /// `I`dle, in a `T`ransaction, or in one that has failed (`E`).
    state: u8,
    prepared: Numbered<Prepared>,
    places: Vec<Place>,
    rows_received: u64,
    /// Some statement must be prepared anew.
    has_stale: bool,
    statements: Statements,
    /// What the server, or a pooler, calls this connection.
    told_number: Option<u32>,
    /// Where the session leads, while nobody has looked for a pooler on the way.
    unlooked: Option<Box<Target>>,
}

struct Prepared {
    /// Empty where each execution prepares anew.
    name: String,
    sql: String,
    /// The server would answer it with other columns than these by now.
    stale: bool,
    /// What each execution says again.
    again: Again,
    parameters: Vec<u32>,
    columns: Columns,
    template: Option<Template>,
}

enum Again {
    Nothing,
    /// The statement with `$1` for its first parameter.
    Parse(String),
    /// The text between the parameters.
    Text(Vec<String>),
}

/// Whose rows are read.
#[derive(Clone, Copy)]
enum Source {
    /// A simple query, whose columns come with its answer.
    Text,
    /// A statement that was prepared anew: its columns, all of them as text, come with its answer as well, because a table
    /// may have been altered since it was first prepared.
    Unnamed,
    /// The prepared statement of this number.
    Prepared(usize),
}

impl Concrete for Postgresql {
    const BLOCKING: bool = false;

    const BRIEF: bool = true;
}

impl Session for Postgresql {
    async fn connect(target: &Target) -> Result<Self> {
        // Apart, because a client has the size of this future for as long as it lives.
        let mut session = Box::pin(hosts::enter(target)).await?;
        if !target.opening.is_empty() {
            session.look_for_pooler().await?;
        }
        Ok(session)
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn vector_sql(&self) -> Option<VectorSql> {
        Some(VectorSql::PgVector)
    }

    fn server_version(&self) -> &str {
        &self.version
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let prepared = match self.statements {
            Statements::Prepared => {
                self.look_for_pooler().await?;
                let name = format!("s{}", self.prepared.next().0);
                self.parse(&name, sql).await?
            }
            Statements::Unnamed => {
                Prepared { again: Again::Parse(DIALECT.placeholders(sql)), ..self.parse("", sql).await? }
            }
            Statements::Text => Prepared::of("", Again::Text(pieces(sql, &Syntax::POSTGRESQL))),
        };
        Ok(self.prepared.add(prepared))
    }

    async fn deallocate(&mut self, statement: Statement) -> Result<()> {
        let Some(prepared) = self.prepared.take(statement) else { return Ok(()) };
        if prepared.name.is_empty() {
            return Ok(());
        }
        self.put_close(&prepared.name);
        put_sync(self.channel.outbox());
        self.channel.send()?;
        self.answer(&mut (), Source::Text).await.map(drop)
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        if self.has_stale {
            Box::pin(self.prepare_if_stale(statement)).await?;
        }
        let source = self.put_synced(statement, parameters)?;
        self.channel.send()?;
        // As `answer` does, with one level of future less: each is gone through twice for every answer.
        if !R::READS {
            std::future::poll_fn(|_| self.channel.poll_inbox()).await?;
            if let Some(answer) = self.skimmed() {
                return Ok(answer);
            }
        }
        match self.whole_answer(rows, source).await {
            Err(error) if is_stale(&error) => {
                Box::pin(self.execute_stale(statement, parameters, rows, error)).await
            }
            answer => answer,
        }
    }

    #[inline]
    fn can_send(&self) -> bool {
        !self.has_stale
    }

    #[inline]
    fn send(&mut self, statement: Statement, parameters: &[Value<'_>]) -> Result<bool> {
        self.put_synced(statement, parameters)?;
        self.channel.ask()
    }

    #[inline]
    fn poll_answer(&mut self, _: Statement) -> Poll<Result<Option<Answer>>> {
        self.channel.poll_inbox().map(|here| here.map(|()| self.skimmed()))
    }

    async fn unusual_answer(&mut self, statement: Statement, parameters: &[Value<'_>]) -> Result<Answer> {
        // Whose columns they are does not matter where nobody looks at rows.
        match self.whole_answer(&mut (), Source::Text).await {
            Err(error) if is_stale(&error) => self.execute_stale(statement, parameters, &mut (), error).await,
            answer => answer,
        }
    }

    async fn execute_batch<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        width: usize,
        rows: &mut R,
    ) -> Result<Answer> {
        if parameters.is_empty() {
            return Ok(Answer::default());
        }
        if parameters.len() % width.max(1) != 0 {
            return Err(wrong_number());
        }
        if self.has_stale {
            Box::pin(self.prepare_if_stale(statement)).await?;
        }
        // What stands before one Sync is one transaction, unless another is open: outside of one, each gets its own. A
        // text has no Sync.
        let as_text = self.statements == Statements::Text;
        let each = self.state == IDLE || as_text;
        let (mut source, mut syncs) = (Source::Text, 0_usize);
        for one in parameters.chunks(width.max(1)) {
            source = self.put_execute(statement, one)?;
            if each && !as_text {
                put_sync(self.channel.outbox());
            }
            syncs += usize::from(each);
        }
        if !each {
            put_sync(self.channel.outbox());
            syncs = 1;
        }
        self.channel.send()?;
        let (mut sum, mut failure, mut stale) = (Answer::default(), None, Vec::new());
        for number in 0..syncs {
            match self.answer(rows, source).await {
                Ok(answer) => sum += answer,
                Err(error) if error.fate() == Fate::Lost => return Err(error),
                Err(error) if is_stale(&error) && each => stale.push(number),
                Err(error) if is_stale(&error) => {
                    failure = failure.or(Some(self.note_stale(statement, error)))
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        // They have changed nothing, and are executed in their order now.
        for number in stale {
            let one = &parameters[number * width..(number + 1) * width];
            match Box::pin(self.execute(statement, one, rows)).await {
                Ok(answer) => sum += answer,
                Err(error) if error.fate() == Fate::Lost => return Err(error),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(sum), Err)
    }

    async fn text<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        self.channel.say(b'Q', |out| put_string(out, sql))?;
        self.answer(rows, Source::Text).await
    }

    async fn plan(
        &mut self,
        executed: bool,
        sql: &str,
        prepared: Option<Statement>,
        parameters: &[Value<'_>],
    ) -> Result<String> {
        let known = prepared.and_then(|statement| self.prepared.get(statement.0 as usize));
        let execution = known.and_then(|known| match known.again {
            Again::Nothing => execution(&known.name, parameters).map(|sql| (sql, PLANS_UNTIL_SETTLED)),
            _ => with_literals(&pieces(sql, &Syntax::POSTGRESQL), parameters).map(|sql| (sql, 1)),
        });
        let (sql, prepared, times) = match &execution {
            Some((execution, times)) => (execution.as_str(), None, *times),
            None => (sql, prepared, 1),
        };
        let mut answer = Collect::default();
        for time in 1..=times {
            // Only the settled one is executed.
            let before = DIALECT.explaining(executed && time == times).unwrap_or_default();
            answer = asked(self, before, sql, prepared, parameters).await?;
        }
        only_text(answer)
    }

    async fn begin(&mut self) -> Result<()> {
        self.text("BEGIN", &mut ()).await.map(drop)
    }

    async fn commit(&mut self) -> Result<()> {
        // A transaction that has failed would be rolled back by a COMMIT, and the server would call that a success.
        if self.state == FAILED {
            self.rollback().await?;
            return Err(Error::refused(
                Code::State(*b"25P02"),
                "failed transaction",
                Fate::Failed,
                "the transaction had failed before its COMMIT",
            ));
        }
        self.text("COMMIT", &mut ()).await.map(drop)
    }

    async fn rollback(&mut self) -> Result<()> {
        if self.state == IDLE {
            return Ok(());
        }
        self.text("ROLLBACK", &mut ()).await.map(drop)
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
        let _ = self.channel.say(b'X', |_| {});
    }
}

impl Prepared {
    /// How many parameters.
    fn takes(&self) -> usize {
        match &self.again {
            Again::Text(pieces) => pieces.len() - 1,
            _ => self.parameters.len(),
        }
    }

    fn of(name: &str, again: Again) -> Self {
        Prepared {
            name: name.to_owned(),
            sql: String::new(),
            stale: false,
            again,
            parameters: Vec::new(),
            columns: Columns::none(),
            template: None,
        }
    }
}

impl Postgresql {
    fn on(entered: Entered, target: &Target) -> Result<Self> {
        Ok(Postgresql {
            channel: entered.channel,
            version: entered.version,
            state: IDLE,
            prepared: Numbered::default(),
            places: Vec::new(),
            rows_received: 0,
            has_stale: false,
            statements: target.statements()?,
            told_number: entered.at_server.map(|at_server| at_server.number),
            unlooked: (!target.shared.looked_for_pooler.load(Ordering::Relaxed))
                .then(|| Box::new(target.clone())),
        })
    }

    /// Has the server prepare a statement under a name, or under none, and say what it takes and gives.
    async fn parse(&mut self, name: &str, sql: &str) -> Result<Prepared> {
        let out = self.channel.outbox();
        put_parse(out, name, &DIALECT.placeholders(sql));
        put(out, b'D', |out| {
            out.push(b'S');
            put_string(out, name);
        });
        put_sync(out);
        self.channel.send()?;
        let prepared = self.prepared_answer(name, sql).await;
        prepared.map_err(|error| error.at(format_args!("preparing {sql:?}")))
    }

    /// Puts one execution into the outbox.
    #[inline]
    fn put_execute(&mut self, statement: Statement, parameters: &[Value<'_>]) -> Result<Source> {
        let number = statement.0 as usize;
        let known = self.prepared.get(number).filter(|known| known.takes() == parameters.len());
        let Some(prepared) = known else {
            return Err(Error::protocol("the server counts the parameters of a statement in its own way"));
        };
        put_execution(self.channel.outbox(), prepared, parameters);
        Ok(match prepared.again {
            Again::Nothing => Source::Prepared(number),
            Again::Parse(_) => Source::Unnamed,
            Again::Text(_) => Source::Text,
        })
    }

    /// `put_execute`, with what has the server answer it.
    #[inline]
    fn put_synced(&mut self, statement: Statement, parameters: &[Value<'_>]) -> Result<Source> {
        let number = statement.0 as usize;
        let template = self.prepared.get(number).and_then(|prepared| prepared.template.as_ref());
        if let (Some(template), [Value::Int(key)]) = (template, parameters) {
            if template.put(self.channel.outbox(), *key) {
                return Ok(Source::Prepared(number));
            }
        }
        let source = self.put_execute(statement, parameters)?;
        // A text needs none.
        if !matches!(source, Source::Text) {
            put_sync(self.channel.outbox());
        }
        Ok(source)
    }

    /// Puts into the outbox that a prepared statement is to be let go.
    fn put_close(&mut self, name: &str) {
        put(self.channel.outbox(), b'C', |out| {
            out.push(b'S');
            put_string(out, name);
        });
    }

    /// Prepares a statement anew where it must be, unless the transaction has failed: the server prepares nothing in it.
    async fn prepare_if_stale(&mut self, statement: Statement) -> Result<()> {
        let number = statement.0 as usize;
        let Some(old) = self.prepared.get(number).filter(|old| old.stale && self.state != FAILED) else {
            return Ok(());
        };
        let (name, sql) = (old.name.clone(), old.sql.clone());
        self.put_close(&name);
        let anew = self.parse(&name, &sql).await;
        let anew = anew.map_err(|error| error.at("preparing a statement anew after a table was altered"))?;
        if let Some(old) = self.prepared.get_mut(number) {
            *old = anew;
        }
        self.has_stale = self.prepared.iter_mut().any(|one| one.stale);
        Ok(())
    }

    /// Notes that a statement must be prepared anew. The transaction that it was refused in is worth another try.
    fn note_stale(&mut self, statement: Statement, error: Error) -> Error {
        if let Some(prepared) = self.prepared.get_mut(statement.0 as usize) {
            (prepared.stale, self.has_stale) = (true, true);
        }
        error.retried()
    }

    /// A statement that the server has refused because it must be prepared anew. Outside of a transaction nothing is lost
    /// with it, so it is executed again.
    async fn execute_stale<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
        error: Error,
    ) -> Result<Answer> {
        let error = self.note_stale(statement, error);
        if self.state != IDLE {
            return Err(error);
        }
        self.prepare_if_stale(statement).await?;
        let source = self.put_synced(statement, parameters)?;
        self.channel.send()?;
        self.answer(rows, source).await
    }
}

/// Appends one execution: Bind and Execute of the unnamed portal, or the statement as text.
fn put_execution(out: &mut Vec<u8>, prepared: &Prepared, parameters: &[Value<'_>]) {
    let mut unnamed = false;
    match &prepared.again {
        Again::Nothing => {}
        Again::Parse(sql) => {
            put_parse(out, "", sql);
            unnamed = true;
        }
        Again::Text(pieces) => return put(out, b'Q', |out| put_with_literals(out, pieces, parameters)),
    }
    put(out, b'B', |out| {
        out.push(0);
        put_string(out, &prepared.name);
        put_parameters(out, &prepared.parameters, parameters);
        // No format for no column in particular: all are text.
        out.extend_from_slice(if unnamed { &[0, 0] } else { &prepared.columns.formats });
    });
    if unnamed {
        put(out, b'D', |out| out.extend_from_slice(b"P\0"));
    }
    // No name, no limit of rows.
    put(out, b'E', |out| out.extend_from_slice(&[0; 5]));
}

/// The server finds out the parameters' types.
fn put_parse(out: &mut Vec<u8>, name: &str, sql: &str) {
    put(out, b'P', |out| {
        put_string(out, name);
        put_string(out, sql);
        out.extend_from_slice(&[0, 0]);
    });
}

fn wrong_number() -> Error {
    Error::internal("a statement was executed with a wrong number of parameters")
}
