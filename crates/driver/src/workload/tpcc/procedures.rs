//! The five transactions as procedures at the server (`procedures = true`): each is one statement, and what its terminal
//! shows comes back with it. The random numbers are those of the plain statements, so a seed draws the same transactions.

use super::customers::{missing, Wanted};
use super::draw::{self, Amount, DISTRICTS};
use super::new_order::{draw_lines, Line};
use super::payment::Slip;
use super::{DELIVERY, NEW_ORDER, ORDER_STATUS, PAYMENT, ROLLED_BACK};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::session::{whole_number, First, ProcedureSql, Session, Statement, Value};
use crate::workload::{Outcome, Page};
use std::fmt::Write;

const LONGEST_LINES: usize = 512;

/// What one language has them made, counted, dropped and called by.
struct Texts {
    create: &'static str,
    count: &'static str,
    drop: &'static str,
    new_order: &'static str,
    payment: &'static str,
    order_status: &'static str,
    delivery: &'static str,
    stock_level: &'static str,
}

const MYSQL: Texts = Texts {
    create: include_str!("procedures/mysql.sql"),
    count: "SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = DATABASE() AND routine_name IN \
            ('tpcc_new_order', 'tpcc_payment', 'tpcc_order_status', 'tpcc_delivery', 'tpcc_stock_level')",
    drop: "DROP PROCEDURE IF EXISTS tpcc_new_order; DROP PROCEDURE IF EXISTS tpcc_payment; \
           DROP PROCEDURE IF EXISTS tpcc_order_status; DROP PROCEDURE IF EXISTS tpcc_delivery; \
           DROP PROCEDURE IF EXISTS tpcc_stock_level",
    new_order: "CALL tpcc_new_order(?, ?, ?, ?, ?, ?, ?, ?)",
    payment: "CALL tpcc_payment(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    order_status: "CALL tpcc_order_status(?, ?, ?, ?)",
    delivery: "CALL tpcc_delivery(?, ?, ?, ?, ?)",
    stock_level: "CALL tpcc_stock_level(?, ?, ?)",
};

const POSTGRESQL: Texts = Texts {
    create: include_str!("procedures/postgresql.sql"),
    count: "SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = current_schema() AND routine_name \
            IN ('tpcc_new_order', 'tpcc_payment', 'tpcc_order_status', 'tpcc_delivery', 'tpcc_stock_level')",
    drop: "DROP ROUTINE IF EXISTS tpcc_new_order; DROP ROUTINE IF EXISTS tpcc_payment; \
           DROP ROUTINE IF EXISTS tpcc_order_status; DROP ROUTINE IF EXISTS tpcc_delivery; \
           DROP ROUTINE IF EXISTS tpcc_stock_level",
    // What comes after the parameters is given back.
    new_order: "CALL tpcc_new_order(?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    payment: "CALL tpcc_payment(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
              NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    order_status: "SELECT * FROM tpcc_order_status(?, ?, ?, ?)",
    delivery: "CALL tpcc_delivery(?, ?, ?, ?, ?, NULL)",
    stock_level: "SELECT tpcc_stock_level(?, ?, ?)",
};

const PROCEDURES: i64 = 5;

fn texts<S: Session>(session: &S) -> Result<(ProcedureSql, &'static Texts)> {
    match session.dialect().procedures {
        Some(ProcedureSql::Mysql) => Ok((ProcedureSql::Mysql, &MYSQL)),
        Some(ProcedureSql::Postgresql) => Ok((ProcedureSql::Postgresql, &POSTGRESQL)),
        None => Err(Error::user(format!("tpcc has no procedures for {}", session.dialect().name))
            .hint("leave procedures out, or run it on MariaDB, MySQL or PostgreSQL")),
    }
}

pub async fn create<S: Session>(session: &mut S) -> Result<()> {
    drop_all(session).await?;
    let (_, texts) = texts(session)?;
    session.text(texts.create, &mut ()).await.map(drop)
}

pub async fn drop_all<S: Session>(session: &mut S) -> Result<()> {
    let (_, texts) = texts(session)?;
    session.text(texts.drop, &mut ()).await.map(drop)
}

/// Refuses data that were made without them.
pub async fn look_for<S: Session>(session: &mut S) -> Result<()> {
    let (_, texts) = texts(session)?;
    match whole_number(session, texts.count).await? {
        PROCEDURES.. => Ok(()),
        _ => Err(Error::user("the data were prepared without tpcc's procedures")
            .hint("prepare them with procedures = true, or run without it")),
    }
}

/// The calls of one client, with their buffers.
pub struct Procedures {
    sql: ProcedureSql,
    new_order: Statement,
    payment: Statement,
    order_status: Statement,
    delivery: Statement,
    stock_level: Statement,
    lines: Vec<Line>,
    written_lines: String,
    last_name: String,
}

impl Procedures {
    pub async fn prepare<S: Session>(session: &mut S) -> Result<Self> {
        let (sql, texts) = texts(session)?;
        Ok(Procedures {
            sql,
            new_order: session.prepare(texts.new_order).await?,
            payment: session.prepare(texts.payment).await?,
            order_status: session.prepare(texts.order_status).await?,
            delivery: session.prepare(texts.delivery).await?,
            stock_level: session.prepare(texts.stock_level).await?,
            lines: Vec::new(),
            written_lines: String::with_capacity(LONGEST_LINES),
            last_name: String::with_capacity(16),
        })
    }

    pub async fn perform<S: Session>(
        &mut self,
        kind: usize,
        session: &mut S,
        random: &mut Random,
        page: &mut Page,
        (home, district): (i64, i64),
        warehouses: i64,
    ) -> Result<Outcome> {
        match kind {
            NEW_ORDER => return self.new_order(session, random, page, home, warehouses, false).await,
            ROLLED_BACK => return self.new_order(session, random, page, home, warehouses, true).await,
            PAYMENT => self.payment(session, random, page, home, warehouses).await?,
            ORDER_STATUS => self.order_status(session, random, home).await?,
            DELIVERY => {
                let carrier = Value::Int(random.between(1, 10));
                let [cut, client, entry] = page.row();
                let parameters = [Value::Int(home), carrier, cut, client, entry];
                session.execute(self.delivery, &parameters, &mut ()).await?;
            }
            _ => {
                let parameters = [home, district, random.between(10, 20)].map(Value::Int);
                session.execute(self.stock_level, &parameters, &mut ()).await?;
            }
        }
        Ok(Outcome::Committed)
    }

    async fn new_order<S: Session>(
        &mut self,
        session: &mut S,
        random: &mut Random,
        page: &mut Page,
        home: i64,
        warehouses: i64,
        with_unused_item: bool,
    ) -> Result<Outcome> {
        let (district, customer) = (random.between(1, DISTRICTS), draw::customer(random));
        draw_lines(&mut self.lines, random, home, warehouses, with_unused_item);
        write_lines(self.sql, &self.lines, &mut self.written_lines);
        let all_local = self.lines.iter().all(|line| line.supplier == home);
        let [w_id, d_id, c_id, local] = [home, district, customer, i64::from(all_local)].map(Value::Int);
        // What is rolled back leaves no row in the ledger either.
        let [cut, client, entry] = if with_unused_item { [Value::Null; 3] } else { page.row() };
        let parameters = [w_id, d_id, c_id, Value::Text(&self.written_lines), local, cut, client, entry];
        let mut number = First::<i64>::default();
        let answer = session.execute(self.new_order, &parameters, &mut number).await?;
        match number.0 {
            Some(_) if !with_unused_item => Ok(Outcome::Committed),
            None if with_unused_item => Ok(Outcome::RolledBack),
            // A session that explains statements calls none.
            None if answer.rows == 0 => Ok(Outcome::Committed),
            _ => Err(missing(format!("item of an order in warehouse {home}"))),
        }
    }

    async fn payment<S: Session>(
        &mut self,
        session: &mut S,
        random: &mut Random,
        page: &mut Page,
        home: i64,
        warehouses: i64,
    ) -> Result<()> {
        let slip = Slip::draw(random, home, warehouses);
        let amount = Amount::new(slip.amount);
        let [w_id, d_id, c_w_id, c_d_id] =
            [home, slip.district, slip.customer_warehouse, slip.customer_district].map(Value::Int);
        let (c_id, c_last) = customer(slip.wanted, &mut self.last_name);
        let [cut, client, entry] = page.row();
        let parameters = [w_id, d_id, c_w_id, c_d_id, c_id, c_last, amount.value(), cut, client, entry];
        session.execute(self.payment, &parameters, &mut ()).await.map(drop)
    }

    async fn order_status<S: Session>(
        &mut self,
        session: &mut S,
        random: &mut Random,
        home: i64,
    ) -> Result<()> {
        let (district, wanted) = (random.between(1, DISTRICTS), Wanted::draw(random));
        let (c_id, c_last) = customer(wanted, &mut self.last_name);
        let parameters = [Value::Int(home), Value::Int(district), c_id, c_last];
        session.execute(self.order_status, &parameters, &mut ()).await.map(drop)
    }
}

/// A customer's number and last name, one of which is given.
fn customer(wanted: Wanted, last_name: &mut String) -> (Value<'static>, Value<'_>) {
    match wanted {
        Wanted::Number(number) => (Value::Int(number), Value::Null),
        Wanted::LastName(number) => (Value::Null, Value::Text(draw::last_name(number, last_name))),
    }
}

/// Writes an order's lines as the one parameter that the procedure takes: digits in columns, or an array of arrays.
fn write_lines(sql: ProcedureSql, lines: &[Line], text: &mut String) {
    text.clear();
    for line in lines {
        let Line { item, supplier, quantity, .. } = line;
        // Writing to a String cannot fail.
        let _ = match sql {
            ProcedureSql::Mysql => write!(text, "{item:06}{supplier:06}{quantity:02}"),
            ProcedureSql::Postgresql => {
                let before = if text.is_empty() { '{' } else { ',' };
                write!(text, "{before}{{{item},{supplier},{quantity}}}")
            }
        };
    }
    if matches!(sql, ProcedureSql::Postgresql) {
        text.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tpcc::draw::Cents;

    fn line(item: i64, supplier: i64, quantity: i64) -> Line {
        Line { supplier, item, quantity, price: None, amount: Amount::new(Cents(0)), info: None }
    }

    #[test]
    fn lines_are_written_as_each_language_reads_them() {
        let lines = [line(7, 1, 10), line(100_001, 100_000, 3)];
        let mut text = String::new();
        write_lines(ProcedureSql::Mysql, &lines, &mut text);
        assert_eq!(text, "0000070000011010000110000003");
        write_lines(ProcedureSql::Postgresql, &lines, &mut text);
        assert_eq!(text, "{{7,1,10},{100001,100000,3}}");
    }

    #[test]
    fn the_longest_order_fits_where_it_is_written() {
        let lines = [line(100_001, 100_000, 10); 15];
        for sql in [ProcedureSql::Mysql, ProcedureSql::Postgresql] {
            let mut text = String::new();
            write_lines(sql, &lines, &mut text);
            assert!(text.len() <= LONGEST_LINES);
        }
    }

    #[test]
    fn each_procedure_is_made_counted_and_dropped_under_its_name() {
        for texts in [&MYSQL, &POSTGRESQL] {
            let made: Vec<&str> = texts
                .create
                .lines()
                .filter_map(|line| {
                    line.strip_prefix("CREATE PROCEDURE ").or(line.strip_prefix("CREATE FUNCTION "))
                })
                .filter_map(|line| line.split('(').next())
                .collect();
            assert_eq!(made.len() as i64, PROCEDURES);
            for name in made {
                assert!(texts.count.contains(&format!("'{name}'")), "{name}");
                assert!(texts.drop.contains(&format!("IF EXISTS {name}")), "{name}");
            }
        }
    }
}
