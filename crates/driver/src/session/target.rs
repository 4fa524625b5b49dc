//! Where to connect to: the job's URL, taken apart.

use super::salted::Salted;
use crate::error::{Error, Result};
use crate::io::{Shared, Trust};
use serde::Serialize;
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

    /// The products that speak it, as the documentation names them.
    fn products(self) -> &'static [&'static str] {
        match self {
            Protocol::Mysql => &["MariaDB", "MySQL"],
            Protocol::Postgresql => &["PostgreSQL"],
            Protocol::Firebird => &["Firebird"],
            Protocol::Sqlite => &["SQLite"],
            Protocol::Http => &["applications"],
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

/// Parameters of URLs that are alike: what the reader takes, the documentation lists and `dyno load --help` names.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub names: &'static [&'static str],
    pub of: &'static [Protocol],
    pub is: &'static str,
}

impl Serialize for Parameter {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let of: Vec<_> = self.of.iter().flat_map(|protocol| protocol.products()).collect();
        (self.names, of, self.is).serialize(serializer)
    }
}

const WITH_TLS: &[Protocol] = &[Protocol::Mysql, Protocol::Postgresql];
const WITH_SOCKET: &[Protocol] = &[Protocol::Mysql, Protocol::Postgresql, Protocol::Http];

pub static PARAMETERS: &[Parameter] = &[
    Parameter {
        names: &["socket"],
        of: WITH_SOCKET,
        is: "the path of the server's socket; of PostgreSQL also the folder that it lies in",
    },
    Parameter {
        names: &["host"],
        of: &[Protocol::Postgresql],
        is: "as libpq has it: a host or the folder of the socket, or several with commas between them",
    },
    Parameter {
        names: &["target_session_attrs"],
        of: &[Protocol::Postgresql],
        is: "which of several hosts will do: `any` (the default: the first that answers), `primary`, `standby`, \
             `prefer-standby`, `read-write` or `read-only`",
    },
    Parameter {
        names: &["source"],
        of: WITH_SOCKET,
        is: "addresses of this host that connections leave from in turn, as `10.0.0.2,10.0.0.3`. Each has the ports \
             of `net.ipv4.ip_local_port_range`, 28,232 by default",
    },
    Parameter {
        names: &["tls"],
        of: WITH_TLS,
        is: "`auto` (the default: if the server requires it), `off`, `required`, or `verify`. Only `verify` checks \
             the certificate, and so to whom the password goes",
    },
    Parameter {
        names: &["tls_ca"],
        of: WITH_TLS,
        is: "for `verify`: a PEM file of authorities, or of the certificate itself; without it the machine's \
             authorities",
    },
    Parameter {
        names: &["tls_cert", "tls_key"],
        of: WITH_TLS,
        is: "PEM files of the client's own certificate, which a server may ask for, and of its key; without \
             `tls_key` the key stands in the first file too. They encrypt as `tls=required` does",
    },
    Parameter {
        names: &["channel_binding"],
        of: &[Protocol::Postgresql],
        is: "whether SCRAM is bound to the encrypted connection, so that nobody in between can pass it on: \
             `prefer` (the default: where the server offers it), `require` or `disable`",
    },
    Parameter {
        names: &["statements"],
        of: WITH_TLS,
        is: "`prepared` (the default: once for each connection), `text` (values stand in the statement), or for \
             PostgreSQL `unnamed` (parsed anew each time, with values beside it), for poolers",
    },
    Parameter {
        names: &["library"],
        of: &[Protocol::Sqlite, Protocol::Firebird],
        is: "the library to load, instead of this machine's",
    },
    Parameter {
        names: &["create"],
        of: &[Protocol::Firebird],
        is: "`1` makes the file if it does not exist",
    },
    Parameter {
        names: &["page_size"],
        of: &[Protocol::Firebird, Protocol::Sqlite],
        is: "the page size of a file that is made; Firebird's default is 8192",
    },
    Parameter {
        names: &["charset", "role"],
        of: &[Protocol::Firebird],
        is: "the character set (`UTF8`), the role",
    },
    Parameter {
        names: &["transaction"],
        of: &[Protocol::Sqlite],
        is: "`deferred` (the default), or `immediate`: takes the write lock at once",
    },
    Parameter {
        names: &[
            "auto_vacuum",
            "encoding",
            "locking_mode",
            "journal_mode",
            "synchronous",
            "temp_store",
            "cache_size",
            "mmap_size",
            "wal_autocheckpoint",
            "busy_timeout",
        ],
        of: &[Protocol::Sqlite],
        is: "pragmas of each connection",
    },
];

/// Whether to encrypt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// Only if the server insists.
    Auto,
    Off,
    /// Encrypted, with whatever certificate the server shows.
    Required,
    /// Encrypted, and the certificate is checked.
    Verified,
}

impl Encryption {
    pub fn is_on(self) -> bool {
        matches!(self, Encryption::Required | Encryption::Verified)
    }
}

/// How statements go to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statements {
    /// Prepared once, and executed by name or number for the life of the session.
    Prepared,
    /// Prepared for each execution, in the same flight: nothing of it outlives a transaction.
    Unnamed,
    /// As text, with the values in it.
    Text,
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
    /// Hosts and ports to try after these.
    pub others: Vec<(String, Option<u16>)>,
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
        let mut hosts = Vec::new();
        for place in place.split(',') {
            hosts
                .push(host_and_port(place).ok_or_else(|| wrong("has a port that is no number of 1..65535"))?);
        }
        if hosts.len() > 1 && protocol != Protocol::Postgresql {
            return Err(wrong("names several hosts, which only PostgreSQL's URLs may"));
        }
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
        let mut hosts = hosts.into_iter().map(|(host, port)| Ok((decode(host)?, port)));
        let (host, port) = hosts.next().transpose()?.unwrap_or_default();
        let others = hosts.collect::<Result<_>>()?;
        Ok(Target {
            protocol,
            user: decode(user)?,
            password: decode(password)?,
            host,
            port,
            others,
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

    /// The word that a parameter has, of those that it takes; `None` where the URL lacks it.
    pub(crate) fn choice<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>> {
        let Some(given) = self.parameter(name) else { return Ok(None) };
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == given) {
            return Ok(Some(*meaning));
        }
        let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let (last, others) = words.split_last().unwrap_or((&"nothing", &[]));
        Err(Error::user(format!("the URL's {name}={given} means nothing"))
            .hint(format!("write {name}={} or {last}", others.join(", "))))
    }

    pub(crate) fn statements(&self) -> Result<Statements> {
        let words = [
            ("prepared", Statements::Prepared),
            ("text", Statements::Text),
            ("unnamed", Statements::Unnamed),
        ];
        let offered = if self.protocol == Protocol::Postgresql { 3 } else { 2 };
        Ok(self.choice("statements", &words[..offered])?.unwrap_or(Statements::Prepared))
    }

    pub(crate) fn encryption(&self) -> Result<Encryption> {
        let words = [
            ("auto", Encryption::Auto),
            ("off", Encryption::Off),
            ("required", Encryption::Required),
            ("verify", Encryption::Verified),
        ];
        let asked = self.choice("tls", &words)?.unwrap_or(Encryption::Auto);
        match (self.parameter("tls_cert"), self.parameter("tls_key")) {
            (None, None) => Ok(asked),
            (None, Some(_)) => Err(Error::user("the URL has a tls_key without a tls_cert")
                .hint("name the client's certificate as well: tls_cert=PATH")),
            (Some(_), _) => match asked {
                Encryption::Auto => Ok(Encryption::Required),
                Encryption::Off => {
                    Err(Error::user("the URL has a tls_cert, which is shown over TLS, and tls=off")
                        .hint("leave out one of them"))
                }
                other => Ok(other),
            },
        }
    }

    /// What TLS is to check of the server, and what it shows of the client.
    pub(crate) fn trust(&self, verify: bool) -> Trust {
        let named = |name| self.parameter(name).map(str::to_owned);
        let certificate = named("tls_cert");
        let key = named("tls_key").or_else(|| certificate.clone());
        Trust { verify, authority: named("tls_ca"), identity: certificate.zip(key) }
    }

    /// Refuses parameters that the protocol does not know, naming those that it does.
    pub fn allow_parameters(&self) -> Result<()> {
        let known = PARAMETERS.iter().filter(|one| one.of.contains(&self.protocol));
        let names: Vec<&str> = known.flat_map(|one| one.names).copied().collect();
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
    fn several_hosts_are_tried_in_their_order() {
        let target = Target::parse("postgresql://u@one,[::1]:5433,t%77o:5434/x").unwrap();
        assert_eq!((target.host.as_str(), target.port), ("one", None));
        assert_eq!(target.others, [("::1".to_owned(), Some(5433)), ("two".to_owned(), Some(5434))]);
        let error = Target::parse("mysql://u:secret@one,two/x").unwrap_err();
        assert!(error.message().contains("several hosts"), "{error}");
    }

    #[test]
    fn a_word_that_means_nothing_is_told_what_would() {
        let told = |url: &str| {
            let target = Target::parse(url).unwrap();
            let error = target.statements().err().or_else(|| target.encryption().err());
            error.or_else(|| target.allow_parameters().err()).unwrap().to_string()
        };
        for (url, remedy) in [
            ("mysql://h/x?statements=unnamed", "statements=prepared or text"),
            ("postgresql://h/x?statements=each", "statements=prepared, text or unnamed"),
            ("postgresql://h/x?tls=on", "tls=auto, off, required or verify"),
            ("mysql://h/x?tls_key=k", "tls_cert=PATH"),
            ("mysql://h/x?tls_cert=c&tls=off", "leave out one"),
            ("sqlite:///x?tls=off", "sqlite takes: library, page_size, transaction"),
        ] {
            let error = told(url);
            assert!(error.contains(remedy), "{url}: {error}");
        }
    }

    #[test]
    fn a_certificate_of_the_client_is_shown_over_tls() {
        let target = Target::parse("mysql://h/x?tls_cert=both.pem").unwrap();
        assert_eq!(target.encryption().unwrap(), Encryption::Required);
        assert_eq!(target.trust(false).identity, Some(("both.pem".to_owned(), "both.pem".to_owned())));
        let target = Target::parse("mysql://h/x?tls_cert=c&tls_key=k&tls=verify&tls_ca=a").unwrap();
        assert_eq!(target.encryption().unwrap(), Encryption::Verified);
        let expected = Trust {
            verify: true,
            authority: Some("a".to_owned()),
            identity: Some(("c".to_owned(), "k".to_owned())),
        };
        assert_eq!(target.trust(true), expected);
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
