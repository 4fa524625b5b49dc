//! Waking threads that sleep in their loops although nothing of theirs is due.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// What the threads of an embedded engine's clients sleep by: each waits for its own timers, and for nothing else until
/// this rings.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    rung: Mutex<u64>,
    bell: Condvar,
}

impl Alarm {
    /// Wakes all, to look what has changed.
    pub fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.bell.notify_all();
    }

    /// Sleeps until a time is over, and then gives true, or until it rings, unless it has rung since a thread `heard` it.
    pub fn sleep(&self, heard: &mut u64, sleep_ns: u64) -> bool {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let (rung, slept) = self
            .bell
            .wait_timeout_while(rung, Duration::from_nanos(sleep_ns), |rung| *rung == *heard)
            .unwrap_or_else(PoisonError::into_inner);
        *heard = *rung;
        slept.timed_out()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_heard_once_by_each_whether_it_slept_or_not() {
        let alarm = Alarm::default();
        let (mut heard, mut other) = (0, 0);
        assert!(alarm.sleep(&mut heard, 1_000_000));
        alarm.ring();
        assert!(!alarm.sleep(&mut heard, u64::MAX / 4), "it has rung before the sleep began");
        assert!(alarm.sleep(&mut heard, 1_000_000));
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!alarm.sleep(&mut heard, u64::MAX / 4)));
            alarm.ring();
        });
        assert!(!alarm.sleep(&mut other, u64::MAX / 4));
    }
}
