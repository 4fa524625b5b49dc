//! A workload from a file: a TOML file of ours, a pgbench script, or plain SQL. It is compiled once, into a program.

mod assign;
mod body;
mod content;
mod document;
mod draw;
mod evaluate;
mod examine;
mod expression;
mod file;
mod frame;
mod function;
mod mistake;
mod moment;
mod pgbench;
mod phrase;
mod pick;
mod program;
mod rehearse;
mod request;
mod rounds;
mod run;
mod sql;
mod statements;
mod text;
mod variable;

#[cfg(test)]
mod tests;

use super::files::{located, Finder};
use super::options::of_file;
use super::{
    About, CheckAgainst, Examined, Invariant, Options, Outcome, Pause, Place, Reviewed, StatementText, Typed,
    Workload, PREPARED,
};
use crate::error::{Error, Result};
use crate::io;
use crate::random::Random;
use crate::session::{Session, Value};
use content::{Content, Table, Text};
use frame::{Counter, Frame, Memory};
use mistake::Source;
use program::Mode;
use rounds::Rounds;
use run::Client;
pub(super) use statements::{find_files as find_statement_files, NAME as STATEMENTS};
use statements::{CACHE, FOLDER, ONLY, REPLACED, ROUNDS};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use variable::{Variable, CLIENT_ID, DEFAULT_SEED, RANDOM_SEED, SCALE};

pub(super) const NAME: &str = "script";
/// Of files that hold SQL.
const SQL_ENDINGS: [&str; 2] = [".sql", ".pgbench"];
const ROWS_PER_PART: i64 = 10_000;
/// How long a client waits before it looks again whether another has the answers of `start`.
const LOOK_NS: u64 = 1_000_000;

type Given = serde_json::Map<String, serde_json::Value>;

/// Where a job's workload names a file, makes it the workload `script` of that file; tells the script the job's seed.
/// A relative path counts from `folder`.
pub fn resolve_script(workload: &mut String, options: &mut Given, seed: u64, folder: &Path) {
    let is_file = workload.contains('/')
        || is_toml(workload)
        || SQL_ENDINGS.iter().any(|ending| workload.ends_with(ending));
    if is_file {
        *options = options_of_file(workload, options, folder);
        *workload = NAME.to_owned();
    }
    if workload == NAME || workload == STATEMENTS {
        options.entry("random_seed").or_insert_with(|| (seed & i64::MAX as u64).into());
    }
}

/// Options that the file declares, and those that `script` does not know, become its variables.
fn options_of_file(file: &str, given: &Given, folder: &Path) -> Given {
    let declared =
        std::fs::read_to_string(folder.join(file)).map(|text| file::option_names(&text)).unwrap_or_default();
    let own = |name: &str| Script::OFFERS[0].options.iter().any(|option| option.name == name);
    of_file(file, given, |name| own(name) && !declared.iter().any(|other| other == name))
}

/// The files of the options `file` and `setup`, and those that a TOML file names. A list that is none is left to `new`.
pub(super) fn find_files(file: &str, setup: &str, finder: &mut Finder<'_>) -> Result<()> {
    finder.option = "file";
    if file.is_empty() {
        return Ok(());
    }
    if is_toml(file) {
        if let Some(text) = finder.read(file, String::new()).and_then(|bytes| String::from_utf8(bytes).ok()) {
            let (folder, path) = (Path::new(file).parent().unwrap_or(Path::new("")), finder.path(file));
            for (at, name) in file::included(&text) {
                let place = Source { name: &path, text: &text }.place(at);
                finder.read(&located(folder, &name), place);
            }
        }
        return Ok(());
    }
    for (name, _) in pgbench::weighted_files(file)? {
        finder.read(&name, String::new());
    }
    finder.option = "setup";
    if !setup.is_empty() {
        finder.read(setup, String::new());
    }
    Ok(())
}

/// Refuses a file whose ending does not say what it is: any text would go to the server as SQL.
fn require_known(file: &str) -> Result<()> {
    if SQL_ENDINGS.iter().any(|ending| file.ends_with(ending)) {
        return Ok(());
    }
    let hint = "end its name with .sql or .pgbench where it holds SQL, with .lua where it is a script of sysbench, with \
                .toml where it is a workload of Dyno's; other tools' files, such as YCSB's properties, are not read";
    Err(Error::user(format!("the ending of {file} does not say what kind of file it is")).hint(hint))
}

fn is_toml(file: &str) -> bool {
    file.ends_with(".toml")
}

pub struct Script {
    content: Content,
    weights: u64,
    /// What the questions of `start` were answered with, once per run.
    started: OnceLock<Vec<(usize, Variable)>>,
    /// A client asks those questions; the others wait for its answers.
    asked: AtomicBool,
    /// Which of them it has asked last.
    question: AtomicUsize,
    /// Where each statement is sent by itself.
    rounds: Option<Rounds>,
    /// The sequences of each client, which outlive its connections.
    counters: Mutex<HashMap<u32, Vec<Arc<Counter>>>>,
}

const FILE: Typed<&'static str> =
    Typed::text("file", "", "the file; of pgbench scripts several, as a.sql@2,b.sql@1 with their weights");
const MODE: Typed<&'static str> = Typed::choice(
    "mode",
    "auto",
    &["auto", "prepared", "simple"],
    "auto prepares what the server can, simple sends text as pgbench does by default",
);
const VARIABLES: Typed<&'static str> =
    Typed::text("variables", "", "values for the file's variables, as name=value,name=value (pgbench -D)");
const SCALE_OPTION: Typed<i64> =
    Typed::int("scale", 1, 1, 1_000_000, "the variable :scale of pgbench scripts (pgbench -s)");
const RANDOM_SEED_OPTION: Typed<i64> = Typed::int(
    "random_seed",
    0,
    0,
    i64::MAX,
    "the variables :random_seed and :default_seed; the job's seed unless told",
);
const SETUP: Typed<&'static str> =
    Typed::text("setup", "", "for pgbench scripts: an SQL file that makes the tables");

impl Workload for Script {
    type Client = Client;

    const OFFERS: &'static [About] = &[
        About {
            name: NAME,
            description: "your own transactions, from a TOML file, a pgbench script or plain SQL",
            options: &[
                FILE.spec(),
                MODE.spec(),
                VARIABLES.spec(),
                SCALE_OPTION.spec(),
                RANDOM_SEED_OPTION.spec(),
                SETUP.spec(),
            ],
            transactions: &[],
            read_only: false,
            keeps_ledger: false,
        },
        About {
            name: STATEMENTS,
            description:
                "your own statements, each timed by itself, from a folder of SQL files or a workload's file",
            options: &[
                FOLDER.spec(),
                FILE.spec(),
                ROUNDS.spec(),
                CACHE.spec(),
                ONLY.spec(),
                REPLACED.spec(),
                MODE.spec(),
                VARIABLES.spec(),
                SCALE_OPTION.spec(),
                RANDOM_SEED_OPTION.spec(),
                SETUP.spec(),
            ],
            transactions: &[],
            read_only: false,
            keeps_ledger: false,
        },
    ];

    const BRIEF: bool = true;

    const SENDS_REQUESTS: bool = true;

    fn new(about: &'static About, options: &Options) -> Result<Self> {
        let alone = about.name == STATEMENTS;
        let mut content = match alone {
            true => statements::only(content_of_statements(options)?, options.text(ONLY))?,
            false => content_of_file(options)?,
        };
        let rounds =
            Rounds { rounds: options.int(ROUNDS) as u64, seed: options.int(RANDOM_SEED_OPTION) as u64 };
        for (slot, value) in [
            (SCALE, options.int(SCALE_OPTION)),
            (RANDOM_SEED, options.int(RANDOM_SEED_OPTION)),
            (DEFAULT_SEED, options.int(RANDOM_SEED_OPTION)),
        ] {
            if !content.constants.iter().any(|(constant, _)| *constant == slot) {
                content.constants.push((slot, Variable::int(value)));
            }
        }
        let weights = content.program.transactions.iter().map(|transaction| transaction.weight).sum();
        Ok(Script {
            content,
            weights,
            started: OnceLock::new(),
            asked: AtomicBool::default(),
            question: AtomicUsize::default(),
            rounds: alone.then_some(rounds),
            counters: Mutex::default(),
        })
    }

    fn transactions(&self) -> Vec<String> {
        self.content.program.transactions.iter().map(|transaction| transaction.name.clone()).collect()
    }

    async fn create<S: Session>(&self, session: &mut S) -> Result<()> {
        for table in self.content.dropped.iter().rev() {
            session.drop_table(table).await?;
        }
        run_all(session, &self.content.setup).await
    }

    fn load_parts(&self) -> u64 {
        self.content.tables.iter().map(parts).sum()
    }

    async fn load<S: Session>(&self, part: u64, session: &mut S, random: Random) -> Result<u64> {
        let mut part = part;
        for table in &self.content.tables {
            if part < parts(table) {
                return self.load_part(table, part as i64 * ROWS_PER_PART, session, random).await;
            }
            part -= parts(table);
        }
        Ok(0)
    }

    fn finish_parts(&self) -> u64 {
        u64::from(!self.content.finish.is_empty())
    }

    async fn finish<S: Session>(&self, _part: u64, session: &mut S) -> Result<()> {
        run_all(session, &self.content.finish).await
    }

    async fn client<S: Session>(&self, session: &mut S, place: Place) -> Result<Client> {
        let program = &self.content.program;
        let mut frame = Frame::new(program.names.len(), program.memories);
        for (slot, value) in self.content.constants.iter().chain(self.started(session).await?) {
            frame.variables[*slot].copy_from(value);
        }
        frame.variables[CLIENT_ID] = Variable::int(i64::from(place.client));
        self.give_sequences(&mut frame, place);
        Client::new(program, frame, session).await
    }

    fn awaited(&self) -> String {
        match self.content.start.get(self.question.load(Ordering::Relaxed)) {
            Some(question) if self.started.get().is_none() => {
                format!("the answer to start ({})", question.place)
            }
            _ => PREPARED.to_owned(),
        }
    }

    fn choose(&self, client: &mut Client, random: &mut Random) -> usize {
        let transactions = &self.content.program.transactions;
        if let Some(rounds) = self.rounds {
            return client.turn.next(rounds, transactions.len());
        }
        if transactions.len() == 1 {
            return 0;
        }
        let mut drawn = random.below(self.weights);
        transactions
            .iter()
            .position(|transaction| match drawn.checked_sub(transaction.weight) {
                None => true,
                Some(rest) => {
                    drawn = rest;
                    false
                }
            })
            .unwrap_or(0)
    }

    fn pause(&self, kind: usize, random: &mut Random) -> Pause {
        self.content.program.transactions[kind].pause(random)
    }

    async fn perform<S: Session>(
        &self,
        kind: usize,
        client: &mut Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<Outcome> {
        let through = |rounds| client.turn.is_over(rounds, self.content.program.transactions.len());
        if self.rounds.is_some_and(through) {
            return Ok(Outcome::Finished);
        }
        run::perform(&self.content.program, kind, client, session, random).await
    }

    fn repeats(&self, client: &mut Client) -> bool {
        client.try_again();
        true
    }

    fn failed(&self, client: &mut Client) -> bool {
        client.fail(&self.content.program)
    }

    fn take_over(&self, client: &mut Client, lost: Client) {
        client.take_over(lost);
    }

    async fn statement_texts<S: Session>(&self, session: &mut S, seed: u64) -> Result<Vec<StatementText>> {
        statements::texts(&self.content, self.started(session).await?, seed)
    }

    async fn check<S: Session>(&self, session: &mut S, against: CheckAgainst<'_>) -> Result<Vec<Invariant>> {
        let mut invariants = Vec::new();
        for condition in &self.content.invariants {
            invariants.extend(self.content.judge(condition, session, against).await?);
        }
        Ok(invariants)
    }

    fn review(&self) -> Reviewed {
        let (mistakes, own_sql) = (rehearse::rehearse(&self.content), examine::own_sql(&self.content));
        Reviewed { mistakes, own_sql }
    }

    async fn examine<S: Session>(&self, session: &mut S) -> Result<Examined> {
        examine::examine(&self.content, session).await
    }

    async fn cleanup<S: Session>(&self, session: &mut S) -> Result<()> {
        run_all(session, &self.content.cleanup).await?;
        for table in self.content.dropped.iter().rev() {
            session.drop_table(table).await?;
        }
        Ok(())
    }
}

impl Script {
    async fn load_part<S: Session>(
        &self,
        table: &Table,
        first: i64,
        session: &mut S,
        random: Random,
    ) -> Result<u64> {
        let mut frame = self.content.frame(table.names.len(), table.memories);
        let (mut random, last) = (random, table.rows.min(first + ROWS_PER_PART));
        frame.row = first;
        let columns: Vec<&str> = table.columns.iter().map(String::as_str).collect();
        let mut failed = None;
        let loaded = session
            .bulk_insert(&table.name, &columns, |row| {
                if frame.row >= last || failed.is_some() {
                    return false;
                }
                frame.row += 1;
                for (slot, expression) in &table.draws {
                    if let Err(error) = frame.assign(*slot, expression, &table.names, &mut random) {
                        failed = Some(error);
                        return false;
                    }
                    match frame.variables[*slot].value() {
                        Value::Null => row.null(),
                        Value::Int(value) => row.int(value),
                        Value::Float(value) => row.float(value),
                        Value::Text(text) => row.text(text),
                        Value::Bytes(bytes) => row.bytes(bytes),
                    };
                }
                true
            })
            .await;
        match failed {
            Some(error) => Err(error.at(format!("row {} of {}", frame.row, table.name))),
            None => loaded,
        }
    }

    /// Gives a client its sequences: those of its last connection, if it had one.
    fn give_sequences(&self, frame: &mut Frame, place: Place) {
        let sequences = &self.content.program.sequences;
        let mut counters = self.counters.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let own = counters.entry(place.client).or_insert_with(|| {
            sequences.iter().map(|_| Arc::new(Counter::new(place.client, place.clients))).collect()
        });
        for (memory, counter) in sequences.iter().zip(own) {
            frame.memories[*memory] = Memory::Counter(Arc::clone(counter));
        }
    }

    /// What the questions of `start` were answered with. One client asks them, because a thousand that sign in to an
    /// application at once would be a load of their own, and no client sees what another has changed since.
    async fn started<S: Session>(&self, session: &mut S) -> Result<&[(usize, Variable)]> {
        let _asking = loop {
            if let Some(answers) = self.started.get() {
                return Ok(answers);
            }
            if let Some(asking) = Asking::begin(&self.asked) {
                break asking;
            }
            io::sleep_ns(LOOK_NS).await;
        };
        // Between the two looks another may have had the answers.
        if let Some(answers) = self.started.get() {
            return Ok(answers);
        }
        let answers = self.answers(session).await?;
        Ok(self.started.get_or_init(|| answers))
    }

    async fn answers<S: Session>(&self, session: &mut S) -> Result<Vec<(usize, Variable)>> {
        let mut answers = Vec::new();
        for (number, question) in self.content.start.iter().enumerate() {
            self.question.store(number, Ordering::Relaxed);
            let rows = question.ask(session).await?;
            answers.extend(question.answers(rows)?);
        }
        Ok(answers)
    }
}

/// One client's turn to ask. It ends with the answers, with an error, and where the client is given up meanwhile: then
/// another one asks.
struct Asking<'a>(&'a AtomicBool);

impl<'a> Asking<'a> {
    /// `None` while another client asks.
    fn begin(asked: &'a AtomicBool) -> Option<Self> {
        // Lazily: a turn that is made and not given away would end the other client's.
        (!asked.swap(true, Ordering::AcqRel)).then(|| Asking(asked))
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

fn mode_of(options: &Options) -> Mode {
    match options.text(MODE) {
        "prepared" => Mode::Prepared,
        "simple" => Mode::Simple,
        _ => Mode::Auto,
    }
}

fn setup_of(options: &Options) -> Result<Option<(String, String)>> {
    let named = located(&options.circumstances().folder, options.text(SETUP));
    match named.is_empty() {
        true => Ok(None),
        false => read(&named).map(|text| Some((named, text))),
    }
}

fn content_of_file(options: &Options) -> Result<Content> {
    let file = options.text(FILE);
    if file.is_empty() {
        return Err(Error::user("the workload script has no file").hint("set the option file=PATH"));
    }
    let (given, folder) = (assignments(options.text(VARIABLES))?, &options.circumstances().folder);
    if is_toml(file) {
        let file = located(folder, file);
        let beside = Path::new(&file).parent().unwrap_or(Path::new(""));
        return file::parse(&file, &read(&file)?, beside, &given, mode_of(options));
    }
    let mut files = Vec::new();
    for (name, weight) in pgbench::weighted_files(file)? {
        require_known(&name)?;
        let name = located(folder, &name);
        files.push((name.clone(), read(&name)?, weight));
    }
    pgbench::content(&files, setup_of(options)?, &given, mode_of(options))
}

fn content_of_statements(options: &Options) -> Result<Content> {
    let (folder, file) = (options.text(FOLDER), options.text(FILE));
    if folder.is_empty() == file.is_empty() {
        return Err(Error::user("the workload statements has a folder or a file, one of the two")
            .hint("set folder = \"queries/\", or file = \"log.toml\" as dyno init study LOG writes it"));
    }
    let replaced = assignments(options.text(REPLACED))?;
    if folder.is_empty() {
        if !replaced.is_empty() {
            return Err(Error::user("a file takes the place of one in a folder, and there is no folder")
                .hint("give each statement a file, and name their folder"));
        }
        return statements::each_alone(content_of_file(options)?, !is_toml(file));
    }
    let base = &options.circumstances().folder;
    let replaced: Vec<_> = replaced.into_iter().map(|(name, file)| (name, located(base, &file))).collect();
    // As text, unless it is asked for: such a statement is sent once in a while, and planned each time.
    let mode = match options.text(MODE) {
        "prepared" => Mode::Prepared,
        _ => Mode::Simple,
    };
    let given = assignments(options.text(VARIABLES))?;
    statements::content_of_folder(&located(base, folder), &replaced, setup_of(options)?, &given, mode)
}

async fn run_all<S: Session>(session: &mut S, statements: &[Text]) -> Result<()> {
    for statement in statements {
        session.text(&statement.sql, &mut ()).await.map_err(|error| error.at(&statement.place))?;
    }
    Ok(())
}

fn parts(table: &Table) -> u64 {
    (table.rows as u64).div_ceil(ROWS_PER_PART as u64)
}

fn read(name: &str) -> Result<String> {
    std::fs::read_to_string(name).map_err(|error| {
        Error::user(format!("{name} cannot be read: {error}")).hint("give the path of a text file")
    })
}

/// `name=value,name=value`
fn assignments(text: &str) -> Result<Vec<(String, String)>> {
    let pairs =
        text.split(',').filter(|pair| !pair.trim().is_empty()).map(|pair| match pair.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(Error::user(format!("{pair:?} sets no variable"))
                .hint("write variables=name=value,name=value")),
        });
    pairs.collect()
}
