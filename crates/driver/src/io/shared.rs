//! What the connections of a run to one server share, so that each need not find it out anew.

use super::name::Name;
use super::tls::Configurations;

#[derive(Debug, Default)]
pub struct Shared {
    pub(super) name: Name,
    pub(super) tls: Configurations,
}
