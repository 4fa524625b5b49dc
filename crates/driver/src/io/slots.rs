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

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It is not known to be connected yet.
    Opening,
    /// It is connected, or has failed to, which its socket tells.
    Open,
    Receiving,
    /// Nothing more will come; what has arrived can still be taken.
    Ended(Ending),
    /// Its stream is gone, and it goes with the next turn. What the kernel still says of it is nobody's.
    Closing,
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
    stage: Stage,
    /// The task to wake at the next event, and when its patience ends. `Slots` counts those that wait.
    waiting: Option<u32>,
    patience_until_ns: u64,
}

/// Slots are found by number; a free number is used again.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    generation: u32,
    /// How many tasks wait for a connection.
    pub waiting: usize,
    /// Before that no task's patience ends.
    patient_until_ns: u64,
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
            stage: Stage::Opening,
            waiting: None,
            patience_until_ns: u64::MAX,
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

    #[inline]
    pub fn get(&mut self, number: u32) -> Option<&mut Slot> {
        self.slots.get_mut(number as usize)?.as_mut()
    }

    /// The slot that an event belongs to, if it still is the same connection.
    #[inline]
    pub fn of_event(&mut self, number: u32, generation: u32) -> Option<&mut Slot> {
        self.get(number).filter(|slot| slot.generation == generation)
    }

    pub fn remove(&mut self, number: u32) -> Option<Slot> {
        let slot = self.slots.get_mut(number as usize)?.take();
        if let Some(slot) = &slot {
            self.waiting -= usize::from(slot.waiting.is_some());
            self.free.push(number);
        }
        slot
    }

    /// Has a task wait for this connection until a time; one that waits already keeps the time that it has.
    #[inline]
    pub fn wait(&mut self, number: u32, task: u32, until_ns: u64) {
        let Some(slot) = self.slots.get_mut(number as usize).and_then(Option::as_mut) else { return };
        if slot.waiting.replace(task).is_none() {
            slot.patience_until_ns = until_ns;
            self.waiting += 1;
            self.patient_until_ns = self.patient_until_ns.min(until_ns);
        }
    }

    /// Nobody waits for this connection any more; gives who did.
    #[inline]
    pub fn no_more_waits(&mut self, number: u32) -> Option<u32> {
        let waited = self.slots.get_mut(number as usize)?.as_mut()?.waiting.take();
        self.waiting -= usize::from(waited.is_some());
        waited
    }

    /// Wakes whoever waits for this connection.
    #[inline]
    pub fn wake(&mut self, number: u32) {
        if let Some(task) = self.no_more_waits(number) {
            self.ready.push_back(task);
        }
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

    /// `hand_over` and `wait` in one: false where nobody waits, because something has come already or nothing will.
    #[inline]
    pub fn ask(&mut self, number: u32, outbox: &mut Vec<u8>, task: u32, until_ns: u64) -> bool {
        let Some(slot) = self.slots.get_mut(number as usize).and_then(Option::as_mut) else { return false };
        if slot.unsent || slot.waiting.is_some() || !slot.received.is_empty() || slot.ending().is_some() {
            self.hand_over(number, outbox);
            return false;
        }
        slot.sending.clear();
        slot.sent = 0;
        slot.unsent = true;
        std::mem::swap(&mut slot.sending, outbox);
        slot.waiting = Some(task);
        slot.patience_until_ns = until_ns;
        self.to_send.push(number);
        self.waiting += 1;
        self.patient_until_ns = self.patient_until_ns.min(until_ns);
        true
    }

    /// Takes in bytes that the back end received.
    #[inline]
    pub fn receive(&mut self, number: u32, bytes: &[u8]) {
        let Some(slot) = self.slots.get_mut(number as usize).and_then(Option::as_mut) else { return };
        if slot.received.len() + bytes.len() > UNASKED_BYTES_MAX {
            return self.end(number, Ending::Flooded);
        }
        slot.received.extend_from_slice(bytes);
        // As `wake` does, with the slot that was found already.
        if let Some(task) = slot.waiting.take() {
            self.waiting -= 1;
            self.ready.push_back(task);
        }
    }

    /// Notes that nothing more will come; the first reason stays.
    pub fn end(&mut self, number: u32, ending: Ending) {
        let Some(slot) = self.get(number) else { return };
        if !matches!(slot.stage, Stage::Ended(_) | Stage::Closing) {
            slot.stage = Stage::Ended(ending);
        }
        self.wake(number);
    }

    /// Ends the connections whose tasks have waited for longer than they wanted to. It looks at none before one of them
    /// can have, because there may be a hundred thousand. Whether it has looked.
    pub fn end_silent(&mut self, now_ns: u64) -> bool {
        if now_ns < self.patient_until_ns {
            return false;
        }
        let mut next_ns = u64::MAX;
        for number in 0..self.slots.len() as u32 {
            let Some(slot) = self.get(number).filter(|slot| slot.waiting.is_some()) else { continue };
            if slot.patience_until_ns <= now_ns {
                self.end(number, Ending::Silent);
            } else {
                next_ns = next_ns.min(slot.patience_until_ns);
            }
        }
        self.patient_until_ns = next_ns;
        true
    }
}

impl Slot {
    /// It became writable: it is connected, or has failed to.
    pub fn opened(&mut self) {
        if self.stage == Stage::Opening {
            self.stage = Stage::Open;
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open | Stage::Receiving)
    }

    /// Begins to receive; false where nothing will come any more.
    pub fn receive(&mut self) -> bool {
        if matches!(self.stage, Stage::Opening | Stage::Open) {
            self.stage = Stage::Receiving;
        }
        self.is_receiving()
    }

    pub fn is_receiving(&self) -> bool {
        self.stage == Stage::Receiving
    }

    /// Why nothing more will come.
    pub fn ending(&self) -> Option<Ending> {
        match self.stage {
            Stage::Ended(ending) => Some(ending),
            _ => None,
        }
    }

    /// Its stream is gone.
    pub fn close(&mut self) {
        self.stage = Stage::Closing;
    }

    pub fn is_closing(&self) -> bool {
        self.stage == Stage::Closing
    }

    /// Whether a task waits for this connection.
    pub fn is_waited_for(&self) -> bool {
        self.waiting.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::net::UnixStream;

    fn slots(count: usize) -> Slots {
        let mut slots = Slots::default();
        for _ in 0..count {
            slots.insert(UnixStream::pair().unwrap().0.into());
        }
        slots
    }

    fn counted(slots: &Slots) -> usize {
        slots.slots.iter().flatten().filter(|slot| slot.waiting.is_some()).count()
    }

    #[test]
    fn nobody_is_looked_at_before_one_can_have_lost_patience() {
        let mut slots = slots(3);
        assert!(slots.end_silent(0), "what was there before is not known");
        slots.wait(0, 10, 300);
        slots.wait(1, 11, 200);
        slots.wait(1, 11, 900);
        assert!(!slots.end_silent(199));
        slots.no_more_waits(0);
        assert!(slots.end_silent(200));
        assert_eq!(slots.get(1).unwrap().ending(), Some(Ending::Silent));
        assert_eq!((slots.ready.make_contiguous(), slots.waiting), (&mut [11][..], 0));
        assert!(!slots.end_silent(u64::MAX - 1), "nobody waits");
        slots.wait(2, 12, 500);
        assert!(!slots.end_silent(499) && slots.end_silent(500));
    }

    #[test]
    fn who_asks_waits_unless_something_has_come_or_nothing_will() {
        let mut slots = slots(3);
        slots.receive(1, b"unasked");
        slots.end(2, Ending::Closed);
        let waits = [0, 1, 2].map(|number| slots.ask(number, &mut b"a question".to_vec(), number, 100));
        assert_eq!(waits, [true, false, false]);
        assert_eq!((slots.waiting, &slots.to_send[..]), (1, &[0, 1, 2][..]));
        assert!(slots.end_silent(100), "the one that waits has lost patience");
        assert_eq!(slots.get(0).unwrap().ending(), Some(Ending::Silent));
    }

    #[test]
    fn a_connection_lives_in_one_direction() {
        let mut slots = slots(1);
        let slot = slots.get(0).unwrap();
        assert!(!slot.is_open() && !slot.is_receiving());
        slot.opened();
        assert!(slot.is_open() && slot.receive() && slot.is_open());
        slots.end(0, Ending::Closed);
        slots.end(0, Ending::Flooded);
        let slot = slots.get(0).unwrap();
        slot.opened();
        assert!(!slot.receive() && !slot.is_open());
        assert_eq!(slot.ending(), Some(Ending::Closed), "the first reason stays");
        slot.close();
        slots.end(0, Ending::Silent);
        let slot = slots.get(0).unwrap();
        assert!(slot.is_closing() && !slot.receive());
        assert_eq!(slot.ending(), None);
    }

    proptest! {
        #[test]
        fn those_who_wait_are_counted_as_they_come_and_go(
            steps in proptest::collection::vec((0u8..5, 0u32..6, 0u64..100), 0..60),
        ) {
            let mut slots = slots(6);
            for (step, number, time_ns) in steps {
                match step {
                    0 => slots.wait(number, number, time_ns),
                    1 => drop(slots.ask(number, &mut b"a question".to_vec(), number, time_ns)),
                    2 => slots.wake(number),
                    3 => slots.end(number, Ending::Closed),
                    _ if number == 0 => drop(slots.remove(time_ns as u32 % 6)),
                    _ => drop(slots.end_silent(time_ns)),
                }
                prop_assert_eq!(slots.waiting, counted(&slots));
            }
        }
    }
}
