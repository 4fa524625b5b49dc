//! The event loop: one per thread, any number of connections on it, over io_uring or epoll.
//!
//! Nothing here is shared between threads, so nothing locks: a thread's loop lives in a thread-local, tasks are polled
//! with a waker that does nothing, and whoever waits notes the number of the running task. A task waits for one thing
//! at a time: bytes of one connection, or a point in time.

mod address;
mod alarm;
mod apart;
mod backend;
mod buffers;
mod certificates;
mod connect;
mod entrance;
mod epoll;
mod executor;
mod gate;
mod gather;
mod interrupts;
mod left;
mod limits;
mod name;
mod network;
mod shared;
mod slots;
mod sources;
mod stream;
mod tls;
mod uring;
mod within;

use crate::error::{Error, Result};
pub use address::Address;
pub(crate) use alarm::Alarm;
pub(crate) use apart::Apart;
pub use backend::Backend;
pub use executor::{block_on, sleep_ns, sleep_until_ns, yield_now, Executor};
pub(crate) use executor::{gather_us_max, loop_use, turn_ns, LoopUse};
pub(crate) use gate::{Bell, Gate};
pub(crate) use gather::gives_way;
pub(crate) use interrupts::Interrupt;
pub(crate) use left::AtServer;
pub(crate) use limits::{no_thread, spawned};
pub use shared::Shared;
pub use stream::{Stream, Traffic};
pub use tls::Trust;
pub use within::within;

/// Random bytes that nobody can foresee.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut random = [0; N];
    // SAFETY: getrandom(2) writes no more than the length that is given, which is the buffer's.
    let drawn = unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
    if drawn != random.len() as isize {
        return Err(Error::internal("the operating system gave no random bytes"));
    }
    Ok(random)
}

/// Whether io_uring works on this machine, and if not, why.
pub fn io_uring_works() -> std::result::Result<(), String> {
    uring::probe()
}
