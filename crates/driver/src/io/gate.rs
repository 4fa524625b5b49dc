//! Lets tasks of one thread through, so many at a time.

use super::executor::with_loop;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::Poll;

/// Tasks that find it full wait in line.
#[derive(Debug)]
pub(crate) struct Gate {
    free: Cell<usize>,
    waiting: RefCell<VecDeque<u32>>,
}

impl Gate {
    /// A gate with this many places: 0 for one that is closed until `open`.
    pub fn new(places: usize) -> Self {
        Gate { free: Cell::new(places), waiting: RefCell::default() }
    }

    /// Waits for a place and takes it.
    pub async fn enter(&self) {
        let mut asked = false;
        std::future::poll_fn(|_| {
            if let Some(left) = self.free.get().checked_sub(1) {
                self.free.set(left);
                return Poll::Ready(());
            }
            if !std::mem::replace(&mut asked, true) {
                self.waiting.borrow_mut().push_back(with_loop(|this| this.running));
            }
            Poll::Pending
        })
        .await;
    }

    /// Gives a place back.
    pub fn leave(&self) {
        self.free.set(self.free.get().saturating_add(1));
        let next = self.waiting.borrow_mut().pop_front();
        with_loop(|this| this.slots.ready.extend(next));
    }

    /// Lets everyone through from now on.
    pub fn open(&self) {
        self.free.set(usize::MAX / 2);
        let all = std::mem::take(&mut *self.waiting.borrow_mut());
        with_loop(|this| this.slots.ready.extend(all));
    }
}
