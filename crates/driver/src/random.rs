//! Random numbers: fast, seeded, one independent stream per client.

/// xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021). `Copy`, so that a
/// transaction that must be tried again can be drawn again: keep a copy, put it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream `stream` of `seed`: streams of one seed are independent of each other.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut mixer = seed ^ stream.wrapping_mul(0xA24B_AED4_963E_E407).rotate_left(32);
        let mut word = || {
            // SplitMix64, as its authors advise for seeding.
            mixer = mixer.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = mixer;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ (mixed >> 31)
        };
        Random { state: [word(), word(), word(), word()] }
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let state = &mut self.state;
        let result = state[0].wrapping_add(state[3]).rotate_left(23).wrapping_add(state[0]);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
    }

    /// Uniform in 0..n (0 where n is 0): Lemire's multiply-shift; its bias is below n / 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in `low..=high`.
    #[inline]
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low) as u64 + 1) as i64
    }

    /// Uniform in [0, 1) with 53 bits.
    #[inline]
    pub fn float(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        // 1 - u lies in (0, 1], so that the logarithm is finite.
        -(1.0 - self.float()).ln()
    }

    /// Fills `text` with decimal digits.
    pub fn digits(&mut self, text: &mut [u8]) {
        for digits in text.chunks_mut(16) {
            let mut number = self.next_u64();
            for digit in digits {
                *digit = b'0' + ((u128::from(number) * 10) >> 64) as u8;
                number = number.wrapping_mul(10);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn streams_of_a_seed_differ_and_repeat() {
        let draw = |seed, stream| Random::new(seed, stream).next_u64();
        assert_eq!(draw(42, 1), draw(42, 1));
        assert_ne!(draw(42, 1), draw(42, 2));
        assert_ne!(draw(42, 1), draw(43, 1));
    }

    #[test]
    fn digits_are_uniform() {
        let (mut random, mut counts) = (Random::new(7, 0), [0u32; 10]);
        for _ in 0..10_000 {
            let mut text = [0; 16];
            random.digits(&mut text);
            text.iter().for_each(|digit| counts[usize::from(digit - b'0')] += 1);
        }
        // 16,000 expected per digit; 4.5 standard deviations are 540.
        assert!(counts.iter().all(|&count| (15_460..=16_540).contains(&count)), "{counts:?}");
    }

    #[test]
    fn exponentials_have_mean_and_deviation_one() {
        let mut random = Random::new(3, 3);
        let draws: Vec<f64> = (0..200_000).map(|_| random.exponential()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 1.0).abs() < 0.01 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }

    proptest! {
        #[test]
        fn a_draw_stays_within_its_bounds(seed: u64, low in -1_000_000i64..1_000_000, span in 0i64..1_000_000) {
            let mut random = Random::new(seed, 0);
            for _ in 0..50 {
                let drawn = random.between(low, low + span);
                prop_assert!((low..=low + span).contains(&drawn));
                prop_assert!((0.0..1.0).contains(&random.float()));
            }
        }
    }
}
