//! Counting, on the path of every operation: one recorder per thread, so nothing is shared and nothing locks.

use crate::count::counters::Counters;
use crate::count::histogram::{latencies, Latencies};
use crate::count::recall::Recalls;
use crate::count::replayed::Replayed;
use crate::count::tally::ByClient;
use crate::error::{Error, Fate};
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

    /// Counts a transaction that has begun, or was due, at one time and ended with an error at another; a part of it may be
    /// committed all the same where its connection is there to be asked.
    pub fn ended(
        &mut self,
        error: &Error,
        committed: impl FnOnce() -> bool,
        kind: usize,
        (from_ns, now_ns): (u64, u64),
    ) {
        if error.fate() == Fate::Lost {
            self.unknown += 1;
            self.given_up(kind, from_ns, now_ns);
        } else {
            self.gave_nothing(from_ns, now_ns);
            self.unknown += u64::from(committed());
        }
        self.failed(error, now_ns);
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
mod tests;
