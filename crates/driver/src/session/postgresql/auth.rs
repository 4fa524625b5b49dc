//! How a password is shown to be known: MD5 (PostgreSQL before 14) and SCRAM-SHA-256 (RFC 5802 and 7677).

use crate::error::{Error, Result};
use crate::io::random_bytes;
use crate::session::{Hash, Salted};
use base64::{engine::general_purpose::STANDARD, Engine};
use hmac::{Hmac, Mac};
use md5::Md5;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// PostgreSQL's own default is 4,096, and OWASP's advice for this hash is 600,000. A server that asks for more is out to
/// waste time.
const ITERATIONS_MAX: u32 = 600_000;

/// Whether an exchange is bound to its connection (RFC 5802, 6, and RFC 5929).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// There is nothing to bind it to.
    None,
    /// There is, and the server does not offer it: it must know that, or somebody in between has taken its offer away.
    NotOffered,
    /// By the hash of the server's certificate.
    EndPoint(Vec<u8>),
}

impl Binding {
    /// What the client's first message begins with. PostgreSQL takes the user's name from the start-up message, so it is
    /// left out here.
    fn header(&self) -> &'static str {
        match self {
            Binding::None => "n,,",
            Binding::NotOffered => "y,,",
            Binding::EndPoint(_) => "p=tls-server-end-point,,",
        }
    }

    /// What the client's last message repeats of it.
    fn repeated(&self) -> String {
        let hash = if let Binding::EndPoint(hash) = self { hash.as_slice() } else { &[] };
        STANDARD.encode([self.header().as_bytes(), hash].concat())
    }
}

/// What AuthenticationMD5Password asks for.
pub(super) fn md5_password(user: &str, password: &str, salt: &[u8]) -> String {
    let inner = hex(&Md5::new().chain_update(password).chain_update(user).finalize());
    format!("md5{}", hex(&Md5::new().chain_update(inner).chain_update(salt).finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The client's side of one SCRAM exchange.
pub(super) struct Scram {
    binding: Binding,
    password: String,
    nonce: String,
    first_bare: String,
    /// The server's signature that is expected, once its salt is known.
    signature: Vec<u8>,
    verified: bool,
}

impl Scram {
    pub fn new(password: &str, binding: Binding) -> Result<Self> {
        Ok(Self::with_nonce("", password, STANDARD.encode(random_bytes::<18>()?), binding))
    }

    fn with_nonce(user: &str, password: &str, nonce: String, binding: Binding) -> Self {
        // What SASLprep forbids is taken as it is, as the server does.
        let password =
            stringprep::saslprep(password).map_or_else(|_| password.to_owned(), |text| text.into_owned());
        Scram {
            binding,
            password,
            first_bare: format!("n={user},r={nonce}"),
            nonce,
            signature: Vec::new(),
            verified: false,
        }
    }

    pub fn first(&self) -> String {
        format!("{}{}", self.binding.header(), self.first_bare)
    }

    /// The answer to the server's salt, count and nonce.
    pub async fn proof(&mut self, server_first: &str, known: &Salted, patience: Duration) -> Result<String> {
        let field = |name: &str| server_first.split(',').find_map(|field| field.strip_prefix(name));
        let (Some(nonce), Some(salt), Some(count)) = (field("r="), field("s="), field("i=")) else {
            return Err(Error::protocol("SCRAM: the server's first message lacks nonce, salt or count"));
        };
        let salt =
            STANDARD.decode(salt).map_err(|_| Error::protocol("SCRAM: the server's salt is no base64"))?;
        let count = count.parse().ok().filter(|count| (1..=ITERATIONS_MAX).contains(count));
        let count =
            count.ok_or_else(|| Error::protocol("SCRAM: the server's iteration count is out of range"))?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(Error::protocol("SCRAM: the server's nonce does not go on from ours"));
        }
        let salted = known.key(Hash::Sha256, self.password.as_bytes(), &salt, count, patience).await?;
        let client_key = mac(&salted, b"Client Key");
        let without_proof = format!("c={},r={nonce}", self.binding.repeated());
        let signed = format!("{},{server_first},{without_proof}", self.first_bare);
        let signature = mac(&Sha256::digest(client_key), signed.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(signature).map(|(key, bits)| key ^ bits).collect();
        self.signature = mac(&mac(&salted, b"Server Key"), signed.as_bytes()).to_vec();
        Ok(format!("{without_proof},p={}", STANDARD.encode(proof)))
    }

    /// Takes the server's last message, which shows that it knows the password too.
    pub fn verify_final(&mut self, server_final: &str) -> Result<()> {
        let claimed = server_final.split(',').find_map(|field| field.strip_prefix("v="));
        let claimed = claimed.and_then(|signature| STANDARD.decode(signature).ok());
        match claimed {
            Some(claimed) if !self.signature.is_empty() && claimed == self.signature => {
                self.verified = true;
                Ok(())
            }
            _ => Err(Error::protocol("SCRAM: the server did not show that it knows the password")),
        }
    }

    pub fn is_bound(&self) -> bool {
        matches!(self.binding, Binding::EndPoint(_))
    }

    pub fn is_verified(&self) -> bool {
        self.verified
    }
}

fn mac(key: &[u8], text: &[u8]) -> [u8; 32] {
    // An HMAC takes keys of any length.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default()));
    mac.update(text);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{block_on, Backend};
    use proptest::prelude::*;

    /// The example of RFC 7677, section 3.
    const SERVER_FIRST: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    fn proof(scram: &mut Scram, server_first: &str) -> Result<String> {
        let salted = Salted::default();
        let proof = scram.proof(server_first, &salted, Duration::from_secs(60));
        block_on(Backend::Epoll, proof, || false).unwrap().unwrap()
    }

    fn example() -> Scram {
        Scram::with_nonce("user", "pencil", "rOprNGfwEbeRWgbNEkqO".into(), Binding::None)
    }

    #[test]
    fn the_example_of_the_rfc_comes_out() {
        let mut scram = example();
        assert_eq!(scram.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        assert_eq!(
            proof(&mut scram, SERVER_FIRST).unwrap(),
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        scram.verify_final("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=").unwrap();
    }

    #[test]
    fn an_exchange_says_what_it_is_bound_to() {
        for (binding, first, repeated) in [
            (Binding::None, "n,,n=", "biws"),
            (Binding::NotOffered, "y,,n=", "eSws"),
            (
                Binding::EndPoint(vec![1, 2]),
                "p=tls-server-end-point,,n=",
                "cD10bHMtc2VydmVyLWVuZC1wb2ludCwsAQI=",
            ),
        ] {
            let mut scram = Scram::with_nonce("user", "pencil", "rOprNGfwEbeRWgbNEkqO".into(), binding);
            assert!(scram.first().starts_with(first));
            assert!(proof(&mut scram, SERVER_FIRST).unwrap().starts_with(&format!("c={repeated},")));
        }
    }

    #[test]
    fn a_server_that_does_not_know_the_password_is_found_out() {
        let mut scram = example();
        assert!(scram.verify_final("v=").is_err());
        proof(&mut scram, SERVER_FIRST).unwrap();
        assert!(scram.verify_final("v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=").is_err());
    }

    #[test]
    fn foreign_nonces_and_endless_iterations_are_refused() {
        for server_first in [
            "r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=600001",
            "r=rOprNGfwEbeRWgbNEkqOx,s=!,i=4096",
            "",
        ] {
            assert!(proof(&mut example(), server_first).is_err(), "{server_first}");
        }
    }

    #[test]
    fn md5_is_what_the_server_keeps() {
        // select 'md5' || md5('md5 of password and user' || salt), worked out with a server's own md5().
        assert_eq!(md5_password("user", "pencil", b"abcd"), "md5d621238dc9a10c6c869b264c13379ee7");
    }

    proptest! {
        #[test]
        fn no_server_makes_the_exchange_panic(first: String, last: String) {
            let mut scram = example();
            let _ = proof(&mut scram, &first);
            let _ = scram.verify_final(&last);
        }
    }
}
