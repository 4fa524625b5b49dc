//! Plays a recording. A client takes the session that opens next, opens its connection when that is due, sends its
//! statements at their times but never before the one before was answered, closes it, and takes the next session.

use super::client::{Client, Connection, UnderWay, FAILURES_MAX};
use crate::clock;
use crate::count::replayed::{Course, Lag, Replayed, Rows};
use crate::count::tally;
use crate::error::{Error, Fate, Kind, Result};
use crate::session::{Answer, Session};
use crate::workload::{Playback, Recorded, StatementPlace, Visit, Workload};

/// What a client keeps between sessions.
#[derive(Default)]
struct Player {
    /// Holds the statement that is sent.
    buffer: Vec<u8>,
    failures: u32,
    successful: bool,
}

/// A statement with the times that it is counted by.
#[derive(Clone, Copy)]
struct Due {
    recorded: Recorded,
    kind: usize,
    /// From here on its latency counts.
    from_ns: u64,
    lag: Option<Lag>,
}

impl<'a, W: Workload> Client<'a, W> {
    /// Plays the workload's recording. An error ends the run.
    pub async fn play_recording<S: Session>(self) {
        let Some(playback) = self.workload.playback() else { return };
        if let Err(error) = self.play::<S>(playback).await {
            self.course.fail(error);
        }
    }

    /// Plays one session after the other until there is none left.
    async fn play<S: Session>(&self, playback: &Playback) -> Result<()> {
        let (mut next, mut player, mut ready) = (playback.take(), Player::default(), None);
        if next.is_some_and(|visit| playback.was_there(&visit)) {
            ready = Some(self.connect_first::<S>().await?);
        }
        self.course.arrive();
        self.begin(0).await;
        while let Some(visit) = next {
            self.visit(playback, &visit, ready.take(), &mut player).await?;
            if self.course.is_stopped() {
                break;
            }
            next = playback.take();
        }
        if let Some(lasts_ns) = playback.lasts_ns() {
            self.pause_until(self.lane.phases().start_ns.saturating_add(lasts_ns)).await;
        }
        self.lane.over(clock::now_ns());
        self.pause();
        Ok(())
    }

    /// Plays a session, from the opening of its connection to its end.
    async fn visit<S: Session>(
        &self,
        playback: &Playback,
        visit: &Visit,
        ready: Option<Connection<'a, S, W::Client>>,
        player: &mut Player,
    ) -> Result<()> {
        self.wait(playback.opens_after_ns(visit)).await;
        if self.is_over(clock::now_ns()) {
            return self.unsent(playback, visit.first, true);
        }
        let opened = match ready {
            Some(connection) => Ok(connection),
            // A session opens when the recording says so.
            None => Box::pin(self.connect::<S>()).await,
        };
        let mut connection = match opened {
            Ok(connection) => connection,
            Err(error) if error.kind() == Kind::User => return Err(error),
            Err(error) => {
                let recorder = &mut *self.lane.recorder();
                recorder.replayed().sessions_refused += 1;
                recorder.failed(&error, clock::now_ns());
                return self.unsent(playback, visit.first, false);
            }
        };
        self.lane.recorder().replayed().sessions += 1;
        let left = self.statements(playback, visit, &mut connection, player).await?;
        if left.lost {
            self.lane.recorder().replayed().sessions_lost += 1;
            connection.session.lose();
            return self.unsent(playback, left.from, false);
        }
        self.unsent(playback, left.from, true)?;
        self.wait(playback.after_ns(visit.closed_ns.min(playback.until_ns))).await;
        connection.session.close().await;
        Ok(())
    }

    /// Waits for a time after the beginning of the run, where there is one.
    async fn wait(&self, after_ns: Option<u64>) {
        if let Some(after_ns) = after_ns {
            self.pause_until(self.lane.phases().start_ns.saturating_add(after_ns)).await;
        }
    }

    /// Sends a session's statements; gives the first that is left, where its connection was lost or the run is over.
    async fn statements<S: Session>(
        &self,
        playback: &Playback,
        visit: &Visit,
        connection: &mut Connection<'_, S, W::Client>,
        player: &mut Player,
    ) -> Result<Left> {
        let (recording, start_ns) = (&playback.recording, self.lane.phases().start_ns);
        let (mut free_ns, mut before, mut next) = (clock::now_ns(), Lag::default(), visit.first);
        let mut database = None;
        while let Some(place) = next {
            let recorded = recording.read(place, &mut player.buffer)?;
            if recorded.due_ns >= playback.until_ns {
                break;
            }
            if database.replace(recorded.database) != Some(recorded.database) {
                choose(recording.choosing(recorded.database), connection).await?;
                free_ns = clock::now_ns();
            }
            let due_ns = playback.after_ns(recorded.due_ns).map(|after_ns| start_ns.saturating_add(after_ns));
            if let Some(due_ns) = due_ns.filter(|due_ns| *due_ns > free_ns) {
                self.pause_until(due_ns).await;
            }
            let sent_ns = clock::now_ns();
            if self.is_over(sent_ns) {
                return Ok(Left { from: Some(place), lost: false });
            }
            let lag = due_ns.map(|due_ns| Lag::of(due_ns, free_ns, sent_ns, before));
            let kind = recording.kind(recorded.statement);
            let due = Due { recorded, kind, from_ns: due_ns.unwrap_or(sent_ns), lag };
            connection.session.watch(sent_ns);
            let text = recording.text(place, &player.buffer)?;
            let outcome = self.send(due, text, connection).await;
            free_ns = clock::now_ns();
            self.answered(due, &outcome, free_ns);
            match outcome {
                Ok(_) => player.successful = true,
                Err(error) if error.fate() == Fate::Lost => {
                    return Ok(Left { from: recorded.next, lost: true });
                }
                Err(error) if error.fate() == Fate::Fatal => return Err(error),
                Err(error) => player.fail(error)?,
            }
            (before, next) = (lag.unwrap_or_default(), recorded.next);
        }
        Ok(Left { from: None, lost: false })
    }

    async fn send<S: Session>(
        &self,
        due: Due,
        text: &str,
        connection: &mut Connection<'_, S, W::Client>,
    ) -> Result<Answer> {
        {
            let recorder = &mut *self.lane.recorder();
            recorder.in_flight += 1;
            if recorder.is_measured(due.from_ns) {
                recorder.replayed().sent(due.lag);
            }
        }
        let under_way = UnderWay { lane: self.lane, kind: due.kind, from_ns: due.from_ns };
        let outcome = connection.session.open().text(text, &mut ()).await;
        std::mem::forget(under_way);
        outcome
    }

    /// Counts what became of a statement. One that failed when it was recorded may fail again.
    fn answered(&self, due: Due, outcome: &Result<Answer>, now_ns: u64) {
        let Due { recorded, kind, from_ns, .. } = due;
        let recorder = &mut *self.lane.recorder();
        recorder.in_flight -= 1;
        recorder.last_ended_ns = now_ns;
        let measured = recorder.is_measured(from_ns);
        match outcome {
            Err(error) if error.fate() == Fate::Lost || !recorded.failed => {
                if error.fate() == Fate::Lost {
                    recorder.unknown += 1;
                    recorder.given_up(kind, from_ns, now_ns);
                } else {
                    recorder.gave_nothing(from_ns, now_ns);
                }
                recorder.failed(error, now_ns);
                if measured {
                    recorder.replayed().failed(recorded.statement, error.label());
                }
            }
            outcome => {
                let counted = recorder.done(kind, from_ns, from_ns, now_ns);
                self.operations.set(self.operations.get() + counted);
                if let (Ok(answer), true) = (outcome, measured) {
                    recorder.replayed().answered(recorded.statement, rows(&recorded, answer));
                }
            }
        }
    }

    /// Counts what is left of a session from a statement on. Where the run is `over`, each had waited from its time on.
    fn unsent(&self, playback: &Playback, from: Option<StatementPlace>, over: bool) -> Result<()> {
        let (now_ns, start_ns, mut next) = (clock::now_ns(), self.lane.phases().start_ns, from);
        while let Some(place) = next {
            let recorded = playback.recording.head(place)?;
            if recorded.due_ns >= playback.until_ns || self.course.is_stopped() {
                break;
            }
            let due_ns = start_ns.saturating_add(playback.after_ns(recorded.due_ns).unwrap_or_default());
            let recorder = &mut *self.lane.recorder();
            recorder.replayed().unsent += u64::from(recorder.is_measured(due_ns));
            if over {
                recorder.never_taken(due_ns, now_ns);
            }
            next = recorded.next;
        }
        Ok(())
    }
}

/// Puts a session into the database of its next statement.
async fn choose<S: Session, C>(sql: Option<&str>, connection: &mut Connection<'_, S, C>) -> Result<()> {
    let Some(sql) = sql else { return Ok(()) };
    match connection.session.open().text(sql, &mut ()).await {
        // The statement that follows meets a lost connection as well, and is counted.
        Err(error) if error.fate() != Fate::Lost => Err(error.at(sql).hint(
            "load all databases of the recording, or record one of them: dyno init replay --database NAME",
        )),
        _ => Ok(()),
    }
}

/// Where a session's statements ended before their end.
struct Left {
    from: Option<StatementPlace>,
    lost: bool,
}

impl Player {
    /// Counts a failure. A client that has done nothing but fail shows that the data are not those of the recording.
    fn fail(&mut self, error: Error) -> Result<()> {
        self.failures += 1;
        if self.successful || self.failures < FAILURES_MAX {
            return Ok(());
        }
        let place = format!("{} statements in a row failed, the last with", self.failures);
        Err(error.at(place).hint("play the recording on data as they were when it began: a dump, or a copy"))
    }
}

/// Whether the answer has as many rows as the recorded one.
fn rows(recorded: &Recorded, answer: &Answer) -> Rows {
    let pairs = [(recorded.rows, answer.rows), (recorded.affected, answer.affected)];
    pairs.into_iter().fold(Rows::Unknown, |found, (recorded, replayed)| match recorded {
        None => found,
        Some(recorded) if recorded != replayed => Rows::Other,
        Some(_) if found == Rows::Unknown => Rows::Same,
        Some(_) => found,
    })
}

/// What the run as a whole came to, where a recording was played.
pub(super) fn told(playback: &Playback, replayed: Replayed, took_ns: u64) -> tally::Replay {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let course = Course {
        recorded_s: seconds(playback.recorded_ns()),
        speed: playback.times(),
        planned_s: playback.lasts_ns().map(seconds),
        took_s: seconds(took_ns),
    };
    let digest = |statement: u32| playback.recording.digest(statement).to_owned();
    replayed.figures(course, digest)
}
