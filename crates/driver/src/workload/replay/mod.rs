//! The statements of a recording, each session's in their order and at their times. There are no transactions of its
//! own to draw: `run/replay.rs` plays what the recording holds.

mod playback;
mod recording;

#[cfg(test)]
mod tests;

pub use playback::{Playback, Speed};
pub use recording::{Place as StatementPlace, Recorded, Recording, Visit};

use super::{located, About, CheckAgainst, Invariant, Options, Outcome, Place, Typed, Workload};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::session::Session;

pub const NAME: &str = "replay";
const MAX: &str = "max";
/// More clients than sessions were ever open at a time, because a slow server keeps them open for longer.
const CLIENTS_LEAST: u32 = 64;
const CLIENTS_EACH_OPEN: u32 = 4;
const CLIENTS_MAX: u32 = 100_000;
/// A replay that takes this many times as long as it should, and a minute, is ended.
const PATIENCE: f64 = 4.0;
const PATIENCE_S: f64 = 60.0;
const NS_PER_S: f64 = 1e9;
/// What a time may lose on its way through seconds.
const ROUNDED_NS: u64 = 1_000;

type Given = serde_json::Map<String, serde_json::Value>;

/// The times of a job, which for a replay are given in the recording's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    pub warmup_s: f64,
    pub duration_s: f64,
}

/// Puts the clients and the times of a job that plays a recording in the place of those that it was given: the number of
/// clients follows from the recording, and the times are then those of the clock. `duration_s` becomes the longest time
/// that the measured part may take.
pub fn resolve_replay(options: &Given, given: Times) -> Result<(u32, Times)> {
    let file = options.get("file").and_then(serde_json::Value::as_str).unwrap_or_default();
    let (about, sessions) = recording::about(named(file)?)?;
    let speed = speed(options.get("speed"))?;
    let length_s = about.length_ns as f64 / NS_PER_S;
    let until_s = (given.warmup_s + given.duration_s).min(length_s);
    let (warmup_s, lasts_s) = match speed {
        Speed::Times(speed) => (given.warmup_s / speed, until_s / speed),
        Speed::Max => (0.0, until_s),
    };
    if given.warmup_s >= length_s && given.warmup_s > 0.0 {
        return Err(Error::user(format!(
            "a warm-up of {} s leaves nothing of {file}, which lasts {length_s:.1} s",
            given.warmup_s
        ))
        .hint("give a shorter warm-up, or none"));
    }
    let clients = match speed {
        Speed::Times(_) => about.open_most.saturating_mul(CLIENTS_EACH_OPEN).max(CLIENTS_LEAST),
        Speed::Max => about.open_most,
    };
    let longest_s = lasts_s * PATIENCE + PATIENCE_S;
    let clients = clients.min(u32::try_from(sessions).unwrap_or(u32::MAX)).clamp(1, CLIENTS_MAX);
    Ok((clients, Times { warmup_s, duration_s: longest_s - warmup_s }))
}

fn named(file: &str) -> Result<&str> {
    match file {
        "" => Err(Error::user("the workload replay has no recording")
            .hint("make one with dyno init replay --from LOG, and set the option file=PATH")),
        file => Ok(file),
    }
}

fn speed(given: Option<&serde_json::Value>) -> Result<Speed> {
    match given {
        None => Ok(Speed::Times(1.0)),
        Some(value) if value.as_str() == Some(MAX) => Ok(Speed::Max),
        Some(value) => match value.as_f64() {
            Some(speed) if (0.001..=1_000.0).contains(&speed) => Ok(Speed::Times(speed)),
            _ => Err(Error::user(format!("the speed of a replay cannot be {value}"))
                .hint("give a number of 0.001 to 1000, or \"max\"")),
        },
    }
}

/// Where the part that is played ends. What lasts as long as the recording holds its last statement as well.
fn until_ns(until_s: Option<f64>, length_ns: u64) -> u64 {
    let until_ns = until_s.map_or(u64::MAX, |seconds| (seconds * NS_PER_S) as u64);
    match until_ns.saturating_add(ROUNDED_NS) >= length_ns {
        true => u64::MAX,
        false => until_ns,
    }
}

pub struct Replay {
    playback: Playback,
}

const FILE: Typed<&'static str> =
    Typed::text("file", "", "the recording, as dyno init replay makes it from a log").for_the_run();
const SPEED: Typed<serde_json::Value> = Typed::number_or(
    "speed",
    1.0,
    0.001,
    1_000.0,
    MAX,
    "how many times as fast as recorded; max sends each statement when the one before was answered",
)
.for_the_run();

impl Workload for Replay {
    type Client = ();

    const OFFERS: &'static [About] = &[About {
        name: NAME,
        description:
            "what a server was asked, from a recording of its log: sessions, transactions and times as they \
                      were",
        options: &[FILE.spec(), SPEED.spec()],
        transactions: &[],
        read_only: false,
        keeps_ledger: false,
    }];

    const PLAYS: bool = true;

    fn new(_about: &'static About, options: &Options) -> Result<Self> {
        let file = located(&options.circumstances().folder, options.text(FILE));
        let recording = Recording::open(named(&file)?)?;
        if let Some(target) = &options.circumstances().target {
            let (recorded, asked) = (&recording.about().protocol, target.protocol.as_str());
            if recorded != asked {
                return Err(Error::user(format!(
                    "{} was recorded on {recorded}, and the URL leads to {asked}",
                    options.text(FILE)
                ))
                .hint(
                    "play it on a server of its own kind, because statements are sent as they were logged",
                ));
            }
        }
        let until_ns = until_ns(options.circumstances().until_s, recording.about().length_ns);
        Ok(Replay { playback: Playback::new(recording, speed(options.value(SPEED))?, until_ns) })
    }

    fn playback(&self) -> Option<&Playback> {
        Some(&self.playback)
    }

    fn transactions(&self) -> Vec<String> {
        self.playback.recording.about().kinds.clone()
    }

    /// The data are not made by the recording: a dump or a folder holds them.
    async fn create<S: Session>(&self, _session: &mut S) -> Result<()> {
        Ok(())
    }

    fn load_parts(&self) -> u64 {
        0
    }

    async fn load<S: Session>(&self, _part: u64, _session: &mut S, _random: Random) -> Result<u64> {
        Ok(0)
    }

    async fn client<S: Session>(&self, _session: &mut S, _place: Place) -> Result<()> {
        Ok(())
    }

    async fn perform<S: Session>(
        &self,
        _kind: usize,
        _client: &mut (),
        _session: &mut S,
        _random: &mut Random,
    ) -> Result<Outcome> {
        Err(Error::internal("a replay draws no transactions").fatal())
    }

    async fn check<S: Session>(
        &self,
        _session: &mut S,
        _against: CheckAgainst<'_>,
    ) -> Result<Vec<Invariant>> {
        Ok(Vec::new())
    }

    async fn cleanup<S: Session>(&self, _session: &mut S) -> Result<()> {
        Ok(())
    }
}
