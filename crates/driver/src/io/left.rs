//! Connections that were given up while the server still worked for them.

use std::sync::{Mutex, PoisonError};

/// What a server calls a connection, and by what it is known there besides: the secret of PostgreSQL's protocol, for MySQL's
/// the port that it leaves from (0: it leaves from none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtServer {
    pub number: u32,
    pub key: u32,
}

/// Those that nobody has ended at the server yet.
#[derive(Debug, Default)]
pub(crate) struct Left(Mutex<Vec<AtServer>>);

impl Left {
    pub fn note(&self, connection: AtServer) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    pub fn take(&self) -> Vec<AtServer> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
