//! The nine tables of TPC-C under their conventional names, columns as in clause 1.3 of the specification.

use crate::error::Result;
use crate::session::{Dialect, Session};

struct Table {
    name: &'static str,
    /// `{timestamp}` stands for the dialect's type.
    columns: &'static str,
    /// Empty where the specification gives no key.
    key: &'static str,
}

const TABLES: [Table; 9] = [
    Table {
        name: "warehouse",
        columns: "w_id INTEGER NOT NULL, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_street_2 VARCHAR(20), \
                  w_city VARCHAR(20), w_state CHAR(2), w_zip CHAR(9), w_tax DECIMAL(4, 4), w_ytd DECIMAL(12, 2)",
        key: "w_id",
    },
    Table {
        name: "district",
        columns: "d_id INTEGER NOT NULL, d_w_id INTEGER NOT NULL, d_name VARCHAR(10), d_street_1 VARCHAR(20), \
                  d_street_2 VARCHAR(20), d_city VARCHAR(20), d_state CHAR(2), d_zip CHAR(9), d_tax DECIMAL(4, 4), \
                  d_ytd DECIMAL(12, 2), d_next_o_id INTEGER",
        key: "d_w_id, d_id",
    },
    Table {
        name: "customer",
        columns: "c_id INTEGER NOT NULL, c_d_id INTEGER NOT NULL, c_w_id INTEGER NOT NULL, c_first VARCHAR(16), \
                  c_middle CHAR(2), c_last VARCHAR(16), c_street_1 VARCHAR(20), c_street_2 VARCHAR(20), \
                  c_city VARCHAR(20), c_state CHAR(2), c_zip CHAR(9), c_phone CHAR(16), c_since {timestamp}, \
                  c_credit CHAR(2), c_credit_lim DECIMAL(12, 2), c_discount DECIMAL(4, 4), c_balance DECIMAL(12, 2), \
                  c_ytd_payment DECIMAL(12, 2), c_payment_cnt INTEGER, c_delivery_cnt INTEGER, c_data VARCHAR(500)",
        key: "c_w_id, c_d_id, c_id",
    },
    Table {
        name: "history",
        columns: "h_c_id INTEGER, h_c_d_id INTEGER, h_c_w_id INTEGER, h_d_id INTEGER, h_w_id INTEGER, \
                  h_date {timestamp}, h_amount DECIMAL(6, 2), h_data VARCHAR(24)",
        key: "",
    },
    Table {
        name: "new_order",
        columns: "no_o_id INTEGER NOT NULL, no_d_id INTEGER NOT NULL, no_w_id INTEGER NOT NULL",
        key: "no_w_id, no_d_id, no_o_id",
    },
    Table {
        name: "orders",
        columns: "o_id INTEGER NOT NULL, o_d_id INTEGER NOT NULL, o_w_id INTEGER NOT NULL, o_c_id INTEGER, \
                  o_entry_d {timestamp}, o_carrier_id INTEGER, o_ol_cnt INTEGER, o_all_local INTEGER",
        key: "o_w_id, o_d_id, o_id",
    },
    Table {
        name: "order_line",
        columns: "ol_o_id INTEGER NOT NULL, ol_d_id INTEGER NOT NULL, ol_w_id INTEGER NOT NULL, \
                  ol_number INTEGER NOT NULL, ol_i_id INTEGER, ol_supply_w_id INTEGER, ol_delivery_d {timestamp}, \
                  ol_quantity INTEGER, ol_amount DECIMAL(6, 2), ol_dist_info CHAR(24)",
        key: "ol_w_id, ol_d_id, ol_o_id, ol_number",
    },
    Table {
        name: "item",
        columns: "i_id INTEGER NOT NULL, i_im_id INTEGER, i_name VARCHAR(24), i_price DECIMAL(5, 2), \
                  i_data VARCHAR(50)",
        key: "i_id",
    },
    Table {
        name: "stock",
        columns: "s_i_id INTEGER NOT NULL, s_w_id INTEGER NOT NULL, s_quantity INTEGER, s_dist_01 CHAR(24), \
                  s_dist_02 CHAR(24), s_dist_03 CHAR(24), s_dist_04 CHAR(24), s_dist_05 CHAR(24), s_dist_06 CHAR(24), \
                  s_dist_07 CHAR(24), s_dist_08 CHAR(24), s_dist_09 CHAR(24), s_dist_10 CHAR(24), s_ytd INTEGER, \
                  s_order_cnt INTEGER, s_remote_cnt INTEGER, s_data VARCHAR(50)",
        key: "s_w_id, s_i_id",
    },
];

/// For customers by last name, and for a customer's last order.
const INDEXES: [&str; 2] = [
    "CREATE INDEX idx_customer ON customer (c_w_id, c_d_id, c_last, c_first)",
    "CREATE INDEX idx_order ON orders (o_w_id, o_d_id, o_c_id, o_id)",
];

impl Table {
    fn create(&self, dialect: &Dialect) -> String {
        let columns = self.columns.replace("{timestamp}", dialect.timestamp);
        let key = match self.key {
            key if dialect.clustered && !key.is_empty() => format!(", PRIMARY KEY ({key})"),
            _ => String::new(),
        };
        format!("CREATE TABLE {} ({columns}{key}){}", self.name, dialect.table_suffix)
    }
}

pub async fn create<S: Session>(session: &mut S) -> Result<()> {
    drop_tables(session).await?;
    for table in &TABLES {
        let sql = table.create(session.dialect());
        session.text(&sql, &mut ()).await?;
    }
    Ok(())
}

/// The keys and indexes of one table each, made after the load in parallel.
pub const FINISH_PARTS: u64 = TABLES.len() as u64;

pub async fn finish<S: Session>(part: u64, session: &mut S) -> Result<()> {
    let table = &TABLES[part as usize];
    if !session.dialect().clustered && !table.key.is_empty() {
        let sql = format!("ALTER TABLE {} ADD PRIMARY KEY ({})", table.name, table.key);
        session.text(&sql, &mut ()).await?;
    }
    let on_this_table = format!(" ON {} (", table.name);
    for sql in INDEXES.iter().filter(|sql| sql.contains(&on_this_table)) {
        session.text(sql, &mut ()).await?;
    }
    Ok(())
}

pub async fn drop_tables<S: Session>(session: &mut S) -> Result<()> {
    for table in &TABLES {
        session.drop_table(table.name).await?;
    }
    Ok(())
}
