//! Decodes an answer that was only stepped over when it came: most scripts never look at most of their rows.

use super::packet::{header, Reader, HEADER_BYTES};
use super::row::{Cells, Column, Decoded};
use super::skim::Skimmed;
use super::{Encoding, Mysql, Prepared};
use crate::error::{Error, Result};
use crate::session::{Decode, Row, Rows, Undecoded};
use std::cell::RefCell;
use std::rc::Rc;

/// What is needed besides the bytes of an answer to read them.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The columns that the server defined last for a statement.
    pub columns: Vec<Column>,
    /// The answer brings the definitions of its columns itself.
    defines: bool,
    binary: bool,
    /// Kept for their memory.
    scratch: RefCell<(Vec<Column>, Cells)>,
}

impl Decoder {
    /// For answers in binary that leave out their definitions, because these are those that came last.
    pub fn of_statement(columns: Vec<Column>) -> Self {
        Decoder { columns, binary: true, ..Decoder::default() }
    }

    /// For answers that have their definitions with them.
    pub fn of_answer(binary: bool) -> Self {
        Decoder { defines: true, binary, ..Decoder::default() }
    }
}

impl Mysql {
    /// Whether an answer may leave out the definitions that come with this one, so that they must be kept.
    #[inline]
    pub(super) fn keeps_columns(&self, encoding: Encoding) -> bool {
        self.cache_metadata && matches!(encoding, Encoding::Binary(_))
    }

    /// Keeps the definitions of an answer that was stepped over; false where they cannot be read.
    #[inline]
    pub(super) fn redefined(&mut self, encoding: Encoding, skimmed: &Skimmed) -> bool {
        !self.keeps_columns(encoding) || self.define_again(encoding, skimmed)
    }

    /// Most executions do not come here: a call of its own keeps their path short.
    #[cold]
    #[inline(never)]
    fn define_again(&mut self, encoding: Encoding, skimmed: &Skimmed) -> bool {
        let mut packets = Packets(&self.channel.peek().0[..skimmed.bytes]);
        let read =
            packets.next().and_then(|_count| defined(&mut packets, skimmed.columns, &mut self.columns));
        if read.is_ok() {
            self.keep_columns(encoding);
        }
        read.is_ok()
    }

    /// Takes `columns` for those of all later answers to the statement. An answer that somebody has kept is decoded by
    /// those that were known when it came.
    #[cold]
    pub(super) fn keep_columns(&mut self, encoding: Encoding) {
        let Encoding::Binary(index) = encoding else { return };
        let Some(Prepared::Binary { decoder, .. }) = self.prepared.get_mut(index) else { return };
        if decoder.columns == self.columns {
            return;
        }
        match Rc::get_mut(decoder) {
            Some(known) => known.columns.clone_from(&self.columns),
            None => *decoder = Rc::new(Decoder::of_statement(self.columns.clone())),
        }
    }

    /// Gives `rows` the answer that was stepped over, if it can be decoded later.
    #[inline]
    pub(super) fn keep<R: Rows>(&self, rows: &mut R, encoding: Encoding, skimmed: &Skimmed) -> bool {
        let decoder: Rc<dyn Decode> = match (encoding, skimmed.defines) {
            (Encoding::Text, true) => self.decoders[0].clone(),
            (Encoding::Binary(_), true) => self.decoders[1].clone(),
            (Encoding::Binary(index), false) => match self.prepared.get(index) {
                Some(Prepared::Binary { decoder, .. }) => decoder.clone(),
                _ => return false,
            },
            (Encoding::Text, false) => return false,
        };
        let (answer, rows_kept) = (&self.channel.peek().0[..skimmed.bytes], skimmed.answer.rows);
        rows.keep(Undecoded { answer, rows: rows_kept, columns: skimmed.columns, decoder });
        true
    }
}

impl Decode for Decoder {
    fn decode(&self, answer: &[u8], show: &mut dyn FnMut(&dyn Row)) -> Result<()> {
        let mut packets = Packets(answer);
        let count = Reader::new(packets.next()?).count()?;
        let (in_answer, cells) = &mut *self.scratch.borrow_mut();
        let columns = match self.defines {
            false if self.columns.len() as u64 != count => {
                return Err(Error::protocol("an answer has other columns than its statement"))
            }
            false => &self.columns,
            true => {
                defined(&mut packets, count, in_answer)?;
                &*in_answer
            }
        };
        loop {
            let payload = packets.next()?;
            if payload.first() == Some(&0xFE) {
                return Ok(());
            }
            match self.binary {
                true => cells.read_binary(payload, columns)?,
                false => cells.read_text(payload, columns)?,
            }
            show(&Decoded { cells, payload });
        }
    }
}

/// Reads as many definitions as an answer has columns.
fn defined(packets: &mut Packets<'_>, count: u64, columns: &mut Vec<Column>) -> Result<()> {
    columns.clear();
    for _ in 0..count {
        columns.push(Column::parse(packets.next()?)?.0);
    }
    Ok(())
}

/// The packets of an answer, each shorter than the longest there can be.
struct Packets<'a>(&'a [u8]);

impl<'a> Packets<'a> {
    fn next(&mut self) -> Result<&'a [u8]> {
        let short = || Error::protocol("an answer ends in the midst of a packet");
        let (length, _) = header(self.0).ok_or_else(short)?;
        let (packet, rest) = self.0.split_at_checked(HEADER_BYTES + length).ok_or_else(short)?;
        self.0 = rest;
        Ok(&packet[HEADER_BYTES..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Owned;
    use proptest::prelude::*;

    fn packet(payload: &[u8]) -> Vec<u8> {
        [&[payload.len() as u8, 0, 0, 1], payload].concat()
    }

    /// A column of text, as a server defines it.
    fn definition() -> Vec<u8> {
        [&[0; 4][..], b"\x01c", &[0, 0x0C], &45u16.to_le_bytes(), &[0; 4], &[0xFD, 0, 0, 0]].concat()
    }

    fn decoded(decoder: &Decoder, answer: &[u8]) -> Vec<Owned> {
        let mut values = Vec::new();
        decoder.decode(answer, &mut |row| values.push(row.value(0).to_owned())).unwrap();
        values
    }

    #[test]
    fn columns_are_those_of_the_statement_or_of_the_answer() {
        let known = Column::parse(&definition()).unwrap().0;
        let end = packet(&[0xFE, 0, 0, 2, 0, 0, 0]);
        let rows = [packet(b"\x00\x00\x02ab"), packet(&[0, 0b100])].concat();
        let expected = [Owned::Text("ab".to_owned()), Owned::Null];
        let left_out = [packet(&[1, 0]), rows.clone(), end.clone()].concat();
        assert_eq!(decoded(&Decoder::of_statement(vec![known]), &left_out), expected);
        let defined = [packet(&[1]), packet(&definition()), rows, end.clone()].concat();
        let decoder = Decoder::of_answer(true);
        assert_eq!(
            (decoded(&decoder, &defined), decoded(&decoder, &defined)),
            (expected.to_vec(), expected.to_vec())
        );
        let text = [packet(&[1]), packet(&definition()), packet(b"\x02ab"), packet(&[0xFB]), end].concat();
        assert_eq!(decoded(&Decoder::of_answer(false), &text), expected);
    }

    proptest! {
        #[test]
        fn no_answer_makes_the_decoder_panic(
            answer in proptest::collection::vec(any::<u8>(), 0..80),
            binary: bool,
            defines: bool,
        ) {
            let known = Column::parse(&definition()).unwrap().0;
            let decoder = Decoder { columns: vec![known], binary, defines, ..Decoder::default() };
            let _ = decoder.decode(&answer, &mut |row| drop(row.value(0).to_owned()));
        }
    }
}
