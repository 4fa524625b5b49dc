//! Whole workloads on a real engine: loaded, run, found consistent; and found broken where something is amiss.

use crate::acknowledged::acknowledged;
use dyno_driver::{check, prepare, query, run, Watch};
use serde_json::{json, Value};
use std::path::PathBuf;

/// A SQLite database in a file of the test's own.
struct Database {
    folder: PathBuf,
    url: String,
}

impl Database {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("dyno-workload-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("test.db");
        let url = format!("sqlite://{}?journal_mode=wal&synchronous=off", file.display());
        Database { folder, url }
    }

    fn job(&self, workload: &str, options: Value) -> Value {
        json!({"url": self.url, "workload": workload, "options": options})
    }

    fn change(&self, sql: &str) {
        query(&self.url, sql, &mut watch(&mut || false)).unwrap();
    }

    fn number(&self, sql: &str) -> i64 {
        query(&self.url, sql, &mut watch(&mut || false)).unwrap()["rows"][0][0].as_i64().unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn watch(interrupted: &mut dyn FnMut() -> bool) -> Watch<'_> {
    Watch { interrupted, on_second: None, next_slice: None }
}

fn load(job: &Value) {
    prepare(&job.to_string(), &mut watch(&mut || false)).unwrap();
}

/// Runs the job with more fields; gives the tally.
fn measure(job: &Value, more: Value) -> Value {
    let mut job = job.clone();
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    run(&job.to_string(), &mut watch(&mut || false)).unwrap()
}

/// The job with other options.
fn job_of(job: &Value, options: Value) -> Value {
    let mut job = job.clone();
    job["options"] = options;
    job
}

/// The names of the invariants that do not hold.
fn broken(job: &Value, tally: Option<&Value>) -> Vec<String> {
    let told = tally.map(|tally| acknowledged(std::slice::from_ref(tally)));
    let invariants = check(&job.to_string(), told.as_deref(), &mut watch(&mut || false)).unwrap();
    let invariants = invariants.as_array().unwrap();
    assert!(!invariants.is_empty());
    let broken = invariants.iter().filter(|invariant| invariant["holds"] == json!(false));
    broken.map(|invariant| invariant["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn tpcc_keeps_its_conditions_and_notices_what_breaks_them() {
    let database = Database::new("tpcc");
    let job = database.job("tpcc", json!({"warehouses": 1}));
    load(&job);
    assert!(broken(&job, None).is_empty());

    let tally = measure(&job, json!({"clients": 2, "operations": 600, "warmup_s": 0, "duration_s": 300}));
    assert!(broken(&job, Some(&tally)).is_empty());
    let operations = |name: &str| tally["by_transaction"][name]["operations"].as_i64().unwrap();
    let placed = database.number("SELECT SUM(d_next_o_id) - 30010 FROM district");
    assert_eq!(placed, operations("new_order"));
    assert_eq!(tally["rollbacks"], tally["by_transaction"]["new_order_rolled_back"]["operations"]);
    let later = measure(&job, json!({"clients": 2, "operations": 100, "warmup_s": 0, "duration_s": 300}));
    assert!(broken(&job, Some(&later)).is_empty());
    assert_eq!(broken(&job, Some(&tally)), ["payments_complete", "orders_complete"]);
    let more = job_of(&job, json!({"warehouses": 2}));
    let error = run(&more.to_string(), &mut watch(&mut || false)).unwrap_err();
    assert!(error.message().contains("prepared with warehouses 1, the run has warehouses 2"), "{error}");
    for name in ["payment", "order_status", "delivery", "stock_level"] {
        assert!(operations(name) > 0, "{name}");
    }

    database.change("UPDATE warehouse SET w_ytd = w_ytd + 0.01");
    assert_eq!(broken(&job, Some(&later)), ["consistency_1", "consistency_8"]);
    database.change("DELETE FROM order_line WHERE ol_d_id = 3 AND ol_o_id = 7 AND ol_number = 1");
    assert_eq!(broken(&job, None), ["consistency_1", "consistency_4", "consistency_6", "consistency_8"]);
    database.change("DELETE FROM history WHERE h_amount <> 10");
    assert!(broken(&job, Some(&later)).contains(&"payments_complete".to_owned()));
}

#[test]
fn flexasync_goes_through_its_phases_and_leaves_nothing() {
    let database = Database::new("flexasync");
    let job = database.job("flexasync", json!({"parallel": 4, "rounds": 5, "loops": 2, "attributes": 3}));
    load(&job);
    let tally = measure(&job, json!({"clients": 3, "warmup_s": 30, "duration_s": 300}));
    assert_eq!(tally["warmup_s"], json!(0.0));
    assert_eq!(tally["errors"], json!({}));
    // 3 clients, 5 rounds, 2 loops.
    for name in ["insert", "read", "update", "read_updated", "delete"] {
        assert_eq!(tally["by_transaction"][name]["operations"], json!(30), "{name}");
    }
    for phase in tally["phases"].as_array().unwrap() {
        assert_eq!(phase["operations"], json!(120), "{phase}");
        assert!(phase["operations_per_s"].as_f64().unwrap() > 0.0, "{phase}");
    }
    assert!(broken(&job, Some(&tally)).is_empty());
    database.change("INSERT INTO flexasync (id, attr0, attr1, attr2) VALUES (1, 2, 2, 3)");
    assert_eq!(broken(&job, Some(&tally)), ["attributes_agree", "rows_balanced"]);
}

#[test]
fn flexasync_notices_rows_that_are_not_as_they_were_written() {
    let database = Database::new("flexasync-rows");
    let job = database.job("flexasync", json!({"parallel": 4, "rounds": 5}));
    load(&job);
    // A key of the first round is taken: its insert is refused, and what is read is not what was written.
    let values = vec!["7"; 25].join(", ");
    database.change(&format!("INSERT INTO flexasync VALUES (2, {values})"));
    let wider = job_of(&job, json!({"parallel": 4, "rounds": 5, "attributes": 26}));
    let error = run(&wider.to_string(), &mut watch(&mut || false)).unwrap_err();
    assert!(error.message().contains("prepared with attributes 25, the run has attributes 26"), "{error}");
    let tally = measure(&job, json!({"clients": 1, "warmup_s": 0, "duration_s": 300}));
    assert_eq!(tally["start"], json!({"rows": 1}));
    assert_eq!(tally["by_transaction"]["insert"]["operations"], json!(4));
    assert!(tally["errors"]["row missing"].as_u64().unwrap() >= 1, "{}", tally["errors"]);
}
