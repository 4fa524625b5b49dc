//! Whether the machine has time to spare, looked at from outside of the loops while a run goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

const PERIOD_NS: u64 = 200_000_000;
/// With less than this part of their time idle the CPUs are taken. The kernel counts in hundredths of a second.
const IDLE_SHARE_MAX: f64 = 0.1;

/// The clock ticks of all CPUs since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    idle: u64,
    all: u64,
}

/// Looks at the CPUs a few times a second.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    looked_ns: u64,
    before: Option<Ticks>,
    crowded: Arc<AtomicBool>,
}

impl Crowd {
    /// `crowded` will be true while nearly all CPUs have work. It is false until that is known.
    pub fn new(crowded: Arc<AtomicBool>) -> Self {
        Crowd { crowded, ..Crowd::default() }
    }

    /// Looks again if it is time to.
    pub fn look(&mut self, now_ns: u64) {
        if now_ns >= self.looked_ns + PERIOD_NS {
            self.looked_ns = now_ns;
            self.take(std::fs::read_to_string("/proc/stat").ok().as_deref().and_then(ticks));
        }
    }

    fn take(&mut self, now: Option<Ticks>) {
        let crowded = self.before.zip(now).is_some_and(|(before, now)| is_crowded(before, now));
        self.crowded.store(crowded, Ordering::Relaxed);
        self.before = now;
    }
}

fn is_crowded(before: Ticks, now: Ticks) -> bool {
    let (idle, all) = (now.idle.saturating_sub(before.idle), now.all.saturating_sub(before.all));
    all > 0 && (idle as f64) < all as f64 * IDLE_SHARE_MAX
}

/// The first line of /proc/stat, see proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal; guest time is
/// part of user time. A CPU that waits for a disk is idle.
fn ticks(stat: &str) -> Option<Ticks> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
    let fields = fields.map(|field| field.parse::<u64>().ok()).collect::<Option<Vec<_>>>()?;
    Some(Ticks { idle: fields.get(3)? + fields.get(4)?, all: fields.iter().sum() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_disk_is_idle_and_a_guest_is_not_counted_twice() {
        let stat = "cpu  100 0 50 700 30 1 2 3 40 0\ncpu0 1 2 3 4\n";
        assert_eq!(ticks(stat), Some(Ticks { idle: 730, all: 886 }));
    }

    #[test]
    fn what_is_no_statistic_says_nothing() {
        assert_eq!(
            [ticks(""), ticks("cpu  1 2"), ticks("cpu  1 2 3 four 5"), ticks("intr 1 2 3 4 5")],
            [None; 4]
        );
    }

    #[test]
    fn a_machine_is_crowded_when_less_than_a_tenth_of_its_time_is_idle() {
        let flag = Arc::new(AtomicBool::new(false));
        let mut crowd = Crowd::new(flag.clone());
        let mut after = |idle, all| {
            crowd.take(Some(Ticks { idle, all }));
            flag.load(Ordering::Relaxed)
        };
        assert!(!after(500, 1000), "one look says nothing");
        assert!(after(503, 1040));
        assert!(!after(507, 1080), "a tenth is idle");
        assert!(!after(507, 1080), "no time has passed");
    }

    #[test]
    fn where_the_kernel_does_not_say_nothing_is_crowded() {
        let mut crowd = Crowd::default();
        crowd.take(Some(Ticks { idle: 0, all: 10 }));
        crowd.take(Some(Ticks { idle: 0, all: 20 }));
        assert!(crowd.crowded.load(Ordering::Relaxed));
        crowd.take(None);
        assert!(!crowd.crowded.load(Ordering::Relaxed));
    }

    #[test]
    fn it_is_looked_at_once_in_a_period() {
        let mut crowd = Crowd::default();
        crowd.look(PERIOD_NS);
        let before = crowd.before;
        assert!(before.is_some());
        std::thread::sleep(std::time::Duration::from_millis(30));
        crowd.look(PERIOD_NS + 1);
        assert_eq!(crowd.before, before);
    }
}
