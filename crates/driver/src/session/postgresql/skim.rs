//! The short way through an answer that is wholly here and that nobody looks into. Whatever is unusual about it (an
//! error, a notice, columns that are described, a wrong length) is left to the long way, which starts anew.

use super::message::{affected, answer, HEADER_BYTES};
use crate::session::Answer;

/// An answer that was stepped over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Skimmed {
    pub answer: Answer,
    /// How long it was.
    pub bytes: usize,
    /// What its ReadyForQuery says of the transaction.
    pub state: u8,
}

/// Steps over one answer at the start of `inbox`, up to its ReadyForQuery. `None` where it is not wholly here or not
/// plain.
#[inline]
pub(super) fn skim(inbox: &[u8]) -> Option<Skimmed> {
    let (mut rest, mut sum) = (inbox, Answer::default());
    loop {
        let (&[kind, length @ ..], behind) = rest.split_first_chunk::<HEADER_BYTES>()?;
        // The length counts itself.
        let length = (u32::from_be_bytes(length) as usize).checked_sub(4)?;
        let (payload, behind) = behind.split_at_checked(length)?;
        rest = behind;
        match kind {
            answer::DATA_ROW => sum.rows += 1,
            answer::BIND_COMPLETE => {}
            answer::COMMAND_COMPLETE => sum.affected += changed(payload),
            answer::READY => {
                let &[state] = payload else { return None };
                return Some(Skimmed { answer: sum, bytes: inbox.len() - rest.len(), state });
            }
            _ => return None,
        }
    }
}

/// `affected`, which need not be asked of a SELECT.
#[inline]
fn changed(tag: &[u8]) -> u64 {
    match tag.first() {
        Some(b'S') => 0,
        _ => affected(tag),
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{header, put};
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, kind, |out| out.extend_from_slice(payload));
        out
    }

    fn select(rows: usize) -> Vec<u8> {
        let row = message(b'D', b"\0\x01\0\0\0\x01x").repeat(rows);
        let tag = format!("SELECT {rows}\0");
        [message(b'2', b""), row, message(b'C', tag.as_bytes()), message(b'Z', b"I")].concat()
    }

    /// What the long way makes of whole messages: their kinds, and what they say.
    fn walked(mut inbox: &[u8]) -> Option<(Skimmed, Vec<u8>)> {
        let (all, mut sum, mut kinds) = (inbox.len(), Answer::default(), Vec::new());
        loop {
            let (kind, length) = header(inbox.first_chunk()?).ok()?;
            let payload = inbox.get(HEADER_BYTES..HEADER_BYTES + length)?;
            inbox = &inbox[HEADER_BYTES + length..];
            kinds.push(kind);
            match kind {
                b'D' => sum.rows += 1,
                b'C' => sum.affected += affected(payload),
                b'Z' => {
                    let state = payload.first().copied().unwrap_or(b'I');
                    return Some((Skimmed { answer: sum, bytes: all - inbox.len(), state }, kinds));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn an_answer_is_stepped_over_and_the_next_one_left() {
        let (first, next) = (select(2), [message(b'C', b"UPDATE 3\0"), message(b'Z', b"T")].concat());
        let inbox = [&first[..], &next[..]].concat();
        let answer = Answer { rows: 2, affected: 0 };
        assert_eq!(skim(&inbox), Some(Skimmed { answer, bytes: first.len(), state: b'I' }));
        let answer = Answer { rows: 0, affected: 3 };
        assert_eq!(skim(&inbox[first.len()..]), Some(Skimmed { answer, bytes: next.len(), state: b'T' }));
    }

    #[test]
    fn what_is_not_plain_is_left_to_the_long_way() {
        let ready = message(b'Z', b"E");
        for kind in *b"ENAStTnGWR13Iv\0" {
            assert_eq!(skim(&[message(kind, b"C42P01\0\0"), ready.clone()].concat()), None, "{kind}");
        }
        for payload in [&b""[..], b"II"] {
            assert_eq!(skim(&[message(b'C', b"BEGIN\0"), message(b'Z', payload)].concat()), None);
        }
        for length in [b"\0\0\0\x03", b"\xFF\xFF\xFF\xFF"] {
            assert_eq!(skim(&[b"D", &length[..], &ready[..]].concat()), None);
        }
    }

    proptest! {
        #[test]
        fn an_answer_that_is_not_wholly_here_is_left_alone(rows in 0usize..5, cut in 1usize..100) {
            let inbox = select(rows);
            prop_assume!(cut < inbox.len());
            prop_assert_eq!(skim(&inbox[..cut]), None);
        }

        #[test]
        fn what_is_stepped_over_is_what_the_long_way_reads(
            messages in proptest::collection::vec(
                (
                    prop_oneof![Just(b'D'), Just(b'2'), Just(b'C'), Just(b'Z'), Just(b'E'), any::<u8>()],
                    prop_oneof![
                        Just(b"SELECT 1\0".to_vec()), Just(b"DELETE 7\0".to_vec()), Just(b"T".to_vec()),
                        proptest::collection::vec(any::<u8>(), 0..6),
                    ],
                ),
                0..8,
            ),
            wrong in (0usize..80, any::<u8>(), any::<bool>()),
        ) {
            let mut inbox: Vec<u8> = messages.iter().flat_map(|(kind, payload)| message(*kind, payload)).collect();
            let (at, byte, turned) = wrong;
            if let (Some(place), true) = (inbox.get_mut(at), turned) {
                *place = byte;
            }
            if let Some(skimmed) = skim(&inbox) {
                let (read, kinds) = walked(&inbox).expect("the long way gets through too");
                prop_assert_eq!(skimmed, read);
                prop_assert!(kinds.iter().all(|kind| b"D2CZ".contains(kind)));
            }
        }
    }
}
