//! What all threads of a run share: when it starts and stops, and why.

use super::pace::OpenPace;
use crate::clock;
use crate::count::ledger::Ledger;
use crate::count::recorder::Phases;
use crate::error::Error;
use crate::io::Alarm;
use crate::job::{Gather, Job, Load};
use crate::random::Random;
use crate::workload::{Acknowledged, Pause, Workload};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// How long transactions under way at the end may take to finish.
const GRACE_NS: u64 = 10_000_000_000;

/// What a run is doing: its only stretch, or where it has slices its warm-up and then each slice. `number` counts from
/// 1; it is 0, and `phases` mean nothing, until all have arrived.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stretch {
    pub number: u32,
    pub phases: Phases,
}

/// What all threads of a run share.
#[derive(Default)]
pub(crate) struct Course {
    pub arrived: AtomicU32,
    pub stretch: Mutex<Stretch>,
    /// Rung when the next stretch is known, and when there will be none.
    pub next: Condvar,
    /// Threads that are through with the stretch and wait for the next.
    pub through: AtomicU32,
    /// What the clients of each thread have been told, noted whenever it waits.
    told: Mutex<BTreeMap<u32, Acknowledged>>,
    pub stopped: AtomicBool,
    /// When the run was stopped, of `clock::now_ns`, if it was.
    stopped_ns: OnceLock<u64>,
    pub abandoned: AtomicBool,
    pub failure: Mutex<Option<Error>>,
    pub version: OnceLock<String>,
    /// Whether the server goes first in this run.
    pub gather: Gather,
    /// True while answers may be gathered.
    pub crowded: Arc<AtomicBool>,
    /// Transactions of the measured part that may still be started, where there is a limit.
    pub tickets: Option<AtomicU64>,
    /// The arrivals of an open loop of blocking clients: they have one queue, because each has a thread of its own.
    pub arrivals: OnceLock<Arc<Mutex<OpenPace>>>,
    /// Wakes the threads of blocking clients.
    pub alarm: Arc<Alarm>,
    /// No ticket is left: transactions under way are finished, and whoever waits need not wait any longer.
    pub sold_out: AtomicBool,
    pub ledger: Option<Ledger>,
}

impl Course {
    /// A run whose phases are known before anyone has arrived.
    #[cfg(test)]
    pub fn beginning(job: &Job, phases: Phases) -> Self {
        Course { stretch: Mutex::new(Stretch { number: 1, phases }), ..Course::new(job) }
    }

    pub fn new(job: &Job) -> Self {
        Course { tickets: job.operations.map(AtomicU64::new), gather: Gather::Off, ..Course::default() }
    }

    /// The same run with what clients are told written down.
    pub fn keeping(self, ledger: Option<Ledger>) -> Self {
        Course { ledger, ..self }
    }

    /// The same run with the server going first as the job asks.
    pub fn gathering(self, gather: Gather) -> Self {
        Course { gather, crowded: Arc::new(AtomicBool::new(gather == Gather::On)), ..self }
    }

    pub fn arrive(&self) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
    }

    /// The stretch that has begun last, once there is one.
    pub fn stretch(&self) -> Option<Stretch> {
        Some(*self.locked()).filter(|stretch| stretch.number > 0)
    }

    pub fn begin(&self, phases: Phases) {
        let mut stretch = self.locked();
        self.through.store(0, Ordering::Release);
        *stretch = Stretch { number: stretch.number + 1, phases };
        self.next.notify_all();
        self.alarm.ring();
    }

    /// Waits, without a sound, for the stretch after one that a thread is through with; `None` where none will come.
    pub fn after(&self, number: u32) -> Option<Stretch> {
        self.through.fetch_add(1, Ordering::AcqRel);
        let waits = |stretch: &mut Stretch| stretch.number == number && !self.is_stopped();
        let next = self.next.wait_while(self.locked(), waits).unwrap_or_else(PoisonError::into_inner);
        (!self.is_stopped()).then_some(*next)
    }

    /// Notes what the clients of a thread have been told since the run began.
    pub fn note_told(&self, thread: u32, told: Acknowledged) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(thread, told);
    }

    /// What all clients have been told by the time at which their threads last waited.
    pub fn told(&self) -> Acknowledged {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.values().fold(Acknowledged::default(), Acknowledged::plus)
    }

    /// Ends the run early: transactions under way are finished.
    pub fn stop(&self) {
        let _held = self.locked();
        self.stopped_ns.get_or_init(clock::now_ns);
        self.stopped.store(true, Ordering::Release);
        self.next.notify_all();
        self.alarm.ring();
    }

    fn locked(&self) -> MutexGuard<'_, Stretch> {
        self.stretch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note_version(&self, version: &str) {
        self.version.get_or_init(|| version.to_owned());
    }

    /// Ends the run with an error; the first one counts.
    pub fn fail(&self, error: Error) {
        if let Ok(mut failure) = self.failure.lock() {
            failure.get_or_insert(error);
        }
        self.abandoned.store(true, Ordering::Release);
        self.stop();
    }

    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// When whatever is still under way in a stretch is given up.
    #[inline]
    pub fn over_ns(&self, phases: Phases) -> u64 {
        let stopped_ns = self.stopped_ns.get().copied().unwrap_or(u64::MAX);
        phases.end_ns.min(stopped_ns).saturating_add(GRACE_NS)
    }

    /// When what sessions do must be over: at once where the run was abandoned; never, while all of its `threads` wait
    /// for the next stretch.
    pub fn due_ns(&self, threads: u32) -> u64 {
        if self.abandoned.load(Ordering::Acquire) {
            return self.stopped_ns.get().copied().unwrap_or(u64::MAX);
        }
        match self.stretch() {
            Some(stretch) if self.through.load(Ordering::Acquire) < threads => self.over_ns(stretch.phases),
            _ => u64::MAX,
        }
    }

    /// Takes one of a limited number of transactions; always succeeds where there is no limit.
    #[inline]
    pub fn take_ticket(&self, phases: Phases, start_ns: u64) -> bool {
        let Some(tickets) = &self.tickets else { return true };
        if start_ns < phases.measured_ns {
            return true;
        }
        let taken = tickets.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if taken.is_err() && !self.sold_out.swap(true, Ordering::AcqRel) {
            self.alarm.ring();
        }
        taken.is_ok()
    }
}

/// What the job asks for where nothing but answers starts transactions. Pauses and an open loop have their own times,
/// and nobody may be late for them.
pub(crate) fn gather<W: Workload>(job: &Job, workload: &W) -> Gather {
    match job.load {
        Load::Closed { think_time: None } if !pauses(workload) => job.gather,
        _ => Gather::Off,
    }
}

/// Whether clients of the workload wait by themselves before or after any of its transactions.
pub(crate) fn pauses<W: Workload>(workload: &W) -> bool {
    if W::PLAYS {
        return true;
    }
    let mut random = Random::new(0, 0);
    (0..workload.transactions().len()).any(|kind| workload.pause(kind, &mut random) != Pause::default())
}

/// The times of stretch `number`, which begins at `start_ns`.
pub(crate) fn phases(job: &Job, number: u32, start_ns: u64) -> Phases {
    let after_ns = |seconds: f64| start_ns + (seconds * 1e9) as u64;
    let warm_ns = after_ns(job.warmup_s);
    match job.slices {
        None => Phases {
            start_ns,
            measured_ns: warm_ns,
            end_ns: after_ns(job.warmup_s + job.duration_s),
            shown_ns: start_ns,
            ..Phases::default()
        },
        Some(_) if number == 1 => Phases {
            start_ns,
            measured_ns: warm_ns,
            end_ns: warm_ns,
            shown_ns: start_ns,
            more: true,
            ..Phases::default()
        },
        Some(slices) => {
            let (measured_ns, slice_s) = (after_ns(job.settle_s), job.duration_s / f64::from(slices));
            let slice_ns = (slice_s * 1e9) as u64;
            Phases {
                start_ns,
                measured_ns,
                end_ns: measured_ns + slice_ns,
                shown_ns: measured_ns,
                before_ns: u64::from(number - 2) * slice_ns,
                more: number <= slices,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(phases: Phases) -> Course {
        let job = Job::parse(r#"{"url": "mysql://h/x", "workload": "tpcb"}"#).unwrap();
        Course::beginning(&job, phases)
    }

    #[test]
    fn what_is_under_way_gets_its_time_from_the_end_or_from_the_stop() {
        let phases = Phases { end_ns: 60_000_000_000, ..Phases::default() };
        let course = course(phases);
        assert_eq!(course.due_ns(1), 70_000_000_000);
        clock::simulate(Some(5_000_000_000));
        course.stop();
        clock::simulate(Some(6_000_000_000));
        course.stop();
        assert_eq!((course.due_ns(1), course.over_ns(phases)), (15_000_000_000, 15_000_000_000));
        course.fail(Error::internal("a failure"));
        clock::simulate(None);
        assert_eq!(course.due_ns(1), 5_000_000_000, "who fails waits for nobody");
    }

    #[test]
    fn nobody_is_late_who_waits_for_the_next_slice() {
        let course = course(Phases { end_ns: 60, more: true, ..Phases::default() });
        course.through.store(2, Ordering::Release);
        assert_eq!((course.due_ns(2), course.due_ns(3)), (u64::MAX, 60 + GRACE_NS));
    }
}
