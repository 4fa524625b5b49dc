//! One client's life: connect, then transaction after transaction until the end.

use super::again::{roll_back, Again};
use super::course::{Course, Stretch};
use super::lane::Lane;
use super::pace::Think;
use crate::clock;
use crate::count::ledger::Ledger;
use crate::error::{Code, Error, Fate, Result};
use crate::io;
use crate::job::Job;
use crate::random::Random;
use crate::session::{open, Session, Target, Traffic};
use crate::workload::{advised, Outcome, Place, Workload};
use std::cell::Cell;
use std::rc::Rc;

/// A client that does nothing but fail shows a mistake in the set-up, not a busy server.
pub(super) const FAILURES_MAX: u32 = 100;
const RECONNECT_WAIT_NS: (u64, u64) = (10_000_000, 1_000_000_000);

/// All that a client works with; what is shared by the thread is in `lane`, by the run in `course`.
pub(crate) struct Client<'a, W> {
    pub number: u32,
    pub job: &'a Job,
    pub target: &'a Target,
    pub workload: &'a W,
    pub think: Option<Think>,
    pub course: &'a Course,
    pub lane: &'a Lane,
    /// Its own of the measured part.
    pub operations: Cell<f64>,
}

impl<W> Drop for Client<'_, W> {
    /// Also of one that is given up. Until all have arrived nothing is counted.
    fn drop(&mut self) {
        if let Some(recorder) = self.lane.recorder.get() {
            recorder.borrow_mut().client_over(self.operations.get());
        }
    }
}

/// Why a client's transactions came to an end.
enum End {
    /// Nothing more is to be done.
    Through,
    /// Nothing more is to be done in this slice.
    Paused,
    Lost,
}

/// What comes after the transactions that a client has polled itself (`single`).
pub(super) struct Singles {
    /// The stretch is over, or the run.
    pub over: bool,
    /// What the first try of the next transaction came to, where it has begun.
    pub first: Option<Result<Outcome>>,
    /// One of them has succeeded.
    pub successful: bool,
}

/// A session and what the workload keeps beside it.
pub(super) struct Connection<'a, S: Session, C> {
    pub session: Counted<'a, S>,
    pub state: C,
}

/// A session whose use is counted before it goes, also where its client is given up while it sleeps.
pub(super) struct Counted<'a, S: Session> {
    lane: &'a Lane,
    /// There until it is lost or closed.
    session: Option<S>,
    /// What goes over the client's other connections.
    beside: Option<Rc<Cell<Traffic>>>,
    /// What had gone over all of them when the measured part began.
    traffic_before: Option<Traffic>,
}

impl<S: Session> Counted<'_, S> {
    /// The session while it is there.
    #[inline]
    pub fn get(&self) -> Option<&S> {
        self.session.as_ref()
    }

    #[inline]
    pub fn open(&mut self) -> &mut S {
        self.session.as_mut().expect("a session is used until it is lost or closed")
    }

    /// Notes where the measured part begins and ends for this connection and its thread.
    #[inline]
    pub fn watch(&mut self, now_ns: u64) {
        let Some(session) = &self.session else { return };
        if self.traffic_before.is_none() && now_ns >= self.lane.phases().measured_ns {
            self.traffic_before = Some(self.with_beside(session.traffic()));
        }
        // With an embedded engine the loop never turns, so its thread's readings are taken here.
        if self.lane.blocking {
            self.lane.observe(now_ns, || session.engine_cpu_ns());
        }
    }

    /// Counts what its client has done in a stretch that is over.
    pub fn end_stretch(&mut self) {
        self.count_traffic();
        if let (Some(session), true) = (&self.session, self.lane.blocking) {
            self.lane.observe_last(session.engine_cpu_ns());
        }
    }

    fn count_traffic(&mut self) {
        if let (Some(session), Some(before)) = (&self.session, self.traffic_before.take()) {
            self.lane.count_traffic(before, self.with_beside(session.traffic()));
        }
    }

    fn with_beside(&self, own: Traffic) -> Traffic {
        self.beside.as_ref().map_or(own, |beside| own + beside.get())
    }

    /// The session, counted.
    fn take(&mut self) -> Option<S> {
        self.count_traffic();
        let session = self.session.take()?;
        self.lane.keep_engine_cpu(session.engine_cpu_ns());
        Some(session)
    }

    /// Lets go of a session whose connection is gone.
    pub fn lose(&mut self) {
        drop(self.take());
    }

    pub async fn close(mut self) {
        let session = self.take();
        drop(self);
        if let Some(session) = session {
            session.close().await;
        }
    }
}

impl<S: Session> Drop for Counted<'_, S> {
    fn drop(&mut self) {
        self.end_stretch();
        self.lose();
    }
}

impl<'a, W: Workload> Client<'a, W> {
    pub async fn live<S: Session>(self) {
        // Connecting takes much room and is soon over: in a box of its own it does not make every client larger.
        let connected = Box::pin(self.connect_first::<S>()).await;
        match connected {
            Ok(connection) => self.work(connection).await,
            Err(error) => self.course.fail(error),
        }
    }

    pub(super) async fn connect_first<S: Session>(&self) -> Result<Connection<'a, S, W::Client>> {
        if let Some(ramp_s) = self.job.ramp_s {
            let share = f64::from(self.number) / f64::from(self.job.clients);
            io::sleep_ns((ramp_s * share * 1e9) as u64).await;
        }
        self.connect::<S>().await
    }

    pub(super) async fn connect<S: Session>(&self) -> Result<Connection<'a, S, W::Client>> {
        let ready = async |session: &mut S, place| self.workload.client(session, place).await;
        let (session, state) = self.opened(ready).await?;
        Ok(Connection { session: self.counted(session, &state), state })
    }

    /// The client on another session.
    async fn connect_again<S: Session>(&self, lost: &mut W::Client) -> Result<Counted<'a, S>> {
        let ready = async |session: &mut S, place| self.workload.renew(session, place, lost).await;
        let (session, ()) = self.opened(ready).await?;
        Ok(self.counted(session, lost))
    }

    /// A session, and what `ready` makes of it.
    async fn opened<S: Session, T>(
        &self,
        ready: impl AsyncFnOnce(&mut S, Place) -> Result<T>,
    ) -> Result<(S, T)> {
        // A server that is asked for thousands of connections at once drops some: they are opened a few at a time.
        self.lane.connecting.enter().await;
        let outcome = async {
            let mut session = open::<S>(self.target).await?;
            self.course.note_version(session.server_version());
            let cut = self.job.ledger.as_ref().map(|ledger| ledger.cut);
            let place = Place { client: self.number, clients: self.job.clients, cut };
            let ready = match io::within(self.target.answer_timeout, ready(&mut session, place)).await {
                // The session may give up first, and says less.
                Some(Err(error)) if error.code() == Code::Silent => Err(self.late()),
                Some(outcome) => outcome,
                None => Err(self.late()),
            };
            Ok((session, ready.map_err(|error| advised(error, &self.job.workload))?))
        };
        let outcome = outcome.await;
        self.lane.connecting.leave();
        outcome
    }

    fn counted<S: Session>(&self, session: S, state: &W::Client) -> Counted<'a, S> {
        let beside = self.workload.beside(state);
        Counted { lane: self.lane, session: Some(session), beside, traffic_before: None }
    }

    #[cold]
    fn late(&self) -> Error {
        let (patience_s, awaited) = (self.target.answer_timeout.as_secs_f64(), self.workload.awaited());
        Error::silent(format!("after {patience_s} s a client still waits for {awaited}"))
            .hint("look at the log of what does not answer, and at what is locked in it")
    }

    async fn work<S: Session>(&self, mut connection: Connection<'a, S, W::Client>) {
        self.course.arrive();
        let mut random = self.begin(0).await;
        let mut due_ns = None;
        if let Some(think) = self.think {
            let first_ns = think.first_ns(self.number, self.job.clients, &mut random);
            due_ns = Some(self.pause_until(self.lane.phases().start_ns.saturating_add(first_ns)).await);
        }
        loop {
            let from_ns = due_ns.take().unwrap_or_else(clock::now_ns);
            match self.transactions(&mut connection, &mut random, from_ns).await {
                // Apart: all clients have the size of this future, and few of them lose a session or end now.
                End::Lost if Box::pin(self.regain(&mut connection, &mut random)).await => {}
                End::Lost => return,
                end => {
                    self.lane.over(clock::now_ns());
                    connection.session.end_stretch();
                    let over = self.pause();
                    if matches!(end, End::Through) {
                        return Box::pin(self.leave(connection)).await;
                    }
                    random = self.begin(over).await;
                }
            }
        }
    }

    /// Opens the session again that was lost; false where the client is over without one.
    async fn regain<S: Session>(
        &self,
        connection: &mut Connection<'a, S, W::Client>,
        random: &mut Random,
    ) -> bool {
        self.lane.over(clock::now_ns());
        connection.session.lose();
        loop {
            if let Some(session) = self.reconnect(&mut connection.state).await {
                connection.session = session;
                return true;
            }
            if !self.job.reconnect || !matches!(self.end(), End::Paused) {
                let early = !self.is_over(clock::now_ns()) || self.lane.phases().more;
                self.lane.recorder().clients_lost += u32::from(early);
                self.pause();
                return false;
            }
            // The slice is over before the server is back: the next one begins with opening.
            *random = self.begin(self.pause()).await;
        }
    }

    /// Says goodbye to the workload and to the server.
    async fn leave<S: Session>(&self, mut connection: Connection<'a, S, W::Client>) {
        let Connection { session, state } = &mut connection;
        match self.workload.leave(state, session.open()).await {
            // A server that is gone by now was there for as long as it was measured.
            Err(error) if error.fate() != Fate::Lost => self.course.fail(error),
            _ => {}
        }
        connection.session.close().await;
    }

    /// Waits for the stretch after stretch `over`; all variants of a block draw the same in each of theirs.
    pub(super) async fn begin(&self, over: u32) -> Random {
        self.lane.begun.until(|| self.lane.stretch.get().number > over).await;
        self.lane.working.set(self.lane.working.get() + 1);
        let Stretch { number, phases } = self.lane.stretch.get();
        io::sleep_until_ns(phases.start_ns).await;
        let seed = self.job.seed.wrapping_add(u64::from(number - 1) << 32);
        Random::new(seed, u64::from(self.number))
    }

    /// Works no more in this stretch; gives its number.
    pub(super) fn pause(&self) -> u32 {
        self.lane.working.set(self.lane.working.get() - 1);
        self.lane.stretch.get().number
    }

    /// Transaction after transaction. Without an arrival's own time the first starts at `now_ns`, and each further one
    /// when the one before it has ended and its pauses are over. A thread that wakes later than that is part of the
    /// latency.
    async fn transactions<S: Session>(
        &self,
        connection: &mut Connection<'a, S, W::Client>,
        random: &mut Random,
        mut now_ns: u64,
    ) -> End {
        let (mut failures, mut successful) = (0, false);
        loop {
            let singles = self.singles(connection, random, &mut now_ns).await;
            successful |= singles.successful;
            if singles.over {
                return self.end();
            }
            let mut intended_ns = now_ns;
            if self.lane.is_paced() {
                let Some(due_ns) = self.arrival(now_ns).await else { return self.end() };
                intended_ns = due_ns;
            }
            let kind = self.workload.choose(&mut connection.state, random);
            let pause = self.workload.pause(kind, random);
            let mut from_ns = intended_ns;
            if pause.before_ns > 0 {
                from_ns = self.pause_until(intended_ns.saturating_add(pause.before_ns)).await;
                if self.is_over(clock::now_ns()) {
                    return self.end();
                }
            }
            if !self.course.take_ticket(self.lane.phases(), from_ns) {
                return End::Through;
            }
            let times = (from_ns, now_ns.max(from_ns));
            connection.session.watch(times.1);
            let (outcome, ended_ns) = self.transaction(kind, times, connection, random, singles.first).await;
            // The clock is read once per transaction: the end of one is the start of the next.
            now_ns = ended_ns;
            match outcome {
                Ok(Outcome::Finished) => return End::Through,
                Ok(_) => successful = true,
                Err(error) if error.fate() == Fate::Lost => return End::Lost,
                Err(error) if error.fate() == Fate::Fatal => {
                    self.course.fail(error);
                    return End::Through;
                }
                Err(error) => {
                    failures += 1;
                    if failures >= FAILURES_MAX && !successful {
                        let place = format!("{failures} transactions in a row failed, the last with");
                        self.course.fail(error.at(place));
                        return End::Through;
                    }
                }
            }
            if pause.after_ns > 0 {
                now_ns = self.pause_until(now_ns.saturating_add(pause.after_ns)).await;
            }
            if let Some(think) = self.think {
                now_ns = self.pause_until(now_ns.saturating_add(think.draw_ns(random))).await;
            }
        }
    }

    /// When the next transaction of an open loop is to start, once it is due; `None` where none is left.
    async fn arrival(&self, now_ns: u64) -> Option<u64> {
        let Some(intended_ns) = self.lane.take_arrival(now_ns) else {
            // No one else comes: the run lasts to its end all the same.
            self.pause_until(u64::MAX).await;
            return None;
        };
        if intended_ns > now_ns {
            io::sleep_until_ns(intended_ns).await;
            if self.course.is_stopped() {
                return None;
            }
        }
        Some(intended_ns)
    }

    /// Waits, but not beyond the end of the run; returns when the wait was to end.
    pub(super) async fn pause_until(&self, until_ns: u64) -> u64 {
        io::sleep_until_ns(until_ns.min(self.lane.phases().end_ns)).await;
        until_ns
    }

    /// What the end of the stretch means for who works in it.
    fn end(&self) -> End {
        match self.lane.phases().more && !self.course.is_stopped() {
            true => End::Paused,
            false => End::Through,
        }
    }

    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.lane.phases().end_ns || self.course.is_stopped()
    }

    /// One transaction with all its tries, timed and counted; and when it ended. It counts from a time, and began at
    /// another one where it had to wait for its client. `first` is what its first try came to, where that is over.
    #[inline]
    async fn transaction<S: Session>(
        &self,
        kind: usize,
        (from_ns, began_ns): (u64, u64),
        connection: &mut Connection<'a, S, W::Client>,
        random: &mut Random,
        mut first: Option<Result<Outcome>>,
    ) -> (Result<Outcome>, u64) {
        self.lane.recorder().in_flight += 1;
        let under_way = UnderWay { lane: self.lane, kind, from_ns };
        // The tries are no function of their own: each level of futures is gone through twice for every answer.
        let (drawn, mut again) = (*random, Again::default());
        let outcome = loop {
            let Connection { session, state } = &mut *connection;
            let tried = match first.take() {
                Some(first) => first,
                None => self.workload.perform(kind, state, session.open(), random).await,
            };
            match tried {
                Ok(outcome) => break Ok(outcome),
                Err(error) => {
                    if let Err(error) = self.ready_again(error, from_ns, connection, &mut again).await {
                        break Err(error);
                    }
                }
            }
            if W::REPLAYS {
                *random = drawn;
            }
        };
        std::mem::forget(under_way);
        let now_ns = clock::now_ns();
        if let Some(ledger) = &self.course.ledger {
            self.enter(ledger, &outcome, &mut connection.state, now_ns);
        }
        let recorder = &mut *self.lane.recorder();
        recorder.in_flight -= 1;
        recorder.last_ended_ns = now_ns;
        let overcome = self.workload.take_overcome(&mut connection.state);
        overcome.iter().for_each(|error| recorder.failed(error, now_ns));
        match &outcome {
            Ok(Outcome::Finished | Outcome::Waited) => {}
            Ok(outcome) => {
                if *outcome == Outcome::RolledBack {
                    recorder.rolled_back(now_ns);
                }
                self.operations.set(self.operations.get() + recorder.done(kind, from_ns, began_ns, now_ns));
                if let Some(recall) = self.workload.recall(&connection.state) {
                    recorder.scored(recall, now_ns);
                }
            }
            Err(error) => {
                let committed = || self.workload.failed(&mut connection.state);
                recorder.ended(error, committed, kind, (from_ns, now_ns));
            }
        }
        (outcome, now_ns)
    }

    /// Puts a transaction whose success the client was told into the ledger.
    fn enter(&self, ledger: &Ledger, outcome: &Result<Outcome>, state: &mut W::Client, now_ns: u64) {
        let entry = self.workload.entry(state);
        let (Some(entry), Ok(Outcome::Committed)) = (entry, outcome) else { return };
        if let Err(error) = ledger.note(self.number, entry, now_ns) {
            self.course.fail(error);
        }
    }

    /// Readies the session for another try of a transaction that has failed; the error, where there will be none.
    async fn ready_again<S: Session>(
        &self,
        error: Error,
        from_ns: u64,
        connection: &mut Connection<'a, S, W::Client>,
        again: &mut Again,
    ) -> Result<()> {
        if matches!(error.fate(), Fate::Lost | Fate::Fatal) {
            return Err(error);
        }
        roll_back(connection.session.open()).await?;
        let over = error.fate() == Fate::Failed || self.is_over(clock::now_ns());
        if over || !self.workload.repeats(&mut connection.state) {
            return Err(error);
        }
        match again.wait_ns(self.job.seed, self.number, from_ns) {
            None => return Err(error),
            Some(0) => {}
            Some(wait_ns) => {
                self.pause_until(clock::now_ns().saturating_add(wait_ns)).await;
                if self.is_over(clock::now_ns()) {
                    return Err(error);
                }
            }
        }
        self.lane.recorder().retried(&error, clock::now_ns());
        Ok(())
    }

    /// Opens the connection again, if that is wanted, for as long as the run lasts.
    async fn reconnect<S: Session>(&self, lost: &mut W::Client) -> Option<Counted<'a, S>> {
        let (mut wait_ns, longest_ns) = RECONNECT_WAIT_NS;
        while self.job.reconnect && !self.is_over(clock::now_ns()) {
            match self.connect_again(lost).await {
                Ok(session) => return Some(session),
                Err(error) => {
                    // Counted apart from errors of transactions.
                    let refused = error.fate() == Fate::Lost;
                    let label = if refused { "reconnect refused" } else { "reconnect failed" };
                    self.lane.recorder().failed_as(label, &error, clock::now_ns());
                }
            }
            self.pause_until(clock::now_ns().saturating_add(wait_ns)).await;
            wait_ns = (wait_ns * 2).min(longest_ns);
        }
        None
    }
}

/// A transaction between its start and its end. It is dropped before its end only where the run gives it up.
pub(super) struct UnderWay<'a> {
    pub lane: &'a Lane,
    pub kind: usize,
    pub from_ns: u64,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.lane.recorder().given_up(self.kind, self.from_ns, clock::now_ns());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::stall::{simulated, simulated_over, DRAWN};
    use crate::run::stalling::{Stalling, ANSWER, ROLLBACK, ROLLBACKS};
    use crate::session::Answer;

    /// Clients that were lost, and transactions that were tried again, of one whose first try was in another one's way.
    fn after_rollbacks(answer: fn(u64) -> Result<()>) -> (u32, u64) {
        DRAWN.take();
        ROLLBACKS.set(0);
        ROLLBACK.set(answer);
        ANSWER.set(|_| match DRAWN.with_borrow(Vec::len) {
            1 => Err(aborted()),
            _ => Ok(Answer::default()),
        });
        let tally = simulated(r#""clients": 1, "duration_s": 0.5"#).tally(Vec::new()).unwrap();
        ANSWER.set(|_| Ok(Answer::default()));
        ROLLBACK.set(|_| Ok(()));
        (tally.clients_lost, tally.retries)
    }

    fn aborted() -> Error {
        Error::server("1213 deadlock", Fate::Retry, "another one was first")
    }

    #[test]
    fn a_cluster_may_abort_a_transaction_once_more_before_it_is_rolled_back() {
        assert_eq!(after_rollbacks(|number| if number == 1 { Err(aborted()) } else { Ok(()) }), (0, 1));
        assert_eq!(after_rollbacks(|_| Err(aborted())), (1, 0), "nobody knows whether it is still open");
    }

    /// The draws of the first transaction, which is tried twice, and of the second.
    fn drawn_where<const REPLAYED: bool>() -> [u64; 3] {
        DRAWN.take();
        ANSWER.set(|_| match DRAWN.with_borrow(Vec::len) {
            1 => Err(aborted()),
            _ => Ok(Answer::default()),
        });
        simulated_over::<Stalling, REPLAYED>(r#""clients": 1, "duration_s": 0.5"#);
        ANSWER.set(|_| Ok(Answer::default()));
        DRAWN.take()[..3].try_into().unwrap()
    }

    #[test]
    fn what_is_tried_again_is_the_same_unless_its_workload_draws_anew() {
        let [first, again, second] = drawn_where::<true>();
        assert!(first == again && again != second);
        let [first, again, second] = drawn_where::<false>();
        assert!(first != again && again != second && first != second);
    }
}
