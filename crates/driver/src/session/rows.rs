//! How a workload looks at the rows of an answer.

use super::value::{Owned, Value};
use super::Session;
use crate::error::{Error, Result};
use std::ops::AddAssign;
use std::rc::Rc;

/// What a statement did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Rows that came back, all of them read.
    pub rows: u64,
    /// Rows that were changed.
    pub affected: u64,
}

impl AddAssign for Answer {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.affected += other.affected;
    }
}

/// One row as the session holds it: a value is decoded when it is asked for.
pub trait Row {
    fn columns(&self) -> usize;

    /// The value of a column, counted from 0; `Null` beyond the last one.
    fn value(&self, column: usize) -> Value<'_>;
}

/// What can read the rows of an answer from the bytes that came.
pub trait Decode {
    fn decode(&self, answer: &[u8], show: &mut dyn FnMut(&dyn Row)) -> Result<()>;
}

/// An answer whose rows nobody has read yet.
pub struct Undecoded<'a> {
    pub answer: &'a [u8],
    pub rows: u64,
    pub columns: u64,
    pub decoder: Rc<dyn Decode>,
}

/// What looks at rows. `()` looks at none, which lets a session step over them.
pub trait Rows {
    /// False lets the session skip decoding.
    const READS: bool = true;

    /// True lets the session give the answer as it came, if it can, in the place of everything below.
    const KEEPS: bool = false;

    fn keep(&mut self, _answer: Undecoded<'_>) {}

    /// False lets the session skip the names of columns.
    const NAMES: bool = Self::READS;

    /// Called once before the rows, if the session knows the columns' names.
    fn names(&mut self, _names: &[String]) {}

    /// Called in the place of `names`, if the session knows how many columns there are but not their names, and where
    /// these are skipped.
    fn columns(&mut self, _count: usize) {}

    /// Called between two result sets of one answer, where the session tells them apart.
    fn next_set(&mut self) {}

    /// Called for each warning that the server sends within the answer: its level, its code and its words.
    fn warned(&mut self, _warning: [String; 3]) {}

    /// Called once for each result, if the answer says how many warnings its statement has, and not which.
    fn warnings(&mut self, _count: u64) {}

    /// Where the session puts what the engine counted while it executed the statement, by a title with its unit, if it
    /// tells that of each; `None` where nobody looks, which costs a measured operation nothing.
    fn counts(&mut self) -> Option<&mut Vec<(&'static str, i64)>> {
        None
    }

    fn row(&mut self, row: &dyn Row);
}

impl Rows for () {
    const READS: bool = false;

    fn row(&mut self, _row: &dyn Row) {}
}

/// Calls a closure for each row.
pub struct Each<F>(pub F);

impl<F: FnMut(&dyn Row)> Rows for Each<F> {
    fn row(&mut self, row: &dyn Row) {
        (self.0)(row);
    }
}

/// Types that a single column can be read as.
pub trait Cell: Sized {
    fn from_value(value: Value<'_>) -> Option<Self>;
}

impl Cell for i64 {
    fn from_value(value: Value<'_>) -> Option<Self> {
        value.as_i64()
    }
}

impl Cell for f64 {
    fn from_value(value: Value<'_>) -> Option<Self> {
        value.as_f64()
    }
}

impl Cell for Owned {
    fn from_value(value: Value<'_>) -> Option<Self> {
        Some(value.to_owned())
    }
}

/// Keeps the first column of the first row.
#[derive(Clone, Debug)]
pub struct First<T>(pub Option<T>, bool);

impl<T> Default for First<T> {
    fn default() -> Self {
        First(None, false)
    }
}

impl<T: Cell> Rows for First<T> {
    fn row(&mut self, row: &dyn Row) {
        if !std::mem::replace(&mut self.1, true) {
            self.0 = T::from_value(row.value(0));
        }
    }
}

/// The whole number that a query answers with: a count, a sum.
pub async fn whole_number<S: Session>(session: &mut S, sql: &str) -> Result<i64> {
    let mut first = First::<i64>::default();
    session.text(sql, &mut first).await?;
    first.0.ok_or_else(|| Error::protocol(format!("{sql:?} gave no whole number")))
}

/// Keeps everything: for checks and for questions of a person, not for the measured path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collect {
    pub names: Vec<String>,
    pub rows: Vec<Vec<Owned>>,
}

impl Rows for Collect {
    fn names(&mut self, names: &[String]) {
        self.names = names.to_vec();
    }

    fn row(&mut self, row: &dyn Row) {
        self.rows.push((0..row.columns()).map(|column| row.value(column).to_owned()).collect());
    }
}
