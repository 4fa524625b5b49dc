//! What the fuzz targets share: a server that says what the fuzzer wants, and a session that answers without one.

mod conversation;
#[path = "../../tests/echo/mod.rs"]
mod echo;
mod script;

pub use conversation::{converse, Listener};
pub use script::run_script;
