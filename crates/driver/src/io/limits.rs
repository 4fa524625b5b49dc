//! What the host refuses, said with the limit that it has come to.

use crate::error::{Error, Result};
use std::path::Path;
use std::thread::{Scope, ScopedJoinHandle};

/// Begins one of so many threads.
pub(crate) fn spawned<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    number: u64,
    threads: u64,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    // Behind a pointer, so that beginning a thread is compiled once for each kind of outcome, and not for each work.
    let work: Box<dyn FnOnce() -> T + Send + 'scope> = Box::new(work);
    let begun = std::thread::Builder::new().spawn_scoped(scope, work);
    begun.map_err(|error| no_thread(&format!("thread {} of {threads}", number + 1), &error))
}

/// The error of a thread that could not be begun; `which` of them tells the reader how many there should be.
pub(crate) fn no_thread(which: &str, error: &std::io::Error) -> Error {
    let limit = reached().unwrap_or_else(|| match user_limit() {
        Some(most) => format!("the user's limit of processes and threads (ulimit -u) is {most}"),
        None => "ulimit -u, ulimit -v and vm.max_map_count limit them".to_owned(),
    });
    Error::user(format!("{which} could not be begun: {error}: {limit}"))
        .hint("ask for fewer clients or threads, or raise that limit")
}

/// The error of a descriptor that could not be had, where its limit is the reason.
pub(crate) fn no_descriptor(error: &std::io::Error) -> Option<Error> {
    let limit = match error.raw_os_error()? {
        libc::EMFILE => "ulimit -n",
        libc::ENFILE => "fs.file-max",
        _ => return None,
    };
    Some(
        Error::user("too many open files for so many clients")
            .hint(format!("raise the limit ({limit}) above the number of clients, or ask for fewer")),
    )
}

/// The limit of threads that this process has come to, where one is seen to be reached.
fn reached() -> Option<String> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    if let Some(limit) = groups.lines().find_map(group_limit) {
        return Some(limit);
    }
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    let all: u64 = load.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()?;
    ["threads-max", "pid_max"].iter().find_map(|name| {
        let most = number(&Path::new("/proc/sys/kernel").join(name))?;
        (all + 1 >= most).then(|| format!("kernel.{name} is {most}"))
    })
}

/// The limit of a line of /proc/self/cgroup, of its control group or of one around that (cgroups(7)).
fn group_limit(line: &str) -> Option<String> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let root = match controllers {
        "" => Path::new("/sys/fs/cgroup"),
        _ if controllers.split(',').any(|name| name == "pids") => Path::new("/sys/fs/cgroup/pids"),
        _ => return None,
    };
    let folder = root.join(path.trim_start_matches('/'));
    folder.ancestors().take_while(|folder| folder.starts_with(root)).find_map(|folder| {
        let (most, now) = (number(&folder.join("pids.max"))?, number(&folder.join("pids.current"))?);
        (now >= most).then(|| format!("pids.max of the control group {} is {most}", folder.display()))
    })
}

fn number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn user_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit(2) writes one rlimit.
    let failed = unsafe { libc::getrlimit(libc::RLIMIT_NPROC, &mut limit) } != 0;
    (!failed && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}
