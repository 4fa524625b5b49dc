//! The first rows (specification 5.11, clause 4.3.3). A part is a tenth of the items, or one district with a tenth of
//! its warehouse's stock, so that even one warehouse loads in parallel and every table grows in the order of its key.

use super::draw::{self, Cents, Rate, CUSTOMERS, DISTRICTS, ITEMS};
use crate::error::Result;
use crate::random::Random;
use crate::session::{RowBuffer, Session};

const ITEM_PARTS: i64 = 10;
const ITEMS_PER_PART: i64 = ITEMS / ITEM_PARTS;
/// Orders up to here have been delivered; the 900 after it are new.
const LAST_DELIVERED: i64 = 2_100;
const FIRST_FREE_ORDER: i64 = CUSTOMERS + 1;
/// One date for all rows: the data then depends on the seed alone, and no transaction looks at it.
const LOADED_AT: &str = "2026-01-01 00:00:00";

pub fn parts(warehouses: i64) -> u64 {
    (ITEM_PARTS + warehouses * DISTRICTS) as u64
}

pub async fn load<S: Session>(part: u64, session: &mut S, random: Random) -> Result<u64> {
    let part = part as i64;
    if part < ITEM_PARTS {
        return items(session, part * ITEMS_PER_PART, random).await;
    }
    let (warehouse, tenth) = ((part - ITEM_PARTS) / DISTRICTS + 1, (part - ITEM_PARTS) % DISTRICTS);
    let mut district = Part { session, random, text: String::new(), warehouse, district: tenth + 1 };
    let mut rows = 0;
    if tenth == 0 {
        rows += district.warehouse_row().await?;
    }
    rows += district.district_row().await?;
    rows += district.stock(tenth * ITEMS_PER_PART).await?;
    rows += district.customers().await?;
    rows += district.history().await?;
    rows += district.orders().await?;
    Ok(rows)
}

async fn items<S: Session>(session: &mut S, after: i64, mut random: Random) -> Result<u64> {
    let (mut ids, mut text) = (after + 1..=after + ITEMS_PER_PART, String::new());
    session
        .bulk_insert("item", &["i_id", "i_im_id", "i_name", "i_price", "i_data"], |row| {
            let Some(id) = ids.next() else { return false };
            row.int(id).int(random.between(1, 10_000));
            row.text(draw::letters(&mut random, 14, 24, &mut text));
            row.display(Cents(random.between(100, 10_000)));
            row.text(draw::data(&mut random, &mut text));
            true
        })
        .await
}

struct Part<'a, S> {
    session: &'a mut S,
    random: Random,
    text: String,
    warehouse: i64,
    district: i64,
}

/// Two streets, city, state and zip code.
fn address(row: &mut RowBuffer, random: &mut Random, text: &mut String) {
    for _ in 0..3 {
        row.text(draw::letters(random, 10, 20, text));
    }
    row.text(draw::state(random, text)).text(draw::zip(random, text));
}

impl<S: Session> Part<'_, S> {
    async fn warehouse_row(&mut self) -> Result<u64> {
        let (random, text) = (&mut self.random, &mut self.text);
        let mut once = std::iter::once(self.warehouse);
        let columns =
            ["w_id", "w_name", "w_street_1", "w_street_2", "w_city", "w_state", "w_zip", "w_tax", "w_ytd"];
        self.session
            .bulk_insert("warehouse", &columns, |row| {
                let Some(id) = once.next() else { return false };
                row.int(id).text(draw::letters(random, 6, 10, text));
                address(row, random, text);
                row.display(Rate(random.between(0, 2_000))).display(Cents::whole(300_000));
                true
            })
            .await
    }

    async fn district_row(&mut self) -> Result<u64> {
        let (random, text, warehouse) = (&mut self.random, &mut self.text, self.warehouse);
        let mut once = std::iter::once(self.district);
        let columns = [
            "d_id",
            "d_w_id",
            "d_name",
            "d_street_1",
            "d_street_2",
            "d_city",
            "d_state",
            "d_zip",
            "d_tax",
            "d_ytd",
            "d_next_o_id",
        ];
        self.session
            .bulk_insert("district", &columns, |row| {
                let Some(id) = once.next() else { return false };
                row.int(id).int(warehouse).text(draw::letters(random, 6, 10, text));
                address(row, random, text);
                row.display(Rate(random.between(0, 2_000)))
                    .display(Cents::whole(30_000))
                    .int(FIRST_FREE_ORDER);
                true
            })
            .await
    }

    async fn stock(&mut self, after: i64) -> Result<u64> {
        let (random, text, warehouse) = (&mut self.random, &mut self.text, self.warehouse);
        let mut items = after + 1..=after + ITEMS_PER_PART;
        let columns = [
            "s_i_id",
            "s_w_id",
            "s_quantity",
            "s_dist_01",
            "s_dist_02",
            "s_dist_03",
            "s_dist_04",
            "s_dist_05",
            "s_dist_06",
            "s_dist_07",
            "s_dist_08",
            "s_dist_09",
            "s_dist_10",
            "s_ytd",
            "s_order_cnt",
            "s_remote_cnt",
            "s_data",
        ];
        self.session
            .bulk_insert("stock", &columns, |row| {
                let Some(item) = items.next() else { return false };
                row.int(item).int(warehouse).int(random.between(10, 100));
                for _ in 0..DISTRICTS {
                    row.text(draw::letters(random, 24, 24, text));
                }
                row.int(0).int(0).int(0).text(draw::data(random, text));
                true
            })
            .await
    }

    async fn customers(&mut self) -> Result<u64> {
        let (random, text) = (&mut self.random, &mut self.text);
        let (warehouse, district) = (self.warehouse, self.district);
        let mut ids = 1..=CUSTOMERS;
        let columns = [
            "c_id",
            "c_d_id",
            "c_w_id",
            "c_first",
            "c_middle",
            "c_last",
            "c_street_1",
            "c_street_2",
            "c_city",
            "c_state",
            "c_zip",
            "c_phone",
            "c_since",
            "c_credit",
            "c_credit_lim",
            "c_discount",
            "c_balance",
            "c_ytd_payment",
            "c_payment_cnt",
            "c_delivery_cnt",
            "c_data",
        ];
        self.session
            .bulk_insert("customer", &columns, |row| {
                let Some(id) = ids.next() else { return false };
                row.int(id).int(district).int(warehouse);
                row.text(draw::letters(random, 8, 16, text)).text("OE");
                row.text(draw::last_name(draw::last_name_of_load(random, id), text));
                address(row, random, text);
                row.text(draw::digits(random, 16, 16, text)).text(LOADED_AT);
                row.text(if random.below(10) == 0 { "BC" } else { "GC" }).display(Cents::whole(50_000));
                row.display(Rate(random.between(0, 5_000)))
                    .display(Cents::whole(-10))
                    .display(Cents::whole(10));
                row.int(1).int(0).text(draw::letters(random, 300, 500, text));
                true
            })
            .await
    }

    async fn history(&mut self) -> Result<u64> {
        let (random, text) = (&mut self.random, &mut self.text);
        let (warehouse, district) = (self.warehouse, self.district);
        let mut ids = 1..=CUSTOMERS;
        let columns = ["h_c_id", "h_c_d_id", "h_c_w_id", "h_d_id", "h_w_id", "h_date", "h_amount", "h_data"];
        self.session
            .bulk_insert("history", &columns, |row| {
                let Some(id) = ids.next() else { return false };
                row.int(id).int(district).int(warehouse).int(district).int(warehouse).text(LOADED_AT);
                row.display(Cents::whole(10)).text(draw::letters(random, 12, 24, text));
                true
            })
            .await
    }

    async fn orders(&mut self) -> Result<u64> {
        let customers = shuffled_customers(&mut self.random);
        let lines: Vec<i64> = (0..CUSTOMERS).map(|_| self.random.between(5, 15)).collect();
        let mut rows = self.order_rows(&customers, &lines).await?;
        rows += self.order_lines(&lines).await?;
        rows += self.new_orders().await?;
        Ok(rows)
    }

    async fn order_rows(&mut self, customers: &[i64], lines: &[i64]) -> Result<u64> {
        let (random, warehouse, district) = (&mut self.random, self.warehouse, self.district);
        let mut orders = (1..).zip(customers).zip(lines);
        let columns =
            ["o_id", "o_d_id", "o_w_id", "o_c_id", "o_entry_d", "o_carrier_id", "o_ol_cnt", "o_all_local"];
        self.session
            .bulk_insert("orders", &columns, |row| {
                let Some(((id, &customer), &lines)) = orders.next() else { return false };
                row.int(id).int(district).int(warehouse).int(customer).text(LOADED_AT);
                if id <= LAST_DELIVERED {
                    row.int(random.between(1, 10));
                } else {
                    row.null();
                }
                row.int(lines).int(1);
                true
            })
            .await
    }

    async fn order_lines(&mut self, lines: &[i64]) -> Result<u64> {
        let (random, text) = (&mut self.random, &mut self.text);
        let (warehouse, district) = (self.warehouse, self.district);
        let mut numbers =
            (1..).zip(lines).flat_map(|(id, &lines)| (1..=lines).map(move |number| (id, number)));
        let columns = [
            "ol_o_id",
            "ol_d_id",
            "ol_w_id",
            "ol_number",
            "ol_i_id",
            "ol_supply_w_id",
            "ol_delivery_d",
            "ol_quantity",
            "ol_amount",
            "ol_dist_info",
        ];
        self.session
            .bulk_insert("order_line", &columns, |row| {
                let Some((id, number)) = numbers.next() else { return false };
                row.int(id).int(district).int(warehouse).int(number);
                row.int(random.between(1, ITEMS)).int(warehouse);
                if id <= LAST_DELIVERED {
                    row.text(LOADED_AT).int(5).display(Cents(0));
                } else {
                    row.null().int(5).display(Cents(random.between(1, 999_999)));
                }
                row.text(draw::letters(random, 24, 24, text));
                true
            })
            .await
    }

    async fn new_orders(&mut self) -> Result<u64> {
        let (warehouse, district) = (self.warehouse, self.district);
        let mut ids = LAST_DELIVERED + 1..=CUSTOMERS;
        self.session
            .bulk_insert("new_order", &["no_o_id", "no_d_id", "no_w_id"], |row| {
                ids.next().map(|id| row.int(id).int(district).int(warehouse)).is_some()
            })
            .await
    }
}

/// The customer of each order: every customer has one (Fisher and Yates's shuffle).
fn shuffled_customers(random: &mut Random) -> Vec<i64> {
    let mut customers: Vec<i64> = (1..=CUSTOMERS).collect();
    for last in (1..customers.len()).rev() {
        customers.swap(last, random.below(last as u64 + 1) as usize);
    }
    customers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_customer_has_one_order() {
        let mut customers = shuffled_customers(&mut Random::new(5, 0));
        assert_ne!(customers[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        customers.sort_unstable();
        assert!(customers.into_iter().eq(1..=CUSTOMERS));
    }
}
