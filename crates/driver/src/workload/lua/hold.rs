//! How long scripts hold their thread, and an end for those that would hold it for ever.
//!
//! A script that computes keeps all clients of its thread waiting. Nobody can tell beforehand how long it will, so a
//! watchdog looks at every script now and then, from a thread of its own. One that was left alone for too long gets a
//! hook, which Lua calls between two instructions of the script; the hook ends the script with an error.

use crate::clock;
use mlua::ffi::{self, lua_Debug, lua_State};
use mlua::Thread;
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Other clients of the thread notice a wait of this length. The coarse clock tells it well enough.
const LONG_NS: u64 = 50_000_000;
/// The share of a run that long turns may take.
const SHARE_MAX: f64 = 0.02;
const TICK: Duration = Duration::from_millis(250);

thread_local! {
    /// The turn of the script that this thread is running.
    static TURN: Cell<Turn> = const { Cell::new(Turn { begun_ns: 0, patience_ns: u64::MAX }) };
}

#[derive(Clone, Copy)]
struct Turn {
    begun_ns: u64,
    patience_ns: u64,
}

/// Watches the scripts of one workload for as long as it lives.
pub(super) struct Watchdog {
    patience_ns: u64,
    watching: Arc<Watching>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Watching {
    states: Mutex<States>,
    /// Rung when the watchdog is to end.
    over: Condvar,
    /// All turns of at least `LONG_NS`, and the longest of them.
    long_ns: AtomicU64,
    longest_ns: AtomicU64,
}

/// The states that are watched.
#[derive(Default)]
struct States {
    watched: Vec<Watched>,
    watched_ever: u64,
    /// Scripts that compute are to end, whatever their patience.
    interrupted: bool,
    over: bool,
}

struct Watched {
    number: u64,
    state: StatePointer,
    begun_ns: Arc<AtomicU64>,
}

/// A state of Lua that another thread runs.
struct StatePointer(*mut lua_State);

// SAFETY: the watchdog does with it only what Lua allows from outside while the state runs: it sets a hook. The state
// is there, because `Turns` takes it off the list, under the lock, before it is closed.
unsafe impl Send for StatePointer {}

/// The turns of one script: from when it is resumed to when it yields.
pub(super) struct Turns {
    number: u64,
    patience_ns: u64,
    begun_ns: Arc<AtomicU64>,
    counted: Cell<bool>,
    watching: Arc<Watching>,
}

impl Watchdog {
    /// `patience_ns`: the longest turn of a script.
    pub fn new(patience_ns: u64) -> Self {
        Watchdog { patience_ns, watching: Arc::default(), thread: Mutex::default() }
    }

    /// Watches the state of a coroutine until the turns are dropped, which must be before the state is.
    pub fn watch(&self, coroutine: &Thread) -> Turns {
        let begun_ns = Arc::new(AtomicU64::new(0));
        let mut states = self.watching.lock();
        states.watched_ever += 1;
        let number = states.watched_ever;
        let state = StatePointer(coroutine.state());
        states.watched.push(Watched { number, state, begun_ns: Arc::clone(&begun_ns) });
        drop(states);
        self.wake();
        Turns {
            number,
            patience_ns: self.patience_ns,
            begun_ns,
            counted: Cell::new(false),
            watching: Arc::clone(&self.watching),
        }
    }

    /// Ends the scripts that compute, and those that begin to.
    pub fn interrupt(&self) {
        self.watching.lock().interrupted = true;
    }

    /// What to say of long turns in a run of `duration_s`; `None` where they were a small share of it, as they are where
    /// the machine stops a thread now and then.
    pub fn complaint(&self, duration_s: f64) -> Option<String> {
        let long_s = self.watching.long_ns.load(Ordering::Relaxed) as f64 / 1e9;
        let longest_s = self.watching.longest_ns.load(Ordering::Relaxed) as f64 / 1e9;
        (long_s > duration_s * SHARE_MAX).then(|| {
            format!(
                "the script held driver threads for {long_s:.1} s in turns of up to {longest_s:.2} s without a \
                 statement: their other clients waited, so the script set the pace"
            )
        })
    }

    /// Starts the watchdog's thread, once.
    fn wake(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let watching = Arc::clone(&self.watching);
            *thread = Some(std::thread::spawn(move || watching.look_after()));
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.watching.lock().over = true;
        self.watching.over.notify_all();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // A watchdog that panicked has nothing more to say.
        let _ = thread.map(JoinHandle::join);
    }
}

impl Watching {
    fn lock(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_after(&self) {
        let mut states = self.lock();
        while !states.over {
            let hook = if states.interrupted { end } else { examine };
            let now_ns = clock::now_ns();
            for watched in &states.watched {
                let begun_ns = watched.begun_ns.load(Ordering::Relaxed);
                if begun_ns != 0 && now_ns.saturating_sub(begun_ns) >= TICK.as_nanos() as u64 {
                    // SAFETY: see `StatePointer`.
                    unsafe { ffi::lua_sethook(watched.state.0, Some(hook), ffi::LUA_MASKCOUNT, 1) };
                }
            }
            states = self.over.wait_timeout(states, TICK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Turns {
    /// Counts long turns from now on: what a script does before its events keeps nobody waiting.
    pub fn count(&self) {
        self.counted.set(true);
    }

    /// Lets the script go on until it yields or ends.
    pub fn during<T>(&self, script: impl FnOnce() -> T) -> T {
        let begun_ns = clock::coarse_ns().max(1);
        TURN.set(Turn { begun_ns, patience_ns: self.patience_ns });
        self.begun_ns.store(begun_ns, Ordering::Relaxed);
        let outcome = script();
        self.begun_ns.store(0, Ordering::Relaxed);
        let held_ns = clock::coarse_ns().saturating_sub(begun_ns);
        if self.counted.get() && held_ns >= LONG_NS {
            self.watching.long_ns.fetch_add(held_ns, Ordering::Relaxed);
            self.watching.longest_ns.fetch_max(held_ns, Ordering::Relaxed);
        }
        outcome
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.watching.lock().watched.retain(|watched| watched.number != self.number);
    }
}

/// Ends the script that runs on this thread if its turn has lasted too long.
unsafe extern "C-unwind" fn examine(state: *mut lua_State, _: *mut lua_Debug) {
    let turn = TURN.get();
    if clock::now_ns().saturating_sub(turn.begun_ns) >= turn.patience_ns {
        // SAFETY: Lua calls its hooks with the state that runs, on the thread that runs it.
        unsafe { fail(state, c"the script asked the server for nothing for longer than patience_s") }
    }
    // SAFETY: as above.
    unsafe { ffi::lua_sethook(state, None, 0, 0) };
}

/// Ends the script that runs on this thread, because the user has interrupted the driver.
unsafe extern "C-unwind" fn end(state: *mut lua_State, _: *mut lua_Debug) {
    // SAFETY: as in `examine`.
    unsafe { fail(state, c"interrupted") }
}

/// Raises an error of Lua's with the line that runs.
///
/// # Safety
/// `state` runs on this thread, and nothing of the caller's needs to be dropped when the error leaves it.
unsafe fn fail(state: *mut lua_State, why: &CStr) -> ! {
    unsafe {
        ffi::lua_sethook(state, None, 0, 0);
        ffi::luaL_where(state, 0);
        ffi::lua_pushstring(state, why.as_ptr());
        ffi::lua_concat(state, 2);
        ffi::lua_error(state)
    }
}
