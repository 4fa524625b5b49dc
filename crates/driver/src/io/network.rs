//! A network where there is none: what a client hands over in one piece waits for a round trip before it goes out. Where
//! between the two the time is spent, neither a client nor its server can tell.

use super::slots::Slots;
use std::collections::VecDeque;

/// What was handed over in one piece, and when it goes out.
#[derive(Debug)]
struct Flight {
    due_ns: u64,
    slot: u32,
    bytes: Vec<u8>,
}

/// The flights of a thread's connections. All wait for as long, so they go out in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Network {
    /// 0 where nothing is delayed.
    pub round_trip_ns: u64,
    under_way: VecDeque<Flight>,
}

impl Network {
    /// Takes what a connection has handed over, and says when it goes out.
    pub fn carry(&mut self, slot: u32, outbox: &mut Vec<u8>, now_ns: u64) -> u64 {
        let due_ns = now_ns.saturating_add(self.round_trip_ns);
        self.under_way.push_back(Flight { due_ns, slot, bytes: std::mem::take(outbox) });
        due_ns
    }

    /// Sends what is due.
    pub fn deliver(&mut self, slots: &mut Slots, now_ns: u64) {
        while self.under_way.front().is_some_and(|flight| flight.due_ns <= now_ns) {
            let Some(mut flight) = self.under_way.pop_front() else { return };
            slots.hand_over(flight.slot, &mut flight.bytes);
        }
    }

    /// Sends what a connection that is given up has said last: it must not wait for longer than the connection lives.
    pub fn deliver_last_words(&mut self, slots: &mut Slots, slot: u32) {
        self.under_way.retain_mut(|flight| {
            if flight.slot == slot {
                slots.hand_over(slot, &mut flight.bytes);
            }
            flight.slot != slot
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// A network with a round trip of 10 ns and two connections on it.
    fn network() -> (Network, Slots) {
        let mut slots = Slots::default();
        let (one, other) = UnixStream::pair().unwrap();
        assert_eq!((slots.insert(one.into()), slots.insert(other.into())), (0, 1));
        (Network { round_trip_ns: 10, ..Network::default() }, slots)
    }

    fn said(slots: &mut Slots, slot: u32) -> &[u8] {
        &slots.get(slot).unwrap().sending
    }

    #[test]
    fn each_flight_waits_for_itself_and_a_batch_waits_once() {
        let (mut network, mut slots) = network();
        assert_eq!(network.carry(0, &mut b"two statements".to_vec(), 5), 15);
        assert_eq!(network.carry(1, &mut b"one".to_vec(), 8), 18);
        network.deliver(&mut slots, 14);
        assert!(slots.to_send.is_empty());
        network.deliver(&mut slots, 15);
        assert_eq!(slots.to_send, [0]);
        assert_eq!(said(&mut slots, 0), b"two statements");
        network.deliver(&mut slots, 18);
        assert_eq!(slots.to_send, [0, 1]);
        assert_eq!(said(&mut slots, 1), b"one");
    }

    #[test]
    fn what_a_connection_hands_over_meanwhile_goes_out_later_and_in_order() {
        let (mut network, mut slots) = network();
        network.carry(0, &mut b"first ".to_vec(), 0);
        network.carry(0, &mut b"second".to_vec(), 9);
        network.deliver(&mut slots, 10);
        assert_eq!(said(&mut slots, 0), b"first ");
        network.deliver(&mut slots, 19);
        assert_eq!(said(&mut slots, 0), b"first second");
    }

    #[test]
    fn last_words_go_out_at_once_and_leave_the_others_alone() {
        let (mut network, mut slots) = network();
        network.carry(1, &mut b"question".to_vec(), 0);
        network.carry(0, &mut b"goodbye".to_vec(), 0);
        network.deliver_last_words(&mut slots, 0);
        assert_eq!(slots.to_send, [0]);
        assert_eq!(said(&mut slots, 0), b"goodbye");
        network.deliver(&mut slots, 10);
        assert_eq!(slots.to_send, [0, 1]);
        assert_eq!(said(&mut slots, 0), b"goodbye");
        assert_eq!(said(&mut slots, 1), b"question");
    }
}
