//! An attachment and its transactions.

use super::interfaces::{
    call, Attachment, Blob, BlobId, Handle, Statement, Transaction, PREPARE_PREFETCH_METADATA,
    RESULT_NO_DATA, RESULT_OK, RESULT_SEGMENT,
};
use super::status::{Status, SQL_ERROR};
use crate::error::{Code, Error, Fate, Result};
use std::ffi::{c_int, c_uint};
use std::mem::ManuallyDrop;

const TPB_VERSION: u8 = 3;
const TPB_WAIT: u8 = 6;
const TPB_READ: u8 = 8;
const TPB_WRITE: u8 = 9;
const TPB_READ_COMMITTED: u8 = 15;
const TPB_RECORD_VERSION: u8 = 17;
const TPB_NO_AUTO_UNDO: u8 = 20;
const TPB_READ_CONSISTENCY: u8 = 22;

const SQL_DIALECT: c_uint = 3;
const BLOB_SEGMENT_BYTES: usize = 32_768;

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Statements of a workload, and a change that commits by itself. Read committed with read consistency: a statement
    /// sees what was committed when it started, waits for a row that another transaction holds, and is run again by the
    /// engine on what that one left. So TPC-B's clients queue for their branch as under PostgreSQL's and Oracle's
    /// default, where a snapshot transaction would fail with an update conflict nearly every time. Committing a lone
    /// change with `commit_retaining` would save a third of its 12 us of CPU, but leave a transaction open while the
    /// session is idle, which holds garbage back.
    Write,
    /// As `Write`, without the log by which a whole transaction can be undone without garbage collection.
    Load,
    /// Reads outside of transactions. The engine keeps no state for it on disk, and it holds no garbage back, so one
    /// serves the whole session: each statement sees what was committed when it started, which is what committing
    /// each by itself would give, at half the CPU (6.3 us for a point select, not 13.8).
    Read,
}

pub(super) struct Connection {
    explicit: Option<Handle<Transaction>>,
    reader: Option<Handle<Transaction>>,
    attachment: ManuallyDrop<Handle<Attachment>>,
    pub status: Status,
    /// The server takes many rows in one message: Firebird 4 and later.
    pub has_batches: bool,
    parameters: [Vec<u8>; 3],
}

impl Connection {
    pub fn new(status: Status, attachment: Handle<Attachment>) -> Self {
        let (attachment, parameters) = (ManuallyDrop::new(attachment), Default::default());
        let mut connection =
            Connection { explicit: None, reader: None, attachment, status, has_batches: false, parameters };
        connection.suit(0);
        connection
    }

    /// Takes what a server of this major version offers. Firebird 4 and later know read consistency; older ones get the
    /// record version, their nearest. The wait for a row
    /// has no time limit of its own: with one, Firebird does not look for deadlocks, and a long queue would look like
    /// a conflict.
    pub fn suit(&mut self, major: u32) {
        self.has_batches = major >= 4;
        let isolation = if major >= 4 { TPB_READ_CONSISTENCY } else { TPB_RECORD_VERSION };
        let common = [TPB_VERSION, TPB_READ_COMMITTED, isolation, TPB_WAIT];
        let with = |options: &[u8]| [&common[..], options].concat();
        self.parameters = [with(&[TPB_WRITE]), with(&[TPB_WRITE, TPB_NO_AUTO_UNDO]), with(&[TPB_READ])];
    }

    pub fn start(&mut self, purpose: Purpose) -> Result<Handle<Transaction>> {
        let block = &self.parameters[purpose as usize];
        let (length, start) = (block.len() as c_uint, block.as_ptr());
        // SAFETY: IAttachment's startTransaction reads no more of the block than the length says, and gives a reference
        // that is the caller's.
        let transaction = unsafe {
            Handle::take(call!(self.attachment.get(), start_transaction, self.status.get(), length, start))
        };
        self.status.check()?;
        transaction.ok_or_else(|| Error::internal("Firebird gave no transaction"))
    }

    pub fn finish(&mut self, transaction: Handle<Transaction>, commit: bool) -> Result<()> {
        // SAFETY: ITransaction's commit and rollback take the reference with them where they succeed, which the status
        // says.
        unsafe {
            if commit {
                call!(transaction.get(), commit, self.status.get());
            } else {
                call!(transaction.get(), rollback, self.status.get());
            }
        }
        self.status.check()?;
        transaction.spent();
        Ok(())
    }

    pub fn begin(&mut self) -> Result<()> {
        if self.explicit.is_some() {
            return Err(Error::internal("begin within a transaction"));
        }
        self.explicit = Some(self.start(Purpose::Write)?);
        Ok(())
    }

    pub fn commit(&mut self) -> Result<()> {
        let Some(transaction) = self.explicit.take() else { return Ok(()) };
        // SAFETY: ITransaction's commit and rollback take the reference with them where they succeed, which the status
        // says.
        unsafe { call!(transaction.get(), commit, self.status.get()) };
        match self.status.check() {
            Ok(()) => transaction.spent(),
            Err(error) => {
                // It can still be rolled back, and must be before anything else can be done.
                self.explicit = Some(transaction);
                return Err(error);
            }
        }
        Ok(())
    }

    pub fn rollback(&mut self) -> Result<()> {
        match self.explicit.take() {
            Some(transaction) => self.finish(transaction, false),
            None => Ok(()),
        }
    }

    /// The transaction between `begin` and `commit`.
    pub fn explicit(&self) -> Option<*mut Transaction> {
        self.explicit.as_ref().map(Handle::get)
    }

    /// The transaction of single reads.
    pub fn reader(&mut self) -> Result<*mut Transaction> {
        if self.reader.is_none() {
            self.reader = Some(self.start(Purpose::Read)?);
        }
        self.reader.as_ref().map(Handle::get).ok_or_else(|| Error::internal("no transaction to read in"))
    }

    /// Ends the transaction of single reads, which would hold the tables that it has read against DDL.
    pub fn end_reader(&mut self) -> Result<()> {
        match self.reader.take() {
            Some(transaction) => self.finish(transaction, true),
            None => Ok(()),
        }
    }

    pub fn prepare(&mut self, sql: &str) -> Result<Handle<Statement>> {
        if sql.is_empty() {
            // The library takes a length of 0 for a text that ends with a zero byte.
            return Err(Error::refused(
                Code::Firebird(SQL_ERROR),
                "sql_error",
                Fate::Failed,
                "the text holds no statement",
            ));
        }
        let transaction = match self.explicit() {
            Some(transaction) => transaction,
            None => self.reader()?,
        };
        let (start, length) = (sql.as_ptr().cast(), sql.len() as c_uint);
        // SAFETY: IAttachment's prepare reads no more of the text than the length says, and gives a reference that is
        // the caller's.
        let statement = unsafe {
            let status = self.status.get();
            let attachment = self.attachment.get();
            let flags = PREPARE_PREFETCH_METADATA;
            Handle::take(call!(attachment, prepare, status, transaction, length, start, SQL_DIALECT, flags))
        };
        self.status.check()?;
        statement.ok_or_else(|| Error::internal("Firebird gave no statement"))
    }

    pub fn free(&mut self, statement: Handle<Statement>) -> Result<()> {
        // SAFETY: IStatement's free takes the reference with it where it succeeds, which the status says.
        unsafe { call!(statement.get(), free, self.status.get()) };
        self.status.check()?;
        statement.spent();
        Ok(())
    }

    pub fn write_blob(&mut self, transaction: *mut Transaction, content: &[u8]) -> Result<BlobId> {
        let mut id = BlobId::default();
        // SAFETY: IAttachment's createBlob and openBlob want both references that are held, and give one that is the
        // caller's.
        let blob = unsafe {
            let (attachment, status) = (self.attachment.get(), self.status.get());
            Handle::take(call!(attachment, create_blob, status, transaction, &mut id, 0, std::ptr::null()))
        };
        self.status.check()?;
        let blob = blob.ok_or_else(|| Error::internal("Firebird gave no blob"))?;
        for segment in content.chunks(BLOB_SEGMENT_BYTES) {
            let (length, start) = (segment.len() as c_uint, segment.as_ptr().cast());
            // SAFETY: IBlob's putSegment reads no more than the length says.
            unsafe { call!(blob.get(), put_segment, self.status.get(), length, start) };
            self.status.check()?;
        }
        self.close_blob(blob)?;
        Ok(id)
    }

    /// Appends a blob's content.
    pub fn read_blob(
        &mut self,
        transaction: *mut Transaction,
        mut id: BlobId,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        // SAFETY: IAttachment's createBlob and openBlob want both references that are held, and give one that is the
        // caller's.
        let blob = unsafe {
            let (attachment, status) = (self.attachment.get(), self.status.get());
            Handle::take(call!(attachment, open_blob, status, transaction, &mut id, 0, std::ptr::null()))
        };
        self.status.check()?;
        let blob = blob.ok_or_else(|| Error::internal("Firebird gave no blob"))?;
        while self.read_segment(&blob, out)? {}
        self.close_blob(blob)
    }

    fn read_segment(&mut self, blob: &Handle<Blob>, out: &mut Vec<u8>) -> Result<bool> {
        let (from, mut length) = (out.len(), 0);
        out.resize(from + BLOB_SEGMENT_BYTES, 0);
        let room = out[from..].as_mut_ptr().cast();
        // SAFETY: IBlob's getSegment writes no more than the length says, which is the room's.
        let result: c_int = unsafe {
            call!(blob.get(), get_segment, self.status.get(), BLOB_SEGMENT_BYTES as c_uint, room, &mut length)
        };
        let read = if matches!(result, RESULT_OK | RESULT_SEGMENT) { length as usize } else { 0 };
        out.truncate(from + read.min(BLOB_SEGMENT_BYTES));
        self.status.check()?;
        Ok(result != RESULT_NO_DATA)
    }

    fn close_blob(&mut self, blob: Handle<Blob>) -> Result<()> {
        // SAFETY: IBlob's close takes the reference with it where it succeeds, which the status says.
        unsafe { call!(blob.get(), close, self.status.get()) };
        self.status.check()?;
        blob.spent();
        Ok(())
    }
}

impl Drop for Connection {
    /// Ends the transactions and detaches. The engine releases what is left when the process ends; errors of a
    /// connection that is already gone are of no interest.
    fn drop(&mut self) {
        for transaction in [self.explicit.take(), self.reader.take()].into_iter().flatten() {
            if self.finish(transaction, false).is_err() {
                self.status.clear();
            }
        }
        // SAFETY: IAttachment's detach takes the reference with it where it succeeds, which the status says. Nothing
        // uses the attachment after this.
        unsafe {
            call!(self.attachment.get(), detach, self.status.get());
            if self.status.check().is_err() {
                ManuallyDrop::drop(&mut self.attachment);
            }
        }
    }
}
