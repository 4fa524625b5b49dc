//! After its first transactions a script's client allocates nothing; in Lua, no more than the results of its statements.

use crate::stand_in::StandIn;
use dyno_driver::error::Result;
use dyno_driver::io::{block_on, Backend};
use dyno_driver::random::Random;
use dyno_driver::workload::{with_workload, Circumstances, Place, WithWorkload, Workload};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is handed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
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
