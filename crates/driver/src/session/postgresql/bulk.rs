//! Loading rows in bulk: COPY in its text form, which takes every type as a `Value` holds it.

use super::answers::refused;
use super::handshake::out_of_place;
use super::message::{answer, put, put_string};
use super::value::put_text;
use super::{Postgresql, Source};
use crate::error::{Fate, Result};
use crate::session::{RowBuffer, Session, Value};

const MESSAGE_BYTES: usize = 64 << 10;
/// A COPY is not acknowledged before its end, so it is ended now and then: what is sent and not yet read stays small.
const COPY_BYTES: usize = 4 << 20;

pub(super) async fn insert(
    session: &mut Postgresql,
    table: &str,
    columns: &[&str],
    next: impl FnMut(&mut RowBuffer) -> bool,
) -> Result<u64> {
    let copy = format!("COPY {table} ({}) FROM STDIN", columns.join(", "));
    session.begin().await?;
    match copy_rows(session, &copy, next).await {
        Ok(rows) => session.commit().await.map(|()| rows),
        Err(error) if error.fate() == Fate::Lost => Err(error),
        Err(error) => session.rollback().await.and(Err(error)),
    }
}

async fn copy_rows(
    session: &mut Postgresql,
    copy: &str,
    mut next: impl FnMut(&mut RowBuffer) -> bool,
) -> Result<u64> {
    let (mut row, mut lines) = (RowBuffer::default(), Vec::with_capacity(MESSAGE_BYTES + 1024));
    let (mut rows, mut more) = (0, true);
    while more {
        session.start_copy(copy).await?;
        let mut sent = 0;
        while more && sent < COPY_BYTES {
            lines.clear();
            while more && lines.len() < MESSAGE_BYTES {
                row.clear();
                more = next(&mut row);
                if more {
                    put_line(&mut lines, &row);
                }
            }
            sent += lines.len();
            put(session.channel.outbox(), b'd', |out| out.extend_from_slice(&lines));
            session.channel.send()?;
        }
        rows += session.end_copy().await?;
    }
    Ok(rows)
}

impl Postgresql {
    /// Sends a COPY and waits until the server is ready to take its rows.
    async fn start_copy(&mut self, copy: &str) -> Result<()> {
        self.channel.say(b'Q', |out| put_string(out, copy))?;
        loop {
            let (kind, payload) = self.channel.message().await?;
            match kind {
                answer::COPY_IN => return Ok(()),
                answer::ERROR => {
                    let error = refused(payload)?;
                    self.answer(&mut (), Source::Text).await?;
                    return Err(error);
                }
                answer::PARAMETER_STATUS | answer::NOTICE => {}
                _ => return Err(out_of_place(kind)),
            }
        }
    }

    /// Ends a COPY; returns the rows that the server took.
    async fn end_copy(&mut self) -> Result<u64> {
        self.channel.say(b'c', |_| {})?;
        self.answer(&mut (), Source::Text).await.map(|answer| answer.affected)
    }
}

fn put_line(lines: &mut Vec<u8>, row: &RowBuffer) {
    for (index, value) in row.values().enumerate() {
        if index > 0 {
            lines.push(b'\t');
        }
        match value {
            Value::Null => lines.extend_from_slice(b"\\N"),
            Value::Text(text) => put_escaped(lines, text.as_bytes()),
            Value::Bytes(bytes) => put_hex(lines, bytes),
            number => put_text(lines, number),
        }
    }
    lines.push(b'\n');
}

fn put_escaped(lines: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'\\' => lines.extend_from_slice(b"\\\\"),
            b'\t' => lines.extend_from_slice(b"\\t"),
            b'\n' => lines.extend_from_slice(b"\\n"),
            b'\r' => lines.extend_from_slice(b"\\r"),
            _ => lines.push(byte),
        }
    }
}

/// The input form of bytea; its own backslash is escaped once more for COPY.
fn put_hex(lines: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    lines.extend_from_slice(b"\\\\x");
    for byte in bytes {
        lines.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_copy_reads() {
        let mut row = RowBuffer::default();
        row.int(-1).null().text("a\tb\\c\nd\re").float(0.5).bytes(&[0, 255]).display("12.50");
        let mut lines = Vec::new();
        put_line(&mut lines, &row);
        assert_eq!(lines, b"-1\t\\N\ta\\tb\\\\c\\nd\\re\t0.5\t\\\\x00ff\t12.50\n");
    }
}
