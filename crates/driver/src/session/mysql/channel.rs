//! Packets over a stream: sequence numbers, packets longer than one, and no byte copied that need not be.

use super::packet::{end_packet, header, joinable, start_packet, HEADER_BYTES, PACKET_MAX};
use crate::error::{Error, Result};
use crate::io::{AtServer, Stream, Trust};
use crate::session::Traffic;
use std::task::Poll;
use std::time::Duration;

pub(super) struct Channel {
    stream: Stream,
    /// The sequence number that the next packet must carry.
    sequence: u8,
    /// Bytes of the stream that the caller has been shown and that go before the next packet.
    shown: usize,
    /// A payload of more than one packet, put together.
    joined: Vec<u8>,
}

impl Channel {
    pub fn new(stream: Stream) -> Self {
        Channel { stream, sequence: 0, shown: 0, joined: Vec::new() }
    }

    pub fn outbox(&mut self) -> &mut Vec<u8> {
        self.stream.outbox()
    }

    /// The number for a packet that answers one of the server's.
    pub fn next_sequence(&self) -> u8 {
        self.sequence
    }

    /// Begins a packet in the outbox.
    #[inline]
    pub fn start(&mut self, sequence: u8) -> usize {
        self.sequence = sequence.wrapping_add(1);
        start_packet(self.stream.outbox(), sequence)
    }

    /// Puts a whole packet into the outbox, the first of a command and shorter than the longest there can be.
    #[inline]
    pub fn put_packet<const N: usize>(&mut self, packet: &[u8; N]) {
        self.sequence = 1;
        self.stream.outbox().extend_from_slice(packet);
    }

    /// Ends the packet begun at `start` and hands it over.
    #[inline]
    pub fn finish(&mut self, start: usize) -> Result<()> {
        self.end(start);
        self.send()
    }

    /// Hands over what was ended.
    #[inline]
    pub fn send(&mut self) -> Result<()> {
        self.stream.send()
    }

    /// Hands over what was ended and waits for the answer; see `Stream::ask`.
    #[inline]
    pub fn ask(&mut self) -> Result<bool> {
        self.stream.ask()
    }

    /// Ends the packet, to be handed over with the next one.
    #[inline]
    pub fn end(&mut self, start: usize) {
        let length = self.stream.outbox().len() - start - HEADER_BYTES;
        self.sequence = self.sequence.wrapping_add((length / PACKET_MAX) as u8);
        end_packet(self.stream.outbox(), start);
    }

    /// Says with which sequence number the next answer begins: each command that is in flight has its own.
    pub fn expect(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// The payload that was shown last (of a packet no longer than one).
    pub fn shown(&self) -> &[u8] {
        self.stream.inbox().get(HEADER_BYTES..self.shown).unwrap_or_default()
    }

    /// Waits until something is in the inbox, and shows all of it.
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

    /// What has arrived and was not taken yet, and the number that its first packet must carry.
    pub fn peek(&self) -> (&[u8], u8) {
        (self.stream.inbox(), self.sequence)
    }

    /// Takes packets that `peek` showed.
    pub fn take(&mut self, bytes: usize) {
        self.stream.consume(bytes);
    }

    /// The payload of the next packet that is wholly here, without waiting.
    #[inline]
    pub fn packet_here(&mut self) -> Option<&[u8]> {
        self.stream.consume(std::mem::take(&mut self.shown));
        let inbox = self.stream.inbox();
        let (length, sequence) = header(inbox)?;
        if sequence != self.sequence || length == PACKET_MAX || inbox.len() < HEADER_BYTES + length {
            return None;
        }
        self.sequence = sequence.wrapping_add(1);
        self.shown = HEADER_BYTES + length;
        Some(&self.stream.inbox()[HEADER_BYTES..HEADER_BYTES + length])
    }

    /// The payload of the next packet.
    #[inline]
    pub async fn packet(&mut self) -> Result<&[u8]> {
        self.stream.consume(std::mem::take(&mut self.shown));
        self.stream.need(HEADER_BYTES).await?;
        let length = self.checked_header()?;
        if length == PACKET_MAX {
            return self.long_packet().await;
        }
        self.stream.need(HEADER_BYTES + length).await?;
        self.shown = HEADER_BYTES + length;
        Ok(&self.stream.inbox()[HEADER_BYTES..HEADER_BYTES + length])
    }

    fn checked_header(&mut self) -> Result<usize> {
        let (length, sequence) = header(self.stream.inbox()).unwrap_or_default();
        if sequence != self.sequence {
            return Err(Error::protocol(format!(
                "the server sent packet number {sequence} where {} was due",
                self.sequence
            )));
        }
        self.sequence = sequence.wrapping_add(1);
        Ok(length)
    }

    #[cold]
    async fn long_packet(&mut self) -> Result<&[u8]> {
        self.joined.clear();
        let mut length = PACKET_MAX;
        loop {
            self.stream.need(HEADER_BYTES + length).await?;
            self.joined.extend_from_slice(&self.stream.inbox()[HEADER_BYTES..HEADER_BYTES + length]);
            self.stream.consume(HEADER_BYTES + length);
            if length < PACKET_MAX {
                return Ok(&self.joined);
            }
            joinable(self.joined.len())?;
            self.stream.need(HEADER_BYTES).await?;
            length = self.checked_header()?;
        }
    }

    pub async fn start_tls(&mut self, name: &str, trust: &Trust) -> Result<()> {
        self.stream.consume(std::mem::take(&mut self.shown));
        self.stream.start_tls(name, trust).await
    }

    /// The port that a connection over TCP leaves from.
    pub fn local_port(&self) -> Option<u16> {
        self.stream.local_port()
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
