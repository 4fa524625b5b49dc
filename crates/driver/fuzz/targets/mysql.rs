//! The MySQL session against a server that says anything.

#![no_main]

use dyno_driver::session::mysql::Mysql;
use dyno_fuzz::{converse, Listener};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static LISTENER: OnceLock<Listener> = OnceLock::new();

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u32).to_le_bytes()[..3], &[sequence], payload].concat()
}

/// A greeting that is believed, and a log-in that succeeds; `mariadb` with that server's extensions.
fn welcome(mariadb: bool) -> Vec<u8> {
    let mut payload = if mariadb { b"\x0A11.8.6-MariaDB\0".to_vec() } else { b"\x0A8.0.99\0".to_vec() };
    payload.extend_from_slice(b"\x07\0\0\0abcdefgh\0");
    let low: u16 = 0xF7FE | u16::from(!mariadb);
    payload.extend_from_slice(&low.to_le_bytes());
    payload.extend_from_slice(&[45, 2, 0, 0xFF, 0x81, 21, 0, 0, 0, 0, 0, 0]);
    payload.extend_from_slice(&if mariadb { [0x1D, 0, 0, 0] } else { [0; 4] });
    payload.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
    [packet(0, &payload), packet(2, &[0, 0, 0, 2, 0, 0, 0])].concat()
}

/// Frames what follows: each packet is led by a byte of length; 255 starts the next answer, whose numbers begin anew.
fn framed(mut data: &[u8]) -> Vec<u8> {
    let (mut words, mut sequence) = (Vec::new(), 1u8);
    while let Some((&length, rest)) = data.split_first() {
        if length == 255 {
            (sequence, data) = (1, rest);
            continue;
        }
        let (payload, rest) = rest.split_at(rest.len().min(length.into()));
        words.extend(packet(sequence, payload));
        (sequence, data) = (sequence.wrapping_add(1), rest);
    }
    words
}

fuzz_target!(|data: &[u8]| {
    let Some((&how, rest)) = data.split_first() else { return };
    let words = match how % 4 {
        0 => rest.to_vec(),
        1 => [welcome(false), rest.to_vec()].concat(),
        2 => [welcome(false), framed(rest)].concat(),
        _ => [welcome(true), framed(rest)].concat(),
    };
    let listener = LISTENER.get_or_init(|| Listener::start("mysql"));
    listener.say(words);
    converse::<Mysql>(&format!("mysql://root@localhost/x?socket={}", listener.path.display()));
});
