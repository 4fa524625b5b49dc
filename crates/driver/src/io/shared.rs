//! What the connections of a run to one server share: what each would have to find out anew, and by whom they are ended.

use super::interrupts::Interrupts;
use super::left::Left;
use super::name::Name;
use super::sources::Sources;
use super::tls::Configurations;
use crate::error::Result;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

#[derive(Debug, Default)]
pub struct Shared {
    names: Mutex<BTreeMap<(String, u16), Arc<Name>>>,
    sources: OnceLock<Arc<Sources>>,
    pub(super) tls: Configurations,
    pub(crate) interrupts: Interrupts,
    pub(crate) left: Left,
    /// Whether anyone has looked for a pooler between these connections and the server.
    pub(crate) looked_for_pooler: AtomicBool,
}

impl Shared {
    /// Of connections that leave from the addresses of a list.
    pub(crate) fn from_sources(list: &str) -> Result<Self> {
        Ok(Shared { sources: OnceLock::from(Arc::new(Sources::parse(list)?)), ..Shared::default() })
    }

    /// Has connections leave from where those of `other` do, and take turns with them, unless they do so already.
    pub(crate) fn leave_as(&self, other: &Shared) {
        if let Some(sources) = other.sources.get() {
            self.sources.get_or_init(|| sources.clone());
        }
    }

    /// What is known of the name of one of the servers that the connections lead to.
    pub(super) fn name(&self, host: &str, port: u16) -> Arc<Name> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.entry((host.to_owned(), port)).or_default().clone()
    }

    /// Where connections leave from, if the URL says so.
    pub(super) fn sources(&self) -> Option<&Sources> {
        self.sources.get().map(Arc::as_ref)
    }
}
