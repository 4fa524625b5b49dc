//! Mistakes and bad luck: what a session says, and that it goes on where it can.

use crate::place::{make_table, number_of, Place};
use dyno_driver::error::{Error, Fate, Kind};
use dyno_driver::session::{Concrete, Protocol, Session, Target, Value};

fn assert_refused(error: &Error) {
    assert_eq!((error.kind(), error.fate()), (Kind::Server, Fate::Failed), "{}: {error}", error.label());
    assert!(!error.message().is_empty());
    let (code, word) = error.label().split_once(' ').expect("a label is a code and a word");
    assert!(!code.is_empty() && !word.is_empty(), "{:?}", error.label());
}

pub fn a_wrong_statement_leaves_the_session_usable<S: Concrete>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_table(&mut session, place, "id INTEGER NOT NULL PRIMARY KEY").await;
        for sql in ["SELEC nonsense", "SELECT * FROM dyno_is_not_there", "SELECT 'open FROM x"] {
            assert_refused(&session.text(sql, &mut ()).await.expect_err(sql));
            // What goes as text is shown to the server when it is executed.
            if place.target.parameter("statements") != Some("text") {
                assert_refused(&session.prepare(sql).await.expect_err(sql));
            }
        }
        assert!(session.text("", &mut ()).await.is_err() || S::BLOCKING.eq(&false));
        session.begin().await.unwrap();
        session.text("SELEC nonsense", &mut ()).await.unwrap_err();
        session.rollback().await.unwrap();
        let sql = format!("SELECT COUNT(*) FROM {}", place.table);
        assert_eq!(number_of(&mut session, &sql).await, 0);
        session.drop_table(&place.table).await.unwrap();
    });
}

pub fn a_second_row_of_a_key_is_refused<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_table(&mut session, place, "id INTEGER NOT NULL PRIMARY KEY").await;
        let sql = format!("INSERT INTO {} (id) VALUES (?)", place.table);
        let insert = session.prepare(&sql).await.unwrap();
        session.execute(insert, &[Value::Int(1)], &mut ()).await.unwrap();
        for _ in 0..2 {
            assert_refused(&session.execute(insert, &[Value::Int(1)], &mut ()).await.unwrap_err());
        }
        session.execute(insert, &[Value::Int(2)], &mut ()).await.unwrap();
        let sql = format!("SELECT COUNT(*) FROM {}", place.table);
        assert_eq!(number_of(&mut session, &sql).await, 2);
        session.drop_table(&place.table).await.unwrap();
    });
}

pub fn a_wrong_number_of_parameters_is_refused<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_table(&mut session, place, "id INTEGER NOT NULL PRIMARY KEY").await;
        let sql = format!("SELECT id FROM {} WHERE id BETWEEN ? AND ?", place.table);
        let find = session.prepare(&sql).await.unwrap();
        for parameters in [&[][..], &[Value::Int(1)], &[Value::Int(1); 3]] {
            session.execute(find, parameters, &mut ()).await.expect_err("too few or too many");
        }
        session.execute(find, &[Value::Int(1); 2], &mut ()).await.unwrap();
        session.drop_table(&place.table).await.unwrap();
    });
}

pub fn a_bulk_insert_that_fails_leaves_nothing<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_table(&mut session, place, "id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(10)").await;
        let mut ids = (1..=500).chain([250]).chain(501..=600);
        let fill = |row: &mut dyno_driver::session::RowBuffer| {
            ids.next().map(|id| row.int(id).text("name")).is_some()
        };
        let error = session.bulk_insert(&place.table, &["id", "name"], fill).await.unwrap_err();
        assert_refused(&error);
        let sql = format!("SELECT COUNT(*) FROM {}", place.table);
        assert_eq!(number_of(&mut session, &sql).await, 0);
        session.drop_table(&place.table).await.unwrap();
    });
}

pub fn an_unknown_url_parameter_is_refused<S: Session>(place: &Place) {
    place.run(async {
        let target = place.with_parameter("libary", "x");
        let error = S::connect(&target).await.err().expect("nobody knows this parameter");
        assert_eq!(error.kind(), Kind::User, "{error}");
        assert!(error.message().contains("libary") && !error.hint_text().is_empty(), "{error}");
    });
}

pub fn a_database_that_is_not_there_is_said_so<S: Session>(place: &Place) {
    place.run(async {
        let mut target = place.target.clone();
        target.database = "dyno_is_not_there/nor_is_this".to_owned();
        target.parameters.remove("create");
        let error = S::connect(&target).await.err().expect("there is no such database");
        assert!(matches!(error.kind(), Kind::Connect | Kind::User), "{:?} {error}", error.kind());
        assert!(error.message().contains("dyno_is_not_there"), "{error}");
    });
}

/// How one session ends another, where an engine lets it: the question for a session's number, and the order.
fn end_of(target: &Target) -> Option<(&'static str, &'static str)> {
    match target.protocol {
        Protocol::Mysql => Some(("SELECT CONNECTION_ID()", "KILL {}")),
        Protocol::Postgresql => Some(("SELECT pg_backend_pid()", "SELECT pg_terminate_backend({})")),
        Protocol::Firebird => Some((
            "SELECT CURRENT_CONNECTION FROM rdb$database",
            "DELETE FROM mon$attachments WHERE mon$attachment_id = {}",
        )),
        Protocol::Sqlite | Protocol::Http => None,
    }
}

pub fn a_session_that_was_ended_is_lost<S: Session>(place: &Place) {
    let Some((question, order)) = end_of(&place.target) else { return };
    place.run(async {
        let mut victim: S = place.connect().await;
        let mut other: S = place.connect().await;
        make_table(&mut other, place, "id INTEGER NOT NULL PRIMARY KEY").await;
        let number = number_of(&mut victim, question).await;
        let sql = format!("INSERT INTO {} (id) VALUES (?)", place.table);
        let insert = victim.prepare(&sql).await.unwrap();
        victim.begin().await.unwrap();
        victim.execute(insert, &[Value::Int(1)], &mut ()).await.unwrap();
        other.text(&order.replace("{}", &number.to_string()), &mut ()).await.unwrap();
        let error = match victim.execute(insert, &[Value::Int(2)], &mut ()).await {
            // The order may take a moment to arrive.
            Ok(_) => victim.commit().await.expect_err("the session was ended"),
            Err(error) => error,
        };
        assert_eq!(error.fate(), Fate::Lost, "{}: {error}", error.label());
        victim.execute(insert, &[Value::Int(3)], &mut ()).await.expect_err("a lost session stays lost");
        drop(victim);
        let sql = format!("SELECT COUNT(*) FROM {}", place.table);
        assert_eq!(number_of(&mut other, &sql).await, 0);
        other.drop_table(&place.table).await.unwrap();
    });
}

/// How many threads of this process wait for an attachment of Firebird's.
fn attaching() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim() == "dyno-attach").count()
}

/// Its library waits without end, on a thread that nobody can call back.
pub fn a_server_that_stands_still_holds_one_thread<S: Session>(place: &Place) {
    let Some(library) = place.target.parameter("library") else { return };
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let mut target = Target::parse(&format!("firebird://u:p@127.0.0.1:{port}/x?library={library}")).unwrap();
    target.connect_timeout = std::time::Duration::from_millis(200);
    // The library itself gives up after a second.
    for _ in 0..3 {
        let error = place.run(S::connect(&target)).err().unwrap();
        assert!(error.message().contains("no session within 0.2 s"), "{error}");
    }
    assert_eq!(attaching(), 1);
}
