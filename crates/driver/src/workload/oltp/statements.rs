//! The family's statements, prepared per connection and table.

use crate::error::Result;
use crate::session::{Session, Statement};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Point,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    UpdateIndex,
    UpdateNonIndex,
    Delete,
    Insert,
    /// The server numbers the row.
    InsertNumbered,
    /// Two integers only.
    InsertKey,
    RandomPoints,
    RandomRanges,
}

const KINDS: usize = Kind::RandomRanges as usize + 1;

impl Kind {
    pub fn writes(self) -> bool {
        use Kind::{Delete, Insert, InsertKey, InsertNumbered, UpdateIndex, UpdateNonIndex};
        matches!(self, UpdateIndex | UpdateNonIndex | Delete | Insert | InsertNumbered | InsertKey)
    }

    /// Its only parameter is the key of a row.
    #[inline]
    pub fn takes_key_alone(self) -> bool {
        matches!(self, Kind::Point | Kind::UpdateIndex | Kind::Delete)
    }

    fn sql(self, table: i64, list_length: usize) -> String {
        let t = format!("sbtest{table}");
        match self {
            Kind::Point => format!("SELECT c FROM {t} WHERE id=?"),
            Kind::SimpleRange => format!("SELECT c FROM {t} WHERE id BETWEEN ? AND ?"),
            Kind::SumRange => format!("SELECT SUM(k) FROM {t} WHERE id BETWEEN ? AND ?"),
            Kind::OrderRange => format!("SELECT c FROM {t} WHERE id BETWEEN ? AND ? ORDER BY c"),
            Kind::DistinctRange => format!("SELECT DISTINCT c FROM {t} WHERE id BETWEEN ? AND ? ORDER BY c"),
            Kind::UpdateIndex => format!("UPDATE {t} SET k=k+1 WHERE id=?"),
            Kind::UpdateNonIndex => format!("UPDATE {t} SET c=? WHERE id=?"),
            Kind::Delete => format!("DELETE FROM {t} WHERE id=?"),
            Kind::Insert => format!("INSERT INTO {t} (id, k, c, pad) VALUES (?, ?, ?, ?)"),
            Kind::InsertNumbered => format!("INSERT INTO {t} (k, c, pad) VALUES (?, ?, ?)"),
            Kind::InsertKey => format!("INSERT INTO {t} (id, k) VALUES (?, ?)"),
            Kind::RandomPoints => {
                format!("SELECT id, k, c, pad FROM {t} WHERE k IN ({})", vec!["?"; list_length].join(", "))
            }
            Kind::RandomRanges => {
                let ranges = vec!["k BETWEEN ? AND ?"; list_length / 2];
                format!("SELECT count(k) FROM {t} WHERE {}", ranges.join(" OR "))
            }
        }
    }
}

/// One connection's prepared statements: found by kind and table without a search.
#[derive(Debug)]
pub(super) struct Statements {
    first_table: i64,
    kinds_per_table: usize,
    /// Where a kind stands among a table's statements.
    places: [usize; KINDS],
    statements: Vec<Statement>,
}

impl Statements {
    /// Prepares `kinds` for the tables `first..=last`.
    pub async fn prepare<S: Session>(
        session: &mut S,
        kinds: &[Kind],
        (first, last): (i64, i64),
        list_length: usize,
    ) -> Result<Self> {
        let (mut places, mut statements) = ([0; KINDS], Vec::new());
        kinds.iter().enumerate().for_each(|(place, kind)| places[*kind as usize] = place);
        for table in first..=last {
            for kind in kinds {
                statements.push(session.prepare(&kind.sql(table, list_length)).await?);
            }
        }
        Ok(Statements { first_table: first, kinds_per_table: kinds.len(), places, statements })
    }

    #[inline]
    pub fn get(&self, kind: Kind, table: i64) -> Statement {
        let table = (table - self.first_table) as usize;
        self.statements[table * self.kinds_per_table + self.places[kind as usize]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_as_many_placeholders_as_parameters() {
        assert_eq!(Kind::RandomPoints.sql(1, 3).matches('?').count(), 3);
        assert_eq!(Kind::RandomRanges.sql(1, 6).matches('?').count(), 6);
    }

    #[test]
    fn a_statement_is_found_by_its_kind_and_table() {
        let mut places = [0; KINDS];
        (places[Kind::Delete as usize], places[Kind::Insert as usize]) = (0, 1);
        let statements = (0..6).map(Statement).collect();
        let statements = Statements { first_table: 1, kinds_per_table: 2, places, statements };
        assert_eq!(statements.get(Kind::Delete, 1), Statement(0));
        assert_eq!(statements.get(Kind::Insert, 3), Statement(5));
    }
}
