//! A connection as a session sees it: append to the outbox, send, wait for what is needed, look, consume.

use super::address::Address;
use super::connect::{connect, Connected};
use super::executor::Held;
use super::left::AtServer;
use super::shared::Shared;
use super::slots::{Ending, Slot};
use super::tls::{Tls, Trust};
use crate::error::{Code, Error, Result};
use socket2::SockRef;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// A connection that has held more than this gives the memory back when it is empty.
const KEPT_BYTES: usize = 64 << 10;

/// What went over the connection so far; bytes are 0 for an engine within the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub rows_received: u64,
}

impl std::ops::Add for Traffic {
    type Output = Traffic;

    fn add(self, other: Traffic) -> Traffic {
        Traffic {
            bytes_sent: self.bytes_sent + other.bytes_sent,
            bytes_received: self.bytes_received + other.bytes_received,
            rows_received: self.rows_received + other.rows_received,
        }
    }
}

/// One connection of this thread's loop.
pub struct Stream {
    slot: Connected,
    held: Held,
    outbox: Vec<u8>,
    inbox: Vec<u8>,
    /// Where in `inbox` begins what has not been consumed.
    start: usize,
    tls: Option<Box<Tls>>,
    shared: Arc<Shared>,
    traffic: Traffic,
    answer_timeout_ns: u64,
    at_server: Option<AtServer>,
}

impl Drop for Stream {
    /// A server does not notice that nobody waits for an answer any more, so it is told later.
    fn drop(&mut self) {
        let Some(at_server) = self.at_server else { return };
        self.held.with_if_any(|this| {
            let waits = |slot: &mut Slot| match slot.ending() {
                None => slot.is_waited_for(),
                Some(ending) => ending == Ending::Silent,
            };
            if this.slots.get(self.slot.0).is_some_and(waits) {
                self.shared.left.note(at_server);
            }
        });
    }
}

impl Stream {
    /// Connects within `connect_timeout`; from then on a silence of `answer_timeout` ends the connection.
    pub async fn open(
        address: &Address,
        shared: &Arc<Shared>,
        connect_timeout: Duration,
        answer_timeout: Duration,
    ) -> Result<Self> {
        let slot = connect(address, shared, connect_timeout).await?;
        Ok(Stream {
            slot,
            held: Held::here(),
            outbox: Vec::new(),
            inbox: Vec::new(),
            start: 0,
            tls: None,
            shared: shared.clone(),
            traffic: Traffic::default(),
            answer_timeout_ns: answer_timeout.as_nanos() as u64,
            at_server: None,
        })
    }

    /// Notes what the server calls this connection.
    pub(crate) fn known_as(&mut self, at_server: AtServer) {
        self.at_server = Some(at_server);
    }

    /// The port that it leaves from; `None` where it is no connection over TCP.
    pub(crate) fn local_port(&self) -> Option<u16> {
        self.held.with(|this| {
            let slot = this.slots.get(self.slot.0)?;
            SockRef::from(&slot.fd).local_addr().ok()?.as_socket().map(|address| address.port())
        })
    }

    /// The longest silence from here on.
    pub fn set_answer_timeout(&mut self, timeout: Duration) {
        self.answer_timeout_ns = timeout.as_nanos() as u64;
    }

    /// Speaks TLS from here on, with a server of this name.
    pub async fn start_tls(&mut self, server_name: &str, trust: &Trust) -> Result<()> {
        if self.start < self.inbox.len() {
            return Err(Error::protocol(
                "the server sent bytes between its consent to TLS and the handshake",
            ));
        }
        let mut tls = Box::new(Tls::new(&self.shared.tls, server_name, trust)?);
        while tls.is_handshaking() {
            tls.write(&mut self.outbox)?;
            self.hand_over();
            if tls.is_handshaking() {
                self.wait_for_bytes().await?;
                let arrived = std::mem::take(&mut self.inbox);
                tls.read(&arrived, &mut self.inbox)?;
            }
        }
        tls.write(&mut self.outbox)?;
        self.hand_over();
        self.tls = Some(tls);
        Ok(())
    }

    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// What the encrypted connection is bound to, see `Tls::end_point`.
    pub fn end_point(&self) -> Option<Vec<u8>> {
        self.tls.as_ref()?.end_point()
    }

    /// What is to be sent next.
    #[inline]
    pub fn outbox(&mut self) -> &mut Vec<u8> {
        &mut self.outbox
    }

    /// Hands the outbox over. It goes out with those of all other tasks of this turn.
    #[inline]
    pub fn send(&mut self) -> Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.encrypt(&mut self.outbox)?;
        }
        self.hand_over();
        Ok(())
    }

    /// `send`, after which the running task waits for what comes. False where it does not wait, because something has
    /// come already or nothing will.
    #[inline]
    pub fn ask(&mut self) -> Result<bool> {
        if self.tls.is_some() || !self.inbox().is_empty() {
            return self.send().map(|()| false);
        }
        self.traffic.bytes_sent += self.outbox.len() as u64;
        let (outbox, timeout_ns) = (&mut self.outbox, self.answer_timeout_ns);
        let task = self.held.running();
        let waits = self.held.with(|this| this.ask(self.slot.0, outbox, task, timeout_ns));
        self.empty_outbox();
        Ok(waits)
    }

    fn hand_over(&mut self) {
        self.traffic.bytes_sent += self.outbox.len() as u64;
        let outbox = &mut self.outbox;
        self.held.with(|this| this.hand_over(self.slot.0, outbox));
        self.empty_outbox();
    }

    #[inline]
    fn empty_outbox(&mut self) {
        let outbox = &mut self.outbox;
        outbox.clear();
        if outbox.capacity() > KEPT_BYTES {
            *outbox = Vec::new();
        }
    }

    /// Received and not yet consumed.
    #[inline]
    pub fn inbox(&self) -> &[u8] {
        &self.inbox[self.start..]
    }

    #[inline]
    pub fn consume(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.inbox.len());
        if self.start == self.inbox.len() {
            self.start = 0;
            if self.inbox.capacity() > KEPT_BYTES {
                self.inbox = Vec::new();
            } else {
                self.inbox.clear();
            }
        }
    }

    /// Waits until at least `bytes` are in the inbox.
    #[inline]
    pub async fn need(&mut self, bytes: usize) -> Result<()> {
        while self.inbox.len() - self.start < bytes {
            self.more().await?;
        }
        Ok(())
    }

    /// Waits until there is more in the inbox than there was.
    pub async fn more(&mut self) -> Result<()> {
        // One level of future only: this is where a task is resumed for every answer.
        std::future::poll_fn(|_| self.poll_more()).await
    }

    /// Like `more`, where the server may end by closing the connection: false then.
    pub async fn more_or_end(&mut self) -> Result<bool> {
        match self.more().await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Code::Closed => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether nothing more can be read: the server has gone, and all that it sent was taken.
    pub fn has_ended(&self) -> bool {
        let is_over = |slot: &mut Slot| slot.ending().is_some() && slot.received.is_empty();
        self.inbox().is_empty() && self.held.with(|this| this.slots.get(self.slot.0).is_none_or(is_over))
    }

    /// What `more` waits for, for those that are futures themselves.
    #[inline]
    pub fn poll_more(&mut self) -> Poll<Result<()>> {
        if self.tls.is_some() {
            return self.poll_clear_text();
        }
        self.poll_bytes()
    }

    fn poll_clear_text(&mut self) -> Poll<Result<()>> {
        let Some(mut tls) = self.tls.take() else { return self.poll_bytes() };
        // Clear text is kept in `inbox`, so what arrives is received beside it.
        let clear = std::mem::take(&mut self.inbox);
        let start = std::mem::take(&mut self.start);
        let outcome = self.poll_bytes();
        let arrived = std::mem::replace(&mut self.inbox, clear);
        self.start = start;
        let outcome = outcome.map(|outcome| outcome.and_then(|()| tls.read(&arrived, &mut self.inbox)));
        self.tls = Some(tls);
        outcome
    }

    async fn wait_for_bytes(&mut self) -> Result<()> {
        std::future::poll_fn(|_| self.poll_bytes()).await
    }

    /// Takes what has arrived, or notes that this task waits for it.
    #[inline]
    fn poll_bytes(&mut self) -> Poll<Result<()>> {
        self.held.with(|this| {
            let turn_ns = this.turn_ns;
            let Some(slot) = this.slots.get(self.slot.0) else {
                return Poll::Ready(Err(lost(Ending::Closed)));
            };
            if slot.received.is_empty() {
                if let Some(ending) = slot.ending() {
                    return Poll::Ready(Err(lost(ending)));
                }
                let until_ns = turn_ns.saturating_add(self.answer_timeout_ns);
                this.slots.wait(self.slot.0, self.held.running(), until_ns);
                return Poll::Pending;
            }
            self.traffic.bytes_received += slot.received.len() as u64;
            if self.inbox.is_empty() {
                std::mem::swap(&mut self.inbox, &mut slot.received);
            } else {
                self.inbox.drain(..self.start);
                self.start = 0;
                self.inbox.extend_from_slice(&slot.received);
                slot.received.clear();
            }
            if slot.received.capacity() > KEPT_BYTES {
                slot.received = Vec::new();
            }
            // Whoever was woken by what came waits no more.
            if slot.is_waited_for() {
                this.slots.no_more_waits(self.slot.0);
            }
            Poll::Ready(Ok(()))
        })
    }

    pub fn traffic(&self) -> Traffic {
        self.traffic
    }
}

fn lost(ending: Ending) -> Error {
    match ending {
        Ending::Closed => Error::closed("the server closed the connection"),
        Ending::Silent => Error::silent("the server gave no answer in time"),
        Ending::Flooded => Error::protocol("the server sent more than 64 MiB that nobody had asked for"),
        Ending::Errno(number) => {
            let error = std::io::Error::from_raw_os_error(number);
            Error::broken(format!("the connection to the server broke: {error}"))
        }
    }
}
