//! A prepared statement with its two messages, and its execution.

use super::connection::{Connection, Purpose};
use super::interfaces::{call, Handle, ResultSet, Statement, Transaction, FLAG_HAS_CURSOR, RESULT_NO_DATA};
use super::message::{Fit, Message};
use super::status::is_read_only_refusal;
use crate::error::{Error, Result};
use crate::session::{Answer, Row, Rows, Value};
use std::ffi::{c_uchar, CStr};
use std::ops::Range;

/// The plan as a tree, and not in the form that a query can be given one in.
const EXPLAINED: c_uchar = 1;

/// The statement types that the session must know, by the library's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Select,
    Change,
    Definition,
    Begin,
    Commit,
    Rollback,
    Other,
}

impl Shape {
    fn of(number: u32) -> Self {
        match number {
            1 | 12 => Shape::Select,
            2..=4 => Shape::Change,
            5 | 13 => Shape::Definition,
            9 => Shape::Begin,
            10 => Shape::Commit,
            11 => Shape::Rollback,
            _ => Shape::Other,
        }
    }
}

pub(super) struct Prepared {
    sql: String,
    compiled: Option<Compiled>,
    /// It only reads, as far as is known: a SELECT may call a procedure that writes, which its first refusal tells.
    reads: bool,
}

/// What the engine holds for a statement.
pub(super) struct Compiled {
    statement: Handle<Statement>,
    pub input: Message,
    output: Output,
    shape: Shape,
    has_cursor: bool,
}

impl Prepared {
    pub fn new(connection: &mut Connection, sql: String) -> Result<Self> {
        let compiled = Compiled::new(connection, &sql)?;
        let reads = compiled.shape == Shape::Select && starts_as_a_query(&sql);
        Ok(Prepared { sql, compiled: Some(compiled), reads })
    }

    pub fn shape(&self) -> Shape {
        self.compiled.as_ref().map_or(Shape::Other, |compiled| compiled.shape)
    }

    pub fn column_names(&self) -> &[String] {
        self.compiled.as_ref().map_or(&[], |compiled| compiled.output.message.names())
    }

    /// How the engine executes it, in the engine's words; empty where it needs no plan.
    pub fn plan(&mut self, connection: &mut Connection) -> Result<String> {
        let compiled = match &mut self.compiled {
            Some(compiled) => compiled,
            empty => empty.insert(Compiled::new(connection, &self.sql)?),
        };
        let status = &mut connection.status;
        // SAFETY: IStatement's getPlan gives a text that ends with a zero and lives as long as the statement, which is
        // held.
        let plan = unsafe {
            let text = call!(compiled.statement.get(), get_plan, status.get(), EXPLAINED);
            status.check()?;
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        Ok(plan.unwrap_or_default())
    }

    /// Lets the engine's statement go, which holds its tables against DDL; `run` prepares it anew.
    pub fn release(&mut self, connection: &mut Connection) -> Result<()> {
        match self.compiled.take() {
            Some(compiled) => connection.free(compiled.statement),
            None => Ok(()),
        }
    }

    /// Executes in the open transaction, or else commits by itself.
    pub fn run<R: Rows>(
        &mut self,
        connection: &mut Connection,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        let compiled = match &mut self.compiled {
            Some(compiled) => compiled,
            empty => empty.insert(Compiled::new(connection, &self.sql)?),
        };
        if let Some(transaction) = connection.explicit() {
            return compiled.perform(connection, transaction, parameters, rows);
        }
        if self.reads {
            let transaction = connection.reader()?;
            match compiled.perform(connection, transaction, parameters, rows) {
                Err(error) if is_read_only_refusal(&error) => self.reads = false,
                answer => return answer,
            }
        }
        let transaction = connection.start(Purpose::Write)?;
        let answer = compiled.perform(connection, transaction.get(), parameters, rows);
        connection.finish(transaction, answer.is_ok()).and(answer)
    }
}

impl Compiled {
    pub fn new(connection: &mut Connection, sql: &str) -> Result<Self> {
        let statement = connection.prepare(sql)?;
        let status = &mut connection.status;
        let (object, filled) = (statement.get(), status.get());
        // SAFETY: Firebird's interfaces count references (IReferenceCounted): the statement's is held, and those of the
        // metadata that it gives are the caller's.
        let (shape, flags, input, output) = unsafe {
            let (shape, flags) = (call!(object, get_type, filled), call!(object, get_flags, filled));
            status.check()?;
            let input = Handle::take(call!(object, get_input_metadata, filled));
            let output = Handle::take(call!(object, get_output_metadata, filled));
            (Shape::of(shape), flags, input, output)
        };
        status.check()?;
        let (Some(input), Some(output)) = (input, output) else {
            return Err(Error::internal("Firebird did not describe a statement"));
        };
        Ok(Compiled {
            input: Message::of_parameters(input, status)?,
            output: Output::new(Message::of_columns(output, status)?),
            statement,
            shape,
            has_cursor: flags & FLAG_HAS_CURSOR != 0,
        })
    }

    pub fn statement(&self) -> *mut Statement {
        self.statement.get()
    }

    fn perform<R: Rows>(
        &mut self,
        connection: &mut Connection,
        transaction: *mut Transaction,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        self.bind(connection, transaction, parameters)?;
        if self.has_cursor {
            let cursor = self.open(connection, transaction)?;
            return match self.fetch(connection, transaction, &cursor, rows) {
                Ok(rows) => close(connection, cursor).map(|()| Answer { rows, affected: 0 }),
                // Releasing the cursor closes it; what that has to say is less than what went wrong.
                Err(error) => Err(error),
            };
        }
        self.call(connection, transaction)?;
        if self.output.message.count() > 0 {
            if R::READS {
                self.output.show(connection, transaction, rows)?;
            }
            return Ok(Answer { rows: 1, affected: 0 });
        }
        Ok(Answer { rows: 0, affected: self.affected(connection)? })
    }

    fn bind(
        &mut self,
        connection: &mut Connection,
        transaction: *mut Transaction,
        parameters: &[Value<'_>],
    ) -> Result<()> {
        if parameters.len() != self.input.count() {
            return Err(wrong_count(self.input.count(), parameters.len()));
        }
        let mut index = 0;
        while let Some(&value) = parameters.get(index) {
            match self.input.put(index, value) {
                Fit::Done => index += 1,
                Fit::Blob => {
                    let id = connection.write_blob(transaction, &blob_content(value))?;
                    self.input.put_blob(index, id);
                    index += 1;
                }
                Fit::Widen(bytes) => {
                    self.input.widen(&mut connection.status, index, bytes)?;
                    // The wider message starts empty.
                    index = 0;
                }
            }
        }
        Ok(())
    }

    fn open(
        &mut self,
        connection: &mut Connection,
        transaction: *mut Transaction,
    ) -> Result<Handle<ResultSet>> {
        let (input, output) = (self.input.metadata(), self.output.message.metadata());
        let (data, status) = (self.input.data(), connection.status.get());
        // SAFETY: IStatement's openCursor reads a message in the layout of the metadata beside it. All references are
        // held, and the cursor's, which comes back, is the caller's.
        let cursor = unsafe {
            Handle::take(call!(
                self.statement.get(),
                open_cursor,
                status,
                transaction,
                input,
                data,
                output,
                0
            ))
        };
        connection.status.check()?;
        cursor.ok_or_else(|| Error::internal("Firebird gave no cursor"))
    }

    fn fetch<R: Rows>(
        &mut self,
        connection: &mut Connection,
        transaction: *mut Transaction,
        cursor: &Handle<ResultSet>,
        rows: &mut R,
    ) -> Result<u64> {
        let mut count = 0;
        loop {
            let (row, status) = (self.output.message.data(), connection.status.get());
            // SAFETY: IResultSet's fetchNext writes a message in the layout that the cursor was opened with, as the
            // buffer's.
            let result = unsafe { call!(cursor.get(), fetch_next, status, row) };
            connection.status.check()?;
            if result == RESULT_NO_DATA {
                return Ok(count);
            }
            count += 1;
            if R::READS {
                self.output.show(connection, transaction, rows)?;
            }
        }
    }

    fn call(&mut self, connection: &mut Connection, transaction: *mut Transaction) -> Result<()> {
        let (input, output) = (self.input.metadata(), self.output.message.metadata());
        let (parameters, row) = (self.input.data(), self.output.message.data());
        let status = connection.status.get();
        // SAFETY: IStatement's execute reads and writes messages in the layouts of the metadata beside them. All
        // references are held.
        let kept = unsafe {
            call!(self.statement.get(), execute, status, transaction, input, parameters, output, row)
        };
        connection.status.check()?;
        debug_assert!(kept == transaction, "only statements that are caught before change the transaction");
        Ok(())
    }

    fn affected(&mut self, connection: &mut Connection) -> Result<u64> {
        if self.shape != Shape::Change {
            return Ok(0);
        }
        // SAFETY: IStatement's getAffectedRecords wants a live statement, whose reference is held.
        let affected = unsafe { call!(self.statement.get(), get_affected_records, connection.status.get()) };
        connection.status.check()?;
        Ok(affected)
    }
}

fn close(connection: &mut Connection, cursor: Handle<ResultSet>) -> Result<()> {
    // SAFETY: IResultSet's close takes the reference with it where it succeeds, which the status says.
    unsafe { call!(cursor.get(), close, connection.status.get()) };
    connection.status.check()?;
    cursor.spent();
    Ok(())
}

pub(super) fn wrong_count(expected: usize, given: usize) -> Error {
    Error::internal(format!("the statement takes {expected} parameters, {given} were given"))
}

fn blob_content<'a>(value: Value<'a>) -> std::borrow::Cow<'a, [u8]> {
    match value {
        Value::Text(text) => text.as_bytes().into(),
        Value::Bytes(bytes) => bytes.into(),
        other => other.to_owned().to_string().into_bytes().into(),
    }
}

/// The engine calls `UPDATE ... RETURNING` a select too, so the first word decides what may run without a write.
fn starts_as_a_query(sql: &str) -> bool {
    let word: String = sql.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    word.eq_ignore_ascii_case("select") || word.eq_ignore_ascii_case("with")
}

/// The message of a row, with the text of those columns that do not come as text but are shown so.
struct Output {
    message: Message,
    text: Vec<u8>,
    places: Vec<Range<usize>>,
    is_rendered: bool,
}

impl Output {
    fn new(message: Message) -> Self {
        let is_rendered = (0..message.count()).any(|column| message.is_rendered(column));
        Output { places: vec![0..0; message.count()], message, text: Vec::new(), is_rendered }
    }

    fn show<R: Rows>(
        &mut self,
        connection: &mut Connection,
        transaction: *mut Transaction,
        rows: &mut R,
    ) -> Result<()> {
        if self.is_rendered {
            self.text.clear();
            for column in 0..self.message.count() {
                let from = self.text.len();
                if !self.message.is_null(column) {
                    match self.message.blob(column) {
                        Some(id) => connection.read_blob(transaction, id, &mut self.text)?,
                        None => self.message.render(column, &mut self.text),
                    }
                }
                self.places[column] = from..self.text.len();
            }
        }
        rows.row(self);
        Ok(())
    }
}

impl Row for Output {
    fn columns(&self) -> usize {
        self.message.count()
    }

    fn value(&self, column: usize) -> Value<'_> {
        if column >= self.message.count() || self.message.is_null(column) {
            return Value::Null;
        }
        if !self.message.is_rendered(column) {
            return self.message.value(column);
        }
        if let Some(number) = self.message.small_integer(column) {
            return Value::Int(number);
        }
        let bytes = &self.text[self.places[column].clone()];
        match std::str::from_utf8(bytes) {
            Ok(text) if self.message.blob_is_text(column) || self.message.blob(column).is_none() => {
                Value::Text(text)
            }
            _ => Value::Bytes(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_query_may_run_in_the_transaction_of_reads() {
        assert!(starts_as_a_query(" \n select 1"));
        assert!(starts_as_a_query("WITH x AS (SELECT 1 FROM rdb$database) SELECT * FROM x"));
        assert!(!starts_as_a_query("UPDATE t SET a = 1 RETURNING a"));
        assert!(!starts_as_a_query("selection"));
    }
}
