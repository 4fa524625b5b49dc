//! Where to connect to: the job's URL, taken apart.

use super::salted::Salted;
use crate::error::{Error, Result};
use crate::io::Shared;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Mysql,
    Postgresql,
    Firebird,
    Sqlite,
    /// An application in front of a database.
    Http,
}

impl Protocol {
    pub const ALL: [Protocol; 5] =
        [Protocol::Mysql, Protocol::Postgresql, Protocol::Firebird, Protocol::Sqlite, Protocol::Http];

    /// Texts in its SQL are as MySQL writes them: a backslash escapes, and double quotes are quotes of texts too.
    pub fn has_escaped_texts(self) -> bool {
        self == Protocol::Mysql
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Mysql => "mysql",
            Protocol::Postgresql => "postgresql",
            Protocol::Firebird => "firebird",
            Protocol::Sqlite => "sqlite",
            Protocol::Http => "http",
        }
    }

    fn from_scheme(scheme: &str) -> Option<Self> {
        match scheme {
            "mysql" | "mariadb" => Some(Protocol::Mysql),
            "postgresql" | "postgres" => Some(Protocol::Postgresql),
            "firebird" => Some(Protocol::Firebird),
            "sqlite" => Some(Protocol::Sqlite),
            "http" => Some(Protocol::Http),
            _ => None,
        }
    }
}

/// A parsed URL, the time limits that go with it, and what the server is told first.
#[derive(Clone, Debug)]
pub struct Target {
    pub protocol: Protocol,
    pub user: String,
    pub password: String,
    /// Empty for an engine in the process or a socket.
    pub host: String,
    pub port: Option<u16>,
    /// The URL's path without its first slash: a database's name. Use `path` for a file.
    pub database: String,
    /// What follows `?`: `socket`, `library`, `tls`, ...
    pub parameters: BTreeMap<String, String>,
    pub connect_timeout: Duration,
    /// The longest silence of a server in the middle of an answer.
    pub answer_timeout: Duration,
    /// Statements that each session begins with.
    pub opening: Vec<String>,
    /// Of the tables that are made, where they are not to have the usual one. `opening` tells the server.
    pub storage_engine: Option<String>,
    /// What the connections have in common; those of a clone have it too.
    pub shared: Arc<Shared>,
    /// The password as servers have asked for it.
    pub salted: Arc<Salted>,
}

impl Target {
    /// Takes `scheme://user:password@host:port/database?name=value&...` apart; parts are percent-decoded.
    pub fn parse(url: &str) -> Result<Self> {
        let wrong = |what: &str| {
            Error::user(format!("the URL {} {what}", redacted(url))).hint(
                "write mysql://user:password@host:port/database?socket=PATH, postgresql://..., firebird:///PATH, \
                 sqlite:///PATH or http://host:port",
            )
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("has no scheme"))?;
        let protocol = Protocol::from_scheme(scheme)
            .ok_or_else(|| wrong(&format!("has the unknown scheme {scheme:?}")))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (account, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = account.split_once(':').unwrap_or((account, ""));
        let (host, port) =
            host_and_port(place).ok_or_else(|| wrong("has a port that is no number of 1..65535"))?;
        let decode = |text: &str| decoded(text).ok_or_else(|| wrong("has a broken % escape"));
        let mut parameters = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            parameters.insert(decode(name)?, decode(value)?);
        }
        let shared = match (parameters.get("source"), parameters.contains_key("socket")) {
            (None, _) => Shared::default(),
            (Some(list), false) => Shared::from_sources(list)?,
            (Some(_), true) => return Err(wrong("has a socket, which has no source")),
        };
        Ok(Target {
            protocol,
            user: decode(user)?,
            password: decode(password)?,
            host: decode(host)?,
            port,
            database: decode(path)?,
            parameters,
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(300),
            opening: Vec::new(),
            storage_engine: None,
            shared: Arc::new(shared),
            salted: Arc::default(),
        })
    }

    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// The URL's path as a file of this machine: `sqlite:///tmp/x` gives `/tmp/x`.
    pub fn path(&self) -> String {
        format!("/{}", self.database)
    }

    /// Refuses parameters that the session does not know, naming those that it does.
    pub fn allow(&self, names: &[&str]) -> Result<()> {
        match self.parameters.keys().find(|name| !names.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(Error::user(format!("unknown URL parameter {name:?}")).hint(format!(
                "{} takes: {}",
                self.protocol.as_str(),
                names.join(", ")
            ))),
        }
    }
}

fn host_and_port(place: &str) -> Option<(&str, Option<u16>)> {
    // An IPv6 address stands in brackets, so that its colons are not taken for the port's.
    if let Some(inner) = place.strip_prefix('[') {
        let (host, rest) = inner.split_once(']')?;
        return match rest.strip_prefix(':') {
            None => rest.is_empty().then_some((host, None)),
            Some(port) => Some((host, Some(port.parse().ok().filter(|&port| port > 0)?))),
        };
    }
    match place.rsplit_once(':') {
        None => Some((place, None)),
        Some((host, port)) => Some((host, Some(port.parse().ok().filter(|&port: &u16| port > 0)?))),
    }
}

fn decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = tail;
            continue;
        }
        let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).ok()
}

/// The URL without its password, for messages. What has no scheme can hold one behind its first colon.
pub(crate) fn redacted(url: &str) -> String {
    let at = url.find("://").map_or(0, |at| at + "://".len());
    let (scheme, rest) = url.split_at(at);
    let shown = match rest.rsplit_once('@') {
        Some((account, place)) => {
            let user = account.split_once(':').map_or(account, |(user, _)| user);
            // Where a parameter holds an `@`, what follows it may be the rest of a secret.
            let place = if account.contains('?') { "***" } else { place };
            format!("{user}:***@{place}")
        }
        None => rest.to_owned(),
    };
    format!("{:?}", format!("{scheme}{}", without_secrets(&shown)))
}

/// A URL's address and parameters, those of a password without their values.
fn without_secrets(rest: &str) -> String {
    let Some((address, query)) = rest.split_once('?') else { return rest.to_owned() };
    let shown = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if name.to_lowercase().contains("passw") => format!("{name}=***"),
        _ => pair.to_owned(),
    };
    format!("{address}?{}", query.split('&').map(shown).collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_url_is_taken_apart() {
        let target =
            Target::parse("mysql://me:p%40ss@db.local:3307/test?socket=/run/my.sock&tls=required").unwrap();
        assert_eq!(target.protocol, Protocol::Mysql);
        assert_eq!((target.user.as_str(), target.password.as_str()), ("me", "p@ss"));
        assert_eq!((target.host.as_str(), target.port), ("db.local", Some(3307)));
        assert_eq!(target.database, "test");
        assert_eq!(target.parameter("socket"), Some("/run/my.sock"));
    }

    #[test]
    fn a_file_keeps_its_absolute_path() {
        assert_eq!(Target::parse("sqlite:///tmp/a.db").unwrap().path(), "/tmp/a.db");
    }

    #[test]
    fn an_address_of_ipv6_stands_in_brackets() {
        let target = Target::parse("postgresql://u@[::1]:5433/x").unwrap();
        assert_eq!((target.host.as_str(), target.port), ("::1", Some(5433)));
    }

    #[test]
    fn an_application_has_a_host_and_a_port() {
        let target = Target::parse("http://127.0.0.1:5000").unwrap();
        assert_eq!((target.protocol, target.port), (Protocol::Http, Some(5000)));
        assert_eq!((target.user.as_str(), target.database.as_str()), ("", ""));
    }

    #[test]
    fn mistakes_name_the_url_without_its_password() {
        for url in [
            "nonsense",
            "oracle://x",
            "mysql://u:secret@h:99999/x",
            "mysql://u:secret@h/%zz",
            "mysql://u:se/secret@h:x",
            "mysql://u:a?secret@h:x/%zz",
            "mysql://u@h:x/d?password=secret",
            "mysql:u:secret@h/x",
            "u:secret@h/x",
        ] {
            let error = Target::parse(url).unwrap_err();
            assert!(!error.message().contains("secret"), "{error}");
            assert!(!error.hint_text().is_empty());
        }
    }
}
