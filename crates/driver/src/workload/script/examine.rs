//! What a server says to a script's statements before anything runs: it prepares them, and carries none of them out.

use super::content::Content;
use super::program::{Form, Mode, Part, Program, Statement};
use super::run::{prepared, Ready};
use super::sql::{self, Piece};
use crate::error::{Error, Fate, Mistake, Result};
use crate::session::Session;
use crate::workload::Examined;

/// All SQL of a script, each statement behind its place; empty where there is nothing but requests.
pub fn own_sql(content: &Content) -> String {
    let Content { program, .. } = content;
    let mut all = String::new();
    let texts = content.setup.iter().chain(&content.finish).map(|text| (&text.place, text.sql.clone()));
    let statements = statements_of(program).map(|statement| (&statement.place, written(program, statement)));
    let tables = content.tables.iter().map(|table| (&table.place, insert_into(&table.name, &table.columns)));
    let questions =
        content.start.iter().filter(|it| it.values.is_empty()).map(|it| (&it.place, it.text.clone()));
    let conditions = content.invariants.iter().map(|it| (&it.place, it.query.clone()));
    for (place, sql) in texts.chain(statements).chain(tables).chain(questions).chain(conditions) {
        all.push_str(&format!("{place}: {sql}\n"));
    }
    match statements_of(program).next() {
        Some(_) => format!("{:?}\n{all}", program.mode),
        None => String::new(),
    }
}

/// Has a session on the script's tables prepare each statement.
pub async fn examine<S: Session>(content: &Content, session: &mut S) -> Result<Examined> {
    let mut examined = Examined::default();
    let frame = content.frame(content.program.names.len(), content.program.memories);
    for table in &content.tables {
        let insert = insert_into(&table.name, &table.columns);
        examined.note(&table.place, session.prepare(&insert).await.map(drop))?;
    }
    for question in content.start.iter().filter(|question| question.values.is_empty()) {
        examined.text(&question.place, &question.text, session).await?;
    }
    for statement in statements_of(&content.program) {
        match (content.program.changes_schema, statement.is_templated(), statement.preparable) {
            (false, false, true) => {
                let ready = prepared(&content.program, statement, &frame, session, &mut Vec::new()).await;
                // Its errors name the place already.
                examined.note("", ready.map(|_: Ready| ()))?;
            }
            (false, false, false) if may_be_judged(&content.program, statement) => {
                let text = written(&content.program, statement);
                examined.text(&statement.place, &text, session).await?;
            }
            _ => examined.left_out += 1,
        }
    }
    for condition in &content.invariants {
        examined.text(&condition.place, &condition.query, session).await?;
    }
    for refused in &mut examined.refused {
        if refused.hint.is_empty() {
            "mend the statement, or what `setup` makes".clone_into(&mut refused.hint);
        }
    }
    Ok(examined)
}

impl Examined {
    /// Prepares a text without parameters; what a server takes as text alone is left out.
    async fn text<S: Session>(&mut self, place: &str, text: &str, session: &mut S) -> Result<()> {
        if !sql::is_preparable(&first_word(text)) {
            self.left_out += 1;
            return Ok(());
        }
        self.note(place, session.prepare(text).await.map(drop))
    }

    /// Takes in what came of a statement. An error of the connection ends the examination.
    fn note(&mut self, place: &str, outcome: Result<()>) -> Result<()> {
        self.asked += 1;
        match outcome {
            Ok(()) => Ok(()),
            Err(error) if error.fate() == Fate::Failed => {
                self.refused.push(refusal(place, &error));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

fn refusal(place: &str, error: &Error) -> Mistake {
    Mistake {
        place: place.to_owned(),
        message: error.message().to_owned(),
        hint: error.hint_text().to_owned(),
    }
}

fn statements_of(program: &Program) -> impl Iterator<Item = &Statement> {
    program.statements.iter().filter(|statement| statement.form == Form::Sql)
}

/// Whether a statement that is sent as text can be prepared all the same, to see what the server says to it. A value
/// that is put in as it is written may be anything.
fn may_be_judged(program: &Program, statement: &Statement) -> bool {
    program.mode == Mode::Simple && !statement.has_parameters()
}

/// A statement's text, with a mark for each value.
fn written(program: &Program, statement: &Statement) -> String {
    let parts = statement.parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::Value(_) => "?".to_owned(),
        Part::Name(slot) => format!(":{}", program.names[*slot]),
    });
    parts.collect()
}

fn first_word(text: &str) -> String {
    sql::first_word(&[Piece::Text(text.to_owned())])
}

fn insert_into(table: &str, columns: &[String]) -> String {
    let marks = vec!["?"; columns.len()].join(", ");
    format!("INSERT INTO {table} ({}) VALUES ({marks})", columns.join(", "))
}
