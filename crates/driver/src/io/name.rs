//! Which address a server's name stands for. getaddrinfo(3) blocks its thread for as long as a name server takes.

use super::apart::Apart;
use crate::error::{Error, Result};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Mutex, MutexGuard, PoisonError};

type Found = std::result::Result<Vec<SocketAddr>, String>;

/// What is known of one server's name.
#[derive(Debug, Default)]
pub(super) struct Name(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The address that took a connection.
    good: Option<SocketAddr>,
    /// The question that was put last. All who ask share its answer until that has failed.
    asked: Option<Apart<Found>>,
    failures: u64,
}

impl Name {
    /// The address that took a connection, and how often what was known has failed before.
    pub fn good(&self) -> (Option<SocketAddr>, u64) {
        let known = self.known();
        (known.good, known.failures)
    }

    pub fn keep(&self, address: SocketAddr) {
        self.known().good = Some(address);
    }

    /// What was known after so many failures has failed too. The first to say so counts, for others may have asked anew.
    pub fn forget(&self, failures: u64) {
        let mut known = self.known();
        if known.failures == failures {
            *known = Known { failures: failures + 1, ..Known::default() };
        }
    }

    /// What the name stands for, asked on a thread of its own.
    pub async fn look_up(&self, host: &str, port: u16, until_ns: u64) -> Result<Vec<SocketAddr>> {
        let wrong = |why: &str| {
            Error::connect(format!("{host}:{port}: no address: {why}"))
                .hint("check the host's name in the URL")
        };
        let (question, failures) = self.question(host, port)?;
        match question.outcome(until_ns).await {
            Some(Ok(addresses)) => Ok(addresses.clone()),
            Some(Err(why)) => {
                self.forget(failures);
                Err(wrong(why))
            }
            None => Err(wrong("no answer in time")),
        }
    }

    fn question(&self, host: &str, port: u16) -> Result<(Apart<Found>, u64)> {
        let mut known = self.known();
        let failures = known.failures;
        if let Some(question) = &known.asked {
            return Ok((question.clone(), failures));
        }
        let host = host.to_owned();
        let question = Apart::begin(move || {
            let found = (host.as_str(), port).to_socket_addrs();
            found.map(Iterator::collect).map_err(|error| error.to_string())
        })?;
        Ok((known.asked.insert(question).clone(), failures))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
