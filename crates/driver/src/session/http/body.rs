//! The body of an answer, put together from bytes as they arrive.

use super::answer::Framing;
use crate::error::{Error, Result};

/// No answer that a script asks for comes near this.
const BODY_BYTES_MAX: usize = 64 << 20;
/// The longest line between chunks, and all lines behind the last one.
const LINES_BYTES_MAX: usize = 16 << 10;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Whole,
    Counted {
        left: u64,
    },
    UntilEnd,
    ChunkSize,
    Chunk {
        left: u64,
    },
    ChunkEnd,
    /// The lines behind the last chunk, of which so many bytes may still come.
    Trailers {
        room: usize,
    },
}

impl Reader {
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::Empty | Framing::Length(0) => Reader::Whole,
            Framing::Length(left) => Reader::Counted { left },
            Framing::Chunked => Reader::ChunkSize,
            Framing::UntilEnd => Reader::UntilEnd,
        }
    }

    pub fn is_whole(&self) -> bool {
        *self == Reader::Whole
    }

    /// Takes what it can from `bytes`, appends the body's part of it to `body`, and says how much it took. What it
    /// left must be shown again when more has arrived.
    pub fn feed(&mut self, bytes: &[u8], body: &mut Vec<u8>) -> Result<usize> {
        let mut at = 0;
        while let Some(taken) = self.step(&bytes[at..], body)? {
            at += taken;
        }
        Ok(at)
    }

    /// The server has closed the connection: the body's end, or its loss.
    pub fn end(&mut self) -> Result<()> {
        if *self != Reader::UntilEnd {
            return Err(Error::lost(
                "connection closed",
                "the server closed the connection within an answer",
            ));
        }
        *self = Reader::Whole;
        Ok(())
    }

    /// Takes one part; `None` where more bytes are needed, or none any more.
    fn step(&mut self, bytes: &[u8], body: &mut Vec<u8>) -> Result<Option<usize>> {
        match *self {
            Reader::Whole => Ok(None),
            Reader::UntilEnd => data(bytes, u64::MAX, body),
            Reader::Counted { left } => {
                let taken = data(bytes, left, body)?;
                *self = after(left, taken, Reader::Whole, |left| Reader::Counted { left });
                Ok(taken)
            }
            Reader::Chunk { left } => {
                let taken = data(bytes, left, body)?;
                *self = after(left, taken, Reader::ChunkEnd, |left| Reader::Chunk { left });
                Ok(taken)
            }
            Reader::ChunkSize => self.chunk_size(bytes),
            Reader::ChunkEnd => match bytes {
                [b'\r', b'\n', ..] => {
                    *self = Reader::ChunkSize;
                    Ok(Some(2))
                }
                [] | [b'\r'] => Ok(None),
                _ => Err(Error::protocol("a chunk of the answer is longer than it says")),
            },
            Reader::Trailers { room } => self.trailer(bytes, room),
        }
    }

    fn chunk_size(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        // An empty line would be read as a size of 0.
        let has_digits = bytes.first().is_none_or(u8::is_ascii_hexdigit);
        match httparse::parse_chunk_size(bytes) {
            Ok(httparse::Status::Complete((taken, left))) if has_digits => {
                *self = match left {
                    0 => Reader::Trailers { room: LINES_BYTES_MAX },
                    left => Reader::Chunk { left },
                };
                Ok(Some(taken))
            }
            Ok(httparse::Status::Partial) if has_digits && bytes.len() <= LINES_BYTES_MAX => Ok(None),
            _ => Err(Error::protocol("a chunk of the answer has no size")),
        }
    }

    /// Passes one line behind the last chunk; an empty one is the end.
    fn trailer(&mut self, bytes: &[u8], room: usize) -> Result<Option<usize>> {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n");
        match end.map_or(bytes.len(), |end| end + 2) {
            length if length > room => Err(Error::protocol("the lines behind the last chunk do not end")),
            length => {
                *self = match end {
                    Some(0) => Reader::Whole,
                    Some(_) => Reader::Trailers { room: room - length },
                    None => return Ok(None),
                };
                Ok(Some(length))
            }
        }
    }
}

/// Appends at most `left` bytes to the body.
fn data(bytes: &[u8], left: u64, body: &mut Vec<u8>) -> Result<Option<usize>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
    if body.len() + taken > BODY_BYTES_MAX {
        return Err(Error::protocol("the server sent an answer of more than 64 MiB"));
    }
    body.extend_from_slice(&bytes[..taken]);
    Ok(Some(taken))
}

/// What comes after `taken` of `left` bytes.
fn after(left: u64, taken: Option<usize>, done: Reader, going_on: impl Fn(u64) -> Reader) -> Reader {
    match left - taken.unwrap_or(0) as u64 {
        0 => done,
        left => going_on(left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds `bytes` in pieces that end at `ends`; gives the body, and what was left behind it.
    fn read(framing: Framing, bytes: &[u8], ends: &[usize]) -> Result<Option<(Vec<u8>, usize)>> {
        let (mut reader, mut body, mut at) = (Reader::new(framing), Vec::new(), 0);
        for end in ends.iter().copied().chain([bytes.len()]) {
            at += reader.feed(&bytes[at..end.clamp(at, bytes.len())], &mut body)?;
        }
        Ok(reader.is_whole().then(|| (body, bytes.len() - at)))
    }

    const CHUNKS: &[u8] = b"5\r\nhello\r\n06;name=value\r\n world\r\n0\r\nExpires: never\r\nA: b\r\n\r\nNEXT";

    #[test]
    fn chunks_are_joined_wherever_they_are_divided() {
        for first in 0..CHUNKS.len() {
            for second in [first + 1, first + 7, CHUNKS.len()] {
                let found = read(Framing::Chunked, CHUNKS, &[first, second]).unwrap();
                assert_eq!(found, Some((b"hello world".to_vec(), 4)), "{first} {second}");
            }
        }
    }

    #[test]
    fn a_counted_body_leaves_what_follows() {
        assert_eq!(read(Framing::Length(3), b"abcdef", &[2]).unwrap(), Some((b"abc".to_vec(), 3)));
        assert_eq!(read(Framing::Length(0), b"abc", &[]).unwrap(), Some((Vec::new(), 3)));
        assert_eq!(read(Framing::Empty, b"abc", &[]).unwrap(), Some((Vec::new(), 3)));
        assert_eq!(read(Framing::Length(7), b"abcdef", &[]).unwrap(), None);
    }

    #[test]
    fn only_a_body_without_a_length_may_end_with_the_connection() {
        let mut open = Reader::new(Framing::UntilEnd);
        open.feed(b"abc", &mut Vec::new()).unwrap();
        open.end().unwrap();
        assert!(open.is_whole());
        assert_eq!(Reader::new(Framing::Length(3)).end().unwrap_err().label(), "connection closed");
        assert!(Reader::new(Framing::Chunked).end().is_err());
    }

    #[test]
    fn broken_chunks_are_refused() {
        for bytes in [
            b"x\r\n".as_slice(),
            b"-1\r\n",
            b"\r\n\r\n",
            b";name=value\r\n\r\n",
            b"3\r\nabcd\r\n",
            b"3\r\nabc\n\r",
            b"fffffffffffffffff\r\n",
        ] {
            assert!(read(Framing::Chunked, bytes, &[]).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn lines_without_an_end_are_refused() {
        let trailers = [b"0\r\n".to_vec(), b"A: b\r\n".repeat(LINES_BYTES_MAX / 6 + 1)].concat();
        assert!(read(Framing::Chunked, &trailers, &[]).is_err());
        let extension = [b"1;".to_vec(), vec![b'a'; LINES_BYTES_MAX]].concat();
        assert!(read(Framing::Chunked, &extension, &[]).is_err());
    }

    proptest! {
        #[test]
        fn a_body_comes_back_from_any_chunks(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..30), 0..6),
            ends in proptest::collection::vec(0usize..200, 0..8),
        ) {
            let mut bytes = Vec::new();
            for part in &parts {
                bytes.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
                bytes.extend_from_slice(part);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
            let found = read(Framing::Chunked, &bytes, &ends).unwrap();
            prop_assert_eq!(found, Some((parts.concat(), 0)));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = read(Framing::Chunked, &bytes, &[bytes.len() / 2]);
        }
    }
}
