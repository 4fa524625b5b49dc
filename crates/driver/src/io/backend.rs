//! The back ends of the event loop, and which of them a job gets.

use super::uring;
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
