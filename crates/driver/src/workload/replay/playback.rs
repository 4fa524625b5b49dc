//! How a recording is played: which part of it, how fast, and which session comes next.

use super::recording::{Recording, Visit};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Connections whose opening no log tells of are opened so long before their first statement.
pub const LEAD_NS: u64 = 1_000_000_000;

/// How fast a recording is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// So many times as fast as it was recorded.
    Times(f64),
    /// Without pauses: a session sends each statement when its last one was answered.
    Max,
}

/// A recording while it is played. Clients share it.
#[derive(Debug)]
pub struct Playback {
    pub recording: Recording,
    pub speed: Speed,
    /// What was sent from this time of the recording on is not played.
    pub until_ns: u64,
    /// How many sessions clients have taken.
    taken: AtomicUsize,
}

impl Playback {
    pub fn new(recording: Recording, speed: Speed, until_ns: u64) -> Self {
        Playback { recording, speed, until_ns, taken: AtomicUsize::new(0) }
    }

    /// The session that opens next; whoever takes it plays it.
    pub fn take(&self) -> Option<Visit> {
        let visit = self.recording.visits().get(self.taken.fetch_add(1, Ordering::Relaxed));
        visit.filter(|visit| visit.opened_ns < self.until_ns).copied()
    }

    /// How long after the beginning of the run a time of the recording is due; `None` where nothing is due by the clock.
    pub fn after_ns(&self, recorded_ns: u64) -> Option<u64> {
        self.times().map(|times| (recorded_ns as f64 / times) as u64)
    }

    /// How long before the beginning of the run, or after it, a session's connection is opened.
    pub fn opens_after_ns(&self, visit: &Visit) -> Option<u64> {
        let lead_ns = if visit.opening_seen { 0 } else { LEAD_NS };
        self.after_ns(visit.opened_ns).map(|after_ns| after_ns.saturating_sub(lead_ns))
    }

    /// Whether a session's connection is there when the run begins.
    pub fn was_there(&self, visit: &Visit) -> bool {
        !visit.opening_seen && self.opens_after_ns(visit) == Some(0)
    }

    /// How many times as fast as it was recorded; `None` where nothing is due by the clock.
    pub fn times(&self) -> Option<f64> {
        match self.speed {
            Speed::Times(speed) => Some(speed),
            Speed::Max => None,
        }
    }

    /// How long the part that is played took when it was recorded.
    pub fn recorded_ns(&self) -> u64 {
        self.until_ns.min(self.recording.about().length_ns)
    }

    /// How long the part that is played takes where nothing is late; `None` where nothing is due by the clock.
    pub fn lasts_ns(&self) -> Option<u64> {
        self.after_ns(self.recorded_ns())
    }
}
