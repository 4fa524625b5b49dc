//! A session that has no server: every statement answers with one row, of the columns `a` and `b`.

use dyno_driver::error::{Error, Result};
use dyno_driver::session::{
    Answer, Dialect, Identity, Placeholder, Row, RowBuffer, Rows, Session, Statement, Target, Value,
};

/// A script that sends this many statements in one transaction repeats them without end.
const STATEMENTS_MAX: u64 = 2_000;

static DIALECT: Dialect = Dialect {
    name: "echo",
    placeholder: Placeholder::Dollar,
    identity: Identity::AutoIncrement,
    double: "DOUBLE",
    timestamp: "TIMESTAMP",
    now: "NOW()",
    text: "TEXT",
    table_suffix: "",
    char_padded: false,
    for_update: true,
    update_returning: true,
    clustered: true,
    truncate: true,
    multi_row_insert: true,
    after_load: None,
    limit: "LIMIT {}",
};

pub struct Echo {
    /// Statements since the caller last set it to 0.
    pub statements: u64,
    columns: [String; 2],
}

impl Default for Echo {
    fn default() -> Self {
        Echo { statements: 0, columns: ["a".to_owned(), "b".to_owned()] }
    }
}

struct OneRow;

impl Row for OneRow {
    fn columns(&self) -> usize {
        2
    }

    fn value(&self, column: usize) -> Value<'_> {
        match column {
            0 => Value::Int(7),
            1 => Value::Text("it's"),
            _ => Value::Null,
        }
    }
}

impl Echo {
    fn answer<R: Rows>(&mut self, rows: &mut R) -> Result<Answer> {
        self.statements += 1;
        if self.statements > STATEMENTS_MAX {
            return Err(Error::lost("enough", "enough"));
        }
        rows.row(&OneRow);
        Ok(Answer { rows: 1, affected: 0 })
    }
}

impl Session for Echo {
    const BLOCKING: bool = false;

    async fn connect(_target: &Target) -> Result<Self> {
        Ok(Echo::default())
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn server_version(&self) -> &str {
        "none"
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        std::hint::black_box(self.dialect().placeholders(sql));
        Ok(Statement(0))
    }

    async fn execute<R: Rows>(&mut self, _: Statement, values: &[Value<'_>], rows: &mut R) -> Result<Answer> {
        std::hint::black_box(values);
        self.answer(rows)
    }

    async fn text<R: Rows>(&mut self, _sql: &str, rows: &mut R) -> Result<Answer> {
        rows.names(&self.columns);
        self.answer(rows)
    }

    async fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    async fn commit(&mut self) -> Result<()> {
        Ok(())
    }

    async fn rollback(&mut self) -> Result<()> {
        Ok(())
    }

    async fn bulk_insert(
        &mut self,
        _table: &str,
        _columns: &[&str],
        mut next: impl FnMut(&mut RowBuffer) -> bool,
    ) -> Result<u64> {
        let (mut row, mut rows) = (RowBuffer::default(), 0);
        while rows < 10 && next(&mut row) {
            rows += 1;
            row.clear();
        }
        Ok(rows)
    }

    async fn close(self) {}
}
