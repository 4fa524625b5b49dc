//! To whom a password is given: what `tls=required` and `tls=verify` promise of a server that asks for it in clear text.

use dyno_driver::io::{self, Backend};
use dyno_driver::session::postgresql::Postgresql;
use dyno_driver::session::{Session, Target};
use dyno_driver::{Error, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Of nobody whom this machine trusts, for the name localhost.
const CERTIFICATE: &[u8] = include_bytes!("../tls/certificate.pem");
const KEY: &[u8] = include_bytes!("../tls/key.pem");

/// A server in PostgreSQL's place that wants TLS, and then the password: its port, and what it hears.
fn impostor() -> (u16, JoinHandle<std::io::Result<String>>) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let configuration = builder.unwrap().with_no_client_auth().with_single_cert(vec![certificate], key);
    let configuration = Arc::new(configuration.unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        // SSLRequest, and consent to it.
        stream.read_exact(&mut [0; 8])?;
        stream.write_all(b"S")?;
        let mut stream = StreamOwned::new(ServerConnection::new(configuration).unwrap(), stream);
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize - 4])?;
        // AuthenticationCleartextPassword
        stream.write_all(b"R\0\0\0\x08\0\0\0\x03")?;
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let mut word = vec![0; usize::from(head[4]) - 4];
        stream.read_exact(&mut word)?;
        Ok(String::from_utf8_lossy(&word).trim_end_matches('\0').to_owned())
    });
    (port, heard)
}

fn refusal(url: &str) -> Error {
    let target = Target::parse(url).unwrap();
    let connected: Result<Postgresql> =
        io::block_on(Backend::Epoll, Postgresql::connect(&target), || false).unwrap().unwrap();
    connected.err().expect("an impostor lets nobody in")
}

#[test]
fn verify_gives_no_password_to_an_impostor() {
    let (port, heard) = impostor();
    let error = refusal(&format!("postgresql://u:secret@127.0.0.1:{port}/x?tls=verify"));
    assert!(error.message().contains("TLS"), "{error}");
    assert!(heard.join().unwrap().is_err());
}

/// As libpq's sslmode=require and the MySQL client's --ssl-mode=REQUIRED: against those who listen, not against those
/// who answer. The documentation says so.
#[test]
fn required_takes_any_certificate() {
    let (port, heard) = impostor();
    refusal(&format!("postgresql://u:secret@127.0.0.1:{port}/x?tls=required"));
    assert_eq!(heard.join().unwrap().unwrap(), "secret");
}
