//! The core workloads A to F of YCSB (Cooper and others, "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010): one
//! operation on one table of keys with fields, each a transaction of its own.

mod draw;

use super::{row_missing, About, CheckAgainst, Invariant, Options, Outcome, Place, Start, Typed, Workload};
use crate::error::{Error, Fate, Result};
use crate::random::Random;
use crate::session::{whole_number, Session, Statement, Value};
use draw::{
    distribution, draw_letters, put_key, text_of, Inserting, Keys, Popularity, HOTSPOT_KEYS,
    HOTSPOT_OPERATIONS,
};
use std::sync::Arc;

const TABLE: &str = "usertable";
const ROWS_PER_PART: u64 = 10_000;
/// Fields longer than this in all are long text, for a row must fit into a page.
const ROW_BYTES_MAX: usize = 4_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Update => "update",
            Kind::Insert => "insert",
            Kind::Scan => "scan",
            Kind::ReadModifyWrite => "read_modify_write",
        }
    }
}

/// Which operations a workload consists of, each with its share in percent.
type Mix = &'static [(Kind, u64)];

fn mix(name: &str) -> Mix {
    match name {
        "ycsb_a" => &[(Kind::Read, 50), (Kind::Update, 50)],
        "ycsb_b" => &[(Kind::Read, 95), (Kind::Update, 5)],
        "ycsb_d" => &[(Kind::Read, 95), (Kind::Insert, 5)],
        "ycsb_e" => &[(Kind::Scan, 95), (Kind::Insert, 5)],
        "ycsb_f" => &[(Kind::Read, 50), (Kind::ReadModifyWrite, 50)],
        _ => &[(Kind::Read, 100)],
    }
}

pub struct Ycsb {
    about: &'static About,
    mix: Mix,
    records: u64,
    fields: usize,
    field_length: usize,
    writes_all: bool,
    scan_longest: i64,
    popularity: Popularity,
    keys: Arc<Keys>,
}

/// One client's statements and buffers.
pub struct Client {
    read: Option<Statement>,
    /// One per field, or one for all.
    updates: Vec<Statement>,
    insert: Option<Statement>,
    scan: Option<Statement>,
    key: String,
    /// The values of all fields, one after another.
    values: Vec<u8>,
    /// The key whose insert was begun and has not come to an end.
    inserting: Option<Inserting>,
}

const RECORDS: Typed<i64> = Typed::int("record_count", 1000, 1, 10_000_000_000, "rows of usertable");
const FIELDS: Typed<i64> = Typed::int("field_count", 10, 1, 200, "fields of a row, beside its key");
const FIELD_LENGTH: Typed<i64> = Typed::int("field_length", 100, 1, 100_000, "letters of a field");
const WRITE_ALL: Typed<bool> =
    Typed::flag("write_all_fields", false, "an update changes all fields, not one").for_the_run();
const SCAN_LONGEST: Typed<i64> =
    Typed::int("max_scan_length", 100, 1, 1_000_000, "a scan reads 1 to so many rows").for_the_run();

macro_rules! offer {
    ($name:literal, $distribution:literal, [$($kind:literal),*], $read_only:expr, $description:literal) => {
        About {
            name: $name,
            description: $description,
            options: &[
                RECORDS.spec(),
                FIELDS.spec(),
                FIELD_LENGTH.spec(),
                distribution($distribution).spec(),
                WRITE_ALL.spec(),
                SCAN_LONGEST.spec(),
                HOTSPOT_KEYS.spec(),
                HOTSPOT_OPERATIONS.spec(),
            ],
            transactions: &[$($kind),*],
            read_only: $read_only,
            keeps_ledger: false,
        }
    };
}

impl Workload for Ycsb {
    type Client = Client;

    const OFFERS: &'static [About] = &[
        offer!("ycsb_a", "zipfian", ["read", "update"], false, "YCSB A: half reads, half updates"),
        offer!("ycsb_b", "zipfian", ["read", "update"], false, "YCSB B: 95 % reads, 5 % updates"),
        offer!("ycsb_c", "zipfian", ["read"], true, "YCSB C: reads only"),
        offer!(
            "ycsb_d",
            "latest",
            ["read", "insert"],
            false,
            "YCSB D: 95 % reads of the latest rows, 5 % inserts"
        ),
        offer!("ycsb_e", "zipfian", ["scan", "insert"], false, "YCSB E: 95 % short scans, 5 % inserts"),
        offer!(
            "ycsb_f",
            "zipfian",
            ["read", "read_modify_write"],
            false,
            "YCSB F: half reads, half reads followed by an update of the row"
        ),
    ];

    const BRIEF: bool = true;

    fn new(about: &'static About, options: &Options) -> Result<Self> {
        let records = options.int(RECORDS) as u64;
        let keys = Arc::new(Keys::default());
        keys.begin(records);
        Ok(Ycsb {
            about,
            mix: mix(about.name),
            records,
            fields: options.int(FIELDS) as usize,
            field_length: options.int(FIELD_LENGTH) as usize,
            writes_all: options.flag(WRITE_ALL),
            scan_longest: options.int(SCAN_LONGEST),
            popularity: Popularity::new(options),
            keys,
        })
    }

    fn transactions(&self) -> Vec<String> {
        self.mix.iter().map(|(kind, _)| kind.name().to_owned()).collect()
    }

    async fn create<S: Session>(&self, session: &mut S) -> Result<()> {
        self.cleanup(session).await?;
        let dialect = session.dialect();
        let kind = if self.fields * self.field_length <= ROW_BYTES_MAX {
            format!("VARCHAR({})", self.field_length)
        } else {
            dialect.text.to_owned()
        };
        let fields = self.listed(", ", |field| format!("{} {kind}", field_name(field)));
        let suffix = dialect.table_suffix;
        let sql =
            format!("CREATE TABLE {TABLE} (ycsb_key VARCHAR(64) NOT NULL PRIMARY KEY, {fields}){suffix}");
        session.text(&sql, &mut ()).await.map(drop)
    }

    fn load_parts(&self) -> u64 {
        self.records.div_ceil(ROWS_PER_PART)
    }

    async fn load<S: Session>(&self, part: u64, session: &mut S, random: Random) -> Result<u64> {
        let mut numbers = part * ROWS_PER_PART..((part + 1) * ROWS_PER_PART).min(self.records);
        let (mut random, mut key, mut value) = (random, String::new(), vec![0; self.field_length]);
        let names: Vec<String> = (0..self.fields).map(field_name).collect();
        let columns: Vec<&str> =
            std::iter::once("ycsb_key").chain(names.iter().map(String::as_str)).collect();
        session
            .bulk_insert(TABLE, &columns, |row| {
                let Some(number) = numbers.next() else { return false };
                put_key(&mut key, number);
                row.text(&key);
                for _ in 0..self.fields {
                    draw_letters(&mut value, &mut random);
                    row.text(text_of(&value));
                }
                true
            })
            .await
    }

    async fn inspect<S: Session>(&self, session: &mut S) -> Result<Start> {
        if !self.inserts() {
            // The last key that was loaded tells as much as all of them, and nothing else is read.
            let mut key = String::new();
            put_key(&mut key, self.records - 1);
            let sql = format!("SELECT COUNT(*) FROM {TABLE} WHERE ycsb_key = '{key}'");
            let there = whole_number(session, &sql).await? == 1;
            return if there { Ok(Start::new()) } else { Err(self.too_few()) };
        }
        // Whatever earlier runs have inserted goes on.
        let rows = self.rows(session).await?;
        if (rows as u64) < self.records {
            return Err(self.too_few());
        }
        self.keys.begin(rows as u64);
        Ok([("rows".to_owned(), rows)].into())
    }

    async fn client<S: Session>(&self, session: &mut S, _place: Place) -> Result<Client> {
        let names = self.listed(", ", field_name);
        let mut client = Client {
            read: None,
            updates: Vec::new(),
            insert: None,
            scan: None,
            key: String::new(),
            values: vec![0; self.fields * self.field_length],
            inserting: None,
        };
        for (kind, _) in self.mix {
            if matches!(kind, Kind::Read | Kind::ReadModifyWrite) && client.read.is_none() {
                let sql = format!("SELECT {names} FROM {TABLE} WHERE ycsb_key = ?");
                client.read = Some(session.prepare(&sql).await?);
            }
            if matches!(kind, Kind::Update | Kind::ReadModifyWrite) {
                client.updates = self.prepare_updates(session).await?;
            }
            if *kind == Kind::Insert {
                let marks = self.listed(", ", |_| "?".to_owned());
                let sql = format!("INSERT INTO {TABLE} (ycsb_key, {names}) VALUES (?, {marks})");
                client.insert = Some(session.prepare(&sql).await?);
            }
            if *kind == Kind::Scan {
                let limit = session.dialect().limit.replace("{}", "?");
                let sql =
                    format!("SELECT {names} FROM {TABLE} WHERE ycsb_key >= ? ORDER BY ycsb_key {limit}");
                client.scan = Some(session.prepare(&sql).await?);
            }
        }
        Ok(client)
    }

    fn choose(&self, _client: &mut Client, random: &mut Random) -> usize {
        let mut drawn = random.below(100);
        let place = self.mix.iter().position(|(_, percent)| {
            let here = drawn < *percent;
            drawn = drawn.saturating_sub(*percent);
            here
        });
        place.unwrap_or(0)
    }

    async fn perform<S: Session>(
        &self,
        kind: usize,
        client: &mut Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<Outcome> {
        match self.mix[kind].0 {
            Kind::Insert => self.insert(client, session, random).await?,
            other => {
                put_key(&mut client.key, self.popularity.draw(&self.keys, self.records, random));
                match other {
                    Kind::Scan => self.scan(client, session, random).await?,
                    Kind::Update => self.update(client, session, random).await?,
                    Kind::Read => read(client, session).await?,
                    _ => {
                        read(client, session).await?;
                        self.update(client, session, random).await?;
                    }
                }
            }
        }
        Ok(Outcome::Committed)
    }

    async fn check<S: Session>(&self, session: &mut S, against: CheckAgainst<'_>) -> Result<Vec<Invariant>> {
        let rows = self.rows(session).await?;
        let Some(told) = against.acknowledged.filter(|_| self.inserts()) else {
            // Rows beyond those that were loaded are another run's inserts.
            let detail = format!("{rows} rows, {} were loaded", self.records);
            return Ok(vec![Invariant::new("rows_complete", rows as u64 >= self.records, detail)]);
        };
        let inserted = told.by_transaction.get(Kind::Insert.name()).copied().unwrap_or_default();
        let grown = rows - told.at_start("rows", self.records as i64);
        let holds = (inserted as i64..=(inserted + told.unknown) as i64).contains(&grown);
        let detail = format!(
            "{grown} rows more than before, {inserted} inserts acknowledged, {} operations unknown",
            told.unknown
        );
        Ok(vec![Invariant::new("inserts_there", holds, detail)])
    }

    async fn cleanup<S: Session>(&self, session: &mut S) -> Result<()> {
        session.drop_table(TABLE).await
    }
}

impl Ycsb {
    fn inserts(&self) -> bool {
        self.mix.iter().any(|(kind, _)| *kind == Kind::Insert)
    }

    async fn rows<S: Session>(&self, session: &mut S) -> Result<i64> {
        whole_number(session, &format!("SELECT COUNT(*) FROM {TABLE}")).await
    }

    fn too_few(&self) -> Error {
        Error::user(format!("{TABLE} has fewer rows than the run's record_count {}", self.records))
            .hint(format!("prepare {} with that record_count, or run it with the data's", self.about.name))
    }

    fn listed(&self, between: &str, of: impl Fn(usize) -> String) -> String {
        (0..self.fields).map(of).collect::<Vec<_>>().join(between)
    }

    async fn prepare_updates<S: Session>(&self, session: &mut S) -> Result<Vec<Statement>> {
        let changes: Vec<String> = match self.writes_all {
            true => vec![self.listed(", ", |field| format!("{} = ?", field_name(field)))],
            false => (0..self.fields).map(|field| format!("{} = ?", field_name(field))).collect(),
        };
        let mut updates = Vec::with_capacity(changes.len());
        for change in changes {
            let sql = format!("UPDATE {TABLE} SET {change} WHERE ycsb_key = ?");
            updates.push(session.prepare(&sql).await?);
        }
        Ok(updates)
    }

    async fn update<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<()> {
        let which = random.below(client.updates.len() as u64) as usize;
        if self.writes_all {
            draw_letters(&mut client.values, random);
            let parameters = parameters(&client.values, self.field_length, None, Some(&client.key));
            return session.execute(client.updates[which], &parameters, &mut ()).await.map(drop);
        }
        let value = &mut client.values[..self.field_length];
        draw_letters(value, random);
        let parameters = [Value::Text(text_of(value)), Value::Text(&client.key)];
        session.execute(client.updates[which], &parameters, &mut ()).await.map(drop)
    }

    async fn scan<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<()> {
        let Some(scan) = client.scan else { return Err(unprepared()) };
        let length = random.between(1, self.scan_longest);
        let parameters = [Value::Text(&client.key), Value::Int(length)];
        let answer = session.execute(scan, &parameters, &mut ()).await?;
        if answer.rows == 0 {
            return Err(row_missing("scan"));
        }
        Ok(())
    }

    async fn insert<S: Session>(
        &self,
        client: &mut Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<()> {
        let Some(insert) = client.insert else { return Err(unprepared()) };
        draw_letters(&mut client.values, random);
        loop {
            // A try that failed left a hole, which the next one fills.
            let inserting = client.inserting.get_or_insert_with(|| Inserting::next(&self.keys));
            let was_left = inserting.was_left;
            put_key(&mut client.key, inserting.number);
            let parameters = parameters(&client.values, self.field_length, Some(&client.key), None);
            let outcome = session.execute(insert, &parameters, &mut ()).await;
            if outcome.as_ref().is_err_and(|error| error.fate() != Fate::Failed) {
                return outcome.map(drop);
            }
            // A key that is refused for good is there already: an earlier run has inserted it, or a client whose
            // connection was lost before it was told so.
            client.inserting.take().into_iter().for_each(Inserting::note);
            if outcome.is_ok() || !was_left {
                return outcome.map(drop);
            }
        }
    }
}

async fn read<S: Session>(client: &mut Client, session: &mut S) -> Result<()> {
    let Some(read) = client.read else { return Err(unprepared()) };
    let answer = session.execute(read, &[Value::Text(&client.key)], &mut ()).await?;
    if answer.rows == 0 {
        return Err(row_missing("read"));
    }
    Ok(())
}

#[cold]
fn unprepared() -> Error {
    Error::internal("an operation of another of YCSB's workloads")
}

/// All fields with a key before or behind them, as a statement's parameters.
fn parameters<'a>(
    values: &'a [u8],
    length: usize,
    before: Option<&'a str>,
    behind: Option<&'a str>,
) -> Vec<Value<'a>> {
    let fields = values.chunks(length).map(|value| Value::Text(text_of(value)));
    before.map(Value::Text).into_iter().chain(fields).chain(behind.map(Value::Text)).collect()
}

fn field_name(field: usize) -> String {
    format!("field{field}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Circumstances;

    fn workload(about: &'static About) -> Ycsb {
        let options = Options::resolve(about, &serde_json::Map::new(), &Circumstances::default()).unwrap();
        Ycsb::new(about, &options).unwrap()
    }

    fn client() -> Client {
        let (key, values, updates) = (String::new(), Vec::new(), Vec::new());
        Client { read: None, updates, insert: None, scan: None, key, values, inserting: None }
    }

    #[test]
    fn a_key_whose_client_is_lost_is_inserted_by_another_and_the_latest_go_on() {
        let ycsb = workload(&Ycsb::OFFERS[3]);
        let (mut lost, loaded) = (client(), ycsb.keys.count());
        lost.inserting = Some(Inserting::next(&ycsb.keys));
        Inserting::next(&ycsb.keys).note();
        assert_eq!(ycsb.keys.count(), loaded, "one below it is not there yet");
        drop(lost);
        let again = Inserting::next(&ycsb.keys);
        assert_eq!((again.number, again.was_left), (loaded, true));
        again.note();
        assert_eq!(ycsb.keys.count(), loaded + 2);
        assert!(!Inserting::next(&ycsb.keys).was_left);
    }

    #[test]
    fn operations_have_their_share() {
        for about in Ycsb::OFFERS {
            let ycsb = workload(about);
            assert_eq!(ycsb.transactions(), about.transactions);
            assert_eq!(ycsb.mix.iter().map(|(_, percent)| percent).sum::<u64>(), 100);
            let (mut random, mut counts) = (Random::new(1, 1), vec![0.0; ycsb.mix.len()]);
            for _ in 0..100_000 {
                counts[ycsb.choose(&mut client(), &mut random)] += 1e-3;
            }
            for ((kind, percent), count) in ycsb.mix.iter().zip(&counts) {
                assert!((count - *percent as f64).abs() < 0.7, "{} of {}: {count}", kind.name(), about.name);
            }
        }
    }
}
