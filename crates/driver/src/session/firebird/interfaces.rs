//! Firebird's object interfaces as its client library lays them out in memory: a pointer to a table of C functions, in
//! the order of the library's interface definition. Methods that are not called here keep their slot as `Unused`.
//!
//! The tables are those of Firebird 4.0.1 and later; `MIN_ATTACHMENT_VERSION` tells an older library apart.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

pub(super) type Unused = *const c_void;

/// The attachment's table has `detach` from this version on; every other method used here is at least as old.
pub(super) const MIN_ATTACHMENT_VERSION: usize = 5;

pub(super) const STATE_ERRORS: c_uint = 2;
pub(super) const RESULT_OK: c_int = 0;
pub(super) const RESULT_NO_DATA: c_int = 1;
pub(super) const RESULT_SEGMENT: c_int = 2;
pub(super) const PREPARE_PREFETCH_METADATA: c_uint = 0x47;
pub(super) const FLAG_HAS_CURSOR: c_uint = 1;
/// What `cancel_operation` is to do: have the call under way fail, or close the connection under it.
pub(super) const CANCEL_RAISE: c_int = 3;
pub(super) const CANCEL_ABORT: c_int = 4;

/// A blob's identity within its transaction.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct BlobId {
    pub high: i32,
    pub low: u32,
}

macro_rules! interface {
    ($name:ident, $table:ident { $($method:ident: $signature:ty,)* }) => {
        #[repr(C)]
        pub(super) struct $name {
            _reserved: *mut c_void,
            pub table: *const $table,
        }

        #[repr(C)]
        #[allow(dead_code)]
        pub(super) struct $table {
            _reserved: *mut c_void,
            pub version: usize,
            $(pub $method: $signature,)*
        }
    };
}

/// Calls a method of an interface: `call!(pointer, method, arguments...)`.
macro_rules! call {
    ($object:expr, $method:ident $(, $argument:expr)* $(,)?) => {{
        let object = $object;
        ((*(*object).table).$method)(object $(, $argument)*)
    }};
}
pub(super) use call;

interface!(Master, MasterTable {
    get_status: unsafe extern "C" fn(*mut Master) -> *mut Status,
    get_dispatcher: unsafe extern "C" fn(*mut Master) -> *mut Provider,
    get_plugin_manager: Unused,
    get_timer_control: Unused,
    get_dtc: Unused,
    register_attachment: Unused,
    register_transaction: Unused,
    get_metadata_builder: Unused,
    server_mode: Unused,
    get_util_interface: unsafe extern "C" fn(*mut Master) -> *mut Util,
});

interface!(Util, UtilTable {
    get_fb_version: Unused,
    load_blob: Unused,
    dump_blob: Unused,
    get_perf_counters: Unused,
    execute_create_database: Unused,
    decode_date: Unused,
    decode_time: Unused,
    encode_date: Unused,
    encode_time: Unused,
    format_status: unsafe extern "C" fn(*mut Util, *mut c_char, c_uint, *mut Status) -> c_uint,
    get_client_version: unsafe extern "C" fn(*mut Util) -> c_uint,
});

interface!(Status, StatusTable {
    dispose: unsafe extern "C" fn(*mut Status),
    init: unsafe extern "C" fn(*mut Status),
    get_state: unsafe extern "C" fn(*mut Status) -> c_uint,
    set_errors_counted: Unused,
    set_warnings_counted: Unused,
    set_errors: Unused,
    set_warnings: Unused,
    get_errors: unsafe extern "C" fn(*mut Status) -> *const isize,
    get_warnings: Unused,
    clone: Unused,
});

interface!(Provider, ProviderTable {
    add_ref: Unused,
    release: unsafe extern "C" fn(*mut Provider) -> c_int,
    set_owner: Unused,
    get_owner: Unused,
    attach_database:
        unsafe extern "C" fn(*mut Provider, *mut Status, *const c_char, c_uint, *const c_uchar) -> *mut Attachment,
    create_database:
        unsafe extern "C" fn(*mut Provider, *mut Status, *const c_char, c_uint, *const c_uchar) -> *mut Attachment,
});

interface!(Attachment, AttachmentTable {
    add_ref: unsafe extern "C" fn(*mut Attachment),
    release: unsafe extern "C" fn(*mut Attachment) -> c_int,
    get_info: Unused,
    start_transaction:
        unsafe extern "C" fn(*mut Attachment, *mut Status, c_uint, *const c_uchar) -> *mut Transaction,
    reconnect_transaction: Unused,
    compile_request: Unused,
    transact_request: Unused,
    create_blob: unsafe extern "C" fn(
        *mut Attachment,
        *mut Status,
        *mut Transaction,
        *mut BlobId,
        c_uint,
        *const c_uchar,
    ) -> *mut Blob,
    open_blob: unsafe extern "C" fn(
        *mut Attachment,
        *mut Status,
        *mut Transaction,
        *mut BlobId,
        c_uint,
        *const c_uchar,
    ) -> *mut Blob,
    get_slice: Unused,
    put_slice: Unused,
    execute_dyn: Unused,
    prepare: unsafe extern "C" fn(
        *mut Attachment,
        *mut Status,
        *mut Transaction,
        c_uint,
        *const c_char,
        c_uint,
        c_uint,
    ) -> *mut Statement,
    execute: Unused,
    open_cursor: Unused,
    que_events: Unused,
    cancel_operation: unsafe extern "C" fn(*mut Attachment, *mut Status, c_int),
    ping: Unused,
    deprecated_detach: Unused,
    deprecated_drop_database: Unused,
    get_idle_timeout: Unused,
    set_idle_timeout: Unused,
    get_statement_timeout: Unused,
    set_statement_timeout: Unused,
    create_batch: Unused,
    create_replicator: Unused,
    detach: unsafe extern "C" fn(*mut Attachment, *mut Status),
});

interface!(Transaction, TransactionTable {
    add_ref: Unused,
    release: unsafe extern "C" fn(*mut Transaction) -> c_int,
    get_info: Unused,
    prepare: Unused,
    deprecated_commit: Unused,
    commit_retaining: unsafe extern "C" fn(*mut Transaction, *mut Status),
    deprecated_rollback: Unused,
    rollback_retaining: Unused,
    deprecated_disconnect: Unused,
    join: Unused,
    validate: Unused,
    enter_dtc: Unused,
    commit: unsafe extern "C" fn(*mut Transaction, *mut Status),
    rollback: unsafe extern "C" fn(*mut Transaction, *mut Status),
});

interface!(Statement, StatementTable {
    add_ref: Unused,
    release: unsafe extern "C" fn(*mut Statement) -> c_int,
    get_info: Unused,
    get_type: unsafe extern "C" fn(*mut Statement, *mut Status) -> c_uint,
    get_plan: unsafe extern "C" fn(*mut Statement, *mut Status, c_uchar) -> *const c_char,
    get_affected_records: unsafe extern "C" fn(*mut Statement, *mut Status) -> u64,
    get_input_metadata: unsafe extern "C" fn(*mut Statement, *mut Status) -> *mut Metadata,
    get_output_metadata: unsafe extern "C" fn(*mut Statement, *mut Status) -> *mut Metadata,
    execute: unsafe extern "C" fn(
        *mut Statement,
        *mut Status,
        *mut Transaction,
        *mut Metadata,
        *mut c_void,
        *mut Metadata,
        *mut c_void,
    ) -> *mut Transaction,
    open_cursor: unsafe extern "C" fn(
        *mut Statement,
        *mut Status,
        *mut Transaction,
        *mut Metadata,
        *mut c_void,
        *mut Metadata,
        c_uint,
    ) -> *mut ResultSet,
    set_cursor_name: Unused,
    deprecated_free: Unused,
    get_flags: unsafe extern "C" fn(*mut Statement, *mut Status) -> c_uint,
    get_timeout: Unused,
    set_timeout: Unused,
    create_batch:
        unsafe extern "C" fn(*mut Statement, *mut Status, *mut Metadata, c_uint, *const c_uchar) -> *mut Batch,
    free: unsafe extern "C" fn(*mut Statement, *mut Status),
});

interface!(ResultSet, ResultSetTable {
    add_ref: Unused,
    release: unsafe extern "C" fn(*mut ResultSet) -> c_int,
    fetch_next: unsafe extern "C" fn(*mut ResultSet, *mut Status, *mut c_void) -> c_int,
    fetch_prior: Unused,
    fetch_first: Unused,
    fetch_last: Unused,
    fetch_absolute: Unused,
    fetch_relative: Unused,
    is_eof: Unused,
    is_bof: Unused,
    get_metadata: Unused,
    deprecated_close: Unused,
    set_delayed_output_format: Unused,
    close: unsafe extern "C" fn(*mut ResultSet, *mut Status),
});

interface!(Metadata, MetadataTable {
    add_ref: Unused,
    release: unsafe extern "C" fn(*mut Metadata) -> c_int,
    get_count: unsafe extern "C" fn(*mut Metadata, *mut Status) -> c_uint,
    get_field: Unused,
    get_relation: Unused,
    get_owner: Unused,
    get_alias: unsafe extern "C" fn(*mut Metadata, *mut Status, c_uint) -> *const c_char,
    get_type: unsafe extern "C" fn(*mut Metadata, *mut Status, c_uint) -> c_uint,
    is_nullable: Unused,
    get_sub_type: unsafe extern "C" fn(*mut Metadata, *mut Status, c_uint) -> c_int,
    get_length: unsafe extern "C" fn(*mut Metadata, *mut Status, c_uint) -> c_uint,
    get_scale: unsafe extern "C" fn(*mut Metadata, *mut Status, c_uint) -> c_int,
    get_char_set: unsafe extern "C" fn(*mut Metadata, *mut Status, c_uint) -> c_uint,
    get_offset: unsafe extern "C" fn(*mut Metadata, *mut Status, c_uint) -> c_uint,
    get_null_offset: unsafe extern "C" fn(*mut Metadata, *mut Status, c_uint) -> c_uint,
    get_builder: unsafe extern "C" fn(*mut Metadata, *mut Status) -> *mut MetadataBuilder,
    get_message_length: unsafe extern "C" fn(*mut Metadata, *mut Status) -> c_uint,
    get_alignment: Unused,
    get_aligned_length: unsafe extern "C" fn(*mut Metadata, *mut Status) -> c_uint,
});

interface!(MetadataBuilder, MetadataBuilderTable {
    add_ref: Unused,
    release: unsafe extern "C" fn(*mut MetadataBuilder) -> c_int,
    set_type: unsafe extern "C" fn(*mut MetadataBuilder, *mut Status, c_uint, c_uint),
    set_sub_type: unsafe extern "C" fn(*mut MetadataBuilder, *mut Status, c_uint, c_int),
    set_length: unsafe extern "C" fn(*mut MetadataBuilder, *mut Status, c_uint, c_uint),
    set_char_set: unsafe extern "C" fn(*mut MetadataBuilder, *mut Status, c_uint, c_uint),
    set_scale: unsafe extern "C" fn(*mut MetadataBuilder, *mut Status, c_uint, c_int),
    truncate: Unused,
    move_name_to_index: Unused,
    remove: Unused,
    add_field: Unused,
    get_metadata: unsafe extern "C" fn(*mut MetadataBuilder, *mut Status) -> *mut Metadata,
});

interface!(Blob, BlobTable {
    add_ref: Unused,
    release: unsafe extern "C" fn(*mut Blob) -> c_int,
    get_info: Unused,
    get_segment: unsafe extern "C" fn(*mut Blob, *mut Status, c_uint, *mut c_void, *mut c_uint) -> c_int,
    put_segment: unsafe extern "C" fn(*mut Blob, *mut Status, c_uint, *const c_void),
    deprecated_cancel: Unused,
    deprecated_close: Unused,
    seek: Unused,
    cancel: unsafe extern "C" fn(*mut Blob, *mut Status),
    close: unsafe extern "C" fn(*mut Blob, *mut Status),
});

interface!(Batch, BatchTable {
    add_ref: Unused,
    release: unsafe extern "C" fn(*mut Batch) -> c_int,
    add: unsafe extern "C" fn(*mut Batch, *mut Status, c_uint, *const c_void),
    add_blob: Unused,
    append_blob_data: Unused,
    add_blob_stream: Unused,
    register_blob: Unused,
    execute: unsafe extern "C" fn(*mut Batch, *mut Status, *mut Transaction) -> *mut CompletionState,
    cancel: Unused,
    get_blob_alignment: Unused,
    get_metadata: Unused,
    set_default_bpb: Unused,
    deprecated_close: Unused,
    close: unsafe extern "C" fn(*mut Batch, *mut Status),
});

interface!(CompletionState, CompletionStateTable {
    dispose: unsafe extern "C" fn(*mut CompletionState),
    get_size: Unused,
    get_state: Unused,
    find_error: unsafe extern "C" fn(*mut CompletionState, *mut Status, c_uint) -> c_uint,
    get_status: unsafe extern "C" fn(*mut CompletionState, *mut Status, *mut Status, c_uint),
});

/// An interface with a reference count.
pub(super) trait Counted {
    /// # Safety
    /// `object` must be a live interface of which the caller owns one reference.
    unsafe fn release(object: *mut Self);
}

macro_rules! counted {
    ($($name:ident),*) => {
        $(impl Counted for $name {
            unsafe fn release(object: *mut Self) {
                call!(object, release);
            }
        })*
    };
}
counted!(Provider, Attachment, Transaction, Statement, ResultSet, Metadata, MetadataBuilder, Blob, Batch);

/// One owned reference to an interface.
pub(super) struct Handle<T: Counted>(*mut T);

impl<T: Counted> Handle<T> {
    /// Takes over a reference that the library handed out; `None` for a null pointer.
    ///
    /// # Safety
    /// `object` is null or a live interface whose reference the caller gives away.
    pub unsafe fn take(object: *mut T) -> Option<Self> {
        // Not `then_some`: the handle that it would make of a null pointer, and drop, would be released.
        (!object.is_null()).then(|| Handle(object))
    }

    pub fn get(&self) -> *mut T {
        self.0
    }

    /// Gives the reference up without releasing it: a method that ended the object has done so.
    pub fn spent(self) {
        std::mem::forget(self);
    }
}

impl Handle<Attachment> {
    /// Another reference to the same attachment.
    pub fn another(&self) -> Self {
        // SAFETY: IReferenceCounted's addRef wants a live interface: `self` holds a reference to it.
        unsafe { call!(self.0, add_ref) };
        Handle(self.0)
    }
}

impl<T: Counted> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: `release` wants one reference that the caller owns: `self` does, and has not given it up.
        unsafe { T::release(self.0) };
    }
}
