//! The random numbers of scripts: sysbench's distributions over any range, with its global options.

use super::settings::{within, Settings};
use crate::error::{Error, Result};
use crate::random::{Random, Zipfian};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// No column of a benchmark holds more letters.
const LETTERS_MAX: i64 = 1 << 24;
/// Draws that take less than a millisecond together.
const UNIQUE_DRAWS: u32 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Uniform,
    /// The mean of several uniform draws.
    Gaussian,
    /// A share of the draws uniform within a band at the centre, the others gaussian over the whole range.
    Special,
    Pareto,
    Zipfian,
}

impl Shape {
    pub const ALL: [(&'static str, Shape); 5] = [
        ("uniform", Shape::Uniform),
        ("gaussian", Shape::Gaussian),
        ("special", Shape::Special),
        ("pareto", Shape::Pareto),
        ("zipfian", Shape::Zipfian),
    ];
}

/// The distributions as the options `rand_...` have them.
#[derive(Debug)]
pub(super) struct Distributions {
    /// That of `sysbench.rand.default`.
    pub default: Shape,
    uniforms_per_gaussian: u64,
    band_percent: u64,
    special_percent: u64,
    pareto_power: f64,
    zipf_exponent: f64,
    /// Made for a number of values, and used again while that number stays.
    zipfian: Cell<Zipfian>,
}

impl Distributions {
    pub fn new(settings: &Settings) -> Result<Self> {
        let name = settings.text("rand_type");
        let Some((_, default)) = Shape::ALL.iter().find(|(known, _)| *known == name) else {
            let names = Shape::ALL.map(|(known, _)| known).join(", ");
            return Err(Error::user(format!("the option rand_type cannot be {name:?}"))
                .hint(format!("give one of {names}")));
        };
        let pareto_h = within(settings, "rand_pareto_h", 1e-6, 1.0 - 1e-6)?;
        let zipf_exponent = within(settings, "rand_zipfian_exp", 0.0, 5.0)?;
        Ok(Distributions {
            default: *default,
            uniforms_per_gaussian: within(settings, "rand_spec_iter", 1.0, 1e6)? as u64,
            band_percent: within(settings, "rand_spec_pct", 1.0, 100.0)? as u64,
            special_percent: within(settings, "rand_spec_res", 0.0, 100.0)? as u64,
            pareto_power: pareto_h.ln() / (1.0 - pareto_h).ln(),
            zipf_exponent,
            zipfian: Zipfian::new(1, zipf_exponent).into(),
        })
    }

    /// A number of `low..=high`; `low` where the range is empty.
    pub fn draw(&self, shape: Shape, low: i64, high: i64, random: &mut Random) -> i64 {
        if high < low {
            return low;
        }
        let span = high.wrapping_sub(low) as u64;
        let values = span.saturating_add(1);
        let from_zero = match shape {
            Shape::Uniform => random.below(values),
            Shape::Gaussian => self.gaussian(values, random),
            Shape::Special => self.special(values, random),
            Shape::Pareto => (values as f64 * random.float().powf(self.pareto_power)) as u64,
            Shape::Zipfian => self.zipfian(values, random),
        };
        low.wrapping_add_unsigned(from_zero.min(span))
    }

    fn gaussian(&self, values: u64, random: &mut Random) -> u64 {
        let sum: u128 = (0..self.uniforms_per_gaussian).map(|_| u128::from(random.below(values))).sum();
        (sum / u128::from(self.uniforms_per_gaussian)) as u64
    }

    fn special(&self, values: u64, random: &mut Random) -> u64 {
        if random.below(100) >= self.special_percent {
            return self.gaussian(values, random);
        }
        let band = ((u128::from(values) * u128::from(self.band_percent) / 100) as u64).max(1);
        values / 2 - band / 2 + random.below(band)
    }

    fn zipfian(&self, values: u64, random: &mut Random) -> u64 {
        if !self.zipfian.get().fits(values, self.zipf_exponent) {
            self.zipfian.set(self.zipfian.get().over(values));
        }
        self.zipfian.get().draw(random) - 1
    }
}

/// `template` with a digit in the place of each `#` and a lower-case letter in that of each `@`.
pub(super) fn string(template: &[u8], random: &mut Random) -> Vec<u8> {
    let mut text = vec![0; template.len()];
    random.digits(&mut text);
    for (letter, wanted) in text.iter_mut().zip(template) {
        match wanted {
            b'#' => {}
            b'@' => *letter = b'a' + random.below(26) as u8,
            other => *letter = *other,
        }
    }
    text
}

/// Lower-case letters, `shortest` to `longest` of them.
pub(super) fn letters(shortest: i64, longest: i64, random: &mut Random) -> Vec<u8> {
    let shortest = shortest.clamp(0, LETTERS_MAX);
    let length = random.between(shortest, longest.clamp(shortest, LETTERS_MAX));
    string(&b"@".repeat(length as usize), random)
}

/// Numbers of 32 bits in no order, none of which comes twice in a run; all clients share them.
#[derive(Debug)]
pub(super) struct Unique {
    next: AtomicU32,
}

impl Unique {
    pub fn new(seed: u64) -> Self {
        Unique { next: AtomicU32::new(Random::new(seed, u64::MAX).next_u64() as u32) }
    }

    pub fn draw(&self) -> u32 {
        scattered(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// The first number of `low..=high` that comes; `None` where none has come in many draws, so that whoever asks again
    /// can be stopped.
    pub fn draw_within(&self, low: f64, high: f64) -> Option<u32> {
        (0..UNIQUE_DRAWS).map(|_| self.draw()).find(|drawn| (low..=high).contains(&f64::from(*drawn)))
    }
}

/// Each step can be undone, so different numbers stay different (Wellons' "lowbias32").
fn scattered(number: u32) -> u32 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x7FEB_352D);
    mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x846C_A68B);
    mixed ^ (mixed >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn distributions() -> Distributions {
        Distributions::new(&Settings::of_sysbench()).unwrap()
    }

    /// How the draws of `1..=values` spread over as many equal bins.
    fn shares(shape: Shape, values: i64, bins: usize) -> Vec<f64> {
        let (distributions, mut random) = (distributions(), Random::new(1, 1));
        let (mut counts, draws) = (vec![0.0; bins], 200_000);
        for _ in 0..draws {
            let drawn = distributions.draw(shape, 1, values, &mut random) - 1;
            counts[drawn as usize * bins / values as usize] += 1.0 / f64::from(draws);
        }
        counts
    }

    #[test]
    fn uniform_draws_are_level() {
        let shares = shares(Shape::Uniform, 1000, 10);
        assert!(shares.iter().all(|share| (share - 0.1).abs() < 0.005), "{shares:?}");
    }

    #[test]
    fn three_quarters_of_special_draws_are_of_the_hundredth_at_the_centre() {
        let shares = shares(Shape::Special, 100_000, 1000);
        let centre: f64 = shares[495..505].iter().sum();
        // Beside the three quarters, a gaussian share: the mean of 12 has a deviation of 1/12 of the range.
        assert!((0.75..0.77).contains(&centre), "{centre}");
    }

    #[test]
    fn gaussian_draws_are_the_mean_of_twelve() {
        let (distributions, mut random) = (distributions(), Random::new(2, 1));
        let draws: Vec<f64> = (0..100_000)
            .map(|_| distributions.draw(Shape::Gaussian, 0, 999_999, &mut random) as f64 / 1e6)
            .collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 0.5).abs() < 0.002, "{mean}");
        // A uniform draw has the variance 1/12, the mean of 12 a twelfth of that.
        assert!((variance - 1.0 / 144.0).abs() < 0.0002, "{variance}");
    }

    #[test]
    fn pareto_gives_the_first_fifth_four_fifths_of_the_draws() {
        let shares = shares(Shape::Pareto, 100_000, 5);
        assert!((shares[0] - 0.8).abs() < 0.005, "{shares:?}");
    }

    #[test]
    fn zipfian_gives_each_value_its_weight() {
        let shares = shares(Shape::Zipfian, 50, 50);
        let weights: Vec<f64> = (1..=50).map(|rank| f64::from(rank).powf(-0.8)).collect();
        let sum: f64 = weights.iter().sum();
        for (share, weight) in shares.iter().zip(&weights) {
            assert!((share - weight / sum).abs() < 0.005, "{share} {}", weight / sum);
        }
    }

    #[test]
    fn unique_numbers_come_once() {
        let unique = Unique::new(42);
        let drawn: HashSet<u32> = (0..100_000).map(|_| unique.draw()).collect();
        assert_eq!(drawn.len(), 100_000);
        assert_ne!(Unique::new(1).draw(), Unique::new(2).draw());
    }

    #[test]
    fn a_template_keeps_what_is_no_placeholder() {
        let text = String::from_utf8(string("##-@@ é#".as_bytes(), &mut Random::new(5, 5))).unwrap();
        let letters: Vec<char> = text.chars().collect();
        assert!(letters[0].is_ascii_digit() && letters[1].is_ascii_digit() && letters[7].is_ascii_digit());
        assert!(letters[3].is_ascii_lowercase() && letters[4].is_ascii_lowercase());
        assert_eq!((letters[2], &letters[5..7]), ('-', &[' ', 'é'][..]));
    }

    proptest! {
        #[test]
        fn every_draw_is_in_its_range(low: i64, span: u64, seed: u64) {
            let high = low.saturating_add_unsigned(span);
            let (distributions, mut random) = (distributions(), Random::new(seed, 0));
            for (name, shape) in Shape::ALL {
                for _ in 0..10 {
                    let drawn = distributions.draw(shape, low, high, &mut random);
                    prop_assert!((low..=high).contains(&drawn), "{} drew {}", name, drawn);
                }
            }
        }

        #[test]
        fn an_empty_range_gives_its_lower_end(low: i64, seed: u64) {
            let high = low.saturating_sub(1);
            let drawn = distributions().draw(Shape::Uniform, low, high, &mut Random::new(seed, 0));
            prop_assert_eq!(drawn, low);
        }

        #[test]
        fn random_letters_have_their_length(shortest in 0i64..50, more in 0i64..50, seed: u64) {
            let text = letters(shortest, shortest + more, &mut Random::new(seed, 0));
            prop_assert!((shortest..=shortest + more).contains(&(text.len() as i64)));
            prop_assert!(text.iter().all(u8::is_ascii_lowercase));
        }
    }
}
