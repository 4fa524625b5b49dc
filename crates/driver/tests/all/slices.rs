//! A load in slices, on a real engine: it waits between them, and what it counts is the sum of them.

use crate::acknowledged::acknowledged;
use dyno_driver::workload::Acknowledged;
use dyno_driver::{check, prepare, run, Watch};
use serde_json::{json, Value};
use std::path::PathBuf;

const SLICES: usize = 3;
const SLICE_S: f64 = 0.4;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("dyno-slices-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    /// A job whose rows are there.
    fn job(&self) -> Value {
        let url = format!("sqlite://{}?journal_mode=wal&synchronous=off", self.0.join("test.db").display());
        let job = json!({
            "url": url, "workload": "tpcb", "options": {"scale": 1}, "clients": 2, "warmup_s": 0.1,
            "duration_s": SLICES as f64 * SLICE_S, "slices": SLICES, "settle_s": 0.05,
        });
        prepare(&job.to_string(), &mut watch(None)).unwrap();
        job
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn watch(next_slice: Option<&mut dyn FnMut(&Acknowledged) -> bool>) -> Watch<'_> {
    Watch { interrupted: Box::leak(Box::new(|| false)), on_second: None, next_slice }
}

fn sum(of: &Value, name: &str) -> f64 {
    of.as_array().unwrap().iter().map(|each| each[name].as_f64().unwrap()).sum()
}

#[test]
fn a_load_waits_before_each_slice_and_counts_their_sum() {
    let folder = Folder::new("sum");
    let (job, mut told) = (folder.job(), Vec::<Acknowledged>::new());
    let mut next_slice = |so_far: &Acknowledged| {
        told.push(so_far.clone());
        true
    };
    let tally = run(&job.to_string(), &mut watch(Some(&mut next_slice))).unwrap();
    let slices = tally["slices"].as_array().unwrap();
    assert_eq!((told.len(), slices.len()), (SLICES, SLICES));
    // What clients were told between two waits is what the slice between them counted, and all of it at the end.
    let between: Vec<u64> = told.windows(2).map(|pair| pair[1].acknowledged - pair[0].acknowledged).collect();
    assert!(between.iter().zip(slices).all(|(&told, slice)| told >= slice["operations"].as_u64().unwrap()));
    assert!(told.iter().all(|one| one.by_transaction["tpcb"] == one.acknowledged && one.unknown == 0));
    assert!(
        told[0].acknowledged > 0 && told[SLICES - 1].acknowledged < tally["acknowledged"].as_u64().unwrap()
    );
    assert!(slices.iter().all(|slice| slice["operations"].as_u64().unwrap() > 0));
    assert_eq!(sum(&tally["slices"], "operations"), tally["operations"].as_f64().unwrap());
    assert!((sum(&tally["slices"], "duration_s") - tally["duration_s"].as_f64().unwrap()).abs() < 1e-6);
    let starts: Vec<f64> = slices.iter().map(|slice| slice["started_unix_s"].as_f64().unwrap()).collect();
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] > SLICE_S), "{starts:?}");
    // Three slices of 0.4 s are one second and a fifth, whatever lay between them.
    let measured: Vec<&Value> =
        tally["series"].as_array().unwrap().iter().filter(|second| second["phase"] == "measured").collect();
    assert_eq!(measured.len(), 2);
    assert_eq!(sum(&json!(measured), "operations"), tally["operations"].as_f64().unwrap());
    assert!(tally["acknowledged"].as_u64() > tally["operations"].as_u64());
    assert_eq!(tally["clients_lost"], json!(0));
    let told = acknowledged(std::slice::from_ref(&tally));
    let invariants = check(&job.to_string(), Some(told.as_str()), &mut watch(None)).unwrap();
    assert!(invariants.as_array().unwrap().iter().all(|one| one["holds"] == json!(true)), "{invariants}");
}

#[test]
fn a_load_that_is_not_let_on_ends_with_the_slices_it_had() {
    let folder = Folder::new("ended");
    let (job, mut waits) = (folder.job(), 0);
    let mut next_slice = |_: &Acknowledged| {
        waits += 1;
        waits <= 2
    };
    let tally = run(&job.to_string(), &mut watch(Some(&mut next_slice))).unwrap();
    assert_eq!((waits, tally["slices"].as_array().unwrap().len()), (3, 2));
    assert_eq!(tally["interrupted"], json!(true));
    assert!((tally["duration_s"].as_f64().unwrap() - 2.0 * SLICE_S).abs() < 1e-6);
}

#[test]
fn nobody_need_watch_a_load_in_slices() {
    let folder = Folder::new("alone");
    let tally = run(&folder.job().to_string(), &mut watch(None)).unwrap();
    assert_eq!(tally["slices"].as_array().unwrap().len(), SLICES);
}
