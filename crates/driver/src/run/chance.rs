//! Chance on the simulated clock: whatever a server answers, however late, each transaction is counted once.

use super::stall::{simulated, simulated_over, DRAWN};
use super::stalling::{Lot, Stalling, LOT};
use crate::count::total::Total;
use crate::error::{Error, Fate};
use crate::random::Random;
use std::cell::RefCell;

const SEEDS: u64 = 300;
const PER_MILLE: u64 = 1000;

thread_local! {
    /// The server of this thread's sessions.
    static SERVER: RefCell<Option<Server>> = const { RefCell::new(None) };
}

/// A server that fails, goes away and is late as often as a seed says.
struct Server {
    random: Random,
    /// Of a thousand transactions.
    failed: u64,
    retried: u64,
    lost: u64,
    late: u64,
    /// How late at most.
    late_ns: u64,
    /// How many transactions took effect.
    effects: u64,
}

impl Server {
    fn of(seed: u64) -> Self {
        let mut random = Random::new(seed, 0);
        let late_ns = [1_000_000, 100_000_000, 20_000_000_000][random.below(3) as usize];
        let mut odds = |most| random.below(most);
        let (failed, retried, lost, late) = (odds(100), odds(100), odds(20), odds(200));
        Server { failed, retried, lost, late, late_ns, effects: 0, random }
    }

    fn happens(&mut self, per_mille: u64) -> bool {
        self.random.below(PER_MILLE) < per_mille
    }

    fn lot(&mut self) -> Lot {
        let late_ns = if self.happens(self.late) { self.random.below(self.late_ns) } else { 0 };
        let error = if self.happens(self.failed) {
            Some(Error::server("1062 duplicate key", Fate::Failed, "it is there"))
        } else if self.happens(self.retried) {
            Some(Error::server("1213 deadlock", Fate::Retry, "another one was first"))
        } else if self.happens(self.lost) {
            Some(Error::lost("connection closed", "the server went away"))
        } else {
            None
        };
        // What is lost with its connection took effect, or did not.
        let may = error.as_ref().is_some_and(|error| error.fate() == Fate::Lost);
        self.effects += u64::from(error.is_none() || (may && self.happens(PER_MILLE / 2)));
        (late_ns, error)
    }
}

/// What a run came to, how often a transaction was tried, and how many took effect.
fn by_chance(seed: u64, keys: &str) -> (Total, u64, u64) {
    SERVER.set(Some(Server::of(seed)));
    DRAWN.take();
    LOT.set(|| SERVER.with_borrow_mut(|server| server.as_mut().unwrap().lot()));
    let clients = 1 + seed % 7;
    let reconnect = seed % 3 > 0;
    let keys = format!(r#""clients": {clients}, "reconnect": {reconnect}, "seed": {seed}, {keys}"#);
    // Those of every other seed are polled by their clients themselves.
    let total = match seed % 2 {
        0 => simulated(&keys),
        _ => simulated_over::<Stalling, false>(&keys),
    };
    LOT.set(|| (0, None));
    let server = SERVER.take().unwrap();
    (total, DRAWN.take().len() as u64, server.effects)
}

fn acknowledged(total: &Total) -> u64 {
    total.by_transaction.iter().map(|kind| kind.acknowledged).sum()
}

#[test]
fn each_transaction_that_begins_is_counted_once() {
    for seed in 0..SEEDS {
        let (total, tries, effects) = by_chance(seed, r#""duration_s": 0.4"#);
        let (begun, told) = (tries - total.retries, acknowledged(&total));
        assert_eq!(begun, told + total.unknown + total.failed.len(), "seed {seed}: what clients know");
        let done = total.operations();
        assert_eq!(begun, done + total.unfinished + total.failed.len(), "seed {seed}: what was measured");
        assert_eq!(total.latencies().len(), begun - total.failed.len(), "seed {seed}: latencies");
        assert!((told..=told + total.unknown).contains(&effects), "seed {seed}: {effects} of {told}");
    }
}

#[test]
fn arrivals_that_nobody_takes_are_counted_beside_those_that_begin() {
    for seed in 0..SEEDS {
        let load =
            r#""duration_s": 0.4, "load": {"kind": "open", "rate_per_s": 2000, "arrivals": "poisson"}"#;
        let (total, tries, effects) = by_chance(seed, load);
        let (begun, told) = (tries - total.retries, acknowledged(&total));
        assert_eq!(begun, told + total.unknown + total.failed.len(), "seed {seed}: what clients know");
        let offered = total.open_loop.unwrap().offered;
        let counted = total.operations() + total.unfinished + total.failed.len();
        assert_eq!(offered, counted, "seed {seed}: what was due");
        assert!((told..=told + total.unknown).contains(&effects), "seed {seed}: {effects} of {told}");
    }
}

#[test]
fn the_slices_of_a_load_sum_up_to_it() {
    for seed in 0..SEEDS {
        let slices = 2 + 2 * (seed % 3);
        let keys = format!(r#""warmup_s": 0.1, "duration_s": 0.4, "settle_s": 0.01, "slices": {slices}"#);
        let (total, _, effects) = by_chance(seed, &keys);
        let sum: u64 = total.slices.iter().map(|slice| slice.operations).sum();
        assert_eq!(sum, total.operations(), "seed {seed}: {:?}", total.slices);
        let told = acknowledged(&total);
        assert!((told..=told + total.unknown).contains(&effects), "seed {seed}: {effects} of {told}");
    }
}

/// Another transaction is always in the way. Its clients must not press on for ever, nor as fast as they can.
#[test]
fn what_never_succeeds_is_given_up_and_counted() {
    DRAWN.take();
    LOT.set(|| (0, Some(Error::server("1213 deadlock", Fate::Retry, "another one was first"))));
    let total = simulated(r#""clients": 2, "duration_s": 60"#);
    LOT.set(|| (0, None));
    let tries = DRAWN.take().len() as u64;
    // A hundred tries wait for 92 times 50 ms or so, and for the stalls of the server.
    let begun = total.failed.len();
    assert!((16..=36).contains(&begun), "{begun}");
    assert!((begun - 2) * 100 <= tries && tries <= begun * 100, "{begun}, {tries}");
    assert_eq!((total.retries, total.errors["1213 deadlock"]), (tries - begun, tries - 2));
}
