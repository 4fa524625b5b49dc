//! Answers as they come in: of statements that were prepared, results with their rows, what ends them.

use super::decoder::Decoder;
use super::packet::{Reader, PACKET_MAX};
use super::refusal::server_error;
use super::row::{Cells, Column, Decoded};
use super::skim::{skim, MORE_RESULTS};
use super::{Encoding, Mysql, Prepared};
use crate::error::{Error, Result};
use crate::session::{Answer, Rows};
use std::rc::Rc;

/// MySQL's own limit of columns; more than this is no answer that a server gives.
const COLUMNS_MAX: u64 = 4096;

impl Mysql {
    pub(super) async fn prepared_answer(&mut self) -> Result<Prepared> {
        let payload = self.channel.packet().await?;
        if payload.first() == Some(&0xFF) {
            return Err(server_error(payload));
        }
        let mut reader = Reader::new(payload);
        reader.u8()?;
        let (id, columns, parameters) = (reader.u32()?, reader.u16()?, reader.u16()?);
        for _ in 0..parameters {
            Column::parse(self.channel.packet().await?)?;
        }
        self.end_of_definitions(parameters > 0).await?;
        let mut known = Vec::with_capacity(columns.into());
        for _ in 0..columns {
            known.push(Column::parse(self.channel.packet().await?)?.0);
        }
        self.end_of_definitions(columns > 0).await?;
        let decoder = Rc::new(Decoder::of_statement(known));
        Ok(Prepared::Binary { id, parameters: parameters.into(), decoder, types: Vec::new() })
    }

    /// Without DEPRECATE_EOF a packet of its own ends each list of definitions.
    async fn end_of_definitions(&mut self, any: bool) -> Result<()> {
        if any && !self.deprecate_eof {
            self.channel.packet().await?;
        }
        Ok(())
    }

    /// Reads the whole answer to a command, all its result sets.
    #[inline]
    pub(super) async fn answer<R: Rows>(&mut self, rows: &mut R, encoding: Encoding) -> Result<Answer> {
        if self.skims::<R>() {
            std::future::poll_fn(|_| self.channel.poll_inbox()).await?;
            if let Some(answer) = self.skimmed(rows, encoding) {
                return Ok(answer);
            }
        }
        self.whole_answer(rows, encoding).await
    }

    /// Whether answers may be stepped over: nearly always one comes in one piece, and nobody looks into it.
    #[inline]
    pub(super) fn skims<R: Rows>(&self) -> bool {
        (!R::READS || R::KEEPS) && self.deprecate_eof
    }

    /// Takes an answer that can be stepped over.
    #[inline(always)]
    pub(super) fn skimmed<R: Rows>(&mut self, rows: &mut R, encoding: Encoding) -> Option<Answer> {
        let (inbox, sequence) = self.channel.peek();
        let skimmed = skim(inbox, sequence, self.cache_metadata)
            .filter(|skimmed| !skimmed.defines || self.redefined(encoding, skimmed))
            .filter(|skimmed| !R::KEEPS || skimmed.columns == 0 || self.keep(rows, encoding, skimmed))?;
        self.channel.take(skimmed.bytes);
        self.rows_received += skimmed.answer.rows;
        Some(skimmed.answer)
    }

    pub(super) async fn whole_answer<R: Rows>(&mut self, rows: &mut R, encoding: Encoding) -> Result<Answer> {
        let mut sum = Answer::default();
        loop {
            let payload = self.channel.packet().await?;
            let end = match payload.first() {
                Some(0x00) => {
                    let end = ok(payload)?;
                    sum.affected += end.affected;
                    end
                }
                Some(0xFF) => {
                    let refusal = server_error(payload);
                    self.tell_types_again(encoding);
                    return Err(refusal);
                }
                Some(0xFB) => {
                    return Err(Error::protocol("the server asks for a local file, which it never gets"))
                }
                _ => {
                    let (columns, follow) = self.column_count()?;
                    self.definitions(columns, follow, rows, encoding).await?;
                    self.rows(rows, encoding, &mut sum).await?
                }
            };
            rows.warnings(end.warnings.into());
            if end.status & MORE_RESULTS == 0 {
                self.rows_received += sum.rows;
                return Ok(sum);
            }
            rows.next_set();
        }
    }

    /// How many columns the answer has whose first packet was shown last, and whether their definitions follow.
    fn column_count(&self) -> Result<(u64, bool)> {
        let mut reader = Reader::new(self.channel.shown());
        let columns = reader.count()?;
        if columns > COLUMNS_MAX {
            return Err(Error::protocol(format!("the server announced {columns} columns")));
        }
        Ok((columns, !self.cache_metadata || reader.is_empty() || reader.u8()? != 0))
    }

    #[inline]
    async fn definitions<R: Rows>(
        &mut self,
        columns: u64,
        follow: bool,
        rows: &mut R,
        encoding: Encoding,
    ) -> Result<()> {
        if !follow {
            return self.known_columns(columns, rows, encoding);
        }
        let keeps = self.keeps_columns(encoding);
        self.columns.clear();
        let mut names = Vec::new();
        for _ in 0..columns {
            let payload = self.channel.packet().await?;
            if R::READS || keeps {
                let (column, name) = Column::parse(payload)?;
                self.columns.push(column);
                if R::NAMES {
                    names.push(String::from_utf8_lossy(name).into_owned());
                }
            }
        }
        if keeps {
            self.keep_columns(encoding);
        }
        if R::NAMES {
            rows.names(&names);
        } else if R::READS {
            rows.columns(self.columns.len());
        }
        self.end_of_definitions(true).await
    }

    /// The server left the definitions out, because they are those that it sent last for this statement.
    #[inline]
    fn known_columns<R: Rows>(&mut self, count: u64, rows: &mut R, encoding: Encoding) -> Result<()> {
        if R::READS {
            let known = match encoding {
                Encoding::Binary(index) => self.prepared.get(index),
                Encoding::Text => None,
            };
            match known {
                Some(Prepared::Binary { decoder, .. }) if decoder.columns.len() as u64 == count => {
                    self.columns.clone_from(&decoder.columns);
                }
                _ => return Err(Error::protocol("the server left out definitions that it never sent")),
            }
            rows.columns(self.columns.len());
        }
        Ok(())
    }

    /// Reads rows up to the packet that ends them.
    #[inline]
    async fn rows<R: Rows>(&mut self, rows: &mut R, encoding: Encoding, sum: &mut Answer) -> Result<End> {
        loop {
            // Rows that are here already are taken without a detour through the loop.
            while let Some(payload) = self.channel.packet_here() {
                match payload.first() {
                    Some(0xFE) => return end_of_rows(payload, self.deprecate_eof),
                    Some(0xFF) => return Err(server_error(payload)),
                    _ => {}
                }
                sum.rows += 1;
                if R::READS {
                    show(payload, encoding, &self.columns, &mut self.cells, rows)?;
                }
            }
            let payload = self.channel.packet().await?;
            match payload.first() {
                Some(0xFE) if payload.len() < PACKET_MAX => return end_of_rows(payload, self.deprecate_eof),
                Some(0xFF) => return Err(server_error(payload)),
                _ => {}
            }
            sum.rows += 1;
            if R::READS {
                show(payload, encoding, &self.columns, &mut self.cells, rows)?;
            }
        }
    }
}

fn show<R: Rows>(
    payload: &[u8],
    encoding: Encoding,
    columns: &[Column],
    cells: &mut Cells,
    rows: &mut R,
) -> Result<()> {
    match encoding {
        Encoding::Text => cells.read_text(payload, columns)?,
        Encoding::Binary(_) => cells.read_binary(payload, columns)?,
    }
    rows.row(&Decoded { cells, payload });
    Ok(())
}

/// What the packet says that ends an answer, or a part of one.
struct End {
    affected: u64,
    status: u16,
    /// How many warnings the statement has.
    warnings: u16,
}

fn ok(payload: &[u8]) -> Result<End> {
    let mut reader = Reader::new(payload);
    reader.u8()?;
    let affected = reader.count()?;
    reader.count()?;
    Ok(End { affected, status: reader.u16()?, warnings: reader.u16()? })
}

/// What ends rows: an EOF, or an OK in its place.
fn end_of_rows(payload: &[u8], deprecate_eof: bool) -> Result<End> {
    if deprecate_eof {
        return ok(payload);
    }
    let mut reader = Reader::new(payload);
    reader.u8()?;
    let warnings = reader.u16()?;
    Ok(End { affected: 0, status: reader.u16()?, warnings })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_packet_makes_the_parsers_panic(payload in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = ok(&payload);
            let _ = end_of_rows(&payload, true);
            let _ = end_of_rows(&payload, false);
        }
    }
}
