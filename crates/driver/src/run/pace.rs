//! When transactions start: in closed loop after a think time, in open loop at times that do not depend on the server.
//!
//! An open loop is a point process of rate λ(t). Arrival number i has a cumulative mass m(i): i + 1/2 for uniform
//! arrivals, a sum of i exponentials for Poisson ones. It arrives when Λ(t), the integral of λ, reaches m(i)
//! (inversion; Çinlar, "Introduction to Stochastic Processes", 1975). So every schedule serves both kinds of arrivals.

use crate::error::{Error, Result};
use crate::job::{require_sendable, SECONDS_MAX};
use crate::job::{Arrivals, Load, Schedule, ThinkDistribution, ThinkTime};
use crate::random::Random;
use std::sync::{Arc, Mutex, PoisonError};

const NS_PER_S: f64 = 1e9;
/// Within how many seconds the inversion of a sine must come to rest.
const SINE_PRECISION_S: f64 = 1e-9;

/// A rate over time: λ(t) in 1/s, t in seconds from the start.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    shape: Shape,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    /// Linear between the points; the first rate before them and the last one after them.
    Pieces(Vec<Point>),
    Sine {
        mean: f64,
        amplitude: f64,
        period_s: f64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    at_s: f64,
    rate: f64,
    /// Λ up to here.
    mass: f64,
}

impl Rate {
    /// The rate that a job asks for. A schedule's file is read here.
    pub fn new(rate_per_s: f64, schedule: Option<&Schedule>) -> Result<Self> {
        let points = match schedule {
            None | Some(Schedule::Constant) => vec![(0.0, rate_per_s)],
            Some(Schedule::Steps { steps }) => stairs(rate_per_s, steps),
            Some(Schedule::Ramp { to_per_s, over_s }) => vec![(0.0, rate_per_s), (*over_s, *to_per_s)],
            Some(Schedule::Points { points }) => points.clone(),
            Some(Schedule::File { path }) => points_of_file(path)?,
            Some(Schedule::Sine { amplitude_per_s, period_s }) => {
                let (mean, amplitude, period_s) = (rate_per_s, *amplitude_per_s, *period_s);
                let fits = mean > 0.0 && amplitude.abs() <= mean && period_s > 0.0 && mean.is_finite();
                return if fits {
                    Ok(Rate { shape: Shape::Sine { mean, amplitude, period_s } })
                } else {
                    Err(Error::user(
                        "a sine's amplitude must not exceed rate_per_s, and its period must be positive",
                    ))
                };
            }
        };
        Self::through(&points)
    }

    fn through(points: &[(f64, f64)]) -> Result<Self> {
        let wrong = |what: &str| Err(Error::user(format!("the rate of the open loop: {what}")));
        points.iter().try_for_each(|(_, rate)| require_sendable(*rate))?;
        if points.iter().any(|(at, _)| !(0.0..=SECONDS_MAX).contains(at)) {
            return wrong(&format!("its seconds must be 0 to {SECONDS_MAX}"));
        }
        if points.windows(2).any(|pair| pair[1].0 < pair[0].0) {
            return wrong("the seconds must rise");
        }
        if points.is_empty() {
            return wrong("it has no point");
        }
        if points.iter().all(|(_, rate)| *rate == 0.0) {
            return wrong("it is never above 0");
        }
        let (mut mass, mut before) = (0.0, None::<(f64, f64)>);
        let pieces = points.iter().map(|&(at_s, rate)| {
            mass += match before {
                None => at_s * rate,
                Some((from_s, from)) => (at_s - from_s) * (from + rate) / 2.0,
            };
            before = Some((at_s, rate));
            Point { at_s, rate, mass }
        });
        Ok(Rate { shape: Shape::Pieces(pieces.collect()) })
    }

    /// When the cumulative mass reaches `mass`; infinite if it never does. `hint_s` is a time before that.
    fn when(&self, mass: f64, hint_s: f64) -> f64 {
        match &self.shape {
            Shape::Pieces(points) => when_in_pieces(points, mass),
            Shape::Sine { mean, period_s, .. } => {
                bisect(|at_s| self.mass(at_s), mass, hint_s, mass / mean + period_s)
            }
        }
    }

    /// Λ: how many arrivals are due by then, on average.
    pub fn mass(&self, at_s: f64) -> f64 {
        match &self.shape {
            Shape::Pieces(points) => mass_in_pieces(points, at_s),
            Shape::Sine { mean, amplitude, period_s } => {
                let turn = std::f64::consts::TAU / period_s;
                mean * at_s + amplitude / turn * (1.0 - (turn * at_s).cos())
            }
        }
    }
}

/// Each step holds its rate until the next one: two points at the same time make the jump.
fn stairs(first: f64, steps: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let (mut points, mut rate) = (vec![(0.0, first)], first);
    for &(at_s, next) in steps {
        points.push((at_s, rate));
        points.push((at_s, next));
        rate = next;
    }
    points
}

fn points_of_file(path: &str) -> Result<Vec<(f64, f64)>> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::user(format!("{path}: {error}")).hint("give a file with lines of: second rate")
    })?;
    let mut points = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let mut fields = line.split([',', ' ', '\t', ';']).filter(|field| !field.is_empty()).map(str::parse);
        match (fields.next(), fields.next(), fields.next()) {
            (Some(Ok(at_s)), Some(Ok(rate)), None) => points.push((at_s, rate)),
            _ => {
                return Err(Error::user(format!(
                    "{path}, line {}: {line:?} is no pair of numbers",
                    index + 1
                ))
                .hint("each line has a second and a rate"))
            }
        }
    }
    if points.is_empty() {
        return Err(Error::user(format!("{path} holds no rate")).hint("give lines of: second rate"));
    }
    Ok(points)
}

fn when_in_pieces(points: &[Point], mass: f64) -> f64 {
    let next = points.partition_point(|point| point.mass < mass);
    let Some(before) = next.checked_sub(1).map(|index| points[index]) else {
        // Before the first point its own rate holds.
        return mass / points[0].rate;
    };
    let missing = mass - before.mass;
    match points.get(next) {
        None if before.rate == 0.0 => f64::INFINITY,
        None => before.at_s + missing / before.rate,
        Some(after) => {
            // missing = rate t + slope t^2 / 2, in the form that stays exact when the slope is 0.
            let slope = (after.rate - before.rate) / (after.at_s - before.at_s);
            let root = (before.rate * before.rate + 2.0 * slope * missing).max(0.0).sqrt();
            before.at_s + 2.0 * missing / (before.rate + root)
        }
    }
}

fn mass_in_pieces(points: &[Point], at_s: f64) -> f64 {
    let next = points.partition_point(|point| point.at_s <= at_s);
    let Some(before) = next.checked_sub(1).map(|index| points[index]) else {
        return at_s * points[0].rate;
    };
    let over_s = at_s - before.at_s;
    let slope = points.get(next).map_or(0.0, |after| (after.rate - before.rate) / (after.at_s - before.at_s));
    before.mass + over_s * (before.rate + slope * over_s / 2.0)
}

fn bisect(reached: impl Fn(f64) -> f64, mass: f64, mut low: f64, mut high: f64) -> f64 {
    while high - low > SINE_PRECISION_S {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if reached(middle) < mass {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// A stream of intended start times.
#[derive(Clone, Debug)]
struct Stream {
    rate: Rate,
    /// The share of the whole rate that this stream has.
    share: f64,
    arrivals: Arrivals,
    random: Random,
    mass: f64,
    last_s: f64,
    start_ns: u64,
}

impl Stream {
    fn next_ns(&mut self) -> u64 {
        self.mass += match self.arrivals {
            Arrivals::Uniform => 1.0,
            Arrivals::Poisson => self.random.exponential(),
        };
        self.last_s = self.rate.when(self.mass / self.share, self.last_s);
        let after_ns = (self.last_s * NS_PER_S).min(u64::MAX as f64 / 4.0);
        self.start_ns.saturating_add(after_ns as u64)
    }
}

/// Whose arrivals a thread's clients take.
#[derive(Debug)]
pub enum Pace {
    /// Those of their thread.
    OfThread(Box<OpenPace>),
    /// Those of the run, which all threads share, so that one that blocks delays no arrival that another can take.
    OfAll(Arc<Mutex<OpenPace>>),
}

impl Pace {
    /// `OpenPace::take`.
    pub fn take(&mut self, now_ns: u64) -> Option<u64> {
        match self {
            Pace::OfThread(pace) => pace.take(now_ns),
            Pace::OfAll(pace) => pace.lock().unwrap_or_else(PoisonError::into_inner).take(now_ns),
        }
    }

    pub fn of_thread(self) -> Option<OpenPace> {
        match self {
            Pace::OfThread(pace) => Some(*pace),
            Pace::OfAll(_) => None,
        }
    }
}

/// Arrivals, shared by clients: whoever is free takes the next one. None is ever dropped; one that finds all clients
/// busy is taken late, and its latency counts from its intended start.
#[derive(Clone, Debug)]
pub struct OpenPace {
    taken: Stream,
    taken_count: u64,
    /// The same arrivals again, followed up to the present: how many there should have been by now.
    due: Stream,
    next_due_ns: u64,
    end_ns: u64,
    due_count: u64,
    backlog_max: u64,
    measured_from_ns: u64,
    due_measured: u64,
}

impl OpenPace {
    /// The arrivals of one stream of so many from `start_ns` to `end_ns`; what is due from `measured_from_ns` on is
    /// counted apart.
    pub fn new(
        rate: Rate,
        arrivals: Arrivals,
        seed: u64,
        (thread, threads): (u32, u32),
        (start_ns, measured_from_ns, end_ns): (u64, u64, u64),
    ) -> Self {
        // Uniform streams of several threads are staggered, so that together they are uniform as well.
        let mass = match arrivals {
            Arrivals::Uniform => (f64::from(thread) + 0.5) / f64::from(threads) - 1.0,
            Arrivals::Poisson => 0.0,
        };
        let (share, random) = (1.0 / f64::from(threads), Random::new(seed, u64::MAX - u64::from(thread)));
        let taken = Stream { rate, share, arrivals, random, mass, last_s: 0.0, start_ns };
        let mut due = taken.clone();
        let next_due_ns = due.next_ns();
        OpenPace {
            taken,
            taken_count: 0,
            due,
            next_due_ns,
            end_ns,
            due_count: 0,
            backlog_max: 0,
            measured_from_ns,
            due_measured: 0,
        }
    }

    /// The intended start of the next transaction, or `None` when there is none before the end.
    pub fn take(&mut self, now_ns: u64) -> Option<u64> {
        let intended_ns = self.draw();
        if intended_ns >= self.end_ns {
            return None;
        }
        self.observe(now_ns);
        Some(intended_ns)
    }

    /// When the next arrival is due that nobody has taken; it is taken now.
    fn draw(&mut self) -> u64 {
        self.taken_count += 1;
        self.taken.next_ns()
    }

    /// Counts what was due by now.
    pub fn observe(&mut self, now_ns: u64) {
        while self.next_due_ns <= now_ns && self.next_due_ns < self.end_ns {
            self.due_count += 1;
            self.due_measured += u64::from(self.next_due_ns >= self.measured_from_ns);
            self.next_due_ns = self.due.next_ns();
        }
        self.backlog_max = self.backlog_max.max(self.backlog());
    }

    /// When arrivals were due that no client has taken until `ended_ns`; the pace is over then.
    pub fn untaken(&mut self, ended_ns: u64) -> impl Iterator<Item = u64> + '_ {
        let until_ns = ended_ns.min(self.end_ns);
        std::iter::from_fn(|| Some(self.draw())).take_while(move |due_ns| *due_ns < until_ns)
    }

    /// Arrivals that are due and that no client has taken.
    pub fn backlog(&self) -> u64 {
        self.due_count.saturating_sub(self.taken_count)
    }

    pub fn backlog_max(&self) -> u64 {
        self.backlog_max
    }

    /// Arrivals that were due in the measured part.
    pub fn due_measured(&self) -> u64 {
        self.due_measured
    }
}

/// The think time of a closed loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Think {
    mean_ns: f64,
    exponential: bool,
}

impl Think {
    pub fn new(load: &Load) -> Result<Option<Self>> {
        let (mean_s, exponential) = match load {
            Load::Closed { think_time: Some(ThinkTime::Constant(seconds)) } => (*seconds, false),
            Load::Closed { think_time: Some(ThinkTime::Drawn { mean_s, distribution }) } => {
                (*mean_s, *distribution == ThinkDistribution::Exponential)
            }
            _ => return Ok(None),
        };
        if !(0.0..=86_400.0).contains(&mean_s) {
            return Err(
                Error::user(format!("think_time cannot be {mean_s}")).hint("give seconds, 0 to 86400")
            );
        }
        Ok((mean_s > 0.0).then_some(Think { mean_ns: mean_s * NS_PER_S, exponential }))
    }

    /// How long after the start of the run a client begins: clients that all think equally long would otherwise send at
    /// the same moments for ever.
    pub fn first_ns(&self, client: u32, clients: u32, random: &mut Random) -> u64 {
        if self.exponential {
            return self.draw_ns(random);
        }
        (self.mean_ns * f64::from(client) / f64::from(clients)) as u64
    }

    pub fn draw_ns(&self, random: &mut Random) -> u64 {
        let factor = if self.exponential { random.exponential() } else { 1.0 };
        (self.mean_ns * factor) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(rate: &Rate, arrivals: Arrivals, end_s: f64) -> Vec<f64> {
        let end_ns = (end_s * NS_PER_S) as u64;
        let mut pace = OpenPace::new(rate.clone(), arrivals, 1, (0, 1), (0, 0, end_ns));
        std::iter::from_fn(|| pace.take(0)).map(|ns| ns as f64 / NS_PER_S).collect()
    }

    fn count(times: &[f64], from_s: f64, to_s: f64) -> f64 {
        times.iter().filter(|time| (from_s..to_s).contains(*time)).count() as f64
    }

    #[test]
    fn clients_that_think_equally_long_begin_evenly_spread_over_that_time() {
        let think = |distribution| {
            let think_time = Some(ThinkTime::Drawn { mean_s: 1.0, distribution });
            Think::new(&Load::Closed { think_time }).unwrap().unwrap()
        };
        let mut random = Random::new(1, 1);
        let mut starts = |distribution| {
            [0, 1, 2, 3].map(|client| think(distribution).first_ns(client, 4, &mut random) / 1_000_000)
        };
        assert_eq!(starts(ThinkDistribution::Constant), [0, 250, 500, 750]);
        let drawn = starts(ThinkDistribution::Exponential);
        assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]), "{drawn:?}");
    }

    #[test]
    fn uniform_arrivals_of_a_constant_rate_are_evenly_spaced() {
        let times = times(&Rate::new(100.0, None).unwrap(), Arrivals::Uniform, 1.0);
        assert_eq!(times.len(), 100);
        assert!(times.windows(2).all(|pair| (pair[1] - pair[0] - 0.01).abs() < 1e-8));
    }

    #[test]
    fn uniform_arrivals_of_several_hosts_are_those_of_one() {
        let rate = Rate::new(100.0, None).unwrap();
        // Of two hosts the first has one thread and the second has two.
        let mut all: Vec<u64> = [(0, 2), (1, 4), (3, 4)]
            .into_iter()
            .flat_map(|(stream, streams)| {
                let queue = (stream, streams);
                let mut pace =
                    OpenPace::new(rate.clone(), Arrivals::Uniform, 1, queue, (0, 0, 1_000_000_000));
                std::iter::from_fn(move || pace.take(0)).collect::<Vec<_>>()
            })
            .collect();
        all.sort_unstable();
        let one: Vec<u64> =
            times(&rate, Arrivals::Uniform, 1.0).iter().map(|at_s| (at_s * NS_PER_S) as u64).collect();
        assert_eq!(all.len(), one.len());
        assert!(all.iter().zip(&one).all(|(ours, theirs)| ours.abs_diff(*theirs) <= 2), "{all:?}");
    }

    #[test]
    fn poisson_arrivals_have_as_much_variance_as_mean() {
        let times = times(&Rate::new(1000.0, None).unwrap(), Arrivals::Poisson, 100.0);
        let counts: Vec<f64> =
            (0..1000).map(|i| count(&times, f64::from(i) / 10.0, f64::from(i + 1) / 10.0)).collect();
        let mean = counts.iter().sum::<f64>() / 1000.0;
        let variance = counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 999.0;
        assert!((mean - 100.0).abs() < 1.5, "{mean}");
        assert!((variance / mean - 1.0).abs() < 0.2, "{variance}");
    }

    #[test]
    fn steps_ramp_points_and_sine_offer_what_they_promise() {
        let steps = Schedule::Steps { steps: vec![(1.0, 300.0), (2.0, 0.0), (3.0, 50.0)] };
        let times_of = |schedule| times(&Rate::new(100.0, Some(&schedule)).unwrap(), Arrivals::Uniform, 4.0);
        let stepped = times_of(steps);
        let counts: Vec<f64> = (0..4).map(|s| count(&stepped, f64::from(s), f64::from(s + 1))).collect();
        assert_eq!(counts, [100.0, 300.0, 0.0, 50.0]);
        let ramped = times_of(Schedule::Ramp { to_per_s: 300.0, over_s: 2.0 });
        assert_eq!((count(&ramped, 0.0, 2.0), count(&ramped, 2.0, 4.0)), (400.0, 600.0));
        let waved = times_of(Schedule::Sine { amplitude_per_s: 100.0, period_s: 4.0 });
        let pointed = times_of(Schedule::Points { points: vec![(1.0, 100.0), (3.0, 300.0)] });
        assert_eq!(
            (count(&pointed, 0.0, 1.0), count(&pointed, 1.0, 3.0), count(&pointed, 3.0, 4.0)),
            (100.0, 400.0, 300.0)
        );
        // The integral of the first half period is 200 + 100 * 4 / π = 327.3.
        assert!((count(&waved, 0.0, 2.0) - 327.0).abs() <= 1.0 && (waved.len() as f64 - 400.0).abs() <= 1.0);
    }

    #[test]
    fn what_no_client_takes_is_backlog() {
        let mut pace = OpenPace::new(
            Rate::new(1000.0, None).unwrap(),
            Arrivals::Uniform,
            1,
            (0, 1),
            (0, 500_000_000, 1_000_000_000),
        );
        pace.observe(100_000_000);
        assert_eq!(pace.backlog(), 100);
        assert!((0..100).all(|_| pace.take(100_000_000).is_some()));
        assert_eq!((pace.backlog(), pace.backlog_max()), (0, 100));
        pace.observe(2_000_000_000);
        assert_eq!((pace.backlog(), pace.due_measured()), (900, 500));
    }

    #[test]
    fn a_client_that_blocks_delays_no_arrival_that_another_one_can_take() {
        for arrivals in [Arrivals::Uniform, Arrivals::Poisson] {
            let rate = Rate::new(1000.0, None).unwrap();
            let pace = || OpenPace::new(rate.clone(), arrivals, 1, (0, 1), (0, 0, 1_000_000_000));
            let (mut alone, shared) = (pace(), Arc::new(Mutex::new(pace())));
            let (mut blocked, mut free) = (Pace::OfAll(shared.clone()), Pace::OfAll(shared.clone()));
            let all: Vec<u64> = std::iter::from_fn(|| alone.take(0)).collect();
            let first = blocked.take(0).unwrap();
            let rest: Vec<u64> = std::iter::from_fn(|| free.take(0)).take(500).collect();
            assert_eq!((first, &rest[..]), (all[0], &all[1..501]));
            assert_eq!(blocked.take(1_000_000_000), Some(all[501]));
            let mut shared = shared.lock().unwrap();
            assert_eq!(shared.backlog(), all.len() as u64 - 502);
            assert!(shared.untaken(u64::MAX).eq(all[502..].iter().copied()));
        }
    }

    proptest! {
        #[test]
        fn as_much_is_due_by_a_time_as_it_takes_that_time_to_reach(
            rates in proptest::collection::vec((0.0f64..5.0, 1.0f64..500.0), 1..6), mass in 0.0f64..1000.0,
        ) {
            let mut points = rates;
            points.sort_by(|left, right| left.0.total_cmp(&right.0));
            let wave = Schedule::Sine { amplitude_per_s: 1.0, period_s: 2.0 };
            for rate in [Rate::through(&points).unwrap(), Rate::new(points[0].1, Some(&wave)).unwrap()] {
                let back = rate.mass(rate.when(mass, 0.0));
                prop_assert!((back - mass).abs() < 1e-5, "{} {}", back, mass);
            }
        }

        #[test]
        fn times_never_go_back(
            rates in proptest::collection::vec((0.0f64..5.0, 0.0f64..500.0), 1..6),
            poisson: bool,
        ) {
            let mut points = rates;
            points.sort_by(|left, right| left.0.total_cmp(&right.0));
            prop_assume!(points.iter().any(|(_, rate)| *rate > 0.0));
            let rate = Rate::through(&points).unwrap();
            let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Uniform };
            let times = times(&rate, arrivals, 6.0);
            prop_assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
            prop_assert!(times.iter().all(|time| (0.0..=6.0).contains(time)));
        }

        #[test]
        fn threads_together_offer_the_whole_rate(threads in 1u32..9) {
            let rate = Rate::new(1000.0, None).unwrap();
            let whole: usize = (0..threads)
                .map(|thread| {
                    let mut pace = OpenPace::new(
                        rate.clone(), Arrivals::Uniform, 1, (thread, threads), (0, 0, 1_000_000_000));
                    std::iter::from_fn(|| pace.take(0)).count()
                })
                .sum();
            prop_assert_eq!(whole, 1000);
        }
    }
}
