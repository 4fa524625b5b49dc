//! A workload from a script of sysbench: Lua, one state for each client.
//!
//! The script runs in a coroutine. Whatever it asks of the server it yields as a request; the client awaits the answer
//! as every other workload does and resumes the script with it. So thousands of scripts share a thread, and a script
//! that computes is all that ever keeps them waiting (`hold.rs`).

mod answers;
mod client;
mod connections;
mod conversation;
mod draw;
mod files;
mod hold;
mod natives;
mod report;
mod request;
mod settings;
mod source;
mod state;

use super::files::located;
use super::options::of_file;
use super::{About, CheckAgainst, Invariant, Options, Outcome, Place, Start, Typed, Witness, Workload};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::session::{Session, Target, Traffic};
use client::Client;
use draw::{Distributions, Unique};
pub(super) use files::find_files;
use hold::Watchdog;
use report::{Counts, Reports, Running, Schedule};
use settings::{assignments, driver, Ignored, Settings};
use source::{Compiled, Shared, Source};
use state::{Found, State};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

type Given = serde_json::Map<String, serde_json::Value>;

/// The ending of a script's name.
const ENDING: &str = ".lua";
pub(super) const NAME: &str = "lua";
/// Random streams of what is done before and after a client's events, apart from those of the clients.
const INIT_STREAM: u64 = 1 << 40;

/// Where a job's workload names a script in Lua, makes it the workload `lua` of that script.
pub fn resolve_lua(workload: &mut String, options: &mut Given) {
    if workload.ends_with(ENDING) {
        *options = of_file(workload, options, |name| {
            LuaScript::OFFERS[0].options.iter().any(|option| option.name == name)
        });
        *workload = NAME.to_owned();
    }
}

pub struct LuaScript {
    shared: Arc<Shared>,
    settings: Settings,
    target: Option<Target>,
    clients: u32,
    seed: u64,
    duration_s: f64,
    /// The command that `prepare` runs.
    prepare: String,
    commands: Commands,
    /// Clients that are through.
    ended: AtomicU32,
    reports: Schedule,
    /// `None` where the script reports nothing.
    counts: Option<Arc<Counts>>,
}

/// Which of the functions that commands call the script has.
struct Commands {
    prepare: Option<Found>,
    cleanup: Option<Found>,
    event: bool,
    thread_run: bool,
}

const FILE: Typed<&'static str> = Typed::text("file", "", "the script");
const VARIABLES: Typed<&'static str> =
    Typed::text("variables", "", "the script's options, as name=value,name=value");
const COMMAND: Typed<&'static str> =
    Typed::text("command", "prepare", "the script's command that prepare runs, such as prewarm");
const PATIENCE_S: Typed<f64> = Typed::float(
    "patience_s",
    60.0,
    0.001,
    86_400.0,
    "the longest that a script may compute between two statements",
)
.for_the_run();
const MEMORY_MB: Typed<i64> =
    Typed::int("memory_mb", 256, 1, 65_536, "the most memory that the script of one client may use")
        .for_the_run();

impl Workload for LuaScript {
    type Client = Client;

    const OFFERS: &'static [About] = &[About {
        name: NAME,
        description: "a script of sysbench 1.0, in Lua, as it is",
        options: &[FILE.spec(), VARIABLES.spec(), COMMAND.spec(), PATIENCE_S.spec(), MEMORY_MB.spec()],
        transactions: &[],
        read_only: false,
        keeps_ledger: false,
    }];

    /// As sysbench does.
    const REPLAYS: bool = false;

    fn new(_about: &'static About, options: &Options) -> Result<Self> {
        let file = options.text(FILE);
        if file.is_empty() {
            return Err(Error::user("the workload lua has no file").hint("set the option file=PATH"));
        }
        let circumstances = options.circumstances();
        let shared = Arc::new(Shared {
            source: Source::read(&located(&circumstances.folder, file))?,
            compiled: Compiled::default(),
            driver: driver(circumstances),
            unique: Unique::new(circumstances.seed),
            watchdog: Watchdog::new((options.float(PATIENCE_S) * 1e9) as u64),
            memory_bytes: options.int(MEMORY_MB) as usize * (1 << 20),
        });
        let given = assignments(options.text(VARIABLES))?;
        let settings = Settings::of_job(circumstances);
        // The script says which options it has when its text runs, so it runs once before any is given.
        let script = State::new(&shared, &settings, "run", 0, Random::new(circumstances.seed, 0))?;
        let settings = settings.resolve(script.declared()?, &given)?;
        script.validate(&settings)?;
        Distributions::new(&settings)?;
        let reports = Schedule::new(&settings, circumstances.duration_s, circumstances.operations.is_some())?;
        let reporting = script.hook("report_cumulative")?.is_some()
            || (reports.has_intervals() && script.hook("report_intermediate")?.is_some());
        let prepare = options.text(COMMAND).to_owned();
        let commands = Commands {
            prepare: script.find(&prepare)?,
            cleanup: script.find("cleanup")?,
            event: script.find("event")?.is_some(),
            thread_run: script.find("thread_run")?.is_some(),
        };
        Ok(LuaScript {
            shared,
            settings,
            target: circumstances.target.clone(),
            clients: circumstances.clients,
            seed: circumstances.seed,
            duration_s: circumstances.duration_s,
            prepare,
            commands,
            ended: AtomicU32::new(0),
            reports,
            counts: reporting.then(Arc::default),
        })
    }

    fn transactions(&self) -> Vec<String> {
        vec!["event".to_owned()]
    }

    /// The script makes its tables while it loads them.
    async fn create<S: Session>(&self, _session: &mut S) -> Result<()> {
        self.needed(self.commands.prepare, &self.prepare).map(drop)
    }

    fn load_parts(&self) -> u64 {
        self.callers(self.commands.prepare).into()
    }

    /// A script may wait until the tables of all clients are there.
    fn loads_together(&self) -> bool {
        true
    }

    async fn load<S: Session>(&self, part: u64, session: &mut S, random: Random) -> Result<u64> {
        let mut client = self.client_of(&self.prepare, part as u32, random)?;
        client.call(&self.prepare, session).await?;
        Ok(client.affected)
    }

    async fn inspect<S: Session>(&self, session: &mut S) -> Result<Start> {
        if !self.commands.event {
            return Err(Error::user(format!("{} has no function event", self.shared.source.file))
                .hint("event() is what each client does again and again"));
        }
        if self.commands.thread_run {
            return Err(Error::user(format!("{}: thread_run is not supported", self.shared.source.file))
                .hint("the driver calls event() again and again: put into it what one round does"));
        }
        let random = Random::new(self.seed, INIT_STREAM);
        self.client_of("run", 0, random)?.call("init", session).await?;
        Ok(Start::new())
    }

    async fn client<S: Session>(&self, session: &mut S, place: Place) -> Result<Client> {
        let mut client = self.client_of("run", place.client, self.random_of(place))?;
        client.call("thread_init", session).await?;
        client.state().count_turns();
        client.running = self.counts.as_ref().map(Running::begin);
        Ok(client)
    }

    /// The script itself goes on, because it may count in its variables what it has done.
    async fn renew<S: Session>(&self, session: &mut S, place: Place, lost: &mut Client) -> Result<()> {
        lost.begin_again(&self.shared)?;
        lost.state().draw_from(self.random_of(place));
        lost.call("thread_init", session).await?;
        lost.state().count_turns();
        lost.running.iter().for_each(Running::reconnected);
        Ok(())
    }

    fn beside(&self, client: &Client) -> Option<Rc<Cell<Traffic>>> {
        Some(client.beside())
    }

    async fn perform<S: Session>(
        &self,
        _kind: usize,
        client: &mut Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<Outcome> {
        if client.stopped {
            return Ok(Outcome::Finished);
        }
        client.call_drawing("event", session, random).await?;
        Ok(Outcome::Committed)
    }

    /// An event that has changed rows for good is not begun anew.
    fn repeats(&self, client: &mut Client) -> bool {
        !client.changed()
    }

    fn failed(&self, client: &mut Client) -> bool {
        client.changed()
    }

    fn take_overcome(&self, client: &mut Client) -> Vec<Error> {
        client.take_overcome()
    }

    async fn leave<S: Session>(&self, client: &mut Client, session: &mut S) -> Result<()> {
        client.running = None;
        client.call("thread_done", session).await?;
        if self.ended.fetch_add(1, Ordering::Relaxed) + 1 == self.clients {
            client.call("done", session).await?;
        }
        Ok(())
    }

    fn witness(&self) -> Result<Option<Box<dyn Witness>>> {
        let Some(counts) = &self.counts else { return Ok(None) };
        let random = Random::new(self.seed, INIT_STREAM);
        let state = State::new(&self.shared, &self.settings, "run", 0, random)?;
        Ok(Some(Box::new(Reports::new(state, Arc::clone(counts), self.reports)?)))
    }

    fn interrupt(&self) {
        self.shared.watchdog.interrupt();
    }

    fn hindrance(&self) -> Option<String> {
        self.shared.watchdog.complaint(self.duration_s)
    }

    /// Scripts have no invariants.
    async fn check<S: Session>(
        &self,
        _session: &mut S,
        _against: CheckAgainst<'_>,
    ) -> Result<Vec<Invariant>> {
        Ok(Vec::new())
    }

    async fn cleanup<S: Session>(&self, session: &mut S) -> Result<()> {
        let found = self.needed(self.commands.cleanup, "cleanup")?;
        for tid in 0..self.callers(Some(found)) {
            let random = Random::new(self.seed, INIT_STREAM);
            self.client_of("cleanup", tid, random)?.call("cleanup", session).await?;
        }
        Ok(())
    }
}

impl LuaScript {
    /// What a client draws from before its first event.
    fn random_of(&self, place: Place) -> Random {
        Random::new(self.seed, INIT_STREAM + 1 + u64::from(place.client))
    }

    /// A client's script whose own text has run.
    fn client_of(&self, command: &str, tid: u32, random: Random) -> Result<Client> {
        let state = State::new(&self.shared, &self.settings, command, tid, random)?;
        Ok(Client::new(state, self.target.clone(), Ignored::new(&self.settings)))
    }

    fn needed(&self, found: Option<Found>, command: &str) -> Result<Found> {
        found.ok_or_else(|| {
            Error::user(format!("{} has no command {command}", self.shared.source.file))
                .hint(format!("define function {command}() in it, or sysbench.cmdline.commands.{command}"))
        })
    }

    /// How many clients call a command, side by side.
    fn callers(&self, found: Option<Found>) -> u32 {
        match found {
            Some(Found { parallel: true }) => self.clients,
            _ => 1,
        }
    }
}
