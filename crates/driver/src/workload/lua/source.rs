//! What all clients of a workload have in common: the script, and what watches and serves all of them.

use super::draw::Unique;
use super::hold::Watchdog;
use crate::error::{Error, Result};
use mlua::{Function, Lua};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::{fs, io};

/// Where the distribution's scripts are, which others are written on.
pub(super) const SCRIPTS_OF_SYSBENCH: &str = "/usr/share/sysbench";

/// One chunk in three files: each goes on in the scope of the one before.
const PRELUDE: &str = concat!(
    include_str!("prelude/requests.lua"),
    include_str!("prelude/names.lua"),
    include_str!("prelude/calls.lua"),
);
const REPORTS: &str = include_str!("reports.lua");

/// A script's file.
#[derive(Debug)]
pub(super) struct Source {
    pub file: String,
    text: Vec<u8>,
}

impl Source {
    pub fn read(file: &str) -> Result<Self> {
        let text = fs::read(file).map_err(|error| {
            Error::user(format!("{file} cannot be read: {error}")).hint("give the path of a script in Lua")
        })?;
        Ok(Source { file: file.to_owned(), text })
    }

    /// Where `require` looks: beside the script first.
    pub fn path(&self) -> String {
        format!("{}/?.lua;{SCRIPTS_OF_SYSBENCH}/?.lua", folder_of(&self.file))
    }

    /// Where `dofile` and its like look: beside the script first.
    pub fn beside(&self) -> String {
        format!("{}/?;?", folder_of(&self.file))
    }
}

/// The folder of a script, as a path that another one can follow.
pub(super) fn folder_of(file: &str) -> &str {
    let folder = Path::new(file).parent().and_then(Path::to_str).filter(|folder| !folder.is_empty());
    folder.unwrap_or(".")
}

/// What all states of a workload share.
pub(super) struct Shared {
    pub source: Source,
    pub compiled: Compiled,
    pub driver: &'static str,
    pub unique: Unique,
    pub watchdog: Watchdog,
    pub memory_bytes: usize,
}

impl Shared {
    pub fn prelude(&self, lua: &Lua) -> mlua::Result<Function> {
        self.compiled.function(lua, "=dyno", || Ok(PRELUDE.into()))
    }

    /// The reports that are there for scripts to set as their hooks.
    pub fn reports(&self, lua: &Lua) -> mlua::Result<Function> {
        self.compiled.function(lua, "=dyno reports", || Ok(REPORTS.into()))
    }

    pub fn script(&self, lua: &Lua) -> mlua::Result<Function> {
        self.compiled.function(lua, &format!("@{}", self.source.file), || Ok(self.source.text.clone()))
    }

    /// What a file holds that the script requires.
    pub fn module(&self, lua: &Lua, file: &str) -> mlua::Result<Function> {
        self.compiled.function(lua, &format!("@{file}"), || fs::read(file))
    }
}

/// Code that the first state compiles and the others take over, by the name that its errors have.
#[derive(Default)]
pub(super) struct Compiled {
    by_name: Mutex<HashMap<String, Vec<u8>>>,
}

impl Compiled {
    /// The files that were compiled.
    pub fn files(&self) -> Vec<String> {
        let by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        by_name.keys().filter_map(|name| name.strip_prefix('@')).map(str::to_owned).collect()
    }

    fn function(
        &self,
        lua: &Lua,
        name: &str,
        text: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> mlua::Result<Function> {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(code) = by_name.get(name) {
            return lua.load(code).into_function();
        }
        let function = lua.load(readable(&text()?)).set_name(name).into_function()?;
        by_name.insert(name.to_owned(), function.dump(false));
        Ok(function)
    }
}

/// What Lua reads: without a first line of `#!`, which is left empty so that the others keep their numbers.
fn readable(text: &[u8]) -> &[u8] {
    match text {
        [b'#', rest @ ..] => &rest[rest.iter().position(|letter| *letter == b'\n').unwrap_or(rest.len())..],
        _ => text,
    }
}
