//! Ending what the server still does for connections that are gone.

use super::Mysql;
use crate::error::{Fate, Result};
use crate::io::AtServer;
use crate::session::{Collect, Session, Target};

/// Ends these connections at the server. Not their statements alone: those that were sent together would follow.
///
/// A number means another connection at another server, and behind a balancer this one may be another. So a connection
/// over TCP is ended only where the server says that it comes from the port that it left from.
pub(crate) async fn end(target: &Target, left: &[AtServer]) -> Result<()> {
    let (mut session, mut known) = (Mysql::connect(target).await?, Collect::default());
    session.text("SHOW PROCESSLIST", &mut known).await?;
    for connection in left.iter().filter(|connection| is_there(connection, &known)) {
        match session.text(&format!("KILL {}", connection.number), &mut ()).await {
            Err(error) if error.fate() == Fate::Lost => return Err(error),
            // It may have ended by itself.
            _ => {}
        }
    }
    session.close().await;
    Ok(())
}

/// Whether the server knows a connection by its number and, over TCP, by its port.
fn is_there(connection: &AtServer, known: &Collect) -> bool {
    let from = format!(":{}", connection.key);
    known.rows.iter().any(|row| match &row[..] {
        [number, _user, host, ..] if number.borrow().as_i64() == Some(connection.number.into()) => {
            connection.key == 0 || host.borrow().as_str().is_some_and(|host| host.ends_with(&from))
        }
        _ => false,
    })
}
