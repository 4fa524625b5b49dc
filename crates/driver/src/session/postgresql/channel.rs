//! Whole messages over a stream.

use super::message::{answer, header, put, HEADER_BYTES};
use crate::error::Result;
use crate::io::{AtServer, Stream, Trust};
use crate::session::Traffic;
use std::task::Poll;
use std::time::Duration;

pub(super) struct Channel {
    stream: Stream,
    /// Bytes of the message that was shown last; consumed when the next one is asked for.
    shown: usize,
}

impl Channel {
    pub fn new(stream: Stream) -> Self {
        Channel { stream, shown: 0 }
    }

    pub fn outbox(&mut self) -> &mut Vec<u8> {
        self.stream.outbox()
    }

    pub fn send(&mut self) -> Result<()> {
        self.stream.send()
    }

    /// Hands over what was put and waits for the answer; see `Stream::ask`.
    #[inline]
    pub fn ask(&mut self) -> Result<bool> {
        self.stream.ask()
    }

    /// Sends one message.
    pub fn say(&mut self, kind: u8, body: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        put(self.outbox(), kind, body);
        self.send()
    }

    /// The next message's type and payload. Notifications are passed over.
    #[inline]
    pub async fn message(&mut self) -> Result<(u8, &[u8])> {
        loop {
            self.stream.consume(std::mem::take(&mut self.shown));
            self.stream.need(HEADER_BYTES).await?;
            let (kind, length) = self.header()?;
            self.stream.need(HEADER_BYTES + length).await?;
            self.shown = HEADER_BYTES + length;
            if kind != answer::NOTIFICATION {
                return Ok((kind, &self.stream.inbox()[HEADER_BYTES..HEADER_BYTES + length]));
            }
        }
    }

    /// Waits until something is in the inbox.
    #[inline]
    pub fn poll_inbox(&mut self) -> Poll<Result<()>> {
        if self.shown > 0 {
            self.stream.consume(std::mem::take(&mut self.shown));
        }
        if self.stream.inbox().is_empty() {
            return self.stream.poll_more();
        }
        Poll::Ready(Ok(()))
    }

    /// What has arrived and was not taken yet, once `poll_inbox` is ready.
    #[inline]
    pub fn inbox(&self) -> &[u8] {
        self.stream.inbox()
    }

    /// Takes bytes that `inbox` showed.
    #[inline]
    pub fn take(&mut self, bytes: usize) {
        self.stream.consume(bytes);
    }

    /// The next row if it is here already: taken without a detour through the loop.
    #[inline]
    pub fn row_here(&mut self) -> Result<Option<&[u8]>> {
        let Some(header_here) = self.stream.inbox().get(self.shown..).and_then(|rest| rest.first_chunk())
        else {
            return Ok(None);
        };
        let (kind, length) = header(header_here)?;
        let end = self.shown + HEADER_BYTES + length;
        if kind != answer::DATA_ROW || self.stream.inbox().len() < end {
            return Ok(None);
        }
        self.stream.consume(std::mem::replace(&mut self.shown, HEADER_BYTES + length));
        Ok(Some(&self.stream.inbox()[HEADER_BYTES..HEADER_BYTES + length]))
    }

    fn header(&self) -> Result<(u8, usize)> {
        // `need` has seen to it that a header is here.
        self.stream.inbox().first_chunk().map_or(Ok((0, 0)), header)
    }

    /// The single byte with which a server answers the question for TLS.
    pub async fn byte(&mut self) -> Result<u8> {
        self.stream.need(1).await?;
        let byte = self.stream.inbox().first().copied().unwrap_or_default();
        self.stream.consume(1);
        Ok(byte)
    }

    pub async fn start_tls(&mut self, name: &str, trust: &Trust) -> Result<()> {
        self.stream.start_tls(name, trust).await
    }

    pub fn end_point(&self) -> Option<Vec<u8>> {
        self.stream.end_point()
    }

    pub fn known_as(&mut self, at_server: AtServer) {
        self.stream.known_as(at_server);
    }

    pub fn set_answer_timeout(&mut self, timeout: Duration) {
        self.stream.set_answer_timeout(timeout);
    }

    pub fn traffic(&self) -> Traffic {
        self.stream.traffic()
    }
}
