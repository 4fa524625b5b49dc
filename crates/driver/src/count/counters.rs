//! Latencies as a thread counts them: the buckets of `Latencies` alone, in memory that grows with what is seen.
//!
//! A bucket is found with a few instructions, and a thread that sees latencies from 10 us to 10 ms takes 40 kB instead of
//! the 270 kB of a whole histogram. Whoever oversees the run puts the buckets into histograms.

use super::histogram::LATENCY_NS_MAX;

/// Values of an octave: 3 significant digits need as many, because 2 times 1024 is more than 2 times 1000.
const OCTAVE: usize = 1 << OCTAVE_BITS;
const OCTAVE_BITS: u32 = 10;
/// The first two octaves hold each value below 2048; each further one doubles what a bucket holds.
const OCTAVES: usize = (u64::BITS - LATENCY_NS_MAX.leading_zeros() - OCTAVE_BITS + 1) as usize;

/// What is longer, 73 minutes, counts as this: the end of the last bucket.
const LONGEST_NS: u64 = ((2 * OCTAVE as u64) << (OCTAVES - 2)) - 1;

/// How often each latency was seen.
#[derive(Debug)]
pub(crate) struct Counters {
    octaves: [Option<Box<[u32; OCTAVE]>>; OCTAVES],
}

impl Default for Counters {
    fn default() -> Self {
        Counters { octaves: [const { None }; OCTAVES] }
    }
}

impl Counters {
    /// Counts a latency once.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        let latency_ns = latency_ns.min(LONGEST_NS);
        let shift = latency_ns.max(OCTAVE as u64).ilog2() - OCTAVE_BITS;
        let place = (latency_ns >> shift) as usize;
        let octave = &mut self.octaves[shift as usize + (place >> OCTAVE_BITS)];
        let counts = match octave {
            Some(counts) => counts,
            None => unseen(octave),
        };
        counts[place & (OCTAVE - 1)] += 1;
    }

    /// Shows each bucket that has counted, as the largest latency that it holds and how often, and empties it.
    pub fn drain(&mut self, mut show: impl FnMut(u64, u64)) {
        for (octave, counts) in self.octaves.iter_mut().enumerate() {
            let (shift, first) = (octave.saturating_sub(1), octave.min(1) * OCTAVE);
            let counts = counts.iter_mut().flat_map(|counts| counts.iter_mut().enumerate());
            for (place, count) in counts.filter(|(_, count)| **count > 0) {
                let next = (first + place + 1) as u64;
                show((next << shift) - 1, u64::from(std::mem::take(count)));
            }
        }
    }
}

#[cold]
fn unseen(octave: &mut Option<Box<[u32; OCTAVE]>>) -> &mut [u32; OCTAVE] {
    octave.insert(Box::new([0; OCTAVE]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::histogram::latencies;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_histogram_is_that_of_the_latencies_themselves(
            values in proptest::collection::vec((1u64..=LONGEST_NS, 0u32..42), 0..300),
        ) {
            let (mut counters, mut filled, mut direct) = (Counters::default(), latencies(), latencies());
            for (value, shift) in values {
                let value = (value >> shift).max(1);
                counters.record(value);
                direct.saturating_record(value);
            }
            counters.drain(|value, count| filled.saturating_record_n(value, count));
            prop_assert!(filled == direct);
            prop_assert_eq!((filled.min(), filled.max()), (direct.min(), direct.max()));
            prop_assert_eq!((filled.len(), filled.mean()), (direct.len(), direct.mean()));
            counters.drain(|_, _| panic!("it was emptied"));
        }
    }

    #[test]
    fn memory_grows_with_the_octaves_that_are_seen() {
        let mut counters = Counters::default();
        (10_000..10_000_000).step_by(997).for_each(|latency_ns| counters.record(latency_ns));
        let octaves = counters.octaves.iter().flatten().count();
        assert_eq!(octaves, 11);
        counters.drain(|_, _| {});
        counters.record(u64::MAX);
        counters.drain(|latency_ns, count| assert_eq!((latency_ns, count), (LONGEST_NS, 1)));
        assert!(counters.octaves[OCTAVES - 1].is_some());
    }
}
