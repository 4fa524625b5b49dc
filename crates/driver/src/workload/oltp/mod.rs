//! The OLTP family: the tables and the transactions of sysbench's `oltp_*`, so that tables loaded by sysbench run
//! under this driver and the reverse.

mod check;
mod distribution;
mod offers;
mod perform;
mod rows;
mod statements;

use super::{About, CheckAgainst, Invariant, Options, Outcome, Place, Single, Start, Typed, Workload};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::session::{whole_number, Answer, First, Session};
use distribution::Distribution;
use perform::{Client, Segment, Standing};
use rows::ROWS_PER_PART;
use statements::{Kind, Statements};
use std::sync::atomic::{AtomicI64, Ordering};

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

impl Member {
    fn only(self) -> Option<Kind> {
        match self {
            Member::Transaction | Member::BulkInsert | Member::RandomPoints | Member::RandomRanges => None,
            Member::PointSelect => Some(Kind::Point),
            Member::UpdateIndex => Some(Kind::UpdateIndex),
            Member::UpdateNonIndex => Some(Kind::UpdateNonIndex),
            Member::Delete => Some(Kind::Delete),
            Member::Insert => Some(Kind::InsertNumbered),
        }
    }
}

pub struct Oltp {
    member: Member,
    /// The statement that is all of a transaction, where there is but one. It commits by itself.
    only: Option<Kind>,
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

    const BRIEF: bool = true;

    /// As sysbench does.
    const REPLAYS: bool = false;

    const DRAWS_SINGLES: bool = true;

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
            only: member.only(),
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
        let (list, standing) = (Vec::with_capacity(self.list_length), Standing::default());
        Ok(Client { statements, list, table: first, segment, standing })
    }

    async fn perform<S: Session>(
        &self,
        _kind: usize,
        client: &mut Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<Outcome> {
        if let Some(kind) = self.only {
            let statement = client.statements.get(kind, self.draw_table(random));
            self.statement(kind, statement, session, random).await?;
            return Ok(Outcome::Committed);
        }
        match self.member {
            Member::BulkInsert => self.bulk(client, session).await?,
            Member::RandomPoints | Member::RandomRanges => self.list(client, session, random).await?,
            _ => self.transaction(client, session, random).await?,
        }
        Ok(Outcome::Committed)
    }

    #[inline]
    fn single(&self, client: &Client, random: &mut Random) -> Option<Single> {
        let kind = self.only.filter(|kind| kind.takes_key_alone())?;
        let statement = client.statements.get(kind, self.draw_table(random));
        Some(Single { statement, key: self.rows.draw(random) })
    }

    #[inline]
    fn single_answered(&self, answer: Answer) -> Result<Outcome> {
        self.only.map_or(Ok(()), |kind| self.require_hit(kind, answer)).map(|()| Outcome::Committed)
    }

    fn repeats(&self, client: &mut Client) -> bool {
        client.standing.again = true;
        true
    }

    fn failed(&self, client: &mut Client) -> bool {
        std::mem::take(&mut client.standing).changed
    }

    async fn check<S: Session>(&self, session: &mut S, against: CheckAgainst<'_>) -> Result<Vec<Invariant>> {
        if self.about.read_only {
            return self.check_unchanged(session, against.baseline).await;
        }
        // Without transactions a row that was taken away is only brought back by the next statement.
        let unknown = against.acknowledged.filter(|_| self.skip_trx).map_or(0, |told| told.unknown);
        let (mut rows, mut tables_of_other_size) = (0, Vec::new());
        for table in 1..=self.tables {
            let count = whole_number(session, &self.count(table)).await?;
            rows += count;
            if !(self.table_size.saturating_sub_unsigned(unknown)..=self.table_size).contains(&count) {
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
                let fewer = if unknown > 0 { format!(", or up to {unknown} fewer") } else { String::new() };
                let detail = format!("{} rows per table are expected{fewer}: {found}", self.table_size);
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

    /// Goes on where an earlier run stopped.
    async fn note_ids<S: Session>(&self, session: &mut S, table: i64) -> Result<()> {
        let mut last = First::<i64>::default();
        session.text(&format!("SELECT COALESCE(MAX(id), 0) FROM sbtest{table}"), &mut last).await?;
        self.next_ids[(table - 1) as usize].fetch_max(last.0.unwrap_or(0) + 1, Ordering::Relaxed);
        Ok(())
    }
}
