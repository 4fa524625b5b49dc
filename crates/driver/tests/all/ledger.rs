//! The ledger of a run: each transaction that was acknowledged is an entry of its file and a row of the database.

use dyno_driver::{prepare, query, run, Watch};
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::path::PathBuf;

const TABLE: &str =
    "CREATE TABLE dyno_ledger (cut INTEGER NOT NULL, client INTEGER NOT NULL, entry INTEGER NOT NULL)";

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("dyno-books-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn url(&self) -> String {
        format!("sqlite://{}?journal_mode=wal&synchronous=off", self.0.join("test.db").display())
    }

    /// A job of 200 transactions that keeps a ledger, with its rows and its table.
    fn job(&self, workload: &str, options: &Value) -> Value {
        let path = self.0.join("books").display().to_string();
        let job = json!({
            "url": self.url(), "workload": workload, "options": options, "clients": 2, "duration_s": 600.0,
            "operations": 200, "ledger": {"path": path, "cut": 7},
        });
        prepare(&job.to_string(), &mut watch()).unwrap();
        query(&self.url(), TABLE, &mut watch()).unwrap();
        job
    }

    /// Client, entry and time of each entry, as they follow one another.
    fn entries(&self) -> Vec<(u64, u64, u64)> {
        let bytes = std::fs::read(self.0.join("books")).unwrap();
        assert_eq!(bytes.len() % 24, 0);
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        let entry = |bytes: &[u8]| (number(&bytes[..8]), number(&bytes[8..16]), number(&bytes[16..]));
        bytes.chunks(24).map(entry).collect()
    }

    fn rows(&self) -> Vec<(u64, u64)> {
        let answer =
            query(&self.url(), "SELECT client, entry FROM dyno_ledger WHERE cut = 7", &mut watch()).unwrap();
        let row = |row: &Value| (row[0].as_u64().unwrap(), row[1].as_u64().unwrap());
        answer["rows"].as_array().unwrap().iter().map(row).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn watch() -> Watch<'static> {
    Watch { interrupted: Box::leak(Box::new(|| false)), on_second: None, next_slice: None }
}

#[test]
fn each_acknowledged_transaction_is_an_entry_and_a_row() {
    let folder = Folder::new("tpcb");
    let job = folder.job("tpcb", &json!({"scale": 1}));
    let tally = run(&job.to_string(), &mut watch()).unwrap();
    let (entries, rows) = (folder.entries(), folder.rows());
    assert!(!entries.is_empty());
    assert_eq!(tally["acknowledged"], entries.len());
    let entered: BTreeSet<(u64, u64)> = entries.iter().map(|&(client, entry, _)| (client, entry)).collect();
    assert_eq!(entered, rows.iter().copied().collect());
    assert_eq!((entered.len(), entered.len()), (entries.len(), rows.len()), "none stands twice");
    for client in 0..2 {
        let mine: Vec<_> = entries.iter().filter(|entry| entry.0 == client).collect();
        assert!(mine.windows(2).all(|two| two[0].1 < two[1].1 && two[0].2 <= two[1].2));
    }
}

#[test]
fn what_only_reads_or_is_rolled_back_has_no_entry() {
    let folder = Folder::new("tpcc");
    let job = folder.job("tpcc", &json!({"warehouses": 1}));
    let tally = run(&job.to_string(), &mut watch()).unwrap();
    let written: u64 = ["new_order", "payment", "delivery"]
        .iter()
        .map(|kind| tally["by_transaction"][kind]["acknowledged"].as_u64().unwrap())
        .sum();
    assert!(written > 0);
    assert_eq!((folder.entries().len() as u64, folder.rows().len() as u64), (written, written));
}

#[test]
fn a_workload_without_a_ledger_says_so() {
    let folder = Folder::new("none");
    let job = folder.job("point_select", &json!({"tables": 1, "table_size": 100}));
    let error = run(&job.to_string(), &mut watch()).err().unwrap();
    assert!(error.message().contains("keeps no ledger"), "{error}");
}
