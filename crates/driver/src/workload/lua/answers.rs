//! The rows that a script may still fetch. A connection keeps those of its last answer, and those of an earlier one that
//! the script has begun to fetch.

use crate::error::Result;
use crate::session::{Decode, Row, Rows, Undecoded, Value};
use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::ops::Range;
use std::rc::Rc;

/// How many results are known by their size at least, whatever came after them.
const SIZES_KEPT: usize = 256;

#[derive(Default)]
pub(super) struct Answers {
    /// The last answer of each connection; its place is empty while it comes in.
    last: Vec<Option<Box<Stored>>>,
    /// Earlier answers in the middle of being fetched, by number.
    begun: HashMap<u32, Box<Stored>>,
    /// The last results, each in the place of its number.
    sizes: Vec<Kept>,
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
    rows: usize,
    fetched: usize,
    /// The answer as it came, until a row of it is fetched.
    answer: Vec<u8>,
    decoder: Option<Rc<dyn Decode>>,
    /// The result sets of the same answer that the script has not asked for yet.
    later: VecDeque<Stored>,
}

/// A result set as the script learns of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub rows: u32,
    pub columns: u32,
    /// By which it is fetched.
    pub number: u32,
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
    #[inline]
    pub fn begin(&mut self, connection: usize) -> Box<Stored> {
        if self.last.len() <= connection {
            self.last.resize_with(connection + 1, || None);
        }
        match self.last[connection].take() {
            Some(mut stored) if !stored.is_begun() => {
                stored.clear();
                stored
            }
            Some(mut stored) => {
                stored.later.clear();
                self.begun.insert(stored.number, stored);
                Box::default()
            }
            None => Box::default(),
        }
    }

    /// Keeps an answer as the last one of its connection; tells of its first result set.
    #[inline]
    pub fn keep(&mut self, connection: usize, mut stored: Box<Stored>) -> Kept {
        self.number = self.number.wrapping_add(1);
        stored.number = self.number;
        let kept = Kept { rows: stored.rows as u32, columns: stored.columns as u32, number: self.number };
        self.last[connection] = Some(stored);
        let place = self.number as usize % SIZES_KEPT;
        match self.sizes.get_mut(place) {
            Some(size) => *size = kept,
            None => {
                self.sizes.resize(place + 1, Kept::default());
                self.sizes[place] = kept;
            }
        }
        kept
    }

    /// Whether the last answer of a connection has another result set.
    pub fn has_more(&self, connection: usize) -> bool {
        self.last.get(connection).and_then(Option::as_ref).is_some_and(|last| !last.later.is_empty())
    }

    /// Goes on to the next result set of a connection's last answer, if there is one.
    pub fn next_set(&mut self, connection: usize) -> Option<Kept> {
        let last = self.last.get_mut(connection)?;
        let mut next = last.as_mut()?.later.pop_front()?;
        let mut earlier = last.take()?;
        next.later = std::mem::take(&mut earlier.later);
        if earlier.is_begun() {
            self.begun.insert(earlier.number, earlier);
        }
        Some(self.keep(connection, Box::new(next)))
    }

    /// How large a result is, also one whose rows are gone; `None` where that was too long ago.
    pub fn size(&self, number: u32) -> Option<Kept> {
        self.sizes.get(number as usize % SIZES_KEPT).copied().filter(|kept| kept.number == number)
    }

    /// The next row of an answer. An error says that its rows are not what the protocol says.
    pub fn fetch(&mut self, number: u32) -> Result<Fetched<'_>> {
        let last = self.last.iter_mut().flatten().find(|last| last.number == number);
        let Some(stored) = last.or_else(|| self.begun.get_mut(&number)) else { return Ok(Fetched::Gone) };
        stored.decode()?;
        Ok(stored.next().map_or(Fetched::End, Fetched::Row))
    }

    /// Lets go of an earlier answer that was not fetched to its end.
    pub fn forget(&mut self, number: u32) {
        self.begun.remove(&number);
    }

    /// Lets go of all earlier answers: no result outlives its event.
    #[inline]
    pub fn forget_begun(&mut self) {
        if !self.begun.is_empty() {
            self.begun.clear();
        }
    }
}

impl Stored {
    /// Whether the script is in the middle of fetching it.
    fn is_begun(&self) -> bool {
        self.fetched > 0 && self.fetched < self.rows
    }

    /// The result set that comes in.
    fn coming(&mut self) -> &mut Stored {
        match self.later.len() {
            0 => self,
            count => &mut self.later[count - 1],
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.cells.clear();
        self.later.clear();
        self.decoder = None;
        (self.columns, self.rows, self.fetched) = (0, 0, 0);
    }

    /// Decodes the rows, if that was not done yet.
    fn decode(&mut self) -> Result<()> {
        let Some(decoder) = self.decoder.take() else { return Ok(()) };
        self.rows = 0;
        let answer = std::mem::take(&mut self.answer);
        let outcome = decoder.decode(&answer, &mut |row| self.row(row));
        self.answer = answer;
        outcome
    }

    fn next(&mut self) -> Option<Vec<Option<&[u8]>>> {
        if self.fetched >= self.rows {
            return None;
        }
        let first = self.fetched * self.columns;
        self.fetched += 1;
        let cells = self.cells[first..first + self.columns].iter();
        Some(cells.map(|cell| cell.clone().map(|place| &self.bytes[place])).collect())
    }
}

impl Rows for Stored {
    const KEEPS: bool = true;
    const NAMES: bool = false;

    fn keep(&mut self, answer: Undecoded<'_>) {
        (self.rows, self.columns) = (answer.rows as usize, answer.columns as usize);
        self.answer.clear();
        self.answer.extend_from_slice(answer.answer);
        self.decoder = Some(answer.decoder);
    }

    fn names(&mut self, names: &[String]) {
        self.columns(names.len());
    }

    fn columns(&mut self, count: usize) {
        self.coming().columns = count;
    }

    fn next_set(&mut self) {
        self.later.push_back(Stored::default());
    }

    fn row(&mut self, row: &dyn Row) {
        let Stored { bytes, cells, columns, rows, .. } = self.coming();
        *rows += 1;
        *columns = row.columns();
        for column in 0..*columns {
            let from = bytes.len();
            // Writing to a Vec cannot fail.
            match row.value(column) {
                Value::Null => {
                    cells.push(None);
                    continue;
                }
                Value::Int(value) => drop(write!(bytes, "{value}")),
                Value::Float(value) => drop(write!(bytes, "{value}")),
                Value::Text(text) => bytes.extend_from_slice(text.as_bytes()),
                Value::Bytes(value) => bytes.extend_from_slice(value),
            }
            cells.push(Some(from..bytes.len()));
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
        answers.keep(0, stored).number
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
        assert_eq!(answers.fetch(number).unwrap(), first);
        let second = Fetched::Row(vec![Some(b"0.5".as_slice()), Some(&[0, 255]), Some(b"")]);
        assert_eq!(answers.fetch(number).unwrap(), second);
        assert_eq!(answers.fetch(number).unwrap(), Fetched::End);
        assert_eq!(answers.fetch(number + 1).unwrap(), Fetched::Gone);
    }

    #[test]
    fn an_answer_lives_on_once_it_is_being_fetched() {
        let mut answers = Answers::default();
        let rows: [&[Value<'_>]; 2] = [&[Value::Int(1)], &[Value::Int(2)]];
        let begun = answer(&mut answers, &rows);
        assert_eq!(answers.fetch(begun).unwrap(), row(&["1"]));
        let last = answer(&mut answers, &rows);
        assert_eq!(answers.fetch(begun).unwrap(), row(&["2"]));
        assert_eq!(answers.fetch(last).unwrap(), row(&["1"]));
        answers.forget(begun);
        assert_eq!(answers.fetch(begun).unwrap(), Fetched::Gone);
    }

    #[test]
    fn an_answer_that_nobody_fetched_is_gone_with_the_next() {
        let mut answers = Answers::default();
        let first = answer(&mut answers, &[&[Value::Int(1)], &[Value::Int(2)]]);
        let second = answer(&mut answers, &[&[Value::Int(3)], &[Value::Int(4)]]);
        assert_eq!(answers.fetch(first).unwrap(), Fetched::Gone);
        assert_eq!(answers.fetch(second).unwrap(), row(&["3"]));
        assert_eq!(answers.size(first).map(|kept| (kept.rows, kept.columns)), Some((2, 1)));
        assert_eq!(answers.size(second + 1), None);
        answer(&mut answers, &[]);
        answers.forget_begun();
        assert_eq!(answers.fetch(second).unwrap(), Fetched::Gone);
        for _ in 0..SIZES_KEPT {
            answer(&mut answers, &[]);
        }
        assert_eq!((answers.size(first), answers.size(second)), (None, None));
    }

    #[test]
    fn an_answer_without_rows_has_its_columns_names() {
        let mut answers = Answers::default();
        let mut stored = answers.begin(0);
        stored.names(&["a".to_owned(), "b".to_owned()]);
        let kept = answers.keep(0, stored);
        assert_eq!((kept.rows, kept.columns), (0, 2));
        assert_eq!(answers.fetch(kept.number).unwrap(), Fetched::End);
    }

    #[test]
    fn result_sets_come_one_after_the_other() {
        let mut answers = Answers::default();
        let mut stored = answers.begin(0);
        stored.row(&Cells(&[Value::Int(1), Value::Int(2)]));
        stored.row(&Cells(&[Value::Int(3), Value::Int(4)]));
        stored.next_set();
        stored.row(&Cells(&[Value::Int(5)]));
        stored.next_set();
        let first = answers.keep(0, stored);
        assert_eq!((first.rows, first.columns), (2, 2));
        assert_eq!(answers.fetch(first.number).unwrap(), row(&["1", "2"]));
        assert!(answers.has_more(0) && !answers.has_more(1));
        let second = answers.next_set(0).unwrap();
        assert_eq!((second.rows, second.columns), (1, 1));
        // The one before lives on, because it is being fetched.
        assert_eq!(answers.fetch(first.number).unwrap(), row(&["3", "4"]));
        assert_eq!(answers.fetch(second.number).unwrap(), row(&["5"]));
        let third = answers.next_set(0).unwrap();
        assert_eq!((third.rows, third.columns), (0, 0));
        assert_eq!((answers.has_more(0), answers.next_set(0)), (false, None));
        let begun = answers.begin(0);
        assert_eq!(begun.later.len(), 0);
    }
}
