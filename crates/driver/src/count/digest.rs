//! A statement's text without its values: statements of one digest are of one kind.

/// A longer digest is cut off here, so that no script can fill the memory with its texts.
const LENGTH_MAX: usize = 1_000;
/// Where the digest has grown to this, no row that is folded makes it shorter than what is kept.
const READ_MAX: usize = 4 * LENGTH_MAX;

/// What goes by as a statement is read.
type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Writes the digest of `sql` into `to`, in the place of what is there. `escaped_texts` says that the SQL is MySQL's: a
/// backslash escapes within a text, and a text may stand in double quotes.
///
/// A value is `?`, and so are several of them in a list: `?, ...`; one row stands for several. The number at the end of
/// a name is `N`, so that the tables `sbtest1` to `sbtest8` are one kind. White space is one blank.
pub(crate) fn digest(sql: &str, escaped_texts: bool, to: &mut String) {
    to.clear();
    let around = |letter: char| letter.is_whitespace() || letter == ';';
    let mut letters: Letters<'_> = sql.trim_matches(around).chars().peekable();
    // The quote that a quoted name ends with.
    let mut name_until = None;
    while let Some(letter) = letters.next().filter(|_| to.len() <= READ_MAX) {
        let next = letters.peek().copied().unwrap_or(' ');
        match letter {
            '0'..='9' if ends_in_name(to) => {
                while letters.next_if(char::is_ascii_digit).is_some() {}
                to.push('N');
            }
            _ if name_until.is_some() => {
                to.push(letter);
                name_until = name_until.filter(|&quote| quote != letter);
            }
            '?' => put_value(to),
            '\'' | '"' if letter == '\'' || escaped_texts => {
                skip_text(&mut letters, letter, escaped_texts || takes_escapes(to));
                put_value(to);
            }
            '"' | '`' => {
                to.push(letter);
                name_until = Some(letter);
            }
            '-' if next.is_ascii_digit() && may_begin_a_value(to) => {}
            '0'..='9' => {
                skip_number(&mut letters, letter);
                put_value(to);
            }
            ')' => {
                to.push(')');
                fold_rows(to);
            }
            _ if !letter.is_whitespace() => to.push(letter),
            _ if !to.ends_with(' ') => to.push(' '),
            _ => {}
        }
    }
    cut(to);
}

fn cut(text: &mut String) {
    if text.len() > LENGTH_MAX {
        let end = (0..=LENGTH_MAX).rfind(|&end| text.is_char_boundary(end)).unwrap_or_default();
        text.truncate(end);
        text.push_str(" ...");
    }
}

/// Steps over the rest of a text, whose first quote has been read.
fn skip_text(letters: &mut Letters<'_>, quote: char, escaped: bool) {
    while let Some(letter) = letters.next() {
        if letter == '\\' && escaped {
            letters.next();
        } else if letter == quote && letters.next_if_eq(&quote).is_none() {
            // Two quotes within a text are one of its letters.
            return;
        }
    }
}

/// Steps over the rest of a number, whose first digit has been read.
fn skip_number(letters: &mut Letters<'_>, first: char) {
    let hexadecimal = first == '0' && matches!(letters.peek(), Some('x' | 'X'));
    let mut last = first;
    while let Some(&letter) = letters.peek() {
        let exponent = matches!(letter, '+' | '-') && matches!(last, 'e' | 'E') && !hexadecimal;
        let signs = exponent && letters.clone().nth(1).is_some_and(|digit| digit.is_ascii_digit());
        if !(signs || letter.is_ascii_alphanumeric() || letter == '.') {
            return;
        }
        last = letter;
        letters.next();
    }
}

/// Whether the text that begins here is one of PostgreSQL's with escapes, `E'...'`; takes the E away.
fn takes_escapes(to: &mut String) -> bool {
    let before = to.strip_suffix(['e', 'E']);
    let escapes = before.is_some_and(|before| !ends_in_name(before));
    if escapes {
        to.pop();
    }
    escapes
}

fn ends_in_name(text: &str) -> bool {
    text.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_')
}

/// Whether a minus at this place belongs to the number behind it.
fn may_begin_a_value(text: &str) -> bool {
    text.trim_end().ends_with(['(', ',', '=', '<', '>'])
}

/// The text before a comma that it ends with.
fn before_comma(text: &str) -> Option<&str> {
    text.trim_end().strip_suffix(',').map(str::trim_end)
}

fn put_value(to: &mut String) {
    let list = before_comma(to).filter(|list| list.ends_with('?') || list.ends_with("?, ..."));
    let Some((length, second)) = list.map(|list| (list.len(), list.ends_with('?'))) else {
        return to.push('?');
    };
    to.truncate(length);
    if second {
        to.push_str(", ...");
    }
}

/// Where the parenthesis was opened that ends the text; `None` where it never was.
fn row_start(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (place, letter) in text.char_indices().rev() {
        match letter {
            ')' => depth += 1,
            '(' if depth == 1 => return Some(place),
            '(' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Takes the row of values that has just ended away, where one like it stands before it.
fn fold_rows(to: &mut String) {
    let Some((before, row)) = row_start(to).map(|start| to.split_at(start)) else { return };
    let Some(rows) = before_comma(before).filter(|_| row.contains('?')) else { return };
    let (first, length) = (rows.ends_with(row), rows.len());
    if first {
        to.truncate(length);
        to.push_str(", ...");
    } else if rows.strip_suffix(", ...").is_some_and(|rows| rows.ends_with(row)) {
        to.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The digest in the SQL of most.
    fn of(sql: &str) -> String {
        read(sql, false)
    }

    fn read(sql: &str, escaped_texts: bool) -> String {
        let mut text = "what was there".to_owned();
        digest(sql, escaped_texts, &mut text);
        text
    }

    #[test]
    fn statements_that_differ_in_their_values_are_one_kind() {
        for (sql, expected) in [
            ("SELECT c FROM sbtest12 WHERE id = ?", "SELECT c FROM sbtestN WHERE id = ?"),
            ("  SELECT c\n\tFROM t WHERE id=42 ; ", "SELECT c FROM t WHERE id=?"),
            ("SELECT s_dist_01 FROM stock", "SELECT s_dist_N FROM stock"),
            ("UPDATE t SET a = a - 5, b = -5.5e3", "UPDATE t SET a = a - ?, b = ?"),
            ("UPDATE t SET a = 1e-05, b = 0x1e-5, c = 2.E+3", "UPDATE t SET a = ?, b = ?-?, c = ?"),
            ("UPDATE t SET c = 'it''s 5', k = 7", "UPDATE t SET c = ?, k = ?"),
            ("SELECT \"it's 1\", `it's` FROM \"sbtest12\"", "SELECT \"it's 1\", `it's` FROM \"sbtestN\""),
            ("SELECT a FROM t WHERE id IN (1, 2,3 , ?)", "SELECT a FROM t WHERE id IN (?, ...)"),
            ("INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (?, ...)"),
            ("INSERT INTO t VALUES (1,'a'),(2,'b'), (3,'c')", "INSERT INTO t VALUES (?, ...), ..."),
            ("INSERT INTO t VALUES (1), (2)", "INSERT INTO t VALUES (?), ..."),
            ("INSERT INTO t VALUES (now(), 1), (now(), 2)", "INSERT INTO t VALUES (now(), ?), ..."),
            ("SELECT f(), f()", "SELECT f(), f()"),
            ("SELECT 1)", "SELECT ?)"),
            ("SELECT 'no end", "SELECT ?"),
            ("BEGIN", "BEGIN"),
            ("", ""),
        ] {
            assert_eq!(of(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_backslash_escapes_in_the_texts_of_mysql_alone() {
        for (sql, plain, mysql) in [
            ("SET c = 'C:\\', k = 'x'", "SET c = ?, k = ?", "SET c = ?x?"),
            ("SET c = 'it\\'s', k = 'x'", "SET c = ?s?x?", "SET c = ?, k = ?"),
            ("SET c = E'it\\'s', k = 'x'", "SET c = ?, k = ?", "SET c = E?, k = ?"),
            ("SET c = \"it's\", k = 'x'", "SET c = \"it's\", k = ?", "SET c = ?, k = ?"),
            ("SET c = \"a\\\"b\", k = 7", "SET c = \"a\\\"b\", k = 7", "SET c = ?, k = ?"),
        ] {
            assert_eq!((read(sql, false).as_str(), read(sql, true).as_str()), (plain, mysql), "{sql}");
        }
    }

    #[test]
    fn a_long_digest_is_cut_off() {
        let text = of(&"é ".repeat(LENGTH_MAX));
        assert!(text.len() <= LENGTH_MAX + 4 && text.ends_with(" ..."), "{text}");
    }

    #[test]
    fn a_text_of_megabytes_takes_no_hours() {
        assert_eq!(of(&")".repeat(4 << 20)).len(), LENGTH_MAX + 4);
        let rows = "(1, 'a'),".repeat(1 << 17);
        assert_eq!(of(&format!("INSERT INTO t VALUES {rows}(2, 'b')")), "INSERT INTO t VALUES (?, ...), ...");
    }

    proptest! {
        #[test]
        fn any_text_has_a_digest(text in ".{0,80}", escaped_texts: bool) {
            prop_assert!(read(&text, escaped_texts).len() <= 6 * text.len());
        }

        #[test]
        fn values_do_not_matter(
            numbers in proptest::collection::vec(0u32.., 2..9),
            text in "[a-z0-9']{0,9}",
        ) {
            let list = numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            let text = text.replace('\'', "''");
            let sql = format!("SELECT a FROM t WHERE id IN ({list}) AND c = '{text}'");
            prop_assert_eq!(of(&sql), "SELECT a FROM t WHERE id IN (?, ...) AND c = ?");
        }
    }
}
