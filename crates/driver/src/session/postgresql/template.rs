//! The execution of a statement with one whole number, as it goes out with a Sync behind it: nothing of it changes but the
//! number.

use super::message::put_sync;
use super::value::whole_number_bytes;
use super::{put_execution, Prepared};
use crate::session::Value;

pub(super) struct Template {
    bytes: Vec<u8>,
    /// Where the number stands.
    place: usize,
    number_bytes: usize,
}

impl Template {
    /// `None` where the statement takes anything else.
    pub fn of(prepared: &Prepared) -> Option<Self> {
        let &[kind] = &prepared.parameters[..] else { return None };
        let number_bytes = whole_number_bytes(kind)?;
        let mut bytes = Vec::new();
        put_execution(&mut bytes, prepared, &[Value::Int(0)]);
        put_sync(&mut bytes);
        // A type, a length, no portal, a name; how many formats and the format; how many values and the value's length.
        let place = 1 + 4 + 1 + prepared.name.len() + 1 + 2 + 2 + 2 + 4;
        Some(Template { bytes, place, number_bytes })
    }

    /// Appends the execution with this number; false where the number does not fit, and nothing is appended.
    #[inline]
    pub fn put(&self, out: &mut Vec<u8>, number: i64) -> bool {
        let start = out.len() + self.place;
        match self.number_bytes {
            4 => {
                let Ok(number) = i32::try_from(number) else { return false };
                out.extend_from_slice(&self.bytes);
                out[start..start + 4].copy_from_slice(&number.to_be_bytes());
            }
            _ => {
                out.extend_from_slice(&self.bytes);
                out[start..start + 8].copy_from_slice(&number.to_be_bytes());
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::Again;
    use super::*;

    fn prepared(kinds: &[u32]) -> Prepared {
        Prepared { parameters: kinds.to_vec(), ..Prepared::of("s12", Again::Nothing) }
    }

    #[test]
    fn a_template_gives_what_is_put_together() {
        const INT4: u32 = 23;
        for kind in [20, INT4] {
            let prepared = prepared(&[kind]);
            let template = Template::of(&prepared).unwrap();
            for number in [0, -1, 7, i64::from(i32::MAX), i64::from(i32::MIN), i64::MAX] {
                let (mut whole, mut filled) = (b"before".to_vec(), b"before".to_vec());
                put_execution(&mut whole, &prepared, &[Value::Int(number)]);
                put_sync(&mut whole);
                let fits = kind != INT4 || i32::try_from(number).is_ok();
                assert_eq!(template.put(&mut filled, number), fits);
                assert!(filled == if fits { whole } else { b"before".to_vec() }, "{kind} {number}");
            }
        }
    }

    #[test]
    fn what_takes_anything_but_one_whole_number_has_none() {
        for kinds in [&[][..], &[21], &[25], &[23, 23]] {
            assert!(Template::of(&prepared(kinds)).is_none(), "{kinds:?}");
        }
    }
}
