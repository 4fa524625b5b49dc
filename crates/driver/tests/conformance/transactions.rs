//! Transactions of one session as another one sees them.

use crate::place::{make_table, number_of, run_all, Place};
use dyno_driver::error::{Fate, Result};
use dyno_driver::session::{Session, Value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Barrier;

const WORKERS: i64 = 8;
const ROUNDS: i64 = 100;

async fn make_counters<S: Session>(session: &mut S, place: &Place, rows: i64) {
    make_table(session, place, "id INTEGER NOT NULL PRIMARY KEY, number INTEGER").await;
    let inserts: Vec<String> =
        (1..=rows).map(|id| format!("INSERT INTO {} VALUES ({id}, 0)", place.table)).collect();
    run_all(session, &inserts).await;
}

pub fn a_commit_is_seen_and_a_rollback_is_not<S: Session>(place: &Place) {
    place.run(async {
        let mut writer: S = place.connect().await;
        make_counters(&mut writer, place, 1).await;
        let mut reader: S = place.connect().await;
        let sum = format!("SELECT SUM(number) FROM {}", place.table);
        let sql = format!("UPDATE {} SET number = number + ? WHERE id = 1", place.table);
        let add = writer.prepare(&sql).await.unwrap();

        writer.begin().await.unwrap();
        writer.execute(add, &[Value::Int(1)], &mut ()).await.unwrap();
        assert_eq!(number_of(&mut writer, &sum).await, 1);
        assert_eq!(number_of(&mut reader, &sum).await, 0, "what is not committed is not seen");
        writer.commit().await.unwrap();
        assert_eq!(number_of(&mut reader, &sum).await, 1);

        writer.begin().await.unwrap();
        writer.execute(add, &[Value::Int(10)], &mut ()).await.unwrap();
        writer.rollback().await.unwrap();
        assert_eq!(number_of(&mut writer, &sum).await, 1);
        writer.rollback().await.expect("a roll-back outside of a transaction is fine");
        writer.rollback().await.unwrap();
        drop(reader);
        writer.drop_table(&place.table).await.unwrap();
    });
}

pub fn a_statement_alone_commits_itself<S: Session>(place: &Place) {
    place.run(async {
        let mut writer: S = place.connect().await;
        make_counters(&mut writer, place, 1).await;
        let mut reader: S = place.connect().await;
        let sql = format!("SELECT number FROM {} WHERE id = ?", place.table);
        let find = reader.prepare(&sql).await.unwrap();
        let sql = format!("UPDATE {} SET number = ? WHERE id = 1", place.table);
        let set = writer.prepare(&sql).await.unwrap();
        for number in 1..=3 {
            writer.execute(set, &[Value::Int(number)], &mut ()).await.unwrap();
            // A prepared reader must not be stuck on what it saw first.
            let mut seen = dyno_driver::session::First::<i64>::default();
            reader.execute(find, &[Value::Int(1)], &mut seen).await.unwrap();
            assert_eq!(seen.0, Some(number));
        }
        drop(writer);
        let sum = format!("SELECT SUM(number) FROM {}", place.table);
        assert_eq!(number_of(&mut reader, &sum).await, 3);
        reader.drop_table(&place.table).await.unwrap();
    });
}

/// One transaction that changes two rows. `between` is called once the first is changed, or was refused.
async fn change_both<S: Session>(
    session: &mut S,
    place: &Place,
    ids: [i64; 2],
    between: impl FnOnce(),
) -> Result<()> {
    let change = |id: i64| format!("UPDATE {} SET number = number + 1 WHERE id = {id}", place.table);
    let first = async {
        session.begin().await?;
        session.text(&format!("SELECT COUNT(*) FROM {}", place.table), &mut ()).await?;
        session.text(&change(ids[0]), &mut ()).await
    }
    .await;
    between();
    first?;
    session.text(&change(ids[1]), &mut ()).await?;
    session.commit().await
}

/// Two transactions that each hold what the other one wants: one of them, at least, must be told to try again, and
/// when it does, both are done.
pub fn a_conflict_is_worth_a_retry<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_counters(&mut session, place, 2).await;
    });
    let (barrier, retries) = (Barrier::new(2), AtomicU64::new(0));
    let contend = |ids: [i64; 2]| {
        place.run(async {
            let mut session: S = place.connect().await;
            let mut outcome = change_both(&mut session, place, ids, || {
                barrier.wait();
            })
            .await;
            while let Err(error) = outcome {
                assert_eq!(error.fate(), Fate::Retry, "{}: {error}", error.label());
                assert!(error.label().contains(' '), "{:?} is a code and a word", error.label());
                retries.fetch_add(1, Ordering::Relaxed);
                session.rollback().await.unwrap();
                outcome = change_both(&mut session, place, ids, || ()).await;
            }
        });
    };
    std::thread::scope(|scope| {
        scope.spawn(|| contend([1, 2]));
        scope.spawn(|| contend([2, 1]));
    });
    assert!(retries.into_inner() >= 1, "nobody was in anybody's way");
    place.run(async {
        let mut session: S = place.connect().await;
        let sql = format!("SELECT COUNT(*) FROM {} WHERE number = 2", place.table);
        assert_eq!(number_of(&mut session, &sql).await, 2);
        session.drop_table(&place.table).await.unwrap();
    });
}

pub fn sessions_work_side_by_side<S: Session>(place: &Place) {
    place.run(async {
        let mut session: S = place.connect().await;
        make_counters(&mut session, place, 3).await;
    });
    let work = |worker: i64| {
        place.run(async {
            let mut session: S = place.connect().await;
            let sql = format!("UPDATE {} SET number = number + ? WHERE id = ?", place.table);
            let add = session.prepare(&sql).await.unwrap();
            for round in 0..ROUNDS {
                let id = (worker + round) % 3 + 1;
                while let Err(error) = add_one(&mut session, add, id).await {
                    assert_eq!(error.fate(), Fate::Retry, "{}: {error}", error.label());
                    session.rollback().await.unwrap();
                }
            }
        });
    };
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            scope.spawn(move || work(worker));
        }
    });
    place.run(async {
        let mut session: S = place.connect().await;
        let sql = format!("SELECT SUM(number) FROM {}", place.table);
        assert_eq!(number_of(&mut session, &sql).await, WORKERS * ROUNDS);
        session.drop_table(&place.table).await.unwrap();
    });
}

async fn add_one<S: Session>(session: &mut S, add: dyno_driver::session::Statement, id: i64) -> Result<()> {
    session.begin().await?;
    session.execute(add, &[Value::Int(1), Value::Int(id)], &mut ()).await?;
    session.commit().await
}
