//! How long scripts hold their thread, and an end for those that would hold it for ever.
//!
//! A script that computes keeps all clients of its thread waiting. Nobody can tell beforehand how long it will, so a
//! watchdog looks at every script now and then, from a thread of its own. One that was left alone for too long gets a
//! hook, which Lua calls between two instructions of the script; the hook ends the script with an error. Setting it
//! changes tables that the script runs by, so only the thread that runs the script may do that, be it in the handler of a
//! signal. The watchdog sends that thread one.

use crate::clock;
use crate::error::Result;
use crate::io::no_thread;
use mlua::ffi::{self, lua_Debug, lua_State};
use mlua::Thread;
use std::cell::Cell;
use std::ffi::{c_int, CStr};
use std::ptr;
use std::sync::atomic::{compiler_fence, AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Other clients of the thread notice a wait of this length. The coarse clock tells it well enough.
const LONG_NS: u64 = 50_000_000;
/// The share of a run that long turns may take.
const SHARE_MAX: f64 = 0.02;
const TICK: Duration = Duration::from_millis(250);

thread_local! {
    /// The turn of the script that this thread is running.
    static TURN: Cell<Turn> = const { Cell::new(NO_TURN) };
    /// The system's number of this thread, once it was asked for.
    static THREAD: Cell<c_int> = const { Cell::new(0) };
}

#[derive(Clone, Copy)]
struct Turn {
    begun_ns: u64,
    patience_ns: u64,
    /// Null where no hook may be set now.
    state: *mut lua_State,
    /// Set where the script is to end in any case. It lives as long as the turn does.
    interrupted: *const AtomicBool,
}

const NO_TURN: Turn =
    Turn { begun_ns: 0, patience_ns: u64::MAX, state: ptr::null_mut(), interrupted: ptr::null() };

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
    now: Arc<Now>,
}

/// What a script is at, as the watchdog sees it.
#[derive(Default)]
struct Now {
    /// 0 between turns.
    begun_ns: AtomicU64,
    /// The system's number of the thread that runs it.
    thread: AtomicI32,
    interrupted: AtomicBool,
}

/// The turns of one script: from when it is resumed to when it yields.
pub(super) struct Turns {
    number: u64,
    patience_ns: u64,
    state: *mut lua_State,
    now: Arc<Now>,
    counted: Cell<bool>,
    watching: Arc<Watching>,
}

impl Watchdog {
    /// `patience_ns`: the longest turn of a script.
    pub fn new(patience_ns: u64) -> Self {
        Watchdog { patience_ns, watching: Arc::default(), thread: Mutex::default() }
    }

    /// Watches the state of a coroutine until the turns are dropped, which must be before the state is.
    pub fn watch(&self, coroutine: &Thread) -> Result<Turns> {
        let (state, now) = (coroutine.state(), Arc::<Now>::default());
        let mut states = self.watching.lock();
        states.watched_ever += 1;
        let number = states.watched_ever;
        states.watched.push(Watched { number, now: Arc::clone(&now) });
        drop(states);
        self.wake()?;
        Ok(Turns {
            number,
            patience_ns: self.patience_ns,
            state,
            now,
            counted: Cell::new(false),
            watching: Arc::clone(&self.watching),
        })
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
    fn wake(&self) -> Result<()> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            HANDLER.call_once(handle_the_signal);
            let watching = Arc::clone(&self.watching);
            let begun = std::thread::Builder::new().spawn(move || watching.look_after());
            *thread = Some(begun.map_err(|error| no_thread("the thread that watches scripts", &error))?);
        }
        Ok(())
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
            let now_ns = clock::now_ns();
            for Watched { now, .. } in &states.watched {
                now.interrupted.store(states.interrupted, Ordering::Relaxed);
                let begun_ns = now.begun_ns.load(Ordering::Acquire);
                if begun_ns != 0 && now_ns.saturating_sub(begun_ns) >= TICK.as_nanos() as u64 {
                    let thread = now.thread.load(Ordering::Relaxed);
                    // SAFETY: takes numbers. A thread that is gone by now, or runs another script, takes no harm.
                    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal()) };
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
        self.now.thread.store(this_thread(), Ordering::Relaxed);
        self.now.begun_ns.store(begun_ns, Ordering::Release);
        let (state, interrupted) = (self.state, &raw const self.now.interrupted);
        let turn = Running::begin(Turn { begun_ns, patience_ns: self.patience_ns, state, interrupted });
        let outcome = script();
        drop(turn);
        self.now.begun_ns.store(0, Ordering::Relaxed);
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

/// A turn of this thread, until it is dropped.
struct Running;

impl Running {
    fn begin(turn: Turn) -> Self {
        TURN.set(turn);
        // The signal's handler, on this thread, must find it before the script runs.
        compiler_fence(Ordering::SeqCst);
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        TURN.set(NO_TURN);
        compiler_fence(Ordering::SeqCst);
    }
}

fn this_thread() -> c_int {
    if THREAD.get() == 0 {
        // SAFETY: gettid(2) takes no argument and does not fail.
        THREAD.set(unsafe { libc::gettid() });
    }
    THREAD.get()
}

/// A signal of real time, which neither the C library nor Python uses.
fn signal() -> c_int {
    libc::SIGRTMIN() + 5
}

static HANDLER: Once = Once::new();

fn handle_the_signal() {
    let handler: extern "C" fn(c_int) = hook;
    // SAFETY: sigaction(2): zeros are an action with an empty mask. The handler only does what signal-safety(7) and
    // Lua's manual allow in one: it reads thread-locals that need no making, and calls lua_sethook.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal(), &action, ptr::null_mut());
    }
}

/// Hooks the script that this thread runs. Called between any two instructions of the thread.
extern "C" fn hook(_: c_int) {
    let turn = TURN.get();
    if turn.state.is_null() {
        return;
    }
    // SAFETY: the flag and the state live as long as the turn. Lua's manual allows lua_sethook in the handler of a
    // signal on the thread that runs the state, and `unhook` keeps this one out while the thread does the same itself.
    unsafe {
        let hook = if (*turn.interrupted).load(Ordering::Relaxed) { end } else { examine };
        ffi::lua_sethook(turn.state, Some(hook), ffi::LUA_MASKCOUNT, 1);
    }
    #[cfg(test)]
    tests::HOOKED.set(true);
}

/// Takes the hook away.
///
/// # Safety
/// `state` runs on this thread.
unsafe fn unhook(state: *mut lua_State) {
    let turn = TURN.replace(NO_TURN);
    compiler_fence(Ordering::SeqCst);
    unsafe { ffi::lua_sethook(state, None, 0, 0) };
    compiler_fence(Ordering::SeqCst);
    TURN.set(turn);
}

/// Ends the script that runs on this thread if its turn has lasted too long.
unsafe extern "C-unwind" fn examine(state: *mut lua_State, _: *mut lua_Debug) {
    let turn = TURN.get();
    if clock::now_ns().saturating_sub(turn.begun_ns) >= turn.patience_ns {
        // SAFETY: Lua calls its hooks with the state that runs, on the thread that runs it.
        unsafe { fail(state, c"the script asked the server for nothing for longer than patience_s") }
    }
    // SAFETY: the state that a hook is called with runs on this thread, as `unhook` wants it.
    unsafe { unhook(state) };
}

/// Ends the script that runs on this thread, because the user has interrupted the driver.
unsafe extern "C-unwind" fn end(state: *mut lua_State, _: *mut lua_Debug) {
    // SAFETY: Lua calls its hooks with the state that runs, on the thread that runs it.
    unsafe { fail(state, c"interrupted") }
}

/// Raises an error of Lua's with the line that runs.
///
/// # Safety
/// `state` runs on this thread, and nothing of the caller's needs to be dropped when the error leaves it.
unsafe fn fail(state: *mut lua_State, why: &CStr) -> ! {
    unsafe {
        unhook(state);
        ffi::luaL_where(state, 0);
        ffi::lua_pushstring(state, why.as_ptr());
        ffi::lua_concat(state, 2);
        ffi::lua_error(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlua::{Function, Lua};

    thread_local! {
        /// Whether this thread has set a hook.
        pub(super) static HOOKED: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn a_script_that_computes_for_ever_is_hooked_on_its_own_thread_and_ends() {
        let lua = Lua::new();
        let endless: Function =
            lua.load("if jit then jit.off() end while true do end").into_function().unwrap();
        let coroutine = lua.create_thread(endless).unwrap();
        let watchdog = Watchdog::new(600_000_000);
        let turns = watchdog.watch(&coroutine).unwrap();
        let error = turns.during(|| coroutine.resume::<()>(())).unwrap_err();
        assert!(error.to_string().contains("longer than patience_s"), "{error}");
        assert!(HOOKED.get(), "by this thread, and no other");
        assert!(TURN.get().state.is_null(), "between turns nobody is hooked");
        hook(0);
    }
}
