//! The coroutine that a script runs in: resumed with numbers, and read where its values lie.
//!
//! mlua's own calls copy every value that crosses, keep a reference for every text, and make every text in a protected
//! call. That costs more than all that most events do, so nothing but numbers is given on the way of an event, and what
//! the coroutine yields stays on its stack until it is resumed.

use crate::session::Value;
use mlua::ffi::{self, lua_State};
use mlua::{Error, Function, IntoLuaMulti, Lua, Result, Thread};
use std::ffi::{c_int, c_void};
use std::{ptr, slice, str};

/// No request is answered with more values than this.
const GIVEN_MAX: c_int = 8;

/// A coroutine that has yielded.
pub(super) struct Conversation {
    coroutine: Thread,
    lua: Lua,
}

impl Conversation {
    /// Lets a coroutine run `converse` up to where it yields first.
    pub fn begin(lua: &Lua, converse: Function) -> Result<Self> {
        let coroutine = lua.create_thread(converse)?;
        coroutine.resume::<()>(())?;
        Ok(Conversation { coroutine, lua: lua.clone() })
    }

    pub fn coroutine(&self) -> &Thread {
        &self.coroutine
    }

    /// Gives the coroutine numbers and lets it go on until it yields again.
    #[inline]
    pub fn resume(&mut self, numbers: &[f64]) -> Result<()> {
        let state = self.readied()?;
        // SAFETY: Lua wants room on a stack before a push: lua_checkstack has made it in `readied`.
        numbers.iter().for_each(|number| unsafe { ffi::lua_pushnumber(state, *number) });
        self.go_on(numbers.len() as c_int)
    }

    /// The same with a light userdata.
    #[inline]
    pub fn resume_with_light(&mut self, light: *mut c_void) -> Result<()> {
        let state = self.readied()?;
        // SAFETY: Lua wants room on a stack before a push: lua_checkstack has made it in `readied`.
        unsafe { ffi::lua_pushlightuserdata(state, light) };
        self.go_on(1)
    }

    /// The same with values of any kind.
    pub fn resume_with(&mut self, values: impl IntoLuaMulti) -> Result<()> {
        let state = self.readied()?;
        let mut given = 0;
        // SAFETY: lua_xmove wants two stacks of one Lua, with room on the second, which `readied` has made.
        unsafe {
            self.lua.exec_raw::<()>(values, |from| {
                given = ffi::lua_gettop(from);
                ffi::lua_xmove(from, state, given);
            })?;
        }
        self.go_on(given)
    }

    /// The coroutine's stack, emptied of what was yielded.
    #[inline]
    fn readied(&self) -> Result<*mut lua_State> {
        let state = self.coroutine.state();
        // SAFETY: Lua collects a coroutine that nothing refers to: `coroutine` does. lua_settop on it is for a stack
        // that does not run, which its status says.
        unsafe {
            if ffi::lua_status(state) == ffi::LUA_YIELD {
                ffi::lua_settop(state, 0);
                if ffi::lua_checkstack(state, GIVEN_MAX) != 0 {
                    return Ok(state);
                }
            }
        }
        Err(Error::runtime("the coroutine of the script cannot go on"))
    }

    /// Lets the coroutine go on with the uppermost `given` values of its stack.
    #[inline]
    fn go_on(&mut self, given: c_int) -> Result<()> {
        let state = self.coroutine.state();
        // SAFETY: lua_resume wants a coroutine that has yielded, as `readied` has seen, and gives what it raises as its
        // status.
        let status = unsafe { ffi::lua_resume(state, ptr::null_mut(), given, ptr::null_mut()) };
        match status {
            ffi::LUA_YIELD => Ok(()),
            ffi::LUA_OK => Err(Error::runtime("the coroutine of the script has ended")),
            _ => Err(Error::runtime(String::from_utf8_lossy(self.text(-1).unwrap_or_default()))),
        }
    }

    /// How many values were yielded.
    #[inline]
    pub fn yielded(&self) -> c_int {
        // SAFETY: lua_gettop only reads a stack, which `coroutine` keeps alive.
        unsafe { ffi::lua_gettop(self.coroutine.state()) }
    }

    /// A yielded value, by its place from 1, where it is a number that is not below zero.
    #[inline]
    pub fn number(&self, place: c_int) -> Option<u64> {
        let state = self.coroutine.state();
        // SAFETY: `coroutine` keeps the stack alive. lua_type takes a place beyond the last one too, as one without a
        // value.
        let number = unsafe {
            match ffi::lua_type(state, place) {
                ffi::LUA_TNUMBER => ffi::lua_tonumber(state, place),
                _ => return None,
            }
        };
        (number >= 0.0).then_some(number as u64)
    }

    /// Whether a yielded value is true.
    #[inline]
    pub fn is_true(&self, place: c_int) -> bool {
        // SAFETY: as in `number`.
        unsafe { ffi::lua_toboolean(self.coroutine.state(), place) != 0 }
    }

    /// A yielded value where it is a text.
    #[inline]
    pub fn text(&self, place: c_int) -> Option<&[u8]> {
        let state = self.coroutine.state();
        let mut length = 0;
        // SAFETY: as in `number`. The text lies on the stack, so it lives until the coroutine is resumed, for which
        // it must not be borrowed any more.
        unsafe {
            if ffi::lua_type(state, place) != ffi::LUA_TSTRING {
                return None;
            }
            let start = ffi::lua_tolstring(state, place, &mut length);
            Some(slice::from_raw_parts(start.cast(), length))
        }
    }

    /// A yielded value as the parameter of a statement; what is neither a number nor a text is NULL.
    #[inline]
    pub fn value(&self, place: c_int) -> Value<'_> {
        let state = self.coroutine.state();
        // SAFETY: as in `number`.
        if unsafe { ffi::lua_type(state, place) } == ffi::LUA_TNUMBER {
            return of_number(unsafe { ffi::lua_tonumber(state, place) });
        }
        self.text(place)
            .map_or(Value::Null, |text| str::from_utf8(text).map_or(Value::Bytes(text), Value::Text))
    }
}

/// A number of Lua: an integer where it is whole.
#[inline]
fn of_number(number: f64) -> Value<'static> {
    let whole = number as i64;
    // The largest integer is what larger numbers are cut down to; minus zero is no integer.
    if whole < i64::MAX && (whole as f64).to_bits() == number.to_bits() {
        return Value::Int(whole);
    }
    Value::Float(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_integers() {
        for (given, expected) in [
            (0.0, Value::Int(0)),
            (-7.0, Value::Int(-7)),
            (9_007_199_254_740_992.0, Value::Int(1 << 53)),
            (-9_223_372_036_854_775_808.0, Value::Int(i64::MIN)),
            (9_223_372_036_854_775_808.0, Value::Float(9_223_372_036_854_775_808.0)),
            (1e-17, Value::Float(1e-17)),
            (0.5, Value::Float(0.5)),
        ] {
            assert_eq!(of_number(given), expected, "{given}");
        }
        assert!(matches!(of_number(-0.0), Value::Float(_)));
        assert!(matches!(of_number(f64::NAN), Value::Float(_)));
    }

    fn begun(lua: &Lua, code: &str) -> Conversation {
        Conversation::begin(lua, lua.load(code).into_function().unwrap()).unwrap()
    }

    #[test]
    fn what_goes_in_comes_out() {
        let lua = Lua::new();
        let mut conversation = begun(
            &lua,
            "local given = {coroutine.yield()}
             given = {coroutine.yield(#given, unpack(given))}
             coroutine.yield(given[1], given[2], given[3])",
        );
        conversation.resume(&[1.0, 2.5]).unwrap();
        assert_eq!((conversation.yielded(), conversation.number(1)), (3, Some(2)));
        assert_eq!((conversation.value(2), conversation.value(3)), (Value::Int(1), Value::Float(2.5)));
        assert_eq!((conversation.number(4), conversation.text(1)), (None, None));
        conversation.resume_with(("é", true, lua.create_string([255u8]).unwrap())).unwrap();
        assert_eq!((conversation.text(1), conversation.value(1)), (Some("é".as_bytes()), Value::Text("é")));
        assert_eq!((conversation.is_true(2), conversation.value(2)), (true, Value::Null));
        assert_eq!(conversation.value(3), Value::Bytes(&[255]));
    }

    #[test]
    fn one_that_fails_or_ends_cannot_go_on() {
        let lua = Lua::new();
        let mut failing = begun(&lua, "coroutine.yield() error('enough', 0)");
        assert!(failing.resume(&[]).unwrap_err().to_string().ends_with("enough"));
        assert!(failing.resume(&[]).unwrap_err().to_string().contains("cannot go on"));
        let mut ending = begun(&lua, "coroutine.yield()");
        assert!(ending.resume(&[]).is_err());
        assert!(ending.resume(&[]).unwrap_err().to_string().contains("cannot go on"));
    }
}
