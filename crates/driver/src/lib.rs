//! Dyno's load driver: prepares, runs, checks and cleans up a workload against a database server, and says what it
//! cost. It knows nothing of Python, of studies or of Dyno's files.

// Sessions and workloads live on one thread each; their futures need not be `Send`, which is all the lint is about.
#![allow(async_fn_in_trait)]

pub mod clock;
pub mod error;
pub mod random;
pub mod session;
pub mod workload;
