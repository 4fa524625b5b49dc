//! Firebird's client library, loaded at run time. The embedded engine is a plug-in that it loads in its turn.

use super::interfaces::{call, Master, Provider, Util};
use super::status::Status;
use crate::error::{Error, Result};
use crate::session::library::{self, Libraries};
use std::ffi::c_int;

/// What the dynamic loader is asked for where the URL names no library.
const DEFAULT_LIBRARY: &str = "libfbclient.so.2";
const ENDING: [c_int; 2] = [libc::SIGINT, libc::SIGTERM];
const REMEDY: &str = "name it in the URL: firebird:///PATH?library=/path/to/libfbclient.so.2";

/// The library's entry points.
#[derive(Clone, Copy)]
pub(super) struct Library {
    master: *mut Master,
    util: *mut Util,
    pub dispatcher: *mut Provider,
}

// SAFETY: master, util and dispatcher are documented as usable from any thread.
unsafe impl Send for Library {}

impl Library {
    /// Loads the library at `path` (or the dynamic loader's own find), once per process.
    pub fn load(path: Option<&str>) -> Result<Self> {
        static LOADED: Libraries<Library> = Libraries::new();
        LOADED.get(path.unwrap_or(DEFAULT_LIBRARY), Self::open)
    }

    fn open(path: &str) -> Result<Self> {
        type GetMaster = unsafe extern "C" fn() -> *mut Master;
        let library = library::open(path, "Firebird's client library", REMEDY)?;
        // SAFETY: the symbol has had this type since Firebird 3.
        let master = match unsafe { library.get::<GetMaster>(b"fb_get_master_interface\0") } {
            // SAFETY: fb_get_master_interface takes no argument and gives the process's only master.
            Ok(get_master) => unsafe { get_master() },
            Err(_) => return Err(not_firebird(path, "it has no fb_get_master_interface")),
        };
        if master.is_null() {
            return Err(not_firebird(path, "it gives no master interface"));
        }
        std::mem::forget(library);
        // SAFETY: Firebird's IMaster lives as long as the library, which is never unloaded, and so do the interfaces it
        // gives.
        let opened = unsafe {
            Library {
                master,
                util: call!(master, get_util_interface),
                dispatcher: call!(master, get_dispatcher),
            }
        };
        opened.leave_signals_alone();
        Ok(opened)
    }

    /// With its first attachment the library takes SIGINT and SIGTERM for itself: it then shuts its engine down and ends
    /// the process. Here it makes that attempt with no name, which it refuses, and the signals are given back.
    fn leave_signals_alone(self) {
        let status = self.status();
        let before = ENDING.map(|signal| (signal, handling(signal, std::ptr::null())));
        // SAFETY: Firebird's attachDatabase answers a name that is null by an error in the status.
        let none = unsafe {
            call!(self.dispatcher, attach_database, status.get(), std::ptr::null(), 0, std::ptr::null())
        };
        debug_assert!(none.is_null(), "there is no database without a name");
        for (signal, action) in before {
            handling(signal, &action);
        }
    }

    pub fn status(self) -> Status {
        // SAFETY: `Status::new` wants a library that is never unloaded, as `library::open`'s are.
        unsafe { Status::new(self.master, self.util) }
    }

    /// Major and minor version.
    pub fn version(self) -> (u32, u32) {
        // SAFETY: Firebird's IUtil lives as long as the library, and getClientVersion takes no argument.
        let version = unsafe { call!(self.util, get_client_version) };
        (version / 256, version % 256)
    }
}

/// How the process handles a signal; from then on as `action` says, unless it is null.
fn handling(signal: c_int, action: *const libc::sigaction) -> libc::sigaction {
    // SAFETY: sigaction(2): zeros are an action, the default one.
    let mut before = unsafe { std::mem::zeroed() };
    // SAFETY: sigaction(2) reads an action or nothing, and writes one.
    unsafe { libc::sigaction(signal, action, &mut before) };
    before
}

fn not_firebird(path: &str, why: &str) -> Error {
    Error::connect(format!("{path:?} is not the client library of Firebird 3 or later: {why}")).hint(REMEDY)
}
