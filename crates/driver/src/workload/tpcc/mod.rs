//! TPC-C (specification 5.11) in plain SQL: what several drivers have made of it, without stored procedures; and with
//! procedures of its own at the server, which each transaction is one call of (`procedures`).
//!
//! In plain SQL it is comparable with go-tpc and BenchmarkSQL: each statement of the specification is sent as it stands,
//! but for the items of an order and their stock, which are read by lists, and its lines, which are inserted together
//! (see `new_order`). Drivers that call one stored procedure per transaction (HammerDB) are comparable with `procedures`
//! alone, and none of these with published tpmC figures.

mod consistency;
mod customers;
mod delivery;
mod draw;
mod lists;
mod load;
mod new_order;
mod order_status;
mod payment;
mod procedures;
mod schema;
mod stock_level;

use super::{
    other_shape, About, CheckAgainst, Invariant, Options, Outcome, Page, Pause, Place, Start, Typed, Workload,
};
use crate::error::Result;
use crate::random::Random;
use crate::session::{whole_number, Dialect, Session};

const NANOSECONDS: u64 = 1_000_000_000;

/// A transaction type: its share of the mix and the waits of its terminal (clauses 5.2.3 and 5.2.5).
struct Kind {
    name: &'static str,
    percent: u64,
    keying_s: u64,
    mean_think_s: u64,
}

const NEW_ORDER: usize = 0;
const PAYMENT: usize = 1;
const ORDER_STATUS: usize = 2;
const DELIVERY: usize = 3;

/// A new order with an item that does not exist. It is chosen apart from the others, because it leaves no order: what
/// counts new orders must not count it.
const ROLLED_BACK: usize = 5;
const ROLLED_BACK_PERCENT: u64 = 1;

const KINDS: [Kind; 6] = [
    Kind { name: "new_order", percent: 45, keying_s: 18, mean_think_s: 12 },
    Kind { name: "payment", percent: 43, keying_s: 3, mean_think_s: 12 },
    Kind { name: "order_status", percent: 4, keying_s: 2, mean_think_s: 10 },
    Kind { name: "delivery", percent: 4, keying_s: 2, mean_think_s: 5 },
    Kind { name: "stock_level", percent: 4, keying_s: 2, mean_think_s: 5 },
    Kind { name: "new_order_rolled_back", percent: 0, keying_s: 18, mean_think_s: 12 },
];

pub struct TpcC {
    warehouses: i64,
    waits: bool,
    procedures: bool,
    home: Home,
    depth: consistency::Depth,
}

/// Whether a client keeps to one warehouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// Kept where there is a client for each warehouse; else drawn, so that no warehouse lies idle.
    Auto,
    Kept,
    Drawn,
}

/// A terminal: its place, its transactions, and its rows in the ledger.
pub struct Client {
    /// Warehouse and district; `None` draws them for each transaction.
    home: Option<(i64, i64)>,
    transactions: Transactions,
    page: Page,
}

/// The statements of a terminal's transactions, with their buffers.
enum Transactions {
    Statements(Box<Statements>),
    Procedures(procedures::Procedures),
}

struct Statements {
    finder: customers::Finder,
    new_order: new_order::NewOrder,
    payment: payment::Payment,
    order_status: order_status::OrderStatus,
    delivery: delivery::Delivery,
    stock_level: stock_level::StockLevel,
}

const WAREHOUSES: Typed<i64> =
    Typed::int("warehouses", 1, 1, 100_000, "each has 10 districts, 30,000 customers and 100,000 stock rows");
const THINK_TIMES: Typed<bool> =
    Typed::flag("think_times", false, "terminals wait as the specification says: keying, then thinking");
const PROCEDURES: Typed<bool> = Typed::flag(
    "procedures",
    false,
    "each transaction is one call of a procedure at the server, on MariaDB, MySQL and PostgreSQL",
)
.that_needs_procedures();
const HOME: Typed<&'static str> = Typed::choice(
    "home",
    "auto",
    &["auto", "kept", "drawn"],
    "a client's warehouse: kept, as the specification says, or drawn for each transaction; auto draws it \
                 where there are fewer clients than warehouses",
)
.for_the_run();
const CHECK: Typed<&'static str> = Typed::choice(
    "check",
    "full",
    &["full", "quick"],
    "quick leaves out the conditions that need every order line or customer (4, 6, 7, 10, 11, 12)",
);

impl Workload for TpcC {
    type Client = Client;

    const OFFERS: &'static [About] = &[About {
        name: "tpcc",
        description: "TPC-C: orders, payments, deliveries and questions of a wholesaler's terminals",
        options: &[WAREHOUSES.spec(), THINK_TIMES.spec(), PROCEDURES.spec(), HOME.spec(), CHECK.spec()],
        transactions: &[
            "new_order",
            "payment",
            "order_status",
            "delivery",
            "stock_level",
            "new_order_rolled_back",
        ],
        read_only: false,
        keeps_ledger: true,
    }];

    const BRIEF: bool = true;

    fn new(_about: &'static About, options: &Options) -> Result<Self> {
        Ok(TpcC {
            warehouses: options.int(WAREHOUSES),
            waits: options.flag(THINK_TIMES),
            procedures: options.flag(PROCEDURES),
            home: match options.text(HOME) {
                "kept" => Home::Kept,
                "drawn" => Home::Drawn,
                _ => Home::Auto,
            },
            depth: match options.text(CHECK) {
                "quick" => consistency::Depth::Quick,
                _ => consistency::Depth::Full,
            },
        })
    }

    fn transactions(&self) -> Vec<String> {
        KINDS.iter().map(|kind| kind.name.to_owned()).collect()
    }

    async fn create<S: Session>(&self, session: &mut S) -> Result<()> {
        schema::create(session).await?;
        match self.procedures {
            true => procedures::create(session).await,
            false => Ok(()),
        }
    }

    fn load_parts(&self) -> u64 {
        load::parts(self.warehouses)
    }

    async fn load<S: Session>(&self, part: u64, session: &mut S, random: Random) -> Result<u64> {
        load::load(part, session, random).await
    }

    fn finish_parts(&self) -> u64 {
        schema::FINISH_PARTS
    }

    async fn finish<S: Session>(&self, part: u64, session: &mut S) -> Result<()> {
        schema::finish(part, session).await
    }

    async fn inspect<S: Session>(&self, session: &mut S) -> Result<Start> {
        let warehouses = whole_number(session, "SELECT COUNT(*) FROM warehouse").await?;
        if warehouses != self.warehouses {
            return Err(other_shape("warehouses", warehouses, self.warehouses));
        }
        if self.procedures {
            procedures::look_for(session).await?;
        }
        consistency::at_start(session).await
    }

    async fn client<S: Session>(&self, session: &mut S, place: Place) -> Result<Client> {
        Ok(Client {
            home: self.keeps_home(place).then(|| home(place.client, self.warehouses)),
            transactions: match self.procedures {
                true => Transactions::Procedures(procedures::Procedures::prepare(session).await?),
                false => Transactions::Statements(Box::new(Statements::prepare(session).await?)),
            },
            page: Page::open(session, place).await?,
        })
    }

    fn choose(&self, _client: &mut Client, random: &mut Random) -> usize {
        let mut drawn = random.below(100);
        for (number, kind) in KINDS.iter().enumerate().skip(PAYMENT) {
            if drawn < kind.percent {
                return number;
            }
            drawn -= kind.percent;
        }
        if random.below(100) < ROLLED_BACK_PERCENT {
            ROLLED_BACK
        } else {
            NEW_ORDER
        }
    }

    fn pause(&self, kind: usize, random: &mut Random) -> Pause {
        if !self.waits {
            return Pause::default();
        }
        let kind = &KINDS[kind];
        // The distribution is cut at ten times its mean (clause 5.2.5.4).
        let think = random.exponential().min(10.0) * (kind.mean_think_s * NANOSECONDS) as f64;
        Pause { before_ns: kind.keying_s * NANOSECONDS, after_ns: think as u64 }
    }

    async fn perform<S: Session>(
        &self,
        kind: usize,
        client: &mut Client,
        session: &mut S,
        random: &mut Random,
    ) -> Result<Outcome> {
        let all = self.warehouses;
        let (home, district) = match client.home {
            Some(home) => home,
            None => (random.between(1, all), random.between(1, draw::DISTRICTS)),
        };
        let page = &mut client.page;
        let statements = match &mut client.transactions {
            Transactions::Statements(statements) => statements,
            Transactions::Procedures(calls) => {
                return calls.perform(kind, session, random, page, (home, district), all).await
            }
        };
        let Statements { finder, new_order, payment, order_status, delivery, stock_level } =
            &mut **statements;
        match kind {
            NEW_ORDER => new_order.perform(session, random, page, home, all, false).await,
            ROLLED_BACK => new_order.perform(session, random, page, home, all, true).await,
            PAYMENT => payment.perform(session, random, finder, page, home, all).await,
            ORDER_STATUS => order_status.perform(session, random, finder, home).await,
            DELIVERY => delivery.perform(session, random, page, home).await,
            _ => stock_level.perform(session, random, home, district).await,
        }
    }

    fn take_over(&self, client: &mut Client, lost: Client) {
        client.page.take_over(&lost.page);
    }

    #[inline]
    fn entry(&self, client: &mut Client) -> Option<u64> {
        client.page.turn()
    }

    async fn check<S: Session>(&self, session: &mut S, against: CheckAgainst<'_>) -> Result<Vec<Invariant>> {
        consistency::check(session, self.warehouses, self.depth, against).await
    }

    async fn cleanup<S: Session>(&self, session: &mut S) -> Result<()> {
        if self.procedures {
            procedures::drop_all(session).await?;
        }
        schema::drop_tables(session).await
    }
}

impl Statements {
    async fn prepare<S: Session>(session: &mut S) -> Result<Self> {
        Ok(Statements {
            finder: customers::Finder::prepare(session).await?,
            new_order: new_order::NewOrder::prepare(session).await?,
            payment: payment::Payment::prepare(session).await?,
            order_status: order_status::OrderStatus::prepare(session).await?,
            delivery: delivery::Delivery::prepare(session).await?,
            stock_level: stock_level::StockLevel::prepare(session).await?,
        })
    }
}

impl TpcC {
    fn keeps_home(&self, place: Place) -> bool {
        match self.home {
            Home::Auto => i64::from(place.clients) >= self.warehouses,
            Home::Kept => true,
            Home::Drawn => false,
        }
    }
}

/// The warehouse and district of a client: warehouses in turn. The districts of one warehouse's clients follow one
/// another, and those of neighbouring warehouses begin at another one each, so that few clients spread over all ten too.
fn home(client: u32, warehouses: i64) -> (i64, i64) {
    let client = i64::from(client);
    let (round, warehouse) = (client / warehouses, client % warehouses);
    (warehouse + 1, (round + warehouse) % draw::DISTRICTS + 1)
}

/// The end of a SELECT whose rows will be changed.
fn for_update(dialect: &Dialect) -> &'static str {
    if dialect.for_update {
        " FOR UPDATE"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_go_round_the_warehouses_and_then_round_the_districts() {
        let homes: Vec<(i64, i64)> = (0..5).map(|client| home(client, 2)).collect();
        assert_eq!(homes, [(1, 1), (2, 2), (1, 2), (2, 3), (1, 3)]);
        assert_eq!(home(20, 2), (1, 1));
    }

    #[test]
    fn one_client_a_warehouse_is_enough_for_all_districts() {
        let mut districts: Vec<i64> = (0..10).map(|client| home(client, 10).1).collect();
        districts.sort_unstable();
        assert!(districts.into_iter().eq(1..=10));
        let mut terminals: Vec<_> = (0..100).map(|client| home(client, 10)).collect();
        terminals.sort_unstable();
        terminals.dedup();
        assert_eq!(terminals.len(), 100);
    }

    #[test]
    fn a_warehouse_is_kept_where_each_has_a_client_unless_asked_otherwise() {
        let keeps = |home, clients| workload(false, home).keeps_home(Place { client: 0, clients, cut: None });
        assert!(keeps(Home::Auto, 4) && !keeps(Home::Auto, 3));
        assert!(keeps(Home::Kept, 1) && !keeps(Home::Drawn, 100));
    }

    fn workload(waits: bool, home: Home) -> TpcC {
        TpcC { warehouses: 4, waits, procedures: false, home, depth: consistency::Depth::Full }
    }

    #[test]
    fn the_mix_adds_up_and_is_offered_under_its_names() {
        assert_eq!(KINDS.iter().map(|kind| kind.percent).sum::<u64>(), 100);
        assert!(KINDS.iter().map(|kind| kind.name).eq(TpcC::OFFERS[0].transactions.iter().copied()));
    }

    #[test]
    fn think_times_are_exponential_and_cut() {
        let workload = workload(true, Home::Auto);
        let mut random = Random::new(1, 0);
        let pauses: Vec<Pause> = (0..100_000).map(|_| workload.pause(NEW_ORDER, &mut random)).collect();
        let mean_s = pauses.iter().map(|pause| pause.after_ns as f64 / 1e9).sum::<f64>() / 1e5;
        // Cut at ten means, the mean falls by e^-10 of itself; five standard errors are 0.19 s.
        assert!((mean_s - 12.0).abs() < 0.19, "{mean_s}");
        assert!(pauses
            .iter()
            .all(|pause| pause.before_ns == 18 * NANOSECONDS && pause.after_ns <= 120 * NANOSECONDS));
    }
}
