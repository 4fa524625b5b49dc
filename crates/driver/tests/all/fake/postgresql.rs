//! Answers in the protocol of PostgreSQL.

use super::{Stage, Voice};

#[derive(Default)]
pub struct Postgresql {
    logged_in: bool,
    in_transaction: bool,
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

impl Postgresql {
    fn ready(&self) -> Vec<u8> {
        message(b'Z', if self.in_transaction { b"T" } else { b"I" })
    }

    fn row_description() -> Vec<u8> {
        // One column v of type int8.
        message(b'T', b"\0\x01v\0\0\0\0\0\0\0\0\0\0\x14\0\x08\xFF\xFF\xFF\xFF\0\0")
    }

    /// The answer to the messages up to a Sync.
    fn extended(&self, kinds: &[u8]) -> (Stage, Vec<u8>) {
        if kinds.contains(&b'P') {
            let parts = [
                message(b'1', b""),
                message(b't', b"\0\x01\0\0\0\x14"),
                Self::row_description(),
                self.ready(),
            ];
            return (Stage::Prepare, parts.concat());
        }
        let row = message(b'D', b"\0\x01\0\0\0\x08\0\0\0\0\0\0\0\x07");
        (Stage::Execute, [message(b'2', b""), row, message(b'C', b"SELECT 1\0"), self.ready()].concat())
    }
}

impl Voice for Postgresql {
    /// PostgreSQL speaks when it is spoken to.
    fn greeting(&self) -> Vec<u8> {
        Vec::new()
    }

    fn answer(&mut self, received: &mut Vec<u8>) -> Option<(Stage, Vec<u8>)> {
        if !self.logged_in {
            let length = u32::from_be_bytes(received.get(..4)?.try_into().ok()?) as usize;
            let body: Vec<u8> = received.get(4..length)?.to_vec();
            received.drain(..length);
            // A request for TLS or GSS is declined; it is the first thing that is said.
            if body.starts_with(&80_877_103u32.to_be_bytes())
                || body.starts_with(&80_877_104u32.to_be_bytes())
            {
                return Some((Stage::Greeting, b"N".to_vec()));
            }
            self.logged_in = true;
            let parts = [
                message(b'R', &[0; 4]),
                message(b'S', b"server_version\x0015.99\0"),
                message(b'K', &[0; 8]),
                self.ready(),
            ];
            return Some((Stage::Login, parts.concat()));
        }
        let (mut at, mut kinds) = (0, Vec::new());
        loop {
            let kind = *received.get(at)?;
            let length = u32::from_be_bytes(received.get(at + 1..at + 5)?.try_into().ok()?) as usize;
            let body = received.get(at + 5..at + 1 + length)?;
            kinds.push(kind);
            match kind {
                b'Q' => {
                    self.in_transaction = body.starts_with(b"BEGIN");
                    received.drain(..at + 1 + length);
                    return Some((Stage::Text, [message(b'C', b"BEGIN\0"), self.ready()].concat()));
                }
                b'S' => {
                    received.drain(..at + 1 + length);
                    return Some(self.extended(&kinds));
                }
                _ => at += 1 + length,
            }
        }
    }

    fn packets(&self, _stage: Stage, _before: usize, count: usize, bytes: usize) -> Vec<u8> {
        // Notices, which may come at any time.
        message(b'N', &vec![0; bytes]).repeat(count)
    }
}
