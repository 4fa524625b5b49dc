//! The short way through an answer that is wholly here and that nobody looks into. Whatever is unusual about it (an
//! error, more result sets, a packet of full length, a wrong number) is left to the long way, which starts anew.

use super::packet::{header, Reader, HEADER_BYTES, PACKET_MAX};
use crate::session::Answer;

/// In the status at the end of a result set: another one follows.
pub(super) const MORE_RESULTS: u16 = 1 << 3;

/// An answer that was stepped over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Skimmed {
    pub answer: Answer,
    /// How long it was.
    pub bytes: usize,
    /// 0 where it is no result set.
    pub columns: u64,
    /// It brings their definitions.
    pub defines: bool,
}

/// Steps over one answer at the start of `inbox`. `None` where it is not wholly here or not plain.
#[inline]
pub(super) fn skim(inbox: &[u8], mut sequence: u8, cache_metadata: bool) -> Option<Skimmed> {
    let (mut rest, mut rows) = (inbox, 0);
    let mut next = || {
        let (length, number) = header(rest)?;
        if number != sequence || length == PACKET_MAX || length == 0 {
            return None;
        }
        let payload = rest.get(HEADER_BYTES..HEADER_BYTES + length)?;
        rest = &rest[HEADER_BYTES + length..];
        sequence = sequence.wrapping_add(1);
        Some(payload)
    };
    let first = next()?;
    let (mut columns, mut defines) = (0, false);
    let affected = match first[0] {
        0x00 => plain_end(first)?,
        0xFB | 0xFF => return None,
        _ => {
            (columns, defines) = definitions(first, cache_metadata)?;
            if defines {
                for _ in 0..columns {
                    next()?;
                }
            }
            loop {
                let payload = next()?;
                match payload[0] {
                    0xFE => break plain_end(payload)?,
                    0xFF => return None,
                    _ => rows += 1,
                }
            }
        }
    };
    Some(Skimmed { answer: Answer { rows, affected }, bytes: inbox.len() - rest.len(), columns, defines })
}

/// What the packet says that counts the columns: how many there are, and whether their definitions follow.
fn definitions(payload: &[u8], cache_metadata: bool) -> Option<(u64, bool)> {
    match *payload {
        [columns @ 1..=0xFA] => Some((columns.into(), true)),
        [columns @ 1..=0xFA, follow] if cache_metadata => Some((columns.into(), follow != 0)),
        _ => None,
    }
}

/// The rows that an OK packet says were changed, if no further result set follows it.
fn plain_end(payload: &[u8]) -> Option<u64> {
    if let [_, affected @ 0..=0xFA, _inserted @ 0..=0xFA, low, high, ..] = *payload {
        // Numbers of one byte each, as they nearly always are.
        return (u16::from_le_bytes([low, high]) & MORE_RESULTS == 0).then_some(affected.into());
    }
    let mut reader = Reader::new(&payload[1..]);
    let affected = reader.length().ok()??;
    reader.length().ok()??;
    (reader.u16().ok()? & MORE_RESULTS == 0).then_some(affected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
        [&[payload.len() as u8, 0, 0, sequence], payload].concat()
    }

    const END: &[u8] = &[0xFE, 0, 0, 2, 0, 0, 0];

    fn rows() -> Vec<u8> {
        [packet(1, &[1, 0]), packet(2, &[0, 0, 7]), packet(3, &[0, 0, 8]), packet(4, END)].concat()
    }

    #[test]
    fn an_answer_is_stepped_over_and_the_next_one_left() {
        let bytes = rows().len();
        let inbox = [rows(), packet(1, &[0, 3, 0, 2, 0, 0, 0])].concat();
        let answer = Answer { rows: 2, affected: 0 };
        assert_eq!(skim(&inbox, 1, true), Some(Skimmed { answer, bytes, columns: 1, defines: false }));
        let answer = Answer { rows: 0, affected: 3 };
        let skimmed = Skimmed { answer, bytes: 11, columns: 0, defines: false };
        assert_eq!(skim(&inbox[bytes..], 1, true), Some(skimmed));
    }

    #[test]
    fn definitions_are_stepped_over_where_they_follow() {
        let inbox =
            [packet(1, &[1]), packet(2, b"definition"), packet(3, &[0, 0, 7]), packet(4, END)].concat();
        let skimmed = skim(&inbox, 1, false).unwrap();
        assert_eq!((skimmed.answer.rows, skimmed.columns, skimmed.defines), (1, 1, true));
    }

    #[test]
    fn what_is_not_plain_is_left_to_the_long_way() {
        let more_results = [0, 0, 0, 8, 0, 0, 0];
        for inbox in [packet(1, b"\xFF\xBD\x04#40001x"), packet(2, END), packet(1, &more_results), Vec::new()]
        {
            assert_eq!(skim(&inbox, 1, true), None);
        }
    }

    proptest! {
        #[test]
        fn an_answer_that_is_not_wholly_here_is_left_alone(cut in 0usize..40) {
            let inbox = rows();
            prop_assume!(cut < inbox.len());
            prop_assert_eq!(skim(&inbox[..cut], 1, true), None);
        }

        #[test]
        fn garbage_is_no_panic(inbox in proptest::collection::vec(any::<u8>(), 0..60), cache: bool) {
            if let Some(skimmed) = skim(&inbox, 1, cache) {
                prop_assert!(skimmed.bytes <= inbox.len());
            }
        }
    }
}
