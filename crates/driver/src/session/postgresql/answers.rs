//! Answers as they come in: of statements that were prepared, results with their rows, what ends them.

use super::handshake::out_of_place;
use super::message::{affected, answer, put_string, server_error, warning};
use super::skim::skim;
use super::template::Template;
use super::value::{locate, parameter_kinds, Columns, Located, Place};
use super::{Again, Postgresql, Prepared, Source, IDLE};
use crate::error::{Error, Fate, Result};
use crate::session::{Answer, Numbered, Rows};

impl Postgresql {
    pub(super) async fn prepared_answer(&mut self, name: &str, sql: &str) -> Result<Prepared> {
        let mut prepared = Prepared { sql: sql.to_owned(), ..Prepared::of(name, Again::Nothing) };
        let mut failure = None;
        loop {
            let (kind, payload) = self.channel.message().await?;
            match kind {
                answer::PARAMETER_DESCRIPTION => prepared.parameters = parameter_kinds(payload)?,
                answer::ROW_DESCRIPTION => prepared.columns = Columns::parse(payload, false)?,
                answer::ERROR => failure = Some(refused(payload)?),
                answer::READY => {
                    self.state = payload.first().copied().unwrap_or(IDLE);
                    // One without a name says more than this with each execution.
                    prepared.template = (!name.is_empty()).then(|| Template::of(&prepared)).flatten();
                    return failure.map_or(Ok(prepared), Err);
                }
                // ParseComplete, NoData.
                _ => {}
            }
        }
    }

    /// Reads everything up to the next ReadyForQuery.
    #[inline]
    pub(super) async fn answer<R: Rows>(&mut self, rows: &mut R, source: Source) -> Result<Answer> {
        if !R::READS {
            std::future::poll_fn(|_| self.channel.poll_inbox()).await?;
            if let Some(answer) = self.skimmed() {
                return Ok(answer);
            }
        }
        self.whole_answer(rows, source).await
    }

    /// Takes an answer that can be stepped over: nearly always one comes in one piece.
    #[inline(always)]
    pub(super) fn skimmed(&mut self) -> Option<Answer> {
        let skimmed = skim(self.channel.inbox())?;
        self.channel.take(skimmed.bytes);
        self.state = skimmed.state;
        self.rows_received += skimmed.answer.rows;
        Some(skimmed.answer)
    }

    pub(super) async fn whole_answer<R: Rows>(&mut self, rows: &mut R, source: Source) -> Result<Answer> {
        let mut sum = Answer::default();
        let mut failure = None;
        let mut described = Columns::default();
        loop {
            while let Some(payload) = self.channel.row_here()? {
                sum.rows += 1;
                if R::READS {
                    let columns = columns_of(&self.prepared, source, &described);
                    show(payload, &mut self.places, columns, rows)?;
                }
            }
            let (kind, payload) = self.channel.message().await?;
            match kind {
                answer::DATA_ROW => {
                    sum.rows += 1;
                    if R::READS {
                        let columns = columns_of(&self.prepared, source, &described);
                        show(payload, &mut self.places, columns, rows)?;
                    }
                }
                answer::COMMAND_COMPLETE => sum.affected += affected(payload),
                answer::ROW_DESCRIPTION => {
                    described = Columns::parse(payload, true)?;
                    rows.names(&described.names);
                }
                answer::ERROR => failure = failure.or(Some(refused(payload)?)),
                answer::NOTICE if R::READS => {
                    if let Some(warning) = warning(payload) {
                        rows.warned(warning);
                    }
                }
                answer::READY => {
                    self.state = payload.first().copied().unwrap_or(IDLE);
                    self.rows_received += sum.rows;
                    return failure.map_or(Ok(sum), Err);
                }
                answer::COPY_IN => self.channel.say(b'f', |out| put_string(out, "no data here"))?,
                answer::COPY_BOTH | answer::AUTHENTICATION => return Err(out_of_place(kind)),
                // ParseComplete, BindComplete, CloseComplete, EmptyQueryResponse, ParameterStatus, the data of a COPY.
                _ => {}
            }
        }
    }
}

/// The error of an ErrorResponse that leaves the connection usable; `Err` for one that ends it.
pub(super) fn refused(payload: &[u8]) -> Result<Error> {
    let error = server_error(payload);
    match error.fate() {
        Fate::Lost => Err(error),
        _ => Ok(error),
    }
}

#[inline]
fn columns_of<'a>(prepared: &'a Numbered<Prepared>, source: Source, described: &'a Columns) -> &'a Columns {
    match source {
        Source::Text | Source::Unnamed => described,
        Source::Prepared(number) => prepared.get(number).map_or(described, |prepared| &prepared.columns),
    }
}

#[inline]
fn show<R: Rows>(payload: &[u8], places: &mut Vec<Place>, columns: &Columns, rows: &mut R) -> Result<()> {
    locate(payload, places)?;
    rows.row(&Located { payload, places, columns: &columns.columns });
    Ok(())
}
