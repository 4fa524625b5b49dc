//! How often a session over MariaDB's protocol waits for the server: a wait that is not the workload's own would be
//! measured with it. The server notes what each flight of commands held.

use crate::sincere::{greeting, packet, OK};
use dyno_driver::io::{block_on, Backend};
use dyno_driver::session::mysql::Mysql;
use dyno_driver::session::{Session, Target, Value};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

const EXECUTE: u8 = 0x17;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;

/// Lets one client in and answers all that it says; gives what came in each flight.
fn serve(mut stream: UnixStream) -> Vec<Vec<String>> {
    let (mut buffer, mut flights) = ([0; 4096], Vec::new());
    stream.write_all(&greeting()).unwrap();
    let log_in_bytes = stream.read(&mut buffer).unwrap();
    assert!(log_in_bytes > 0);
    stream.write_all(&packet(2, OK)).unwrap();
    while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
        let commands = commands(&buffer[..bytes]);
        for (name, _) in &commands {
            // A prepared statement has number 1, no column and one parameter.
            let answer = match name {
                &PREPARE => {
                    [packet(1, &[0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]), packet(2, &definition())].concat()
                }
                _ => packet(1, OK),
            };
            // The client has gone away by the time its last words are answered.
            let _ = stream.write_all(&answer);
        }
        flights.push(commands.into_iter().filter_map(|(name, text)| said(name, text)).collect());
    }
    flights
}

/// The column `v`, of type BIGINT.
fn definition() -> Vec<u8> {
    b"\x03def\0\0\0\x01v\0\x0C\x3F\0\x14\0\0\0\x08\0\0\0\0\0".to_vec()
}

/// The commands of one flight: what each is, and its text.
fn commands(mut flight: &[u8]) -> Vec<(u8, String)> {
    let mut commands = Vec::new();
    while let [low, middle, high, 0, rest @ ..] = flight {
        let length = usize::from(*low) | usize::from(*middle) << 8 | usize::from(*high) << 16;
        commands.push((rest[0], String::from_utf8_lossy(&rest[1..length]).into_owned()));
        flight = &rest[length..];
    }
    assert!(flight.is_empty(), "a flight comes in one piece: {flight:?}");
    commands
}

fn said(name: u8, text: String) -> Option<String> {
    match name {
        EXECUTE => Some("execute".to_owned()),
        QUERY => Some(text),
        _ => None,
    }
}

/// What a client's flights hold that does `task` with a prepared statement.
fn flights(task: impl AsyncFnOnce(&mut Mysql, dyno_driver::session::Statement)) -> Vec<Vec<String>> {
    static SOCKETS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = SOCKETS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("dyno-round-trips-{}-{number}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || serve(listener.accept().unwrap().0));
    let target = Target::parse(&format!("mysql://root@localhost/x?socket={}", path.display())).unwrap();
    let whole = async {
        let mut session = Mysql::connect(&target).await.unwrap();
        let statement = session.prepare("UPDATE t SET v = ?").await.unwrap();
        task(&mut session, statement).await;
        session.close().await;
    };
    block_on(Backend::Epoll, whole, || false).unwrap().unwrap();
    std::fs::remove_file(path).unwrap();
    let mut flights = server.join().unwrap();
    flights.retain(|flight| !flight.is_empty());
    flights
}

const ONE: &[Value<'_>] = &[Value::Int(1)];
const TWO: &[Value<'_>] = &[Value::Int(1), Value::Int(2)];

#[test]
fn a_transaction_of_single_statements_is_told_nothing_of_autocommit() {
    let flights = flights(async |session, statement| {
        for _ in 0..2 {
            session.begin().await.unwrap();
            session.execute(statement, ONE, &mut ()).await.unwrap();
            session.commit().await.unwrap();
            session.execute(statement, ONE, &mut ()).await.unwrap();
        }
    });
    assert_eq!(flights, [["BEGIN"], ["execute"], ["COMMIT"], ["execute"]].repeat(2));
}

#[test]
fn a_batch_turns_autocommit_off_in_its_own_flight_and_the_next_statement_on_again() {
    let flights = flights(async |session, statement| {
        for _ in 0..2 {
            session.begin().await.unwrap();
            session.execute_batch(statement, TWO, 1, &mut ()).await.unwrap();
            session.commit().await.unwrap();
        }
        for _ in 0..2 {
            session.execute(statement, ONE, &mut ()).await.unwrap();
            session.text("DO 1", &mut ()).await.unwrap();
        }
        session.begin().await.unwrap();
        session.execute_batch(statement, TWO, 1, &mut ()).await.unwrap();
        session.rollback().await.unwrap();
        session.execute_batch(statement, TWO, 1, &mut ()).await.unwrap();
    });
    let expected: [&[&str]; 14] = [
        &["BEGIN"],
        &["SET autocommit = 0", "execute", "execute"],
        &["COMMIT"],
        &["BEGIN"],
        &["execute", "execute"],
        &["COMMIT"],
        &["SET autocommit = 1", "execute"],
        &["DO 1"],
        &["execute"],
        &["DO 1"],
        &["BEGIN"],
        &["SET autocommit = 0", "execute", "execute"],
        &["ROLLBACK"],
        &["SET autocommit = 1", "execute", "execute"],
    ];
    assert_eq!(flights, expected);
}

#[test]
fn a_statement_that_was_not_sent_leaves_nothing_behind() {
    let flights = flights(async |session, statement| {
        session.begin().await.unwrap();
        session.execute_batch(statement, TWO, 2, &mut ()).await.unwrap_err();
        session.execute_batch(statement, &TWO[..1], 1, &mut ()).await.unwrap();
        session.commit().await.unwrap();
    });
    let expected: [&[&str]; 3] = [&["BEGIN"], &["SET autocommit = 0", "execute"], &["COMMIT"]];
    assert_eq!(flights, expected);
}
