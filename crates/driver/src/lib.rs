//! Dyno's load driver: prepares, runs, checks and cleans up a workload against a database server, and says what it
//! cost. It knows nothing of Python, of studies or of Dyno's files. What goes in and comes out is JSON.

// Sessions and workloads live on one thread each; their futures need not be `Send`, which is all the lint is about.
#![allow(async_fn_in_trait)]

#[cfg(test)]
mod border;
pub mod clock;
mod count;
mod data;
pub mod error;
mod explain;
pub mod io;
pub mod job;
pub mod random;
mod run;
pub mod session;
mod watch;
pub mod workload;

pub use data::Conversation;
pub use error::{Error, Kind, Result};
pub use watch::Watch;

use count::portion::{tally_of, Portion};
use count::tally::Tally;
use count::total::Total;
use job::Job;
use run::dispatch::{dispatch, with_its_workload, Activity};
use serde_json::{json, Value};
use session::{Protocol, Session, Target};
use std::path::Path;
use workload::{Acknowledged, Circumstances, Reviewed, WithWorkload, Workload};

/// Makes the workload's tables and loads its rows: {"rows", "bytes", "duration_s", "sessions"}.
pub fn prepare(job: &str, watch: &mut Watch<'_>) -> Result<Value> {
    struct Prepare<'a, 'b>(&'a Job, &'a mut Watch<'b>);
    impl WithWorkload for Prepare<'_, '_> {
        type Output = Value;

        fn with<W: Workload>(self, workload: W) -> Result<Value> {
            self.1.telling(|| workload.interrupt(), |watch| data::prepare(self.0, &workload, watch))
        }
    }
    let job = Job::parse(job)?;
    with_its_workload(&job, Prepare(&job, watch))
}

/// Makes the workload's tables without their rows.
pub fn create(job: &str, watch: &mut Watch<'_>) -> Result<()> {
    struct Create<'a, 'b>(&'a Job, &'a mut Watch<'b>);
    impl WithWorkload for Create<'_, '_> {
        type Output = ();

        fn with<W: Workload>(self, workload: W) -> Result<()> {
            data::create(self.0, &workload, self.1)
        }
    }
    let job = Job::parse(job)?;
    with_its_workload(&job, Create(&job, watch))
}

/// Has a server that holds the workload's tables prepare the user's statements: {"asked", "left_out", "refused"}, of
/// which the last is a list of {"place", "message", "hint"}.
pub fn examine(job: &str, watch: &mut Watch<'_>) -> Result<Value> {
    struct Examine<'a, 'b>(&'a Job, &'a mut Watch<'b>);
    impl WithWorkload for Examine<'_, '_> {
        type Output = Value;

        fn with<W: Workload>(self, workload: W) -> Result<Value> {
            data::examine(self.0, &workload, self.1)
        }
    }
    let job = Job::parse(job)?;
    with_its_workload(&job, Examine(&job, watch))
}

/// What can be known of a workload with these options without a server: the `mistakes` in its files, as `examine` gives
/// them, and the SQL in them that is the user's own, `own_sql`. Relative paths count from `folder`.
pub fn review(workload: &str, options: &str, folder: &str) -> Result<Value> {
    struct Review;
    impl WithWorkload for Review {
        type Output = Reviewed;

        fn with<W: Workload>(self, workload: W) -> Result<Reviewed> {
            Ok(workload.review())
        }
    }
    let circumstances = Circumstances { folder: folder.into(), ..Circumstances::default() };
    let reviewed = workload::with_workload(workload, &parsed(options)?, &circumstances, Review);
    let found = |error: crate::Error| Reviewed { mistakes: error.mistakes(), ..Reviewed::default() };
    Ok(json!(reviewed.unwrap_or_else(found)))
}

fn parsed(options: &str) -> Result<serde_json::Map<String, Value>> {
    serde_json::from_str(options).map_err(|error| Error::user(format!("the options: {error}")))
}

/// Runs the workload; returns the tally, or where the job has a share of a load what `merge` takes.
pub fn run(job: &str, watch: &mut Watch<'_>) -> Result<Value> {
    struct Run<'a, 'b>(&'a Job, &'a mut Watch<'b>);
    impl Activity for Run<'_, '_> {
        type Output = Value;

        fn perform<S: Session, W: Workload>(self, workload: W) -> Result<Value> {
            let mut job = self.0.clone();
            if !W::WARMS_UP {
                // A workload with phases of its own is one whole.
                (job.warmup_s, job.slices) = (0.0, None);
            }
            let start = data::inspect(&job, &workload, self.1)?;
            let total =
                self.1.telling(|| workload.interrupt(), |watch| run::run::<S, W>(&job, &workload, watch))?;
            if job.share.is_some() {
                let saturated = total.saturated.clone().or_else(|| workload.hindrance());
                return Ok(json!(Portion { total: Total { saturated, ..total }, start }));
            }
            let tally = total.tally(workload.phases())?;
            let saturated = tally.saturated.clone().or_else(|| workload.hindrance());
            Ok(json!(Tally { start, saturated, ..tally }))
        }
    }
    let job = Job::parse(job)?;
    dispatch(&job, Run(&job, watch))
}

/// The tally of a load from the replies to its runs on several hosts, a list: each job had a `share` of it.
pub fn merge(portions: &str) -> Result<Value> {
    let portions = serde_json::from_str(portions)
        .map_err(|error| Error::internal(format!("what load hosts counted cannot be read: {error}")))?;
    Ok(json!(tally_of(portions)?))
}

/// Compares the data with the workload's invariants: a list of {"name", "holds", "detail"}. `acknowledged` is what
/// clients were told in the runs since the data was loaded, or since the first of them began: {"acknowledged", "unknown",
/// "by_transaction", "start"}.
pub fn check(job: &str, acknowledged: Option<&str>, watch: &mut Watch<'_>) -> Result<Value> {
    struct Check<'a, 'b>(&'a Job, Option<Acknowledged>, &'a mut Watch<'b>);
    impl WithWorkload for Check<'_, '_> {
        type Output = Value;

        fn with<W: Workload>(self, workload: W) -> Result<Value> {
            data::check(self.0, &workload, self.1.as_ref(), self.2)
        }
    }
    let job = Job::parse(job)?;
    let acknowledged = acknowledged.map(Acknowledged::parse).transpose()?;
    with_its_workload(&job, Check(&job, acknowledged, watch))
}

/// Asks the engine how it would execute the statements of the workload's transactions: {"statements": [{"transaction",
/// "text", "plan", "why_not"}], "unreached": {transaction: why}}. No write is executed.
pub fn explain(job: &str, watch: &mut Watch<'_>) -> Result<Value> {
    struct Explain<'a, 'b>(&'a Job, &'a mut Watch<'b>);
    impl WithWorkload for Explain<'_, '_> {
        type Output = Value;

        fn with<W: Workload>(self, workload: W) -> Result<Value> {
            // What a run asks before its first client.
            data::inspect(self.0, &workload, self.1)?;
            self.1.telling(|| workload.interrupt(), |watch| explain::explain(self.0, &workload, watch))
        }
    }
    let job = Job::parse(job)?;
    with_its_workload(&job, Explain(&job, watch))
}

/// What the server answers to each of the user's statements, sent twice: {"statements": [{"name", "sql", "is_ordered",
/// "runs"}]}. What changes rows is rolled back.
pub fn answers(job: &str, watch: &mut Watch<'_>) -> Result<Value> {
    struct Answers<'a, 'b>(&'a Job, &'a mut Watch<'b>);
    impl WithWorkload for Answers<'_, '_> {
        type Output = Value;

        fn with<W: Workload>(self, workload: W) -> Result<Value> {
            data::answers(self.0, &workload, self.1)
        }
    }
    let job = Job::parse(job)?;
    with_its_workload(&job, Answers(&job, watch))
}

/// Drops what `prepare` made.
pub fn cleanup(job: &str, watch: &mut Watch<'_>) -> Result<()> {
    struct Cleanup<'a, 'b>(&'a Job, &'a mut Watch<'b>);
    impl WithWorkload for Cleanup<'_, '_> {
        type Output = ();

        fn with<W: Workload>(self, workload: W) -> Result<()> {
            data::cleanup(self.0, &workload, self.1)
        }
    }
    let job = Job::parse(job)?;
    with_its_workload(&job, Cleanup(&job, watch))
}

/// Asks the server of `url` one question: {"columns": [...], "rows": [[...]], "affected": n}.
pub fn query(url: &str, sql: &str, watch: &mut Watch<'_>) -> Result<Value> {
    data::query(&Target::parse(url)?, sql, watch)
}

/// Whether clients of a workload with these options wait by themselves between transactions: for keying, for thinking.
/// Relative paths count from `folder`.
pub fn pauses(workload: &str, options: &str, folder: &str) -> Result<bool> {
    struct Pauses;
    impl WithWorkload for Pauses {
        type Output = bool;

        fn with<W: Workload>(self, workload: W) -> Result<bool> {
            Ok(run::pauses(&workload))
        }
    }
    let circumstances = Circumstances { folder: folder.into(), ..Circumstances::default() };
    workload::with_workload(workload, &parsed(options)?, &circumstances, Pauses)
}

/// The files that a workload with these options reads, those included that others name: a list of [`FileRead`]. Relative
/// paths count from `folder`.
///
/// [`FileRead`]: workload::FileRead
pub fn files(workload: &str, options: &str, folder: &str) -> Result<Value> {
    Ok(json!(workload::files(workload, &parsed(options)?, Path::new(folder))?))
}

/// Every workload with its options, transactions and whether it only reads.
pub fn workloads() -> Value {
    json!(workload::offers())
}

/// What URLs may have behind their `?`: [names, of which products, what it is] of each row of the documentation's table.
pub fn url_parameters() -> Value {
    json!(session::URL_PARAMETERS)
}

/// What this build of the driver can do on this machine.
pub fn capabilities() -> Value {
    let io_uring = io::io_uring_works();
    json!({
        "io_uring": {"available": io_uring.is_ok(), "why": io_uring.err().unwrap_or_default()},
        "protocols": Protocol::ALL.map(Protocol::as_str),
        "version": env!("CARGO_PKG_VERSION"),
    })
}
