//! What every session must do, whatever the engine. Embedded engines run in the test's process on files of their own;
//! Firebird's library is that of `DYNO_TEST_FIREBIRD_LIBRARY`, or else of the wheel in `.venv`. Servers are those of
//! `DYNO_TEST_MYSQL_URL`, `DYNO_TEST_POSTGRESQL_URL` and `DYNO_TEST_FIREBIRD_URL`, whose databases the tests may make
//! tables in.
//! What cannot run says so and passes: `cargo test --test conformance -- --nocapture` shows it.

mod again;
mod errors;
mod place;
mod statements;
mod transactions;
mod types;

use dyno_driver::session::firebird::Firebird;
use dyno_driver::session::mysql::Mysql;
use dyno_driver::session::postgresql::Postgresql;
use dyno_driver::session::sqlite::Sqlite;

macro_rules! conformance {
    ($($module:ident: $session:ty { $($file:ident: $($check:ident),* $(,)?;)* })*) => {
        $(mod $module {
            use super::*;

            $($(#[test]
            fn $check() {
                for place in place::$module(stringify!($check)) {
                    $file::$check::<$session>(&place);
                }
            })*)*
        })*
    };
}

macro_rules! every_session {
    ($($module:ident: $session:ty),*) => {
        conformance! {
            $($module: $session {
                types:
                    values_come_back_as_they_were,
                    absent_values_are_null,
                    parameters_take_the_columns_type,
                    the_dialect_is_the_engines;
                statements:
                    a_prepared_statement_is_executed_again,
                    an_empty_answer_has_no_rows,
                    changed_rows_are_counted,
                    all_of_many_rows_are_read,
                    a_statement_that_was_let_go_is_gone,
                    a_batch_executes_each,
                    rows_are_inserted_in_bulk,
                    tables_change_under_prepared_statements,
                    a_missing_table_may_be_dropped;
                again:
                    each_execution_has_its_own_columns,
                    every_type_reads_the_same_both_ways,
                    an_altered_table_has_its_new_columns,
                    an_altered_table_costs_no_execution,
                    a_long_row_is_read,
                    a_text_is_the_same_in_every_mode;
                transactions:
                    a_commit_is_seen_and_a_rollback_is_not,
                    a_statement_alone_commits_itself,
                    a_conflict_is_worth_a_retry,
                    sessions_work_side_by_side;
                errors:
                    a_wrong_statement_leaves_the_session_usable,
                    a_second_row_of_a_key_is_refused,
                    a_wrong_number_of_parameters_is_refused,
                    a_bulk_insert_that_fails_leaves_nothing,
                    an_unknown_url_parameter_is_refused,
                    a_database_that_is_not_there_is_said_so,
                    a_session_that_was_ended_is_lost,
                    a_server_that_stands_still_holds_one_thread;
            })*
        }
    };
}

every_session!(sqlite: Sqlite, firebird: Firebird, mysql: Mysql, postgresql: Postgresql);
