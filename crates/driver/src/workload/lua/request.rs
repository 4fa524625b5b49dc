//! What a script asks of the driver: the values that its coroutine yields, read.

use crate::error::{Error, Result};
use mlua::{MultiValue, String as LuaString, Value};

/// What the coroutine of a script waits for. The numbers are those of `prelude.lua`.
#[derive(Debug)]
pub(super) enum Request {
    /// The function that was called has ended.
    Done(Ending),
    Connect,
    Query {
        connection: usize,
        sql: LuaString,
    },
    Prepare {
        connection: usize,
        sql: LuaString,
    },
    Execute {
        connection: usize,
        statement: usize,
        parameters: MultiValue,
    },
    Disconnect {
        connection: usize,
    },
    Reconnect {
        connection: usize,
    },
    Sleep {
        duration_ns: u64,
    },
}

/// How a function of the script ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// `stops`: it gave something, by which an event says that its client is through.
    Fine { stops: bool },
    /// It is to be done again: an error that is to be ignored, or the script says so.
    Restart,
    /// The server refused a statement; `place` is its line.
    Refused { place: String },
    /// The script itself failed.
    Broken { reason: String },
}

impl Request {
    /// Reads what the coroutine has yielded.
    pub fn read(mut yielded: MultiValue) -> Result<Self> {
        let kind = number(&mut yielded)?;
        if kind == 1 {
            return Ending::read(&mut yielded).map(Request::Done);
        }
        if kind == 2 {
            return Ok(Request::Connect);
        }
        let first = number(&mut yielded)?;
        let connection = first as usize;
        match kind {
            3 => Ok(Request::Query { connection, sql: text(&mut yielded)? }),
            4 => Ok(Request::Prepare { connection, sql: text(&mut yielded)? }),
            5 => {
                let statement = number(&mut yielded)? as usize;
                Ok(Request::Execute { connection, statement, parameters: yielded })
            }
            6 => Ok(Request::Disconnect { connection }),
            7 => Ok(Request::Reconnect { connection }),
            8 => Ok(Request::Sleep { duration_ns: first }),
            _ => Err(unreadable()),
        }
    }
}

impl Ending {
    fn read(yielded: &mut MultiValue) -> Result<Self> {
        match number(yielded)? {
            1 => Ok(Ending::Fine { stops: matches!(yielded.pop_front(), Some(Value::Boolean(true))) }),
            2 => Ok(Ending::Restart),
            3 => Ok(Ending::Refused { place: text(yielded)?.to_string_lossy() }),
            4 => Ok(Ending::Broken { reason: text(yielded)?.to_string_lossy() }),
            _ => Err(unreadable()),
        }
    }
}

/// The next value as a number that is not below zero.
fn number(yielded: &mut MultiValue) -> Result<u64> {
    match yielded.pop_front() {
        Some(Value::Integer(number)) => u64::try_from(number).map_err(|_| unreadable()),
        Some(Value::Number(number)) if number >= 0.0 => Ok(number as u64),
        _ => Err(unreadable()),
    }
}

fn text(yielded: &mut MultiValue) -> Result<LuaString> {
    match yielded.pop_front() {
        Some(Value::String(text)) => Ok(text),
        _ => Err(unreadable()),
    }
}

/// Only a script that yields from its functions by itself gets here.
#[cold]
fn unreadable() -> Error {
    Error::user("the script calls coroutine.yield outside of a coroutine of its own").fatal()
}
