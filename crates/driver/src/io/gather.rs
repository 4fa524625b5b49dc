//! Letting the server go first: what makes a closed loop cheap on a machine that the driver shares with the server.
//!
//! A loop that runs as soon as a single answer is there pays a switch of context for it, and takes the CPU from
//! the server to do so. In a closed loop whose clients never rest it need not, and latencies do not suffer: their mean
//! is the number of clients by the rate (Little's law), and the rate rises. So the thread takes no CPU from
//! another one (`give_way`), and while the whole machine is busy, answers may lie in the ring for a moment, together
//! with the next ones: the server has the other clients' requests to work on meanwhile. The moment is bounded by a share
//! of the mean time that an answer takes, so that no latency is off by more. Where requests start at their own times
//! (open loop, think times) neither is done. Where gathering goes by the machine's idle time (`Gather::WhenCrowded`)
//! nothing is gathered while a CPU is idle: a comparison of two servers must not rest on that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Fewer clients than this keep no server busy while answers lie here.
const UNDER_WAY_MIN: usize = 16;
/// An answer may be looked at later by this part of the mean time of an answer, and never by more than `WAIT_US_MAX`.
const SHARE_OF_MEAN: u64 = 5;
const WAIT_US_MAX: u64 = 200;
/// Part of the answers under way that ends the wait, and their most: the buffers that the kernel fills are limited.
const SHARE_OF_ANSWERS: usize = 2;
const ANSWERS_MAX: usize = 128;
const PERIOD_NS: u64 = 5_000_000;

/// How long the next wait may go on although there is something: until there are `answers`, or for `wait_us`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Patience {
    pub answers: usize,
    pub wait_us: u32,
}

/// Measures how fast answers come and says what to gather. Times are those of `clock::now_ns`.
#[derive(Debug, Default)]
pub(super) struct Gather {
    /// Only while this is true does nobody lose by waiting.
    crowded: Arc<AtomicBool>,
    since_ns: u64,
    answers: u64,
    patience: Option<Patience>,
    /// The longest wait that was allowed so far, 0 when none was.
    pub wait_us_max: u32,
    /// Time of whole periods in which waits were allowed.
    pub gathered_ns: u64,
}

impl Gather {
    pub fn new(crowded: Arc<AtomicBool>) -> Self {
        Gather { crowded, ..Gather::default() }
    }

    /// Counts answers that have come.
    pub fn took(&mut self, answers: u64) {
        self.answers += answers;
    }

    /// What the next wait may gather. `under_way` counts the requests that have no answer yet; it is asked for a few
    /// times a second.
    pub fn patience(&mut self, now_ns: u64, under_way: impl FnOnce() -> usize) -> Option<Patience> {
        let elapsed_ns = now_ns.saturating_sub(self.since_ns);
        if elapsed_ns >= PERIOD_NS {
            self.gathered_ns += self.patience.map_or(0, |_| elapsed_ns);
            let crowded = self.crowded.load(Ordering::Relaxed);
            self.patience = crowded.then(|| patience(under_way(), self.answers, elapsed_ns)).flatten();
            self.wait_us_max = self.wait_us_max.max(self.patience.map_or(0, |patience| patience.wait_us));
            (self.since_ns, self.answers) = (now_ns, 0);
        }
        self.patience
    }
}

fn patience(under_way: usize, answers: u64, elapsed_ns: u64) -> Option<Patience> {
    if under_way < UNDER_WAY_MIN || answers == 0 {
        return None;
    }
    let mean_us = under_way as u64 * elapsed_ns / answers / 1000;
    let wait_us = (mean_us / SHARE_OF_MEAN).min(WAIT_US_MAX) as u32;
    let answers = (under_way / SHARE_OF_ANSWERS).min(ANSWERS_MAX);
    (wait_us > 0).then_some(Patience { answers, wait_us })
}

/// Whether this thread runs under SCHED_BATCH, be it by `give_way` or because the user has chosen it.
pub(crate) fn gives_way() -> bool {
    // SAFETY: sched_getscheduler(2) takes a number only; 0 is the calling thread.
    unsafe { libc::sched_getscheduler(0) == libc::SCHED_BATCH }
}

/// Has this thread wait for a free CPU when it is woken instead of taking one from another thread (sched(7),
/// SCHED_BATCH), or ends that. True when the policy was changed: one that the user has chosen stays.
pub(super) fn give_way(yes: bool) -> bool {
    let (usual, wanted) =
        if yes { (libc::SCHED_OTHER, libc::SCHED_BATCH) } else { (libc::SCHED_BATCH, libc::SCHED_OTHER) };
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: sched_setscheduler(2) reads one sched_param; 0 is the calling thread.
    unsafe { libc::sched_getscheduler(0) == usual && libc::sched_setscheduler(0, wanted, &parameters) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// After a period with these answers.
    fn after(under_way: usize, answers: u64, elapsed_ns: u64) -> Option<Patience> {
        let mut gather = crowded();
        gather.took(answers);
        gather.patience(elapsed_ns, || under_way)
    }

    /// On a machine that has no time to spare.
    fn crowded() -> Gather {
        Gather::new(Arc::new(AtomicBool::new(true)))
    }

    #[test]
    fn thirty_two_clients_that_wait_200_us_gather_sixteen_answers_for_40_us() {
        assert_eq!(after(32, 1600, 10_000_000), Some(Patience { answers: 16, wait_us: 40 }));
    }

    #[test]
    fn where_a_cpu_is_idle_every_answer_is_looked_at_at_once() {
        let flag = Arc::new(AtomicBool::new(true));
        let mut gather = Gather::new(flag.clone());
        gather.took(1600);
        assert!(gather.patience(10_000_000, || 32).is_some());
        flag.store(false, Ordering::Relaxed);
        gather.took(1600);
        assert_eq!(gather.patience(20_000_000, || 32), None);
        assert_eq!(gather.patience(30_000_000, || 32), None);
        assert_eq!(gather.gathered_ns, 10_000_000, "of the second period alone");
    }

    #[test]
    fn a_thread_gives_way_until_it_is_told_not_to() {
        let policy = || unsafe { libc::sched_getscheduler(0) };
        assert!(give_way(true) && policy() == libc::SCHED_BATCH);
        assert!(!give_way(true), "it does so already");
        assert!(give_way(false) && policy() == libc::SCHED_OTHER);
        assert!(!give_way(false));
    }

    #[test]
    fn few_clients_are_answered_at_once() {
        assert_eq!(after(15, 1600, 10_000_000), None);
        assert_eq!(after(1, 1600, 10_000_000), None);
    }

    #[test]
    fn nothing_is_gathered_before_it_is_known_how_long_an_answer_takes() {
        let mut gather = Gather { since_ns: 7_000_000, ..crowded() };
        gather.took(1_000_000);
        assert_eq!(gather.patience(7_000_000 + PERIOD_NS - 1, || 1000), None);
        assert_eq!(after(1000, 0, 10_000_000), None);
    }

    #[test]
    fn what_was_allowed_at_most_is_kept() {
        let mut gather = crowded();
        gather.took(1600);
        gather.patience(10_000_000, || 32);
        gather.took(1);
        assert_eq!(gather.patience(20_000_000, || 1), None);
        assert_eq!(gather.wait_us_max, 40);
    }

    proptest! {
        #[test]
        fn no_latency_is_off_by_more_than_a_fifth_of_the_mean(
            under_way in 0usize..100_000, answers in 0u64..1_000_000, elapsed_ns in PERIOD_NS..1_000_000_000,
        ) {
            if let Some(patience) = after(under_way, answers, elapsed_ns) {
                let mean_us = under_way as f64 * elapsed_ns as f64 / answers as f64 / 1e3;
                prop_assert!(f64::from(patience.wait_us) <= mean_us / 5.0);
                prop_assert!(u64::from(patience.wait_us) <= WAIT_US_MAX);
                prop_assert!((1..=ANSWERS_MAX).contains(&patience.answers) && patience.answers < under_way);
            }
        }
    }
}
