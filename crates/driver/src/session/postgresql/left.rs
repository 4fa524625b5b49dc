//! Ending what the server still does for connections that are gone.

use super::message::put_untyped;
use super::{handshake, hosts};
use crate::error::Result;
use crate::io::AtServer;
use crate::session::Target;

const CANCEL_REQUEST: u32 = 80_877_102;

/// Cancels the statements of these connections, each by a connection of its own, as the protocol has it. When a backend
/// then tells its client so, it finds that there is none, and ends.
pub(crate) async fn end(target: &Target, left: &[AtServer]) -> Result<()> {
    let hosts = hosts::alternatives(target);
    // A host that does not know the key of a connection takes no notice.
    for (connection, host) in left.iter().flat_map(|one| hosts.iter().map(move |host| (one, host))) {
        let Ok(mut channel) = handshake::private(host).await else { continue };
        put_untyped(channel.outbox(), |out| {
            out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
            out.extend_from_slice(&connection.number.to_be_bytes());
            out.extend_from_slice(&connection.key.to_be_bytes());
        });
        channel.send()?;
        // The server says nothing. It closes the connection when it has done what was asked.
        let _ = channel.byte().await;
    }
    Ok(())
}
