//! What the prelude needs of Rust.

use super::answers::{Answers, Fetched};
use super::draw::{letters, string, Distributions, Shape};
use super::settings::{Setting, Settings};
use super::source::Shared;
use crate::random::Random;
use mlua::ffi::{self, lua_State};
use mlua::{Function, LightUserData, Lua, MultiValue, String as LuaString, Table, Value};
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void, CString};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

/// The table of them.
pub(super) fn natives(
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
    natives.set("beside", shared.source.beside())?;
    let options = lua.create_table()?;
    for (name, value) in settings.values() {
        options.set(name, lua_value(lua, value)?)?;
    }
    natives.set("opt", options)?;
    add_results(lua, &natives, answers)?;
    let distributions = Distributions::new(settings).map_err(mlua::Error::external)?;
    add_dice(lua, &natives, Die::all(distributions, random))?;
    add_draws(lua, &natives, random)?;
    add_modules(lua, &natives, shared)?;
    let of = Arc::clone(shared);
    natives.set("reports", lua.create_function(move |lua, ()| of.reports(lua)?.call::<Table>(()))?)?;
    let of = Arc::clone(shared);
    natives.set("unique", lua.create_function(move |_, ()| Ok(of.unique.draw()))?)?;
    let of = Arc::clone(shared);
    let within =
        lua.create_function(move |_, (low, high): (f64, f64)| Ok(of.unique.draw_within(low, high)))?;
    natives.set("unique_within", within)?;
    Ok(natives)
}

/// What a script has of its results. One is its number, as a light userdata.
fn add_results(lua: &Lua, natives: &Table, answers: &Rc<RefCell<Answers>>) -> mlua::Result<()> {
    let from = Rc::clone(answers);
    let fetch = lua.create_function(move |lua, result: LightUserData| {
        let mut answers = from.borrow_mut();
        let cells = match answers.fetch(number_of(result)).map_err(mlua::Error::external)? {
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
    let size = lua.create_function(move |_, result: LightUserData| {
        let kept = of.borrow().size(number_of(result));
        Ok(kept.map_or((None, 0), |kept| (Some(kept.rows), kept.columns)))
    })?;
    natives.set("size", size)?;
    let of = Rc::clone(answers);
    let more = lua.create_function(move |_, connection: usize| Ok(of.borrow().has_more(connection)))?;
    natives.set("more_results", more)?;
    let of = Rc::clone(answers);
    let next = lua.create_function(move |_, connection: usize| {
        Ok(of.borrow_mut().next_set(connection).map(|kept| LightUserData(result_of(kept.number))))
    })?;
    natives.set("next_result", next)?;
    let of = Rc::clone(answers);
    let forget = lua.create_function(move |_, result: LightUserData| {
        of.borrow_mut().forget(number_of(result));
        Ok(())
    })?;
    natives.set("forget", forget)?;
    natives.set("null", LightUserData(ptr::null_mut()))
}

/// A result as Lua has it: no pointer, but a number where one would be.
pub(super) fn result_of(number: u32) -> *mut c_void {
    ptr::without_provenance_mut(number as usize)
}

fn number_of(result: LightUserData) -> u32 {
    result.0.addr() as u32
}

/// Gives a module as the function that loads it, or why there is none.
fn add_modules(lua: &Lua, natives: &Table, shared: &Arc<Shared>) -> mlua::Result<()> {
    let shared = Arc::clone(shared);
    let module = lua.create_function(move |lua, file: String| match shared.module(lua, &file) {
        Ok(module) => Ok((Some(module), None)),
        Err(error) => Ok((None, Some(error.to_string()))),
    })?;
    natives.set("module", module)
}

fn add_dice(lua: &Lua, natives: &Table, dice: Box<[Die]>) -> mlua::Result<()> {
    // Finalizers of a script may throw dice while its state is closed. What the state owns outlives that.
    lua.set_app_data(dice);
    let dice = lua.app_data_ref::<Box<[Die]>>();
    dice.iter().flat_map(|dice| dice.iter()).try_for_each(|die| natives.set(die.name, die.function(lua)?))
}

fn add_draws(lua: &Lua, natives: &Table, random: &Rc<Cell<Random>>) -> mlua::Result<()> {
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

/// What draws the numbers of one shape. Scripts draw several in each event, so Lua calls it without mlua between them.
pub(super) struct Die {
    name: &'static str,
    shape: Shape,
    distributions: Rc<Distributions>,
    random: Rc<Cell<Random>>,
    /// What to tell a script that gives it no range.
    refusal: CString,
}

impl Die {
    /// One for each function of `sysbench.rand` that draws from a range.
    pub fn all(distributions: Distributions, random: &Rc<Cell<Random>>) -> Box<[Self]> {
        let default = distributions.default;
        let distributions = Rc::new(distributions);
        let shapes = Shape::ALL.into_iter().chain([("default", default)]);
        let dice = shapes.map(|(name, shape)| {
            let refusal = format!("{name} takes two numbers, the lowest and the highest");
            let (distributions, random) = (Rc::clone(&distributions), Rc::clone(random));
            Die { name, shape, distributions, random, refusal: CString::new(refusal).unwrap_or_default() }
        });
        dice.collect()
    }

    /// A function of Lua that throws this die of its own.
    fn function(&self, lua: &Lua) -> mlua::Result<Function> {
        let die = LightUserData(ptr::from_ref(self).cast_mut().cast());
        // SAFETY: the die is on the stack, and becomes the upvalue by which `throw` finds it.
        unsafe { lua.exec_raw(die, |state| ffi::lua_pushcclosure(state, throw, 1)) }
    }

    /// Bounds are whole numbers: what follows the point is cut off.
    fn draw(&self, low: f64, high: f64) -> i64 {
        drawn(&self.random, |random| self.distributions.draw(self.shape, low as i64, high as i64, random))
    }
}

/// Gives Lua a number between the two that it was called with.
unsafe extern "C-unwind" fn throw(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with a stack that has room, and `Die::function` put the die there. An error leaves nothing
    // behind that would have to be dropped.
    unsafe {
        let die = &*ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast::<Die>();
        let is_number = |place| ffi::lua_type(state, place) == ffi::LUA_TNUMBER;
        if !is_number(1) || !is_number(2) {
            return ffi::luaL_error(state, c"%s".as_ptr(), die.refusal.as_ptr());
        }
        let drawn = die.draw(ffi::lua_tonumber(state, 1), ffi::lua_tonumber(state, 2));
        ffi::lua_pushnumber(state, drawn as f64);
    }
    1
}

pub(super) fn lua_value(lua: &Lua, setting: &Setting) -> mlua::Result<Value> {
    Ok(match setting {
        Setting::Nothing => Value::Nil,
        Setting::Flag(flag) => Value::Boolean(*flag),
        Setting::Number(number) => Value::Number(*number),
        Setting::Text(text) => Value::String(lua.create_string(text)?),
        Setting::List(texts) => Value::Table(lua.create_sequence_from(texts.iter().map(String::as_str))?),
    })
}
