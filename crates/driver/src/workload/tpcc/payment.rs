//! The Payment transaction (clause 2.5). The two sums that all terminals fight for are updated first, before any plain
//! read makes a snapshot.

use super::customers::{missing, Finder, Wanted};
use super::draw::{self, Amount, Cents};
use crate::error::Result;
use crate::random::Random;
use crate::session::{Each, Row, Session, Statement, Value};
use crate::workload::{Outcome, Page};
use std::fmt::Write;

const LONGEST_DATA: usize = 500;
const NAME_COLUMN: usize = 5;
const CREDIT_COLUMN: usize = 9;

pub struct Payment {
    update_warehouse: Statement,
    update_district: Statement,
    warehouse: Statement,
    district: Statement,
    customer: Statement,
    data: Statement,
    pay: Statement,
    pay_bad_credit: Statement,
    insert_history: Statement,
    /// `w_name    d_name`, for the history.
    names: String,
    new_data: String,
}

/// Who pays how much where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slip {
    pub district: i64,
    pub customer_warehouse: i64,
    pub customer_district: i64,
    pub wanted: Wanted,
    pub amount: Cents,
}

impl Slip {
    pub fn draw(random: &mut Random, home: i64, warehouses: i64) -> Self {
        let district = random.between(1, draw::DISTRICTS);
        let remote = warehouses > 1 && random.below(100) < 15;
        let (customer_warehouse, customer_district) = if remote {
            (draw::other_warehouse(random, home, warehouses), random.between(1, draw::DISTRICTS))
        } else {
            (home, district)
        };
        let wanted = Wanted::draw(random);
        let amount = Cents(random.between(100, 500_000));
        Slip { district, customer_warehouse, customer_district, wanted, amount }
    }
}

impl Payment {
    pub async fn prepare<S: Session>(session: &mut S) -> Result<Self> {
        let dialect = session.dialect();
        let (lock, now) = (super::for_update(dialect), dialect.now);
        const CUSTOMER: &str = "WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
        const PAY: &str =
            "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
                           c_payment_cnt = c_payment_cnt + 1";
        Ok(Payment {
            update_warehouse: session.prepare("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?").await?,
            update_district: session
                .prepare("UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?")
                .await?,
            warehouse: session
                .prepare("SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = ?")
                .await?,
            district: session
                .prepare(
                    "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district \
                     WHERE d_w_id = ? AND d_id = ?",
                )
                .await?,
            customer: session
                .prepare(&format!(
                    "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
                     c_credit, c_credit_lim, c_discount, c_balance, c_since FROM customer {CUSTOMER}{lock}"
                ))
                .await?,
            data: session.prepare(&format!("SELECT c_data FROM customer {CUSTOMER}")).await?,
            pay: session.prepare(&format!("{PAY} {CUSTOMER}")).await?,
            pay_bad_credit: session.prepare(&format!("{PAY}, c_data = ? {CUSTOMER}")).await?,
            insert_history: session
                .prepare(&format!(
                    "INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
                     VALUES (?, ?, ?, ?, ?, {now}, ?, ?)"
                ))
                .await?,
            names: String::with_capacity(32),
            new_data: String::with_capacity(2 * LONGEST_DATA),
        })
    }

    pub async fn perform<S: Session>(
        &mut self,
        session: &mut S,
        random: &mut Random,
        finder: &mut Finder,
        page: &mut Page,
        home: i64,
        warehouses: i64,
    ) -> Result<Outcome> {
        let slip = Slip::draw(random, home, warehouses);
        let amount = Amount::new(slip.amount);
        let (w_id, d_id) = (Value::Int(home), Value::Int(slip.district));
        let (c_w_id, c_d_id) = (Value::Int(slip.customer_warehouse), Value::Int(slip.customer_district));

        session.begin().await?;
        session.execute(self.update_warehouse, &[amount.value(), w_id], &mut ()).await?;
        session.execute(self.update_district, &[amount.value(), w_id, d_id], &mut ()).await?;
        let customer =
            finder.number(session, slip.customer_warehouse, slip.customer_district, slip.wanted).await?;
        let c_id = Value::Int(customer);
        let good_credit = self.good_credit(session, [c_w_id, c_d_id, c_id]).await?;
        self.read_names(session, w_id, d_id).await?;
        if good_credit {
            session
                .execute(self.pay, &[amount.value(), amount.value(), c_w_id, c_d_id, c_id], &mut ())
                .await?;
        } else {
            self.note(session, &slip, home, customer).await?;
            let data = Value::Text(&self.new_data);
            let parameters = [amount.value(), amount.value(), data, c_w_id, c_d_id, c_id];
            session.execute(self.pay_bad_credit, &parameters, &mut ()).await?;
        }
        let history = [c_d_id, c_w_id, c_id, d_id, w_id, amount.value(), Value::Text(&self.names)];
        session.execute(self.insert_history, &history, &mut ()).await?;
        page.write(session).await?;
        session.commit().await?;
        Ok(Outcome::Committed)
    }

    async fn good_credit<S: Session>(&self, session: &mut S, customer: [Value<'_>; 3]) -> Result<bool> {
        let mut good = None;
        let mut rows =
            Each(|row: &dyn Row| good = row.value(CREDIT_COLUMN).as_str().map(|credit| credit != "BC"));
        session.execute(self.customer, &customer, &mut rows).await?;
        good.ok_or_else(|| missing(format!("customer {customer:?}")))
    }

    async fn read_names<S: Session>(
        &mut self,
        session: &mut S,
        w_id: Value<'_>,
        d_id: Value<'_>,
    ) -> Result<()> {
        let names = &mut self.names;
        names.clear();
        let mut rows =
            Each(|row: &dyn Row| names.push_str(row.value(NAME_COLUMN).as_str().unwrap_or_default()));
        session.execute(self.warehouse, &[w_id], &mut rows).await?;
        self.names.push_str("    ");
        let names = &mut self.names;
        let mut rows =
            Each(|row: &dyn Row| names.push_str(row.value(NAME_COLUMN).as_str().unwrap_or_default()));
        session.execute(self.district, &[w_id, d_id], &mut rows).await?;
        Ok(())
    }

    /// Bad credit: puts the payment before the customer's data, cut to its longest (clause 2.5.2.2, case 2).
    async fn note<S: Session>(
        &mut self,
        session: &mut S,
        slip: &Slip,
        home: i64,
        customer: i64,
    ) -> Result<()> {
        let (warehouse, district) = (slip.customer_warehouse, slip.customer_district);
        let new_data = &mut self.new_data;
        new_data.clear();
        // Writing to a String cannot fail.
        let _ = write!(
            new_data,
            "| {customer} {district} {warehouse} {} {home} {} ",
            slip.district,
            Amount::new(slip.amount).as_str()
        );
        let parameters = [Value::Int(warehouse), Value::Int(district), Value::Int(customer)];
        let mut rows = Each(|row: &dyn Row| new_data.push_str(row.value(0).as_str().unwrap_or_default()));
        session.execute(self.data, &parameters, &mut rows).await?;
        // A foreign load may hold other than ASCII letters: cut where a letter ends.
        let mut end = self.new_data.len().min(LONGEST_DATA);
        while !self.new_data.is_char_boundary(end) {
            end -= 1;
        }
        self.new_data.truncate(end);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_drawn_as_the_specification_says() {
        let mut random = Random::new(17, 0);
        let slips: Vec<Slip> = (0..20_000).map(|_| Slip::draw(&mut random, 1, 4)).collect();
        let remote = slips.iter().filter(|slip| slip.customer_warehouse != 1).count();
        let by_name = slips.iter().filter(|slip| matches!(slip.wanted, Wanted::LastName(_))).count();
        // 3,000 and 12,000 expected; five standard deviations each.
        assert!((2_750..=3_250).contains(&remote), "{remote}");
        assert!((11_650..=12_350).contains(&by_name), "{by_name}");
        assert!(slips.iter().all(|slip| (100..=500_000).contains(&slip.amount.0)));
        let local = slips.iter().filter(|slip| slip.customer_warehouse == 1);
        assert!(local.clone().all(|slip| slip.customer_district == slip.district) && local.count() > 0);
    }

    #[test]
    fn a_single_warehouse_has_no_remote_payments() {
        let mut random = Random::new(17, 0);
        assert!((0..1000).all(|_| Slip::draw(&mut random, 1, 1).customer_warehouse == 1));
    }
}
