//! One client's conversation with its script: calls a function of it, and does what it asks for until it ends.

use super::answers::Stored;
use super::connections::Connections;
use super::report::Running;
use super::request::{Ending, Request};
use super::settings::Ignored;
use super::source::Shared;
use super::state::{of_script, State};
use crate::error::{Code, Error, Fate, Result};
use crate::io;
use crate::random::Random;
use crate::session::{emptied, Answer, Session, Target, Traffic, Value};
use std::cell::Cell;
use std::rc::Rc;

/// A script, its connections, and what they are about.
pub struct Client {
    state: State,
    connections: Connections,
    ignored: Ignored,
    /// The last error that the script was told of.
    refusal: Option<Error>,
    /// The errors before that one, which the script has caught.
    overcome: Vec<Error>,
    /// A function of the script was called and has not ended.
    calling: bool,
    /// It has asked the driver for something since it was called.
    asked: bool,
    /// Kept for its memory.
    parameters: Vec<Value<'static>>,
    /// Rows that statements have changed.
    pub(super) affected: u64,
    /// An event has said that it was the last.
    pub(super) stopped: bool,
    /// Counts for the script's reports, where it has any.
    pub(super) running: Option<Running>,
}

impl Client {
    pub(super) fn new(state: State, target: Option<Target>, ignored: Ignored) -> Self {
        Client {
            state,
            connections: Connections::new(target),
            ignored,
            refusal: None,
            overcome: Vec::new(),
            calling: false,
            asked: false,
            parameters: Vec::new(),
            affected: 0,
            stopped: false,
            running: None,
        }
    }

    /// Has lost its connections. The script goes on with what is in its variables.
    pub(super) fn begin_again(&mut self, shared: &Shared) -> Result<()> {
        self.state.begin_again(shared)?;
        self.connections.lose();
        (self.refusal, self.calling) = (None, false);
        Ok(())
    }

    /// What goes over the connections that the script opens beside the driver's session.
    pub(super) fn beside(&self) -> Rc<Cell<Traffic>> {
        self.connections.beside()
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Whether the event that failed has changed rows for good.
    pub(super) fn changed(&self) -> bool {
        self.connections.changed()
    }

    pub(super) fn take_overcome(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.overcome)
    }

    /// Calls a function of the script to its end; nothing where it has none of this name.
    pub(super) async fn call<S: Session>(&mut self, name: &str, session: &mut S) -> Result<()> {
        if std::mem::replace(&mut self.calling, true) {
            // Its connection was lost, or it was ended.
            return Err(Error::lost("script left", "the script was left in the middle of a function"));
        }
        (self.refusal, self.asked) = (None, false);
        self.connections.begin();
        let mut request = self.state.call(name)?;
        loop {
            request = match request {
                Request::Done(ending) => {
                    self.calling = false;
                    return self.end::<S>(ending).await;
                }
                other => self.answer(other, session).await?,
            };
        }
    }

    /// The same with random numbers drawn from `random`, which goes on where the script leaves it.
    pub(super) async fn call_drawing<S: Session>(
        &mut self,
        name: &str,
        session: &mut S,
        random: &mut Random,
    ) -> Result<()> {
        self.state.draw_from(*random);
        let outcome = self.call(name, session).await;
        *random = self.state.random();
        if !self.asked {
            // Whoever asks for nothing waits for nothing, and would never let the thread's other clients go on.
            io::yield_now().await;
        }
        outcome
    }

    async fn end<S: Session>(&mut self, ending: Ending) -> Result<()> {
        self.state.answers.borrow_mut().forget_begun();
        match ending {
            Ending::Fine { stops } => {
                self.stopped |= stops;
                self.overcome.extend(self.refusal.take());
                Ok(())
            }
            Ending::Restart { place } => {
                self.connections.rollback_others::<S>().await?;
                let by_script = || Error::server("restarted by the script", Fate::Retry, "restarted");
                let refusal = self.refusal.take().unwrap_or_else(by_script).retried();
                Err(if place.is_empty() { refusal } else { refusal.at(place) })
            }
            Ending::Refused { place } => {
                self.connections.rollback_others::<S>().await?;
                let lost = || Error::internal("the script was refused something that nobody knows");
                Err(self.refusal.take().unwrap_or_else(lost).failed().at(place))
            }
            Ending::Broken { reason } => Err(of_script(&reason)),
        }
    }

    /// Does what the script asks for, and gives it the answer; returns what it asks for next.
    async fn answer<S: Session>(&mut self, request: Request, session: &mut S) -> Result<Request> {
        self.asked = true;
        match request {
            Request::Query { connection } => {
                let mut rows = self.state.begin_answer(connection);
                let sql = self.state.sql()?;
                let outcome = self.connections.query(connection, session, sql, &mut *rows).await;
                self.give_rows(connection, rows, outcome)
            }
            Request::Execute { connection, statement } => {
                let mut rows = self.state.begin_answer(connection);
                let mut values = emptied(std::mem::take(&mut self.parameters));
                self.state.parameters(&mut values);
                let outcome =
                    self.connections.execute(connection, session, statement, &values, &mut *rows).await;
                self.parameters = emptied(values);
                self.give_rows(connection, rows, outcome)
            }
            Request::Prepare { connection } => {
                let outcome = self.connections.prepare(connection, session, self.state.sql()?).await;
                self.give(outcome)
            }
            Request::Close { connection, statement } => {
                let outcome = self.connections.close_statement(connection, session, statement).await;
                self.give(outcome.map(|()| 0))
            }
            Request::Connect => {
                let outcome = self.connections.connect(session).await;
                self.give(outcome)
            }
            Request::Reconnect { connection } => {
                let outcome = self.connections.reconnect(connection, session).await;
                self.running.iter().filter(|_| outcome.is_ok()).for_each(Running::reconnected);
                self.give(outcome.map(|()| 0))
            }
            Request::Disconnect { connection } => {
                self.connections.disconnect::<S>(connection).await;
                self.give(Ok(0))
            }
            Request::Sleep { duration_ns } => {
                io::sleep_ns(duration_ns).await;
                self.give(Ok(0))
            }
            Request::Done(_) => Err(Error::internal("a script that has ended is asked to go on")),
        }
    }

    fn give_rows(
        &mut self,
        connection: usize,
        rows: Box<Stored>,
        outcome: Result<Answer>,
    ) -> Result<Request> {
        match outcome {
            Ok(answer) => {
                self.affected += answer.affected;
                let kept = self.state.answers.borrow_mut().keep(connection, rows);
                if let Some(running) = &self.running {
                    running.statement(kept.columns, answer.affected);
                }
                self.state.answer_result(kept.number)
            }
            Err(error) => self.refuse(error),
        }
    }

    /// Lets the script go on with a number, or with the refusal.
    fn give(&mut self, outcome: Result<usize>) -> Result<Request> {
        match outcome {
            Ok(number) => self.state.answer(&[number as f64]),
            Err(error) => self.refuse(error),
        }
    }

    /// Tells the script of an error. A lost connection is nothing for the script: the driver ends the client, or begins
    /// it anew.
    #[cold]
    fn refuse(&mut self, error: Error) -> Result<Request> {
        if matches!(error.fate(), Fate::Lost | Fate::Fatal) {
            return Err(error);
        }
        let ignorable = self.ignored.has(&error);
        let (number, sqlstate) = match error.code() {
            Code::Mysql(number) => (i64::from(number), error.sqlstate().to_owned()),
            Code::Sqlite(number) | Code::SqliteNoTable(number) => {
                (number.into(), error.sqlstate().to_owned())
            }
            Code::Firebird(number) => (number as i64, error.sqlstate().to_owned()),
            state => (0, state.to_string()),
        };
        let told = (false, ignorable, number, sqlstate, error.message().to_owned());
        let earlier = self.refusal.replace(error);
        self.overcome.extend(earlier);
        self.state.answer_with(told)
    }
}
