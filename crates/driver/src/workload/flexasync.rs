//! Key operations in phases, after MySQL Cluster's flexAsynch: insert, read, update, read, delete, with a barrier
//! between them. Each client keeps `parallel` operations in flight and waits for all of them before the next round.
//!
//! In flight means: on the client's one connection, sent together before the first answer is awaited, each a
//! transaction of its own. That is what flexAsynch's threads do. A server of SQL works such a queue off one by one, so
//! its concurrency is the number of clients; what `parallel` saves is the round trips. An embedded engine has no round
//! trips: there it changes nothing.

use super::{
    other_shape, About, CheckAgainst, Invariant, Options, Outcome, Phase, Place, Start, Typed, Workload,
};
use crate::clock;
use crate::error::{Error, Fate, Result};
use crate::io;
use crate::random::Random;
use crate::session::{whole_number, Collect, Each, Row, Session, Statement, Value};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const TABLE: &str = "flexasync";
const PHASES: [&str; 5] = ["insert", "read", "update", "read_updated", "delete"];
const BARRIER_POLL_NS: u64 = 200_000;
/// Values are the key's low bits, plus one after the update: with room for that in a signed 32-bit word.
const VALUE_BITS: i64 = 0x3FFF_FFFF;

pub struct FlexAsync {
    attributes: usize,
    parallel: u64,
    rounds: u64,
    loops: u64,
    progress: Progress,
}

/// What the clients share: how far all are, and what each phase has taken.
#[derive(Default)]
struct Progress {
    clients_ready: AtomicU32,
    /// Ends of phases, over all clients and loops.
    arrivals: AtomicU64,
    phases: [PhaseCount; PHASES.len()],
}

#[derive(Default)]
struct PhaseCount {
    operations: AtomicU64,
    /// From the barrier before it to the last client's arrival at the next, over all loops.
    duration_ns: AtomicU64,
    /// The first start since the barrier; 0 before it.
    started_ns: AtomicU64,
}

pub struct Client {
    clients: u64,
    /// In order of `PHASES`.
    statements: [Statement; PHASES.len()],
    first_key: i64,
    /// Phases begun so far, over all loops.
    phase: u64,
    round: u64,
    /// Whether this client has come to the end of its phase.
    arrived: bool,
    parameters: Vec<Value<'static>>,
}

const PARALLEL: Typed<i64> = Typed::int("parallel", 32, 1, 1024, "operations in flight per client");
const ROUNDS: Typed<i64> =
    Typed::int("rounds", 100, 1, 1_000_000, "rounds of each phase: a client has rounds x parallel keys");
const LOOPS: Typed<i64> = Typed::int("loops", 1, 1, 1_000_000, "how often the five phases are gone through");
const ATTRIBUTES: Typed<i64> =
    Typed::int("attributes", 25, 1, 500, "attributes beside the key, each a 32-bit word");

impl Workload for FlexAsync {
    type Client = Client;

    const OFFERS: &'static [About] = &[About {
        name: "flexasync",
        description:
            "Key operations in phases (insert, read, update, read, delete), many in flight per client; no \
                      warm-up, and over when the phases are",
        options: &[PARALLEL.spec(), ROUNDS.spec(), LOOPS.spec(), ATTRIBUTES.spec()],
        transactions: &PHASES,
        read_only: false,
        keeps_ledger: false,
    }];

    const BRIEF: bool = true;

    const WARMS_UP: bool = false;

    fn new(_about: &'static About, options: &Options) -> Result<Self> {
        Ok(FlexAsync {
            attributes: options.int(ATTRIBUTES) as usize,
            parallel: options.int(PARALLEL) as u64,
            rounds: options.int(ROUNDS) as u64,
            loops: options.int(LOOPS) as u64,
            progress: Progress::default(),
        })
    }

    fn transactions(&self) -> Vec<String> {
        PHASES.map(str::to_owned).to_vec()
    }

    async fn create<S: Session>(&self, session: &mut S) -> Result<()> {
        self.cleanup(session).await?;
        let attributes = self.listed(", ", |number| format!("attr{number} INTEGER NOT NULL"));
        let suffix = session.dialect().table_suffix;
        let sql = format!("CREATE TABLE {TABLE} (id BIGINT NOT NULL PRIMARY KEY, {attributes}){suffix}");
        session.text(&sql, &mut ()).await.map(drop)
    }

    /// The rows are the first phase's work.
    fn load_parts(&self) -> u64 {
        0
    }

    async fn load<S: Session>(&self, _part: u64, _session: &mut S, _random: Random) -> Result<u64> {
        Ok(0)
    }

    async fn inspect<S: Session>(&self, session: &mut S) -> Result<Start> {
        let mut answer = Collect::default();
        session.text(&format!("SELECT * FROM {TABLE} WHERE id IS NULL"), &mut answer).await?;
        let attributes = answer.names.len().saturating_sub(1);
        if attributes != self.attributes {
            return Err(other_shape("attributes", attributes as i64, self.attributes as i64));
        }
        Ok([("rows".to_owned(), self.rows(session).await?)].into())
    }

    async fn client<S: Session>(&self, session: &mut S, place: Place) -> Result<Client> {
        if self.progress.clients_ready.fetch_add(1, Ordering::Relaxed) >= place.clients {
            return Err(Error::user(
                "flexasync cannot go on after a lost connection: its phases have no middle",
            )
            .hint("run it without reconnect"));
        }
        let names = self.listed(", ", |number| format!("attr{number}"));
        let marks = self.listed(", ", |_| "?".to_owned());
        let changes = self.listed(", ", |number| format!("attr{number} = ?"));
        let read = session.prepare(&format!("SELECT {names} FROM {TABLE} WHERE id = ?")).await?;
        Ok(Client {
            clients: place.clients.into(),
            statements: [
                session.prepare(&format!("INSERT INTO {TABLE} ({names}, id) VALUES ({marks}, ?)")).await?,
                read,
                session.prepare(&format!("UPDATE {TABLE} SET {changes} WHERE id = ?")).await?,
                read,
                session.prepare(&format!("DELETE FROM {TABLE} WHERE id = ?")).await?,
            ],
            first_key: i64::from(place.client) * (self.rounds * self.parallel) as i64,
            phase: 0,
            round: 0,
            arrived: false,
            parameters: Vec::with_capacity(self.parallel as usize * (self.attributes + 1)),
        })
    }

    fn choose(&self, client: &mut Client, _random: &mut Random) -> usize {
        kind(client.phase)
    }

    /// One round of the phase: `parallel` operations. At the end of a phase, a wait for the other clients.
    async fn perform<S: Session>(
        &self,
        kind: usize,
        client: &mut Client,
        session: &mut S,
        _random: &mut Random,
    ) -> Result<Outcome> {
        if client.round == self.rounds {
            return Ok(self.pass_barrier(client).await);
        }
        self.progress.begin(kind);
        match self.round(kind, client, session).await {
            // A round that was refused will be refused again, and one that another client was in the way of is there in
            // part: the next one is another matter.
            Err(error)
                if error.fate() == Fate::Failed || (error.fate() == Fate::Retry && self.parallel > 1) =>
            {
                client.round += 1;
                Err(error)
            }
            Err(error) => Err(error),
            Ok(()) => {
                client.round += 1;
                self.progress.phases[kind].operations.fetch_add(self.parallel, Ordering::Relaxed);
                Ok(Outcome::Committed)
            }
        }
    }

    /// Each operation commits by itself.
    fn repeats(&self, _client: &mut Client) -> bool {
        self.parallel == 1
    }

    fn failed(&self, _client: &mut Client) -> bool {
        self.parallel > 1
    }

    fn phases(&self) -> Vec<Phase> {
        self.progress.phases()
    }

    async fn check<S: Session>(&self, session: &mut S, against: CheckAgainst<'_>) -> Result<Vec<Invariant>> {
        let rows = self.rows(session).await?;
        let last = self.attributes - 1;
        let torn =
            whole_number(session, &format!("SELECT COUNT(*) FROM {TABLE} WHERE attr0 <> attr{last}")).await?;
        let mut invariants = vec![Invariant::new(
            "attributes_agree",
            torn == 0,
            format!("{torn} of {rows} rows differ between their first and last attribute"),
        )];
        if let Some(told) = against.acknowledged {
            let rounds = |name: &str| told.by_transaction.get(name).copied().unwrap_or_default();
            let (inserted, deleted) = (rounds("insert") * self.parallel, rounds("delete") * self.parallel);
            let grown = rows - told.at_start("rows", 0);
            invariants.push(rows_balanced(grown, inserted, deleted, told.unknown * self.parallel));
        }
        Ok(invariants)
    }

    async fn cleanup<S: Session>(&self, session: &mut S) -> Result<()> {
        session.drop_table(TABLE).await
    }
}

impl FlexAsync {
    async fn rows<S: Session>(&self, session: &mut S) -> Result<i64> {
        whole_number(session, &format!("SELECT COUNT(*) FROM {TABLE}")).await
    }

    fn listed(&self, between: &str, of: impl Fn(usize) -> String) -> String {
        (0..self.attributes).map(of).collect::<Vec<_>>().join(between)
    }

    /// Sends a round's operations, all in flight together, and waits for all of them.
    async fn round<S: Session>(&self, kind: usize, client: &mut Client, session: &mut S) -> Result<()> {
        let first = client.first_key + (client.round * self.parallel) as i64;
        let keys = first..first + self.parallel as i64;
        let name = PHASES[kind];
        client.parameters.clear();
        for key in keys.clone() {
            if matches!(name, "insert" | "update") {
                let value = Value::Int(value_of(key, name == "update"));
                client.parameters.extend(std::iter::repeat_n(value, self.attributes));
            }
            client.parameters.push(Value::Int(key));
        }
        let width = client.parameters.len() / self.parallel as usize;
        let (statement, parameters) = (client.statements[kind], client.parameters.as_slice());
        let hits = if name.starts_with("read") {
            let mut expected = keys.map(|key| value_of(key, name == "read_updated"));
            let (last, mut right) = (self.attributes - 1, 0);
            let mut rows = Each(|row: &dyn Row| {
                let value = expected.next();
                right += u64::from(row.value(0).as_i64() == value && row.value(last).as_i64() == value);
            });
            session.execute_batch(statement, parameters, width, &mut rows).await?;
            right
        } else {
            session.execute_batch(statement, parameters, width, &mut ()).await?.affected
        };
        if hits == self.parallel {
            return Ok(());
        }
        let missed =
            format!("{name}: only {hits} of {} rows are there and as they were written", self.parallel);
        Err(Error::server("row missing", Fate::Failed, missed))
    }

    async fn pass_barrier(&self, client: &mut Client) -> Outcome {
        let total = self.loops * PHASES.len() as u64;
        if !std::mem::replace(&mut client.arrived, true) {
            self.progress.arrive(kind(client.phase), client.clients);
        }
        if client.phase + 1 == total {
            return Outcome::Finished;
        }
        if self.progress.arrivals.load(Ordering::Acquire) < (client.phase + 1) * client.clients {
            io::sleep_ns(BARRIER_POLL_NS).await;
            return Outcome::Waited;
        }
        client.phase += 1;
        client.round = 0;
        client.arrived = false;
        Outcome::Waited
    }
}

impl Progress {
    /// Notes the start of a phase's first round.
    fn begin(&self, kind: usize) {
        let started_ns = &self.phases[kind].started_ns;
        if started_ns.load(Ordering::Relaxed) == 0 {
            // Whoever comes second finds the first one's time.
            let _ = started_ns.compare_exchange(0, clock::now_ns(), Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Notes that a client has come to the end of its phase; the last one to do so ends the phase for all.
    fn arrive(&self, kind: usize, clients: u64) {
        let phase = &self.phases[kind];
        // The time is taken before the others are let go on, so that a phase's time ends with its own last round.
        let now_ns = clock::now_ns();
        let arrivals = self.arrivals.fetch_add(1, Ordering::AcqRel) + 1;
        if arrivals % clients == 0 {
            let started_ns = phase.started_ns.swap(0, Ordering::Relaxed);
            phase.duration_ns.fetch_add(now_ns.saturating_sub(started_ns), Ordering::Relaxed);
        }
    }

    fn phases(&self) -> Vec<Phase> {
        let phases = PHASES.iter().zip(&self.phases).map(|(name, phase)| {
            let operations = phase.operations.load(Ordering::Relaxed);
            let duration_s = phase.duration_ns.load(Ordering::Relaxed) as f64 / 1e9;
            let operations_per_s = (duration_s > 0.0).then(|| operations as f64 / duration_s);
            Phase { name: (*name).to_owned(), operations, duration_s, operations_per_s }
        });
        phases.collect()
    }
}

/// The place in `PHASES` of a phase counted over all loops.
fn kind(phase: u64) -> usize {
    (phase % PHASES.len() as u64) as usize
}

fn value_of(key: i64, updated: bool) -> i64 {
    (key & VALUE_BITS) + i64::from(updated)
}

/// What was inserted and not deleted is there; a round whose acknowledgement was lost may be either.
fn rows_balanced(rows: i64, inserted: u64, deleted: u64, unknown: u64) -> Invariant {
    let expected = inserted as i64 - deleted as i64;
    Invariant::new(
        "rows_balanced",
        (rows - expected).unsigned_abs() <= unknown,
        format!("{rows} rows more than before, {inserted} inserted, {deleted} deleted, {unknown} operations unknown"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fit_a_signed_word_even_after_the_update() {
        for key in [0, 1, VALUE_BITS, VALUE_BITS + 1, i64::MAX] {
            assert!((0..=i64::from(i32::MAX)).contains(&value_of(key, true)));
            assert_eq!(value_of(key, true), value_of(key, false) + 1);
        }
    }

    #[test]
    fn a_phase_lasts_from_its_first_start_to_its_last_arrival() {
        let progress = Progress::default();
        for (begun_ns, first_ns, last_ns) in [(1_000, 5_000, 9_000), (20_000, 21_000, 22_000)] {
            clock::simulate(Some(begun_ns));
            progress.begin(0);
            clock::simulate(Some(begun_ns + 500));
            progress.begin(0);
            progress.phases[0].operations.fetch_add(5, Ordering::Relaxed);
            clock::simulate(Some(first_ns));
            progress.arrive(0, 2);
            clock::simulate(Some(last_ns));
            progress.arrive(0, 2);
        }
        clock::simulate(None);
        let insert = &progress.phases()[0];
        assert_eq!((insert.name.as_str(), insert.operations), ("insert", 10));
        assert_eq!(insert.duration_s, 10_000.0 / 1e9);
        assert_eq!(progress.phases()[1].operations_per_s, None);
    }

    #[test]
    fn rows_may_differ_by_what_is_unknown() {
        assert!(rows_balanced(32, 64, 32, 0).holds);
        assert!(rows_balanced(40, 64, 32, 32).holds);
        assert!(!rows_balanced(31, 64, 32, 0).holds);
    }
}
