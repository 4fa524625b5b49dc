//! How long statements took, by their kind: counted only where a job asks for it.

use super::digest::digest;
use super::histogram::{as_text, latency_us, Latencies, LATENCY_NS_MAX};
use super::recorder::Phases;
use super::tally::Statement;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Kinds that a thread tells apart. A script that puts other names into each text has no end of them.
const KINDS_MAX: usize = 200;
const OTHERS: &str = "other statements";
/// Kinds are many, and so are the threads of an embedded engine: a histogram of theirs has 36 kB.
const SIGNIFICANT_DIGITS: u8 = 2;

/// What one thread has counted of statements, and in the end all threads.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Statements {
    #[serde(skip)]
    phases: Phases,
    kinds: Vec<Kind>,
    #[serde(skip)]
    by_digest: HashMap<String, usize>,
    /// Room for the digest of a statement that is looked up.
    #[serde(skip)]
    digest: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Kind {
    digest: String,
    #[serde(with = "as_text")]
    latencies: Latencies,
    errors: u64,
}

impl Statements {
    /// Counts, from now on, what begins in the measured part of these.
    pub fn begin(&mut self, phases: Phases) {
        self.phases = phases;
    }

    /// The number of the kind that a statement is of; `escaped_texts` as `digest` takes it.
    pub fn kind(&mut self, sql: &str, escaped_texts: bool) -> usize {
        let mut text = std::mem::take(&mut self.digest);
        digest(sql, escaped_texts, &mut text);
        let number = self.numbered(&text);
        self.digest = text;
        number
    }

    /// Counts a statement that was sent at `from_ns` and answered at `now_ns`, well or not; or given up then.
    #[inline]
    pub fn answered(&mut self, kind: usize, from_ns: u64, now_ns: u64, well: bool) {
        if self.phases.is_measured(from_ns) {
            let kind = &mut self.kinds[kind];
            kind.latencies.saturating_record(now_ns.saturating_sub(from_ns).max(1));
            kind.errors += u64::from(!well);
        }
    }

    /// Adds what another thread has counted.
    pub fn merge(&mut self, other: &Statements) {
        for theirs in &other.kinds {
            let number = self.numbered(&theirs.digest);
            let ours = &mut self.kinds[number];
            ours.latencies += &theirs.latencies;
            ours.errors += theirs.errors;
        }
    }

    /// The figures of each kind that was met in the measured part, that with the most time first.
    pub fn figures(&self) -> Vec<(String, Statement)> {
        let met = self.kinds.iter().filter(|kind| !kind.latencies.is_empty());
        let mut figures: Vec<_> = met
            .map(|kind| {
                let latency_us = latency_us(&kind.latencies);
                (kind.digest.clone(), Statement { errors: kind.errors, latency_us })
            })
            .collect();
        figures.sort_by(|left, right| right.1.latency_us.sum.total_cmp(&left.1.latency_us.sum));
        figures
    }

    fn numbered(&mut self, digest: &str) -> usize {
        let known = self.by_digest.get(digest).copied();
        known.unwrap_or_else(|| match self.kinds.len() < KINDS_MAX {
            true => self.add(digest),
            false => self.by_digest.get(OTHERS).copied().unwrap_or_else(|| self.add(OTHERS)),
        })
    }

    fn add(&mut self, digest: &str) -> usize {
        let latencies = Latencies::new_with_bounds(1, LATENCY_NS_MAX, SIGNIFICANT_DIGITS)
            .expect("constant bounds that are valid");
        self.kinds.push(Kind { digest: digest.to_owned(), latencies, errors: 0 });
        self.by_digest.insert(digest.to_owned(), self.kinds.len() - 1);
        self.kinds.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHASES: Phases =
        Phases { start_ns: 0, measured_ns: 1_000, end_ns: 9_000, shown_ns: 0, before_ns: 0, more: false };

    /// Counts statements: their text, when each was sent and answered, and whether well.
    fn counted(all: &[(&str, u64, u64, bool)]) -> Statements {
        let mut statements = Statements::default();
        statements.begin(PHASES);
        for &(sql, from_ns, now_ns, well) in all {
            let kind = statements.kind(sql, false);
            statements.answered(kind, from_ns, now_ns, well);
        }
        statements
    }

    /// Of each kind: its text, how many, the longest in microseconds, and how many failed.
    fn shown(statements: &Statements) -> Vec<(String, u64, f64, u64)> {
        let all = statements.figures().into_iter();
        all.map(|(text, one)| (text, one.latency_us.count, one.latency_us.max.unwrap().floor(), one.errors))
            .collect()
    }

    #[test]
    fn what_begins_in_the_measured_part_counts_by_its_kind() {
        let statements = counted(&[
            ("SELECT 1", 999, 2_000, true),
            ("SELECT 2", 1_000, 3_000, true),
            ("SELECT 3", 8_999, 12_999, false),
            ("COMMIT", 9_000, 9_500, true),
            ("BEGIN", 1_000, 31_000, true),
        ]);
        assert_eq!(
            shown(&statements),
            [("BEGIN".to_owned(), 1, 30.0, 0), ("SELECT ?".to_owned(), 2, 4.0, 1)]
        );
    }

    #[test]
    fn nothing_counts_before_the_run_begins() {
        let mut statements = Statements::default();
        let kind = statements.kind("SELECT 1", false);
        statements.answered(kind, 1_000, 2_000, true);
        assert!(statements.figures().is_empty());
    }

    #[test]
    fn threads_that_met_kinds_in_another_order_are_added_up() {
        let mut all = counted(&[("SELECT 1", 1_000, 2_000, true), ("COMMIT", 2_000, 2_500, false)]);
        all.merge(&counted(&[("COMMIT", 1_000, 6_000, false), ("SELECT 1", 1_000, 2_000, true)]));
        all.merge(&Statements::default());
        assert_eq!(shown(&all), [("COMMIT".to_owned(), 2, 5.0, 2), ("SELECT ?".to_owned(), 2, 1.0, 0)]);
    }

    #[test]
    fn beyond_the_most_kinds_all_others_are_one() {
        let texts: Vec<String> = ('a'..='z')
            .flat_map(|first| ('a'..='j').map(move |second| format!("SELECT {first}{second}")))
            .collect();
        let all: Vec<_> = texts.iter().map(|text| (text.as_str(), 1_000, 2_000, true)).collect();
        let figures = shown(&counted(&all));
        assert_eq!(figures.len(), KINDS_MAX + 1);
        let others = figures.iter().find(|(text, ..)| text == OTHERS).unwrap();
        assert_eq!(others.1, (texts.len() - KINDS_MAX) as u64);
    }
}
