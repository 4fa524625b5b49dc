//! Evaluates expressions over a client's variables. Nothing is allocated: texts are built in a buffer that stays.

mod calls;
mod compute;
mod convert;

use super::expression::Expression;
use super::frame::{Frame, Scalar};
use super::function::Function;
use super::text::write_double;
use crate::error::Result;
use crate::random::Random;
use crate::session::Value;
use convert::{truth_of, wrong};
use std::io::Write;

pub struct Evaluation<'a> {
    pub frame: &'a mut Frame,
    pub random: &'a mut Random,
    /// The variables' names, for messages.
    pub names: &'a [String],
}

impl Evaluation<'_> {
    pub fn evaluate<'e>(&mut self, expression: &'e Expression) -> Result<Scalar<'e>> {
        Ok(match expression {
            Expression::Null => Scalar::Null,
            Expression::Bool(value) => Scalar::Bool(*value),
            Expression::Int(value) => Scalar::Int(*value),
            Expression::Double(value) => Scalar::Double(*value),
            Expression::Text(text) => Scalar::Literal(text),
            Expression::Variable(slot) => return self.variable(*slot),
            Expression::Call { function, memory, arguments } => {
                return self.call(*function, *memory, arguments)
            }
        })
    }

    fn variable(&self, slot: usize) -> Result<Scalar<'static>> {
        let variable = &self.frame.variables[slot];
        if !variable.is_set() {
            return Err(wrong(format!("the variable :{} is used before it is set", self.names[slot])));
        }
        Ok(match (variable.as_bool(), variable.value()) {
            (Some(value), _) => Scalar::Bool(value),
            (None, Value::Null) => Scalar::Null,
            (None, Value::Int(value)) => Scalar::Int(value),
            (None, Value::Float(value)) => Scalar::Double(value),
            (None, Value::Text(_) | Value::Bytes(_)) => Scalar::Held(slot),
        })
    }

    fn call<'e>(
        &mut self,
        function: Function,
        memory: usize,
        arguments: &'e [Expression],
    ) -> Result<Scalar<'e>> {
        match function {
            Function::And => self.junction(arguments, false),
            Function::Or => self.junction(arguments, true),
            Function::Case => self.case(arguments),
            Function::Is => self.is(arguments),
            Function::Debug => self.debug(&arguments[0]),
            Function::Least | Function::Greatest => self.extreme(arguments, function == Function::Least),
            Function::Choice => {
                let chosen = self.random.below(arguments.len() as u64);
                self.evaluate(&arguments[chosen as usize])
            }
            Function::Pick => self.pick(&arguments[0]),
            Function::Concat => self.concat(arguments),
            _ => match arguments {
                [] => self.call_none(function),
                [argument] => match self.evaluate(argument)? {
                    Scalar::Null => Ok(Scalar::Null),
                    scalar => self.call_one(function, memory, scalar),
                },
                [first, rest @ ..] => {
                    // All arguments are evaluated before one that is null decides, as pgbench does it.
                    let first = self.evaluate(first)?;
                    let second = self.evaluate(&rest[0])?;
                    let third = rest.get(1).map(|third| self.evaluate(third)).transpose()?;
                    if [first, second, third.unwrap_or(Scalar::Int(0))].contains(&Scalar::Null) {
                        return Ok(Scalar::Null);
                    }
                    match third {
                        None => self.call_two(function, memory, first, second),
                        Some(third) => self.call_three(function, memory, first, second, third),
                    }
                }
            },
        }
    }

    /// `and` stops at false, `or` at true; a null on the left decides too.
    fn junction<'e>(&mut self, arguments: &'e [Expression], decisive: bool) -> Result<Scalar<'e>> {
        for (place, argument) in arguments.iter().enumerate() {
            let last = place + 1 == arguments.len();
            match self.evaluate(argument)? {
                Scalar::Null => return Ok(Scalar::Null),
                scalar => {
                    let value = self.bool(scalar)?;
                    if last || value == decisive {
                        return Ok(Scalar::Bool(value));
                    }
                }
            }
        }
        Ok(Scalar::Null)
    }

    /// Pairs of condition and value, then the value for when none holds.
    fn case<'e>(&mut self, arguments: &'e [Expression]) -> Result<Scalar<'e>> {
        let (otherwise, pairs) = arguments.split_last().expect("the parser ends a case with its else");
        for pair in pairs.chunks_exact(2) {
            let condition = self.evaluate(&pair[0])?;
            if self.truth(condition)? {
                return self.evaluate(&pair[1]);
            }
        }
        self.evaluate(otherwise)
    }

    /// The same type and the same value; the right side is null, true or false.
    fn is<'e>(&mut self, arguments: &'e [Expression]) -> Result<Scalar<'e>> {
        let (left, right) = (self.evaluate(&arguments[0])?, self.evaluate(&arguments[1])?);
        let left = match self.frame.text(left).and_then(truth_of) {
            Some(value) => Scalar::Bool(value),
            None => left,
        };
        Ok(Scalar::Bool(left == right))
    }

    fn debug<'e>(&mut self, argument: &'e Expression) -> Result<Scalar<'e>> {
        let scalar = self.evaluate(argument)?;
        match scalar {
            Scalar::Null => eprintln!("debug: null"),
            Scalar::Bool(value) => eprintln!("debug: boolean {value}"),
            Scalar::Int(value) => eprintln!("debug: int {value}"),
            Scalar::Double(value) => {
                let mut text = Vec::new();
                write_double(&mut text, value);
                eprintln!("debug: double {}", String::from_utf8_lossy(&text));
            }
            other => eprintln!("debug: text {}", self.frame.value(other).to_owned()),
        }
        Ok(scalar)
    }

    fn extreme<'e>(&mut self, arguments: &'e [Expression], least: bool) -> Result<Scalar<'e>> {
        // A null among the arguments decides before one that is no number is complained of.
        let (mut null, mut wrong, mut all_int) = (false, None, true);
        let (mut int, mut double) = (None::<i64>, None::<f64>);
        for argument in arguments {
            let scalar = self.evaluate(argument)?;
            let as_double = match self.number(scalar) {
                _ if scalar == Scalar::Null => {
                    null = true;
                    continue;
                }
                Err(error) => {
                    wrong = Some(error);
                    continue;
                }
                Ok(Scalar::Int(value)) => {
                    int =
                        Some(int.map_or(value, |best| if least { best.min(value) } else { best.max(value) }));
                    value as f64
                }
                Ok(value) => {
                    all_int = false;
                    self.double(value)?
                }
            };
            // Written so that what is not a number falls out where pgbench lets it.
            let kept = |best: f64| if least { best < as_double } else { best > as_double };
            double = Some(double.filter(|best| kept(*best)).unwrap_or(as_double));
        }
        match (null, wrong, int, double) {
            (true, ..) => Ok(Scalar::Null),
            (_, Some(error), ..) => Err(error),
            (_, _, Some(int), _) if all_int => Ok(Scalar::Int(int)),
            (_, _, _, double) => Ok(double.map_or(Scalar::Null, Scalar::Double)),
        }
    }

    fn concat<'e>(&mut self, arguments: &'e [Expression]) -> Result<Scalar<'e>> {
        // Arguments may build texts of their own, so what has been joined moves behind the last of them each time.
        let (mut from, mut to) = (self.frame.buffer.len(), self.frame.buffer.len());
        for argument in arguments {
            let scalar = self.evaluate(argument)?;
            let start = self.frame.buffer.len();
            if start != to {
                self.frame.buffer.extend_from_within(from..to);
                from = start;
            }
            self.append(scalar);
            to = self.frame.buffer.len();
        }
        Ok(Scalar::Built { from, to })
    }

    /// Appends a value as text to the buffer; null and bytes give none.
    fn append(&mut self, scalar: Scalar<'_>) {
        let buffer = &mut self.frame.buffer;
        match scalar {
            Scalar::Null | Scalar::Bytes { .. } => {}
            // Writing to a Vec cannot fail.
            Scalar::Bool(value) => drop(write!(buffer, "{value}")),
            Scalar::Int(value) => drop(write!(buffer, "{value}")),
            Scalar::Double(value) => write_double(buffer, value),
            Scalar::Literal(text) => buffer.extend_from_slice(text.as_bytes()),
            Scalar::Built { from, to } => buffer.extend_from_within(from..to),
            Scalar::Held(slot) => {
                if let Value::Text(text) = self.frame.variables[slot].value() {
                    buffer.extend_from_slice(text.as_bytes());
                }
            }
        }
    }
}
