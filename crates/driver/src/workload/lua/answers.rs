//! The rows that a script may still fetch. A connection keeps those of its last answer, and those of an earlier one that
//! the script has begun to fetch.

use crate::session::{Row, Rows, Value};
use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;

#[derive(Default)]
pub(super) struct Answers {
    /// The last answer of each connection.
    last: Vec<Stored>,
    /// Earlier answers in the middle of being fetched, by number.
    begun: HashMap<u32, Stored>,
    number: u32,
}

/// The rows of one answer as text. Used again for its memory.
#[derive(Default)]
pub(super) struct Stored {
    number: u32,
    bytes: Vec<u8>,
    /// Where each cell's text is, row by row; `None` for NULL.
    cells: Vec<Option<Range<usize>>>,
    columns: usize,
    fetched: usize,
}

/// What a fetch finds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fetched<'a> {
    /// The cells of the next row; `None` for NULL.
    Row(Vec<Option<&'a [u8]>>),
    /// All rows were fetched.
    End,
    /// A later statement of the connection took the place of this answer.
    Gone,
}

impl Answers {
    /// Room for the answer to the next statement of a connection.
    pub fn begin(&mut self, connection: usize) -> Stored {
        if self.last.len() <= connection {
            self.last.resize_with(connection + 1, Stored::default);
        }
        let mut stored = std::mem::take(&mut self.last[connection]);
        if stored.fetched > 0 && stored.fetched < stored.rows() {
            self.begun.insert(stored.number, std::mem::take(&mut stored));
        }
        stored.clear();
        stored
    }

    /// Keeps an answer as the last one of its connection; returns the number by which it is fetched.
    pub fn keep(&mut self, connection: usize, mut stored: Stored) -> u32 {
        self.number = self.number.wrapping_add(1);
        stored.number = self.number;
        self.last[connection] = stored;
        self.number
    }

    /// The next row of an answer.
    pub fn fetch(&mut self, connection: usize, number: u32) -> Fetched<'_> {
        let last = self.last.get_mut(connection).filter(|last| last.number == number);
        match last.or_else(|| self.begun.get_mut(&number)) {
            Some(stored) => stored.next().map_or(Fetched::End, Fetched::Row),
            None => Fetched::Gone,
        }
    }

    /// Lets go of an earlier answer that was not fetched to its end.
    pub fn forget(&mut self, number: u32) {
        self.begun.remove(&number);
    }

    /// Lets go of all earlier answers: no result outlives its event.
    pub fn forget_begun(&mut self) {
        self.begun.clear();
    }
}

impl Stored {
    pub fn columns(&self) -> usize {
        self.columns
    }

    fn rows(&self) -> usize {
        self.cells.len().checked_div(self.columns).unwrap_or(0)
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.cells.clear();
        (self.columns, self.fetched) = (0, 0);
    }

    fn next(&mut self) -> Option<Vec<Option<&[u8]>>> {
        if self.fetched >= self.rows() {
            return None;
        }
        let first = self.fetched * self.columns;
        self.fetched += 1;
        let cells = self.cells[first..first + self.columns].iter();
        Some(cells.map(|cell| cell.clone().map(|place| &self.bytes[place])).collect())
    }
}

impl Rows for Stored {
    fn names(&mut self, names: &[String]) {
        self.columns = names.len();
    }

    fn row(&mut self, row: &dyn Row) {
        self.columns = row.columns();
        for column in 0..self.columns {
            let from = self.bytes.len();
            // Writing to a Vec cannot fail.
            match row.value(column) {
                Value::Null => {
                    self.cells.push(None);
                    continue;
                }
                Value::Int(value) => drop(write!(self.bytes, "{value}")),
                Value::Float(value) => drop(write!(self.bytes, "{value}")),
                Value::Text(text) => self.bytes.extend_from_slice(text.as_bytes()),
                Value::Bytes(bytes) => self.bytes.extend_from_slice(bytes),
            }
            self.cells.push(Some(from..self.bytes.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Cells<'a>(&'a [Value<'a>]);

    impl Row for Cells<'_> {
        fn columns(&self) -> usize {
            self.0.len()
        }

        fn value(&self, column: usize) -> Value<'_> {
            self.0.get(column).copied().unwrap_or(Value::Null)
        }
    }

    fn answer(answers: &mut Answers, rows: &[&[Value<'_>]]) -> u32 {
        let mut stored = answers.begin(0);
        rows.iter().for_each(|row| stored.row(&Cells(row)));
        answers.keep(0, stored)
    }

    fn row(cells: &[&'static str]) -> Fetched<'static> {
        Fetched::Row(cells.iter().map(|cell| Some(cell.as_bytes())).collect())
    }

    #[test]
    fn rows_come_as_text_in_their_order_and_then_end() {
        let mut answers = Answers::default();
        let number = answer(
            &mut answers,
            &[
                &[Value::Int(-7), Value::Null, Value::Text("é")],
                &[Value::Float(0.5), Value::Bytes(&[0, 255]), Value::Text("")],
            ],
        );
        let first = Fetched::Row(vec![Some(b"-7".as_slice()), None, Some("é".as_bytes())]);
        assert_eq!(answers.fetch(0, number), first);
        let second = Fetched::Row(vec![Some(b"0.5".as_slice()), Some(&[0, 255]), Some(b"")]);
        assert_eq!(answers.fetch(0, number), second);
        assert_eq!(answers.fetch(0, number), Fetched::End);
        assert_eq!(answers.fetch(1, number), Fetched::Gone);
    }

    #[test]
    fn an_answer_lives_on_once_it_is_being_fetched() {
        let mut answers = Answers::default();
        let rows: [&[Value<'_>]; 2] = [&[Value::Int(1)], &[Value::Int(2)]];
        let begun = answer(&mut answers, &rows);
        assert_eq!(answers.fetch(0, begun), row(&["1"]));
        let last = answer(&mut answers, &rows);
        assert_eq!(answers.fetch(0, begun), row(&["2"]));
        assert_eq!(answers.fetch(0, last), row(&["1"]));
        answers.forget(begun);
        assert_eq!(answers.fetch(0, begun), Fetched::Gone);
    }

    #[test]
    fn an_answer_that_nobody_fetched_is_gone_with_the_next() {
        let mut answers = Answers::default();
        let first = answer(&mut answers, &[&[Value::Int(1)], &[Value::Int(2)]]);
        let second = answer(&mut answers, &[&[Value::Int(3)], &[Value::Int(4)]]);
        assert_eq!(answers.fetch(0, first), Fetched::Gone);
        assert_eq!(answers.fetch(0, second), row(&["3"]));
        answer(&mut answers, &[]);
        answers.forget_begun();
        assert_eq!(answers.fetch(0, second), Fetched::Gone);
    }

    #[test]
    fn an_answer_without_rows_has_its_columns_names() {
        let mut answers = Answers::default();
        let mut stored = answers.begin(0);
        stored.names(&["a".to_owned(), "b".to_owned()]);
        assert_eq!(stored.columns(), 2);
        let number = answers.keep(0, stored);
        assert_eq!(answers.fetch(0, number), Fetched::End);
    }
}
