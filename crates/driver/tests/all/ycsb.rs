//! YCSB's core workloads on a real engine: loaded, run, found complete; and found incomplete where rows are missing.

use crate::acknowledged::acknowledged;
use dyno_driver::{check, cleanup, prepare, query, run, Error, Watch};
use serde_json::{json, Value};
use std::path::PathBuf;

const WORKLOADS: [&str; 6] = ["ycsb_a", "ycsb_b", "ycsb_c", "ycsb_d", "ycsb_e", "ycsb_f"];

/// A SQLite database in a file of the test's own.
struct Database(PathBuf);

impl Database {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("dyno-ycsb-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Database(folder)
    }

    fn url(&self) -> String {
        format!("sqlite://{}?journal_mode=wal&synchronous=off", self.0.join("test.db").display())
    }

    fn job(&self, workload: &str, records: u64) -> String {
        let options = json!({"record_count": records, "field_length": 10});
        let job = json!({"url": self.url(), "workload": workload, "options": options,
                         "operations": 200, "duration_s": 60.0});
        job.to_string()
    }

    fn ask(&self, sql: &str) -> Value {
        with_watch(|watch| query(&self.url(), sql, watch)).unwrap()["rows"][0][0].clone()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn with_watch<T>(task: impl FnOnce(&mut Watch<'_>) -> T) -> T {
    task(&mut Watch { interrupted: &mut || false, on_second: None, next_slice: None })
}

fn load(job: &str) {
    with_watch(|watch| prepare(job, watch)).unwrap();
}

fn drive(job: &str) -> Result<Value, Error> {
    with_watch(|watch| run(job, watch))
}

/// Whether the only invariant holds.
fn holds(job: &str, tally: &Value) -> bool {
    holds_with(job, Some(&acknowledged(std::slice::from_ref(tally))))
}

fn holds_with(job: &str, told: Option<&str>) -> bool {
    let invariants = with_watch(|watch| check(job, told, watch)).unwrap();
    assert_eq!(invariants.as_array().unwrap().len(), 1, "{invariants}");
    invariants[0]["holds"].as_bool().unwrap()
}

#[test]
fn every_workload_runs_and_is_complete() {
    for workload in WORKLOADS {
        let database = Database::new(workload);
        let job = database.job(workload, 300);
        load(&job);
        let columns = "SELECT COUNT(*) FROM pragma_table_info('usertable')";
        assert_eq!(
            (database.ask(columns), database.ask("SELECT COUNT(*) FROM usertable")),
            (json!(11), json!(300))
        );
        let tally = drive(&job).unwrap();
        assert_eq!(
            (&tally["operations"], &tally["errors"]),
            (&json!(200), &json!({})),
            "{workload}: {tally}"
        );
        assert!(holds(&job, &tally), "{workload}");
        database.ask("DELETE FROM usertable WHERE ycsb_key LIKE 'user1%'");
        assert!(!holds(&job, &tally), "{workload}");
        with_watch(|watch| cleanup(&job, watch)).unwrap();
    }
}

#[test]
fn a_second_run_goes_on_with_new_keys() {
    let database = Database::new("again");
    let job = database.job("ycsb_d", 100);
    load(&job);
    for _ in 0..2 {
        let tally = drive(&job).unwrap();
        assert_eq!(tally["errors"], json!({}), "{tally}");
        assert!(holds(&job, &tally));
    }
}

#[test]
fn rows_that_another_workload_inserted_are_not_missed() {
    let database = Database::new("grown");
    let (growing, other) = (database.job("ycsb_d", 100), database.job("ycsb_a", 100));
    load(&growing);
    drive(&growing).unwrap();
    assert_ne!(database.ask("SELECT COUNT(*) FROM usertable"), json!(100));
    let tally = drive(&other).unwrap();
    assert!(holds(&other, &tally));
    assert!(holds_with(&other, None) && holds_with(&growing, None));
    database.ask("DELETE FROM usertable WHERE ycsb_key > (SELECT MIN(ycsb_key) FROM usertable)");
    assert!(!holds(&other, &tally));
    assert!(!holds_with(&other, None) && !holds_with(&growing, None));
}

#[test]
fn a_table_that_is_too_small_is_refused() {
    let database = Database::new("small");
    load(&database.job("ycsb_a", 50));
    for workload in ["ycsb_a", "ycsb_e"] {
        let error = drive(&database.job(workload, 51)).unwrap_err();
        assert!(error.message().contains("fewer rows than the run's record_count 51"), "{error}");
    }
}
