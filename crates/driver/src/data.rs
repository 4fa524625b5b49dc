//! All that happens to the data before and after a run: making and loading it, checking it, dropping it, asking it.
//! Sessions are behind a pointer here, because none of that is measured.

use crate::clock;
use crate::error::{Code, Error, Fate, Result};
use crate::io::{block_on, spawned, yield_now, Backend};
use crate::job::Job;
use crate::random::Random;
use crate::session::{end_what_was_left, open, AnySession, Collect, Owned, Row, Rows, Session, Target};
use crate::watch::Watch;
use crate::workload::{advised, Acknowledged, CheckAgainst, Start, StatementText, Workload};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(20);

fn backend(target: &Target, wanted: &str) -> Result<Backend> {
    if AnySession::is_blocking(target.protocol) {
        Ok(Backend::Blocking)
    } else {
        Backend::choose(wanted)
    }
}

/// Opens a session, does one thing with it, closes it; gives up when interrupted.
fn with_one<T: Send>(
    target: &Target,
    backend_wanted: &str,
    watch: &mut Watch<'_>,
    task: impl AsyncFnOnce(&mut AnySession) -> Result<T> + Send,
) -> Result<T> {
    let whole = async move || {
        let mut session = open::<AnySession>(target).await?;
        let outcome = task(&mut session).await;
        session.close().await;
        outcome
    };
    match backend(target, backend_wanted)? {
        Backend::Blocking => overseen(target, watch, || block_on(Backend::Blocking, whole(), || false)),
        backend => {
            let outcome = block_on(backend, whole(), || (watch.interrupted)())?;
            end_what_was_left(target);
            finished(outcome)
        }
    }
}

/// Does work that blocks its thread, on one that is not this one; ends it when interrupted.
pub(crate) fn overseen<T: Send>(
    target: &Target,
    watch: &mut Watch<'_>,
    work: impl FnOnce() -> Result<Option<Result<T>>> + Send,
) -> Result<T> {
    overseen_work(target, watch, Box::new(work))
}

/// The same, behind a pointer, so that it is compiled once for each kind of outcome.
fn overseen_work<T: Send>(
    target: &Target,
    watch: &mut Watch<'_>,
    work: Box<dyn FnOnce() -> Result<Option<Result<T>>> + Send + '_>,
) -> Result<T> {
    AnySession::load_library(target);
    let (done, is_done) = channel::<()>();
    let mut stop = Stop::default();
    let outcome = std::thread::scope(|scope| {
        let handle = spawned(scope, 0, 1, move || {
            let outcome = work();
            drop(done);
            outcome
        })?;
        while is_done.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
            stop.heed((watch.interrupted)(), target);
        }
        handle.join().unwrap_or_else(|_| Err(Error::internal("a thread of the driver panicked")))
    });
    stop.told(outcome.and_then(finished))
}

/// When an interrupt came, if one has.
#[derive(Default)]
struct Stop {
    since_ns: Option<u64>,
}

impl Stop {
    /// Ends what sessions that block are at, once interrupted.
    fn heed(&mut self, interrupted: bool, target: &Target) {
        let now_ns = clock::now_ns();
        if interrupted {
            self.since_ns.get_or_insert(now_ns);
        }
        if let Some(since_ns) = self.since_ns {
            target.shared.interrupts.end(since_ns, now_ns);
        }
    }

    /// The outcome, but for the failures that an interrupt has caused.
    fn told<T>(&self, outcome: Result<T>) -> Result<T> {
        match self.since_ns {
            Some(_) => finished(outcome.ok().map(Ok)),
            None => outcome,
        }
    }
}

pub(crate) fn finished<T>(outcome: Option<Result<T>>) -> Result<T> {
    outcome.unwrap_or_else(|| Err(Error::interrupted()))
}

/// Makes the tables, loads all parts in parallel, then finishes them in parallel.
pub(crate) fn prepare<W: Workload>(job: &Job, workload: &W, watch: &mut Watch<'_>) -> Result<Value> {
    let (target, from_ns) = (job.target()?, clock::now_ns());
    with_one(&target, &job.backend, watch, async |session: &mut AnySession| workload.create(session).await)?;
    let together = workload.loads_together();
    let loading = Loading { job, target: &target, together, bytes: AtomicU64::new(0) };
    let sessions = loading.sessions(workload.load_parts());
    let rows = loading.in_parallel(workload.load_parts(), watch, async |part, session| {
        workload.load(part, session, Random::of_loading(job.seed, part)).await
    })?;
    loading.in_parallel(workload.finish_parts(), watch, async |part, session| {
        workload.finish(part, session).await.map(|()| 0)
    })?;
    with_one(&target, &job.backend, watch, async |session: &mut AnySession| {
        match session.dialect().after_load {
            Some(sql) => session.text(sql, &mut ()).await.map(drop),
            None => Ok(()),
        }
    })?;
    Ok(json!({
        "rows": rows,
        "bytes": loading.bytes.into_inner(),
        "duration_s": (clock::now_ns() - from_ns) as f64 / 1e9,
        "sessions": sessions,
    }))
}

struct Loading<'a> {
    job: &'a Job,
    target: &'a Target,
    /// Each part has a session of its own.
    together: bool,
    /// Sent to the server by all sessions.
    bytes: AtomicU64,
}

impl Loading<'_> {
    fn sessions(&self, parts: u64) -> u64 {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let wanted = match (self.together, self.job.threads) {
            (true, _) => parts as usize,
            (false, 0) => cpus,
            (false, threads) => threads as usize,
        };
        (wanted as u64).clamp(1, parts.max(1))
    }

    /// Does all parts, each by whichever session is free; returns the sum of what they return.
    fn in_parallel(
        &self,
        parts: u64,
        watch: &mut Watch<'_>,
        task: impl AsyncFn(u64, &mut AnySession) -> Result<u64> + Sync,
    ) -> Result<u64> {
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let backend = backend(self.target, &self.job.backend)?;
        let (next, stop, task) = (&next, &stop, &task);
        std::thread::scope(|scope| {
            let sessions = self.sessions(parts).min(parts);
            let begun: Vec<_> = (0..sessions)
                .map(|number| {
                    let begun = spawned(scope, number, sessions, move || {
                        let outcome = block_on(backend, self.parts(next, parts, stop, task), || {
                            stop.load(Ordering::Relaxed)
                        });
                        let outcome = outcome.and_then(finished);
                        // One session's failure is the end of all, and what the others then fail with is its doing.
                        let is_stopped = stop.fetch_or(outcome.is_err(), Ordering::Relaxed);
                        if is_stopped {
                            return finished(outcome.ok().map(Ok));
                        }
                        outcome
                    });
                    stop.fetch_or(begun.is_err(), Ordering::Relaxed);
                    begun
                })
                .collect();
            let (mut handles, mut refused) = (Vec::new(), Vec::new());
            for one in begun {
                match one {
                    Ok(handle) => handles.push(handle),
                    Err(error) => refused.push(Err(error)),
                }
            }
            let mut interrupt = Stop::default();
            while !handles.iter().all(|handle| handle.is_finished()) {
                if (watch.interrupted)() {
                    stop.store(true, Ordering::Relaxed);
                }
                interrupt.heed(stop.load(Ordering::Relaxed), self.target);
                std::thread::sleep(POLL);
            }
            let outcomes = handles.into_iter().map(|handle| {
                handle.join().unwrap_or_else(|_| Err(Error::internal("a thread of the driver panicked")))
            });
            let outcomes = outcomes.chain(refused);
            let outcomes = outcomes.collect();
            end_what_was_left(self.target);
            first_failure_or_sum(outcomes)
        })
    }

    async fn parts(
        &self,
        next: &AtomicU64,
        parts: u64,
        stop: &AtomicBool,
        task: &impl AsyncFn(u64, &mut AnySession) -> Result<u64>,
    ) -> Result<u64> {
        let mut session = open::<AnySession>(self.target).await?;
        let mut sum = 0;
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                break;
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Error::interrupted());
            }
            sum += task(part, &mut session).await?;
        }
        self.bytes.fetch_add(session.traffic().bytes_sent, Ordering::Relaxed);
        session.close().await;
        Ok(sum)
    }
}

/// The error that started it rather than the "interrupted" of those that were stopped because of it.
fn first_failure_or_sum(outcomes: Vec<Result<u64>>) -> Result<u64> {
    let mut failures: Vec<&Error> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    failures.sort_by_key(|error| error.code() == Code::Interrupted);
    if let Some(error) = failures.first() {
        return Err((*error).clone());
    }
    outcomes.into_iter().sum()
}

/// Makes the tables without their rows, and what stands upon them.
pub(crate) fn create<W: Workload>(job: &Job, workload: &W, watch: &mut Watch<'_>) -> Result<()> {
    with_one(&job.target()?, &job.backend, watch, async |session: &mut AnySession| {
        workload.create(session).await?;
        for part in 0..workload.finish_parts() {
            workload.finish(part, session).await?;
        }
        Ok(())
    })
}

/// Has the server prepare the statements that are the user's own.
pub(crate) fn examine<W: Workload>(job: &Job, workload: &W, watch: &mut Watch<'_>) -> Result<Value> {
    let examined = with_one(&job.target()?, &job.backend, watch, async |session: &mut AnySession| {
        workload.examine(session).await
    })?;
    Ok(json!(examined))
}

/// Asks the data for their shape before a run.
pub(crate) fn inspect<W: Workload>(job: &Job, workload: &W, watch: &mut Watch<'_>) -> Result<Start> {
    with_one(&job.target()?, &job.backend, watch, async |session: &mut AnySession| {
        workload.inspect(session).await
    })
    .map_err(|error| advised(error, &job.workload))
}

pub(crate) fn check<W: Workload>(
    job: &Job,
    workload: &W,
    acknowledged: Option<&Acknowledged>,
    watch: &mut Watch<'_>,
) -> Result<Value> {
    let against = CheckAgainst { acknowledged, baseline: job.baseline.as_deref() };
    let invariants = with_one(&job.target()?, &job.backend, watch, async |session: &mut AnySession| {
        workload.check(session, against).await
    })?;
    Ok(json!(invariants))
}

pub(crate) fn cleanup<W: Workload>(job: &Job, workload: &W, watch: &mut Watch<'_>) -> Result<()> {
    with_one(&job.target()?, &job.backend, watch, async |session: &mut AnySession| {
        workload.cleanup(session).await
    })
}

pub(crate) fn query(target: &Target, sql: &str, watch: &mut Watch<'_>) -> Result<Value> {
    with_one(target, "auto", watch, async |session: &mut AnySession| answered(session, sql).await)
}

async fn answered(session: &mut AnySession, sql: &str) -> Result<Value> {
    let mut answer = Collect::default();
    let done = session.text(sql, &mut answer).await?;
    let rows: Vec<Vec<Value>> = answer.rows.iter().map(|row| row.iter().map(json_of).collect()).collect();
    Ok(json!({"columns": answer.names, "rows": rows, "affected": done.affected}))
}

/// How often each statement is sent: what differs from itself says nothing of a server.
const TIMES: usize = 2;
/// Rows of an answer that are told; the others are counted.
const ROWS_MOST: usize = 20_000;

/// What the server answers to each of the user's statements, sent twice on one session: {"statements": [{"name", "sql",
/// "is_ordered", "runs"}]}. A run is {"columns", "types", "rows", "count", "affected", "warnings", "counted"}, or has an
/// "error". What changes rows is rolled back, and its runs have the rows of its table as well, "before" and "after".
pub(crate) fn answers<W: Workload>(job: &Job, workload: &W, watch: &mut Watch<'_>) -> Result<Value> {
    with_one(&job.target()?, &job.backend, watch, async |session: &mut AnySession| {
        let mut told = Vec::new();
        for text in workload.statement_texts(session, job.seed).await? {
            let mut runs = Vec::new();
            for _ in 0..TIMES {
                runs.push(answer_or_error(session, &text).await?);
            }
            let StatementText { name, sql, is_ordered, .. } = text;
            told.push(json!({"name": name, "sql": sql, "is_ordered": is_ordered, "runs": runs}));
        }
        Ok(json!({"statements": told}))
    })
}

async fn answer_or_error(session: &mut AnySession, text: &StatementText) -> Result<Value> {
    let asked = match text.writes {
        true => undone(session, text).await,
        false => counted_rows(session, &text.sql).await,
    };
    match asked {
        Err(error) if matches!(error.fate(), Fate::Failed | Fate::Retry) => {
            let code = error.code().to_string();
            Ok(json!({"error": {"code": code, "sqlstate": error.sqlstate(), "message": error.message()}}))
        }
        asked => asked,
    }
}

/// What a statement does that changes rows, and those of its table before and after it; then it is rolled back.
async fn undone(session: &mut AnySession, text: &StatementText) -> Result<Value> {
    session.begin().await?;
    let done = changes(session, text).await;
    session.rollback().await?;
    done
}

async fn changes(session: &mut AnySession, text: &StatementText) -> Result<Value> {
    let Some(table) = &text.table else { return first_rows(session, &text.sql).await };
    let whole = format!("SELECT * FROM {table}");
    let before = first_rows(session, &whole).await?;
    let mut answer = first_rows(session, &text.sql).await?;
    answer["after"] = first_rows(session, &whole).await?;
    answer["before"] = before;
    Ok(answer)
}

/// The same rows, with what the engine counted meanwhile where it is asked for that: without what asking costs.
async fn counted_rows(session: &mut AnySession, sql: &str) -> Result<Value> {
    let Some(asking) = session.dialect().counters else { return first_rows(session, sql).await };
    let before = answered(session, asking).await?;
    let asked = answered(session, asking).await?;
    let mut answer = first_rows(session, sql).await?;
    let after = answered(session, asking).await?;
    let number = |told: &Value, place: usize| told["rows"][0][place].as_i64();
    for (place, title) in after["columns"].as_array().into_iter().flatten().enumerate() {
        let Some(title) = title.as_str() else { continue };
        let numbers = (number(&before, place), number(&asked, place), number(&after, place));
        if let (Some(before), Some(asked), Some(after)) = numbers {
            answer["counted"][title] = json!((after - asked - (asked - before)).max(0));
        }
    }
    Ok(answer)
}

async fn first_rows(session: &mut AnySession, sql: &str) -> Result<Value> {
    let mut found = FirstRows::default();
    let done = session.text(sql, &mut found).await?;
    let warnings = match session.dialect().warnings {
        // MariaDB still tells those of the statement before, where this one has none and reads no table.
        Some(asking) if found.warnings_counted > 0 => answered(session, asking).await?["rows"].take(),
        _ => json!(found.warnings),
    };
    let rows: Vec<Vec<Value>> = found.rows.iter().map(|row| row.iter().map(json_of).collect()).collect();
    Ok(json!({"columns": found.names, "types": found.types(), "rows": rows, "count": found.count,
              "affected": done.affected, "warnings": warnings,
              "counted": found.counts.iter().copied().collect::<BTreeMap<_, _>>()}))
}

/// Keeps the first rows of an answer and the types of their values, and counts all.
#[derive(Default)]
struct FirstRows {
    names: Vec<String>,
    rows: Vec<Vec<Owned>>,
    count: u64,
    /// Which of the types of `TYPES` the values of each column have, a bit for each.
    seen: Vec<u8>,
    /// Those that came within the answer.
    warnings: Vec<[String; 3]>,
    /// Those of which the answer gave the number alone.
    warnings_counted: u64,
    counts: Vec<(&'static str, i64)>,
}

const TYPES: [&str; 4] = ["int", "float", "text", "bytes"];

impl FirstRows {
    /// By column: the types of its values, of one that has several with a `|` between them. A null has none.
    fn types(&self) -> Vec<String> {
        let of_column = |seen: &u8| {
            let found = TYPES.iter().enumerate().filter(|(bit, _)| seen & (1_u8 << bit) != 0);
            found.map(|(_, name)| *name).collect::<Vec<_>>().join("|")
        };
        self.seen.iter().map(of_column).collect()
    }
}

impl Rows for FirstRows {
    fn names(&mut self, names: &[String]) {
        self.names = names.to_vec();
    }

    fn warned(&mut self, warning: [String; 3]) {
        if self.warnings.len() < ROWS_MOST {
            self.warnings.push(warning);
        }
    }

    fn warnings(&mut self, count: u64) {
        self.warnings_counted += count;
    }

    fn counts(&mut self) -> Option<&mut Vec<(&'static str, i64)>> {
        Some(&mut self.counts)
    }

    fn row(&mut self, row: &dyn Row) {
        self.count += 1;
        if self.rows.len() == ROWS_MOST {
            return;
        }
        self.seen.resize(self.seen.len().max(row.columns()), 0);
        let values: Vec<Owned> = (0..row.columns()).map(|column| row.value(column).to_owned()).collect();
        for (seen, value) in self.seen.iter_mut().zip(&values) {
            *seen |= match value {
                Owned::Null => 0,
                Owned::Int(_) => 1,
                Owned::Float(_) => 2,
                Owned::Text(_) => 4,
                Owned::Bytes(_) => 8,
            };
        }
        self.rows.push(values);
    }
}

/// One session that is asked one statement after another, until it is dropped. A thread of its own holds it, because a
/// session does not leave the thread that opened it.
pub struct Conversation {
    statements: Option<Sender<String>>,
    answers: Receiver<Result<Value>>,
    given_up: Arc<AtomicBool>,
    holding: Option<JoinHandle<()>>,
}

impl Conversation {
    /// Begins to open a session with the server of `url`. The first statement's answer says whether that failed.
    pub fn open(url: &str) -> Result<Self> {
        let target = Target::parse(url)?;
        let (statements, asked) = channel::<String>();
        let (answer, answers) = channel();
        let given_up = Arc::new(AtomicBool::new(false));
        let stopped = given_up.clone();
        let holding = std::thread::spawn(move || {
            let mut interrupted = || stopped.load(Ordering::Relaxed);
            let mut watch = Watch { interrupted: &mut interrupted, on_second: None, next_slice: None };
            let telling = answer.clone();
            let ended = with_one(&target, "auto", &mut watch, async move |session: &mut AnySession| {
                while let Ok(sql) = asked.recv() {
                    // The loop's time stood still meanwhile, and a server's patience counts from it.
                    yield_now().await;
                    if telling.send(answered(session, &sql).await).is_err() {
                        break;
                    }
                }
                Ok(())
            });
            if let Err(error) = ended {
                // Nobody may wait for an answer any more.
                let _ = answer.send(Err(error));
            }
        });
        Ok(Conversation { statements: Some(statements), answers, given_up, holding: Some(holding) })
    }

    /// The rows of one statement, as [`query`](crate::query) gives them. After an interrupt the session is over.
    pub fn ask(&mut self, sql: &str, watch: &mut Watch<'_>) -> Result<Value> {
        // Where the session could not be opened, why is the answer that waits.
        let _ = self.statements.as_ref().map(|statements| statements.send(sql.to_owned()));
        loop {
            match self.answers.recv_timeout(POLL) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::connect("the session is over").hint("open another"));
                }
                Err(RecvTimeoutError::Timeout) if (watch.interrupted)() => {
                    self.given_up.store(true, Ordering::Relaxed);
                    self.statements = None;
                    return finished(None);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.statements = None;
        if let Some(holding) = self.holding.take() {
            // A panic there was told as the end of the session.
            let _ = holding.join();
        }
    }
}

/// Bytes that are no text become hexadecimal; floats that JSON cannot hold become text.
fn json_of(value: &Owned) -> Value {
    match value {
        Owned::Null => Value::Null,
        Owned::Int(n) => json!(n),
        Owned::Float(x) if x.is_finite() => json!(x),
        Owned::Float(x) => json!(x.to_string()),
        Owned::Text(text) => json!(text),
        Owned::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => json!(text),
            Err(_) => json!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        },
    }
}
