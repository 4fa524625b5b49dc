//! The rows of an `sbtest` table: what is in them, how they are loaded, their checksum.

use super::distribution::Distribution;
use crate::error::Result;
use crate::random::Random;
use crate::session::{Each, Row, Session, Value};

pub(super) const ROWS_PER_PART: i64 = 10_000;
const GROUP: usize = 11;

/// Groups of eleven digits, joined by dashes.
#[derive(Clone, Copy)]
pub(super) struct Digits<const N: usize>([u8; N]);

/// Column `c`: ten groups.
pub(super) type C = Digits<119>;
/// Column `pad`: five groups.
pub(super) type Pad = Digits<59>;

impl<const N: usize> Digits<N> {
    pub fn draw(random: &mut Random) -> Self {
        let mut text = [0; N];
        random.digits(&mut text);
        text.iter_mut().skip(GROUP).step_by(GROUP + 1).for_each(|dash| *dash = b'-');
        Digits(text)
    }

    pub fn as_str(&self) -> &str {
        // Digits and dashes only.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub fn value(&self) -> Value<'_> {
        Value::Text(self.as_str())
    }
}

/// Loads rows `first..=last` of a table.
pub(super) async fn load<S: Session>(
    session: &mut S,
    table: i64,
    (first, last): (i64, i64),
    keys: &Distribution,
    mut random: Random,
) -> Result<u64> {
    let mut ids = first..=last;
    session
        .bulk_insert(&format!("sbtest{table}"), &["id", "k", "c", "pad"], |row| {
            let Some(id) = ids.next() else { return false };
            row.int(id).int(keys.draw(&mut random));
            row.text(C::draw(&mut random).as_str()).text(Pad::draw(&mut random).as_str());
            true
        })
        .await
}

/// The number of rows and a checksum that does not depend on their order: the sum of each row's hash.
pub(super) async fn checksum<S: Session>(session: &mut S, table: i64) -> Result<(u64, u64)> {
    let mut sum = 0u64;
    let mut add = Each(|row: &dyn Row| sum = sum.wrapping_add(hash(row)));
    let answer = session.text(&format!("SELECT id, k, c, pad FROM sbtest{table}"), &mut add).await?;
    Ok((answer.rows, sum))
}

/// FNV-1a over the columns as text, without the blanks that some engines pad CHAR with.
fn hash(row: &dyn Row) -> u64 {
    let mut state = 0xCBF2_9CE4_8422_2325u64;
    let mut add = |byte: u8| state = (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    for column in 0..row.columns() {
        match row.value(column) {
            Value::Int(n) => n.to_le_bytes().into_iter().for_each(&mut add),
            value => value.as_str().unwrap_or_default().trim_end().bytes().for_each(&mut add),
        }
        add(0xFF);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_form_of_sysbench() {
        let mut random = Random::new(5, 5);
        let (c, pad) = (C::draw(&mut random), Pad::draw(&mut random));
        for (text, groups) in [(c.as_str(), 10), (pad.as_str(), 5)] {
            let parts: Vec<&str> = text.split('-').collect();
            assert_eq!(parts.len(), groups);
            assert!(
                parts.iter().all(|part| part.len() == 11 && part.bytes().all(|b| b.is_ascii_digit())),
                "{text}"
            );
        }
        assert_ne!(c.as_str(), C::draw(&mut random).as_str());
    }

    struct Cells(Vec<Value<'static>>);

    impl Row for Cells {
        fn columns(&self) -> usize {
            self.0.len()
        }

        fn value(&self, column: usize) -> Value<'_> {
            self.0[column]
        }
    }

    #[test]
    fn padding_does_not_change_a_checksum_but_a_value_does() {
        let row = |text| hash(&Cells(vec![Value::Int(1), Value::Text(text)]));
        assert_eq!(row("abc"), row("abc   "));
        assert_ne!(row("abc"), row("abd"));
    }
}
