//! What an expression's value is used for: to set a variable, as a condition, as a number.

use super::evaluate::Evaluation;
use super::expression::Expression;
use super::frame::{Frame, Scalar};
use crate::error::Result;
use crate::random::Random;

impl Frame {
    /// Evaluates `expression` into the variable `slot`.
    pub fn assign(
        &mut self,
        slot: usize,
        expression: &Expression,
        names: &[String],
        random: &mut Random,
    ) -> Result<()> {
        self.buffer.clear();
        let scalar = Evaluation { frame: self, random, names }.evaluate(expression)?;
        let mut target = std::mem::take(&mut self.variables[slot]);
        match scalar {
            Scalar::Bool(value) => target.set_bool(value),
            // A variable set to itself has been taken out of its slot.
            Scalar::Held(other) if other == slot => {}
            Scalar::Held(other) => target.copy_from(&self.variables[other]),
            other => target.set(self.value(other)),
        }
        self.variables[slot] = target;
        Ok(())
    }

    /// Evaluates `expression` as a condition: null, false and 0 are false.
    pub fn truth(&mut self, expression: &Expression, names: &[String], random: &mut Random) -> Result<bool> {
        self.buffer.clear();
        let mut evaluation = Evaluation { frame: self, random, names };
        let scalar = evaluation.evaluate(expression)?;
        evaluation.truth(scalar)
    }

    /// Evaluates `expression` as a number; null is 0.
    pub fn number(&mut self, expression: &Expression, names: &[String], random: &mut Random) -> Result<f64> {
        self.buffer.clear();
        let mut evaluation = Evaluation { frame: self, random, names };
        match evaluation.evaluate(expression)? {
            Scalar::Null => Ok(0.0),
            scalar => evaluation.double(scalar),
        }
    }
}
