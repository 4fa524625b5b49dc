//! Loading rows in bulk: INSERTs of many rows, many of them to a commit.

use super::literal::put_literal;
use super::Mysql;
use crate::error::Result;
use crate::session::{RowBuffer, Session};

/// Below the smallest `max_allowed_packet` in use (MariaDB: 16 MB, MySQL before 8: 4 MB), large enough that the round
/// trip does not matter.
const STATEMENT_BYTES: usize = 1 << 20;
const STATEMENTS_PER_COMMIT: u32 = 16;

pub(super) async fn insert(
    session: &mut Mysql,
    table: &str,
    columns: &[&str],
    mut next: impl FnMut(&mut RowBuffer) -> bool,
) -> Result<u64> {
    let start = format!("INSERT INTO {table} ({}) VALUES ", columns.join(", ")).into_bytes();
    let (mut row, mut rows, mut statements) = (RowBuffer::default(), 0, 0);
    let mut statement = start.clone();
    session.begin().await?;
    loop {
        row.clear();
        let more = next(&mut row);
        if more {
            put_row(&mut statement, &row);
            rows += 1;
        }
        if statement.len() > if more { STATEMENT_BYTES } else { start.len() } {
            session.bulk_statement(&statement).await?;
            statement.truncate(start.len());
            statements += 1;
        }
        if !more {
            session.commit().await?;
            return Ok(rows);
        }
        if statements == STATEMENTS_PER_COMMIT {
            session.commit().await?;
            session.begin().await?;
            statements = 0;
        }
    }
}

fn put_row(statement: &mut Vec<u8>, row: &RowBuffer) {
    statement.push(if statement.last() == Some(&b')') { b',' } else { b' ' });
    statement.push(b'(');
    for (index, value) in row.values().enumerate() {
        if index > 0 {
            statement.push(b',');
        }
        put_literal(statement, value);
    }
    statement.push(b')');
}
