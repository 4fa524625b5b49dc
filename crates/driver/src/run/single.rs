//! Transactions of one statement, one after the other, polled by their client itself: each level of futures is gone
//! through twice for every answer. Whatever is unusual (an error, an answer in pieces) goes the usual way.

use super::client::{Client, Connection, Counted, Singles, UnderWay};
use crate::clock;
use crate::error::Result;
use crate::random::Random;
use crate::session::{Session, Value};
use crate::workload::{Outcome, Single, Workload};
use std::task::Poll;

/// The one that has been sent.
struct Sent<'a> {
    single: Single,
    /// It is counted as given up where it is dropped without an answer.
    under_way: UnderWay<'a>,
}

/// What becomes of the one that was sent.
enum Next {
    Over,
    Usual,
    /// It was answered so.
    Answered(Result<Outcome>),
    /// Its answer has to be read.
    Unread,
}

impl<'a, W: Workload> Client<'a, W> {
    /// Whether nothing but answers starts transactions, and nothing is noted of them but times.
    #[inline]
    fn may_poll_singles<S: Session>(&self, session: &Counted<'a, S>) -> bool {
        !self.lane.blocking
            && session.get().is_some_and(S::can_send)
            && self.think.is_none()
            && self.course.ledger.is_none()
            && self.course.tickets.is_none()
            && !self.lane.is_paced()
    }

    /// Carries transactions out for as long as they are single statements with usual answers, from `now_ns` on, which is
    /// then when the next begins, or when the one began that is not counted yet.
    pub(super) async fn singles<S: Session>(
        &self,
        connection: &mut Connection<'a, S, W::Client>,
        random: &mut Random,
        now_ns: &mut u64,
    ) -> Singles {
        if !const { W::DRAWS_SINGLES && !W::REPLAYS } || !self.may_poll_singles(&connection.session) {
            return Singles { over: self.is_over(*now_ns), first: None, successful: false };
        }
        let (mut sent, mut successful) = (None, false);
        let next = std::future::poll_fn(|_| {
            self.poll_singles(connection, random, now_ns, &mut sent, &mut successful)
        });
        let (over, first) = match next.await {
            Next::Over => (true, None),
            Next::Usual => (false, None),
            Next::Answered(outcome) => (false, Some(outcome)),
            // Apart: all clients have the size of this future.
            Next::Unread => (false, Some(Box::pin(self.unread(connection, &sent)).await)),
        };
        if let Some(Sent { under_way, .. }) = sent {
            std::mem::forget(under_way);
            self.lane.recorder().in_flight -= 1;
        }
        Singles { over, first, successful }
    }

    async fn unread<S: Session>(
        &self,
        connection: &mut Connection<'a, S, W::Client>,
        sent: &Option<Sent<'a>>,
    ) -> Result<Outcome> {
        let Some(Sent { single: Single { statement, key }, .. }) = *sent else {
            return Ok(Outcome::Waited);
        };
        let answer = connection.session.open().unusual_answer(statement, &[Value::Int(key)]).await?;
        self.workload.single_answered(answer)
    }

    #[inline]
    fn poll_singles<S: Session>(
        &self,
        connection: &mut Connection<'a, S, W::Client>,
        random: &mut Random,
        now_ns: &mut u64,
        sent: &mut Option<Sent<'a>>,
        successful: &mut bool,
    ) -> Poll<Next> {
        let Connection { session, state } = connection;
        loop {
            if let Some(Sent { single, .. }) = sent {
                let answer = match session.open().poll_answer(single.statement) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(Some(answer))) => answer,
                    Poll::Ready(Ok(None)) => return Poll::Ready(Next::Unread),
                    Poll::Ready(Err(error)) => return Poll::Ready(Next::Answered(Err(error))),
                };
                if let Err(error) = self.workload.single_answered(answer) {
                    return Poll::Ready(Next::Answered(Err(error)));
                }
                let from_ns = std::mem::replace(now_ns, clock::now_ns());
                let recorder = &mut *self.lane.recorder();
                recorder.last_ended_ns = *now_ns;
                self.operations.set(self.operations.get() + recorder.done(0, from_ns, from_ns, *now_ns));
                *successful = true;
            }
            let over = self.is_over(*now_ns);
            let next =
                if over || !session.open().can_send() { None } else { self.workload.single(state, random) };
            let Some(single) = next else {
                return Poll::Ready(if over { Next::Over } else { Next::Usual });
            };
            session.watch(*now_ns);
            match sent {
                Some(sent) => (sent.single, sent.under_way.from_ns) = (single, *now_ns),
                None => {
                    let under_way = UnderWay { lane: self.lane, kind: 0, from_ns: *now_ns };
                    *sent = Some(Sent { single, under_way });
                    self.lane.recorder().in_flight += 1;
                }
            }
            match session.open().send(single.statement, &[Value::Int(single.key)]) {
                Ok(true) => return Poll::Pending,
                Ok(false) => {}
                Err(error) => return Poll::Ready(Next::Answered(Err(error))),
            }
        }
    }
}
