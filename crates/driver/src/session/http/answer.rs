//! The head of an answer: its status, how its body ends, and whether the connection stays.

use crate::error::{Error, Result};

const HEADERS_MAX: usize = 96;
const HEAD_BYTES_MAX: usize = 64 << 10;

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is no body.
    Empty,
    /// After so many bytes.
    Length(u64),
    Chunked,
    /// Where the server closes the connection.
    UntilEnd,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub status: u16,
    pub framing: Framing,
    /// The server closes the connection behind this answer.
    pub closes: bool,
    /// How long the head is.
    pub bytes: usize,
}

/// Reads the head at the start of `bytes`; `None` where it is not wholly there. `to_head` is true of the answer to
/// HEAD. Each header of a whole head is shown to `header`.
pub(super) fn head(bytes: &[u8], to_head: bool, mut header: impl FnMut(&str, &[u8])) -> Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() > HEAD_BYTES_MAX => {
            return Err(Error::protocol("the head of the answer has more than 64 KiB"));
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(Error::protocol(format!("the answer is not HTTP/1.1: {error}"))),
    };
    let status = response.code.unwrap_or_default();
    if !(100..600).contains(&status) {
        return Err(Error::protocol(format!("the answer has the status {status}, which means nothing")));
    }
    let mut fields = Fields::default();
    for field in response.headers.iter() {
        fields.note(field.name, field.value)?;
        header(field.name, field.value);
    }
    let framing = fields.framing(status, to_head)?;
    let keeps = if response.version == Some(1) { !fields.close } else { fields.keep_alive && !fields.close };
    let closes = !keeps || framing == Framing::UntilEnd;
    Ok(Some(Head { status, framing, closes, bytes: length }))
}

/// Says when a head that comes in pieces is to be read again: a server that sends byte by byte must not have all of it
/// read for each of them.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// How long it was when it was read last.
    read: usize,
    /// How far it was searched for its end.
    searched: usize,
    at: At,
}

/// Where a search for the empty line at the end of a head stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// Empty lines may come before a head.
    #[default]
    Start,
    Line,
    LineEnd,
    HeadEnd,
}

impl Pieces {
    /// Whether `bytes`, which begin as the last time, are to be read: as soon as something is there, when the head ends,
    /// and whenever it has doubled, so that what is no head is found out early.
    pub fn are_worth_reading(&mut self, bytes: &[u8]) -> bool {
        // Most heads come in one piece.
        if self.read > 0 {
            self.at = bytes[self.searched..].iter().fold(self.at, |at, byte| match (at, byte) {
                (At::Start, b'\r' | b'\n') | (At::LineEnd, b'\r') | (At::HeadEnd, _) => at,
                (At::LineEnd, b'\n') => At::HeadEnd,
                (_, b'\n') => At::LineEnd,
                _ => At::Line,
            });
            self.searched = bytes.len();
            let enough = (self.read * 2).min(HEAD_BYTES_MAX + 1);
            if self.at != At::HeadEnd && bytes.len() < enough {
                return false;
            }
        }
        self.read = bytes.len();
        true
    }
}

/// What the headers say of the body and of the connection.
#[derive(Default)]
struct Fields {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn note(&mut self, name: &str, value: &[u8]) -> Result<()> {
        if name.eq_ignore_ascii_case("content-length") {
            let length = number(value).ok_or_else(|| wrong(name, value))?;
            // The same length twice is allowed; two lengths are an attack or a defect.
            if self.length.replace(length).is_some_and(|earlier| earlier != length) {
                return Err(Error::protocol("the answer announces two lengths"));
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(wrong(name, value));
            }
            self.chunked = true;
        } else if name.eq_ignore_ascii_case("connection") {
            for token in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                self.close |= token.eq_ignore_ascii_case(b"close");
                self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
            }
        }
        Ok(())
    }

    fn framing(&self, status: u16, to_head: bool) -> Result<Framing> {
        if to_head || status < 200 || matches!(status, 204 | 304) {
            return Ok(Framing::Empty);
        }
        match (self.chunked, self.length) {
            (true, Some(_)) => Err(Error::protocol("the answer announces both a length and chunks")),
            (true, None) => Ok(Framing::Chunked),
            (false, Some(length)) => Ok(Framing::Length(length)),
            (false, None) => Ok(Framing::UntilEnd),
        }
    }
}

fn number(value: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(value).ok()?;
    // `parse` alone would take a plus sign.
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

fn wrong(name: &str, value: &[u8]) -> Error {
    Error::protocol(format!("the answer has {name} {:?}", String::from_utf8_lossy(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Option<Head>> {
        head(text.as_bytes(), false, |_, _| ())
    }

    fn whole(text: &str) -> Head {
        read(text).unwrap().unwrap()
    }

    #[test]
    fn a_body_ends_as_its_head_says() {
        for (lines, framing, closes) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", Framing::Length(5), false),
            ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nContent-Length: 5\r\n", Framing::Length(5), false),
            ("HTTP/1.1 201 Created\r\nTransfer-Encoding: Chunked\r\n", Framing::Chunked, false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x, Close\r\n", Framing::Length(0), true),
            ("HTTP/1.1 200\r\n", Framing::UntilEnd, true),
            ("HTTP/1.1 204 No Content\r\n", Framing::Empty, false),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n", Framing::Empty, false),
            ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n", Framing::Length(1), true),
            ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n", Framing::Length(1), false),
        ] {
            let found = whole(&format!("{lines}\r\nrest"));
            let expected = (framing, closes, lines.len() + 2);
            assert_eq!((found.framing, found.closes, found.bytes), expected, "{lines}");
        }
    }

    #[test]
    fn the_answer_to_head_has_no_body() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(head(text, true, |_, _| ()).unwrap().unwrap().framing, Framing::Empty);
    }

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let text = "HTTP/1.1 200 OK\r\nX-Subject-Token: abc\r\nContent-Length: 0\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(read(&text[..end]).unwrap(), None, "{end}");
        }
        let mut seen = Vec::new();
        head(text.as_bytes(), false, |name, value| seen.push((name.to_owned(), value.to_vec()))).unwrap();
        assert_eq!(seen[0], ("X-Subject-Token".to_owned(), b"abc".to_vec()));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for lines in [
            "Content-Length: 1\r\nContent-Length: 2",
            "Content-Length: +1",
            "Content-Length: 1, 1",
            "Content-Length: ",
            "Content-Length: 99999999999999999999",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: gzip, chunked",
        ] {
            assert!(read(&format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n")).is_err(), "{lines}");
        }
        assert!(read("HTTP/1.1 999 Odd\r\n\r\n").is_err());
        assert!(read("SSH-2.0-OpenSSH_9.2\r\n").is_err());
    }

    #[test]
    fn a_head_without_an_end_is_refused() {
        let text = format!("HTTP/1.1 200 OK\r\nA: {}", "a".repeat(HEAD_BYTES_MAX));
        assert!(read(&text).is_err());
    }

    /// Shows `bytes` in pieces of these lengths, over and over; gives what was read of them, and how many bytes that took.
    fn read_in_pieces(bytes: &[u8], lengths: &[usize]) -> (Result<Option<Head>>, usize) {
        let (mut pieces, mut end, mut cost) = (Pieces::default(), 0, 0);
        for length in lengths.iter().cycle() {
            end = (end + length).min(bytes.len());
            if pieces.are_worth_reading(&bytes[..end]) {
                cost += end;
                match head(&bytes[..end], false, |_, _| ()) {
                    Ok(None) if end < bytes.len() => {}
                    found => return (found, cost),
                }
            } else if end == bytes.len() {
                return (Ok(None), cost);
            }
        }
        unreachable!("lengths are given")
    }

    #[test]
    fn a_head_that_comes_byte_by_byte_is_read_a_few_times() {
        let headers: String = (0..90).map(|number| format!("A{number}: {}\r\n", "a".repeat(600))).collect();
        let text = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 0\r\n\r\n");
        let (found, cost) = read_in_pieces(text.as_bytes(), &[1]);
        assert_eq!(found.unwrap().unwrap().bytes, text.len());
        assert!(cost < 4 * text.len(), "{cost} bytes were read of {}", text.len());
        // What never ends is refused at the same length as ever.
        let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "a".repeat(4 * HEAD_BYTES_MAX));
        let (found, cost) = read_in_pieces(endless.as_bytes(), &[1]);
        assert!(found.is_err() && cost < 4 * HEAD_BYTES_MAX, "{cost}");
        let (found, cost) = read_in_pieces(&vec![b'\n'; 4 * HEAD_BYTES_MAX], &[1]);
        assert!(found.is_err() && cost < 4 * HEAD_BYTES_MAX, "{cost}");
    }

    proptest! {
        #[test]
        fn a_head_in_pieces_is_the_head_in_one(
            lengths in proptest::collection::vec(1usize..30, 1..8),
            feed in prop_oneof![Just("\r\n"), Just("\n")],
            before in 0usize..3,
        ) {
            let lines = ["HTTP/1.1 200 OK", "A: b", "Content-Length: 7", ""].map(|line| format!("{line}{feed}"));
            let text = format!("{}{}", feed.repeat(before), lines.concat());
            let (found, _) = read_in_pieces(text.as_bytes(), &lengths);
            prop_assert_eq!(found.unwrap(), read(&text).unwrap());
            prop_assert!(read(&text).unwrap().is_some());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = head(&bytes, false, |_, _| ());
            let _ = head(&[b"HTTP/1.1 200 OK\r\n".as_slice(), &bytes].concat(), false, |_, _| ());
        }
    }
}
