//! The mistakes of a script: all of them are told at once, each with its place.

use crate::error::{Error, Mistake, Result};

/// Mistakes beyond this many are counted only.
const MOST_SHOWN: usize = 20;

#[derive(Debug, Default)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// `place` is a file and a line, such as `shop.toml:7`.
    pub fn add(&mut self, place: impl Into<String>, message: impl Into<String>, hint: impl Into<String>) {
        self.0.push(Mistake { place: place.into(), message: message.into(), hint: hint.into() });
    }

    /// Passes `value` on if there are no mistakes, else turns all of them into one error.
    pub fn or<T>(self, value: T) -> Result<T> {
        match &self.0[..] {
            [] => Ok(value),
            [one] => Err(Error::user(format!("{}: {}", one.place, one.message))
                .hint(one.hint.clone())
                .with_mistakes(self.0)),
            all => {
                let mut text = format!("{} mistakes:", all.len());
                for Mistake { place, message, hint } in all.iter().take(MOST_SHOWN) {
                    text.push_str(&format!("\n  {place}: {message}"));
                    if !hint.is_empty() {
                        text.push_str(&format!(" ({hint})"));
                    }
                }
                if all.len() > MOST_SHOWN {
                    text.push_str(&format!("\n  and {} more", all.len() - MOST_SHOWN));
                }
                Err(Error::user(text).with_mistakes(self.0))
            }
        }
    }
}

/// A file's text, and which line a byte of it is on.
pub struct Source<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// Counted from 1.
    pub fn line(&self, at: usize) -> usize {
        1 + self.text.as_bytes()[..at.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count()
    }

    pub fn place(&self, at: usize) -> String {
        format!("{}:{}", self.name, self.line(at))
    }
}
