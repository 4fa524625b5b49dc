//! The buffers that io_uring receives into: all connections of a thread share them, and the kernel chooses one for each
//! piece that arrives.

use io_uring::types::BufRingEntry;
use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::sync::atomic::{AtomicU16, Ordering};

/// The only group of buffers of a ring.
pub(super) const GROUP: u16 = 0;
/// A few connections can have long answers, which take many of them.
const COUNT_MIN: usize = 64;
/// Up to here each connection has two, so that one can wait for its turn while the next is filled.
const COUNT_OF_PAIRS_MAX: usize = 1024;
/// The kernel's own limit of a ring of buffers.
const COUNT_MAX: usize = 1 << 15;
const LARGE_BYTES: usize = 8 << 10;
/// Of each where there are more than `COUNT_OF_PAIRS_MAX`: all of them are filled in turn, so all of them take memory.
const SMALL_BYTES: usize = 2 << 10;
const LINE_BYTES: usize = 64;
const PAGE_BYTES: usize = 4096;

/// The buffers, and the ring by which they are given back to the kernel.
pub(super) struct Buffers {
    ring: *mut BufRingEntry,
    bytes: *mut u8,
    /// A power of two.
    count: u16,
    /// Of each.
    buffer_bytes: usize,
    tail: u16,
}

impl Buffers {
    /// As many as these connections need when they all have an answer at once.
    pub fn new(connections: usize) -> Self {
        let wanted = connections.max((2 * connections).min(COUNT_OF_PAIRS_MAX));
        let count = wanted.clamp(COUNT_MIN, COUNT_MAX).next_power_of_two();
        let buffer_bytes = if count > COUNT_OF_PAIRS_MAX { SMALL_BYTES } else { LARGE_BYTES };
        let mut buffers = Buffers {
            ring: std::ptr::null_mut(),
            bytes: std::ptr::null_mut(),
            count: count as u16,
            buffer_bytes,
            tail: 0,
        };
        buffers.ring = allocate(buffers.ring_layout()).cast();
        buffers.bytes = allocate(buffers.bytes_layout());
        (0..buffers.count).for_each(|buffer| buffers.give_back(buffer));
        buffers.publish();
        buffers
    }

    pub fn count(&self) -> u16 {
        self.count
    }

    /// Where the ring lies, as the kernel is told.
    pub fn ring(&self) -> u64 {
        self.ring as u64
    }

    /// From one buffer to the next: an odd number of lines, or the first lines of all buffers, the only ones that short
    /// answers fill, would fight for the same few places of the cache.
    fn stride_bytes(&self) -> usize {
        self.buffer_bytes + 9 * LINE_BYTES
    }

    fn ring_layout(&self) -> Layout {
        let size = usize::from(self.count) * std::mem::size_of::<BufRingEntry>();
        Layout::from_size_align(size, PAGE_BYTES).expect("a size within bounds")
    }

    fn bytes_layout(&self) -> Layout {
        Layout::from_size_align(usize::from(self.count) * self.stride_bytes(), PAGE_BYTES)
            .expect("a size within bounds")
    }

    /// Where a buffer begins. Its number comes from the kernel and is bounded all the same.
    fn place(&self, buffer: u16) -> *mut u8 {
        let offset = usize::from(buffer & (self.count - 1)) * self.stride_bytes();
        // SAFETY: pointer::add wants a place within one allocation: the number is below `count`, and `bytes_layout` has
        // room for as many.
        unsafe { self.bytes.add(offset) }
    }

    /// What the kernel put into a buffer.
    #[inline]
    pub fn bytes(&self, buffer: u16, length: usize) -> &[u8] {
        // SAFETY: the length is bounded to the buffer's, whose memory was allocated zeroed. Between the completion and
        // `give_back` the buffer is ours: io_uring_register(2), IORING_REGISTER_PBUF_RING, takes it off the ring.
        unsafe { std::slice::from_raw_parts(self.place(buffer), length.min(self.buffer_bytes)) }
    }

    #[inline]
    pub fn give_back(&mut self, buffer: u16) {
        let (place, at) = (usize::from(self.tail & (self.count - 1)), self.place(buffer));
        // SAFETY: the entry lies within the allocation of `ring_layout`. The kernel reads entries up to the published
        // tail alone, and this one is behind it.
        unsafe {
            let entry = &mut *self.ring.add(place);
            entry.set_addr(at as u64);
            entry.set_len(self.buffer_bytes as u32);
            entry.set_bid(buffer);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    #[inline]
    pub fn publish(&mut self) {
        // SAFETY: the kernel's interface puts the tail into the first entry of the ring, aligned, where only this
        // thread writes it. The release pairs with the kernel's acquire: it sees the entries that were written before.
        unsafe {
            let tail = BufRingEntry::tail(self.ring).cast_mut().cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: dealloc wants the layouts with which both were allocated. io_uring_register(2): the kernel uses them
        // until the ring is closed, and `Uring` drops its ring first.
        unsafe {
            dealloc(self.ring.cast(), self.ring_layout());
            dealloc(self.bytes, self.bytes_layout());
        }
    }
}

fn allocate(layout: Layout) -> *mut u8 {
    // SAFETY: alloc_zeroed wants a layout of a size above 0: each has room for one entry at least.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_connection_has_a_buffer_up_to_the_limit_of_the_kernel() {
        for (connections, count, buffer_bytes) in [
            (1, 64, 8192),
            (32, 64, 8192),
            (300, 1024, 8192),
            (1024, 1024, 8192),
            (1025, 2048, 2048),
            (10_000, 16_384, 2048),
            (100_000, 32_768, 2048),
        ] {
            let buffers = Buffers::new(connections);
            assert_eq!((buffers.count(), buffers.buffer_bytes), (count, buffer_bytes), "{connections}");
            let last = buffers.count() - 1;
            assert_eq!(buffers.bytes(last, usize::MAX).len(), buffer_bytes);
        }
    }
}
