//! Which certificates of a server are accepted.

use crate::error::{Error, Result};
use rsa::pkcs8::der::{asn1::AnyRef, Decode, Reader, SliceReader};
use rsa::pkcs8::spki::AlgorithmIdentifierRef;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_name, WebPkiServerVerifier};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, DigitallySignedStruct, InconsistentKeys, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
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

/// The client's own certificate, with those of who issued it, and its key, as a server may ask for them. A certificate of
/// X.509's first version will do, which is what a plain `openssl x509 -req` makes.
pub(super) fn own(certificate: &str, key: &str, provider: &CryptoProvider) -> Result<CertifiedKey> {
    let wrong = |file: &str, why: &dyn std::fmt::Display, name: &str, what: &str| {
        Error::user(format!("{file}: {why}")).hint(format!("give a PEM file with {what} as {name}=PATH"))
    };
    let (one, other) =
        ("the client's certificate", "the key of the client's certificate, without a password,");
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(|error| wrong(certificate, &error, "tls_cert", one))?;
    if chain.is_empty() {
        return Err(wrong(certificate, &"it holds no certificate", "tls_cert", one));
    }
    let read = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error, "tls_key", other))?;
    let read = provider.key_provider.load_private_key(read);
    let read = read.map_err(|error| wrong(key, &error, "tls_key", other))?;
    let found = CertifiedKey::new(chain, read);
    match found.keys_match() {
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(wrong(key, &format!("it is not the key of {certificate}"), "tls_key", other))
        }
        _ => Ok(found),
    }
}

/// The certificate's hash by the hash of its own signature, SHA-256 in the place of MD5 and SHA-1 (RFC 5929, 4.1).
/// `None` for signatures that name no hash, as those of Ed25519.
pub(super) fn end_point(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let mut reader = SliceReader::new(certificate).ok()?;
    let algorithm = reader.sequence(|inner| {
        AnyRef::decode(inner)?;
        let algorithm = AlgorithmIdentifierRef::decode(inner)?;
        AnyRef::decode(inner)?;
        Ok(algorithm.oid.to_string())
    });
    Some(match algorithm.ok()?.as_str() {
        // RSA with MD5, SHA-1 and SHA-256; ECDSA with SHA-1 and SHA-256.
        "1.2.840.113549.1.1.4"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.1"
        | "1.2.840.10045.4.3.2" => Sha256::digest(certificate).to_vec(),
        "1.2.840.113549.1.1.14" | "1.2.840.10045.4.3.1" => Sha224::digest(certificate).to_vec(),
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => Sha384::digest(certificate).to_vec(),
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => Sha512::digest(certificate).to_vec(),
        _ => return None,
    })
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
