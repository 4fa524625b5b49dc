//! The addresses that connections leave this host from. To one port of a server each has as many connections as there
//! are free ports (net.ipv4.ip_local_port_range), 28,232 by default.

use crate::error::{Error, Result};
use socket2::{SockAddr, Socket};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Addresses that connections take in turn.
#[derive(Debug)]
pub(super) struct Sources {
    addresses: Vec<IpAddr>,
    taken: AtomicUsize,
}

impl Sources {
    /// Of a list such as `10.0.0.2,10.0.0.3`.
    pub fn parse(text: &str) -> Result<Self> {
        let addresses = text
            .split(',')
            .map(|part| part.trim().parse::<IpAddr>().map_err(|_| part))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|part| {
                Error::user(format!("the URL's source={text} holds {part:?}, which is no address"))
                    .hint("write addresses of this host, separated by commas: source=10.0.0.2,10.0.0.3")
            })?;
        Ok(Sources { addresses, taken: AtomicUsize::new(0) })
    }

    /// Gives a socket the address that is next in turn, of those that can reach `server`.
    pub fn bind(&self, socket: &Socket, server: SocketAddr) -> Result<()> {
        let of_family = || self.addresses.iter().filter(|address| address.is_ipv4() == server.is_ipv4());
        let Some(turns) = self.taken.fetch_add(1, Ordering::Relaxed).checked_rem(of_family().count()) else {
            let family = if server.is_ipv4() { "IPv4" } else { "IPv6" };
            return Err(Error::user(format!(
                "{server} has an {family} address, and the URL's source= has none"
            ))
            .hint(format!("name an {family} address of this host as source")));
        };
        let source = *of_family().nth(turns).expect("fewer turns than addresses");
        choose_port_later(socket);
        socket.bind(&SockAddr::from(SocketAddr::new(source, 0))).map_err(|error| {
            Error::user(format!("connections cannot leave from {source}: {error}"))
                .hint("source= takes addresses of this host: `ip address` lists them")
        })
    }
}

/// A port that is chosen before the server is known would be taken for all servers. Where the kernel refuses, it is.
fn choose_port_later(socket: &Socket) {
    let yes: libc::c_int = 1;
    // SAFETY: setsockopt(2) reads an int of the size that is given.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            std::ptr::from_ref(&yes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Type};

    fn bound(sources: &Sources, server: &str) -> Result<IpAddr> {
        let server: SocketAddr = server.parse().unwrap();
        let socket = Socket::new(Domain::for_address(server), Type::STREAM, None).unwrap();
        sources.bind(&socket, server)?;
        Ok(socket.local_addr().unwrap().as_socket().unwrap().ip())
    }

    #[test]
    fn addresses_of_the_servers_family_take_turns() {
        let sources = Sources::parse("127.0.0.2, ::1,127.0.0.3").unwrap();
        let found: Vec<String> =
            (0..4).map(|_| bound(&sources, "127.0.0.1:1").unwrap().to_string()).collect();
        assert_eq!(found, ["127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.3"]);
    }

    #[test]
    fn an_address_that_is_none_or_another_hosts_or_of_another_family_is_refused() {
        let message = |result: Result<IpAddr>| result.unwrap_err().to_string();
        assert!(message(Sources::parse("127.0.0.2,here").map(|_| unreachable!())).contains("\"here\""));
        // TEST-NET-1 of RFC 5737 is nobody's.
        let foreign = Sources::parse("192.0.2.1").unwrap();
        assert!(message(bound(&foreign, "127.0.0.1:1")).contains("cannot leave from 192.0.2.1"));
        assert!(message(bound(&Sources::parse("::1").unwrap(), "127.0.0.1:1")).contains("an IPv4 address"));
    }
}
