use super::recording::Place;
use super::*;
use crate::error::{Fate, Kind};
use proptest::prelude::*;
use serde_json::json;

/// A file that is gone with its value.
struct Temporary(std::path::PathBuf);

impl Temporary {
    fn with(bytes: &[u8]) -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("dyno-replay-{}-{number}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Temporary(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const HEADER: usize = 48;
const STATEMENT: usize = 56;

/// A recording of the sessions whose statements these are: (time in seconds, text).
fn file(sessions: &[&[(u64, &str)]]) -> Vec<u8> {
    let (mut bytes, mut visits) = (vec![0; HEADER], Vec::new());
    for statements in sessions {
        let first = (bytes.len() as u64, (STATEMENT + statements[0].1.len()) as u32);
        for (place, (at_s, text)) in statements.iter().enumerate() {
            let following = statements.get(place + 1);
            let next = bytes.len() + STATEMENT + text.len();
            let due_ns = (at_s + 10) * 1_000_000_000;
            [due_ns, u64::MAX, following.map_or(0, |_| next as u64)]
                .iter()
                .for_each(|number| bytes.extend(number.to_le_bytes()));
            let next_size = following.map_or(0, |(_, text)| (STATEMENT + text.len()) as u32);
            [next_size, 0, 0, 0].iter().for_each(|number: &u32| bytes.extend(number.to_le_bytes()));
            [7, u64::MAX].iter().for_each(|number: &u64| bytes.extend(number.to_le_bytes()));
            bytes.extend(text.as_bytes());
        }
        let times = [statements[0].0, statements[statements.len() - 1].0 + 1];
        visits.push((times.map(|at_s| (at_s + 10) * 1_000_000_000), first, statements.len() as u64));
    }
    let sessions_offset = bytes.len() as u64;
    for (times, (offset, size), count) in &visits {
        times.iter().chain([offset]).for_each(|number| bytes.extend(number.to_le_bytes()));
        [*size, 0].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes.extend(count.to_le_bytes());
    }
    let about = json!({
        "protocol": "mysql", "origin_ns": 10_000_000_000u64, "length_ns": 5_000_000_000u64, "open_most": 2,
        "kinds": ["select"], "databases": [""], "statements": [{"digest": "SELECT ?", "kind": 0}],
    })
    .to_string();
    let about_offset = bytes.len() as u64;
    bytes.extend(about.as_bytes());
    bytes[..8].copy_from_slice(b"dynorply");
    bytes[8..12].copy_from_slice(&1u32.to_le_bytes());
    for (place, number) in
        [sessions_offset, visits.len() as u64, about_offset, about.len() as u64].iter().enumerate()
    {
        bytes[16 + 8 * place..24 + 8 * place].copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

const SESSIONS: &[&[(u64, &str)]] =
    &[&[(0, "SELECT 1"), (2, "SELECT 'ä'"), (3, "COMMIT")], &[(1, "SELECT 22")]];

/// Reads everything, as a replay would; stops at the first error.
fn read_all(path: &str) -> Result<Vec<(f64, String)>> {
    let (recording, mut buffer, mut all) = (Recording::open(path)?, Vec::new(), Vec::new());
    for visit in recording.visits() {
        let mut next = visit.first;
        while let Some(place) = next {
            let recorded = recording.read(place, &mut buffer)?;
            assert_eq!(recording.head(place)?, recorded);
            recording.digest(recorded.statement);
            all.push((recorded.due_ns as f64 / 1e9, recording.text(place, &buffer)?.to_owned()));
            next = recorded.next;
        }
    }
    Ok(all)
}

#[test]
fn sessions_are_read_with_their_statements_in_order() {
    let written = Temporary::with(&file(SESSIONS));
    let found = read_all(written.path()).unwrap();
    let told: Vec<(f64, &str)> = found.iter().map(|(at_s, text)| (*at_s, text.as_str())).collect();
    assert_eq!(told, [(0.0, "SELECT 1"), (2.0, "SELECT 'ä'"), (3.0, "COMMIT"), (1.0, "SELECT 22")]);
    let recording = Recording::open(written.path()).unwrap();
    let mut buffer = Vec::new();
    let recorded = recording.read(recording.visits()[0].first.unwrap(), &mut buffer).unwrap();
    assert_eq!((recorded.rows, recorded.affected, recorded.failed), (Some(7), None, false));
}

#[test]
fn a_file_that_ends_anywhere_is_refused_with_what_to_do() {
    let whole = file(SESSIONS);
    for length in 0..whole.len() {
        let cut = Temporary::with(&whole[..length]);
        let error = read_all(cut.path()).unwrap_err();
        assert_eq!(error.kind(), Kind::User, "{length}");
        assert!(error.hint_text().contains("dyno init replay"), "{length}: {error}");
    }
}

#[test]
fn what_never_got_its_header_is_named() {
    let mut bytes = file(SESSIONS);
    bytes[32..40].fill(0);
    let unfinished = Temporary::with(&bytes);
    assert!(read_all(unfinished.path()).unwrap_err().message().contains("never finished"));
    bytes[8] = 9;
    let other = Temporary::with(&bytes);
    assert!(read_all(other.path()).unwrap_err().message().contains("version 9"));
}

#[test]
fn a_chain_of_statements_that_turns_back_ends_the_run() {
    let mut bytes = file(SESSIONS);
    bytes[HEADER + 16..HEADER + 24].copy_from_slice(&(HEADER as u64).to_le_bytes());
    let turning = Temporary::with(&bytes);
    let error = read_all(turning.path()).unwrap_err();
    assert_eq!(error.fate(), Fate::Fatal);
    assert!(error.message().contains("earlier one"), "{error}");
}

#[test]
fn a_giant_statement_is_refused_before_it_is_read() {
    let written = Temporary::with(&file(SESSIONS));
    let recording = Recording::open(written.path()).unwrap();
    let mut buffer = Vec::new();
    for size in [0, STATEMENT as u32 - 1, u32::MAX] {
        assert!(recording.read(Place::new(HEADER as u64, size), &mut buffer).is_err());
    }
    assert!(recording.read(Place::new(u64::MAX, 60), &mut buffer).is_err());
    assert!(buffer.capacity() < 1000);
}

proptest! {
    #[test]
    fn no_bytes_are_believed(place in 0usize..1000, values in proptest::collection::vec(any::<u8>(), 1..16)) {
        let mut bytes = file(SESSIONS);
        let place = place % bytes.len();
        for (offset, value) in values.into_iter().enumerate() {
            if let Some(byte) = bytes.get_mut(place + offset) {
                *byte = value;
            }
        }
        let damaged = Temporary::with(&bytes);
        if let Err(error) = read_all(damaged.path()) {
            prop_assert_eq!(error.kind(), Kind::User);
        }
    }

    #[test]
    fn each_session_is_taken_once_and_none_behind_the_end(until_s in 0u64..6) {
        let written = Temporary::with(&file(SESSIONS));
        let recording = Recording::open(written.path()).unwrap();
        let playback = Playback::new(recording, Speed::Times(2.0), until_s * 1_000_000_000);
        let taken: Vec<u64> = std::iter::from_fn(|| playback.take()).map(|visit| visit.opened_ns).collect();
        prop_assert_eq!(taken.len() as u64, until_s.min(2));
        prop_assert_eq!(playback.after_ns(4_000_000_000), Some(2_000_000_000));
    }
}

fn given(path: &str, speed: serde_json::Value, warmup_s: f64, duration_s: f64) -> Result<(u32, Times)> {
    let options = json!({"file": path, "speed": speed}).as_object().unwrap().clone();
    resolve_replay(&options, Times { warmup_s, duration_s })
}

#[test]
fn the_times_of_a_job_are_those_of_the_recording() {
    let written = Temporary::with(&file(SESSIONS));
    let (clients, times) = given(written.path(), json!(2), 1.0, 3.0).unwrap();
    assert_eq!((clients, times.warmup_s), (2, 0.5));
    assert_eq!(times.warmup_s + times.duration_s, 2.0 * PATIENCE + PATIENCE_S);
    let (_, times) = given(written.path(), json!("max"), 1.0, 300.0).unwrap();
    assert_eq!((times.warmup_s, times.duration_s), (0.0, 5.0 * PATIENCE + PATIENCE_S));
}

#[test]
fn the_last_statement_is_part_of_the_whole() {
    assert_eq!(until_ns(None, 5), u64::MAX);
    for length_ns in [200_000_000, 300_000_001, 1_234_567_891_011] {
        assert_eq!(until_ns(Some(length_ns as f64 / NS_PER_S), length_ns), u64::MAX);
    }
    assert_eq!(until_ns(Some(0.5), 2_000_000_000), 500_000_000);
}

#[test]
fn mistakes_in_a_replay_are_the_users() {
    let written = Temporary::with(&file(SESSIONS));
    for (speed, warmup_s) in [(json!(0), 0.0), (json!("fast"), 0.0), (json!(1), 5.0)] {
        let error = given(written.path(), speed, warmup_s, 1.0).unwrap_err();
        assert_eq!(error.kind(), Kind::User);
        assert!(!error.hint_text().is_empty(), "{error}");
    }
    for path in ["", "/no/such.replay"] {
        assert!(!given(path, json!(1), 0.0, 1.0).unwrap_err().hint_text().is_empty());
    }
}
