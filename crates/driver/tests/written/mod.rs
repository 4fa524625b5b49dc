//! A session without a server that writes down what it is asked, and answers by what the statement says:
//! `SELECT n ROWS` has n rows, `DEADLOCK` and `DUPLICATE` are refused, `GONE` ends the connection.

use dyno_driver::error::{Error, Fate, Result};
use dyno_driver::session::{
    Answer, Dialect, Identity, Placeholder, Row, RowBuffer, Rows, Session, Statement, Target, Value,
};
use std::cell::{Cell, RefCell};

thread_local! {
    static ASKED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static OPENED: Cell<u32> = const { Cell::new(0) };
}

static DIALECT: Dialect = Dialect {
    name: "written",
    placeholder: Placeholder::Question,
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

/// What the sessions of this thread were asked since the last call, each with its number before it.
pub fn taken() -> Vec<String> {
    OPENED.set(0);
    ASKED.take()
}

pub struct Written {
    /// 0 for the driver's own; those that a workload opens count from 1.
    number: u32,
    prepared: Vec<String>,
}

impl Written {
    pub fn new() -> Self {
        Written { number: 0, prepared: Vec::new() }
    }

    fn write(&self, what: impl std::fmt::Display) {
        ASKED.with_borrow_mut(|asked| asked.push(format!("{} {what}", self.number)));
    }
}

/// A number counted from 1, a text with it, and NULL.
struct Numbered(i64, String);

impl Row for Numbered {
    fn columns(&self) -> usize {
        3
    }

    fn value(&self, column: usize) -> Value<'_> {
        match column {
            0 => Value::Int(self.0),
            1 => Value::Text(&self.1),
            _ => Value::Null,
        }
    }
}

fn answer<R: Rows>(sql: &str, rows: &mut R) -> Result<Answer> {
    match sql {
        "DEADLOCK" => {
            return Err(Error::server("1213 deadlock", Fate::Retry, "deadlock found").with_sqlstate("40001"))
        }
        "DUPLICATE" => {
            return Err(
                Error::server("1062 duplicate key", Fate::Failed, "a row is there").with_sqlstate("23000")
            )
        }
        "GONE" => return Err(Error::lost("connection closed", "the server is gone")),
        _ => {}
    }
    let wanted = sql.strip_prefix("SELECT ").and_then(|rest| rest.strip_suffix(" ROWS"));
    let Some(count) = wanted.and_then(|count| count.parse::<i64>().ok()) else {
        return Ok(Answer { rows: 0, affected: 1 });
    };
    rows.names(&["number", "text", "nothing"].map(str::to_owned));
    (1..=count).for_each(|number| rows.row(&Numbered(number, format!("row {number}"))));
    Ok(Answer { rows: count as u64, affected: 0 })
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Text(text) => format!("'{text}'"),
        Value::Bytes(bytes) => format!("{bytes:?}"),
    }
}

impl Session for Written {
    const BLOCKING: bool = false;

    async fn connect(_target: &Target) -> Result<Self> {
        let session = Written { number: OPENED.get() + 1, prepared: Vec::new() };
        OPENED.set(session.number);
        session.write("opened");
        Ok(session)
    }

    fn dialect(&self) -> &'static Dialect {
        &DIALECT
    }

    fn server_version(&self) -> &str {
        "none"
    }

    async fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.write(format_args!("prepare {sql}"));
        self.prepared.push(sql.to_owned());
        Ok(Statement(self.prepared.len() as u32 - 1))
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        let sql = self.prepared[statement.0 as usize].clone();
        let values: Vec<String> = parameters.iter().map(shown).collect();
        self.write(format_args!("{sql} [{}]", values.join(", ")));
        answer(&sql, rows)
    }

    async fn text<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        self.write(sql);
        answer(sql, rows)
    }

    async fn begin(&mut self) -> Result<()> {
        self.write("begin");
        Ok(())
    }

    async fn commit(&mut self) -> Result<()> {
        self.write("commit");
        Ok(())
    }

    async fn rollback(&mut self) -> Result<()> {
        self.write("rollback");
        Ok(())
    }

    async fn bulk_insert(
        &mut self,
        table: &str,
        _columns: &[&str],
        _next: impl FnMut(&mut RowBuffer) -> bool,
    ) -> Result<u64> {
        self.write(format_args!("bulk insert into {table}"));
        Ok(0)
    }

    async fn close(self) {}
}
