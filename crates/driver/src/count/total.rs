//! What all threads of a run counted, summed, and the tally that comes of it.

use super::histogram::{as_text, encoded, latency_us, Latencies};
use super::recall::Recalls;
use super::statements::Statements;
use super::tally::{self, ByClient, CpuPerOperation, FineSeries, Second, Slice, Tally};
use crate::error::Result;
use crate::job::Gather;
use crate::workload::{Phase, Start};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// CPU time used, user and system apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Cpu {
    pub user_s: f64,
    pub system_s: f64,
}

/// What one of the driver's threads cost during the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
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
            engine_cpu_s: self.engine_cpu_s.zip(other.engine_cpu_s).map(|(one, other)| one + other),
        }
    }

    fn run_wait_share(&self) -> f64 {
        self.run_wait_s / self.wall_s.max(1e-9)
    }
}

/// One transaction type's figures of the measured part.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ByTransaction {
    pub name: String,
    /// Of what began, or was due, in the measured part.
    #[serde(with = "as_text")]
    pub latencies: Latencies,
    /// That ended well within the measured part.
    pub operations: u64,
    /// What the shares of those over its borders come to beyond `operations`.
    pub over_borders: f64,
    /// Warm-up included.
    pub acknowledged: u64,
}

impl ByTransaction {
    /// Transactions of the measured part, those over its borders by their shares.
    fn work(&self) -> f64 {
        self.operations as f64 + self.over_borders
    }

    fn figures(&self, wall_s: f64) -> (String, tally::Kind) {
        let figures = tally::Kind {
            operations: self.operations,
            throughput_per_s: self.work() / wall_s,
            acknowledged: self.acknowledged,
            latency_us: latency_us(&self.latencies),
        };
        (self.name.clone(), figures)
    }
}

/// How an open loop's rate was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
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
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Total {
    pub workload: String,
    pub protocol: String,
    pub server_version: String,
    pub backend: String,
    pub clients: u32,
    pub seed: u64,
    pub started_unix_s: f64,
    pub warmup_s: f64,
    /// Of the measured part.
    pub duration_s: f64,
    pub by_transaction: Vec<ByTransaction>,
    /// Empty where nobody asked for it.
    pub by_statement: Statements,
    /// How long arrivals that no client took had waited at the end.
    #[serde(with = "as_text")]
    pub untaken: Latencies,
    /// Of those of the measured part, what was not done when it ended.
    pub unfinished: u64,
    /// Of those of the measured part, what failed and was not tried again.
    #[serde(with = "as_text")]
    pub failed: Latencies,
    pub errors: BTreeMap<String, u64>,
    /// What the first error of each label said.
    pub error_examples: BTreeMap<String, String>,
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
    /// Of each of those seconds, as text, where another host has clients of the same load.
    pub second_histograms: Vec<String>,
    pub fine_series: Option<FineSeries>,
    pub slices: Vec<Slice>,
    pub saturated: Option<String>,
    /// Of a recording that was played.
    #[serde(skip)]
    pub replay: Option<tally::Replay>,
    pub interrupted: bool,
}

impl Total {
    /// Successful transactions of the measured part.
    pub fn operations(&self) -> u64 {
        self.by_transaction.iter().map(|kind| kind.operations).sum()
    }

    /// The same, with those over the borders of the measured part by their shares.
    fn work(&self) -> f64 {
        self.by_transaction.iter().map(ByTransaction::work).sum()
    }

    fn wall_s(&self) -> f64 {
        self.duration_s.max(1e-9)
    }

    /// Transactions of the measured part per second, those over its borders by their shares.
    pub fn throughput_per_s(&self) -> f64 {
        self.work() / self.wall_s()
    }

    /// The tally; times in the unit that the name says, histogram in nanoseconds.
    pub fn tally(self, phases: Vec<Phase>) -> Result<Tally> {
        let all = self.latencies();
        let (work, wall_s) = (self.work(), self.wall_s());
        let per_op = |of: f64| (work > 0.0).then(|| of / work);
        let (engine_cpu_s, cpu) = (self.engine_cpu_s(), self.driver_cpu(self.engine_cpu_s()));
        let cpu_us = |of_s: f64| per_op(of_s * 1e6).filter(|_| self.knows_its_cpu());
        Ok(Tally {
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
            operations: self.operations(),
            throughput_per_s: self.throughput_per_s(),
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
            failed_latency_us: latency_us(&self.failed),
            by_transaction: self.by_transaction.iter().map(|kind| kind.figures(wall_s)).collect(),
            driver_cpu_us_per_op: CpuPerOperation { user: cpu_us(cpu.user_s), system: cpu_us(cpu.system_s) },
            driver_cpu_s: tally::Cpu { user: cpu.user_s, system: cpu.system_s },
            driver_busy_share: self.threads.iter().map(ThreadUse::busy_share).collect(),
            driver_run_wait_share: self.threads.iter().map(ThreadUse::run_wait_share).collect(),
            engine_cpu_s,
            system_calls_per_op: per_op(self.system_calls() as f64).filter(|calls| *calls > 0.0),
            open_loop: self.open_loop.map(|open| self.kept(open, all.len(), wall_s)),
            recall: self.recalls.recall(),
            phases,
            histogram: encoded(&all)?,
            failed_histogram: encoded(&self.failed)?,
            histogram_unit: "ns".to_owned(),
            interrupted: self.interrupted,
            by_statement: self.by_statement.figures(),
            workload: self.workload,
            protocol: self.protocol,
            backend: self.backend,
            server_version: self.server_version,
            errors: self.errors,
            error_examples: self.error_examples,
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
        self.measured_threads().map(|thread| thread.engine_cpu_s).sum()
    }

    /// Whether the driver's CPU is told from that of an embedded engine on each thread, or there is no such engine.
    fn knows_its_cpu(&self) -> bool {
        let told = self.measured_threads().filter(|thread| thread.engine_cpu_s.is_some()).count();
        told == 0 || told == self.measured_threads().count()
    }

    /// Those that had a client in the measured part.
    fn measured_threads(&self) -> impl Iterator<Item = &ThreadUse> {
        self.threads.iter().filter(|thread| thread.wall_s > 0.0)
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
            achieved_per_s: self.work() / wall_s,
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
        self.failed.len() as f64 <= hundredth
            && open.backlog_end as f64 <= under_way
            && missing as f64 <= under_way + hundredth
    }
}
