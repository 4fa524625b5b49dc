//! Which certificates of a server are accepted.

use crate::error::{Error, Result};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_name, WebPkiServerVerifier};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::Path;
use std::result::Result as Checked;
use std::sync::Arc;

/// Where the distributions keep the certificates of the authorities that the machine trusts.
const AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

#[derive(Debug)]
pub(super) struct Certificates {
    provider: Arc<CryptoProvider>,
    /// None asks nobody who the other side is.
    issued: Option<Arc<WebPkiServerVerifier>>,
    /// What the user named. A server may present one of these itself: it made its certificate, and the user knows it.
    named: Vec<CertificateDer<'static>>,
}

impl Certificates {
    /// Encrypts without asking who the other side is: for servers that made their certificate themselves.
    pub fn any(provider: Arc<CryptoProvider>) -> Self {
        Certificates { provider, issued: None, named: Vec::new() }
    }

    /// Those that an authority in the file `authority` has issued, or one that the machine trusts; and those in the
    /// file themselves.
    pub fn issued_by(provider: Arc<CryptoProvider>, authority: Option<&str>) -> Result<Self> {
        let file = authority.or_else(|| AUTHORITIES.into_iter().find(|path| Path::new(path).exists()));
        let file = file.ok_or_else(|| {
            Error::user("no certificates of authorities on this machine")
                .hint("name a file with the URL's tls_ca=PATH")
        })?;
        let found = CertificateDer::pem_file_iter(file).map_err(|error| {
            Error::user(format!("{file}: {error}")).hint("give a PEM file as tls_ca=PATH")
        })?;
        let found: Vec<_> = found.flatten().collect();
        let mut roots = RootCertStore::empty();
        // One that rustls cannot use is no reason to refuse the others.
        roots.add_parsable_certificates(found.iter().cloned());
        let issued = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|error| {
            Error::user(format!("{file}: {error}")).hint("give a PEM file with certificates as tls_ca=PATH")
        })?;
        let named = if authority.is_some() { found } else { Vec::new() };
        Ok(Certificates { provider, issued: Some(issued), named })
    }

    /// A certificate that is its own authority is refused by the rules of issuing alone (what is neither its date nor
    /// its name); the name must be right here as well.
    fn is_named(
        &self,
        certificate: &CertificateDer<'_>,
        name: &ServerName<'_>,
        why: &rustls::Error,
    ) -> Checked<bool, rustls::Error> {
        let by_issuing = matches!(why, rustls::Error::InvalidCertificate(CertificateError::Other(_)));
        if !by_issuing || !self.named.iter().any(|one| one == certificate) {
            return Ok(false);
        }
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name).map(|()| true)
    }
}

impl ServerCertVerifier for Certificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Checked<ServerCertVerified, rustls::Error> {
        let Some(issued) = &self.issued else { return Ok(ServerCertVerified::assertion()) };
        let checked = issued.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match checked {
            Err(why) if self.is_named(end_entity, server_name, &why)? => Ok(ServerCertVerified::assertion()),
            _ => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Checked<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Checked<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
