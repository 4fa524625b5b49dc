//! The test of truth: a server that stops for 200 ms every 2 s, under a constant rate and a simulated clock. In open
//! loop the latencies must be those that arithmetic gives.

use super::course::{gather, phases, Course};
use super::merge::About;
use super::pace::Rate;
use super::stalling::{
    Stalling, ANSWER, CLOSING_NS, CONNECTED_NS, DOWN, SERVICE_NS, START_NS, STILL_NS, STOPPED_NS,
};
use super::thread::Thread;
use super::timed::Timed;
use crate::clock;
use crate::count::recorder::Phases;
use crate::count::series::Series;
use crate::count::total::Total;
use crate::error::{Error, Fate, Result};
use crate::io::Backend;
use crate::job::{Gather, Job};
use crate::random::Random;
use crate::session::{Answer, Session, Statement};
use crate::workload::{
    About as Offer, Acknowledged, CheckAgainst, Invariant, Options, Outcome, Pause, Place, Single, Workload,
};
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration;

/// From the beginning of a slice to that of the next: more than any of them takes.
const BETWEEN_NS: u64 = 100_000_000_000;

thread_local! {
    /// What goes around this thread's transactions.
    static PAUSE: Cell<Pause> = const { Cell::new(Pause { before_ns: 0, after_ns: 0 }) };
    /// What this thread's transactions have drawn, each time that they were tried.
    pub(super) static DRAWN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

struct OneStatement<const REPLAYED: bool>;

impl<const REPLAYED: bool> Workload for OneStatement<REPLAYED> {
    type Client = ();

    const REPLAYS: bool = REPLAYED;

    const DRAWS_SINGLES: bool = !REPLAYED;

    const OFFERS: &'static [Offer] = &[];

    fn new(_about: &'static Offer, _options: &Options) -> Result<Self> {
        Ok(OneStatement)
    }

    fn transactions(&self) -> Vec<String> {
        vec!["one".to_owned()]
    }

    async fn create<S: Session>(&self, _session: &mut S) -> Result<()> {
        Ok(())
    }

    fn load_parts(&self) -> u64 {
        0
    }

    async fn load<S: Session>(&self, _part: u64, _session: &mut S, _random: Random) -> Result<u64> {
        Ok(0)
    }

    async fn client<S: Session>(&self, session: &mut S, _place: Place) -> Result<()> {
        session.prepare("SELECT 1").await.map(drop)
    }

    fn pause(&self, _kind: usize, _random: &mut Random) -> Pause {
        PAUSE.get()
    }

    async fn perform<S: Session>(
        &self,
        _: usize,
        _: &mut (),
        session: &mut S,
        random: &mut Random,
    ) -> Result<Outcome> {
        DRAWN.with_borrow_mut(|drawn| drawn.push(random.below(1 << 60)));
        session.execute(Statement(0), &[], &mut ()).await?;
        Ok(Outcome::Committed)
    }

    fn single(&self, (): &(), random: &mut Random) -> Option<Single> {
        let drawn = random.below(1 << 60);
        DRAWN.with_borrow_mut(|all| all.push(drawn));
        Some(Single { statement: Statement(0), key: drawn as i64 })
    }

    async fn check<S: Session>(
        &self,
        _session: &mut S,
        _against: CheckAgainst<'_>,
    ) -> Result<Vec<Invariant>> {
        Ok(Vec::new())
    }

    async fn cleanup<S: Session>(&self, _session: &mut S) -> Result<()> {
        Ok(())
    }
}

/// Runs a job on the simulated clock.
pub(super) fn simulated(keys: &str) -> Total {
    simulated_over::<Stalling, true>(keys)
}

pub(super) fn simulated_over<S: Session, const REPLAYED: bool>(keys: &str) -> Total {
    let job = Job::parse(&format!(r#"{{"url": "mysql://h/x", "workload": "none", {keys}}}"#)).unwrap();
    clock::simulate(Some(START_NS));
    let phases: Phases = phases(&job, 1, START_NS);
    let course = Course::beginning(&job, phases);
    let rate = match &job.load {
        crate::job::Load::Open { rate_per_s, schedule, .. } => {
            Some(Rate::new(*rate_per_s, schedule.as_ref()).unwrap())
        }
        crate::job::Load::Closed { .. } => None,
    };
    let (seconds, received) = channel();
    let thread = Thread {
        number: 0,
        threads: 1,
        backend: Backend::Simulated,
        job: &job,
        target: &job.target().unwrap(),
        names: &["one".to_owned()],
        rate: rate.as_ref(),
        think: crate::run::pace::Think::new(&job.load).unwrap(),
        course: &course,
        seconds,
    };
    let part = std::thread::scope(|scope| {
        scope.spawn(|| begin_slices(&course, &job));
        let part = thread.drive::<S, _>(&OneStatement::<REPLAYED>).unwrap();
        // Nobody waits for another slice.
        course.stop();
        part
    });
    clock::simulate(None);
    let mut series = Series::new(1, 1, false);
    received.try_iter().for_each(|part| series.add(part, |_, _| {}));
    series.finish(|_, _| {});
    About {
        job: &job,
        names: vec!["one".to_owned()],
        backend: Backend::Simulated,
        protocol: "simulated",
        playback: None,
        phases: course.stretch().unwrap().phases,
        rate,
        slices_unix_s: vec![0.0; course.stretch().unwrap().number as usize - 1],
    }
    .merge(vec![part], series, false)
}

/// Begins each slice once the thread is through with the one before it.
fn begin_slices(course: &Course, job: &Job) {
    for number in 1..=job.slices.unwrap_or(0) {
        while course.through.load(Ordering::Acquire) == 0 && !course.is_stopped() {
            std::thread::yield_now();
        }
        course.begin(phases(job, number + 1, START_NS + u64::from(number) * BETWEEN_NS));
    }
}

fn assert_within_2_percent(what: &str, found_us: f64, expected_us: f64) {
    let ratio = found_us / expected_us;
    assert!((0.98..=1.02).contains(&ratio), "{what} is {found_us} us; arithmetic gives {expected_us} us");
}

#[test]
fn in_open_loop_a_stall_is_seen_by_everyone_who_would_have_come() {
    let tally = simulated(
        r#""clients": 512, "duration_s": 40, "load": {"kind": "open", "rate_per_s": 1000, "arrivals": "uniform"}"#,
    );
    let json = serde_json::to_value(tally.clone().tally(Vec::new()).unwrap()).unwrap();
    let latency = |name: &str| json["latency_us"][name].as_f64().unwrap();
    // A tenth of the arrivals fall into a stall, evenly: they wait for up to 200 ms, the rest only for the service.
    let (service_us, stopped_us) = (SERVICE_NS as f64 / 1e3, STOPPED_NS as f64 / 1e3);
    assert_within_2_percent("p50", latency("p50"), service_us);
    assert_within_2_percent("p90", latency("p90"), service_us);
    assert_within_2_percent("p99", latency("p99"), 0.9 * stopped_us + service_us);
    assert_within_2_percent("max", latency("max"), stopped_us + service_us);
    assert_within_2_percent("mean", latency("mean"), service_us + 0.1 * stopped_us / 2.0);
    assert_eq!(tally.operations(), 40_000);
    assert_eq!(json["open_loop"]["kept"], true);
}

#[test]
fn in_closed_loop_the_same_stall_is_seen_by_one_transaction_in_thousands() {
    let tally = simulated(r#""clients": 1, "duration_s": 40"#).tally(Vec::new()).unwrap();
    assert_within_2_percent("p99", tally.latency_us.p99.unwrap(), SERVICE_NS as f64 / 1e3);
}

#[test]
fn a_rate_that_cannot_be_kept_is_reported_and_nothing_is_dropped() {
    // One client does 10,000 a second less the stalls: 9,000.
    let tally = simulated(
        r#""clients": 1, "duration_s": 10, "load": {"kind": "open", "rate_per_s": 20000, "arrivals": "poisson"}"#,
    );
    let json = serde_json::to_value(tally.clone().tally(Vec::new()).unwrap()).unwrap();
    let open = &json["open_loop"];
    assert_eq!(open["kept"], false);
    assert!((open["offered_per_s"].as_f64().unwrap() - 20_000.0).abs() < 400.0, "{open}");
    assert!((open["achieved_per_s"].as_f64().unwrap() - 9_000.0).abs() < 20.0, "{open}");
    let unserved = tally.open_loop.unwrap().backlog_end;
    assert!((unserved as f64 - 110_000.0).abs() < 2_500.0, "{unserved}");
}

/// Whether the rate was kept, and how many transactions were done, with so many clients and a load.
fn kept(clients: u32, duration_s: f64, rate_per_s: u32) -> (bool, u64) {
    let load = format!(r#"{{"kind": "open", "rate_per_s": {rate_per_s}, "arrivals": "uniform"}}"#);
    let keys = format!(r#""clients": {clients}, "duration_s": {duration_s}, "load": {load}"#);
    let tally = simulated(&keys).tally(Vec::new()).unwrap();
    (tally.open_loop.unwrap().kept, tally.operations)
}

#[test]
fn a_rate_of_which_nothing_succeeds_is_not_kept_however_many_clients_there_are() {
    ANSWER.set(|_| Err(Error::server("1062 duplicate key", Fate::Failed, "it is there")));
    let none = kept(512, 40.0, 10);
    ANSWER.set(|after_ns| match after_ns / 1_000_000 % 50 {
        7 => Err(Error::server("1062 duplicate key", Fate::Failed, "it is there")),
        _ => Ok(Answer::default()),
    });
    let most = kept(512, 10.0, 1000);
    ANSWER.set(|_| Ok(Answer::default()));
    assert_eq!(none, (false, 0));
    assert!(!most.0 && (9700..9900).contains(&most.1), "{most:?}");
}

#[test]
fn what_many_clients_have_under_way_hides_no_server_that_stands_still() {
    STILL_NS.set(1_000_000_000);
    let hidden = kept(1000, 9.0, 1000);
    STILL_NS.set(STOPPED_NS);
    assert_eq!(hidden, (false, 8000));
}

#[test]
fn what_is_honestly_under_way_at_the_end_is_not_missed() {
    // One to three seconds for each transaction: 200 are under way at any time.
    STILL_NS.set(3_000_000_000);
    let slow = kept(400, 10.0, 100);
    STILL_NS.set(STOPPED_NS);
    assert_eq!(slow, (true, 800));
    // The run ends 100 ms into a stall: fewer are missed than a hundredth.
    assert_eq!(kept(512, 10.1, 1000), (true, 10_000));
}

#[test]
fn the_warm_up_is_kept_apart_and_the_series_shows_the_stalls() {
    let tally = simulated(
        r#""clients": 512, "warmup_s": 3, "duration_s": 4,
           "load": {"kind": "open", "rate_per_s": 100, "arrivals": "uniform"}"#,
    );
    assert_eq!(tally.operations(), 400);
    assert_eq!(tally.by_transaction[0].acknowledged, 700);
    let numbers: Vec<i64> = tally.series.iter().map(|second| second.second).collect();
    assert_eq!(numbers, [-3, -2, -1, 0, 1, 2, 3]);
    let stalled: Vec<bool> = tally.series.iter().map(|second| second.max_us > 100_000.0).collect();
    assert_eq!(stalled, [true, false, true, false, true, false, true]);
    let fine = tally.fine_series.unwrap();
    assert_eq!((fine.interval_s, fine.start_s, fine.operations.len()), (0.1, -3.0, 70));
    assert_eq!(fine.operations[30..].iter().sum::<u32>(), 400);
    // Second 1 begins with a stall of two tenths, and what they held back ends in the third one.
    assert_eq!(fine.operations[40..44], [0, 0, 30, 10]);
}

#[test]
fn think_time_sets_the_rate_of_a_closed_loop() {
    let tally = simulated(
        r#""clients": 10, "duration_s": 100,
           "load": {"kind": "closed", "think_time": {"mean_s": 0.5, "distribution": "exponential"}}"#,
    );
    // Each cycle takes 0.5 s to think, and 0.0101 s on average to be served (a tenth waits for 0.1 s on average).
    let expected = 10.0 * 100.0 / 0.5101;
    let ratio = tally.operations() as f64 / expected;
    assert!((0.93..1.07).contains(&ratio), "{} of {expected}", tally.operations());
}

#[test]
fn after_a_pause_a_latency_counts_from_when_its_transaction_was_due() {
    // The thread is busy for 30 ms with each answer. Three clients that rest for 40 ms are late all the time.
    STILL_NS.set(0);
    ANSWER.set(|_| {
        clock::simulate(Some(clock::now_ns() + 30_000_000));
        Ok(Answer::default())
    });
    let mean_us = |keys: &str| {
        let tally = simulated(&format!(r#""clients": 3, "warmup_s": 1, "duration_s": 9{keys}"#));
        tally.tally(Vec::new()).unwrap().latency_us.mean.unwrap()
    };
    let thinking_us = mean_us(r#", "load": {"kind": "closed", "think_time": 0.04}"#);
    PAUSE.set(Pause { before_ns: 0, after_ns: 40_000_000 });
    let pausing_us = mean_us("");
    PAUSE.take();
    ANSWER.set(|_| Ok(Answer::default()));
    STILL_NS.set(STOPPED_NS);
    // By Little's law a cycle takes three answers.
    assert_within_2_percent("after thinking", thinking_us, 3.0 * 30e3 - 40e3);
    assert_within_2_percent("after a pause", pausing_us, 3.0 * 30e3 - 40e3);
}

#[test]
fn a_ramp_opens_the_connections_evenly() {
    let opened = |ramp: &str| {
        CONNECTED_NS.take();
        simulated(&format!(r#""clients": 8, {ramp} "duration_s": 10"#));
        CONNECTED_NS.take().into_iter().map(|at_ns| at_ns as f64 / 1e9).collect::<Vec<_>>()
    };
    assert_eq!(opened(r#""ramp_s": 4,"#), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]);
    assert_eq!(opened(""), [0.0; 8]);
}

/// Two threads, of which one cannot begin: a CPU that no machine has.
#[test]
fn a_thread_that_cannot_begin_ends_the_run_for_all() {
    let job = Job::parse(
        r#"{"url": "mysql://h/x", "workload": "none", "clients": 2, "threads": 2, "duration_s": 60,
            "backend": "epoll", "cpus": [0, 5000]}"#,
    );
    let mut watch = crate::watch::Watch { interrupted: &mut || false, on_second: None, next_slice: None };
    let error = crate::run::run::<Stalling, _>(&job.unwrap(), &OneStatement::<true>, &mut watch).unwrap_err();
    assert!(error.message().contains("CPU 5000"), "{error}");
}

/// A server that goes away in the first slice and is back in the second.
#[test]
fn a_client_that_finds_no_server_at_the_end_of_a_slice_is_there_for_the_next() {
    let job = Job::parse(
        r#"{"url": "mysql://h/x", "workload": "none", "backend": "epoll", "reconnect": true,
            "slices": 3, "warmup_s": 0.1, "duration_s": 1.5}"#,
    );
    let mut slice = 0;
    let mut next_slice = |_: &Acknowledged| {
        slice += 1;
        DOWN.store(false, Ordering::Relaxed);
        if slice == 1 {
            std::thread::spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                DOWN.store(true, Ordering::Relaxed);
            });
        }
        true
    };
    let next_slice = Some(&mut next_slice as &mut dyn FnMut(&Acknowledged) -> bool);
    let mut watch = crate::watch::Watch { interrupted: &mut || false, on_second: None, next_slice };
    let total = crate::run::run::<Stalling<true>, _>(&job.unwrap(), &OneStatement::<true>, &mut watch);
    let tally = total.unwrap().tally(Vec::new()).unwrap();
    assert!(tally.errors.keys().any(|label| label.starts_with("reconnect")), "{:?}", tally.errors);
    assert_eq!((tally.clients_lost, tally.slices.len(), tally.interrupted), (0, 3, false));
    assert!(tally.slices.iter().all(|slice| slice.operations > 0), "{:?}", tally.slices);
}

#[test]
fn a_limit_of_operations_ends_the_run() {
    let tally = simulated(r#""clients": 3, "duration_s": 100, "operations": 1000"#);
    assert_eq!(tally.operations(), 1000);
    assert!(tally.duration_s < 1.0, "{}", tally.duration_s);
}

#[test]
fn the_server_goes_first_only_where_nothing_but_answers_starts_transactions() {
    let gathers = |keys: &str| {
        let job =
            format!(r#"{{"url": "mysql://h/x", "workload": "none", "gather": "on", {keys} "seed": 1}}"#);
        gather(&Job::parse(&job).unwrap(), &OneStatement::<true>)
    };
    assert_eq!(gathers(""), Gather::On);
    assert_eq!(gathers(r#""load": {"kind": "closed", "think_time": 0.1},"#), Gather::Off);
    assert_eq!(gathers(r#""load": {"kind": "open", "rate_per_s": 9},"#), Gather::Off);
    PAUSE.set(Pause { before_ns: 0, after_ns: 1 });
    assert_eq!(gathers(""), Gather::Off);
    PAUSE.take();
}

#[test]
fn gathering_that_is_on_or_off_does_not_look_at_the_machine() {
    let job = Job::parse(r#"{"url": "mysql://h/x", "workload": "none"}"#).unwrap();
    let gathers = |gather| Course::new(&job).gathering(gather).crowded.load(Ordering::Relaxed);
    assert!(gathers(Gather::On));
    assert!(!gathers(Gather::Off) && !gathers(Gather::WhenCrowded));
}

#[test]
fn closing_is_no_part_of_a_run_of_so_many_operations() {
    CLOSING_NS.set(60_000_000_000);
    let tally = simulated(
        r#""clients": 1, "warmup_s": 0.5, "duration_s": 100, "operations": 1000,
           "load": {"kind": "closed", "think_time": 0.0009}"#,
    );
    CLOSING_NS.set(0);
    assert_within_2_percent("duration", tally.duration_s * 1e6, 1e6);
}

#[test]
fn errors_of_the_warm_up_do_not_count_in_the_measured_part() {
    ANSWER.set(|after_ns| match after_ns {
        ..1_000_000_000 => Err(Error::server("1213 deadlock", Fate::Retry, "another one was first")),
        _ => Ok(Answer::default()),
    });
    let tally = simulated(r#""clients": 1, "warmup_s": 1.5, "duration_s": 0.1"#);
    ANSWER.set(|_| Ok(Answer::default()));
    assert_eq!((tally.errors.len(), tally.retries), (0, 0));
    assert!(tally.series[0].errors > 0, "the series shows them");
}

#[test]
fn a_transaction_that_is_lost_with_its_connection_counts_with_the_time_that_it_waited() {
    ANSWER.set(|_| Err(Error::lost("connection closed", "the server went away")));
    let tally = simulated(r#""clients": 3, "duration_s": 1"#).tally(Vec::new()).unwrap();
    ANSWER.set(|_| Ok(Answer::default()));
    assert_eq!((tally.clients_lost, tally.unknown, tally.unfinished, tally.operations), (3, 3, 3, 0));
    assert_eq!(tally.by_transaction[0].1.latency_us.count, 3);
    assert_within_2_percent("min", tally.latency_us.min.unwrap(), STOPPED_NS as f64 / 1e3);
}

/// The server stands still from before the only measured part until after it.
#[test]
fn what_a_stall_carries_beyond_the_end_counts_with_the_time_that_it_waited() {
    let tally = simulated(
        r#""clients": 20, "duration_s": 0.1, "load": {"kind": "open", "rate_per_s": 1000, "arrivals": "uniform"}"#,
    );
    let tally = tally.tally(Vec::new()).unwrap();
    assert_eq!((tally.operations, tally.unfinished), (0, 100));
    assert_eq!(tally.latency_us.count, 100, "20 that were under way, and 80 that no client could take");
    let stopped_us = STOPPED_NS as f64 / 1e3;
    assert_within_2_percent("max", tally.latency_us.max.unwrap(), stopped_us);
    // Due at 20.5 ms to 99.5 ms, the others waited until 100 ms.
    assert_within_2_percent("p50", tally.latency_us.p50.unwrap(), 49_500.0);
}

#[test]
fn in_closed_loop_what_is_under_way_at_the_end_counts_with_its_whole_latency() {
    let tally = simulated(r#""clients": 3, "duration_s": 0.1"#).tally(Vec::new()).unwrap();
    assert_eq!((tally.operations, tally.unfinished, tally.acknowledged), (0, 3, 3));
    assert_within_2_percent("min", tally.latency_us.min.unwrap(), STOPPED_NS as f64 / 1e3);
}

#[test]
fn what_never_comes_back_counts_with_the_time_until_it_was_given_up() {
    STILL_NS.set(3_600_000_000_000);
    let tally = simulated(r#""clients": 3, "duration_s": 0.1"#).tally(Vec::new()).unwrap();
    STILL_NS.set(STOPPED_NS);
    assert_eq!((tally.operations, tally.unfinished, tally.unknown, tally.acknowledged), (0, 3, 3, 0));
    assert!(tally.latency_us.min.unwrap() >= 10e6, "{:?}", tally.latency_us);
}

#[test]
fn a_statement_that_is_all_of_its_transaction_takes_as_long() {
    let tally = simulated_over::<Timed<Stalling>, true>(
        r#""by_statement": true, "clients": 2, "warmup_s": 1, "duration_s": 10"#,
    );
    let tally = tally.tally(Vec::new()).unwrap();
    let [(text, statement)] = tally.by_statement.as_slice() else { panic!("{:?}", tally.by_statement) };
    assert_eq!((text.as_str(), statement.errors), ("SELECT ?", 0));
    let (found, expected) = (&statement.latency_us, &tally.latency_us);
    assert_eq!(found.count, expected.count);
    assert_within_2_percent("p50", found.p50.unwrap(), SERVICE_NS as f64 / 1e3);
    assert_within_2_percent("max", found.max.unwrap(), expected.max.unwrap());
    assert_within_2_percent("mean", found.mean.unwrap(), expected.mean.unwrap());
}

#[test]
fn a_statement_that_never_comes_back_counts_with_the_time_until_it_was_given_up() {
    STILL_NS.set(3_600_000_000_000);
    let tally =
        simulated_over::<Timed<Stalling>, true>(r#""by_statement": true, "clients": 3, "duration_s": 0.1"#);
    STILL_NS.set(STOPPED_NS);
    let tally = tally.tally(Vec::new()).unwrap();
    let [(_, statement)] = tally.by_statement.as_slice() else { panic!("{:?}", tally.by_statement) };
    assert_eq!((statement.latency_us.count, statement.errors), (3, 0));
    assert!(statement.latency_us.min.unwrap() >= 10e6, "{:?}", statement.latency_us);
}

#[test]
fn a_statement_that_is_refused_is_counted_as_an_error() {
    ANSWER.set(|into_run_ns| match into_run_ns / 1_000_000 % 2 {
        0 => Ok(Answer::default()),
        _ => Err(Error::server("1062 duplicate key", Fate::Failed, "it is there")),
    });
    let tally =
        simulated_over::<Timed<Stalling>, true>(r#""by_statement": true, "clients": 1, "duration_s": 1"#);
    ANSWER.set(|_| Ok(Answer::default()));
    let tally = tally.tally(Vec::new()).unwrap();
    let failed = tally.errors["1062 duplicate key"];
    assert!(failed > 0);
    let (text, statement) = &tally.by_statement[0];
    assert_eq!((text.as_str(), statement.errors), ("SELECT ?", failed));
    assert_eq!(tally.by_statement.len(), 1, "a rollback that sends nothing is no statement");
}
