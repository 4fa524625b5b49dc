//! Evaluates expressions over a client's variables. Nothing is allocated: texts are built in a buffer that stays.

use super::draw;
use super::expression::Expression;
use super::frame::{Frame, Memory, Scalar};
use super::function::Function;
use super::moment;
use super::text::{digits, letters, raw, write_double};
use super::variable::DEFAULT_SEED;
use crate::error::{Error, Result};
use crate::random::{Random, Zipfian};
use crate::session::Value;
use std::io::Write;

/// The longest text that a generator makes.
const LONGEST: i64 = 64 << 20;

/// The exponent of `zipfian` and the share of `pareto`, as in the OLTP workloads.
const ZIPFIAN_EXPONENT: f64 = 0.8;
const PARETO_SHARE: f64 = 0.2;

pub struct Evaluation<'a> {
    pub frame: &'a mut Frame,
    pub random: &'a mut Random,
    /// The variables' names, for messages.
    pub names: &'a [String],
}

fn wrong(message: impl Into<String>) -> Error {
    Error::user(message)
}

fn overflow(operation: &str) -> Error {
    wrong(format!("the result of the {operation} is beyond 64 bits")).hint("use double()")
}

/// What a text is as a number: integers stay integers.
fn parsed(text: &str) -> Option<Scalar<'static>> {
    let text = text.trim();
    text.parse().map(Scalar::Int).ok().or_else(|| text.parse().map(Scalar::Double).ok())
}

/// What a text is as a truth value, in the words that pgbench takes.
fn truth_of(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "tru" | "tr" | "t" | "yes" | "ye" | "y" | "on" => Some(true),
        "false" | "fals" | "fal" | "fa" | "f" | "no" | "n" | "off" | "of" => Some(false),
        _ => None,
    }
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

    fn call_none(&mut self, function: Function) -> Result<Scalar<'static>> {
        Ok(match function {
            Function::Pi => Scalar::Double(std::f64::consts::PI),
            Function::Row => Scalar::Int(self.frame.row),
            Function::Uuid => self.build(|buffer, random| {
                let (high, low) = (random.next_u64(), random.next_u64());
                // Version 4, variant 1 of RFC 9562.
                let (high, low) = (high & !0xF000 | 0x4000, low >> 2 | 1 << 63);
                let _ = write!(
                    buffer,
                    "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                    high >> 32,
                    high >> 16 & 0xFFFF,
                    high & 0xFFFF,
                    low >> 48,
                    low & 0xFFFF_FFFF_FFFF
                );
            }),
            Function::Now => {
                let since_1970 =
                    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                self.build(|buffer, _| {
                    moment::write_timestamp(buffer, since_1970.as_secs() as i64);
                    let _ = write!(buffer, ".{:06}", since_1970.subsec_micros());
                })
            }
            _ => return Err(Error::internal(format!("{function:?} was called without arguments"))),
        })
    }

    fn call_one(&mut self, function: Function, memory: usize, scalar: Scalar<'_>) -> Result<Scalar<'static>> {
        Ok(match function {
            Function::Not => Scalar::Bool(!self.bool(scalar)?),
            Function::Abs => match self.number(scalar)? {
                Scalar::Int(value) => Scalar::Int(value.wrapping_abs()),
                value => Scalar::Double(self.double(value)?.abs()),
            },
            Function::Int => Scalar::Int(self.int(scalar)?),
            Function::Double => Scalar::Double(self.double(scalar)?),
            Function::Exp => Scalar::Double(self.double(scalar)?.exp()),
            Function::Ln => Scalar::Double(self.double(scalar)?.ln()),
            Function::Sqrt => Scalar::Double(self.double(scalar)?.sqrt()),
            Function::HashFnv1a | Function::HashMurmur2 => {
                let seed = self.variable(DEFAULT_SEED)?;
                return self.call_two(function, memory, scalar, seed);
            }
            Function::Text => {
                let length = self.length(scalar)?;
                self.build(|buffer, random| letters(buffer, length, random))
            }
            Function::Digits => {
                let length = self.length(scalar)?;
                self.build(|buffer, random| digits(buffer, length, random))
            }
            Function::Bytes => {
                let length = self.length(scalar)?;
                let Scalar::Built { from, to } = self.build(|buffer, random| raw(buffer, length, random))
                else {
                    return Err(Error::internal("bytes were not built"));
                };
                Scalar::Bytes { from, to }
            }
            Function::Sequence => {
                let first = self.int(scalar)?;
                match &self.frame.memories[memory] {
                    Memory::Counter(counter) => Scalar::Int(counter.next(first)),
                    _ => return Err(Error::internal("a sequence has no counter")),
                }
            }
            _ => return Err(Error::internal(format!("{function:?} was called with one argument"))),
        })
    }

    fn call_two(
        &mut self,
        function: Function,
        memory: usize,
        left: Scalar<'_>,
        right: Scalar<'_>,
    ) -> Result<Scalar<'static>> {
        use Function::*;
        Ok(match function {
            Add | Subtract | Multiply | Divide => return self.arithmetic(function, left, right),
            Equal | NotEqual | Less | LessOrEqual => return self.compare(function, left, right),
            Modulo => match (self.int(left)?, self.int(right)?) {
                (_, 0) => return Err(wrong("division by zero")),
                (left, right) => Scalar::Int(left.wrapping_rem(right)),
            },
            BitAnd => Scalar::Int(self.int(left)? & self.int(right)?),
            BitOr => Scalar::Int(self.int(left)? | self.int(right)?),
            BitXor => Scalar::Int(self.int(left)? ^ self.int(right)?),
            ShiftLeft => Scalar::Int(self.int(left)?.wrapping_shl(self.int(right)? as u32)),
            ShiftRight => Scalar::Int(self.int(left)?.wrapping_shr(self.int(right)? as u32)),
            Power => Scalar::Double(self.double(left)?.powf(self.double(right)?)),
            HashFnv1a => Scalar::Int(draw::hash_fnv1a(self.int(left)?, self.int(right)?)),
            HashMurmur2 => Scalar::Int(draw::hash_murmur2(self.int(left)?, self.int(right)?)),
            Permute => {
                let seed = self.variable(DEFAULT_SEED)?;
                return self.call_three(function, memory, left, right, seed);
            }
            Random => Scalar::Int(self.range(left, right).map(|(low, high)| self.random.between(low, high))?),
            Zipfian => {
                return self.call_three(function, memory, left, right, Scalar::Double(ZIPFIAN_EXPONENT))
            }
            Pareto => return self.call_three(function, memory, left, right, Scalar::Double(PARETO_SHARE)),
            Text => {
                let (shortest, longest) = (self.length(left)?, self.length(right)?);
                if shortest > longest {
                    return Err(wrong(format!(
                        "text({shortest}, {longest}): the shortest is longer than the longest"
                    )));
                }
                let length = shortest + self.random.below((longest - shortest) as u64 + 1) as usize;
                self.build(|buffer, random| letters(buffer, length, random))
            }
            Digits => {
                let (groups, length) = (self.length(left)?, self.length(right)?);
                self.length(Scalar::Int((groups as i64).saturating_mul(length as i64 + 1)))?;
                self.build(|buffer, random| {
                    for group in 0..groups {
                        if group > 0 {
                            buffer.push(b'-');
                        }
                        digits(buffer, length, random);
                    }
                })
            }
            Timestamp => self.moment_between(left, right, moment::write_timestamp)?,
            Date => self.moment_between(left, right, moment::write_date)?,
            _ => return Err(Error::internal(format!("{function:?} was called with two arguments"))),
        })
    }

    fn moment_between(
        &mut self,
        left: Scalar<'_>,
        right: Scalar<'_>,
        write: fn(&mut Vec<u8>, i64),
    ) -> Result<Scalar<'static>> {
        let (from, to) = (self.moment(left)?, self.moment(right)?);
        if from > to {
            return Err(wrong("a range of dates ends before it starts"));
        }
        let drawn = self.random.between(from, to);
        Ok(self.build(|buffer, _| write(buffer, drawn)))
    }

    fn call_three(
        &mut self,
        function: Function,
        memory: usize,
        first: Scalar<'_>,
        second: Scalar<'_>,
        third: Scalar<'_>,
    ) -> Result<Scalar<'static>> {
        if function == Function::Permute {
            let (value, size, seed) = (self.int(first)?, self.int(second)?, self.int(third)?);
            if size <= 0 {
                return Err(wrong("the size of permute must be greater than zero"));
            }
            return Ok(Scalar::Int(draw::permute(value, size, seed)));
        }
        let ((low, high), parameter) = (self.range(first, second)?, self.double(third)?);
        let allowed = |holds: bool, rule: &str| match holds {
            true => Ok(()),
            false => Err(wrong(format!("the {rule} (it is {parameter})"))),
        };
        Ok(Scalar::Int(match function {
            Function::RandomExponential => {
                allowed(parameter > 0.0, "exponential parameter must be greater than zero")?;
                draw::exponential(self.random, low, high, parameter)
            }
            Function::RandomGaussian => {
                allowed(parameter >= 2.0, "gaussian parameter must be at least 2.0")?;
                draw::gaussian(self.random, low, high, parameter)
            }
            Function::RandomZipfian => {
                allowed((1.001..=1000.0).contains(&parameter), "zipfian parameter must be in 1.001 to 1000")?;
                self.zipfian(memory, low, high, parameter)
            }
            Function::Zipfian => {
                allowed(
                    parameter > 0.0 && parameter <= 1000.0,
                    "zipfian exponent must be above 0 and at most 1000",
                )?;
                self.zipfian(memory, low, high, parameter)
            }
            Function::Pareto => {
                allowed(parameter > 0.0 && parameter < 1.0, "pareto share must lie between 0 and 1")?;
                draw::pareto(self.random, low, high, parameter)
            }
            _ => return Err(Error::internal(format!("{function:?} was called with three arguments"))),
        }))
    }

    fn zipfian(&mut self, memory: usize, low: i64, high: i64, exponent: f64) -> i64 {
        let size = (high - low) as u64 + 1;
        let zipfian = match self.frame.memories[memory] {
            Memory::Zipfian(kept) if kept.fits(size, exponent) => kept,
            _ => {
                let made = Zipfian::new(size, exponent);
                self.frame.memories[memory] = Memory::Zipfian(made);
                made
            }
        };
        low + (zipfian.draw(self.random) - 1) as i64
    }

    fn arithmetic(
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

    fn compare(
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

    fn build(&mut self, write: impl FnOnce(&mut Vec<u8>, &mut Random)) -> Scalar<'static> {
        let from = self.frame.buffer.len();
        write(&mut self.frame.buffer, self.random);
        Scalar::Built { from, to: self.frame.buffer.len() }
    }

    fn range(&self, low: Scalar<'_>, high: Scalar<'_>) -> Result<(i64, i64)> {
        let (low, high) = (self.int(low)?, self.int(high)?);
        if low > high {
            return Err(wrong(format!("the range {low} to {high} is empty")));
        }
        match high.checked_sub(low) {
            Some(span) if span < i64::MAX => Ok((low, high)),
            _ => Err(wrong(format!("the range {low} to {high} is too large"))),
        }
    }

    fn length(&self, scalar: Scalar<'_>) -> Result<usize> {
        match self.int(scalar)? {
            length @ 0..=LONGEST => Ok(length as usize),
            length => Err(wrong(format!("a text cannot be {length} long")).hint(format!("0 to {LONGEST}"))),
        }
    }

    fn moment(&self, scalar: Scalar<'_>) -> Result<i64> {
        let text = self.frame.text(scalar).unwrap_or_default();
        moment::parse(text).ok_or_else(|| {
            wrong(format!("{text:?} is no date")).hint("write '2024-01-31' or '2024-01-31 23:59:59'")
        })
    }

    /// Texts become the number that they hold.
    fn number(&self, scalar: Scalar<'_>) -> Result<Scalar<'static>> {
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

    fn int(&self, scalar: Scalar<'_>) -> Result<i64> {
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

    fn bool(&self, scalar: Scalar<'_>) -> Result<bool> {
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
