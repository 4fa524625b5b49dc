//! Time. Everything that asks for the time asks here, so that a test can put a simulated clock in its place.

use std::cell::Cell;

thread_local! {
    static SIMULATED_NS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Nanoseconds of the monotonic clock (or of this thread's simulated one).
#[inline]
pub fn now_ns() -> u64 {
    match SIMULATED_NS.get() {
        Some(now_ns) => now_ns,
        None => read_ns(libc::CLOCK_MONOTONIC),
    }
}

/// The same to within a tick of the kernel, which is 10 ms at most, for a fraction of the price.
#[inline]
pub fn coarse_ns() -> u64 {
    match SIMULATED_NS.get() {
        Some(now_ns) => now_ns,
        None => read_ns(libc::CLOCK_MONOTONIC_COARSE),
    }
}

/// CPU time that the calling thread has used.
pub fn thread_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Puts this thread on a simulated clock that shows `now_ns`, until it is set again; `None` goes back to the real one.
pub fn simulate(now_ns: Option<u64>) {
    SIMULATED_NS.set(now_ns);
}

/// True while this thread is on a simulated clock.
pub fn is_simulated() -> bool {
    SIMULATED_NS.get().is_some()
}

fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime(2) writes one timespec, and fails only for clocks that the kernel does not have.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
