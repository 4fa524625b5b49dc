//! A session that times each of its statements. It takes the place of the session itself where a job asks for that, so
//! that the path of an operation is the same as ever where no job does. A run puts one `AnySession` into it, because a
//! second compilation of every workload for every kind of session would take the compiler minutes.

use crate::clock;
use crate::count::recorder::Phases;
use crate::count::statements::Statements;
use crate::error::Result;
use crate::session::{hands_on, Answer, Concrete, Rows, Session, Statement, Target, Value};
use std::cell::RefCell;

thread_local! {
    /// Of all sessions of the thread, those that a script opens by itself included.
    static STATEMENTS: RefCell<Statements> = RefCell::default();
}

/// Counts what the thread's sessions send in the measured part of these.
pub(super) fn begin(phases: Phases) {
    STATEMENTS.with_borrow_mut(|statements| statements.begin(phases));
}

/// What the thread's sessions have counted; nothing is left there.
pub(super) fn take() -> Statements {
    STATEMENTS.take()
}

/// A session, and what its statements are told apart by.
pub(super) struct Timed<S, const BLOCKING: bool> {
    session: S,
    escaped_texts: bool,
    /// Of each statement that it has prepared, by the statement's number.
    kinds: Vec<usize>,
}

/// A statement under way. It is dropped before its answer only where the run gives it up: it took at least until then.
struct UnderWay {
    kind: usize,
    from_ns: u64,
}

impl UnderWay {
    /// One that is sent now.
    fn now(kind: usize) -> Self {
        UnderWay { kind, from_ns: clock::now_ns() }
    }

    fn answered<T>(self, outcome: Result<T>) -> Result<T> {
        self.count(outcome.is_ok());
        std::mem::forget(self);
        outcome
    }

    fn count(&self, well: bool) {
        let now_ns = clock::now_ns();
        STATEMENTS.with_borrow_mut(|statements| statements.answered(self.kind, self.from_ns, now_ns, well));
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.count(true);
    }
}

impl<S, const BLOCKING: bool> Timed<S, BLOCKING> {
    fn kind(&self, sql: &str) -> usize {
        STATEMENTS.with_borrow_mut(|statements| statements.kind(sql, self.escaped_texts))
    }

    fn prepared(&self, statement: Statement) -> UnderWay {
        UnderWay::now(self.kinds[statement.0 as usize])
    }
}

impl<S: Session, const BLOCKING: bool> Concrete for Timed<S, BLOCKING> {
    const BLOCKING: bool = BLOCKING;
}

impl<S: Session, const BLOCKING: bool> Session for Timed<S, BLOCKING> {
    async fn connect(target: &Target) -> Result<Self> {
        let session = S::connect(target).await?;
        Ok(Timed { session, escaped_texts: target.protocol.has_escaped_texts(), kinds: Vec::new() })
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let statement = self.session.prepare(sql).await?;
        let (number, kind) = (statement.0 as usize, self.kind(&self.session.telling_of(sql)));
        self.kinds.resize(self.kinds.len().max(number + 1), kind);
        self.kinds[number] = kind;
        Ok(statement)
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        let under_way = self.prepared(statement);
        under_way.answered(self.session.execute(statement, parameters, rows).await)
    }

    async fn execute_batch<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        width: usize,
        rows: &mut R,
    ) -> Result<Answer> {
        let under_way = self.prepared(statement);
        under_way.answered(self.session.execute_batch(statement, parameters, width, rows).await)
    }

    async fn text<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        let under_way = UnderWay::now(self.kind(&self.session.telling_of(sql)));
        under_way.answered(self.session.text(sql, rows).await)
    }

    async fn begin(&mut self) -> Result<()> {
        let under_way = UnderWay::now(self.kind("BEGIN"));
        under_way.answered(self.session.begin().await)
    }

    async fn commit(&mut self) -> Result<()> {
        let under_way = UnderWay::now(self.kind("COMMIT"));
        under_way.answered(self.session.commit().await)
    }

    async fn rollback(&mut self) -> Result<()> {
        let (under_way, sent) = (UnderWay::now(self.kind("ROLLBACK")), self.session.traffic().bytes_sent);
        let outcome = self.session.rollback().await;
        // Where there is nothing to roll back, some sessions ask the server nothing.
        if BLOCKING || self.session.traffic().bytes_sent > sent {
            return under_way.answered(outcome);
        }
        std::mem::forget(under_way);
        outcome
    }

    hands_on!(session: dialect vector_sql server_version deallocate bulk_insert drop_table traffic engine_cpu_ns close);
}
