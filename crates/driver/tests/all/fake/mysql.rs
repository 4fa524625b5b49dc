//! Answers in the protocol of MySQL, of a server without metadata caching.

use super::{Stage, Voice};

#[derive(Default)]
pub struct Mysql {
    logged_in: bool,
}

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
/// OK with the header of an EOF, as DEPRECATE_EOF has it.
const END: &[u8] = &[0xFE, 0, 0, 2, 0, 0, 0];

/// Frames payloads as packets numbered from `first`.
fn framed(first: u8, payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, payload) in payloads.iter().enumerate() {
        bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes()[..3]);
        bytes.push(first.wrapping_add(number as u8));
        bytes.extend_from_slice(payload);
    }
    bytes
}

/// The definition of the BIGINT column `v`.
fn column() -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in ["def", "test", "t", "t", "v", "v"] {
        bytes.push(text.len() as u8);
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes.extend_from_slice(&[12, 63, 0, 20, 0, 0, 0, 8, 0, 0, 0, 0, 0]);
    bytes
}

impl Voice for Mysql {
    fn greeting(&self) -> Vec<u8> {
        let mut payload = vec![10];
        payload.extend_from_slice(b"8.0.99-fake\0\x01\0\0\0abcdefgh\0");
        // LONG_PASSWORD, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH, DEPRECATE_EOF
        let capabilities: u32 = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x8_0000 | 0x100_0000;
        payload.extend_from_slice(&capabilities.to_le_bytes()[..2]);
        payload.extend_from_slice(&[45, 2, 0]);
        payload.extend_from_slice(&capabilities.to_le_bytes()[2..]);
        payload.push(21);
        payload.extend_from_slice(&[0; 10]);
        payload.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        framed(0, &[payload])
    }

    fn answer(&mut self, received: &mut Vec<u8>) -> Option<(Stage, Vec<u8>)> {
        let length = usize::from(*received.first()?) | usize::from(*received.get(1)?) << 8;
        if received.len() < 4 + length {
            return None;
        }
        let packet: Vec<u8> = received.drain(..4 + length).collect();
        if !std::mem::replace(&mut self.logged_in, true) {
            return Some((Stage::Login, framed(2, &[OK.to_vec()])));
        }
        Some(match packet.get(4)? {
            // COM_STMT_PREPARE: statement 1, one column, as many parameters as there are question marks.
            0x16 => {
                let parameters = packet.iter().filter(|byte| **byte == b'?').count();
                let mut payloads = vec![vec![0, 1, 0, 0, 0, 1, 0, parameters as u8, 0, 0, 0, 0]];
                payloads.extend(std::iter::repeat_with(column).take(parameters + 1));
                (Stage::Prepare, framed(1, &payloads))
            }
            // COM_STMT_EXECUTE: one row with 7 in it.
            0x17 => {
                let row = vec![0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
                (Stage::Execute, framed(1, &[vec![1], column(), row, END.to_vec()]))
            }
            // COM_QUIT has no answer.
            0x01 => return None,
            _ => (Stage::Text, framed(1, &[OK.to_vec()])),
        })
    }

    fn packets(&self, stage: Stage, before: usize, count: usize, bytes: usize) -> Vec<u8> {
        let first = match stage {
            Stage::Greeting => 0,
            Stage::Login => 2,
            _ => 1,
        };
        // The first payload byte says: two columns, which a text or a row may begin with too.
        framed((first + before) as u8, &vec![vec![2; bytes]; count])
    }

    fn misnumbered(&self, mut answer: Vec<u8>) -> Vec<u8> {
        answer[3] = answer[3].wrapping_add(1);
        answer
    }
}
