//! The PostgreSQL session against a server that says anything.

#![no_main]

use dyno_driver::session::postgresql::Postgresql;
use dyno_fuzz::{converse, Listener};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static LISTENER: OnceLock<Listener> = OnceLock::new();

fn message(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind][..], &(payload.len() as u32 + 4).to_be_bytes(), payload].concat()
}

fn welcome() -> Vec<u8> {
    [message(b'R', &[0; 4]), message(b'S', b"server_version\x0015.99\0"), message(b'Z', b"I")].concat()
}

/// Frames what follows: each message is its kind, a byte of length, and as many bytes.
fn framed(mut data: &[u8]) -> Vec<u8> {
    let mut words = Vec::new();
    while let [kind, length, rest @ ..] = data {
        let (payload, rest) = rest.split_at(rest.len().min((*length).into()));
        words.extend(message(*kind, payload));
        data = rest;
    }
    words
}

fuzz_target!(|data: &[u8]| {
    let Some((&how, rest)) = data.split_first() else { return };
    let words = match how % 4 {
        0 => rest.to_vec(),
        1 => [welcome(), rest.to_vec()].concat(),
        2 => framed(rest),
        _ => [welcome(), framed(rest)].concat(),
    };
    let listener = LISTENER.get_or_init(|| Listener::start(".s.PGSQL.5432"));
    listener.say(words);
    converse::<Postgresql>(&format!(
        "postgresql://root:secret@localhost/x?socket={}",
        listener.path.display()
    ));
});
