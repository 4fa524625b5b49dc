//! An attachment as other threads know it: what they may do is end the call that it is in.

use super::interfaces::{call, Attachment, Handle, CANCEL_ABORT, CANCEL_RAISE};
use super::status::Status;
use crate::io::Interrupt;
use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

pub(super) struct Cancel {
    /// With a status of its own, because the session's is in use.
    attachment: Mutex<(Status, Handle<Attachment>)>,
    is_embedded: bool,
}

// SAFETY: cancelOperation is for threads other than the one that works with the attachment, and a reference to the
// attachment is held here; the mutex keeps the status to one thread at a time.
unsafe impl Send for Cancel {}
// SAFETY: as for Send.
unsafe impl Sync for Cancel {}

impl Cancel {
    pub fn new(status: Status, attachment: &Handle<Attachment>, is_embedded: bool) -> Self {
        Cancel { attachment: Mutex::new((status, attachment.another())), is_embedded }
    }

    /// That there is nothing to cancel, or no attachment any more, is no failure here.
    fn ask(&self, what: c_int) {
        let mut held = self.attachment.lock().unwrap_or_else(PoisonError::into_inner);
        let (status, attachment) = &mut *held;
        // SAFETY: IAttachment's cancelOperation is for any thread, and a reference to the attachment is held. An
        // IStatus is for one thread at a time, which the mutex sees to.
        unsafe { call!(attachment.get(), cancel_operation, status.get(), what) };
        status.clear();
    }
}

impl Interrupt for Cancel {
    fn interrupt(&self) {
        self.ask(CANCEL_RAISE);
    }

    /// An engine in the process has no connection that could be closed.
    fn cut(&self) {
        if !self.is_embedded {
            self.ask(CANCEL_ABORT);
        }
    }
}
