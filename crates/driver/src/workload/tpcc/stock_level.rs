//! The Stock-Level transaction (clause 2.8): how many items of a district's last 20 orders run short.

use super::customers::missing;
use crate::error::Result;
use crate::random::Random;
use crate::session::{First, Session, Statement, Value};
use crate::workload::Outcome;

pub struct StockLevel {
    district: Statement,
    count: Statement,
}

impl StockLevel {
    pub async fn prepare<S: Session>(session: &mut S) -> Result<Self> {
        Ok(StockLevel {
            district: session
                .prepare("SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?")
                .await?,
            count: session
                .prepare(
                    "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? \
                     AND ol_o_id < ? AND ol_o_id >= ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?",
                )
                .await?,
        })
    }

    pub async fn perform<S: Session>(
        &mut self,
        session: &mut S,
        random: &mut Random,
        home: i64,
        district: i64,
    ) -> Result<Outcome> {
        let threshold = Value::Int(random.between(10, 20));
        let (w_id, d_id) = (Value::Int(home), Value::Int(district));
        session.begin().await?;
        let mut next = First::<i64>::default();
        session.execute(self.district, &[w_id, d_id], &mut next).await?;
        let next = next.0.ok_or_else(|| missing(format!("district {district} of warehouse {home}")))?;
        let parameters = [w_id, d_id, Value::Int(next), Value::Int(next - 20), w_id, threshold];
        session.execute(self.count, &parameters, &mut ()).await?;
        session.commit().await?;
        Ok(Outcome::Committed)
    }
}
