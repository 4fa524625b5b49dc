//! What the clients of one thread share: the gates, the recorder, the pace, and the thread's own readings.

use super::course::Stretch;
use super::pace::Pace;
use crate::clock;
use crate::count::recorder::{Phases, Recorder};
use crate::count::total::ThreadUse;
use crate::count::usage::Reading;
use crate::io::{self, Bell, Gate};
use crate::session::Traffic;
use std::cell::{Cell, OnceCell, RefCell, RefMut};

const CONNECTING_MAX: usize = 32;

/// What a thread counted in one stretch: transactions that ended in it, and with those over its borders by their shares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counted {
    pub operations: u64,
    pub work: f64,
}

/// What the clients of one thread share. Lives and dies on that thread.
pub(crate) struct Lane {
    /// Calls of its clients' sessions block the thread.
    pub blocking: bool,
    pub connecting: Gate,
    /// Rung when a stretch begins.
    pub begun: Bell,
    pub stretch: Cell<Stretch>,
    /// Clients that are at work in this stretch.
    pub working: Cell<u32>,
    pub recorder: OnceCell<RefCell<Recorder>>,
    pub pace: RefCell<Option<Pace>>,
    pub traffic: Cell<Traffic>,
    pub first: Cell<Option<Reading>>,
    pub last: Cell<Option<Reading>>,
    /// What the thread used in the stretches that are over, and how many transactions each of them has measured.
    pub used: Cell<Option<ThreadUse>>,
    pub counted: RefCell<Vec<Counted>>,
    /// What an embedded engine used in sessions that are closed, because each begins to count at 0.
    engine_cpu_before_ns: Cell<Option<u64>>,
    /// When the last client had no more to do. Closing the connections is no part of the run.
    over_ns: Cell<u64>,
}

impl Lane {
    pub fn new(blocking: bool) -> Self {
        Lane {
            blocking,
            connecting: Gate::new(CONNECTING_MAX),
            begun: Bell::default(),
            stretch: Cell::default(),
            working: Cell::new(0),
            recorder: OnceCell::new(),
            pace: RefCell::new(None),
            traffic: Cell::default(),
            first: Cell::new(None),
            last: Cell::new(None),
            used: Cell::default(),
            counted: RefCell::default(),
            engine_cpu_before_ns: Cell::new(None),
            over_ns: Cell::new(0),
        }
    }

    /// Notes that a client has no more to do, or that all are given up.
    pub fn over(&self, now_ns: u64) {
        self.over_ns.set(self.over_ns.get().max(now_ns));
    }

    pub fn over_ns(&self) -> u64 {
        self.over_ns.get()
    }

    /// The phases of the stretch. Known to everyone that has waited for `begun`.
    #[inline]
    pub fn phases(&self) -> Phases {
        self.stretch.get().phases
    }

    pub fn has_begun(&self) -> bool {
        self.stretch.get().number > 0
    }

    /// Adds up what the stretch has shown, once nobody works in it any more.
    pub fn end_stretch(&self) {
        let (Some(recorder), mut counted) = (self.recorder.get(), self.counted.borrow_mut()) else {
            return;
        };
        if counted.len() >= self.stretch.get().number as usize {
            return;
        }
        let recorder = recorder.borrow();
        let before: u64 = counted.iter().map(|one| one.operations).sum();
        let work_before: f64 = counted.iter().map(|one| one.work).sum();
        counted.push(Counted {
            operations: recorder.operations.iter().sum::<u64>() - before,
            work: recorder.work() - work_before,
        });
        if let (Some(first), Some(last)) = (self.first.take(), self.last.take()) {
            let used = last.since(&first);
            self.used.set(Some(self.used.get().map_or(used, |before| before.plus(&used))));
        }
    }

    #[inline]
    pub fn recorder(&self) -> RefMut<'_, Recorder> {
        self.recorder.get().expect("clients are let through when the recorder is there").borrow_mut()
    }

    /// Whether transactions start when their arrivals are due: an open loop.
    #[inline]
    pub fn is_paced(&self) -> bool {
        self.pace.borrow().is_some()
    }

    /// The intended start of the next transaction of an open loop; `None` when no arrival is left.
    pub fn take_arrival(&self, now_ns: u64) -> Option<u64> {
        self.pace.borrow_mut().as_mut()?.take(now_ns)
    }

    /// Takes the thread's readings at the borders of the measured part.
    #[inline]
    pub fn observe(&self, now_ns: u64, engine_cpu_ns: impl FnOnce() -> Option<u64>) {
        let phases = self.phases();
        if self.first.get().is_none() {
            if now_ns >= phases.measured_ns {
                self.first.set(Some(self.reading(now_ns, engine_cpu_ns())));
            }
        } else if now_ns >= phases.end_ns && self.last.get().is_none() {
            self.last.set(Some(self.reading(now_ns, engine_cpu_ns())));
        }
    }

    /// Takes the last reading of a thread that ends before the run does.
    pub fn observe_last(&self, engine_cpu_ns: Option<u64>) {
        if self.first.get().is_some() && self.last.get().is_none() {
            self.last.set(Some(self.reading(clock::now_ns(), engine_cpu_ns)));
        }
    }

    /// The thread's counters; `engine_cpu_ns` is what the open session has counted, where one is open.
    fn reading(&self, now_ns: u64, engine_cpu_ns: Option<u64>) -> Reading {
        Reading::now(now_ns, io::loop_use(), self.engine_cpu_ns(engine_cpu_ns))
    }

    fn engine_cpu_ns(&self, open_ns: Option<u64>) -> Option<u64> {
        self.engine_cpu_before_ns.get().into_iter().chain(open_ns).reduce(std::ops::Add::add)
    }

    /// Notes what the engine has used in a session that is closed now.
    pub fn keep_engine_cpu(&self, engine_cpu_ns: Option<u64>) {
        self.engine_cpu_before_ns.set(self.engine_cpu_ns(engine_cpu_ns));
    }

    /// Adds what has gone over a session. A workload that opened the session anew began to count at 0 again.
    pub fn count_traffic(&self, before: Traffic, after: Traffic) {
        let mut sum = self.traffic.get();
        sum.bytes_sent += after.bytes_sent.saturating_sub(before.bytes_sent);
        sum.bytes_received += after.bytes_received.saturating_sub(before.bytes_received);
        sum.rows_received += after.rows_received.saturating_sub(before.rows_received);
        self.traffic.set(sum);
    }
}
