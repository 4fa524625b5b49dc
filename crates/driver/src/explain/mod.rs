//! Which plans the engine has for the statements of a workload's transactions. Each transaction is drawn a few times on
//! one session, which asks for the plan of each kind of statement and executes no write.

mod kinds;
mod session;
mod verb;

use crate::clock;
use crate::data::{finished, overseen};
use crate::error::{Error, Fate, Result};
use crate::io::{block_on, within, Backend};
use crate::job::Job;
use crate::random::Random;
use crate::session::{end_what_was_left, open, AnySession, Session, Target};
use crate::watch::Watch;
use crate::workload::{advised, Place, Workload};
use serde_json::{json, Value};
use session::Explaining;
use std::time::Duration;

/// How often a transaction is drawn at most: its branches may ask other statements.
const DRAWS_MAX: u32 = 10;
/// A transaction that has shown nothing else in so many draws is drawn no more.
const DRAWS_IDLE: u32 = 4;
/// A plan takes a server milliseconds. One that is stuck must not hold the trial up.
const PATIENCE: Duration = Duration::from_secs(20);
/// Of the random numbers, so that they are none that the load draws.
const STREAM: u64 = 0x504C_414E << 32;

pub(crate) fn explain<W: Workload>(job: &Job, workload: &W, watch: &mut Watch<'_>) -> Result<Value> {
    if !W::WARMS_UP {
        return Err(Error::user(format!(
            "{} is one whole, of which no transaction can be drawn",
            job.workload
        )));
    }
    let target = job.target()?;
    let backend = match AnySession::is_blocking(target.protocol) {
        true => Backend::Blocking,
        false => Backend::choose(&job.backend)?,
    };
    let draw = |interrupted: &mut dyn FnMut() -> bool| {
        kinds::begin(job.actual_rows);
        let whole = async { within(PATIENCE, draw_all(job, &target, workload)).await };
        let drawn = block_on(backend, whole, interrupted)?;
        let kinds = kinds::take();
        Ok(drawn.map(|drawn| match drawn {
            Some(Err(error)) => Err(advised(error, &job.workload)),
            in_time => Ok((in_time.is_some(), kinds)),
        }))
    };
    let (in_time, kinds) = match backend {
        Backend::Blocking => overseen(&target, watch, || draw(&mut || false))?,
        _ => {
            let drawn = draw(watch.interrupted)?;
            end_what_was_left(&target);
            finished(drawn)?
        }
    };
    let late = (!in_time).then(|| format!("the plans took more than {} s", PATIENCE.as_secs()));
    Ok(json!({"statements": kinds.found, "unreached": kinds.unreached(late)}))
}

async fn draw_all<W: Workload>(job: &Job, target: &Target, workload: &W) -> Result<()> {
    let mut session = open::<Explaining>(target).await?;
    let place = Place { client: 0, clients: job.clients, cut: None };
    let mut client = workload.client(&mut session, place).await?;
    // An embedded engine's calls cannot be given up, so the time is looked at between draws as well.
    let until_ns = clock::now_ns().saturating_add(PATIENCE.as_nanos() as u64);
    for (kind, name) in workload.transactions().into_iter().enumerate() {
        kinds::transaction(&name);
        let mut random = Random::new(job.seed, STREAM + kind as u64);
        let mut idle = 0;
        for _ in 0..DRAWS_MAX {
            if idle == DRAWS_IDLE || clock::now_ns() > until_ns {
                break;
            }
            let known = kinds::count();
            let outcome = workload.perform(kind, &mut client, &mut session, &mut random).await;
            session.rollback().await?;
            match outcome {
                Ok(_) => kinds::reached_end(),
                Err(error) if error.fate() == Fate::Lost => return Err(error),
                Err(error) => kinds::failed(&error),
            }
            idle = if kinds::count() == known { idle + 1 } else { 0 };
        }
    }
    session.close().await;
    Ok(())
}
