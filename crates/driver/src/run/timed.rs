//! A session that times each of its statements where its thread was told to. A run puts one `AnySession` into it, because
//! a compilation of every workload for every kind of session takes the compiler minutes.

use crate::clock;
use crate::count::recorder::Phases;
use crate::count::statements::Statements;
use crate::error::Result;
use crate::session::{hands_on, Answer, AnySession, Rows, Session, Statement, Target, Value};
use std::cell::{Cell, RefCell};

thread_local! {
    /// Of all sessions of the thread, those that a script opens by itself included.
    static STATEMENTS: RefCell<Statements> = RefCell::default();
    static TIMES: Cell<bool> = const { Cell::new(false) };
}

/// Whether the sessions that the thread opens from now on time their statements.
pub(super) fn choose(times: bool) {
    TIMES.set(times);
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
pub(super) struct Timed<S> {
    session: S,
    times: bool,
    escaped_texts: bool,
    /// Its calls block the thread.
    blocking: bool,
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

    fn answered<T>(under_way: Option<Self>, outcome: Result<T>) -> Result<T> {
        if let Some(under_way) = under_way {
            under_way.count(outcome.is_ok());
            std::mem::forget(under_way);
        }
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

impl<S: Session> Timed<S> {
    fn kind(&self, sql: &str) -> usize {
        STATEMENTS.with_borrow_mut(|statements| statements.kind(sql, self.escaped_texts))
    }

    /// A statement that is not prepared, and is sent now; `None` where nobody times it.
    fn unprepared(&self, sql: &str) -> Option<UnderWay> {
        self.times.then(|| UnderWay::now(self.kind(&self.session.telling_of(sql))))
    }

    fn named(&self, name: &str) -> Option<UnderWay> {
        self.times.then(|| UnderWay::now(self.kind(name)))
    }

    #[inline]
    fn prepared(&self, statement: Statement) -> Option<UnderWay> {
        self.times.then(|| UnderWay::now(self.kinds[statement.0 as usize]))
    }
}

impl<S: Session> Session for Timed<S> {
    async fn connect(target: &Target) -> Result<Self> {
        let session = S::connect(target).await?;
        Ok(Timed {
            session,
            times: TIMES.get(),
            escaped_texts: target.protocol.has_escaped_texts(),
            blocking: AnySession::is_blocking(target.protocol),
            kinds: Vec::new(),
        })
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let statement = self.session.prepare(sql).await?;
        if !self.times {
            return Ok(statement);
        }
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
        UnderWay::answered(under_way, self.session.execute(statement, parameters, rows).await)
    }

    async fn execute_batch<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        width: usize,
        rows: &mut R,
    ) -> Result<Answer> {
        let under_way = self.prepared(statement);
        UnderWay::answered(under_way, self.session.execute_batch(statement, parameters, width, rows).await)
    }

    async fn text<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        let under_way = self.unprepared(sql);
        UnderWay::answered(under_way, self.session.text(sql, rows).await)
    }

    async fn begin(&mut self) -> Result<()> {
        let under_way = self.named("BEGIN");
        UnderWay::answered(under_way, self.session.begin().await)
    }

    async fn commit(&mut self) -> Result<()> {
        let under_way = self.named("COMMIT");
        UnderWay::answered(under_way, self.session.commit().await)
    }

    async fn rollback(&mut self) -> Result<()> {
        let (under_way, sent) = (self.named("ROLLBACK"), self.session.traffic().bytes_sent);
        let outcome = self.session.rollback().await;
        // Where there is nothing to roll back, some sessions ask the server nothing.
        if self.blocking || self.session.traffic().bytes_sent > sent {
            return UnderWay::answered(under_way, outcome);
        }
        std::mem::forget(under_way);
        outcome
    }

    hands_on!(session: dialect vector_sql server_version deallocate bulk_insert drop_table traffic engine_cpu_ns close);
}
