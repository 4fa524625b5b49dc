//! A run: its threads, when it starts, when it ends, and what comes together from them.

mod client;
mod course;
mod crowd;
pub(crate) mod dispatch;
mod lane;
mod live;
mod merge;
mod pace;
#[cfg(test)]
mod stall;
mod thread;

use course::{gather, phases, Course};
use crowd::Crowd;
use live::Live;
use merge::About;
use pace::{Rate, Think};
use thread::{Thread, ThreadTally};

use crate::clock;
use crate::count::recorder::SecondPart;
use crate::count::series::Series;
use crate::count::total::Total;
use crate::error::{Error, Result};
use crate::io::Backend;
use crate::job::{Gather, Job, Load};
use crate::session::Session;
use crate::watch::Watch;
use crate::workload::Workload;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{channel, Receiver};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, SystemTime};

/// From the last client's arrival to the start, so that no thread learns of it too late.
const START_DELAY_NS: u64 = 50_000_000;
const POLL: Duration = Duration::from_millis(20);

/// Runs the workload on as many threads as there should be.
pub(crate) fn run<S: Session, W: Workload>(job: &Job, workload: &W, watch: &mut Watch<'_>) -> Result<Total> {
    let target = job.target()?;
    let backend = if S::BLOCKING { Backend::Blocking } else { Backend::choose(&job.backend)? };
    let rate = match &job.load {
        Load::Open { rate_per_s, schedule, .. } => Some(Rate::new(*rate_per_s, schedule.as_ref())?),
        Load::Closed { .. } => None,
    };
    let (think, names) = (Think::new(&job.load)?, workload.transactions());
    let mut live = Live::new(job, &names)?;
    let course = Course::new(job).gathering(if S::BLOCKING { Gather::Off } else { gather(job, workload) });
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
        (handles.into_iter().map(joined).collect::<Vec<_>>(), started, interrupted)
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
    tally.gather = course.gather;
    tally.started_unix_s = started_unix_s;
    tally.interrupted = interrupted;
    Ok(tally)
}

fn joined(handle: ScopedJoinHandle<'_, Result<ThreadTally>>) -> Result<ThreadTally> {
    handle.join().unwrap_or_else(|_| Err(Error::internal("a thread of the driver died")))
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
        if course.gather == Gather::WhenCrowded {
            crowd.look(clock::now_ns());
        }
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
