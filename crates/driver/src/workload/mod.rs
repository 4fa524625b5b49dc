//! What a workload is, and the table of those there are. One file per workload holds all of it: options, schema,
//! bulk load, transactions, invariants.

mod commits;
mod files;
mod ledger;
mod options;

pub use files::{located, FileRead};
pub(crate) use ledger::Page;
pub use lua::resolve_lua;
pub use options::{About, Circumstances, OptionSpec, OptionType, Options, Typed};
pub(crate) use replay::{resolve_replay, Playback, Recorded, StatementPlace, Times, Visit, NAME as REPLAY};
pub use script::resolve_script;

use crate::error::{Error, Fate, Mistake, Result};
use crate::random::Random;
use crate::session::{Answer, Session, Statement, Traffic};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// How a transaction ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    /// Rolled back on purpose, as the workload prescribes. Counts as an operation and as a roll-back.
    RolledBack,
    /// The workload is through: nothing was done, and this client stops.
    Finished,
    /// Nothing was done but to wait, for other clients for instance: does not count.
    Waited,
}

/// Waits that belong to a transaction: neither is part of its latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// Keying time, before the transaction starts.
    pub before_ns: u64,
    /// Think time, after it has ended.
    pub after_ns: u64,
}

/// A transaction that is one statement with one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Single {
    pub statement: Statement,
    pub key: i64,
}

/// Which client of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Counted from 0.
    pub client: u32,
    pub clients: u32,
    /// The number of the cut that this run ends in, where it keeps a ledger.
    pub cut: Option<u32>,
}

/// Counts and sums that a run found before it began, by name: earlier runs have left them.
pub type Start = BTreeMap<String, i64>;

/// What clients were told in one run or in several that followed one another; an invariant compares it with what the server holds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Acknowledged {
    /// Transactions whose success the server acknowledged, warm-up included.
    pub acknowledged: u64,
    /// Transactions whose fate is unknown because the connection was lost, and failed ones that are committed in part.
    pub unknown: u64,
    /// `acknowledged` by the transaction's name.
    pub by_transaction: BTreeMap<String, u64>,
    /// What the first of these runs found; empty where it did not look.
    #[serde(default)]
    pub start: Start,
}

impl Acknowledged {
    pub fn parse(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|error| {
            Error::user(format!("what was acknowledged: {error}"))
                .hint("give acknowledged, unknown and by_transaction, summed over the runs, and the first one's start")
        })
    }

    /// With what other clients were told in the same run.
    pub fn plus(mut self, other: &Self) -> Self {
        self.acknowledged += other.acknowledged;
        self.unknown += other.unknown;
        for (name, count) in &other.by_transaction {
            *self.by_transaction.entry(name.clone()).or_default() += count;
        }
        self
    }

    /// What was there under this name when the first run began; `loaded` where no run has looked.
    pub fn at_start(&self, name: &str, loaded: i64) -> i64 {
        self.start.get(name).copied().unwrap_or(loaded)
    }
}

/// One of the phases that a workload has by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    pub name: String,
    pub operations: u64,
    pub duration_s: f64,
    /// `None` where the phase did not end.
    pub operations_per_s: Option<f64>,
}

/// One statement about the data that must be true.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Invariant {
    pub name: String,
    pub holds: bool,
    /// The figures that were compared.
    pub detail: String,
    /// For `rows_unchanged`: the checksum, to be given as the next check's baseline.
    pub value: Option<String>,
}

impl Invariant {
    pub fn new(name: &str, holds: bool, detail: impl Into<String>) -> Self {
        Invariant { name: name.to_owned(), holds, detail: detail.into(), value: None }
    }
}

/// What can be known of a workload without a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reviewed {
    pub mistakes: Vec<Mistake>,
    /// All SQL that the user wrote, each statement behind its place; empty where there is none that a server could
    /// judge before a run.
    pub own_sql: String,
}

/// What a server found when it was asked to prepare a workload's own statements.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Examined {
    /// How many statements it was asked for, and how many could not be: what they are is known in a run only.
    pub asked: usize,
    pub left_out: usize,
    pub refused: Vec<Mistake>,
}

/// One of the user's statements as it is sent, with its values in it.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementText {
    pub name: String,
    pub sql: String,
    pub writes: bool,
    /// It says itself in which order its rows come.
    pub is_ordered: bool,
    /// Whose rows it changes, as it names them, where that is known.
    pub table: Option<String>,
}

/// What a check may compare the data with.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckAgainst<'a> {
    /// `None` where no run is known: leave out what needs it.
    pub acknowledged: Option<&'a Acknowledged>,
    /// An earlier `Invariant::value`.
    pub baseline: Option<&'a str>,
}

/// What most workloads do with a session before its first transaction.
pub(crate) const PREPARED: &str = "its statements to be prepared";

/// A workload with its options set. Shared by all threads; what changes during a run lives in `Client`.
pub trait Workload: Sized + Send + Sync + 'static {
    /// What one client keeps between transactions: prepared statements, buffers, its own counters.
    type Client: 'static;

    /// The names under which this workload is offered (a family may have several).
    const OFFERS: &'static [About];

    /// False where every transaction counts from the first one on: a job's warm-up is then left out.
    const WARMS_UP: bool = true;

    /// True where a transaction that another one was in the way of is tried again as it was; false where the next try
    /// draws anew.
    const REPLAYS: bool = true;

    /// True where a recording is played: `playback` has it, and nothing is drawn.
    const PLAYS: bool = false;

    /// True where its statements may be requests of an application. The others write SQL.
    const SENDS_REQUESTS: bool = false;

    /// True where `single` may draw transactions. They are all of one type, have no pauses and overcome no errors, and
    /// their next try draws anew (`REPLAYS`).
    const DRAWS_SINGLES: bool = false;

    /// True where its statements can be so short that a call through a pointer would show in them: it is then compiled
    /// for each session of which the same is true (`Concrete::BRIEF`), and once more for the others.
    const BRIEF: bool = false;

    /// Checks the options; their names and types have been checked already.
    fn new(about: &'static About, options: &Options) -> Result<Self>;

    /// What is played, where the workload `PLAYS`.
    fn playback(&self) -> Option<&Playback> {
        None
    }

    /// The names of the transactions, in the order of `choose`'s numbers.
    fn transactions(&self) -> Vec<String>;

    /// Makes the tables, dropping those of the same name.
    async fn create<S: Session>(&self, session: &mut S) -> Result<()>;

    /// Into how many independent parts the rows are divided; parts are loaded in parallel.
    fn load_parts(&self) -> u64;

    /// True where the parts wait for each other, so that all of them must be under way at once.
    fn loads_together(&self) -> bool {
        false
    }

    /// Loads one part and commits it; returns its rows. `random` is a stream of its own per part, so that the data
    /// depends on the seed alone.
    async fn load<S: Session>(&self, part: u64, session: &mut S, random: Random) -> Result<u64>;

    /// Into how many independent parts the work after the load is divided (indexes, keys).
    fn finish_parts(&self) -> u64 {
        0
    }

    async fn finish<S: Session>(&self, _part: u64, _session: &mut S) -> Result<()> {
        Ok(())
    }

    /// Asks the data for their shape, once before a run: refuses those that were made with other options, and notes
    /// what `check` takes off again. It reads as little as it can, because what it reads is in the server's caches.
    async fn inspect<S: Session>(&self, _session: &mut S) -> Result<Start> {
        Ok(Start::new())
    }

    /// Readies one client on its session.
    async fn client<S: Session>(&self, session: &mut S, place: Place) -> Result<Self::Client>;

    /// What a client waits for while it is readied, as the end of a sentence.
    fn awaited(&self) -> String {
        PREPARED.to_owned()
    }

    /// Draws which transaction comes next.
    fn choose(&self, _client: &mut Self::Client, _random: &mut Random) -> usize {
        0
    }

    /// The waits around transaction `kind`.
    fn pause(&self, _kind: usize, _random: &mut Random) -> Pause {
        Pause::default()
    }

    /// One transaction, from its first statement to the acknowledgement of its commit. Parameters are drawn from
    /// `random`: on an error that is to be retried the caller rolls back and calls again, where the workload `REPLAYS`
    /// with `random` as it was. Allocates nothing.
    async fn perform<S: Session>(
        &self,
        kind: usize,
        client: &mut Self::Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<Outcome>;

    /// Draws the next transaction as `perform` would, where it is one statement and this says which; `None` otherwise,
    /// and nothing is drawn.
    #[inline]
    fn single(&self, _client: &Self::Client, _random: &mut Random) -> Option<Single> {
        None
    }

    /// What the answer to a transaction means that `single` has drawn.
    #[inline]
    fn single_answered(&self, _answer: Answer) -> Result<Outcome> {
        Ok(Outcome::Committed)
    }

    /// Readies a client for another try of a transaction that another one was in the way of, once that is rolled back.
    /// False where another try would repeat what is committed already: the transaction has failed then.
    fn repeats(&self, _client: &mut Self::Client) -> bool {
        true
    }

    /// Ends a transaction that has failed and is not tried again. True where a part of it is committed all the same: it
    /// counts among those whose fate is unknown.
    fn failed(&self, _client: &mut Self::Client) -> bool {
        false
    }

    /// Readies a client on another session, because it has lost its own. Where that fails, it may be tried again.
    async fn renew<S: Session>(&self, session: &mut S, place: Place, lost: &mut Self::Client) -> Result<()> {
        let fresh = self.client(session, place).await?;
        let lost_one = std::mem::replace(lost, fresh);
        self.take_over(lost, lost_one);
        Ok(())
    }

    /// Gives a client what the one before it leaves, whose connection was lost.
    fn take_over(&self, _client: &mut Self::Client, _lost: Self::Client) {}

    /// What goes over connections that the client has opened beside its session, where it opens any.
    fn beside(&self, _client: &Self::Client) -> Option<Rc<Cell<Traffic>>> {
        None
    }

    /// What a client does when it has no more transactions to do, outside of the measured time. A client whose
    /// connection was lost does not.
    async fn leave<S: Session>(&self, _client: &mut Self::Client, _session: &mut S) -> Result<()> {
        Ok(())
    }

    /// Takes the errors that the last transaction has met and got over by itself.
    #[inline]
    fn take_overcome(&self, _client: &mut Self::Client) -> Vec<Error> {
        Vec::new()
    }

    /// How much of the right answer the last transaction got, 0 to 1; `None` where that is no question or was not
    /// looked at.
    #[inline]
    fn recall(&self, _client: &Self::Client) -> Option<f64> {
        None
    }

    /// Ends a transaction in the ledger: the number of the row that it has written there, if it has. Asked once after
    /// each transaction, whatever became of it, where the job has a ledger.
    #[inline]
    fn entry(&self, _client: &mut Self::Client) -> Option<u64> {
        None
    }

    /// The phases of the run that is over, where the workload has some of its own.
    fn phases(&self) -> Vec<Phase> {
        Vec::new()
    }

    /// Who wants to be told of the run that is about to begin, if anybody does.
    fn witness(&self) -> Result<Option<Box<dyn Witness>>> {
        Ok(None)
    }

    /// Ends what keeps clients from noticing that the user has interrupted the driver. Called from another thread.
    fn interrupt(&self) {}

    /// How the workload itself kept the driver from its work in the run that is over; `None` where it did not.
    fn hindrance(&self) -> Option<String> {
        None
    }

    /// What can be known of the user's files without a server.
    fn review(&self) -> Reviewed {
        Reviewed::default()
    }

    /// Has a server that holds the workload's tables prepare the user's statements, and carries none of them out.
    async fn examine<S: Session>(&self, _session: &mut S) -> Result<Examined> {
        Ok(Examined::default())
    }

    /// The user's statements, each by itself, with values that are drawn from a seed; none where the workload has others.
    async fn statement_texts<S: Session>(&self, _session: &mut S, _seed: u64) -> Result<Vec<StatementText>> {
        Ok(Vec::new())
    }

    /// Compares the data with the workload's invariants.
    async fn check<S: Session>(&self, session: &mut S, against: CheckAgainst<'_>) -> Result<Vec<Invariant>>;

    /// Drops what `create` made.
    async fn cleanup<S: Session>(&self, session: &mut S) -> Result<()>;
}

/// What a workload has follow its run, on the thread that oversees it. An error ends the run.
pub trait Witness {
    /// A second is over: of the measured part, or of the warm-up where the number is negative.
    fn second(&mut self, second: i64, errors: u64, latencies_ns: &Histogram<u64>) -> Result<()>;

    /// The run is over.
    fn end(&mut self, ended: &Ended<'_>) -> Result<()>;
}

/// The measured part of a run that is over.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    pub duration_s: f64,
    /// Successful transactions.
    pub operations: u64,
    pub errors: u64,
    pub latencies_ns: &'a Histogram<u64>,
}

/// A table that is not there was never made, or made with other options. No other refusal is mended by making tables.
pub(crate) fn advised(error: Error, workload: &str) -> Error {
    if !(error.is_table_missing() && error.hint_text().is_empty()) {
        return error;
    }
    let workload = match workload {
        script::NAME | script::STATEMENTS | lua::NAME => "the script's tables",
        named => named,
    };
    error.hint(format!("prepare {workload} first, with the options that it is run with"))
}

/// Data that were prepared with another value of an option than the run has.
fn other_shape(option: &str, prepared: i64, run: i64) -> Error {
    Error::user(format!("the data were prepared with {option} {prepared}, the run has {option} {run}"))
        .hint(format!("run with {option} {prepared}, or prepare the data with {option} {run}"))
}

/// A statement that found no row where one must be: its speed is that of missing.
#[cold]
fn row_missing(statement: &str) -> Error {
    Error::server("row missing", Fate::Failed, format!("{statement} found no row"))
        .hint("are rows of the data gone? prepare them again")
}

/// Something to be done with a workload whose type is known at run time only.
pub trait WithWorkload {
    type Output;

    fn with<W: Workload>(self, workload: W) -> Result<Self::Output>;
}

/// The table of workloads: one line each.
macro_rules! workloads {
    ($($file:ident :: $workload:ident),* $(,)?) => {
        $(mod $file;)*

        /// Everything that can be run, in the order in which help lists it.
        pub fn offers() -> Vec<&'static About> {
            let mut all: Vec<&'static About> = Vec::new();
            $(all.extend(<$file::$workload as Workload>::OFFERS);)*
            all
        }

        /// Makes the workload `name` from `given` options and hands it to `task`.
        pub fn with_workload<T: WithWorkload>(
            name: &str,
            given: &serde_json::Map<String, serde_json::Value>,
            circumstances: &Circumstances,
            task: T,
        ) -> Result<T::Output> {
            $(
                if let Some(about) = <$file::$workload as Workload>::OFFERS.iter().find(|about| about.name == name) {
                    let options = Options::resolve(about, given, circumstances)?;
                    return task.with(<$file::$workload as Workload>::new(about, &options)?);
                }
            )*
            Err(options::unknown("workload", name, offers().iter().map(|about| about.name)))
        }
    };
}

workloads! {
    oltp::Oltp,
    tpcb::TpcB,
    tpcc::TpcC,
    flexasync::FlexAsync,
    script::Script,
    lua::LuaScript,
    vector_search::VectorSearch,
    ycsb::Ycsb,
    replay::Replay,
}

/// The files that a workload with these options reads, those included that others name. Relative paths count from
/// `folder`.
pub fn files(
    workload: &str,
    options: &serde_json::Map<String, serde_json::Value>,
    folder: &std::path::Path,
) -> Result<Vec<FileRead>> {
    let mut finder = files::Finder::new(folder);
    let text = |name: &str| options.get(name).and_then(|value| value.as_str()).unwrap_or_default();
    match workload {
        script::NAME => script::find_files(text("file"), text("setup"), &mut finder)?,
        script::STATEMENTS => {
            script::find_files(text("file"), "", &mut finder)?;
            script::find_statement_files(text("folder"), text("setup"), text("replaced"), &mut finder)?;
        }
        lua::NAME => lua::find_files(text("file"), options, &mut finder),
        REPLAY if !text("file").is_empty() => {
            finder.option = "file";
            finder.note(text("file"), String::new());
        }
        _ => {}
    }
    Ok(finder.found)
}
