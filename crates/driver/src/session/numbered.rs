//! What a session holds for each of its prepared statements.

use super::Statement;

/// By the statement's number. The number of one that was let go is given to the next, so that a script that prepares
/// for each transaction does not fill the memory.
pub(crate) struct Numbered<T>(Vec<Option<T>>);

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered(Vec::new())
    }
}

impl<T> Numbered<T> {
    /// The number that the next one gets.
    pub fn next(&self) -> Statement {
        Statement(self.0.iter().position(Option::is_none).unwrap_or(self.0.len()) as u32)
    }

    pub fn add(&mut self, held: T) -> Statement {
        let statement = self.next();
        match self.0.get_mut(statement.0 as usize) {
            Some(free) => *free = Some(held),
            None => self.0.push(Some(held)),
        }
        statement
    }

    #[inline]
    pub fn get(&self, number: usize) -> Option<&T> {
        self.0.get(number)?.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.0.get_mut(number)?.as_mut()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }

    /// Lets one go, whose number means nothing from here on.
    pub fn take(&mut self, statement: Statement) -> Option<T> {
        self.0.get_mut(statement.0 as usize)?.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_one_that_was_let_go_is_given_again() {
        let mut held = Numbered::default();
        assert_eq!(["a", "b", "c"].map(|text| held.add(text).0), [0, 1, 2]);
        assert_eq!(
            (held.take(Statement(1)), held.take(Statement(1)), held.take(Statement(9))),
            (Some("b"), None, None)
        );
        assert_eq!((held.get(1), held.get(2)), (None, Some(&"c")));
        assert_eq!(held.iter_mut().count(), 2);
        assert_eq!((held.add("d").0, held.add("e").0, held.get(1)), (1, 3, Some(&"d")));
    }
}
