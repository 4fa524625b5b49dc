//! From an open connection to an account that is logged in.

use super::auth::{encrypted, signed, terminated, Line, Plugin, CACHING_SHA2_KEY_REQUEST};
use super::channel::Channel;
use super::packet::{put_string, Reader, PAYLOAD_BYTES_MAX};
use super::refusal::server_error;
use crate::error::{Code, Error, Result};
use crate::io::{Address, AtServer, Stream};
use crate::session::{Encryption, Target};

const PORT: u16 = 3306;
const UTF8MB4_GENERAL: u8 = 45;

mod capability {
    pub const MYSQL: u64 = 1;
    pub const FOUND_ROWS: u64 = 1 << 1;
    pub const CONNECT_WITH_DB: u64 = 1 << 3;
    pub const PROTOCOL_41: u64 = 1 << 9;
    pub const TLS: u64 = 1 << 11;
    pub const TRANSACTIONS: u64 = 1 << 13;
    pub const SECURE_CONNECTION: u64 = 1 << 15;
    /// Statements joined by semicolons, and answers of several result sets, also to prepared statements.
    pub const SEVERAL: u64 = 1 << 16 | 1 << 17 | 1 << 18;
    pub const PLUGIN_AUTH: u64 = 1 << 19;
    pub const PLUGIN_AUTH_LENGTH: u64 = 1 << 21;
    pub const DEPRECATE_EOF: u64 = 1 << 24;
    /// MariaDB's own capabilities stand above bit 32.
    pub const CACHE_METADATA: u64 = 1 << (32 + 4);
}

/// What the server said of itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Greeting {
    pub version: String,
    pub capabilities: u64,
    /// The number of this connection at the server.
    connection: u32,
    plugin: Vec<u8>,
    nonce: Vec<u8>,
}

/// What both sides have agreed on.
pub(super) struct Agreed {
    pub channel: Channel,
    pub version: String,
    pub deprecate_eof: bool,
    pub cache_metadata: bool,
}

pub(super) async fn connect(target: &Target) -> Result<Agreed> {
    target.allow_parameters()?;
    let encryption = target.encryption()?;
    let first = attempt(target, encryption).await;
    let outcome = match first {
        Err(refusal) if encryption == Encryption::Auto && may_want_tls(&refusal, target) => {
            attempt(target, Encryption::Required).await.map_err(|_| refusal)
        }
        outcome => outcome,
    };
    outcome.map_err(Error::while_connecting)
}

/// MySQL says that it insists on TLS (3159); MariaDB refuses an account that may come by TLS only like any other (1045).
fn may_want_tls(refusal: &Error, target: &Target) -> bool {
    matches!(refusal.code(), Code::Mysql(3159 | 1045)) && matches!(address(target), Address::Tcp { .. })
}

pub(super) fn address(target: &Target) -> Address {
    match target.parameter("socket") {
        Some(path) => Address::Unix(path.into()),
        None => {
            let host = if target.host.is_empty() { "127.0.0.1" } else { &target.host };
            Address::Tcp { host: host.to_owned(), port: target.port.unwrap_or(PORT) }
        }
    }
}

async fn attempt(target: &Target, encryption: Encryption) -> Result<Agreed> {
    let address = address(target);
    let mut stream =
        Stream::open(&address, &target.shared, target.connect_timeout, target.answer_timeout).await?;
    stream.set_answer_timeout(target.connect_timeout);
    let mut channel = Channel::new(stream);
    let greeting = greeting(channel.packet().await?)?;
    let encrypted = encryption.is_on();
    let capabilities = agreed_capabilities(&greeting, target, encrypted)?;
    if encrypted {
        let start = channel.start(channel.next_sequence());
        put_preamble(channel.outbox(), &greeting, capabilities);
        channel.finish(start)?;
        let name = if target.host.is_empty() { "localhost" } else { &target.host };
        channel.start_tls(name, &target.trust(encryption == Encryption::Verified)).await?;
    }
    let line = match address {
        _ if encrypted => Line::Encrypted,
        Address::Unix(_) => Line::Local,
        Address::Tcp { .. } => Line::Open,
    };
    log_in(&mut channel, &greeting, capabilities, target, line).await?;
    channel.set_answer_timeout(target.answer_timeout);
    let port = channel.local_port().unwrap_or_default();
    channel.known_as(AtServer { number: greeting.connection, key: port.into() });
    Ok(Agreed {
        channel,
        version: greeting.version,
        deprecate_eof: capabilities & capability::DEPRECATE_EOF != 0,
        cache_metadata: capabilities & capability::CACHE_METADATA != 0,
    })
}

/// Takes the server's first packet apart.
pub(super) fn greeting(payload: &[u8]) -> Result<Greeting> {
    let mut reader = Reader::new(payload);
    match reader.u8()? {
        10 => {}
        0xFF => return Err(server_error(payload)),
        version => {
            return Err(Error::protocol(format!(
                "the server speaks version {version} of the protocol, not 10"
            )))
        }
    }
    let version = String::from_utf8_lossy(reader.until_zero()).into_owned();
    let connection = reader.u32()?;
    let mut nonce = reader.bytes(8)?.to_vec();
    reader.u8()?;
    let low = reader.u16()?;
    let (_charset, _status) = (reader.u8()?, reader.u16()?);
    let high = reader.u16()?;
    let nonce_bytes = usize::from(reader.u8()?);
    reader.bytes(6)?;
    let extended = reader.u32()?;
    let mut capabilities = u64::from(low) | u64::from(high) << 16;
    // MySQL sets the first bit and leaves the four bytes zero; MariaDB clears it and puts its own capabilities there.
    if capabilities & capability::MYSQL == 0 {
        capabilities |= u64::from(extended) << 32;
    }
    nonce.extend_from_slice(reader.bytes(nonce_bytes.saturating_sub(9).max(12))?);
    reader.u8()?;
    let plugin = reader.until_zero().to_vec();
    Ok(Greeting { version, capabilities, connection, plugin, nonce })
}

fn agreed_capabilities(greeting: &Greeting, target: &Target, encrypted: bool) -> Result<u64> {
    use capability::*;
    let needed = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH;
    if greeting.capabilities & needed != needed {
        return Err(Error::connect(format!("the server {:?} is too old for this driver", greeting.version)));
    }
    if encrypted && greeting.capabilities & TLS == 0 {
        return Err(
            Error::connect("the server offers no TLS").hint("set up its certificate, or leave tls out")
        );
    }
    let mut wanted = needed
        | PLUGIN_AUTH_LENGTH
        | TRANSACTIONS
        | FOUND_ROWS
        | SEVERAL
        | DEPRECATE_EOF
        | CACHE_METADATA
        | MYSQL;
    if encrypted {
        wanted |= TLS;
    }
    if !target.database.is_empty() {
        wanted |= CONNECT_WITH_DB;
    }
    // MariaDB leaves MYSQL out, and reads the capabilities above bit 32 of those only that leave it out too.
    let mut agreed = wanted & greeting.capabilities;
    if agreed & DEPRECATE_EOF == 0 {
        agreed &= !CACHE_METADATA;
    }
    Ok(agreed)
}

/// What both the request for TLS and the answer to the greeting begin with.
fn put_preamble(out: &mut Vec<u8>, greeting: &Greeting, capabilities: u64) {
    out.extend_from_slice(&(capabilities as u32).to_le_bytes());
    out.extend_from_slice(&PAYLOAD_BYTES_MAX.to_le_bytes());
    out.push(UTF8MB4_GENERAL);
    out.extend_from_slice(&[0; 19]);
    let extended =
        if greeting.capabilities & capability::MYSQL == 0 { (capabilities >> 32) as u32 } else { 0 };
    out.extend_from_slice(&extended.to_le_bytes());
}

async fn log_in(
    channel: &mut Channel,
    greeting: &Greeting,
    capabilities: u64,
    target: &Target,
    line: Line,
) -> Result<()> {
    let (password, mut nonce) = (target.password.as_bytes(), greeting.nonce.clone());
    // A plugin that we lack may be the server's default only; the account's own is asked for by a switch.
    let mut plugin = Plugin::from_name(&greeting.plugin).unwrap_or(Plugin::Native);
    let answer = plugin.answer(password, &nonce, line).or_else(|_| {
        plugin = Plugin::Native;
        plugin.answer(password, &nonce, line)
    })?;
    let start = channel.start(channel.next_sequence());
    let out = channel.outbox();
    put_preamble(out, greeting, capabilities);
    out.extend_from_slice(&terminated(target.user.as_bytes()));
    match capabilities & capability::PLUGIN_AUTH_LENGTH {
        0 => {
            out.push(answer.len() as u8);
            out.extend_from_slice(&answer);
        }
        _ => put_string(out, &answer),
    }
    if capabilities & capability::CONNECT_WITH_DB != 0 {
        out.extend_from_slice(&terminated(target.database.as_bytes()));
    }
    out.extend_from_slice(&terminated(plugin.name().as_bytes()));
    channel.finish(start)?;
    // A server needs a switch, a full authentication and a key at most; one that asks on and on is stopped.
    for _ in 0..8 {
        let payload = channel.packet().await?;
        let reply = match payload.first() {
            Some(0x00) => return Ok(()),
            Some(0xFF) => return Err(refused(payload, target)),
            Some(0xFE) if payload.len() > 1 => {
                let mut reader = Reader::new(&payload[1..]);
                plugin = Plugin::from_name(reader.until_zero())?;
                let rest = reader.rest();
                nonce = plugin.nonce(rest).to_vec();
                Some(plugin.answer(password, &nonce, line)?)
            }
            // What begins with a letter has no byte before it that says what it is.
            Some(&first) if plugin == Plugin::Parsec && first > 0 => {
                let salt = payload.strip_prefix(&[1]).unwrap_or(payload);
                Some(signed(password, salt, &nonce, &target.salted, target.connect_timeout).await?)
            }
            Some(0x01) => more_data(plugin, &payload[1..], password, &nonce, line)?,
            _ => return Err(Error::protocol("the server answered the log-in with nonsense")),
        };
        if let Some(reply) = reply {
            let start = channel.start(channel.next_sequence());
            channel.outbox().extend_from_slice(&reply);
            channel.finish(start)?;
        }
    }
    Err(Error::protocol("the server asks for one authentication after another"))
}

/// caching_sha2_password goes on: 3 says that the hash was known, 4 asks for the password itself, and what is longer
/// is the key to encrypt it with, as it is for sha256_password.
fn more_data(
    plugin: Plugin,
    data: &[u8],
    password: &[u8],
    nonce: &[u8],
    line: Line,
) -> Result<Option<Vec<u8>>> {
    match (plugin, data) {
        (Plugin::CachingSha2, [3]) => Ok(None),
        (Plugin::CachingSha2, [4]) if line.is_private() => Ok(Some(terminated(password))),
        (Plugin::CachingSha2, [4]) => Ok(Some(vec![CACHING_SHA2_KEY_REQUEST])),
        (Plugin::CachingSha2, key) if line == Line::Open => encrypted(password, nonce, key).map(Some),
        (Plugin::Sha256, key) if line != Line::Encrypted => encrypted(password, nonce, key).map(Some),
        _ => Err(Error::protocol("the server went on with an authentication that was over")),
    }
}

fn refused(payload: &[u8], target: &Target) -> Error {
    let error = server_error(payload);
    let hint = match error.code() {
        Code::Mysql(1045) if target.parameter("tls") == Some("off") => {
            let user = &target.user;
            format!("check user {user:?} and its password in the URL; if the account demands TLS, write tls=required")
        }
        Code::Mysql(1045 | 1698) => format!("check user {:?} and its password in the URL", target.user),
        Code::Mysql(1049) => format!("create the database {:?} first", target.database),
        Code::Mysql(1044) => format!("grant user {:?} the database {:?}", target.user, target.database),
        _ => return error,
    };
    error.hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_server_that_is_full_says_so_in_the_place_of_its_greeting() {
        let error = greeting(b"\xFF\x10\x04Too many connections").err().unwrap();
        assert!(error.message().contains("Too many connections"));
        assert!(error.hint_text().contains("max_connections"));
    }

    /// A greeting as MariaDB sends it.
    fn greeting_bytes() -> Vec<u8> {
        let mut bytes = vec![10];
        bytes.extend_from_slice(b"11.8.6-MariaDB\0");
        bytes.extend_from_slice(&7u32.to_le_bytes());
        bytes.extend_from_slice(b"12345678\0");
        bytes.extend_from_slice(&0xF7FEu16.to_le_bytes());
        bytes.push(45);
        bytes.extend_from_slice(&2u16.to_le_bytes());
        bytes.extend_from_slice(&0x81FFu16.to_le_bytes());
        bytes.push(21);
        bytes.extend_from_slice(&[0; 6]);
        bytes.extend_from_slice(&0x1Du32.to_le_bytes());
        bytes.extend_from_slice(b"901234567890\0mysql_native_password\0");
        bytes
    }

    #[test]
    fn a_greeting_is_taken_apart() {
        let greeting = greeting(&greeting_bytes()).unwrap();
        assert_eq!(greeting.version, "11.8.6-MariaDB");
        assert_eq!(greeting.nonce, b"12345678901234567890");
        assert_eq!((greeting.connection, greeting.plugin.as_slice()), (7, &b"mysql_native_password"[..]));
        assert_ne!(greeting.capabilities & capability::CACHE_METADATA, 0);
    }

    proptest! {
        #[test]
        fn a_greeting_cut_or_changed_anywhere_causes_no_panic(cut in 0usize..80, place in 0usize..80, byte: u8) {
            let mut bytes = greeting_bytes();
            if let Some(changed) = bytes.get_mut(place) {
                *changed = byte;
            }
            bytes.truncate(cut);
            let _ = greeting(&bytes);
        }
    }
}
