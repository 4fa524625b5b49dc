//! Counting: what each operation leaves behind, second by second and over a whole run.

pub(crate) mod counters;
pub mod digest;
pub mod hdr_log;
pub mod histogram;
pub mod ledger;
pub mod portion;
pub mod recall;
pub mod recorder;
pub mod replayed;
pub mod series;
pub mod statements;
pub mod tally;
pub mod total;
pub mod usage;
