//! From an address to an account that is logged in.

use super::auth::{md5_password, Binding, Scram};
use super::channel::Channel;
use super::message::{answer, put_string, put_untyped, put_value, server_error, Reader};
use crate::error::{Code, Error, Kind, Result};
use crate::io::{Address, AtServer, Stream};
use crate::session::{Encryption, Target};
use std::path::{Path, PathBuf};

const PORT: u16 = 5432;
const VERSION: u32 = 3 << 16;
const TLS_REQUEST: u32 = 80_877_103;
/// SCRAM takes four; a server that goes on after this many does so for ever.
const LOG_IN_MESSAGES_MAX: u32 = 16;
/// About twenty parameters and a key are what servers send.
const START_UP_MESSAGES_MAX: u32 = 10_000;

/// Whether SCRAM must be bound to the encrypted connection, as libpq's `channel_binding` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Disabled,
    Preferred,
    Required,
}

/// A server that has let us in.
pub(super) struct Entered {
    pub channel: Channel,
    pub version: String,
    /// What it, or a pooler in front of it, calls this connection.
    pub at_server: Option<AtServer>,
}

/// The kinds of AuthenticationRequest.
mod request {
    pub const OK: u32 = 0;
    pub const CLEARTEXT: u32 = 3;
    pub const MD5: u32 = 5;
    pub const SASL: u32 = 10;
    pub const SASL_CONTINUE: u32 = 11;
    pub const SASL_FINAL: u32 = 12;
}

/// A connection that is ready for queries.
pub(super) async fn connect(target: &Target) -> Result<Entered> {
    target.allow_parameters()?;
    let encryption = target.encryption()?;
    match attempt(target, encryption).await {
        Err(refusal) if encryption == Encryption::Auto && may_want_tls(&refusal, target) => {
            let encrypted = attempt(target, Encryption::Required).await;
            encrypted.map_err(|error| if error.kind() == Kind::Server { error } else { refusal })
        }
        outcome => outcome,
    }
    .map_err(|error| with_hint(error.while_connecting(), target))
}

/// A server that takes an account by TLS only says no more than that pg_hba.conf has no line for it (28000).
fn may_want_tls(refusal: &Error, target: &Target) -> bool {
    refusal.code().is_of_class("28000") && matches!(address(target), Address::Tcp { .. })
}

fn with_hint(error: Error, target: &Target) -> Error {
    if !error.hint_text().is_empty() {
        return error;
    }
    let Code::State(state) = error.code() else { return error };
    match &state {
        b"28000" if target.parameter("tls") == Some("off") => error.hint(format!(
            "check user {:?} in the URL; if the server takes it by TLS only, write tls=required in the URL",
            target.user
        )),
        b"28P01" | b"28000" if target.parameter("tls_cert").is_some() => error.hint(format!(
            "check user {:?}, its password, and that tls_cert names the user as the server wants it",
            target.user
        )),
        b"28P01" | b"28000" => error.hint(format!(
            "check user {:?} and its password in the URL; a server that wants a certificate of the client gets it by \
             tls_cert=PATH and tls_key=PATH",
            target.user
        )),
        b"3D000" => error.hint("create the database, or name another one in the URL"),
        b"53300" => error.hint("ask for fewer clients, or raise the server's max_connections"),
        _ => error,
    }
}

/// `socket` may name the socket itself or, as libpq's `host` does, the folder that it lies in.
fn address(target: &Target) -> Address {
    let port = target.port.unwrap_or(PORT);
    let folder = target.parameter("host").filter(|host| host.starts_with('/'));
    if let Some(path) = target.parameter("socket").or(folder) {
        return Address::Unix(socket_file(Path::new(path), port));
    }
    let host = host(target);
    Address::Tcp { host: if host.is_empty() { "127.0.0.1" } else { host }.to_owned(), port }
}

/// The server's host as the URL names it, before its path or behind it; empty where it names none.
fn host(target: &Target) -> &str {
    target.parameter("host").filter(|host| !host.starts_with('/')).unwrap_or(&target.host)
}

/// The name that the server's certificate must be for.
fn server_name(target: &Target) -> &str {
    match host(target) {
        "" => "localhost",
        host => host,
    }
}

fn socket_file(path: &Path, port: u16) -> PathBuf {
    match path.file_name().and_then(|name| name.to_str()) {
        Some(name) if name.starts_with(".s.PGSQL.") => path.to_owned(),
        _ => path.join(format!(".s.PGSQL.{port}")),
    }
}

/// A connection over which nothing was said yet, encrypted where the URL demands it.
pub(super) async fn private(target: &Target) -> Result<Channel> {
    open(target, target.encryption()?).await
}

async fn open(target: &Target, encryption: Encryption) -> Result<Channel> {
    let mut stream =
        Stream::open(&address(target), &target.shared, target.connect_timeout, target.answer_timeout).await?;
    stream.set_answer_timeout(target.connect_timeout);
    let mut channel = Channel::new(stream);
    if encryption.is_on() {
        ask_for_tls(&mut channel).await?;
        let trust = target.trust(encryption == Encryption::Verified);
        channel.start_tls(server_name(target), &trust).await?;
    }
    Ok(channel)
}

async fn attempt(target: &Target, encryption: Encryption) -> Result<Entered> {
    let mut channel = open(target, encryption).await?;
    put_untyped(channel.outbox(), |out| {
        out.extend_from_slice(&VERSION.to_be_bytes());
        for (name, value) in start_up(target) {
            put_string(out, name);
            put_string(out, value);
        }
        out.push(0);
    });
    channel.send()?;
    let private = encryption.is_on() || matches!(address(target), Address::Unix(_));
    log_in(&mut channel, target, private).await?;
    let (version, at_server) = until_ready(&mut channel).await?;
    if let Some(at_server) = at_server {
        channel.known_as(at_server);
    }
    channel.set_answer_timeout(target.answer_timeout);
    Ok(Entered { channel, version, at_server })
}

/// The parameters of the start-up message. Dates in ISO form are what a `Value` promises.
fn start_up(target: &Target) -> impl Iterator<Item = (&'static str, &str)> {
    let database = if target.database.is_empty() { &target.user } else { &target.database };
    [
        ("user", target.user.as_str()),
        ("database", database),
        ("application_name", "dyno"),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO"),
    ]
    .into_iter()
}

async fn ask_for_tls(channel: &mut Channel) -> Result<()> {
    put_untyped(channel.outbox(), |out| out.extend_from_slice(&TLS_REQUEST.to_be_bytes()));
    channel.send()?;
    match channel.byte().await? {
        b'S' => Ok(()),
        b'N' => Err(Error::connect("the server does not offer TLS").hint(
            "set ssl = on and a certificate in the server's configuration, or write tls=off in the URL",
        )),
        _ => Err(Error::protocol("the server's answer to the request for TLS is neither yes nor no")),
    }
}

async fn log_in(channel: &mut Channel, target: &Target, private: bool) -> Result<()> {
    let words = [("prefer", Bound::Preferred), ("require", Bound::Required), ("disable", Bound::Disabled)];
    let bound = target.choice("channel_binding", &words)?.unwrap_or(Bound::Preferred);
    let end_point = if bound == Bound::Disabled { None } else { channel.end_point() };
    let mut scram: Option<Scram> = None;
    for _ in 0..LOG_IN_MESSAGES_MAX {
        let (kind, payload) = channel.message().await?;
        match kind {
            answer::AUTHENTICATION => {}
            answer::ERROR => return Err(server_error(payload)),
            // The server offers an older minor version: the one that was asked for is the oldest.
            answer::PROTOCOL_VERSION | answer::NOTICE => continue,
            _ => return Err(out_of_place(kind)),
        }
        let mut reader = Reader::new(payload);
        let request = reader.u32()?;
        let rest = reader.rest();
        let reply = match request {
            request::OK if bound == Bound::Required && !scram.as_ref().is_some_and(Scram::is_bound) => {
                return Err(unbound());
            }
            request::OK => return finished(scram.as_ref()),
            request::CLEARTEXT | request::MD5 if bound == Bound::Required => return Err(unbound()),
            request::CLEARTEXT if private => terminated(&target.password),
            request::CLEARTEXT => {
                return Err(Error::connect("the server wants the password in clear text over the network")
                    .hint("write tls=required in the URL"))
            }
            request::MD5 => terminated(&md5_password(&target.user, &target.password, rest)),
            request::SASL => {
                let (mechanism, binding) = mechanism(rest, end_point.clone())?;
                let exchange = scram.insert(Scram::new(&target.password, binding)?);
                if bound == Bound::Required && !exchange.is_bound() {
                    return Err(unbound());
                }
                sasl_start(mechanism, &exchange.first())
            }
            request::SASL_CONTINUE => {
                let exchange = scram.as_mut().ok_or_else(|| out_of_place(kind))?;
                let patience = target.connect_timeout;
                exchange.proof(utf8(rest)?, &target.salted, patience).await?.into_bytes()
            }
            request::SASL_FINAL => {
                scram.as_mut().ok_or_else(|| out_of_place(kind))?.verify_final(utf8(rest)?)?;
                continue;
            }
            other => return Err(unsupported(other)),
        };
        channel.say(b'p', |out| out.extend_from_slice(&reply))?;
    }
    Err(Error::protocol("the server asks for the password again and again"))
}

/// A server that began SCRAM must have ended it too: else anyone could skip the proof that it knows the password.
fn finished(scram: Option<&Scram>) -> Result<()> {
    match scram {
        Some(exchange) if !exchange.is_verified() => {
            Err(Error::protocol("SCRAM: the server let us in without showing that it knows the password"))
        }
        _ => Ok(()),
    }
}

fn unbound() -> Error {
    Error::connect("the server does not bind the log-in to the connection, which the URL's channel_binding requires")
        .hint(
            "encrypt (tls=required) and have the server use scram-sha-256 with a certificate signed by a SHA-2 hash, \
             or leave channel_binding out",
        )
}

/// Which of the server's mechanisms to use, and what the exchange is bound to.
fn mechanism(offered: &[u8], end_point: Option<Vec<u8>>) -> Result<(&'static str, Binding)> {
    const PLAIN: &str = "SCRAM-SHA-256";
    const BOUND: &str = "SCRAM-SHA-256-PLUS";
    let offers = |wanted: &str| offered.split(|&byte| byte == 0).any(|name| name == wanted.as_bytes());
    match end_point {
        Some(hash) if offers(BOUND) => Ok((BOUND, Binding::EndPoint(hash))),
        end_point if offers(PLAIN) => {
            Ok((PLAIN, if end_point.is_some() { Binding::NotOffered } else { Binding::None }))
        }
        _ => Err(Error::connect("the server offers no SASL mechanism but unknown ones")
            .hint("use SCRAM-SHA-256, MD5 or a password in the server's pg_hba.conf")),
    }
}

fn sasl_start(mechanism: &str, first: &str) -> Vec<u8> {
    let mut reply = terminated(mechanism);
    put_value(&mut reply, |out| out.extend_from_slice(first.as_bytes()));
    reply
}

fn unsupported(request: u32) -> Error {
    let name = match request {
        2 => "Kerberos 5",
        7 | 8 => "GSSAPI",
        9 => "SSPI",
        _ => "an unknown method of",
    };
    Error::connect(format!("the server wants {name} authentication, which is not supported"))
        .hint("use scram-sha-256, md5, password or trust in the server's pg_hba.conf")
}

/// Reads up to the first ReadyForQuery; returns the server's version, and by what it lets others cancel a statement.
async fn until_ready(channel: &mut Channel) -> Result<(String, Option<AtServer>)> {
    let (mut version, mut at_server) = (String::from("unknown"), None);
    for _ in 0..START_UP_MESSAGES_MAX {
        let (kind, payload) = channel.message().await?;
        match kind {
            answer::READY => return Ok((version, at_server)),
            answer::ERROR => return Err(server_error(payload)),
            answer::PARAMETER_STATUS => {
                let mut reader = Reader::new(payload);
                if reader.string()? == b"server_version" {
                    version = String::from_utf8_lossy(reader.string()?).into_owned();
                }
            }
            answer::BACKEND_KEY => {
                let mut reader = Reader::new(payload);
                at_server = Some(AtServer { number: reader.u32()?, key: reader.u32()? });
            }
            _ => {}
        }
    }
    Err(Error::protocol("the server never becomes ready for a query"))
}

fn terminated(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_string(&mut bytes, text);
    bytes
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Error::protocol("the server's part of SCRAM is no text"))
}

pub(super) fn out_of_place(kind: u8) -> Error {
    Error::protocol(format!("the server sent a message of type {:?} out of place", char::from(kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address_of(url: &str) -> Address {
        address(&Target::parse(url).unwrap())
    }

    #[test]
    fn a_socket_is_named_by_its_file_or_its_folder() {
        let unix = |path: &str| Address::Unix(path.into());
        assert_eq!(address_of("postgresql://u@h/d?socket=/run/.s.PGSQL.7"), unix("/run/.s.PGSQL.7"));
        assert_eq!(address_of("postgresql://u@h:99/d?socket=/run"), unix("/run/.s.PGSQL.99"));
        assert_eq!(address_of("postgresql://u@/d?host=/run/pg"), unix("/run/pg/.s.PGSQL.5432"));
    }

    #[test]
    fn a_host_has_a_port_even_if_none_is_named() {
        let tcp = |host: &str, port| Address::Tcp { host: host.into(), port };
        assert_eq!(address_of("postgresql://u@db:99/d"), tcp("db", 99));
        assert_eq!(address_of("postgresql:///d"), tcp("127.0.0.1", 5432));
        assert_eq!(address_of("postgresql:///d?host=db"), tcp("db", 5432));
    }

    #[test]
    fn a_certificate_must_be_for_the_host_that_the_url_names() {
        for (url, name) in [
            ("postgresql://u@db:99/d", "db"),
            ("postgresql:///d?host=db", "db"),
            ("postgresql://other/d?host=db", "db"),
            ("postgresql://db/d?host=/run/pg", "db"),
            ("postgresql:///d", "localhost"),
        ] {
            assert_eq!(server_name(&Target::parse(url).unwrap()), name, "{url}");
        }
    }

    #[test]
    fn only_a_known_mechanism_is_answered() {
        assert!(mechanism(b"SCRAM-SHA-256-PLUS\0\0", None).is_err());
        let both = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
        assert_eq!(mechanism(both, None).unwrap(), ("SCRAM-SHA-256", Binding::None));
        assert_eq!(
            mechanism(both, Some(vec![7])).unwrap(),
            ("SCRAM-SHA-256-PLUS", Binding::EndPoint(vec![7]))
        );
        assert_eq!(
            mechanism(b"SCRAM-SHA-256\0\0", Some(vec![7])).unwrap(),
            ("SCRAM-SHA-256", Binding::NotOffered)
        );
        assert_eq!(sasl_start("SCRAM-SHA-256", "first"), b"SCRAM-SHA-256\0\0\0\0\x05first");
    }

    #[test]
    fn a_server_that_skips_its_part_of_scram_is_not_trusted() {
        assert!(finished(Some(&Scram::new("pencil", Binding::None).unwrap())).is_err());
        assert!(finished(None).is_ok());
    }
}
