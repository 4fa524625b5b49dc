//! Which keys YCSB's operations are on, and what is in the fields.

use crate::random::{Random, Zipfian};
use crate::workload::{Options, Typed};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const HOTSPOT_KEYS: Typed<f64> =
    Typed::float("hotspot_data_fraction", 0.2, 0.000_001, 1.0, "hotspot: share of the keys that is hot")
        .for_the_run();
pub(super) const HOTSPOT_OPERATIONS: Typed<f64> =
    Typed::float("hotspot_operation_fraction", 0.8, 0.0, 1.0, "hotspot: share of the operations on them")
        .for_the_run();
const DISTRIBUTIONS: &[&str] = &["uniform", "zipfian", "latest", "hotspot"];

/// How keys are drawn; each member of the family has its own default.
pub(super) const fn distribution(default: &'static str) -> Typed<&'static str> {
    Typed::choice("distribution", default, DISTRIBUTIONS, "how keys are drawn").for_the_run()
}

const ZIPFIAN_EXPONENT: f64 = 0.99;
/// The scrambled zipfian draws from so many items and folds them onto the keys, so that the most popular key has the
/// same share whatever the size of the table.
const SCRAMBLED_ITEMS: u64 = 10_000_000_000;

/// How keys are drawn.
#[derive(Debug)]
pub(super) enum Popularity {
    Uniform,
    /// Popular keys lie everywhere in the table.
    Zipfian(Zipfian),
    /// The keys that were inserted last are the most popular.
    Latest(Zipfian),
    /// A share of the keys gets a share of the operations.
    Hotspot {
        keys: f64,
        operations: f64,
    },
}

impl Popularity {
    pub fn new(options: &Options) -> Self {
        match options.text(distribution("")) {
            "uniform" => Popularity::Uniform,
            "latest" => Popularity::Latest(Zipfian::new(1, ZIPFIAN_EXPONENT)),
            "hotspot" => Popularity::Hotspot {
                keys: options.float(HOTSPOT_KEYS),
                operations: options.float(HOTSPOT_OPERATIONS),
            },
            _ => Popularity::Zipfian(Zipfian::new(SCRAMBLED_ITEMS, ZIPFIAN_EXPONENT)),
        }
    }

    /// The number of a key that is there. `records` were loaded.
    pub fn draw(&self, keys: &Keys, records: u64, random: &mut Random) -> u64 {
        let there = keys.count();
        match self {
            Popularity::Uniform => random.below(there),
            // Over the keys that were loaded, so that the popular ones stay the same while others come.
            Popularity::Zipfian(zipfian) => hash(zipfian.draw(random)) % records,
            Popularity::Latest(zipfian) => there - zipfian.over(there).draw(random),
            Popularity::Hotspot { keys, operations } => {
                let hot = ((there as f64 * keys) as u64).clamp(1, there);
                if random.float() < *operations || hot == there {
                    random.below(hot)
                } else {
                    hot + random.below(there - hot)
                }
            }
        }
    }
}

/// The keys that were inserted, numbered from 0.
#[derive(Debug, Default)]
pub(super) struct Keys {
    next: AtomicU64,
    /// All keys below it are there.
    there: AtomicU64,
    /// Keys that are there while one below them is not yet.
    ahead: Mutex<BTreeSet<u64>>,
    /// Keys of clients that are gone, which nobody knows to be there or not.
    left: Mutex<Vec<u64>>,
}

/// A key that a client inserts. Where it is dropped before its insert is known to have come to an end, another client
/// takes it.
#[derive(Debug)]
pub(super) struct Inserting {
    keys: Arc<Keys>,
    pub number: u64,
    /// A client before this one has tried it, and may have succeeded.
    pub was_left: bool,
    noted: bool,
}

impl Inserting {
    /// The next key, or one that was left.
    pub fn next(keys: &Arc<Keys>) -> Self {
        let left = keys.left.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let number = left.unwrap_or_else(|| keys.next.fetch_add(1, Ordering::Relaxed));
        Inserting { keys: Arc::clone(keys), number, was_left: left.is_some(), noted: false }
    }

    /// Notes that the key is there.
    pub fn note(mut self) {
        self.noted = true;
        self.keys.note(self.number);
    }
}

impl Drop for Inserting {
    fn drop(&mut self) {
        if !self.noted {
            self.keys.left.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
        }
    }
}

impl Keys {
    /// `count` keys are there.
    pub fn begin(&self, count: u64) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.next.store(count, Ordering::Relaxed);
        self.there.store(count, Ordering::Relaxed);
    }

    /// Notes that the key of this number is there.
    fn note(&self, number: u64) {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        ahead.insert(number);
        let mut there = self.there.load(Ordering::Relaxed);
        while ahead.remove(&there) {
            there += 1;
        }
        self.there.store(there, Ordering::Relaxed);
    }

    pub fn count(&self) -> u64 {
        self.there.load(Ordering::Relaxed)
    }
}

/// YCSB's keys in their order of insertion lie everywhere in their order of sorting.
pub(super) fn put_key(key: &mut String, number: u64) {
    key.clear();
    // Writing to a String cannot fail.
    let _ = write!(key, "user{}", hash(number));
}

/// FNV-1a of the number's bytes as a signed number without its sign, which is YCSB's `Math.abs`.
fn hash(number: u64) -> u64 {
    let state = number.to_le_bytes().into_iter().fold(0xCBF2_9CE4_8422_2325u64, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    (state as i64).unsigned_abs()
}

/// Fills `text` with letters and digits.
pub(super) fn draw_letters(text: &mut [u8], random: &mut Random) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
    for letters in text.chunks_mut(10) {
        let mut bits = random.next_u64();
        for letter in letters {
            *letter = LETTERS[(bits & 63) as usize];
            bits >>= 6;
        }
    }
}

/// Letters that `draw_letters` has drawn.
pub(super) fn text_of(letters: &[u8]) -> &str {
    std::str::from_utf8(letters).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::ycsb::Ycsb;
    use crate::workload::{Circumstances, Workload};
    use proptest::prelude::*;
    use serde_json::json;

    const DISTRIBUTIONS: [&str; 4] = ["uniform", "zipfian", "latest", "hotspot"];

    fn popularity(distribution: &str) -> Popularity {
        let options = json!({"distribution": distribution});
        let options =
            Options::resolve(&Ycsb::OFFERS[0], options.as_object().unwrap(), &Circumstances::default());
        Popularity::new(&options.unwrap())
    }

    fn keys(count: u64) -> Keys {
        let keys = Keys::default();
        keys.begin(count);
        keys
    }

    /// Each key's share of the draws.
    fn shares(distribution: &str, records: u64) -> Vec<f64> {
        let (popularity, keys, mut random) = (popularity(distribution), keys(records), Random::new(3, 1));
        let mut shares = vec![0.0; records as usize];
        for _ in 0..200_000 {
            shares[popularity.draw(&keys, records, &mut random) as usize] += 1.0 / 200_000.0;
        }
        shares
    }

    #[test]
    fn the_most_popular_key_of_the_zipfian_has_its_share_in_a_table_of_any_size() {
        // 1 / the sum of rank^-0.99 over ten thousand million ranks, which is 26.47; and what the others fold onto it.
        for records in [100, 10_000] {
            let most = shares("zipfian", records).into_iter().fold(0.0, f64::max);
            assert!((most - 0.0378).abs() < 0.003 + 1.0 / records as f64, "{most}");
        }
    }

    #[test]
    fn the_latest_keys_are_the_most_popular() {
        let shares = shares("latest", 1000);
        assert!(shares[999] > shares[998] && shares[998] > shares[900] && shares[999] > 0.1, "{shares:?}");
    }

    #[test]
    fn the_hot_keys_get_their_share() {
        let hot: f64 = shares("hotspot", 1000)[..200].iter().sum();
        assert!((hot - 0.8).abs() < 0.01, "{hot}");
    }

    #[test]
    fn keys_are_those_of_ycsb() {
        let mut key = String::new();
        let keys = [0, 1, 2].map(|number| {
            put_key(&mut key, number);
            key.clone()
        });
        assert_eq!(keys, ["user6284781860667377211", "user8517097267634966620", "user1820151046732198393"]);
    }

    #[test]
    fn keys_are_there_once_all_before_them_are() {
        let keys = Arc::new(keys(5));
        let [five, six, seven] = [(); 3].map(|()| Inserting::next(&keys));
        assert_eq!([five.number, six.number, seven.number], [5, 6, 7]);
        seven.note();
        six.note();
        assert_eq!(keys.count(), 5);
        five.note();
        assert_eq!(keys.count(), 8);
    }

    proptest! {
        #[test]
        fn every_key_that_is_drawn_is_there(records in 1u64..1_000_000, seed: u64) {
            let (keys, mut random) = (keys(records), Random::new(seed, 0));
            for distribution in DISTRIBUTIONS {
                let popularity = popularity(distribution);
                for _ in 0..20 {
                    prop_assert!(popularity.draw(&keys, records, &mut random) < records, "{}", distribution);
                }
            }
        }

        #[test]
        fn letters_are_text(length in 0usize..200, seed: u64) {
            let mut text = vec![0; length];
            draw_letters(&mut text, &mut Random::new(seed, 0));
            prop_assert_eq!(text_of(&text).len(), length);
        }
    }
}
