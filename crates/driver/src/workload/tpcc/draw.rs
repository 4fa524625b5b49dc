//! What TPC-C draws at random (specification 5.11, clauses 2.1.6 and 4.3.2), and how its amounts are written.

use crate::random::Random;
use crate::session::Value;
use std::fmt;

pub const ITEMS: i64 = 100_000;
pub const DISTRICTS: i64 = 10;
pub const CUSTOMERS: i64 = 3_000;

/// The run-time constants C of NURand. They are fixed, so that the same seed draws the same customers; the two for
/// last names differ by 85, as clause 2.1.6.1 asks (65 to 119, but not 96 nor 112).
const C_LAST_NAME_LOAD: i64 = 123;
const C_LAST_NAME_RUN: i64 = 208;
const C_CUSTOMER: i64 = 259;
const C_ITEM: i64 = 7911;

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
const ALPHANUMERIC: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Non-uniform in `low..=high`: NURand(a, low, high) of clause 2.1.6.
fn non_uniform(random: &mut Random, a: i64, c: i64, low: i64, high: i64) -> i64 {
    (((random.between(0, a) | random.between(low, high)) + c) % (high - low + 1)) + low
}

pub fn customer(random: &mut Random) -> i64 {
    non_uniform(random, 1023, C_CUSTOMER, 1, CUSTOMERS)
}

pub fn item(random: &mut Random) -> i64 {
    non_uniform(random, 8191, C_ITEM, 1, ITEMS)
}

/// The number of a last name, for transactions.
pub fn last_name_of_run(random: &mut Random) -> i64 {
    non_uniform(random, 255, C_LAST_NAME_RUN, 0, 999)
}

/// The number of a customer's last name at load: the first thousand have each name once.
pub fn last_name_of_load(random: &mut Random, customer: i64) -> i64 {
    if customer <= 1000 {
        customer - 1
    } else {
        non_uniform(random, 255, C_LAST_NAME_LOAD, 0, 999)
    }
}

/// The last name of `number` (0..=999): a syllable for each of its three digits.
pub fn last_name(number: i64, text: &mut String) -> &str {
    text.clear();
    for digit in [number / 100, number / 10 % 10, number % 10] {
        text.push_str(SYLLABLES[digit as usize]);
    }
    text
}

/// Another warehouse than `home` (which must not be the only one), uniformly.
pub fn other_warehouse(random: &mut Random, home: i64, warehouses: i64) -> i64 {
    let other = random.between(1, warehouses - 1);
    other + i64::from(other >= home)
}

/// Random letters and digits, `low..=high` of them ("a-string").
pub fn letters<'a>(random: &mut Random, low: i64, high: i64, text: &'a mut String) -> &'a str {
    fill(random, low, high, ALPHANUMERIC, text)
}

/// Random digits, `low..=high` of them ("n-string").
pub fn digits<'a>(random: &mut Random, low: i64, high: i64, text: &'a mut String) -> &'a str {
    fill(random, low, high, &ALPHANUMERIC[..10], text)
}

/// The two letters of a state.
pub fn state<'a>(random: &mut Random, text: &'a mut String) -> &'a str {
    fill(random, 2, 2, &ALPHANUMERIC[10..36], text)
}

/// Four random digits and 11111 (clause 4.3.2.7).
pub fn zip<'a>(random: &mut Random, text: &'a mut String) -> &'a str {
    digits(random, 4, 4, text);
    text.push_str("11111");
    text
}

/// 26 to 50 letters, one time in ten with ORIGINAL somewhere in them (clause 4.3.3.1).
pub fn data<'a>(random: &mut Random, text: &'a mut String) -> &'a str {
    const ORIGINAL: &str = "ORIGINAL";
    letters(random, 26, 50, text);
    if random.below(10) == 0 {
        let at = random.below((text.len() - ORIGINAL.len()) as u64 + 1) as usize;
        text.replace_range(at..at + ORIGINAL.len(), ORIGINAL);
    }
    text
}

fn fill<'a>(random: &mut Random, low: i64, high: i64, alphabet: &[u8], text: &'a mut String) -> &'a str {
    text.clear();
    let (mut left, size) = (random.between(low, high), alphabet.len() as u128);
    while left > 0 {
        // A draw of 64 bits gives eight letters: the bias of the last one is below 62^8 / 2^64 = 1.2e-5.
        let mut draw = random.next_u64();
        for _ in 0..left.min(8) {
            let scaled = u128::from(draw) * size;
            text.push(char::from(alphabet[(scaled >> 64) as usize]));
            draw = scaled as u64;
        }
        left -= 8;
    }
    text
}

/// An amount of money in cents, written with two decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cents(pub i64);

impl Cents {
    pub const fn whole(units: i64) -> Self {
        Cents(units * 100)
    }
}

impl fmt::Display for Cents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Amount::new(*self).as_str())
    }
}

/// A tax or discount in ten-thousandths, written with four decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub i64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:04}", self.0 / 10_000, self.0 % 10_000)
    }
}

/// An amount as text for a DECIMAL parameter, made without allocating.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    bytes: [u8; Amount::WIDTH],
    from: usize,
}

impl Amount {
    /// A sign, the 19 digits of an i64 and the point.
    const WIDTH: usize = 21;

    pub fn new(Cents(cents): Cents) -> Self {
        let (mut bytes, mut from, mut left) = ([b'0'; Self::WIDTH], Self::WIDTH, cents.unsigned_abs());
        let mut put = |byte: u8| {
            from -= 1;
            bytes[from] = byte;
        };
        for place in 0.. {
            if place == 2 {
                put(b'.');
            }
            put(b'0' + (left % 10) as u8);
            left /= 10;
            if left == 0 && place >= 2 {
                break;
            }
        }
        if cents < 0 {
            put(b'-');
        }
        Amount { bytes, from }
    }

    pub fn as_str(&self) -> &str {
        // All bytes are ASCII by construction.
        std::str::from_utf8(&self.bytes[self.from..]).unwrap_or_default()
    }

    pub fn value(&self) -> Value<'_> {
        Value::Text(self.as_str())
    }
}

/// The cents of a DECIMAL column with at most two decimals; engines without exact decimals give a float.
pub fn cents_of(value: Value<'_>) -> Option<Cents> {
    match value {
        Value::Int(whole) => whole.checked_mul(100).map(Cents),
        Value::Float(amount) => Some(Cents((amount * 100.0).round() as i64)),
        Value::Text(text) => cents_of_text(text),
        Value::Bytes(bytes) => cents_of_text(std::str::from_utf8(bytes).ok()?),
        Value::Null => None,
    }
}

fn cents_of_text(text: &str) -> Option<Cents> {
    let text = text.trim();
    let (digits, negative) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let (cents, beyond) = fraction.split_at_checked(2).unwrap_or((fraction, ""));
    let only_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !only_digits(whole) || !only_digits(cents) || beyond.bytes().any(|byte| byte != b'0') {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let cents = match cents.len() {
        0 => 0,
        1 => cents.parse::<i64>().ok()? * 10,
        _ => cents.parse().ok()?,
    };
    let sum = whole.checked_mul(100)?.checked_add(cents)?;
    Some(Cents(if negative { -sum } else { sum }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn last_names_are_those_of_the_specification() {
        let mut text = String::new();
        assert_eq!(last_name(371, &mut text), "PRICALLYOUGHT");
        assert_eq!(last_name(0, &mut text), "BARBARBAR");
        assert_eq!(last_name(999, &mut text), "EINGEINGEING");
    }

    #[test]
    fn one_in_ten_data_strings_is_original() {
        let (mut random, mut text, mut original) = (Random::new(1, 0), String::new(), 0);
        for _ in 0..10_000 {
            let data = data(&mut random, &mut text);
            assert!((26..=50).contains(&data.len()));
            original += usize::from(data.contains("ORIGINAL"));
        }
        // 1,000 expected; five standard deviations are 150.
        assert!((850..=1150).contains(&original), "{original}");
    }

    #[test]
    fn another_warehouse_is_any_but_home() {
        let (mut random, mut seen) = (Random::new(1, 0), [0; 4]);
        for _ in 0..1000 {
            seen[other_warehouse(&mut random, 2, 3) as usize] += 1;
        }
        assert!(seen[1] > 400 && seen[2] == 0 && seen[3] > 400, "{seen:?}");
    }

    #[test]
    fn non_uniform_draws_prefer_numbers_with_many_bits() {
        // OR-ing favours set bits: the upper half of the items' low 13 bits is drawn more often than the lower half.
        let mut random = Random::new(9, 0);
        let high = (0..20_000)
            .filter(|_| {
                let before_c = (item(&mut random) - 1 - C_ITEM - 1).rem_euclid(ITEMS) + 1;
                before_c & 4096 != 0
            })
            .count();
        // A bit is set with chance 3/4 in NURand, 1/2 in a uniform draw.
        assert!(high > 14_000, "{high}");
    }

    #[test]
    fn amounts_are_read_in_every_form_a_server_sends() {
        for (value, cents) in [
            (Value::Text("12.30"), 1230),
            (Value::Text("-0.05"), -5),
            (Value::Text(".5"), 50),
            (Value::Text("7"), 700),
            (Value::Text("1.2300"), 123),
            (Value::Bytes(b"-10.00"), -1000),
            (Value::Float(0.29), 29),
            (Value::Int(3), 300),
        ] {
            assert_eq!(cents_of(value), Some(Cents(cents)), "{value:?}");
        }
        for value in [Value::Null, Value::Text("1.234"), Value::Text("x"), Value::Text("--1")] {
            assert_eq!(cents_of(value), None, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn an_amount_reads_back(cents: i64) {
            let cents = Cents(cents / 100);
            prop_assert_eq!(cents_of(Amount::new(cents).value()), Some(cents));
        }

        #[test]
        fn draws_stay_within_their_bounds(seed: u64) {
            let (mut random, mut text) = (Random::new(seed, 0), String::new());
            for _ in 0..20 {
                prop_assert!((1..=CUSTOMERS).contains(&customer(&mut random)));
                prop_assert!((1..=ITEMS).contains(&item(&mut random)));
                prop_assert!((0..=999).contains(&last_name_of_run(&mut random)));
                prop_assert!((0..=999).contains(&last_name_of_load(&mut random, 1001)));
                prop_assert!((3..=17).contains(&letters(&mut random, 3, 17, &mut text).len()));
                prop_assert_eq!(zip(&mut random, &mut text).len(), 9);
            }
        }
    }
}
