//! Reads SQL as far as a script needs it: where statements end, where variables stand, what each statement is.

use super::expression::{is_name_byte, name_end};

/// A part of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    /// `:name`
    Variable {
        name: String,
        position: Position,
    },
}

impl std::fmt::Display for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Piece::Text(text) => f.write_str(text),
            Piece::Variable { name, .. } => write!(f, ":{name}"),
        }
    }
}

/// What stands where a variable stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// A value: becomes a parameter.
    Value,
    /// A name or a part of one, such as a table: put into the text.
    Name,
    /// Within quotes: put into the text if the variable exists, else left as it is written.
    Quoted,
}

/// What ended a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Semicolon,
    Backslash,
    End,
    /// `\;`, with which pgbench sends several statements at once.
    Joined,
    /// A quote or comment that does not end.
    Unclosed(&'static str),
}

#[derive(Debug)]
pub struct Scan {
    pub pieces: Vec<Piece>,
    pub stop: Stop,
    /// Where the statement's own text starts, and what comes after it: a `;` is passed, a backslash is not.
    pub start: usize,
    pub next: usize,
    /// A `?` outside of quotes, which would be taken for a parameter.
    pub question: bool,
}

/// Reads one statement of `text` from byte `from` on; comments are left out, hints within them are kept.
pub fn scan(text: &str, from: usize, commands: bool) -> Scan {
    let mut scanner = Scanner { text, at: from, pieces: Vec::new(), literal: String::new(), question: false };
    let mut start = None;
    let mut depth = 0usize;
    let stop = loop {
        let Some(&byte) = text.as_bytes().get(scanner.at) else { break Stop::End };
        if !byte.is_ascii_whitespace() && !scanner.at_comment() && start.is_none() {
            start = Some(scanner.at);
        }
        match byte {
            b';' if depth == 0 => break Stop::Semicolon,
            b'\\' if commands && text[scanner.at..].starts_with("\\;") => break Stop::Joined,
            b'\\' if commands => break Stop::Backslash,
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Err(unclosed) = scanner.step() {
            break Stop::Unclosed(unclosed);
        }
    };
    let next = match stop {
        Stop::Semicolon => scanner.at + 1,
        Stop::Joined => scanner.at + 2,
        _ => scanner.at,
    };
    scanner.flush();
    let (mut pieces, question) = (scanner.pieces, scanner.question);
    trim(&mut pieces);
    Scan { pieces, stop, start: start.unwrap_or(from).min(next), next, question }
}

fn trim(pieces: &mut Vec<Piece>) {
    if let Some(Piece::Text(first)) = pieces.first_mut() {
        *first = first.trim_start().to_owned();
    }
    if let Some(Piece::Text(last)) = pieces.last_mut() {
        *last = last.trim_end().to_owned();
    }
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    pieces: Vec<Piece>,
    /// Text that has not become a piece yet.
    literal: String,
    question: bool,
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn at_comment(&self) -> bool {
        let rest = self.rest();
        rest.starts_with("--")
            || (rest.starts_with("/*") && !rest.starts_with("/*+") && !rest.starts_with("/*!"))
    }

    fn flush(&mut self) {
        if !self.literal.is_empty() {
            self.pieces.push(Piece::Text(std::mem::take(&mut self.literal)));
        }
    }

    fn keep(&mut self, bytes: usize) {
        let text = self.text;
        self.literal.push_str(&text[self.at..self.at + bytes]);
        self.at += bytes;
    }

    /// Passes one token.
    fn step(&mut self) -> Result<(), &'static str> {
        let bytes = self.text.as_bytes();
        match bytes[self.at] {
            b'-' if self.rest().starts_with("--") => {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                self.literal.push(' ');
            }
            b'/' if self.rest().starts_with("/*") => self.comment()?,
            quote @ (b'\'' | b'"' | b'`') => self.quoted(quote)?,
            b'$' => self.dollar_quoted()?,
            b':' => self.colon(),
            b'?' => {
                self.question = true;
                self.keep(1);
            }
            byte if is_name_byte(byte) => self.keep(name_end(bytes, self.at) - self.at),
            _ => self.keep(1),
        }
        Ok(())
    }

    /// Passes a comment, which may hold others.
    fn comment(&mut self) -> Result<(), &'static str> {
        let (rest, mut end, mut depth) = (self.rest(), 2, 1);
        let kept = !self.at_comment();
        while depth > 0 {
            let Some(found) = rest[end..].find(['/', '*']) else { return Err("a comment") };
            end += found;
            match &rest.as_bytes()[end..rest.len().min(end + 2)] {
                b"/*" => (depth, end) = (depth + 1, end + 2),
                b"*/" => (depth, end) = (depth - 1, end + 2),
                _ => end += 1,
            }
        }
        if kept {
            self.keep(end);
        } else {
            self.at += end;
            self.literal.push(' ');
        }
        Ok(())
    }

    /// Passes quoted text; a doubled quote stands for itself, in `E'...'` a backslash too.
    fn quoted(&mut self, quote: u8) -> Result<(), &'static str> {
        let escapes = quote == b'\'' && {
            let before = self.literal.as_bytes();
            matches!(before, [.., b'e' | b'E']) && !matches!(before, [.., other, _] if is_name_byte(*other))
        };
        let bytes = self.text.as_bytes();
        self.keep(1);
        loop {
            match bytes.get(self.at) {
                None => return Err("a quote"),
                Some(&byte) if byte == quote => {
                    self.keep(1);
                    if bytes.get(self.at) != Some(&quote) {
                        return Ok(());
                    }
                    self.keep(1);
                }
                Some(b'\\') if escapes && self.at + 1 < bytes.len() => {
                    self.keep(1);
                    self.keep(self.letter());
                }
                Some(b':') => self.variable(Some(Position::Quoted)),
                Some(_) => self.keep(self.letter()),
            }
        }
    }

    /// The bytes of the letter at hand.
    fn letter(&self) -> usize {
        self.rest().chars().next().map_or(0, char::len_utf8)
    }

    /// Passes `$tag$ ... $tag$`, or else the `$` alone.
    fn dollar_quoted(&mut self) -> Result<(), &'static str> {
        let bytes = self.text.as_bytes();
        let tag_end = name_end(bytes, self.at + 1);
        let in_name = matches!(self.literal.as_bytes(), [.., last] if is_name_byte(*last));
        let tagged =
            bytes.get(tag_end) == Some(&b'$') && !bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit);
        if in_name || !tagged {
            self.keep(1);
            return Ok(());
        }
        let tag = self.text[self.at..=tag_end].to_owned();
        self.keep(tag.len());
        let end = self.at + self.rest().find(&tag).ok_or("a dollar quote")?;
        while self.at < end {
            match bytes[self.at] {
                b':' => self.variable(Some(Position::Quoted)),
                _ => self.keep(self.letter()),
            }
        }
        self.keep(tag.len());
        Ok(())
    }

    /// Passes a `:`: of a cast, an assignment, a slice, or a variable.
    fn colon(&mut self) {
        match self.text.as_bytes().get(self.at + 1) {
            Some(b':' | b'=') => self.keep(2),
            _ => self.variable(None),
        }
    }

    /// Passes `:name`, or the `:` alone where no name follows.
    fn variable(&mut self, position: Option<Position>) {
        let bytes = self.text.as_bytes();
        let named = bytes.get(self.at + 1).is_some_and(|byte| is_name_byte(*byte) && !byte.is_ascii_digit());
        if !named || bytes[..self.at].ends_with(b":") {
            self.keep(1);
            return;
        }
        let end = name_end(bytes, self.at + 1);
        let position = position.unwrap_or_else(|| self.position(end));
        let name = self.text[self.at + 1..end].to_owned();
        self.flush();
        self.pieces.push(Piece::Variable { name, position });
        self.at = end;
    }

    /// Whether a variable that ends at `end` stands for a value or for a name, judged by what is next to it.
    fn position(&self, end: usize) -> Position {
        let before = self.literal.as_bytes();
        let touches = match before.last() {
            Some(byte) => is_name_byte(*byte) || *byte == b'.',
            // Right behind another variable.
            None => !self.pieces.is_empty(),
        };
        let after = &self.text.as_bytes()[end..];
        let prefixes = matches!(after, [b'.', ..] | [b':', b'a'..=b'z' | b'A'..=b'Z' | b'_', ..]);
        if touches || prefixes || names_follow(last_word(&self.literal)) {
            Position::Name
        } else {
            Position::Value
        }
    }
}

/// The word that `text` ends with, if only white space follows it.
fn last_word(text: &str) -> &str {
    let text = text.trim_end();
    let start = text.len() - text.bytes().rev().take_while(|byte| is_name_byte(*byte)).count();
    &text[start..]
}

/// Words that are followed by a name (or by what cannot be a parameter).
fn names_follow(word: &str) -> bool {
    const WORDS: [&str; 15] = [
        "FROM", "JOIN", "INTO", "UPDATE", "TABLE", "ONLY", "EXISTS", "VIEW", "SCHEMA", "DATABASE", "BY",
        "SET", "AS", "INTERVAL", "TRUNCATE",
    ];
    WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The first word of a statement, in capitals.
pub fn first_word(pieces: &[Piece]) -> String {
    match pieces.first() {
        Some(Piece::Text(text)) => {
            let text = text.trim_start_matches(|letter: char| letter == '(' || letter.is_whitespace());
            text[..name_end(text.as_bytes(), 0)].to_ascii_uppercase()
        }
        _ => String::new(),
    }
}

/// Whether a statement takes parameters and may be prepared, judged by its first word. What may not is sent as text.
pub fn is_preparable(first_word: &str) -> bool {
    const WORDS: [&str; 9] =
        ["SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "MERGE", "VALUES", "CALL"];
    WORDS.contains(&first_word)
}

/// What a statement does with transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    Begin,
    Commit,
    Rollback,
}

/// Tells plain BEGIN, COMMIT and ROLLBACK (in every spelling) from other statements. A BEGIN with properties is none:
/// it goes to the server as it is written.
pub fn control(pieces: &[Piece]) -> Option<Control> {
    let [Piece::Text(text)] = pieces else { return None };
    let words: Vec<String> = text.split_whitespace().map(str::to_ascii_uppercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["BEGIN"] | ["BEGIN", "WORK" | "TRANSACTION"] | ["START", "TRANSACTION"] => Some(Control::Begin),
        ["COMMIT" | "END"] | ["COMMIT" | "END", "WORK" | "TRANSACTION"] => Some(Control::Commit),
        ["ROLLBACK" | "ABORT"] | ["ROLLBACK" | "ABORT", "WORK" | "TRANSACTION"] => Some(Control::Rollback),
        _ => None,
    }
}

/// The table that a `CREATE TABLE` makes.
pub fn created_table(pieces: &[Piece]) -> Option<&str> {
    let Some(Piece::Text(text)) = pieces.first() else { return None };
    let mut words =
        text.split(|letter: char| letter.is_whitespace() || letter == '(').filter(|word| !word.is_empty());
    let mut is = |expected: &str| words.next().is_some_and(|word| word.eq_ignore_ascii_case(expected));
    if !(is("CREATE") && is("TABLE")) {
        return None;
    }
    let name = words.next()?;
    if !name.eq_ignore_ascii_case("IF") {
        return Some(name);
    }
    words.nth(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        let show = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Variable { name, position } => format!("<{name} {position:?}>"),
        };
        scan(text, 0, true).pieces.iter().map(show).collect()
    }

    #[test]
    fn variables_stand_for_values_names_or_parts_of_texts() {
        for (text, expected) in [
            ("SELECT a FROM t WHERE id = :id", "SELECT a FROM t WHERE id = <id Value>"),
            ("SELECT :a::int, :b", "SELECT <a Value>::int, <b Value>"),
            (
                "SELECT * FROM sbtest:n WHERE id IN (:a, :b)",
                "SELECT * FROM sbtest<n Name> WHERE id IN (<a Value>, <b Value>)",
            ),
            ("UPDATE :table SET x = :x", "UPDATE <table Name> SET x = <x Value>"),
            (
                "SELECT ':a' || E'\\':b' || \"c:d\"",
                "SELECT '<a Quoted>' || E'\\'<b Quoted>' || \"c<d Quoted>\"",
            ),
            ("SELECT $$:a;$$, $1, $x$ ; $x$", "SELECT $$<a Quoted>;$$, $1, $x$ ; $x$"),
            (
                "SELECT * FROM :s.:t ORDER BY :c LIMIT :n",
                "SELECT * FROM <s Name>.<t Name> ORDER BY <c Name> LIMIT <n Value>",
            ),
            ("SELECT a[1:2], 12:30", "SELECT a[1:2], 12:30"),
            ("SELECT t:a:b", "SELECT t<a Name><b Name>"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn comments_go_and_hints_stay() {
        assert_eq!(shown("-- it's\n SELECT /* :a ; /* b */ */ /*+ X */ 1 -- end"), "SELECT   /*+ X */ 1");
    }

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes_and_brackets() {
        let scan_all = |text: &str| {
            let (mut from, mut all) = (0, Vec::new());
            while from < text.len() {
                let scan = scan(text, from, true);
                all.push((scan.pieces, scan.stop));
                from = scan.next;
            }
            all
        };
        let all = scan_all("SELECT ';' ; CREATE RULE r DO (a; b); SELECT 1 \\; SELECT 2");
        let stops: Vec<Stop> = all.iter().map(|(_, stop)| *stop).collect();
        assert_eq!(stops, [Stop::Semicolon, Stop::Semicolon, Stop::Joined, Stop::End]);
    }

    #[test]
    fn what_does_not_end_is_named() {
        for (text, what) in
            [("SELECT 'a", "a quote"), ("SELECT /* a", "a comment"), ("SELECT $a$ b $", "a dollar quote")]
        {
            assert_eq!(scan(text, 0, true).stop, Stop::Unclosed(what));
        }
    }

    #[test]
    fn control_statements_are_known_in_every_spelling() {
        let control_of = |text: &str| control(&scan(text, 0, true).pieces);
        assert_eq!(control_of("begin;"), Some(Control::Begin));
        assert_eq!(control_of("/* c */ start  transaction;"), Some(Control::Begin));
        assert_eq!(control_of("END;"), Some(Control::Commit));
        assert_eq!(control_of("Rollback Work"), Some(Control::Rollback));
        assert_eq!(control_of("BEGIN ISOLATION LEVEL SERIALIZABLE"), None);
        assert_eq!(control_of("ROLLBACK TO a"), None);
    }

    #[test]
    fn created_tables_are_found() {
        let table = |text: &str| created_table(&scan(text, 0, false).pieces).map(str::to_owned);
        assert_eq!(table("CREATE TABLE a(id int)").as_deref(), Some("a"));
        assert_eq!(table("create table if not exists b (id int)").as_deref(), Some("b"));
        assert_eq!(table("CREATE INDEX c ON a(id)"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics_and_every_scan_moves_on(text in "[a-zé:;'\"$\\\\/*\\-?( )\n]{0,60}") {
            let mut from = 0;
            while from < text.len() {
                let scan = scan(&text, from, true);
                prop_assert!(scan.start <= scan.next && text.is_char_boundary(scan.start));
                match scan.stop {
                    Stop::Semicolon | Stop::Joined => prop_assert!(scan.next > from),
                    // The command's own parser passes it.
                    Stop::Backslash => { from = scan.next + 1; continue }
                    Stop::End | Stop::Unclosed(_) => break,
                }
                from = scan.next;
            }
        }

        /// Text without a comment or a variable comes out as it went in.
        #[test]
        fn plain_text_is_kept(text in "[a-z0-9=<>, ]{1,40}") {
            prop_assert_eq!(shown(&text), text.trim());
        }
    }
}
