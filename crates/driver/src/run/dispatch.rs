//! From names to types: which session a URL means and which workload a name means.

use crate::error::{Error, Result};
use crate::job::{Job, Load};
use crate::run::timed::Timed;
use crate::session::{by_protocol, AnySession, Concrete, Session};
use crate::workload::{with_workload, Circumstances, WithWorkload, Workload};
use std::marker::PhantomData;

/// Something to be done with a session and a workload whose types are known at run time only.
pub(crate) trait Activity {
    type Output;

    fn perform<S: Session, W: Workload>(self, workload: W) -> Result<Self::Output>;
}

/// Finds the types that a job names and does the activity with them. It is compiled for each of their pairs in which a
/// call through a pointer would show, and once for each workload with any session behind a pointer. Statements are timed
/// by such a one.
pub(crate) fn dispatch<A: Activity>(job: &Job, activity: A) -> Result<A::Output> {
    let workload = job.workload.as_str();
    by_protocol!(job.target()?.protocol, S => {
        let by_statement = job.by_statement;
        with_its_workload(job, With { activity, workload, by_statement, session: PhantomData::<S> })
    })
}

/// Finds the workload that a job names and hands it to `task`.
pub(crate) fn with_its_workload<T: WithWorkload>(job: &Job, task: T) -> Result<T::Output> {
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
        folder: job.folder.as_str().into(),
        until_s: job.until_s,
    };
    with_workload(&job.workload, &job.options, &circumstances, task)
}

struct With<'a, S, A> {
    activity: A,
    /// As it was asked for.
    workload: &'a str,
    by_statement: bool,
    session: PhantomData<S>,
}

impl<S: Concrete, A: Activity> WithWorkload for With<'_, S, A> {
    type Output = A::Output;

    fn with<W: Workload>(self, workload: W) -> Result<A::Output> {
        if !S::TAKES_SQL && !W::SENDS_REQUESTS {
            let what = format!("{} writes SQL, and an application takes requests", self.workload);
            return Err(Error::user(what).hint("name a script: it may hold requests"));
        }
        // A constant, so that the other pairs are not compiled.
        if const { S::BRIEF && W::BRIEF } && !self.by_statement {
            return self.activity.perform::<S, W>(workload);
        }
        self.activity.perform::<Timed<AnySession>, W>(workload)
    }
}
