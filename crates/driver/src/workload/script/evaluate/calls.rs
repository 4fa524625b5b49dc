//! The functions of scripts, by how many arguments they take. All of them have been evaluated, and none is null.

use super::convert::wrong;
use super::Evaluation;
use crate::error::{Error, Result};
use crate::random::{Random, Zipfian};
use crate::workload::script::draw;
use crate::workload::script::frame::{Memory, Scalar};
use crate::workload::script::function::Function;
use crate::workload::script::moment;
use crate::workload::script::text::{digits, letters, raw};
use crate::workload::script::variable::DEFAULT_SEED;
use std::io::Write;

/// The exponent of `zipfian` and the share of `pareto`, as in the OLTP workloads.
const ZIPFIAN_EXPONENT: f64 = 0.8;
const PARETO_SHARE: f64 = 0.2;

impl Evaluation<'_> {
    pub(super) fn call_none(&mut self, function: Function) -> Result<Scalar<'static>> {
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

    pub(super) fn call_one(
        &mut self,
        function: Function,
        memory: usize,
        scalar: Scalar<'_>,
    ) -> Result<Scalar<'static>> {
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

    pub(super) fn call_two(
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

    pub(super) fn call_three(
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

    fn build(&mut self, write: impl FnOnce(&mut Vec<u8>, &mut Random)) -> Scalar<'static> {
        let from = self.frame.buffer.len();
        write(&mut self.frame.buffer, self.random);
        Scalar::Built { from, to: self.frame.buffer.len() }
    }
}
