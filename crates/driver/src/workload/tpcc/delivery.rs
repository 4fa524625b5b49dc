//! The Delivery transaction (clause 2.7): the oldest new order of each of a warehouse's ten districts is delivered,
//! all in one transaction. Each step is one statement per district, the ten being in flight together where the
//! protocol allows it.

use super::draw::{self, Amount, Cents, DISTRICTS};
use super::lists::Parameters;
use crate::error::{Error, Fate, Result};
use crate::random::Random;
use crate::session::{Each, Row, Session, Statement, Value};
use crate::workload::{Outcome, Page};

const MOST: usize = DISTRICTS as usize;

pub struct Delivery {
    oldest: Statement,
    delete: Statement,
    customer: Statement,
    carry: Statement,
    date_lines: Statement,
    amount: Statement,
    credit: Statement,
    orders: Vec<Order>,
}

/// The oldest new order of a district.
#[derive(Clone, Copy, Debug)]
struct Order {
    district: i64,
    number: i64,
    customer: i64,
    amount: Amount,
}

impl Delivery {
    pub async fn prepare<S: Session>(session: &mut S) -> Result<Self> {
        let dialect = session.dialect();
        let (lock, now, one) = (super::for_update(dialect), dialect.now, dialect.limit_clause(1));
        const ORDER: &str = "WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
        const LINES: &str = "WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
        Ok(Delivery {
            oldest: session
                .prepare(&format!(
                    "SELECT no_d_id, no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? \
                     ORDER BY no_w_id, no_d_id, no_o_id {one}{lock}"
                ))
                .await?,
            delete: session
                .prepare("DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?")
                .await?,
            customer: session.prepare(&format!("SELECT o_d_id, o_c_id FROM orders {ORDER}{lock}")).await?,
            carry: session.prepare(&format!("UPDATE orders SET o_carrier_id = ? {ORDER}")).await?,
            date_lines: session
                .prepare(&format!("UPDATE order_line SET ol_delivery_d = {now} {LINES}"))
                .await?,
            amount: session
                .prepare(&format!("SELECT ol_d_id, SUM(ol_amount) FROM order_line {LINES} GROUP BY ol_d_id"))
                .await?,
            credit: session
                .prepare(
                    "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
                     WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                )
                .await?,
            orders: Vec::with_capacity(MOST),
        })
    }

    pub async fn perform<S: Session>(
        &mut self,
        session: &mut S,
        random: &mut Random,
        page: &mut Page,
        home: i64,
    ) -> Result<Outcome> {
        let (w_id, carrier) = (Value::Int(home), Value::Int(random.between(1, 10)));
        session.begin().await?;
        self.find_oldest(session, w_id).await?;
        let deleted =
            session.execute_batch(self.delete, keys(&self.orders, w_id).as_slice(), 3, &mut ()).await?;
        if deleted.affected != self.orders.len() as u64 {
            return Err(overtaken());
        }
        self.read_customers(session, w_id).await?;
        let carried = for_each(&self.orders, |order| {
            [carrier, w_id, Value::Int(order.district), Value::Int(order.number)]
        });
        session.execute_batch(self.carry, carried.as_slice(), 4, &mut ()).await?;
        session.execute_batch(self.date_lines, keys(&self.orders, w_id).as_slice(), 3, &mut ()).await?;
        self.read_amounts(session, w_id).await?;
        let credits = for_each(&self.orders, |order| {
            [order.amount.value(), w_id, Value::Int(order.district), Value::Int(order.customer)]
        });
        session.execute_batch(self.credit, credits.as_slice(), 4, &mut ()).await?;
        page.write(session).await?;
        session.commit().await?;
        Ok(Outcome::Committed)
    }

    async fn find_oldest<S: Session>(&mut self, session: &mut S, w_id: Value<'_>) -> Result<()> {
        let mut districts = Parameters::<{ 2 * MOST }>::new();
        (1..=DISTRICTS).for_each(|district| districts.extend([w_id, Value::Int(district)]));
        let orders = &mut self.orders;
        orders.clear();
        let mut rows = Each(|row: &dyn Row| {
            if let (Some(district), Some(number)) = (row.value(0).as_i64(), row.value(1).as_i64()) {
                orders.push(Order { district, number, customer: 0, amount: Amount::new(Cents(0)) });
            }
        });
        session.execute_batch(self.oldest, districts.as_slice(), 2, &mut rows).await?;
        self.find_overlooked(session, w_id).await
    }

    /// Where a lock had to be waited for, an engine (PostgreSQL) can find that its oldest order has gone and answer
    /// with none, although there are others: a district without an answer is asked once more.
    async fn find_overlooked<S: Session>(&mut self, session: &mut S, w_id: Value<'_>) -> Result<()> {
        for district in 1..=DISTRICTS {
            if self.orders.iter().any(|order| order.district == district) {
                continue;
            }
            let orders = &mut self.orders;
            let mut rows = Each(|row: &dyn Row| {
                if let Some(number) = row.value(1).as_i64() {
                    orders.push(Order { district, number, customer: 0, amount: Amount::new(Cents(0)) });
                }
            });
            session.execute(self.oldest, &[w_id, Value::Int(district)], &mut rows).await?;
        }
        Ok(())
    }

    async fn read_customers<S: Session>(&mut self, session: &mut S, w_id: Value<'_>) -> Result<()> {
        let parameters = keys(&self.orders, w_id);
        let orders = &mut self.orders;
        let mut rows = Each(|row: &dyn Row| {
            if let (Some(order), Some(customer)) = (order_of(orders, row), row.value(1).as_i64()) {
                order.customer = customer;
            }
        });
        session.execute_batch(self.customer, parameters.as_slice(), 3, &mut rows).await?;
        Ok(())
    }

    async fn read_amounts<S: Session>(&mut self, session: &mut S, w_id: Value<'_>) -> Result<()> {
        let parameters = keys(&self.orders, w_id);
        let orders = &mut self.orders;
        let mut rows = Each(|row: &dyn Row| {
            if let (Some(order), Some(amount)) = (order_of(orders, row), draw::cents_of(row.value(1))) {
                order.amount = Amount::new(amount);
            }
        });
        session.execute_batch(self.amount, parameters.as_slice(), 3, &mut rows).await?;
        Ok(())
    }
}

/// The parameters of a step: those of each order in turn.
fn for_each<'order, 'value, const WIDTH: usize>(
    orders: &'order [Order],
    parameters_of: impl Fn(&'order Order) -> [Value<'value>; WIDTH],
) -> Parameters<'value, { 4 * MOST }> {
    let mut parameters = Parameters::new();
    orders.iter().for_each(|order| parameters.extend(parameters_of(order)));
    parameters
}

fn keys<'value>(orders: &[Order], w_id: Value<'value>) -> Parameters<'value, { 4 * MOST }> {
    for_each(orders, |order| [w_id, Value::Int(order.district), Value::Int(order.number)])
}

fn order_of<'a>(orders: &'a mut [Order], row: &dyn Row) -> Option<&'a mut Order> {
    let district = row.value(0).as_i64()?;
    orders.iter_mut().find(|order| order.district == district)
}

/// Without row locks another delivery can take an order between its being read and its being deleted.
fn overtaken() -> Error {
    Error::server("delivery overtaken", Fate::Retry, "another delivery took the same order")
}
