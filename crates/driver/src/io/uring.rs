//! The io_uring back end: one multishot receive per connection into buffers that all share, and all sends of a turn
//! handed over by the same system call that waits.
//!
//! A send asks for no completion unless it fails or falls short (`MSG_DONTWAIT | MSG_WAITALL` with
//! `IOSQE_CQE_SKIP_SUCCESS`): it is done when the call that submits it returns, or there is an event that says how far
//! it got. So a request costs one submission and its answer one completion.

use super::buffers::{Buffers, GROUP};
use super::entrance::{Entrance, Wait};
use super::gather::{Gather, Patience};
use super::limits::no_descriptor;
use super::slots::{Ending, Slots};
use crate::error::{Error, Result};
use io_uring::squeue::Flags;
use io_uring::types::Fd;
use io_uring::{cqueue, opcode, squeue, IoUring};
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

const SUBMISSIONS: u32 = 1024;
const COMPLETIONS: u32 = 8192;
/// How often the kernel may leave entries where they are. It does so while it finds no memory for them.
const SUBMIT_TRIES: u32 = 10_000;

/// What a completion belongs to; stands in the top byte of its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Event {
    Received = 1,
    Sent = 2,
    Writable = 3,
}

pub(super) struct Uring {
    /// Dropped first, because it lets go of the ring by the ring's descriptor.
    entrance: Entrance,
    ring: IoUring,
    buffers: Buffers,
    pub system_calls: u64,
    /// Entries that the kernel takes at once, at most.
    #[cfg(test)]
    taken_max: u32,
    /// Only where answers may be gathered.
    pub gather: Option<Gather>,
}

impl Uring {
    /// For so many connections.
    pub fn new(connections: usize) -> Result<Self> {
        Self::set_up(connections, SUBMISSIONS, COMPLETIONS).map_err(|error| {
            let other = || {
                Error::internal(format!("io_uring: {error}")).hint("use backend epoll, or raise `ulimit -l`")
            };
            no_descriptor(&error).unwrap_or_else(other)
        })
    }

    fn set_up(connections: usize, submissions: u32, completions: u32) -> std::io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_submit_all()
            .setup_cqsize(completions)
            .build(submissions)?;
        if !ring.params().is_feature_skip_cqe_on_success() || !ring.params().is_feature_nodrop() {
            return Err(std::io::Error::other("the kernel is older than 5.17"));
        }
        let buffers = Buffers::new(connections);
        // SAFETY: io_uring_register(2), IORING_REGISTER_PBUF_RING: the memory holds as many entries as are named,
        // begins with a page, and lives until the ring is gone, because `buffers` is dropped after `ring` (field
        // order).
        unsafe { ring.submitter().register_buf_ring_with_flags(buffers.ring(), buffers.count(), GROUP, 0)? };
        Ok(Uring {
            entrance: Entrance::new(ring.as_raw_fd()),
            ring,
            buffers,
            system_calls: 0,
            #[cfg(test)]
            taken_max: u32::MAX,
            gather: None,
        })
    }

    /// Lets waits gather answers from now on while the machine is `crowded`, where the kernel can (Linux 6.12).
    pub fn allow_gathering(&mut self, crowded: Arc<AtomicBool>) {
        self.gather = self.ring.params().is_feature_min_timeout().then(|| Gather::new(crowded));
    }

    /// Whether the time to wait was over before anything came.
    #[inline]
    pub fn turn(&mut self, slots: &mut Slots, now_ns: u64, wait_ns: u64) -> Result<bool> {
        self.ask(slots)?;
        let nothing = slots.ready.is_empty() && slots.to_send.is_empty() && self.ring.completion().is_empty();
        let wait = wait_ns > 0 && nothing;
        let patience = self.gather.as_mut().and_then(|gather| gather.patience(now_ns, || slots.waiting));
        let expired = self.enter(if wait { wait_ns } else { 0 }, patience)?;
        self.submit_rest(slots)?;
        if !slots.to_close.is_empty() {
            std::mem::take(&mut slots.to_close).into_iter().for_each(|number| close(slots, number));
        }
        self.take_completions(slots);
        Ok(expired)
    }

    /// Puts everything that the tasks of this turn asked for into the submission queue.
    #[inline]
    fn ask(&mut self, slots: &mut Slots) -> Result<()> {
        let mut to_send = std::mem::take(&mut slots.to_send);
        // Those for which there is room at once; nearly always that is all of them.
        let queued = self.ask_to_send(slots, &to_send);
        for number in to_send.drain(..).skip(queued) {
            if let Some(entry) = send_entry(slots, number) {
                self.push(slots, entry)?;
            }
        }
        // What completions have asked for meanwhile, and the memory for the next turn.
        to_send.append(&mut slots.to_send);
        slots.to_send = to_send;
        if !slots.to_receive.is_empty() || !slots.to_watch.is_empty() {
            self.ask_for_events(slots)?;
        }
        Ok(())
    }

    /// Puts the sends of so many connections at the start of a list into the submission queue as have room there.
    #[inline]
    fn ask_to_send(&mut self, slots: &mut Slots, numbers: &[u32]) -> usize {
        let mut queue = self.ring.submission();
        for (queued, number) in numbers.iter().enumerate() {
            if queue.is_full() {
                return queued;
            }
            let Some(entry) = send_entry(slots, *number) else { continue };
            // SAFETY: as in `push`. There is room for one.
            let _ = unsafe { queue.push(&entry) };
        }
        numbers.len()
    }

    #[cold]
    fn ask_for_events(&mut self, slots: &mut Slots) -> Result<()> {
        for number in std::mem::take(&mut slots.to_receive) {
            let Some(slot) = slots.get(number) else { continue };
            if !slot.receive() {
                continue;
            }
            let entry = opcode::RecvMulti::new(Fd(slot.fd.as_raw_fd()), GROUP).build().user_data(tag(
                Event::Received,
                number,
                slot.generation,
            ));
            self.push(slots, entry)?;
        }
        for number in std::mem::take(&mut slots.to_watch) {
            let Some(slot) = slots.get(number) else { continue };
            let entry = opcode::PollAdd::new(Fd(slot.fd.as_raw_fd()), libc::POLLOUT as u32)
                .build()
                .user_data(tag(Event::Writable, number, slot.generation));
            self.push(slots, entry)?;
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, slots: &mut Slots, entry: squeue::Entry) -> Result<()> {
        // SAFETY: io_uring_enter(2): what an entry points to (`Slot::sending`) must stay until its operation is over.
        // It is not touched before `submit_rest` has seen the entry go, and a send with MSG_DONTWAIT is over by then.
        if unsafe { self.ring.submission().push(&entry) }.is_ok() {
            return Ok(());
        }
        self.submit_rest(slots)?;
        // SAFETY: as above: the entry is the same.
        unsafe { self.ring.submission().push(&entry) }
            .map_err(|_| Error::internal("io_uring: an empty queue of submissions has no place"))
    }

    /// Waits until the kernel has taken all entries: it may take fewer than there are, and what they point to must not
    /// change before. No task goes on meanwhile.
    #[inline]
    fn submit_rest(&mut self, slots: &mut Slots) -> Result<()> {
        let mut tries = 0;
        while !self.ring.submission().is_empty() {
            tries += 1;
            if tries > SUBMIT_TRIES {
                return Err(Error::internal("io_uring: the kernel takes no more requests")
                    .hint("the machine is short of memory, or use backend epoll"));
            }
            // Where completions find no room the kernel takes nothing new.
            self.take_completions(slots);
            self.enter(0, None)?;
        }
        Ok(())
    }

    /// Submits what is queued and, with a time to wait, waits for the first completion, or with patience for more.
    /// Whether that time was over.
    fn enter(&mut self, wait_ns: u64, patience: Option<Patience>) -> Result<bool> {
        self.system_calls += 1;
        let queued = self.ring.submission().len() as u32;
        #[cfg(test)]
        let queued = queued.min(self.taken_max);
        let entered = match wait_ns {
            0 => self.entrance.submit(queued),
            _ => {
                // A timer that is due sooner must not be late.
                let Patience { answers, wait_us } = patience
                    .filter(|patience| u64::from(patience.wait_us) * 1000 < wait_ns)
                    .unwrap_or(Patience { answers: 1, wait_us: 0 });
                let wait = Wait { completions: answers as u32, limit_ns: wait_ns, least_us: wait_us };
                self.entrance.submit_and_wait(queued, wait)
            }
        };
        match entered {
            Ok(()) => Ok(false),
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME) => Ok(true),
                // A signal came; completions must be taken first. Neither is a failure.
                Some(libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(false),
                _ => Err(Error::internal(format!("io_uring_enter: {error}"))),
            },
        }
    }

    #[inline]
    fn take_completions(&mut self, slots: &mut Slots) {
        let buffers = &mut self.buffers;
        let mut answers = 0;
        for completion in self.ring.completion() {
            let (event, number, generation) = untag(completion.user_data());
            match event {
                Some(Event::Received) => {
                    answers += u64::from(completion.result() > 0);
                    received(slots, buffers, &completion, number, generation);
                }
                Some(Event::Sent) => sent_short(slots, completion.result(), number, generation),
                Some(Event::Writable) => writable(slots, number, generation),
                None => {}
            }
        }
        buffers.publish();
        if let Some(gather) = &mut self.gather {
            gather.took(answers);
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // From here on no receive can choose a buffer, whatever the kernel still has to wind up. Should it refuse, the
        // ring itself goes next, which ends every receive as well.
        let _ = self.ring.submitter().unregister_buf_ring(GROUP);
    }
}

#[inline]
fn received(
    slots: &mut Slots,
    buffers: &mut Buffers,
    completion: &cqueue::Entry,
    number: u32,
    generation: u32,
) {
    let result = completion.result();
    let known = slots.of_event(number, generation).is_some_and(|slot| !slot.is_closing());
    // The buffer must go back even if the connection is gone.
    if let Some(buffer) = cqueue::buffer_select(completion.flags()) {
        if known && result > 0 {
            slots.receive(number, buffers.bytes(buffer, result as usize));
        }
        buffers.give_back(buffer);
    }
    if result > 0 && cqueue::more(completion.flags()) || !known {
        return;
    }
    match result {
        0 => slots.end(number, Ending::Closed),
        // Out of buffers, or the kernel ended the multishot by itself: ask again.
        1.. => slots.to_receive.push(number),
        _ if result == -libc::ENOBUFS => slots.to_receive.push(number),
        _ => slots.end(number, Ending::Errno(-result)),
    }
}

/// What asks the kernel to send what a connection has to say.
#[inline]
fn send_entry(slots: &mut Slots, number: u32) -> Option<squeue::Entry> {
    let slot = slots.get(number)?;
    slot.unsent = false;
    let rest = &slot.sending[slot.sent..];
    let entry = opcode::Send::new(Fd(slot.fd.as_raw_fd()), rest.as_ptr(), rest.len() as u32)
        .flags(libc::MSG_DONTWAIT | libc::MSG_WAITALL | libc::MSG_NOSIGNAL)
        .build();
    Some(entry.flags(Flags::SKIP_SUCCESS).user_data(tag(Event::Sent, number, slot.generation)))
}

/// A send that did not take all: the rest goes out when the socket can be written to.
fn sent_short(slots: &mut Slots, result: i32, number: u32, generation: u32) {
    let Some(slot) = slots.of_event(number, generation) else { return };
    match result {
        0.. => slot.sent += (result as usize).min(slot.sending.len() - slot.sent),
        _ if result == -libc::EAGAIN || result == -libc::EINTR => {}
        _ => return slots.end(number, Ending::Errno(-result)),
    }
    slot.unsent = true;
    slots.to_watch.push(number);
}

fn writable(slots: &mut Slots, number: u32, generation: u32) {
    let Some(slot) = slots.of_event(number, generation) else { return };
    slot.opened();
    if slot.unsent {
        slots.to_send.push(number);
    } else if !slot.is_receiving() {
        slots.wake(number);
    }
}

/// A receive under way holds the socket open after its descriptor is closed; a shutdown ends it.
fn close(slots: &mut Slots, number: u32) {
    let Some(slot) = slots.remove(number) else { return };
    // SAFETY: shutdown(2) takes numbers; the descriptor stays open until `slot` is dropped, so it is no other's.
    unsafe { libc::shutdown(slot.fd.as_raw_fd(), libc::SHUT_RDWR) };
}

fn tag(event: Event, number: u32, generation: u32) -> u64 {
    u64::from(number) | u64::from(generation) << 32 | (event as u64) << 56
}

fn untag(tag: u64) -> (Option<Event>, u32, u32) {
    let event = match tag >> 56 {
        1 => Some(Event::Received),
        2 => Some(Event::Sent),
        3 => Some(Event::Writable),
        _ => None,
    };
    (event, tag as u32, (tag >> 32) as u32 & 0x00FF_FFFF)
}

/// Sets up a ring and moves bytes through it in the way that the driver does.
pub(super) fn probe() -> std::result::Result<(), String> {
    let mut uring = Uring::set_up(2, SUBMISSIONS, COMPLETIONS).map_err(|error| error.to_string())?;
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(|error| error.to_string())?;
    let mut slots = Slots::default();
    let (here, there) = (slots.insert(ours.into()), slots.insert(theirs.into()));
    slots.to_receive.push(there);
    if let Some(slot) = slots.get(here) {
        slot.sending.extend_from_slice(b"ping");
        slots.to_send.push(here);
    }
    for _ in 0..3 {
        uring.turn(&mut slots, 0, 100_000_000).map_err(|error| error.to_string())?;
        if slots.get(there).is_some_and(|slot| slot.received == b"ping") {
            return Ok(());
        }
    }
    Err("a multishot receive with provided buffers gave no bytes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_the_kernel_leaves_in_the_queue_is_not_changed_before_it_goes() {
        let mut uring = Uring::new(2).unwrap();
        uring.taken_max = 1;
        let (mut slots, mut peers) = (Slots::default(), Vec::new());
        for word in ["first", "other"] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            peers.push((slots.insert(ours.into()), theirs, word.to_owned()));
        }
        // The outbox of a stream is the memory of what it sent before.
        let mut outboxes = [Vec::new(), Vec::new()];
        for round in 0..3 {
            for ((number, _, word), outbox) in peers.iter().zip(&mut outboxes) {
                outbox.extend_from_slice(format!("{word}{round}").as_bytes());
                slots.hand_over(*number, outbox);
                outbox.clear();
            }
            uring.turn(&mut slots, 0, 0).unwrap();
            for outbox in &mut outboxes {
                outbox.extend_from_slice(b"------");
                outbox.clear();
            }
        }
        for (_, theirs, word) in &mut peers {
            let mut heard = [0; 18];
            theirs.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
            theirs.read_exact(&mut heard).unwrap();
            assert_eq!(String::from_utf8_lossy(&heard), format!("{word}0{word}1{word}2"));
        }
    }

    /// What may be gathered after a server has said this and closed the connection.
    fn gathered_after(said: &[u8]) -> Option<Patience> {
        let mut uring = Uring::new(2).unwrap();
        uring.gather = Some(Gather::new(Arc::new(AtomicBool::new(true))));
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut slots = Slots::default();
        let here = slots.insert(ours.into());
        slots.to_receive.push(here);
        theirs.write_all(said).unwrap();
        drop(theirs);
        for _ in 0..3 {
            uring.turn(&mut slots, 0, 10_000_000).unwrap();
        }
        uring.gather.as_mut().unwrap().patience(1_000_000_000, || 32)
    }

    #[test]
    fn a_completion_without_bytes_is_no_answer() {
        if probe().is_err() {
            return;
        }
        assert!(gathered_after(b"an answer").is_some());
        assert_eq!(gathered_after(b""), None);
    }

    /// Pairs of sockets into whose first a ring receives; the peers have said so many bytes each.
    fn spoken_to(count: usize, bytes: usize) -> (Slots, Vec<UnixStream>) {
        let (mut slots, mut peers) = (Slots::default(), Vec::new());
        for _ in 0..count {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let number = slots.insert(ours.into());
            slots.to_receive.push(number);
            theirs.write_all(&vec![7; bytes]).unwrap();
            peers.push(theirs);
        }
        (slots, peers)
    }

    fn received_bytes(slots: &mut Slots, count: usize) -> Vec<usize> {
        (0..count as u32).map(|number| slots.get(number).unwrap().received.len()).collect()
    }

    #[test]
    fn a_burst_finds_two_buffers_for_each_connection() {
        if probe().is_err() {
            return;
        }
        let (count, bytes) = (300, 12_000);
        let mut uring = Uring::new(count).unwrap();
        let (mut slots, _peers) = spoken_to(count, bytes);
        uring.turn(&mut slots, 0, 10_000_000).unwrap();
        assert_eq!(received_bytes(&mut slots, count), vec![bytes; count]);
        assert!(slots.to_receive.is_empty(), "{} ran out of buffers", slots.to_receive.len());
    }

    #[test]
    fn connections_that_share_too_few_buffers_get_all_bytes_in_turn() {
        if probe().is_err() {
            return;
        }
        let (count, bytes) = (300, 12_000);
        let mut uring = Uring::new(1).unwrap();
        let (mut slots, _peers) = spoken_to(count, bytes);
        uring.turn(&mut slots, 0, 10_000_000).unwrap();
        assert!(!slots.to_receive.is_empty(), "buffers were enough");
        for _ in 0..100 {
            uring.turn(&mut slots, 0, 0).unwrap();
        }
        assert_eq!(received_bytes(&mut slots, count), vec![bytes; count]);
    }

    #[test]
    fn no_completion_is_lost_where_more_come_than_there_is_room_for() {
        if probe().is_err() {
            return;
        }
        let (count, bytes) = (300, 100);
        let mut uring = Uring::set_up(count, 8, 16).unwrap();
        let (mut slots, mut peers) = spoken_to(count, bytes);
        for round in 1..4 {
            for _ in 0..100 {
                uring.turn(&mut slots, 0, 0).unwrap();
            }
            assert_eq!(received_bytes(&mut slots, count), vec![round * bytes; count], "round {round}");
            peers.iter_mut().for_each(|peer| peer.write_all(&vec![7; bytes]).unwrap());
        }
    }
}
