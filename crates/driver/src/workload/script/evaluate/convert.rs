//! What a value is as a number, a truth value, a length, a range or a moment, and what is said where it is none.

use super::Evaluation;
use crate::error::{Error, Result};
use crate::workload::script::frame::Scalar;
use crate::workload::script::moment;

/// The longest text that a generator makes.
const LONGEST: i64 = 64 << 20;

pub(super) fn wrong(message: impl Into<String>) -> Error {
    Error::user(message)
}

/// What a text is as a number: integers stay integers.
pub(super) fn parsed(text: &str) -> Option<Scalar<'static>> {
    let text = text.trim();
    text.parse().map(Scalar::Int).ok().or_else(|| text.parse().map(Scalar::Double).ok())
}

/// What a text is as a truth value, in the words that pgbench takes.
pub(super) fn truth_of(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "tru" | "tr" | "t" | "yes" | "ye" | "y" | "on" => Some(true),
        "false" | "fals" | "fal" | "fa" | "f" | "no" | "n" | "off" | "of" => Some(false),
        _ => None,
    }
}

impl Evaluation<'_> {
    pub(super) fn range(&self, low: Scalar<'_>, high: Scalar<'_>) -> Result<(i64, i64)> {
        let (low, high) = (self.int(low)?, self.int(high)?);
        if low > high {
            return Err(wrong(format!("the range {low} to {high} is empty")));
        }
        match high.checked_sub(low) {
            Some(span) if span < i64::MAX => Ok((low, high)),
            _ => Err(wrong(format!("the range {low} to {high} is too large"))),
        }
    }

    pub(super) fn length(&self, scalar: Scalar<'_>) -> Result<usize> {
        match self.int(scalar)? {
            length @ 0..=LONGEST => Ok(length as usize),
            length => Err(wrong(format!("a text cannot be {length} long")).hint(format!("0 to {LONGEST}"))),
        }
    }

    pub(super) fn moment(&self, scalar: Scalar<'_>) -> Result<i64> {
        let text = self.frame.text(scalar).unwrap_or_default();
        moment::parse(text).ok_or_else(|| {
            wrong(format!("{text:?} is no date")).hint("write '2024-01-31' or '2024-01-31 23:59:59'")
        })
    }

    /// Texts become the number that they hold.
    pub(super) fn number(&self, scalar: Scalar<'_>) -> Result<Scalar<'static>> {
        match scalar {
            Scalar::Int(value) => Ok(Scalar::Int(value)),
            Scalar::Double(value) => Ok(Scalar::Double(value)),
            Scalar::Bool(_) => Err(wrong("a truth value was given where a number is needed")),
            other => {
                let text = self.frame.text(other).unwrap_or_default();
                parsed(text).ok_or_else(|| wrong(format!("{text:?} was given where a number is needed")))
            }
        }
    }

    pub(super) fn int(&self, scalar: Scalar<'_>) -> Result<i64> {
        match self.number(scalar)? {
            Scalar::Int(value) => Ok(value),
            Scalar::Double(value) => {
                let rounded = value.round_ties_even();
                // 2^63 as a float; the upper bound itself is not an i64.
                if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
                    Ok(rounded as i64)
                } else {
                    Err(wrong(format!("{value} is beyond the integers of 64 bits")))
                }
            }
            _ => Err(Error::internal("a number is neither integer nor float")),
        }
    }

    pub fn double(&self, scalar: Scalar<'_>) -> Result<f64> {
        match self.number(scalar)? {
            Scalar::Int(value) => Ok(value as f64),
            Scalar::Double(value) => Ok(value),
            _ => Err(Error::internal("a number is neither integer nor float")),
        }
    }

    pub(super) fn bool(&self, scalar: Scalar<'_>) -> Result<bool> {
        let found = match scalar {
            Scalar::Bool(value) => Some(value),
            other => self.frame.text(other).and_then(truth_of),
        };
        found.ok_or_else(|| wrong("a truth value is needed, such as the result of a comparison"))
    }

    /// Null, false and 0 are false.
    pub fn truth(&self, scalar: Scalar<'_>) -> Result<bool> {
        Ok(match scalar {
            Scalar::Null => false,
            Scalar::Bool(value) => value,
            Scalar::Int(value) => value != 0,
            Scalar::Double(value) => value != 0.0,
            other => match self.frame.text(other).and_then(truth_of) {
                Some(value) => value,
                None => self.double(other)? != 0.0,
            },
        })
    }
}
