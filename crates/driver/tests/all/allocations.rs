//! After its first transactions a script's client allocates nothing; in Lua, no more than the results of its statements.
//! A whole run of twice as many operations allocates no more often, whatever the workload, session and back end.

use crate::fake::{Attack, Fake, Protocol, Stage};
use crate::stand_in::StandIn;
use dyno_driver::error::Result;
use dyno_driver::io::{block_on, io_uring_works, Backend};
use dyno_driver::random::Random;
use dyno_driver::workload::{with_workload, Circumstances, Place, WithWorkload, Workload};
use dyno_driver::Watch;
use serde_json::{json, Value};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What a process that counts is told to run.
const JOB: &str = "DYNO_ALLOCATIONS_JOB";
/// What a run does by the clock is less than this, also where it takes seconds; an allocation for every second operation
/// is more.
const BY_THE_CLOCK_MOST: u64 = 400;

/// Of all threads of the process.
static WHOLE: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);
/// More than this for a client, and ten thousand of them take 80 MB.
const CLIENT_BYTES_MOST: u64 = 8 << 10;
/// One with a thread of its own has counters, twice while a second is being summed. A histogram alone takes 270 kB.
const EMBEDDED_BYTES_MOST: u64 = 200 << 10;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    WHOLE.fetch_add(1, Ordering::Relaxed);
}

fn grow(bytes: usize) {
    let live = LIVE_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK_BYTES.fetch_max(live, Ordering::Relaxed);
}

// SAFETY: everything is handed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        grow(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        LIVE_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        grow(size);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs a hundred transactions to warm up, then counts what a hundred more allocate.
struct Count;

impl WithWorkload for Count {
    type Output = u64;

    fn with<W: Workload>(self, workload: W) -> Result<u64> {
        let running = async {
            let (mut session, mut random) = (StandIn::silent(), Random::new(1, 1));
            let mut client =
                workload.client(&mut session, Place { client: 0, clients: 1, cut: None }).await?;
            let mut before = 0;
            for round in 0..200 {
                if round == 100 {
                    before = ALLOCATIONS.get();
                }
                session.statements = 0;
                let kind = workload.choose(&mut client, &mut random);
                workload.perform(kind, &mut client, &mut session, &mut random).await?;
            }
            Ok(ALLOCATIONS.get() - before)
        };
        block_on(Backend::Blocking, running, || false)?.unwrap_or(Ok(u64::MAX))
    }
}

/// How often a hundred transactions of a warm script allocate.
fn allocations(workload: &str, name: &str, text: &str) -> u64 {
    let path = std::env::temp_dir().join(format!("dyno-allocations-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let options = serde_json::json!({"file": path}).as_object().cloned().unwrap();
    let counted = with_workload(workload, &options, &Circumstances::default(), Count).unwrap();
    let _ = std::fs::remove_file(path);
    counted
}

#[test]
fn a_script_that_is_warm_allocates_nothing() {
    let pgbench = "\\set id random_zipfian(1, 1000, 1.2)\n\\set n :id % 10\nBEGIN;\n\
        UPDATE t SET a = a + :id WHERE b = :n;\nSELECT a, b FROM t:n WHERE c = :id \\gset got_\n\
        INSERT INTO t VALUES (:got_number, :got_text, :id, :n, :id, :n, :id, :n, :id, :n);\nEND;\nSET x = :n;\n";
    assert_eq!(allocations("script", "busy.sql", pgbench), 0);
    let toml = "[[transactions]]\nname = 'a'\nvalues = { id = 'sequence(5)', name = 'text(5, 40)', c = 'digits(10, 11)', \
        t = \"timestamp('2020-01-01', '2024-01-01')\", z = 'zipfian(1, 100)', u = 'uuid()' }\n\
        statements = ['INSERT INTO t VALUES (:id, :name, :c, :t, :z, :u)', \
        { repeat = 'uniform(1, 3)', sql = 'SELECT a, b FROM t WHERE a = :id', into = ['x', 'y'], values = { id = 'uniform(1, 9)' } }, \
        { if = ':x = 1', sql = 'SELECT :y' }]\n";
    assert_eq!(allocations("script", "busy.toml", toml), 0);
}

#[test]
fn an_event_in_lua_allocates_nothing() {
    let lua = "function thread_init()
           con = sysbench.sql.driver():connect()
           stmt = con:prepare('SELECT a, b FROM t WHERE a = ? AND b = ?')
           number = stmt:bind_create(sysbench.sql.type.INT)
           text = stmt:bind_create(sysbench.sql.type.CHAR, 10)
           stmt:bind_param(number, text)
           text:set('it')
        end
        function event()
           number:set(sysbench.rand.default(1, 100))
           stmt:execute()
           con:query('SELECT 1')
        end";
    assert_eq!(allocations("lua", "busy.lua", lua), 0);
}

fn watched<T>(task: impl FnOnce(&mut Watch<'_>) -> Result<T>) -> T {
    let mut never = || false;
    task(&mut Watch { interrupted: &mut never, on_second: None, next_slice: None }).unwrap()
}

#[test]
#[ignore = "a process that others start: it counts alone, without a server in its own threads"]
fn counts_a_whole_run() {
    let job = std::env::var(JOB).unwrap();
    let before = WHOLE.load(Ordering::Relaxed);
    let tally = watched(|watch| dyno_driver::run(&job, watch));
    let allocations = WHOLE.load(Ordering::Relaxed) - before;
    let peak_bytes = PEAK_BYTES.load(Ordering::Relaxed);
    println!(
        "\ncounted {}",
        json!({"operations": tally["operations"], "allocations": allocations, "peak_bytes": peak_bytes})
    );
}

/// What a whole run of so many operations allocates, in a process of its own.
fn of_a_run(job: &Value, operations: u64) -> Value {
    let mut job = job.clone();
    job["operations"] = json!(operations);
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "allocations::counts_a_whole_run", "--ignored", "--nocapture"])
        .env(JOB, job.to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let counted = said.lines().find_map(|line| line.strip_prefix("counted "));
    let counted: Value = serde_json::from_str(counted.unwrap_or_else(|| panic!("{job}: {said}"))).unwrap();
    // Some are rolled back, or refused, as their workload says.
    assert!(counted["operations"].as_u64().unwrap() >= operations / 2, "{job}: {counted}");
    counted
}

fn no_operation_allocates(job: &Value, before: impl Fn()) {
    let [few, many] = [1000, 2000].map(|operations| {
        before();
        of_a_run(job, operations)["allocations"].as_u64().unwrap()
    });
    assert!(many <= few + BY_THE_CLOCK_MOST, "{job}: {few} for 1,000 operations, {many} for 2,000");
}

#[test]
fn no_operation_of_a_session_allocates() {
    let backends = if io_uring_works().is_ok() { vec!["epoll", "io_uring"] } else { vec!["epoll"] };
    for protocol in [Protocol::Mysql, Protocol::Postgresql] {
        let fake = Fake::start(protocol, Stage::Login, Attack::None);
        let file = fake.folder.join("busy.sql");
        std::fs::write(&file, "\\set id random(1, 9)\nBEGIN;\nSELECT v FROM t WHERE id = :id;\nEND;\n")
            .unwrap();
        for backend in &backends {
            let job = json!({
                "url": fake.url(), "workload": file, "clients": 2, "threads": 1, "backend": backend,
                "duration_s": 60.0,
            });
            no_operation_allocates(&job, || {});
        }
    }
}

#[test]
fn a_client_takes_a_few_kilobytes() {
    for protocol in [Protocol::Mysql, Protocol::Postgresql] {
        let fake = Fake::start(protocol, Stage::Login, Attack::None);
        let file = fake.folder.join("calm.sql");
        std::fs::write(&file, "\\set id random(1, 9)\nSELECT v FROM t WHERE id = :id;\n").unwrap();
        let [few, many] = [128, 256].map(|clients| {
            let job = json!({
                "url": fake.url(), "workload": file, "clients": clients, "threads": 1, "backend": "epoll",
                "duration_s": 60.0,
            });
            of_a_run(&job, 1000)["peak_bytes"].as_u64().unwrap()
        });
        let each = many.saturating_sub(few) / 128;
        assert!((256..CLIENT_BYTES_MOST).contains(&each), "{protocol:?}: {each} bytes for a client");
    }
}

#[test]
fn a_client_of_an_embedded_engine_takes_no_histogram() {
    let folder = std::env::temp_dir().join(format!("dyno-embedded-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite://{}?journal_mode=wal&synchronous=off", folder.join("x.db").display());
    let job = |clients: u32| json!({"url": url, "workload": "point_select", "options": {"table_size": 100}, "clients": clients, "duration_s": 60.0});
    watched(|watch| dyno_driver::prepare(&job(1).to_string(), watch));
    let [few, many] = [4, 68].map(|clients| of_a_run(&job(clients), 2000)["peak_bytes"].as_u64().unwrap());
    std::fs::remove_dir_all(folder).unwrap();
    let each = many.saturating_sub(few) / 64;
    assert!((1..EMBEDDED_BYTES_MOST).contains(&each), "{each} bytes for a client");
}

/// Those that need a file of the user's are scripts; a replay and a vector search are counted nowhere.
const NEED_A_FILE: [&str; 5] = ["script", "statements", "lua", "replay", "vector_search"];

#[test]
fn no_operation_of_a_built_in_workload_allocates() {
    let folder = std::env::temp_dir().join(format!("dyno-allocations-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let names = dyno_driver::workloads();
    let names = names.as_array().unwrap().iter().map(|about| about["name"].as_str().unwrap());
    for name in names.filter(|name| !NEED_A_FILE.contains(name)) {
        let job = |database: &Path| {
            // Its end is that of its rounds.
            let options =
                if name == "flexasync" { json!({"rounds": 1000, "parallel": 4}) } else { json!({}) };
            json!({
                "url": format!("sqlite://{}?journal_mode=wal&synchronous=off", database.display()),
                "workload": name, "options": options, "duration_s": 60.0,
            })
        };
        let [prepared, database] = ["prepared", "used"].map(|use_| folder.join(format!("{use_}.db")));
        watched(|watch| dyno_driver::prepare(&job(&prepared).to_string(), watch));
        no_operation_allocates(&job(&database), || {
            let _ = std::fs::remove_file(folder.join("used.db-wal"));
            std::fs::copy(&prepared, &database).unwrap();
        });
        for file in std::fs::read_dir(&folder).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}
