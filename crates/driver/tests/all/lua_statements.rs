//! Statements that a script of sysbench prepares and closes.

use crate::lua::{asked, event};

#[test]
fn a_statement_is_let_go_with_the_last_of_its_text_that_is_closed() {
    let script = event(
        "local one, other, begin = con:prepare('a'), con:prepare('a'), con:prepare('BEGIN')
         one:close() one:close() begin:close()
         other:execute()
         local ok, message = pcall(one.execute, one)
         assert(not ok and message:find('this statement was closed'), message)
         other:close()
         con:prepare('b'):execute()
         con:prepare('a'):execute()
         con:reconnect()
         one:close()",
    );
    let expected = [
        "0 prepare a",
        "0 a []",
        "0 deallocate a",
        "0 prepare b",
        "0 b []",
        "0 prepare a",
        "0 a []",
        "1 opened",
    ];
    assert_eq!(asked(1, &script), expected);
}
