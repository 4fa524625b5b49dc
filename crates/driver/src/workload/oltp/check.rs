//! What the family's data must be before a run and after it.

use super::rows::checksum;
use super::{Member, Oltp};
use crate::error::{Error, Result};
use crate::session::{whole_number, Session};
use crate::workload::{Acknowledged, Invariant};

/// Tables of so few rows are in every cache, so counting them before a run changes nothing for it.
const COUNTED_ROWS_MAX: i64 = 100_000;

impl Oltp {
    /// The last id tells whether there are as many rows as the run draws from: at little cost, and without reading what
    /// the run will read. More are fine, for inserts leave them; deletes may have taken the last ones.
    pub(super) async fn require_rows<S: Session>(&self, session: &mut S, table: i64) -> Result<()> {
        let least = match self.member {
            Member::BulkInsert => return Ok(()),
            Member::Delete => self.table_size * 9 / 10,
            _ => self.table_size,
        };
        let last = whole_number(session, &format!("SELECT COALESCE(MAX(id), 0) FROM sbtest{table}")).await?;
        if last >= least {
            return Ok(());
        }
        let size = self.table_size;
        Err(Error::user(format!("the rows of sbtest{table} end at id {last}, the run has table_size {size}"))
            .hint("give the table_size that the data were prepared with, or prepare them again"))
    }

    /// Which rows of a table the run adds to or takes from: their number at its start must be known to judge that at
    /// its end. `loaded` are those of an insert run that were there from the beginning and that deletes may have taken.
    pub(super) fn rows_before(&self, table: i64) -> Vec<(&'static str, String)> {
        let (size, few) = (self.table_size, self.tables * self.table_size <= COUNTED_ROWS_MAX);
        let count = |part: &str| format!("SELECT COUNT(*) FROM sbtest{table} WHERE id {part} {size}");
        match self.member {
            Member::Insert if few => vec![("rows", count(">")), ("loaded", count("<="))],
            // No row that was loaded has such an id, so none that the run will use is read.
            Member::Insert => vec![("rows", count(">"))],
            Member::BulkInsert | Member::Delete => vec![("rows", self.count(table))],
            _ => Vec::new(),
        }
    }

    /// The rows that are to stay, where some are; else all.
    pub(super) fn count(&self, table: i64) -> String {
        match self.member {
            Member::Insert | Member::BulkInsert | Member::Delete => {
                format!("SELECT COUNT(*) FROM sbtest{table}")
            }
            _ => format!("SELECT COUNT(*) FROM sbtest{table} WHERE id <= {}", self.table_size),
        }
    }

    /// Nothing may have changed, neither in number nor in content.
    pub(super) async fn check_unchanged<S: Session>(
        &self,
        session: &mut S,
        baseline: Option<&str>,
    ) -> Result<Vec<Invariant>> {
        let (mut complete, mut value) = (true, String::new());
        for table in 1..=self.tables {
            let (rows, sum) = checksum(session, table).await?;
            complete &= rows == self.table_size as u64;
            value += &format!("{rows}:{sum:016x} ");
        }
        let value = value.trim_end().to_owned();
        let against =
            baseline.map_or("no baseline was given".to_owned(), |baseline| format!("before: {baseline}"));
        let mut unchanged = Invariant::new(
            "rows_unchanged",
            baseline.is_none_or(|baseline| baseline == value),
            format!("rows and checksum per table: {value}; {against}"),
        );
        unchanged.value = Some(value);
        let detail = format!("{} rows per table are expected", self.table_size);
        Ok(vec![Invariant::new("rows_complete", complete, detail), unchanged])
    }

    /// Inserts and deletes moved the number of rows by what was acknowledged (a delete may find no row).
    pub(super) fn rows_moved(&self, rows: i64, told: &Acknowledged) -> Invariant {
        let done = told.by_transaction.get(self.about.name).copied().unwrap_or(0) as i64;
        let (done, unknown) = (done * self.bulk_rows.max(1), told.unknown as i64 * self.bulk_rows.max(1));
        let loaded = self.tables * self.table_size;
        let (least, most) = match self.member {
            Member::BulkInsert => {
                (told.at_start("rows", 0) + done, told.at_start("rows", 0) + done + unknown)
            }
            Member::Insert => {
                let before = told.at_start("loaded", loaded) + told.at_start("rows", 0);
                (before + done, before + done + unknown)
            }
            _ => (told.at_start("rows", loaded) - done - unknown, told.at_start("rows", loaded)),
        };
        let counted = self.member != Member::Insert || told.start.contains_key("loaded");
        let untold = if counted { "" } else { "; rows that earlier runs deleted are not known" };
        Invariant::new(
            "rows_moved",
            (least..=most).contains(&rows),
            format!("{rows} rows, {least} to {most} expected after {done} acknowledged{untold}"),
        )
    }
}
