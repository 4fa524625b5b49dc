//! The event loop: one per thread, any number of connections on it, over io_uring or epoll.
//!
//! Nothing here is shared between threads, so nothing locks: a thread's loop lives in a thread-local, tasks are polled
//! with a waker that does nothing, and whoever waits notes the number of the running task. A task waits for one thing
//! at a time: bytes of one connection, or a point in time.

mod certificates;
mod connect;
mod epoll;
mod executor;
mod gate;
mod gather;
mod slots;
mod stream;
mod tls;
mod uring;
mod within;

pub use executor::{block_on, sleep_ns, sleep_until_ns, yield_now, Executor};
pub(crate) use executor::{gather_us_max, system_calls, turn_ns};
pub(crate) use gate::Gate;
pub use stream::{Address, Stream};
pub use within::within;

use crate::error::{Error, Result};

/// How a thread learns that something has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    IoUring,
    Epoll,
    /// No connection at all: an embedded engine's calls block, and only pauses wait.
    Blocking,
    /// No connection either; waiting moves a simulated clock forward.
    Simulated,
}

impl Backend {
    pub fn as_str(self) -> &'static str {
        match self {
            Backend::IoUring => "io_uring",
            Backend::Epoll => "epoll",
            Backend::Blocking => "blocking",
            Backend::Simulated => "simulated",
        }
    }

    /// The back end that a job's word stands for. `auto` is io_uring where a ring set up for the purpose moves bytes.
    pub fn choose(word: &str) -> Result<Self> {
        match word {
            "epoll" => Ok(Backend::Epoll),
            "io_uring" => match uring::probe() {
                Ok(()) => Ok(Backend::IoUring),
                Err(why) => Err(Error::user(format!("io_uring does not work here: {why}"))
                    .hint("use backend auto or epoll")),
            },
            "auto" => Ok(if uring::probe().is_ok() { Backend::IoUring } else { Backend::Epoll }),
            _ => {
                Err(Error::user(format!("unknown backend {word:?}")).hint("there are: auto, io_uring, epoll"))
            }
        }
    }
}

/// Whether io_uring works on this machine, and if not, why.
pub fn io_uring_works() -> std::result::Result<(), String> {
    uring::probe()
}
