//! The OLTP family: the tables and the transactions of sysbench's `oltp_*`, so that tables loaded by sysbench run
//! under this driver and the reverse.

mod distribution;
mod offers;
mod rows;
mod statements;

use super::{
    row_missing, About, Acknowledged, CheckAgainst, Invariant, Options, Outcome, Place, Start, Typed,
    Workload,
};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::session::{whole_number, Answer, First, Session, Statement, Value};
use distribution::Distribution;
use rows::{checksum, ROWS_PER_PART};
use statements::{Kind, Statements};
use std::sync::atomic::{AtomicI64, Ordering};

/// Tables of so few rows are in every cache, so counting them before a run changes nothing for it.
const COUNTED_ROWS_MAX: i64 = 100_000;

/// Which of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    PointSelect,
    /// read_only, read_write and write_only differ in how many statements of each kind they have.
    Transaction,
    UpdateIndex,
    UpdateNonIndex,
    Delete,
    Insert,
    BulkInsert,
    RandomPoints,
    RandomRanges,
}

pub struct Oltp {
    member: Member,
    about: &'static About,
    tables: i64,
    table_size: i64,
    rows: Distribution,
    range_size: i64,
    /// How many statements of each kind a transaction has.
    counts: Vec<(Kind, i64)>,
    skip_trx: bool,
    list_length: usize,
    delta: i64,
    bulk_rows: i64,
    /// bulk_insert: the next id of each table, shared by the clients that write to it.
    next_ids: Vec<AtomicI64>,
}

/// The statements of one client, and room for the parameters of those that have many.
pub struct Client {
    statements: Statements,
    list: Vec<Value<'static>>,
    table: i64,
    segment: Segment,
}

/// One of as many equal parts of the keys as there are clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// Keys before it.
    before: i64,
    length: i64,
}

impl Segment {
    fn of(place: Place, table_size: i64) -> Self {
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
        Some(state) if deleted.affected == 0 && error.label().starts_with(state) => error.retried(),
        _ => error,
    }
}

/// The kinds of statements of a transaction in the order in which sysbench sends them, with the option for how many.
const IN_TRANSACTION: [(Kind, Typed<i64>); 8] = [
    (Kind::Point, offers::POINT_SELECTS),
    (Kind::SimpleRange, offers::SIMPLE_RANGES),
    (Kind::SumRange, offers::SUM_RANGES),
    (Kind::OrderRange, offers::ORDER_RANGES),
    (Kind::DistinctRange, offers::DISTINCT_RANGES),
    (Kind::UpdateIndex, offers::INDEX_UPDATES),
    (Kind::UpdateNonIndex, offers::NON_INDEX_UPDATES),
    (Kind::Delete, offers::DELETE_INSERTS),
];

fn member(name: &str) -> Member {
    match name {
        "point_select" => Member::PointSelect,
        "update_index" => Member::UpdateIndex,
        "update_non_index" => Member::UpdateNonIndex,
        "delete" => Member::Delete,
        "insert" => Member::Insert,
        "bulk_insert" => Member::BulkInsert,
        "select_random_points" => Member::RandomPoints,
        "select_random_ranges" => Member::RandomRanges,
        _ => Member::Transaction,
    }
}

impl Workload for Oltp {
    type Client = Client;

    const OFFERS: &'static [About] = offers::OFFERS;

    /// As sysbench does.
    const REPLAYS: bool = false;

    fn new(about: &'static About, options: &Options) -> Result<Self> {
        let (member, table_size) = (member(about.name), options.int(offers::TABLE_SIZE));
        let counts: Vec<_> =
            IN_TRANSACTION.iter().map(|(kind, option)| (*kind, options.int(*option))).collect();
        if member == Member::Transaction && counts.iter().all(|(_, count)| *count == 0) {
            return Err(Error::user(format!("{} has no statement left", about.name))
                .hint("set one of the counts, such as point_selects, above 0"));
        }
        let tables = options.int(offers::TABLES);
        Ok(Oltp {
            member,
            about,
            tables,
            table_size,
            rows: Distribution::new(table_size, options),
            range_size: options.int(offers::RANGE_SIZE),
            counts,
            skip_trx: options.flag(offers::SKIP_TRX),
            list_length: options.int(offers::RANDOM_POINTS).max(2 * options.int(offers::RANDOM_RANGES))
                as usize,
            delta: options.int(offers::DELTA),
            bulk_rows: options.int(offers::BULK_ROWS),
            next_ids: (0..tables).map(|_| AtomicI64::new(1)).collect(),
        })
    }

    fn transactions(&self) -> Vec<String> {
        vec![self.about.name.to_owned()]
    }

    async fn create<S: Session>(&self, session: &mut S) -> Result<()> {
        self.cleanup(session).await?;
        let dialect = session.dialect();
        let (identity, suffix) = (dialect.identity_primary_key(), dialect.table_suffix);
        for table in 1..=self.tables {
            let columns = match self.member {
                Member::BulkInsert => {
                    "id INTEGER NOT NULL PRIMARY KEY, k INTEGER DEFAULT 0 NOT NULL".to_owned()
                }
                _ => format!(
                    "id {identity}, k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, \
                     pad CHAR(60) DEFAULT '' NOT NULL"
                ),
            };
            session.text(&format!("CREATE TABLE sbtest{table} ({columns}){suffix}"), &mut ()).await?;
        }
        Ok(())
    }

    fn load_parts(&self) -> u64 {
        match self.member {
            Member::BulkInsert => 0,
            _ => (self.tables * self.parts_per_table()) as u64,
        }
    }

    async fn load<S: Session>(&self, part: u64, session: &mut S, random: Random) -> Result<u64> {
        let (table, part) = (part as i64 / self.parts_per_table() + 1, part as i64 % self.parts_per_table());
        let (first, last) = (part * ROWS_PER_PART + 1, ((part + 1) * ROWS_PER_PART).min(self.table_size));
        rows::load(session, table, (first, last), &self.rows, random).await
    }

    fn finish_parts(&self) -> u64 {
        match self.member {
            Member::BulkInsert => 0,
            _ => self.tables as u64,
        }
    }

    async fn finish<S: Session>(&self, part: u64, session: &mut S) -> Result<()> {
        let table = part + 1;
        session.text(&format!("CREATE INDEX k_{table} ON sbtest{table} (k)"), &mut ()).await?;
        if session.dialect().identity == crate::session::Identity::GeneratedByDefault {
            // Rows came with their ids, which such a column does not notice.
            let next = self.table_size + 1;
            let sql = format!("ALTER TABLE sbtest{table} ALTER COLUMN id RESTART WITH {next}");
            session.text(&sql, &mut ()).await?;
        }
        Ok(())
    }

    async fn inspect<S: Session>(&self, session: &mut S) -> Result<Start> {
        let mut start = Start::new();
        for table in 1..=self.tables {
            self.require_rows(session, table).await?;
            for (name, sql) in self.rows_before(table) {
                *start.entry(name.to_owned()).or_default() += whole_number(session, &sql).await?;
            }
        }
        Ok(start)
    }

    async fn client<S: Session>(&self, session: &mut S, place: Place) -> Result<Client> {
        let kinds = self.kinds();
        let (first, last) = match self.member {
            Member::BulkInsert => {
                let table = i64::from(place.client) % self.tables + 1;
                self.note_ids(session, table).await?;
                (table, table)
            }
            _ => (1, self.tables),
        };
        let statements = Statements::prepare(session, &kinds, (first, last), self.list_length).await?;
        let segment = Segment::of(place, self.table_size.max(1));
        Ok(Client { statements, list: Vec::with_capacity(self.list_length), table: first, segment })
    }

    async fn perform<S: Session>(
        &self,
        _kind: usize,
        client: &mut Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<Outcome> {
        match self.member {
            Member::Transaction => self.transaction(client, session, random).await?,
            Member::BulkInsert => self.bulk(client, session).await?,
            Member::RandomPoints | Member::RandomRanges => self.list(client, session, random).await?,
            Member::PointSelect => self.single(Kind::Point, client, session, random).await?,
            Member::UpdateIndex => self.single(Kind::UpdateIndex, client, session, random).await?,
            Member::UpdateNonIndex => self.single(Kind::UpdateNonIndex, client, session, random).await?,
            Member::Delete => self.single(Kind::Delete, client, session, random).await?,
            Member::Insert => self.single(Kind::InsertNumbered, client, session, random).await?,
        }
        Ok(Outcome::Committed)
    }

    async fn check<S: Session>(&self, session: &mut S, against: CheckAgainst<'_>) -> Result<Vec<Invariant>> {
        if self.about.read_only {
            return self.check_unchanged(session, against.baseline).await;
        }
        let (mut rows, mut tables_of_other_size) = (0, Vec::new());
        for table in 1..=self.tables {
            let count = whole_number(session, &self.count(table)).await?;
            rows += count;
            if count != self.table_size {
                tables_of_other_size.push(format!("sbtest{table} has {count}"));
            }
        }
        Ok(match (self.member, against.acknowledged) {
            (Member::Insert | Member::BulkInsert | Member::Delete, None) => Vec::new(),
            (Member::Insert | Member::BulkInsert | Member::Delete, Some(told)) => {
                vec![self.rows_moved(rows, told)]
            }
            _ => {
                let holds = tables_of_other_size.is_empty();
                let found = if holds { "none differs".to_owned() } else { tables_of_other_size.join(", ") };
                let detail = format!("{} rows per table are expected: {found}", self.table_size);
                vec![Invariant::new("rows_complete", holds, detail)]
            }
        })
    }

    async fn cleanup<S: Session>(&self, session: &mut S) -> Result<()> {
        for table in 1..=self.tables {
            session.drop_table(&format!("sbtest{table}")).await?;
        }
        Ok(())
    }
}

impl Oltp {
    /// The last id tells whether there are as many rows as the run draws from: at little cost, and without reading what
    /// the run will read. More are fine, for inserts leave them; deletes may have taken the last ones.
    async fn require_rows<S: Session>(&self, session: &mut S, table: i64) -> Result<()> {
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
    fn rows_before(&self, table: i64) -> Vec<(&'static str, String)> {
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
    fn count(&self, table: i64) -> String {
        match self.member {
            Member::Insert | Member::BulkInsert | Member::Delete => {
                format!("SELECT COUNT(*) FROM sbtest{table}")
            }
            _ => format!("SELECT COUNT(*) FROM sbtest{table} WHERE id <= {}", self.table_size),
        }
    }

    /// True where no client takes a row away, not even for a moment: each must then find what it asks for.
    fn rows_stay(&self) -> bool {
        self.counts.iter().all(|(kind, count)| *kind != Kind::Delete || *count == 0)
    }

    fn require_hit(&self, kind: Kind, answer: Answer) -> Result<()> {
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

    fn parts_per_table(&self) -> i64 {
        (self.table_size + ROWS_PER_PART - 1) / ROWS_PER_PART
    }

    /// The kinds of statements that this member needs.
    fn kinds(&self) -> Vec<Kind> {
        match self.member {
            Member::PointSelect => vec![Kind::Point],
            Member::UpdateIndex => vec![Kind::UpdateIndex],
            Member::UpdateNonIndex => vec![Kind::UpdateNonIndex],
            Member::Delete => vec![Kind::Delete],
            Member::Insert => vec![Kind::InsertNumbered],
            Member::BulkInsert => vec![Kind::InsertKey],
            Member::RandomPoints => vec![Kind::RandomPoints],
            Member::RandomRanges => vec![Kind::RandomRanges],
            Member::Transaction => {
                let used = self.counts.iter().filter(|(_, count)| *count > 0).map(|(kind, _)| *kind);
                let mut kinds: Vec<Kind> = used.collect();
                if kinds.contains(&Kind::Delete) {
                    kinds.push(Kind::Insert);
                }
                kinds
            }
        }
    }

    fn draw_table(&self, random: &mut Random) -> i64 {
        if self.tables == 1 {
            1
        } else {
            random.between(1, self.tables)
        }
    }

    async fn transaction<S: Session>(
        &self,
        client: &Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<()> {
        if !self.skip_trx {
            session.begin().await?;
        }
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
        if !self.skip_trx {
            session.commit().await?;
        }
        Ok(())
    }

    /// A transaction of one statement, which commits by itself.
    #[inline]
    async fn single<S: Session>(
        &self,
        kind: Kind,
        client: &Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<()> {
        let table = self.draw_table(random);
        self.statement(kind, client.statements.get(kind, table), session, random).await
    }

    #[inline]
    async fn statement<S: Session>(
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
        client: &Client,
        table: i64,
        session: &mut S,
        random: &mut Random,
    ) -> Result<()> {
        let (id, k) = (Value::Int(self.rows.draw(random)), Value::Int(self.rows.draw(random)));
        let (c, pad) = (rows::C::draw(random), rows::Pad::draw(random));
        let deleted = session.execute(client.statements.get(Kind::Delete, table), &[id], &mut ()).await?;
        let insert = client.statements.get(Kind::Insert, table);
        let inserted = session.execute(insert, &[id, k, c.value(), pad.value()], &mut ()).await;
        inserted.map(drop).map_err(|error| without_race(error, deleted, session.dialect().passed_over))
    }

    /// A select with a list of values or ranges. Each client draws from a part of the keys that is its own.
    async fn list<S: Session>(
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

    async fn bulk<S: Session>(&self, client: &Client, session: &mut S) -> Result<()> {
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

    /// Goes on where an earlier run stopped.
    async fn note_ids<S: Session>(&self, session: &mut S, table: i64) -> Result<()> {
        let mut last = First::<i64>::default();
        session.text(&format!("SELECT COALESCE(MAX(id), 0) FROM sbtest{table}"), &mut last).await?;
        self.next_ids[(table - 1) as usize].fetch_max(last.0.unwrap_or(0) + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Nothing may have changed, neither in number nor in content.
    async fn check_unchanged<S: Session>(
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
    fn rows_moved(&self, rows: i64, told: &Acknowledged) -> Invariant {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Fate;

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
        let refused = |label| Error::server(label, Fate::Failed, "duplicate key");
        let fate = |label, affected, passed_over| {
            without_race(refused(label), Answer { rows: 0, affected }, passed_over).fate()
        };
        assert_eq!(fate("23505 unique violation", 0, Some("23505")), Fate::Retry);
        assert_eq!(fate("23505 unique violation", 1, Some("23505")), Fate::Failed);
        assert_eq!(fate("23502 not null violation", 0, Some("23505")), Fate::Failed);
        assert_eq!(fate("23505 unique violation", 0, None), Fate::Failed);
    }
}
