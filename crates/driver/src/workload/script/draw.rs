//! Random draws and hashes with the definitions that pgbench's manual gives them.

use crate::random::Random;

/// Exponential over `low..=high` (pgbench's `random_exponential`): the density falls by e^parameter over the range.
pub fn exponential(random: &mut Random, low: i64, high: i64, parameter: f64) -> i64 {
    let cut = (-parameter).exp();
    let uniform = 1.0 - random.float();
    scaled(low, high, -(cut + (1.0 - cut) * uniform).ln() / parameter)
}

/// Gaussian over `low..=high`, its mean in the middle, truncated at `parameter` standard deviations (`random_gaussian`).
pub fn gaussian(random: &mut Random, low: i64, high: i64, parameter: f64) -> i64 {
    loop {
        // Box and Muller's transform.
        let radius = (2.0 * random.exponential()).sqrt();
        let deviation = radius * (std::f64::consts::TAU * random.float()).sin();
        if deviation >= -parameter && deviation < parameter {
            return scaled(low, high, (deviation + parameter) / (2.0 * parameter));
        }
    }
}

/// Pareto over `low..=high` as sysbench draws it: `share` of the range gets 1 - `share` of the draws.
pub fn pareto(random: &mut Random, low: i64, high: i64, share: f64) -> i64 {
    scaled(low, high, random.float().powf(share.ln() / (1.0 - share).ln()))
}

/// The place of `fraction`, in [0, 1), in `low..=high`.
fn scaled(low: i64, high: i64, fraction: f64) -> i64 {
    let size = high.wrapping_sub(low) as u64 as f64 + 1.0;
    low.wrapping_add((size * fraction) as i64).clamp(low, high)
}

/// FNV-1a over the eight bytes of `value`, least first.
pub fn hash_fnv1a(value: i64, seed: i64) -> i64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed as u64;
    value
        .to_le_bytes()
        .iter()
        .fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)) as i64
}

/// MurmurHash64A of the eight bytes of `value`.
pub fn hash_murmur2(value: i64, seed: i64) -> i64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    let mix = |word: u64| word ^ (word >> 47);
    let word = mix((value as u64).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    let hash = (seed as u64 ^ MULTIPLIER.wrapping_mul(8) ^ word).wrapping_mul(MULTIPLIER);
    mix(mix(hash).wrapping_mul(MULTIPLIER)) as i64
}

/// A pseudorandom permutation of `0..size`, one per seed, that gives the same numbers as PostgreSQL 15's pgbench: six
/// rounds of multiply, xor and rotate on the lower and the upper power-of-two part, and of an offset.
pub fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let (mut random, size) = (Xoroshiro::new(seed as u64), size as u64);
    let mut place = (value as u64) % size;
    let bits = size.ilog2();
    let mask = (1u64 << bits) - 1;
    for _ in 0..6 {
        let (multiplier, flips) = ((random.next() & mask) | 1, random.next() & mask);
        if place <= mask {
            place = scattered(place, multiplier, flips, mask, bits);
        }
        let (multiplier, flips) = ((random.next() & mask) | 1, random.next() & mask);
        let mirrored = size - 1 - place;
        if mirrored <= mask {
            place = size - 1 - scattered(mirrored, multiplier, flips, mask, bits);
        }
        place = (place + random.up_to(size - 1)) % size;
    }
    place as i64
}

/// One bijection of `0..=mask`.
fn scattered(place: u64, multiplier: u64, flips: u64, mask: u64, bits: u32) -> u64 {
    let place = (place.wrapping_mul(multiplier) ^ flips) & mask;
    ((place << 1) & mask) | (place >> (bits - 1))
}

/// xoroshiro128** (Blackman and Vigna), which `permute` is defined by.
struct Xoroshiro([u64; 2]);

impl Xoroshiro {
    fn new(seed: u64) -> Self {
        let mut mixer = seed;
        let mut word = || {
            mixer = mixer.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (mixer ^ (mixer >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ (mixed >> 31)
        };
        Xoroshiro([word(), word()])
    }

    fn next(&mut self) -> u64 {
        let [first, second] = self.0;
        let mixed = second ^ first;
        self.0 = [first.rotate_left(24) ^ mixed ^ (mixed << 16), mixed.rotate_left(37)];
        first.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// Uniform in `0..=most` by rejection.
    fn up_to(&mut self, most: u64) -> u64 {
        if most == 0 {
            return 0;
        }
        loop {
            let drawn = self.next() >> most.leading_zeros();
            if drawn <= most {
                return drawn;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pearson's statistic of `draws` of 1..=probabilities.len().
    fn chi_square(probabilities: &[f64], mut draw: impl FnMut() -> i64) -> f64 {
        let (total, mut counts) = (200_000, vec![0u32; probabilities.len()]);
        for _ in 0..total {
            counts[draw() as usize - 1] += 1;
        }
        let sum: f64 = probabilities.iter().sum();
        probabilities
            .iter()
            .zip(&counts)
            .map(|(probability, &count)| {
                let expected = f64::from(total) * probability / sum;
                (f64::from(count) - expected).powi(2) / expected
            })
            .sum()
    }

    /// 19 degrees of freedom: one run in 100,000 exceeds this by chance, and the seeds are fixed.
    const LIMIT: f64 = 58.0;

    #[test]
    fn exponential_draws_follow_pgbenchs_definition() {
        // The manual: value i is drawn with probability (exp(-p (i-1)/n) - exp(-p i/n)) / (1 - exp(-p)).
        let (parameter, mut random) = (3.0f64, Random::new(5, 6));
        let expected: Vec<f64> = (0..20)
            .map(|i| (-parameter * f64::from(i) / 20.0).exp() - (-parameter * f64::from(i + 1) / 20.0).exp())
            .collect();
        let statistic = chi_square(&expected, || exponential(&mut random, 1, 20, parameter));
        assert!(statistic < LIMIT, "{statistic}");
    }

    #[test]
    fn gaussian_draws_are_symmetric_and_as_narrow_as_the_manual_says() {
        // The manual: with parameter 4.0, 50 % of the draws come from the middle quarter... of 2 sigma: 0.25 of the range.
        let (mut random, mut middle, mut below) = (Random::new(5, 6), 0, 0);
        for _ in 0..100_000 {
            let drawn = gaussian(&mut random, 1, 1000, 2.5);
            assert!((1..=1000).contains(&drawn));
            middle += i32::from((301..=700).contains(&drawn));
            below += i32::from(drawn <= 500);
        }
        // One standard deviation each side of a normal truncated at 2.5: 0.6827 / 0.9876.
        assert!((middle - 69_127).abs() < 700, "{middle}");
        assert!((below - 50_000).abs() < 800, "{below}");
    }

    #[test]
    fn a_pareto_share_gets_the_rest_of_the_draws() {
        let mut random = Random::new(5, 6);
        let first = (0..100_000).filter(|_| pareto(&mut random, 1, 1000, 0.2) <= 200).count();
        assert!((79_300..80_700).contains(&first), "{first}");
    }

    #[test]
    fn permute_is_a_permutation() {
        for size in [1, 2, 3, 4, 5, 7, 8, 100, 1000] {
            let mut seen = vec![false; size as usize];
            (0..size).for_each(|value| seen[permute(value, size, 42) as usize] = true);
            assert!(seen.iter().all(|seen| *seen), "size {size}");
        }
    }

    #[test]
    fn extreme_ranges_stay_within_bounds() {
        let mut random = Random::new(9, 9);
        for _ in 0..1000 {
            for (low, high) in [(i64::MIN / 2, i64::MAX / 2), (i64::MAX - 1, i64::MAX), (0, i64::MAX - 1)] {
                let range = low..=high;
                assert!(range.contains(&exponential(&mut random, low, high, 0.5)));
                assert!(range.contains(&gaussian(&mut random, low, high, 2.0)));
                assert!(range.contains(&pareto(&mut random, low, high, 0.2)));
            }
        }
    }
}
