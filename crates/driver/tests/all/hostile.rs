//! Servers that lie, dawdle, flood and die: whatever they send, the driver neither crashes nor hangs, and says what it
//! lost. The servers speak just enough of MySQL's and PostgreSQL's protocols to be believed until they attack.

use crate::fake::{self, Attack, Fake, Protocol, Stage};
use dyno_driver::{Kind, Watch};
use std::sync::mpsc;
use std::time::Duration;

/// Far beyond the driver's own limits (a grace of 10 s after the end of a run): reached only by a driver that hangs.
const HANGS_AFTER: Duration = Duration::from_secs(60);

/// What the driver made of a server.
#[derive(Debug)]
enum Fate {
    /// It gave up with an error.
    Refused(Kind, String),
    /// It ran to the end: the tally.
    Ran(serde_json::Value),
}

fn run(protocol: Protocol, stage: Stage, attack: Attack, backend: &str, reconnect: bool) -> Fate {
    let fake = Fake::start(protocol, stage, attack);
    let script = fake.folder.join("hostile.sql");
    std::fs::write(&script, "\\set id random(1, 9)\nBEGIN;\nSELECT v FROM t WHERE id = :id;\nEND;\n")
        .unwrap();
    // Most runs end with their connections or their operations, and have time on a machine that is busy. A flood takes
    // the CPUs as long as it lasts. Of an answer with a wrong byte a client meets some, and learns no more from others.
    let (duration_s, limit_s) = if FLOODS.contains(&attack) { (0.1, 0.1) } else { (2.0, 0.3) };
    let operations = if attack.is_a_wrong_byte() { 20 } else { 200 };
    let job = serde_json::json!({
        "url": fake.url(), "workload": script, "clients": 2, "threads": 1, "backend": backend, "duration_s": duration_s,
        "operations": operations, "connect_timeout_s": limit_s, "answer_timeout_s": limit_s, "reconnect": reconnect,
    })
    .to_string();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut never = || false;
        let outcome =
            dyno_driver::run(&job, &mut Watch { interrupted: &mut never, on_second: None, next_slice: None });
        let _ = sender.send(outcome);
    });
    match receiver.recv_timeout(HANGS_AFTER) {
        Ok(Ok(tally)) => Fate::Ran(tally),
        Ok(Err(error)) => Fate::Refused(error.kind(), error.to_string()),
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{stage:?}, {attack:?}, {backend}: the driver hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            panic!("{stage:?}, {attack:?}, {backend}: the driver crashed")
        }
    }
}

fn backends() -> Vec<&'static str> {
    match dyno_driver::io::io_uring_works() {
        Ok(()) => vec!["epoll", "io_uring"],
        Err(_) => vec!["epoll"],
    }
}

/// Tries every attack at every stage over every back end; `judge` is told how each ended.
fn try_all(
    protocol: Protocol,
    attacks: &[Attack],
    backends: &[&str],
    judge: impl Fn(Stage, Attack, &Fate) + Sync,
) {
    // The last stages first, because a flood there lasts as long as transactions under way may take.
    let cases: Vec<(Stage, Attack, &&str)> = Stage::ALL
        .into_iter()
        .rev()
        .flat_map(|stage| attacks.iter().map(move |attack| (stage, *attack)))
        .filter(|(stage, attack)| attack.place() < fake::longest_given(protocol, *stage).max(1))
        .flat_map(|(stage, attack)| backends.iter().map(move |backend| (stage, attack, backend)))
        .collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // Most cases wait for a time limit, so many can go on at once.
        for _ in 0..16 {
            scope.spawn(|| {
                while let Some(&(stage, attack, backend)) =
                    cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let fate = run(protocol, stage, attack, backend, false);
                    if let Fate::Refused(Kind::Internal, message) = &fate {
                        panic!("{stage:?}, {attack:?}, {backend}: {message}");
                    }
                    judge(stage, attack, &fate);
                }
            });
        }
    });
}

/// Attacks after which the connection is of no use: a client that met one must not have counted a success of it.
fn ends_the_connection(stage: Stage, attack: Attack, fate: &Fate) {
    match fate {
        Fate::Refused(kind, message) => {
            assert!(!message.is_empty());
            assert!(*kind != Kind::User, "{stage:?}, {attack:?}: {message}");
        }
        Fate::Ran(tally) => {
            let errors = tally["errors"].as_object().unwrap();
            assert!(!errors.is_empty(), "{stage:?}, {attack:?}: no error in {tally}");
            let (operations, acknowledged) = (&tally["operations"], &tally["acknowledged"]);
            assert!(operations.as_u64() <= acknowledged.as_u64(), "{stage:?}, {attack:?}: {tally}");
        }
    }
}

const ENDINGS: [Attack; 9] = [
    Attack::Close,
    Attack::Reset,
    Attack::Silence,
    Attack::HalfThenClose,
    Attack::HalfThenReset,
    Attack::HalfThenSilence,
    Attack::Zeros,
    Attack::Ones,
    Attack::TooLong,
];

const FLOODS: [Attack; 3] = [Attack::Huge, Attack::EndlessPackets, Attack::EndlessDrip];

#[test]
fn a_mysql_server_that_dies_is_noticed() {
    try_all(Protocol::Mysql, &ENDINGS, &backends(), ends_the_connection);
    try_all(Protocol::Mysql, &[Attack::WrongSequence], &backends(), ends_the_connection);
}

#[test]
fn a_postgresql_server_that_dies_is_noticed() {
    try_all(Protocol::Postgresql, &ENDINGS, &backends(), ends_the_connection);
}

#[test]
fn a_mysql_server_that_floods_ends_in_time() {
    try_all(Protocol::Mysql, &FLOODS, &backends(), |_, _, _| ());
}

#[test]
fn a_postgresql_server_that_floods_ends_in_time() {
    try_all(Protocol::Postgresql, &FLOODS, &backends(), |_, _, _| ());
}

/// A slow server is no broken one.
#[test]
fn an_answer_that_drips_is_an_answer() {
    for protocol in [Protocol::Mysql, Protocol::Postgresql] {
        for backend in backends() {
            match run(protocol, Stage::Execute, Attack::Drip, backend, false) {
                Fate::Ran(tally) => assert_eq!(tally["errors"], serde_json::json!({}), "{tally}"),
                Fate::Refused(_, message) => panic!("{message}"),
            }
        }
    }
}

/// Every byte of every answer, set to 0, to 255, and with its highest bit turned.
#[test]
fn no_single_wrong_byte_crashes_or_hangs() {
    let attacks: Vec<Attack> = (0..fake::LONGEST_ANSWER)
        .flat_map(|at| {
            [Attack::SetByte { at, to: 0 }, Attack::SetByte { at, to: 0xFF }, Attack::TurnBit { at }]
        })
        .collect();
    for protocol in [Protocol::Mysql, Protocol::Postgresql] {
        try_all(protocol, &[Attack::None], &["epoll"], |_, _, _| ());
        assert!(Stage::ALL.iter().all(|stage| fake::longest_given(protocol, *stage) > 0));
        try_all(protocol, &attacks, &["epoll"], |_, _, _| ());
    }
}

#[test]
fn lost_connections_are_opened_again_and_what_was_lost_is_counted() {
    for protocol in [Protocol::Mysql, Protocol::Postgresql] {
        for backend in backends() {
            let Fate::Ran(tally) = run(protocol, Stage::Execute, Attack::ResetSometimes, backend, true)
            else {
                panic!("the run ended early");
            };
            let lost: u64 = tally["errors"]
                .as_object()
                .unwrap()
                .iter()
                .filter(|(label, _)| label.starts_with("connection"))
                .map(|(_, count)| count.as_u64().unwrap())
                .sum();
            assert!(lost >= 2, "{tally}");
            assert!(tally["operations"].as_u64().unwrap() > lost, "{tally}");
            // Every transaction whose connection was lost is unknown, none is forgotten.
            assert!(tally["unknown"].as_u64().unwrap() >= lost, "{tally}");
        }
    }
}
