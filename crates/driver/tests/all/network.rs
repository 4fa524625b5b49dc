//! A network's delay in whole runs: it is in every latency, once for each flight of requests.

use crate::fake::{Attack, Fake, Protocol, Stage};
use dyno_driver::Watch;
use serde_json::json;

/// A histogram tells its least value to three digits, rounded down.
const PRECISION: f64 = 0.999;
const DELAY_US: f64 = 3000.0;

/// The least latency of some transactions of this script, over a network.
fn least_us(protocol: Protocol, backend: &str, script: &str) -> f64 {
    let fake = Fake::start(protocol, Stage::Login, Attack::None);
    let file = fake.folder.join("network.sql");
    std::fs::write(&file, script).unwrap();
    let job = json!({
        "url": fake.url(), "workload": file, "clients": 4, "threads": 1, "backend": backend, "operations": 40,
        "network_delay_s": DELAY_US / 1e6,
    });
    let mut never = || false;
    let mut watch = Watch { interrupted: &mut never, on_second: None, next_slice: None };
    let tally = dyno_driver::run(&job.to_string(), &mut watch).unwrap();
    assert_eq!((&tally["operations"], &tally["errors"]), (&json!(40), &json!({})), "{tally}");
    tally["latency_us"]["min"].as_f64().unwrap()
}

#[test]
fn every_flight_of_a_run_waits_for_a_round_trip() {
    let backends = match dyno_driver::io::io_uring_works() {
        Ok(()) => vec!["epoll", "io_uring"],
        Err(_) => vec!["epoll"],
    };
    for protocol in [Protocol::Mysql, Protocol::Postgresql] {
        for backend in &backends {
            let one = least_us(protocol, backend, "\\set id 1\nSELECT v FROM t WHERE id = :id;\n");
            assert!(one >= DELAY_US * PRECISION, "{protocol:?}, {backend}: {one} us");
            let three =
                least_us(protocol, backend, "\\set id 1\nBEGIN;\nSELECT v FROM t WHERE id = :id;\nEND;\n");
            assert!(three >= 3.0 * DELAY_US * PRECISION, "{protocol:?}, {backend}: {three} us");
        }
    }
}
