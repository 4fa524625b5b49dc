//! Opening a session of any kind within the time that the job gives it.

use super::{Session, Target};
use crate::error::{Error, Fate, Result};
use crate::io;

/// Opens a session in time: also where the server keeps talking and never comes to the point.
pub(crate) async fn open<S: Session>(target: &Target) -> Result<S> {
    io::within(target.connect_timeout, told(target)).await.unwrap_or_else(|| {
        Err(Error::connect(format!("no session within {} s", target.connect_timeout.as_secs_f64()))
            .hint("raise connect_timeout_s if the server is only slow"))
    })
}

/// A session that has been told what each one is told first.
async fn told<S: Session>(target: &Target) -> Result<S> {
    let mut session = S::connect(target).await?;
    for sql in &target.opening {
        session.text(sql, &mut ()).await.map_err(|error| refused(error, sql))?;
    }
    Ok(session)
}

#[cold]
fn refused(error: Error, sql: &str) -> Error {
    let error = error.at(format_args!("{sql:?} at the start of a connection")).while_connecting();
    match error.fate() {
        Fate::Lost => error,
        _ => error.hint("correct it, or leave it out"),
    }
}
