//! Firebird's client library, loaded at run time. The embedded engine is a plug-in that it loads in its turn.

use super::interfaces::{call, Master, Provider, Util};
use super::status::Status;
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// What the dynamic loader is asked for where the URL names no library.
const DEFAULT_LIBRARY: &str = "libfbclient.so.2";

/// The library's entry points. It stays loaded until the process ends: the engine keeps threads of its own.
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
        static LOADED: OnceLock<Mutex<BTreeMap<String, Library>>> = OnceLock::new();
        let path = path.unwrap_or(DEFAULT_LIBRARY);
        let mut loaded = LOADED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = loaded.get(path) {
            return Ok(*library);
        }
        let library = Self::open(path)?;
        loaded.insert(path.to_owned(), library);
        Ok(library)
    }

    fn open(path: &str) -> Result<Self> {
        type GetMaster = unsafe extern "C" fn() -> *mut Master;
        // SAFETY: loading runs the library's initialisers; that the user named a trustworthy file is for them to know.
        let library = unsafe { libloading::Library::new(path) }
            .map_err(|cause| not_loaded(path, &cause.to_string()))?;
        // SAFETY: the symbol has had this type since Firebird 3.
        let master = match unsafe { library.get::<GetMaster>(b"fb_get_master_interface\0") } {
            // SAFETY: takes no argument and gives the process's only master.
            Ok(get_master) => unsafe { get_master() },
            Err(_) => return Err(not_firebird(path, "it has no fb_get_master_interface")),
        };
        if master.is_null() {
            return Err(not_firebird(path, "it gives no master interface"));
        }
        std::mem::forget(library);
        // SAFETY: master is the live interface that the library gave.
        unsafe {
            Ok(Library {
                master,
                util: call!(master, get_util_interface),
                dispatcher: call!(master, get_dispatcher),
            })
        }
    }

    pub fn status(self) -> Status {
        // SAFETY: the library is never unloaded.
        unsafe { Status::new(self.master, self.util) }
    }

    /// Major and minor version.
    pub fn version(self) -> (u32, u32) {
        // SAFETY: util is the library's.
        let version = unsafe { call!(self.util, get_client_version) };
        (version / 256, version % 256)
    }
}

fn not_loaded(path: &str, cause: &str) -> Error {
    // The loader names the file that it did not find, which may be one that the library needs.
    let hint = match cause.split(':').next() {
        Some(missing) if missing != path && missing.contains(".so") => {
            format!("install the library {missing}, which Firebird's needs")
        }
        _ => "name it in the URL: firebird:///PATH?library=/path/to/libfbclient.so.2".to_owned(),
    };
    Error::connect(format!("Firebird's client library {path:?} cannot be loaded: {cause}")).hint(hint)
}

fn not_firebird(path: &str, why: &str) -> Error {
    Error::connect(format!("{path:?} is not the client library of Firebird 3 or later: {why}"))
        .hint("name the right one in the URL: firebird:///PATH?library=/path/to/libfbclient.so.2")
}
