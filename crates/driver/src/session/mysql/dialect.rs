//! The SQL of MariaDB and MySQL.

use crate::session::{Dialect, Identity, Placeholder, ProcedureSql};

const OF_INNODB: Dialect = Dialect {
    name: "mysql",
    placeholder: Placeholder::Question,
    identity: Identity::AutoIncrement,
    double: "DOUBLE",
    timestamp: "DATETIME",
    now: "NOW()",
    text: "LONGTEXT",
    table_suffix: " ENGINE=InnoDB",
    char_padded: false,
    for_update: true,
    update_returning: false,
    clustered: true,
    truncate: true,
    multi_row_insert: true,
    after_load: None,
    explain: Some("EXPLAIN FORMAT=JSON"),
    explain_executed: Some("ANALYZE FORMAT=JSON"),
    warnings: Some("SHOW WARNINGS"),
    counters: None,
    limit: "LIMIT {}",
    passed_over: None,
    procedures: Some(ProcedureSql::Mysql),
};

pub(super) static DIALECT: Dialect = OF_INNODB;
/// Where the job names a storage engine, each session has told the server which, and no table names another.
pub(super) static DIALECT_OF_ANY_ENGINE: Dialect = Dialect { table_suffix: "", ..OF_INNODB };
