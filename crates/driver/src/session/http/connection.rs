//! One connection to an application, opened again where the application has closed it between two requests.

use super::answer::{self, Framing, Head};
use super::body::Reader;
use super::status::refusal;
use super::take::Taken;
use super::template::Template;
use crate::error::{Error, Result};
use crate::io::{Address, Stream};
use crate::session::{Answer, Rows, Target, Traffic, Value};
use std::time::Duration;

const PORT: u16 = 80;
/// Answers such as 103 Early Hints, which come before the answer; more than this is no application.
const INTERIM_MAX: usize = 8;
/// A client whose largest answer was longer than this gives the memory back.
const KEPT_BYTES: usize = 64 << 10;

pub(super) struct Connection {
    stream: Stream,
    address: Address,
    host: String,
    connect_timeout: Duration,
    answer_timeout: Duration,
    /// The application has announced that it closes the connection behind its last answer.
    closes: bool,
    /// What went over the connections before this one.
    earlier: Traffic,
    /// Where a request's body is written.
    outgoing: Vec<u8>,
    /// The body of the answer.
    body: Vec<u8>,
    taken: Taken,
    answers: u64,
}

impl Connection {
    pub async fn open(target: &Target) -> Result<Self> {
        let name = if target.host.is_empty() { "localhost" } else { target.host.as_str() };
        let port = target.port.unwrap_or(PORT);
        let address = match target.parameter("socket") {
            Some(path) => Address::Unix(path.into()),
            None => Address::Tcp { host: name.to_owned(), port },
        };
        // An IPv6 address stands in brackets, as in a URL.
        let host = if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") };
        let stream = Stream::open(&address, target.connect_timeout, target.answer_timeout).await?;
        Ok(Connection {
            stream,
            address,
            host,
            connect_timeout: target.connect_timeout,
            answer_timeout: target.answer_timeout,
            closes: false,
            earlier: Traffic::default(),
            outgoing: Vec::new(),
            body: Vec::new(),
            taken: Taken::default(),
            answers: 0,
        })
    }

    /// The value of the header Host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Sends a request and reads its answer, which is one row of what the request takes from it.
    pub async fn exchange<R: Rows>(
        &mut self,
        template: &Template,
        values: &[Value<'_>],
        rows: &mut R,
    ) -> Result<Answer> {
        self.make_ready().await?;
        template.put(values, &mut self.outgoing, self.stream.outbox())?;
        self.stream.send()?;
        let head = self.head(template).await?;
        self.read_body(head.framing).await?;
        self.closes = head.closes;
        self.answers += 1;
        if !template.accepts(head.status) {
            return Err(refusal(template.asked(), head.status, &self.body));
        }
        if R::READS {
            self.taken.finish(template.takes(), &self.body).map_err(|error| error.at(template.asked()))?;
            rows.row(&self.taken);
        }
        Ok(Answer { rows: 1, affected: 0 })
    }

    /// Sees to it that a request can be sent. An application may close a connection on which nothing is under way.
    /// Opening it again is part of the request's latency, as it is for a user.
    async fn make_ready(&mut self) -> Result<()> {
        if self.closes || self.stream.has_ended() {
            // Opening takes much room and is soon over: in a box of its own it does not make every client larger.
            let opening = Stream::open(&self.address, self.connect_timeout, self.answer_timeout);
            let stream = Box::pin(opening).await?;
            self.earlier = sum(self.earlier, self.stream.traffic());
            self.stream = stream;
            self.closes = false;
        }
        if !self.stream.inbox().is_empty() {
            return Err(Error::protocol("the application sent bytes behind its answer that belong to none"));
        }
        Ok(())
    }

    /// The head of the answer; what comes before it is passed over.
    async fn head(&mut self, template: &Template) -> Result<Head> {
        for _ in 0..=INTERIM_MAX {
            self.taken.start(template.takes());
            let head = self.any_head(template).await?;
            self.stream.consume(head.bytes);
            if head.status >= 200 {
                return Ok(head);
            }
        }
        Err(Error::protocol("the application announces answers and gives none"))
    }

    async fn any_head(&mut self, template: &Template) -> Result<Head> {
        loop {
            let taken = &mut self.taken;
            let note = |name: &str, value: &[u8]| taken.header(template.takes(), name, value);
            if let Some(head) = answer::head(self.stream.inbox(), template.is_head(), note)? {
                return Ok(head);
            }
            self.stream.more().await?;
        }
    }

    async fn read_body(&mut self, framing: Framing) -> Result<()> {
        if self.body.capacity() > KEPT_BYTES {
            self.body = Vec::new();
        }
        self.body.clear();
        let mut reader = Reader::new(framing);
        loop {
            let taken = reader.feed(self.stream.inbox(), &mut self.body)?;
            self.stream.consume(taken);
            if reader.is_whole() {
                return Ok(());
            }
            if !self.stream.more_or_end().await? {
                return reader.end();
            }
        }
    }

    /// An answer counts as a row.
    pub fn traffic(&self) -> Traffic {
        Traffic { rows_received: self.answers, ..sum(self.earlier, self.stream.traffic()) }
    }
}

fn sum(one: Traffic, other: Traffic) -> Traffic {
    Traffic {
        bytes_sent: one.bytes_sent + other.bytes_sent,
        bytes_received: one.bytes_received + other.bytes_received,
        rows_received: one.rows_received + other.rows_received,
    }
}
