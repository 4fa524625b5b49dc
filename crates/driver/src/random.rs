//! Random numbers: fast, seeded, one independent stream per client.

/// xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021). `Copy`, so that a
/// transaction that must be tried again can be drawn again: keep a copy, put it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random {
    state: [u64; 4],
}

/// The first stream for loading data. A client has the stream of its number, so it never draws what was loaded.
const LOADING: u64 = 1 << 62;

impl Random {
    /// What part `part` of the data is loaded with.
    pub fn of_loading(seed: u64, part: u64) -> Self {
        Random::new(seed, LOADING | part)
    }

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

/// Zipf's distribution over the ranks 1..=size: rank r has the weight r^-exponent. Rejection-inversion: Hörmann and
/// Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", ACM TOMACS 6 (1996).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zipfian {
    size: u64,
    exponent: f64,
    area_first: f64,
    area_all: f64,
    sure: f64,
}

impl Zipfian {
    pub fn new(size: u64, exponent: f64) -> Self {
        let mut zipfian = Zipfian { size, exponent, area_first: 0.0, area_all: 0.0, sure: 0.0 };
        zipfian.area_first = zipfian.area(1.5) - 1.0;
        zipfian.sure = 2.0 - zipfian.area_inverse(zipfian.area(2.5) - zipfian.weight(2.0));
        zipfian.over(size)
    }

    /// The same exponent over other ranks: cheap enough to be asked for with each draw.
    pub fn over(self, size: u64) -> Self {
        Zipfian { size, area_all: self.area(size as f64 + 0.5), ..self }
    }

    pub fn fits(&self, size: u64, exponent: f64) -> bool {
        (self.size, self.exponent) == (size, exponent)
    }

    /// A rank, 1 being the most frequent.
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.area_all + random.float() * (self.area_first - self.area_all);
            let place = self.area_inverse(area);
            let rank = place.round().clamp(1.0, self.size as f64);
            if rank - place <= self.sure || area >= self.area(rank + 0.5) - self.weight(rank) {
                // Beyond 2^53 a float may be above the size that it stands for.
                return (rank as u64).min(self.size);
            }
        }
    }

    fn weight(&self, place: f64) -> f64 {
        (-self.exponent * place.ln()).exp()
    }

    /// The integral of the weight; written so that an exponent of 1 needs no case of its own.
    fn area(&self, place: f64) -> f64 {
        let log = place.ln();
        let scaled = (1.0 - self.exponent) * log;
        log * if scaled.abs() > 1e-8 { scaled.exp_m1() / scaled } else { 1.0 + scaled / 2.0 }
    }

    fn area_inverse(&self, area: f64) -> f64 {
        let scaled = (area * (1.0 - self.exponent)).max(-1.0);
        (area * if scaled.abs() > 1e-8 { scaled.ln_1p() / scaled } else { 1.0 - scaled / 2.0 }).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_client_draws_what_was_loaded() {
        for number in 0..4 {
            assert_ne!(Random::of_loading(7, number), Random::new(7, number));
        }
        assert_ne!(Random::of_loading(7, 0), Random::of_loading(7, 1));
    }

    #[test]
    fn ranks_follow_zipfs_law_for_every_exponent() {
        for exponent in [0.0, 0.01, 0.5, 0.8, 0.99, 1.0, 1.001, 1.5, 3.0] {
            let (zipfian, mut random, mut counts) =
                (Zipfian::new(20, exponent), Random::new(1, 2), [0u32; 20]);
            for _ in 0..200_000 {
                counts[zipfian.draw(&mut random) as usize - 1] += 1;
            }
            let weights: Vec<f64> = (1..=20).map(|rank| f64::from(rank).powf(-exponent)).collect();
            let all: f64 = weights.iter().sum();
            let expected = weights.iter().map(|weight| 200_000.0 * weight / all);
            let of_chi_square: f64 = expected
                .zip(counts)
                .map(|(expected, count)| (f64::from(count) - expected).powi(2) / expected)
                .sum();
            // 19 degrees of freedom: one seed in 100,000 exceeds this by chance.
            assert!(of_chi_square < 58.0, "exponent {exponent}: {of_chi_square}");
        }
    }

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
        fn a_rank_is_one_of_those_there_are(seed: u64, size in 1u64.., exponent in 0.0f64..1000.0) {
            let (zipfian, mut random) = (Zipfian::new(3, exponent).over(size), Random::new(seed, 0));
            prop_assert_eq!(zipfian, Zipfian::new(size, exponent));
            for _ in 0..20 {
                prop_assert!((1..=size).contains(&zipfian.draw(&mut random)));
            }
        }

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
