//! The Order-Status transaction (clause 2.6): a customer's last order with its lines.

use super::customers::{missing, Finder, Wanted};
use super::draw;
use crate::error::Result;
use crate::random::Random;
use crate::session::{Each, Row, Session, Statement, Value};
use crate::workload::Outcome;

pub struct OrderStatus {
    customer: Statement,
    last_order: Statement,
    lines: Statement,
}

impl OrderStatus {
    pub async fn prepare<S: Session>(session: &mut S) -> Result<Self> {
        let last = session.dialect().limit_clause(1);
        Ok(OrderStatus {
            customer: session
                .prepare(
                    "SELECT c_balance, c_first, c_middle, c_last FROM customer \
                     WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                )
                .await?,
            last_order: session
                .prepare(&format!(
                    "SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? \
                     ORDER BY o_id DESC {last}"
                ))
                .await?,
            lines: session
                .prepare(
                    "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
                     WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
                )
                .await?,
        })
    }

    pub async fn perform<S: Session>(
        &mut self,
        session: &mut S,
        random: &mut Random,
        finder: &mut Finder,
        home: i64,
    ) -> Result<Outcome> {
        let (district, wanted) = (random.between(1, draw::DISTRICTS), Wanted::draw(random));
        let (w_id, d_id) = (Value::Int(home), Value::Int(district));
        session.begin().await?;
        let customer = finder.number(session, home, district, wanted).await?;
        let customer = [w_id, d_id, Value::Int(customer)];
        session.execute(self.customer, &customer, &mut ()).await?;
        let mut last = None;
        let mut rows = Each(|row: &dyn Row| last = row.value(0).as_i64());
        session.execute(self.last_order, &customer, &mut rows).await?;
        let last = last.ok_or_else(|| missing(format!("order of customer {customer:?}")))?;
        session.execute(self.lines, &[w_id, d_id, Value::Int(last)], &mut ()).await?;
        session.commit().await?;
        Ok(Outcome::Committed)
    }
}
