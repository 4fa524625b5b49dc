//! A session without a server. It answers by what the statement says: `SELECT n ROWS` has n rows, any other `SELECT`
//! and whatever is `RETURNING` something has one, `DEADLOCK` and `DUPLICATE` are refused, `GONE` ends the connection.

use dyno_driver::error::{Code, Error, Fate, Result};
use dyno_driver::session::{
    Answer, Dialect, Identity, Placeholder, Row, RowBuffer, Rows, Session, Statement, Target, Value,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A script that sends this many statements in one transaction repeats them without end.
const STATEMENTS_MAX: u64 = 2_000;
/// Rows that it takes of a bulk load.
const LOADED_MAX: u64 = 10;

thread_local! {
    static ASKED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static OPENED: Cell<u32> = const { Cell::new(0) };
}

static DIALECT: Dialect = Dialect {
    name: "stand-in",
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
    explain: None,
    explain_executed: None,
    warnings: None,
    counters: None,
    limit: "LIMIT {}",
    passed_over: None,
    procedures: None,
};

/// What the sessions of this thread were asked since the last call, each with its number before it.
pub fn taken() -> Vec<String> {
    OPENED.set(0);
    ASKED.take()
}

pub struct StandIn {
    /// 0 for the driver's own; those that a workload opens count from 1.
    number: u32,
    /// Whether it writes down what it is asked. One that does not allocates nothing after its first answers.
    writes: bool,
    prepared: Vec<Rc<str>>,
    /// Statements since the caller last set it to 0.
    pub statements: u64,
    columns: [String; 3],
    /// The second column of the row that is shown.
    text: String,
}

/// A number counted from 1, a text with it, and NULL.
struct Numbered<'a>(u64, &'a str);

impl Row for Numbered<'_> {
    fn columns(&self) -> usize {
        3
    }

    fn value(&self, column: usize) -> Value<'_> {
        match column {
            0 => Value::Int(self.0 as i64),
            1 => Value::Text(self.1),
            _ => Value::Null,
        }
    }
}

/// How many rows a statement has; `None` where it changes one instead.
fn rows_of(sql: &str) -> Option<u64> {
    if let Some(rest) = sql.strip_prefix("SELECT ") {
        let number = rest.strip_suffix(" ROWS").and_then(|number| number.parse().ok());
        return Some(number.unwrap_or(1));
    }
    sql.contains("RETURNING").then_some(1)
}

fn refused(sql: &str) -> Result<()> {
    match sql {
        "DEADLOCK" => Err(Error::refused(Code::Mysql(1213), "deadlock", Fate::Retry, "deadlock found")
            .with_sqlstate("40001")),
        "DUPLICATE" => {
            Err(Error::refused(Code::Mysql(1062), "duplicate key", Fate::Failed, "a row is there")
                .with_sqlstate("23000"))
        }
        "GONE" => Err(Error::lost("connection closed", "the server is gone")),
        _ => Ok(()),
    }
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

impl StandIn {
    /// The driver's own, which writes down what it is asked.
    pub fn writing() -> Self {
        StandIn { writes: true, ..StandIn::silent() }
    }

    /// One that only answers.
    pub fn silent() -> Self {
        StandIn {
            number: 0,
            writes: false,
            prepared: Vec::new(),
            statements: 0,
            columns: ["number", "text", "nothing"].map(str::to_owned),
            text: String::new(),
        }
    }

    fn write(&self, what: impl std::fmt::Display) {
        if self.writes {
            ASKED.with_borrow_mut(|asked| asked.push(format!("{} {what}", self.number)));
        }
    }

    /// Statements that semicolons join have a result set each.
    fn answer<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        let mut sum = Answer::default();
        for (number, one) in sql.split(';').enumerate() {
            if number > 0 {
                rows.next_set();
            }
            sum += self.answer_one(one.trim(), rows)?;
        }
        Ok(sum)
    }

    fn answer_one<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        use std::fmt::Write;
        self.statements += 1;
        if self.statements > STATEMENTS_MAX {
            return Err(Error::lost("enough", "enough"));
        }
        refused(sql)?;
        let Some(count) = rows_of(sql) else { return Ok(Answer { rows: 0, affected: 1 }) };
        rows.names(&self.columns);
        for number in 1..=count {
            self.text.clear();
            // Writing to a String cannot fail.
            let _ = write!(self.text, "row {number}");
            rows.row(&Numbered(number, &self.text));
        }
        Ok(Answer { rows: count, affected: 0 })
    }
}

impl Session for StandIn {
    async fn connect(_target: &Target) -> Result<Self> {
        let session = StandIn { number: OPENED.get() + 1, ..StandIn::writing() };
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
        std::hint::black_box(self.dialect().placeholders(sql));
        self.write(format_args!("prepare {sql}"));
        self.prepared.push(sql.into());
        Ok(Statement(self.prepared.len() as u32 - 1))
    }

    async fn deallocate(&mut self, statement: Statement) -> Result<()> {
        self.write(format_args!("deallocate {}", self.prepared[statement.0 as usize]));
        Ok(())
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        let sql = self.prepared[statement.0 as usize].clone();
        if self.writes {
            let values: Vec<String> = parameters.iter().map(shown).collect();
            self.write(format_args!("{sql} [{}]", values.join(", ")));
        }
        self.answer(&sql, rows)
    }

    async fn text<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        self.write(sql);
        self.answer(sql, rows)
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
        mut next: impl FnMut(&mut RowBuffer) -> bool,
    ) -> Result<u64> {
        self.write(format_args!("bulk insert into {table}"));
        let (mut row, mut rows) = (RowBuffer::default(), 0);
        while rows < LOADED_MAX && next(&mut row) {
            rows += 1;
            row.clear();
        }
        Ok(rows)
    }

    async fn close(self) {}
}
