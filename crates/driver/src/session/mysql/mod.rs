//! The protocol of MariaDB and MySQL: prepared statements in binary, or text where the URL says `statements=text`.

mod auth;
mod autocommit;
mod bulk;
mod channel;
mod decoder;
mod dialect;
mod handshake;
mod left;
mod literal;
mod packet;
mod plan;
mod refusal;
mod row;
mod skim;

use super::{
    Answer, Dialect, Numbered, RowBuffer, Rows, Session, Statement, Target, Traffic, Value, VectorSql,
};
use crate::error::{Error, Fate, Result};
use channel::Channel;
use decoder::Decoder;
use dialect::{DIALECT, DIALECT_OF_ANY_ENGINE};
pub(super) use left::end;
use literal::put_literal;
use packet::{put_string, Reader};
use refusal::server_error;
use row::{Cells, Column, Decoded};
use std::rc::Rc;

mod command {
    pub const QUIT: u8 = 0x01;
    pub const QUERY: u8 = 0x03;
    pub const PREPARE: u8 = 0x16;
    pub const EXECUTE: u8 = 0x17;
    pub const CLOSE: u8 = 0x19;
}

const MORE_RESULTS: u16 = 1 << 3;
/// MySQL's own limit of columns; more than this is no answer that a server gives.
const COLUMNS_MAX: u64 = 4096;

/// One connection to a MariaDB or MySQL server.
pub struct Mysql {
    channel: Channel,
    version: String,
    dialect: &'static Dialect,
    deprecate_eof: bool,
    cache_metadata: bool,
    statements_as_text: bool,
    prepared: Numbered<Prepared>,
    columns: Vec<Column>,
    cells: Cells,
    rows_received: u64,
    /// Of answers in text, and of those in binary, that define their columns.
    decoders: [Rc<Decoder>; 2],
    /// Between `begin` and `commit` or `rollback`.
    in_transaction: bool,
    autocommit: bool,
}

enum Prepared {
    Binary {
        id: u32,
        parameters: usize,
        /// Knows the columns of its answers.
        decoder: Rc<Decoder>,
        /// The types that the server was told last; told again only when they change.
        types: Vec<u8>,
    },
    /// The statement's text between its placeholders.
    Text { pieces: Vec<String> },
}

/// How the rows of an answer are encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Text,
    /// Of this prepared statement.
    Binary(usize),
}

impl Session for Mysql {
    const BLOCKING: bool = false;

    async fn connect(target: &Target) -> Result<Self> {
        let statements_as_text = match target.parameter("statements") {
            None | Some("prepared") => false,
            Some("text") => true,
            Some(other) => {
                return Err(Error::user(format!("the URL's statements={other} means nothing"))
                    .hint("write statements=prepared or statements=text"))
            }
        };
        let agreed = handshake::connect(target).await?;
        Ok(Mysql {
            channel: agreed.channel,
            version: agreed.version,
            dialect: if target.storage_engine.is_some() { &DIALECT_OF_ANY_ENGINE } else { &DIALECT },
            deprecate_eof: agreed.deprecate_eof,
            cache_metadata: agreed.cache_metadata,
            statements_as_text,
            prepared: Numbered::default(),
            columns: Vec::new(),
            cells: Cells::default(),
            rows_received: 0,
            decoders: [false, true].map(|binary| Rc::new(Decoder::of_answer(binary))),
            in_transaction: false,
            autocommit: true,
        })
    }

    fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    fn vector_sql(&self) -> Option<VectorSql> {
        self.version.contains("MariaDB").then_some(VectorSql::MariaDb)
    }

    fn server_version(&self) -> &str {
        &self.version
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let prepared = if self.statements_as_text {
            Prepared::Text { pieces: pieces(sql) }
        } else {
            self.command(command::PREPARE, sql.as_bytes())?;
            self.prepared_answer().await.map_err(|error| error.at(format_args!("preparing {sql:?}")))?
        };
        Ok(self.prepared.add(prepared))
    }

    async fn deallocate(&mut self, statement: Statement) -> Result<()> {
        match self.prepared.take(statement) {
            // The server gives no answer to it.
            Some(Prepared::Binary { id, .. }) => self.command(command::CLOSE, &id.to_le_bytes()),
            Some(Prepared::Text { .. }) | None => Ok(()),
        }
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        let set = self.put_autocommit(false);
        let encoding = self.put_execute(statement, parameters)?;
        self.channel.send()?;
        self.autocommit_answer(set).await?;
        self.answer(rows, encoding).await
    }

    async fn execute_batch<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        width: usize,
        rows: &mut R,
    ) -> Result<Answer> {
        let set = self.put_autocommit(true);
        let mut encoding = Encoding::Text;
        for one in parameters.chunks(width.max(1)) {
            encoding = self.put_execute(statement, one)?;
        }
        self.channel.send()?;
        self.autocommit_answer(set).await?;
        let (mut sum, mut failure) = (Answer::default(), None);
        // The answers come in order; each is read, whatever became of those before it.
        for _ in parameters.chunks(width.max(1)) {
            self.channel.expect(1);
            match self.answer(rows, encoding).await {
                Ok(answer) => sum += answer,
                Err(error) if error.fate() == Fate::Lost => return Err(error),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(sum), Err)
    }

    async fn text<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        let set = self.put_autocommit(false);
        self.command(command::QUERY, sql.as_bytes())?;
        self.autocommit_answer(set).await?;
        self.answer(rows, Encoding::Text).await
    }

    async fn plan(
        &mut self,
        sql: &str,
        prepared: Option<Statement>,
        parameters: &[Value<'_>],
    ) -> Result<String> {
        plan::plan(self, sql, prepared, parameters).await
    }

    async fn begin(&mut self) -> Result<()> {
        self.in_transaction = true;
        self.query("BEGIN", &mut ()).await.map(drop)
    }

    async fn commit(&mut self) -> Result<()> {
        self.in_transaction = false;
        self.query("COMMIT", &mut ()).await.map(drop)
    }

    async fn rollback(&mut self) -> Result<()> {
        self.in_transaction = false;
        self.query("ROLLBACK", &mut ()).await.map(drop)
    }

    async fn bulk_insert(
        &mut self,
        table: &str,
        columns: &[&str],
        next: impl FnMut(&mut RowBuffer) -> bool,
    ) -> Result<u64> {
        bulk::insert(self, table, columns, next).await
    }

    fn traffic(&self) -> Traffic {
        Traffic { rows_received: self.rows_received, ..self.channel.traffic() }
    }

    async fn close(mut self) {
        // The connection goes away in any case.
        let _ = self.command(command::QUIT, &[]);
    }
}

impl Mysql {
    async fn query<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        self.command(command::QUERY, sql.as_bytes())?;
        self.answer(rows, Encoding::Text).await
    }

    /// Puts a command into the outbox.
    fn put(&mut self, command: u8, body: &[u8]) {
        let start = self.channel.start(0);
        let out = self.channel.outbox();
        out.push(command);
        out.extend_from_slice(body);
        self.channel.end(start);
    }

    fn command(&mut self, command: u8, body: &[u8]) -> Result<()> {
        self.put(command, body);
        self.channel.send()
    }

    async fn bulk_statement(&mut self, sql: &[u8]) -> Result<Answer> {
        self.command(command::QUERY, sql)?;
        self.answer(&mut (), Encoding::Text).await
    }

    /// Puts one execution into the outbox.
    #[inline]
    fn put_execute(&mut self, statement: Statement, parameters: &[Value<'_>]) -> Result<Encoding> {
        let index = statement.0 as usize;
        let start = self.channel.start(0);
        let out = self.channel.outbox();
        let encoding = match self.prepared.get_mut(index) {
            Some(Prepared::Binary { id, parameters: count, types, .. }) if *count == parameters.len() => {
                let [a, b, c, d] = id.to_le_bytes();
                // No cursor; one iteration.
                out.extend_from_slice(&[command::EXECUTE, a, b, c, d, 0, 1, 0, 0, 0]);
                put_parameters(out, parameters, types);
                Encoding::Binary(index)
            }
            Some(Prepared::Text { pieces }) if pieces.len() == parameters.len() + 1 => {
                out.push(command::QUERY);
                put_text(out, pieces, parameters);
                Encoding::Text
            }
            _ => {
                // What was put must not go out with the next packet.
                out.clear();
                return Err(Error::internal(format!(
                    "the statement does not take {} parameters",
                    parameters.len()
                )));
            }
        };
        self.channel.end(start);
        Ok(encoding)
    }

    async fn prepared_answer(&mut self) -> Result<Prepared> {
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
    async fn answer<R: Rows>(&mut self, rows: &mut R, encoding: Encoding) -> Result<Answer> {
        if (!R::READS || R::KEEPS) && self.deprecate_eof {
            // Nearly always the answer comes in one piece, and nobody looks into it.
            std::future::poll_fn(|_| self.channel.poll_inbox()).await?;
            let (inbox, sequence) = self.channel.peek();
            let skimmed = skim::skim(inbox, sequence, self.cache_metadata)
                .filter(|skimmed| !R::KEEPS || skimmed.columns == 0 || self.keep(rows, encoding, skimmed));
            if let Some(skimmed) = skimmed {
                self.channel.take(skimmed.bytes);
                self.rows_received += skimmed.answer.rows;
                return Ok(skimmed.answer);
            }
        }
        self.whole_answer(rows, encoding).await
    }

    async fn whole_answer<R: Rows>(&mut self, rows: &mut R, encoding: Encoding) -> Result<Answer> {
        let mut sum = Answer::default();
        loop {
            let payload = self.channel.packet().await?;
            let status = match payload.first() {
                Some(0x00) => {
                    let (affected, status) = ok(payload)?;
                    sum.affected += affected;
                    status
                }
                Some(0xFF) => return Err(server_error(payload)),
                Some(0xFB) => {
                    return Err(Error::protocol("the server asks for a local file, which it never gets"))
                }
                _ => {
                    let (columns, follow) = self.column_count()?;
                    self.definitions(columns, follow, rows, encoding).await?;
                    self.rows(rows, encoding, &mut sum).await?
                }
            };
            if status & MORE_RESULTS == 0 {
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
            return self.known_columns(rows, encoding);
        }
        self.columns.clear();
        let mut names = Vec::new();
        for _ in 0..columns {
            let payload = self.channel.packet().await?;
            if R::READS {
                let (column, name) = Column::parse(payload)?;
                self.columns.push(column);
                if R::NAMES {
                    names.push(String::from_utf8_lossy(name).into_owned());
                }
            }
        }
        if R::NAMES {
            rows.names(&names);
        } else if R::READS {
            rows.columns(self.columns.len());
        }
        self.end_of_definitions(true).await
    }

    /// The server left the definitions out, for they are those that the statement was prepared with.
    #[inline]
    fn known_columns<R: Rows>(&mut self, rows: &mut R, encoding: Encoding) -> Result<()> {
        if R::READS {
            let Encoding::Binary(index) = encoding else {
                return Err(Error::protocol("the server left out definitions that it never sent"));
            };
            if let Some(Prepared::Binary { decoder, .. }) = self.prepared.get(index) {
                self.columns.clone_from(&decoder.columns);
            }
            rows.columns(self.columns.len());
        }
        Ok(())
    }

    /// Reads rows up to the packet that ends them; returns its status.
    #[inline]
    async fn rows<R: Rows>(&mut self, rows: &mut R, encoding: Encoding, sum: &mut Answer) -> Result<u16> {
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
                Some(0xFE) if payload.len() < packet::PACKET_MAX => {
                    return end_of_rows(payload, self.deprecate_eof)
                }
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

/// Rows affected and the status of an OK packet.
fn ok(payload: &[u8]) -> Result<(u64, u16)> {
    let mut reader = Reader::new(payload);
    reader.u8()?;
    let affected = reader.count()?;
    reader.count()?;
    Ok((affected, reader.u16()?))
}

/// The status in the packet that ends rows: an EOF, or an OK in its place.
fn end_of_rows(payload: &[u8], deprecate_eof: bool) -> Result<u16> {
    if deprecate_eof {
        return ok(payload).map(|(_, status)| status);
    }
    let mut reader = Reader::new(payload);
    reader.u8()?;
    reader.u16()?;
    reader.u16()
}

#[inline]
fn put_parameters(out: &mut Vec<u8>, parameters: &[Value<'_>], types: &mut Vec<u8>) {
    if parameters.is_empty() {
        return;
    }
    let nulls = out.len();
    let told = types.len() == parameters.len()
        && std::iter::zip(parameters, types.iter())
            .all(|(value, told)| kind_of(value) == *told || value.is_null());
    if told && parameters.len() <= 8 {
        out.extend_from_slice(&[0, 0]);
    } else {
        out.resize(nulls + parameters.len().div_ceil(8), 0);
        out.push(u8::from(!told));
    }
    if !told {
        types.clear();
        types.extend(parameters.iter().map(kind_of));
        types.iter().for_each(|kind| out.extend_from_slice(&[*kind, 0]));
    }
    for (index, value) in parameters.iter().enumerate() {
        match value {
            Value::Null => out[nulls + index / 8] |= 1 << (index % 8),
            Value::Int(n) => out.extend_from_slice(&n.to_le_bytes()),
            Value::Float(x) => out.extend_from_slice(&x.to_le_bytes()),
            Value::Text(text) => put_string(out, text.as_bytes()),
            Value::Bytes(bytes) => put_string(out, bytes),
        }
    }
}

#[inline]
fn kind_of(value: &Value<'_>) -> u8 {
    match value {
        Value::Int(_) => 0x08,
        Value::Float(_) => 0x05,
        Value::Null | Value::Text(_) => 0xFD,
        Value::Bytes(_) => 0xFC,
    }
}

/// The statement with its parameters as literals.
fn put_text(out: &mut Vec<u8>, pieces: &[String], parameters: &[Value<'_>]) {
    for (index, piece) in pieces.iter().enumerate() {
        out.extend_from_slice(piece.as_bytes());
        if let Some(value) = parameters.get(index) {
            put_literal(out, *value);
        }
    }
}

/// Divides a statement at its placeholders; quoted text is left as it is.
fn pieces(sql: &str) -> Vec<String> {
    let (mut pieces, mut quote) = (vec![String::new()], None);
    for letter in sql.chars() {
        match (quote, letter) {
            (None, '?') => {
                pieces.push(String::new());
                continue;
            }
            (None, '\'' | '"' | '`') => quote = Some(letter),
            (Some(open), _) if letter == open => quote = None,
            _ => {}
        }
        if let Some(last) = pieces.last_mut() {
            last.push(letter);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_statement_is_divided_outside_of_quotes_only() {
        assert_eq!(pieces("a = ? AND b = '?' AND c = ?"), ["a = ", " AND b = '?' AND c = ", ""]);
        let mut out = Vec::new();
        put_text(&mut out, &pieces("v = ?, w = ?"), &[Value::Text("it's \\"), Value::Bytes(&[1, 255])]);
        assert_eq!(out, b"v = 'it\\'s \\\\', w = 0x01ff");
    }

    #[test]
    fn types_are_told_once() {
        let (mut out, mut types) = (Vec::new(), Vec::new());
        put_parameters(&mut out, &[Value::Int(1)], &mut types);
        assert_eq!(out, [0, 1, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        out.clear();
        put_parameters(&mut out, &[Value::Int(2)], &mut types);
        assert_eq!(out, [0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        out.clear();
        put_parameters(&mut out, &[Value::Null], &mut types);
        assert_eq!(out, [1, 0]);
    }

    proptest! {
        #[test]
        fn no_packet_makes_the_parsers_panic(payload in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = ok(&payload);
            let _ = end_of_rows(&payload, true);
            let _ = end_of_rows(&payload, false);
        }
    }
}
