//! The driver as a whole, through its public interface. All is one program, because each test program is linked with
//! all of the driver. Only the conformance suite is apart: `tests/conformance/test_sessions.py` runs it by itself, and
//! Firebird's library lives in its process.

mod acknowledged;
mod allocations;
mod event_loop;
mod fake;
mod hostile;
mod hostile_mysql;
mod http;
mod ledger;
mod lua;
mod lua_reports;
mod lua_statements;
mod names;
mod network;
mod oltp_and_tpcb;
mod own_workloads;
mod passwords;
mod round_trips;
mod runs;
mod sincere;
mod slices;
mod sources;
mod sqlite;
mod stand_in;
mod workloads;
mod ycsb;
