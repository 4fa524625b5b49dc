//! Methods of `Session` that a session hands on to the one within it, each written once.

/// Writes the named methods of a `Session` (or of `Dynamic`, which has the same) for the field that holds another.
macro_rules! hands_on {
    ($within:tt: $($method:ident)*) => { $($crate::session::hands_on!(@$method $within);)* };
    (@dialect $within:tt) => {
        fn dialect(&self) -> &'static $crate::session::Dialect {
            self.$within.dialect()
        }
    };
    (@vector_sql $within:tt) => {
        fn vector_sql(&self) -> Option<$crate::session::VectorSql> {
            self.$within.vector_sql()
        }
    };
    (@server_version $within:tt) => {
        fn server_version(&self) -> &str {
            self.$within.server_version()
        }
    };
    (@telling_of $within:tt) => {
        fn telling_of<'t>(&self, text: &'t str) -> std::borrow::Cow<'t, str> {
            self.$within.telling_of(text)
        }
    };
    (@prepare $within:tt) => {
        async fn prepare(&mut self, sql: &str) -> $crate::error::Result<$crate::session::Statement> {
            self.$within.prepare(sql).await
        }
    };
    (@deallocate $within:tt) => {
        async fn deallocate(&mut self, statement: $crate::session::Statement) -> $crate::error::Result<()> {
            self.$within.deallocate(statement).await
        }
    };
    (@plan $within:tt) => {
        async fn plan(
            &mut self,
            executed: bool,
            sql: &str,
            prepared: Option<$crate::session::Statement>,
            parameters: &[$crate::session::Value<'_>],
        ) -> $crate::error::Result<String> {
            self.$within.plan(executed, sql, prepared, parameters).await
        }
    };
    (@begin $within:tt) => {
        async fn begin(&mut self) -> $crate::error::Result<()> {
            self.$within.begin().await
        }
    };
    (@commit $within:tt) => {
        async fn commit(&mut self) -> $crate::error::Result<()> {
            self.$within.commit().await
        }
    };
    (@rollback $within:tt) => {
        async fn rollback(&mut self) -> $crate::error::Result<()> {
            self.$within.rollback().await
        }
    };
    (@bulk_insert $within:tt) => {
        async fn bulk_insert(
            &mut self,
            table: &str,
            columns: &[&str],
            mut next: impl FnMut(&mut $crate::session::RowBuffer) -> bool,
        ) -> $crate::error::Result<u64> {
            self.$within.bulk_insert(table, columns, &mut next).await
        }
    };
    (@drop_table $within:tt) => {
        async fn drop_table(&mut self, table: &str) -> $crate::error::Result<()> {
            self.$within.drop_table(table).await
        }
    };
    (@traffic $within:tt) => {
        fn traffic(&self) -> $crate::session::Traffic {
            self.$within.traffic()
        }
    };
    (@engine_cpu_ns $within:tt) => {
        fn engine_cpu_ns(&self) -> Option<u64> {
            self.$within.engine_cpu_ns()
        }
    };
    (@close $within:tt) => {
        async fn close(self) {
            self.$within.close().await;
        }
    };
}
pub(crate) use hands_on;
