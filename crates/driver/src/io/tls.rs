//! TLS over a stream's buffers; rustls does the work.

use super::certificates::Certificates;
use crate::error::{Error, Result};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::{Read, Write};
use std::sync::Arc;

pub(super) struct Tls {
    connection: ClientConnection,
}

impl Tls {
    pub fn new(server_name: &str, verify: bool, authority: Option<&str>) -> Result<Self> {
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| Error::user(format!("{server_name:?} is no name that TLS can check")))?;
        let connection =
            ClientConnection::new(Arc::new(configuration(verify, authority)?), name).map_err(failed)?;
        Ok(Tls { connection })
    }

    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Appends what rustls has to send to `out`.
    pub fn write(&mut self, out: &mut Vec<u8>) -> Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(out).map_err(broken)?;
        }
        Ok(())
    }

    /// Replaces the clear text in `outbox` by its ciphertext.
    pub fn encrypt(&mut self, outbox: &mut Vec<u8>) -> Result<()> {
        let mut clear = std::mem::take(outbox);
        let mut rest = clear.as_slice();
        // rustls buffers a bounded amount of clear text, so long messages go through in pieces.
        while !rest.is_empty() {
            let taken = self.connection.writer().write(rest).map_err(broken)?;
            rest = &rest[taken..];
            self.write(outbox)?;
        }
        clear.clear();
        Ok(())
    }

    /// Takes in what arrived and appends its clear text to `inbox`. May append nothing: a record may be incomplete.
    pub fn read(&mut self, mut arrived: &[u8], inbox: &mut Vec<u8>) -> Result<()> {
        while !arrived.is_empty() {
            let taken = self.connection.read_tls(&mut arrived).map_err(broken)?;
            let state = self.connection.process_new_packets().map_err(failed)?;
            let (from, clear_bytes) = (inbox.len(), state.plaintext_bytes_to_read());
            inbox.resize(from + clear_bytes, 0);
            if clear_bytes > 0 {
                self.connection.reader().read_exact(&mut inbox[from..]).map_err(broken)?;
            }
            if taken == 0 {
                return Err(Error::lost("connection closed", "the server ended the TLS connection"));
            }
        }
        Ok(())
    }
}

fn configuration(verify: bool, authority: Option<&str>) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = if verify {
        Certificates::issued_by(provider.clone(), authority)?
    } else {
        Certificates::any(provider.clone())
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

fn failed(error: rustls::Error) -> Error {
    Error::connect(format!("TLS: {error}")).hint("see the URL's tls=required|verify|off and tls_ca=PATH")
}

fn broken(error: std::io::Error) -> Error {
    Error::lost("connection lost", format!("TLS: {error}"))
}
