//! The seconds of all threads, put together while the run goes on.

use crate::count::histogram::{encoded, latencies, Latencies};
use crate::count::recorder::{Borderline, SecondPart, TENTHS};
use crate::count::tally::{FineSeries, Second};
use std::collections::BTreeMap;

#[derive(Default)]
struct Parts {
    threads: u32,
    errors: u64,
    tenths: [u32; TENTHS],
    /// By transaction type: latencies with how often they were seen.
    latencies: Vec<Vec<(u64, u64)>>,
}

/// The latencies of one second, of all threads.
pub(crate) struct SecondLatencies {
    pub all: Latencies,
    /// By transaction type, where that was asked for and there is more than one.
    pub by_kind: Vec<Latencies>,
}

impl SecondLatencies {
    /// `seen` is a list for each transaction type.
    fn fill(&mut self, seen: &[Vec<(u64, u64)>]) {
        self.all.reset();
        self.by_kind.iter_mut().for_each(Latencies::reset);
        for (kind, list) in seen.iter().enumerate() {
            for &(latency_ns, count) in list {
                self.all.saturating_record_n(latency_ns, count);
                if let Some(own) = self.by_kind.get_mut(kind) {
                    own.saturating_record_n(latency_ns, count);
                }
            }
        }
    }
}

/// Collects parts and gives out seconds in order, each once and whole.
pub(crate) struct Series {
    threads: u32,
    /// The second in which each of those that have ended did so.
    ended: Vec<i64>,
    open: BTreeMap<i64, Parts>,
    pub done: Vec<Second>,
    /// By transaction type: the latencies of what began, or was due, in the measured part.
    pub totals: Vec<Latencies>,
    /// Transactions by tenths of the seconds that are done.
    tenths: Vec<[u32; TENTHS]>,
    /// Used for every second anew.
    scratch: SecondLatencies,
    /// The histogram of each second that is done, where that is asked for.
    histograms: Option<Vec<String>>,
}

impl Series {
    /// Of so many threads and transaction types; each second is told by type as well if `by_kind`.
    pub fn new(threads: u32, kinds: usize, by_kind: bool) -> Self {
        let told_apart = if by_kind && kinds > 1 { kinds } else { 0 };
        Series {
            threads,
            ended: Vec::new(),
            totals: vec![latencies(); kinds],
            open: BTreeMap::new(),
            done: Vec::new(),
            tenths: Vec::new(),
            scratch: SecondLatencies { all: latencies(), by_kind: vec![latencies(); told_apart] },
            histograms: None,
        }
    }

    /// The same with the histogram of each second kept, if `whole`.
    pub fn keeping(self, whole: bool) -> Self {
        Series { histograms: whole.then(Vec::new), ..self }
    }

    /// The histograms that were kept, of the seconds up to one; empty where none were.
    pub fn kept_until(&self, last: i64) -> Vec<String> {
        let kept = self.histograms.iter().flatten().zip(&self.done);
        kept.filter(|(_, second)| second.second <= last).map(|(histogram, _)| histogram.clone()).collect()
    }

    /// Takes a part in; where it makes the oldest seconds whole, `whole` is shown each of them with its latencies.
    pub fn add(&mut self, part: SecondPart, mut whole: impl FnMut(&Second, &SecondLatencies)) {
        for one in part.borderline.iter().filter(|one| one.measured) {
            self.totals[one.kind].saturating_record(one.latency_ns);
        }
        self.ended.extend(part.ended);
        if let Some(second) = part.second {
            self.take(second, part);
        }
        // A thread that was stalled skips seconds; one that reports a later second is through with the earlier ones.
        while self.first_is_whole() {
            self.close_first(&mut whole);
        }
    }

    /// Whether no thread has anything more to say of the oldest second.
    fn first_is_whole(&self) -> bool {
        let silent = |second: i64| self.ended.iter().filter(|ended| **ended <= second).count() as u32;
        self.open.iter().any(|(second, parts)| parts.threads + silent(*second) >= self.threads)
    }

    fn take(&mut self, second: i64, mut part: SecondPart) {
        let parts = self.open.entry(second).or_default();
        // The last second of a thread that has ended waits for the others alone.
        parts.threads += u32::from(part.ended.is_none());
        parts.errors += part.errors;
        parts.tenths.iter_mut().zip(part.tenths).for_each(|(all, own)| *all += own);
        parts.latencies.resize_with(self.totals.len(), Vec::new);
        for ((seen, total), own) in parts.latencies.iter_mut().zip(&mut self.totals).zip(&mut part.latencies)
        {
            own.drain(|latency_ns, count| {
                seen.push((latency_ns, count));
                if second >= 0 {
                    total.saturating_record_n(latency_ns, count);
                }
            });
        }
        for &Borderline { kind, latency_ns, .. } in part.borderline.iter().filter(|one| one.shown) {
            parts.latencies[kind].push((latency_ns, 1));
        }
        // The thread may have ended.
        let _ = part.back.send(part.latencies);
    }

    /// Closes what is still open, at the end of the run.
    pub fn finish(&mut self, mut whole: impl FnMut(&Second, &SecondLatencies)) {
        while !self.open.is_empty() {
            self.close_first(&mut whole);
        }
    }

    fn close_first(&mut self, whole: &mut impl FnMut(&Second, &SecondLatencies)) {
        let Some((second, parts)) = self.open.pop_first() else { return };
        self.fill_gap(second);
        self.scratch.fill(&parts.latencies);
        let second = second_of(second, &self.scratch.all, parts.errors);
        if let Some(histograms) = &mut self.histograms {
            histograms.push(encoded(&self.scratch.all).unwrap_or_default());
        }
        whole(&second, &self.scratch);
        self.done.push(second);
        self.tenths.push(parts.tenths);
    }

    /// A second of which no thread reported anything is one in which nothing was done: it is shown as such.
    fn fill_gap(&mut self, next: i64) {
        let Some(last) = self.done.last().map(|second| second.second) else { return };
        self.done.extend((last + 1..next).map(Second::empty));
        if let Some(histograms) = &mut self.histograms {
            histograms.resize(self.done.len(), String::new());
        }
        self.tenths.resize(self.done.len(), [0; TENTHS]);
    }

    /// The transactions of each whole tenth of a second from the beginning of the warm-up to the end of the measured
    /// part: tenths in which nothing ended count as well.
    pub fn fine(&self, warmup_s: f64, duration_s: f64) -> FineSeries {
        let tenths = TENTHS as f64;
        // A tenth is whole although its length has no exact form in binary.
        let (first, end) = (-(warmup_s * tenths + 1e-6).floor(), (duration_s * tenths + 1e-6).floor());
        let begin = self.done.first().map_or(0, |second| second.second) * TENTHS as i64;
        let at = |tenth: i64| {
            usize::try_from(tenth - begin)
                .ok()
                .and_then(|place| self.tenths.as_flattened().get(place))
                .copied()
                .unwrap_or_default()
        };
        FineSeries {
            interval_s: 1.0 / tenths,
            start_s: first / tenths,
            operations: (first as i64..end as i64).map(at).collect(),
        }
    }
}

/// A second in which transactions had these latencies.
pub(crate) fn second_of(second: i64, all: &Latencies, errors: u64) -> Second {
    let us = |ns: u64| ns as f64 / 1000.0;
    Second {
        operations: all.len(),
        errors,
        p50_us: us(all.value_at_percentile(50.0)),
        p99_us: us(all.value_at_percentile(99.0)),
        max_us: us(all.max()),
        ..Second::empty(second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::counters::Counters;
    use std::sync::mpsc::channel;

    fn part_of(second: i64, latencies: &[(u64, u64)]) -> SecondPart {
        let count = latencies.iter().map(|one| one.1).sum::<u64>();
        let counted = |&(latency_ns, count): &(u64, u64)| {
            let mut counters = Counters::default();
            (0..count).for_each(|_| counters.record(latency_ns));
            counters
        };
        SecondPart {
            second: Some(second),
            errors: 0,
            tenths: [0, count as u32, 0, 0, 0, 0, 0, 0, 0, 1],
            latencies: latencies.iter().map(counted).collect(),
            borderline: Vec::new(),
            ended: None,
            back: channel().0,
        }
    }

    fn part(second: i64, count: u64) -> SecondPart {
        part_of(second, &[(1000, count)])
    }

    #[test]
    fn a_thread_that_has_ended_is_not_waited_for() {
        let (mut series, mut told) = (Series::new(2, 1, false), Vec::new());
        let ended = |second| SecondPart { ended: Some(second), ..part(second, 1) };
        for one in [part(0, 1), part(1, 1), ended(2), part(0, 1), part(1, 1), part(2, 1), part(3, 1)] {
            series.add(one, |second, _| told.push((second.second, second.operations)));
        }
        assert_eq!(told, [(0, 2), (1, 2), (2, 2), (3, 1)]);
        assert!(series.open.is_empty());
    }

    #[test]
    fn transaction_types_are_told_apart_where_that_is_asked_for() {
        for (by_kind, expected) in [(true, vec![3, 4]), (false, vec![])] {
            let (mut series, mut seen) = (Series::new(2, 2, by_kind), Vec::new());
            for latencies in [[(10, 1), (10, 0)], [(10, 2), (500, 4)]] {
                series.add(part_of(0, &latencies), |_, latencies| {
                    let by_kind: Vec<_> = latencies.by_kind.iter().map(Latencies::len).collect();
                    seen.push((latencies.all.len(), by_kind));
                });
            }
            assert_eq!(seen, [(7, expected)]);
            assert_eq!(series.totals.iter().map(Latencies::len).collect::<Vec<_>>(), [3, 4]);
        }
    }

    #[test]
    fn the_warm_up_is_part_of_the_series_alone() {
        let mut series = Series::new(1, 1, false);
        [part(-1, 5), part(0, 6)].into_iter().for_each(|part| series.add(part, |_, _| {}));
        assert_eq!(series.done.iter().map(|one| one.operations).collect::<Vec<_>>(), [5, 6]);
        assert_eq!(series.totals[0].len(), 6);
    }

    #[test]
    fn the_fine_series_has_each_whole_tenth_and_no_gaps() {
        let mut series = Series::new(1, 1, false);
        [part(-1, 5), part(0, 6), part(2, 7)].into_iter().for_each(|part| series.add(part, |_, _| {}));
        let fine = series.fine(1.25, 2.35);
        assert_eq!((fine.interval_s, fine.start_s), (0.1, -1.2));
        let mut expected = vec![0; 2 + 33];
        for (place, count) in [(3, 5), (11, 1), (13, 6), (21, 1), (33, 7)] {
            expected[place] = count;
        }
        assert_eq!(fine.operations, expected);
        assert_eq!(Series::new(1, 1, false).fine(0.0, 0.3).operations, [0, 0, 0]);
    }

    #[test]
    fn a_second_is_given_out_when_all_threads_are_through_with_it() {
        let (mut series, mut seen) = (Series::new(2, 1, false), Vec::new());
        for part in [part(0, 1), part(1, 2), part(0, 3), part(1, 4), part(4, 1)] {
            series.add(part, |second, _| seen.push((second.second, second.operations)));
        }
        assert_eq!(seen, [(0, 4), (1, 6)]);
        series.finish(|second, _| seen.push((second.second, second.operations)));
        assert_eq!(seen, [(0, 4), (1, 6), (4, 1)]);
        assert!(series.scratch.by_kind.is_empty());
        assert_eq!(series.done.iter().map(|second| second.operations).collect::<Vec<_>>(), [4, 6, 0, 0, 1]);
    }
}
