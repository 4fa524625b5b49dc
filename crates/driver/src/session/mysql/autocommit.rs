//! Autocommit. Where a deadlock ends a transaction in the middle of a batch, the statements that are in flight behind it
//! must not commit by themselves. What sets it goes out with the command that needs it: no round trip is spent on it.

use super::{command, Encoding, Mysql};
use crate::error::{Error, Fate, Result};

impl Mysql {
    /// Puts what sets autocommit before the next command, where it must be set: what that is, for `autocommit_answer`.
    ///
    /// A batch of a transaction needs autocommit off, a statement outside of transactions needs it on. To others it does
    /// not matter.
    #[inline]
    pub(super) fn put_autocommit(&mut self, batch: bool) -> Option<bool> {
        let wanted = !self.in_transaction;
        if self.autocommit == wanted || (self.in_transaction && !batch) {
            return None;
        }
        let sql = if wanted { "SET autocommit = 1" } else { "SET autocommit = 0" };
        self.put(command::QUERY, sql.as_bytes());
        Some(wanted)
    }

    /// Takes the answer to what `put_autocommit` put, which comes before that of the command.
    #[inline]
    pub(super) async fn autocommit_answer(&mut self, set: Option<bool>) -> Result<()> {
        let Some(set) = set else { return Ok(()) };
        let sequence = self.channel.next_sequence();
        self.channel.expect(1);
        self.answer(&mut (), Encoding::Text).await.map_err(|error| match error.fate() {
            Fate::Lost => error,
            // The command behind it was sent in the belief that it is set.
            _ => Error::lost("autocommit refused", error.message()),
        })?;
        self.channel.expect(sequence);
        self.autocommit = set;
        Ok(())
    }
}
