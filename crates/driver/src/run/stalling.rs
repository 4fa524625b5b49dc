//! A server that stops again and again, on a simulated clock, for the tests of runs.

use crate::clock;
use crate::error::{Error, Result};
use crate::io;
use crate::session::{Answer, Concrete, Dialect, RowBuffer, Rows, Session, Statement, Target, Value};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

pub(super) const PERIOD_NS: u64 = 2_000_000_000;
pub(super) const STOPPED_NS: u64 = 200_000_000;
pub(super) const SERVICE_NS: u64 = 100_000;
pub(super) const START_NS: u64 = 1_000_000_000_000;

/// How much later a transaction is answered, and the error that the answer is.
pub(super) type Lot = (u64, Option<Error>);

thread_local! {
    /// When this thread's sessions were opened, after `START_NS`.
    pub(super) static CONNECTED_NS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    /// How long this thread's server stands still at the beginning of each period.
    pub(super) static STILL_NS: Cell<u64> = const { Cell::new(STOPPED_NS) };
    /// What this thread's server answers, by the time since `START_NS`.
    pub(super) static ANSWER: Cell<fn(u64) -> Result<Answer>> = const { Cell::new(|_| Ok(Answer::default())) };
    /// Draws a lot as a transaction reaches this thread's server.
    pub(super) static LOT: Cell<fn() -> Lot> = const { Cell::new(|| (0, None)) };
    /// What this thread's server says to a ROLLBACK, by how many it has had.
    pub(super) static ROLLBACK: Cell<fn(u64) -> Result<()>> = const { Cell::new(|_| Ok(())) };
    pub(super) static ROLLBACKS: Cell<u64> = const { Cell::new(0) };
    /// How long this thread's sessions take to close.
    pub(super) static CLOSING_NS: Cell<u64> = const { Cell::new(0) };
}

/// True while the servers of all `Stalling<true>` are down.
pub(super) static DOWN: AtomicBool = AtomicBool::new(false);

/// Answers after `SERVICE_NS`, but not while it is stopped: in the first 200 ms of every 2 s.
#[derive(Default)]
pub(super) struct Stalling<const MORTAL: bool = false> {
    /// The answer to what its client has sent and polls for by itself.
    under_way: Option<Pin<Box<dyn Future<Output = Result<Answer>>>>>,
}

impl<const MORTAL: bool> Stalling<MORTAL> {
    fn require_up() -> Result<()> {
        match MORTAL && DOWN.load(Ordering::Relaxed) {
            true => Err(Error::lost("connection refused", "the server is down")),
            false => Ok(()),
        }
    }

    async fn answer() -> Result<Answer> {
        Self::require_up()?;
        let (late_ns, error) = LOT.get()();
        let into_period_ns = clock::now_ns() % PERIOD_NS;
        io::sleep_ns(STILL_NS.get().saturating_sub(into_period_ns) + SERVICE_NS + late_ns).await;
        error.map_or_else(|| ANSWER.get()(clock::now_ns() - START_NS), Err)
    }
}

impl<const MORTAL: bool> Concrete for Stalling<MORTAL> {
    const BLOCKING: bool = false;
}

impl<const MORTAL: bool> Session for Stalling<MORTAL> {
    async fn connect(_target: &Target) -> Result<Self> {
        Self::require_up()?;
        CONNECTED_NS.with_borrow_mut(|times| times.push(clock::now_ns() - START_NS));
        Ok(Stalling::default())
    }

    fn dialect(&self) -> &'static Dialect {
        unreachable!("no SQL is made for it")
    }

    fn server_version(&self) -> &str {
        "stalling"
    }

    async fn prepare(&mut self, _sql: &str) -> Result<Statement> {
        Ok(Statement(0))
    }

    async fn deallocate(&mut self, _: Statement) -> Result<()> {
        Ok(())
    }

    async fn execute<R: Rows>(&mut self, _: Statement, _: &[Value<'_>], _: &mut R) -> Result<Answer> {
        Self::answer().await
    }

    fn can_send(&self) -> bool {
        true
    }

    fn send(&mut self, _: Statement, _: &[Value<'_>]) -> Result<bool> {
        self.under_way = Some(Box::pin(Self::answer()));
        Ok(false)
    }

    /// Leaves every third answer, by the time at which it comes, to be read like an unusual one.
    fn poll_answer(&mut self, _: Statement) -> Poll<Result<Option<Answer>>> {
        let under_way = self.under_way.as_mut().expect("what is polled for was sent");
        let answer = match under_way.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(answer) => answer,
        };
        self.under_way = None;
        if clock::now_ns() / SERVICE_NS % 3 == 0 {
            self.under_way = Some(Box::pin(std::future::ready(answer)));
            return Poll::Ready(Ok(None));
        }
        Poll::Ready(answer.map(Some))
    }

    async fn unusual_answer(&mut self, _: Statement, _: &[Value<'_>]) -> Result<Answer> {
        self.under_way.take().expect("what is read was sent").await
    }

    async fn text<R: Rows>(&mut self, _sql: &str, _rows: &mut R) -> Result<Answer> {
        Ok(Answer::default())
    }

    async fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    async fn commit(&mut self) -> Result<()> {
        Ok(())
    }

    async fn rollback(&mut self) -> Result<()> {
        ROLLBACKS.set(ROLLBACKS.get() + 1);
        ROLLBACK.get()(ROLLBACKS.get())
    }

    async fn bulk_insert(
        &mut self,
        _: &str,
        _: &[&str],
        _: impl FnMut(&mut RowBuffer) -> bool,
    ) -> Result<u64> {
        Ok(0)
    }

    async fn close(self) {
        io::sleep_ns(CLOSING_NS.get()).await;
    }
}
