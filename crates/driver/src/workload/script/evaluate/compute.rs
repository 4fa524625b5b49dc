//! Arithmetic and comparisons, with the types of pgbench: integers stay integers, and no result wraps around.

use super::convert::{parsed, wrong};
use super::Evaluation;
use crate::error::{Error, Result};
use crate::workload::script::frame::Scalar;
use crate::workload::script::function::Function;

fn overflow(operation: &str) -> Error {
    wrong(format!("the result of the {operation} is beyond 64 bits")).hint("use double()")
}

impl Evaluation<'_> {
    pub(super) fn arithmetic(
        &mut self,
        function: Function,
        left: Scalar<'_>,
        right: Scalar<'_>,
    ) -> Result<Scalar<'static>> {
        let (left, right) = (self.number(left)?, self.number(right)?);
        let (Scalar::Int(left), Scalar::Int(right)) = (left, right) else {
            let (left, right) = (self.double(left)?, self.double(right)?);
            return Ok(Scalar::Double(match function {
                Function::Add => left + right,
                Function::Subtract => left - right,
                Function::Multiply => left * right,
                _ => left / right,
            }));
        };
        let (result, operation) = match function {
            Function::Add => (left.checked_add(right), "addition"),
            Function::Subtract => (left.checked_sub(right), "subtraction"),
            Function::Multiply => (left.checked_mul(right), "multiplication"),
            _ if right == 0 => return Err(wrong("division by zero")),
            _ => (left.checked_div(right), "division"),
        };
        result.map(Scalar::Int).ok_or_else(|| overflow(operation))
    }

    pub(super) fn compare(
        &mut self,
        function: Function,
        left: Scalar<'_>,
        right: Scalar<'_>,
    ) -> Result<Scalar<'static>> {
        let ordering = match (self.frame.text(left), self.frame.text(right)) {
            (Some(left), Some(right)) if parsed(left).is_none() || parsed(right).is_none() => {
                Some(left.cmp(right))
            }
            _ => match (self.number(left)?, self.number(right)?) {
                (Scalar::Int(left), Scalar::Int(right)) => Some(left.cmp(&right)),
                (left, right) => self.double(left)?.partial_cmp(&self.double(right)?),
            },
        };
        use std::cmp::Ordering::*;
        Ok(Scalar::Bool(match function {
            Function::Equal => ordering == Some(Equal),
            Function::NotEqual => ordering != Some(Equal),
            Function::Less => ordering == Some(Less),
            _ => matches!(ordering, Some(Less | Equal)),
        }))
    }
}
