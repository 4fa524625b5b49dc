//! Counting, on the path of every operation: one recorder per thread, so nothing is shared and nothing locks.

use crate::count::counters::Counters;
use crate::count::histogram::{latencies, Latencies};
use crate::count::recall::Recalls;
use crate::count::replayed::Replayed;
use crate::count::tally::ByClient;
use crate::error::Error;
use std::collections::BTreeMap;
use std::sync::mpsc::{channel, Receiver, Sender};

const NS_PER_S: u64 = 1_000_000_000;
pub(crate) const TENTHS: usize = 10;

/// The times that divide a run, of `clock::now_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phases {
    pub start_ns: u64,
    pub measured_ns: u64,
    pub end_ns: u64,
    /// From when on the series shows what happens: all of a warm-up, nothing of how a slice settles.
    pub shown_ns: u64,
    /// How much was measured in the slices before.
    pub before_ns: u64,
    /// Another slice follows: transactions under way at the end are finished, and then all wait.
    pub more: bool,
}

impl Phases {
    pub fn is_measured(&self, time_ns: u64) -> bool {
        (self.measured_ns..self.end_ns).contains(&time_ns)
    }

    /// How much of the time from `began_ns` to `now_ns` lies in the measured part: 0 to 1.
    fn share(&self, began_ns: u64, now_ns: u64) -> f64 {
        let inside_ns = now_ns.min(self.end_ns).saturating_sub(began_ns.max(self.measured_ns));
        match now_ns.saturating_sub(began_ns) {
            0 => f64::from(u8::from(self.is_measured(now_ns))),
            all_ns => inside_ns as f64 / all_ns as f64,
        }
    }

    fn is_shown(&self, time_ns: u64) -> bool {
        time_ns >= self.shown_ns && (time_ns < self.end_ns || !self.more)
    }

    /// The number of the second that a time falls in: negative during the warm-up. The last one of the measured part
    /// ends with it, be it shorter than the others.
    pub fn second(&self, time_ns: u64) -> i64 {
        let zero_ns = self.measured_ns as i64 - self.before_ns as i64;
        let second = |time_ns: u64| (time_ns as i64 - zero_ns).div_euclid(NS_PER_S as i64);
        match time_ns < self.end_ns {
            true => second(time_ns),
            false if self.more => second(self.end_ns),
            false => second(time_ns).max(second(self.end_ns - 1) + 1),
        }
    }

    /// In which tenth of its second a time falls.
    fn tenth(&self, time_ns: u64) -> usize {
        self.since_second_ns(time_ns) as usize / (NS_PER_S as usize / TENTHS)
    }

    /// From a time to the end of its tenth.
    fn left_of_tenth_ns(&self, time_ns: u64) -> u64 {
        const TENTH_NS: u64 = NS_PER_S / TENTHS as u64;
        TENTH_NS - self.since_second_ns(time_ns) % TENTH_NS
    }

    fn since_second_ns(&self, time_ns: u64) -> u64 {
        let zero_ns = self.measured_ns as i64 - self.before_ns as i64;
        (time_ns as i64 - zero_ns).rem_euclid(NS_PER_S as i64) as u64
    }
}

/// One second of one thread, on its way to the thread that puts the run together.
#[derive(Debug)]
pub(crate) struct SecondPart {
    /// `None` where nothing of it belongs into the series.
    pub second: Option<i64>,
    pub errors: u64,
    /// Transactions by the tenth of the second in which they ended.
    pub tenths: [u32; TENTHS],
    /// By transaction type. In a second of the measured part they belong to its latencies and to the series, in one of
    /// the warm-up to the series alone.
    pub latencies: Vec<Counters>,
    /// Those that belong to one of the two alone.
    pub borderline: Vec<Borderline>,
    /// In which second the thread has ended, if it has: it sends no other part.
    pub ended: Option<i64>,
    /// Where the emptied counters go, because the thread uses them again.
    pub back: Sender<Vec<Counters>>,
}

/// The latency of a transaction on a border of the measured part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Borderline {
    pub kind: usize,
    pub latency_ns: u64,
    /// It began, or was due, in the measured part.
    pub measured: bool,
    /// The series shows it.
    pub shown: bool,
}

/// What a thread has counted.
pub(crate) struct Recorder {
    phases: Phases,
    /// By transaction type: how many ended well within the measured part.
    pub operations: Vec<u64>,
    /// By transaction type: what the shares of those over a border of the measured part come to beyond `operations`.
    pub over_borders: Vec<f64>,
    /// How long it took until what began, or was due, in the measured part had failed for good.
    pub failed_latencies: Option<Box<Latencies>>,
    /// How long arrivals that no client ever took had waited at the end. Their types were never drawn.
    pub untaken: Option<Box<Latencies>>,
    /// Of those of the measured part, what was not done when it ended.
    pub unfinished: u64,
    /// By transaction type, warm-up included.
    pub acknowledged: Vec<u64>,
    /// Of the measured part, as `retries` and `rollbacks` are.
    pub errors: BTreeMap<String, u64>,
    /// What the first error of each label said.
    pub error_examples: BTreeMap<String, String>,
    pub retries: u64,
    pub rollbacks: u64,
    pub unknown: u64,
    /// Clients that stopped because their connection was lost.
    pub clients_lost: u32,
    /// The fewest and the most that a client did in the measured part.
    pub by_client: Option<ByClient>,
    pub rows_read: u64,
    /// Of the measured part only.
    pub recalls: Recalls,
    /// Of a recording that is played; made with its first session.
    pub replayed: Option<Box<Replayed>>,
    /// Transactions that have begun and of which nothing is known yet.
    pub in_flight: u64,
    /// When the last transaction ended, well or not.
    pub last_ended_ns: u64,
    second: i64,
    second_ends_ns: u64,
    second_errors: u64,
    second_tenths: [u32; TENTHS],
    /// The tenth in which a transaction ended last, and when it is over: 0 where that has to be found anew.
    tenth: usize,
    tenth_ends_ns: u64,
    /// By transaction type.
    second_latencies: Vec<Counters>,
    borderline: Vec<Borderline>,
    seconds: Sender<SecondPart>,
    /// Emptied counters come back here.
    emptied: Receiver<Vec<Counters>>,
    back: Sender<Vec<Counters>>,
}

impl Recorder {
    /// Counts `kinds` transaction types, and sends each second on its way when it is over.
    pub fn new(kinds: usize, phases: Phases, seconds: Sender<SecondPart>) -> Self {
        let second = phases.second(phases.start_ns);
        let (back, emptied) = channel();
        Recorder {
            phases,
            operations: vec![0; kinds],
            over_borders: vec![0.0; kinds],
            failed_latencies: None,
            untaken: None,
            unfinished: 0,
            acknowledged: vec![0; kinds],
            errors: BTreeMap::new(),
            error_examples: BTreeMap::new(),
            retries: 0,
            rollbacks: 0,
            unknown: 0,
            clients_lost: 0,
            by_client: None,
            rows_read: 0,
            recalls: Recalls::default(),
            replayed: None,
            in_flight: 0,
            last_ended_ns: 0,
            second,
            second_ends_ns: end_of(second, phases),
            second_errors: 0,
            second_tenths: [0; TENTHS],
            tenth: 0,
            tenth_ends_ns: 0,
            second_latencies: counters(kinds),
            borderline: Vec::new(),
            seconds,
            emptied,
            back,
        }
    }

    /// Counts a transaction that succeeded; its latency runs from `from_ns` to `now_ns`. It belongs to the moment from
    /// which it counts: one that a stall carries beyond the end is the one that must not be missed.
    ///
    /// Its client was busy with it from `began_ns` on, which is not before `from_ns`. Gives the share of that time that
    /// lies in the measured part. Rates are sums of shares, because whole transactions in a window of fixed phase are
    /// always too many or too few by the same part of one. A sum of shares is right on average wherever the window
    /// lies, for any stationary traffic (Campbell's formula: F. Baccelli and P. Bremaud, Elements of Queueing Theory,
    /// 2nd edition, 2003, 1.2): clients that differ, long transactions among short ones, pauses. The shares of a client
    /// that is never idle add up to the time over the mean of a transaction, whatever the phase.
    #[inline]
    pub fn done(&mut self, kind: usize, from_ns: u64, began_ns: u64, now_ns: u64) -> f64 {
        self.observe(now_ns);
        let latency_ns = now_ns.saturating_sub(from_ns).max(1);
        self.acknowledged[kind] += 1;
        if from_ns >= self.phases.measured_ns && now_ns < self.phases.end_ns && self.second >= 0 {
            // Nearly always: wholly within the measured part, in the second that is under way.
            self.operations[kind] += 1;
            self.count_tenth(now_ns);
            self.second_latencies[kind].record(latency_ns);
            return 1.0;
        }
        let share = self.phases.share(began_ns, now_ns);
        let operations = u64::from(self.phases.is_measured(now_ns));
        self.operations[kind] += operations;
        self.over_borders[kind] += share - operations as f64;
        self.done_elsewhere(kind, from_ns, now_ns, latency_ns);
        share
    }

    /// Counts the latency of a transaction of the warm-up, or over a border.
    fn done_elsewhere(&mut self, kind: usize, from_ns: u64, now_ns: u64, latency_ns: u64) {
        let (measured, shown) = (self.phases.is_measured(from_ns), self.phases.is_shown(now_ns));
        self.unfinished += u64::from(measured && now_ns >= self.phases.end_ns);
        if shown {
            self.count_tenth(now_ns);
        }
        if shown && measured == (self.second >= 0) {
            self.second_latencies[kind].record(latency_ns);
        } else {
            self.on_the_border(Borderline { kind, latency_ns, measured, shown });
        }
    }

    /// Counts a transaction in its tenth of the second. No division is needed before the tenth is over.
    #[inline]
    fn count_tenth(&mut self, now_ns: u64) {
        if now_ns >= self.tenth_ends_ns {
            self.tenth = self.phases.tenth(now_ns);
            self.tenth_ends_ns = now_ns + self.phases.left_of_tenth_ns(now_ns);
        }
        self.second_tenths[self.tenth] += 1;
    }

    #[cold]
    fn on_the_border(&mut self, one: Borderline) {
        if one.measured || one.shown {
            self.borderline.push(one);
        }
    }

    /// Whether what begins at this time counts.
    #[inline]
    pub fn is_measured(&self, time_ns: u64) -> bool {
        self.phases.is_measured(time_ns)
    }

    /// What was counted of a recording that is played.
    #[inline]
    pub fn replayed(&mut self) -> &mut Replayed {
        self.replayed.get_or_insert_default()
    }

    /// Counts a client that has no more to do, and did so much in the measured part.
    pub fn client_over(&mut self, operations: f64) {
        let own = ByClient { least: operations, most: operations };
        self.by_client = Some(self.by_client.map_or(own, |others| others.with(own)));
    }

    /// Counts a transaction that was given up in mid-flight, or lost with its connection: it took at least until now.
    pub fn given_up(&mut self, kind: usize, from_ns: u64, now_ns: u64) {
        if self.phases.is_measured(from_ns) {
            let latency_ns = now_ns.saturating_sub(from_ns).max(1);
            self.on_the_border(Borderline { kind, latency_ns, measured: true, shown: false });
            self.unfinished += 1;
        }
    }

    /// Counts an arrival that was due and that no client took until the end.
    pub fn never_taken(&mut self, due_ns: u64, ended_ns: u64) {
        if self.phases.is_measured(due_ns) {
            let untaken = self.untaken.get_or_insert_with(|| Box::new(latencies()));
            untaken.saturating_record(ended_ns.saturating_sub(due_ns).max(1));
            self.unfinished += 1;
        }
    }

    /// Counts how good the answer was that came at `now_ns`.
    #[inline]
    pub fn scored(&mut self, recall: f64, now_ns: u64) {
        if self.phases.is_measured(now_ns) {
            self.recalls.add(recall);
        }
    }

    /// Counts a transaction that rolled back on purpose and ended at `now_ns`.
    pub fn rolled_back(&mut self, now_ns: u64) {
        self.rollbacks += u64::from(self.phases.is_measured(now_ns));
    }

    /// Counts an error after which the same transaction is tried again.
    pub fn retried(&mut self, error: &Error, now_ns: u64) {
        self.retries += u64::from(self.phases.is_measured(now_ns));
        self.failed(error, now_ns);
    }

    /// Counts a transaction that failed and is not tried again; it began, or was due, at `from_ns`. Its latency stands
    /// beside those of the others: a server that gives up what takes long would seem to answer sooner.
    pub fn gave_nothing(&mut self, from_ns: u64, now_ns: u64) {
        if self.phases.is_measured(from_ns) {
            let failed = self.failed_latencies.get_or_insert_with(|| Box::new(latencies()));
            failed.saturating_record(now_ns.saturating_sub(from_ns).max(1));
        }
    }

    /// What was done in the measured part: transactions, those over its borders by their shares.
    pub fn work(&self) -> f64 {
        self.operations.iter().sum::<u64>() as f64 + self.over_borders.iter().sum::<f64>()
    }

    /// Counts an error under its label. The series shows those of the warm-up as well.
    pub fn failed(&mut self, error: &Error, now_ns: u64) {
        self.failed_as(error.label(), error, now_ns);
    }

    /// The same under another label.
    pub fn failed_as(&mut self, label: &str, error: &Error, now_ns: u64) {
        self.observe(now_ns);
        self.second_errors += u64::from(self.phases.is_shown(now_ns));
        if !self.phases.is_measured(now_ns) {
            return;
        }
        match self.errors.get_mut(label) {
            Some(count) => *count += 1,
            None => {
                self.errors.insert(label.to_owned(), 1);
                self.error_examples.insert(label.to_owned(), error.message().to_owned());
            }
        }
    }

    /// Closes the seconds that have ended by now.
    #[inline]
    pub fn observe(&mut self, now_ns: u64) {
        if now_ns >= self.second_ends_ns {
            self.close_second(now_ns);
        }
    }

    #[cold]
    fn close_second(&mut self, now_ns: u64) {
        self.send(Some(self.second));
        self.second = self.phases.second(now_ns);
        self.second_ends_ns = end_of(self.second, self.phases);
    }

    /// Sends what was counted since the last time: whoever oversees the run walks over it, and not this thread.
    fn send(&mut self, second: Option<i64>) {
        let part = self.part(second);
        // The receiver is gone only when the run is being given up.
        let _ = self.seconds.send(part);
    }

    fn part(&mut self, second: Option<i64>) -> SecondPart {
        let kinds = self.second_latencies.len();
        let empty = self.emptied.try_recv().unwrap_or_else(|_| counters(kinds));
        SecondPart {
            second,
            errors: std::mem::take(&mut self.second_errors),
            tenths: std::mem::take(&mut self.second_tenths),
            latencies: std::mem::replace(&mut self.second_latencies, empty),
            borderline: std::mem::take(&mut self.borderline),
            ended: None,
            back: self.back.clone(),
        }
    }

    /// The next slice begins; its first second goes on where the slice before it left off.
    pub fn go_on(&mut self, phases: Phases) {
        self.phases = phases;
        self.tenth_ends_ns = 0;
        if phases.second(phases.shown_ns) == self.second {
            self.second_ends_ns = end_of(self.second, phases);
        } else {
            self.close_second(phases.shown_ns);
        }
    }

    /// Closes the last second, unless nothing happened in it, and says that no other comes.
    pub fn finish(&mut self) {
        let happened = self.second_tenths.iter().any(|count| *count > 0) || self.second_errors > 0;
        let part = self.part(happened.then_some(self.second));
        let _ = self.seconds.send(SecondPart { ended: Some(self.second), ..part });
    }
}

fn end_of(second: i64, phases: Phases) -> u64 {
    let zero_ns = phases.measured_ns as i64 - phases.before_ns as i64;
    let end_ns = (zero_ns + (second + 1) * NS_PER_S as i64) as u64;
    if phases.more && end_ns > phases.end_ns {
        return u64::MAX;
    }
    match second <= phases.second(phases.end_ns - 1) {
        true => end_ns.min(phases.end_ns),
        false => end_ns,
    }
}

fn counters(kinds: usize) -> Vec<Counters> {
    std::iter::repeat_with(Counters::default).take(kinds).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::series::{SecondLatencies, Series};
    use crate::count::tally::Second;
    use crate::error::Fate;

    const PHASES: Phases = Phases {
        start_ns: 10 * NS_PER_S,
        measured_ns: 12 * NS_PER_S,
        end_ns: 14 * NS_PER_S,
        shown_ns: 10 * NS_PER_S,
        before_ns: 0,
        more: false,
    };

    fn deadlock() -> Error {
        Error::server("1213 deadlock", Fate::Retry, "a deadlock was found")
    }

    fn duplicate() -> Error {
        Error::server("1062 duplicate", Fate::Failed, "the key is there")
    }

    fn put_together(kinds: usize, parts: &Receiver<SecondPart>) -> Series {
        let mut series = Series::new(1, kinds, false);
        parts.try_iter().for_each(|part| series.add(part, |_, _| {}));
        series.finish(|_, _| {});
        series
    }

    #[test]
    fn what_is_on_a_border_counts_where_it_belongs() {
        let (sender, receiver) = channel();
        let mut recorder = Recorder::new(1, PHASES, sender);
        // Over the beginning of the measured part, within it, over its end, and given up.
        recorder.done(0, PHASES.measured_ns - 5, PHASES.measured_ns - 5, PHASES.measured_ns + 5);
        recorder.done(0, PHASES.measured_ns, PHASES.measured_ns, PHASES.measured_ns + 5);
        recorder.done(0, PHASES.end_ns - 1, PHASES.end_ns - 1, PHASES.end_ns + 5);
        recorder.given_up(0, PHASES.end_ns - 1, PHASES.end_ns + 5);
        recorder.finish();
        let series = put_together(1, &receiver);
        assert_eq!((series.totals[0].len(), recorder.unfinished), (3, 2));
        let seconds: Vec<_> = series.done.iter().map(|one| (one.second, one.operations)).collect();
        assert_eq!(seconds, [(-2, 0), (-1, 0), (0, 2), (1, 0), (2, 1)]);
    }

    /// Of a second each, across the phases' borders in any way.
    #[test]
    fn what_is_over_a_border_counts_by_its_share() {
        let shares = |began: &[f64]| {
            let mut recorder = Recorder::new(1, PHASES, channel().0);
            for begins_s in began {
                let began_ns = (begins_s * NS_PER_S as f64) as u64;
                recorder.done(0, began_ns, began_ns, began_ns + NS_PER_S);
            }
            (recorder.work(), recorder.operations[0])
        };
        // The measured part lasts from 12 s to 14 s. A client that is never idle does two, wherever they end.
        assert_eq!(shares(&[11.0, 12.0, 13.0, 14.0]), (2.0, 2));
        assert_eq!(shares(&[11.25, 12.25, 13.25]), (2.0, 2));
        assert_eq!(shares(&[10.0]), (0.0, 0));
        let mut recorder = Recorder::new(1, PHASES, channel().0);
        // One that all of the measured part waits for, and one that was due before it and began in it.
        recorder.done(0, 10 * NS_PER_S, 10 * NS_PER_S, 18 * NS_PER_S);
        assert_eq!((recorder.work(), recorder.operations[0]), (0.25, 0));
        assert_eq!(recorder.done(0, 11 * NS_PER_S, 12 * NS_PER_S, 13 * NS_PER_S), 1.0);
    }

    #[test]
    fn what_failed_has_latencies_of_its_own() {
        let mut recorder = Recorder::new(1, PHASES, channel().0);
        recorder.gave_nothing(PHASES.start_ns, PHASES.measured_ns + 1);
        assert!(recorder.failed_latencies.is_none(), "it began in the warm-up");
        recorder.gave_nothing(PHASES.measured_ns, PHASES.measured_ns + 1_000);
        recorder.gave_nothing(PHASES.end_ns - 1, PHASES.end_ns + 5_000);
        let failed = recorder.failed_latencies.unwrap();
        assert_eq!((failed.len(), failed.min(), failed.max()), (2, 1_000, 5_003));
    }

    #[test]
    fn what_is_given_up_is_no_second_of_the_series() {
        let (sender, receiver) = channel();
        let mut recorder = Recorder::new(1, PHASES, sender);
        recorder.given_up(0, PHASES.measured_ns, PHASES.measured_ns + 7);
        recorder.finish();
        let series = put_together(1, &receiver);
        assert_eq!((series.totals[0].len(), series.done.len()), (1, 0));
    }

    #[test]
    fn a_thread_uses_emptied_counters_again() {
        let (sender, receiver) = channel();
        let mut recorder = Recorder::new(1, PHASES, sender);
        let mut series = Series::new(1, 1, false);
        let mut allocated = std::collections::BTreeSet::new();
        for second in 10..14 {
            recorder.done(0, 0, 0, second * NS_PER_S + 5);
            allocated.insert(recorder.second_latencies.as_ptr() as usize);
            recorder.observe((second + 1) * NS_PER_S);
            receiver.try_iter().for_each(|part| series.add(part, |_, _| {}));
        }
        assert_eq!(allocated.len(), 2);
    }

    #[test]
    fn only_the_measured_part_counts_but_all_is_acknowledged() {
        let (sender, receiver) = channel();
        let mut recorder = Recorder::new(1, PHASES, sender);
        for second in 10..15 {
            let now_ns = second * NS_PER_S + 500;
            recorder.done(0, now_ns - 100, now_ns - 100, now_ns);
        }
        recorder.failed(&deadlock(), 14 * NS_PER_S + 600);
        recorder.finish();
        assert_eq!(recorder.acknowledged[0], 5);
        assert!(recorder.errors.is_empty());
        let series = put_together(1, &receiver);
        assert_eq!(series.totals[0].len(), 2);
        let seconds: Vec<_> =
            series.done.iter().map(|one| (one.second, one.operations, one.errors, one.max_us)).collect();
        let second = |number, errors| (number, 1, errors, 0.1);
        assert_eq!(seconds, [second(-2, 0), second(-1, 0), second(0, 0), second(1, 0), second(2, 1)]);
    }

    #[test]
    fn transactions_are_counted_by_the_tenth_of_a_second_in_which_they_end() {
        let (sender, receiver) = channel();
        let mut recorder = Recorder::new(1, PHASES, sender);
        for (tenths_ns, count) in [(100, 3), (119, 1), (120, 2), (121, 1), (129, 4)] {
            for _ in 0..count {
                recorder.done(0, 0, 0, tenths_ns * NS_PER_S / 10);
            }
        }
        recorder.finish();
        let tenths: Vec<_> = receiver.try_iter().map(|part| part.tenths).collect();
        assert_eq!(
            tenths,
            [[3, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [2, 1, 0, 0, 0, 0, 0, 0, 0, 4]]
        );
    }

    #[test]
    fn the_fewest_and_the_most_are_of_clients_that_are_over() {
        let mut recorder = Recorder::new(1, PHASES, channel().0);
        assert_eq!(recorder.by_client, None);
        let done = [11, 12, 13, 14].map(|at| recorder.done(0, 0, (at - 1) * NS_PER_S, at * NS_PER_S));
        assert_eq!(done, [0.0, 0.0, 1.0, 1.0]);
        [7.0, 1.5, 9.0].into_iter().for_each(|operations| recorder.client_over(operations));
        assert_eq!(recorder.by_client, Some(ByClient { least: 1.5, most: 9.0 }));
    }

    #[test]
    fn errors_retries_and_roll_backs_count_in_the_measured_part_only() {
        let mut recorder = Recorder::new(1, PHASES, channel().0);
        for now_ns in [PHASES.start_ns, PHASES.measured_ns - 1, PHASES.measured_ns, PHASES.end_ns] {
            recorder.failed(&duplicate(), now_ns);
            recorder.retried(&deadlock(), now_ns);
            recorder.rolled_back(now_ns);
        }
        assert_eq!((recorder.retries, recorder.rollbacks), (1, 1));
        assert_eq!(recorder.errors.into_values().collect::<Vec<_>>(), [1, 1]);
        let examples: Vec<String> = recorder.error_examples.into_values().collect();
        assert_eq!(examples, ["the key is there", "a deadlock was found"]);
    }

    #[test]
    fn a_measured_part_of_no_whole_seconds_has_a_last_second_that_is_short() {
        let phases = Phases { measured_ns: NS_PER_S, end_ns: 2 * NS_PER_S + 500, ..Phases::default() };
        let (sender, receiver) = channel();
        let mut recorder = Recorder::new(2, phases, sender);
        for (kind, now_ns) in [(0, NS_PER_S), (1, phases.end_ns - 1), (0, phases.end_ns), (1, 3 * NS_PER_S)] {
            recorder.done(kind, now_ns - 100, now_ns - 100, now_ns);
        }
        recorder.finish();
        let (mut series, mut seen) = (Series::new(1, 2, true), Vec::new());
        let mut whole = |second: &Second, latencies: &SecondLatencies| {
            seen.push((second.second, latencies.by_kind.iter().map(Latencies::len).collect::<Vec<_>>()));
        };
        receiver.try_iter().for_each(|part| series.add(part, &mut whole));
        series.finish(&mut whole);
        assert_eq!(seen, [(-1, vec![0, 0]), (0, vec![1, 0]), (1, vec![0, 1]), (2, vec![1, 1])]);
        assert_eq!(series.totals.iter().map(Latencies::len).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn a_second_goes_on_in_the_next_slice_and_what_settles_is_not_shown() {
        let (sender, receiver) = channel();
        let slice = |start_ns: u64, before_ns, more| Phases {
            start_ns,
            measured_ns: start_ns + 100,
            end_ns: start_ns + 100 + 6 * NS_PER_S / 10,
            shown_ns: start_ns + 100,
            before_ns,
            more,
        };
        let warmup = Phases { measured_ns: NS_PER_S, end_ns: NS_PER_S, more: true, ..Phases::default() };
        let slices = [slice(5 * NS_PER_S, 0, true), slice(9 * NS_PER_S, 6 * NS_PER_S / 10, false)];
        let mut recorder = Recorder::new(1, warmup, sender);
        recorder.done(0, 5, 5, 500);
        recorder.done(0, 5, 5, NS_PER_S + 5);
        for phases in slices {
            recorder.go_on(phases);
            for now_ns in
                [phases.measured_ns - 1, phases.measured_ns + 1, phases.end_ns - 1, phases.end_ns + 1]
            {
                recorder.done(0, now_ns - 1, now_ns - 1, now_ns);
                recorder.failed(&deadlock(), now_ns);
            }
        }
        recorder.finish();
        let series = put_together(1, &receiver);
        let seconds: Vec<_> =
            series.done.iter().map(|one| (one.second, one.operations, one.errors)).collect();
        assert_eq!(seconds, [(-1, 1, 0), (0, 3, 3), (1, 1, 1), (2, 1, 1)]);
        assert_eq!(series.totals[0].len(), 4, "the last of each slice began in it");
        assert_eq!((recorder.operations[0], recorder.acknowledged[0]), (4, 10));
        assert_eq!(recorder.work(), 4.0);
        assert_eq!(recorder.errors["1213 deadlock"], 4);
    }

    #[test]
    fn a_warm_up_of_no_whole_seconds_has_a_first_second_that_is_short() {
        let phases =
            Phases { start_ns: 500, measured_ns: NS_PER_S, end_ns: 2 * NS_PER_S, ..Phases::default() };
        assert_eq!(phases.second(500), -1);
        assert_eq!(end_of(-1, phases), NS_PER_S);
    }
}
