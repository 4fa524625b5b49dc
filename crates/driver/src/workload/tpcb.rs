//! TPC-B as pgbench runs it: its tables, its columns, its built-in scripts (`-N` and `-S` as options), so that a
//! database loaded by pgbench runs under this driver and the reverse.

use super::{
    other_shape, row_missing, About, Acknowledged, CheckAgainst, Invariant, Options, Outcome, Page, Place,
    Start, Typed, Workload,
};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::session::{whole_number, Session, Statement, Value};

const TELLERS_PER_BRANCH: i64 = 10;
const ACCOUNTS_PER_BRANCH: i64 = 100_000;
/// Small enough that two connections share the load of scale 1 evenly.
const ACCOUNTS_PER_PART: i64 = 10_000;
const TABLES: [&str; 4] = ["pgbench_history", "pgbench_accounts", "pgbench_tellers", "pgbench_branches"];

pub struct TpcB {
    scale: i64,
    script: Script,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Full,
    /// Without teller and branch: no row that all clients fight for.
    SimpleUpdate,
    SelectOnly,
}

/// The statements of one client; those that its script does not use are not prepared.
pub struct Client {
    update_account: Option<Statement>,
    select_account: Statement,
    update_teller: Option<Statement>,
    update_branch: Option<Statement>,
    insert_history: Option<Statement>,
    page: Page,
}

const SCALE: Typed<i64> =
    Typed::int("scale", 1, 1, 20_000, "branches; each has 10 tellers and 100,000 accounts");
const SIMPLE_UPDATE: Typed<bool> =
    Typed::flag("simple_update", false, "no update of teller and branch (pgbench -N)").for_the_run();
const SELECT_ONLY: Typed<bool> =
    Typed::flag("select_only", false, "only the SELECT of the account (pgbench -S)")
        .for_the_run()
        .that_only_reads();

impl Workload for TpcB {
    type Client = Client;

    const OFFERS: &'static [About] = &[About {
        name: "tpcb",
        description:
            "TPC-B as pgbench runs it: an account, a teller and a branch are updated, and a history written",
        options: &[SCALE.spec(), SIMPLE_UPDATE.spec(), SELECT_ONLY.spec()],
        transactions: &["tpcb"],
        read_only: false,
        keeps_ledger: true,
    }];

    const BRIEF: bool = true;

    fn new(_about: &'static About, options: &Options) -> Result<Self> {
        let script = match (options.flag(SIMPLE_UPDATE), options.flag(SELECT_ONLY)) {
            (false, false) => Script::Full,
            (true, false) => Script::SimpleUpdate,
            (false, true) => Script::SelectOnly,
            (true, true) => {
                return Err(Error::user("tpcb cannot be both simple_update and select_only")
                    .hint("set one of the two options"))
            }
        };
        Ok(TpcB { scale: options.int(SCALE), script })
    }

    fn transactions(&self) -> Vec<String> {
        vec!["tpcb".to_owned()]
    }

    async fn create<S: Session>(&self, session: &mut S) -> Result<()> {
        let dialect = session.dialect();
        let key = if dialect.clustered { " PRIMARY KEY" } else { "" };
        let (suffix, timestamp) = (dialect.table_suffix, dialect.timestamp);
        self.cleanup(session).await?;
        for sql in [
            format!(
                "CREATE TABLE pgbench_history (tid INTEGER, bid INTEGER, aid INTEGER, delta INTEGER, \
                 mtime {timestamp}, filler CHAR(22)){suffix}"
            ),
            format!(
                "CREATE TABLE pgbench_accounts (aid INTEGER NOT NULL{key}, bid INTEGER, abalance INTEGER, \
                 filler CHAR(84)){suffix}"
            ),
            format!(
                "CREATE TABLE pgbench_tellers (tid INTEGER NOT NULL{key}, bid INTEGER, tbalance INTEGER, \
                 filler CHAR(84)){suffix}"
            ),
            format!(
                "CREATE TABLE pgbench_branches (bid INTEGER NOT NULL{key}, bbalance INTEGER, filler CHAR(88)){suffix}"
            ),
        ] {
            session.text(&sql, &mut ()).await?;
        }
        Ok(())
    }

    fn load_parts(&self) -> u64 {
        (self.scale * ACCOUNTS_PER_BRANCH / ACCOUNTS_PER_PART) as u64
    }

    async fn load<S: Session>(&self, part: u64, session: &mut S, _random: Random) -> Result<u64> {
        let first = part as i64 * ACCOUNTS_PER_PART;
        let mut rows = 0;
        if first % ACCOUNTS_PER_BRANCH == 0 {
            rows += load_branch(session, first / ACCOUNTS_PER_BRANCH + 1).await?;
        }
        let mut accounts = first + 1..=first + ACCOUNTS_PER_PART;
        rows += session
            .bulk_insert("pgbench_accounts", &["aid", "bid", "abalance", "filler"], |row| {
                let Some(aid) = accounts.next() else { return false };
                row.int(aid).int((aid - 1) / ACCOUNTS_PER_BRANCH + 1).int(0).text("");
                true
            })
            .await?;
        Ok(rows)
    }

    fn finish_parts(&self) -> u64 {
        3
    }

    async fn finish<S: Session>(&self, part: u64, session: &mut S) -> Result<()> {
        if session.dialect().clustered {
            return Ok(());
        }
        let (table, column) =
            [("pgbench_accounts", "aid"), ("pgbench_tellers", "tid"), ("pgbench_branches", "bid")]
                [part as usize];
        session.text(&format!("ALTER TABLE {table} ADD PRIMARY KEY ({column})"), &mut ()).await?;
        Ok(())
    }

    async fn inspect<S: Session>(&self, session: &mut S) -> Result<Start> {
        let scale = whole_number(session, "SELECT COUNT(*) FROM pgbench_branches").await?;
        if scale != self.scale {
            return Err(other_shape("scale", scale, self.scale));
        }
        let mut start = Start::new();
        if self.script != Script::SelectOnly {
            let rows = whole_number(session, "SELECT COUNT(*) FROM pgbench_history").await?;
            start.insert("history".to_owned(), rows);
        }
        if self.script == Script::Full {
            start.insert(APART.to_owned(), Balances::read(session).await?.apart());
        }
        Ok(start)
    }

    async fn client<S: Session>(&self, session: &mut S, place: Place) -> Result<Client> {
        let (writes, full) = (self.script != Script::SelectOnly, self.script == Script::Full);
        Ok(Client {
            select_account: session.prepare("SELECT abalance FROM pgbench_accounts WHERE aid = ?").await?,
            update_account: prepare_if(
                session,
                writes,
                "UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ?",
            )
            .await?,
            update_teller: prepare_if(
                session,
                full,
                "UPDATE pgbench_tellers SET tbalance = tbalance + ? WHERE tid = ?",
            )
            .await?,
            update_branch: prepare_if(
                session,
                full,
                "UPDATE pgbench_branches SET bbalance = bbalance + ? WHERE bid = ?",
            )
            .await?,
            insert_history: prepare_if(
                session,
                writes,
                "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP)",
            )
            .await?,
            page: Page::open(session, place).await?,
        })
    }

    async fn perform<S: Session>(
        &self,
        _kind: usize,
        client: &mut Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<Outcome> {
        let aid = Value::Int(random.between(1, ACCOUNTS_PER_BRANCH * self.scale));
        let bid = Value::Int(random.between(1, self.scale));
        let tid = Value::Int(random.between(1, TELLERS_PER_BRANCH * self.scale));
        let delta = Value::Int(random.between(-5000, 5000));
        if self.script == Script::SelectOnly {
            select_account(session, client, aid).await?;
            return Ok(Outcome::Committed);
        }
        session.begin().await?;
        execute_if(session, client.update_account, &[delta, aid]).await?;
        select_account(session, client, aid).await?;
        execute_if(session, client.update_teller, &[delta, tid]).await?;
        execute_if(session, client.update_branch, &[delta, bid]).await?;
        execute_if(session, client.insert_history, &[tid, bid, aid, delta]).await?;
        client.page.write(session).await?;
        session.commit().await?;
        Ok(Outcome::Committed)
    }

    fn take_over(&self, client: &mut Client, lost: Client) {
        client.page.take_over(&lost.page);
    }

    #[inline]
    fn entry(&self, client: &mut Client) -> Option<u64> {
        client.page.turn()
    }

    async fn check<S: Session>(&self, session: &mut S, against: CheckAgainst<'_>) -> Result<Vec<Invariant>> {
        let accounts = sum(session, "abalance", "pgbench_accounts").await?;
        let balances = Balances::read(session).await?;
        let apart = match (self.script, against.acknowledged) {
            (Script::Full, Some(told)) => Some(told.at_start(APART, 0)),
            _ => None,
        };
        let rows = whole_number(session, "SELECT COUNT(*) FROM pgbench_accounts").await?;
        let expected = self.scale * ACCOUNTS_PER_BRANCH;
        let mut invariants = vec![
            balances.judge(accounts, apart),
            Invariant::new(
                "accounts_complete",
                rows == expected,
                format!("{rows} accounts, {expected} expected"),
            ),
        ];
        if let (Some(told), true) = (against.acknowledged, self.script != Script::SelectOnly) {
            let rows = whole_number(session, "SELECT COUNT(*) FROM pgbench_history").await?;
            invariants.push(history_complete(rows, told));
        }
        Ok(invariants)
    }

    async fn cleanup<S: Session>(&self, session: &mut S) -> Result<()> {
        for table in TABLES {
            session.drop_table(table).await?;
        }
        Ok(())
    }
}

/// How far history and tellers are apart, as noted at a start.
const APART: &str = "apart";

/// The sums that move together with those of the accounts.
#[derive(Clone, Copy, Debug)]
struct Balances {
    tellers: i64,
    branches: i64,
    history: i64,
}

impl Balances {
    async fn read<S: Session>(session: &mut S) -> Result<Self> {
        Ok(Balances {
            tellers: sum(session, "tbalance", "pgbench_tellers").await?,
            branches: sum(session, "bbalance", "pgbench_branches").await?,
            history: sum(session, "delta", "pgbench_history").await?,
        })
    }

    /// What transactions without teller and branch have moved.
    fn apart(&self) -> i64 {
        self.history - self.tellers
    }

    /// Accounts move with the history, and tellers with the branches, whatever the script. The full one moves all:
    /// `apart` is how far the two pairs were apart before it, where that is known.
    fn judge(&self, accounts: i64, apart: Option<i64>) -> Invariant {
        let Balances { tellers, branches, history } = *self;
        let moved_together = accounts == history && tellers == branches;
        let detail = format!("account {accounts}, teller {tellers}, branch {branches}, history {history}");
        let before = match apart {
            None | Some(0) => String::new(),
            Some(apart) => format!("; history and teller were {apart} apart before"),
        };
        Invariant::new(
            "balances_equal",
            moved_together && apart.is_none_or(|apart| self.apart() == apart),
            detail + &before,
        )
    }
}

/// Every acknowledged transaction left one row; each whose acknowledgement was lost may have left one.
fn history_complete(rows: i64, told: &Acknowledged) -> Invariant {
    let before = told.at_start("history", 0);
    let (least, most) = (told.acknowledged as i64, (told.acknowledged + told.unknown) as i64);
    let then = if before == 0 { String::new() } else { format!(" and {before} of earlier runs") };
    Invariant::new(
        "history_complete",
        (least..=most).contains(&(rows - before)),
        format!("{rows} rows of history, {least} transactions acknowledged{then}, {} unknown", told.unknown),
    )
}

async fn load_branch<S: Session>(session: &mut S, bid: i64) -> Result<u64> {
    let mut branch = std::iter::once(bid);
    let mut rows = session
        .bulk_insert("pgbench_branches", &["bid", "bbalance"], |row| {
            branch.next().map(|bid| row.int(bid).int(0)).is_some()
        })
        .await?;
    let mut tellers = (bid - 1) * TELLERS_PER_BRANCH + 1..=bid * TELLERS_PER_BRANCH;
    rows += session
        .bulk_insert("pgbench_tellers", &["tid", "bid", "tbalance"], |row| {
            tellers.next().map(|tid| row.int(tid).int(bid).int(0)).is_some()
        })
        .await?;
    Ok(rows)
}

async fn prepare_if<S: Session>(session: &mut S, wanted: bool, sql: &str) -> Result<Option<Statement>> {
    if wanted {
        session.prepare(sql).await.map(Some)
    } else {
        Ok(None)
    }
}

async fn execute_if<S: Session>(
    session: &mut S,
    statement: Option<Statement>,
    parameters: &[Value<'_>],
) -> Result<()> {
    if let Some(statement) = statement {
        let answer = session.execute(statement, parameters, &mut ()).await?;
        if answer.affected == 0 {
            return Err(row_missing("an update of tpcb"));
        }
    }
    Ok(())
}

async fn select_account<S: Session>(session: &mut S, client: &Client, aid: Value<'_>) -> Result<()> {
    match session.execute(client.select_account, &[aid], &mut ()).await?.rows {
        0 => Err(row_missing("the SELECT of an account")),
        _ => Ok(()),
    }
}

async fn sum<S: Session>(session: &mut S, column: &str, table: &str) -> Result<i64> {
    whole_number(session, &format!("SELECT COALESCE(SUM({column}), 0) FROM {table}")).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(acknowledged: u64, unknown: u64) -> Acknowledged {
        Acknowledged { acknowledged, unknown, ..Acknowledged::default() }
    }

    #[test]
    fn the_history_may_hold_the_unknown_but_must_hold_the_acknowledged() {
        assert!(history_complete(10, &told(10, 0)).holds);
        assert!(history_complete(11, &told(10, 1)).holds);
        assert!(!history_complete(9, &told(10, 1)).holds);
        assert!(!history_complete(12, &told(10, 1)).holds);
    }

    #[test]
    fn a_full_run_moves_all_balances_alike_from_where_a_simple_one_left_them() {
        let balances = |tellers, branches, history| Balances { tellers, branches, history };
        assert!(balances(5, 5, 5).judge(5, Some(0)).holds);
        assert!(balances(5, 5, 12).judge(12, Some(7)).holds, "7 were moved without teller and branch");
        assert!(!balances(5, 5, 12).judge(12, Some(0)).holds, "a teller and its branch were missed");
        assert!(balances(5, 5, 12).judge(12, None).holds, "any script may have run");
        assert!(!balances(5, 4, 12).judge(12, None).holds && !balances(5, 5, 12).judge(11, None).holds);
    }

    #[test]
    fn the_history_of_earlier_runs_is_not_taken_for_this_ones() {
        let start = [("history".to_owned(), 7)].into();
        let told = Acknowledged { start, ..told(10, 0) };
        assert!(history_complete(17, &told).holds);
        assert!(!history_complete(10, &told).holds && !history_complete(16, &told).holds);
    }
}
