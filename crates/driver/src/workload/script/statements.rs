//! The workload `statements`: each statement of the user's by itself, from a folder of SQL files or from a workload's
//! file, in an order that is drawn for each round.

use super::content::Content;
use super::expression::{is_name_byte, name_end};
use super::frame::{Counter, Frame, Memory};
use super::mistake::Mistakes;
use super::pgbench;
use super::program::{Action, Capture, Mode, Part, Program, Statement, Step, Transaction, Wait};
use super::run::text_with_values;
use super::sql::{self, Piece};
use super::variable::{Variable, CLIENT_ID};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::workload::files::{located, Finder};
use crate::workload::options;
use crate::workload::{StatementText, Typed};
use std::path::Path;
use std::sync::Arc;

pub const NAME: &str = "statements";
pub const FOLDER: Typed<&'static str> =
    Typed::text("folder", "", "a folder of .sql files, with one statement in each").for_the_run();
pub const ROUNDS: Typed<i64> = Typed::int(
    "rounds",
    5,
    1,
    10_000,
    "how often each statement is sent in a trial, after one that warms up",
)
.for_the_run();
pub const REPLACED: Typed<&'static str> =
    Typed::text("replaced", "", "files in the place of statements, as name=file,name=file").for_the_run();
pub const ONLY: Typed<&'static str> =
    Typed::text("only", "", "the one statement that is sent; all without it").for_the_run();
/// Whoever starts the server empties the caches.
pub const CACHE: Typed<&'static str> = Typed::choice(
    "cache",
    "warm",
    &["warm", "cold"],
    "cold: each statement is timed once more in a trial, on a server that was just started",
)
.for_the_run();
/// Of the random numbers that values are drawn from where a statement is shown.
const SHOWN: u64 = 0x5348_4F57 << 32;
const READS: [&str; 9] =
    ["SELECT", "VALUES", "TABLE", "WITH", "SHOW", "PRAGMA", "DESCRIBE", "DESC", "EXPLAIN"];
const WRITES: [&str; 6] = ["INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "CALL"];

/// The SQL files of a folder, by their names.
fn files_of(folder: &str) -> Result<Vec<String>> {
    let hint = "give the path of a folder with a .sql file for each statement";
    let entries = std::fs::read_dir(folder)
        .map_err(|error| Error::user(format!("{folder} cannot be read: {error}")).hint(hint))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<String> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "sql"))
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(Error::user(format!("{folder} holds no .sql file")).hint(hint));
    }
    Ok(files)
}

/// The name of the statement that a file holds.
fn stem(file: &str) -> &str {
    Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or(file)
}

/// What a folder's files hold, some of them replaced by others: (name, file).
pub fn content_of_folder(
    folder: &str,
    replaced: &[(String, String)],
    setup: Option<(String, String)>,
    given: &[(String, String)],
    mode: Mode,
) -> Result<Content> {
    let names = files_of(folder)?;
    if let Some((name, _)) =
        replaced.iter().find(|(name, _)| !names.iter().any(|file| stem(file) == name.as_str()))
    {
        let known: Vec<&str> = names.iter().map(|file| stem(file)).collect();
        return Err(Error::user(format!("{folder} holds no {name}.sql, which another file is to replace"))
            .hint(format!("there are: {}", known.join(", "))));
    }
    let mut files = Vec::new();
    for name in &names {
        let other = replaced.iter().find(|(of, _)| of.as_str() == stem(name)).map(|(_, other)| other);
        let place = other.unwrap_or(name);
        files.push((place.clone(), super::read(place)?, 1));
    }
    let mut content = pgbench::content(&files, setup, given, mode)?;
    for (transaction, name) in content.program.transactions.iter_mut().zip(&names) {
        stem(name).clone_into(&mut transaction.name);
    }
    each_alone(content, true)
}

/// The same with one statement alone; with all where none is named.
pub fn only(mut content: Content, name: &str) -> Result<Content> {
    let transactions = &mut content.program.transactions;
    if name.is_empty() {
        return Ok(content);
    }
    let known: Vec<String> = transactions.iter().map(|transaction| transaction.name.clone()).collect();
    transactions.retain(|transaction| transaction.name == name);
    match transactions.is_empty() {
        true => Err(options::unknown("statement", name, known.iter().map(String::as_str))),
        false => Ok(content),
    }
}

/// The same with a transaction for each statement, of which one that writes is rolled back. What is set before it stays.
/// Where they are `of_files`, a file holds one.
pub fn each_alone(mut content: Content, of_files: bool) -> Result<Content> {
    let mut mistakes = Mistakes::default();
    let transactions = std::mem::take(&mut content.program.transactions);
    for transaction in transactions {
        let alone = split(transaction, &content.program, of_files, &mut mistakes);
        content.program.transactions.extend(alone);
    }
    // They are of transactions that commit.
    content.invariants.clear();
    mistakes.or(content)
}

fn split(
    transaction: Transaction,
    program: &Program,
    of_files: bool,
    mistakes: &mut Mistakes,
) -> Vec<Transaction> {
    let executed: Vec<usize> = (0..transaction.steps.len())
        .filter(|step| matches!(transaction.steps[*step].action, Action::Execute(_)))
        .collect();
    let place = transaction.steps.first().map_or_else(String::new, |step| step.place.clone());
    let branches = transaction
        .steps
        .iter()
        .any(|step| matches!(step.action, Action::Jump(_) | Action::JumpUnless { .. }));
    if branches && reads_alone(&executed, &transaction, program) {
        // One statement in several forms, of which each sending draws one.
        return vec![Transaction { weight: 1, keying: Wait::None, thinking: Wait::None, ..transaction }];
    }
    if executed.is_empty() {
        mistakes.add(place, format!("{} holds no statement", transaction.name), "write one, or take it out");
        return Vec::new();
    }
    if executed.len() > 1 && of_files {
        let told =
            format!("{} holds {} statements, and one is timed by itself", transaction.name, executed.len());
        let hint = "give each a file of its own; what prepares a session belongs into connect_sql";
        mistakes.add(place, told, hint);
        return Vec::new();
    }
    let alone = executed.len() == 1;
    let each = executed.into_iter().enumerate().filter_map(|(number, step)| {
        let name = match alone {
            true => transaction.name.clone(),
            false => format!("{}.{}", transaction.name, number + 1),
        };
        let steps = steps_of(&transaction, step, program, mistakes)?;
        Some(Transaction {
            name,
            weight: 1,
            keying: Wait::None,
            thinking: Wait::None,
            steps,
            restored: transaction.restored.clone(),
        })
    });
    each.collect()
}

/// Whether all of some steps read, and no answer becomes a variable.
fn reads_alone(executed: &[usize], transaction: &Transaction, program: &Program) -> bool {
    executed.iter().all(|step| match transaction.steps[*step].action {
        Action::Execute(number) => {
            let statement = &program.statements[number];
            statement.capture == Capture::Nothing && done_by(statement) == Does::Read
        }
        _ => false,
    })
}

/// What sets the values of a statement, and the statement.
fn steps_of(
    transaction: &Transaction,
    step: usize,
    program: &Program,
    mistakes: &mut Mistakes,
) -> Option<Vec<Step>> {
    let Action::Execute(number) = transaction.steps[step].action else { return None };
    let (statement, place) = (&program.statements[number], transaction.steps[step].place.clone());
    let within = transaction.steps[..step].iter().any(|before| match &before.action {
        Action::Jump(_) | Action::JumpUnless { .. } => true,
        Action::Execute(number) => program.statements[*number].capture != Capture::Nothing,
        _ => false,
    });
    if within || statement.capture != Capture::Nothing {
        mistakes.add(
            place,
            format!("{} depends on what another statement answers, or on a branch", transaction.name),
            "take it out of these statements, and measure it with the workload script",
        );
        return None;
    }
    let does = done_by(statement);
    if does == Does::Other {
        mistakes.add(
            place,
            format!("{} neither reads nor changes rows", transaction.name),
            "take it out; what prepares a session belongs into connect_sql",
        );
        return None;
    }
    let set = transaction.steps[..step].iter().filter(|before| matches!(before.action, Action::Set { .. }));
    let mut steps: Vec<Step> = set.cloned().collect();
    let at = |action| Step { place: place.clone(), action };
    match does {
        Does::Write => steps.extend([at(Action::Begin), at(Action::Execute(number)), at(Action::Rollback)]),
        _ => steps.push(at(Action::Execute(number))),
    }
    Some(steps)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Read,
    Write,
    Other,
}

fn done_by(statement: &Statement) -> Does {
    done(&text_of(statement))
}

fn done(text: &str) -> Does {
    let first = sql::first_word(&[Piece::Text(text.to_owned())]);
    match first.as_str() {
        "WITH" if words(text).any(|(_, word)| WRITES.iter().any(|one| one.eq_ignore_ascii_case(word))) => {
            Does::Write
        }
        word if READS.contains(&word) => Does::Read,
        word if WRITES.contains(&word) => Does::Write,
        _ => Does::Other,
    }
}

/// A statement's text as far as no value stands in it.
fn text_of(statement: &Statement) -> String {
    let parts = statement.parts.iter().map(|part| match part {
        Part::Text(text) => text.as_str(),
        _ => "?",
    });
    parts.collect()
}

/// The words of a statement that stand outside of quotes, each with how many brackets are open.
fn words(sql: &str) -> impl Iterator<Item = (usize, &str)> {
    let (bytes, mut at, mut depth) = (sql.as_bytes(), 0, 0usize);
    std::iter::from_fn(move || {
        while at < bytes.len() {
            match bytes[at] {
                quote @ (b'\'' | b'"' | b'`') => {
                    let length = bytes[at + 1..].iter().position(|byte| *byte == quote);
                    at = length.map_or(bytes.len(), |length| at + length + 2);
                    continue;
                }
                b'(' => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                byte if is_name_byte(byte) => {
                    let from = at;
                    at = name_end(bytes, at).max(from + 1);
                    return Some((depth, &sql[from..at]));
                }
                _ => {}
            }
            at += 1;
        }
        None
    })
}

/// Whether a statement says in which order its rows come.
fn is_ordered(sql: &str) -> bool {
    let mut after_order = false;
    words(sql).any(|(depth, word)| {
        let ends = depth == 0 && after_order && word.eq_ignore_ascii_case("BY");
        after_order = depth == 0 && word.eq_ignore_ascii_case("ORDER");
        ends
    })
}

/// The table whose rows a statement changes, as it is written; `None` where its words do not say it.
fn changed_table(sql: &str) -> Option<&str> {
    let mut rest = sql.split_whitespace();
    let first = rest.next()?.to_ascii_uppercase();
    let before = match first.as_str() {
        "INSERT" | "REPLACE" | "MERGE" => Some("INTO"),
        "DELETE" => Some("FROM"),
        "UPDATE" => None,
        _ => return None,
    };
    if let Some(before) = before {
        rest.by_ref().find(|word| word.eq_ignore_ascii_case(before))?;
    }
    let table =
        rest.find(|word| !["ONLY", "LOW_PRIORITY", "IGNORE"].contains(&word.to_ascii_uppercase().as_str()))?;
    table.split('(').next().filter(|name| !name.is_empty())
}

/// Each statement as it is sent with values that are drawn from a seed.
pub fn texts(content: &Content, started: &[(usize, Variable)], seed: u64) -> Result<Vec<StatementText>> {
    let program = &content.program;
    let mut all = Vec::new();
    for (kind, transaction) in program.transactions.iter().enumerate() {
        let (mut frame, mut random) = (framed(content, started), Random::new(seed, SHOWN + kind as u64));
        let mut next = 0;
        while let Some(step) = transaction.steps.get(next) {
            next += 1;
            match &step.action {
                Action::Set { slot, expression } => frame
                    .assign(*slot, expression, &program.names, &mut random)
                    .map_err(|error| error.at(&step.place))?,
                Action::JumpUnless { condition, to } => {
                    let holds = frame
                        .truth(condition, &program.names, &mut random)
                        .map_err(|error| error.at(&step.place))?;
                    next = if holds { next } else { *to };
                }
                Action::Jump(to) => next = *to,
                Action::Execute(number) => {
                    let sql = text_with_values(program, &program.statements[*number], &frame)
                        .map_err(|error| error.at(&step.place))?;
                    all.push(StatementText {
                        name: transaction.name.clone(),
                        writes: done(&sql) == Does::Write,
                        is_ordered: is_ordered(&sql),
                        table: changed_table(&sql).map(str::to_owned),
                        sql,
                    });
                }
                _ => {}
            }
        }
    }
    Ok(all)
}

fn framed(content: &Content, started: &[(usize, Variable)]) -> Frame {
    let program = &content.program;
    let mut frame = content.frame(program.names.len(), program.memories);
    for (slot, value) in started {
        frame.variables[*slot].copy_from(value);
    }
    frame.variables[CLIENT_ID] = Variable::int(0);
    for memory in &program.sequences {
        frame.memories[*memory] = Memory::Counter(Arc::new(Counter::new(0, 1)));
    }
    frame
}

/// The files of the options `folder`, `setup` and `replaced`.
pub fn find_files(folder: &str, setup: &str, replaced: &str, finder: &mut Finder<'_>) -> Result<()> {
    finder.option = "folder";
    if !folder.is_empty() {
        for path in files_of(&located(finder.folder(), folder))? {
            let name = Path::new(&path).file_name().unwrap_or_default().to_string_lossy().into_owned();
            finder.read(&located(Path::new(folder), &name), String::new());
        }
    }
    finder.option = "replaced";
    for (_, file) in super::assignments(replaced)? {
        finder.read(&file, String::new());
    }
    finder.option = "setup";
    if !setup.is_empty() {
        finder.read(setup, String::new());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_one_outside_of_all_brackets() {
        for (sql, ordered) in [
            ("SELECT a FROM t ORDER  BY a", true),
            ("SELECT rank() OVER (ORDER BY a) FROM t", false),
            ("SELECT * FROM (SELECT a FROM t ORDER BY a) x", false),
            ("SELECT ' ORDER BY ' FROM t", false),
            ("SELECT a FROM t UNION SELECT b FROM u order by 1 LIMIT 3", true),
        ] {
            assert_eq!(is_ordered(sql), ordered, "{sql}");
        }
    }

    #[test]
    fn what_is_changed_is_told_by_its_words() {
        for (sql, does, table) in [
            ("UPDATE t SET a = 1", Does::Write, Some("t")),
            ("insert into s.t(a) values (1)", Does::Write, Some("s.t")),
            ("DELETE FROM `t` WHERE a = 1", Does::Write, Some("`t`")),
            ("WITH x AS (SELECT 1) SELECT * FROM x", Does::Read, None),
            ("WITH x AS (SELECT 1) DELETE FROM t", Does::Write, None),
            ("CREATE TABLE t (a INT)", Does::Other, None),
        ] {
            assert_eq!((done(sql), changed_table(sql)), (does, table), "{sql}");
        }
    }
}
