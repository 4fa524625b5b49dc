//! Moments as logs write them. Which second a minute begins with is asked for once a minute, because that depends on
//! time zones.

use crate::{Fault, Minutes};

/// The minute that was asked for last.
#[derive(Default)]
pub struct Moments {
    asked: String,
    zone: String,
    minute_s: Option<f64>,
}

impl Moments {
    /// Of `2026-11-22T16:00:00.000001`, with a blank in the place of the T and perhaps `Z` or `+01:00` behind it, or
    /// `261122  6:00:01`, in seconds since 1970; None for what is no moment.
    pub fn at_s(
        &mut self,
        text: &[u8],
        zone: &[u8],
        minutes: &mut Minutes<'_>,
    ) -> Result<Option<f64>, Fault> {
        let (Ok(text), Ok(zone)) = (std::str::from_utf8(text), std::str::from_utf8(zone)) else {
            return Ok(None);
        };
        let Some((minute, rest)) = minute_of(text) else { return Ok(None) };
        let Some((micros, suffix)) = micros_of(rest) else { return Ok(None) };
        let known = self.asked.strip_prefix(minute).and_then(|rest| rest.strip_prefix(":00")) == Some(suffix);
        if !known || self.zone != zone {
            self.asked = format!("{minute}:00{suffix}");
            zone.clone_into(&mut self.zone);
            self.minute_s = minutes(&self.asked, zone)?;
        }
        // Whole microseconds, because a sum of floats would be off by some.
        Ok(self.minute_s.map(|minute_s| ((minute_s as i64) * 1_000_000 + micros) as f64 / 1e6))
    }
}

fn minute_of(text: &str) -> Option<(&str, &str)> {
    let length = text.find(':')? + 3;
    Some((text.get(..length)?, text.get(length..)?))
}

/// The microseconds of `:01.5Z`, and what stands behind them.
fn micros_of(rest: &str) -> Option<(i64, &str)> {
    let rest = rest.strip_prefix(':')?;
    let seconds = rest.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let seconds: i64 = seconds.parse().ok().filter(|seconds| *seconds < 60)?;
    let rest = &rest[2..];
    let Some(fraction) = rest.strip_prefix('.') else { return Some((seconds * 1_000_000, rest)) };
    let count = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 {
        return None;
    }
    let micros = (0..6).fold(0, |sum, place| {
        let digit = if place < count { fraction.as_bytes()[place] - b'0' } else { 0 };
        sum * 10 + i64::from(digit)
    });
    Some((seconds * 1_000_000 + micros, &fraction[count..]))
}
