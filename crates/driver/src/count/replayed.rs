//! What became of a recording that was played: what was late, and who was to blame; what failed, and what was answered
//! otherwise than it was recorded.

use super::histogram::{latencies, latency_us, Latencies};
use super::tally::{self, Failed};
use std::collections::BTreeMap;

/// A statement that begins later than this after its time is late.
const LATE_NS: u64 = 1_000_000;
/// So many kinds of statements are told that failed, and that had another number of rows: the most frequent ones.
const TOLD_MOST: usize = 100;

/// By how much a statement began after its time, and who was to blame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lag {
    /// The statement before it, or the opening of the connection, was answered later than this one was due.
    pub server_ns: u64,
    /// The driver woke late, for this statement or for one before it that then ended as much later.
    pub driver_ns: u64,
}

impl Lag {
    /// Of a statement that was due at `due_ns` and sent at `sent_ns`, where its session was free from `free_ns` on and
    /// the statement before it had `before`.
    pub fn of(due_ns: u64, free_ns: u64, sent_ns: u64, before: Lag) -> Self {
        let waited_ns = free_ns.saturating_sub(due_ns);
        let inherited_ns = before.driver_ns.min(waited_ns);
        let woke_late_ns = sent_ns.saturating_sub(due_ns.max(free_ns));
        Lag { server_ns: waited_ns - inherited_ns, driver_ns: inherited_ns + woke_late_ns }
    }

    fn is_late(self) -> bool {
        self.server_ns + self.driver_ns > LATE_NS
    }
}

/// What the statement of a recording and its replay have in common: whether the numbers of rows are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// The recording does not say.
    Unknown,
    Same,
    Other,
}

/// Of the statements that were due in the measured part; sessions are those of the whole run.
#[derive(Clone, Debug)]
pub struct Replayed {
    pub sessions: u64,
    pub sessions_refused: u64,
    pub sessions_lost: u64,
    pub statements: u64,
    /// Statements that were never sent, because their session was refused or lost, or because the replay was ended.
    pub unsent: u64,
    late_by_server: u64,
    late_by_driver: u64,
    server: Latencies,
    driver: Latencies,
    failed: BTreeMap<(u32, String), u64>,
    rows_compared: u64,
    rows_differ: BTreeMap<u32, u64>,
}

impl Default for Replayed {
    fn default() -> Self {
        Replayed {
            sessions: 0,
            sessions_refused: 0,
            sessions_lost: 0,
            statements: 0,
            unsent: 0,
            late_by_server: 0,
            late_by_driver: 0,
            server: latencies(),
            driver: latencies(),
            failed: BTreeMap::new(),
            rows_compared: 0,
            rows_differ: BTreeMap::new(),
        }
    }
}

impl Replayed {
    /// Counts a statement that is sent; `None` where none is due by the clock.
    #[inline]
    pub(crate) fn sent(&mut self, lag: Option<Lag>) {
        self.statements += 1;
        let Some(lag) = lag else { return };
        self.server.saturating_record(lag.server_ns.max(1));
        self.driver.saturating_record(lag.driver_ns.max(1));
        let late = u64::from(lag.is_late());
        match lag.server_ns >= lag.driver_ns {
            true => self.late_by_server += late,
            false => self.late_by_driver += late,
        }
    }

    /// Counts an answer by its number of rows.
    #[inline]
    pub(crate) fn answered(&mut self, statement: u32, rows: Rows) {
        self.rows_compared += u64::from(rows != Rows::Unknown);
        if rows == Rows::Other {
            *self.rows_differ.entry(statement).or_default() += 1;
        }
    }

    #[cold]
    pub(crate) fn failed(&mut self, statement: u32, label: &str) {
        *self.failed.entry((statement, label.to_owned())).or_default() += 1;
    }

    /// Together with what another thread counted.
    pub(crate) fn with(mut self, other: Replayed) -> Self {
        self.sessions += other.sessions;
        self.sessions_refused += other.sessions_refused;
        self.sessions_lost += other.sessions_lost;
        self.statements += other.statements;
        self.unsent += other.unsent;
        self.late_by_server += other.late_by_server;
        self.late_by_driver += other.late_by_driver;
        self.server += &other.server;
        self.driver += &other.driver;
        self.rows_compared += other.rows_compared;
        for (key, count) in other.failed {
            *self.failed.entry(key).or_default() += count;
        }
        for (statement, count) in other.rows_differ {
            *self.rows_differ.entry(statement).or_default() += count;
        }
        self
    }

    /// The figures; `name` tells a statement's text by its number, and `course` what the whole run was.
    pub(crate) fn figures(&self, course: Course, name: impl Fn(u32) -> String) -> tally::Replay {
        let mut failed: Vec<Failed> = self
            .failed
            .iter()
            .map(|((statement, error), &count)| Failed {
                statement: name(*statement),
                error: error.clone(),
                count,
            })
            .collect();
        failed.sort_by_key(|one| std::cmp::Reverse(one.count));
        failed.truncate(TOLD_MOST);
        let mut differing: Vec<(u32, u64)> =
            self.rows_differ.iter().map(|(&one, &count)| (one, count)).collect();
        differing.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let rows_differ = differing.iter().map(|(_, count)| count).sum();
        differing.truncate(TOLD_MOST);
        tally::Replay {
            recorded_s: course.recorded_s,
            speed: course.speed,
            planned_s: course.planned_s,
            took_s: course.took_s,
            sessions: self.sessions,
            sessions_refused: self.sessions_refused,
            sessions_lost: self.sessions_lost,
            statements: self.statements,
            unsent: self.unsent,
            late_by_server: self.late_by_server,
            late_by_driver: self.late_by_driver,
            server_lag_us: latency_us(&self.server),
            driver_lag_us: latency_us(&self.driver),
            failed,
            rows_compared: self.rows_compared,
            rows_differ,
            differing: differing.into_iter().map(|(statement, count)| (name(statement), count)).collect(),
        }
    }
}

/// What was played, and how long that took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Course {
    /// Of the recording, warm-up included.
    pub recorded_s: f64,
    /// `None` where nothing is due by the clock.
    pub speed: Option<f64>,
    pub planned_s: Option<f64>,
    /// From the beginning of the run to its last answer.
    pub took_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_session_that_waits_for_an_answer_is_late_by_the_server() {
        let lag = Lag::of(10 * MS, 500 * MS, 500 * MS + 1, Lag::default());
        assert_eq!(lag, Lag { server_ns: 490 * MS, driver_ns: 1 });
    }

    #[test]
    fn a_session_that_was_free_is_late_by_the_driver() {
        let lag = Lag::of(10 * MS, 3 * MS, 40 * MS, Lag::default());
        assert_eq!(lag, Lag { server_ns: 0, driver_ns: 30 * MS });
    }

    #[test]
    fn what_the_driver_delayed_delays_the_next_statement_as_well() {
        let before = Lag { server_ns: 0, driver_ns: 30 * MS };
        let lag = Lag::of(50 * MS, 100 * MS, 100 * MS, before);
        assert_eq!(lag, Lag { server_ns: 20 * MS, driver_ns: 30 * MS });
        // A pause that is long enough makes up for it.
        assert_eq!(Lag::of(200 * MS, 100 * MS, 200 * MS, before), Lag::default());
    }

    proptest! {
        #[test]
        fn both_shares_are_the_whole_lag(
            due_ns in 0..1u64 << 40, free_ns in 0..1u64 << 40, woke_ns in 0..1u64 << 40, driver_ns in 0..1u64 << 40,
        ) {
            let sent_ns = due_ns.max(free_ns) + woke_ns;
            let lag = Lag::of(due_ns, free_ns, sent_ns, Lag { server_ns: 0, driver_ns });
            prop_assert_eq!(lag.server_ns + lag.driver_ns, sent_ns - due_ns);
        }
    }

    #[test]
    fn a_statement_is_late_by_whoever_has_the_larger_share() {
        let mut replayed = Replayed::default();
        let ms = |server, driver| Some(Lag { server_ns: server * MS, driver_ns: driver * MS });
        for lag in [ms(5, 1), ms(1, 5), ms(0, 5), ms(0, 0), None] {
            replayed.sent(lag);
        }
        let mut other = Replayed::default();
        other.sent(ms(9, 0));
        other.failed(1, "1146 no such table");
        other.answered(0, Rows::Other);
        other.answered(0, Rows::Same);
        other.answered(0, Rows::Unknown);
        let told = replayed.with(other).figures(Course::default(), |number| format!("q{number}"));
        assert_eq!((told.statements, told.late_by_server, told.late_by_driver), (6, 2, 2));
        assert_eq!(told.server_lag_us.count, 5);
        assert_eq!((told.rows_compared, told.rows_differ), (2, 1));
        assert_eq!(told.differing, [("q0".to_owned(), 1)]);
        assert_eq!((told.failed[0].statement.as_str(), told.failed[0].count), ("q1", 1));
    }
}
