//! What SQLite's session does of its own: the library that it loads, the URL's pragmas, files that are none, locks, and
//! a file that may not grow.

use dyno_driver::io::{self, Backend};
use dyno_driver::session::sqlite::Sqlite;
use dyno_driver::session::{Collect, Session, Target, Value};
use dyno_driver::{Error, Kind, Result};
use std::future::Future;
use std::path::{Path, PathBuf};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("dyno-sqlite-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn url(&self, parameters: &str) -> String {
        format!("sqlite://{}?{parameters}", self.file().display())
    }

    fn file(&self) -> PathBuf {
        self.0.join("test.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    io::block_on(Backend::Blocking, future, || false).unwrap().expect("nobody interrupts a test")
}

async fn connect(url: &str) -> Result<Sqlite> {
    Sqlite::connect(&Target::parse(url).unwrap()).await
}

fn refusal(url: &str) -> Error {
    run(connect(url)).err().unwrap_or_else(|| panic!("{url} was taken"))
}

async fn ask(session: &mut Sqlite, sql: &str) -> String {
    let mut found = Collect::default();
    session.text(sql, &mut found).await.unwrap();
    found.rows[0][0].to_string()
}

#[test]
fn the_urls_pragmas_are_in_effect() {
    let folder = Folder::new("pragmas");
    let url =
        folder.url("journal_mode=WAL&synchronous=normal&page_size=8192&cache_size=-2000&busy_timeout=7");
    run(async {
        let mut session = connect(&url).await.unwrap();
        session.text("CREATE TABLE t (id INTEGER)", &mut ()).await.unwrap();
        for (pragma, value) in
            [("journal_mode", "wal"), ("synchronous", "1"), ("page_size", "8192"), ("cache_size", "-2000")]
        {
            assert_eq!(ask(&mut session, &format!("PRAGMA {pragma}")).await, value);
        }
    });
    let error = refusal(&folder.url("page_size=4096"));
    assert_eq!(error.kind(), Kind::User);
    assert!(error.message().contains("it is 8192") && error.hint_text().contains("fixed once"), "{error}");
}

#[test]
fn a_files_encoding_is_chosen_when_it_is_made() {
    let folder = Folder::new("encoding");
    run(async {
        let mut session = connect(&folder.url("encoding=UTF-16le")).await.unwrap();
        session.text("CREATE TABLE t (note TEXT)", &mut ()).await.unwrap();
        let insert = session.prepare("INSERT INTO t VALUES (?)").await.unwrap();
        session.execute(insert, &[Value::Text("zażółć")], &mut ()).await.unwrap();
        assert_eq!(ask(&mut session, "SELECT note FROM t").await, "zażółć");
    });
    assert!(refusal(&folder.url("encoding=UTF-8")).message().contains("it is UTF-16le"));
}

/// A library that holds nothing of SQLite's.
fn other_library() -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let path = |line: &str| line.find('/').map(|start| line[start..].to_owned());
    maps.lines().filter_map(path).find(|path| path.contains("/libc.so")).unwrap()
}

#[test]
fn a_library_that_cannot_be_used_is_named_with_a_remedy() {
    let folder = Folder::new("library");
    let text = folder.0.join("text.so");
    std::fs::write(&text, "no library").unwrap();
    let cases = [
        ("/nowhere/libsqlite3.so.0".to_owned(), "cannot be loaded"),
        (text.display().to_string(), "cannot be loaded"),
        (other_library(), "it has no sqlite3_"),
    ];
    for (library, said) in cases {
        let error = refusal(&folder.url(&format!("library={library}")));
        assert_eq!(error.kind(), Kind::Connect, "{error}");
        assert!(error.message().contains(said) && error.message().contains(&library), "{error}");
        assert!(error.hint_text().contains("?library="), "{error}");
    }
    assert!(!folder.file().exists());
}

#[test]
fn a_wrong_pragma_says_what_is_allowed() {
    let folder = Folder::new("wrong");
    for (parameters, said) in [
        ("journal_mode=fast", "delete, truncate, persist, memory, wal, off"),
        ("cache_size=big", "a whole number"),
        ("cache_size=1;DROP TABLE t", "a whole number"),
        ("transaction=late", "deferred or immediate"),
        ("page_size=1000", "did not take page_size = 1000"),
        ("nothing=1", "nothing"),
    ] {
        let error = refusal(&folder.url(parameters));
        assert_eq!(error.kind(), Kind::User, "{error}");
        assert!(error.message().contains(said), "{parameters}: {error}");
    }
    let error = refusal("sqlite://somewhere/test.db");
    assert!(error.message().contains("names a host") && error.hint_text().contains("sqlite:///"), "{error}");
}

#[test]
fn what_is_no_database_is_said_to_be_none() {
    let folder = Folder::new("none");
    std::fs::write(folder.file(), vec![b'x'; 5000]).unwrap();
    let error = refusal(&folder.url(""));
    assert!(
        error.message().contains("cannot open") && error.hint_text().contains("no SQLite database"),
        "{error}"
    );
    let error = refusal("sqlite:///nowhere/at/all.db");
    assert!(error.hint_text().contains("directory exists"), "{error}");
    assert!(!Path::new("/nowhere").exists());
}

#[test]
fn a_file_that_may_not_grow_is_a_full_disk_and_what_was_there_stays() {
    let folder = Folder::new("full");
    run(async {
        let mut session = connect(&folder.url("synchronous=off")).await.unwrap();
        session.text("CREATE TABLE t (note TEXT)", &mut ()).await.unwrap();
        session.text("INSERT INTO t VALUES ('kept')", &mut ()).await.unwrap();
        session.text("PRAGMA max_page_count = 20", &mut ()).await.unwrap();
        let (insert, note) = (session.prepare("INSERT INTO t VALUES (?)").await.unwrap(), "n".repeat(9_000));
        session.begin().await.unwrap();
        let error = loop {
            match session.execute(insert, &[Value::Text(&note)], &mut ()).await {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.label(), "13 disk_full");
        assert!(error.hint_text().contains("make room"), "{error}");
        session.rollback().await.unwrap();
        assert_eq!(ask(&mut session, "SELECT COUNT(*) FROM t").await, "1");
        session.execute(insert, &[Value::Text("small")], &mut ()).await.unwrap();
    });
}

#[test]
fn an_immediate_transaction_holds_the_write_lock_from_its_begin() {
    let folder = Folder::new("lock");
    let url = folder.url("transaction=immediate&busy_timeout=1");
    run(async {
        let (mut one, mut other) = (connect(&url).await.unwrap(), connect(&url).await.unwrap());
        one.begin().await.unwrap();
        let error = other.begin().await.unwrap_err();
        assert_eq!(error.label(), "5 busy");
        one.rollback().await.unwrap();
        other.begin().await.unwrap();
        other.commit().await.unwrap();
    });
}

#[test]
fn a_text_holds_one_statement() {
    let folder = Folder::new("one");
    run(async {
        let mut session = connect(&folder.url("")).await.unwrap();
        for (sql, said) in [("SELECT 1; SELECT 2", "more than one"), ("-- nothing", "no statement")] {
            let error = session.text(sql, &mut ()).await.unwrap_err();
            assert!(error.message().contains(said), "{sql}: {error}");
        }
        assert_eq!(ask(&mut session, "SELECT 3;  ").await, "3");
    });
}

/// Of an open loop's hundred arrivals a client that sleeps to the end takes one: the other client does all the rest.
#[test]
fn a_client_that_blocks_delays_no_arrival_of_an_open_loop() {
    let folder = Folder::new("queue");
    run(async { connect(&folder.url("")).await.unwrap().close().await });
    let script = folder.0.join("queue.pgbench");
    std::fs::write(&script, "\\if :client_id = 0\n\\sleep 5 s\n\\endif\nSELECT 1;\n").unwrap();
    let job = serde_json::json!({
        "url": folder.url(""), "workload": script, "clients": 2, "duration_s": 4.0,
        "load": {"kind": "open", "rate_per_s": 500, "arrivals": "uniform",
                 "schedule": {"kind": "steps", "steps": [[0.2, 0.0]]}},
    });
    let mut watch = dyno_driver::Watch { interrupted: &mut || false, on_second: None, next_slice: None };
    let tally = dyno_driver::run(&job.to_string(), &mut watch).unwrap();
    assert_eq!((&tally["operations"], &tally["unfinished"]), (&99.into(), &1.into()), "{tally}");
    assert_eq!(tally["open_loop"]["offered_per_s"], 25.0, "{tally}");
}

/// It comes to no end by itself.
const ENDLESS: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n";

/// The client that fails ends the run, and the one that is in a call of the engine's does not hold that up.
#[test]
fn a_failure_ends_the_calls_of_the_other_clients() {
    let folder = Folder::new("failure");
    run(async { connect(&folder.url("")).await.unwrap().close().await });
    let script = folder.0.join("failure.pgbench");
    std::fs::write(&script, format!("\\if :client_id = 0\n{ENDLESS};\n\\else\nSELECT 1 / no;\n\\endif\n"))
        .unwrap();
    let job = serde_json::json!({
        "url": folder.url(""), "workload": script, "clients": 2, "duration_s": 3600.0,
    });
    let mut watch = dyno_driver::Watch { interrupted: &mut || false, on_second: None, next_slice: None };
    let error = dyno_driver::run(&job.to_string(), &mut watch).unwrap_err();
    assert!(error.message().contains("no such column"), "{error}");
}

#[test]
fn an_interrupt_ends_a_call_that_blocks() {
    let folder = Folder::new("interrupt");
    let mut asked = 0;
    let mut interrupted = || {
        asked += 1;
        asked > 2
    };
    let mut watch = dyno_driver::Watch { interrupted: &mut interrupted, on_second: None, next_slice: None };
    let error = dyno_driver::query(&folder.url(""), ENDLESS, &mut watch).unwrap_err();
    assert_eq!((error.message(), asked > 2), ("interrupted", true));
}
