//! The New-Order transaction (clause 2.4): it orders 5 to 15 items. With an item that does not exist it is rolled back.
//!
//! What contends is locked before the first plain read, so that an engine that refuses to lock rows newer than its
//! snapshot has nothing to refuse. All items are read by one `IN` list, the stock by one per supplying warehouse, and
//! all order lines are inserted by one statement where the engine has multi-row INSERT; each line's stock is updated by
//! a statement of its own, these being in flight together where the protocol allows it.

use super::customers::missing;
use super::draw::{self, Amount, Cents};
use super::lists::{repeated, Lists, Parameters};
use crate::error::Result;
use crate::random::Random;
use crate::session::{Dialect, Each, Row, Session, Statement, Value};
use crate::workload::{Outcome, Page};

const MOST_LINES: usize = 15;
const UNUSED_ITEM: i64 = draw::ITEMS + 1;
const LINE_COLUMNS: usize = 9;

pub struct NewOrder {
    take_number: Statement,
    district: Statement,
    customer: Statement,
    insert_order: Statement,
    insert_new_order: Statement,
    items: Lists,
    stock: Lists,
    update_stock: Statement,
    insert_lines: Insert,
    lines: Vec<Line>,
}

/// How order lines are inserted.
enum Insert {
    Together(Lists),
    OneByOne(Statement),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub supplier: i64,
    pub item: i64,
    pub quantity: i64,
    /// `None` for an item that does not exist.
    pub price: Option<Cents>,
    pub amount: Amount,
    pub info: Option<[u8; 24]>,
}

impl NewOrder {
    pub async fn prepare<S: Session>(session: &mut S) -> Result<Self> {
        let dialect = session.dialect();
        let (lock, now) = (super::for_update(dialect), dialect.now);
        Ok(NewOrder {
            take_number: session
                .prepare("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?")
                .await?,
            district: session
                .prepare(&format!(
                    "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ?{lock}"
                ))
                .await?,
            customer: session
                .prepare(
                    "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
                     WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?",
                )
                .await?,
            insert_order: session
                .prepare(&format!(
                    "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
                     VALUES (?, ?, ?, ?, {now}, ?, ?)"
                ))
                .await?,
            insert_new_order: session
                .prepare("INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)")
                .await?,
            items: Lists::prepare(session, 5..=MOST_LINES, |length| {
                format!(
                    "SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN ({})",
                    repeated("?", length)
                )
            })
            .await?,
            stock: Lists::prepare(session, 1..=MOST_LINES, |length| stock_sql(length, lock)).await?,
            // The arithmetic is the statement's own, so that an item that occurs twice in an order counts twice.
            update_stock: session
                .prepare(
                    "UPDATE stock SET s_quantity = CASE WHEN s_quantity - ? >= 10 THEN s_quantity - ? \
                     ELSE s_quantity - ? + 91 END, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
                     s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?",
                )
                .await?,
            insert_lines: Insert::prepare(session, dialect).await?,
            lines: Vec::with_capacity(MOST_LINES),
        })
    }

    pub async fn perform<S: Session>(
        &mut self,
        session: &mut S,
        random: &mut Random,
        page: &mut Page,
        home: i64,
        warehouses: i64,
        with_unused_item: bool,
    ) -> Result<Outcome> {
        let (district, customer) = (random.between(1, draw::DISTRICTS), draw::customer(random));
        draw_lines(&mut self.lines, random, home, warehouses, with_unused_item);
        let (w_id, d_id) = (Value::Int(home), Value::Int(district));

        session.begin().await?;
        session.execute(self.take_number, &[w_id, d_id], &mut ()).await?;
        let o_id = Value::Int(self.order_number(session, home, district).await?);
        self.read_stock(session, district).await?;
        session.execute(self.customer, &[w_id, d_id, Value::Int(customer)], &mut ()).await?;
        self.read_items(session).await?;

        let all_local = self.lines.iter().all(|line| line.supplier == home);
        let lines = Value::Int(self.lines.len() as i64);
        let order = [o_id, d_id, w_id, Value::Int(customer), lines, Value::Int(i64::from(all_local))];
        session.execute(self.insert_order, &order, &mut ()).await?;
        session.execute(self.insert_new_order, &[o_id, d_id, w_id], &mut ()).await?;
        // The order with the unused item is worked through like any other before it is rolled back (clause 2.4.2.3).
        let ordered = self.lines.len();
        self.lines.retain(|line| line.price.is_some());
        self.update_stock(session, home).await?;
        self.insert_lines(session, [o_id, d_id, w_id]).await?;
        if self.lines.len() < ordered {
            session.rollback().await?;
            return Ok(Outcome::RolledBack);
        }
        page.write(session).await?;
        session.commit().await?;
        Ok(Outcome::Committed)
    }

    async fn order_number<S: Session>(&self, session: &mut S, warehouse: i64, district: i64) -> Result<i64> {
        let mut next = None;
        let mut rows = Each(|row: &dyn Row| next = row.value(0).as_i64());
        session.execute(self.district, &[Value::Int(warehouse), Value::Int(district)], &mut rows).await?;
        next.map(|next| next - 1)
            .ok_or_else(|| missing(format!("district {district} of warehouse {warehouse}")))
    }

    /// Reads (and locks) the stock of all lines; they are sorted by supplier, then item.
    async fn read_stock<S: Session>(&mut self, session: &mut S, district: i64) -> Result<()> {
        for lines in self.lines.chunk_by_mut(|one, next| one.supplier == next.supplier) {
            let mut parameters = Parameters::<{ 1 + MOST_LINES }>::new();
            parameters.extend([Value::Int(lines[0].supplier)]);
            parameters.extend(lines.iter().map(|line| Value::Int(line.item)));
            let mut rows = Each(|row: &dyn Row| {
                let (item, info) = (row.value(0).as_i64(), info_of(row.value(2 + district as usize)));
                for line in lines.iter_mut().filter(|line| item == Some(line.item)) {
                    line.info = info;
                }
            });
            session
                .execute(self.stock.of(parameters.as_slice().len() - 1), parameters.as_slice(), &mut rows)
                .await?;
        }
        Ok(())
    }

    async fn read_items<S: Session>(&mut self, session: &mut S) -> Result<()> {
        let mut parameters = Parameters::<MOST_LINES>::new();
        parameters.extend(self.lines.iter().map(|line| Value::Int(line.item)));
        let lines = &mut self.lines;
        let mut rows = Each(|row: &dyn Row| {
            let (item, price) = (row.value(0).as_i64(), draw::cents_of(row.value(1)));
            for line in lines.iter_mut().filter(|line| item == Some(line.item)) {
                line.price = price;
            }
        });
        session.execute(self.items.of(parameters.as_slice().len()), parameters.as_slice(), &mut rows).await?;
        for line in &mut self.lines {
            match (line.price, line.info) {
                (Some(Cents(price)), Some(_)) => line.amount = Amount::new(Cents(line.quantity * price)),
                (None, _) if line.item == UNUSED_ITEM => {}
                _ => {
                    return Err(missing(format!(
                        "item {} with its stock in warehouse {}",
                        line.item, line.supplier
                    )))
                }
            }
        }
        Ok(())
    }

    async fn update_stock<S: Session>(&self, session: &mut S, home: i64) -> Result<()> {
        const WIDTH: usize = 7;
        let mut parameters = Parameters::<{ WIDTH * MOST_LINES }>::new();
        for line in &self.lines {
            let (quantity, remote) = (Value::Int(line.quantity), i64::from(line.supplier != home));
            let (supplier, item) = (Value::Int(line.supplier), Value::Int(line.item));
            parameters.extend([quantity, quantity, quantity, quantity, Value::Int(remote), supplier, item]);
        }
        session.execute_batch(self.update_stock, parameters.as_slice(), WIDTH, &mut ()).await?;
        Ok(())
    }

    async fn insert_lines<S: Session>(&self, session: &mut S, order: [Value<'_>; 3]) -> Result<()> {
        let mut parameters = Parameters::<{ LINE_COLUMNS * MOST_LINES }>::new();
        for (line, number) in self.lines.iter().zip(1..) {
            parameters.extend(order);
            parameters.extend([
                Value::Int(number),
                Value::Int(line.item),
                Value::Int(line.supplier),
                Value::Int(line.quantity),
                line.amount.value(),
                line.info
                    .as_ref()
                    .map_or(Value::Null, |info| Value::Text(std::str::from_utf8(info).unwrap_or_default())),
            ]);
        }
        match &self.insert_lines {
            Insert::Together(lists) => {
                session.execute(lists.of(self.lines.len()), parameters.as_slice(), &mut ()).await?;
            }
            Insert::OneByOne(insert) => {
                session.execute_batch(*insert, parameters.as_slice(), LINE_COLUMNS, &mut ()).await?;
            }
        }
        Ok(())
    }
}

impl Insert {
    async fn prepare<S: Session>(session: &mut S, dialect: &Dialect) -> Result<Self> {
        let sql = |rows| {
            let row = format!("({})", repeated("?", LINE_COLUMNS));
            format!(
                "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, \
                 ol_quantity, ol_amount, ol_dist_info) VALUES {}",
                repeated(&row, rows)
            )
        };
        if dialect.multi_row_insert {
            // Four lines are left of a shortest order whose last item does not exist.
            Ok(Insert::Together(Lists::prepare(session, 4..=MOST_LINES, sql).await?))
        } else {
            Ok(Insert::OneByOne(session.prepare(&sql(1)).await?))
        }
    }
}

fn stock_sql(length: usize, lock: &str) -> String {
    format!(
        "SELECT s_i_id, s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, \
         s_dist_07, s_dist_08, s_dist_09, s_dist_10 FROM stock WHERE s_w_id = ? AND s_i_id IN ({}){lock}",
        repeated("?", length)
    )
}

/// The district's text of a stock row: 24 characters, with or without the blanks that pad a CHAR.
fn info_of(value: Value<'_>) -> Option<[u8; 24]> {
    let text = value.as_str()?.as_bytes();
    let mut info = [b' '; 24];
    info.get_mut(..text.len())?.copy_from_slice(text);
    Some(info)
}

/// Draws the lines and sorts them by supplier and item: all orders then lock stock in the same sequence.
pub(super) fn draw_lines(
    lines: &mut Vec<Line>,
    random: &mut Random,
    home: i64,
    warehouses: i64,
    with_unused_item: bool,
) {
    let count = random.between(5, MOST_LINES as i64);
    lines.clear();
    for number in 1..=count {
        let remote = warehouses > 1 && random.below(100) == 0;
        let supplier = if remote { draw::other_warehouse(random, home, warehouses) } else { home };
        let item = if with_unused_item && number == count { UNUSED_ITEM } else { draw::item(random) };
        let quantity = random.between(1, 10);
        lines.push(Line { supplier, item, quantity, price: None, amount: Amount::new(Cents(0)), info: None });
    }
    lines.sort_unstable_by_key(|line| (line.supplier, line.item));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_drawn_as_the_specification_says() {
        let (mut random, mut lines) = (Random::new(11, 0), Vec::new());
        let (mut all, mut remote, mut unused) = (0, 0, 0);
        for order in 0..20_000 {
            draw_lines(&mut lines, &mut random, 2, 3, order < 200);
            assert!((5..=15).contains(&lines.len()));
            assert!(lines.is_sorted_by_key(|line| (line.supplier, line.item)));
            all += lines.len();
            remote += lines.iter().filter(|line| line.supplier != 2).count();
            unused += lines.iter().filter(|line| line.item == UNUSED_ITEM).count();
        }
        // 200,000 lines and 2,000 of them remote are expected; five standard deviations each.
        assert!((197_700..=202_300).contains(&all), "{all}");
        assert!((1_775..=2_225).contains(&remote), "{remote}");
        assert_eq!(unused, 200);
    }

    #[test]
    fn a_padded_and_a_bare_text_are_the_same() {
        assert_eq!(info_of(Value::Text("abc")), info_of(Value::Text("abc                     ")));
        assert_eq!(info_of(Value::Text("a text that is longer than a CHAR(24)")), None);
    }
}
