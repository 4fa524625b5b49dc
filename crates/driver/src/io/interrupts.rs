//! Ending what a session does from another thread, where its calls block the thread that it lives on.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// From the first request to stop to the end of the connection. A server that works answers the request at once.
const CUT_AFTER_NS: u64 = 1_000_000_000;

/// A session whose calls block, as another thread sees it.
pub(crate) trait Interrupt: Send + Sync {
    /// Has the call under way fail, if there is one.
    fn interrupt(&self);

    /// Ends the connection, whether the server answers or not.
    fn cut(&self);
}

/// The sessions whose calls block. None is kept alive here.
#[derive(Default)]
pub(crate) struct Interrupts(Mutex<Vec<Weak<dyn Interrupt>>>);

impl Interrupts {
    pub fn add(&self, session: &Arc<impl Interrupt + 'static>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        // Not in one step, or the type parameter would be that of the trait.
        let session = Arc::downgrade(session);
        all.push(session);
    }

    /// Ends what sessions still do at `now_ns` although it should have been over at `due_ns`. To be called again and
    /// again: one call of a session may follow another.
    pub fn end(&self, due_ns: u64, now_ns: u64) {
        let Some(late_ns) = now_ns.checked_sub(due_ns) else { return };
        for session in self.open() {
            session.interrupt();
            if late_ns >= CUT_AFTER_NS {
                session.cut();
            }
        }
    }

    fn open(&self) -> Vec<Arc<dyn Interrupt>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).collect()
    }
}

impl std::fmt::Debug for Interrupts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Interrupts({})", self.open().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[derive(Default)]
    struct Session {
        interrupted: AtomicU32,
        cut: AtomicU32,
    }

    impl Interrupt for Session {
        fn interrupt(&self) {
            self.interrupted.fetch_add(1, Ordering::Relaxed);
        }

        fn cut(&self) {
            self.cut.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_session_is_asked_first_and_cut_off_when_that_does_not_help() {
        let (session, gone) = (Arc::new(Session::default()), Arc::new(Session::default()));
        let all = Interrupts::default();
        all.add(&gone);
        all.add(&session);
        drop(gone);
        let seen = || (session.interrupted.load(Ordering::Relaxed), session.cut.load(Ordering::Relaxed));
        all.end(1000, 999);
        assert_eq!(seen(), (0, 0));
        all.end(1000, 1000);
        all.end(1000, 999 + CUT_AFTER_NS);
        assert_eq!(seen(), (2, 0));
        all.end(1000, 1000 + CUT_AFTER_NS);
        assert_eq!(seen(), (3, 1));
        assert_eq!(format!("{all:?}"), "Interrupts(1)");
    }
}
