//! The hooks by which a script reports of its run. They are called by who oversees the run, in a state of their own, so
//! they keep no client waiting. A script that has none of them is counted nowhere but in the tally.

use super::settings::{within, Settings};
use super::state::State;
use crate::error::{Error, Result};
use crate::workload::{Ended, Witness};
use hdrhistogram::Histogram;
use mlua::Function;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

const SIGNIFICANT_DIGITS: u8 = 3;

/// What the clients of a run count for its reports.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Statements that gave a result set, that changed rows, and that did neither.
    reads: AtomicU64,
    writes: AtomicU64,
    other: AtomicU64,
    reconnects: AtomicU64,
    running: AtomicU32,
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    reads: u64,
    writes: u64,
    other: u64,
    reconnects: u64,
}

/// One of the clients that run, for as long as this lives.
pub(super) struct Running(Arc<Counts>);

impl Running {
    pub fn begin(counts: &Arc<Counts>) -> Self {
        counts.running.fetch_add(1, Ordering::Relaxed);
        Running(Arc::clone(counts))
    }

    pub fn statement(&self, columns: u32, affected: u64) {
        let count = match (columns, affected) {
            (0, 0) => &self.0.other,
            (0, _) => &self.0.writes,
            _ => &self.0.reads,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn reconnected(&self) {
        self.0.reconnects.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counts {
    fn now(&self) -> Counted {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counted {
            reads: of(&self.reads),
            writes: of(&self.writes),
            other: of(&self.other),
            reconnects: of(&self.reconnects),
        }
    }
}

/// When and of what a script wants to report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    /// 0 for never.
    interval_s: i64,
    /// 0 for none.
    percentile: f64,
    /// No interval that ends later is whole.
    duration_s: f64,
    /// The run may end in the midst of a second, so that only the next one shows that it was whole.
    ends_early: bool,
}

impl Schedule {
    pub fn new(settings: &Settings, duration_s: f64, ends_early: bool) -> Result<Self> {
        let interval_s = within(settings, "report_interval", 0.0, 86_400.0)?;
        if interval_s.fract() != 0.0 {
            return Err(Error::user(format!("the option report_interval cannot be {interval_s}"))
                .hint("give whole seconds"));
        }
        let percentile = within(settings, "percentile", 0.0, 100.0)?;
        Ok(Schedule { interval_s: interval_s as i64, percentile, duration_s, ends_early })
    }

    pub fn has_intervals(&self) -> bool {
        self.interval_s > 0
    }
}

/// Calls the hooks of a run.
pub(super) struct Reports {
    state: State,
    intermediate: Option<Function>,
    cumulative: Option<Function>,
    counts: Arc<Counts>,
    schedule: Schedule,
    /// What was counted before the measured part, and before the interval that is under way.
    at_start: Counted,
    before: Counted,
    /// The end of that interval.
    ends_s: i64,
    errors: u64,
    latencies_ns: Histogram<u64>,
}

impl Reports {
    pub fn new(state: State, counts: Arc<Counts>, schedule: Schedule) -> Result<Self> {
        let (intermediate, cumulative) =
            (state.hook("report_intermediate")?, state.hook("report_cumulative")?);
        Ok(Reports {
            state,
            intermediate: intermediate.filter(|_| schedule.has_intervals()),
            cumulative,
            counts,
            schedule,
            at_start: Counted::default(),
            before: Counted::default(),
            ends_s: schedule.interval_s,
            errors: 0,
            latencies_ns: Histogram::new(SIGNIFICANT_DIGITS).expect("digits that are valid"),
        })
    }

    fn report_interval(&mut self) -> Result<()> {
        let now = self.counts.now();
        if let Some(hook) = &self.intermediate {
            let stat = Stat {
                time_total: self.ends_s as f64,
                time_interval: self.schedule.interval_s as f64,
                events: self.latencies_ns.len(),
                errors: self.errors,
                latencies_ns: &self.latencies_ns,
                counted: now.since(&self.before),
            };
            self.state.report(hook, &self.fields(&stat))?;
        }
        self.before = now;
        self.errors = 0;
        self.latencies_ns.reset();
        self.ends_s += self.schedule.interval_s;
        Ok(())
    }

    /// The fields that sysbench documents. Times are in seconds.
    fn fields(&self, stat: &Stat<'_>) -> Vec<(&'static str, f64)> {
        let latency_pct = match self.schedule.percentile {
            0.0 => 0.0,
            percentile => seconds(stat.latencies_ns.value_at_percentile(percentile) as f64),
        };
        vec![
            ("time_total", stat.time_total),
            ("time_interval", stat.time_interval),
            ("threads_running", self.counts.running.load(Ordering::Relaxed).into()),
            ("events", stat.events as f64),
            ("reads", stat.counted.reads as f64),
            ("writes", stat.counted.writes as f64),
            ("other", stat.counted.other as f64),
            ("errors", stat.errors as f64),
            ("reconnects", stat.counted.reconnects as f64),
            ("latency_pct", latency_pct),
        ]
    }
}

impl Witness for Reports {
    fn second(&mut self, second: i64, errors: u64, latencies_ns: &Histogram<u64>) -> Result<()> {
        if second < 0 {
            self.at_start = self.counts.now();
            self.before = self.at_start;
            return Ok(());
        }
        if !self.schedule.has_intervals() || (second + 1) as f64 > self.schedule.duration_s {
            return Ok(());
        }
        // A second in which no thread reported anything is not told.
        while second >= self.ends_s {
            self.report_interval()?;
        }
        self.errors += errors;
        self.latencies_ns += latencies_ns;
        if second + 1 == self.ends_s && !self.schedule.ends_early {
            self.report_interval()?;
        }
        Ok(())
    }

    fn end(&mut self, ended: &Ended<'_>) -> Result<()> {
        while self.schedule.has_intervals() && self.ends_s as f64 <= ended.duration_s {
            self.report_interval()?;
        }
        let Some(hook) = &self.cumulative else { return Ok(()) };
        let stat = Stat {
            time_total: ended.duration_s,
            time_interval: ended.duration_s,
            events: ended.operations,
            errors: ended.errors,
            latencies_ns: ended.latencies_ns,
            counted: self.counts.now().since(&self.at_start),
        };
        let mut fields = self.fields(&stat);
        let (mean_ns, latencies_ns) = (ended.latencies_ns.mean(), ended.latencies_ns);
        fields.extend([
            ("latency_min", seconds(latencies_ns.min() as f64)),
            ("latency_avg", seconds(mean_ns)),
            ("latency_max", seconds(latencies_ns.max() as f64)),
            ("latency_sum", seconds(mean_ns * latencies_ns.len() as f64)),
        ]);
        self.state.report(hook, &fields)
    }
}

/// What one report is of.
struct Stat<'a> {
    time_total: f64,
    time_interval: f64,
    events: u64,
    errors: u64,
    latencies_ns: &'a Histogram<u64>,
    counted: Counted,
}

impl Counted {
    fn since(&self, earlier: &Self) -> Self {
        Counted {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            other: self.other - earlier.other,
            reconnects: self.reconnects - earlier.reconnects,
        }
    }
}

fn seconds(ns: f64) -> f64 {
    ns / 1e9
}
