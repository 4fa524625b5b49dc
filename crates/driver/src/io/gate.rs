//! Lets tasks of one thread through, so many at a time.

use super::executor::{running, with_loop};
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
    /// A gate with this many places.
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
            let (running, mut waiting) = (running(), self.waiting.borrow_mut());
            if !std::mem::replace(&mut asked, true) {
                waiting.push_back(running);
            } else if !waiting.contains(&running) {
                // Its place was given back and taken again before it could go on: it is still the first in line.
                waiting.push_front(running);
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
}

/// Wakes the tasks of one thread that wait for something to become true.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    waiting: RefCell<VecDeque<u32>>,
}

impl Bell {
    /// Waits until `met`, which is looked at again whenever the bell rings.
    pub async fn until(&self, met: impl Fn() -> bool) {
        let mut asked = false;
        std::future::poll_fn(|_| {
            if met() {
                return Poll::Ready(());
            }
            let (running, mut waiting) = (running(), self.waiting.borrow_mut());
            // Thousands wait for the start, each of them once.
            if !std::mem::replace(&mut asked, true) || !waiting.contains(&running) {
                waiting.push_back(running);
            }
            Poll::Pending
        })
        .await;
    }

    pub fn ring(&self) {
        let all = std::mem::take(&mut *self.waiting.borrow_mut());
        with_loop(|this| this.slots.ready.extend(all));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::io::{sleep_ns, Backend, Executor};

    #[test]
    fn who_waits_gets_its_turn_though_the_place_is_taken_again_at_once() {
        clock::simulate(Some(0));
        let (gate, through) = (Gate::new(1), Cell::new(0));
        let mut executor = Executor::new(Backend::Simulated).unwrap();
        executor.spawn(async {
            for _ in 0..2 {
                gate.enter().await;
                sleep_ns(10).await;
                gate.leave();
            }
            through.set(through.get() + 1);
        });
        executor.spawn(async {
            gate.enter().await;
            gate.leave();
            through.set(through.get() + 1);
        });
        let mut turns = 0;
        let over = || {
            turns += 1;
            turns > 100
        };
        executor.run(over).unwrap();
        drop(executor);
        clock::simulate(None);
        assert_eq!(through.get(), 2);
    }
}
