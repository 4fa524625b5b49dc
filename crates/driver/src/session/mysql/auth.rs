//! How a password is proved to a server. Each function takes what the server sent and gives what it wants to see.

use crate::error::{Error, Result};
use crate::io::random_bytes;
use crate::session::{Hash, Salted};
use curve25519_dalek::{EdwardsPoint, Scalar};
use rsa::pkcs8::DecodePublicKey;
use rsa::{Oaep, RsaPublicKey};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use std::time::Duration;

const ED25519_NONCE_BYTES: usize = 32;
/// What PARSEC doubles, as often as the server says.
const PARSEC_ROUNDS_MIN: u32 = 1024;
/// The server's own bound is 3 (8,192 rounds) up to 12.x. One that asks for more than half a million rounds is out to
/// waste time.
const PARSEC_DOUBLINGS_MAX: u8 = 9;
/// Asks the server for the key to encrypt the password with.
const SHA256_KEY_REQUEST: u8 = 1;
pub(super) const CACHING_SHA2_KEY_REQUEST: u8 = 2;

/// The plugins that a server may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plugin {
    Native,
    CachingSha2,
    Sha256,
    Ed25519,
    /// MariaDB's, from 11.6 on.
    Parsec,
    Clear,
    /// The server asks the operating system who we are.
    Socket,
}

/// Who can listen to what goes over the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Open,
    /// A socket of this machine: private, but for sha256_password, which trusts TLS alone.
    Local,
    Encrypted,
}

impl Line {
    pub fn is_private(self) -> bool {
        self != Line::Open
    }
}

impl Plugin {
    pub fn from_name(name: &[u8]) -> Result<Self> {
        match name {
            b"mysql_native_password" => Ok(Plugin::Native),
            b"caching_sha2_password" => Ok(Plugin::CachingSha2),
            b"sha256_password" => Ok(Plugin::Sha256),
            b"client_ed25519" => Ok(Plugin::Ed25519),
            b"parsec" => Ok(Plugin::Parsec),
            b"mysql_clear_password" => Ok(Plugin::Clear),
            b"unix_socket" | b"auth_socket" => Ok(Plugin::Socket),
            other => Err(Error::connect(format!(
                "the server wants authentication by {:?}",
                String::from_utf8_lossy(other)
            ))
            .hint(
                "use an account with mysql_native_password, caching_sha2_password, sha256_password, ed25519 or \
                 parsec; for an account that does not exist MySQL names any plugin",
            )),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Plugin::Native => "mysql_native_password",
            Plugin::CachingSha2 => "caching_sha2_password",
            Plugin::Sha256 => "sha256_password",
            Plugin::Ed25519 => "client_ed25519",
            Plugin::Parsec => "parsec",
            Plugin::Clear => "mysql_clear_password",
            Plugin::Socket => "unix_socket",
        }
    }

    /// The nonce in what follows a plugin's name. Texts end with a zero byte; ed25519's random bytes may end with one too.
    pub fn nonce(self, data: &[u8]) -> &[u8] {
        match self {
            Plugin::Ed25519 | Plugin::Parsec => &data[..data.len().min(ED25519_NONCE_BYTES)],
            _ => data.strip_suffix(&[0]).unwrap_or(data),
        }
    }

    /// The first answer to the server's `nonce`.
    pub fn answer(self, password: &[u8], nonce: &[u8], line: Line) -> Result<Vec<u8>> {
        match self {
            // For PARSEC the empty answer asks for the salt.
            Plugin::Socket | Plugin::Parsec => Ok(Vec::new()),
            Plugin::Clear if line.is_private() => Ok(terminated(password)),
            Plugin::Clear => {
                Err(Error::connect("the server wants the password in clear text over an open connection")
                    .hint("add tls=required to the URL"))
            }
            Plugin::Ed25519 => Ok(ed25519(password, nonce)),
            Plugin::Sha256 if line == Line::Encrypted || password.is_empty() => Ok(terminated(password)),
            Plugin::Sha256 => Ok(vec![SHA256_KEY_REQUEST]),
            _ if password.is_empty() => Ok(Vec::new()),
            Plugin::Native => Ok(native(password, nonce)),
            Plugin::CachingSha2 => Ok(caching_sha2(password, nonce)),
        }
    }
}

/// The password as a string that ends with a zero byte.
pub(super) fn terminated(password: &[u8]) -> Vec<u8> {
    [password, &[0]].concat()
}

/// SHA1(password) XOR SHA1(nonce, SHA1(SHA1(password))).
fn native(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let once = Sha1::digest(password);
    let mask = Sha1::new().chain_update(nonce).chain_update(Sha1::digest(once)).finalize();
    xor(&once, &mask)
}

/// SHA256(password) XOR SHA256(SHA256(SHA256(password)), nonce).
fn caching_sha2(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let once = Sha256::digest(password);
    let mask = Sha256::new().chain_update(Sha256::digest(once)).chain_update(nonce).finalize();
    xor(&once, &mask)
}

/// Ed25519 (RFC 8032, 5.1.6) of the nonce, where the password itself, of any length, stands for the secret key.
fn ed25519(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let hash: [u8; 64] = Sha512::digest(password).into();
    let (mut scalar, prefix) = ([0; 32], &hash[32..]);
    scalar.copy_from_slice(&hash[..32]);
    let secret = Scalar::from_bytes_mod_order(curve25519_dalek::scalar::clamp_integer(scalar));
    // The clamped integer times the base point; reduced modulo the group's order it gives the same point.
    let public = EdwardsPoint::mul_base(&secret).compress();
    let wide = |hash: Sha512| Scalar::from_bytes_mod_order_wide(&hash.finalize().into());
    let once = wide(Sha512::new().chain_update(prefix).chain_update(nonce));
    let commitment = EdwardsPoint::mul_base(&once).compress();
    let challenge = wide(Sha512::new().chain_update(commitment.0).chain_update(public.0).chain_update(nonce));
    [commitment.0, (once + challenge * secret).to_bytes()].concat()
}

/// PARSEC's answer to the server's salt: a nonce of ours, and Ed25519 of both by a key that PBKDF2 makes of the password.
/// <https://mariadb.com/kb/en/authentication-plugin-parsec>
pub(super) async fn signed(
    password: &[u8],
    salt: &[u8],
    nonce: &[u8],
    known: &Salted,
    patience: Duration,
) -> Result<Vec<u8>> {
    let [b'P', doublings @ ..=PARSEC_DOUBLINGS_MAX, salt @ ..] = salt else {
        return Err(Error::connect("the server's salt for PARSEC is none that this driver knows")
            .hint("use an account with ed25519 or caching_sha2_password"));
    };
    let rounds = PARSEC_ROUNDS_MIN << doublings;
    let key = known.key(Hash::Sha512, password, salt, rounds, patience).await?;
    let ours: [u8; ED25519_NONCE_BYTES] = random_bytes()?;
    Ok([&ours, ed25519(&key, &[nonce, &ours].concat()).as_slice()].concat())
}

/// The password for the server's eyes only: RSA with OAEP padding over the password, mixed with the nonce.
pub(super) fn encrypted(password: &[u8], nonce: &[u8], pem: &[u8]) -> Result<Vec<u8>> {
    let wrong = |what: String| Error::protocol(format!("the server's public key: {what}")).while_connecting();
    let pem = std::str::from_utf8(pem).map_err(|error| wrong(error.to_string()))?;
    let key = RsaPublicKey::from_public_key_pem(pem.trim()).map_err(|error| wrong(error.to_string()))?;
    if nonce.is_empty() {
        return Err(wrong("it came with an empty nonce".to_owned()));
    }
    let mixed: Vec<u8> =
        terminated(password).iter().zip(nonce.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    key.encrypt(&mut rsa::rand_core::OsRng, Oaep::new::<Sha1>(), &mixed)
        .map_err(|error| wrong(error.to_string()))
}

fn xor(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter().zip(right).map(|(left, right)| left ^ right).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rsa::pkcs8::{EncodePublicKey, LineEnding};
    use rsa::RsaPrivateKey;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_server_that_knows_the_double_hash_accepts_a_native_answer() {
        let (password, nonce) = (b"secret", [7; 20]);
        let stored = Sha1::digest(Sha1::digest(password));
        let answer = native(password, &nonce);
        let mask = Sha1::new().chain_update(nonce).chain_update(stored).finalize();
        assert_eq!(Sha1::digest(xor(&answer, &mask)), stored);
    }

    #[test]
    fn a_server_that_knows_the_double_hash_accepts_a_caching_sha2_answer() {
        let (password, nonce) = (b"secret", [7; 20]);
        let stored = Sha256::digest(Sha256::digest(password));
        let answer = caching_sha2(password, &nonce);
        let mask = Sha256::new().chain_update(stored).chain_update(nonce).finalize();
        assert_eq!(Sha256::digest(xor(&answer, &mask)), stored);
    }

    /// RFC 8032, 7.1, TEST 2: there too the secret key is hashed first, so it can stand for a password of 32 bytes.
    #[test]
    fn ed25519_signs_as_the_rfc_does() {
        let secret: Vec<u8> = (0..32)
            .map(|i| {
                let text = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
                u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()
            })
            .collect();
        assert_eq!(
            hex(&ed25519(&secret, &[0x72])),
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
             085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        );
    }

    #[test]
    fn a_nonce_of_random_bytes_may_end_with_a_zero() {
        let (mut random, mut text) = ([7; 32], [b'n'; 21]);
        (random[31], text[20]) = (0, 0);
        assert_eq!(Plugin::Ed25519.nonce(&random), random);
        assert_eq!(Plugin::Native.nonce(&text), &text[..20]);
        assert_eq!(Plugin::CachingSha2.nonce(&text[..20]), &text[..20]);
    }

    #[test]
    fn an_empty_password_gives_an_empty_answer() {
        for plugin in [Plugin::Native, Plugin::CachingSha2] {
            assert!(plugin.answer(b"", &[1; 20], Line::Open).unwrap().is_empty());
        }
    }

    #[test]
    fn clear_text_is_refused_where_others_can_listen() {
        assert!(Plugin::Clear.answer(b"secret", &[], Line::Open).is_err());
        assert_eq!(Plugin::Clear.answer(b"secret", &[], Line::Local).unwrap(), b"secret\0");
    }

    #[test]
    fn sha256_gives_the_password_to_tls_alone_and_asks_for_a_key_otherwise() {
        let answer = |password: &[u8], line| Plugin::Sha256.answer(password, &[1; 20], line).unwrap();
        assert_eq!(answer(b"secret", Line::Encrypted), b"secret\0");
        assert_eq!([answer(b"secret", Line::Local), answer(b"secret", Line::Open)], [[1], [1]]);
        assert_eq!(answer(b"", Line::Open), [0]);
    }

    #[test]
    fn only_the_holder_of_the_private_key_reads_the_password() {
        let private = RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 1024).unwrap();
        let pem = private.to_public_key().to_public_key_pem(LineEnding::LF).unwrap();
        let nonce = [9, 8, 7];
        let sent = encrypted(b"secret", &nonce, pem.as_bytes()).unwrap();
        let mixed = private.decrypt(Oaep::new::<Sha1>(), &sent).unwrap();
        let clear: Vec<u8> = mixed.iter().zip(nonce.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        assert_eq!(clear, b"secret\0");
        assert!(encrypted(b"secret", &nonce, b"no key").is_err());
    }
}
