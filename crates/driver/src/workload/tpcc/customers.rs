//! Which customer a payment or an order status is about: 60 % by last name, the rest by number (clause 2.5.1.2).

use super::draw;
use crate::error::{Error, Fate, Result};
use crate::random::Random;
use crate::session::{Each, Row, Session, Statement, Value};

/// A customer as a terminal gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Number(i64),
    /// The number of a last name.
    LastName(i64),
}

impl Wanted {
    pub fn draw(random: &mut Random) -> Self {
        if random.below(100) < 60 {
            Wanted::LastName(draw::last_name_of_run(random))
        } else {
            Wanted::Number(draw::customer(random))
        }
    }
}

/// Finds customers; keeps its buffers.
pub struct Finder {
    by_name: Statement,
    last_name: String,
    numbers: Vec<i64>,
}

impl Finder {
    pub async fn prepare<S: Session>(session: &mut S) -> Result<Self> {
        let by_name = session
            .prepare(
                "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
            )
            .await?;
        Ok(Finder { by_name, last_name: String::with_capacity(16), numbers: Vec::with_capacity(64) })
    }

    /// The customer's number. Of several with one name it is the middle one by first name, rounded up (clause 2.5.2.2).
    pub async fn number<S: Session>(
        &mut self,
        session: &mut S,
        warehouse: i64,
        district: i64,
        wanted: Wanted,
    ) -> Result<i64> {
        let number = match wanted {
            Wanted::Number(number) => return Ok(number),
            Wanted::LastName(number) => number,
        };
        let name = draw::last_name(number, &mut self.last_name);
        let numbers = &mut self.numbers;
        numbers.clear();
        let parameters = [Value::Int(warehouse), Value::Int(district), Value::Text(name)];
        let mut rows = Each(|row: &dyn Row| numbers.extend(row.value(0).as_i64()));
        session.execute(self.by_name, &parameters, &mut rows).await?;
        middle(&self.numbers).ok_or_else(|| {
            missing(format!("customer {} of district {district}, warehouse {warehouse}", self.last_name))
        })
    }
}

fn middle(numbers: &[i64]) -> Option<i64> {
    numbers.get(numbers.len().checked_sub(1)? / 2).copied()
}

/// A row that every loaded database has.
pub fn missing(what: String) -> Error {
    Error::server("row missing", Fate::Failed, format!("tpcc found no {what}")).hint(
        "the database holds fewer warehouses than the job says, or its load did not end: prepare it again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_rounded_up() {
        assert_eq!(middle(&[]), None);
        assert_eq!(middle(&[1]), Some(1));
        assert_eq!(middle(&[1, 2]), Some(1));
        assert_eq!(middle(&[1, 2, 3]), Some(2));
        assert_eq!(middle(&[1, 2, 3, 4]), Some(2));
    }
}
