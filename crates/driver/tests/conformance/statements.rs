//! Statements prepared and as text, answers long and empty, bulk loads.

use crate::place::{make_table, number_of, rows_of, run_all, Place};
use dyno_driver::session::{Collect, Each, First, Owned, Row, Session, Value};

const MANY: i64 = 100_000;

async fn make_pairs<S: Session>(session: &mut S, place: &Place, rows: i64) {
    make_table(session, place, "id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(40)").await;
    let mut ids = 1..=rows;
    let inserted = session
        .bulk_insert(&place.table, &["id", "name"], |row| match ids.next() {
            Some(id) => {
                row.int(id).display(format_args!("name {id}"));
                true
            }
            None => false,
        })
        .await
        .unwrap();
    assert_eq!(inserted as i64, rows);
}

pub fn a_prepared_statement_is_executed_again<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_pairs(&mut session, place, 100).await;
        let table = &place.table;
        let find = session.prepare(&format!("SELECT name FROM {table} WHERE id = ?")).await.unwrap();
        let count =
            session.prepare(&format!("SELECT COUNT(*) FROM {table} WHERE id BETWEEN ? AND ?")).await.unwrap();
        for step in 0..1000 {
            let id = step * 37 % 100 + 1;
            let mut name = First::<Owned>::default();
            let answer = session.execute(find, &[Value::Int(id)], &mut name).await.unwrap();
            assert_eq!((answer.rows, name.0), (1, Some(Owned::Text(format!("name {id}")))));
            let mut number = First::<i64>::default();
            session.execute(count, &[Value::Int(1), Value::Int(id)], &mut number).await.unwrap();
            assert_eq!(number.0, Some(id));
        }
        session.drop_table(table).await.unwrap();
    });
}

/// How many prepared statements the server holds for the session; `None` where it does not say.
async fn held<S: Session>(session: &mut S) -> Option<i64> {
    match session.dialect().name {
        "postgresql" => Some(number_of(session, "SELECT COUNT(*) FROM pg_prepared_statements").await),
        "mysql" if session.server_version().contains("MariaDB") => {
            let count = "SELECT SUM(IF(variable_name = 'COM_STMT_PREPARE', 1, -1) * variable_value) \
                         FROM information_schema.session_status \
                         WHERE variable_name IN ('COM_STMT_PREPARE', 'COM_STMT_CLOSE')";
            Some(number_of(session, count).await)
        }
        _ => None,
    }
}

pub fn a_statement_that_was_let_go_is_gone<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_pairs(&mut session, place, 10).await;
        let find = |what: &str| format!("SELECT {what} FROM {} WHERE id = ?", place.table);
        let before = held(&mut session).await;
        let first = session.prepare(&find("id")).await.unwrap();
        let kept = session.prepare(&find("name")).await.unwrap();
        for round in 1..=20 {
            session.deallocate(first).await.unwrap();
            assert!(session.execute(first, &[Value::Int(1)], &mut ()).await.is_err());
            session.deallocate(first).await.unwrap();
            let text = find(&format!("id + {round}"));
            assert_eq!(session.prepare(&text).await.unwrap(), first, "its number is given again");
            let (mut number, mut name) = (First::<i64>::default(), First::<Owned>::default());
            session.execute(first, &[Value::Int(7)], &mut number).await.unwrap();
            session.execute(kept, &[Value::Int(7)], &mut name).await.unwrap();
            assert_eq!((number.0, name.0), (Some(7 + round), Some(Owned::Text("name 7".to_owned()))));
        }
        // Where each execution prepares anew, or says all of it, nothing is held.
        let holds = if place.target.parameter("statements").is_some() { 0 } else { 2 };
        assert_eq!(held(&mut session).await, before.map(|before| before + holds));
        session.drop_table(&place.table).await.unwrap();
    });
}

pub fn an_empty_answer_has_no_rows<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_pairs(&mut session, place, 0).await;
        let sql = format!("SELECT id, name FROM {} WHERE id > ?", place.table);
        let find = session.prepare(&sql).await.unwrap();
        let mut first = First::<i64>::default();
        let answer = session.execute(find, &[Value::Int(0)], &mut first).await.unwrap();
        assert_eq!((answer.rows, first.0), (0, None));
        let mut all = Collect::default();
        let sql = format!("SELECT id, name FROM {}", place.table);
        assert_eq!(session.text(&sql, &mut all).await.unwrap().rows, 0);
        let names: Vec<String> = all.names.iter().map(|name| name.to_lowercase()).collect();
        assert_eq!((names, all.rows.len()), (vec!["id".to_owned(), "name".to_owned()], 0));
        session.drop_table(&place.table).await.unwrap();
    });
}

pub fn changed_rows_are_counted<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_pairs(&mut session, place, 10).await;
        let table = &place.table;
        let update =
            session.prepare(&format!("UPDATE {table} SET name = 'changed' WHERE id <= ?")).await.unwrap();
        let delete = session.prepare(&format!("DELETE FROM {table} WHERE id > ?")).await.unwrap();
        for (statement, parameter, affected) in
            [(update, 3, 3), (update, 0, 0), (delete, 5, 5), (delete, 5, 0)]
        {
            let answer = session.execute(statement, &[Value::Int(parameter)], &mut ()).await.unwrap();
            assert_eq!((answer.rows, answer.affected), (0, affected));
        }
        let sql = format!("INSERT INTO {table} (id, name) VALUES (99, 'text')");
        assert_eq!(session.text(&sql, &mut ()).await.unwrap().affected, 1);
        session.drop_table(table).await.unwrap();
    });
}

pub fn all_of_many_rows_are_read<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_pairs(&mut session, place, MANY).await;
        let sql = format!("SELECT id, name FROM {}", place.table);
        let find = session.prepare(&sql).await.unwrap();
        let received = session.traffic().rows_received;
        assert_eq!(session.execute(find, &[], &mut ()).await.unwrap().rows as i64, MANY);
        assert_eq!(session.traffic().rows_received - received, MANY as u64);
        let (mut sum, mut fitting) = (0, 0);
        let mut look = Each(|row: &dyn Row| {
            assert_eq!(row.columns(), 2);
            assert!(row.value(2).is_null(), "there is no third column");
            let id = row.value(0).as_i64().unwrap();
            sum += id;
            fitting += i64::from(row.value(1).as_str() == Some(format!("name {id}").as_str()));
        });
        session.execute(find, &[], &mut look).await.unwrap();
        assert_eq!((sum, fitting), (MANY * (MANY + 1) / 2, MANY));
        session.drop_table(&place.table).await.unwrap();
    });
}

pub fn a_batch_executes_each<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_pairs(&mut session, place, 0).await;
        let sql = format!("INSERT INTO {} (id, name) VALUES (?, ?)", place.table);
        let insert = session.prepare(&sql).await.unwrap();
        let parameters: Vec<Value<'_>> =
            (1..=50).flat_map(|id| [Value::Int(id), Value::Text("in a batch")]).collect();
        assert_eq!(session.execute_batch(insert, &parameters, 2, &mut ()).await.unwrap().affected, 50);
        let sql = format!("SELECT name FROM {} WHERE id = ?", place.table);
        let find = session.prepare(&sql).await.unwrap();
        let ids: Vec<Value<'_>> = (1..=60).map(Value::Int).collect();
        let mut found = Collect::default();
        assert_eq!(session.execute_batch(find, &ids, 1, &mut found).await.unwrap().rows, 50);
        assert_eq!(found.rows.len(), 50);
        session.drop_table(&place.table).await.unwrap();
    });
}

pub fn rows_are_inserted_in_bulk<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        let (timestamp, double) = (session.dialect().timestamp, session.dialect().double);
        let columns = format!(
            "id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(2000), price NUMERIC(12, 2), ratio {double}, made {timestamp}"
        );
        make_table(&mut session, place, &columns).await;
        let mut ids = 1..=3000;
        let names = ["id", "name", "price", "ratio", "made"];
        let fill = |row: &mut dyno_driver::session::RowBuffer| {
            let Some(id) = ids.next() else { return false };
            row.int(id);
            match id % 3 {
                0 => row.null().null().null().null(),
                // The text grows while the load goes on, and needs quoting in every protocol.
                1 => row.text(&"é\t\\'\n".repeat(id as usize / 10)).text("12.34").float(0.5).text("2024-02-29 00:00:00"),
                _ => row.text("").int(-7).int(1).text("1999-12-31 23:59:59"),
            };
            true
        };
        assert_eq!(session.bulk_insert(&place.table, &names, fill).await.unwrap(), 3000);
        let nothing = session.bulk_insert(&place.table, &names, |_| false).await.unwrap();
        assert_eq!(nothing, 0);
        let table = &place.table;
        assert_eq!(number_of(&mut session, &format!("SELECT COUNT(*) FROM {table}")).await, 3000);
        let nulls = format!("SELECT COUNT(*) FROM {table} WHERE name IS NULL AND made IS NULL");
        assert_eq!(number_of(&mut session, &nulls).await, 1000);
        let rows = rows_of(&mut session, &format!("SELECT name, price, made FROM {table} WHERE id = 2998")).await;
        assert_eq!(rows[0][0].borrow().as_str(), Some("é\t\\'\n".repeat(299).as_str()));
        assert_eq!(rows[0][1].borrow().as_f64(), Some(12.34));
        assert!(rows[0][2].borrow().as_str().unwrap().starts_with("2024-02-29 00:00:00"));
        let sum = rows_of(&mut session, &format!("SELECT SUM(price) FROM {table}")).await;
        assert!((sum[0][0].borrow().as_f64().unwrap() - (12_340.0 - 7_000.0)).abs() < 1e-6);
        session.drop_table(table).await.unwrap();
    });
}

pub fn tables_change_under_prepared_statements<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_pairs(&mut session, place, 5).await;
        let table = &place.table;
        let find = session.prepare(&format!("SELECT name FROM {table} WHERE id = ?")).await.unwrap();
        session.execute(find, &[Value::Int(1)], &mut ()).await.unwrap();
        run_all(&mut session, &[format!("ALTER TABLE {table} ADD extra INTEGER")]).await;
        assert_eq!(session.execute(find, &[Value::Int(2)], &mut ()).await.unwrap().rows, 1);
        run_all(&mut session, &[format!("CREATE INDEX {table}_i ON {table} (name)")]).await;
        assert_eq!(session.execute(find, &[Value::Int(3)], &mut ()).await.unwrap().rows, 1);
        session.drop_table(table).await.unwrap();
        let gone = session.execute(find, &[Value::Int(4)], &mut ()).await;
        assert!(gone.is_err(), "the table is gone, the answer is {gone:?}");
    });
}

pub fn a_missing_table_may_be_dropped<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_pairs(&mut session, place, 1).await;
        session.drop_table(&place.table).await.unwrap();
        session.drop_table(&place.table).await.unwrap();
        make_pairs(&mut session, place, 1).await;
        session.drop_table(&place.table).await.unwrap();
        session.close().await;
    });
}
