//! How often a transaction is tried again that another one was in the way of, how long it waits before, and how it is
//! rolled back.

use crate::error::{Error, Fate, Result};
use crate::random::Random;
use crate::session::Session;

/// What fails so often has something else in its way than chance: it is counted as failed.
const TRIES_MAX: u32 = 100;
/// The first tries come at once, because the other transaction is usually over by then.
const AT_ONCE: u32 = 4;
const WAIT_NS: (u64, u64) = (1_000_000, 100_000_000);

/// The tries of one transaction.
#[derive(Default)]
pub(super) struct Again {
    failed: u32,
}

impl Again {
    /// How long to wait before the next try; `None` after the last. Waits are drawn up to a bound that doubles, so that
    /// those who were in each other's way do not meet again. `from_ns`, when the transaction began, tells its draws from
    /// those of others, and what it does itself is drawn as ever.
    #[cold]
    pub fn wait_ns(&mut self, seed: u64, client: u32, from_ns: u64) -> Option<u64> {
        self.failed += 1;
        if self.failed >= TRIES_MAX {
            return None;
        }
        let Some(doubled) = self.failed.checked_sub(AT_ONCE + 1) else { return Some(0) };
        let (first_ns, longest_ns) = WAIT_NS;
        let bound_ns = (first_ns << doubled.min(16)).min(longest_ns);
        let mut random = Random::new(seed ^ from_ns, u64::from(self.failed) << 32 | u64::from(client));
        Some(random.below(bound_ns))
    }
}

/// Ends a transaction that has failed. A cluster may have aborted it since: the server then says so in the place of an
/// answer to ROLLBACK, and takes the next one.
pub(super) async fn roll_back<S: Session>(session: &mut S) -> Result<()> {
    match session.rollback().await {
        Err(aborted) if aborted.fate() == Fate::Retry => session.rollback().await,
        answer => answer,
    }
    .map_err(still_open)
}

/// A server that refuses a rollback keeps the transaction open, and the next BEGIN would commit what it has done. So the
/// connection is not used any further.
fn still_open(refused: Error) -> Error {
    match refused.fate() {
        Fate::Lost | Fate::Fatal => refused,
        _ => Error::lost("rollback refused", refused.message()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollback_that_is_refused_ends_the_connection() {
        let refused =
            still_open(Error::server("1047 error", Fate::Failed, "not prepared for application use"));
        assert_eq!((refused.label(), refused.fate()), ("rollback refused", Fate::Lost));
        let gone = still_open(Error::lost("reset", "the connection was reset"));
        assert_eq!((gone.label(), gone.fate()), ("reset", Fate::Lost));
    }

    fn waits(client: u32) -> Vec<u64> {
        let mut again = Again::default();
        std::iter::from_fn(|| again.wait_ns(7, client, 1_000)).collect()
    }

    #[test]
    fn the_first_tries_come_at_once_and_the_later_ones_ever_later_up_to_a_limit() {
        let all = waits(0);
        assert_eq!(all.len() as u32, TRIES_MAX - 1);
        assert!(all[..4].iter().all(|wait_ns| *wait_ns == 0));
        for (doubled, wait_ns) in all[4..].iter().enumerate() {
            assert!((1..(WAIT_NS.0 << doubled.min(16)).min(WAIT_NS.1)).contains(wait_ns), "{all:?}");
        }
        assert!(all[12..].iter().any(|wait_ns| *wait_ns > WAIT_NS.1 / 2));
    }

    #[test]
    fn who_was_in_the_way_of_another_does_not_come_when_that_one_does() {
        assert!(waits(0)[4..].iter().zip(&waits(1)[4..]).all(|(one, other)| one != other));
        assert_eq!(waits(0), waits(0));
    }
}
