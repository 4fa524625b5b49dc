//! How good approximate answers were: the recall of each answer that a workload scored.

use super::tally::Recall;
use serde::{Deserialize, Serialize};

/// Recalls are kept to a thousandth, which is exact for the 10 or 100 rows that are usually asked for.
const STEPS: usize = 1000;

/// The recalls of a run's scored answers, each in 0..=1.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Recalls {
    counts: Vec<u64>,
    count: u64,
    sum: f64,
}

impl Default for Recalls {
    fn default() -> Self {
        Recalls { counts: vec![0; STEPS + 1], count: 0, sum: 0.0 }
    }
}

impl Recalls {
    /// Counts one answer.
    #[inline]
    pub fn add(&mut self, recall: f64) {
        self.counts[(recall.clamp(0.0, 1.0) * STEPS as f64).round() as usize] += 1;
        self.count += 1;
        self.sum += recall;
    }

    /// Takes in what another thread counted.
    pub fn merge(&mut self, other: &Recalls) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(ours, theirs)| *ours += theirs);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// Count, mean and low percentiles (`p5`: one answer in 20 had this recall or less); none where nothing was scored.
    pub fn recall(&self) -> Option<Recall> {
        (self.count > 0).then(|| Recall {
            count: self.count,
            mean: self.sum / self.count as f64,
            min: self.at(0.0),
            p1: self.at(1.0),
            p5: self.at(5.0),
            p10: self.at(10.0),
            p50: self.at(50.0),
        })
    }

    fn at(&self, percentile: f64) -> f64 {
        let rank = ((percentile / 100.0 * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let step = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        step.unwrap_or(STEPS) as f64 / STEPS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_scored_is_null() {
        assert_eq!(Recalls::default().recall(), None);
    }

    proptest! {
        #[test]
        fn figures_are_those_of_the_sorted_list(mut hits in proptest::collection::vec(0u32..=10, 1..300), cut in 0usize..300) {
            let (mut ours, mut theirs) = (Recalls::default(), Recalls::default());
            for (index, hit) in hits.iter().enumerate() {
                if index < cut { &mut ours } else { &mut theirs }.add(f64::from(*hit) / 10.0);
            }
            ours.merge(&theirs);
            let figures = ours.recall().unwrap();
            hits.sort_unstable();
            let mean = hits.iter().sum::<u32>() as f64 / 10.0 / hits.len() as f64;
            let rank = |percentile: usize| (percentile * hits.len()).div_ceil(100).max(1) - 1;
            prop_assert!((figures.mean - mean).abs() < 1e-9);
            prop_assert_eq!(figures.count, hits.len() as u64);
            for (figure, percentile) in [(figures.min, 0), (figures.p5, 5), (figures.p50, 50)] {
                prop_assert_eq!(figure, f64::from(hits[rank(percentile)]) / 10.0);
            }
        }
    }
}
