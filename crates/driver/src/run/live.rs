//! What can be seen of a run while it goes on: each second to the caller, an HdrHistogram log, OpenMetrics on loopback.

use crate::count::hdr_log::HdrLog;
use crate::count::series::SecondLatencies;
use crate::count::tally::Second;
use crate::count::total::Total;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::watch::Watch;
use crate::workload::{Ended, Witness};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// A reader of metrics that has not asked for them by then does not get any: others may wait for it to go.
const READER_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Live {
    listener: Option<TcpListener>,
    reader: Option<Reader>,
    log: Option<HdrLog>,
    witness: Option<Box<dyn Witness>>,
    /// Of the witness, or of the log.
    failure: Option<Error>,
    duration_s: f64,
    operations: u64,
    errors: u64,
    last: Option<Second>,
}

/// One who has connected, and has not asked yet.
struct Reader {
    stream: TcpStream,
    since: Instant,
}

impl Live {
    /// `names` are those of the transaction types.
    pub fn new(job: &Job, names: &[String], witness: Option<Box<dyn Witness>>) -> Result<Self> {
        let listener = job.metrics_port.map(listen).transpose()?;
        let log = job.hdr_log.as_ref().map(|path| HdrLog::create(path, names, job.duration_s)).transpose()?;
        let (duration_s, failure) = (job.duration_s, None);
        Ok(Live {
            listener,
            reader: None,
            log,
            witness,
            failure,
            duration_s,
            operations: 0,
            errors: 0,
            last: None,
        })
    }

    /// The run begins: its measured part will at `measured_unix_s`.
    pub fn begin(&mut self, measured_unix_s: f64) {
        if let Some(log) = &mut self.log {
            self.failure = log.begin(measured_unix_s).err();
        }
    }

    /// Takes note of a second that is over.
    pub fn second(&mut self, second: &Second, latencies: &SecondLatencies, watch: &mut Watch<'_>) {
        self.operations += second.operations;
        self.errors += second.errors;
        // What was under way at the end is acknowledged, but no second of the run.
        if second.second as f64 >= self.duration_s {
            return;
        }
        if let (Some(log), None) = (&mut self.log, &self.failure) {
            self.failure = log.second(second.second, latencies).err();
        }
        if let Some(on_second) = &mut watch.on_second {
            on_second(&second.to_json());
        }
        if let (Some(witness), None) = (&mut self.witness, &self.failure) {
            self.failure = witness.second(second.second, second.errors, &latencies.all).err();
        }
        self.last = Some(second.clone());
    }

    /// Answers one who has asked for metrics. It waits neither for one to come nor for one to ask, because who oversees
    /// the run has more to do. One at a time.
    pub fn serve(&mut self) {
        let Some(listener) = &self.listener else { return };
        if self.reader.is_none() {
            let taken =
                listener.accept().and_then(|(stream, _)| stream.set_nonblocking(true).map(|()| stream));
            self.reader = taken.ok().map(|stream| Reader { stream, since: Instant::now() });
        }
        let Some(Reader { stream, since }) = &mut self.reader else { return };
        // Whatever was asked for, there is only one thing to be had.
        match stream.read(&mut [0; 4096]) {
            Err(error) if is_pause(&error) && since.elapsed() < READER_PATIENCE => return,
            Err(_) => {}
            Ok(_) => {
                let answer = answer(&self.metrics());
                // It fits into the buffer of a new connection, and one who goes away too early is no concern of the run.
                let _ = self.reader.as_mut().map(|reader| reader.stream.write_all(answer.as_bytes()));
            }
        }
        self.reader = None;
    }

    fn metrics(&self) -> String {
        let mut text = format!(
            "# TYPE dyno_operations counter\ndyno_operations_total {}\n\
             # TYPE dyno_errors counter\ndyno_errors_total {}\n",
            self.operations, self.errors
        );
        if let Some(second) = &self.last {
            text += &format!(
                "# TYPE dyno_throughput_per_second gauge\ndyno_throughput_per_second {}\n\
                 # TYPE dyno_latency_seconds gauge\n# UNIT dyno_latency_seconds seconds\n\
                 dyno_latency_seconds{{quantile=\"0.5\"}} {}\n\
                 dyno_latency_seconds{{quantile=\"0.99\"}} {}\n\
                 dyno_latency_seconds{{quantile=\"1\"}} {}\n",
                second.operations,
                second.p50_us / 1e6,
                second.p99_us / 1e6,
                second.max_us / 1e6
            );
        }
        text + "# EOF\n"
    }

    /// What has gone wrong with following the run.
    pub fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    /// An error of following the run.
    pub fn finish(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Tells whoever followed the run what came of it.
    pub fn end(self, total: &Total) -> Result<()> {
        let Some(mut witness) = self.witness else { return Ok(()) };
        witness.end(&Ended {
            duration_s: total.duration_s,
            operations: total.operations(),
            errors: total.errors.values().sum(),
            latencies_ns: &total.latencies(),
        })
    }
}

fn listen(port: u16) -> Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|error| {
        Error::user(format!("metrics_port {port}: {error}")).hint("name a port of this machine that is free")
    })
}

fn is_pause(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn answer(metrics: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{metrics}",
        metrics.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live() -> (Live, u16) {
        let job = Job::parse(r#"{"url": "mysql://h/x", "workload": "tpcb"}"#).unwrap();
        let live = Live { listener: Some(listen(0).unwrap()), ..Live::new(&job, &[], None).unwrap() };
        let port = live.listener.as_ref().unwrap().local_addr().unwrap().port();
        (live, port)
    }

    fn serve_the_reader(live: &mut Live) {
        live.serve();
        while live.reader.is_some() {
            live.serve();
        }
    }

    #[test]
    fn a_reader_who_keeps_silent_is_not_waited_for() {
        let (mut live, port) = live();
        let mut reader = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        // Were it waited for, it could not ask: it is this thread that asks later.
        live.serve();
        reader.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        serve_the_reader(&mut live);
        let mut answer = String::new();
        reader.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("# EOF\n"), "{answer:?}");
    }

    #[test]
    fn one_who_has_gone_makes_room_for_the_next() {
        let (mut live, port) = live();
        let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        drop(connect());
        serve_the_reader(&mut live);
        let _silent = connect();
        live.serve();
        assert!(live.reader.is_some());
    }
}
