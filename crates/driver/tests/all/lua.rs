//! Scripts of sysbench: what each function of the API asks of a session, on a session without a server that writes
//! everything down.

use crate::stand_in::{self, StandIn};
use dyno_driver::clock;
use dyno_driver::error::{Error, Fate, Kind, Result};
use dyno_driver::io::{block_on, Backend};
use dyno_driver::random::Random;
use dyno_driver::session::Target;
use dyno_driver::workload::{with_workload, Circumstances, Outcome, Place, WithWorkload, Workload};
use serde_json::{json, Value};
use std::path::PathBuf;

/// A folder with scripts in it, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("dyno-lua-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Clone, Copy)]
enum Verb {
    Prepare,
    /// So many events.
    Run(usize),
    /// One event, after the user has interrupted the driver.
    RunInterrupted,
    Cleanup,
}

/// What came of driving a script: what the session was asked, and how each event ended.
#[derive(Debug, Default)]
struct Concrete {
    asked: Vec<String>,
    events: Vec<Result<Outcome>>,
    rows: u64,
    /// Errors that the script has got over.
    overcome: Vec<Error>,
    hindrance: Option<String>,
}

struct Drive {
    verb: Verb,
    backend: Backend,
}

impl WithWorkload for Drive {
    type Output = Concrete;

    fn with<W: Workload>(self, workload: W) -> Result<Concrete> {
        let driving = drive(&workload, self.verb);
        let mut driven = block_on(self.backend, driving, || false)?.expect("nobody interrupts a test")?;
        driven.asked = stand_in::taken();
        driven.hindrance = workload.hindrance();
        Ok(driven)
    }
}

async fn drive<W: Workload>(workload: &W, verb: Verb) -> Result<Concrete> {
    let (mut session, mut driven) = (StandIn::writing(), Concrete::default());
    match verb {
        Verb::Prepare => {
            workload.create(&mut session).await?;
            for part in 0..workload.load_parts() {
                driven.rows += workload.load(part, &mut session, Random::new(1, part)).await?;
            }
        }
        Verb::RunInterrupted => {
            workload.interrupt();
            return Box::pin(drive(workload, Verb::Run(1))).await;
        }
        Verb::Run(events) => {
            workload.inspect(&mut session).await?;
            let place = Place { client: 0, clients: 1, cut: None };
            let mut client = workload.client(&mut session, place).await?;
            let mut random = Random::new(1, 1);
            for _ in 0..events {
                driven.events.push(workload.perform(0, &mut client, &mut session, &mut random).await);
                driven.overcome.extend(workload.take_overcome(&mut client));
            }
            if driven.events.iter().all(Result::is_ok) {
                workload.leave(&mut client, &mut session).await?;
            }
        }
        Verb::Cleanup => workload.cleanup(&mut session).await?,
    }
    Ok(driven)
}

fn circumstances(clients: u32) -> Circumstances {
    let target = Target::parse("mysql://me@nowhere/shop").unwrap();
    Circumstances { target: Some(target), clients, seed: 42, ..Circumstances::default() }
}

/// Drives the script `text` on a simulated clock.
fn driven(verb: Verb, text: &str, options: Value, clients: u32) -> Result<Concrete> {
    let folder = Folder::new(std::thread::current().name().unwrap_or("test"));
    let mut options = options.as_object().cloned().unwrap_or_default();
    options.insert("file".to_owned(), json!(folder.file("x.lua", text)));
    stand_in::taken();
    clock::simulate(Some(0));
    let drive = Drive { verb, backend: Backend::Simulated };
    let outcome = with_workload("lua", &options, &circumstances(clients), drive);
    clock::simulate(None);
    outcome
}

/// What a run of so many events asks of the server; every event must be fine.
pub fn asked(events: usize, text: &str) -> Vec<String> {
    let driven = driven(Verb::Run(events), text, json!({}), 1).unwrap();
    for event in &driven.events {
        assert!(event.is_ok(), "{event:?}");
    }
    driven.asked
}

/// How the first event of a script ends that must not be fine.
fn failure(text: &str) -> Error {
    match driven(Verb::Run(1), text, json!({}), 1) {
        Ok(mut driven) => driven.events.remove(0).unwrap_err(),
        Err(error) => error,
    }
}

/// A script whose event is `body`, on a connection `con`.
pub fn event(body: &str) -> String {
    format!(
        "function thread_init() con = sysbench.sql.driver():connect() end\nfunction event()\n{body}\nend\n"
    )
}

#[test]
fn a_query_gives_its_rows_as_text_and_nil_for_null() {
    let script = event(
        "local rs = con:query('SELECT 3 ROWS')
         assert(rs.nrows == 3 and rs.nfields == 3)
         for i = 1, rs.nrows do
            local row = rs:fetch_row()
            assert(row[1] == tostring(i) and row[2] == 'row ' .. i and row[3] == nil)
         end
         assert(rs:fetch_row() == nil)
         rs:free()
         local a, b, c = con:query_row('SELECT 1 ROWS')
         assert(a == '1' and b == 'row 1' and c == nil)
         assert(con:query_row('SELECT 0 ROWS') == nil)
         assert(con:query('UPDATE t').nrows == 0)",
    );
    assert_eq!(asked(1, &script), ["0 SELECT 3 ROWS", "0 SELECT 1 ROWS", "0 SELECT 0 ROWS", "0 UPDATE t"]);
}

#[test]
fn rows_stay_while_other_statements_are_executed_between_fetches() {
    let script = event(
        "local rs = con:query('SELECT 2 ROWS')
         assert(rs:fetch_row()[1] == '1')
         con:query('SELECT 5 ROWS')
         assert(rs:fetch_row()[1] == '2')
         local first = con:query('SELECT 2 ROWS')
         con:query('SELECT 1 ROWS')
         local ok, message = pcall(first.fetch_row, first)
         assert(not ok and message:find('this result is gone'), message)",
    );
    assert_eq!(asked(1, &script).len(), 4);
}

#[test]
fn result_sets_are_asked_for_one_by_one() {
    let script = event(
        "local rs = con:query('SELECT 2 ROWS; UPDATE t; SELECT 1 ROWS')
         assert(rs.nrows == 2 and rs.nfields == 3 and con:more_results())
         assert(rs:fetch_row()[1] == '1')
         local changed = con:next_result()
         assert(changed.nfields == 0 and changed:fetch_row() == nil and rs:fetch_row()[1] == '2')
         local last = con:prepare('x') and con:next_result()
         assert(last.nrows == 1 and last:fetch_row()[2] == 'row 1')
         assert(con:more_results() == false and con:next_result() == nil)",
    );
    assert_eq!(asked(1, &script).len(), 2);
}

#[test]
fn parameters_travel_by_their_type() {
    let script = event(
        "local t = sysbench.sql.type
         local stmt = con:prepare('INSERT (?, ?, ?, ?, ?)')
         local p = {stmt:bind_create(t.INT), stmt:bind_create(t.DOUBLE), stmt:bind_create(t.CHAR, 3),
                    stmt:bind_create(t.VARCHAR), stmt:bind_create(t.DATETIME)}
         stmt:bind_param(unpack(p))
         p[1]:set(-7.9) p[2]:set(0.25) p[3]:set('abcdef') p[4]:set(12)
         stmt:execute()
         p[1]:set(nil) p[2]:set('3') p[5]:set('2024-01-01 00:00:00')
         p[4]:set_rand_str('x-x')
         stmt:execute()
         stmt:close()",
    );
    let expected = [
        "0 prepare INSERT (?, ?, ?, ?, ?)",
        "0 INSERT (?, ?, ?, ?, ?) [-7, 0.25, 'abc', '12', NULL]",
        "0 INSERT (?, ?, ?, ?, ?) [NULL, 3, 'abc', 'x-x', '2024-01-01 00:00:00']",
        "0 deallocate INSERT (?, ?, ?, ?, ?)",
    ];
    assert_eq!(asked(1, &script), expected);
}

#[test]
fn a_statement_is_prepared_once_and_transactions_are_the_sessions_own() {
    let script = event(
        "local begin, select = con:prepare('BEGIN'), con:prepare('SELECT 1 ROWS')
         begin:execute()
         local rs = select:execute()
         assert(rs.nrows == 1 and rs:fetch_row()[2] == 'row 1')
         con:query('COMMIT') con:query('ROLLBACK;')",
    );
    let each = ["0 begin", "0 SELECT 1 ROWS []", "0 commit", "0 rollback"];
    let expected = [&["0 prepare SELECT 1 ROWS"][..], &each, &each].concat();
    assert_eq!(asked(2, &script), expected);
}

#[test]
fn rows_are_inserted_in_bulk() {
    let script = event(
        "con:bulk_insert_init('INSERT INTO t VALUES')
         for i = 1, 3 do con:bulk_insert_next('(' .. i .. ')') end
         con:bulk_insert_done()
         con:bulk_insert_init('INSERT INTO u VALUES')
         con:bulk_insert_done()
         con:bulk_insert_init('INSERT INTO v VALUES')
         for i = 1, 3 do con:bulk_insert_next(('x'):rep(300 * 1024)) end
         con:bulk_insert_done()",
    );
    let asked = asked(1, &script);
    assert_eq!(asked[0], "0 INSERT INTO t VALUES (1),(2),(3)");
    // Two pieces of 300 KiB are more than what is sent at once.
    let lengths: Vec<usize> = asked[1..].iter().map(String::len).collect();
    assert_eq!(lengths.len(), 2);
    assert!(lengths[0] > 600 * 1024 && lengths[1] < 400 * 1024, "{lengths:?}");
}

#[test]
fn bulk_calls_out_of_order_are_refused() {
    assert!(failure(&event("con:bulk_insert_next('(1)')")).message().contains("needs a bulk_insert_init"));
}

#[test]
fn a_deadlock_begins_the_event_anew() {
    let mut script = event("con:query('DEADLOCK')");
    script.push_str(
        "function sysbench.hooks.before_restart_event(err)
            con:query(('%d %s %s'):format(err.sql_errno, err.sql_state, err.sql_errmsg))
         end\n",
    );
    let driven = driven(Verb::Run(1), &script, json!({}), 1).unwrap();
    let error = driven.events[0].as_ref().unwrap_err();
    assert_eq!((error.fate(), error.label()), (Fate::Retry, "1213 deadlock"));
    assert_eq!(driven.asked, ["0 DEADLOCK", "0 1213 40001 deadlock found"]);
}

#[test]
fn errors_to_ignore_are_those_of_the_option_or_of_the_hook() {
    let script = event("con:query('DUPLICATE')");
    let error = failure(&script);
    assert_eq!((error.fate(), error.label()), (Fate::Failed, "1062 duplicate key"));
    assert!(error.message().contains("x.lua:3: a row is there"), "{error}");

    let ignoring = json!({"variables": "mysql-ignore-errors=1062,1213"});
    let ignored = driven(Verb::Run(1), &script, ignoring, 1).unwrap();
    assert_eq!(ignored.events[0].as_ref().unwrap_err().fate(), Fate::Retry);

    let hook = "function sysbench.hooks.sql_error_ignorable(err) return err.sql_errno == 1062 end\n";
    assert_eq!(failure(&format!("{script}{hook}")).fate(), Fate::Retry);

    let none = json!({"variables": "mysql-ignore-errors="});
    let fatal = driven(Verb::Run(1), &event("con:query('DEADLOCK')"), none, 1).unwrap();
    assert_eq!(fatal.events[0].as_ref().unwrap_err().fate(), Fate::Failed);
}

#[test]
fn a_script_may_catch_errors_and_restart_by_itself() {
    let script = event(
        "local ok, message = pcall(function() con:query('DUPLICATE') end)
         assert(not ok and message:find('SQL error, errno = 1062, state = .23000.: a row is there'), message)
         assert(con.sql_errno == 1062 and con.sql_state == '23000')
         con:check_error()
         con:query('UPDATE t')",
    );
    let caught = driven(Verb::Run(1), &script, json!({}), 1).unwrap();
    assert_eq!(caught.events[0].as_ref().unwrap(), &Outcome::Committed);
    assert_eq!(caught.asked, ["0 DUPLICATE", "0 UPDATE t"]);
    // The tally counts what the script has got over.
    assert_eq!(caught.overcome[0].label(), "1062 duplicate key");
    let error = failure(&event("error({errcode = sysbench.error.RESTART_EVENT})"));
    assert_eq!((error.fate(), error.label()), (Fate::Retry, "restarted by the script"));
}

#[test]
fn a_lost_connection_is_the_drivers_affair() {
    let error = failure(&event("pcall(function() con:query('GONE') end) con:query('UPDATE t')"));
    assert_eq!(error.fate(), Fate::Lost);
}

#[test]
fn an_event_that_gives_something_is_the_last() {
    let driven = driven(Verb::Run(3), &event("con:query('UPDATE t') return true"), json!({}), 1).unwrap();
    let outcomes: Vec<Outcome> = driven.events.into_iter().map(Result::unwrap).collect();
    assert_eq!(outcomes, [Outcome::Committed, Outcome::Finished, Outcome::Finished]);
    assert_eq!(driven.asked, ["0 UPDATE t"]);
}

#[test]
fn hooks_are_called_in_their_order() {
    let script = "
        function said(what)
           con = con or sysbench.sql.driver():connect()
           con:query(what)
        end
        function init() said('init') end
        function thread_init(id) said('thread_init ' .. id) end
        function event(id) said('event ' .. id .. ' ' .. sysbench.tid .. ' ' .. thread_id) end
        function thread_done(id) said('thread_done ' .. id) end
        function done() said('done') end";
    let asked = asked(1, script);
    let said: Vec<&str> = asked.iter().map(|asked| asked.split_once(' ').unwrap().1).collect();
    assert_eq!(said, ["init", "thread_init 0", "event 0 0 0", "thread_done 0", "done"]);
}

#[test]
fn a_script_has_several_connections() {
    let script = "
        function thread_init()
           drv = sysbench.sql.driver()
           one, two = drv:connect(), drv:connect()
        end
        function event()
           one:query('a') two:query('b')
           local stmt = two:prepare('c')
           two:reconnect()
           two:query('d')
           local ok, message = pcall(stmt.execute, stmt)
           assert(not ok and message:find('prepared before its connection'), message)
           two:disconnect()
           ok, message = pcall(two.query, two, 'e')
           assert(not ok and message:find('the connection is closed'), message)
           one:disconnect()
           three = drv:connect()
           three:query('f')
           return true
        end";
    // Opened are 1 for the second, 2 for the second again, 3 in the place of the driver's.
    assert_eq!(
        asked(1, script),
        ["1 opened", "0 a", "1 b", "1 prepare c", "2 opened", "2 d", "3 opened", "3 f"]
    );
}

#[test]
fn commands_prepare_and_clean_up() {
    let script = "
        function event() end
        function prepare() sysbench.sql.driver():connect():query('CREATE ' .. sysbench.cmdline.command) end
        function cleanup() sysbench.sql.driver():connect():query('DROP ' .. sysbench.cmdline.command) end";
    let prepared = driven(Verb::Prepare, script, json!({}), 3).unwrap();
    assert_eq!((prepared.asked, prepared.rows), (vec!["0 CREATE prepare".to_owned()], 1));
    assert_eq!(driven(Verb::Cleanup, script, json!({}), 3).unwrap().asked, ["0 DROP cleanup"]);
}

#[test]
fn a_parallel_command_is_called_for_every_client() {
    let script = "
        local function load()
           sysbench.sql.driver():connect():query('LOAD ' .. sysbench.tid .. ' of ' .. sysbench.opt.threads)
        end
        sysbench.cmdline.commands = {
           prepare = {load, sysbench.cmdline.PARALLEL_COMMAND},
           prewarm = {function() sysbench.sql.driver():connect():query('WARM') end}
        }
        function event() end";
    let prepared = driven(Verb::Prepare, script, json!({}), 3).unwrap();
    assert_eq!(prepared.asked, ["0 LOAD 0 of 3", "0 LOAD 1 of 3", "0 LOAD 2 of 3"]);
    let warmed = driven(Verb::Prepare, script, json!({"command": "prewarm"}), 3).unwrap();
    assert_eq!(warmed.asked, ["0 WARM"]);
}

#[test]
fn a_command_that_is_not_there_is_named() {
    let error = driven(Verb::Prepare, "function event() end", json!({}), 1).unwrap_err();
    assert!(error.message().ends_with("x.lua has no command prepare"), "{error}");
    let error = driven(Verb::Run(1), "function prepare() end", json!({}), 1).unwrap_err();
    assert!(error.message().ends_with("x.lua has no function event"), "{error}");
}

const WITH_OPTIONS: &str = "
    sysbench.cmdline.options = {
       table_size = {'Rows', 10000},
       skip_trx = {'No transactions', false},
       engine = {'Engine', 'innodb'},
       variant = {'Variant'},
       hosts = {'Hosts', {'a', 'b'}},
       level = {'Level', 1, function(level) return level <= 3, 'at most 3' end},
    }
    function event()
       local o = sysbench.opt
       sysbench.sql.driver():connect():query(('%d %s %s %s %s %s'):format(
          o.table_size, tostring(o.skip_trx), o.engine, tostring(o.variant), table.concat(o.hosts, '+'), o.mysql_db))
    end";

fn with_options(variables: &str) -> Result<Concrete> {
    driven(Verb::Run(1), WITH_OPTIONS, json!({"variables": variables}), 1)
}

#[test]
fn options_have_the_type_of_their_default() {
    assert_eq!(with_options("").unwrap().asked, ["0 10000 false innodb nil a+b shop"]);
    let given = "table-size=5,skip_trx=on,engine=rocksdb,variant=v,hosts=x,y,z";
    assert_eq!(with_options(given).unwrap().asked, ["0 5 true rocksdb v x+y+z shop"]);
}

#[test]
fn mistakes_in_options_are_told_before_the_server_is_asked() {
    for (variables, told) in [
        ("tabel_size=5", "did you mean table_size?"),
        ("table_size=many", "the option table_size cannot be \"many\""),
        ("level=5", "the script refuses the value of its option level: at most 3"),
        ("threads=5", "--clients"),
        ("rand_type=even", "give one of uniform, gaussian, special, pareto, zipfian"),
    ] {
        let error = with_options(variables).unwrap_err();
        assert_eq!(error.kind(), Kind::User);
        assert!(error.to_string().contains(told), "{variables}: {error}");
    }
}

#[test]
fn a_script_that_fails_ends_the_run_with_its_line() {
    for (script, told) in [
        ("function event(\n  con:query(1)\nend", "x.lua:2: "),
        ("local x = nil\nfunction event()\n  return x.y\nend", "x.lua:3: attempt to index upvalue 'x'"),
        ("function event()\n  nowhere()\nend", "x.lua:2: attempt to call global 'nowhere'"),
        ("require('missing_module')\nfunction event() end", "module 'missing_module' not found"),
        ("function event()\n  sysbench.sql.driver():connect():query(5)\nend", "x.lua:2: query takes a text, not a number"),
        ("function event()\n  sysbench.rand.poisson(1, 2)\nend", "x.lua:2: sysbench.rand.poisson is not supported"),
        ("function event()\n  sysbench.rand.uniform(1)\nend", "x.lua:2: uniform takes two numbers"),
        ("function event()\n  os.exit(1)\nend", "x.lua:2: os.exit is not supported"),
        ("sysbench.sql.driver():connect()\nfunction event() end", "x.lua:1: the server can be asked only while"),
        (
            "function event()\n  coroutine.wrap(function()\n    sysbench.sql.driver():connect()\n  end)()\nend",
            "x.lua:3: the server can be asked only while",
        ),
        ("function event()\n  sysbench.sql.driver('pgsql')\nend", "x.lua:2: the driver pgsql is not that"),
        ("function event()\n  coroutine.yield('x')\nend", "calls coroutine.yield outside"),
        ("function event()\n  ffi.C.sb_lua_custom(1)\nend", "x.lua:2: ffi.C.sb_lua_custom is not supported: missing"),
        ("#!/usr/bin/sysbench\nfunction event()\n  nowhere()\nend", "x.lua:3: attempt to call"),
    ] {
        let error = failure(script);
        assert!(error.message().contains(told), "{told:?} is not in {error}");
        assert_eq!((error.kind(), error.fate()), (Kind::User, Fate::Fatal), "{error}");
    }
}

#[test]
fn modules_are_found_beside_the_script() {
    let folder = Folder::new("modules");
    folder.file(
        "beside.lua",
        "#!/usr/bin/sysbench\nfunction event() sysbench.sql.driver():connect():query('m') end",
    );
    let options = json!({"file": folder.file("x.lua", "require('beside')")});
    stand_in::taken();
    clock::simulate(Some(0));
    let drive = Drive { verb: Verb::Run(1), backend: Backend::Simulated };
    let driven = with_workload("lua", options.as_object().unwrap(), &circumstances(1), drive).unwrap();
    clock::simulate(None);
    assert_eq!(driven.asked, ["0 m"]);
}

#[test]
fn a_module_with_a_mistake_is_named_with_its_line() {
    let folder = Folder::new("mistake");
    folder.file("beside.lua", "function event(\n");
    let options = json!({"file": folder.file("x.lua", "require('beside')")});
    let drive = Drive { verb: Verb::Run(1), backend: Backend::Simulated };
    let error = with_workload("lua", options.as_object().unwrap(), &circumstances(1), drive).unwrap_err();
    assert!(error.message().contains("error loading module 'beside' from file"), "{error}");
    assert!(error.message().contains("beside.lua:2: "), "{error}");
}

#[test]
fn the_names_of_before_1_0_are_there() {
    let script = "
        function thread_init() db_connect() end
        function event(thread_id)
           db_query('UPDATE ' .. db_driver)
           local stmt, values = db_prepare('INSERT (?, ?)'), {1, 'a'}
           db_bind_param(stmt, values)
           db_execute(stmt)
           values[1] = 2
           db_free_results(db_store_results(db_execute(stmt)))
           db_close(stmt)
           db_bulk_insert_init('INSERT INTO t VALUES')
           db_bulk_insert_next('(1)')
           db_bulk_insert_done()
           assert(test == sysbench.cmdline.script_path and sb_rnd() >= 0)
           assert(sb_rand(5, 5) == 5 and sb_rand_uniform(1, 9) <= 9 and #sb_rand_str('###') == 3)
           db_disconnect()
        end";
    let expected = [
        "0 UPDATE mysql",
        "0 prepare INSERT (?, ?)",
        "0 INSERT (?, ?) [1, 'a']",
        "0 INSERT (?, ?) [2, 'a']",
        "0 INSERT INTO t VALUES (1)",
    ];
    assert_eq!(asked(1, script), expected);
}

#[test]
fn random_numbers_follow_the_drivers_stream() {
    let script = event(
        "local r = sysbench.rand
         for _, name in ipairs({'default', 'uniform', 'gaussian', 'special', 'pareto', 'zipfian'}) do
            local drawn = r[name](10, 20.9)
            assert(drawn >= 10 and drawn <= 20 and drawn % 1 == 0, name)
         end
         assert(r.unique() ~= r.unique())
         assert(#r.varstring(3, 5) >= 3 and r.uniform_double() < 1 and r.uniform_uint64() >= 0)
         con:query(r.string('###-@@') .. ' ' .. r.uniform(1, 1000000))",
    );
    let first = asked(2, &script);
    assert_ne!(first[0], first[1]);
    // The same seed draws the same.
    assert_eq!(first, asked(2, &script));
}

#[test]
fn functions_of_sysbenchs_program_are_there_and_sleeps_keep_nobody_waiting() {
    let script = event(
        "assert(ffi == require('ffi'))
         ffi.cdef[[
            void sb_counter_inc(int, sb_counter_type);
            int usleep(unsigned int);
         ]]
         ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR)
         ffi.C.usleep(5e6)
         con:query('after')",
    );
    // Five seconds of the simulated clock.
    assert_eq!(asked(1, &script), ["0 after"]);
}

/// Drives one event on the real clock.
fn event_in_time(name: &str, verb: Verb, body: &str, options: Value) -> Concrete {
    let folder = Folder::new(name);
    let mut options = options.as_object().cloned().unwrap();
    options.insert("file".to_owned(), json!(folder.file("x.lua", &event(body))));
    let drive = Drive { verb, backend: Backend::Blocking };
    with_workload("lua", &options, &circumstances(1), drive).unwrap()
}

/// Loops for a minute, so that a test ends where the watchdog fails.
const FOR_EVER: &str = "local over = os.time() + 60 while os.time() < over do end";

#[test]
fn an_interrupt_ends_a_script_that_loops() {
    let driven = event_in_time("interrupt", Verb::RunInterrupted, FOR_EVER, json!({}));
    let error = driven.events[0].as_ref().unwrap_err();
    assert!(error.message().contains("x.lua:3: interrupted"), "{error}");
}

#[test]
fn a_script_that_loops_for_ever_is_ended() {
    let driven = event_in_time("loop", Verb::Run(1), FOR_EVER, json!({"patience_s": 0.3}));
    let error = driven.events[0].as_ref().unwrap_err();
    assert_eq!(error.fate(), Fate::Fatal);
    assert!(error.message().contains("x.lua:3: the script asked the server for nothing"), "{error}");
    assert!(driven.hindrance.unwrap().contains("held driver threads"));
}

#[test]
fn a_script_that_allocates_without_end_is_ended() {
    let body = "local all = {} while true do all[#all + 1] = ('x'):rep(10000) .. #all end";
    let driven = event_in_time("memory", Verb::Run(1), body, json!({"memory_mb": 16}));
    let error = driven.events[0].as_ref().unwrap_err();
    assert!(error.message().contains("not enough memory"), "{error}");
    assert!(error.hint_text().contains("memory_mb"), "{error}");
}
