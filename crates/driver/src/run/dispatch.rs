//! From names to types: which session a URL means and which workload a name means.

use crate::data;
use crate::error::Result;
use crate::job::{Job, Load};
use crate::session::firebird::Firebird;
use crate::session::http::Http;
use crate::session::mysql::Mysql;
use crate::session::postgresql::Postgresql;
use crate::session::sqlite::Sqlite;
use crate::session::{Protocol, Session, Target};
use crate::watch::Watch;
use crate::workload::{with_workload, Circumstances, WithWorkload, Workload};
use serde_json::Value;
use std::marker::PhantomData;

/// Something to be done with a session and a workload whose types are known at run time only.
pub(crate) trait Activity {
    type Output;

    fn perform<S: Session, W: Workload>(self, workload: W) -> Result<Self::Output>;
}

/// Finds the types that a job names and does the activity with them.
pub(crate) fn dispatch<A: Activity>(job: &Job, activity: A) -> Result<A::Output> {
    match job.target()?.protocol {
        Protocol::Mysql => with_session::<Mysql, A>(job, activity),
        Protocol::Postgresql => with_session::<Postgresql, A>(job, activity),
        Protocol::Firebird => with_session::<Firebird, A>(job, activity),
        Protocol::Sqlite => with_session::<Sqlite, A>(job, activity),
        Protocol::Http => with_session::<Http, A>(job, activity),
    }
}

/// Asks a question over the session that a URL means.
pub(crate) fn query(url: &str, sql: &str, watch: &mut Watch<'_>) -> Result<Value> {
    let target = Target::parse(url)?;
    match target.protocol {
        Protocol::Mysql => data::query::<Mysql>(&target, sql, watch),
        Protocol::Postgresql => data::query::<Postgresql>(&target, sql, watch),
        Protocol::Firebird => data::query::<Firebird>(&target, sql, watch),
        Protocol::Sqlite => data::query::<Sqlite>(&target, sql, watch),
        Protocol::Http => data::query::<Http>(&target, sql, watch),
    }
}

fn with_session<S: Session, A: Activity>(job: &Job, activity: A) -> Result<A::Output> {
    let circumstances = Circumstances {
        target: Some(job.target()?),
        clients: job.clients,
        seed: job.seed,
        duration_s: job.duration_s,
        operations: job.operations,
        rate_per_s: match job.load {
            Load::Open { rate_per_s, .. } => rate_per_s,
            Load::Closed { .. } => 0.0,
        },
    };
    with_workload(&job.workload, &job.options, &circumstances, With::<S, A>(activity, PhantomData))
}

struct With<S, A>(A, PhantomData<S>);

impl<S: Session, A: Activity> WithWorkload for With<S, A> {
    type Output = A::Output;

    fn with<W: Workload>(self, workload: W) -> Result<A::Output> {
        self.0.perform::<S, W>(workload)
    }
}
