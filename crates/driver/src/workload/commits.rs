//! What of a transaction is committed before its end, as far as the texts of its statements tell.

/// What a statement does with transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Boundary {
    #[default]
    None,
    Opens,
    Commits,
    RollsBack,
    /// From now on a statement opens a transaction where none is open, or commits by itself.
    Autocommit(bool),
}

impl Boundary {
    /// Of a statement's text, judged by its first words. It is asked of each text that a script in Lua sends, so nothing is
    /// allocated.
    pub fn of(sql: &str) -> Self {
        let mut words = sql
            .split(|letter: char| letter.is_whitespace() || matches!(letter, ';' | '=' | '(' | ','))
            .filter(|word| !word.is_empty());
        let (mut one, mut other) = ([0; LONGEST], [0; LONGEST]);
        let first = upper(words.next(), &mut one);
        let rest = words.clone();
        match (first, upper(words.next(), &mut other)) {
            // A block of statements.
            ("BEGIN", "NOT") => Boundary::None,
            ("BEGIN", _) | ("START", "TRANSACTION") | ("XA", "START" | "BEGIN") => Boundary::Opens,
            ("ROLLBACK", "TO") => Boundary::None,
            ("ROLLBACK" | "ABORT", _) | ("XA", "ROLLBACK") => Boundary::RollsBack,
            ("COMMIT" | "END", _) | ("XA", "COMMIT") | ("PREPARE", "TRANSACTION") => Boundary::Commits,
            ("SET", _) => Boundary::of_set(rest),
            _ => Boundary::None,
        }
    }

    fn of_set<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        const NAME: &[u8] = b"autocommit";
        let is_it = |word: &str| {
            let bytes = word.as_bytes();
            bytes.len() >= NAME.len() && bytes[bytes.len() - NAME.len()..].eq_ignore_ascii_case(NAME)
        };
        let mut words = words.skip_while(|word| !is_it(word));
        match (words.next(), upper(words.next(), &mut [0; LONGEST])) {
            (None, _) | (_, "") => Boundary::None,
            (_, "0" | "OFF" | "FALSE") => Boundary::Autocommit(false),
            _ => Boundary::Autocommit(true),
        }
    }
}

/// The letters of `TRANSACTION`, the longest word that is looked for.
const LONGEST: usize = 11;

/// A word in capitals; `?` for one that is longer than all that are looked for, and nothing for none.
fn upper<'a>(word: Option<&str>, into: &'a mut [u8; LONGEST]) -> &'a str {
    let word = word.unwrap_or_default().as_bytes();
    let Some(into) = into.get_mut(..word.len()) else { return "?" };
    into.copy_from_slice(word);
    into.make_ascii_uppercase();
    std::str::from_utf8(into).unwrap_or("?")
}

/// Follows the statements of one connection.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    open: bool,
    autocommit_off: bool,
    /// The transaction that is open has changed rows.
    changes: bool,
    /// Since `begin` something has committed, and what has changed rows.
    pub committed: bool,
    pub changed: bool,
}

impl Commits {
    /// Another transaction of the workload begins.
    pub fn begin(&mut self) {
        (self.committed, self.changed) = (false, false);
    }

    /// Whether the next statement belongs to a transaction of those before it.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// A statement succeeded, and changed rows or not.
    #[inline]
    pub fn done(&mut self, boundary: Boundary, changes: bool) {
        self.changes |= changes;
        match boundary {
            Boundary::Opens => self.open = true,
            Boundary::Commits => self.commit(),
            Boundary::RollsBack => self.rolled_back(),
            Boundary::Autocommit(on) => {
                self.autocommit_off = !on;
                if on {
                    self.commit();
                }
            }
            Boundary::None if self.open => {}
            Boundary::None if self.autocommit_off => self.open = true,
            Boundary::None => self.commit(),
        }
    }

    /// What was open is undone.
    pub fn rolled_back(&mut self) {
        (self.open, self.changes) = (false, false);
    }

    fn commit(&mut self) {
        self.changed |= std::mem::take(&mut self.changes);
        (self.open, self.committed) = (false, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_seen_in_every_spelling() {
        for (sql, expected) in [
            ("begin isolation level serializable", Boundary::Opens),
            ("START TRANSACTION WITH CONSISTENT SNAPSHOT", Boundary::Opens),
            ("BEGIN NOT ATOMIC SELECT 1; END", Boundary::None),
            ("SELECT 1", Boundary::None),
            ("rollback to savepoint a", Boundary::None),
            ("ROLLBACK;", Boundary::RollsBack),
            ("commit and chain", Boundary::Commits),
            ("SET autocommit=0", Boundary::Autocommit(false)),
            ("set @@session.autocommit = ON", Boundary::Autocommit(true)),
            ("SET SESSION autocommit = off;", Boundary::Autocommit(false)),
            ("SET @a = 0", Boundary::None),
        ] {
            assert_eq!(Boundary::of(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_statement_commits_by_itself_unless_a_transaction_is_open() {
        let mut commits = Commits::default();
        commits.done(Boundary::Opens, false);
        commits.done(Boundary::None, true);
        assert!(commits.is_open() && !commits.committed && !commits.changed);
        commits.done(Boundary::RollsBack, false);
        commits.done(Boundary::None, false);
        assert!(!commits.is_open() && commits.committed && !commits.changed);
        commits.done(Boundary::Autocommit(false), false);
        commits.begin();
        commits.done(Boundary::None, true);
        assert!(commits.is_open() && !commits.committed);
        commits.done(Boundary::Commits, false);
        assert!(!commits.is_open() && commits.committed && commits.changed);
    }
}
