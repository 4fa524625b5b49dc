//! Numbers as statements write them, compared and subtracted exactly.

use std::cmp::Ordering;

/// A number with more digits before the point, or more noughts behind it, counts as none: a few letters (`1e999999999`)
/// can stand for a number that fills the memory.
const EXPONENT_MOST: i64 = 40;
const SCALE_MOST: i64 = 18;

/// A whole number of at most 18 digits, as most are.
pub fn whole(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    if !(1..=18).contains(&digits.len()) {
        return None;
    }
    let sum = |sum: i64, byte: &u8| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0'));
    digits.iter().try_fold(0, sum).map(|sum| sign * sum)
}

/// `digits` times ten to the `exponent`; the digits have no noughts before them, so nought has none.
#[derive(Clone, Copy)]
pub struct Number<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Number<'a> {
    /// A number such as `-1.5e3`; None for what is none, and for one that is too large or too small to be written
    /// without an exponent.
    pub fn of(text: &'a [u8]) -> Option<Number<'a>> {
        let (negative, rest) = match text.first()? {
            b'-' => (true, &text[1..]),
            _ => (false, text),
        };
        let (written, power) = match rest.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            Some(at) => (&rest[..at], std::str::from_utf8(&rest[at + 1..]).ok()?.parse::<i64>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = match written.iter().position(|byte| *byte == b'.') {
            Some(at) => (&written[..at], &written[at + 1..]),
            None => (written, &written[written.len()..]),
        };
        if whole.len() + fraction.len() == 0 || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
            return None;
        }
        let exponent = power.checked_sub(fraction.len() as i64)?;
        let noughts = whole.iter().take_while(|byte| **byte == b'0').count();
        let number = Number { negative, whole: &whole[noughts..], fraction, exponent };
        (number.adjusted().abs() <= EXPONENT_MOST).then_some(number)
    }

    /// The power of ten of its first digit; of nought, the one of its last digit.
    fn adjusted(&self) -> i64 {
        let digits = self.digits().count() as i64;
        self.exponent + (digits - 1).max(0)
    }

    /// From the first one that is no nought.
    fn digits(&self) -> impl Iterator<Item = u8> + '_ {
        let skipped = if self.whole.is_empty() {
            self.fraction.iter().take_while(|byte| **byte == b'0').count()
        } else {
            0
        };
        self.whole.iter().chain(&self.fraction[skipped..]).copied()
    }

    fn is_nought(&self) -> bool {
        self.digits().next().is_none()
    }

    /// How many digits stand behind its point.
    pub fn places(&self) -> u32 {
        u32::try_from(-self.exponent).unwrap_or(0)
    }

    pub fn compare(&self, other: &Number<'_>) -> Ordering {
        let sign = |number: &Number<'_>| match (number.is_nought(), number.negative) {
            (true, _) => 0,
            (_, true) => -1,
            _ => 1,
        };
        let order = sign(self).cmp(&sign(other));
        if order != Ordering::Equal || self.is_nought() {
            return order;
        }
        let size = self.adjusted().cmp(&other.adjusted()).then_with(|| {
            let longest = self.digits().count().max(other.digits().count());
            let padded = |number: &Number<'_>| -> Vec<u8> {
                number.digits().chain(std::iter::repeat(b'0')).take(longest).collect()
            };
            padded(self).cmp(&padded(other))
        });
        if self.negative {
            size.reverse()
        } else {
            size
        }
    }

    /// It times ten to the `scale`; None where that does not fit.
    fn scaled(&self, scale: i64) -> Option<i128> {
        let shift = u32::try_from(self.exponent + scale).ok()?;
        let digits = self
            .digits()
            .try_fold(0_i128, |sum, digit| sum.checked_mul(10)?.checked_add(i128::from(digit - b'0')))?;
        let size = digits.checked_mul(10_i128.checked_pow(shift)?)?;
        Some(if self.negative { -size } else { size })
    }

    /// This less another, written without an exponent; None where that takes more than 38 digits.
    pub fn less(&self, other: &Number<'_>) -> Option<Vec<u8>> {
        let scale = (-self.exponent).max(-other.exponent).max(0);
        if scale > SCALE_MOST {
            return None;
        }
        let apart = self.scaled(scale)?.checked_sub(other.scaled(scale)?)?;
        let digits = format!("{:0width$}", apart.unsigned_abs(), width = scale as usize + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale as usize);
        let sign = if apart < 0 { "-" } else { "" };
        let point = if scale > 0 { "." } else { "" };
        Some(format!("{sign}{whole}{point}{fraction}").into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(one: &str, other: &str) -> Ordering {
        Number::of(one.as_bytes()).unwrap().compare(&Number::of(other.as_bytes()).unwrap())
    }

    #[test]
    fn numbers_are_compared_by_what_they_are() {
        for (one, other) in
            [("-1", "0"), ("9", "10"), ("1.5", "1.50001"), ("2e3", "2001"), ("-10", "-9.5"), ("0.01", "0.1")]
        {
            assert_eq!(compared(one, other), Ordering::Less, "{one} {other}");
            assert_eq!(compared(other, one), Ordering::Greater, "{one} {other}");
        }
        for (one, other) in [("0", "-0.0"), ("1.50", "1.5"), ("2e3", "2000"), ("007", "7")] {
            assert_eq!(compared(one, other), Ordering::Equal, "{one} {other}");
        }
    }

    #[test]
    fn a_whole_number_is_what_any_number_is() {
        for text in ["0", "-0", "7", "007", "-12", "123456789012345678", "-999999999999999999"] {
            let (short, long) = (whole(text.as_bytes()).unwrap(), Number::of(text.as_bytes()).unwrap());
            assert_eq!(long.scaled(0), Some(i128::from(short)), "{text}");
        }
        for text in ["", "-", "1.0", "1e3", "+1", "1234567890123456789", "1a"] {
            assert_eq!(whole(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_an_exponent_makes_too_long_is_no_number() {
        for text in ["1e999999999", "1e-999999999", "0e99999999999999999999999", "", "-", ".", "1a"] {
            assert!(Number::of(text.as_bytes()).is_none(), "{text}");
        }
        assert!(Number::of("9".repeat(5_000).as_bytes()).is_none());
    }

    #[test]
    fn differences_are_exact() {
        for (one, other, apart) in
            [("10", "1", "9"), ("0.3", "0.1", "0.2"), ("1e3", "0.5", "999.5"), ("1", "2.25", "-1.25")]
        {
            let found = Number::of(one.as_bytes()).unwrap().less(&Number::of(other.as_bytes()).unwrap());
            assert_eq!(found.unwrap(), apart.as_bytes());
        }
    }
}
