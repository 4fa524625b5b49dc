//! Whatever a log holds, no byte of it is lost, and what is read does not depend on how the file came in pieces.

use dyno_sql_log::anonymise::Anonymiser;
use dyno_sql_log::lexer::{open_quote, tokens, Dialect};
use dyno_sql_log::lines::Lines;
use dyno_sql_log::mysql::{General, Reader, Slow};
use dyno_sql_log::postgresql::{Messages, Texts};
use dyno_sql_log::shape::{digest, Shape};
use proptest::prelude::*;

const DIALECTS: [Dialect; 2] = [Dialect::MySql, Dialect::PostgreSql];
const ENTRY_MOST: usize = 1 << 20;

/// Pieces of SQL and of logs among each other, and any bytes.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "SELECT ",
        "'",
        "''",
        "\"",
        "`",
        "\\",
        "$1",
        "$$",
        "$a$",
        "/*",
        "*/",
        "/*!",
        "--",
        "-- ",
        "#",
        "\n",
        "\t",
        " ",
        "0x1f",
        "x'1f'",
        "1.5e3",
        "1.",
        ".5",
        "_utf8mb4",
        "_latin1 ",
        "N",
        "E",
        "U&",
        "(",
        ")",
        ",",
        "?",
        ";",
        "@@a",
        "# Time: 2026-01-01T00:00:00Z\n",
        "# User@Host: a[a] @ b []  Id: 7\n",
        "# Query_time: 1.0  Lock_time: 0.0 Rows_sent: 1\n",
        "SET timestamp=1;\n",
        "use a;\n",
        ";\n",
        "261122 16:00:00\t7 Query\t",
        "\t\t    7 Execute\t",
        "2026-01-01 00:00:00.000 UTC [7] LOG:  ",
        "duration: 1.0 ms  ",
        "statement: ",
        "execute a: ",
        "plan:\nQuery Text: ",
        "DETAIL:  parameters: $1 = 'a'",
    ]);
    let piece = prop_oneof![
        8 => pieces.prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn lines(text: &[u8], pieces: usize) -> Vec<(u64, Vec<u8>)> {
    let (mut found, mut lines) = (Vec::new(), Lines::new(ENTRY_MOST));
    let mut each = |number: u64, line: &[u8]| {
        found.push((number, line.to_vec()));
        Ok(())
    };
    for piece in text.chunks(pieces.max(1)) {
        lines.feed(piece, &mut each).unwrap();
    }
    lines.end(&mut each).unwrap();
    found
}

/// What each reader makes of a text: the statements, and the reasons of what is left out.
fn read(text: &[u8], form: usize) -> Vec<(Vec<u8>, String)> {
    let mut found = Vec::new();
    let mut sink = |seen: &dyno_sql_log::Seen<'_>| {
        found.push((seen.text.to_vec(), seen.rest.to_owned()));
        Ok(())
    };
    let mut minutes = |_: &str, _: &str| Ok(Some(60.0));
    let lines = lines(text, 7);
    match form {
        0 => {
            let mut reader = Reader::new(Slow::new(false), ENTRY_MOST);
            lines
                .iter()
                .for_each(|(number, line)| reader.line(*number, line, &mut minutes, &mut sink).unwrap());
            reader.end(&mut minutes, &mut sink).unwrap();
            reader.ended(&mut sink).unwrap();
        }
        1 => {
            let mut reader = Reader::new(General::new(false), ENTRY_MOST);
            lines
                .iter()
                .for_each(|(number, line)| reader.line(*number, line, &mut minutes, &mut sink).unwrap());
            reader.end(&mut minutes, &mut sink).unwrap();
            reader.ended(&mut sink).unwrap();
        }
        _ => {
            let pattern = r"(?P<moment>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) (?P<zone>UTC) \[(?P<process>\d*)\] (?P<label>LOG|ERROR|DETAIL):  ";
            let (mut texts, mut messages) =
                (Texts::new(pattern, false, ENTRY_MOST).unwrap(), Messages::default());
            for (number, line) in &lines {
                texts.line(*number, line, b"", None, &mut messages, &mut minutes, &mut sink).unwrap();
            }
            texts.end(true, &mut messages, &mut minutes, &mut sink).unwrap();
            messages.ended(&mut sink).unwrap();
        }
    }
    found
}

proptest! {
    #[test]
    fn the_tokens_joined_are_the_statement(text in texts()) {
        for dialect in DIALECTS {
            let mut end = 0;
            for token in tokens(&text, dialect) {
                prop_assert_eq!(token.start, end);
                prop_assert!(token.end > token.start);
                prop_assert!(token.closed || token.end == text.len());
                end = token.end;
            }
            prop_assert_eq!(end, text.len());
        }
    }

    #[test]
    fn a_statement_taken_apart_holds_its_values_as_they_were_written(text in texts()) {
        for dialect in DIALECTS {
            let mut shape = Shape::default();
            shape.take(&text, dialect);
            prop_assert_eq!(shape.pieces().len(), shape.values.len() + 1);
            let ordered = shape.values.windows(2).all(|pair| pair[0].end <= pair[1].start);
            prop_assert!(ordered && shape.values.last().is_none_or(|value| value.end <= text.len()));
            digest(&shape.text);
        }
    }

    #[test]
    fn lines_do_not_depend_on_the_pieces_in_which_a_file_came(text in texts(), pieces in 1..50_usize) {
        let whole = lines(&text, text.len());
        prop_assert_eq!(&whole, &lines(&text, pieces));
        let joined: Vec<u8> = whole.into_iter().flat_map(|(_, line)| line).collect();
        let bare: Vec<u8> = text.iter().copied().skip_while(|byte| *byte == 0).collect();
        if !text.starts_with(b"\xef\xbb\xbf") && !text.windows(2).any(|pair| pair == b"\r\n") {
            prop_assert_eq!(joined, bare);
        }
    }

    #[test]
    fn a_statement_stands_in_the_log_as_it_was_read(text in texts(), form in 0..2_usize) {
        for (statement, rest) in read(&text, form) {
            prop_assert!(statement.is_empty() || rest.is_empty());
            prop_assert!(text.windows(statement.len().max(1)).any(|part| part == statement) || statement.is_empty());
        }
    }

    #[test]
    fn a_statement_with_other_values_has_the_same_tokens(text in texts()) {
        let anonymiser = Anonymiser::new(b"a key").unwrap();
        for dialect in DIALECTS {
            let kinds = |text: &[u8]| tokens(text, dialect).map(|token| (token.kind, token.closed)).collect::<Vec<_>>();
            let made = anonymiser.statement(&text, dialect);
            prop_assert_eq!(kinds(&made), kinds(&text));
            prop_assert_eq!(anonymiser.statement(&text, dialect), made);
        }
    }

    #[test]
    fn values_are_others_of_their_kind_and_stay_equal_where_they_were(
        number in 2..10_u64.pow(15), other in 2..10_u64.pow(15), word in "[a-z]{6,20}", comment in "[a-z]{6,20}",
    ) {
        let anonymiser = Anonymiser::new(b"a key").unwrap();
        let of = |text: &str| String::from_utf8(anonymiser.statement(text.as_bytes(), Dialect::MySql)).unwrap();
        let (one, two) = (of(&number.to_string()), of(&other.to_string()));
        prop_assert_eq!(one.len(), number.to_string().len());
        prop_assert_eq!(one == two, number == other);
        prop_assert_eq!(of(&format!("'{number}'")), format!("'{one}'"));
        let made = of(&format!("SELECT a /* {comment} */ FROM t WHERE b = '{word}' AND c = \"{word}\" -- {comment}"));
        prop_assert!(!made.contains(&word) && !made.contains(&comment));
        let hidden = of(&format!("'{word}'"));
        prop_assert_eq!(hidden.len(), word.len() + 2);
        prop_assert_eq!(made.matches(hidden.trim_matches('\'')).count(), 2);
    }

    #[test]
    fn no_text_is_an_error(text in texts()) {
        read(&text, 2);
    }

    #[test]
    fn a_quote_is_open_behind_lines_as_it_is_behind_all_of_them(lines in prop::collection::vec(texts(), 0..5)) {
        let text: Vec<u8> = lines.iter().flat_map(|line| [&line[..], b"\n"].concat()).collect();
        let by_line = text.split_inclusive(|byte| *byte == b'\n').fold(0, |state, line| open_quote(line, state));
        prop_assert_eq!(by_line != 0, open_quote(&text, 0) != 0);
    }
}

#[test]
fn a_comment_is_one_still_when_its_letters_are_others() {
    let anonymiser = Anonymiser::new(b"a key").unwrap();
    for dialect in DIALECTS {
        for text in [
            &b"--\x0ba"[..],
            b"--\x0c",
            b"/*/**/",
            b"/*/",
            b"/**/",
            b"/*/*a*/",
            b"/* a /* b */ c */ d",
            b"/*!--/*!SELECT */",
            b"/*!--/**/",
            b"/*+--/**/",
            b"/*!1*/",
            b"/*M!*/",
            b"/*M!--/*!SELECT */",
        ] {
            let kinds = |text: &[u8]| {
                tokens(text, dialect).map(|token| (token.kind, token.closed)).collect::<Vec<_>>()
            };
            assert_eq!(kinds(&anonymiser.statement(text, dialect)), kinds(text));
        }
    }
}

#[test]
fn an_open_quote_is_known() {
    for (sql, state) in [
        ("SELECT 'it''s'\n", 0),
        ("SELECT 'it\\'s\n", b'\''),
        ("SELECT \"a'b\n", b'"'),
        ("SELECT `a'b`\n", 0),
        ("SELECT 1 -- it's\n", 0),
        ("SELECT 1 # it's\n", 0),
        ("SELECT 5--3, '\n", b'\''),
        ("/* it's\n", b'/'),
        ("/* it's */ SELECT 'x\n", b'\''),
    ] {
        assert_eq!(open_quote(sql.as_bytes(), 0), state, "{sql}");
    }
}

#[test]
fn comments_of_postgresql_nest() {
    let text = b"/* a /* b */ 'c' */ 1";
    assert_eq!(tokens(text, Dialect::PostgreSql).count(), 3);
    assert!(tokens(text, Dialect::MySql).count() > 3);
}
