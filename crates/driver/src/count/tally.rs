//! What a run counted, as it leaves the driver: the same shape as `src/dbdyno/driver/tally.py`, which says what it means.

use crate::job::Gather;
use crate::workload::{Phase, Start};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Everything that was counted in one run.
#[derive(Clone, Debug, Serialize)]
pub struct Tally {
    pub workload: String,
    pub protocol: String,
    pub server_version: String,
    pub backend: String,
    pub gather: Gather,
    pub gathered_share: f64,
    pub sched_batch: bool,
    pub gather_us_max: u32,
    pub threads: u32,
    pub clients: u32,
    pub seed: u64,
    pub started_unix_s: f64,
    pub warmup_s: f64,
    pub duration_s: f64,
    pub operations: u64,
    pub throughput_per_s: f64,
    pub rows_read: u64,
    pub bytes_received: u64,
    pub bytes_sent: u64,
    pub errors: BTreeMap<String, u64>,
    pub error_examples: BTreeMap<String, String>,
    pub retries: u64,
    pub rollbacks: u64,
    pub acknowledged: u64,
    pub unknown: u64,
    pub clients_lost: u32,
    pub unfinished: u64,
    pub by_client: Option<ByClient>,
    pub start: Start,
    pub latency_us: Latency,
    /// Of what failed and was not tried again.
    pub failed_latency_us: Latency,
    /// In the order of the workload's transactions.
    #[serde(serialize_with = "in_order")]
    pub by_transaction: Vec<(String, Kind)>,
    /// By the statement's text without its values; empty where the job did not ask for it.
    #[serde(serialize_with = "in_order")]
    pub by_statement: Vec<(String, Statement)>,
    pub driver_cpu_us_per_op: CpuPerOperation,
    pub driver_cpu_s: Cpu,
    pub driver_busy_share: Vec<f64>,
    pub driver_run_wait_share: Vec<f64>,
    pub engine_cpu_s: Option<f64>,
    pub system_calls_per_op: Option<f64>,
    pub saturated: Option<String>,
    pub open_loop: Option<OpenLoop>,
    pub series: Vec<Second>,
    pub fine_series: Option<FineSeries>,
    pub slices: Vec<Slice>,
    pub recall: Option<Recall>,
    pub phases: Vec<Phase>,
    pub replay: Option<Replay>,
    pub histogram: String,
    pub failed_histogram: String,
    pub histogram_unit: String,
    pub interrupted: bool,
}

fn in_order<S: serde::Serializer, T: Serialize>(kinds: &[(String, T)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(kinds.iter().map(|(name, kind)| (name, kind)))
}

/// The fewest and the most transactions of the measured part that a client had done, those over its borders by their
/// shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByClient {
    pub least: f64,
    pub most: f64,
}

impl ByClient {
    /// Together with other clients.
    pub fn with(self, other: ByClient) -> Self {
        ByClient { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

/// Latencies in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    pub count: u64,
    pub sum: f64,
    pub mean: Option<f64>,
    pub min: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub p99_9: Option<f64>,
    pub p99_99: Option<f64>,
    pub max: Option<f64>,
}

/// One transaction type.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Kind {
    pub operations: u64,
    pub throughput_per_s: f64,
    /// Warm-up included.
    pub acknowledged: u64,
    pub latency_us: Latency,
}

/// The statements of one kind: how long all took, of those without an answer at least so long, and how many of the
/// answers were errors.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Statement {
    pub errors: u64,
    pub latency_us: Latency,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct CpuPerOperation {
    pub user: Option<f64>,
    pub system: Option<f64>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cpu {
    pub user: f64,
    pub system: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct OpenLoop {
    pub offered_per_s: f64,
    pub achieved_per_s: f64,
    pub backlog_max: u64,
    pub backlog_end: u64,
    pub kept: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    Warmup,
    Measured,
}

/// One second of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Counted from the start of the measured part; negative during the warm-up.
    pub second: i64,
    pub phase: Part,
    pub operations: u64,
    pub errors: u64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

impl Second {
    /// A second in which nothing was done.
    pub fn empty(second: i64) -> Self {
        let phase = if second < 0 { Part::Warmup } else { Part::Measured };
        Second { second, phase, operations: 0, errors: 0, p50_us: 0.0, p99_us: 0.0, max_us: 0.0 }
    }

    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// How many transactions ended in each of many short intervals, one after another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FineSeries {
    pub interval_s: f64,
    /// When the first interval begins, counted from the start of the measured part.
    pub start_s: f64,
    pub operations: Vec<u32>,
}

/// One slice of the measured part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// When its measured part began.
    pub started_unix_s: f64,
    pub duration_s: f64,
    pub operations: u64,
    pub throughput_per_s: f64,
}

/// How good approximate answers were.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Recall {
    pub count: u64,
    pub mean: f64,
    pub min: f64,
    pub p1: f64,
    pub p5: f64,
    pub p10: f64,
    pub p50: f64,
}

/// What became of a recording that was played.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replay {
    /// How long the part of the recording that was played took when it was recorded.
    pub recorded_s: f64,
    /// How many times as fast it was to be played; `None` without pauses.
    pub speed: Option<f64>,
    /// How long the replay takes where nothing is late.
    pub planned_s: Option<f64>,
    pub took_s: f64,
    pub sessions: u64,
    pub sessions_refused: u64,
    pub sessions_lost: u64,
    pub statements: u64,
    pub unsent: u64,
    pub late_by_server: u64,
    pub late_by_driver: u64,
    pub server_lag_us: Latency,
    pub driver_lag_us: Latency,
    pub failed: Vec<Failed>,
    pub rows_compared: u64,
    pub rows_differ: u64,
    /// How often a kind of statement gave another number of rows.
    #[serde(serialize_with = "in_order")]
    pub differing: Vec<(String, u64)>,
}

/// How often statements of one kind failed with one error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    pub statement: String,
    pub error: String,
    pub count: u64,
}
