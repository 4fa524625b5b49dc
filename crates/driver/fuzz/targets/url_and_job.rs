//! URLs and jobs, as the caller gives them.

#![no_main]

use dyno_driver::job::Job;
use dyno_driver::session::Target;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(error) = Target::parse(text) {
        assert!(!error.hint_text().is_empty());
    }
    if let Ok(job) = Job::parse(text) {
        let _ = job.target();
    }
});
