//! Servers that lie: whatever bytes come, the driver neither panics nor hangs.

use crate::sincere::{greeting, packet, OK};
use dyno_driver::{query, Kind, Watch};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

static SOCKETS: AtomicU32 = AtomicU32::new(0);

/// Greets, lets everyone in, and answers the first command with `answer`.
fn sincere_until_asked(mut stream: UnixStream, answer: &[u8]) -> std::io::Result<()> {
    let mut buffer = [0; 4096];
    stream.write_all(&greeting())?;
    // What the driver says fits into one read, and does not matter.
    let _log_in_bytes = stream.read(&mut buffer)?;
    stream.write_all(&packet(2, OK))?;
    let _question_bytes = stream.read(&mut buffer)?;
    stream.write_all(answer)
}

/// Asks a server that behaves as `serve` says; gives the driver's answer.
fn ask(serve: impl FnOnce(UnixStream) + Send + 'static) -> Result<serde_json::Value, dyno_driver::Error> {
    let number = SOCKETS.fetch_add(1, Ordering::Relaxed);
    let path: PathBuf =
        std::env::temp_dir().join(format!("dyno-hostile-{}-{number}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        if let Ok((stream, _)) = listener.accept() {
            serve(stream);
        }
    });
    let url = format!("mysql://root@localhost/x?socket={}", path.display());
    let answer =
        query(&url, "SELECT 1", &mut Watch { interrupted: &mut || false, on_second: None, next_slice: None });
    server.join().unwrap();
    let _ = std::fs::remove_file(path);
    answer
}

fn answered_with(answer: Vec<u8>) -> Result<serde_json::Value, dyno_driver::Error> {
    ask(move |stream| drop(sincere_until_asked(stream, &answer)))
}

/// One column named x, of type LONG, as MariaDB defines it.
fn definition(sequence: u8) -> Vec<u8> {
    packet(sequence, b"\x03def\0\0\0\x01x\0\x0C\x3F\0\x0B\0\0\0\x03\0\0\0\0\0")
}

#[test]
fn the_sincere_server_of_these_tests_is_understood() {
    let answer =
        [packet(1, &[1, 1]), definition(2), packet(3, b"\x017"), packet(4, &[0xFE, 0, 0, 2, 0, 0, 0])]
            .concat();
    let answer = answered_with(answer).unwrap();
    assert_eq!(answer["rows"], serde_json::json!([[7]]));
    assert_eq!(answer["columns"], serde_json::json!(["x"]));
}

#[test]
fn lies_are_named() {
    let lies: Vec<(Vec<u8>, &str)> = vec![
        (packet(5, &[0, 0, 0, 2, 0, 0, 0]), "packet number 5 where 1 was due"),
        (packet(1, &[0xFB, b'/', b'x']), "local file"),
        (packet(1, &[0xFD, 0xFF, 0xFF, 0xFF]), "columns"),
        (packet(1, &[0x00]), "ends too early"),
        (vec![0xFF, 0xFF, 0xFF, 1], "closed"),
        (vec![10, 0, 0], "closed"),
        (Vec::new(), "closed"),
        (packet(1, &[]), "ends too early"),
    ];
    for (answer, word) in lies {
        let error = answered_with(answer.clone()).unwrap_err();
        assert!(error.message().contains(word), "{answer:?} gave: {error}");
    }
}

#[test]
fn a_row_of_many_packets_is_read() {
    let length = 70usize << 20;
    let row = [&[0xFE][..], &length.to_le_bytes(), &vec![b'x'; length]].concat();
    let mut answer = [packet(1, &[1, 1]), definition(2)].concat();
    let pieces = row.chunks(0xFF_FFFF);
    let end = 3 + pieces.len() as u8;
    pieces.zip(3..).for_each(|(piece, sequence)| answer.extend(packet(sequence, piece)));
    answer.extend(packet(end, &[0xFE, 0, 0, 2, 0, 0, 0]));
    let rows = &answered_with(answer).unwrap()["rows"];
    assert_eq!(rows[0][0].as_str().map(str::len), Some(length));
}

#[test]
fn a_server_that_authenticates_for_ever_is_stopped() {
    let error = ask(|mut stream| {
        let mut sequence = 2;
        let _ = stream.write_all(&greeting());
        while matches!(stream.read(&mut [0; 4096]), Ok(1..)) {
            let _ =
                stream.write_all(&packet(sequence, b"\xFEmysql_native_password\x0012345678901234567890\0"));
            sequence = sequence.wrapping_add(2);
        }
    })
    .unwrap_err();
    assert_eq!(error.kind(), Kind::Connect);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_greeting_of_garbage_is_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let answer = ask(move |mut stream| drop(stream.write_all(&bytes)));
        prop_assert!(answer.is_err());
    }

    #[test]
    fn an_answer_of_garbage_is_no_panic(payloads in
        proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6),
        breaks in 0u8..4,
    ) {
        let mut answer = Vec::new();
        for (index, payload) in payloads.iter().enumerate() {
            answer.extend(packet(index as u8 + 1 + u8::from(breaks == 1), payload));
        }
        if breaks == 2 {
            answer.truncate(answer.len() / 2);
        }
        // Whatever it means, it ends.
        let _ = answered_with(answer);
    }

    #[test]
    fn a_true_answer_with_one_byte_changed_is_no_panic(place in 0usize..60, byte: u8) {
        let mut answer =
            [packet(1, &[1, 1]), definition(2), packet(3, b"\x017"), packet(4, &[0xFE, 0, 0, 2, 0, 0, 0])].concat();
        if let Some(changed) = answer.get_mut(place) {
            *changed = byte;
        }
        let _ = answered_with(answer);
    }
}
