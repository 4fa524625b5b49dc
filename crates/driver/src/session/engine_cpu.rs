//! The CPU time that a thread spends inside an embedded engine: all of the thread's, less what the driver uses between
//! the engine's calls.
//!
//! Reading the thread's CPU clock is a system call (0.12 us on the machine this was written on, where SQLite answers a
//! point select in 1.3 us), so not every call is bracketed. One interval between calls in 16, drawn at random, is
//! measured and counts for 16: the driver's part, which is small and even, is estimated, and the engine's, which is
//! large and uneven, is not.

use crate::clock::thread_cpu_ns;
use crate::random::Random;

const INTERVALS_PER_SAMPLE: u64 = 16;

/// `enter` and `leave` bracket each call of the session; what the session does around the engine's own calls, such as
/// putting parameters into a buffer, counts as the engine's.
#[derive(Debug)]
pub(super) struct EngineCpu {
    /// The thread's CPU clock, or a test's.
    clock_ns: fn() -> u64,
    opened_ns: u64,
    driver_ns: u64,
    /// What one reading of the clock adds to an interval that is measured.
    clock_cost_ns: u64,
    /// When the interval that is being measured began.
    since_ns: Option<u64>,
    until_sample: u64,
    random: Random,
    /// False where the engine is another process: its CPU is not this thread's.
    is_embedded: bool,
}

impl EngineCpu {
    pub fn new(is_embedded: bool) -> Self {
        Self::on(thread_cpu_ns, is_embedded)
    }

    fn on(clock_ns: fn() -> u64, is_embedded: bool) -> Self {
        let opened_ns = clock_ns();
        EngineCpu {
            clock_ns,
            opened_ns,
            driver_ns: 0,
            clock_cost_ns: cost_ns(clock_ns),
            since_ns: None,
            until_sample: 1,
            random: Random::new(opened_ns, 0),
            is_embedded,
        }
    }

    #[inline]
    pub fn enter(&mut self) {
        if let Some(since_ns) = self.since_ns.take() {
            let interval_ns = ((self.clock_ns)() - since_ns).saturating_sub(self.clock_cost_ns);
            self.driver_ns += INTERVALS_PER_SAMPLE * interval_ns;
        }
    }

    #[inline]
    pub fn leave(&mut self) {
        self.until_sample -= 1;
        if self.until_sample == 0 {
            // Uniform in 1..=31: 16 on average, and out of step with any pattern of calls.
            self.until_sample = 1 + self.random.below(2 * INTERVALS_PER_SAMPLE - 1);
            self.since_ns = self.is_embedded.then(self.clock_ns);
        }
    }

    /// The engine's CPU since the session was opened; `None` where it is another process.
    pub fn used_ns(&self) -> Option<u64> {
        let all_ns = (self.clock_ns)() - self.opened_ns;
        self.is_embedded.then(|| all_ns.saturating_sub(self.driver_ns))
    }
}

/// The least of several differences between one reading of the clock and the next.
fn cost_ns(clock_ns: fn() -> u64) -> u64 {
    let difference_ns = |_| {
        let first_ns = clock_ns();
        clock_ns() - first_ns
    };
    (0..16).map(difference_ns).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const READING_NS: u64 = 120;
    thread_local!(static NOW_NS: Cell<u64> = const { Cell::new(0) });

    /// A clock that takes time to read.
    fn slow_clock_ns() -> u64 {
        pass(READING_NS);
        NOW_NS.get()
    }

    fn pass(ns: u64) {
        NOW_NS.set(NOW_NS.get() + ns);
    }

    #[test]
    fn the_engines_part_is_told_from_the_drivers() {
        let mut cpu = EngineCpu::on(slow_clock_ns, true);
        cpu.random = Random::new(1, 0);
        let calls = 100_000;
        for call in 0..calls {
            cpu.enter();
            pass(if call % 7 == 6 { 50_000 } else { 1_000 });
            cpu.leave();
            pass(if call % 7 == 6 { 500 } else { 50 });
        }
        let driver_ns = calls * (500 + 6 * 50) / 7;
        let share = cpu.driver_ns as f64 / driver_ns as f64;
        // 6,250 samples whose standard deviation is 1.4 times their mean: 4 standard errors are 7 %.
        assert!((0.93..1.07).contains(&share), "{share}");
        let used_ns = cpu.used_ns().unwrap();
        let engine_ns = calls * (50_000 + 6 * 1_000) / 7;
        assert!(used_ns.abs_diff(engine_ns) < engine_ns / 100, "{used_ns} {engine_ns}");
    }

    #[test]
    fn an_engine_elsewhere_uses_no_cpu_here() {
        assert_eq!(EngineCpu::new(false).used_ns(), None);
    }
}
