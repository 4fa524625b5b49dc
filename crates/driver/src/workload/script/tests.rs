//! The expression language beside the real pgbench, and whole workloads on a real SQLite.

use super::expression::parse;
use super::frame::Frame;
use super::function::Language;
use super::text::write_double;
use super::variable::{Names, CLIENT_ID, DEFAULT_SEED, SCALE};
use super::Asking;
use crate::random::Random;
use crate::session::Value;
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;

/// What `\set x debug(EXPRESSION)` shows: "int 7", "double 0.5", "boolean true", "null", or "error".
fn debugged(text: &str) -> String {
    let mut names = Names::default();
    let result = names.write("result");
    let Ok(expression) = parse(text, Language::Pgbench, &mut names) else { return "error".to_owned() };
    let mut frame = Frame::new(names.all().len(), names.memories());
    for (slot, value) in [(CLIENT_ID, 0), (SCALE, 1), (DEFAULT_SEED, 5)] {
        frame.variables[slot].set(Value::Int(value));
    }
    if frame.assign(result, &expression, names.all(), &mut Random::new(1, 1)).is_err() {
        return "error".to_owned();
    }
    let variable = &frame.variables[result];
    match (variable.as_bool(), variable.value()) {
        (Some(value), _) => format!("boolean {value}"),
        (None, Value::Null) => "null".to_owned(),
        (None, Value::Int(value)) => format!("int {value}"),
        (None, Value::Float(value)) => {
            let mut digits = Vec::new();
            write_double(&mut digits, value);
            format!("double {}", String::from_utf8(digits).unwrap())
        }
        (None, other) => format!("{other:?}"),
    }
}

/// Recorded from pgbench 15.18; `the_recorded_results_are_those_of_pgbench` compares with the one at hand.
const RECORDED: &str = include_str!("pgbench_expressions.txt");

fn recorded() -> impl Iterator<Item = (&'static str, &'static str)> {
    RECORDED.lines().filter_map(|line| line.split_once("  =>  "))
}

#[test]
fn expressions_give_what_pgbench_gives() {
    assert!(recorded().count() > 150);
    for (expression, expected) in recorded() {
        assert_eq!(debugged(expression), expected, "{expression}");
    }
}

/// An expression of any shape, as text.
fn expression() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        any::<i64>().prop_map(|n| if n < 0 { format!("({n})") } else { n.to_string() }),
        (-20i64..20).prop_map(|n| n.to_string()),
        (-1e6f64..1e6).prop_map(|x| format!("{x:.4}")),
        Just("1e18".to_owned()),
        Just(":scale".to_owned()),
    ];
    let leaf = prop_oneof![4 => number, 1 => prop_oneof!["true", "false", "null"].prop_map(|word| word)];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let operator = prop::sample::select(vec![
            "+", "-", "*", "/", "%", "|", "#", "&", "<<", ">>", "=", "<>", "!=", "<", "<=", ">", ">=", "and", "or",
        ]);
        let one = prop::sample::select(vec!["double", "int", "exp", "ln", "sqrt", "hash", "hash_fnv1a"]);
        let two = prop::sample::select(vec!["mod", "pow", "least", "greatest", "hash_murmur2", "hash_fnv1a", "permute"]);
        let after = prop::sample::select(vec!["is null", "is not true", "is false", "isnull", "notnull"]);
        prop_oneof![
            6 => (inner.clone(), operator, inner.clone()).prop_map(|(left, op, right)| format!("{left} {op} {right}")),
            2 => inner.clone().prop_map(|inner| format!("({inner})")),
            1 => (prop::sample::select(vec!["-", "~", "+", "not "]), inner.clone()).prop_map(|(op, x)| format!("{op} {x}")),
            1 => (inner.clone(), after).prop_map(|(left, test)| format!("{left} {test}")),
            2 => (one, inner.clone()).prop_map(|(name, x)| format!("{name}({x})")),
            // Of a truth value pgbench's abs gives the bits as a float; ours refuses it.
            1 => inner.clone().prop_map(|x| format!("abs(0 + ({x}))")),
            2 => (two, inner.clone(), inner.clone()).prop_map(|(name, x, y)| format!("{name}({x}, {y})")),
            1 => (inner.clone(), inner.clone(), inner)
                .prop_map(|(x, y, z)| format!("case when {x} then {y} else {z} end")),
        ]
    })
}

proptest! {
    #[test]
    fn no_expression_panics(text in "[a-z0-9:'(), +*/<=>.|~#%-]{0,40}") {
        debugged(&text);
        let _ = parse(&text, Language::Extended, &mut Names::default());
    }

    #[test]
    fn no_well_formed_expression_panics(text in expression()) {
        debugged(&text);
    }
}

/// A PostgreSQL of its own on a socket, with pgbench, stopped and removed at the end.
struct Pgbench {
    folder: std::path::PathBuf,
}

const BINARIES: &str = "/usr/lib/postgresql/15/bin";
/// PostgreSQL refuses to run as root.
const NOBODY: u32 = 65_534;

impl Pgbench {
    fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("dyno-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pgbench = Pgbench { folder };
        if pgbench.is_root() {
            std::os::unix::fs::chown(&pgbench.folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let data = pgbench.folder.join("data");
        let data = data.to_str().unwrap();
        pgbench.run("initdb", &["-D", data, "-A", "trust", "-U", "postgres", "--no-sync"]);
        let settings = format!("-c listen_addresses= -k {} -c fsync=off", pgbench.folder.display());
        pgbench.run("pg_ctl", &["-D", data, "-w", "-l", &format!("{data}/log"), "-o", &settings, "start"]);
        pgbench
    }

    fn is_root(&self) -> bool {
        // SAFETY: geteuid only returns a number.
        unsafe { libc::geteuid() == 0 }
    }

    /// Runs one of PostgreSQL's programs and returns what it wrote to its standard error.
    fn run(&self, program: &str, arguments: &[&str]) -> String {
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new(format!("{BINARIES}/{program}"));
        command.args(arguments).current_dir(&self.folder).stdout(std::process::Stdio::null());
        if self.is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let log = self.folder.join("stderr");
        command.stderr(std::fs::File::create(&log).unwrap()).status().unwrap();
        std::fs::read_to_string(log).unwrap()
    }

    /// What pgbench makes of expressions, up to the first that fails.
    fn debugged(&self, expressions: &[&str]) -> Vec<String> {
        let lines: String = expressions.iter().map(|text| format!("\\set x debug({text})\n")).collect();
        let script = self.folder.join("script");
        std::fs::write(&script, format!("\\set default_seed 5\n{lines}")).unwrap();
        let socket = self.folder.to_str().unwrap();
        let shown = self.run(
            "pgbench",
            &["-h", socket, "-U", "postgres", "-n", "-t", "1", "-f", script.to_str().unwrap(), "postgres"],
        );
        let results = shown.lines().filter_map(|line| line.strip_prefix("debug(")?.split_once(": "));
        results.map(|(_, result)| result.to_owned()).collect()
    }
}

impl Drop for Pgbench {
    fn drop(&mut self) {
        let data = self.folder.join("data");
        self.run("pg_ctl", &["-D", data.to_str().unwrap(), "-m", "immediate", "stop"]);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
#[ignore = "needs the programs of PostgreSQL 15; takes a minute"]
fn the_recorded_results_are_those_of_pgbench() {
    let pgbench = Pgbench::start("recorded");
    for (expression, expected) in recorded() {
        let results = pgbench.debugged(&[expression]);
        assert_eq!(results.last().map_or("error", String::as_str), expected, "{expression}");
    }
}

/// Thousands of expressions of every shape: what fails there must fail here, what gives a value must give the same.
#[test]
#[ignore = "needs the programs of PostgreSQL 15; takes minutes"]
fn random_expressions_give_what_pgbench_gives() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let (pgbench, mut runner) = (Pgbench::start("random"), TestRunner::deterministic());
    let all: Vec<String> =
        (0..20_000).map(|_| expression().new_tree(&mut runner).unwrap().current()).collect();
    let (good, bad): (Vec<&str>, Vec<&str>) =
        all.iter().map(String::as_str).partition(|text| debugged(text) != "error");
    for batch in good.chunks(500) {
        let results = pgbench.debugged(batch);
        for (number, expression) in batch.iter().enumerate() {
            let theirs = results.get(number).map_or("error", String::as_str);
            assert!(
                same(&debugged(expression), theirs),
                "{expression}: {} here, {theirs} there",
                debugged(expression)
            );
        }
    }
    for expression in bad.iter().take(1500) {
        assert_eq!(pgbench.debugged(&[expression]), Vec::<String>::new(), "{expression} fails here only");
    }
    eprintln!("{} expressions with a value and {} that fail compared", good.len(), bad.len().min(1500));
}

/// The same result; floats may differ in their last digit, where the mathematics libraries do.
fn same(ours: &str, theirs: &str) -> bool {
    let number = |text: &str| text.strip_prefix("double ").and_then(|text| text.parse::<f64>().ok());
    match (number(ours), number(theirs)) {
        (Some(ours), Some(theirs)) => {
            ours == theirs || (ours.is_nan() && theirs.is_nan()) || ((ours - theirs) / theirs).abs() < 1e-13
        }
        _ => ours == theirs,
    }
}

#[test]
fn where_the_client_that_asks_is_given_up_another_asks() {
    let asked = AtomicBool::default();
    let first = Asking::begin(&asked);
    assert!(first.is_some());
    for _ in 0..2 {
        assert!(Asking::begin(&asked).is_none(), "who is refused a turn ends nobody's");
    }
    drop(first);
    assert!(Asking::begin(&asked).is_some());
}
