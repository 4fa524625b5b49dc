//! Values on their way into a table and back.

use crate::place::{make_table, number_of, rows_of, run_all, Place};
use dyno_driver::session::{Collect, Concrete, Owned, Session, Value};

const COLUMNS: [&str; 9] = ["id", "small", "big", "price", "ratio", "code", "name", "made", "note"];

async fn make_typed_table<S: Session>(session: &mut S, place: &Place) {
    let dialect = session.dialect();
    let (double, timestamp, text) = (dialect.double, dialect.timestamp, dialect.text);
    let columns = format!(
        "id INTEGER NOT NULL PRIMARY KEY, small SMALLINT, big BIGINT, price NUMERIC(18, 4), ratio {double}, \
         code CHAR(119), name VARCHAR(200), made {timestamp}, note {text}"
    );
    make_table(session, place, &columns).await;
}

fn insert_sql(place: &Place) -> String {
    format!("INSERT INTO {} ({}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", place.table, COLUMNS.join(", "))
}

/// The typed rows by both ways of asking, which must agree.
async fn stored<S: Session>(session: &mut S, place: &Place) -> Vec<Vec<Owned>> {
    let sql = format!("SELECT {} FROM {} ORDER BY id", COLUMNS.join(", "), place.table);
    let as_text = rows_of(session, &sql).await;
    let statement = session.prepare(&sql).await.unwrap();
    let mut prepared = Collect::default();
    let answer = session.execute(statement, &[], &mut prepared).await.unwrap();
    assert_eq!(answer.rows as usize, prepared.rows.len());
    assert_eq!(prepared.rows.len(), as_text.len());
    for (one, other) in prepared.rows.iter().flatten().zip(as_text.iter().flatten()) {
        assert!(is_same(one, other), "prepared {one:?}, as text {other:?}");
    }
    prepared.rows
}

/// Equal, or equal as numbers: a server sends a number as text where the statement is text.
fn is_same(one: &Owned, other: &Owned) -> bool {
    if one == other {
        return true;
    }
    match (one.borrow().as_f64(), other.borrow().as_f64()) {
        (Some(one), Some(other)) => one == other || (one - other).abs() <= one.abs() * 1e-13,
        _ => false,
    }
}

/// A decimal without the zeros that end its fraction. SQLite keeps a decimal as a float.
fn assert_decimal(value: &Owned, expected: &str) {
    match value {
        Owned::Float(number) => {
            let expected: f64 = expected.parse().unwrap();
            assert!((number - expected).abs() <= expected.abs() * 1e-14, "{number} {expected}");
        }
        value => {
            let text = value.to_string();
            let short = match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.'),
                false => text.as_str(),
            };
            assert_eq!(short, expected);
        }
    }
}

fn text(value: &Owned) -> String {
    value.borrow().as_str().unwrap_or_else(|| panic!("{value:?} is no text")).trim_end().to_owned()
}

struct Sample {
    small: i64,
    big: i64,
    price: &'static str,
    ratio: f64,
    code: String,
    name: String,
    made: &'static str,
    note: String,
}

fn samples() -> Vec<Sample> {
    let sample = |small, big, price, ratio, code: &str, name: &str, made, note: &str| Sample {
        small,
        big,
        price,
        ratio,
        code: code.to_owned(),
        name: name.to_owned(),
        made,
        note: note.to_owned(),
    };
    let groups = ["01234567890"; 10].join("-");
    vec![
        sample(0, 0, "0", 0.0, "", "", "1970-01-01 00:00:00", ""),
        sample(
            -32_768,
            i64::MIN,
            "-99999999999.9999",
            -1.5e300,
            &groups,
            &"n".repeat(200),
            "1000-01-01 00:00:00",
            &"long ".repeat(20_000),
        ),
        sample(
            32_767,
            i64::MAX,
            "99999999999.9999",
            2.5e-300,
            &"x".repeat(119),
            "žluťoučký kůň, 漢字, 🐎",
            "9999-12-31 23:59:59",
            "'quoted' \"twice\" \\ back\nnew line; ? $1 -- é",
        ),
        sample(-1, 1_000_000_007, "12.5", 0.1, "a b", " leading", "2024-02-29 12:34:56", "é"),
    ]
}

pub fn values_come_back_as_they_were<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_typed_table(&mut session, place).await;
        let insert = session.prepare(&insert_sql(place)).await.unwrap();
        let samples = samples();
        for (id, sample) in (1..).zip(&samples) {
            let row = [
                Value::Int(id),
                Value::Int(sample.small),
                Value::Int(sample.big),
                Value::Text(sample.price),
                Value::Float(sample.ratio),
                Value::Text(&sample.code),
                Value::Text(&sample.name),
                Value::Text(sample.made),
                Value::Text(&sample.note),
            ];
            assert_eq!(session.execute(insert, &row, &mut ()).await.unwrap().affected, 1);
        }
        for (row, sample) in stored(&mut session, place).await.iter().zip(&samples) {
            assert_eq!(row[1].borrow().as_i64(), Some(sample.small));
            assert_eq!(row[2].borrow().as_i64(), Some(sample.big));
            assert_decimal(&row[3], sample.price);
            assert_eq!(row[4].borrow().as_f64(), Some(sample.ratio));
            assert_eq!(text(&row[5]), sample.code);
            assert_eq!(text(&row[6]), sample.name);
            assert!(text(&row[7]).starts_with(sample.made), "{:?} {}", row[7], sample.made);
            assert_eq!(text(&row[8]), sample.note.trim_end());
        }
        session.drop_table(&place.table).await.unwrap();
    });
}

pub fn absent_values_are_null<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_typed_table(&mut session, place).await;
        let insert = session.prepare(&insert_sql(place)).await.unwrap();
        let mut row = [Value::Null; 9];
        row[0] = Value::Int(1);
        session.execute(insert, &row, &mut ()).await.unwrap();
        // The same statement, with values where there were none.
        let full = [
            Value::Int(2),
            Value::Int(1),
            Value::Int(1),
            Value::Text("1"),
            Value::Float(1.0),
            Value::Text("1"),
            Value::Text("1"),
            Value::Text("2001-01-01 01:01:01"),
            Value::Text("1"),
        ];
        session.execute(insert, &full, &mut ()).await.unwrap();
        row[0] = Value::Int(3);
        session.execute(insert, &row, &mut ()).await.unwrap();
        let rows = stored(&mut session, place).await;
        for (row, is_null) in rows.iter().zip([true, false, true]) {
            assert!(row[1..].iter().all(|value| (*value == Owned::Null) == is_null), "{row:?}");
        }
        let sql = format!("SELECT COUNT(*) FROM {} WHERE note IS NULL", place.table);
        assert_eq!(number_of(&mut session, &sql).await, 2);
        session.drop_table(&place.table).await.unwrap();
    });
}

pub fn parameters_take_the_columns_type<S: Concrete>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_typed_table(&mut session, place).await;
        let insert = session.prepare(&insert_sql(place)).await.unwrap();
        let text =
            ["7", "-7", "700", "7.25", "7.5", "seven", "7", "2007-07-07 07:07:07", "7"].map(Value::Text);
        let mut numbers = text;
        numbers[0] = Value::Int(8);
        for (column, number) in [(1, -7), (2, 700), (3, 7), (4, 7), (5, 7), (6, 7)] {
            numbers[column] = Value::Int(number);
        }
        if S::BLOCKING {
            // A server that infers types at PREPARE, as PostgreSQL does, takes text for a number all the same; one
            // that takes the client's word for the types, as MySQL does, too. Embedded engines must do as well.
            session.execute(insert, &text, &mut ()).await.unwrap();
            session.execute(insert, &numbers, &mut ()).await.unwrap();
            numbers[0] = Value::Int(9);
            session.execute(insert, &numbers, &mut ()).await.unwrap();
        } else {
            let mut mixed = text;
            (mixed[0], mixed[1], mixed[2]) = (Value::Int(7), Value::Int(-7), Value::Int(700));
            mixed[4] = Value::Float(7.5);
            session.execute(insert, &mixed, &mut ()).await.unwrap();
        }
        let rows = stored(&mut session, place).await;
        assert_eq!(rows[0][1].borrow().as_i64(), Some(-7));
        assert_eq!(rows[0][2].borrow().as_i64(), Some(700));
        assert_decimal(&rows[0][3], "7.25");
        assert_eq!(rows[0][4].borrow().as_f64(), Some(7.5));
        if let Some(row) = rows.get(1) {
            assert_decimal(&row[3], "7");
            assert_eq!(row[4].borrow().as_f64(), Some(7.0));
        }
        session.drop_table(&place.table).await.unwrap();
    });
}

pub fn the_dialect_is_the_engines<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        let (dialect, table) = (session.dialect(), &place.table);
        assert!(!session.server_version().is_empty());
        let columns = format!(
            "id {}, number INTEGER, made {}, note {}, ratio {}",
            dialect.identity_primary_key(),
            dialect.timestamp,
            dialect.text,
            dialect.double
        );
        make_table(&mut session, place, &columns).await;
        let now = dialect.now;
        let one = |number: i64| format!("INSERT INTO {table} (number, made) VALUES ({number}, {now})");
        run_all(&mut session, &[one(10), one(20), one(30)]).await;
        if dialect.multi_row_insert {
            let sql = format!("INSERT INTO {table} (number, made) VALUES (40, {now}), (50, {now})");
            run_all(&mut session, &[sql]).await;
        }
        let lock = if dialect.for_update { " FOR UPDATE" } else { "" };
        session.begin().await.unwrap();
        let sql =
            format!("SELECT number FROM {table} WHERE id > ? ORDER BY id {}{lock}", dialect.limit_clause(2));
        let (first, mut found) = (session.prepare(&sql).await.unwrap(), Collect::default());
        session.execute(first, &[Value::Int(0)], &mut found).await.unwrap();
        session.commit().await.unwrap();
        let numbers: Vec<_> = found.rows.iter().map(|row| row[0].borrow().as_i64()).collect();
        assert_eq!(numbers, [Some(10), Some(20)]);
        if dialect.update_returning {
            let sql = format!("UPDATE {table} SET number = number + 1 WHERE number = ? RETURNING number");
            let (statement, mut found) = (session.prepare(&sql).await.unwrap(), Collect::default());
            session.execute(statement, &[Value::Int(10)], &mut found).await.unwrap();
            assert_eq!(found.rows[0][0].borrow().as_i64(), Some(11));
        }
        if dialect.truncate {
            run_all(&mut session, &[format!("TRUNCATE TABLE {table}")]).await;
            assert_eq!(number_of(&mut session, &format!("SELECT COUNT(*) FROM {table}")).await, 0);
        }
        session.drop_table(table).await.unwrap();
    });
}
