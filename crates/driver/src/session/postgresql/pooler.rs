//! Poolers that give each transaction another session of the server. What one of its sessions is told, or prepares, is
//! then not there for the next transaction, and is there for another client's.

use super::message::UNNAMED;
use super::{hosts, Postgresql, IDLE};
use crate::error::{Code, Error, Fate, Result};
use crate::io::{random_bytes, within};
use crate::session::{First, Owned, Session, Statements, Target};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A pooler whose sessions are all taken lets a second client wait. It then shares none of them.
const PATIENCE: Duration = Duration::from_secs(1);
/// Whoever is the next to ask gets the session that was given back last, unless others ask at the same time.
const ROUNDS: usize = 8;
const PROTOCOL_VIOLATION: &str = "08P01";

impl Postgresql {
    /// Refuses what would be lost in a pooler. The first session of a job looks, once: it opens another one, and both
    /// ask in turn which session of the server they have.
    pub(super) async fn look_for_pooler(&mut self) -> Result<()> {
        if self.state != IDLE {
            return Ok(());
        }
        let Some(target) = self.unlooked.take() else { return Ok(()) };
        // Apart, because one client of a run looks, and all have the size of the future.
        Box::pin(self.look(&target)).await
    }

    async fn look(&mut self, target: &Target) -> Result<()> {
        if target.shared.looked_for_pooler.swap(true, Ordering::Relaxed) || self.is_direct().await? {
            return Ok(());
        }
        let Some(Ok(mut other)) = within(PATIENCE, hosts::enter(target)).await else { return Ok(()) };
        let outcome = self.refuse_with(&mut other, target).await;
        other.close().await;
        outcome
    }

    async fn refuse_with(&mut self, other: &mut Postgresql, target: &Target) -> Result<()> {
        if !self.shares_with(other).await? {
            return Ok(());
        }
        if let Some(sql) = target.opening.first() {
            return Err(Error::user(format!(
                "a pooler gives each transaction another session of the server, so {sql:?} at the start of a \
                 connection holds for some transactions only"
            ))
            .hint(
                "have the pooler keep a session for each client (PgBouncer: pool_mode = session), or give the setting \
                 to the account: ALTER ROLE ... SET",
            ));
        }
        if target.statements()? == Statements::Prepared && self.lends_statements(other).await? {
            return Err(Error::user(
                "a pooler gives each transaction another session of the server, and leaves prepared statements behind",
            )
            .hint(UNNAMED));
        }
        Ok(())
    }

    /// Whether the server knows this connection by the number that came with it. A pooler gives one of its own.
    async fn is_direct(&mut self) -> Result<bool> {
        let Some(told) = self.told_number else { return Ok(true) };
        Ok(self.server_number().await?.is_none_or(|number| number == i64::from(told)))
    }

    /// The number of the server's session that answers; `None` where the server has no such function.
    async fn server_number(&mut self) -> Result<Option<i64>> {
        let mut number = First::default();
        match self.text("SELECT pg_catalog.pg_backend_pid()", &mut number).await {
            Ok(_) => Ok(match number.0 {
                Some(Owned::Int(number)) => Some(number),
                _ => None,
            }),
            Err(error) if error.fate() == Fate::Lost => Err(error),
            Err(_) => Ok(None),
        }
    }

    async fn shares_with(&mut self, other: &mut Postgresql) -> Result<bool> {
        for _ in 0..ROUNDS {
            let ours = self.server_number().await?;
            if ours.is_some() && ours == other.server_number().await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether another client executes what this one has prepared, and so not what it has prepared itself.
    async fn lends_statements(&mut self, other: &mut Postgresql) -> Result<bool> {
        let name: String = random_bytes::<8>()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let prepared = self.parse(&format!("dyno_{name}"), "SELECT 1").await?;
        let statement = other.prepared.add(prepared);
        let mut lent = false;
        for _ in 0..ROUNDS {
            match other.execute(statement, &[], &mut ()).await {
                Ok(_) => lent = true,
                // PgBouncer since 1.21 knows which client prepared what, and ends a connection that asks for another's.
                Err(error) if error.code() == Code::state(PROTOCOL_VIOLATION) => return Ok(false),
                Err(error) if error.fate() == Fate::Lost => return Err(error),
                Err(_) => {}
            }
            if lent {
                other.deallocate(statement).await?;
                break;
            }
            self.server_number().await?;
        }
        Ok(lent)
    }
}
