//! Statements whose answers nobody waits for any more. A server does not notice that the connection is gone before it
//! writes to it, and works on for as long as the statement takes.

use super::{mysql, postgresql, Protocol, Target};
use crate::io::{block_on, within, Backend};
use std::time::Duration;

/// For all of them: a server that takes no connection is not waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// Has the server end what it still does for connections that were given up. A failure is none of the caller's, because
/// the server may be what failed.
pub(crate) fn end_what_was_left(target: &Target) {
    let left = target.shared.left.take();
    if left.is_empty() {
        return;
    }
    let ended = async {
        match target.protocol {
            Protocol::Mysql => mysql::end(target, &left).await,
            Protocol::Postgresql => postgresql::end(target, &left).await,
            Protocol::Firebird | Protocol::Sqlite | Protocol::Http => Ok(()),
        }
    };
    let _ = block_on(Backend::Epoll, within(PATIENCE, ended), || false);
}
