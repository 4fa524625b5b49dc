//! What the driver once learned of a statement's columns holds only until the server says otherwise: each statement is
//! executed again and again, read in every way there is, and compared with the same statement as text.

use crate::place::{make_table, rows_of, run_all, Place};
use dyno_driver::error::Fate;
use dyno_driver::session::{
    Collect, Concrete, Decode, Owned, Row, Rows, Session, Statement, Undecoded, Value,
};
use std::rc::Rc;

/// Takes the answer as it came, if the session gives it so, and reads it when all later ones are here too.
#[derive(Default)]
struct Kept {
    answer: Option<(Vec<u8>, Rc<dyn Decode>)>,
    rows: Vec<Vec<Owned>>,
}

impl Rows for Kept {
    const KEEPS: bool = true;
    const NAMES: bool = false;

    fn keep(&mut self, answer: Undecoded<'_>) {
        self.answer = Some((answer.answer.to_vec(), answer.decoder));
    }

    fn row(&mut self, row: &dyn Row) {
        self.rows.push((0..row.columns()).map(|column| row.value(column).to_owned()).collect());
    }
}

impl Kept {
    fn read(mut self) -> Vec<Vec<Owned>> {
        if let Some((answer, decoder)) = self.answer.take() {
            decoder.decode(&answer, &mut |row| self.row(row)).unwrap();
        }
        self.rows
    }
}

/// Rows as a client shows them.
fn shown(rows: &[Vec<Owned>]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(one).collect()).collect()
}

/// PostgreSQL writes bytes of a text query in hexadecimal, and sends a prepared statement's as they are.
fn one(value: &Owned) -> String {
    match value {
        Owned::Bytes(bytes) => bytes.iter().fold("\\x".to_owned(), |hex, byte| format!("{hex}{byte:02x}")),
        value => value.to_string(),
    }
}

/// A value as the SQL of a dialect has it. Where the server has settled the parameter's type, it is a text in quotes, as
/// the driver sends it.
fn literal(dialect: &str, value: Value<'_>) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(n) if matches!(dialect, "mysql" | "sqlite") => n.to_string(),
        Value::Float(x) if matches!(dialect, "mysql" | "sqlite") => format!("{x:e}"),
        Value::Int(n) => format!("'{n}'"),
        Value::Float(x) => format!("'{x}'"),
        Value::Text(text) => format!("'{text}'"),
        Value::Bytes(_) => unreachable!("no parameter of these tests"),
    }
}

/// Executes with each of these values three times, in the ways that differ inside of a session; what was kept is read at
/// last. Gives a mistake for each answer that is not that of the same statement as text.
async fn executed_again<S: Session>(session: &mut S, sql: &str, values: &[Value<'_>]) -> Vec<String> {
    let dialect = session.dialect().name;
    let prepared = session.prepare(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let (mut expected, mut found, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    // A server of MySQL takes a text for a number where an execution before it had a number. So there it is asked what it
    // makes of a statement that it prepares itself; MariaDB must say the same of the statement as text.
    let by_server = dialect == "mysql" && !session.server_version().contains("MariaDB");
    if by_server {
        rows_of(session, &format!("PREPARE dyno_again FROM '{sql}'")).await;
    }
    for value in values {
        let (literal, width) = (literal(dialect, *value), sql.matches('?').count());
        let text = if by_server {
            rows_of(session, &format!("SET @dyno_again = {literal}")).await;
            format!("EXECUTE dyno_again USING {}", vec!["@dyno_again"; width].join(", "))
        } else {
            sql.replace('?', &literal)
        };
        expected.push(shown(&rows_of(session, &text).await));
        let all = vec![*value; sql.matches('?').count()];
        let (mut read, mut later) = (Collect::default(), Kept::default());
        // The first one with another type is looked into by nobody, or by somebody, or by somebody later.
        for step in 0..3 {
            let counted = match (step + found.len()) % 3 {
                0 => session.execute(prepared, &all, &mut ()).await,
                1 => session.execute(prepared, &all, &mut read).await,
                _ => session.execute(prepared, &all, &mut later).await,
            };
            assert_eq!(
                counted.unwrap_or_else(|error| panic!("{sql} {value:?}: {error}")).rows as usize,
                expected[found.len()].len()
            );
        }
        found.push(shown(&read.rows));
        kept.push(later);
    }
    let kept: Vec<_> = kept.into_iter().map(|kept| shown(&kept.read())).collect();
    let mut batch = Collect::default();
    let width = sql.matches('?').count();
    let all: Vec<Value<'_>> = values.iter().flat_map(|value| vec![*value; width]).collect();
    session.execute_batch(prepared, &all, width, &mut batch).await.unwrap();
    session.deallocate(prepared).await.unwrap();
    let mut mistakes = Vec::new();
    for (way, answers) in [("read", &found), ("kept", &kept)] {
        for ((value, answer), expected) in values.iter().zip(answers).zip(&expected) {
            if answer != expected {
                mistakes.push(format!("{sql} with {value:?} {way}: {answer:?}, and as text {expected:?}"));
            }
        }
    }
    let in_order: Vec<_> = expected.concat();
    if shown(&batch.rows) != in_order {
        mistakes.push(format!("{sql} in a batch: {:?}, and as text {in_order:?}", shown(&batch.rows)));
    }
    mistakes
}

/// Statements with values in turn, each of which stands for every parameter: NULL lies between them, and where the engine
/// takes the client's word for it, the type changes.
fn questions(dialect: &str, table: &str) -> Vec<(String, &'static [Value<'static>])> {
    use Value::{Float, Int, Null, Text};
    let any: &[Value<'static>] =
        &[Int(9855), Int(7), Null, Float(0.5), Int(8), Text("seven"), Null, Text("x"), Float(2.5), Int(-1)];
    let numbers: &[Value<'static>] = &[Int(7), Null, Int(9855), Int(-7), Null, Int(0)];
    let of_one_type: &[Value<'static>] = &[Text("7"), Null, Int(8), Text("9"), Null, Int(10)];
    match dialect {
        "mysql" | "sqlite" => vec![
            ("SELECT ?".to_owned(), any),
            ("SELECT ? + 1".to_owned(), any),
            (format!("SELECT ? AS tag, amount, name FROM {table} ORDER BY id"), any),
            (format!("SELECT name, ?, id, COALESCE(?, amount) FROM {table} WHERE id < 3 ORDER BY id"), any),
            (format!("SELECT id, amount FROM {table} WHERE id = ?"), numbers),
        ],
        "postgresql" => vec![
            ("SELECT ?".to_owned(), of_one_type),
            ("SELECT ? + 1".to_owned(), numbers),
            (format!("SELECT ? AS tag, amount, name FROM {table} ORDER BY id"), of_one_type),
            (format!("SELECT name, COALESCE(?, amount) FROM {table} ORDER BY id"), numbers),
        ],
        _ => vec![
            ("SELECT CAST(? AS VARCHAR(30)) FROM rdb$database".to_owned(), of_one_type),
            ("SELECT CAST(? AS INTEGER) + 1 FROM rdb$database".to_owned(), numbers),
            (
                format!("SELECT CAST(? AS VARCHAR(30)) AS tag, amount, name FROM {table} ORDER BY id"),
                of_one_type,
            ),
            (format!("SELECT name, COALESCE(CAST(? AS INTEGER), amount) FROM {table} ORDER BY id"), numbers),
        ],
    }
}

pub fn each_execution_has_its_own_columns<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_table(&mut session, place, "id INTEGER NOT NULL PRIMARY KEY, amount INTEGER, name VARCHAR(20)")
            .await;
        let table = &place.table;
        let rows = [(1, "10", "'one'"), (2, "NULL", "NULL"), (3, "-30", "'three'")];
        for (id, amount, name) in rows {
            run_all(&mut session, &[format!("INSERT INTO {table} VALUES ({id}, {amount}, {name})")]).await;
        }
        let mut mistakes = Vec::new();
        for (sql, values) in &questions(session.dialect().name, table) {
            mistakes.extend(executed_again(&mut session, sql, values).await);
        }
        session.drop_table(table).await.unwrap();
        assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    });
}

type Types = &'static [(&'static str, &'static [&'static str])];

/// Types that all engines have, each with values of it as literals.
const TYPES: Types = &[
    ("SMALLINT", &["-32768", "32767", "0"]),
    ("INTEGER", &["-2147483648", "2147483647", "7"]),
    ("BIGINT", &["-9223372036854775808", "9223372036854775807", "1"]),
    ("NUMERIC(18, 4)", &["12.5000", "-99999999999.9999", "0.0000"]),
    ("VARCHAR(40)", &["'a ''quoted'' word'", "''", "'žluťoučký 漢字 🐎'"]),
];
const MYSQL_TYPES: Types = &[
    ("TINYINT", &["-128", "127", "0"]),
    ("TINYINT UNSIGNED", &["255", "0", "7"]),
    ("SMALLINT UNSIGNED", &["65535", "0", "7"]),
    ("MEDIUMINT", &["-8388608", "8388607", "7"]),
    ("INT UNSIGNED", &["4294967295", "0", "7"]),
    ("BIGINT UNSIGNED", &["18446744073709551615", "9223372036854775808", "7"]),
    ("FLOAT", &["1.1", "-2.5e10", "0.1"]),
    ("DOUBLE", &["0.1", "-1.5e300", "2.5e-300"]),
    ("BIT(12)", &["b'101010101010'", "b'1'", "b'0'"]),
    ("YEAR", &["1901", "2155", "2024"]),
    ("DATE", &["'1000-01-01'", "'9999-12-31'", "'2024-02-29'"]),
    ("TIME", &["'-838:59:59'", "'838:59:59'", "'00:00:00'"]),
    ("TIME(6)", &["'-51:04:05.000006'", "'00:00:00'", "'12:00:00.500000'"]),
    ("TIME(2)", &["'-51:04:05.06'", "'00:00:00'", "'12:00:00.50'"]),
    ("DATETIME", &["'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'2024-02-29 12:34:56'"]),
    ("DATETIME(3)", &["'1000-01-01 00:00:00.000'", "'2024-02-29 12:34:56.789'", "'2024-02-29 12:34:56'"]),
    (
        "TIMESTAMP(6) NULL",
        &["'2024-02-29 12:34:56.000001'", "'2024-02-29 00:00:00'", "'1971-01-01 00:00:00'"],
    ),
    ("CHAR(8)", &["'padded'", "''", "'é'"]),
    ("BINARY(4)", &["0x00FF0001", "0x01", "'abcd'"]),
    ("VARBINARY(8)", &["0x00FF", "''", "'abc'"]),
    ("TEXT", &["'text'", "''", "REPEAT('x', 70000 - 5000)"]),
    ("LONGBLOB", &["0x0001FF", "''", "REPEAT('y', 300)"]),
    ("ENUM('a', 'b')", &["'a'", "'b'", "2"]),
    ("SET('a', 'b', 'c')", &["'a,c'", "''", "7"]),
    ("JSON", &["'{\"a\": 1}'", "'[]'", "'null'"]),
];
const POSTGRESQL_TYPES: Types = &[
    ("BOOLEAN", &["TRUE", "FALSE", "NULL"]),
    ("REAL", &["1.1", "-2.5e10", "0.1"]),
    ("DOUBLE PRECISION", &["0.1", "-1.5e300", "'Infinity'"]),
    ("NUMERIC", &["'NaN'", "1e20", "0.00000000000000000001"]),
    ("OID", &["4294967295", "0", "7"]),
    ("DATE", &["'4713-01-01 BC'", "'infinity'", "'2024-02-29'"]),
    ("TIME", &["'00:00:00'", "'24:00:00'", "'12:34:56.000001'"]),
    ("TIMESTAMP", &["'2024-02-29 12:34:56.789'", "'-infinity'", "'1999-12-31 00:00:00'"]),
    ("TIMESTAMPTZ", &["'2024-02-29 12:34:56+03'", "'1900-01-01 00:00:00Z'", "'infinity'"]),
    ("INTERVAL", &["'1 year -2 days 03:04:05.6'", "'0'", "'-1 mon'"]),
    ("CHAR(8)", &["'padded'", "''", "'é'"]),
    ("TEXT", &["repeat('x', 70000)", "''", "E'tab\\t'"]),
    ("BYTEA", &["'\\x00ff0001'", "''", "'\\x61'"]),
    ("UUID", &["'123e4567-e89b-12d3-a456-426614174000'", "NULL", "'00000000-0000-0000-0000-000000000000'"]),
    ("JSONB", &["'{\"a\": [1, null]}'", "'[]'", "'7'"]),
    ("INTEGER[]", &["'{1,NULL,3}'", "'{}'", "'{{1},{2}}'"]),
    ("INT4RANGE", &["'[1,5)'", "'empty'", "NULL"]),
    ("INET", &["'10.0.0.1/8'", "'::1'", "NULL"]),
    ("MONEY", &["1234.5", "-0.01", "0"]),
    ("BIT(12)", &["B'101010101010'", "B'000000000001'", "B'000000000000'"]),
];
const SQLITE_TYPES: Types = &[
    ("REAL", &["0.1", "-1.5e300", "7.0"]),
    ("BLOB", &["x'00ff0001'", "x''", "x'61'"]),
    ("TEXT", &["'text'", "''", "7"]),
    ("ANY", &["1", "'one'", "x'01'"]),
];
const FIREBIRD_TYPES: Types = &[
    ("BOOLEAN", &["TRUE", "FALSE", "NULL"]),
    ("FLOAT", &["1.1", "-2.5e10", "0.1"]),
    ("DOUBLE PRECISION", &["0.1", "-1.5e300", "2.5e-300"]),
    ("INT128", &["170141183460469231731687303715884105727", "-1", "0"]),
    ("DECIMAL(38, 10)", &["1234567890123456789012345678.0123456789", "-0.0000000001", "0"]),
    ("DECFLOAT(34)", &["1.25", "-1e100", "0"]),
    ("DATE", &["'0001-01-01'", "'9999-12-31'", "'2024-02-29'"]),
    ("TIME", &["'00:00:00'", "'23:59:59.9999'", "'12:34:56'"]),
    ("TIMESTAMP", &["'2024-02-29 12:34:56.7890'", "'1999-12-31 00:00:00'", "'0001-01-01 00:00:00'"]),
    ("CHAR(8)", &["'padded'", "''", "'é'"]),
    ("VARBINARY(8)", &["x'00ff'", "x''", "x'61'"]),
    ("BLOB SUB_TYPE TEXT", &["'text'", "''", "'é'"]),
];

pub fn every_type_reads_the_same_both_ways<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        let table = &place.table;
        let mut mistakes = Vec::new();
        let own = match session.dialect().name {
            "mysql" => MYSQL_TYPES,
            "postgresql" => POSTGRESQL_TYPES,
            "sqlite" => SQLITE_TYPES,
            _ => FIREBIRD_TYPES,
        };
        for (kind, values) in TYPES.iter().chain(own) {
            make_table(&mut session, place, &format!("id INTEGER NOT NULL PRIMARY KEY, v {kind}")).await;
            let rows = values.iter().chain(&["NULL"]).zip(1..);
            let inserts: Vec<String> = rows
                .map(|(value, id)| format!("INSERT INTO {table} (id, v) VALUES ({id}, {value})"))
                .collect();
            run_all(&mut session, &inserts).await;
            let sql = format!("SELECT v, id FROM {table} WHERE id = ?");
            let ids = [1, 4, 2, 4, 3].map(Value::Int);
            mistakes.extend(
                executed_again(&mut session, &sql, &ids).await.iter().map(|one| format!("{kind}: {one}")),
            );
        }
        session.drop_table(table).await.unwrap();
        assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    });
}

/// Executes three times, and compares each answer with that of the text.
async fn assert_as_text<S: Session>(session: &mut S, prepared: Statement, id: i64, sql: &str) {
    let expected = shown(&rows_of(session, &sql.replace('?', &id.to_string())).await);
    for _ in 0..3 {
        let mut found = Collect::default();
        session.execute(prepared, &[Value::Int(id)], &mut found).await.unwrap();
        assert_eq!(shown(&found.rows), expected, "{sql}");
        session.execute(prepared, &[Value::Int(id)], &mut ()).await.unwrap();
    }
}

pub fn an_altered_table_has_its_new_columns<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        let table = &place.table;
        make_table(&mut session, place, "id INTEGER NOT NULL PRIMARY KEY, v INTEGER, w VARCHAR(10)").await;
        let rows = (1..=3).map(|id| format!("INSERT INTO {table} (id, v, w) VALUES ({id}, {id}0, 'w{id}')"));
        run_all(&mut session, &rows.collect::<Vec<_>>()).await;
        let named = format!("SELECT v, w FROM {table} WHERE id = ?");
        let all = format!("SELECT * FROM {table} WHERE id = ?");
        let (by_name, whole) = (session.prepare(&named).await.unwrap(), session.prepare(&all).await.unwrap());
        let changes: &[&str] = match session.dialect().name {
            "mysql" => &[
                "MODIFY v VARCHAR(30)",
                "MODIFY v DOUBLE",
                "ADD x INTEGER DEFAULT 7 FIRST",
                "DROP x",
                "MODIFY v BIGINT",
            ],
            "postgresql" => &[
                "ALTER v TYPE TEXT",
                "ADD x INTEGER DEFAULT 7",
                "DROP x",
                "ALTER v TYPE BIGINT USING v::BIGINT",
            ],
            "sqlite" => &["ADD x INTEGER DEFAULT 7", "ADD y TEXT", "DROP x"],
            _ => &["ALTER v TYPE BIGINT", "ADD x INTEGER DEFAULT 7 NOT NULL", "DROP x"],
        };
        assert_as_text(&mut session, by_name, 1, &named).await;
        assert_as_text(&mut session, whole, 2, &all).await;
        for change in changes {
            run_all(&mut session, &[format!("ALTER TABLE {table} {change}")]).await;
            assert_as_text(&mut session, by_name, 3, &named).await;
            assert_as_text(&mut session, whole, 1, &all).await;
        }
        session.drop_table(table).await.unwrap();
    });
}

/// A statement of which a table was altered, in the middle of a batch and of a transaction.
pub fn an_altered_table_costs_no_execution<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        let table = &place.table;
        make_table(&mut session, place, "id INTEGER NOT NULL PRIMARY KEY, v INTEGER").await;
        let rows = (1..=4).map(|id| format!("INSERT INTO {table} (id, v) VALUES ({id}, {id}0)"));
        run_all(&mut session, &rows.collect::<Vec<_>>()).await;
        let find = session.prepare(&format!("SELECT * FROM {table} WHERE id = ?")).await.unwrap();
        session.execute(find, &[Value::Int(1)], &mut ()).await.unwrap();
        run_all(&mut session, &[format!("ALTER TABLE {table} ADD x INTEGER")]).await;
        let (ids, mut found) = ([1, 2, 9, 4].map(Value::Int), Collect::default());
        assert_eq!(session.execute_batch(find, &ids, 1, &mut found).await.unwrap().rows, 3);
        let numbers: Vec<_> = found.rows.iter().map(|row| (row.len(), row[0].borrow().as_i64())).collect();
        assert_eq!(numbers, [(3, Some(1)), (3, Some(2)), (3, Some(4))]);
        run_all(&mut session, &[format!("ALTER TABLE {table} DROP x")]).await;
        for _ in 0..2 {
            session.begin().await.unwrap();
            let mut found = Collect::default();
            match session.execute(find, &[Value::Int(4)], &mut found).await {
                Ok(_) => assert_eq!(found.rows[0].len(), 2),
                // PostgreSQL ends the transaction with it, so that another try of the whole is right.
                Err(error) => assert_eq!(error.fate(), Fate::Retry, "{error}"),
            }
            session.rollback().await.unwrap();
        }
        let mut found = Collect::default();
        session.begin().await.unwrap();
        session.execute(find, &[Value::Int(4)], &mut found).await.unwrap();
        session.commit().await.unwrap();
        assert_eq!(found.rows[0].len(), 2);
        session.drop_table(table).await.unwrap();
    });
}

/// Longer than 64 MiB, and so longer than four packets of MySQL's.
const LONG_BYTES: usize = 70 << 20;

pub fn a_long_row_is_read<S: Concrete>(place: &Place) {
    if S::BLOCKING {
        return;
    }
    place.run(async {
        let mut session: S = place.connect().await;
        let sql = format!("SELECT REPEAT('x', {LONG_BYTES}), 7");
        if session.dialect().name == "mysql" {
            session.text("SET GLOBAL max_allowed_packet = 1073741824", &mut ()).await.unwrap();
            session = place.connect().await;
        }
        let prepared = session.prepare(&sql).await.unwrap();
        for _ in 0..2 {
            let mut found = Collect::default();
            session.execute(prepared, &[], &mut found).await.unwrap();
            let [Owned::Text(long), last] = &found.rows[0][..] else {
                panic!("{} columns", found.rows[0].len())
            };
            assert_eq!((long.len(), last.borrow().as_i64()), (LONG_BYTES, Some(7)));
            assert_eq!(session.text(&sql, &mut ()).await.unwrap().rows, 1);
        }
    });
}

/// A text means itself, whatever the session has said of backslashes.
pub fn a_text_is_the_same_in_every_mode<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        let modes: &[&str] = match session.dialect().name {
            "mysql" => &["SET sql_mode = ''", "SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'"],
            "postgresql" => {
                &["SET standard_conforming_strings = on", "SET standard_conforming_strings = off"]
            }
            _ => &[],
        };
        make_table(&mut session, place, "id INTEGER NOT NULL PRIMARY KEY, v VARCHAR(40)").await;
        for mode in modes {
            run_all(&mut session, &[(*mode).to_owned(), format!("DELETE FROM {}", place.table)]).await;
            let texts = ["a\\", "\\' it's \"", "\\n\n\t", "plain '' text", "end\\\\'"];
            let mut rows = texts.iter().zip(1..);
            let fill = |row: &mut dyno_driver::session::RowBuffer| {
                rows.next().map(|(text, id)| row.int(id).text(text)).is_some()
            };
            session.bulk_insert(&place.table, &["id", "v"], fill).await.unwrap();
            let found = rows_of(&mut session, &format!("SELECT v FROM {} ORDER BY id", place.table)).await;
            let found: Vec<String> = found.iter().map(|row| row[0].to_string()).collect();
            assert_eq!(found, texts, "{mode}");
        }
        session.drop_table(&place.table).await.unwrap();
    });
}
