//! Work that would hold up a loop, done on a thread of its own while the loop goes on.

use super::executor::sleep_ns;
use super::limits::no_thread;
use crate::clock;
use crate::error::Result;
use std::sync::{Arc, OnceLock};

/// A task that waits looks soon at first, then at ever longer intervals up to the second one.
const FIRST_LOOK_NS: u64 = 100_000;
const LOOK_MAX_NS: u64 = 10_000_000;

/// The outcome of such work, for any number of tasks of any thread.
#[derive(Debug)]
pub(crate) struct Apart<T>(Arc<OnceLock<T>>);

impl<T> Clone for Apart<T> {
    fn clone(&self) -> Self {
        Apart(self.0.clone())
    }
}

impl<T: Send + Sync + 'static> Apart<T> {
    pub fn begin(work: impl FnOnce() -> T + Send + 'static) -> Result<Self> {
        let outcome = Arc::new(OnceLock::new());
        let place = outcome.clone();
        let started = std::thread::Builder::new().spawn(move || drop(place.set(work())));
        started.map_err(|error| no_thread("a thread beside the clients", &error))?;
        Ok(Apart(outcome))
    }

    /// The outcome; `None` where there is none at `until_ns`.
    pub async fn outcome(&self, until_ns: u64) -> Option<&T> {
        let mut look_ns = FIRST_LOOK_NS;
        loop {
            if let Some(outcome) = self.0.get() {
                return Some(outcome);
            }
            let now_ns = clock::now_ns();
            if now_ns >= until_ns {
                return None;
            }
            sleep_ns(look_ns.min(until_ns - now_ns)).await;
            look_ns = (look_ns * 2).min(LOOK_MAX_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{block_on, yield_now, Backend};
    use std::future::Future;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    fn run<T>(future: impl Future<Output = T>) -> T {
        block_on(Backend::Epoll, future, || false).unwrap().unwrap()
    }

    #[test]
    fn the_loop_goes_on_while_the_work_is_done() {
        let (sender, receiver) = channel();
        let heard = run(async {
            // The work ends by what this loop does after it began.
            let work = Apart::begin(move || receiver.recv_timeout(Duration::from_secs(20)).is_ok()).unwrap();
            yield_now().await;
            sender.send(()).unwrap();
            work.outcome(u64::MAX).await.copied()
        });
        assert_eq!(heard, Some(true));
    }

    #[test]
    fn work_that_takes_too_long_is_not_waited_for() {
        let (sender, receiver) = channel::<()>();
        let late = Apart::begin(move || receiver.recv().is_err()).unwrap();
        assert_eq!(run(late.outcome(clock::now_ns() + 1_000_000)), None);
        drop(sender);
        assert_eq!(run(late.outcome(u64::MAX)), Some(&true));
    }
}
