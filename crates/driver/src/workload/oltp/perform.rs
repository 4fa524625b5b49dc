//! The transactions of the family, and the statements of each.

use super::rows;
use super::statements::{Kind, Statements};
use super::{Member, Oltp};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::session::{Answer, Session, Statement, Value};
use crate::workload::{row_missing, Place};
use std::sync::atomic::Ordering;

/// The statements of one client, and room for the parameters of those that have many.
pub struct Client {
    pub(super) statements: Statements,
    pub(super) list: Vec<Value<'static>>,
    pub(super) table: i64,
    pub(super) segment: Segment,
    pub(super) standing: Standing,
}

/// How far a transaction without BEGIN and COMMIT has come: each of its statements commits by itself.
#[derive(Default)]
pub(super) struct Standing {
    /// The next try goes on where this one ended.
    pub again: bool,
    /// How many statements are through; a delete with its insert counts as one.
    through: u32,
    /// Some of them may have changed a row.
    pub changed: bool,
    /// What the statement under way draws from, with its table.
    drawing: Option<(Random, i64)>,
    /// The delete under way has taken a row away, which its insert has to bring back.
    deleted: Option<Answer>,
}

impl Standing {
    /// Begins a try; gives the number of statements to leave out.
    fn begin(&mut self) -> u32 {
        if !std::mem::take(&mut self.again) {
            *self = Standing::default();
        }
        self.through
    }
}

/// One of as many equal parts of the keys as there are clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Keys before it.
    before: i64,
    length: i64,
}

impl Segment {
    pub(super) fn of(place: Place, table_size: i64) -> Self {
        let border = |client: u32| i64::from(client) * table_size / i64::from(place.clients);
        let (before, end) = (border(place.client), border(place.client + 1));
        Segment { before, length: (end - before).max(1) }
    }

    /// Where a key drawn from the whole table lies in this part: the distribution keeps its form.
    fn place(self, key: i64, table_size: i64) -> i64 {
        self.before + (key - 1) * self.length / table_size + 1
    }
}

/// The error of an insert, to be tried again where the delete before it has passed over the row (`Dialect::passed_over`).
fn without_race(error: Error, deleted: Answer, passed_over: Option<&str>) -> Error {
    match passed_over {
        Some(state) if deleted.affected == 0 && error.code().is_of_class(state) => error.retried(),
        _ => error,
    }
}

impl Oltp {
    pub(super) async fn transaction<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<()> {
        if self.skip_trx {
            return self.by_themselves(client, session, random).await;
        }
        session.begin().await?;
        for &(kind, count) in &self.counts {
            if count == 0 {
                continue;
            }
            let table = self.draw_table(random);
            for _ in 0..count {
                if kind == Kind::Delete {
                    self.delete_and_insert(client, table, session, random).await?;
                } else {
                    self.statement(kind, client.statements.get(kind, table), session, random).await?;
                }
            }
        }
        session.commit().await
    }

    /// The statements of a transaction, each of which commits by itself: another try goes on with the one that failed.
    async fn by_themselves<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<()> {
        let (mut left_out, mut resumed) = (client.standing.begin(), client.standing.drawing);
        for &(kind, count) in self.counts.iter().filter(|(_, count)| *count > 0) {
            let mut table = None;
            for _ in 0..count {
                if left_out > 0 {
                    left_out -= 1;
                    continue;
                }
                if let Some((drawing, its_table)) = resumed.take() {
                    (*random, table) = (drawing, Some(its_table));
                }
                let table = *table.get_or_insert_with(|| self.draw_table(random));
                client.standing.drawing = Some((*random, table));
                if kind == Kind::Delete {
                    self.delete_and_insert(client, table, session, random).await?;
                } else {
                    self.statement(kind, client.statements.get(kind, table), session, random).await?;
                }
                client.standing.through += 1;
                client.standing.changed |= kind.writes();
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) async fn statement<S: Session>(
        &self,
        kind: Kind,
        statement: Statement,
        session: &mut S,
        random: &mut Random,
    ) -> Result<()> {
        let id = self.rows.draw(random);
        let key = Value::Int(id);
        let answer = match kind {
            Kind::SimpleRange | Kind::SumRange | Kind::OrderRange | Kind::DistinctRange => {
                session.execute(statement, &[key, Value::Int(id + self.range_size - 1)], &mut ()).await?
            }
            Kind::UpdateNonIndex => {
                session.execute(statement, &[rows::C::draw(random).value(), key], &mut ()).await?
            }
            Kind::InsertNumbered => {
                let (c, pad) = (rows::C::draw(random), rows::Pad::draw(random));
                session.execute(statement, &[key, c.value(), pad.value()], &mut ()).await?
            }
            _ => session.execute(statement, &[key], &mut ()).await?,
        };
        self.require_hit(kind, answer)
    }

    /// A row goes and comes back under the same id.
    async fn delete_and_insert<S: Session>(
        &self,
        client: &mut Client,
        table: i64,
        session: &mut S,
        random: &mut Random,
    ) -> Result<()> {
        let (id, k) = (Value::Int(self.rows.draw(random)), Value::Int(self.rows.draw(random)));
        let (c, pad) = (rows::C::draw(random), rows::Pad::draw(random));
        let deleted = match client.standing.deleted {
            Some(deleted) => deleted,
            None => session.execute(client.statements.get(Kind::Delete, table), &[id], &mut ()).await?,
        };
        // One that found nothing is tried again with its insert: the row may have come back.
        if self.skip_trx && deleted.affected > 0 {
            (client.standing.deleted, client.standing.changed) = (Some(deleted), true);
        }
        let insert = client.statements.get(Kind::Insert, table);
        let inserted = session.execute(insert, &[id, k, c.value(), pad.value()], &mut ()).await;
        inserted.map_err(|error| without_race(error, deleted, session.dialect().passed_over))?;
        client.standing.deleted = None;
        Ok(())
    }

    /// A select with a list of values or ranges. Each client draws from a part of the keys that is its own.
    pub(super) async fn list<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<()> {
        let table = self.draw_table(random);
        let kind = match self.member {
            Member::RandomRanges => Kind::RandomRanges,
            _ => Kind::RandomPoints,
        };
        client.list.clear();
        while client.list.len() < self.list_length {
            let value = client.segment.place(self.rows.draw(random), self.table_size);
            client.list.push(Value::Int(value));
            if kind == Kind::RandomRanges {
                client.list.push(Value::Int(value + self.delta));
            }
        }
        session.execute(client.statements.get(kind, table), &client.list, &mut ()).await?;
        Ok(())
    }

    pub(super) async fn bulk<S: Session>(&self, client: &Client, session: &mut S) -> Result<()> {
        let table = client.table;
        let next = &self.next_ids[(table - 1) as usize];
        let first = next.fetch_add(self.bulk_rows, Ordering::Relaxed);
        if self.bulk_rows == 1 {
            let insert = client.statements.get(Kind::InsertKey, table);
            session.execute(insert, &[Value::Int(first), Value::Int(first)], &mut ()).await?;
            return Ok(());
        }
        let mut ids = first..first + self.bulk_rows;
        session
            .bulk_insert(&format!("sbtest{table}"), &["id", "k"], |row| {
                ids.next().map(|id| row.int(id).int(id)).is_some()
            })
            .await?;
        Ok(())
    }

    pub(super) fn draw_table(&self, random: &mut Random) -> i64 {
        if self.tables == 1 {
            1
        } else {
            random.between(1, self.tables)
        }
    }

    #[inline]
    pub(super) fn require_hit(&self, kind: Kind, answer: Answer) -> Result<()> {
        let hits = match kind {
            Kind::Point | Kind::SimpleRange | Kind::OrderRange | Kind::DistinctRange => answer.rows,
            Kind::UpdateIndex | Kind::UpdateNonIndex => answer.affected,
            _ => return Ok(()),
        };
        if hits == 0 && self.rows_stay() {
            return Err(row_missing(self.about.name));
        }
        Ok(())
    }

    /// True where no client takes a row away, not even for a moment: each must then find what it asks for.
    fn rows_stay(&self) -> bool {
        self.counts.iter().all(|(kind, count)| *kind != Kind::Delete || *count == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Code, Fate};

    #[test]
    fn each_client_has_a_segment_of_its_own_and_together_they_have_all_keys() {
        let segments: Vec<Segment> =
            (0..3).map(|client| Segment::of(Place { client, clients: 3, cut: None }, 100)).collect();
        let ends: Vec<(i64, i64)> =
            segments.iter().map(|segment| (segment.place(1, 100), segment.place(100, 100))).collect();
        assert_eq!(ends, [(1, 33), (34, 66), (67, 100)]);
        let crowded = Segment::of(Place { client: 499, clients: 500, cut: None }, 10);
        assert!((1..=10).contains(&crowded.place(10, 10)), "{crowded:?}");
    }

    #[test]
    fn a_row_that_came_back_in_between_is_another_try_and_any_other_duplicate_a_failure() {
        let refused = |state| Error::refused(Code::state(state), "violation", Fate::Failed, "duplicate key");
        let fate = |label, affected, passed_over| {
            without_race(refused(label), Answer { rows: 0, affected }, passed_over).fate()
        };
        assert_eq!(fate("23505", 0, Some("23505")), Fate::Retry);
        assert_eq!(fate("23505", 1, Some("23505")), Fate::Failed);
        assert_eq!(fate("23502", 0, Some("23505")), Fate::Failed);
        assert_eq!(fate("23505", 0, None), Fate::Failed);
    }
}
