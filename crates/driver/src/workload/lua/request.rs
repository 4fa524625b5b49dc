//! What a script asks of the driver: the values that its coroutine has yielded, read.

use super::conversation::Conversation;
use crate::error::{Error, Result};
use std::ffi::c_int;

/// What follows the number that says what is asked for: the text of a query or of a statement to prepare, or the first
/// parameter of a statement that is executed.
pub(super) const SQL: c_int = 2;
pub(super) const PARAMETERS: c_int = 2;

/// What the coroutine of a script waits for. The numbers and the places of the values are those of
/// `prelude/requests.lua`.
#[derive(Debug)]
pub(super) enum Request {
    /// The function that was called has ended.
    Done(Ending),
    Connect,
    Query {
        connection: usize,
    },
    Prepare {
        connection: usize,
    },
    Execute {
        connection: usize,
        statement: usize,
    },
    Close {
        connection: usize,
        statement: usize,
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
    /// `place` is the line of the statement; empty where the script itself says so.
    Restart { place: String },
    /// The server refused a statement; `place` is its line.
    Refused { place: String },
    /// The script itself failed.
    Broken { reason: String },
}

impl Request {
    /// Reads what the coroutine has yielded.
    #[inline]
    pub fn read(conversation: &Conversation) -> Result<Self> {
        let number = |place| conversation.number(place).ok_or_else(unreadable);
        let asked = number(1)?;
        let (connection, statement) = ((asked >> 4) as usize & 0xFFFF, (asked >> 20) as usize);
        Ok(match asked & 0xF {
            1 => Request::Done(Ending::read(connection, conversation)?),
            2 => Request::Connect,
            3 => Request::Query { connection },
            4 => Request::Prepare { connection },
            5 => Request::Execute { connection, statement },
            6 => Request::Disconnect { connection },
            7 => Request::Reconnect { connection },
            8 => Request::Sleep { duration_ns: number(2)? },
            9 => Request::Close { connection, statement },
            _ => return Err(unreadable()),
        })
    }
}

impl Ending {
    #[inline]
    fn read(how: usize, conversation: &Conversation) -> Result<Self> {
        let text = || conversation.text(2).map(|text| String::from_utf8_lossy(text).into_owned());
        Ok(match how {
            1 => Ending::Fine { stops: conversation.is_true(2) },
            2 => Ending::Restart { place: text().unwrap_or_default() },
            3 => Ending::Refused { place: text().ok_or_else(unreadable)? },
            4 => Ending::Broken { reason: text().ok_or_else(unreadable)? },
            _ => return Err(unreadable()),
        })
    }
}

/// Only a script that yields from its functions by itself gets here.
#[cold]
pub(super) fn unreadable() -> Error {
    Error::user("the script calls coroutine.yield outside of a coroutine of its own").fatal()
}
