//! Opening a session of any kind within the time that the job gives it.

use super::{Session, Target};
use crate::error::{Error, Result};
use crate::io;

/// Opens a session in time: also where the server keeps talking and never comes to the point.
pub(crate) async fn open<S: Session>(target: &Target) -> Result<S> {
    io::within(target.connect_timeout, S::connect(target)).await.unwrap_or_else(|| {
        Err(Error::connect(format!("no session within {} s", target.connect_timeout.as_secs_f64()))
            .hint("raise connect_timeout_s if the server is only slow"))
    })
}
