//! The hooks by which a script of sysbench reports: when they are called, and what they are told.

use crate::stand_in::{self, StandIn};
use dyno_driver::error::{Kind, Result};
use dyno_driver::io::{block_on, Backend};
use dyno_driver::random::Random;
use dyno_driver::session::Target;
use dyno_driver::workload::{with_workload, Circumstances, Ended, Place, WithWorkload, Workload};
use hdrhistogram::Histogram;
use serde_json::json;

/// A statement that gives a row, one that changes one, and one that does neither.
const EVENT: &str = "
    function thread_init() con = sysbench.sql.driver():connect() end
    function event() con:query('SELECT 1 ROWS') con:query('UPDATE t') con:query('BEGIN') end\n";

/// Tells a script's hooks of a run of one client with an event in the warm-up, two in the second 0, none in the second 1,
/// and one in the second 4; of those between nobody says anything. `false` where the script wants to hear nothing.
struct Reports;

impl WithWorkload for Reports {
    type Output = bool;

    fn with<W: Workload>(self, workload: W) -> Result<bool> {
        stand_in::taken();
        let Some(mut witness) = workload.witness()? else { return Ok(false) };
        let reporting = async {
            let mut session = StandIn::writing();
            let place = Place { client: 0, clients: 1, cut: None };
            let mut client = workload.client(&mut session, place).await?;
            for (second, latencies_ms) in [(-1, vec![1]), (0, vec![1, 3]), (1, vec![]), (4, vec![5])] {
                let mut latencies_ns = Histogram::<u64>::new(3).unwrap();
                for latency_ms in latencies_ms {
                    workload.perform(0, &mut client, &mut session, &mut Random::new(1, 1)).await?;
                    latencies_ns.record(latency_ms * 1_000_000).unwrap();
                }
                witness.second(second, 2, &latencies_ns)?;
            }
            workload.leave(&mut client, &mut session).await?;
            let mut latencies_ns = Histogram::<u64>::new(3).unwrap();
            [1, 3, 5].into_iter().for_each(|latency_ms| latencies_ns.record(latency_ms * 1_000_000).unwrap());
            witness.end(&Ended { duration_s: 6.0, operations: 3, errors: 4, latencies_ns: &latencies_ns })
        };
        block_on(Backend::Blocking, reporting, || false)?.expect("nobody interrupts a test")?;
        // Four events, and nothing else.
        assert_eq!(stand_in::taken().len(), 12);
        Ok(true)
    }
}

/// What the hooks of a script write of such a run into a file: by the hook `report` of the script's.
fn reported(name: &str, hooks: &str, variables: &str) -> Result<Option<Vec<String>>> {
    let file = |ending| std::env::temp_dir().join(format!("dyno-{}-{name}.{ending}", std::process::id()));
    let (script, written) = (file("lua"), file("txt"));
    let report = format!(
        "local function report(...)
            local file = io.open('{}', 'a')
            file:write(table.concat({{...}}, ' '), '\\n')
            file:close()
         end\n",
        written.display()
    );
    std::fs::write(&script, format!("{EVENT}{report}{hooks}")).unwrap();
    let options = json!({"file": script, "variables": variables});
    let target = Target::parse("mysql://me@nowhere/shop").unwrap();
    let circumstances = Circumstances { target: Some(target), duration_s: 6.0, ..Circumstances::default() };
    let reported = with_workload("lua", options.as_object().unwrap(), &circumstances, Reports);
    let lines = std::fs::read_to_string(&written).unwrap_or_default();
    [script, written].into_iter().for_each(|path| drop(std::fs::remove_file(path)));
    Ok(reported?.then(|| lines.lines().map(str::to_owned).collect()))
}

const HOOKS: &str = "
    function sysbench.hooks.report_intermediate(s)
       report('so far', s.time_total, s.time_interval, s.threads_running, s.events, s.reads, s.writes, s.other,
          s.errors, s.reconnects, ('%.4f'):format(s.latency_pct))
    end
    function sysbench.hooks.report_cumulative(s)
       report('in all', s.time_total, s.time_interval, s.threads_running, s.events, s.reads, s.writes, s.other,
          s.errors, s.reconnects, ('%.4f %.4f'):format(s.latency_pct, s.latency_min),
          ('%.4f %.4f %.4f'):format(s.latency_avg, s.latency_max, s.latency_sum))
    end";

#[test]
fn hooks_report_of_each_interval_and_of_the_whole_run() {
    let expected = [
        "so far 2 2 1 2 2 2 2 4 0 0.0030",
        "so far 4 2 1 0 1 1 1 0 0 0.0000",
        "so far 6 2 0 1 0 0 0 2 0 0.0050",
        "in all 6 6 0 3 3 3 3 4 0 0.0050 0.0010 0.0030 0.0050 0.0090",
    ];
    assert_eq!(reported("hooks", HOOKS, "report_interval=2").unwrap().unwrap(), expected);
    // Without intervals there is no report of any.
    assert_eq!(reported("whole", HOOKS, "").unwrap().unwrap(), [expected[3]]);
}

#[test]
fn reports_that_are_there_for_scripts_can_be_hooks() {
    let hooks = "print = report
        sysbench.hooks.report_intermediate = sysbench.report_csv
        sysbench.hooks.report_cumulative = function(stat)
           sysbench.report_default(stat)
           sysbench.report_json(stat)
        end";
    let expected = [
        "5,1,0.60,1.80,0.60,0.60,0.60,5.00,1.20,0.00",
        "[ 6s ] thds: 0 tps: 0.50 qps: 1.50 (r/w/o: 0.50/0.50/0.50) lat (ms,99%): 5.00 err/s 0.67 reconn/s: 0.00",
        "{\"time\": 6, \"threads\": 0, \"tps\": 0.50, \"qps\": {\"total\": 1.50, \"reads\": 0.50, \"writes\": 0.50, \
         \"other\": 0.50}, \"latency\": 5.00, \"errors\": 0.67, \"reconnects\": 0.00}",
    ];
    assert_eq!(reported("own", hooks, "report_interval=5,percentile=99").unwrap().unwrap(), expected);
}

#[test]
fn a_script_without_hooks_for_reports_is_not_followed() {
    assert_eq!(reported("none", "", "report_interval=1").unwrap(), None);
    let intermediate = "function sysbench.hooks.report_intermediate() end";
    assert_eq!(reported("never", intermediate, "").unwrap(), None);
}

#[test]
fn a_report_that_fails_ends_the_run_with_its_line() {
    for (number, (hook, variables, told)) in [
        (
            "function sysbench.hooks.report_cumulative(stat)\nnowhere()\nend",
            "",
            "attempt to call global 'nowhere'",
        ),
        (
            "function sysbench.hooks.report_cumulative(stat)\nsysbench.sql.driver():connect()\nend",
            "",
            "no hook for reports",
        ),
        ("sysbench.hooks.report_cumulative = 5", "", "sysbench.hooks.report_cumulative is no function"),
        (HOOKS, "report_interval=0.5", "give whole seconds"),
        (HOOKS, "percentile=101", "give a number of 0 to 100"),
    ]
    .into_iter()
    .enumerate()
    {
        let error = reported(&format!("fails-{number}"), hook, variables).unwrap_err();
        assert_eq!(error.kind(), Kind::User, "{error}");
        assert!(error.to_string().contains(told), "{told:?} is not in {error}");
    }
}
