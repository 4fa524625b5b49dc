//! One state of Lua: a script as one client has it, in a coroutine that yields what it asks of the driver.

use super::answers::{Answers, Stored};
use super::conversation::Conversation;
use super::hold::Turns;
use super::natives::{lua_value, natives, result_of};
use super::request::{unreadable, Request, PARAMETERS, SQL};
use super::settings::{Setting, Settings};
use super::source::{Shared, SCRIPTS_OF_SYSBENCH};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::session;
use mlua::{Function, IntoLuaMulti, Lua, LuaOptions, StdLib, Table, Value};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// The script of one client. The fields are dropped in this order: nobody watches a state that is closed.
pub(super) struct State {
    turns: Turns,
    conversation: Conversation,
    /// What begins a conversation.
    converse: Function,
    /// The function that was called last.
    called: String,
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
        let made = || -> mlua::Result<(Function, Function)> {
            lua.set_memory_limit(shared.memory_bytes)?;
            let natives = natives(&lua, shared, settings, &answers, &random)?;
            natives.set("tid", tid)?;
            natives.set("command", command)?;
            let (converse, find): (Function, Function) = shared.prelude(&lua)?.call(natives)?;
            let globals = lua.globals();
            for (name, value) in &settings.globals {
                // An option may be called like a library: `debug`.
                if !globals.get::<Value>(name.as_str())?.is_table() {
                    globals.set(name.as_str(), lua_value(&lua, value)?)?;
                }
            }
            Ok((converse, find))
        };
        let (converse, find) = made().map_err(broken)?;
        let conversation = Conversation::begin(&lua, converse.clone()).map_err(broken)?;
        let turns = shared.watchdog.watch(conversation.coroutine())?;
        let called = String::new();
        let state = State { turns, conversation, converse, called, find, answers, random, lua };
        let script = shared.script(&state.lua).map_err(broken)?;
        state.turns.during(|| script.call::<()>(())).map_err(broken)?;
        Ok(state)
    }

    /// Begins another conversation with the script, which was left in the midst of one. What it has in its variables
    /// stays.
    pub fn begin_again(&mut self, shared: &Shared) -> Result<()> {
        let conversation = Conversation::begin(&self.lua, self.converse.clone()).map_err(broken)?;
        // Nobody watches the old coroutine when it goes.
        self.turns = shared.watchdog.watch(conversation.coroutine())?;
        self.conversation = conversation;
        self.called.clear();
        *self.answers.borrow_mut() = Answers::default();
        Ok(())
    }

    /// Calls a function of the script. To call the same one again takes no name.
    pub fn call(&mut self, name: &str) -> Result<Request> {
        if self.called == name {
            return self.answer(&[]);
        }
        name.clone_into(&mut self.called);
        self.answer_with(name)
    }

    /// Lets the script go on with the numbers that answer its request.
    #[inline]
    pub fn answer(&mut self, numbers: &[f64]) -> Result<Request> {
        self.turns.during(|| self.conversation.resume(numbers)).map_err(broken)?;
        Request::read(&self.conversation)
    }

    /// The same with the number of a result.
    #[inline]
    pub fn answer_result(&mut self, number: u32) -> Result<Request> {
        self.turns.during(|| self.conversation.resume_with_light(result_of(number))).map_err(broken)?;
        Request::read(&self.conversation)
    }

    /// The same with values of any kind.
    pub fn answer_with(&mut self, values: impl IntoLuaMulti) -> Result<Request> {
        self.turns.during(|| self.conversation.resume_with(values)).map_err(broken)?;
        Request::read(&self.conversation)
    }

    /// The text that the script wants to be executed or prepared. Sessions speak UTF-8.
    pub fn sql(&self) -> Result<&str> {
        let text = self.conversation.text(SQL).ok_or_else(unreadable)?;
        std::str::from_utf8(text).map_err(|_| {
            let sql = String::from_utf8_lossy(text);
            Error::user(format!("a statement of the script is not text in UTF-8: {sql}")).fatal()
        })
    }

    /// Puts the parameters of the statement that the script wants to be executed into `values`.
    #[inline]
    pub fn parameters<'a>(&'a self, values: &mut Vec<session::Value<'a>>) {
        let places = PARAMETERS..=self.conversation.yielded();
        values.extend(places.map(|place| self.conversation.value(place)));
    }

    /// Whether the script has a function of this name, as a command or as a global.
    pub fn find(&self, name: &str) -> Result<Option<Found>> {
        let (task, parallel) = self.find.call::<(Option<Function>, bool)>(name).map_err(broken)?;
        Ok(task.map(|_| Found { parallel }))
    }

    /// The function that the script has set as a hook.
    pub fn hook(&self, name: &str) -> Result<Option<Function>> {
        let hook =
            || self.lua.globals().get::<Table>("sysbench")?.get::<Table>("hooks")?.raw_get::<Value>(name);
        match hook().map_err(broken)? {
            Value::Nil => Ok(None),
            Value::Function(hook) => Ok(Some(hook)),
            _ => Err(Error::user(format!("sysbench.hooks.{name} is no function")).hint("set it to one")),
        }
    }

    /// Has a hook report what has these names.
    pub fn report(&self, hook: &Function, stat: &[(&str, f64)]) -> Result<()> {
        let stat = self.lua.create_table_from(stat.iter().copied()).map_err(broken)?;
        self.turns.during(|| hook.call::<()>(stat)).map_err(broken)
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

    pub fn begin_answer(&self, connection: usize) -> Box<Stored> {
        self.answers.borrow_mut().begin(connection)
    }

    /// The options that the script declares, with their defaults.
    pub fn declared(&self) -> Result<BTreeMap<String, Setting>> {
        let mut declared = BTreeMap::new();
        for (name, option) in self.options()? {
            let default = setting(option.raw_get(2).map_err(broken)?).ok_or_else(|| {
                Error::user(format!("the script's option {name} has a default that is no option's value"))
                    .hint("give a text, a number, true, false, or a list of texts")
            })?;
            let default = match (typed(&option).map_err(broken)?, default) {
                (Some(typed), Setting::Nothing) => typed,
                (Some(typed), Setting::Text(text)) => typed.parse(&name, &text)?,
                (_, default) => default,
            };
            declared.insert(name.replace('-', "_"), default);
        }
        Ok(declared)
    }

    /// Has the script itself judge the values of its options, where it brings a function for that.
    pub fn validate(&self, settings: &Settings) -> Result<()> {
        for (name, option) in self.options()? {
            // sysbench 1.0 has it behind the type.
            let validators = (3..=4).map(|place| option.raw_get::<Value>(place).map_err(broken));
            let found = validators.collect::<Result<Vec<_>>>()?.into_iter().find_map(|value| match value {
                Value::Function(validator) => Some(validator),
                _ => None,
            });
            let Some(validator) = found else { continue };
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

/// What an option is without a default, by its `sysbench.cmdline.ARG_...`; `None` where the script names no type.
fn typed(option: &Table) -> mlua::Result<Option<Setting>> {
    const BOOL: i64 = 1;
    const NUMBERS: std::ops::RangeInclusive<i64> = 2..=4;
    const LIST: i64 = 6;
    Ok(match option.raw_get::<Value>(3)?.as_i64() {
        Some(BOOL) => Some(Setting::Flag(false)),
        Some(number) if NUMBERS.contains(&number) => Some(Setting::Number(0.0)),
        Some(LIST) => Some(Setting::List(Vec::new())),
        _ => None,
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
    if message.contains("for longer than patience_s") {
        return error.hint("does it loop for ever? raise patience_s if it only computes for long");
    }
    error
}
