//! What can be seen of a run while it goes on: each second to the caller, an HdrHistogram log, OpenMetrics on loopback.

use crate::error::{Error, Result};
use crate::job::Job;
use crate::tally::{Latencies, Second};
use crate::Watch;
use hdrhistogram::serialization::interval_log::{IntervalLogWriter, IntervalLogWriterBuilder, Tag};
use hdrhistogram::serialization::V2DeflateSerializer;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, SystemTime};

/// A reader of metrics that is slower than this does not get any.
const READER_TIMEOUT: Duration = Duration::from_millis(200);

pub(crate) struct Live {
    listener: Option<TcpListener>,
    log: Option<(String, File)>,
    log_text: Vec<u8>,
    operations: u64,
    errors: u64,
    last: Option<Second>,
}

impl Live {
    pub fn new(job: &Job) -> Result<Self> {
        let listener = job.metrics_port.map(listen).transpose()?;
        let log =
            job.hdr_log.as_ref().map(|path| create(path).map(|file| (path.clone(), file))).transpose()?;
        Ok(Live { listener, log, log_text: Vec::new(), operations: 0, errors: 0, last: None })
    }

    /// Takes note of a second that is over.
    pub fn second(&mut self, second: &Second, latencies: &Latencies, watch: &mut Watch<'_>) {
        self.operations += second.operations;
        self.errors += second.errors;
        if self.log.is_some() && second.second >= 0 {
            self.log_second(second, latencies);
        }
        if let Some(on_second) = &mut watch.on_second {
            on_second(&second.to_json());
        }
        self.last = Some(second.clone());
    }

    /// Puts one interval into the log; it is written at the end, so that no disk is touched while it is measured.
    fn log_second(&mut self, second: &Second, latencies: &Latencies) {
        let mut serializer = V2DeflateSerializer::new();
        let mut lines = Vec::new();
        let start = Duration::from_secs(second.second.unsigned_abs());
        let written = interval_writer(&mut lines, &mut serializer, false).is_some_and(|mut writer| {
            let tag: Option<Tag<'_>> = None;
            writer.write_histogram(latencies, start, Duration::from_secs(1), tag).is_ok()
        });
        if written {
            self.log_text.extend_from_slice(&lines);
        }
    }

    /// Answers those who ask for metrics; never waits for one to come.
    pub fn serve(&mut self) {
        let Some(listener) = &self.listener else { return };
        while let Ok((reader, _)) = listener.accept() {
            // One who goes away too early is no concern of the run.
            let _ = answer(reader, &self.metrics());
        }
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

    /// Writes the log.
    pub fn finish(mut self) -> Result<()> {
        let Some((path, mut file)) = self.log.take() else { return Ok(()) };
        let (mut head, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
        drop(interval_writer(&mut head, &mut serializer, true));
        file.write_all(&head).and_then(|()| file.write_all(&self.log_text)).map_err(|error| {
            Error::user(format!("{path}: {error}")).hint("name a file that can be written as hdr_log")
        })
    }
}

fn interval_writer<'a>(
    out: &'a mut Vec<u8>,
    serializer: &'a mut V2DeflateSerializer,
    head: bool,
) -> Option<IntervalLogWriter<'a, 'a, Vec<u8>, V2DeflateSerializer>> {
    let mut builder = IntervalLogWriterBuilder::new();
    if head {
        builder.add_comment("latencies in nanoseconds; seconds count from the start of the measured part");
        builder.with_start_time(SystemTime::now());
        builder.with_max_value_divisor(1e6);
    }
    builder.begin_log_with(out, serializer).ok()
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

fn create(path: &str) -> Result<File> {
    File::create(path).map_err(|error| {
        Error::user(format!("{path}: {error}")).hint("name a file that can be written as hdr_log")
    })
}

fn answer(mut reader: TcpStream, metrics: &str) -> std::io::Result<()> {
    reader.set_nonblocking(false)?;
    reader.set_read_timeout(Some(READER_TIMEOUT))?;
    reader.set_write_timeout(Some(READER_TIMEOUT))?;
    // Whatever was asked for, there is only one thing to be had.
    let _ = reader.read(&mut [0; 4096])?;
    write!(
        reader,
        "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{metrics}",
        metrics.len()
    )
}
