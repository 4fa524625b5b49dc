//! One state of Lua: a script as one client has it, in a coroutine that yields what it asks of the driver.

use super::answers::{Answers, Fetched, Stored};
use super::draw::{letters, string, Distributions, Shape, Unique};
use super::hold::{Turns, Watchdog};
use super::request::Request;
use super::settings::{Setting, Settings};
use crate::error::{Error, Result};
use crate::random::Random;
use mlua::{
    Function, IntoLuaMulti, Lua, LuaOptions, MultiValue, StdLib, String as LuaString, Table, Thread, Value,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

const PRELUDE: &str = include_str!("prelude.lua");
/// Where the distribution's scripts are, which others are written on.
const SCRIPTS_OF_SYSBENCH: &str = "/usr/share/sysbench";

/// A script's file.
#[derive(Debug)]
pub(super) struct Source {
    pub file: String,
    text: String,
}

impl Source {
    pub fn read(file: &str) -> Result<Self> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            Error::user(format!("{file} cannot be read: {error}")).hint("give the path of a script in Lua")
        })?;
        Ok(Source { file: file.to_owned(), text })
    }

    /// What Lua reads: without a first line of `#!`, which is left empty so that the others keep their numbers.
    fn code(&self) -> &str {
        match self.text.strip_prefix('#') {
            Some(rest) => &rest[rest.find('\n').unwrap_or(rest.len())..],
            None => &self.text,
        }
    }

    /// Where `require` looks: beside the script first.
    fn path(&self) -> String {
        let folder = Path::new(&self.file).parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new(".")).display();
        format!("{folder}/?.lua;{SCRIPTS_OF_SYSBENCH}/?.lua")
    }
}

/// What all states of a workload share.
pub(super) struct Shared {
    pub source: Source,
    pub driver: &'static str,
    pub unique: Unique,
    pub watchdog: Watchdog,
    pub memory_bytes: usize,
}

/// The script of one client. The fields are dropped in this order: nobody watches a state that is closed.
pub(super) struct State {
    turns: Turns,
    conversation: Thread,
    find: Function,
    pub answers: Rc<RefCell<Answers>>,
    random: Rc<Cell<Random>>,
    lua: Lua,
}

/// A function of the script that a command or the driver calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// All clients call it side by side.
    pub parallel: bool,
}

impl State {
    /// Runs the script's own text. `tid` is the client's number, `command` what `sysbench.cmdline.command` says.
    pub fn new(
        shared: &Arc<Shared>,
        settings: &Settings,
        command: &str,
        tid: u32,
        random: Random,
    ) -> Result<Self> {
        // SAFETY: scripts may load `ffi`, with which they can do whatever this process can, as with sysbench: whoever
        // runs a script trusts it.
        let lua = unsafe { Lua::unsafe_new_with(StdLib::ALL, LuaOptions::default()) };
        let (answers, random) = (Rc::default(), Rc::new(Cell::new(random)));
        let made = || -> mlua::Result<(Thread, Function)> {
            lua.set_memory_limit(shared.memory_bytes)?;
            let natives = natives(&lua, shared, settings, &answers, &random)?;
            natives.set("tid", tid)?;
            natives.set("command", command)?;
            let (converse, find): (Function, Function) = lua.load(PRELUDE).set_name("=dyno").call(natives)?;
            for (name, value) in &settings.globals {
                lua.globals().set(name.as_str(), lua_value(&lua, value)?)?;
            }
            Ok((lua.create_thread(converse)?, find))
        };
        let (conversation, find) = made().map_err(broken)?;
        let turns = shared.watchdog.watch(&conversation);
        let state = State { turns, conversation, find, answers, random, lua };
        let script = state.lua.load(shared.source.code()).set_name(format!("@{}", shared.source.file));
        state.turns.during(|| script.exec()).map_err(broken)?;
        Ok(state)
    }

    /// Lets the coroutine go on with `given`: the name of the function to call next, or the answer to its request.
    pub fn resume(&self, given: impl IntoLuaMulti) -> Result<Request> {
        let yielded = self.turns.during(|| self.conversation.resume::<MultiValue>(given));
        Request::read(yielded.map_err(broken)?)
    }

    /// Whether the script has a function of this name, as a command or as a global.
    pub fn find(&self, name: &str) -> Result<Option<Found>> {
        let (task, parallel) = self.find.call::<(Option<Function>, bool)>(name).map_err(broken)?;
        Ok(task.map(|_| Found { parallel }))
    }

    /// Counts the script's long turns from now on.
    pub fn count_turns(&self) {
        self.turns.count();
    }

    /// The random numbers as the script left them.
    pub fn random(&self) -> Random {
        self.random.get()
    }

    /// Draws the script's next random numbers from `random`.
    pub fn draw_from(&self, random: Random) {
        self.random.set(random);
    }

    pub fn begin_answer(&self, connection: usize) -> Stored {
        self.answers.borrow_mut().begin(connection)
    }

    /// The options that the script declares, with their defaults.
    pub fn declared(&self) -> Result<BTreeMap<String, Setting>> {
        let mut declared = BTreeMap::new();
        for (name, option) in self.options()? {
            let default = option.raw_get(2).map_err(broken)?;
            let default = setting(default).ok_or_else(|| {
                Error::user(format!("the script's option {name} has a default that is no option's value"))
                    .hint("give a text, a number, true, false, or a list of texts")
            })?;
            declared.insert(name.replace('-', "_"), default);
        }
        Ok(declared)
    }

    /// Has the script itself judge the values of its options, where it brings a function for that.
    pub fn validate(&self, settings: &Settings) -> Result<()> {
        for (name, option) in self.options()? {
            let Value::Function(validator) = option.raw_get::<Value>(3).map_err(broken)? else { continue };
            let value = settings.get(&name.replace('-', "_")).unwrap_or(&Setting::Nothing);
            let value = lua_value(&self.lua, value).map_err(broken)?;
            let (valid, why): (Value, Option<String>) =
                self.turns.during(|| validator.call(value)).map_err(broken)?;
            if matches!(valid, Value::Nil | Value::Boolean(false)) {
                let why = why.map_or_else(String::new, |why| format!(": {why}"));
                return Err(Error::user(format!("the script refuses the value of its option {name}{why}")));
            }
        }
        Ok(())
    }

    fn options(&self) -> Result<Vec<(String, Table)>> {
        let declared = || -> mlua::Result<Vec<(String, Table)>> {
            let sysbench: Table = self.lua.globals().get("sysbench")?;
            let options: Table = sysbench.get::<Table>("cmdline")?.get("options")?;
            options.pairs::<String, Table>().collect()
        };
        declared().map_err(|error| {
            broken(error).hint("write sysbench.cmdline.options = {name = {\"what it is\", default}}")
        })
    }
}

/// What the prelude needs of Rust.
fn natives(
    lua: &Lua,
    shared: &Arc<Shared>,
    settings: &Settings,
    answers: &Rc<RefCell<Answers>>,
    random: &Rc<Cell<Random>>,
) -> mlua::Result<Table> {
    let natives = lua.create_table()?;
    natives.set("driver", shared.driver)?;
    natives.set("file", shared.source.file.as_str())?;
    natives.set("path", shared.source.path())?;
    let options = lua.create_table()?;
    for (name, value) in settings.values() {
        options.set(name, lua_value(lua, value)?)?;
    }
    natives.set("opt", options)?;
    add_fetch(lua, &natives, answers)?;
    let distributions = Distributions::new(settings).map_err(mlua::Error::external)?;
    add_draws(lua, &natives, distributions, random)?;
    let shared = Arc::clone(shared);
    natives.set("unique", lua.create_function(move |_, ()| Ok(shared.unique.draw()))?)?;
    Ok(natives)
}

fn add_fetch(lua: &Lua, natives: &Table, answers: &Rc<RefCell<Answers>>) -> mlua::Result<()> {
    let from = Rc::clone(answers);
    let fetch = lua.create_function(move |lua, (connection, number): (usize, u32)| {
        let mut answers = from.borrow_mut();
        let cells = match answers.fetch(connection, number) {
            Fetched::Gone => return Ok(MultiValue::new()),
            Fetched::End => return Ok(MultiValue::from_vec(vec![Value::Boolean(false)])),
            Fetched::Row(cells) => cells,
        };
        let mut row = MultiValue::with_capacity(cells.len() + 1);
        row.push_back(Value::Boolean(true));
        for cell in cells {
            row.push_back(cell.map_or(Ok(Value::Nil), |text| lua.create_string(text).map(Value::String))?);
        }
        Ok(row)
    })?;
    natives.set("fetch", fetch)?;
    let of = Rc::clone(answers);
    let forget = lua.create_function(move |_, number: u32| {
        of.borrow_mut().forget(number);
        Ok(())
    })?;
    natives.set("forget", forget)
}

fn add_draws(
    lua: &Lua,
    natives: &Table,
    distributions: Distributions,
    random: &Rc<Cell<Random>>,
) -> mlua::Result<()> {
    let default = distributions.default;
    let distributions = Rc::new(distributions);
    for (name, shape) in Shape::ALL.into_iter().chain([("default", default)]) {
        let (distributions, random) = (Rc::clone(&distributions), Rc::clone(random));
        let draw = lua.create_function(move |_, (low, high): (f64, f64)| {
            // Bounds are whole numbers: what follows the point is cut off.
            Ok(drawn(&random, |random| distributions.draw(shape, low as i64, high as i64, random)))
        })?;
        natives.set(name, draw)?;
    }
    let from = Rc::clone(random);
    let text = lua.create_function(move |lua, template: LuaString| {
        lua.create_string(drawn(&from, |random| string(&template.as_bytes(), random)))
    })?;
    natives.set("string", text)?;
    let from = Rc::clone(random);
    let varstring = lua.create_function(move |lua, (shortest, longest): (f64, f64)| {
        lua.create_string(drawn(&from, |random| letters(shortest as i64, longest as i64, random)))
    })?;
    natives.set("varstring", varstring)?;
    let from = Rc::clone(random);
    // A number of Lua holds 53 bits.
    let uint64 =
        lua.create_function(move |_, ()| Ok(drawn(&from, |random| random.next_u64() >> 11) as f64))?;
    natives.set("uniform_uint64", uint64)?;
    let from = Rc::clone(random);
    natives.set("uniform_double", lua.create_function(move |_, ()| Ok(drawn(&from, Random::float)))?)
}

fn drawn<T>(random: &Cell<Random>, draw: impl FnOnce(&mut Random) -> T) -> T {
    let mut state = random.get();
    let value = draw(&mut state);
    random.set(state);
    value
}

fn lua_value(lua: &Lua, setting: &Setting) -> mlua::Result<Value> {
    Ok(match setting {
        Setting::Nothing => Value::Nil,
        Setting::Flag(flag) => Value::Boolean(*flag),
        Setting::Number(number) => Value::Number(*number),
        Setting::Text(text) => Value::String(lua.create_string(text)?),
        Setting::List(texts) => Value::Table(lua.create_sequence_from(texts.iter().map(String::as_str))?),
    })
}

/// A default of the script's as a setting; `None` where it is none.
fn setting(default: Value) -> Option<Setting> {
    Some(match default {
        Value::Nil => Setting::Nothing,
        Value::Boolean(flag) => Setting::Flag(flag),
        Value::Integer(number) => Setting::Number(number as f64),
        Value::Number(number) => Setting::Number(number),
        Value::String(text) => Setting::Text(text.to_string_lossy()),
        Value::Table(texts) => Setting::List(texts.sequence_values().collect::<mlua::Result<_>>().ok()?),
        _ => return None,
    })
}

/// The error of a script that failed, or the driver's own that came through Lua.
pub(super) fn broken(error: mlua::Error) -> Error {
    match error.downcast_ref::<Error>() {
        Some(own) => own.clone(),
        None => of_script(&error.to_string()),
    }
}

/// The error that a message of Lua's stands for: no other try does better.
pub(super) fn of_script(message: &str) -> Error {
    let message = message.split("\nstack traceback").next().unwrap_or_default();
    let message = message.strip_prefix("runtime error: ").unwrap_or(message);
    if let Some((missing, _)) = message.split_once(" not found:\n") {
        return Error::user(format!("{missing} not found"))
            .fatal()
            .hint(format!("put it beside the script, or into {SCRIPTS_OF_SYSBENCH}"));
    }
    if message.contains("not enough memory") {
        let error =
            Error::user(format!("a client's script has used all of its memory_mb: {message}")).fatal();
        return error.hint("the script holds on to too much, or needs a larger memory_mb");
    }
    let error = Error::user(message).fatal();
    if message.contains("patience_s") {
        return error.hint("does it loop for ever? raise patience_s if it only computes for long");
    }
    error
}
