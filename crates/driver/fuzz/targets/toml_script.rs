//! Workloads in TOML: read, compiled, loaded, run, checked.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| dyno_fuzz::run_script(data, "toml"));
