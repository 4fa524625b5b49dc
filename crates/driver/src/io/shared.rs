//! What the connections of a run to one server share: what each would have to find out anew, and by whom they are ended.

use super::interrupts::Interrupts;
use super::left::Left;
use super::name::Name;
use super::tls::Configurations;

#[derive(Debug, Default)]
pub struct Shared {
    pub(super) name: Name,
    pub(super) tls: Configurations,
    pub(crate) interrupts: Interrupts,
    pub(crate) left: Left,
}
