//! What each connection is told as soon as it is open, before anything else is asked of it.

use super::target::Protocol;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// An isolation level of SQL's standard.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// What a job asks for at the beginning of each connection.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Opening {
    /// Of all transactions; `None` leaves it to the server.
    pub isolation: Option<Isolation>,
    /// Of the tables that are made: a storage engine of MariaDB's or MySQL's, a table access method of PostgreSQL's.
    pub storage_engine: Option<String>,
    /// Statements of the user's own, in their order, after the others.
    pub sql: Vec<String>,
}

impl Isolation {
    fn as_sql(self) -> &'static str {
        match self {
            Isolation::ReadUncommitted => "READ UNCOMMITTED",
            Isolation::ReadCommitted => "READ COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE READ",
            Isolation::Serializable => "SERIALIZABLE",
        }
    }
}

impl Opening {
    /// The statements in the SQL of this protocol; refuses what it has no statement for.
    pub fn statements(&self, protocol: Protocol) -> Result<Vec<String>> {
        let isolation = self.isolation.map(|isolation| isolated(protocol, isolation)).transpose()?;
        let engine = self.storage_engine.as_ref().map(|engine| stored(protocol, engine)).transpose()?;
        Ok(isolation.into_iter().chain(engine).chain(self.sql.iter().cloned()).collect())
    }
}

fn isolated(protocol: Protocol, isolation: Isolation) -> Result<String> {
    let level = isolation.as_sql();
    match protocol {
        Protocol::Mysql => Ok(format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")),
        Protocol::Postgresql => {
            Ok(format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}"))
        }
        Protocol::Firebird => Err(Error::user("the isolation level cannot be chosen with Firebird")
            .hint("leave it out: the driver's transactions are READ COMMITTED there")),
        Protocol::Sqlite => Err(Error::user("the isolation level cannot be chosen with SQLite")
            .hint("leave it out: SQLite's transactions are SERIALIZABLE")),
        Protocol::Http => Err(Error::user("the isolation level cannot be chosen with an application")
            .hint("leave it out: the application opens its own connections to the database")),
    }
}

fn stored(protocol: Protocol, engine: &str) -> Result<String> {
    let letters = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if engine.is_empty() || !engine.chars().all(letters) {
        return Err(Error::user(format!("the storage engine cannot be {engine:?}"))
            .hint("give its name: letters, digits and _"));
    }
    match protocol {
        Protocol::Mysql => Ok(format!("SET SESSION default_storage_engine = {engine}")),
        Protocol::Postgresql => Ok(format!("SET default_table_access_method = {engine}")),
        Protocol::Firebird | Protocol::Sqlite | Protocol::Http => {
            Err(Error::user(format!("{} has no storage engines", protocol.as_str()))
                .hint("leave the storage engine out"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Opening {
        Opening {
            isolation: Some(Isolation::RepeatableRead),
            storage_engine: Some("heap".to_owned()),
            sql: vec!["SET a = 1".to_owned(), "SET b = 2".to_owned()],
        }
    }

    #[test]
    fn servers_are_told_in_their_own_sql() {
        assert_eq!(
            whole().statements(Protocol::Mysql).unwrap(),
            [
                "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
                "SET SESSION default_storage_engine = heap",
                "SET a = 1",
                "SET b = 2",
            ]
        );
        let postgresql = whole().statements(Protocol::Postgresql).unwrap();
        assert!(postgresql[0].starts_with("SET SESSION CHARACTERISTICS"), "{postgresql:?}");
        assert_eq!(postgresql[1], "SET default_table_access_method = heap");
    }

    #[test]
    fn nothing_is_told_unless_it_is_asked_for() {
        for protocol in Protocol::ALL {
            assert!(Opening::default().statements(protocol).unwrap().is_empty());
        }
    }

    #[test]
    fn what_a_server_has_no_statement_for_is_refused() {
        for protocol in [Protocol::Firebird, Protocol::Sqlite, Protocol::Http] {
            let sql = Opening { isolation: None, storage_engine: None, ..whole() };
            assert_eq!(sql.statements(protocol).unwrap(), ["SET a = 1", "SET b = 2"]);
            let isolation = Opening { storage_engine: None, ..whole() };
            let engine = Opening { isolation: None, ..whole() };
            for refused in [isolation, engine] {
                let error = refused.statements(protocol).unwrap_err();
                assert!(error.hint_text().starts_with("leave "), "{error}");
            }
        }
    }

    #[test]
    fn a_storage_engine_is_a_name() {
        for name in ["", "a b", "x; DROP TABLE t", "`a`"] {
            let named = Opening { storage_engine: Some(name.to_owned()), ..Opening::default() };
            assert!(named.statements(Protocol::Mysql).unwrap_err().message().contains(name));
        }
    }
}
