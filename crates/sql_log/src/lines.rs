//! The lines of a log, with their ends. Logs hold whatever clients sent, so nothing in them is an error.

use crate::Fault;
use memchr::memchr;

/// So many lines tell whether lines end in a carriage return too.
const TOLD_BY: usize = 1000;
const TOLD_BY_BYTES: usize = 16 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub type Each<'a> = dyn FnMut(u64, &[u8]) -> Result<(), Fault> + 'a;

/// Cuts what comes in pieces into lines. A carriage return belongs to the end of a line only where all lines have one. A
/// line of more than `most` bytes is cut, and has no end.
pub struct Lines {
    most: usize,
    number: u64,
    first: bool,
    held: Vec<u8>,
    skipping: bool,
    head: Option<Vec<Vec<u8>>>,
    head_bytes: usize,
    returns: bool,
}

impl Lines {
    pub fn new(most: usize) -> Lines {
        let (held, head) = (Vec::new(), Some(Vec::new()));
        Lines { most, number: 0, first: true, held, skipping: false, head, head_bytes: 0, returns: false }
    }

    pub fn feed(&mut self, mut chunk: &[u8], each: &mut Each<'_>) -> Result<(), Fault> {
        while !chunk.is_empty() {
            let end = memchr(b'\n', chunk).map(|at| at + 1);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            chunk = &chunk[part.len()..];
            if self.skipping {
                self.skipping = end.is_none();
                continue;
            }
            let room = self.most - self.held.len();
            if part.len() > room || (part.len() == room && end.is_none()) {
                self.held.extend_from_slice(&part[..room]);
                self.skipping = end.is_none();
                self.hand_over(each)?;
            } else if end.is_none() {
                self.held.extend_from_slice(part);
            } else if self.held.is_empty() {
                self.line(part, each)?;
            } else {
                self.held.extend_from_slice(part);
                self.hand_over(each)?;
            }
        }
        Ok(())
    }

    /// What is left at the end of the file.
    pub fn end(&mut self, each: &mut Each<'_>) -> Result<(), Fault> {
        if !self.held.is_empty() {
            self.hand_over(each)?;
        }
        self.decide(each)
    }

    fn hand_over(&mut self, each: &mut Each<'_>) -> Result<(), Fault> {
        let held = std::mem::take(&mut self.held);
        self.line(&held, each)?;
        self.held = held;
        self.held.clear();
        Ok(())
    }

    fn line(&mut self, mut line: &[u8], each: &mut Each<'_>) -> Result<(), Fault> {
        if self.first {
            // A log that was copied while it was truncated begins with a hole of NULs.
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
            line = &line[line.iter().take_while(|byte| **byte == 0).count()..];
            self.first = line.is_empty();
            if self.first {
                return Ok(());
            }
        }
        let Some(head) = &mut self.head else { return self.tell(line, each) };
        head.push(line.to_vec());
        self.head_bytes += line.len();
        if head.len() >= TOLD_BY || self.head_bytes > TOLD_BY_BYTES {
            self.decide(each)?;
        }
        Ok(())
    }

    fn decide(&mut self, each: &mut Each<'_>) -> Result<(), Fault> {
        let Some(head) = self.head.take() else { return Ok(()) };
        let whole = match head.split_last() {
            Some((last, before)) if !last.ends_with(b"\n") => before,
            _ => &head[..],
        };
        self.returns = !whole.is_empty() && whole.iter().all(|line| line.ends_with(b"\r\n"));
        head.iter().try_for_each(|line| self.tell(line, each))
    }

    fn tell(&mut self, line: &[u8], each: &mut Each<'_>) -> Result<(), Fault> {
        self.number += 1;
        match line.strip_suffix(b"\r\n") {
            Some(bare) if self.returns => each(self.number, &[bare, b"\n"].concat()),
            _ => each(self.number, line),
        }
    }
}
