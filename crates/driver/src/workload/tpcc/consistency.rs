//! The twelve consistency conditions (specification 5.11, clause 3.3.2). Each table is read once, aggregated by the
//! server as far as a plain GROUP BY can; the comparisons are made here, so that no engine's optimizer has to find a
//! good plan for a correlated subquery, and so that they can be tested without one.

use super::draw::{self, Cents, CUSTOMERS, DISTRICTS};
use crate::error::Result;
use crate::session::{whole_number, Each, First, Row, Session};
use crate::workload::{Acknowledged, CheckAgainst, Invariant, Start};
use std::collections::HashMap;

/// What grows by one with each payment, and with each new order.
const PAID: &str = "rows of history";
const ORDERED: &str = "order numbers taken";

/// How many of the tables are read in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    Full,
    /// Without order lines, customers and their histories.
    Quick,
}

/// What the tables say of one warehouse. Sums are in cents.
#[derive(Clone, Debug, Default)]
struct Warehouse {
    ytd: i64,
    history: i64,
    districts: HashMap<i64, District>,
}

#[derive(Clone, Debug, Default)]
struct District {
    ytd: i64,
    next_order: i64,
    history: i64,
    /// By order number.
    orders: HashMap<i64, Order>,
    /// Numbers of the new orders, as they came.
    new_orders: Vec<i64>,
    /// Order lines whose order does not exist.
    orphans: i64,
    customers: HashMap<i64, Customer>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Order {
    customer: i64,
    carried: bool,
    is_new: bool,
    /// O_OL_CNT.
    stated_lines: i64,
    lines: i64,
    delivered_lines: i64,
    /// The sum of the delivered lines.
    delivered: i64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Customer {
    balance: i64,
    ytd_payment: i64,
    deliveries: i64,
    /// The sum of the customer's payments by the history.
    paid: i64,
    /// The sum of the delivered lines of the customer's orders.
    delivered: i64,
}

/// A condition's verdict over all warehouses: how much was compared, and the first few cases that break it.
#[derive(Clone, Debug, Default)]
struct Finding {
    compared: u64,
    broken: u64,
    examples: Vec<String>,
}

impl Finding {
    fn compare(&mut self, holds: bool, describe: impl FnOnce() -> String) {
        const EXAMPLES: usize = 3;
        self.compared += 1;
        if !holds {
            self.broken += 1;
            if self.examples.len() < EXAMPLES {
                self.examples.push(describe());
            }
        }
    }

    fn invariant(self, condition: usize, of: &str) -> Invariant {
        let detail = match self.broken {
            0 => format!("{} {of} compared", self.compared),
            broken => format!("{broken} of {} {of} differ: {}", self.compared, self.examples.join("; ")),
        };
        // Without a single comparison nothing has been shown: an empty table is a lost one.
        Invariant::new(&format!("consistency_{condition}"), self.broken == 0 && self.compared > 0, detail)
    }
}

/// The twelve findings in the order of the specification.
type Findings = [Finding; 12];

const COMPARED: [&str; 12] = [
    "warehouses",
    "districts",
    "districts",
    "districts",
    "orders",
    "orders",
    "orders",
    "warehouses",
    "districts",
    "customers",
    "districts",
    "customers",
];
/// Conditions (counted from 0) that `Depth::Quick` leaves out.
const NOT_QUICK: [usize; 6] = [3, 5, 6, 9, 10, 11];

pub async fn check<S: Session>(
    session: &mut S,
    warehouses: i64,
    depth: Depth,
    against: CheckAgainst<'_>,
) -> Result<Vec<Invariant>> {
    let paid = match depth {
        Depth::Full => read_customer_histories(session).await?,
        Depth::Quick => HashMap::new(),
    };
    let history = read_district_histories(session).await?;
    let mut findings = Findings::default();
    for id in 1..=warehouses {
        let mut warehouse = read_warehouse(session, id, depth).await?;
        warehouse.add_histories(id, &history, &paid);
        warehouse.judge(id, depth, &mut findings);
    }
    let mut invariants: Vec<Invariant> = findings
        .into_iter()
        .zip(COMPARED)
        .enumerate()
        .filter(|(number, _)| depth == Depth::Full || !NOT_QUICK.contains(number))
        .map(|(number, (finding, of))| finding.invariant(number + 1, of))
        .collect();
    invariants.push(complete(session, warehouses).await?);
    if let Some(told) = against.acknowledged {
        let now = at_start(session).await?;
        invariants.push(grown("payments_complete", "payment", PAID, warehouses, &now, told));
        invariants.push(grown("orders_complete", "new_order", ORDERED, warehouses, &now, told));
    }
    Ok(invariants)
}

/// What payments and new orders add to. The history has no index that a transaction reads, and districts are few.
pub async fn at_start<S: Session>(session: &mut S) -> Result<Start> {
    let mut start = Start::new();
    for (name, sql) in [
        (PAID, "SELECT COUNT(*) FROM history"),
        (ORDERED, "SELECT COALESCE(SUM(d_next_o_id - 1), 0) FROM district"),
    ] {
        start.insert(name.to_owned(), whole_number(session, sql).await?);
    }
    Ok(start)
}

/// No warehouse, district, customer, item or stock row is missing.
async fn complete<S: Session>(session: &mut S, warehouses: i64) -> Result<Invariant> {
    let (mut holds, mut details) = (true, Vec::new());
    for (table, expected) in [
        ("warehouse", warehouses),
        ("district", warehouses * DISTRICTS),
        ("customer", warehouses * DISTRICTS * CUSTOMERS),
        ("item", draw::ITEMS),
        ("stock", warehouses * draw::ITEMS),
    ] {
        let rows = number(session, &format!("SELECT COUNT(*) FROM {table}")).await?;
        holds &= rows == expected;
        details.push(format!("{table} {rows} of {expected}"));
    }
    Ok(Invariant::new("rows_complete", holds, details.join(", ")))
}

/// Every acknowledged transaction added one to what there was; each whose acknowledgement was lost may have done so.
/// Each customer was loaded with one payment and one order.
fn grown(
    name: &str,
    transaction: &str,
    what: &str,
    warehouses: i64,
    now: &Start,
    told: &Acknowledged,
) -> Invariant {
    let (found, unknown) = (now.get(what).copied().unwrap_or_default(), told.unknown);
    let acknowledged = told.by_transaction.get(transaction).copied().unwrap_or_default();
    let least = told.at_start(what, warehouses * DISTRICTS * CUSTOMERS) + acknowledged as i64;
    Invariant::new(
        name,
        (least..=least + unknown as i64).contains(&found),
        format!("{found} {what}, {least} there before or acknowledged, {unknown} transactions unknown"),
    )
}

impl Warehouse {
    fn add_histories(
        &mut self,
        id: i64,
        history: &HashMap<(i64, i64), i64>,
        paid: &HashMap<(i64, i64, i64), i64>,
    ) {
        for (&number, district) in &mut self.districts {
            district.history = history.get(&(id, number)).copied().unwrap_or_default();
            for (&customer, found) in &mut district.customers {
                found.paid = paid.get(&(id, number, customer)).copied().unwrap_or_default();
            }
        }
        // Not the sum over the districts found: a row of history may name a district that does not exist.
        self.history = history.iter().filter(|((of, _), _)| *of == id).map(|(_, amount)| amount).sum();
    }

    fn judge(&mut self, id: i64, depth: Depth, findings: &mut Findings) {
        let districts: i64 = self.districts.values().map(|district| district.ytd).sum();
        findings[0].compare(self.ytd == districts, || {
            format!("warehouse {id}: w_ytd {}, sum of d_ytd {}", Cents(self.ytd), Cents(districts))
        });
        findings[7].compare(self.ytd == self.history, || {
            format!("warehouse {id}: w_ytd {}, sum of h_amount {}", Cents(self.ytd), Cents(self.history))
        });
        for (number, district) in &mut self.districts {
            let place = format!("district {number} of warehouse {id}");
            district.mark_new_orders();
            district.judge_numbers(&place, findings);
            if depth == Depth::Full {
                district.judge_lines(&place, findings);
                district.judge_customers(&place, findings);
            }
        }
    }
}

impl District {
    fn mark_new_orders(&mut self) {
        for number in &self.new_orders {
            if let Some(order) = self.orders.get_mut(number) {
                order.is_new = true;
            }
        }
    }

    /// Conditions 2, 3, 5 and 9.
    fn judge_numbers(&self, place: &str, findings: &mut Findings) {
        let last = self.orders.keys().max().copied().unwrap_or_default();
        let (first_new, last_new) = (self.new_orders.iter().min(), self.new_orders.iter().max());
        let agree = last == self.next_order - 1 && last_new.is_none_or(|&new| new == last);
        findings[1].compare(agree, || {
            format!("{place}: d_next_o_id {}, max(o_id) {last}, max(no_o_id) {last_new:?}", self.next_order)
        });
        let count = self.new_orders.len() as i64;
        let span = first_new.zip(last_new).map_or(0, |(first, last)| last - first + 1);
        findings[2].compare(span == count, || {
            format!("{place}: {count} new orders, numbers {first_new:?} to {last_new:?}")
        });
        for (number, order) in &self.orders {
            findings[4].compare(order.carried != order.is_new, || {
                format!("{place}, order {number}: carried {}, new {}", order.carried, order.is_new)
            });
        }
        for number in self.new_orders.iter().filter(|number| !self.orders.contains_key(number)) {
            findings[4].compare(false, || format!("{place}: new order {number} has no order"));
        }
        findings[8].compare(self.ytd == self.history, || {
            format!("{place}: d_ytd {}, sum of h_amount {}", Cents(self.ytd), Cents(self.history))
        });
    }

    /// Conditions 4, 6 and 7.
    fn judge_lines(&self, place: &str, findings: &mut Findings) {
        let stated: i64 = self.orders.values().map(|order| order.stated_lines).sum();
        let lines = self.orders.values().map(|order| order.lines).sum::<i64>() + self.orphans;
        findings[3]
            .compare(stated == lines, || format!("{place}: sum of o_ol_cnt {stated}, {lines} order lines"));
        for (number, order) in &self.orders {
            findings[5].compare(order.stated_lines == order.lines, || {
                format!("{place}, order {number}: o_ol_cnt {}, {} lines", order.stated_lines, order.lines)
            });
            let expected = if order.carried { order.lines } else { 0 };
            findings[6].compare(order.delivered_lines == expected, || {
                format!(
                    "{place}, order {number}: carried {}, {} of {} lines delivered",
                    order.carried, order.delivered_lines, order.lines
                )
            });
        }
    }

    /// Conditions 10, 11 and 12.
    fn judge_customers(&mut self, place: &str, findings: &mut Findings) {
        for order in self.orders.values() {
            if let Some(customer) = self.customers.get_mut(&order.customer) {
                customer.delivered += order.delivered;
            }
        }
        for (number, customer) in &self.customers {
            let Customer { balance, ytd_payment, paid, delivered, .. } = *customer;
            findings[9].compare(balance == delivered - paid, || {
                let [balance, delivered, paid] = [balance, delivered, paid].map(Cents);
                format!("{place}, customer {number}: balance {balance}, delivered {delivered}, paid {paid}")
            });
            findings[11].compare(balance + ytd_payment == delivered, || {
                let [balance, ytd, delivered] = [balance, ytd_payment, delivered].map(Cents);
                format!("{place}, customer {number}: balance {balance}, paid {ytd}, delivered {delivered}")
            });
        }
        // Right after the load nothing is delivered yet, which is the condition as the specification words it; each
        // delivery since then counted itself in C_DELIVERY_CNT, which makes it hold at any time.
        let delivered = 2_100 + self.customers.values().map(|customer| customer.deliveries).sum::<i64>();
        let (orders, new) = (self.orders.len() as i64, self.new_orders.len() as i64);
        findings[10].compare(orders - new == delivered, || {
            format!("{place}: {orders} orders, {new} new, {delivered} delivered by the customers' count")
        });
    }
}

async fn number<S: Session>(session: &mut S, sql: &str) -> Result<i64> {
    let mut first = First::<i64>::default();
    session.text(sql, &mut first).await?;
    Ok(first.0.unwrap_or_default())
}

fn integer(row: &dyn Row, column: usize) -> i64 {
    row.value(column).as_i64().unwrap_or_default()
}

fn cents(row: &dyn Row, column: usize) -> i64 {
    draw::cents_of(row.value(column)).map_or(0, |Cents(cents)| cents)
}

/// The sum of payments by (warehouse, district).
async fn read_district_histories<S: Session>(session: &mut S) -> Result<HashMap<(i64, i64), i64>> {
    let mut sums = HashMap::new();
    let mut rows = Each(|row: &dyn Row| {
        sums.insert((integer(row, 0), integer(row, 1)), cents(row, 2));
    });
    session
        .text("SELECT h_w_id, h_d_id, SUM(h_amount) FROM history GROUP BY h_w_id, h_d_id", &mut rows)
        .await?;
    Ok(sums)
}

/// The sum of payments by customer (warehouse, district, number).
async fn read_customer_histories<S: Session>(session: &mut S) -> Result<HashMap<(i64, i64, i64), i64>> {
    let mut sums = HashMap::new();
    let mut rows = Each(|row: &dyn Row| {
        sums.insert((integer(row, 0), integer(row, 1), integer(row, 2)), cents(row, 3));
    });
    let sql =
        "SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id";
    session.text(sql, &mut rows).await?;
    Ok(sums)
}

async fn read_warehouse<S: Session>(session: &mut S, id: i64, depth: Depth) -> Result<Warehouse> {
    let mut found = Warehouse::default();
    let mut rows = Each(|row: &dyn Row| found.ytd = cents(row, 0));
    session.text(&format!("SELECT w_ytd FROM warehouse WHERE w_id = {id}"), &mut rows).await?;
    let districts = &mut found.districts;
    let mut rows = Each(|row: &dyn Row| {
        let (ytd, next_order) = (cents(row, 1), integer(row, 2));
        districts.insert(integer(row, 0), District { ytd, next_order, ..District::default() });
    });
    session
        .text(&format!("SELECT d_id, d_ytd, d_next_o_id FROM district WHERE d_w_id = {id}"), &mut rows)
        .await?;
    read_orders(session, id, districts).await?;
    if depth == Depth::Full {
        read_lines(session, id, districts).await?;
        read_customers(session, id, districts).await?;
    }
    Ok(found)
}

/// Orders and new orders. One of a district that does not exist makes one, whose conditions then fail.
async fn read_orders<S: Session>(
    session: &mut S,
    id: i64,
    districts: &mut HashMap<i64, District>,
) -> Result<()> {
    let mut rows = Each(|row: &dyn Row| {
        let order = Order {
            customer: integer(row, 2),
            carried: !row.value(3).is_null(),
            stated_lines: integer(row, 4),
            ..Order::default()
        };
        districts.entry(integer(row, 0)).or_default().orders.insert(integer(row, 1), order);
    });
    let sql = format!("SELECT o_d_id, o_id, o_c_id, o_carrier_id, o_ol_cnt FROM orders WHERE o_w_id = {id}");
    session.text(&sql, &mut rows).await?;
    let mut rows = Each(|row: &dyn Row| {
        districts.entry(integer(row, 0)).or_default().new_orders.push(integer(row, 1));
    });
    session.text(&format!("SELECT no_d_id, no_o_id FROM new_order WHERE no_w_id = {id}"), &mut rows).await?;
    Ok(())
}

async fn read_lines<S: Session>(
    session: &mut S,
    id: i64,
    districts: &mut HashMap<i64, District>,
) -> Result<()> {
    let mut rows = Each(|row: &dyn Row| {
        let district = districts.entry(integer(row, 0)).or_default();
        match district.orders.get_mut(&integer(row, 1)) {
            Some(order) => {
                order.lines = integer(row, 2);
                order.delivered_lines = integer(row, 3);
                order.delivered = cents(row, 4);
            }
            None => district.orphans += integer(row, 2),
        }
    });
    let sql = format!(
        "SELECT ol_d_id, ol_o_id, COUNT(*), COUNT(ol_delivery_d), \
         SUM(CASE WHEN ol_delivery_d IS NULL THEN 0 ELSE ol_amount END) \
         FROM order_line WHERE ol_w_id = {id} GROUP BY ol_d_id, ol_o_id"
    );
    session.text(&sql, &mut rows).await?;
    Ok(())
}

async fn read_customers<S: Session>(
    session: &mut S,
    id: i64,
    districts: &mut HashMap<i64, District>,
) -> Result<()> {
    let mut rows = Each(|row: &dyn Row| {
        let customer = Customer {
            balance: cents(row, 2),
            ytd_payment: cents(row, 3),
            deliveries: integer(row, 4),
            ..Customer::default()
        };
        districts.entry(integer(row, 0)).or_default().customers.insert(integer(row, 1), customer);
    });
    let sql = format!(
        "SELECT c_d_id, c_id, c_balance, c_ytd_payment, c_delivery_cnt FROM customer WHERE c_w_id = {id}"
    );
    session.text(&sql, &mut rows).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A district with one delivered and one new order, as consistent as can be.
    fn sound() -> Warehouse {
        let delivered = Order {
            customer: 1,
            carried: true,
            stated_lines: 2,
            lines: 2,
            delivered_lines: 2,
            delivered: 700,
            ..Order::default()
        };
        let new = Order { customer: 2, stated_lines: 1, lines: 1, ..Order::default() };
        let district = District {
            ytd: 2_000,
            next_order: 3,
            orders: HashMap::from([(1, delivered), (2, new)]),
            new_orders: vec![2],
            customers: HashMap::from([
                (
                    1,
                    Customer { balance: -300, ytd_payment: 1_000, deliveries: -2_099, ..Customer::default() },
                ),
                (2, Customer { balance: -1_000, ytd_payment: 1_000, ..Customer::default() }),
            ]),
            ..District::default()
        };
        Warehouse { ytd: 2_000, districts: HashMap::from([(1, district)]), ..Warehouse::default() }
    }

    /// The conditions, counted from 1, that a warehouse breaks.
    fn broken(mut warehouse: Warehouse, history: i64) -> Vec<usize> {
        let histories = HashMap::from([((7, 1), history)]);
        let paid = HashMap::from([((7, 1, 1), 1_000), ((7, 1, 2), history - 1_000)]);
        warehouse.add_histories(7, &histories, &paid);
        let mut findings = Findings::default();
        warehouse.judge(7, Depth::Full, &mut findings);
        assert!(findings.iter().all(|finding| finding.compared > 0));
        (1..).zip(&findings).filter(|(_, finding)| finding.broken > 0).map(|(number, _)| number).collect()
    }

    fn broken_by(change: impl FnOnce(&mut Warehouse, &mut District)) -> Vec<usize> {
        let mut warehouse = sound();
        let mut district = warehouse.districts.remove(&1).unwrap();
        change(&mut warehouse, &mut district);
        warehouse.districts.insert(1, district);
        broken(warehouse, 2_000)
    }

    fn order(district: &mut District, number: i64) -> &mut Order {
        district.orders.get_mut(&number).unwrap()
    }

    fn customer(district: &mut District, number: i64) -> &mut Customer {
        district.customers.get_mut(&number).unwrap()
    }

    #[test]
    fn what_is_sound_breaks_no_condition() {
        assert!(broken(sound(), 2_000).is_empty());
    }

    #[test]
    fn each_condition_is_broken_by_what_it_is_there_for() {
        assert_eq!(broken_by(|warehouse, _| warehouse.ytd += 1), [1, 8]);
        assert_eq!(broken_by(|warehouse, district| (warehouse.ytd, district.ytd) = (1, 1)), [8, 9]);
        assert_eq!(broken(sound(), 2_500), [8, 9, 10]);
        assert_eq!(broken_by(|_, district| district.next_order = 4), [2]);
        assert_eq!(broken_by(|_, district| district.new_orders.push(2)), [3, 11]);
        assert_eq!(broken_by(|_, district| district.orphans = 1), [4]);
        assert_eq!(broken_by(|_, district| order(district, 2).carried = true), [5, 7]);
        assert_eq!(broken_by(|_, district| order(district, 1).stated_lines = 3), [4, 6]);
        assert_eq!(broken_by(|_, district| order(district, 1).delivered_lines = 1), [7]);
        assert_eq!(broken_by(|_, district| order(district, 2).delivered = 5), [10, 12]);
        assert_eq!(broken_by(|_, district| customer(district, 2).deliveries = 1), [11]);
        assert_eq!(broken_by(|_, district| customer(district, 1).ytd_payment += 1), [12]);
    }

    #[test]
    fn an_order_of_no_district_breaks_its_numbers() {
        let found = broken_by(|warehouse, _| {
            let orders = HashMap::from([(9, Order { carried: true, ..Order::default() })]);
            warehouse.districts.insert(11, District { orders, ..District::default() });
        });
        assert_eq!(found, [2, 11]);
    }

    #[test]
    fn nothing_compared_is_nothing_shown() {
        assert!(!Finding::default().invariant(1, "warehouses").holds);
    }

    #[test]
    fn a_finding_shows_its_first_cases() {
        let mut finding = Finding::default();
        (0..5).for_each(|number| finding.compare(number == 0, || format!("case {number}")));
        let invariant = finding.invariant(6, "orders");
        assert_eq!(invariant.name, "consistency_6");
        assert_eq!(invariant.detail, "4 of 5 orders differ: case 1; case 2; case 3");
    }

    #[test]
    fn payments_may_be_unknown_but_not_lost() {
        let holds = |rows: i64, unknown, start: &[i64]| {
            let start = start.iter().map(|rows| (PAID.to_owned(), *rows)).collect();
            let by_transaction = [("payment".to_owned(), 10)].into();
            let told = Acknowledged { acknowledged: 10, unknown, by_transaction, start };
            grown("payments_complete", "payment", PAID, 1, &[(PAID.to_owned(), rows)].into(), &told).holds
        };
        assert!(holds(30_010, 0, &[]) && holds(30_011, 1, &[]));
        assert!(!holds(30_009, 1, &[]) && !holds(30_012, 1, &[]));
        assert!(holds(30_110, 0, &[30_100]) && !holds(30_010, 0, &[30_100]));
    }
}
