//! Rates of slices on the simulated clock: how often the interval over blocks misses the true ratio of two servers. The
//! rates by whole transactions stand beside, because that they miss shows that the simulation could find it.
//!
//! `cargo test --package dyno-driver rates -- --ignored --nocapture` prints the table for many loads.

use super::stall::simulated;
use super::stalling::{LOT, STILL_NS};
use crate::count::tally::Slice;
use crate::random::Random;
use std::cell::RefCell;

const BLOCKS: u32 = 12;
/// Student's quantile of 95 % for 12 blocks.
const QUANTILE: f64 = 2.201;
/// The time of the variant's transactions over that of the baseline's.
const TRUTH: f64 = 0.0204 / 0.0200;
const SLICE_S: f64 = 0.75;

thread_local! {
    static DRAWN: RefCell<(Random, Spread, f64)> = RefCell::new((Random::new(0, 0), Spread::Share(0.0), 0.0));
}

/// How the times of transactions spread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Spread {
    /// Normal, with this standard deviation as a share of the mean.
    Share(f64),
    Exponential,
    /// One in ten takes forty times as long as the others.
    Mixed,
}

impl Spread {
    /// With a mean of 1.
    fn draw(self, random: &mut Random) -> f64 {
        let mut uniform = || (random.below(1 << 53) as f64 + 0.5) / (1u64 << 53) as f64;
        match self {
            Spread::Share(share) => 1.0 + share * ((0..12).map(|_| uniform()).sum::<f64>() - 6.0),
            Spread::Exponential => -uniform().ln(),
            Spread::Mixed if uniform() < 0.1 => 40.0 / 4.9,
            Spread::Mixed => 1.0 / 4.9,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Traffic {
    clients: u32,
    /// Transactions of a client in a slice.
    each: f64,
    spread: Spread,
    slices: u32,
}

/// The rates of a trial whose transactions take `times` as long: by shares, and by whole transactions.
fn trial(traffic: Traffic, times: f64, seed: u64) -> [f64; 2] {
    let Traffic { clients, each, spread, slices } = traffic;
    // What the simulated server takes by itself is part of it.
    let mean_ns = SLICE_S * 1e9 / each * times;
    DRAWN.set((Random::new(seed, 0), spread, mean_ns));
    LOT.set(|| {
        DRAWN.with_borrow_mut(|(random, spread, mean_ns)| {
            ((spread.draw(random) * *mean_ns - 100_000.0).max(0.0) as u64, None)
        })
    });
    STILL_NS.set(0);
    let duration_s = SLICE_S * f64::from(slices);
    let total = simulated(&format!(
        r#""clients": {clients}, "warmup_s": 0.1, "settle_s": 0.1, "duration_s": {duration_s}, "slices": {slices}"#
    ));
    LOT.set(|| (0, None));
    STILL_NS.set(200_000_000);
    let mean = |rate: fn(&Slice) -> f64| total.slices.iter().map(rate).sum::<f64>() / f64::from(slices);
    let rates =
        [mean(|slice| slice.throughput_per_s), mean(|slice| slice.operations as f64 / slice.duration_s)];
    assert!((total.throughput_per_s() / rates[0] - 1.0).abs() < 1e-9, "slices sum up to the load");
    rates
}

/// The middle of the interval and half of it, of the log ratio.
fn interval(logs: &[f64]) -> (f64, f64) {
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, QUANTILE * (variance / count).sqrt())
}

/// Of an estimate: the share of studies whose interval misses the truth, and the mean width.
#[derive(Debug, Default)]
struct Found {
    missed: f64,
    width: f64,
}

/// By shares, and by whole transactions.
fn studies(traffic: Traffic, count: u32) -> [Found; 2] {
    let mut found = [Found::default(), Found::default()];
    let mut seed = 0;
    for _ in 0..count {
        let mut logs = [Vec::new(), Vec::new()];
        for _ in 0..BLOCKS {
            let (base, variant) = (trial(traffic, 1.0, seed), trial(traffic, TRUTH, seed + 1));
            seed += 2;
            for which in 0..2 {
                logs[which].push((variant[which] / base[which]).ln());
            }
        }
        for (one, logs) in found.iter_mut().zip(&logs) {
            let (middle, half) = interval(logs);
            // Of nanoseconds, what is rounded away is a millionth.
            one.missed += f64::from((middle + TRUTH.ln()).abs() > half + 1e-5) / f64::from(count);
            one.width += 2.0 * half / f64::from(count);
        }
    }
    found
}

#[test]
fn the_interval_of_a_ratio_holds_the_truth_however_few_transactions_a_slice_has() {
    let traffic = |each, spread| Traffic { clients: 1, each, spread, slices: 2 };
    let [shares, whole] = studies(traffic(20.0, Spread::Share(0.01)), 40);
    assert!(shares.missed <= 0.15, "{shares:?}");
    assert!(whole.missed >= 0.5, "whole transactions miss, or the simulation shows nothing: {whole:?}");
    for (each, spread) in
        [(20.0, Spread::Share(0.0)), (10.0, Spread::Share(0.1)), (20.0, Spread::Exponential)]
    {
        let [shares, _] = studies(traffic(each, spread), 20);
        assert!(shares.missed <= 0.2, "{each} {spread:?}: {shares:?}");
    }
    let several = Traffic { clients: 8, ..traffic(10.0, Spread::Exponential) };
    let [shares, _] = studies(several, 10);
    assert!(shares.missed <= 0.3, "{shares:?}");
}

#[test]
#[ignore = "prints a table, and takes minutes"]
fn table() {
    println!(
        "clients  transactions  spread            missed, whole  missed, shares  width, whole  width, shares"
    );
    for clients in [1, 8] {
        for each in [10.0, 20.0, 80.0, 1000.0] {
            for spread in [
                Spread::Share(0.0),
                Spread::Share(0.01),
                Spread::Share(0.1),
                Spread::Exponential,
                Spread::Mixed,
            ] {
                let count = if each * f64::from(clients) > 1000.0 { 40 } else { 300 };
                let [shares, whole] = studies(Traffic { clients, each, spread, slices: 2 }, count);
                println!(
                    "{clients:>7}  {each:>12}  {:<16}  {:>11.0} %  {:>12.1} %  {:>10.2} %  {:>11.2} %",
                    format!("{spread:?}"),
                    100.0 * whole.missed,
                    100.0 * shares.missed,
                    100.0 * whole.width,
                    100.0 * shares.width
                );
            }
        }
    }
}
