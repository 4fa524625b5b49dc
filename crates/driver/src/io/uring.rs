//! The io_uring back end: one multishot receive per connection into buffers that all share, and all sends of a turn
//! handed over by the same system call that waits.
//!
//! A send asks for no completion unless it fails or falls short (`MSG_DONTWAIT | MSG_WAITALL` with
//! `IOSQE_CQE_SKIP_SUCCESS`): it is done when the call that submits it returns, or there is an event that says how far
//! it got. So a request costs one submission and its answer one completion.

use super::gather::{Gather, Patience};
use super::slots::{Ending, Slots};
use crate::error::{Error, Result};
use io_uring::squeue::Flags;
use io_uring::types::{BufRingEntry, Fd, SubmitArgs, Timespec};
use io_uring::{cqueue, opcode, squeue, IoUring};
use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::Arc;

const SUBMISSIONS: u32 = 1024;
const COMPLETIONS: u32 = 8192;
const BUFFERS: u16 = 512;
const BUFFER_BYTES: usize = 8 << 10;
/// From one buffer to the next: not a power of two, or the first lines of all buffers, the only ones that short answers
/// fill, would fight for the same few places of the cache.
const STRIDE_BYTES: usize = BUFFER_BYTES + 9 * 64;
const GROUP: u16 = 0;
const PAGE_BYTES: usize = 4096;
/// `IORING_ENTER_GETEVENTS` of the kernel's interface.
const ENTER_GETEVENTS: u32 = 1;
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
    pub fn new() -> Result<Self> {
        Self::set_up().map_err(|error| {
            Error::internal(format!("io_uring: {error}")).hint("use backend epoll, or raise `ulimit -l`")
        })
    }

    fn set_up() -> std::io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)?;
        if !ring.params().is_feature_skip_cqe_on_success() || !ring.params().is_feature_nodrop() {
            return Err(std::io::Error::other("the kernel is older than 5.17"));
        }
        let buffers = Buffers::new();
        // SAFETY: the ring's memory lives in `buffers`, which is dropped after `ring` (field order), and holds as many
        // entries as are named.
        unsafe { ring.submitter().register_buf_ring_with_flags(buffers.ring as u64, BUFFERS, GROUP, 0)? };
        Ok(Uring {
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

    pub fn turn(&mut self, slots: &mut Slots, now_ns: u64, wait_ns: u64) -> Result<()> {
        self.ask(slots)?;
        let nothing = self.ring.completion().is_empty() && slots.ready.is_empty() && slots.to_send.is_empty();
        let wait = wait_ns > 0 && nothing;
        let patience = self.gather.as_mut().and_then(|gather| gather.patience(now_ns, || slots.waiting));
        self.enter(if wait { wait_ns } else { 0 }, patience)?;
        self.submit_rest(slots)?;
        for number in std::mem::take(&mut slots.to_close) {
            close(slots, number);
        }
        self.take_completions(slots);
        Ok(())
    }

    /// Puts everything that the tasks of this turn asked for into the submission queue.
    fn ask(&mut self, slots: &mut Slots) -> Result<()> {
        let mut to_send = std::mem::take(&mut slots.to_send);
        for number in to_send.drain(..) {
            let Some(slot) = slots.get(number) else { continue };
            slot.unsent = false;
            let rest = &slot.sending[slot.sent..];
            let entry = opcode::Send::new(Fd(slot.fd.as_raw_fd()), rest.as_ptr(), rest.len() as u32)
                .flags(libc::MSG_DONTWAIT | libc::MSG_WAITALL | libc::MSG_NOSIGNAL)
                .build()
                .flags(Flags::SKIP_SUCCESS)
                .user_data(tag(Event::Sent, number, slot.generation));
            self.push(slots, entry)?;
        }
        // What completions have asked for meanwhile, and the memory for the next turn.
        to_send.append(&mut slots.to_send);
        slots.to_send = to_send;
        for number in std::mem::take(&mut slots.to_receive) {
            let Some(slot) = slots.get(number) else { continue };
            slot.receiving = true;
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

    fn push(&mut self, slots: &mut Slots, entry: squeue::Entry) -> Result<()> {
        // SAFETY: what an entry points to (`Slot::sending`) is not touched before `submit_rest` has seen the entry go,
        // and a send with MSG_DONTWAIT is over when the call that submits it returns.
        if unsafe { self.ring.submission().push(&entry) }.is_ok() {
            return Ok(());
        }
        self.submit_rest(slots)?;
        // SAFETY: the same.
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
    fn enter(&mut self, wait_ns: u64, patience: Option<Patience>) -> Result<()> {
        self.system_calls += 1;
        let limit = Timespec::new().sec(wait_ns / 1_000_000_000).nsec((wait_ns % 1_000_000_000) as u32);
        // A timer that is due sooner must not be late.
        let Patience { answers, wait_us } = patience
            .filter(|patience| u64::from(patience.wait_us) * 1000 < wait_ns)
            .unwrap_or(Patience { answers: 1, wait_us: 0 });
        let arguments = SubmitArgs::new().timespec(&limit).min_wait_usec(wait_us);
        let entered = match wait_ns {
            0 => {
                let queued = self.ring.submission().len() as u32;
                #[cfg(test)]
                let queued = queued.min(self.taken_max);
                // SAFETY: no argument is passed. GETEVENTS makes the kernel post what is due although nothing is
                // waited for.
                unsafe { self.ring.submitter().enter::<libc::sigset_t>(queued, 0, ENTER_GETEVENTS, None) }
            }
            _ => self.ring.submitter().submit_with_args(answers, &arguments),
        };
        match entered {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // The time is over; a signal came; completions must be taken first. None is a failure.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(Error::internal(format!("io_uring_enter: {error}"))),
            },
        }
    }

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

fn received(
    slots: &mut Slots,
    buffers: &mut Buffers,
    completion: &cqueue::Entry,
    number: u32,
    generation: u32,
) {
    let known = slots.of_event(number, generation).is_some_and(|slot| !slot.closing);
    let result = completion.result();
    // The buffer must go back even if the connection is gone.
    if let Some(buffer) = cqueue::buffer_select(completion.flags()) {
        if known && result > 0 {
            slots.receive(number, buffers.bytes(buffer, result as usize));
        }
        buffers.give_back(buffer);
    }
    if !known {
        return;
    }
    match result {
        0 => slots.end(number, Ending::Closed),
        1.. if cqueue::more(completion.flags()) => {}
        // Out of buffers, or the kernel ended the multishot by itself: ask again.
        1.. => slots.to_receive.push(number),
        _ if result == -libc::ENOBUFS => slots.to_receive.push(number),
        _ => slots.end(number, Ending::Errno(-result)),
    }
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
    slot.writable = true;
    if slot.unsent {
        slots.to_send.push(number);
    } else if !slot.receiving {
        slots.wake(number);
    }
}

/// A receive under way holds the socket open after its descriptor is closed; a shutdown ends it.
fn close(slots: &mut Slots, number: u32) {
    let Some(slot) = slots.remove(number) else { return };
    // SAFETY: the descriptor is open until `slot` is dropped.
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

/// The buffers that the kernel chooses from, and the ring by which they are given back to it.
struct Buffers {
    ring: *mut BufRingEntry,
    bytes: *mut u8,
    tail: u16,
}

impl Buffers {
    fn new() -> Self {
        let (ring, bytes) = (allocate(Self::ring_layout()), allocate(Self::bytes_layout()));
        let mut buffers = Buffers { ring: ring.cast(), bytes, tail: 0 };
        (0..BUFFERS).for_each(|buffer| buffers.give_back(buffer));
        buffers.publish();
        buffers
    }

    fn ring_layout() -> Layout {
        let size = usize::from(BUFFERS) * std::mem::size_of::<BufRingEntry>();
        Layout::from_size_align(size, PAGE_BYTES).expect("a constant layout")
    }

    fn bytes_layout() -> Layout {
        Layout::from_size_align(usize::from(BUFFERS) * STRIDE_BYTES, PAGE_BYTES).expect("a constant layout")
    }

    /// What the kernel put into a buffer. Both numbers come from the kernel and are bounded all the same.
    fn bytes(&self, buffer: u16, length: usize) -> &[u8] {
        let offset = usize::from(buffer % BUFFERS) * STRIDE_BYTES;
        // SAFETY: offset and length stay within `bytes_layout`, which was allocated zeroed; the kernel does not write
        // to a buffer between its completion and `give_back`.
        unsafe { std::slice::from_raw_parts(self.bytes.add(offset), length.min(BUFFER_BYTES)) }
    }

    fn give_back(&mut self, buffer: u16) {
        let place = usize::from(self.tail % BUFFERS);
        // SAFETY: both places lie within their allocations; the kernel reads an entry only after `publish`.
        unsafe {
            let entry = &mut *self.ring.add(place);
            entry.set_addr(self.bytes.add(usize::from(buffer % BUFFERS) * STRIDE_BYTES) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(buffer);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&mut self) {
        // SAFETY: the tail lies in the first entry of the ring, is aligned, and only this thread writes it.
        unsafe {
            let tail = BufRingEntry::tail(self.ring).cast_mut().cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: both were allocated with these layouts. `Uring` drops its ring first, so the kernel is done with them.
        unsafe {
            dealloc(self.ring.cast(), Self::ring_layout());
            dealloc(self.bytes, Self::bytes_layout());
        }
    }
}

fn allocate(layout: Layout) -> *mut u8 {
    // SAFETY: no layout used here has size 0.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    memory
}

/// Sets up a ring and moves bytes through it in the way that the driver does.
pub(super) fn probe() -> std::result::Result<(), String> {
    let mut uring = Uring::set_up().map_err(|error| error.to_string())?;
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
        let mut uring = Uring::set_up().unwrap();
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
        let mut uring = Uring::set_up().unwrap();
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
}
