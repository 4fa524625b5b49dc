//! One client's connection to an application. It is opened for a request, and again where the application has closed
//! it between two of them: an open connection on which nothing is asked can hold a worker that others wait for.

use super::answer::{self, Framing, Head, Pieces};
use super::body::Reader;
use super::status::refusal;
use super::take::Taken;
use super::template::Template;
use crate::clock;
use crate::error::{Code, Error, Result};
use crate::io::{self, Address, Shared, Stream};
use crate::session::{Answer, Rows, Target, Traffic, Value};
use std::sync::Arc;
use std::time::Duration;

const PORT: u16 = 80;
/// Answers such as 103 Early Hints, which come before the answer; more than this is no application.
const INTERIM_MAX: usize = 8;
/// A client whose largest answer was longer than this gives the memory back.
const KEPT_BYTES: usize = 64 << 10;
/// After so long without a request the loop gets a turn before the next one: that the application has closed the
/// connection meanwhile may have arrived, and nobody has looked.
const IDLE_NS: u64 = 10_000_000;

pub(super) struct Connection {
    /// None before the first request.
    stream: Option<Stream>,
    address: Address,
    shared: Arc<Shared>,
    host: String,
    connect_timeout: Duration,
    answer_timeout: Duration,
    /// The application has announced that it closes the connection behind its last answer.
    closes: bool,
    /// When the last answer was whole.
    answered_ns: u64,
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
    /// Finds out that the application accepts connections, and keeps none.
    pub async fn open(target: &Target) -> Result<Self> {
        let name = if target.host.is_empty() { "localhost" } else { target.host.as_str() };
        let port = target.port.unwrap_or(PORT);
        let address = match target.parameter("socket") {
            Some(path) => Address::Unix(path.into()),
            None => Address::Tcp { host: name.to_owned(), port },
        };
        // An IPv6 address stands in brackets, as in a URL.
        let host = if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") };
        drop(Stream::open(&address, &target.shared, target.connect_timeout, target.answer_timeout).await?);
        Ok(Connection {
            stream: None,
            address,
            shared: target.shared.clone(),
            host,
            connect_timeout: target.connect_timeout,
            answer_timeout: target.answer_timeout,
            closes: false,
            answered_ns: 0,
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
        let kept = self.make_ready().await?;
        let head = match self.ask(template, values).await {
            // The application may close a kept connection at the moment at which it is used. Only of what changes
            // nothing is it known that asking twice is asking once.
            Err(error) if kept && template.is_safe() && is_cut(&error) => {
                self.reopen().await?;
                self.ask(template, values).await
            }
            outcome => outcome,
        }?;
        self.read_body(head.framing).await?;
        self.closes = head.closes;
        self.answered_ns = clock::now_ns();
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

    /// Sends a request and reads the head of its answer.
    async fn ask(&mut self, template: &Template, values: &[Value<'_>]) -> Result<Head> {
        let stream = opened(&mut self.stream)?;
        template.put(values, &mut self.outgoing, stream.outbox())?;
        stream.send()?;
        self.head(template).await
    }

    /// Sees to it that a request can be sent; true where the connection is one that was kept. An application may close
    /// a connection on which nothing is under way. Opening one is part of the request's latency, as it is for a user.
    async fn make_ready(&mut self) -> Result<bool> {
        if self.stream.is_some() && clock::now_ns().saturating_sub(self.answered_ns) > IDLE_NS {
            io::yield_now().await;
        }
        match &self.stream {
            Some(stream) if !self.closes && !stream.has_ended() => match stream.inbox() {
                [] => Ok(true),
                _ => Err(Error::protocol("the application sent bytes behind its answer that belong to none")),
            },
            _ => self.reopen().await.map(|()| false),
        }
    }

    async fn reopen(&mut self) -> Result<()> {
        // The old one is closed first: who keeps it open holds a worker.
        if let Some(old) = self.stream.take() {
            self.earlier = self.earlier + old.traffic();
        }
        // Opening takes much room and is soon over: in a box of its own it does not make every client larger.
        let opening = Stream::open(&self.address, &self.shared, self.connect_timeout, self.answer_timeout);
        self.stream = Some(Box::pin(opening).await?);
        self.closes = false;
        Ok(())
    }

    /// The head of the answer; what comes before it is passed over.
    async fn head(&mut self, template: &Template) -> Result<Head> {
        for _ in 0..=INTERIM_MAX {
            self.taken.start(template.takes());
            let head = self.any_head(template).await?;
            opened(&mut self.stream)?.consume(head.bytes);
            if head.status >= 200 {
                return Ok(head);
            }
        }
        Err(Error::protocol("the application announces answers and gives none"))
    }

    async fn any_head(&mut self, template: &Template) -> Result<Head> {
        let (stream, taken, mut pieces) = (opened(&mut self.stream)?, &mut self.taken, Pieces::default());
        loop {
            let note = |name: &str, value: &[u8]| taken.header(template.takes(), name, value);
            if pieces.are_worth_reading(stream.inbox()) {
                if let Some(head) = answer::head(stream.inbox(), template.is_head(), note)? {
                    return Ok(head);
                }
            }
            stream.more().await?;
        }
    }

    async fn read_body(&mut self, framing: Framing) -> Result<()> {
        if self.body.capacity() > KEPT_BYTES {
            self.body = Vec::new();
        }
        self.body.clear();
        let (stream, mut reader) = (opened(&mut self.stream)?, Reader::new(framing));
        loop {
            let taken = reader.feed(stream.inbox(), &mut self.body)?;
            stream.consume(taken);
            if reader.is_whole() {
                return Ok(());
            }
            if !stream.more_or_end().await? {
                return reader.end();
            }
        }
    }

    /// An answer counts as a row.
    pub fn traffic(&self) -> Traffic {
        let now = self.stream.as_ref().map(Stream::traffic).unwrap_or_default();
        Traffic { rows_received: self.answers, ..self.earlier + now }
    }
}

/// The connection that a request has readied.
fn opened(stream: &mut Option<Stream>) -> Result<&mut Stream> {
    stream.as_mut().ok_or_else(|| Error::internal("a request without a connection"))
}

/// Whether the application has ended the connection before the head of its answer; one that keeps silent has not.
fn is_cut(error: &Error) -> bool {
    matches!(error.code(), Code::Closed | Code::Broken)
}
