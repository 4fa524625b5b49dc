//! Statements whose number of values varies, and the parameters that go with them.

use crate::error::Result;
use crate::session::{Session, Statement, Value};
use std::ops::RangeInclusive;

/// One statement for every length that its list can have.
pub struct Lists {
    first: usize,
    statements: Vec<Statement>,
}

impl Lists {
    pub async fn prepare<S: Session>(
        session: &mut S,
        lengths: RangeInclusive<usize>,
        sql: impl Fn(usize) -> String,
    ) -> Result<Self> {
        let (first, mut statements) = (*lengths.start(), Vec::new());
        for length in lengths {
            statements.push(session.prepare(&sql(length)).await?);
        }
        Ok(Lists { first, statements })
    }

    pub fn of(&self, length: usize) -> Statement {
        self.statements[length - self.first]
    }
}

/// `length` times `item`, joined by commas.
pub fn repeated(item: &str, length: usize) -> String {
    vec![item; length].join(", ")
}

/// Parameters put together on the stack.
pub struct Parameters<'a, const MOST: usize> {
    values: [Value<'a>; MOST],
    length: usize,
}

impl<'a, const MOST: usize> Parameters<'a, MOST> {
    pub fn new() -> Self {
        Parameters { values: [Value::Null; MOST], length: 0 }
    }

    pub fn extend(&mut self, values: impl IntoIterator<Item = Value<'a>>) {
        for value in values {
            self.values[self.length] = value;
            self.length += 1;
        }
    }

    pub fn as_slice(&self) -> &[Value<'a>] {
        &self.values[..self.length]
    }
}
