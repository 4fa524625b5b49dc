//! The MySQL protocol's building blocks: reading with every length checked, and writing.

use crate::error::{Error, Result};

/// A payload of this length goes on in the next packet.
pub(super) const PACKET_MAX: usize = 0x00FF_FFFF;
pub(super) const HEADER_BYTES: usize = 4;
/// What the server is told to send at most in one payload, over all its packets: the most that `max_allowed_packet` takes.
pub(super) const PAYLOAD_BYTES_MAX: u32 = 1 << 30;

/// Length and sequence number of a packet, from its header.
#[inline]
pub(super) fn header(bytes: &[u8]) -> Option<(usize, u8)> {
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
    Some((usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16, header[3]))
}

/// Whether a payload of which so much is here may go on in another packet.
pub(super) fn joinable(bytes: usize) -> Result<()> {
    if bytes > PAYLOAD_BYTES_MAX as usize {
        return Err(Error::protocol("the server sent a row of more than 1 GiB"));
    }
    Ok(())
}

/// Reads a payload from its start. A read beyond the end is an error of the server's.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(payload: &'a [u8]) -> Self {
        Reader { rest: payload }
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(short()),
        }
    }

    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.rest.split_first_chunk() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(*taken)
            }
            None => Err(short()),
        }
    }

    pub fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded integer; `None` for the byte that stands for NULL.
    #[inline]
    pub fn length(&mut self) -> Result<Option<u64>> {
        Ok(Some(match self.u8()? {
            small @ 0..=0xFA => u64::from(small),
            0xFB => return Ok(None),
            0xFC => u64::from(self.u16()?),
            0xFD => {
                let [low, middle, high] = self.array()?;
                u64::from(low) | u64::from(middle) << 8 | u64::from(high) << 16
            }
            0xFE => self.u64()?,
            0xFF => return Err(Error::protocol("the server sent an impossible length")),
        }))
    }

    /// A length-encoded integer that cannot be NULL.
    pub fn count(&mut self) -> Result<u64> {
        self.length()?.ok_or_else(|| Error::protocol("the server sent NULL where a number must be"))
    }

    /// A length-encoded string; `None` for NULL.
    #[inline]
    pub fn string(&mut self) -> Result<Option<&'a [u8]>> {
        match self.length()? {
            None => Ok(None),
            Some(length) => self.bytes(usize::try_from(length).map_err(|_| short())?).map(Some),
        }
    }

    /// A string up to a zero byte (or to the end, as old servers send the last one).
    pub fn until_zero(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(|&byte| byte == 0);
        let taken = &self.rest[..end.unwrap_or(self.rest.len())];
        self.rest = end.map_or(&[], |end| &self.rest[end + 1..]);
        taken
    }
}

fn short() -> Error {
    Error::protocol("the server sent a packet that ends too early")
}

pub(super) fn put_length(out: &mut Vec<u8>, length: u64) {
    match length {
        0..=0xFA => out.push(length as u8),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&(length as u16).to_le_bytes());
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&length.to_le_bytes());
        }
    }
}

pub(super) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Starts a packet; returns where, for `end_packet`.
#[inline]
pub(super) fn start_packet(out: &mut Vec<u8>, sequence: u8) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, sequence]);
    start
}

/// Sets the length of the packet begun at `start`, and divides it where it is too long for one.
#[inline]
pub(super) fn end_packet(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start - HEADER_BYTES;
    if length < PACKET_MAX {
        out[start..start + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
    } else {
        divide(out, start);
    }
}

#[cold]
fn divide(out: &mut Vec<u8>, start: usize) {
    let mut sequence = out[start + 3];
    let payload = out.split_off(start + HEADER_BYTES);
    out.truncate(start);
    let mut pieces = payload.chunks(PACKET_MAX).peekable();
    while let Some(piece) = pieces.next() {
        put_piece(out, piece, sequence);
        sequence = sequence.wrapping_add(1);
        // A last piece of full length must be followed by an empty one.
        if piece.len() == PACKET_MAX && pieces.peek().is_none() {
            put_piece(out, &[], sequence);
        }
    }
}

fn put_piece(out: &mut Vec<u8>, piece: &[u8], sequence: u8) {
    out.extend_from_slice(&(piece.len() as u32).to_le_bytes()[..3]);
    out.push(sequence);
    out.extend_from_slice(piece);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_packet_is_divided_and_a_full_one_followed_by_an_empty_one() {
        for (length, pieces) in
            [(5, vec![5]), (PACKET_MAX, vec![PACKET_MAX, 0]), (PACKET_MAX + 2, vec![PACKET_MAX, 2])]
        {
            let mut out = b"before".to_vec();
            let start = start_packet(&mut out, 7);
            out.extend(std::iter::repeat_n(1, length));
            end_packet(&mut out, start);
            let (mut rest, mut sequence) = (&out[6..], 7);
            for piece in pieces {
                assert_eq!(header(rest), Some((piece, sequence)));
                rest = &rest[HEADER_BYTES + piece..];
                sequence += 1;
            }
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn a_payload_without_end_is_refused() {
        assert!(joinable(PAYLOAD_BYTES_MAX as usize).is_ok());
        assert!(joinable(PAYLOAD_BYTES_MAX as usize + 1).unwrap_err().message().contains("1 GiB"));
    }

    proptest! {
        #[test]
        fn what_is_put_is_read(length: u64, bytes in proptest::collection::vec(any::<u8>(), 0..70_000)) {
            let mut out = Vec::new();
            put_length(&mut out, length);
            put_string(&mut out, &bytes);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.count().unwrap(), length);
            prop_assert_eq!(reader.string().unwrap().unwrap(), &bytes[..]);
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn garbage_is_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut reader = Reader::new(&bytes);
            while !reader.is_empty() {
                if reader.string().is_err() {
                    break;
                }
            }
            Reader::new(&bytes).until_zero();
        }
    }
}
