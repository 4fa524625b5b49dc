//! Ending what the server still does for connections that are gone.

use super::Mysql;
use crate::error::{Fate, Result};
use crate::io::AtServer;
use crate::session::{Session, Target};

/// Ends these connections at the server. Not their statements alone: those that were sent together would follow.
pub(crate) async fn end(target: &Target, left: &[AtServer]) -> Result<()> {
    let mut session = Mysql::connect(target).await?;
    for connection in left {
        match session.text(&format!("KILL {}", connection.number), &mut ()).await {
            Err(error) if error.fate() == Fate::Lost => return Err(error),
            // It may have ended by itself.
            _ => {}
        }
    }
    session.close().await;
    Ok(())
}
