//! What a statement does, told from its words.

/// What becomes of a statement whose plan is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// It only reads: its plan is asked for, and it is executed where its rows are looked at.
    Read,
    /// Its plan is asked for, and it is not executed. One that is `returning` rows gives one.
    Write { returning: bool },
    /// It sets or shows something of the session: it is executed, and has no plan.
    Session,
    /// It begins a transaction.
    Begin,
    /// It ends a transaction, or names a place in one.
    End,
    /// It is neither explained nor executed.
    Other,
}

impl Verb {
    pub fn of(sql: &str) -> Self {
        let mut words = words(sql);
        let first = words.next().unwrap_or_default().to_ascii_uppercase();
        let has = |wanted: &[&str]| {
            self::words(sql).any(|word| wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted)))
        };
        match first.as_str() {
            "SELECT" | "VALUES" | "TABLE" | "WITH" => {
                // What looks like a change may stand in a text: then the read is not executed, which costs its rows.
                match has(&["INTO", "INSERT", "DELETE", "MERGE"]) || (first == "WITH" && has(&["UPDATE"])) {
                    true => Verb::Write { returning: true },
                    false => Verb::Read,
                }
            }
            "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "MERGE" => {
                Verb::Write { returning: has(&["RETURNING"]) }
            }
            "SET" if has(&["GLOBAL", "PERSIST", "PERSIST_ONLY"]) => Verb::Other,
            "SET" | "SHOW" | "USE" => Verb::Session,
            "BEGIN" | "START" => Verb::Begin,
            "COMMIT" | "ROLLBACK" | "END" | "ABORT" | "SAVEPOINT" | "RELEASE" => Verb::End,
            _ => Verb::Other,
        }
    }
}

/// The words of a statement, those in comments left out and those in texts not told apart.
fn words(sql: &str) -> impl Iterator<Item = &str> {
    let mut rest = sql;
    std::iter::from_fn(move || loop {
        rest = rest.trim_start_matches(|letter: char| !is_of_word(letter) && letter != '/' && letter != '-');
        let end_of_comment = match rest {
            _ if rest.starts_with("/*") => "*/",
            _ if rest.starts_with("--") => "\n",
            _ => "",
        };
        if !end_of_comment.is_empty() {
            rest = rest.split_once(end_of_comment).map_or("", |(_, behind)| behind);
            continue;
        }
        let length = rest.find(|letter| !is_of_word(letter)).unwrap_or(rest.len());
        if length > 0 {
            let (word, behind) = rest.split_at(length);
            rest = behind;
            return Some(word);
        }
        let mut letters = rest.chars();
        letters.next()?;
        rest = letters.as_str();
    })
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_told_by_its_words() {
        for (sql, expected) in [
            ("SELECT c FROM t WHERE id = ? FOR UPDATE", Verb::Read),
            ("  (select 1) union (select 2)", Verb::Read),
            ("/* a hint */ -- a remark\n SELECT 1", Verb::Read),
            ("WITH a AS (SELECT 1) SELECT * FROM a", Verb::Read),
            (
                "WITH a AS (INSERT INTO t VALUES (1) RETURNING id) SELECT * FROM a",
                Verb::Write { returning: true },
            ),
            ("SELECT a INTO b FROM t", Verb::Write { returning: true }),
            ("UPDATE t SET a = ?", Verb::Write { returning: false }),
            ("update t set a = a + 1 returning a", Verb::Write { returning: true }),
            ("SET enable_seqscan = off", Verb::Session),
            ("SET GLOBAL x = 1", Verb::Other),
            ("START TRANSACTION READ ONLY", Verb::Begin),
            ("ROLLBACK TO a", Verb::End),
            ("CALL f(1)", Verb::Other),
            ("CREATE TABLE t (a INT)", Verb::Other),
            ("é - / 1", Verb::Other),
            ("", Verb::Other),
        ] {
            assert_eq!(Verb::of(sql), expected, "{sql}");
        }
    }
}
