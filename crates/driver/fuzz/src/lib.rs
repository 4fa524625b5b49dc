//! What the fuzz targets share: a server that says what the fuzzer wants, and a session that answers without one.

mod conversation;
mod script;
#[path = "../../tests/all/stand_in.rs"]
mod stand_in;

pub use conversation::{converse, Listener};
pub use script::run_script;
