//! The event loop against real sockets: the same behaviour over io_uring and over epoll.

use dyno_driver::error::Fate;
use dyno_driver::io::{block_on, sleep_ns, within, Address, Backend, Executor, Stream};
use dyno_driver::session::Target;
use std::cell::{Cell, RefCell};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn backends() -> Vec<Backend> {
    let mut all = vec![Backend::Epoll];
    // Where the kernel allows it: a container often does not.
    all.extend(Backend::choose("io_uring"));
    all
}

fn target() -> Target {
    let mut target = Target::parse("mysql://h/x").unwrap();
    target.connect_timeout = Duration::from_secs(5);
    target
}

/// A server on a socket of its own that serves each connection on a thread.
fn serve(name: &str, connection: impl Fn(UnixStream) + Send + Sync + Clone + 'static) -> Address {
    let path: PathBuf = std::env::temp_dir().join(format!("dyno-{}-{name}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = connection.clone();
            std::thread::spawn(move || connection(stream));
        }
    });
    Address::Unix(path)
}

fn echo(mut stream: UnixStream) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

async fn round_trip(stream: &mut Stream, message: &[u8]) {
    stream.outbox().extend_from_slice(message);
    stream.send().unwrap();
    stream.need(message.len()).await.unwrap();
    assert!(&stream.inbox()[..message.len()] == message, "the echo differs");
    stream.consume(message.len());
}

#[test]
fn many_connections_of_one_thread_get_their_own_bytes_back() {
    for backend in backends() {
        let (address, target, done) = (serve(backend.as_str(), echo), target(), Cell::new(0));
        let mut executor = Executor::new(backend).unwrap();
        for number in 0..100u32 {
            let (address, target, done) = (&address, &target, &done);
            executor.spawn(async move {
                let mut stream =
                    Stream::open(address, &target.shared, target.connect_timeout, target.answer_timeout)
                        .await
                        .unwrap();
                for round in 0..50u32 {
                    let message = format!("{number}:{round}").repeat(1 + (round % 7) as usize * 300);
                    round_trip(&mut stream, message.as_bytes()).await;
                }
                done.set(done.get() + 1);
            });
        }
        executor.run(|| false).unwrap();
        assert_eq!(done.get(), 100);
    }
}

#[test]
fn a_message_larger_than_every_buffer_goes_both_ways() {
    for backend in backends() {
        let (address, target) = (serve(&format!("large-{}", backend.as_str()), echo), target());
        let message: Vec<u8> = (0..12_000_000u32).map(|i| (i * 7 + i / 251) as u8).collect();
        let traffic = block_on(
            backend,
            async {
                let mut stream =
                    Stream::open(&address, &target.shared, target.connect_timeout, target.answer_timeout)
                        .await
                        .unwrap();
                round_trip(&mut stream, &message).await;
                round_trip(&mut stream, b"small again").await;
                stream.traffic()
            },
            || false,
        );
        let traffic = traffic.unwrap().unwrap();
        assert_eq!((traffic.bytes_sent, traffic.bytes_received), (12_000_011, 12_000_011));
    }
}

#[test]
fn a_server_that_closes_in_the_middle_of_an_answer_is_noticed() {
    for backend in backends() {
        let address = serve(&format!("closing-{}", backend.as_str()), |mut stream| {
            let _ = stream.read(&mut [0; 16]);
            let _ = stream.write_all(b"half");
        });
        let target = target();
        let outcome = block_on(
            backend,
            async {
                let mut stream =
                    Stream::open(&address, &target.shared, target.connect_timeout, target.answer_timeout)
                        .await
                        .unwrap();
                stream.outbox().extend_from_slice(b"question");
                stream.send().unwrap();
                let outcome = stream.need(8).await;
                assert_eq!(stream.inbox(), b"half");
                outcome
            },
            || false,
        );
        let error = outcome.unwrap().unwrap().unwrap_err();
        assert_eq!((error.fate(), error.label()), (Fate::Lost, "connection closed"));
    }
}

#[test]
fn a_connection_that_its_server_has_closed_is_known_to_have_ended() {
    for backend in backends() {
        let address = serve(&format!("ended-{}", backend.as_str()), |mut stream| {
            let _ = stream.write_all(b"bye");
        });
        let target = target();
        let ended = block_on(
            backend,
            async {
                let mut stream =
                    Stream::open(&address, &target.shared, target.connect_timeout, target.answer_timeout)
                        .await
                        .unwrap();
                stream.need(3).await.unwrap();
                assert!(!stream.has_ended(), "what it sent is still to be read");
                stream.consume(3);
                let ended = async {
                    while !stream.has_ended() {
                        sleep_ns(1_000_000).await;
                    }
                };
                within(target.connect_timeout, ended).await
            },
            || false,
        );
        assert_eq!(ended.unwrap().unwrap(), Some(()), "{backend:?}");
    }
}

#[test]
fn on_a_crowded_machine_answers_that_wait_for_each_other_all_come_back() {
    for backend in backends() {
        let (address, target, done) =
            (serve(&format!("crowd-{}", backend.as_str()), echo), target(), Cell::new(0));
        let mut executor = Executor::new(backend).unwrap().giving_way(Arc::new(AtomicBool::new(true)));
        for _ in 0..64 {
            let (address, target, done) = (&address, &target, &done);
            executor.spawn(async move {
                let mut stream =
                    Stream::open(address, &target.shared, target.connect_timeout, target.answer_timeout)
                        .await
                        .unwrap();
                for _ in 0..200 {
                    round_trip(&mut stream, b"hello").await;
                }
                done.set(done.get() + 1);
            });
        }
        executor.run(|| false).unwrap();
        assert_eq!(done.get(), 64);
    }
}

#[test]
fn over_a_network_each_flight_waits_for_a_round_trip_while_others_go_on() {
    const ROUND_TRIP: Duration = Duration::from_millis(20);
    for backend in backends() {
        let (address, target) = (serve(&format!("network-{}", backend.as_str()), echo), target());
        let (turns, waits) = (Cell::new(0), RefCell::new(Vec::new()));
        let mut executor = Executor::new(backend).unwrap().over_network(ROUND_TRIP);
        executor.spawn(async {
            let (since, turns_before) = (Instant::now(), turns.get());
            let mut stream =
                Stream::open(&address, &target.shared, target.connect_timeout, target.answer_timeout)
                    .await
                    .unwrap();
            waits.borrow_mut().push((since.elapsed(), turns.get() - turns_before));
            for _ in 0..3 {
                let (since, turns_before) = (Instant::now(), turns.get());
                round_trip(&mut stream, b"hello").await;
                waits.borrow_mut().push((since.elapsed(), turns.get() - turns_before));
            }
        });
        executor.spawn(async {
            while waits.borrow().len() < 4 {
                sleep_ns(100_000).await;
                turns.set(turns.get() + 1);
            }
        });
        executor.run(|| false).unwrap();
        drop(executor);
        for (wait, turns) in waits.into_inner() {
            assert!(wait >= ROUND_TRIP && turns > 0, "{backend:?}: {wait:?}, {turns} turns of the other");
        }
    }
}

#[test]
fn over_a_network_too_last_words_arrive() {
    for backend in backends() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let address = serve(&format!("words-{}", backend.as_str()), move |mut stream| {
            let mut text = String::new();
            let _ = stream.read_to_string(&mut text);
            let _ = sender.send(text);
        });
        let target = target();
        let mut executor = Executor::new(backend).unwrap().over_network(Duration::from_millis(5));
        executor.spawn(async {
            let mut stream =
                Stream::open(&address, &target.shared, target.connect_timeout, target.answer_timeout)
                    .await
                    .unwrap();
            stream.outbox().extend_from_slice(b"goodbye");
            stream.send().unwrap();
        });
        executor.run(|| false).unwrap();
        drop(executor);
        assert_eq!(receiver.recv_timeout(Duration::from_secs(5)).as_deref(), Ok("goodbye"));
    }
}

#[test]
fn a_loop_gives_way_to_the_server_while_it_lives_unless_it_is_the_server() {
    // SAFETY: the call takes a number only; 0 is this thread.
    let policy = || unsafe { libc::sched_getscheduler(0) };
    for backend in backends().into_iter().chain([Backend::Blocking]) {
        let seen = Cell::new(None);
        let mut executor = Executor::new(backend).unwrap().giving_way(Arc::default());
        executor.spawn(async { seen.set(Some(policy())) });
        executor.run(|| false).unwrap();
        drop(executor);
        let wanted = if backend == Backend::Blocking { libc::SCHED_OTHER } else { libc::SCHED_BATCH };
        assert_eq!((seen.into_inner(), policy()), (Some(wanted), libc::SCHED_OTHER), "{backend:?}");
    }
}

#[test]
fn a_silent_server_is_given_up_while_others_go_on() {
    for backend in backends() {
        let silent = serve(&format!("silent-{}", backend.as_str()), |stream| {
            std::thread::sleep(Duration::from_secs(5));
            drop(stream);
        });
        let (lively, mut target) = (serve(&format!("lively-{}", backend.as_str()), echo), target());
        target.answer_timeout = Duration::from_millis(300);
        let (label, rounds) = (Cell::new(None), Cell::new(0));
        let mut executor = Executor::new(backend).unwrap();
        executor.spawn(async {
            let mut stream =
                Stream::open(&silent, &target.shared, target.connect_timeout, target.answer_timeout)
                    .await
                    .unwrap();
            let error = stream.need(1).await.unwrap_err();
            label.set(Some(error.label().to_owned()));
        });
        executor.spawn(async {
            let mut stream =
                Stream::open(&lively, &target.shared, target.connect_timeout, target.answer_timeout)
                    .await
                    .unwrap();
            for _ in 0..10 {
                round_trip(&mut stream, b"hello").await;
                rounds.set(rounds.get() + 1);
                sleep_ns(1_000_000).await;
            }
        });
        executor.run(|| false).unwrap();
        drop(executor);
        assert_eq!((label.into_inner().as_deref(), rounds.get()), (Some("no answer"), 10));
    }
}

#[test]
fn a_server_that_is_not_there_is_a_failure_to_connect_with_a_hint() {
    for backend in backends() {
        let target = target();
        for address in [
            Address::Unix("/nonexistent/dyno.sock".into()),
            // Port 1 of the loopback interface: nobody listens there.
            Address::Tcp { host: "127.0.0.1".into(), port: 1 },
        ] {
            let outcome = block_on(
                backend,
                async {
                    Stream::open(&address, &target.shared, target.connect_timeout, target.answer_timeout)
                        .await
                        .map(drop)
                },
                || false,
            );
            let error = outcome.unwrap().unwrap().unwrap_err();
            assert_eq!(error.kind(), dyno_driver::Kind::Connect);
            assert!(!error.hint_text().is_empty(), "{error}");
        }
    }
}

#[test]
fn a_connection_closed_by_us_is_closed_at_the_server_too() {
    for backend in backends() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let address = serve(&format!("leaving-{}", backend.as_str()), move |mut stream| {
            let mut text = String::new();
            let _ = stream.read_to_string(&mut text);
            let _ = sender.send(text);
        });
        let target = target();
        block_on(
            backend,
            async {
                let mut stream =
                    Stream::open(&address, &target.shared, target.connect_timeout, target.answer_timeout)
                        .await
                        .unwrap();
                stream.outbox().extend_from_slice(b"goodbye");
                stream.send().unwrap();
            },
            || false,
        )
        .unwrap();
        assert_eq!(receiver.recv_timeout(Duration::from_secs(5)).as_deref(), Ok("goodbye"));
    }
}

/// A listener that accepts nothing: once its queue is full, who wants to connect waits.
#[test]
fn a_connection_that_is_given_up_while_it_is_opened_keeps_no_descriptor() {
    for backend in backends() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        // SAFETY: the descriptor is open; the second call only makes the queue shorter.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        let port = listener.local_addr().unwrap().port();
        let address = Address::Tcp { host: "127.0.0.1".into(), port };
        let waiting = || {
            let to = format!(" 0100007F:{port:04X} 02 ");
            std::fs::read_to_string("/proc/net/tcp").unwrap().matches(&to).count()
        };
        let shared = target().shared;
        let attempt = |limit| within(limit, Stream::open(&address, &shared, Duration::MAX, Duration::MAX));
        let counts = block_on(
            backend,
            async {
                let mut queued = Vec::new();
                while let Some(stream) = attempt(Duration::from_millis(50)).await {
                    queued.push(stream.unwrap());
                }
                let mut under_way = std::pin::pin!(attempt(Duration::from_millis(50)));
                let polled = within(Duration::from_millis(10), under_way.as_mut()).await.is_none();
                let during = waiting();
                under_way.await;
                sleep_ns(1_000_000).await;
                (polled, during, waiting())
            },
            || false,
        );
        assert_eq!(counts.unwrap(), Some((true, 1, 0)), "{backend:?}");
    }
}

#[test]
fn an_abandoned_run_ends_at_once() {
    for backend in backends() {
        let outcome = block_on(backend, sleep_ns(u64::MAX / 4), || true).unwrap();
        assert!(outcome.is_none());
    }
}
