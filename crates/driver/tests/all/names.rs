//! When and where a server's name is looked up. Names under `.dyno` are answered here, in front of the C library.

use dyno_driver::io::{block_on, sleep_ns, Address, Backend, Executor, Stream};
use dyno_driver::session::Target;
use dyno_driver::Watch;
use serde_json::json;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, CStr};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{channel, Receiver};
use std::sync::Mutex;
use std::time::Duration;

/// No test takes so long that it ends by this.
const PATIENCE: Duration = Duration::from_secs(20);

struct Entry {
    address: &'static CStr,
    asked: u32,
    /// What each answer waits for.
    held: Option<Receiver<()>>,
}

static NAMES: Mutex<BTreeMap<String, Entry>> = Mutex::new(BTreeMap::new());

fn name(name: &str, address: &'static CStr, held: Option<Receiver<()>>) {
    let asked = asked(name);
    NAMES.lock().unwrap().insert(name.to_owned(), Entry { address, asked, held });
}

fn asked(name: &str) -> u32 {
    NAMES.lock().unwrap().get(name).map_or(0, |entry| entry.asked)
}

type GetAddrInfo = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const libc::addrinfo,
    *mut *mut libc::addrinfo,
) -> c_int;

/// # Safety
/// As for getaddrinfo(3), which this stands in front of.
#[no_mangle]
unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const libc::addrinfo,
    found: *mut *mut libc::addrinfo,
) -> c_int {
    // SAFETY: the symbol of this name that comes next is the C library's.
    let next: GetAddrInfo =
        unsafe { std::mem::transmute(libc::dlsym(libc::RTLD_NEXT, c"getaddrinfo".as_ptr())) };
    // SAFETY: the caller gives no name or one that ends with a zero.
    let text = if node.is_null() { "" } else { unsafe { CStr::from_ptr(node) }.to_str().unwrap_or_default() };
    let own = NAMES.lock().unwrap().get_mut(text).map(|entry| {
        entry.asked += 1;
        (entry.address, entry.held.take())
    });
    let node = match own {
        None => node,
        Some((_, Some(held))) if held.recv_timeout(PATIENCE).is_err() => return libc::EAI_AGAIN,
        Some((address, _)) => address.as_ptr(),
    };
    // SAFETY: the pointers are the caller's, but for an address that lives for ever.
    unsafe { next(node, service, hints, found) }
}

/// A server that accepts connections and keeps them for as long as the test's process lives.
fn listen(place: &str) -> u16 {
    let listener = TcpListener::bind(place).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().flatten().for_each(std::mem::forget));
    port
}

fn target(host: &str, port: u16) -> (Target, Address) {
    let mut target = Target::parse(&format!("mysql://{host}:{port}/x")).unwrap();
    target.connect_timeout = PATIENCE;
    (target, Address::Tcp { host: host.to_owned(), port })
}

async fn open(target: &Target, address: &Address) -> Result<(), String> {
    let opened = Stream::open(address, &target.shared, target.connect_timeout, target.answer_timeout).await;
    opened.map(drop).map_err(|error| error.message().to_owned())
}

fn opened(target: &Target, address: &Address) -> Result<(), String> {
    block_on(Backend::Epoll, open(target, address), || false).unwrap().unwrap()
}

#[test]
fn a_run_looks_a_name_up_once_however_often_it_connects() {
    name("once.dyno", c"127.0.0.1", None);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // An application that closes the connection behind each answer.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                if stream.read(&mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {
                    let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
                    let _ = stream.write_all(answer);
                }
            });
        }
    });
    let script = std::env::temp_dir().join(format!("dyno-names-{}.toml", std::process::id()));
    std::fs::write(
        &script,
        "[[transactions]]\nname = \"one\"\n[[transactions.statements]]\nrequest = \"GET /\"\n",
    )
    .unwrap();
    let job = json!({
        "url": format!("http://once.dyno:{port}"), "workload": script, "clients": 4, "threads": 2,
        "operations": 40, "duration_s": 60.0,
    });
    let mut watch = Watch { interrupted: &mut || false, on_second: None, next_slice: None };
    let tally = dyno_driver::run(&job.to_string(), &mut watch).unwrap();
    std::fs::remove_file(&script).unwrap();
    assert_eq!((&tally["operations"], &tally["errors"]), (&json!(40), &json!({})), "{tally}");
    assert_eq!(asked("once.dyno"), 1);
}

#[test]
fn a_loop_goes_on_while_a_name_is_looked_up() {
    let (release, held) = channel();
    name("slow.dyno", c"127.0.0.1", Some(held));
    let (target, address) = target("slow.dyno", listen("127.0.0.1:0"));
    let outcome = Cell::new(None);
    let mut executor = Executor::new(Backend::Epoll).unwrap();
    executor.spawn(async { outcome.set(Some(open(&target, &address).await)) });
    // The answer waits for a task of the same loop.
    executor.spawn(async {
        while asked("slow.dyno") == 0 {
            sleep_ns(100_000).await;
        }
        release.send(()).unwrap();
    });
    executor.run(|| false).unwrap();
    drop(executor);
    assert_eq!(outcome.into_inner(), Some(Ok(())));
}

#[test]
fn a_server_that_has_moved_is_found_again() {
    name("moves.dyno", c"127.0.0.2", None);
    let port = listen("127.0.0.3:0");
    let before = TcpListener::bind(("127.0.0.2", port)).unwrap();
    let (target, address) = target("moves.dyno", port);
    assert_eq!(
        (opened(&target, &address), opened(&target, &address), asked("moves.dyno")),
        (Ok(()), Ok(()), 1)
    );
    drop(before);
    // Where nothing has moved it is not tried twice, and what is wrong with it is said.
    let refused = format!("moves.dyno:{port}: {}", std::io::Error::from_raw_os_error(libc::ECONNREFUSED));
    assert_eq!((opened(&target, &address), asked("moves.dyno")), (Err(refused), 2));
    name("moves.dyno", c"127.0.0.3", None);
    assert_eq!(
        (opened(&target, &address), opened(&target, &address), asked("moves.dyno")),
        (Ok(()), Ok(()), 3)
    );
}
