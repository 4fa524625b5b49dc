//! Shared libraries that sessions load at run time: each once per process, and never unloaded, because an engine keeps
//! threads of its own.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What was made of each library that is loaded, by the path that it was asked for under.
pub(super) struct Libraries<L>(Mutex<BTreeMap<String, L>>);

impl<L: Copy> Libraries<L> {
    pub const fn new() -> Self {
        Libraries(Mutex::new(BTreeMap::new()))
    }

    /// The library at `path`, opened by `open` where nobody has asked for it yet.
    pub fn get(&self, path: &str, open: impl FnOnce(&str) -> Result<L>) -> Result<L> {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = loaded.get(path) {
            return Ok(*library);
        }
        let library = open(path)?;
        loaded.insert(path.to_owned(), library);
        Ok(library)
    }
}

/// Loads the library at `path`, or what the dynamic loader finds under that name. `title` says whose it is, `remedy`
/// how to name another one.
pub(super) fn open(path: &str, title: &str, remedy: &str) -> Result<libloading::Library> {
    // SAFETY: dlopen(3) runs the library's initialisers. That the user named a trustworthy file is for them to know.
    unsafe { libloading::Library::new(path) }.map_err(|cause| {
        let cause = cause.to_string();
        Error::connect(format!("{title} {path:?} cannot be loaded: {cause}")).hint(hint(path, &cause, remedy))
    })
}

fn hint(path: &str, cause: &str, remedy: &str) -> String {
    // The loader names the file that it did not find, which may be one that the library needs.
    match cause.split(':').next() {
        Some(old) if cause.contains("version `") => {
            format!("the library was built for a newer {old} than this machine's: take one built for this machine")
        }
        Some(missing) if missing != path && missing.contains(".so") => {
            format!("install the library {missing}, which the named one needs")
        }
        _ => remedy.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_follows_from_what_the_loader_says() {
        let path = "/x/libone.so";
        for (cause, said) in [
            ("/x/libone.so: cannot open shared object file: No such file or directory", "name another"),
            ("libtwo.so.1: cannot open shared object file: No such file or directory", "libtwo.so.1"),
            ("/lib/libc.so.6: version `GLIBC_2.99' not found (required by /x/libone.so)", "newer /lib/libc"),
        ] {
            assert!(hint(path, cause, "name another").contains(said), "{cause}");
        }
    }

    #[test]
    fn a_library_is_opened_once_and_a_failure_is_not_kept() {
        let libraries = Libraries::new();
        assert!(libraries.get("one", |_| Err(Error::connect("not there"))).is_err());
        assert_eq!(libraries.get("one", |_| Ok(1)).unwrap(), 1);
        assert_eq!(libraries.get("one", |_| panic!("opened twice")).unwrap(), 1);
    }
}
