//! Every workload of the OLTP family and tpcb from prepare to check, on SQLite and on the servers that the environment
//! names (`DYNO_TEST_MYSQL_URL`, `DYNO_TEST_POSTGRESQL_URL`), whose databases the tests may make tables in.

use crate::acknowledged::acknowledged;
use dyno_driver::{check, cleanup, prepare, query, run, Kind, Watch};
use serde_json::{json, Value};
use std::path::PathBuf;

/// A database, and the file that must go afterwards.
struct Place {
    url: String,
    file: Option<PathBuf>,
}

impl Place {
    /// The workloads' tables have one name on a server, so servers are for the one test that asks for them.
    fn all(name: &str, servers: bool) -> Vec<Place> {
        let file = std::env::temp_dir().join(format!("dyno-{name}-{}.db", std::process::id()));
        let sqlite = format!("sqlite://{}?journal_mode=wal&synchronous=off", file.display());
        let mut places = vec![Place { url: sqlite, file: Some(file) }];
        for variable in ["DYNO_TEST_MYSQL_URL", "DYNO_TEST_POSTGRESQL_URL"] {
            match std::env::var(variable) {
                Ok(url) if servers => places.push(Place { url, file: None }),
                Ok(_) => {}
                Err(_) => println!("skipped: {variable} names no server"),
            }
        }
        places
    }

    fn job(&self, workload: &str, options: &Value, more: &Value) -> String {
        // One client on SQLite: it has one writer, and what is tested here is the workload.
        let clients = if self.file.is_some() { 1 } else { 4 };
        let mut job = json!({"url": self.url, "workload": workload, "options": options, "clients": clients});
        for (name, value) in more.as_object().into_iter().flatten() {
            job[name] = value.clone();
        }
        job.to_string()
    }

    fn query(&self, sql: &str) {
        query(&self.url, sql, &mut watch(&mut || false)).unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(file) = &self.file else { return };
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
        }
    }
}

fn watch<'a>(interrupted: &'a mut dyn FnMut() -> bool) -> Watch<'a> {
    Watch { interrupted, on_second: None, next_slice: None }
}

/// Name, whether it holds, and value.
fn invariants(job: &str, tallies: &[Value]) -> Vec<(String, bool, Option<String>)> {
    let found = check(job, Some(&acknowledged(tallies)), &mut watch(&mut || false)).unwrap();
    let invariants = found.as_array().unwrap().iter().map(|invariant| {
        println!("{invariant}");
        let value = invariant["value"].as_str().map(str::to_owned);
        (invariant["name"].as_str().unwrap().to_owned(), invariant["holds"].as_bool().unwrap(), value)
    });
    invariants.collect()
}

fn all_hold(job: &str, tallies: &[Value]) -> bool {
    let invariants = invariants(job, tallies);
    assert!(!invariants.is_empty(), "{job} checks nothing");
    invariants.iter().all(|(_, holds, _)| *holds)
}

const OPERATIONS: u64 = 200;

/// Prepares, runs twice and checks; gives the job and the tallies. The data stays.
fn from_prepare_to_check(place: &Place, workload: &str, options: &Value) -> (String, Vec<Value>) {
    let job = place.job(workload, options, &json!({"operations": OPERATIONS, "duration_s": 60}));
    prepare(&job, &mut watch(&mut || false)).unwrap_or_else(|error| panic!("{job}: {error}"));
    let once = || run(&job, &mut watch(&mut || false)).unwrap_or_else(|error| panic!("{job}: {error}"));
    let tallies: Vec<Value> = (0..2).map(|_| once()).collect();
    for tally in &tallies {
        assert_eq!(tally["operations"], OPERATIONS, "{tally}");
        assert_eq!((&tally["unknown"], &tally["latency_us"]["count"]), (&json!(0), &json!(OPERATIONS)));
    }
    assert!(all_hold(&job, &tallies), "{job}");
    (job, tallies)
}

fn clean(job: &str) {
    cleanup(job, &mut watch(&mut || false)).unwrap();
    // What is not there any more is no error either.
    cleanup(job, &mut watch(&mut || false)).unwrap();
}

#[test]
fn all_run_and_all_checks_can_fail() {
    for place in Place::all("all", true) {
        writers_keep_the_number_of_rows(&place);
        readers_change_nothing(&place);
        a_load_leaves_nothing_for_later(&place);
        inserts_and_deletes_move_the_number_of_rows(&place);
        tpcb_balances(&place);
        what_was_never_prepared_is_named(&place);
        data_of_another_shape_are_refused(&place);
        a_row_that_is_gone_is_an_error_and_not_speed(&place);
        a_later_run_is_judged_by_what_it_found(&place);
        a_run_after_one_of_another_kind_is_not_found_hurt(&place);
    }
}

/// Deletes leave holes that inserts do not fill, and `simple_update` moves accounts without tellers.
fn a_run_after_one_of_another_kind_is_not_found_hurt(place: &Place) {
    let size = json!({"table_size": 300});
    for (first, then, options, simple, hurt_by) in [
        ("delete", "insert", &size, &size, "DELETE FROM sbtest1 WHERE id >= 300"),
        (
            "insert",
            "delete",
            &size,
            &size,
            "INSERT INTO sbtest1 (id, k, c, pad) SELECT 5000 + id, k, c, pad FROM sbtest1",
        ),
        (
            "tpcb",
            "tpcb",
            &json!({}),
            &json!({"simple_update": true}),
            "UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 1",
        ),
    ] {
        let of =
            |workload, options| place.job(workload, options, &json!({"operations": 40, "duration_s": 60}));
        let (before, job) = (of(first, simple), of(then, options));
        prepare(&job, &mut watch(&mut || false)).unwrap();
        run(&before, &mut watch(&mut || false)).unwrap();
        // The last id shows that these are the data of the run.
        if first == "delete" {
            place.query("DELETE FROM sbtest1 WHERE id = 300");
            place.query("INSERT INTO sbtest1 (id, k, c, pad) VALUES (300, 1, 'c', 'p')");
        }
        let tally = run(&job, &mut watch(&mut || false)).unwrap();
        assert_eq!(tally["operations"], 40, "{tally}");
        assert!(all_hold(&job, std::slice::from_ref(&tally)), "{then} after {first}");
        place.query(hurt_by);
        assert!(!all_hold(&job, &[tally]), "{then} did not see what is wrong");
        clean(&job);
    }
}

fn data_of_another_shape_are_refused(place: &Place) {
    for (workload, prepared, run_with, said) in [
        ("tpcb", json!({"scale": 1}), json!({"scale": 7}), "prepared with scale 1, the run has scale 7"),
        ("point_select", json!({"table_size": 100}), json!({"table_size": 101}), "sbtest1 end at id 100"),
        (
            "read_write",
            json!({"tables": 1, "table_size": 100}),
            json!({"tables": 2, "table_size": 100}),
            "sbtest2",
        ),
        ("delete", json!({"table_size": 100}), json!({"table_size": 1000}), "end at id 100"),
    ] {
        let job = |options| place.job(workload, options, &json!({"operations": 5}));
        prepare(&job(&prepared), &mut watch(&mut || false)).unwrap();
        let error = run(&job(&run_with), &mut watch(&mut || false)).unwrap_err();
        assert!(error.message().contains(said), "{workload}: {error}");
        assert!(error.hint_text().contains("prepare"), "{workload}: {error}");
        run(&job(&prepared), &mut watch(&mut || false)).unwrap();
        clean(&job(&prepared));
    }
}

fn a_row_that_is_gone_is_an_error_and_not_speed(place: &Place) {
    let options = json!({"table_size": 2});
    for workload in ["point_select", "update_index", "update_non_index"] {
        let job = place.job(workload, &options, &json!({"operations": 100}));
        prepare(&job, &mut watch(&mut || false)).unwrap();
        place.query("DELETE FROM sbtest1 WHERE id = 1");
        let tally = run(&job, &mut watch(&mut || false)).unwrap();
        let (found, missed) = (&tally["operations"], &tally["errors"]["row missing"]);
        assert_eq!(found.as_u64().unwrap() + missed.as_u64().unwrap(), 100, "{workload}: {tally}");
        assert!(missed.as_u64().unwrap() > 10 && found.as_u64().unwrap() > 10, "{workload}: {tally}");
        clean(&job);
    }
    let job = place.job("tpcb", &json!({}), &json!({"operations": 50}));
    prepare(&job, &mut watch(&mut || false)).unwrap();
    place.query("DELETE FROM pgbench_tellers WHERE tid <= 5");
    let tally = run(&job, &mut watch(&mut || false)).unwrap();
    assert!(tally["errors"]["row missing"].as_u64().unwrap() > 5, "{tally}");
    assert!(tally["operations"].as_u64().unwrap() > 5, "{tally}");
    clean(&job);
}

fn a_later_run_is_judged_by_what_it_found(place: &Place) {
    for (workload, options) in [
        ("tpcb", json!({})),
        ("insert", json!({"tables": 2, "table_size": 1000})),
        ("bulk_insert", json!({"tables": 2, "bulk_rows": 3})),
        ("delete", json!({"tables": 2, "table_size": 1000})),
    ] {
        let (job, tallies) = from_prepare_to_check(place, workload, &options);
        assert!(all_hold(&job, &tallies[1..]), "{workload}: the second run alone was found hurt");
        clean(&job);
    }
}

fn writers_keep_the_number_of_rows(place: &Place) {
    for workload in ["update_index", "update_non_index", "write_only", "read_write"] {
        let (job, tallies) =
            from_prepare_to_check(place, workload, &json!({"tables": 2, "table_size": 1000}));
        place.query("DELETE FROM sbtest2 WHERE id = 7");
        assert!(!all_hold(&job, &tallies), "{workload} did not miss a row");
        clean(&job);
    }
}

fn a_load_leaves_nothing_for_later(place: &Place) {
    if !place.url.starts_with("postgresql") {
        return;
    }
    let job = place.job("point_select", &json!({"table_size": 1000}), &json!({}));
    prepare(&job, &mut watch(&mut || false)).unwrap();
    let sql = "SELECT relallvisible > 0 AND reltuples = 1000 FROM pg_class WHERE relname = 'sbtest1'";
    let found = query(&place.url, sql, &mut watch(&mut || false)).unwrap();
    assert!(["t", "true", "1"].contains(&found["rows"][0][0].to_string().trim_matches('"')), "{found}");
    clean(&job);
}

fn readers_change_nothing(place: &Place) {
    let options = json!({"tables": 2, "table_size": 1000});
    for workload in ["point_select", "read_only", "select_random_points", "select_random_ranges"] {
        let (job, tallies) = from_prepare_to_check(place, workload, &options);
        assert!(tallies[0]["rows_read"].as_u64().unwrap() >= OPERATIONS, "{workload} read no rows");
        let baseline = invariants(&job, &tallies).into_iter().find_map(|(_, _, value)| value).unwrap();
        let again = place.job(workload, &options, &json!({"baseline": baseline}));
        assert!(all_hold(&again, &tallies));
        place.query("UPDATE sbtest1 SET k = k + 1 WHERE id = 7");
        assert!(!all_hold(&again, &tallies), "{workload} did not see a row change");
        clean(&job);
    }
}

fn inserts_and_deletes_move_the_number_of_rows(place: &Place) {
    let small = json!({"tables": 2, "table_size": 1000});
    for (workload, options) in [
        ("insert", small.clone()),
        ("bulk_insert", json!({"tables": 2})),
        ("bulk_insert", json!({"tables": 2, "bulk_rows": 30})),
    ] {
        let (job, tallies) = from_prepare_to_check(place, workload, &options);
        place.query("DELETE FROM sbtest1 WHERE id = 1");
        assert!(!all_hold(&job, &tallies), "{workload} did not miss a row");
        clean(&job);
    }
    let (job, tallies) = from_prepare_to_check(place, "delete", &small);
    place.query("INSERT INTO sbtest1 (id, k, c, pad) SELECT 5000 + id, k, c, pad FROM sbtest1");
    assert!(!all_hold(&job, &tallies), "delete did not see rows appear");
    clean(&job);
}

fn tpcb_balances(place: &Place) {
    for options in [json!({}), json!({"simple_update": true}), json!({"select_only": true})] {
        let (job, tallies) = from_prepare_to_check(place, "tpcb", &options);
        place.query("UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = 1");
        assert!(!all_hold(&job, &tallies), "{options}: an account was changed");
        place.query("UPDATE pgbench_accounts SET abalance = abalance - 1 WHERE aid = 1");
        if options != json!({"select_only": true}) {
            assert!(!all_hold(&job, &tallies[..1]), "{options}: the history holds more than was told");
        }
        clean(&job);
    }
}

fn what_was_never_prepared_is_named(place: &Place) {
    let job = place.job("tpcb", &json!({}), &json!({"duration_s": 1}));
    clean(&job);
    let error = run(&job, &mut watch(&mut || false)).unwrap_err();
    assert_ne!(error.kind(), Kind::Internal);
    assert!(error.message().contains("pgbench_branches"), "{error}");
    assert!(error.hint_text().contains("prepare"), "{error}");
}

#[test]
fn every_distribution_runs() {
    for place in Place::all("distributions", false) {
        for distribution in ["uniform", "special", "gaussian", "pareto", "zipfian"] {
            let options = json!({"table_size": 500, "distribution": distribution});
            let (job, _) = from_prepare_to_check(&place, "point_select", &options);
            clean(&job);
        }
    }
}

#[test]
fn an_interrupt_ends_a_run_and_keeps_what_was_counted() {
    for place in Place::all("interrupt", false) {
        let job = place.job("point_select", &json!({"table_size": 100}), &json!({"duration_s": 600}));
        prepare(&job, &mut watch(&mut || false)).unwrap();
        let mut asked = 0;
        let mut interrupted = || {
            asked += 1;
            asked > 20
        };
        let tally = run(&job, &mut watch(&mut interrupted)).unwrap();
        assert_eq!(tally["interrupted"], true);
        assert!(tally["operations"].as_u64().unwrap() > 0 && tally["duration_s"].as_f64().unwrap() < 300.0);
    }
}

#[test]
fn an_open_loop_offers_its_rate_on_a_real_engine() {
    for place in Place::all("open", false) {
        let load = json!({"kind": "open", "rate_per_s": 200, "arrivals": "uniform"});
        let more = json!({"duration_s": 1, "load": load});
        let job = place.job("point_select", &json!({"table_size": 100}), &more);
        prepare(&job, &mut watch(&mut || false)).unwrap();
        let tally = run(&job, &mut watch(&mut || false)).unwrap();
        assert_eq!(
            (&tally["open_loop"]["offered_per_s"], &tally["duration_s"]),
            (&json!(200.0), &json!(1.0))
        );
        assert!(tally["operations"].as_u64().unwrap() <= 200, "more was done than was offered");
    }
}
