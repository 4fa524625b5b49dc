//! Search for the nearest vectors, with an index that may miss some: every answer is scored while it is measured.
//!
//! The set of vectors, the queries and their exact neighbours come from a folder of plain files (see `data`). With
//! writes, some transactions insert a vector or delete one. Only inserted vectors are deleted, so the set as loaded
//! stays whole, and recall is always against the set as loaded (see `VectorSet::recall`).

mod data;
mod sql;

use super::{About, Acknowledged, CheckAgainst, Invariant, Options, Outcome, Place, Start, Typed, Workload};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::session::{whole_number, Collect, Each, First, Row, Session, Statement, Value, VectorSql};
use data::{floats, Distance, VectorSet};
use sql::{Graph, INDEX, TABLE};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// Small enough that a few connections share the load evenly.
const ROWS_PER_PART: usize = 2_000;
/// How far an inserted vector lies from one of the set towards another: near enough to be found among its neighbours.
const INSERTED_STEP: f32 = 0.1;

const SEARCH: usize = 0;
const INSERT: usize = 1;
const DELETE: usize = 2;
const KINDS: [&str; 3] = ["search", "insert", "delete"];

pub struct VectorSearch {
    /// `None` until a set is named: there is nothing to load or search then.
    set: Option<VectorSet>,
    graph: Graph,
    k: usize,
    write_share: f64,
    score_share: f64,
    passes: Passes,
}

/// Which query comes next: all clients together go through all queries in a shuffled order, again and again, so that
/// each is asked as often as any other. The order is the same in every run; where it begins is drawn.
struct Passes {
    order: Vec<u32>,
    begin: OnceLock<u64>,
    asked: AtomicU64,
}

impl Passes {
    fn new(queries: usize) -> Self {
        let (mut order, mut random): (Vec<u32>, _) = ((0..queries as u32).collect(), Random::new(0, 0));
        for last in (1..queries).rev() {
            order.swap(last, random.below(last as u64 + 1) as usize);
        }
        Passes { order, begin: OnceLock::new(), asked: AtomicU64::new(0) }
    }

    fn next(&self, random: &mut Random) -> usize {
        let queries = self.order.len() as u64;
        let begin = *self.begin.get_or_init(|| random.below(queries));
        self.order[((begin + self.asked.fetch_add(1, Ordering::Relaxed)) % queries) as usize] as usize
    }
}

pub struct Client {
    engine: VectorSql,
    search: Statement,
    /// Inserts and deletes, where there are writes.
    writes: Option<(Statement, Statement)>,
    /// The parameter under way.
    vector: Vec<u8>,
    inserted: Vec<u8>,
    answer: Vec<i64>,
    recall: Option<f64>,
    /// The rows that this client has inserted and not deleted, as ids.
    own: std::ops::Range<i64>,
}

const DATASET: Typed<&'static str> = Typed::text("dataset", "", "a file of vectors (.hdf5, .npy, .fvecs, .fbin) or a folder made by `dyno cache data`; without it, vectors are generated");
const K: Typed<i64> =
    Typed::int("k", 10, 1, 10_000, "how many nearest vectors a query asks for").for_the_run();
const EF: Typed<i64> = Typed::int(
    "ef",
    0,
    0,
    10_000,
    "candidates that a search keeps (mhnsw_ef_search, hnsw.ef_search); 0: the engine's default",
)
.for_the_run();
const M: Typed<i64> =
    Typed::int("m", 0, 0, 200, "links per node of the index's graph; 0: the engine's default");
const EF_CONSTRUCTION: Typed<i64> = Typed::int(
    "ef_construction",
    0,
    0,
    1_000,
    "candidates while the index is built (pgvector); 0: the engine's default",
);
const DISTANCE: Typed<&'static str> = Typed::choice(
    "distance",
    "euclidean",
    &["euclidean", "cosine"],
    "what the index is made for, and what nearest means",
);
const WRITE_SHARE: Typed<f64> = Typed::float(
    "write_share",
    0.0,
    0.0,
    1.0,
    "share of transactions that insert or delete a vector during the search",
)
.for_the_run();
const SCORE_SHARE: Typed<f64> =
    Typed::float("score_share", 1.0, 0.0, 1.0, "share of the answers, drawn at random, that are scored")
        .for_the_run();
const VECTORS: Typed<i64> = Typed::int("vectors", 100_000, 1, 1_000_000_000, "generated: how many vectors");
const DIMENSIONS: Typed<i64> = Typed::int("dimensions", 768, 1, 16_383, "generated: of how many dimensions");
const QUERIES: Typed<i64> = Typed::int(
    "queries",
    1_000,
    1,
    10_000_000,
    "generated, or held out of a file that has none: how many queries",
);
const CLUSTERS: Typed<i64> = Typed::int("clusters", 1, 1, 1_000_000, "generated: from how many Gaussians");
const INTRINSIC_DIMENSION: Typed<i64> = Typed::int(
    "intrinsic_dimension",
    32,
    1,
    16_383,
    "generated: the dimension of the subspace around which they lie",
);
const NOISE: Typed<f64> = Typed::float(
    "noise",
    0.1,
    0.0,
    1_000.0,
    "generated: standard deviation of the noise in each dimension, where that of the subspace is 1",
);
const DATA_SEED: Typed<i64> =
    Typed::int("data_seed", 1, 0, i64::MAX, "generated or held out: where the random numbers begin");

impl Workload for VectorSearch {
    type Client = Client;

    const OFFERS: &'static [About] = &[About {
        name: "vector_search",
        description: "The k nearest vectors by an approximate index; the recall of the measured answers is part of the result",
        options: &[
            DATASET.spec(),
            K.spec(),
            EF.spec(),
            M.spec(),
            EF_CONSTRUCTION.spec(),
            DISTANCE.spec(),
            WRITE_SHARE.spec(),
            SCORE_SHARE.spec(),
            VECTORS.spec(),
            DIMENSIONS.spec(),
            QUERIES.spec(),
            CLUSTERS.spec(),
            INTRINSIC_DIMENSION.spec(),
            NOISE.spec(),
            DATA_SEED.spec(),
        ],
        transactions: &KINDS,
        read_only: false,
        keeps_ledger: false,
    }];

    fn new(_about: &'static About, options: &Options) -> Result<Self> {
        let distance = match options.text(DISTANCE) {
            "cosine" => Distance::Cosine,
            _ => Distance::Euclidean,
        };
        let (k, folder) = (options.int(K) as usize, options.text(DATASET));
        let (m, ef, ef_construction) = (options.int(M), options.int(EF), options.int(EF_CONSTRUCTION));
        let set = if folder.is_empty() { None } else { Some(VectorSet::open(folder, distance, k)?) };
        Ok(VectorSearch {
            passes: Passes::new(set.as_ref().map_or(0, |set| set.queries)),
            set,
            graph: Graph { m, ef, ef_construction, distance },
            k,
            write_share: options.float(WRITE_SHARE),
            score_share: options.float(SCORE_SHARE),
        })
    }

    fn transactions(&self) -> Vec<String> {
        let kinds = if self.write_share > 0.0 { &KINDS[..] } else { &KINDS[..1] };
        kinds.iter().map(|kind| (*kind).to_owned()).collect()
    }

    async fn create<S: Session>(&self, session: &mut S) -> Result<()> {
        let (set, engine) = (self.set()?, engine(session)?);
        self.graph.require(engine)?;
        self.cleanup(session).await?;
        for statement in self.graph.create(engine, set.dimensions) {
            session.text(&statement, &mut ()).await?;
        }
        Ok(())
    }

    fn load_parts(&self) -> u64 {
        self.set.as_ref().map_or(0, |set| set.vectors.div_ceil(ROWS_PER_PART)) as u64
    }

    async fn load<S: Session>(&self, part: u64, session: &mut S, _random: Random) -> Result<u64> {
        let (set, engine) = (self.set()?, engine(session)?);
        let first = part as usize * ROWS_PER_PART;
        let mut rows = first..(first + ROWS_PER_PART).min(set.vectors);
        let (mut vector, mut text, mut failure) = (Vec::new(), String::new(), None);
        let loaded = session
            .bulk_insert(TABLE, &["id", "embedding"], |row| {
                let Some(id) = rows.next() else { return false };
                failure = set.read(id, &mut vector).err();
                if failure.is_some() {
                    return false;
                }
                row.int(id as i64);
                match engine {
                    VectorSql::MariaDb => row.bytes(&vector),
                    VectorSql::PgVector => {
                        sql::put_text(&vector, &mut text);
                        row.text(&text)
                    }
                };
                true
            })
            .await;
        failure.map_or(loaded, Err)
    }

    fn finish_parts(&self) -> u64 {
        1
    }

    async fn finish<S: Session>(&self, _part: u64, session: &mut S) -> Result<()> {
        let (set, engine) = (self.set()?, engine(session)?);
        for statement in self.graph.index(engine, set.vectors * set.dimensions * 4) {
            session.text(&statement, &mut ()).await?;
        }
        Ok(())
    }

    async fn inspect<S: Session>(&self, session: &mut S) -> Result<Start> {
        let engine = engine(session)?;
        self.graph.require(engine)?;
        self.require_loaded(session, engine).await?;
        self.require_index(session, engine).await?;
        Ok([("inserted".to_owned(), self.inserted(session).await?)].into())
    }

    async fn client<S: Session>(&self, session: &mut S, place: Place) -> Result<Client> {
        let (set, engine) = (self.set()?, engine(session)?);
        if let Some(statement) = self.graph.session(engine) {
            session.text(&statement, &mut ()).await?;
        }
        let (mut writes, mut own) = (None, 0..0);
        if self.write_share > 0.0 {
            let insert =
                session.prepare(&format!("INSERT INTO {TABLE} (id, embedding) VALUES (?, ?)")).await?;
            let delete = session.prepare(&format!("DELETE FROM {TABLE} WHERE id = ?")).await?;
            writes = Some((insert, delete));
            own = own_rows(session, ids_of(place, set.vectors as i64)).await?;
        }
        Ok(Client {
            engine,
            search: session.prepare(&self.graph.search(engine, "?", self.k)).await?,
            writes,
            vector: Vec::with_capacity(set.dimensions * 4 + 4),
            inserted: Vec::with_capacity(set.dimensions * 4),
            answer: Vec::with_capacity(self.k),
            recall: None,
            own,
        })
    }

    fn choose(&self, client: &mut Client, random: &mut Random) -> usize {
        if client.writes.is_none() || random.float() >= self.write_share {
            SEARCH
        } else if client.own.is_empty() || random.below(2) == 0 {
            INSERT
        } else {
            DELETE
        }
    }

    async fn perform<S: Session>(
        &self,
        kind: usize,
        client: &mut Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<Outcome> {
        let set = self.set()?;
        client.recall = None;
        match (kind, client.writes) {
            (INSERT, Some((insert, _))) => {
                between(set, random, &mut client.inserted, &mut client.vector)?;
                sql::encode(client.engine, &client.inserted, &mut client.vector);
                let row = [Value::Int(client.own.end), Value::Bytes(&client.vector)];
                session.execute(insert, &row, &mut ()).await?;
                client.own.end += 1;
            }
            (DELETE, Some((_, delete))) => {
                session.execute(delete, &[Value::Int(client.own.start)], &mut ()).await?;
                client.own.start += 1;
            }
            _ => self.search(set, client, session, random).await?,
        }
        Ok(Outcome::Committed)
    }

    #[inline]
    fn recall(&self, client: &Client) -> Option<f64> {
        client.recall
    }

    async fn check<S: Session>(&self, session: &mut S, against: CheckAgainst<'_>) -> Result<Vec<Invariant>> {
        let (set, engine) = (self.set()?, engine(session)?);
        let loaded =
            whole_number(session, &format!("SELECT COUNT(*) FROM {TABLE} WHERE id < {}", set.vectors))
                .await?;
        let plan = self.plan(session, engine).await?;
        let mut invariants = vec![
            Invariant::new(
                "vectors_complete",
                loaded == set.vectors as i64,
                format!("{loaded} of the {} vectors loaded are there", set.vectors),
            ),
            self.unchanged(session).await?,
            Invariant::new("index_used", plan.contains(INDEX), format!("the plan of a search: {plan}")),
        ];
        if let Some(told) = against.acknowledged {
            invariants.push(inserted_complete(self.inserted(session).await?, told));
        }
        Ok(invariants)
    }

    async fn cleanup<S: Session>(&self, session: &mut S) -> Result<()> {
        session.drop_table(TABLE).await
    }
}

impl VectorSearch {
    fn set(&self) -> Result<&VectorSet> {
        self.set.as_ref().ok_or_else(|| {
            Error::user("vector_search was given no set of vectors").hint(
                "dataset names a folder that `dyno cache data make` or `dyno cache data import` has made",
            )
        })
    }

    /// Reads all vectors of the set as loaded and compares them with it: one that was overwritten is no lost row.
    async fn unchanged<S: Session>(&self, session: &mut S) -> Result<Invariant> {
        let set = self.set()?;
        let sql = format!("SELECT id, embedding FROM {TABLE} WHERE id >= ? AND id < ?");
        let (select, mut changed) = (session.prepare(&sql).await?, 0u64);
        let (mut vector, mut failure) = (Vec::new(), None);
        for first in (0..set.vectors).step_by(ROWS_PER_PART) {
            let end = (first + ROWS_PER_PART).min(set.vectors);
            let mut rows = Each(|row: &dyn Row| {
                let id = row.value(0).as_i64().unwrap_or_default() as usize;
                match set.read(id, &mut vector) {
                    Ok(()) => changed += u64::from(!sql::holds(row.value(1), &vector)),
                    Err(error) => failure = Some(error),
                }
            });
            session.execute(select, &[Value::Int(first as i64), Value::Int(end as i64)], &mut rows).await?;
            failure.take().map_or(Ok(()), Err)?;
        }
        let detail = format!("{changed} of the {} vectors loaded are not as they were loaded", set.vectors);
        Ok(Invariant::new("vectors_unchanged", changed == 0, detail))
    }

    /// Rows beyond the set as loaded.
    async fn inserted<S: Session>(&self, session: &mut S) -> Result<i64> {
        let loaded = self.set()?.vectors;
        whole_number(session, &format!("SELECT COUNT(*) FROM {TABLE} WHERE id >= {loaded}")).await
    }

    async fn search<S: Session>(
        &self,
        set: &VectorSet,
        client: &mut Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<()> {
        let query = self.passes.next(random);
        sql::encode(client.engine, set.query(query), &mut client.vector);
        client.answer.clear();
        let answer = &mut client.answer;
        // More rows than asked for would be the server's mistake; they are not worth an allocation.
        let mut rows = Each(|row: &dyn Row| {
            if answer.len() < self.k {
                answer.push(row.value(0).as_i64().unwrap_or(-1));
            }
        });
        session.execute(client.search, &[Value::Bytes(&client.vector)], &mut rows).await?;
        if self.score_share >= 1.0 || random.float() < self.score_share {
            client.recall = set.recall(query, &client.answer, self.k)?;
        }
        Ok(())
    }

    /// The table must hold this set and no other: an answer is scored against it. Its ends tell.
    async fn require_loaded<S: Session>(&self, session: &mut S, engine: VectorSql) -> Result<()> {
        let set = self.set()?;
        for row in [0, set.vectors - 1] {
            let distance = self.graph.distance_to(engine, &sql::literal(engine, &set.vector(row)?));
            let mut found = First::<f64>::default();
            let asked =
                session.text(&format!("SELECT {distance} FROM {TABLE} WHERE id = {row}"), &mut found).await;
            // Rounding: the distance of a vector from itself is 0 but for its last bits.
            if asked.is_err() || !found.0.is_some_and(|distance| distance.abs() < 1e-3) {
                let reason = asked.err().map_or_else(String::new, |error| format!(" ({})", error.message()));
                return Err(Error::user(format!(
                    "the table {TABLE} does not hold this set of vectors{reason}"
                ))
                .hint("load it: dyno load prepare vector_search, with the same options"));
            }
        }
        Ok(())
    }

    async fn require_index<S: Session>(&self, session: &mut S, engine: VectorSql) -> Result<()> {
        let plan = self.plan(session, engine).await?;
        if plan.contains(INDEX) {
            return Ok(());
        }
        let mut building = First::<i64>::default();
        session.text(&sql::still_building(engine), &mut building).await?;
        Err(if building.0.is_some() {
            Error::user(format!("the vector index {INDEX} is still being built")).hint("wait for its end")
        } else {
            Error::user(format!("a search does not use the vector index {INDEX}; its plan: {plan}")).hint(
                "was it made for another distance, or is the set so small that reading all of it is cheaper?",
            )
        })
    }

    /// How the engine would go about a search, in its own words.
    async fn plan<S: Session>(&self, session: &mut S, engine: VectorSql) -> Result<String> {
        let search = self.graph.search(engine, &sql::literal(engine, self.set()?.query(0)), self.k);
        let mut answer = Collect::default();
        session.text(&format!("EXPLAIN {search}"), &mut answer).await?;
        let cells = answer.rows.iter().flatten().map(ToString::to_string);
        // A vector written out would bury the rest.
        let cells = cells.map(|cell| cell.split('[').next().unwrap_or_default().trim().to_owned());
        Ok(cells.collect::<Vec<_>>().join(" "))
    }
}

fn engine<S: Session>(session: &S) -> Result<VectorSql> {
    session.vector_sql().ok_or_else(|| {
        let name = session.dialect().name;
        Error::user(format!("vector_search cannot run over {name}: this server does not search vectors"))
            .hint("MariaDB 11.8 does, and PostgreSQL with pgvector")
    })
}

/// The ids that a client may insert: no two clients share one.
fn ids_of(place: Place, loaded: i64) -> std::ops::Range<i64> {
    let each = (i64::from(i32::MAX) - loaded) / i64::from(place.clients);
    let first = loaded + i64::from(place.client) * each;
    first..first + each
}

/// Of a client's ids, those that are in the table: left by a connection that was lost, or by an earlier run.
async fn own_rows<S: Session>(session: &mut S, ids: std::ops::Range<i64>) -> Result<std::ops::Range<i64>> {
    let end = |which: &str| {
        format!("SELECT {which}(id) FROM {TABLE} WHERE id >= {} AND id < {}", ids.start, ids.end)
    };
    let mut oldest = First::<i64>::default();
    session.text(&end("MIN"), &mut oldest).await?;
    let mut newest = First::<i64>::default();
    session.text(&end("MAX"), &mut newest).await?;
    Ok(match (oldest.0, newest.0) {
        (Some(oldest), Some(newest)) => oldest..newest + 1,
        _ => ids.start..ids.start,
    })
}

/// A new vector: one of the set, moved a little towards another.
fn between(set: &VectorSet, random: &mut Random, new: &mut Vec<u8>, towards: &mut Vec<u8>) -> Result<()> {
    let mut draw = || random.below(set.vectors as u64) as usize;
    let (from, to) = (draw(), draw());
    set.read(from, new)?;
    set.read(to, towards)?;
    for (place, y) in new.chunks_exact_mut(4).zip(floats(towards)) {
        let x = f32::from_le_bytes([place[0], place[1], place[2], place[3]]);
        place.copy_from_slice(&(x + (y - x) * INSERTED_STEP).to_le_bytes());
    }
    Ok(())
}

/// Every acknowledged insert left a row, every acknowledged delete took one; what is unknown may have done either.
fn inserted_complete(rows: i64, told: &Acknowledged) -> Invariant {
    let count = |kind: usize| told.by_transaction.get(KINDS[kind]).copied().unwrap_or(0) as i64;
    let (inserts, deletes, unknown) = (count(INSERT), count(DELETE), told.unknown as i64);
    let before = told.at_start("inserted", 0);
    Invariant::new(
        "inserted_complete",
        (rows - before - (inserts - deletes)).abs() <= unknown,
        format!("{rows} inserted vectors there, {before} before, {inserts} inserts and {deletes} deletes acknowledged, {unknown} unknown"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_is_asked_once_before_any_is_asked_again() {
        let (passes, mut random) = (Passes::new(50), Random::new(3, 0));
        let mut asked = |count| (0..count).map(|_| passes.next(&mut random)).collect::<Vec<_>>();
        let (first, second) = (asked(50), asked(50));
        assert_eq!(first, second);
        let mut sorted = first.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..50));
        assert!(!first.is_sorted() && first.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() < 10);
    }

    #[test]
    fn clients_never_share_an_id() {
        let ranges: Vec<_> =
            (0..7).map(|client| ids_of(Place { client, clients: 7, cut: None }, 1000)).collect();
        assert_eq!(ranges[0].start, 1000);
        assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert!(ranges[6].end <= i64::from(i32::MAX));
    }

    #[test]
    fn inserted_rows_must_be_those_acknowledged() {
        let told = |unknown| Acknowledged {
            acknowledged: 9,
            unknown,
            by_transaction: [("insert".to_owned(), 5), ("delete".to_owned(), 3)].into(),
            start: Start::new(),
        };
        assert!(inserted_complete(2, &told(0)).holds);
        assert!(!inserted_complete(3, &told(0)).holds);
        assert!(inserted_complete(3, &told(1)).holds && inserted_complete(1, &told(1)).holds);
        let later = Acknowledged { start: [("inserted".to_owned(), 4)].into(), ..told(0) };
        assert!(inserted_complete(6, &later).holds && !inserted_complete(2, &later).holds);
    }

    #[test]
    fn an_inserted_vector_lies_between_two_of_the_set() {
        let folder = std::env::temp_dir().join(format!("dyno-between-{}", std::process::id()));
        data::tests::write_line(&folder, 6);
        let set = VectorSet::open(folder.to_str().unwrap(), Distance::Euclidean, 1).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        let (mut random, mut out, mut towards) = (Random::new(1, 1), Vec::new(), Vec::new());
        for _ in 0..100 {
            between(&set, &mut random, &mut out, &mut towards).unwrap();
            let place = floats(&out).next().unwrap();
            assert!((0.0..=4.0).contains(&place) && out.len() == 8);
        }
    }
}
