//! Zipf's distribution: the first value most often, each by its rank to the power of an exponent.

use crate::random::Random;

/// The numbers 1..=n by rejection-inversion: Hörmann and Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions", ACM TOMACS 6 (1996).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Zipf {
    n: f64,
    exponent: f64,
    integral_first: f64,
    integral_last: f64,
    accept: f64,
}

impl Zipf {
    pub fn new(n: u64, exponent: f64) -> Self {
        let mut zipf = Zipf { n: n as f64, exponent, integral_first: 0.0, integral_last: 0.0, accept: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.n + 0.5);
        zipf.accept = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    fn weight(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    /// The integral of the weight, up to a constant.
    fn integral(&self, x: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest.abs() < 1e-9 {
            x.ln()
        } else {
            (x.powf(rest) - 1.0) / rest
        }
    }

    fn inverse(&self, y: f64) -> f64 {
        let rest = 1.0 - self.exponent;
        if rest.abs() < 1e-9 {
            y.exp()
        } else {
            (1.0 + y * rest).max(0.0).powf(1.0 / rest)
        }
    }

    /// A number of 1..=n.
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let y = self.integral_last + random.float() * (self.integral_first - self.integral_last);
            let x = self.inverse(y);
            let whole = x.round().clamp(1.0, self.n);
            if whole - x <= self.accept || y >= self.integral(whole + 0.5) - self.weight(whole) {
                return whole as u64;
            }
        }
    }
}
