//! A session of any kind, behind a pointer: for work whose speed does not hang on a call through it. What is written
//! for this one type is compiled once, and not once for each kind of session.

use super::{
    hands_on, Answer, Concrete, Dialect, Protocol, Row, RowBuffer, Rows, Session, Statement, Target, Traffic,
    Value, VectorSql,
};
use crate::error::Result;
use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;

/// What an expression is worth where a name stands for the type of session that a protocol has.
macro_rules! by_protocol {
    ($protocol:expr, $session:ident => $value:expr) => {
        match $protocol {
            $crate::session::Protocol::Mysql => {
                type $session = $crate::session::mysql::Mysql;
                $value
            }
            $crate::session::Protocol::Postgresql => {
                type $session = $crate::session::postgresql::Postgresql;
                $value
            }
            $crate::session::Protocol::Firebird => {
                type $session = $crate::session::firebird::Firebird;
                $value
            }
            $crate::session::Protocol::Sqlite => {
                type $session = $crate::session::sqlite::Sqlite;
                $value
            }
            $crate::session::Protocol::Http => {
                type $session = $crate::session::http::Http;
                $value
            }
        }
    };
}
pub(crate) use by_protocol;

/// The session that a target's protocol means.
pub(crate) struct AnySession(Box<dyn Dynamic>);

type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// What looks at rows; `None` looks at none.
type Looking<'a> = Option<&'a mut (dyn Look + 'a)>;

/// `Rows`, behind a pointer.
trait Look {
    fn names(&mut self, names: &[String]);

    fn columns(&mut self, count: usize);

    fn next_set(&mut self);

    fn warned(&mut self, warning: [String; 3]);

    fn warnings(&mut self, count: u64);

    fn counts(&mut self) -> Option<&mut Vec<(&'static str, i64)>>;

    fn row(&mut self, row: &dyn Row);
}

impl<R: Rows> Look for R {
    fn names(&mut self, names: &[String]) {
        Rows::names(self, names);
    }

    fn columns(&mut self, count: usize) {
        Rows::columns(self, count);
    }

    fn next_set(&mut self) {
        Rows::next_set(self);
    }

    fn warned(&mut self, warning: [String; 3]) {
        Rows::warned(self, warning);
    }

    fn warnings(&mut self, count: u64) {
        Rows::warnings(self, count);
    }

    fn counts(&mut self) -> Option<&mut Vec<(&'static str, i64)>> {
        Rows::counts(self)
    }

    fn row(&mut self, row: &dyn Row) {
        Rows::row(self, row);
    }
}

fn looking<R: Rows>(rows: &mut R) -> Looking<'_> {
    match R::READS {
        true => Some(rows),
        false => None,
    }
}

struct Shown<'a>(&'a mut (dyn Look + 'a));

impl Rows for Shown<'_> {
    fn names(&mut self, names: &[String]) {
        self.0.names(names);
    }

    fn columns(&mut self, count: usize) {
        self.0.columns(count);
    }

    fn next_set(&mut self) {
        self.0.next_set();
    }

    fn warned(&mut self, warning: [String; 3]) {
        self.0.warned(warning);
    }

    fn warnings(&mut self, count: u64) {
        self.0.warnings(count);
    }

    fn counts(&mut self) -> Option<&mut Vec<(&'static str, i64)>> {
        self.0.counts()
    }

    fn row(&mut self, row: &dyn Row) {
        self.0.row(row);
    }
}

/// `Session`, behind a pointer.
trait Dynamic {
    fn dialect(&self) -> &'static Dialect;

    fn vector_sql(&self) -> Option<VectorSql>;

    fn server_version(&self) -> &str;

    fn telling_of<'t>(&self, text: &'t str) -> Cow<'t, str>;

    fn prepare<'a>(&'a mut self, sql: &'a str) -> Pending<'a, Statement>;

    fn deallocate(&mut self, statement: Statement) -> Pending<'_, ()>;

    fn execute<'a>(
        &'a mut self,
        statement: Statement,
        parameters: &'a [Value<'a>],
        rows: Looking<'a>,
    ) -> Pending<'a, Answer>;

    fn execute_batch<'a>(
        &'a mut self,
        statement: Statement,
        parameters: &'a [Value<'a>],
        width: usize,
        rows: Looking<'a>,
    ) -> Pending<'a, Answer>;

    fn text<'a>(&'a mut self, sql: &'a str, rows: Looking<'a>) -> Pending<'a, Answer>;

    fn plan<'a>(
        &'a mut self,
        executed: bool,
        sql: &'a str,
        prepared: Option<Statement>,
        parameters: &'a [Value<'a>],
    ) -> Pending<'a, String>;

    fn begin(&mut self) -> Pending<'_, ()>;

    fn commit(&mut self) -> Pending<'_, ()>;

    fn rollback(&mut self) -> Pending<'_, ()>;

    fn bulk_insert<'a>(
        &'a mut self,
        table: &'a str,
        columns: &'a [&'a str],
        next: &'a mut (dyn FnMut(&mut RowBuffer) -> bool + 'a),
    ) -> Pending<'a, u64>;

    fn drop_table<'a>(&'a mut self, table: &'a str) -> Pending<'a, ()>;

    fn traffic(&self) -> Traffic;

    fn engine_cpu_ns(&self) -> Option<u64>;

    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()>>>;
}

struct Held<S>(S);

impl<S: Session> Dynamic for Held<S> {
    fn prepare<'a>(&'a mut self, sql: &'a str) -> Pending<'a, Statement> {
        Box::pin(self.0.prepare(sql))
    }

    fn deallocate(&mut self, statement: Statement) -> Pending<'_, ()> {
        Box::pin(self.0.deallocate(statement))
    }

    fn execute<'a>(
        &'a mut self,
        statement: Statement,
        parameters: &'a [Value<'a>],
        rows: Looking<'a>,
    ) -> Pending<'a, Answer> {
        Box::pin(async move {
            match rows {
                Some(rows) => self.0.execute(statement, parameters, &mut Shown(rows)).await,
                None => self.0.execute(statement, parameters, &mut ()).await,
            }
        })
    }

    fn execute_batch<'a>(
        &'a mut self,
        statement: Statement,
        parameters: &'a [Value<'a>],
        width: usize,
        rows: Looking<'a>,
    ) -> Pending<'a, Answer> {
        Box::pin(async move {
            match rows {
                Some(rows) => self.0.execute_batch(statement, parameters, width, &mut Shown(rows)).await,
                None => self.0.execute_batch(statement, parameters, width, &mut ()).await,
            }
        })
    }

    fn text<'a>(&'a mut self, sql: &'a str, rows: Looking<'a>) -> Pending<'a, Answer> {
        Box::pin(async move {
            match rows {
                Some(rows) => self.0.text(sql, &mut Shown(rows)).await,
                None => self.0.text(sql, &mut ()).await,
            }
        })
    }

    fn plan<'a>(
        &'a mut self,
        executed: bool,
        sql: &'a str,
        prepared: Option<Statement>,
        parameters: &'a [Value<'a>],
    ) -> Pending<'a, String> {
        Box::pin(self.0.plan(executed, sql, prepared, parameters))
    }

    fn begin(&mut self) -> Pending<'_, ()> {
        Box::pin(self.0.begin())
    }

    fn commit(&mut self) -> Pending<'_, ()> {
        Box::pin(self.0.commit())
    }

    fn rollback(&mut self) -> Pending<'_, ()> {
        Box::pin(self.0.rollback())
    }

    fn bulk_insert<'a>(
        &'a mut self,
        table: &'a str,
        columns: &'a [&'a str],
        next: &'a mut (dyn FnMut(&mut RowBuffer) -> bool + 'a),
    ) -> Pending<'a, u64> {
        Box::pin(self.0.bulk_insert(table, columns, next))
    }

    fn drop_table<'a>(&'a mut self, table: &'a str) -> Pending<'a, ()> {
        Box::pin(self.0.drop_table(table))
    }

    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(self.0.close())
    }

    hands_on!(0: dialect vector_sql server_version telling_of traffic engine_cpu_ns);
}

impl AnySession {
    /// Whether calls of this protocol's sessions block the thread.
    pub fn is_blocking(protocol: Protocol) -> bool {
        by_protocol!(protocol, S => <S as Concrete>::BLOCKING)
    }
}

impl Session for AnySession {
    fn load_library(target: &Target) {
        by_protocol!(target.protocol, S => S::load_library(target));
    }

    async fn connect(target: &Target) -> Result<Self> {
        let session: Box<dyn Dynamic> = by_protocol!(target.protocol, S => {
            Box::new(Held(Box::pin(S::connect(target)).await?))
        });
        Ok(AnySession(session))
    }

    async fn execute<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        self.0.execute(statement, parameters, looking(rows)).await
    }

    async fn execute_batch<R: Rows>(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        width: usize,
        rows: &mut R,
    ) -> Result<Answer> {
        self.0.execute_batch(statement, parameters, width, looking(rows)).await
    }

    async fn text<R: Rows>(&mut self, sql: &str, rows: &mut R) -> Result<Answer> {
        self.0.text(sql, looking(rows)).await
    }

    hands_on!(0: dialect vector_sql server_version telling_of prepare deallocate plan begin commit rollback bulk_insert drop_table traffic engine_cpu_ns close);
}
