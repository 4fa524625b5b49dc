//! A run: its threads, when it starts, when it ends, and what comes together from them.

mod again;
#[cfg(test)]
mod chance;
mod client;
mod course;
mod crowd;
pub(crate) mod dispatch;
mod lane;
mod live;
mod merge;
mod pace;
#[cfg(test)]
mod rates;
mod replay;
mod single;
#[cfg(test)]
mod stall;
#[cfg(test)]
mod stalling;
mod thread;
mod timed;

pub(crate) use course::pauses;
use course::{gather, phases, Course, Stretch};
use crowd::Crowd;
use live::Live;
use merge::About;
use pace::{Rate, Think};
use thread::{Thread, ThreadTally};

use crate::clock;
use crate::count::ledger::Ledger;
use crate::count::recorder::SecondPart;
use crate::count::series::Series;
use crate::count::total::Total;
use crate::error::{Error, Result};
use crate::io::{spawned, Backend};
use crate::job::{Gather, Job, Load};
use crate::session::{end_what_was_left, AnySession, Session, Target};
use crate::watch::Watch;
use crate::workload::{Playback, Witness, Workload};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{channel, Receiver};
use std::sync::PoisonError;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, SystemTime};

/// From the last client's arrival to the start, so that no thread learns of it too late.
const START_DELAY_NS: u64 = 50_000_000;
/// The same for a slice, of which threads learn at once.
const SLICE_DELAY_NS: u64 = 10_000_000;
const POLL: Duration = Duration::from_millis(20);

/// Runs the workload over sessions of this kind.
pub(crate) fn run<S: Session, W: Workload>(job: &Job, workload: &W, watch: &mut Watch<'_>) -> Result<Total> {
    let blocking = AnySession::is_blocking(job.target()?.protocol);
    require_shareable::<W>(job, blocking)?;
    let driven = Driven {
        blocking,
        names: workload.transactions(),
        gather: if blocking { Gather::Off } else { gather(job, workload) },
        ledger: ledger::<W>(job)?,
        playback: workload.playback(),
        thread: &|thread| thread.drive_or_fail::<S, W>(workload),
    };
    drive(job, driven, workload.witness()?, watch)
}

/// Where the load goes, with the library loaded that it needs in this process.
fn target_of(job: &Job) -> Result<Target> {
    let target = job.target()?;
    AnySession::load_library(&target);
    Ok(target)
}

/// What a run needs to know of its sessions and its workload, so that all but the clients is compiled once.
struct Driven<'a> {
    /// Calls of its sessions block their thread.
    blocking: bool,
    /// Of its transactions.
    names: Vec<String>,
    gather: Gather,
    ledger: Option<Ledger>,
    playback: Option<&'a Playback>,
    /// What a thread does.
    thread: &'a (dyn Fn(Thread<'_>) -> Result<ThreadTally> + Sync),
}

/// Runs on as many threads as there should be.
fn drive(
    job: &Job,
    driven: Driven<'_>,
    witness: Option<Box<dyn Witness>>,
    watch: &mut Watch<'_>,
) -> Result<Total> {
    let Driven { blocking, names, gather, ledger, playback, thread: work } = driven;
    let target = target_of(job)?;
    let backend = if blocking { Backend::Blocking } else { Backend::choose(&job.backend)? };
    let rate = offered(&job.load)?;
    let think = Think::new(&job.load)?;
    let mut live = Live::new(job, &names, witness)?;
    let course = Course::new(job).gathering(gather).keeping(ledger);
    let threads = thread_count(job, blocking);
    let (sender, receiver) = channel();
    let mut series = Series::new(threads, names.len(), job.hdr_log.is_some()).keeping(job.share.is_some());
    let (outcomes, overseen) = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map_while(|number| {
                let thread = Thread {
                    number,
                    threads,
                    backend,
                    job,
                    target: &target,
                    names: &names,
                    rate: rate.as_ref(),
                    think,
                    course: &course,
                    seconds: sender.clone(),
                };
                begun(scope, thread, work)
            })
            .collect();
        let overseen = oversee(&handles, job, &course, &receiver, &mut series, &mut live, watch);
        (handles.into_iter().map(joined).collect::<Vec<_>>(), overseen)
    });
    end_what_was_left(&target);
    receiver
        .try_iter()
        .for_each(|part| series.add(part, |second, latencies| live.second(second, latencies, watch)));
    series.finish(|second, latencies| live.second(second, latencies, watch));
    live.finish()?;
    if let Some(error) = course.failure.lock().ok().and_then(|mut failure| failure.take()) {
        return Err(error);
    }
    let parts = with_arrivals(outcomes.into_iter().collect::<Result<Vec<_>>>()?, &course);
    let Some(Stretch { phases, .. }) = course.stretch() else {
        return Err(Error::user("interrupted before the run began"));
    };
    let Overseen { started_unix_s, slices_unix_s, interrupted } = overseen;
    let protocol = target.protocol.as_str();
    let about = About { job, names, backend, protocol, phases, rate, slices_unix_s, playback };
    let mut tally = about.merge(parts, series, blocking);
    tally.server_version = course.version.into_inner().unwrap_or_default();
    (tally.gather, tally.started_unix_s) = (course.gather, started_unix_s);
    tally.interrupted = interrupted;
    live.end(&tally)?;
    Ok(tally)
}

/// What threads have counted, with the arrivals that they shared given to one of them.
fn with_arrivals(mut parts: Vec<ThreadTally>, course: &Course) -> Vec<ThreadTally> {
    let part = parts.iter_mut().find(|part| part.recorder.is_some());
    if let (Some(arrivals), Some(part)) = (course.arrivals.get(), part) {
        part.pace = Some(arrivals.lock().unwrap_or_else(PoisonError::into_inner).clone());
    }
    parts
}

/// What an open loop offers.
fn offered(load: &Load) -> Result<Option<Rate>> {
    match load {
        Load::Open { rate_per_s, schedule, .. } => Rate::new(*rate_per_s, schedule.as_ref()).map(Some),
        Load::Closed { .. } => Ok(None),
    }
}

/// Hosts share what clients do not have in common beyond their numbers.
fn require_shareable<W: Workload>(job: &Job, blocking: bool) -> Result<()> {
    match job.share.is_some() && (blocking || !W::WARMS_UP) {
        true => Err(Error::user(format!("several load hosts cannot share {} of this engine", job.workload))
            .hint("its clients have more in common than their numbers: drive them from one host")),
        false => Ok(()),
    }
}

fn ledger<W: Workload>(job: &Job) -> Result<Option<Ledger>> {
    let Some(asked) = &job.ledger else { return Ok(None) };
    if !W::OFFERS.iter().any(|about| about.name == job.workload && about.keeps_ledger) {
        return Err(Error::user(format!("{} keeps no ledger", job.workload)).hint("tpcb and tpcc keep one"));
    }
    Ledger::open(asked).map(Some)
}

/// Begins a thread. One that cannot be had ends the run, because the others would wait for it.
fn begun<'scope>(
    scope: &'scope Scope<'scope, '_>,
    thread: Thread<'scope>,
    work: &'scope (dyn Fn(Thread<'_>) -> Result<ThreadTally> + Sync),
) -> Option<ScopedJoinHandle<'scope, Result<ThreadTally>>> {
    let (course, number, threads) = (thread.course, thread.number.into(), thread.threads.into());
    let begun = spawned(scope, number, threads, move || work(thread));
    begun.inspect_err(|error| course.fail(error.clone())).ok()
}

fn joined(handle: ScopedJoinHandle<'_, Result<ThreadTally>>) -> Result<ThreadTally> {
    handle.join().unwrap_or_else(|_| Err(Error::internal("a thread of the driver died")))
}

/// Fewer threads cost less per operation, and one drives well over 100,000 operations a second: a second one comes
/// with eight CPUs and enough clients to keep it busy.
fn thread_count(job: &Job, blocking: bool) -> u32 {
    if blocking {
        return job.clients_here();
    }
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    match job.threads {
        0 => (cpus / 4).min(job.clients_here() / 32).max(1),
        threads => threads.min(job.clients_here()),
    }
}

/// When a run and the measured parts of its slices began, and whether it was interrupted.
#[derive(Default)]
struct Overseen {
    started_unix_s: f64,
    slices_unix_s: Vec<f64>,
    interrupted: bool,
}

/// Starts the run when all clients have arrived and each slice when it may begin, passes on each second, and heeds
/// interrupts; returns when all threads are done.
fn oversee<T>(
    handles: &[ScopedJoinHandle<'_, T>],
    job: &Job,
    course: &Course,
    seconds: &Receiver<SecondPart>,
    series: &mut Series,
    live: &mut Live,
    watch: &mut Watch<'_>,
) -> Overseen {
    let mut seen = Overseen::default();
    let mut crowd = Crowd::new(course.crowded.clone());
    while !handles.iter().all(ScopedJoinHandle::is_finished) {
        if let Ok(part) = seconds.recv_timeout(POLL) {
            series.add(part, |second, latencies| live.second(second, latencies, watch));
        }
        live.serve();
        job.shared.interrupts.end(course.due_ns(handles.len() as u32), clock::now_ns());
        if let (Some(error), false) = (live.failure(), course.is_stopped()) {
            course.fail(error.clone());
        }
        if course.gather == Gather::WhenCrowded {
            crowd.look(clock::now_ns());
        }
        let number = course.stretch().map_or(0, |stretch| stretch.number);
        if !seen.interrupted && (watch.interrupted)() {
            seen.interrupted = true;
            if number == 0 {
                course.abandoned.store(true, Ordering::Release);
            }
            course.stop();
        }
        if number == 0 && course.arrived.load(Ordering::Acquire) == job.clients_here() {
            // The clients of other hosts may not have arrived, nor looked at the data.
            if job.share.is_some() && !may_go_on(watch, course) {
                seen.interrupted = true;
                course.abandoned.store(true, Ordering::Release);
                course.stop();
                continue;
            }
            seen.started_unix_s = unix_s_after(START_DELAY_NS);
            live.begin(seen.started_unix_s + job.warmup_s);
            course.begin(phases(job, 1, clock::now_ns() + START_DELAY_NS));
        } else if course.through.load(Ordering::Acquire) == handles.len() as u32 && !course.is_stopped() {
            if may_go_on(watch, course) {
                seen.slices_unix_s.push(unix_s_after(SLICE_DELAY_NS) + job.settle_s);
                course.begin(phases(job, number + 1, clock::now_ns() + SLICE_DELAY_NS));
            } else {
                seen.interrupted = true;
                course.stop();
            }
        }
    }
    seen
}

/// Whether the next stretch may begin; waits until that is known.
fn may_go_on(watch: &mut Watch<'_>, course: &Course) -> bool {
    watch.next_slice.as_mut().is_none_or(|next_slice| next_slice(&course.told()))
}

fn unix_s_after(delay_ns: u64) -> f64 {
    let then = SystemTime::now() + Duration::from_nanos(delay_ns);
    then.duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
