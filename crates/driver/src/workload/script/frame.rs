//! What changes while a client's expressions are evaluated: its variables, its sequences, a buffer for texts.

use super::variable::Variable;
use crate::random::Zipfian;
use crate::session::Value;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;

/// A value on its way through an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'e> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    /// A text of the script.
    Literal(&'e str),
    /// What a variable holds: text or bytes.
    Held(usize),
    /// Part of the frame's buffer, with UTF-8 in it.
    Built {
        from: usize,
        to: usize,
    },
    /// Part of the frame's buffer.
    Bytes {
        from: usize,
        to: usize,
    },
}

/// What a function keeps between calls.
#[derive(Clone, Debug, Default)]
pub enum Memory {
    #[default]
    Empty,
    Zipfian(Zipfian),
    Counter(Arc<Counter>),
}

/// A sequence of one client: `first`, `first + step`, ... It lives on when the client reconnects.
#[derive(Debug)]
pub struct Counter {
    /// Draws so far.
    drawn: AtomicI64,
    client: i64,
    step: i64,
}

impl Counter {
    /// The sequence of one of `clients`, disjoint from those of the others.
    pub fn new(client: u32, clients: u32) -> Self {
        Counter { drawn: AtomicI64::new(0), client: i64::from(client), step: i64::from(clients.max(1)) }
    }

    pub(super) fn next(&self, first: i64) -> i64 {
        // One client draws from it, so no other order is needed.
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
        first.wrapping_add(self.client).wrapping_add(drawn.wrapping_mul(self.step))
    }
}

/// All that changes while the expressions of one client are evaluated.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    pub variables: Vec<Variable>,
    pub memories: Vec<Memory>,
    /// The number of the row that is being loaded.
    pub row: i64,
    /// Where texts are built; emptied before each evaluation.
    pub(super) buffer: Vec<u8>,
}

impl Frame {
    pub fn new(variables: usize, memories: usize) -> Self {
        Frame {
            variables: vec![Variable::default(); variables],
            memories: vec![Memory::default(); memories],
            row: 0,
            buffer: Vec::new(),
        }
    }

    pub(super) fn value<'a>(&'a self, scalar: Scalar<'a>) -> Value<'a> {
        match scalar {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Int(i64::from(value)),
            Scalar::Int(value) => Value::Int(value),
            Scalar::Double(value) => Value::Float(value),
            Scalar::Literal(text) => Value::Text(text),
            Scalar::Held(slot) => self.variables[slot].value(),
            Scalar::Built { from, to } => Value::Text(self.built(from, to)),
            Scalar::Bytes { from, to } => Value::Bytes(&self.buffer[from..to]),
        }
    }

    fn built(&self, from: usize, to: usize) -> &str {
        // Only UTF-8 is built; were it not so, the text would come out empty.
        std::str::from_utf8(&self.buffer[from..to]).unwrap_or_default()
    }

    /// The text of a scalar that is one.
    pub(super) fn text<'a>(&'a self, scalar: Scalar<'a>) -> Option<&'a str> {
        match scalar {
            Scalar::Literal(text) => Some(text),
            Scalar::Built { from, to } => Some(self.built(from, to)),
            Scalar::Held(slot) => match self.variables[slot].value() {
                Value::Text(text) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }
}
