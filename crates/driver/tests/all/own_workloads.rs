//! Workloads from files, from the first table to the last check, on a real SQLite.

use crate::acknowledged::acknowledged;
use dyno_driver::{Error, Watch};
use serde_json::{json, Value};
use std::path::{Path, PathBuf};

/// A folder with a database and a script in it, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("dyno-own-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Place(folder)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    }

    fn job(&self, workload: &str, options: Value) -> String {
        let url = format!("sqlite://{}", self.0.join("database").display());
        json!({"url": url, "workload": workload, "options": options, "operations": 300, "duration_s": 60.0})
            .to_string()
    }

    fn query(&self, sql: &str) -> Value {
        let url = format!("sqlite://{}", self.0.join("database").display());
        with_watch(|watch| dyno_driver::query(&url, sql, watch)).unwrap()["rows"].clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn with_watch<T>(task: impl FnOnce(&mut Watch<'_>) -> T) -> T {
    task(&mut Watch { interrupted: &mut || false, on_second: None, next_slice: None })
}

fn prepare(job: &str) -> Result<Value, Error> {
    with_watch(|watch| dyno_driver::prepare(job, watch))
}

fn run(job: &str) -> Result<Value, Error> {
    with_watch(|watch| dyno_driver::run(job, watch))
}

fn check(job: &str, tally: Option<&Value>) -> Result<Value, Error> {
    let told = tally.map(|tally| acknowledged(std::slice::from_ref(tally)));
    with_watch(|watch| dyno_driver::check(job, told.as_deref(), watch))
}

fn names(invariants: &Value) -> Vec<&str> {
    invariants.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect()
}

fn shop() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/shop.toml").to_string_lossy().into_owned()
}

#[test]
fn the_shop_of_the_documentation_adds_up() {
    let place = Place::new("shop");
    let job = place.job(&shop(), json!({"customers": 500, "articles": 20, "hot": 1.1}));
    assert_eq!(prepare(&job).unwrap()["rows"], 520);
    assert_eq!(place.query("SELECT COUNT(*), MIN(id), MAX(id) FROM customer"), json!([[500, 1, 500]]));
    let tally = run(&job).unwrap();
    assert_eq!((&tally["operations"], &tally["errors"]), (&json!(300), &json!({})), "{tally}");
    let buys = tally["by_transaction"]["buy"]["operations"].as_u64().unwrap();
    assert!((200..280).contains(&buys), "8 of 10 are to buy: {buys} of 300");
    let invariants = check(&job, Some(&tally)).unwrap();
    assert_eq!(names(&invariants), ["money_adds_up", "stock_adds_up", "purchases_complete"]);
    assert!(invariants.as_array().unwrap().iter().all(|it| it["holds"] == true), "{invariants}");
    // Without a run, what needs one is left out.
    assert_eq!(names(&check(&job, None).unwrap()), ["money_adds_up", "stock_adds_up"]);

    place.query("UPDATE customer SET spent = spent + 1 WHERE id = 7");
    let invariants = check(&job, None).unwrap();
    assert_eq!(invariants[0]["holds"], false, "{invariants}");
    with_watch(|watch| dyno_driver::cleanup(&job, watch)).unwrap();
    assert_eq!(place.query("SELECT COUNT(*) FROM sqlite_master"), json!([[0]]));
}

#[test]
fn a_second_run_goes_on_with_its_own_sequence() {
    let place = Place::new("sequence");
    let job = place.job(&shop(), json!({"customers": 50, "articles": 20}));
    prepare(&job).unwrap();
    for _ in 0..2 {
        assert_eq!(run(&job).unwrap()["errors"], json!({}));
    }
}

#[test]
fn a_client_does_not_draw_again_what_was_loaded() {
    let place = Place::new("streams");
    let script = r#"
        [setup]
        statements = ["CREATE TABLE loaded (x BIGINT)", "CREATE TABLE drawn (x BIGINT)"]
        [[tables]]
        name = "loaded"
        rows = 1000
        columns = { x = "uniform(1, 1000000000000)" }
        [[transactions]]
        name = "draw"
        values = { x = "uniform(1, 1000000000000)" }
        statements = ["INSERT INTO drawn VALUES (:x)"]
    "#;
    let job = place.job(&place.file("streams.toml", script), json!({}));
    prepare(&job).unwrap();
    run(&job).unwrap();
    let both = place.query("SELECT COUNT(*) FROM drawn JOIN loaded USING (x)");
    assert_eq!((place.query("SELECT COUNT(*) FROM drawn"), both), (json!([[300]]), json!([[0]])));
}

/// As `pgbench --show-script=tpcb-like` prints it.
const TPCB_LIKE: &str = "-- tpcb-like: <builtin: TPC-B (sort of)>
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

#[test]
fn the_built_in_script_of_pgbench_runs_as_it_is_and_balances() {
    let place = Place::new("tpcb");
    let tpcb = place.job("tpcb", json!({}));
    prepare(&tpcb).unwrap();
    for mode in ["auto", "simple"] {
        let job = place.job(&place.file("tpcb.pgbench", TPCB_LIKE), json!({"mode": mode}));
        let tally = run(&job).unwrap();
        assert_eq!((&tally["operations"], &tally["errors"]), (&json!(300), &json!({})), "{tally}");
    }
    let invariants = check(&tpcb, None).unwrap();
    assert!(invariants.as_array().unwrap().iter().all(|it| it["holds"] == true), "{invariants}");
    assert_eq!(place.query("SELECT COUNT(*) FROM pgbench_history"), json!([[600]]));
}

#[test]
fn branches_captures_and_names_in_the_text_do_what_they_say() {
    let place = Place::new("branches");
    let setup = place.file(
        "setup.sql",
        "CREATE TABLE seen0 (x INTEGER); CREATE TABLE seen1 (x INTEGER, y TEXT); -- end\n",
    );
    let script = "SELECT 40 AS forty, 'it''s' AS word \\gset a_\n\\set n :a_forty + 2\n\
        \\if :n = 42\n\\set odd 1\n\\elif :n / 0\n\\set odd 2\n\\else\n\\set odd 0\n\\endif\n\
        INSERT INTO seen:odd VALUES (:n, :a_word);\nSELECT x FROM seen0 \\aset\n\\setrandom r 5 5\n\\sleep 1us\n\
        INSERT INTO seen1 VALUES (:r, 'from :odd to :nowhere, :: and :n');\n";
    let mut job: Value =
        serde_json::from_str(&place.job(&place.file("branches.sql", script), json!({"setup": setup})))
            .unwrap();
    job["operations"] = json!(2);
    prepare(&job.to_string()).unwrap();
    let tally = run(&job.to_string()).unwrap();
    assert_eq!(tally["errors"], json!({}), "{tally}");
    let row = |x: i64, y: &str| json!([x, y]);
    let told = "from 1 to :nowhere, :: and 42";
    let expected = [row(42, "it's"), row(5, told), row(42, "it's"), row(5, told)];
    assert_eq!(place.query("SELECT x, y FROM seen1"), json!(expected));
}

#[test]
fn mistakes_at_run_time_name_their_line() {
    let place = Place::new("lines");
    let broken = place.job(&place.file("broken.sql", "\\set x 0\nSELECT 1;\n\\set y 1 / :x\n"), json!({}));
    let error = run(&broken).unwrap_err();
    assert!(error.message().contains("broken.sql:3: division by zero"), "{error}");
    let unknown = place.job(&place.file("unknown.sql", "SELECT 1;\nSELEKT 2;\n"), json!({}));
    let error = run(&unknown).unwrap_err();
    assert!(error.message().contains("unknown.sql:2: "), "{error}");
    let open = place.job(&place.file("open.sql", "BEGIN;\nSELECT 1;\n"), json!({}));
    let error = run(&open).unwrap_err();
    assert!(error.message().contains("the script ends within a transaction"), "{error}");
}

#[test]
fn all_mistakes_of_a_file_are_told_at_once() {
    let place = Place::new("mistakes");
    let toml = "[option]\nrows = 5\n[[tables]]\nname = 't'\nrows = ':row'\ncolumns = { id = 'rwo()' }\n\
        [[transactions]]\nname = 'a'\nwieght = 2\nthink_time = '5 minutes'\nvalues = { x = 'uniform(1)' }\n\
        statements = ['SELECT :y', { sql = 'SELECT 1', sleep = '1ms' }]\n[[invariants]]\nname = 'i'\nquery = 'SELECT 1'\n";
    let error = run(&place.job(&place.file("m.toml", toml), json!({}))).unwrap_err();
    let text = error.message();
    for told in [
        "9 mistakes:",
        "m.toml:1: unknown key of a workload's file \"option\" (did you mean options?",
        "m.toml:5: nothing sets the variable :row",
        "m.toml:6: there is no function rwo in \"rwo()\" (did you mean row?",
        "m.toml:9: unknown key of transactions \"wieght\" (did you mean weight?",
        "m.toml:10: think_time cannot be \"5 minutes\"",
        "m.toml:11: uniform cannot take 1 arguments in \"uniform(1)\" (write uniform(low, high))",
        "m.toml:12: a statement does not say what to do",
        "m.toml:12: nothing sets the variable :y",
        "m.toml:13: invariants has no expect",
    ] {
        assert!(text.contains(told), "{told:?} is not in {text}");
    }
    let bare = toml.replace("':row'", "'rows'");
    let error = run(&place.job(&place.file("bare.toml", &bare), json!({}))).unwrap_err();
    let told = "bare.toml:5: there is no function rows in \"rows\" (a variable begins with a colon: :rows)";
    assert!(error.message().contains(told), "{}", error.message());
    let script = "\\sett x 1\n\\set y random(1)\n\\if 1\n\\shell ls\n\\sleep 5 hours\nSELECT :z, ':q' \\; SELECT 1;\n\\set a 1 +\n";
    let error = run(&place.job(&place.file("m.pgbench", script), json!({}))).unwrap_err();
    let text = error.message();
    for told in [
        "8 mistakes:",
        "m.pgbench:1: there is no command \\sett (did you mean set?",
        "m.pgbench:2: random cannot take 1 arguments (write random(low, high))",
        "m.pgbench:3: \\if has no \\endif",
        "m.pgbench:4: \\shell is not supported",
        "m.pgbench:5: \"hours\" is no unit of time",
        "m.pgbench:6: statements joined by \\; are not supported",
        "m.pgbench:6: nothing sets the variable :z",
        "m.pgbench:7: a value is expected here, not the end",
    ] {
        assert!(text.contains(told), "{told:?} is not in {text}");
    }
}

fn review(file: &str) -> Value {
    dyno_driver::review("script", &json!({"file": file}).to_string(), "").unwrap()
}

/// Places, from the file's name on, and messages.
fn told(mistakes: &Value) -> Vec<String> {
    let one = |it: &Value| {
        let place = it["place"].as_str().unwrap().rsplit('/').next().unwrap_or_default();
        format!("{place}: {}", it["message"].as_str().unwrap())
    };
    mistakes.as_array().unwrap().iter().map(one).collect()
}

#[test]
fn a_review_tells_mistakes_one_by_one_and_the_users_sql() {
    let place = Place::new("review");
    let broken = review(&place.file("broken.pgbench", "\\sett x 1\n\\set y random(1)\nSELECT 1;\n"));
    assert_eq!(
        told(&broken["mistakes"]),
        ["broken.pgbench:1: there is no command \\sett", "broken.pgbench:2: random cannot take 1 arguments"]
    );
    assert_eq!(broken["own_sql"], "");
    let sound = review(&place.file("sound.sql", "SELECT 1;\nUPDATE t SET a = :scale;\n"));
    assert_eq!(sound["mistakes"], json!([]));
    let own_sql = sound["own_sql"].as_str().unwrap();
    assert!(own_sql.contains("sound.sql:1: SELECT 1\n"), "{own_sql}");
    assert!(own_sql.contains("sound.sql:2: UPDATE t SET a = ?\n"), "{own_sql}");
    let built_in = dyno_driver::review("tpcb", "{}", "").unwrap();
    assert_eq!(built_in, json!({"mistakes": [], "own_sql": ""}));
}

#[test]
fn what_is_certain_to_fail_is_told_before_the_run() {
    let place = Place::new("certain");
    let script = "\\set x 0\n\\set y 1 / :x\n\\set z random(5, 1)\nSELECT 7 AS x \\gset\n\\set q 1 / :z\n";
    assert_eq!(
        told(&review(&place.file("certain.pgbench", script))["mistakes"])
            .iter()
            .map(|it| it.split(' ').next().unwrap())
            .collect::<Vec<_>>(),
        ["certain.pgbench:2:", "certain.pgbench:3:"]
    );
    let guarded = "\\set x 0\n\\if :x > 0\n\\set y 1 / :x\n\\endif\nSELECT 1;\n";
    assert_eq!(review(&place.file("guarded.pgbench", guarded))["mistakes"], json!([]));
    let toml = "[setup]\nstatements = ['CREATE TABLE t (id INTEGER)']\n[[tables]]\nname = 't'\nrows = 5\n\
        columns = { id = 'uniform(5, 1)' }\n[[transactions]]\nname = 'a'\n\
        statements = [{ sql = 'SELECT 1', into = 'x' }, { sql = 'SELECT :y', values = { y = '1 / :x' } }]\n";
    let found = told(&review(&place.file("rows.toml", toml))["mistakes"]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("rows.toml:3: id of t: "), "{found:?}");
}

fn create(job: &str) -> Result<(), Error> {
    with_watch(|watch| dyno_driver::create(job, watch))
}

fn examine(job: &str) -> Value {
    with_watch(|watch| dyno_driver::examine(job, watch)).unwrap()
}

#[test]
fn a_server_judges_statements_and_carries_none_out() {
    let place = Place::new("examine");
    let toml = "[setup]\nstatements = ['CREATE TABLE t (id INTEGER)']\n[[tables]]\nname = 't'\nrows = 5\n\
        columns = { id = 'row()' }\n[[transactions]]\nname = 'a'\n\
        statements = ['DELETE FROM t',\n'SELECT id FROM u',\n'SELECT 1 FROM t_:scale',\n'SELECT b FROM t']\n";
    let job = place.job(&place.file("e.toml", toml), json!({}));
    create(&job).unwrap();
    place.query("INSERT INTO t VALUES (1)");
    let examined = examine(&job);
    assert_eq!((&examined["asked"], &examined["left_out"]), (&json!(4), &json!(1)));
    let refused = told(&examined["refused"]);
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused[0].contains("e.toml:10: ") && refused[0].contains("no such table: u"), "{refused:?}");
    assert!(refused[1].contains("e.toml:12: ") && refused[1].contains("no such column: b"), "{refused:?}");
    assert_eq!(place.query("SELECT COUNT(*) FROM t"), json!([[1]]));
    let broken = place.job(&place.file("s.toml", &toml.replace("id INTEGER", ",")), json!({}));
    let error = create(&broken).unwrap_err();
    assert!(error.message().contains("s.toml:2: "), "{error}");
}

#[test]
fn options_of_a_file_are_checked() {
    let place = Place::new("options");
    let error = run(&place.job(&shop(), json!({"custmers": 5}))).unwrap_err();
    assert!(error.to_string().contains("did you mean customers?"), "{error}");
    let error = run(&place.job(&shop(), json!({"customers": "many"}))).unwrap_err();
    assert!(error.to_string().contains("the option customers cannot be \"many\""), "{error}");
    let error = run(&place.job("nowhere.toml", json!({}))).unwrap_err();
    assert!(error.to_string().contains("nowhere.toml cannot be read"), "{error}");
}

const PICKS: &str = r#"
[setup]
statements = [
    "CREATE TABLE page (name TEXT)", "INSERT INTO page VALUES ('a'), ('b'), ('it''s'), (NULL)",
    "CREATE TABLE seen (name TEXT, number INTEGER)", "CREATE TABLE vacant (id INTEGER)",
]
[start]
statements = [
    { sql = "SELECT name FROM page ORDER BY name", list = "names" },
    { sql = "SELECT 7 UNION SELECT 9 ORDER BY 1", list = "numbers" },
]
[[transactions]]
name = "see"
values = { name = "pick(:names)", number = "pick(:numbers) + 1" }
statements = ["INSERT INTO seen VALUES (:name, :number)"]
"#;

#[test]
fn values_of_a_list_are_drawn_evenly_and_none_is_made_up() {
    let place = Place::new("picks");
    let job = place.job(&place.file("picks.toml", PICKS), json!({}));
    prepare(&job).unwrap();
    let tally = run(&job).unwrap();
    assert_eq!((&tally["operations"], &tally["errors"]), (&json!(300), &json!({})), "{tally}");
    let seen = place.query("SELECT name, COUNT(*) FROM seen GROUP BY name ORDER BY name");
    for (row, name) in seen.as_array().unwrap().iter().zip(["a", "b", "it's"]) {
        assert_eq!(row[0], name);
        assert!((70..130).contains(&row[1].as_u64().unwrap()), "100 of 300 are expected: {seen}");
    }
    assert_eq!(place.query("SELECT DISTINCT number FROM seen ORDER BY number"), json!([[8], [10]]));
}

#[test]
fn a_list_that_nothing_can_be_drawn_from_is_refused() {
    let place = Place::new("no-picks");
    for (asked, by, said) in [
        ("SELECT name FROM page ORDER BY name", "SELECT id FROM vacant", "the list has no value"),
        ("list = \"names\"", "into = \"names\"", "the variable :names holds no list"),
        ("pick(:names)", "pick('names')", "pick takes a list that [start] asks for"),
        ("sql = \"SELECT name", "request = \"GET /\", sql = \"SELECT name", "list belongs to sql"),
        ("pick(:names)", "pick(:nothing)", "nothing sets the variable :nothing"),
    ] {
        assert!(PICKS.contains(asked));
        let job = place.job(&place.file("picks.toml", &PICKS.replacen(asked, by, 1)), json!({}));
        let error = prepare(&job).and_then(|_| run(&job)).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}
