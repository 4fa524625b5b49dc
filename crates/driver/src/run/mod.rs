//! A run: its threads, when it starts, when it ends, and what comes together from them.

pub(crate) mod client;
mod crowd;
pub(crate) mod dispatch;
mod live;
mod pace;
#[cfg(test)]
mod stall;

use crate::clock;
use crate::count::recall::Recalls;
use crate::count::recorder::{Phases, Recorder, SecondPart};
use crate::count::series::Series;
use crate::count::tally::{latencies, ByTransaction, OpenLoop, Tally, ThreadUse};
use crate::count::usage::{bind, Reading};
use crate::error::{Error, Result};
use crate::io::{self, Backend, Executor, Gate};
use crate::job::{Job, Load};
use crate::run::client::Client;
use crate::run::crowd::Crowd;
use crate::run::live::Live;
use crate::run::pace::{OpenPace, Rate, Think};
use crate::session::{Session, Target, Traffic};
use crate::workload::Workload;
use crate::Watch;
use std::cell::{Cell, OnceCell, RefCell, RefMut};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, SystemTime};

const CONNECTING_MAX: usize = 32;
/// From the last client's arrival to the start, so that no thread learns of it too late.
const START_DELAY_NS: u64 = 50_000_000;
/// How long transactions under way at the end may take to finish.
const GRACE_NS: u64 = 10_000_000_000;
const POLL: Duration = Duration::from_millis(20);
/// Above this share of one processor a thread, not the server, sets the pace.
const SATURATED_SHARE: f64 = 0.9;

/// What all threads of a run share.
#[derive(Default)]
pub(crate) struct Course {
    arrived: AtomicU32,
    phases: OnceLock<Phases>,
    stopped: AtomicBool,
    abandoned: AtomicBool,
    failure: Mutex<Option<Error>>,
    version: OnceLock<String>,
    /// True while the machine has no time to spare.
    crowded: Arc<AtomicBool>,
    /// Transactions of the measured part that may still be started, where there is a limit.
    tickets: Option<AtomicU64>,
    /// No ticket is left: transactions under way are finished, and whoever waits need not wait any longer.
    sold_out: AtomicBool,
}

impl Course {
    /// A run whose phases are known before anyone has arrived.
    #[cfg(test)]
    pub fn beginning(job: &Job, phases: Phases) -> Self {
        Course { phases: OnceLock::from(phases), ..Course::new(job) }
    }

    fn new(job: &Job) -> Self {
        Course { tickets: job.operations.map(AtomicU64::new), ..Course::default() }
    }

    pub fn arrive(&self) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
    }

    pub fn note_version(&self, version: &str) {
        self.version.get_or_init(|| version.to_owned());
    }

    /// Ends the run with an error; the first one counts.
    pub fn fail(&self, error: Error) {
        if let Ok(mut failure) = self.failure.lock() {
            failure.get_or_insert(error);
        }
        self.stopped.store(true, Ordering::Release);
        self.abandoned.store(true, Ordering::Release);
    }

    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Takes one of a limited number of transactions; always succeeds where there is no limit.
    #[inline]
    pub fn take_ticket(&self, phases: Phases, start_ns: u64) -> bool {
        let Some(tickets) = &self.tickets else { return true };
        if start_ns < phases.measured_ns {
            return true;
        }
        let taken = tickets.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if taken.is_err() {
            self.sold_out.store(true, Ordering::Release);
        }
        taken.is_ok()
    }
}

/// What the clients of one thread share. Lives and dies on that thread.
pub(crate) struct Lane {
    pub connecting: Gate,
    pub started: Gate,
    phases: OnceCell<Phases>,
    recorder: OnceCell<RefCell<Recorder>>,
    pace: RefCell<Option<OpenPace>>,
    traffic: Cell<Traffic>,
    first: Cell<Option<Reading>>,
    last: Cell<Option<Reading>>,
}

impl Lane {
    fn new() -> Self {
        Lane {
            connecting: Gate::new(CONNECTING_MAX),
            started: Gate::new(0),
            phases: OnceCell::new(),
            recorder: OnceCell::new(),
            pace: RefCell::new(None),
            traffic: Cell::default(),
            first: Cell::new(None),
            last: Cell::new(None),
        }
    }

    /// The run's phases. Known to everyone that has passed `started`.
    #[inline]
    pub fn phases(&self) -> Phases {
        *self.phases.get().expect("clients are let through when the phases are known")
    }

    #[inline]
    pub fn recorder(&self) -> RefMut<'_, Recorder> {
        self.recorder.get().expect("clients are let through when the recorder is there").borrow_mut()
    }

    /// The intended start of the next transaction: `Some(None)` in closed loop, `None` when no arrival is left.
    #[inline]
    pub fn take_arrival(&self, now_ns: u64) -> Option<Option<u64>> {
        match &mut *self.pace.borrow_mut() {
            None => Some(None),
            Some(pace) => pace.take(now_ns).map(Some),
        }
    }

    /// Takes the thread's readings at the borders of the measured part.
    #[inline]
    pub fn observe(&self, now_ns: u64, engine_cpu_ns: impl FnOnce() -> Option<u64>) {
        let phases = self.phases();
        if self.first.get().is_none() {
            if now_ns >= phases.measured_ns {
                self.first.set(Some(Reading::now(now_ns, io::system_calls(), engine_cpu_ns())));
            }
        } else if now_ns >= phases.end_ns && self.last.get().is_none() {
            self.last.set(Some(Reading::now(now_ns, io::system_calls(), engine_cpu_ns())));
        }
    }

    /// Takes the last reading of a thread that ends before the run does.
    pub fn observe_last(&self, engine_cpu_ns: Option<u64>) {
        if self.first.get().is_some() && self.last.get().is_none() {
            self.last.set(Some(Reading::now(clock::now_ns(), io::system_calls(), engine_cpu_ns)));
        }
    }

    pub fn count_traffic(&self, before: Traffic, after: Traffic) {
        let mut sum = self.traffic.get();
        sum.bytes_sent += after.bytes_sent - before.bytes_sent;
        sum.bytes_received += after.bytes_received - before.bytes_received;
        sum.rows_received += after.rows_received - before.rows_received;
        self.traffic.set(sum);
    }
}

/// Which of the run's threads this is, and what it works with.
pub(crate) struct Thread<'a, W> {
    pub number: u32,
    pub threads: u32,
    pub backend: Backend,
    pub job: &'a Job,
    pub target: &'a Target,
    pub workload: &'a W,
    pub kinds: usize,
    pub rate: Option<&'a Rate>,
    pub think: Option<Think>,
    pub course: &'a Course,
    pub seconds: Sender<SecondPart>,
}

/// What a thread has counted when it is done.
pub(crate) struct ThreadTally {
    recorder: Option<Recorder>,
    traffic: Traffic,
    used: ThreadUse,
    gather_us_max: u32,
    ended_ns: u64,
    open_loop: Option<OpenLoop>,
}

impl<W: Workload> Thread<'_, W> {
    /// The same as `drive`, but a failure, a panic even, ends the whole run: the other threads would wait for this one.
    fn drive_or_fail<S: Session>(self) -> Result<ThreadTally> {
        let course = self.course;
        let outcome = catch_unwind(AssertUnwindSafe(|| self.drive::<S>())).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text =
                text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("for an unknown reason");
            Err(Error::internal(format!("a thread of the driver panicked: {text}"))
                .hint("this is a defect: please report it"))
        });
        if let Err(error) = &outcome {
            course.fail(error.clone());
        }
        outcome
    }

    pub fn drive<S: Session>(self) -> Result<ThreadTally> {
        if let Some(cpus) = &self.job.cpus {
            let cpu = cpus[self.number as usize % cpus.len()];
            bind(cpu).map_err(|error| {
                Error::user(format!("the driver cannot be bound to processor {cpu}: {error}"))
                    .hint("name processors that this machine has and that this process may use")
            })?;
        }
        let lane = Lane::new();
        let gather_us_max;
        {
            let mut executor = Executor::new(self.backend)?;
            if self.job.gather && self.rate.is_none() && self.think.is_none() {
                executor = executor.giving_way(self.course.crowded.clone());
            }
            for number in (self.number..self.job.clients).step_by(self.threads as usize) {
                let Thread { job, target, workload, think, course, .. } = self;
                executor
                    .spawn(Client { number, job, target, workload, think, course, lane: &lane }.live::<S>());
            }
            executor.run(|| self.turn(&lane, S::BLOCKING))?;
            if lane.phases.get().is_some() {
                lane.observe_last(None);
            }
            gather_us_max = io::gather_us_max();
        }
        Ok(self.result(lane, gather_us_max))
    }

    /// Asked once per turn of the loop: whether to give up what is still under way.
    fn turn(&self, lane: &Lane, blocking: bool) -> bool {
        if self.course.abandoned.load(Ordering::Relaxed) {
            return true;
        }
        let Some(phases) = lane.phases.get() else {
            if let Some(phases) = self.course.phases.get() {
                self.start(lane, *phases);
            }
            return false;
        };
        let now_ns = io::turn_ns();
        lane.recorder().observe(now_ns);
        if !blocking {
            lane.observe(now_ns, || None);
        }
        let idle = lane.recorder().in_flight == 0;
        let no_more = self.course.is_stopped() || self.course.sold_out.load(Ordering::Relaxed);
        (no_more && idle) || now_ns >= phases.end_ns.saturating_add(GRACE_NS)
    }

    fn start(&self, lane: &Lane, phases: Phases) {
        let recorder = Recorder::new(self.kinds, self.job.hdr_log.is_some(), phases, self.seconds.clone());
        let pace = self.rate.zip(arrivals(&self.job.load)).map(|(rate, arrivals)| {
            let place = (self.number, self.threads);
            let times = (phases.start_ns, phases.measured_ns, phases.end_ns);
            OpenPace::new(rate.clone(), arrivals, self.job.seed, place, times)
        });
        lane.pace.replace(pace);
        let first_time = lane.phases.set(phases).is_ok() && lane.recorder.set(RefCell::new(recorder)).is_ok();
        debug_assert!(first_time, "a run starts once");
        lane.started.open();
    }

    fn result(self, lane: Lane, gather_us_max: u32) -> ThreadTally {
        let ended_ns = clock::now_ns();
        let used = match (lane.first.get(), lane.last.get()) {
            (Some(first), Some(last)) => last.since(&first),
            _ => ThreadUse::default(),
        };
        let open_loop = lane.pace.take().map(|mut pace| {
            pace.observe(ended_ns);
            OpenLoop {
                offered: pace.due_measured(),
                backlog_max: pace.backlog_max(),
                backlog_end: pace.backlog(),
            }
        });
        let recorder = lane.recorder.into_inner().map(|recorder| {
            let mut recorder = recorder.into_inner();
            recorder.finish();
            // What was given up in mid-flight may have taken effect or not.
            recorder.unknown += recorder.in_flight;
            recorder.rows_read = lane.traffic.get().rows_received;
            recorder
        });
        ThreadTally { recorder, traffic: lane.traffic.get(), used, gather_us_max, ended_ns, open_loop }
    }
}

fn arrivals(load: &Load) -> Option<crate::job::Arrivals> {
    match load {
        Load::Open { arrivals, .. } => Some(*arrivals),
        Load::Closed { .. } => None,
    }
}

/// Runs the workload on as many threads as there should be.
pub(crate) fn run<S: Session, W: Workload>(job: &Job, workload: &W, watch: &mut Watch<'_>) -> Result<Tally> {
    let target = job.target()?;
    let backend = if S::BLOCKING { Backend::Blocking } else { Backend::choose(&job.backend)? };
    let rate = match &job.load {
        Load::Open { rate_per_s, schedule, .. } => Some(Rate::new(*rate_per_s, schedule.as_ref())?),
        Load::Closed { .. } => None,
    };
    let (think, names) = (Think::new(&job.load)?, workload.transactions());
    let mut live = Live::new(job, &names)?;
    let course = Course::new(job);
    let threads = thread_count::<S>(job);
    let (sender, receiver) = channel();
    let mut series = Series::new(threads);
    let (outcomes, started_unix_s, interrupted) = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|number| {
                let thread = Thread {
                    number,
                    threads,
                    backend,
                    job,
                    target: &target,
                    workload,
                    kinds: names.len(),
                    rate: rate.as_ref(),
                    think,
                    course: &course,
                    seconds: sender.clone(),
                };
                scope.spawn(move || thread.drive_or_fail::<S>())
            })
            .collect();
        let (started, interrupted) =
            oversee(&handles, job, &course, &receiver, &mut series, &mut live, watch);
        let outcomes: Vec<Result<ThreadTally>> = handles
            .into_iter()
            .map(|handle| {
                handle.join().unwrap_or_else(|_| Err(Error::internal("a thread of the driver died")))
            })
            .collect();
        (outcomes, started, interrupted)
    });
    receiver
        .try_iter()
        .for_each(|part| series.add(part, |second, latencies| live.second(second, latencies, watch)));
    series.finish(|second, latencies| live.second(second, latencies, watch));
    live.finish(started_unix_s + job.warmup_s)?;
    if let Some(error) = course.failure.lock().ok().and_then(|mut failure| failure.take()) {
        return Err(error);
    }
    let parts = outcomes.into_iter().collect::<Result<Vec<_>>>()?;
    let Some(phases) = course.phases.get() else {
        return Err(Error::user("interrupted before the run began"));
    };
    let about = About { job, names, backend, protocol: target.protocol.as_str(), phases: *phases };
    let mut tally = about.merge(parts, series, S::BLOCKING);
    tally.server_version = course.version.into_inner().unwrap_or_default();
    tally.started_unix_s = started_unix_s;
    tally.interrupted = interrupted;
    Ok(tally)
}

/// Fewer threads cost less per operation, and one drives well over 100,000 operations a second: a second one comes
/// with eight processors and enough clients to keep it busy.
fn thread_count<S: Session>(job: &Job) -> u32 {
    if S::BLOCKING {
        return job.clients;
    }
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    match job.threads {
        0 => (processors / 4).min(job.clients / 32).max(1),
        threads => threads.min(job.clients),
    }
}

/// Starts the run when all clients have arrived, passes on each second, and heeds interrupts; returns when all
/// threads are done: when the run started, and whether it was interrupted.
fn oversee<T>(
    handles: &[ScopedJoinHandle<'_, T>],
    job: &Job,
    course: &Course,
    seconds: &Receiver<SecondPart>,
    series: &mut Series,
    live: &mut Live,
    watch: &mut Watch<'_>,
) -> (f64, bool) {
    let (mut started_unix_s, mut interrupted) = (0.0, false);
    let mut crowd = Crowd::new(course.crowded.clone());
    while !handles.iter().all(ScopedJoinHandle::is_finished) {
        if let Ok(part) = seconds.recv_timeout(POLL) {
            series.add(part, |second, latencies| live.second(second, latencies, watch));
        }
        live.serve();
        crowd.look(clock::now_ns());
        if !interrupted && (watch.interrupted)() {
            interrupted = true;
            course.stopped.store(true, Ordering::Release);
            if course.phases.get().is_none() {
                course.abandoned.store(true, Ordering::Release);
            }
        }
        if course.phases.get().is_none() && course.arrived.load(Ordering::Acquire) == job.clients {
            let start = SystemTime::now() + Duration::from_nanos(START_DELAY_NS);
            started_unix_s =
                start.duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
            course.phases.get_or_init(|| phases(job, clock::now_ns() + START_DELAY_NS));
        }
    }
    (started_unix_s, interrupted)
}

pub(crate) fn phases(job: &Job, start_ns: u64) -> Phases {
    let measured_ns = start_ns + (job.warmup_s * 1e9) as u64;
    Phases { start_ns, measured_ns, end_ns: measured_ns + (job.duration_s * 1e9) as u64 }
}

/// What is known of a run besides what its threads counted.
pub(crate) struct About<'a> {
    pub job: &'a Job,
    pub names: Vec<String>,
    pub backend: Backend,
    pub protocol: &'static str,
    pub phases: Phases,
}

impl About<'_> {
    pub fn merge(self, parts: Vec<ThreadTally>, series: Series, blocking: bool) -> Tally {
        let ended_ns =
            parts.iter().map(|part| part.ended_ns).max().unwrap_or_default().min(self.phases.end_ns);
        let last_second = self.phases.second(self.phases.end_ns - 1);
        let mut tally = Tally {
            workload: self.job.workload.clone(),
            protocol: self.protocol,
            server_version: String::new(),
            backend: self.backend.as_str(),
            clients: self.job.clients,
            seed: self.job.seed,
            started_unix_s: 0.0,
            warmup_s: self.job.warmup_s,
            duration_s: ended_ns.saturating_sub(self.phases.measured_ns) as f64 / 1e9,
            by_transaction: self
                .names
                .into_iter()
                .map(|name| ByTransaction { name, latencies: latencies(), acknowledged: 0 })
                .collect(),
            errors: Default::default(),
            retries: 0,
            rollbacks: 0,
            unknown: 0,
            clients_lost: 0,
            rows_read: 0,
            recalls: Recalls::default(),
            bytes_received: 0,
            bytes_sent: 0,
            threads: Vec::new(),
            gather_us_max: 0,
            open_loop: None,
            // What was under way at the end is acknowledged, but no second of the measured part.
            series: series.done.into_iter().filter(|second| second.second <= last_second).collect(),
            saturated: None,
            interrupted: false,
        };
        parts.into_iter().for_each(|part| add(&mut tally, part));
        if !blocking {
            tally.saturated = saturated(&tally.threads);
        }
        tally
    }
}

fn add(tally: &mut Tally, part: ThreadTally) {
    tally.threads.push(part.used);
    tally.gather_us_max = tally.gather_us_max.max(part.gather_us_max);
    tally.bytes_received += part.traffic.bytes_received;
    tally.bytes_sent += part.traffic.bytes_sent;
    if let Some(open) = part.open_loop {
        let sum = tally.open_loop.get_or_insert_with(OpenLoop::default);
        sum.offered += open.offered;
        sum.backlog_max += open.backlog_max;
        sum.backlog_end += open.backlog_end;
    }
    let Some(recorder) = part.recorder else { return };
    for (index, kind) in tally.by_transaction.iter_mut().enumerate() {
        kind.latencies += &recorder.kinds[index];
        kind.acknowledged += recorder.acknowledged[index];
    }
    for (label, count) in recorder.errors {
        *tally.errors.entry(label).or_default() += count;
    }
    tally.retries += recorder.retries;
    tally.rollbacks += recorder.rollbacks;
    tally.unknown += recorder.unknown;
    tally.clients_lost += recorder.clients_lost;
    tally.rows_read += recorder.rows_read;
    tally.recalls.merge(&recorder.recalls);
}

fn saturated(threads: &[ThreadUse]) -> Option<String> {
    let (number, share) = threads
        .iter()
        .map(ThreadUse::busy_share)
        .enumerate()
        .max_by(|left, right| left.1.total_cmp(&right.1))
        .filter(|(_, share)| *share > SATURATED_SHARE)?;
    Some(format!(
        "driver thread {number} was busy {:.0} % of the time: the driver, not the server, set the pace",
        share * 100.0
    ))
}
