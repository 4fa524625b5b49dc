//! Bulk insert: rows are collected in the library's batch, which takes them to the engine many at a time.

use super::connection::{Connection, Purpose};
use super::interfaces::{call, Batch, Handle, Transaction};
use super::message::Fit;
use super::statement::{wrong_count, Compiled};
use super::Prepared;
use crate::error::{Error, Result};
use crate::session::{insert_of, RowBuffer, Value};

/// How much is collected before it is handed over. The library's own limit is 16 MiB.
const BATCH_BYTES: usize = 4 << 20;
const NO_MORE_ERRORS: u32 = u32::MAX;

/// Inserts all rows in one transaction and commits it.
pub(super) fn insert(
    connection: &mut Connection,
    table: &str,
    columns: &[&str],
    next: impl FnMut(&mut RowBuffer) -> bool,
) -> Result<u64> {
    let sql = insert_of(table, columns);
    let mut compiled = Compiled::new(connection, &sql)?;
    if compiled.input.has_blobs() || !connection.has_batches {
        return insert_one_by_one(connection, sql, next);
    }
    let transaction = connection.start(Purpose::Load)?;
    let mut load =
        Load { compiled: &mut compiled, batch: None, collected_bytes: 0, transaction: transaction.get() };
    let rows = load.all(connection, next);
    drop(load.batch);
    connection.finish(transaction, rows.is_ok()).and(rows)
}

/// For an older server, and for blobs, to which a batch's rows cannot refer while they are made.
fn insert_one_by_one(
    connection: &mut Connection,
    sql: String,
    mut next: impl FnMut(&mut RowBuffer) -> bool,
) -> Result<u64> {
    let (mut statement, mut row, mut rows) = (Prepared::new(connection, sql)?, RowBuffer::default(), 0);
    connection.begin()?;
    while {
        row.clear();
        next(&mut row)
    } {
        let values: Vec<Value<'_>> = row.values().collect();
        if let Err(error) = statement.run(connection, &values, &mut ()) {
            connection.rollback()?;
            return Err(error);
        }
        rows += 1;
    }
    connection.commit()?;
    Ok(rows)
}

struct Load<'a> {
    compiled: &'a mut Compiled,
    batch: Option<Handle<Batch>>,
    collected_bytes: usize,
    transaction: *mut Transaction,
}

impl Load<'_> {
    fn all(
        &mut self,
        connection: &mut Connection,
        mut next: impl FnMut(&mut RowBuffer) -> bool,
    ) -> Result<u64> {
        let (mut row, mut rows) = (RowBuffer::default(), 0);
        while {
            row.clear();
            next(&mut row)
        } {
            self.add(connection, &row)?;
            rows += 1;
        }
        self.flush(connection)?;
        Ok(rows)
    }

    fn add(&mut self, connection: &mut Connection, row: &RowBuffer) -> Result<()> {
        while let Some((index, bytes)) = self.misfit(row)? {
            // A batch is bound to its layout: it is emptied, and the next one has a wider message.
            self.flush(connection)?;
            self.batch = None;
            self.compiled.input.widen(&mut connection.status, index, bytes)?;
        }
        if self.batch.is_none() {
            self.batch = Some(self.new_batch(connection)?);
        }
        let batch = self.batch.as_ref().map_or(std::ptr::null_mut(), Handle::get);
        // SAFETY: IBatch's add reads as many messages as are said, in the layout that the batch was made with.
        unsafe { call!(batch, add, connection.status.get(), 1, self.compiled.input.data()) };
        connection.status.check()?;
        self.collected_bytes += self.compiled.input.stride();
        if self.collected_bytes >= BATCH_BYTES {
            self.flush(connection)?;
        }
        Ok(())
    }

    /// Puts a row into the message; gives the first parameter that must be wider, and how wide.
    fn misfit(&mut self, row: &RowBuffer) -> Result<Option<(usize, usize)>> {
        let (values, expected) = (row.values(), self.compiled.input.count());
        if values.len() != expected {
            return Err(wrong_count(expected, values.len()));
        }
        for (index, value) in values.enumerate() {
            match self.compiled.input.put(index, value) {
                Fit::Done => {}
                Fit::Widen(bytes) => return Ok(Some((index, bytes))),
                Fit::Blob => return Err(Error::internal("a blob in a batch")),
            }
        }
        Ok(None)
    }

    fn new_batch(&mut self, connection: &mut Connection) -> Result<Handle<Batch>> {
        let (statement, status) = (self.compiled.statement(), connection.status.get());
        // SAFETY: IStatement's createBatch wants both references that are held, and gives one that is the caller's.
        let batch = unsafe {
            let layout = self.compiled.input.metadata();
            Handle::take(call!(statement, create_batch, status, layout, 0, std::ptr::null()))
        };
        connection.status.check()?;
        batch.ok_or_else(|| Error::internal("Firebird gave no batch"))
    }

    fn flush(&mut self, connection: &mut Connection) -> Result<()> {
        let (Some(batch), true) = (&self.batch, self.collected_bytes > 0) else { return Ok(()) };
        self.collected_bytes = 0;
        let status = connection.status.get();
        // SAFETY: IBatch's execute wants the transaction that the batch was made for. The state that comes back is
        // IDisposable, and disposed of below.
        let state = unsafe { call!(batch.get(), execute, status, self.transaction) };
        connection.status.check()?;
        if state.is_null() {
            return Err(Error::internal("Firebird gave no state of a batch"));
        }
        // SAFETY: IBatchCompletionState lives until dispose, after which nothing here uses it.
        unsafe {
            let failed = call!(state, find_error, status, 0);
            if failed != NO_MORE_ERRORS {
                call!(state, get_status, status, status, failed);
            }
            call!(state, dispose);
        }
        connection.status.check()
    }
}
