//! TLS over a stream's buffers; rustls does the work.

use super::certificates::{self, Certificates};
use crate::error::{Error, Result};
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, ClientConnection};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// What is checked of a server, and what it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// The certificate must be one that the machine's own authorities vouch for, or those of the file `authority`;
    /// else any is accepted.
    pub verify: bool,
    pub authority: Option<String>,
    /// The files of the client's own certificate and of its key.
    pub identity: Option<(String, String)>,
}

pub(super) struct Tls {
    connection: ClientConnection,
}

/// The configurations that connections share, so that the authorities are read once and a server can resume a session.
#[derive(Debug, Default)]
pub(super) struct Configurations(Mutex<Vec<Configuration>>);

#[derive(Debug)]
struct Configuration {
    trust: Trust,
    made: Arc<ClientConfig>,
}

impl Configurations {
    fn get(&self, trust: &Trust) -> Result<Arc<ClientConfig>> {
        // Whoever else connects meanwhile waits: it needs the same one.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|one| one.trust == *trust) {
            return Ok(known.made.clone());
        }
        let made = Arc::new(configuration(trust)?);
        all.push(Configuration { trust: trust.clone(), made: made.clone() });
        Ok(made)
    }
}

impl Tls {
    pub fn new(shared: &Configurations, server_name: &str, trust: &Trust) -> Result<Self> {
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| Error::user(format!("{server_name:?} is no name that TLS can check")))?;
        let connection = ClientConnection::new(shared.get(trust)?, name).map_err(failed)?;
        Ok(Tls { connection })
    }

    /// What this connection is bound to for the server and nobody in between (tls-server-end-point, RFC 5929);
    /// `None` where the certificate's signature names no hash that is known.
    pub fn end_point(&self) -> Option<Vec<u8>> {
        certificates::end_point(self.connection.peer_certificates()?.first()?)
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
                return Err(Error::closed("the server ended the TLS connection"));
            }
        }
        Ok(())
    }
}

fn configuration(trust: &Trust) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = if trust.verify {
        Certificates::issued_by(provider.clone(), trust.authority.as_deref())?
    } else {
        Certificates::any(provider.clone())
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    Ok(match &trust.identity {
        Some((certificate, key)) => {
            let own = certificates::own(certificate, key, builder.crypto_provider())?;
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own)))
        }
        None => builder.with_no_client_auth(),
    })
}

fn failed(error: rustls::Error) -> Error {
    use rustls::{AlertDescription::*, Error::AlertReceived};
    let hint = match error {
        AlertReceived(
            CertificateRequired | BadCertificate | UnknownCA | CertificateUnknown | AccessDenied | DecryptError,
        ) => {
            "the server wants a certificate of the client that its authority has signed, tls_cert=PATH, and the key \
             that belongs to it, tls_key=PATH"
        }
        _ => "see the URL's tls=required|verify|off and tls_ca=PATH",
    };
    Error::connect(format!("TLS: {error}")).hint(hint)
}

fn broken(error: std::io::Error) -> Error {
    Error::broken(format!("TLS: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{HandshakeKind, ServerConfig, ServerConnection};

    /// Of this test's server alone, for the name localhost.
    const CERTIFICATE: &[u8] = include_bytes!("../../tests/tls/certificate.pem");
    const KEY: &[u8] = include_bytes!("../../tests/tls/key.pem");

    fn server() -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
        let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let configuration = builder.unwrap().with_no_client_auth().with_single_cert(vec![certificate], key);
        Arc::new(configuration.unwrap())
    }

    /// One connection to the server: how its handshake went.
    fn connect(
        server: &Arc<ServerConfig>,
        shared: &Configurations,
        verify: bool,
        authority: Option<&str>,
    ) -> Result<HandshakeKind> {
        let trust = Trust { verify, authority: authority.map(str::to_owned), identity: None };
        let mut tls = Tls::new(shared, "localhost", &trust)?;
        let mut server = ServerConnection::new(server.clone()).unwrap();
        // The last of these turns carries what the server sends for a later session.
        for _ in 0..4 {
            let (mut there, mut back) = (Vec::new(), Vec::new());
            tls.write(&mut there)?;
            while server.read_tls(&mut there.as_slice()).unwrap() > 0 {
                there.clear();
                server.process_new_packets().unwrap();
            }
            while server.wants_write() {
                server.write_tls(&mut back).unwrap();
            }
            tls.read(&back, &mut Vec::new())?;
        }
        Ok(server.handshake_kind().unwrap())
    }

    #[test]
    fn a_second_connection_resumes_the_session_of_the_first() {
        let (server, shared) = (server(), Configurations::default());
        let kinds = [(); 3].map(|()| connect(&server, &shared, false, None).unwrap());
        assert_eq!(kinds, [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed]);
        // Who it is was not asked, so nothing of that is good for one that asks.
        assert!(connect(&server, &shared, true, Some("/there/is/none")).is_err());
    }

    #[test]
    fn the_authorities_are_read_once() {
        let file = std::env::temp_dir().join(format!("dyno-authority-{}.pem", std::process::id()));
        std::fs::write(&file, CERTIFICATE).unwrap();
        let (server, shared, authority) = (server(), Configurations::default(), file.to_str());
        assert_eq!(connect(&server, &shared, true, authority).unwrap(), HandshakeKind::Full);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(connect(&server, &shared, true, authority).unwrap(), HandshakeKind::Resumed);
        assert!(connect(&server, &Configurations::default(), true, authority).is_err());
    }
}
