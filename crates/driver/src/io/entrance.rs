//! io_uring_enter(2): by the ring's place among the rings that the thread has registered, where the kernel need not look
//! for a descriptor, or by the descriptor on a kernel older than 5.18.

use std::io::{Error, Result};
use std::mem::size_of;
use std::os::fd::RawFd;

// Of the kernel's interface, linux/io_uring.h.
const ENTER_GETEVENTS: u32 = 1;
const ENTER_EXT_ARG: u32 = 1 << 3;
const ENTER_REGISTERED_RING: u32 = 1 << 4;
const REGISTER_RING_FDS: u32 = 20;
const UNREGISTER_RING_FDS: u32 = 21;

/// `struct io_uring_rsrc_update`.
#[repr(C)]
struct Place {
    offset: u32,
    reserved: u32,
    descriptor: u64,
}

/// `struct __kernel_timespec`.
#[repr(C)]
struct Limit {
    seconds: i64,
    nanoseconds: i64,
}

/// `struct io_uring_getevents_arg`.
#[repr(C)]
struct Waiting {
    signals: u64,
    signals_bytes: u32,
    least_wait_us: u32,
    limit: u64,
}

/// How a wait for completions ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// So many completions end it.
    pub completions: u32,
    /// It lasts no longer than this.
    pub limit_ns: u64,
    /// So long it waits for all of them; then one is enough. 0 where nothing is said (Linux 6.12).
    pub least_us: u32,
}

/// The way into one ring, of the thread that made it.
#[derive(Debug)]
pub(super) struct Entrance {
    descriptor: RawFd,
    /// The ring's place among those that the thread has registered.
    place: Option<u32>,
}

impl Entrance {
    /// Into the ring behind a descriptor, which must stay open for as long as this is used.
    pub fn new(descriptor: RawFd) -> Self {
        let mut place = Place { offset: u32::MAX, reserved: 0, descriptor: descriptor as u64 };
        let registered = register(descriptor, REGISTER_RING_FDS, &mut place).is_ok();
        Entrance { descriptor, place: registered.then_some(place.offset) }
    }

    /// Submits so many entries and has the kernel post what is due, without waiting for it.
    #[inline]
    pub fn submit(&self, entries: u32) -> Result<()> {
        self.enter(entries, 0, ENTER_GETEVENTS, None)
    }

    /// Submits so many entries and waits. ETIME where the time was over before anything came.
    #[inline]
    pub fn submit_and_wait(&self, entries: u32, wait: Wait) -> Result<()> {
        let limit = Limit {
            seconds: (wait.limit_ns / 1_000_000_000) as i64,
            nanoseconds: (wait.limit_ns % 1_000_000_000) as i64,
        };
        let waiting = Waiting {
            signals: 0,
            signals_bytes: 0,
            least_wait_us: wait.least_us,
            limit: std::ptr::from_ref(&limit) as u64,
        };
        self.enter(entries, wait.completions, ENTER_GETEVENTS | ENTER_EXT_ARG, Some(&waiting))
    }

    #[inline]
    fn enter(&self, entries: u32, completions: u32, flags: u32, waiting: Option<&Waiting>) -> Result<()> {
        let (ring, flags) = match self.place {
            Some(place) => (place as i32, flags | ENTER_REGISTERED_RING),
            None => (self.descriptor, flags),
        };
        let (argument, argument_bytes) = match waiting {
            Some(waiting) => (std::ptr::from_ref(waiting), size_of::<Waiting>()),
            None => (std::ptr::null(), 0),
        };
        // SAFETY: io_uring_enter(2) reads the argument and the limit that it points to, which live until it returns.
        // What the submitted entries point to is the care of who has pushed them.
        let entered = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                ring,
                entries,
                completions,
                flags,
                argument,
                argument_bytes,
            )
        };
        match entered {
            0.. => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }
}

impl Drop for Entrance {
    fn drop(&mut self) {
        // A registered ring stays open without its descriptor.
        if let Some(offset) = self.place {
            let mut place = Place { offset, reserved: 0, descriptor: 0 };
            let _ = register(self.descriptor, UNREGISTER_RING_FDS, &mut place);
        }
    }
}

fn register(descriptor: RawFd, what: u32, place: &mut Place) -> Result<()> {
    // SAFETY: io_uring_register(2), IORING_REGISTER_RING_FDS, reads and writes as many places as are named: one.
    let done =
        unsafe { libc::syscall(libc::SYS_io_uring_register, descriptor, what, std::ptr::from_mut(place), 1) };
    match done {
        1 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io_uring::IoUring;
    use std::os::fd::AsRawFd;

    fn expires(entrance: &Entrance) -> bool {
        let wait = Wait { completions: 1, limit_ns: 1_000_000, least_us: 0 };
        entrance.submit_and_wait(0, wait).is_err_and(|error| error.raw_os_error() == Some(libc::ETIME))
    }

    #[test]
    fn a_ring_is_entered_by_its_place_or_its_descriptor_alike() {
        let Ok(ring) = IoUring::new(8) else { return };
        let mut entrance = Entrance::new(ring.as_raw_fd());
        for place in [entrance.place, None] {
            let by = Entrance { descriptor: ring.as_raw_fd(), place };
            by.submit(0).unwrap();
            assert!(expires(&by), "by {place:?}");
            std::mem::forget(by);
        }
        assert!(entrance.place.take().is_some(), "the kernel registers no ring");
    }

    #[test]
    fn a_thread_has_room_for_the_rings_that_it_makes_in_turn() {
        // The kernel's table has 16 places.
        for _ in 0..40 {
            let Ok(ring) = IoUring::new(8) else { return };
            assert!(Entrance::new(ring.as_raw_fd()).place.is_some());
        }
    }
}
