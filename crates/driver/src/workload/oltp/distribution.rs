//! Which rows are asked for: the distributions of sysbench, with its parameters.

use crate::random::{Random, Zipfian};
use crate::workload::{Options, Typed};

pub(super) const DISTRIBUTION: Typed<&str> = Typed::choice(
    "distribution",
    "uniform",
    &["uniform", "special", "gaussian", "pareto", "zipfian"],
    "how rows are drawn",
);
pub(super) const PARETO_H: Typed<f64> =
    Typed::float("pareto_h", 0.2, 0.001, 0.499, "h of the pareto distribution");
pub(super) const ZIPFIAN_EXPONENT: Typed<f64> =
    Typed::float("zipfian_exponent", 0.8, 0.0, 5.0, "exponent of the zipfian distribution");

/// sysbench's constants of its "special" and "gaussian" distributions.
const UNIFORMS_PER_GAUSSIAN: u64 = 12;
const SPECIAL_PARTS: u64 = 4;
const SPECIAL_BAND_PERCENT: u64 = 1;

/// A distribution over the numbers 1..=n.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Distribution {
    n: u64,
    shape: Shape,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Uniform,
    /// A quarter of the draws gaussian over the whole range, the rest uniform within the 1 % at its centre.
    Special,
    Gaussian,
    Pareto {
        power: f64,
    },
    Zipfian(Zipfian),
}

impl Distribution {
    pub fn new(n: i64, options: &Options) -> Self {
        let n = n.max(1) as u64;
        let shape = match options.text(DISTRIBUTION) {
            "special" => Shape::Special,
            "gaussian" => Shape::Gaussian,
            "pareto" => {
                let h = options.float(PARETO_H);
                Shape::Pareto { power: h.ln() / (1.0 - h).ln() }
            }
            "zipfian" => Shape::Zipfian(Zipfian::new(n, options.float(ZIPFIAN_EXPONENT))),
            _ => Shape::Uniform,
        };
        Distribution { n, shape }
    }

    #[inline]
    pub fn draw(&self, random: &mut Random) -> i64 {
        let n = self.n;
        let from_zero = match &self.shape {
            Shape::Uniform => random.below(n),
            Shape::Gaussian => gaussian(n, random),
            Shape::Special => special(n, random),
            Shape::Pareto { power } => ((n as f64 * random.float().powf(*power)) as u64).min(n - 1),
            Shape::Zipfian(zipfian) => zipfian.draw(random) - 1,
        };
        from_zero as i64 + 1
    }
}

fn gaussian(n: u64, random: &mut Random) -> u64 {
    (0..UNIFORMS_PER_GAUSSIAN).map(|_| random.below(n)).sum::<u64>() / UNIFORMS_PER_GAUSSIAN
}

fn special(n: u64, random: &mut Random) -> u64 {
    let drawn = random.below(n * SPECIAL_PARTS);
    if drawn < n {
        return gaussian(n, random);
    }
    let band = (n * SPECIAL_BAND_PERCENT / 100).max(1);
    (drawn % band + n / 2 - band / 2).min(n - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn distribution(n: u64, shape: Shape) -> Distribution {
        Distribution { n, shape }
    }

    fn shares(distribution: &Distribution, bins: usize) -> Vec<f64> {
        let (mut random, mut counts, draws) = (Random::new(1, 1), vec![0.0; bins], 400_000);
        for _ in 0..draws {
            let drawn = distribution.draw(&mut random) as u64 - 1;
            counts[(drawn * bins as u64 / distribution.n) as usize] += 1.0 / f64::from(draws);
        }
        counts
    }

    fn pareto(h: f64) -> Shape {
        Shape::Pareto { power: h.ln() / (1.0 - h).ln() }
    }

    #[test]
    fn uniform_draws_are_level() {
        let shares = shares(&distribution(1000, Shape::Uniform), 10);
        assert!(shares.iter().all(|share| (share - 0.1).abs() < 0.003), "{shares:?}");
    }

    #[test]
    fn special_draws_gather_in_the_band_at_the_centre() {
        let shares = shares(&distribution(100_000, Shape::Special), 100);
        let centre = shares[49] + shares[50];
        // Three quarters by the band, and some of the gaussian quarter.
        assert!((0.75..0.80).contains(&centre), "{centre}");
        assert!(shares[0] + shares[99] < 1e-3);
    }

    #[test]
    fn pareto_gives_the_first_fifth_four_fifths_of_the_draws() {
        let shares = shares(&distribution(100_000, pareto(0.2)), 5);
        assert!((shares[0] - 0.8).abs() < 0.005, "{shares:?}");
    }

    #[test]
    fn zipf_gives_each_rank_its_weight() {
        for exponent in [0.5, 0.8, 1.0, 1.5] {
            let shares = shares(&distribution(50, Shape::Zipfian(Zipfian::new(50, exponent))), 50);
            let weights: Vec<f64> = (1..=50).map(|rank| f64::from(rank).powf(-exponent)).collect();
            let sum: f64 = weights.iter().sum();
            for (share, weight) in shares.iter().zip(&weights) {
                assert!((share - weight / sum).abs() < 0.004, "{exponent}: {share} {}", weight / sum);
            }
        }
    }

    proptest! {
        #[test]
        fn every_draw_is_a_row(n in 1u64..5_000_000_000, seed: u64) {
            let shapes =
                [Shape::Uniform, Shape::Special, Shape::Gaussian, pareto(0.2), Shape::Zipfian(Zipfian::new(n, 0.8))];
            let mut random = Random::new(seed, 0);
            for shape in shapes {
                let distribution = distribution(n, shape);
                for _ in 0..20 {
                    let drawn = distribution.draw(&mut random);
                    prop_assert!((1..=n as i64).contains(&drawn), "{:?} drew {}", distribution, drawn);
                }
            }
        }
    }
}
