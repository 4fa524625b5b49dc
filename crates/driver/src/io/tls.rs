//! TLS over a stream's buffers; rustls does the work.

use crate::error::{Error, Result};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::io::{Read, Write};
use std::sync::Arc;

/// Where the distributions keep the certificates of the authorities that the machine trusts.
const AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

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
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    if !verify {
        let verifier = Arc::new(AnyCertificate(provider));
        return Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth());
    }
    let mut roots = RootCertStore::empty();
    let file = authority.or_else(|| AUTHORITIES.into_iter().find(|path| std::path::Path::new(path).exists()));
    let file = file.ok_or_else(|| {
        Error::user("no certificates of authorities on this machine")
            .hint("name a file with the URL's tls_ca=PATH")
    })?;
    let certificates = CertificateDer::pem_file_iter(file)
        .map_err(|error| Error::user(format!("{file}: {error}")).hint("give a PEM file as tls_ca=PATH"))?;
    for certificate in certificates.flatten() {
        // One that rustls cannot use is no reason to refuse the others.
        let _ = roots.add(certificate);
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn failed(error: rustls::Error) -> Error {
    Error::connect(format!("TLS: {error}")).hint("see the URL's tls=required|verify|off and tls_ca=PATH")
}

fn broken(error: std::io::Error) -> Error {
    Error::lost("connection lost", format!("TLS: {error}"))
}

/// Encrypts without asking who the other side is: for servers that made their certificate themselves.
#[derive(Debug)]
struct AnyCertificate(Arc<rustls::crypto::CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
