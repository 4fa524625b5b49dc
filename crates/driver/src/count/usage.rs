//! What a thread of the driver costs, as the kernel accounts for it.

use crate::count::total::{Cpu, ThreadUse};
use crate::io::LoopUse;

/// A reading of the calling thread's counters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    wall_ns: u64,
    cpu: Cpu,
    run_wait_s: f64,
    loop_use: LoopUse,
    engine_cpu_ns: Option<u64>,
}

impl Reading {
    /// Reads the counters; `loop_use` is what the loop has counted itself.
    pub fn now(wall_ns: u64, loop_use: LoopUse, engine_cpu_ns: Option<u64>) -> Self {
        // SAFETY: rusage is plain numbers, for which zeros are valid. getrusage(2) writes one of them.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
            usage
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        let cpu = Cpu { user_s: seconds(usage.ru_utime), system_s: seconds(usage.ru_stime) };
        Reading { wall_ns, cpu, run_wait_s: run_wait_s(), loop_use, engine_cpu_ns }
    }

    /// What was used since an earlier reading.
    pub fn since(&self, earlier: &Reading) -> ThreadUse {
        ThreadUse {
            cpu: Cpu {
                user_s: self.cpu.user_s - earlier.cpu.user_s,
                system_s: self.cpu.system_s - earlier.cpu.system_s,
            },
            wall_s: self.wall_ns.saturating_sub(earlier.wall_ns) as f64 / 1e9,
            run_wait_s: self.run_wait_s - earlier.run_wait_s,
            system_calls: self.loop_use.system_calls - earlier.loop_use.system_calls,
            gathered_s: (self.loop_use.gathered_ns - earlier.loop_use.gathered_ns) as f64 / 1e9,
            engine_cpu_s: match (self.engine_cpu_ns, earlier.engine_cpu_ns) {
                (Some(now), Some(then)) => Some(now.saturating_sub(then) as f64 / 1e9),
                _ => None,
            },
        }
    }
}

/// How long this thread was ready to run and did not; 0 where the kernel does not say.
fn run_wait_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let wait_ns: Option<f64> = text.split_whitespace().nth(1).and_then(|field| field.parse().ok());
    wait_ns.unwrap_or(0.0) / 1e9
}

/// Binds the calling thread to one CPU.
pub(crate) fn bind(cpu: u32) -> Result<(), std::io::Error> {
    if cpu >= libc::CPU_SETSIZE as u32 {
        return Err(std::io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: CPU_SET(3) takes numbers below CPU_SETSIZE, as was looked at, of a set of plain bits, for which zeros are
    // valid. sched_setaffinity(2) reads as many bytes as it is told.
    let failed = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), &set) != 0
    };
    if failed {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}
