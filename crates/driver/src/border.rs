//! Both languages are held to one shape: `border.json` has an example of all that crosses the border, and every field of
//! it. Each side must read it and write it back as it is (the other one is `tests/driver/test_border.py`).
//!
//! The examples name each field, without `..`: a field that is added does not compile until it stands here.

use crate::count::tally::{
    ByClient, Cpu, CpuPerOperation, Failed, FineSeries, Kind, Latency, OpenLoop, Part, Recall, Replay,
    Second, Slice, Statement, Tally,
};
use crate::job::{Arrivals, Gather, Job, Ledger, Load, Schedule, Share, ThinkDistribution, ThinkTime};
use crate::session::{Isolation, Opening};
use crate::workload::{Acknowledged, Invariant, Phase};
use serde_json::{json, Value};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/border.json");

fn schedules() -> Vec<Schedule> {
    let all = vec![
        Schedule::Constant,
        Schedule::Steps { steps: vec![(1.0, 2.5)] },
        Schedule::Ramp { to_per_s: 2.5, over_s: 1.5 },
        Schedule::Sine { amplitude_per_s: 2.5, period_s: 1.5 },
        Schedule::Points { points: vec![(1.0, 2.5)] },
        Schedule::File { path: "rates.txt".to_owned() },
    ];
    // One arm for each line above: a variant that is added does not compile until it stands in both.
    for schedule in &all {
        match schedule {
            Schedule::Constant
            | Schedule::Steps { .. }
            | Schedule::Ramp { .. }
            | Schedule::Sine { .. }
            | Schedule::Points { .. }
            | Schedule::File { .. } => {}
        }
    }
    all
}

fn loads() -> Vec<Load> {
    let drawn = |distribution| Some(ThinkTime::Drawn { mean_s: 0.5, distribution });
    let closed = [
        None,
        Some(ThinkTime::Constant(0.5)),
        drawn(ThinkDistribution::Constant),
        drawn(ThinkDistribution::Exponential),
    ];
    let open = |arrivals, schedule| Load::Open { rate_per_s: 7.5, arrivals, schedule };
    let mut all: Vec<Load> = closed.into_iter().map(|think_time| Load::Closed { think_time }).collect();
    all.push(open(Arrivals::Poisson, None));
    all.extend(schedules().into_iter().map(|schedule| open(Arrivals::Uniform, Some(schedule))));
    all
}

fn jobs() -> Vec<Job> {
    let least = Job::parse(r#"{"url": "mysql://h/x", "workload": "tpcb"}"#).unwrap();
    let whole = Job {
        url: "mysql://h/x".to_owned(),
        workload: "tpcb".to_owned(),
        options: [("scale".to_owned(), json!(3))].into_iter().collect(),
        folder: "/studies".to_owned(),
        clients: 2,
        threads: 1,
        backend: "epoll".to_owned(),
        warmup_s: 1.5,
        duration_s: 2.5,
        operations: Some(9),
        slices: None,
        settle_s: 0.25,
        seed: 7,
        load: Load::default(),
        cpus: Some(vec![0, 1]),
        gather: Gather::Off,
        reconnect: true,
        connect_timeout_s: 3.5,
        answer_timeout_s: 4.5,
        ramp_s: Some(5.5),
        hdr_log: Some("run.hlog".to_owned()),
        metrics_port: Some(9100),
        baseline: Some("c0ffee".to_owned()),
        ledger: None,
        by_statement: true,
        actual_rows: true,
        opening: Opening {
            isolation: Some(Isolation::RepeatableRead),
            storage_engine: Some("Aria".to_owned()),
            sql: vec!["SET @shop = 1".to_owned()],
        },
        network_delay_s: 0.25,
        share: None,
        until_s: None,
        shared: Default::default(),
    };
    let sliced = Job { operations: None, slices: Some(4), ..whole.clone() };
    let ledger = Some(Ledger { path: "books".to_owned(), cut: 3 });
    let cut_short = Job { reconnect: false, ledger, ..whole.clone() };
    let shared = Job { operations: None, share: Some(Share { number: 1, of: 2 }), ..whole.clone() };
    let loaded = loads().into_iter().map(|load| Job { load, ..whole.clone() });
    loaded.chain([sliced, cut_short, shared, least]).collect()
}

fn latency(some: Option<f64>) -> Latency {
    Latency {
        count: 4,
        sum: 4.5,
        mean: some,
        min: some,
        p50: some,
        p90: some,
        p95: some,
        p99: some,
        p99_9: some,
        p99_99: some,
        max: some,
    }
}

fn tally(some: Option<f64>) -> Tally {
    Tally {
        workload: "tpcb".to_owned(),
        protocol: "mysql".to_owned(),
        server_version: "11.8".to_owned(),
        backend: "epoll".to_owned(),
        gather: Gather::On,
        gathered_share: 0.5,
        sched_batch: true,
        gather_us_max: 12,
        threads: 1,
        clients: 2,
        seed: 7,
        started_unix_s: 1.5,
        warmup_s: 2.5,
        duration_s: 3.5,
        operations: 4,
        throughput_per_s: 5.5,
        rows_read: 6,
        bytes_received: 7,
        bytes_sent: 8,
        errors: [("1213 deadlock".to_owned(), 9)].into_iter().collect(),
        error_examples: [example()].into(),
        retries: 10,
        rollbacks: 11,
        acknowledged: 12,
        unknown: 13,
        clients_lost: 14,
        unfinished: 15,
        by_client: some.map(|_| ByClient { least: 0.75, most: 3.0 }),
        start: [("history".to_owned(), 15)].into_iter().collect(),
        latency_us: latency(some),
        failed_latency_us: latency(some),
        by_transaction: vec![("tpcb".to_owned(), kind(some))],
        by_statement: some.into_iter().map(|_| statement(some)).collect(),
        driver_cpu_us_per_op: CpuPerOperation { user: some, system: some },
        driver_cpu_s: Cpu { user: 1.5, system: 2.5 },
        driver_busy_share: vec![0.5],
        driver_run_wait_share: vec![0.25],
        engine_cpu_s: some,
        system_calls_per_op: some,
        saturated: some.map(|_| "driver thread 0 was busy".to_owned()),
        open_loop: some.map(open_loop),
        series: vec![second(-1, Part::Warmup), second(0, Part::Measured)],
        fine_series: some.map(|_| FineSeries { interval_s: 0.25, start_s: -0.5, operations: vec![1, 0, 2] }),
        slices: vec![Slice { started_unix_s: 1.5, duration_s: 0.5, operations: 4, throughput_per_s: 8.5 }],
        recall: some.map(|mean| Recall { count: 4, mean, min: 0.5, p1: 0.5, p5: 0.5, p10: 0.75, p50: 0.75 }),
        phases: [None, some].map(phase).to_vec(),
        replay: some.map(|_| replay(some)),
        histogram: "HISTFAAA".to_owned(),
        failed_histogram: "HISTFBBB".to_owned(),
        histogram_unit: "ns".to_owned(),
        interrupted: some.is_some(),
    }
}

fn phase(operations_per_s: Option<f64>) -> Phase {
    Phase { name: "insert".to_owned(), operations: 4, duration_s: 1.5, operations_per_s }
}

fn replay(some: Option<f64>) -> Replay {
    Replay {
        recorded_s: 60.5,
        speed: some,
        planned_s: some,
        took_s: 61.5,
        sessions: 3,
        sessions_refused: 1,
        sessions_lost: 2,
        statements: 9,
        unsent: 4,
        late_by_server: 5,
        late_by_driver: 6,
        server_lag_us: latency(some),
        driver_lag_us: latency(some),
        failed: vec![Failed {
            statement: "SELECT ?".to_owned(),
            error: "1146 no such table".to_owned(),
            count: 7,
        }],
        rows_compared: 8,
        rows_differ: 2,
        differing: vec![("SELECT ?".to_owned(), 2)],
    }
}

fn open_loop(offered_per_s: f64) -> OpenLoop {
    OpenLoop { offered_per_s, achieved_per_s: 5.5, backlog_max: 3, backlog_end: 1, kept: true }
}

fn kind(some: Option<f64>) -> Kind {
    Kind { operations: 4, throughput_per_s: 1.25, acknowledged: 12, latency_us: latency(some) }
}

fn statement(some: Option<f64>) -> (String, Statement) {
    ("COMMIT".to_owned(), Statement { errors: 1, latency_us: latency(some) })
}

fn second(second: i64, phase: Part) -> Second {
    Second { second, phase, operations: 4, errors: 9, p50_us: 1.5, p99_us: 2.5, max_us: 3.5 }
}

fn invariant(value: Option<String>) -> Invariant {
    Invariant { name: "rows_unchanged".to_owned(), holds: true, detail: "12, 12".to_owned(), value }
}

fn example() -> (String, String) {
    ("1213 deadlock".to_owned(), "shop.sql:3: Deadlock found (error 1213)".to_owned())
}

fn examples() -> Value {
    let by_transaction = [("tpcb".to_owned(), 12)].into_iter().collect();
    let start = [("history".to_owned(), 15)].into_iter().collect();
    json!({
        "jobs": jobs(),
        "tallies": [tally(Some(0.75)), tally(None)],
        "acknowledged": [
            Acknowledged { acknowledged: 12, unknown: 13, by_transaction, start },
            Acknowledged::default(),
        ],
        "invariants": [invariant(Some("c0ffee".to_owned())), invariant(None)],
    })
}

#[test]
fn what_crosses_the_border_is_as_the_file_says() {
    let text = format!("{:#}\n", examples());
    if std::env::var_os("DYNO_WRITE_BORDER").is_some() {
        std::fs::write(FILE, &text).unwrap();
    }
    let written = std::fs::read_to_string(FILE).unwrap();
    assert!(
        text == written,
        "{FILE} is not what the driver writes: set DYNO_WRITE_BORDER=1, and see what changed"
    );
}

#[test]
fn what_comes_in_is_read_from_the_file_without_loss() {
    let written: Value = serde_json::from_str(&std::fs::read_to_string(FILE).unwrap()).unwrap();
    for job in written["jobs"].as_array().unwrap() {
        assert_eq!(json!(Job::parse(&job.to_string()).unwrap()), *job);
    }
    for acknowledged in written["acknowledged"].as_array().unwrap() {
        assert_eq!(json!(Acknowledged::parse(&acknowledged.to_string()).unwrap()), *acknowledged);
    }
}
