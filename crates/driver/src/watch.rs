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

impl Watch<'_> {
    /// Does `task` with a watch that also calls `tell` whenever it is asked after an interrupt.
    pub(crate) fn telling<T>(&mut self, tell: impl Fn(), task: impl FnOnce(&mut Watch<'_>) -> T) -> T {
        let mut interrupted = || {
            let interrupted = (self.interrupted)();
            if interrupted {
                tell();
            }
            interrupted
        };
        task(&mut Watch {
            interrupted: &mut interrupted,
            on_second: match &mut self.on_second {
                Some(show) => Some(&mut **show),
                None => None,
            },
            next_slice: match &mut self.next_slice {
                Some(ask) => Some(&mut **ask),
                None => None,
            },
        })
    }
}
