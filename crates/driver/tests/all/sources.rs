//! Where connections leave from, as the server sees it.

use dyno_driver::Watch;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener};
use std::sync::{Arc, Mutex};

/// An application that counts its connections by where they come from.
fn counting(seen: Arc<Mutex<BTreeMap<IpAddr, u32>>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            *seen.lock().unwrap().entry(stream.peer_addr().unwrap().ip()).or_default() += 1;
            std::thread::spawn(move || {
                while stream.read(&mut [0; 4096]).is_ok_and(|bytes| bytes > 0) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                }
            });
        }
    });
    port
}

#[test]
fn all_threads_of_a_run_leave_from_the_urls_addresses_in_turn() {
    let seen = Arc::new(Mutex::new(BTreeMap::new()));
    let port = counting(seen.clone());
    let script = std::env::temp_dir().join(format!("dyno-sources-{}.toml", std::process::id()));
    let text = "[[transactions]]\nname = \"one\"\n[[transactions.statements]]\nrequest = \"GET /\"\n";
    std::fs::write(&script, text).unwrap();
    let job = json!({
        "url": format!("http://127.0.0.1:{port}?source=127.0.0.2,127.0.0.3"), "workload": script,
        "clients": 6, "threads": 2, "operations": 60, "duration_s": 60.0,
    });
    let mut watch = Watch { interrupted: &mut || false, on_second: None, next_slice: None };
    let tally = dyno_driver::run(&job.to_string(), &mut watch).unwrap();
    std::fs::remove_file(&script).unwrap();
    assert_eq!((&tally["operations"], &tally["errors"]), (&json!(60), &json!({})), "{tally}");
    let seen = seen.lock().unwrap();
    let by_address: Vec<(String, u32)> = seen.iter().map(|(ip, count)| (ip.to_string(), *count)).collect();
    let [(first, of_first), (second, of_second)] = &by_address[..] else { panic!("{by_address:?}") };
    assert_eq!((first.as_str(), second.as_str()), ("127.0.0.2", "127.0.0.3"));
    assert!(of_first.abs_diff(*of_second) <= 1 && of_first + of_second >= 6, "{by_address:?}");
}
