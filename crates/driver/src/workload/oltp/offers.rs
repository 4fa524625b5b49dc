//! The names of the family and their options.

use super::distribution::{DISTRIBUTION, PARETO_H, ZIPFIAN_EXPONENT};
use crate::workload::{About, Typed};

const ROWS_MAX: i64 = 2_000_000_000;
const STATEMENTS_MAX: i64 = 1_000_000;

pub(super) const TABLES: Typed<i64> = Typed::int("tables", 1, 1, 10_000, "tables sbtest1, sbtest2, ...");
pub(super) const TABLE_SIZE: Typed<i64> = Typed::int("table_size", 10_000, 1, ROWS_MAX, "rows per table");
pub(super) const SKIP_TRX: Typed<bool> =
    Typed::flag("skip_trx", false, "no BEGIN and COMMIT: each statement commits by itself").for_the_run();

const fn per_transaction(name: &'static str, default: i64, help: &'static str) -> Typed<i64> {
    Typed::int(name, default, 0, STATEMENTS_MAX, help).for_the_run()
}

pub(super) const RANGE_SIZE: Typed<i64> =
    Typed::int("range_size", 100, 1, ROWS_MAX, "rows of a range").for_the_run();
pub(super) const POINT_SELECTS: Typed<i64> =
    per_transaction("point_selects", 10, "point selects of a transaction");
pub(super) const SIMPLE_RANGES: Typed<i64> =
    per_transaction("simple_ranges", 1, "range selects of a transaction");
pub(super) const SUM_RANGES: Typed<i64> = per_transaction("sum_ranges", 1, "SELECT SUM() of a transaction");
pub(super) const ORDER_RANGES: Typed<i64> =
    per_transaction("order_ranges", 1, "SELECT ORDER BY of a transaction");
pub(super) const DISTINCT_RANGES: Typed<i64> =
    per_transaction("distinct_ranges", 1, "SELECT DISTINCT of a transaction");
pub(super) const INDEX_UPDATES: Typed<i64> =
    per_transaction("index_updates", 1, "UPDATEs of k of a transaction");
pub(super) const NON_INDEX_UPDATES: Typed<i64> =
    per_transaction("non_index_updates", 1, "UPDATEs of c of a transaction");
pub(super) const DELETE_INSERTS: Typed<i64> =
    per_transaction("delete_inserts", 1, "DELETEs of a transaction, each with the INSERT of the same id");

/// The same option as `TABLES` by its name, with other words.
const BULK_TABLES: Typed<i64> =
    Typed::int("tables", 1, 1, 10_000, "tables; client i writes to table i modulo tables");
pub(super) const BULK_ROWS: Typed<i64> =
    Typed::int("bulk_rows", 1, 1, 1_000_000, "rows of a transaction").for_the_run();
pub(super) const RANDOM_POINTS: Typed<i64> =
    Typed::int("random_points", 10, 1, 1000, "values of the list").for_the_run();
pub(super) const RANDOM_RANGES: Typed<i64> = Typed::int("random_ranges", 10, 1, 1000, "ranges").for_the_run();
pub(super) const DELTA: Typed<i64> =
    Typed::int("delta", 5, 0, ROWS_MAX, "a range goes from a value to that value plus delta").for_the_run();

macro_rules! offer {
    ($name:literal, $read_only:literal, $description:literal, $($option:expr),* $(,)?) => {
        About {
            name: $name,
            description: $description,
            options: &[
                TABLES.spec(),
                TABLE_SIZE.spec(),
                DISTRIBUTION.spec(),
                PARETO_H.spec(),
                ZIPFIAN_EXPONENT.spec(),
                $($option.spec()),*
            ],
            transactions: &[$name],
            read_only: $read_only,
            keeps_ledger: false,
        }
    };
}

pub(super) const OFFERS: &[About] = &[
    offer!("point_select", true, "one row by its primary key (sysbench oltp_point_select)",),
    offer!(
        "read_only",
        true,
        "ten point selects and four ranges in a transaction (sysbench oltp_read_only)",
        SKIP_TRX,
        RANGE_SIZE,
        POINT_SELECTS,
        SIMPLE_RANGES,
        SUM_RANGES,
        ORDER_RANGES,
        DISTINCT_RANGES,
    ),
    offer!(
        "read_write",
        false,
        "the reads of read_only and the writes of write_only in a transaction (sysbench oltp_read_write)",
        SKIP_TRX,
        RANGE_SIZE,
        POINT_SELECTS,
        SIMPLE_RANGES,
        SUM_RANGES,
        ORDER_RANGES,
        DISTINCT_RANGES,
        INDEX_UPDATES,
        NON_INDEX_UPDATES,
        DELETE_INSERTS,
    ),
    offer!(
        "write_only",
        false,
        "two updates, a delete and an insert in a transaction (sysbench oltp_write_only)",
        SKIP_TRX,
        INDEX_UPDATES,
        NON_INDEX_UPDATES,
        DELETE_INSERTS,
    ),
    offer!("update_index", false, "one update of an indexed column (sysbench oltp_update_index)",),
    offer!(
        "update_non_index",
        false,
        "one update of a column without an index (sysbench oltp_update_non_index)",
    ),
    offer!("delete", false, "one delete by primary key (sysbench oltp_delete)",),
    offer!("insert", false, "one insert, numbered by the server (sysbench oltp_insert)",),
    About {
        name: "bulk_insert",
        description: "rows of two integers, one table per client (sysbench bulk_insert)",
        options: &[BULK_TABLES.spec(), BULK_ROWS.spec()],
        transactions: &["bulk_insert"],
        read_only: false,
        keeps_ledger: false,
    },
    offer!(
        "select_random_points",
        true,
        "rows by a list of values of an indexed column (sysbench select_random_points)",
        RANDOM_POINTS,
    ),
    offer!(
        "select_random_ranges",
        true,
        "a count over ranges of an indexed column (sysbench select_random_ranges)",
        RANDOM_RANGES,
        DELTA,
    ),
];
