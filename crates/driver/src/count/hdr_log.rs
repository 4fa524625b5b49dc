//! The interval log of HdrHistogram: one line a second, of all transactions together, and one for each type of them.

use crate::count::histogram::{encoded, Latencies};
use crate::count::series::SecondLatencies;
use crate::error::{Error, Result};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;

const NS_PER_MS: f64 = 1e6;

/// A log in the making. Each second is written when it is over, because a long run's do not fit into memory.
pub(crate) struct HdrLog {
    path: String,
    file: File,
    /// Of the transaction types, as the log's tags.
    tags: Vec<String>,
    duration_s: f64,
    /// Of the second that is being written; kept for its memory.
    lines: String,
}

impl HdrLog {
    /// The file is made at once: a run is not worth its while whose log cannot be kept.
    pub fn create(path: &str, names: &[String], duration_s: f64) -> Result<Self> {
        let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
        // A script's names are the user's, and a tag has neither comma nor blank.
        let tags = names.iter().map(|name| name.replace([',', ' ', '\t', '\r', '\n'], "_")).collect();
        Ok(HdrLog { path: path.to_owned(), file, tags, duration_s, lines: String::new() })
    }

    /// Writes the head of the log of a run whose measured part begins at `measured_unix_s`.
    pub fn begin(&mut self, measured_unix_s: f64) -> Result<()> {
        self.lines = format!(
            "#[Histogram log format version 1.3]\n\
             #latencies in nanoseconds, Interval_Max in milliseconds; tags are transaction types\n\
             #[StartTime: {measured_unix_s:.3} (seconds since epoch)]\n\
             #[MaxValueDivisor: {NS_PER_MS:.1}]\n\
             \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
        );
        self.write()
    }

    /// Puts one second into the log, if it is of the measured part. The interval of all types has no tag.
    pub fn second(&mut self, second: i64, latencies: &SecondLatencies) -> Result<()> {
        let length_s = (self.duration_s - second as f64).min(1.0);
        if second < 0 || length_s <= 0.0 {
            return Ok(());
        }
        self.interval("", second, length_s, &latencies.all)?;
        for (kind, latencies) in latencies.by_kind.iter().enumerate() {
            if !latencies.is_empty() {
                let tag = format!("Tag={},", self.tags[kind]);
                self.interval(&tag, second, length_s, latencies)?;
            }
        }
        self.write()
    }

    fn interval(&mut self, tag: &str, start_s: i64, length_s: f64, latencies: &Latencies) -> Result<()> {
        let (max_ms, histogram) = (latencies.max() as f64 / NS_PER_MS, encoded(latencies)?);
        // Writing to a String cannot fail.
        let _ = writeln!(self.lines, "{tag}{start_s}.000,{length_s:.3},{max_ms:.3},{histogram}");
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let written = self.file.write_all(self.lines.as_bytes());
        self.lines.clear();
        written.map_err(|error| cannot_write(&self.path, &error))
    }
}

fn cannot_write(path: &str, error: &std::io::Error) -> Error {
    Error::user(format!("{path}: {error}")).hint("name a file that can be written as hdr_log")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::histogram::latencies;
    use base64::Engine as _;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use hdrhistogram::serialization::Deserializer;
    use std::time::Duration;

    fn of(values: &[u64]) -> Latencies {
        let mut all = latencies();
        values.iter().for_each(|&value| all.saturating_record(value));
        all
    }

    /// Writes these seconds; what the library reads out of the log: tag, start and length in ms, latencies.
    fn read_back(
        duration_s: f64,
        seconds: &[(i64, SecondLatencies)],
    ) -> Vec<(String, u128, u128, Latencies)> {
        let path = std::env::temp_dir().join(format!("dyno-hdr-{}-{duration_s}.log", std::process::id()));
        let names = ["new order".to_owned(), "payment".to_owned()];
        let mut log = HdrLog::create(path.to_str().unwrap(), &names, duration_s).unwrap();
        log.begin(1_700_000_000.25).unwrap();
        for (second, latencies) in seconds {
            let before = std::fs::metadata(&path).unwrap().len();
            log.second(*second, latencies).unwrap();
            let grown = std::fs::metadata(&path).unwrap().len() > before;
            assert_eq!((grown, log.lines.len()), (*second >= 0 && (*second as f64) < duration_s, 0));
        }
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut intervals = Vec::new();
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            match entry.unwrap() {
                LogEntry::StartTime(start) => assert_eq!(start, Duration::from_millis(1_700_000_000_250)),
                LogEntry::BaseTime(_) => panic!("there is none"),
                LogEntry::Interval(interval) => {
                    let bytes =
                        base64::engine::general_purpose::STANDARD.decode(interval.encoded_histogram());
                    let histogram: Latencies =
                        Deserializer::new().deserialize(&mut &bytes.unwrap()[..]).unwrap();
                    assert!((interval.max() - histogram.max() as f64 / 1e6).abs() < 0.001);
                    let tag = interval.tag().map_or(String::new(), |tag| tag.as_str().to_owned());
                    let (start, length) = (interval.start_timestamp(), interval.duration());
                    intervals.push((tag, start.as_millis(), length.as_millis(), histogram));
                }
            }
        }
        intervals
    }

    #[test]
    fn the_log_holds_the_measured_seconds_by_type() {
        let second = |all: &[u64], by_kind: &[&[u64]]| SecondLatencies {
            all: of(all),
            by_kind: by_kind.iter().map(|values| of(values)).collect(),
        };
        let seconds = [
            (-1, second(&[1], &[&[1], &[]])),
            (0, second(&[1_000, 2_000_000, 3_000], &[&[1_000, 3_000], &[2_000_000]])),
            (1, second(&[5_000], &[&[], &[5_000]])),
            (2, second(&[7_000], &[&[7_000], &[]])),
        ];
        let expected: [(&str, u128, u128, &[u64]); 5] = [
            ("", 0, 1000, &[1_000, 2_000_000, 3_000]),
            ("new_order", 0, 1000, &[1_000, 3_000]),
            ("payment", 0, 1000, &[2_000_000]),
            ("", 1000, 500, &[5_000]),
            ("payment", 1000, 500, &[5_000]),
        ];
        let found = read_back(1.5, &seconds);
        assert_eq!(found.len(), expected.len());
        for ((tag, start, length, histogram), wanted) in found.into_iter().zip(expected) {
            assert_eq!((tag.as_str(), start, length), (wanted.0, wanted.1, wanted.2));
            assert!(histogram == of(wanted.3), "{tag} at {start}");
        }
    }

    #[test]
    fn a_second_in_which_nothing_was_done_is_an_interval_of_nothing() {
        let found = read_back(3.0, &[(0, SecondLatencies { all: of(&[]), by_kind: vec![of(&[]), of(&[])] })]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].0.as_str(), found[0].3.len()), ("", 0));
    }
}
