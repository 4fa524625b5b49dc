//! What a run does and counts where it does not go smoothly, on SQLite: statements that meet a lock, clients that are
//! dropped while they sleep, a thread that ends before the others, a host that gives no thread.

use crate::acknowledged::acknowledged;
use dyno_driver::{check, prepare, query, run, Watch};
use serde_json::{json, Value};
use std::cell::Cell;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A database whose writers do not wait for one another.
struct Database(PathBuf);

impl Database {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("dyno-runs-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let database = Database(folder);
        database.number("PRAGMA user_version");
        database
    }

    fn url(&self) -> String {
        let file = self.0.join("test.db");
        format!("sqlite://{}?journal_mode=wal&synchronous=off&busy_timeout=0", file.display())
    }

    fn number(&self, sql: &str) -> i64 {
        let found = query(&self.url(), sql, &mut watch(&mut || false)).unwrap();
        let cell = &found["rows"][0][0];
        cell.as_i64().or_else(|| cell.as_str()?.parse().ok()).unwrap_or_default()
    }

    /// Tables of these names with a number in each row.
    fn tables(&self, names: &[&str]) {
        for name in names {
            self.number(&format!("CREATE TABLE {name} (n INTEGER)"));
        }
    }

    fn script(&self, name: &str, text: &str) -> String {
        let file = self.0.join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    }

    fn job(&self, workload: &str, more: Value) -> String {
        let mut job = json!({"url": self.url(), "workload": workload, "clients": 4, "duration_s": 1.0});
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        job.to_string()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn watch<'a>(interrupted: &'a mut dyn FnMut() -> bool) -> Watch<'a> {
    Watch { interrupted, on_second: None, next_slice: None }
}

fn drive(job: &str) -> Value {
    run(job, &mut watch(&mut || false)).unwrap_or_else(|error| panic!("{job}: {error}"))
}

/// Runs of one job up to the first that counted `what`: whether clients meet within a second is up to the machine.
fn drive_until(job: &str, what: &str) -> Vec<Value> {
    let mut tallies = Vec::new();
    while tallies.last().is_none_or(|tally: &Value| tally[what].as_i64() == Some(0)) {
        assert!(tallies.len() < 20, "{what} are 0 in each run: {tallies:?}");
        tallies.push(drive(job));
    }
    tallies
}

/// How many transactions runs may have committed: at least those acknowledged, at most the unknown ones as well.
fn committed(tallies: &[Value]) -> std::ops::RangeInclusive<i64> {
    let count = |name: &str| tallies.iter().map(|tally| tally[name].as_i64().unwrap()).sum::<i64>();
    count("acknowledged")..=count("acknowledged") + count("unknown")
}

#[test]
fn a_statement_that_has_committed_is_not_repeated() {
    let database = Database::new("script");
    database.tables(&["a", "b", "c"]);
    let script = database.script(
        "t.pgbench",
        "INSERT INTO a VALUES (1);\nINSERT INTO b VALUES (1);\nBEGIN;\nINSERT INTO c VALUES (1);\n\
         INSERT INTO c VALUES (2);\nCOMMIT;\n",
    );
    let tallies = drive_until(&database.job(&script, json!({})), "retries");
    for sql in ["SELECT COUNT(*) FROM a", "SELECT COUNT(*) FROM b", "SELECT COUNT(*) / 2 FROM c"] {
        let rows = database.number(sql);
        assert!(committed(&tallies).contains(&rows), "{sql}: {rows} rows, {tallies:?}");
    }
}

/// What it counts up goes on where it was, whatever was tried again.
#[test]
fn a_variable_that_a_retried_transaction_counts_up_is_counted_once() {
    let database = Database::new("variable");
    database.tables(&["a", "b"]);
    let script = database.script(
        "t.pgbench",
        "\\set n :n + 1\nINSERT INTO a VALUES (:n);\n\\set m :n\nBEGIN;\n\\set m :m + 1\n\
         INSERT INTO b VALUES (:m - :n);\nCOMMIT;\n",
    );
    let tally = drive(&database.job(&script, json!({"options": {"variables": "n=0"}})));
    assert!(tally["retries"].as_i64().unwrap() > 0, "{tally}");
    assert_eq!(database.number("SELECT COUNT(*) FROM b WHERE n <> 1"), 0);
    // Each of the clients has counted from 1 without a gap.
    assert_eq!(database.number("SELECT COUNT(*) - SUM(n = 1) FROM a WHERE n <= 1"), 0);
    assert_eq!(database.number("SELECT COUNT(*) FROM (SELECT n FROM a GROUP BY n HAVING COUNT(*) > 4)"), 0);
}

#[test]
fn an_event_of_lua_that_has_committed_in_part_is_not_begun_anew() {
    let database = Database::new("lua");
    database.tables(&["a", "b"]);
    let script = database.script(
        "t.lua",
        "function thread_init() con = sysbench.sql.driver():connect() end
         function event()
           con:query('INSERT INTO a VALUES (1)')
           con:query('INSERT INTO b VALUES (1)')
         end",
    );
    // An event that was committed in part is unknown.
    let tallies = drive_until(&database.job(&script, json!({})), "unknown");
    for sql in ["SELECT COUNT(*) FROM a", "SELECT COUNT(*) FROM b"] {
        let rows = database.number(sql);
        assert!(committed(&tallies).contains(&rows), "{sql}: {rows} rows, {tallies:?}");
    }
}

#[test]
fn statements_of_oltp_that_commit_by_themselves_are_not_repeated() {
    let database = Database::new("oltp");
    let updates = json!({"table_size": 100, "skip_trx": true, "index_updates": 2, "non_index_updates": 0,
                         "delete_inserts": 1});
    let job = database.job("write_only", json!({"options": updates, "clients": 4}));
    prepare(&job, &mut watch(&mut || false)).unwrap();
    // Rows that come back have another k: only the updates are counted.
    database.number("CREATE TABLE updates (n INTEGER)");
    database.number("CREATE TRIGGER t AFTER UPDATE ON sbtest1 BEGIN INSERT INTO updates VALUES (1); END");
    let tallies = drive_until(&job, "retries");
    let updated = database.number("SELECT COUNT(*) FROM updates");
    let (least, most) = (*committed(&tallies).start(), *committed(&tallies).end());
    assert!((0..=2 * most).contains(&updated), "{updated} updates: {tallies:?}");
    assert!(least > 0);
    let told = acknowledged(&tallies);
    let invariants = check(&job, Some(&told), &mut watch(&mut || false)).unwrap();
    assert_eq!(invariants[0]["holds"], true, "{invariants} {tallies:?}");
}

#[test]
fn clients_that_are_dropped_while_they_sleep_count_what_they_have_used() {
    let database = Database::new("dropped");
    let script = database.script("t.sql", "SELECT 1;\n");
    let think = json!({"kind": "closed", "think_time": 0.02});
    let tally = drive(&database.job(&script, json!({"operations": 200, "load": think, "duration_s": 60.0})));
    assert_eq!((&tally["operations"], &tally["rows_read"]), (&json!(200), &json!(200)), "{tally}");
    assert!(tally["engine_cpu_s"].is_number(), "{tally}");
}

/// One client says after its first event that it was the last. The seconds of the others are shown all the same: the run
/// is interrupted when its second one is.
#[test]
fn seconds_are_shown_once_all_clients_of_a_thread_are_gone() {
    let database = Database::new("seconds");
    let script = database.script(
        "t.lua",
        "function thread_init() con = sysbench.sql.driver():connect() end
         function event() con:query('SELECT 1') return sysbench.tid == 0 or nil end",
    );
    let job = database.job(&script, json!({"clients": 2, "duration_s": 30.0}));
    let seen = Cell::new(-1);
    let mut interrupted = || seen.get() >= 1;
    let mut on_second = |second: &Value| seen.set(second["second"].as_i64().unwrap());
    let mut watch =
        Watch { interrupted: &mut interrupted, on_second: Some(&mut on_second), next_slice: None };
    assert_eq!(run(&job, &mut watch).unwrap()["interrupted"], true);
}

const ALONE: &str = "DYNO_TEST_WITHOUT_THREADS";
/// An account that nobody has: root itself may begin as many threads as it likes.
const NOBODY: u32 = 54_321;

#[test]
fn a_thread_that_the_host_does_not_give_ends_the_run_and_names_the_limit() {
    if std::env::var_os(ALONE).is_some() {
        return without_threads();
    }
    let name = "runs::a_thread_that_the_host_does_not_give_ends_the_run_and_names_the_limit";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(ALONE, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > until => {
                child.kill().unwrap();
                panic!("the run waits for the threads that could not be begun");
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    assert!(status.success(), "{status}");
}

/// A run of more clients than this account may have threads.
fn without_threads() {
    use std::os::unix::fs::PermissionsExt;
    let database = Database::new("threads");
    let everyone = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&database.0, everyone.clone()).unwrap();
    let script = database.script("t.sql", "SELECT 1;\n");
    std::fs::set_permissions(database.0.join("test.db"), everyone).unwrap();
    let limit = libc::rlimit { rlim_cur: 20, rlim_max: 20 };
    // SAFETY: setrlimit(2) reads one limit; setuid(2) takes a number. It fails where this is not root, whose limit holds
    // then for an account that has threads enough.
    unsafe {
        assert_eq!(libc::setrlimit(libc::RLIMIT_NPROC, &limit), 0);
        libc::setuid(NOBODY);
    }
    let error = run(&database.job(&script, json!({"clients": 100})), &mut watch(&mut || false)).unwrap_err();
    assert!(error.message().contains("ulimit -u"), "{error}");
    assert!(error.message().contains("of 100 could not be begun"), "{error}");
}
