//! What all threads of a run counted, summed, and the tally that comes of it.

use super::recall::Recalls;
use super::tally::{self, ByClient, CpuPerOperation, FineSeries, Latency, Second, Slice, Tally};
use crate::error::{Error, Result};
use crate::job::Gather;
use crate::workload::{Phase, Start};
use base64::Engine;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Latencies in nanoseconds, from 1 ns to 1 h with 3 significant digits; longer ones count as 1 h.
pub type Latencies = Histogram<u64>;

pub(super) const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
const NS_PER_US: f64 = 1000.0;

pub fn latencies() -> Latencies {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, SIGNIFICANT_DIGITS).expect("constant bounds that are valid")
}

/// CPU time used, user and system apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cpu {
    pub user_s: f64,
    pub system_s: f64,
}

/// What one of the driver's threads cost during the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadUse {
    pub cpu: Cpu,
    pub wall_s: f64,
    /// Time that the thread was ready to run and had no CPU.
    pub run_wait_s: f64,
    pub system_calls: u64,
    /// Time in which answers were let lie.
    pub gathered_s: f64,
    /// CPU inside an embedded engine's calls; part of `cpu`.
    pub engine_cpu_s: Option<f64>,
}

impl ThreadUse {
    /// CPU by wall time.
    pub fn busy_share(&self) -> f64 {
        (self.cpu.user_s + self.cpu.system_s) / self.wall_s.max(1e-9)
    }

    /// Together with what it cost in another slice.
    pub fn plus(&self, other: &ThreadUse) -> Self {
        ThreadUse {
            cpu: Cpu {
                user_s: self.cpu.user_s + other.cpu.user_s,
                system_s: self.cpu.system_s + other.cpu.system_s,
            },
            wall_s: self.wall_s + other.wall_s,
            run_wait_s: self.run_wait_s + other.run_wait_s,
            system_calls: self.system_calls + other.system_calls,
            gathered_s: self.gathered_s + other.gathered_s,
            engine_cpu_s: self.engine_cpu_s.into_iter().chain(other.engine_cpu_s).reduce(std::ops::Add::add),
        }
    }

    fn run_wait_share(&self) -> f64 {
        self.run_wait_s / self.wall_s.max(1e-9)
    }
}

/// One transaction type's figures of the measured part.
#[derive(Clone, Debug)]
pub struct ByTransaction {
    pub name: String,
    /// Of what began, or was due, in the measured part.
    pub latencies: Latencies,
    /// That ended well within the measured part.
    pub operations: u64,
    /// Warm-up included.
    pub acknowledged: u64,
}

impl ByTransaction {
    fn figures(&self) -> (String, tally::Kind) {
        let figures = tally::Kind {
            operations: self.operations,
            acknowledged: self.acknowledged,
            latency_us: latency_us(&self.latencies),
        };
        (self.name.clone(), figures)
    }
}

/// How an open loop's rate was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OpenLoop {
    /// Arrivals due in the measured part.
    pub offered: u64,
    /// Most arrivals that waited for a free client at one time, summed over the threads.
    pub backlog_max: u64,
    /// Arrivals that no client had taken when the run ended.
    pub backlog_end: u64,
    /// Arrivals of one mean latency before the end, on average: what may honestly be under way then (Little's law;
    /// J. D. C. Little, Operations Research 9, 1961).
    pub due_at_end: f64,
}

/// Everything counted, summed over the threads.
#[derive(Clone, Debug)]
pub struct Total {
    pub workload: String,
    pub protocol: &'static str,
    pub server_version: String,
    pub backend: &'static str,
    pub clients: u32,
    pub seed: u64,
    pub started_unix_s: f64,
    pub warmup_s: f64,
    /// Of the measured part.
    pub duration_s: f64,
    pub by_transaction: Vec<ByTransaction>,
    /// Empty where nobody asked for it.
    pub by_statement: Vec<(String, tally::Statement)>,
    /// How long arrivals that no client took had waited at the end.
    pub untaken: Latencies,
    /// Of those of the measured part, what was not done when it ended.
    pub unfinished: u64,
    /// Of those of the measured part, what failed and was not tried again.
    pub failed: u64,
    pub errors: BTreeMap<String, u64>,
    pub retries: u64,
    pub rollbacks: u64,
    pub unknown: u64,
    /// Clients that stopped before the end because their connection was lost.
    pub clients_lost: u32,
    pub by_client: Option<ByClient>,
    pub rows_read: u64,
    pub recalls: Recalls,
    pub bytes_received: u64,
    pub bytes_sent: u64,
    pub threads: Vec<ThreadUse>,
    /// What was done, which is nothing where pauses or an open loop start transactions.
    pub gather: Gather,
    /// A thread ran under SCHED_BATCH.
    pub sched_batch: bool,
    /// The longest that a thread let an answer lie in order to gather more; 0 when none did.
    pub gather_us_max: u32,
    pub open_loop: Option<OpenLoop>,
    pub series: Vec<Second>,
    pub fine_series: Option<FineSeries>,
    pub slices: Vec<Slice>,
    pub saturated: Option<String>,
    /// Of a recording that was played.
    pub replay: Option<tally::Replay>,
    pub interrupted: bool,
}

impl Total {
    /// Successful transactions of the measured part.
    pub fn operations(&self) -> u64 {
        self.by_transaction.iter().map(|kind| kind.operations).sum()
    }

    /// The tally; times in the unit that the name says, histogram in nanoseconds.
    pub fn tally(self, phases: Vec<Phase>) -> Result<Tally> {
        let all = self.latencies();
        let (operations, wall_s) = (self.operations(), self.duration_s.max(1e-9));
        let per_op = |of: f64| (operations > 0).then(|| of / operations as f64);
        let engine_cpu_s = self.engine_cpu_s();
        let cpu = self.driver_cpu(engine_cpu_s);
        Ok(Tally {
            protocol: self.protocol.to_owned(),
            backend: self.backend.to_owned(),
            gather: self.gather,
            gathered_share: self.gathered_share(),
            sched_batch: self.sched_batch,
            gather_us_max: self.gather_us_max,
            threads: self.threads.len() as u32,
            clients: self.clients,
            seed: self.seed,
            started_unix_s: self.started_unix_s,
            warmup_s: self.warmup_s,
            duration_s: self.duration_s,
            operations,
            throughput_per_s: operations as f64 / wall_s,
            rows_read: self.rows_read,
            bytes_received: self.bytes_received,
            bytes_sent: self.bytes_sent,
            retries: self.retries,
            rollbacks: self.rollbacks,
            acknowledged: self.by_transaction.iter().map(|kind| kind.acknowledged).sum(),
            unknown: self.unknown,
            clients_lost: self.clients_lost,
            unfinished: self.unfinished,
            by_client: self.by_client,
            start: Start::new(),
            latency_us: latency_us(&all),
            by_transaction: self.by_transaction.iter().map(ByTransaction::figures).collect(),
            driver_cpu_us_per_op: CpuPerOperation {
                user: per_op(cpu.user_s * 1e6),
                system: per_op(cpu.system_s * 1e6),
            },
            driver_cpu_s: tally::Cpu { user: cpu.user_s, system: cpu.system_s },
            driver_busy_share: self.threads.iter().map(ThreadUse::busy_share).collect(),
            driver_run_wait_share: self.threads.iter().map(ThreadUse::run_wait_share).collect(),
            engine_cpu_s,
            system_calls_per_op: per_op(self.system_calls() as f64).filter(|calls| *calls > 0.0),
            open_loop: self.open_loop.map(|open| self.kept(open, all.len(), wall_s)),
            recall: self.recalls.recall(),
            phases,
            histogram: encoded(&all)?,
            histogram_unit: "ns".to_owned(),
            interrupted: self.interrupted,
            by_statement: self.by_statement,
            workload: self.workload,
            server_version: self.server_version,
            errors: self.errors,
            saturated: self.saturated,
            series: self.series,
            fine_series: self.fine_series,
            slices: self.slices,
            replay: self.replay,
        })
    }

    /// Those of all transactions, and of the arrivals that no client took.
    pub fn latencies(&self) -> Latencies {
        self.by_transaction.iter().fold(self.untaken.clone(), |mut all, kind| {
            all += &kind.latencies;
            all
        })
    }

    fn system_calls(&self) -> u64 {
        self.threads.iter().map(|thread| thread.system_calls).sum()
    }

    fn gathered_share(&self) -> f64 {
        let wall_s: f64 = self.threads.iter().map(|thread| thread.wall_s).sum();
        let gathered_s: f64 = self.threads.iter().map(|thread| thread.gathered_s).sum();
        gathered_s / wall_s.max(1e-9)
    }

    fn engine_cpu_s(&self) -> Option<f64> {
        self.threads.iter().map(|thread| thread.engine_cpu_s).sum()
    }

    /// The driver's own CPU. An embedded engine's share is taken from user and system time in proportion.
    fn driver_cpu(&self, engine_cpu_s: Option<f64>) -> Cpu {
        let sum = |part: fn(&Cpu) -> f64| self.threads.iter().map(|thread| part(&thread.cpu)).sum::<f64>();
        let (user_s, system_s) = (sum(|cpu| cpu.user_s), sum(|cpu| cpu.system_s));
        let ours = 1.0 - (engine_cpu_s.unwrap_or(0.0) / (user_s + system_s).max(1e-9)).min(1.0);
        Cpu { user_s: user_s * ours, system_s: system_s * ours }
    }

    /// `told` counts the arrivals of the measured part that have a latency, however it ended.
    fn kept(&self, open: OpenLoop, told: u64, wall_s: f64) -> tally::OpenLoop {
        tally::OpenLoop {
            offered_per_s: open.offered as f64 / wall_s,
            achieved_per_s: self.operations() as f64 / wall_s,
            backlog_max: open.backlog_max,
            backlog_end: open.backlog_end,
            kept: self.kept_rate(open, told),
        }
    }

    /// The rate was kept when all but a hundredth of what was due was done in time, besides what was honestly under way
    /// at the end, and when no more than that waited for a client then. In a queue that grows twice as many wait at the
    /// end as on average.
    fn kept_rate(&self, open: OpenLoop, told: u64) -> bool {
        // Arrivals come by chance: as many as this are under way once in ten thousand times.
        let under_way = open.due_at_end + 4.0 * open.due_at_end.sqrt() + 1.0;
        let hundredth = open.offered as f64 / 100.0;
        let missing = open.offered.saturating_sub(told.saturating_sub(self.unfinished));
        self.failed as f64 <= hundredth
            && open.backlog_end as f64 <= under_way
            && missing as f64 <= under_way + hundredth
    }
}

/// Count, sum, mean and percentiles in microseconds.
pub fn latency_us(latencies: &Latencies) -> Latency {
    let us = |ns: u64| ns as f64 / NS_PER_US;
    let mean = latencies.mean() / NS_PER_US;
    let of = |value: f64| (!latencies.is_empty()).then_some(value);
    let at = |percentile: f64| of(us(latencies.value_at_percentile(percentile)));
    Latency {
        count: latencies.len(),
        sum: of(mean).unwrap_or_default() * latencies.len() as f64,
        mean: of(mean),
        min: of(us(latencies.min())),
        p50: at(50.0),
        p90: at(90.0),
        p95: at(95.0),
        p99: at(99.0),
        p99_9: at(99.9),
        p99_99: at(99.99),
        max: of(us(latencies.max())),
    }
}

/// A histogram as text: V2, deflated, in base64.
pub(crate) fn encoded(latencies: &Latencies) -> Result<String> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(latencies, &mut bytes)
        .map_err(|error| Error::internal(format!("a histogram could not be written: {error}")))?;
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use proptest::prelude::*;

    #[test]
    fn no_operation_gives_nothing_and_not_nonsense() {
        assert_eq!((latency_us(&latencies()).p99, latency_us(&latencies()).sum), (None, 0.0));
    }

    proptest! {
        #[test]
        fn merging_counts_each_value_once(
            left in proptest::collection::vec(1u64..LATENCY_NS_MAX, 1..200),
            right in proptest::collection::vec(1u64..LATENCY_NS_MAX, 1..200),
        ) {
            let (mut one, mut other, mut whole) = (latencies(), latencies(), latencies());
            left.iter().for_each(|&value| one.record(value).unwrap());
            right.iter().for_each(|&value| other.record(value).unwrap());
            left.iter().chain(&right).for_each(|&value| whole.record(value).unwrap());
            one += &other;
            prop_assert_eq!(&one, &whole);
        }

        #[test]
        fn percentiles_are_true_to_three_digits(mut values in proptest::collection::vec(1u64..LATENCY_NS_MAX, 1..300)) {
            let mut histogram = latencies();
            values.iter().for_each(|&value| histogram.record(value).unwrap());
            values.sort_unstable();
            for percentile in [50.0, 99.0, 100.0] {
                let rank = ((percentile / 100.0 * values.len() as f64).ceil() as usize).max(1);
                let (exact, found) = (values[rank - 1] as f64, histogram.value_at_percentile(percentile) as f64);
                prop_assert!((found - exact).abs() <= exact / 1000.0 + 1.0, "{} {}", found, exact);
            }
        }

        #[test]
        fn an_encoded_histogram_is_read_back(values in proptest::collection::vec(1u64..LATENCY_NS_MAX, 0..200)) {
            let mut histogram = latencies();
            values.iter().for_each(|&value| histogram.record(value).unwrap());
            let bytes = base64::engine::general_purpose::STANDARD.decode(encoded(&histogram).unwrap()).unwrap();
            let read: Latencies = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            prop_assert_eq!(read.len(), histogram.len());
            prop_assert_eq!(read.value_at_percentile(50.0), histogram.value_at_percentile(50.0));
        }
    }
}
