//! Logs of all forms: lines, entries, statements, groups, and what a key makes of them.

#![no_main]

use dyno_sql_log::anonymise::Anonymiser;
use dyno_sql_log::groups::Groups;
use dyno_sql_log::lexer::Dialect;
use dyno_sql_log::lines::Lines;
use dyno_sql_log::mysql::{Form, General, Reader, Slow};
use dyno_sql_log::postgresql::{Messages, RowForm, Rows, Texts};
use dyno_sql_log::Seen;
use libfuzzer_sys::fuzz_target;

const ENTRY_MOST: usize = 4096;
const PATTERN: &str = r"(?P<moment>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) (?P<zone>[A-Z]{1,5}) \[(?P<process>\d*)\] (?:[^\n]*?@(?P<database>[^\n]*?) )?(?P<label>LOG|ERROR|DETAIL|CONTEXT|STATEMENT):  ";

fn minute(_: &str, _: &str) -> Result<Option<f64>, dyno_sql_log::Fault> {
    Ok(Some(60.0))
}

/// The lines of a file that comes in pieces of this many bytes.
fn lines(text: &[u8], piece: usize) -> Vec<(u64, Vec<u8>)> {
    let (mut found, mut lines) = (Vec::new(), Lines::new(ENTRY_MOST));
    let mut each = |number: u64, line: &[u8]| {
        found.push((number, line.to_vec()));
        Ok(())
    };
    text.chunks(piece).for_each(|piece| lines.feed(piece, &mut each).expect("lines are no error"));
    lines.end(&mut each).expect("lines are no error");
    found
}

/// Takes in statements as they are and with other values, and holds each one to what any statement is.
fn groups(dialect: Dialect) -> (Groups, Groups) {
    let anonymiser = Anonymiser::new(b"a key");
    (Groups::new(dialect, b"", None), Groups::new(dialect, b"", anonymiser))
}

fn take(groups: &mut (Groups, Groups), seen: &Seen<'_>) {
    assert!(seen.text.is_empty() || seen.rest.is_empty());
    groups.0.add(seen, &mut |_| Vec::new());
    groups.1.add(seen, &mut |_| Vec::new());
}

fn read(form: impl Form, lines: &[(u64, Vec<u8>)]) {
    let (mut reader, mut taken) = (Reader::new(form, ENTRY_MOST), groups(Dialect::MySql));
    let mut sink = |seen: &Seen<'_>| {
        take(&mut taken, seen);
        Ok(())
    };
    for (number, line) in lines {
        reader.line(*number, line, &mut minute, &mut sink).expect("a line is no error");
    }
    reader.end(&mut minute, &mut sink).expect("an end is no error");
    reader.ended(&mut sink).expect("an end is no error");
}

fuzz_target!(|data: &[u8]| {
    let Some((first, text)) = data.split_first() else { return };
    let lines = lines(text, usize::from(*first) + 1);
    read(Slow::new(first % 2 == 0), &lines);
    read(General::new(first % 2 == 0), &lines);
    let Ok(mut texts) = Texts::new(PATTERN, first % 2 == 0, ENTRY_MOST) else { panic!("the pattern is one") };
    let (mut messages, mut taken) = (Messages::default(), groups(Dialect::PostgreSql));
    let mut sink = |seen: &Seen<'_>| {
        take(&mut taken, seen);
        Ok(())
    };
    for (number, line) in &lines {
        texts
            .line(*number, line, b"", None, &mut messages, &mut minute, &mut sink)
            .expect("a line is no error");
    }
    texts.end(true, &mut messages, &mut minute, &mut sink).expect("an end is no error");
    messages.ended(&mut sink).expect("an end is no error");
    for written in [RowForm::Csv, RowForm::Json, RowForm::Cluster] {
        let (mut rows, mut messages) = (Rows::new(written, ENTRY_MOST), Messages::default());
        for (number, line) in &lines {
            rows.line(*number, line, &mut messages, &mut minute, &mut sink).expect("a line is no error");
        }
        rows.end(&mut messages, &mut minute, &mut sink).expect("an end is no error");
        messages.ended(&mut sink).expect("an end is no error");
    }
});
