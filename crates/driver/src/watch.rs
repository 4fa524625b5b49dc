//! How the caller follows what the driver does.

use crate::workload::Acknowledged;
use serde_json::Value;

/// Both functions are called on the caller's own thread.
pub struct Watch<'a> {
    /// Asked at least every 50 ms; once true, workers stop and what was counted is returned.
    pub interrupted: &'a mut dyn FnMut() -> bool,
    /// Shown each second of a run when it is over.
    pub on_second: Option<&'a mut dyn FnMut(&Value)>,
    /// Asked before each slice of a run that has some; waits as long as the slice is to wait. False ends the run. It is
    /// told what clients have been told so far, without a `start`.
    pub next_slice: Option<&'a mut dyn FnMut(&Acknowledged) -> bool>,
}
