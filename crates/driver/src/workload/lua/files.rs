//! The files that a script reads: itself, the modules that it requires, and what it loads or opens by a name that stands
//! in its text.

use super::source::{folder_of, SCRIPTS_OF_SYSBENCH};
use super::{Given, LuaScript};
use crate::workload::files::{located, Finder};
use crate::workload::{Circumstances, Options, Workload};
use std::path::Path;

/// What a text names: a module, or a file.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    Module(String),
    File(String),
}

/// The script, and all that it leads to. What it requires under a name that it computes is known where its own text,
/// which is run once, requires it.
pub fn find_files(file: &str, options: &Given, finder: &mut Finder<'_>) {
    finder.option = "file";
    if file.is_empty() {
        return;
    }
    let folder = folder_of(file);
    let mut waiting = vec![(file.to_owned(), String::new())];
    while let Some((name, named_at)) = waiting.pop() {
        let Some(text) = finder.read(&name, named_at) else { continue };
        let path = finder.path(&name);
        for (line, named) in named_in(&text) {
            if let Some(found) = found(&named, folder, finder) {
                waiting.push((found, format!("{path}:{line}")));
            }
        }
    }
    for module in required_at_once(options, finder) {
        finder.read(&module, finder.path(file));
    }
}

/// The files that the script's own text requires when it is run, those of its folder by their names there.
fn required_at_once(options: &Given, finder: &Finder<'_>) -> Vec<String> {
    let circumstances = Circumstances { folder: finder.folder().to_owned(), ..Circumstances::default() };
    let about = &LuaScript::OFFERS[0];
    // What is wrong with the script, a run tells.
    let script = Options::resolve(about, options, &circumstances).and_then(|it| LuaScript::new(about, &it));
    let mut files = script.map_or(Vec::new(), |script| script.shared.compiled.files());
    files.sort();
    let own = |path: String| match Path::new(&path).strip_prefix(finder.folder()) {
        Ok(name) => name.to_string_lossy().into_owned(),
        Err(_) => path,
    };
    files.into_iter().map(own).collect()
}

/// Where a module or a file is found: beside the script first. A script may do without a module that is nowhere.
fn found(named: &Named, folder: &str, finder: &Finder<'_>) -> Option<String> {
    let (name, places) = match named {
        Named::Module(name) => (format!("{}.lua", name.replace('.', "/")), [folder, SCRIPTS_OF_SYSBENCH]),
        Named::File(name) => (name.clone(), [folder, ""]),
    };
    let candidates =
        places.map(|place| if place == "." { name.clone() } else { located(Path::new(place), &name) });
    candidates.into_iter().find(|name| Path::new(&finder.path(name)).is_file())
}

/// The modules and files that a text names, each with its line. Comments name none.
fn named_in(text: &[u8]) -> Vec<(usize, Named)> {
    let (mut all, mut word, mut at) = (Vec::new(), "", 0);
    while at < text.len() {
        let rest = &text[at..];
        let length = match rest[0] {
            b'-' if rest.starts_with(b"--") => {
                2 + long_length(&rest[2..]).unwrap_or_else(|| line_length(&rest[2..]))
            }
            b'"' | b'\'' | b'[' => match string(rest) {
                Some((length, name)) => {
                    let line = 1 + text[..at].iter().filter(|byte| **byte == b'\n').count();
                    match word {
                        "require" => all.push((line, Named::Module(name))),
                        "dofile" | "loadfile" | "io.open" | "io.lines" => all.push((line, Named::File(name))),
                        _ => {}
                    }
                    word = "";
                    length
                }
                None => 1,
            },
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                let length = rest.iter().take_while(|byte| is_of_word(**byte)).count();
                word = std::str::from_utf8(&rest[..length]).unwrap_or_default();
                length
            }
            b'(' | b' ' | b'\t' | b'\r' | b'\n' => 1,
            _ => {
                word = "";
                1
            }
        };
        at += length;
    }
    all
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.'
}

fn line_length(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len())
}

/// The length of a text or a comment in long brackets; `None` where there is none.
fn long_length(text: &[u8]) -> Option<usize> {
    let level = text.strip_prefix(b"[")?.iter().take_while(|byte| **byte == b'=').count();
    if text.get(1 + level) != Some(&b'[') {
        return None;
    }
    let end = [b"]".as_slice(), &b"=".repeat(level), b"]"].concat();
    let ends = text.windows(end.len()).position(|window| window == end);
    Some(ends.map_or(text.len(), |at| at + end.len()))
}

/// The length of the text that begins here, and what it says; `None` where none begins.
fn string(text: &[u8]) -> Option<(usize, String)> {
    let inner = |from: usize, to: usize| String::from_utf8_lossy(&text[from..to.max(from)]).into_owned();
    if text[0] == b'[' {
        let length = long_length(text)?;
        let bracket = 2 + text[1..].iter().take_while(|byte| **byte == b'=').count();
        return Some((length, inner(bracket, length.saturating_sub(bracket))));
    }
    let mut at = 1;
    while at < text.len() && text[at] != text[0] && text[at] != b'\n' {
        at += 1 + usize::from(text[at] == b'\\');
    }
    let end = at.min(text.len());
    Some(((end + 1).min(text.len()), inner(1, end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_names_is_found_and_comments_name_nothing() {
        let text = br#"require "a.b"
-- require("commented")
--[[ dofile("commented") ]]
local c = require('c')
print("require", "no")
loadfile [[d.lua]]
for line in io.lines("rows.csv") do end
dofile("e" .. ".lua")
require(name)
"#;
        let module = |name: &str| Named::Module(name.to_owned());
        let file = |name: &str| Named::File(name.to_owned());
        let found = named_in(text);
        let expected = vec![
            (1, module("a.b")),
            (4, module("c")),
            (6, file("d.lua")),
            (7, file("rows.csv")),
            (8, file("e")),
        ];
        assert_eq!(found, expected);
        assert!(named_in(b"\"\\").is_empty() && named_in(b"require [[x").len() == 1);
    }
}
