//! Draws from a list that `[start]` has asked for, each of its values as likely as the others.

use super::evaluate::Evaluation;
use super::expression::Expression;
use super::frame::{Frame, Scalar};
use crate::error::{Error, Result};
use crate::session::Value;

impl Evaluation<'_> {
    pub fn pick<'e>(&mut self, list: &Expression) -> Result<Scalar<'e>> {
        let Expression::Variable(slot) = list else {
            return Err(Error::internal("pick was given no variable"));
        };
        let Frame { variables, buffer, .. } = &mut *self.frame;
        let Some(values) = variables[*slot].list() else {
            return Err(Error::user(format!("the variable :{} holds no list", self.names[*slot]))
                .hint("ask for one: [start] statements = [{ sql = \"SELECT ...\", list = \"name\" }]"));
        };
        let from = buffer.len();
        Ok(match values[self.random.below(values.len() as u64) as usize].borrow() {
            Value::Null => Scalar::Null,
            Value::Int(value) => Scalar::Int(value),
            Value::Float(value) => Scalar::Double(value),
            Value::Text(text) => {
                buffer.extend_from_slice(text.as_bytes());
                Scalar::Built { from, to: buffer.len() }
            }
            Value::Bytes(bytes) => {
                buffer.extend_from_slice(bytes);
                Scalar::Bytes { from, to: buffer.len() }
            }
        })
    }
}
