//! One thread of a run: its clients, its loop, and what it has counted when it is done.

use super::client::Client;
use super::course::{Course, Stretch};
use super::lane::{Counted, Lane};
use super::pace::{OpenPace, Pace, Rate, Think};
use super::timed;
use crate::clock;
use crate::count::recorder::{Recorder, SecondPart};
use crate::count::statements::Statements;
use crate::count::total::ThreadUse;
use crate::count::usage::bind;
use crate::error::{Error, Result};
use crate::io::{self, Backend, Executor};
use crate::job::{Arrivals, Gather, Job, Load};
use crate::session::{Session, Target, Traffic};
use crate::workload::{Acknowledged, Start, Workload};
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Which of the run's threads this is, and what it works with.
pub(crate) struct Thread<'a> {
    pub number: u32,
    pub threads: u32,
    pub backend: Backend,
    pub job: &'a Job,
    pub target: &'a Target,
    /// Of the workload's transactions.
    pub names: &'a [String],
    pub rate: Option<&'a Rate>,
    pub think: Option<Think>,
    pub course: &'a Course,
    pub seconds: Sender<SecondPart>,
}

/// What a thread has counted when it is done.
#[derive(Default)]
pub(crate) struct ThreadTally {
    pub recorder: Option<Recorder>,
    pub statements: Statements,
    pub traffic: Traffic,
    pub used: ThreadUse,
    /// By stretch.
    pub counted: Vec<Counted>,
    pub sched_batch: bool,
    pub gather_us_max: u32,
    pub ended_ns: u64,
    pub pace: Option<OpenPace>,
}

impl Thread<'_> {
    /// The same as `drive`, but a failure, a panic even, ends the whole run: the other threads would wait for this one.
    pub fn drive_or_fail<S: Session, W: Workload>(self, workload: &W) -> Result<ThreadTally> {
        let course = self.course;
        let drive = AssertUnwindSafe(|| self.drive::<S, W>(workload));
        let outcome = catch_unwind(drive).unwrap_or_else(|panic| {
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

    /// What is not of clients is apart, where it is compiled once.
    pub fn drive<S: Session, W: Workload>(self, workload: &W) -> Result<ThreadTally> {
        let lane = Lane::new(self.is_blocking());
        let mut executor = self.executor()?;
        for here in (self.number..self.job.clients_here()).step_by(self.threads as usize) {
            let Thread { job, target, think, course, .. } = self;
            let number = job.client_number(here);
            let operations = Cell::new(0.0);
            let client = Client { number, job, target, workload, think, course, lane: &lane, operations };
            // A constant, so that playing is compiled for the workload that plays, and the rest for the others.
            if const { W::PLAYS } {
                executor.spawn(client.play_recording::<S>());
            } else {
                executor.spawn(client.live::<S>());
            }
        }
        let (sched_batch, gather_us_max) = self.run(&lane, executor)?;
        Ok(ThreadTally { sched_batch, gather_us_max, ..self.result(lane) })
    }

    fn is_blocking(&self) -> bool {
        self.backend == Backend::Blocking
    }

    /// Readies this thread.
    fn executor<'c>(&self) -> Result<Executor<'c>> {
        if let Some(cpus) = &self.job.cpus {
            let cpu = cpus[self.number as usize % cpus.len()];
            bind(cpu).map_err(|error| {
                Error::user(format!("the driver cannot be bound to CPU {cpu}: {error}"))
                    .hint("name CPUs that this machine has and that this process may use")
            })?;
        }
        timed::choose(self.job.by_statement);
        let round_trip = Duration::from_secs_f64(self.job.network_delay_s);
        let clients = self.job.clients_here().div_ceil(self.threads) as usize;
        let executor = Executor::of_connections(self.backend, clients)?.over_network(round_trip);
        let executor = executor.woken_by(&self.course.alarm);
        match self.course.gather {
            Gather::Off => Ok(executor),
            _ => Ok(executor.giving_way(self.course.crowded.clone())),
        }
    }

    /// Runs the clients to their end. Whether the thread gave way to others, and for how long it let answers lie at most.
    fn run(&self, lane: &Lane, mut executor: Executor<'_>) -> Result<(bool, u32)> {
        executor.run(|| {
            let over = self.turn(lane, self.is_blocking());
            if over {
                lane.over(clock::now_ns());
            }
            over
        })?;
        // The thread of an embedded engine's client is read with its session, which may still be open.
        if lane.has_begun() && !self.is_blocking() {
            lane.observe_last(None);
        }
        if lane.phases().more {
            // The others would wait for a slice in which this thread does nothing.
            self.course.stop();
        }
        let gave_way = (io::gives_way(), io::gather_us_max());
        // Clients that are given up count what they have used.
        executor.drop_tasks();
        if lane.has_begun() {
            lane.observe_last(None);
        }
        Ok(gave_way)
    }

    /// Asked once per turn of the loop: whether to give up what is still under way.
    fn turn(&self, lane: &Lane, blocking: bool) -> bool {
        if self.course.abandoned.load(Ordering::Relaxed) {
            return true;
        }
        if !lane.has_begun() {
            if let Some(stretch) = self.course.stretch() {
                self.start(lane, stretch, blocking);
            }
            return false;
        }
        let phases = lane.phases();
        let now_ns = io::turn_ns();
        lane.recorder().observe(now_ns);
        if !blocking {
            lane.observe(now_ns, || None);
        }
        if phases.more && now_ns >= phases.end_ns && lane.working.get() == 0 {
            return self.wait(lane);
        }
        let idle = lane.recorder().in_flight == 0;
        let no_more = self.course.is_stopped() || self.course.sold_out.load(Ordering::Relaxed);
        (no_more && idle) || now_ns >= self.course.over_ns(phases)
    }

    /// Waits for the next slice; true when there will be none.
    fn wait(&self, lane: &Lane) -> bool {
        lane.observe_last(None);
        lane.end_stretch();
        self.course.note_told(self.number, self.told(lane));
        let Some(next) = self.course.after(lane.stretch.get().number) else { return true };
        lane.recorder().go_on(next.phases);
        timed::begin(next.phases);
        lane.stretch.set(next);
        lane.begun.ring();
        false
    }

    /// What the clients of this thread have been told.
    fn told(&self, lane: &Lane) -> Acknowledged {
        let recorder = lane.recorder();
        Acknowledged {
            acknowledged: recorder.acknowledged.iter().sum(),
            unknown: recorder.unknown,
            by_transaction: self.names.iter().cloned().zip(recorder.acknowledged.iter().copied()).collect(),
            start: Start::new(),
        }
    }

    fn start(&self, lane: &Lane, stretch: Stretch, blocking: bool) {
        let phases = stretch.phases;
        let recorder = Recorder::new(self.names.len(), phases, self.seconds.clone());
        let pace = self.rate.zip(arrivals(&self.job.load)).map(|(rate, arrivals)| {
            let times = (phases.start_ns, phases.measured_ns, phases.end_ns);
            let pace = |stream| OpenPace::new(rate.clone(), arrivals, self.job.seed, stream, times);
            match blocking {
                true => {
                    let all = self.course.arrivals.get_or_init(|| Arc::new(Mutex::new(pace((0, 1)))));
                    Pace::OfAll(all.clone())
                }
                false => Pace::OfThread(Box::new(pace(self.job.stream(self.number, self.threads)))),
            }
        });
        lane.pace.replace(pace);
        let first_time = lane.recorder.set(RefCell::new(recorder)).is_ok();
        debug_assert!(first_time, "a run starts once");
        timed::begin(phases);
        lane.stretch.set(stretch);
        lane.begun.ring();
    }

    /// When the run was over for this thread: where the tickets are sold out, with its last transaction.
    fn ended_ns(&self, lane: &Lane) -> u64 {
        match lane.recorder.get() {
            Some(recorder) if self.course.sold_out.load(Ordering::Relaxed) => recorder.borrow().last_ended_ns,
            _ => lane.over_ns(),
        }
    }

    fn result(self, lane: Lane) -> ThreadTally {
        let ended_ns = self.ended_ns(&lane);
        lane.end_stretch();
        let pace = lane.pace.take().and_then(Pace::of_thread);
        let recorder = lane.recorder.into_inner().map(|recorder| {
            let mut recorder = recorder.into_inner();
            recorder.finish();
            // What was given up in mid-flight may have taken effect or not.
            recorder.unknown += recorder.in_flight;
            recorder.rows_read = lane.traffic.get().rows_received;
            recorder
        });
        ThreadTally {
            recorder,
            statements: timed::take(),
            traffic: lane.traffic.get(),
            used: lane.used.get().unwrap_or_default(),
            counted: lane.counted.into_inner(),
            ended_ns,
            pace,
            ..ThreadTally::default()
        }
    }
}

fn arrivals(load: &Load) -> Option<Arrivals> {
    match load {
        Load::Open { arrivals, .. } => Some(*arrivals),
        Load::Closed { .. } => None,
    }
}
