//! Opening a connection without blocking the other ones.

use super::address::Address;
use super::executor::{running, sleep_ns, with_loop, with_loop_if_any};
use super::limits::no_descriptor;
use super::shared::Shared;
use super::slots::{Ending, Slot};
use crate::clock;
use crate::error::{Error, Result};
use socket2::{Domain, SockAddr, Socket, Type};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::task::Poll;
use std::time::Duration;

/// How long to wait when a server's queue of new connections is full.
const QUEUE_FULL_WAIT_NS: u64 = 2_000_000;
/// How long one of several addresses is waited for before the next one is tried (RFC 8305, section 5).
const NEXT_ADDRESS_NS: u64 = 250_000_000;

/// A connection's slot. Whoever gives it up, in the middle of connecting even, closes the connection.
pub(super) struct Connected(pub u32);

impl Drop for Connected {
    fn drop(&mut self) {
        with_loop_if_any(|this| {
            this.network.deliver_last_words(&mut this.slots, self.0);
            if let Some(slot) = this.slots.get(self.0) {
                slot.close();
                this.slots.no_more_waits(self.0);
                this.slots.to_close.push(self.0);
            }
        });
    }
}

/// Opens a connection; reading has been asked for.
pub(super) async fn connect(address: &Address, shared: &Shared, timeout: Duration) -> Result<Connected> {
    let give_up_ns = clock::now_ns().saturating_add(timeout.as_nanos() as u64);
    let slot = match address {
        Address::Unix(path) => connect_unix(path, give_up_ns).await?,
        Address::Tcp { host, port } => connect_tcp(host, *port, shared, give_up_ns).await?,
    };
    let round_trip_ns = with_loop(|this| {
        this.slots.to_receive.push(slot.0);
        this.network.round_trip_ns
    });
    if round_trip_ns > 0 {
        sleep_ns(round_trip_ns).await;
    }
    Ok(slot)
}

async fn connect_unix(path: &Path, give_up_ns: u64) -> Result<Connected> {
    let place = format!("socket {}", path.display());
    let refused = |error: &std::io::Error| refusal(&place, error);
    let address = SockAddr::unix(path).map_err(|error| {
        Error::user(format!("{place}: {error}"))
            .hint("a socket's path has at most 107 bytes; use a shorter one")
    })?;
    let socket =
        Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None).map_err(|e| no_socket(&e))?;
    loop {
        match socket.connect(&address) {
            Ok(()) => return Ok(Connected(with_loop(|this| this.slots.insert(socket.into())))),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if clock::now_ns() >= give_up_ns {
                    return Err(Error::connect(format!("{place}: its queue of new connections stays full"))
                        .hint("give the server a longer queue (back_log) or ramp up more slowly"));
                }
                sleep_ns(QUEUE_FULL_WAIT_NS).await;
            }
            Err(error) => return Err(refused(&error)),
        }
    }
}

/// Connects to the address that took a connection before. What the name stands for is asked where there is none, and
/// again where it fails.
async fn connect_tcp(host: &str, port: u16, shared: &Shared, give_up_ns: u64) -> Result<Connected> {
    let (place, name) = (format!("{host}:{port}"), shared.name(host, port));
    if let Ok(number) = host.parse::<IpAddr>() {
        return connect_address(&place, SocketAddr::new(number, port), shared, give_up_ns).await;
    }
    let (good, failures) = name.good();
    let (mut last, mut is_silent) = (None, false);
    if let Some(address) = good {
        // Half of the time is for others: the server may have moved.
        let until_ns = part_ns(give_up_ns, 2);
        match connect_address(&place, address, shared, until_ns).await {
            Ok(slot) => return Ok(slot),
            Err(error) => last = Some(error),
        }
        is_silent = clock::now_ns() >= until_ns;
        name.forget(failures);
    }
    let (_, failures) = name.good();
    let addresses = match (name.look_up(host, port, give_up_ns).await, &last) {
        (Ok(addresses), _) => addresses,
        (Err(error), None) => return Err(error),
        // That the address it had fails says more.
        (Err(_), Some(_)) => Vec::new(),
    };
    let (mut all, again): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| Some(*address) != good);
    if is_silent {
        all.extend(again);
    }
    match connect_any(&place, all, shared, give_up_ns).await {
        Ok((slot, address)) => {
            name.keep(address);
            return Ok(slot);
        }
        Err(error) => last = error.or(last),
    }
    name.forget(failures);
    Err(last.unwrap_or_else(|| Error::connect(format!("{place}: the name stands for no address"))))
}

/// Until when one of `count` takes its part of the time that is left.
fn part_ns(give_up_ns: u64, count: usize) -> u64 {
    let now_ns = clock::now_ns();
    now_ns + give_up_ns.saturating_sub(now_ns) / count.max(1) as u64
}

/// Connects to the first address that takes a connection. One that is silent, as those of IPv6 are where no route leads
/// there, does not use up the time of the others: they are tried first, and it gets its part of what they leave.
async fn connect_any(
    place: &str,
    mut addresses: Vec<SocketAddr>,
    shared: &Shared,
    give_up_ns: u64,
) -> std::result::Result<(Connected, SocketAddr), Option<Error>> {
    let mut last = None;
    let soon_ns = if addresses.len() > 1 { NEXT_ADDRESS_NS } else { u64::MAX };
    for patience_ns in [soon_ns, u64::MAX] {
        let mut silent = Vec::new();
        for (tried, address) in addresses.iter().enumerate() {
            let share_ns = part_ns(give_up_ns, addresses.len() - tried);
            let until_ns = share_ns.min(clock::now_ns().saturating_add(patience_ns));
            match connect_address(place, *address, shared, until_ns).await {
                Ok(slot) => return Ok((slot, *address)),
                Err(error) => {
                    last = Some(error);
                    let now_ns = clock::now_ns();
                    if (until_ns..give_up_ns).contains(&now_ns) {
                        silent.push(*address);
                    }
                }
            }
        }
        addresses = silent;
    }
    Err(last)
}

async fn connect_address(
    place: &str,
    server: SocketAddr,
    shared: &Shared,
    give_up_ns: u64,
) -> Result<Connected> {
    let address = SockAddr::from(server);
    let socket = Socket::new(address.domain(), Type::STREAM.nonblocking().cloexec(), None)
        .map_err(|e| no_socket(&e))?;
    // A request is one small write that must leave at once.
    socket.set_tcp_nodelay(true).map_err(|error| no_socket(&error))?;
    if let Some(sources) = shared.sources() {
        sources.bind(&socket, server)?;
    }
    match socket.connect(&address) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(refusal(place, &error)),
    }
    let watched = socket.try_clone().map_err(|error| no_socket(&error))?;
    let slot = with_loop(|this| {
        let slot = this.slots.insert(socket.into());
        this.slots.to_watch.push(slot);
        Connected(slot)
    });
    let outcome = wait(slot.0, give_up_ns, Slot::is_open).await;
    match (outcome, watched.take_error()) {
        (Ok(()), Ok(None)) => Ok(slot),
        (outcome, error) => Err(match (outcome, error) {
            (Err(Ending::Silent), _) => Error::connect(format!("{place}: no answer in time"))
                .hint("check the address, or raise connect_timeout_s"),
            (_, Ok(Some(error)) | Err(error)) => refusal(place, &error),
            (Err(ending), _) => Error::connect(format!("{place}: {ending:?}")),
            (Ok(()), Ok(None)) => unreachable!("matched above"),
        }),
    }
}

/// Waits until `arrived` is true of a slot. An ending counts only when nothing has arrived before it.
async fn wait(
    number: u32,
    until_ns: u64,
    arrived: impl Fn(&Slot) -> bool,
) -> std::result::Result<(), Ending> {
    std::future::poll_fn(|_| {
        with_loop(|this| {
            let Some(slot) = this.slots.get(number) else { return Poll::Ready(Err(Ending::Closed)) };
            if arrived(slot) {
                this.slots.no_more_waits(number);
                return Poll::Ready(Ok(()));
            }
            if let Some(ending) = slot.ending() {
                return Poll::Ready(Err(ending));
            }
            this.slots.wait(number, running(), until_ns);
            Poll::Pending
        })
    })
    .await
}

fn refusal(place: &str, error: &std::io::Error) -> Error {
    let hint = match error.kind() {
        std::io::ErrorKind::NotFound => {
            "there is no such socket: is the server running, and is the path right?"
        }
        std::io::ErrorKind::ConnectionRefused => {
            "nothing listens there: is the server running, and is the port right?"
        }
        std::io::ErrorKind::PermissionDenied => "this user may not use it: check its owner and mode",
        std::io::ErrorKind::AddrNotAvailable => {
            "every free port of this host leads there already: widen net.ipv4.ip_local_port_range, connect over a \
             socket, or give the URL more addresses to connect from (source=ADDRESS,ADDRESS)"
        }
        _ => "is the server running?",
    };
    Error::connect(format!("{place}: {error}")).hint(hint)
}

fn no_socket(error: &std::io::Error) -> Error {
    no_descriptor(error).unwrap_or_else(|| Error::internal(format!("a socket could not be made: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{block_on, Backend};
    use std::net::TcpListener;

    /// A listener whose queue is full, so that the kernel passes over whoever knocks, and those that fill it.
    fn silent() -> (Socket, Vec<Socket>) {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let queued = (0..8).map(|_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None).unwrap();
            let _ = socket.connect(&address);
            socket
        });
        let queued = queued.collect();
        (listener, queued)
    }

    #[test]
    fn a_silent_address_leaves_the_others_their_time() {
        let (silent, _queued) = silent();
        let dead = silent.local_addr().unwrap().as_socket().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let good = listener.local_addr().unwrap();
        for addresses in [vec![dead, good], vec![dead, dead, good], vec![good, dead]] {
            let connected = async {
                let give_up_ns = clock::now_ns() + 20_000_000_000;
                connect_any("server", addresses, &Shared::default(), give_up_ns)
                    .await
                    .map(|(_, address)| address)
            };
            let connected = block_on(Backend::Epoll, connected, || false).unwrap().unwrap();
            assert_eq!(connected.map_err(|error| error.map(|error| error.to_string())), Ok(good));
        }
    }

    #[test]
    fn a_silent_address_alone_is_waited_for_to_the_end() {
        let (silent, _queued) = silent();
        let dead = silent.local_addr().unwrap().as_socket().unwrap();
        let refused = async {
            let give_up_ns = clock::now_ns() + 300_000_000;
            let outcome = connect_any("server", vec![dead], &Shared::default(), give_up_ns).await;
            (outcome.err().flatten().map(|error| error.to_string()), clock::now_ns() >= give_up_ns)
        };
        let (message, to_the_end) = block_on(Backend::Epoll, refused, || false).unwrap().unwrap();
        assert!(to_the_end && message.unwrap().contains("no answer in time"));
    }
}
