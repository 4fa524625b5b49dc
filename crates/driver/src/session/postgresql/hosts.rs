//! Which of several hosts a session is opened with, as libpq's `target_session_attrs` has it.

use super::{handshake, Postgresql};
use crate::error::{Error, Kind, Result};
use crate::io::within;
use crate::session::{Collect, Owned, Session, Target};

/// What a server must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Any,
    Primary,
    Standby,
    PreferStandby,
    ReadWrite,
    ReadOnly,
}

const WORDS: [(&str, Wanted); 6] = [
    ("any", Wanted::Any),
    ("primary", Wanted::Primary),
    ("standby", Wanted::Standby),
    ("prefer-standby", Wanted::PreferStandby),
    ("read-write", Wanted::ReadWrite),
    ("read-only", Wanted::ReadOnly),
];

const ROLE: &str =
    "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only')";

/// A session with the first host that answers and is what the URL wants. Each has an equal part of the time.
pub(super) async fn enter(target: &Target) -> Result<Postgresql> {
    let wanted = target.choice("target_session_attrs", &WORDS)?.unwrap_or(Wanted::Any);
    let hosts = alternatives(target);
    if hosts.len() == 1 && wanted == Wanted::Any {
        return Postgresql::on(handshake::connect(target).await?, target);
    }
    let passes = match wanted {
        Wanted::PreferStandby => vec![Wanted::Standby, Wanted::Any],
        one => vec![one],
    };
    let patience = target.connect_timeout / (hosts.len() * passes.len()) as u32;
    let mut refusals = Vec::new();
    for pass in passes {
        refusals.clear();
        for mut host in hosts.clone() {
            host.connect_timeout = patience;
            let outcome = within(patience, suitable(&host, pass)).await;
            match outcome.unwrap_or_else(|| Err(Error::connect("no answer in time"))) {
                Ok(session) => return Ok(session),
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => refusals.push(format!("{}: {}", place(&host), error.message())),
            }
        }
    }
    Err(Error::connect(format!("no host of the URL will do: {}", refusals.join("; ")))
        .hint("start one that will, or ask for another by the URL's target_session_attrs"))
}

/// The target once for each host that its URL names.
pub(super) fn alternatives(target: &Target) -> Vec<Target> {
    let alone = |host: &str, port: Option<u16>| Target {
        host: host.to_owned(),
        port,
        others: Vec::new(),
        ..target.clone()
    };
    if let Some(list) = target.parameter("host") {
        let one = |host: &str| {
            let mut one = alone(&target.host, target.port);
            one.parameters.insert("host".to_owned(), host.to_owned());
            one
        };
        return list.split(',').map(one).collect();
    }
    let first = alone(&target.host, target.port);
    std::iter::once(first).chain(target.others.iter().map(|(host, port)| alone(host, *port))).collect()
}

fn place(host: &Target) -> String {
    let name = host.parameter("host").unwrap_or(&host.host);
    host.port.map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))
}

/// What each host would say, or what no host changes: as with libpq, a log-in that is refused ends the search.
fn is_final(error: &Error) -> bool {
    error.kind() == Kind::User || error.code().is_of_class("28")
}

async fn suitable(host: &Target, wanted: Wanted) -> Result<Postgresql> {
    let mut session = Postgresql::on(handshake::connect(host).await?, host)?;
    if wanted == Wanted::Any {
        return Ok(session);
    }
    let mut answer = Collect::default();
    session.text(ROLE, &mut answer).await.map_err(Error::while_connecting)?;
    let row = answer.rows.first().map(Vec::as_slice);
    let is_standby = matches!(row, Some([Owned::Int(1), _]));
    let is_read_only = matches!(row, Some([_, Owned::Text(text)]) if text == "on");
    let (does, is) = match wanted {
        Wanted::Primary => (!is_standby, "it is a standby"),
        Wanted::Standby | Wanted::PreferStandby => (is_standby, "it is a primary"),
        Wanted::ReadWrite => (!is_read_only, "it only reads"),
        Wanted::ReadOnly => (is_read_only, "it takes writes"),
        Wanted::Any => (true, ""),
    };
    if does {
        Ok(session)
    } else {
        session.close().await;
        Err(Error::connect(is))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_of_a_url_is_a_target_of_its_own() {
        let places = |url: &str| -> Vec<String> {
            alternatives(&Target::parse(url).unwrap()).iter().map(place).collect()
        };
        assert_eq!(places("postgresql://u@one:1,two,[::1]:3/x"), ["one:1", "two", "::1:3"]);
        assert_eq!(places("postgresql://u@:7/x?host=one,two"), ["one:7", "two:7"]);
        assert_eq!(places("postgresql://u@h/x?host=/run/a,/run/b"), ["/run/a", "/run/b"]);
    }
}
