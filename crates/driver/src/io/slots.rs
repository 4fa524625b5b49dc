//! The connections of a thread, as its back end sees them.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

/// A server that sends this much while nobody waits for it has lost its mind.
const UNASKED_BYTES_MAX: usize = 64 << 20;

/// Why a connection gives no more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Closed,
    Silent,
    Flooded,
    Errno(i32),
}

#[derive(Debug)]
pub(super) struct Slot {
    pub fd: OwnedFd,
    /// Tells this connection's events from those of an earlier one in the same place.
    pub generation: u32,
    /// Bytes that have arrived and that the stream has not taken yet.
    pub received: Vec<u8>,
    /// Bytes that were handed over to be sent; owned here, for the kernel reads them after the task has gone on.
    pub sending: Vec<u8>,
    /// How many of `sending` the kernel has taken.
    pub sent: usize,
    /// The back end is to send, or waits until it can.
    pub unsent: bool,
    pub ending: Option<Ending>,
    /// The task to wake at the next event, and when its patience ends.
    pub waiting: Option<u32>,
    pub patience_until_ns: u64,
    /// Reading has been asked for and still goes on.
    pub receiving: bool,
    /// A connection under way became writable (or failed).
    pub writable: bool,
    pub closing: bool,
}

/// Slots are found by number; a free number is used again.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    generation: u32,
    /// Connections with bytes to send, in the order in which they were handed over.
    pub to_send: Vec<u32>,
    /// Connections to be read from (again).
    pub to_receive: Vec<u32>,
    /// Connections of which it must be known when they can be written to.
    pub to_watch: Vec<u32>,
    pub to_close: Vec<u32>,
    /// Tasks that can go on.
    pub ready: VecDeque<u32>,
}

impl Slots {
    pub fn insert(&mut self, fd: OwnedFd) -> u32 {
        self.generation = self.generation.wrapping_add(1) & 0x00FF_FFFF;
        let slot = Slot {
            fd,
            generation: self.generation,
            received: Vec::new(),
            sending: Vec::new(),
            sent: 0,
            unsent: false,
            ending: None,
            waiting: None,
            patience_until_ns: u64::MAX,
            receiving: false,
            writable: false,
            closing: false,
        };
        match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = Some(slot);
                number
            }
            None => {
                self.slots.push(Some(slot));
                (self.slots.len() - 1) as u32
            }
        }
    }

    pub fn get(&mut self, number: u32) -> Option<&mut Slot> {
        self.slots.get_mut(number as usize)?.as_mut()
    }

    /// The slot that an event belongs to, if it still is the same connection.
    pub fn of_event(&mut self, number: u32, generation: u32) -> Option<&mut Slot> {
        self.get(number).filter(|slot| slot.generation == generation)
    }

    pub fn remove(&mut self, number: u32) -> Option<Slot> {
        let slot = self.slots.get_mut(number as usize)?.take();
        if slot.is_some() {
            self.free.push(number);
        }
        slot
    }

    /// How many tasks wait for a connection.
    pub fn waiting(&self) -> usize {
        self.slots.iter().flatten().filter(|slot| slot.waiting.is_some()).count()
    }

    /// Wakes whoever waits for this connection.
    pub fn wake(&mut self, number: u32) {
        let waiting = self.get(number).and_then(|slot| slot.waiting.take());
        self.ready.extend(waiting);
    }

    /// Takes what a connection has to say, which goes out with the next turn; leaves the outbox for something else.
    #[inline]
    pub fn hand_over(&mut self, number: u32, outbox: &mut Vec<u8>) {
        let Some(slot) = self.get(number) else { return };
        if slot.unsent {
            slot.sending.extend_from_slice(outbox);
        } else {
            slot.sending.clear();
            slot.sent = 0;
            slot.unsent = true;
            std::mem::swap(&mut slot.sending, outbox);
            self.to_send.push(number);
        }
    }

    /// Takes in bytes that the back end received.
    pub fn receive(&mut self, number: u32, bytes: &[u8]) {
        let Some(slot) = self.get(number) else { return };
        if slot.received.len() + bytes.len() > UNASKED_BYTES_MAX {
            return self.end(number, Ending::Flooded);
        }
        slot.received.extend_from_slice(bytes);
        self.wake(number);
    }

    /// Notes that nothing more will come; the first reason stays.
    pub fn end(&mut self, number: u32, ending: Ending) {
        let Some(slot) = self.get(number) else { return };
        slot.ending.get_or_insert(ending);
        slot.receiving = false;
        self.wake(number);
    }

    /// Ends the connections whose tasks have waited for longer than they wanted to.
    pub fn end_silent(&mut self, now_ns: u64) {
        for number in 0..self.slots.len() as u32 {
            let Some(slot) = self.get(number) else { continue };
            if slot.waiting.is_some() && slot.patience_until_ns <= now_ns {
                self.end(number, Ending::Silent);
            }
        }
    }
}
