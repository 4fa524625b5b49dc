//! What the server says when it refuses something.

use super::packet::Reader;
use crate::error::{Code, Error, Fate};

/// The server has no connection left. It may say so at any word until it has let the client in.
const FULL: u16 = 1040;
/// Its clients hold as many prepared statements as it takes.
const STATEMENTS_FULL: u16 = 1461;

/// The error that an ERR packet stands for.
pub(super) fn server_error(payload: &[u8]) -> Error {
    let mut reader = Reader::new(payload.get(1..).unwrap_or_default());
    let Ok(code) = reader.u16() else { return Error::protocol("the server sent an error without a number") };
    let rest = reader.rest();
    let (sqlstate, text) = match rest.strip_prefix(b"#").and_then(|rest| rest.split_at_checked(5)) {
        Some(parts) => parts,
        None => (&b""[..], rest),
    };
    let (sqlstate, text) = (String::from_utf8_lossy(sqlstate), String::from_utf8_lossy(text));
    let (shown, words, fate) = match code {
        1213 => (1213, "deadlock", Fate::Retry),
        1205 => (1205, "lock wait timeout", Fate::Retry),
        1020 => (1020, "record changed", Fate::Retry),
        1062 => (1062, "duplicate key", Fate::Failed),
        1146 => (1146, "no such table", Fate::Failed),
        // Group replication: another member's transaction was first, and this one was rolled back at its COMMIT.
        3101 => (3101, "rolled back by the group", Fate::Retry),
        // Galera, and group replication's hooks: the node has left its cluster or is not in it yet. Whatever it is asked, it
        // refuses, so that another connection may fare better.
        1047 => (1047, "node not ready", Fate::Lost),
        3100 => (3100, "node not in its group", Fate::Lost),
        1053 => (1053, "server shutdown", Fate::Lost),
        1927 | 1152 | 1184 => (1927, "connection killed", Fate::Lost),
        // The server closes the connection with these.
        1158..=1161 => (1160, "network error at the server", Fate::Lost),
        4031 => (4031, "connection idle for too long", Fate::Lost),
        FULL => (1040, "too many connections", Fate::Failed),
        STATEMENTS_FULL => (1461, "too many statements", Fate::Failed),
        _ => (code, "error", Fate::Failed),
    };
    let error = Error::refused(Code::Mysql(shown), words, fate, format!("{text} (error {code})"));
    let error = error.with_sqlstate(sqlstate);
    match code {
        FULL => error.hint("raise the server's max_connections, or ask for fewer clients"),
        STATEMENTS_FULL => error.hint(
            "raise the server's max_prepared_stmt_count, ask for fewer clients, or have statements sent as text: end \
             the URL with ?statements=text",
        ),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn errors_say_whether_to_try_again() {
        let error = server_error(b"\xFF\xBD\x04#40001Deadlock found");
        assert_eq!((error.label(), error.fate()), ("1213 deadlock", Fate::Retry));
        assert_eq!((error.sqlstate(), error.message()), ("40001", "Deadlock found (error 1213)"));
        assert_eq!(server_error(b"\xFF\x26\x04#42000Duplicate").fate(), Fate::Failed);
        assert_eq!(server_error(b"\xFF").label(), "protocol");
    }

    #[test]
    fn what_a_node_of_a_cluster_refuses_is_no_failure_of_the_statement() {
        let not_ready =
            server_error(b"\xFF\x17\x04#08S01WSREP has not yet prepared node for application use");
        assert_eq!((not_ready.label(), not_ready.fate()), ("1047 node not ready", Fate::Lost));
        let hook = server_error(b"\xFF\x1C\x0C#HY000Error on observer while running replication hook");
        assert_eq!((hook.label(), hook.fate()), ("3100 node not in its group", Fate::Lost));
        let certified = server_error(b"\xFF\x1D\x0C#40000Plugin instructed the server to rollback");
        assert_eq!((certified.label(), certified.fate()), ("3101 rolled back by the group", Fate::Retry));
    }

    #[test]
    fn a_server_that_is_full_says_what_helps() {
        for packet in [&b"\xFF\x10\x04Too many connections"[..], b"\xFF\x10\x04#08004Too many connections"] {
            let error = server_error(packet);
            assert_eq!(error.message(), "Too many connections (error 1040)");
            assert!(error.hint_text().contains("max_connections"));
        }
    }

    proptest! {
        #[test]
        fn no_packet_makes_the_parser_panic(payload in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = server_error(&payload);
        }
    }
}
