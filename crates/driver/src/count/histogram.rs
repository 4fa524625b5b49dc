//! Histograms of latencies: what they tell, and how they cross the border.

use super::tally::Latency;
use crate::error::{Error, Result};
use base64::Engine;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use hdrhistogram::Histogram;

/// Latencies in nanoseconds, from 1 ns to 1 h with 3 significant digits; longer ones count as 1 h.
pub type Latencies = Histogram<u64>;

pub(super) const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
const NS_PER_US: f64 = 1000.0;

pub fn latencies() -> Latencies {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, SIGNIFICANT_DIGITS).expect("constant bounds that are valid")
}

/// Count, sum, mean and percentiles in microseconds.
pub fn latency_us(latencies: &Latencies) -> Latency {
    let us = |ns: u64| ns as f64 / NS_PER_US;
    let mean = latencies.mean() / NS_PER_US;
    let of = |value: f64| (!latencies.is_empty()).then_some(value);
    let at = |percentile: f64| of(us(latencies.value_at_percentile(percentile)));
    Latency {
        count: latencies.len(),
        sum: of(mean).unwrap_or_default() * latencies.len() as f64,
        mean: of(mean),
        min: of(us(latencies.min())),
        p50: at(50.0),
        p90: at(90.0),
        p95: at(95.0),
        p99: at(99.0),
        p99_9: at(99.9),
        p99_99: at(99.99),
        max: of(us(latencies.max())),
    }
}

/// A histogram as text: V2, deflated, in base64.
pub(crate) fn encoded(latencies: &Latencies) -> Result<String> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(latencies, &mut bytes)
        .map_err(|error| Error::internal(format!("a histogram could not be written: {error}")))?;
    Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// The histogram that a text is of.
pub(crate) fn decoded(text: &str) -> Result<Latencies> {
    let unread =
        |error: &dyn std::fmt::Display| Error::internal(format!("a histogram could not be read: {error}"));
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).map_err(|error| unread(&error))?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|error| unread(&error))
}

/// How a histogram crosses the border: as text.
pub(crate) mod as_text {
    use super::{decoded, encoded, Latencies};
    use serde::{de::Error as _, ser::Error as _, Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(latencies: &Latencies, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&encoded(latencies).map_err(S::Error::custom)?)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Latencies, D::Error> {
        decoded(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_operation_gives_nothing_and_not_nonsense() {
        assert_eq!((latency_us(&latencies()).p99, latency_us(&latencies()).sum), (None, 0.0));
    }

    proptest! {
        #[test]
        fn merging_counts_each_value_once(
            left in proptest::collection::vec(1u64..LATENCY_NS_MAX, 1..200),
            right in proptest::collection::vec(1u64..LATENCY_NS_MAX, 1..200),
        ) {
            let (mut one, mut other, mut whole) = (latencies(), latencies(), latencies());
            left.iter().for_each(|&value| one.record(value).unwrap());
            right.iter().for_each(|&value| other.record(value).unwrap());
            left.iter().chain(&right).for_each(|&value| whole.record(value).unwrap());
            one += &other;
            prop_assert_eq!(&one, &whole);
        }

        #[test]
        fn percentiles_are_true_to_three_digits(mut values in proptest::collection::vec(1u64..LATENCY_NS_MAX, 1..300)) {
            let mut histogram = latencies();
            values.iter().for_each(|&value| histogram.record(value).unwrap());
            values.sort_unstable();
            for percentile in [50.0, 99.0, 100.0] {
                let rank = ((percentile / 100.0 * values.len() as f64).ceil() as usize).max(1);
                let (exact, found) = (values[rank - 1] as f64, histogram.value_at_percentile(percentile) as f64);
                prop_assert!((found - exact).abs() <= exact / 1000.0 + 1.0, "{} {}", found, exact);
            }
        }

        #[test]
        fn an_encoded_histogram_is_read_back(values in proptest::collection::vec(1u64..LATENCY_NS_MAX, 0..200)) {
            let mut histogram = latencies();
            values.iter().for_each(|&value| histogram.record(value).unwrap());
            let bytes = base64::engine::general_purpose::STANDARD.decode(encoded(&histogram).unwrap()).unwrap();
            let read: Latencies = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            prop_assert_eq!(read.len(), histogram.len());
            prop_assert_eq!(read.value_at_percentile(50.0), histogram.value_at_percentile(50.0));
        }
    }
}
