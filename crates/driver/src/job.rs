//! What to do, as the caller says it: JSON with a default for everything but the URL and the workload. The same shape
//! as `src/dbdyno/driver/job.py`.

use crate::error::{Error, Result};
use crate::io::Shared;
use crate::session::{AnySession, Opening, Target};
use crate::workload;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A job as given. Unknown keys are errors.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    pub url: String,
    pub workload: String,
    #[serde(default)]
    pub options: Map<String, Value>,
    /// What relative paths of the workload count from; empty: the process's own folder.
    #[serde(default)]
    pub folder: String,
    #[serde(default = "one")]
    pub clients: u32,
    /// 0 lets the driver choose.
    #[serde(default)]
    pub threads: u32,
    #[serde(default = "auto")]
    pub backend: String,
    #[serde(default)]
    pub warmup_s: f64,
    #[serde(default = "ten")]
    pub duration_s: f64,
    /// Ends the run after so many transactions of the measured part.
    #[serde(default)]
    pub operations: Option<u64>,
    /// The measured part in so many slices: the run waits after its warm-up and after each slice until it is told to go
    /// on, with all connections open.
    #[serde(default)]
    pub slices: Option<u32>,
    /// How long the load runs before each slice is measured.
    #[serde(default)]
    pub settle_s: f64,
    #[serde(default = "seed")]
    pub seed: u64,
    #[serde(default)]
    pub load: Load,
    /// The CPUs that the driver's threads are bound to, in turn.
    #[serde(default)]
    pub cpus: Option<Vec<u32>>,
    #[serde(default)]
    pub gather: Gather,
    /// Opens a lost connection again; without it, a client whose connection is lost stops.
    #[serde(default)]
    pub reconnect: bool,
    #[serde(default = "ten")]
    pub connect_timeout_s: f64,
    /// The longest silence of a server in the middle of an answer.
    #[serde(default = "answer_timeout")]
    pub answer_timeout_s: f64,
    /// Over how long connections are opened.
    #[serde(default)]
    pub ramp_s: Option<f64>,
    /// A file for the interval log of HdrHistogram.
    #[serde(default)]
    pub hdr_log: Option<String>,
    /// A port of the loopback interface where OpenMetrics are served during the run.
    #[serde(default)]
    pub metrics_port: Option<u16>,
    /// For `check`: the value of an earlier check of a read-only workload.
    #[serde(default)]
    pub baseline: Option<String>,
    /// Where each acknowledged transaction is noted, as a row that commits with it and outside of the database.
    #[serde(default)]
    pub ledger: Option<Ledger>,
    /// Times each statement, by its kind. It costs the driver two readings of the clock and an allocation for each.
    #[serde(default)]
    pub by_statement: bool,
    /// For `explain`: each read is executed once, and its plan tells how many rows each step gave.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub actual_rows: bool,
    /// What each connection is told first.
    #[serde(default)]
    pub opening: Opening,
    /// How long each flight of a run's requests waits, as over a network with that round-trip time. Opening a connection
    /// waits as well. What a run looks at beforehand, `prepare` and `check` do not wait.
    #[serde(default)]
    pub network_delay_s: f64,
    /// Which of the processes this is whose clients are those of one load. The run then waits when all clients of this
    /// process are connected, and its reply is what they counted and no tally.
    #[serde(default)]
    pub share: Option<Share>,
    /// Where a recording is played, the second of it at which that ends. Follows from the others.
    #[serde(skip)]
    pub until_s: Option<f64>,
    /// What the connections of this job have in common.
    #[serde(skip)]
    pub shared: Arc<Shared>,
}

/// The books of a run that will be cut short. The rows of the table `dyno_ledger` have the number `cut`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// A file on another file system than the data.
    pub path: String,
    pub cut: u32,
}

/// One of so many processes, each on a host of its own or for a node of a cluster. The first has number 0. They take
/// clients and arrivals in turn.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Share {
    pub number: u32,
    pub of: u32,
}

/// Whether the server goes first in a closed loop without pauses: the driver then takes no CPU from another
/// thread, and lets the answers of many clients lie for less than a fifth of the mean latency, so as to handle several
/// at once.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Gather {
    /// Each answer is looked at as soon as it can be.
    Off,
    On,
    /// The driver takes no CPU; answers lie only while the machine has no time to spare.
    #[default]
    WhenCrowded,
}

/// When transactions are sent.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Load {
    /// Each client sends its next transaction when the last one is done, and a think time has passed.
    Closed {
        #[serde(default)]
        think_time: Option<ThinkTime>,
    },
    /// Transactions start at times that do not depend on the server.
    Open {
        /// None is needed where the schedule gives them all.
        #[serde(default)]
        rate_per_s: f64,
        #[serde(default)]
        arrivals: Arrivals,
        #[serde(default)]
        schedule: Option<Schedule>,
    },
}

impl Default for Load {
    fn default() -> Self {
        Load::Closed { think_time: None }
    }
}

/// Seconds, or a distribution of seconds.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(untagged)]
pub enum ThinkTime {
    Constant(f64),
    Drawn { mean_s: f64, distribution: ThinkDistribution },
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ThinkDistribution {
    Constant,
    Exponential,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    #[default]
    Poisson,
    Uniform,
}

/// How the rate changes over the run; times count from the start of the warm-up.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    Constant,
    /// `rate_per_s` until the first step; then each step's rate from its second on.
    Steps {
        steps: Vec<(f64, f64)>,
    },
    /// From `rate_per_s` to `to_per_s`, evenly, then constant.
    Ramp {
        to_per_s: f64,
        over_s: f64,
    },
    /// `rate_per_s` plus a sine of this amplitude.
    Sine {
        amplitude_per_s: f64,
        period_s: f64,
    },
    /// Rates at these seconds: interpolated between them, constant before the first and after the last.
    Points {
        points: Vec<(f64, f64)>,
    },
    /// The same from a file of lines of `second rate` (or `second,rate`).
    File {
        path: String,
    },
}

impl Load {
    /// Refuses what the driver cannot send. What a schedule's file holds is judged when the run begins.
    fn require_sendable(&self) -> Result<()> {
        let Load::Open { rate_per_s, schedule, .. } = self else { return Ok(()) };
        require_sendable(*rate_per_s)?;
        match schedule {
            Some(Schedule::Steps { steps: rates } | Schedule::Points { points: rates }) => {
                rates.iter().try_for_each(|(_, rate)| require_sendable(*rate))
            }
            Some(Schedule::Ramp { to_per_s, .. }) => require_sendable(*to_per_s),
            Some(Schedule::Sine { amplitude_per_s, period_s }) => {
                if !(PERIOD_S_MIN..=SECONDS_MAX).contains(period_s) {
                    let message = format!("the driver cannot follow a sine with a period of {period_s} s");
                    return Err(
                        Error::user(message).hint(format!("give {PERIOD_S_MIN} s to {SECONDS_MAX} s"))
                    );
                }
                require_sendable(rate_per_s + amplitude_per_s.abs())
            }
            None | Some(Schedule::Constant | Schedule::File { .. }) => Ok(()),
        }
    }
}

/// Refuses a rate that the driver cannot send.
pub(crate) fn require_sendable(rate_per_s: f64) -> Result<()> {
    if (0.0..=RATE_PER_S_MAX).contains(&rate_per_s) {
        return Ok(());
    }
    let message = match rate_per_s > RATE_PER_S_MAX {
        true => format!("the driver cannot send {rate_per_s} transactions per second"),
        false => format!("the rate of an open loop cannot be {rate_per_s}"),
    };
    Err(Error::user(message).hint(format!("give 0 to {RATE_PER_S_MAX} per second")))
}

fn one() -> u32 {
    1
}

fn ten() -> f64 {
    10.0
}

fn seed() -> u64 {
    42
}

fn auto() -> String {
    "auto".to_owned()
}

fn answer_timeout() -> f64 {
    300.0
}

/// More connections than a machine has ports make no sense; this catches a slip of the pen.
const CLIENTS_MAX: u32 = 100_000;
/// More than all threads of a large machine can send, because one sends some hundred thousand; the same.
const RATE_PER_S_MAX: f64 = 10_000_000.0;
/// No thread can follow a shorter wave.
const PERIOD_S_MIN: f64 = 0.001;
const SLICES_MAX: u32 = 100_000;
/// 30 days.
pub(crate) const SECONDS_MAX: f64 = 30.0 * 86_400.0;

impl Job {
    /// Reads a job and checks all of its values but the options, which are the workload's.
    pub fn parse(json: &str) -> Result<Self> {
        let mut job: Job = serde_json::from_str(json).map_err(|error| {
            Error::user(format!("the job: {error}")).hint("see the driver's contract for the keys")
        })?;
        let seconds = [
            ("warmup_s", job.warmup_s, 0.0),
            ("duration_s", job.duration_s, 0.001),
            ("connect_timeout_s", job.connect_timeout_s, 0.001),
            ("answer_timeout_s", job.answer_timeout_s, 0.001),
            ("ramp_s", job.ramp_s.unwrap_or(0.0), 0.0),
            ("settle_s", job.settle_s, 0.0),
            ("network_delay_s", job.network_delay_s, 0.0),
        ];
        for (name, value, least) in seconds {
            if !(least..=SECONDS_MAX).contains(&value) {
                return Err(Error::user(format!("{name} cannot be {value}"))
                    .hint(format!("give seconds, {least} to {SECONDS_MAX}")));
            }
        }
        if !(1..=CLIENTS_MAX).contains(&job.clients) {
            return Err(Error::user(format!("clients cannot be {}", job.clients))
                .hint(format!("give 1 to {CLIENTS_MAX}")));
        }
        if job.cpus.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::user("cpus is empty").hint("name at least one CPU, or leave it out"));
        }
        job.require_sliceable()?;
        job.require_shareable()?;
        job.load.require_sendable()?;
        if job.ledger.is_some() && job.reconnect {
            // A client that comes back would number its transactions anew.
            return Err(
                Error::user("a ledger does not go with reconnecting").hint("leave one of the two out")
            );
        }
        let folder = PathBuf::from(&job.folder);
        workload::resolve_lua(&mut job.workload, &mut job.options);
        workload::resolve_script(&mut job.workload, &mut job.options, job.seed, &folder);
        job.resolve_replay(&folder)?;
        Ok(job)
    }

    /// A recording says how many clients play it, and its times become those of the clock.
    fn resolve_replay(&mut self, folder: &Path) -> Result<()> {
        if self.workload != workload::REPLAY {
            return Ok(());
        }
        if let Some(Value::String(file)) = self.options.get_mut("file") {
            *file = workload::located(folder, file);
        }
        if self.load != Load::default() || self.operations.is_some() || self.slices.is_some() {
            return Err(Error::user("a replay takes no rate, think time, number of operations or slices")
                .hint("leave them out: the recording says when each statement is sent"));
        }
        let given = workload::Times { warmup_s: self.warmup_s, duration_s: self.duration_s };
        let (clients, times) = workload::resolve_replay(&self.options, given)?;
        self.until_s = Some(self.warmup_s + self.duration_s);
        (self.clients, self.warmup_s, self.duration_s) = (clients, times.warmup_s, times.duration_s);
        Ok(())
    }

    /// Slices interrupt the load, so nothing but answers may start its transactions, and time alone may end it.
    fn require_sliceable(&self) -> Result<()> {
        let Some(slices) = self.slices else { return Ok(()) };
        if !(1..=SLICES_MAX).contains(&slices) {
            return Err(Error::user(format!("slices cannot be {slices}"))
                .hint(format!("give 1 to {SLICES_MAX}, or leave it out")));
        }
        if self.load != Load::default() || self.operations.is_some() {
            return Err(Error::user("slices do not go with a rate, a think time or a number of operations")
                .hint("leave out slices: the load then runs in one piece"));
        }
        Ok(())
    }

    /// Processes share clients and their arrivals, and a ledger, to whose end all of them write. What else all clients
    /// of a run have in common lies in one process.
    fn require_shareable(&self) -> Result<()> {
        let Some(Share { number, of }) = self.share else { return Ok(()) };
        if number >= of || of > self.clients {
            return Err(Error::user(format!(
                "host {} of {of} has none of {} clients",
                u64::from(number) + 1,
                self.clients
            ))
            .hint("give each load host one client at least"));
        }
        let apart = [
            ("a number of operations", self.operations.is_some()),
            ("a replay", self.workload == workload::REPLAY),
        ];
        match apart.iter().find(|(_, given)| *given) {
            Some((what, _)) => Err(Error::user(format!("several load hosts cannot share {what}"))
                .hint("drive the load from one host")),
            None => Ok(()),
        }
    }

    /// How many processes share the load: each has an equal part of its arrivals.
    pub(crate) fn hosts(&self) -> f64 {
        f64::from(self.share.map_or(1, |share| share.of))
    }

    /// How many clients this process has.
    pub(crate) fn clients_here(&self) -> u32 {
        self.share.map_or(self.clients, |share| (self.clients - share.number).div_ceil(share.of))
    }

    /// The number that a client of this process has among all clients.
    pub(crate) fn client_number(&self, here: u32) -> u32 {
        self.share.map_or(here, |share| share.number + share.of * here)
    }

    /// Which stream of arrivals a thread of this process has, of how many.
    pub(crate) fn stream(&self, thread: u32, threads: u32) -> (u32, u32) {
        self.share.map_or((thread, threads), |share| (share.number + share.of * thread, share.of * threads))
    }

    pub fn target(&self) -> Result<Target> {
        let mut target = Target::parse(&self.url)?;
        if self.network_delay_s > 0.0 && AnySession::is_blocking(target.protocol) {
            let protocol = target.protocol.as_str();
            return Err(Error::user(format!(
                "{protocol} is called as a library: there is no network to delay"
            ))
            .hint("leave out network_delay_s, or drive a server that listens on a socket"));
        }
        target.connect_timeout = Duration::from_secs_f64(self.connect_timeout_s);
        target.answer_timeout = Duration::from_secs_f64(self.answer_timeout_s);
        target.opening = self.opening.statements(target.protocol)?;
        target.storage_engine = self.opening.storage_engine.clone();
        self.shared.leave_as(&target.shared);
        target.shared = self.shared.clone();
        Ok(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rest: &str) -> Result<Job> {
        Job::parse(&format!(r#"{{"url": "mysql://root@h/test", "workload": "tpcb"{rest}}}"#))
    }

    #[test]
    fn hosts_share_all_clients_and_streams_without_a_gap() {
        let shares = |of: u32| {
            let share = move |number| {
                parse(&format!(r#", "clients": 7, "share": {{"number": {number}, "of": {of}}}"#))
            };
            (0..of).map(move |number| share(number).unwrap())
        };
        for of in 1..=7 {
            let mut clients: Vec<u32> = shares(of)
                .flat_map(|job| {
                    (0..job.clients_here()).map(move |here| job.client_number(here)).collect::<Vec<_>>()
                })
                .collect();
            clients.sort_unstable();
            assert_eq!(clients, (0..7).collect::<Vec<_>>(), "{of} hosts");
        }
        // Hosts may have other numbers of threads: each has an equal part of the arrivals.
        let parts = shares(3).zip(1..).flat_map(|(job, threads)| {
            (0..threads).map(move |thread| 1.0 / f64::from(job.stream(thread, threads).1)).collect::<Vec<_>>()
        });
        assert!((parts.sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn processes_on_one_host_keep_one_ledger_of_clients_of_their_own() {
        let ledger = r#""ledger": {"path": "books", "cut": 1}"#;
        let job = parse(&format!(r#", "clients": 2, {ledger}, "share": {{"number": 1, "of": 2}}"#)).unwrap();
        assert_eq!((job.clients_here(), job.client_number(0)), (1, 1));
        assert_eq!(job.ledger.unwrap().path, "books");
    }

    #[test]
    fn what_hosts_cannot_share_is_refused() {
        for (rest, said) in [
            (r#", "share": {"number": 1, "of": 2}"#, "host 2 of 2 has none of 1 clients"),
            (r#", "clients": 2, "share": {"number": 2, "of": 2}"#, "host 3 of 2"),
            (r#", "clients": 2, "operations": 9, "share": {"number": 0, "of": 2}"#, "a number of operations"),
        ] {
            assert!(parse(rest).unwrap_err().message().contains(said), "{said}");
        }
    }

    #[test]
    fn all_but_url_and_workload_has_a_default() {
        let job = parse("").unwrap();
        assert_eq!((job.clients, job.threads, job.seed), (1, 0, 42));
        assert_eq!(job.load, Load::Closed { think_time: None });
    }

    #[test]
    fn every_form_of_load_is_read() {
        for load in [
            r#"{"kind": "closed", "think_time": 0.1}"#,
            r#"{"kind": "closed", "think_time": {"mean_s": 0.1, "distribution": "exponential"}}"#,
            r#"{"kind": "open", "rate_per_s": 1000, "arrivals": "uniform"}"#,
            r#"{"kind": "open", "rate_per_s": 1, "schedule": {"kind": "steps", "steps": [[1, 2.5], [2, 3]]}}"#,
            r#"{"kind": "open", "rate_per_s": 1, "schedule": {"kind": "sine", "amplitude_per_s": 1, "period_s": 9}}"#,
            r#"{"kind": "open", "schedule": {"kind": "points", "points": [[0, 100], [10, 500]]}}"#,
        ] {
            parse(&format!(r#", "load": {load}"#)).unwrap();
        }
    }

    #[test]
    fn mistakes_are_the_users() {
        let paced = r#", "slices": 2, "load": {"kind": "open", "rate_per_s": 9}"#;
        for rest in [
            r#", "client": 3"#,
            r#", "clients": 0"#,
            r#", "duration_s": -1"#,
            r#", "cpus": []"#,
            r#", "slices": 0"#,
            r#", "network_delay_s": -0.001"#,
            r#", "slices": 2, "operations": 9"#,
            r#", "opening": {"isolation": "none"}"#,
            r#", "opening": {"schema": "shop"}"#,
            r#", "reconnect": true, "ledger": {"path": "books", "cut": 1}"#,
            paced,
        ] {
            let error = parse(rest).unwrap_err();
            assert_eq!(error.kind(), crate::error::Kind::User);
            assert!(!error.hint_text().is_empty(), "{error}");
        }
    }

    #[test]
    fn what_the_driver_cannot_send_is_refused_with_what_it_can() {
        let (most, periods) = ("10000000 per second", "0.001 s to 2592000 s");
        for (rate_per_s, schedule, hint) in [
            ("1e12", r#"{"kind": "constant"}"#, most),
            ("-1", r#"{"kind": "constant"}"#, most),
            ("1", r#"{"kind": "steps", "steps": [[1, 2], [2, 1e12]]}"#, most),
            ("1", r#"{"kind": "ramp", "to_per_s": 1e300, "over_s": 1}"#, most),
            ("0", r#"{"kind": "points", "points": [[0, 1], [1, 1e12]]}"#, most),
            ("6e6", r#"{"kind": "sine", "amplitude_per_s": 5e6, "period_s": 1}"#, most),
            ("1", r#"{"kind": "sine", "amplitude_per_s": 1, "period_s": 1e-300}"#, periods),
        ] {
            let load = format!(r#"{{"kind": "open", "rate_per_s": {rate_per_s}, "schedule": {schedule}}}"#);
            let error = parse(&format!(r#", "load": {load}"#)).unwrap_err();
            assert_eq!(error.kind(), crate::error::Kind::User);
            assert!(error.hint_text().contains(hint), "{load}: {error} {}", error.hint_text());
        }
    }

    #[test]
    fn the_target_holds_what_each_connection_is_told_first() {
        let job = parse(r#", "opening": {"isolation": "read-committed", "storage_engine": "Aria"}"#).unwrap();
        let target = job.target().unwrap();
        assert_eq!(
            target.opening,
            [
                "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                "SET SESSION default_storage_engine = Aria"
            ]
        );
        assert_eq!(target.storage_engine.as_deref(), Some("Aria"));
        let sqlite = Job { url: "sqlite:///tmp/x".to_owned(), ..job };
        assert_eq!(sqlite.target().unwrap_err().kind(), crate::error::Kind::User);
    }

    #[test]
    fn only_what_listens_on_a_socket_has_a_network_that_is_slow() {
        let mut job = parse(r#", "network_delay_s": 0.002"#).unwrap();
        for (url, listens) in [
            ("mysql://h/x", true),
            ("postgresql://h/x", true),
            ("http://h:80", true),
            ("sqlite:///tmp/x", false),
            ("firebird:///tmp/x", false),
        ] {
            job.url = url.to_owned();
            let outcome = job.target();
            assert_eq!(outcome.is_ok(), listens, "{url}");
            if let Err(error) = outcome {
                assert_eq!(error.kind(), crate::error::Kind::User);
                assert!(error.message().contains("no network") && !error.hint_text().is_empty(), "{error}");
            }
        }
    }
}
