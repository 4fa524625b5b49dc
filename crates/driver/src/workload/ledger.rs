//! A client's rows in the ledger: each of its transactions writes one, which commits with it or not at all.

use super::Place;
use crate::error::Result;
use crate::session::{Session, Statement, Value};

/// The rows of one client, numbered from 1. Without a ledger, `write` does nothing.
pub(crate) struct Page {
    insert: Option<Statement>,
    cut: i64,
    client: i64,
    entry: i64,
    /// The transaction that began last has written its row.
    written: bool,
}

impl Page {
    /// The table must be there: (cut, client, entry), all whole numbers.
    pub async fn open<S: Session>(session: &mut S, place: Place) -> Result<Self> {
        let insert = match place.cut {
            Some(_) => {
                let sql = "INSERT INTO dyno_ledger (cut, client, entry) VALUES (?, ?, ?)";
                Some(session.prepare(sql).await?)
            }
            None => None,
        };
        let cut = i64::from(place.cut.unwrap_or_default());
        Ok(Page { insert, cut, client: i64::from(place.client), entry: 1, written: false })
    }

    /// Writes the row of the transaction under way. One that is tried again writes it again under its number.
    #[inline]
    pub async fn write<S: Session>(&mut self, session: &mut S) -> Result<()> {
        let Some(insert) = self.insert else { return Ok(()) };
        let row = self.row();
        session.execute(insert, &row, &mut ()).await.map(drop)
    }

    /// The row of the transaction under way, for a statement that writes it itself; nulls without a ledger.
    #[inline]
    pub fn row(&mut self) -> [Value<'static>; 3] {
        if self.insert.is_none() {
            return [Value::Null; 3];
        }
        self.written = true;
        [self.cut, self.client, self.entry].map(Value::Int)
    }

    /// Goes on with the numbers of the page before, whose connection was lost.
    pub fn take_over(&mut self, lost: &Page) {
        self.entry = lost.entry;
    }

    /// Ends a transaction, whatever became of it: the number of its row, where it has written one. Numbers of rows that
    /// were rolled back are not used again.
    #[inline]
    pub fn turn(&mut self) -> Option<u64> {
        if !self.written {
            return None;
        }
        self.written = false;
        self.entry += 1;
        Some(self.entry as u64 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(written: bool) -> Page {
        Page { insert: None, cut: 1, client: 0, entry: 1, written }
    }

    #[test]
    fn a_transaction_without_a_row_has_no_number() {
        assert_eq!(page(false).turn(), None);
    }

    #[test]
    fn a_client_that_connects_again_goes_on_with_its_numbers() {
        let (mut lost, mut after) = (page(true), page(false));
        lost.turn();
        after.take_over(&lost);
        after.written = true;
        assert_eq!(after.turn(), Some(2));
    }

    #[test]
    fn a_row_belongs_to_one_transaction_alone() {
        let mut page = page(true);
        assert_eq!((page.turn(), page.turn()), (Some(1), None));
        page.written = true;
        assert_eq!(page.turn(), Some(2));
    }
}
