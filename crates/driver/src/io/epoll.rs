//! The back end for kernels without io_uring: level-triggered epoll.

use super::limits::no_descriptor;
use super::slots::{Ending, Slots};
use crate::error::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const SCRATCH_BYTES: usize = 256 << 10;
const EVENTS: usize = 256;

pub(super) struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
    /// All connections are read into this one buffer; each keeps only what it got.
    scratch: Vec<u8>,
    pub system_calls: u64,
}

impl Epoll {
    pub fn new() -> Result<Self> {
        // SAFETY: epoll_create1(2) takes a number only.
        let raw = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if raw < 0 {
            let error = std::io::Error::last_os_error();
            let other = || Error::internal(format!("epoll_create1: {error}"));
            return Err(no_descriptor(&error).unwrap_or_else(other));
        }
        // SAFETY: epoll_create1(2) has succeeded, so `raw` is a new descriptor, which nothing else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        Ok(Epoll {
            fd,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS],
            scratch: vec![0; SCRATCH_BYTES],
            system_calls: 0,
        })
    }

    /// Whether the time to wait was over before anything came.
    pub fn turn(&mut self, slots: &mut Slots, wait_ns: u64) -> Result<bool> {
        for number in std::mem::take(&mut slots.to_watch) {
            self.watch(slots, number, libc::EPOLLOUT as u32);
        }
        for number in std::mem::take(&mut slots.to_receive) {
            self.watch(slots, number, libc::EPOLLIN as u32);
        }
        for index in 0..slots.to_send.len() {
            self.send(slots, slots.to_send[index]);
        }
        slots.to_send.clear();
        for number in std::mem::take(&mut slots.to_close) {
            // Closing the descriptor takes it out of the epoll set.
            slots.remove(number);
        }
        let wait_ns = if slots.ready.is_empty() { wait_ns } else { 0 };
        let count = self.wait(wait_ns)?;
        for index in 0..count {
            let event = self.events[index];
            self.handle(slots, event.u64, event.events);
        }
        Ok(wait_ns > 0 && count == 0)
    }

    fn wait(&mut self, wait_ns: u64) -> Result<usize> {
        let limit = libc::timespec {
            tv_sec: (wait_ns / 1_000_000_000) as i64,
            tv_nsec: (wait_ns % 1_000_000_000) as i64,
        };
        self.system_calls += 1;
        // SAFETY: epoll_pwait2(2) writes no more events than the count says, which is that of `events`, and reads the
        // limit before it returns. A null mask leaves the signals as they are.
        let count = unsafe {
            libc::epoll_pwait2(
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS as i32,
                &limit,
                std::ptr::null(),
            )
        };
        match count {
            0.. => Ok(count as usize),
            _ => match std::io::Error::last_os_error() {
                error if error.kind() == std::io::ErrorKind::Interrupted => Ok(0),
                error => Err(Error::internal(format!("epoll_pwait2: {error}"))),
            },
        }
    }

    fn handle(&mut self, slots: &mut Slots, tag: u64, events: u32) {
        let (number, generation) = (tag as u32, (tag >> 32) as u32);
        let Some(slot) = slots.of_event(number, generation) else { return };
        if events & libc::EPOLLOUT as u32 != 0 || !slot.is_receiving() {
            slot.opened();
            let receiving = slot.is_receiving();
            self.watch(slots, number, if receiving { libc::EPOLLIN as u32 } else { 0 });
            if slots.get(number).is_some_and(|slot| slot.unsent) {
                self.send(slots, number);
            } else if !receiving {
                slots.wake(number);
            }
        }
        let readable = libc::EPOLLIN | libc::EPOLLHUP | libc::EPOLLERR | libc::EPOLLRDHUP;
        if events & readable as u32 != 0 && slots.get(number).is_some_and(|slot| slot.is_receiving()) {
            self.receive(slots, number);
        }
    }

    /// Sets which events of a connection are of interest.
    fn watch(&self, slots: &mut Slots, number: u32, events: u32) {
        let Some(slot) = slots.get(number) else { return };
        let receives = if events & libc::EPOLLIN as u32 != 0 { slot.receive() } else { slot.is_receiving() };
        let interest = if receives { events | libc::EPOLLIN as u32 } else { events };
        let mut event =
            libc::epoll_event { events: interest, u64: u64::from(number) | u64::from(slot.generation) << 32 };
        let (set, fd) = (self.fd.as_raw_fd(), slot.fd.as_raw_fd());
        // SAFETY: epoll_ctl(2) reads one event before it returns. Both descriptors are owned, so they are open.
        let failed = unsafe {
            libc::epoll_ctl(set, libc::EPOLL_CTL_MOD, fd, &mut event) < 0
                && libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, fd, &mut event) < 0
        };
        if failed {
            slots.end(number, Ending::Errno(errno()));
        }
    }

    fn send(&mut self, slots: &mut Slots, number: u32) {
        let Some(slot) = slots.get(number) else { return };
        while slot.sent < slot.sending.len() {
            let rest = &slot.sending[slot.sent..];
            self.system_calls += 1;
            // SAFETY: send(2) reads no more than the length before it returns; both are of one slice.
            let sent = unsafe {
                libc::send(
                    slot.fd.as_raw_fd(),
                    rest.as_ptr().cast(),
                    rest.len(),
                    libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
                )
            };
            match sent {
                0.. => slot.sent += sent as usize,
                _ => match errno() {
                    libc::EINTR => {}
                    libc::EAGAIN => return self.watch(slots, number, libc::EPOLLOUT as u32),
                    error => return slots.end(number, Ending::Errno(error)),
                },
            }
        }
        slot.unsent = false;
    }

    fn receive(&mut self, slots: &mut Slots, number: u32) {
        let Some(slot) = slots.get(number) else { return };
        self.system_calls += 1;
        // SAFETY: recv(2) writes no more than the length, which is that of `scratch`, before it returns.
        let count = unsafe {
            libc::recv(
                slot.fd.as_raw_fd(),
                self.scratch.as_mut_ptr().cast(),
                SCRATCH_BYTES,
                libc::MSG_DONTWAIT,
            )
        };
        match count {
            0 => self.stop(slots, number, Ending::Closed),
            1.. => slots.receive(number, &self.scratch[..count as usize]),
            _ => match errno() {
                libc::EAGAIN | libc::EINTR => {}
                error => self.stop(slots, number, Ending::Errno(error)),
            },
        }
    }

    fn stop(&self, slots: &mut Slots, number: u32, ending: Ending) {
        slots.end(number, ending);
        let Some(slot) = slots.get(number) else { return };
        // Level-triggered: a connection that has ended would be reported again and again, so it leaves the set.
        // SAFETY: epoll_ctl(2) reads no event for a removal, since Linux 2.6.9. Both descriptors are owned.
        unsafe {
            let (set, fd) = (self.fd.as_raw_fd(), slot.fd.as_raw_fd());
            libc::epoll_ctl(set, libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut());
        }
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or_default()
}
