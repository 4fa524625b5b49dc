//! The tally of a run, put together from what its threads have counted.

use super::pace::Rate;
use super::replay;
use super::thread::ThreadTally;
use crate::count::histogram::{latencies, Latencies};
use crate::count::recall::Recalls;
use crate::count::recorder::Phases;
use crate::count::replayed::Replayed;
use crate::count::series::Series;
use crate::count::statements::Statements;
use crate::count::tally::{ByClient, Slice};
use crate::count::total::{ByTransaction, OpenLoop, ThreadUse, Total};
use crate::io::Backend;
use crate::job::{Gather, Job};
use crate::workload::Playback;

/// A run whose measured part is shorter has few seconds: its series is told by tenths of them as well.
const SHORT_NS: u64 = 20_000_000_000;
/// Above this share of one CPU a thread, not the server, sets the pace.
const SATURATED_SHARE: f64 = 0.9;

/// What is known of a run besides what its threads counted.
pub(crate) struct About<'a> {
    pub job: &'a Job,
    pub names: Vec<String>,
    pub backend: Backend,
    pub protocol: &'static str,
    pub phases: Phases,
    /// Of an open loop.
    pub rate: Option<Rate>,
    pub playback: Option<&'a Playback>,
    /// When each slice's measured part began, in unix time.
    pub slices_unix_s: Vec<f64>,
}

impl About<'_> {
    pub fn merge(self, mut parts: Vec<ThreadTally>, mut series: Series, blocking: bool) -> Total {
        let ended_ns =
            parts.iter().map(|part| part.ended_ns).max().unwrap_or_default().min(self.phases.end_ns);
        let measured_ns = ended_ns.saturating_sub(self.phases.measured_ns);
        let slices = self.slices(&parts, measured_ns);
        let took_ns = ended_ns.saturating_sub(self.phases.start_ns);
        let replay = self.playback.zip(replayed(&mut parts)).map(|(it, all)| replay::told(it, all, took_ns));
        let last_second = self.phases.second(self.phases.end_ns - 1);
        let duration_s = (self.phases.before_ns + measured_ns) as f64 / 1e9;
        let short = self.phases.before_ns + self.phases.end_ns - self.phases.measured_ns < SHORT_NS;
        let mut tally = Total {
            workload: self.job.workload.clone(),
            protocol: self.protocol.to_owned(),
            server_version: String::new(),
            backend: self.backend.as_str().to_owned(),
            clients: self.job.clients_here(),
            seed: self.job.seed,
            started_unix_s: 0.0,
            warmup_s: self.job.warmup_s,
            duration_s,
            by_transaction: self.names.into_iter().zip(series.totals.drain(..)).map(not_summed_yet).collect(),
            by_statement: statements(&parts),
            untaken: latencies(),
            unfinished: 0,
            failed: latencies(),
            errors: Default::default(),
            error_examples: Default::default(),
            retries: 0,
            rollbacks: 0,
            unknown: 0,
            clients_lost: 0,
            by_client: None,
            rows_read: 0,
            recalls: Recalls::default(),
            bytes_received: 0,
            bytes_sent: 0,
            threads: Vec::new(),
            gather: Gather::Off,
            sched_batch: false,
            gather_us_max: 0,
            open_loop: arrivals(&mut parts, self.phases.end_ns, blocking),
            fine_series: short.then(|| series.fine(self.job.warmup_s, duration_s)),
            // What was under way at the end is acknowledged, but no second of the measured part.
            second_histograms: series.kept_until(last_second),
            series: series.done.into_iter().filter(|second| second.second <= last_second).collect(),
            slices,
            saturated: None,
            replay,
            interrupted: false,
        };
        parts.into_iter().for_each(|part| add(&mut tally, part));
        if let (Some(open), Some(rate)) = (tally.open_loop, &self.rate) {
            let due = due_at_end(rate, took_ns, tally.latencies().mean());
            tally.open_loop = Some(OpenLoop { due_at_end: due / self.job.hosts(), ..open });
        }
        if !blocking {
            tally.saturated = saturated(&tally.threads);
        }
        tally
    }

    /// Each slice that has begun; the last one was measured for `last_ns`.
    fn slices(&self, parts: &[ThreadTally], last_ns: u64) -> Vec<Slice> {
        let begun = self.slices_unix_s.len();
        let before_s = self.phases.before_ns as f64 / 1e9;
        let slice = |(index, &started_unix_s): (usize, &f64)| {
            let duration_s = match index + 1 == begun {
                true => last_ns as f64 / 1e9,
                false => before_s / (begun - 1) as f64,
            };
            // The first stretch is the warm-up.
            let counted = || parts.iter().filter_map(|part| part.counted.get(index + 1));
            Slice {
                started_unix_s,
                duration_s,
                operations: counted().map(|one| one.operations).sum(),
                throughput_per_s: counted().map(|one| one.work).sum::<f64>() / duration_s.max(1e-9),
            }
        };
        self.slices_unix_s.iter().enumerate().map(slice).collect()
    }
}

/// A kind of transaction of which nothing but the latencies is known yet.
fn not_summed_yet((name, latencies): (String, Latencies)) -> ByTransaction {
    ByTransaction { name, latencies, operations: 0, over_borders: 0.0, acknowledged: 0 }
}

/// The arrivals of one mean latency before the end: by Little's law as many are under way then.
fn due_at_end(rate: &Rate, over_ns: u64, mean_ns: f64) -> f64 {
    let over_s = over_ns as f64 / 1e9;
    rate.mass(over_s) - rate.mass((over_s - mean_ns / 1e9).max(0.0))
}

/// What became of the arrivals of an open loop. Those that no client took count with the time that they waited.
/// `shared` says that one pace was that of all threads.
fn arrivals(parts: &mut [ThreadTally], end_ns: u64, shared: bool) -> Option<OpenLoop> {
    let last_ns = parts.iter().map(|part| part.ended_ns).max()?;
    let mut all = None::<OpenLoop>;
    for part in parts {
        let (Some(pace), Some(recorder)) = (&mut part.pace, &mut part.recorder) else { continue };
        let ended_ns = if shared { last_ns } else { part.ended_ns };
        pace.observe(ended_ns);
        let (offered, backlog_max, backlog_end) = (pace.due_measured(), pace.backlog_max(), pace.backlog());
        all = Some(match all {
            None => OpenLoop { offered, backlog_max, backlog_end, due_at_end: 0.0 },
            Some(all) => OpenLoop {
                offered: all.offered + offered,
                backlog_max: all.backlog_max + backlog_max,
                backlog_end: all.backlog_end + backlog_end,
                ..all
            },
        });
        let over_ns = ended_ns.min(end_ns);
        pace.untaken(over_ns).for_each(|due_ns| recorder.never_taken(due_ns, over_ns));
    }
    all
}

/// What all threads counted of a recording that was played.
fn replayed(parts: &mut [ThreadTally]) -> Option<Replayed> {
    let each = parts.iter_mut().filter_map(|part| part.recorder.as_mut()?.replayed.take());
    each.map(|replayed| *replayed).reduce(Replayed::with)
}

fn statements(parts: &[ThreadTally]) -> Statements {
    let mut all = Statements::default();
    parts.iter().for_each(|part| all.merge(&part.statements));
    all
}

fn add(tally: &mut Total, part: ThreadTally) {
    tally.threads.push(part.used);
    tally.sched_batch |= part.sched_batch;
    tally.gather_us_max = tally.gather_us_max.max(part.gather_us_max);
    tally.bytes_received += part.traffic.bytes_received;
    tally.bytes_sent += part.traffic.bytes_sent;
    let Some(recorder) = part.recorder else { return };
    for (index, kind) in tally.by_transaction.iter_mut().enumerate() {
        kind.operations += recorder.operations[index];
        kind.over_borders += recorder.over_borders[index];
        kind.acknowledged += recorder.acknowledged[index];
    }
    for (label, count) in recorder.errors {
        *tally.errors.entry(label).or_default() += count;
    }
    for (label, example) in recorder.error_examples {
        tally.error_examples.entry(label).or_insert(example);
    }
    tally.by_client = tally.by_client.into_iter().chain(recorder.by_client).reduce(ByClient::with);
    if let Some(untaken) = recorder.untaken {
        tally.untaken += &*untaken;
    }
    tally.unfinished += recorder.unfinished;
    if let Some(failed) = recorder.failed_latencies {
        tally.failed += &*failed;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::total::Cpu;

    fn busy(user_s: f64, system_s: f64, wall_s: f64) -> ThreadUse {
        ThreadUse {
            cpu: Cpu { user_s, system_s },
            wall_s,
            run_wait_s: 0.0,
            system_calls: 0,
            gathered_s: 0.0,
            engine_cpu_s: None,
        }
    }

    #[test]
    fn the_busiest_thread_says_that_the_driver_was_the_limit() {
        let told = saturated(&[busy(1.0, 1.0, 10.0), busy(6.0, 3.1, 10.0), busy(9.0, 0.05, 10.0)]);
        let said = "driver thread 1 was busy 91 % of the time: the driver, not the server, set the pace";
        assert_eq!(told.as_deref(), Some(said));
    }

    #[test]
    fn nine_tenths_of_a_cpu_are_no_limit_yet() {
        assert_eq!(saturated(&[busy(6.0, 3.0, 10.0)]), None);
        assert!(saturated(&[busy(6.0, 3.01, 10.0)]).is_some());
        assert_eq!(saturated(&[]), None);
    }
}
