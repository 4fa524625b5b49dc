//! A limit to the time that something may take, however busy the server keeps us meanwhile.

use super::executor::sleep_ns;
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// What `future` gives within `limit`; after that it is dropped where it waits, and there is nothing.
pub async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut limit = pin!(sleep_ns(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => limit.as_mut().poll(context).map(|()| None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{block_on, yield_now, Backend};

    fn run<T>(future: impl Future<Output = T>) -> T {
        crate::clock::simulate(Some(0));
        let output = block_on(Backend::Simulated, future, || false).unwrap().unwrap();
        crate::clock::simulate(None);
        output
    }

    #[test]
    fn what_ends_in_time_is_given_and_what_does_not_is_dropped() {
        let second = Duration::from_secs(1);
        assert_eq!(run(within(second, async { 7 })), Some(7));
        assert_eq!(run(within(second, sleep_ns(999_999_999))), Some(()));
        assert_eq!(run(within(second, sleep_ns(1_000_000_001))), None);
    }

    #[test]
    fn what_ended_in_time_is_not_woken_when_its_limit_is_over() {
        let mut polls = 0;
        run(async {
            within(Duration::from_secs(1), sleep_ns(1_000)).await;
            let mut rest = pin!(sleep_ns(5_000_000_000));
            poll_fn(|context| {
                polls += 1;
                rest.as_mut().poll(context)
            })
            .await;
        });
        assert_eq!(polls, 2, "once to begin to wait, and once at the end");
    }

    #[test]
    fn what_never_waits_for_long_is_ended_too() {
        let busy = async {
            loop {
                sleep_ns(1000).await;
                yield_now().await;
            }
        };
        assert_eq!(run(within(Duration::from_millis(1), busy)), None::<()>);
    }
}
