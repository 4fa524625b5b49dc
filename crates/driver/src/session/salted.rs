//! Passwords as SCRAM (RFC 5802, `Hi`) and MariaDB's PARSEC salt them: thousands of rounds of a hash, which give the same for each connection.

use crate::clock;
use crate::error::{Error, Result};
use crate::io::Apart;
use sha2::{Sha256, Sha512};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A server keeps one salt for an account. A proxy may lead to some servers, each with its own.
const KEPT_MAX: usize = 16;

pub(super) type Key = [u8; 32];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha512,
}

/// Those of a job, the oldest first.
#[derive(Debug, Default)]
pub struct Salted(Mutex<Vec<Kept>>);

#[derive(Debug)]
struct Kept {
    hash: Hash,
    password: Vec<u8>,
    salt: Vec<u8>,
    rounds: u32,
    key: Apart<Key>,
}

impl Salted {
    /// The salted password. It is worked out on a thread of its own, for the rounds would hold up all connections of a
    /// loop; and once, for all that ask for the same.
    pub(super) async fn key(
        &self,
        hash: Hash,
        password: &[u8],
        salt: &[u8],
        rounds: u32,
        patience: Duration,
    ) -> Result<Key> {
        let until_ns = clock::now_ns().saturating_add(patience.as_nanos() as u64);
        let key = self.kept(hash, password, salt, rounds)?;
        let found = key.outcome(until_ns).await.copied();
        found.ok_or_else(|| Error::connect("the password could not be salted in time"))
    }

    fn kept(&self, hash: Hash, password: &[u8], salt: &[u8], rounds: u32) -> Result<Apart<Key>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = (hash, password, salt, rounds);
        let is_it = |one: &&Kept| asked == (one.hash, &one.password[..], &one.salt[..], one.rounds);
        if let Some(known) = all.iter().find(is_it) {
            return Ok(known.key.clone());
        }
        if all.len() == KEPT_MAX {
            all.remove(0);
        }
        let (password, salt) = (password.to_vec(), salt.to_vec());
        let key = Apart::begin({
            let (password, salt) = (password.clone(), salt.clone());
            move || {
                let mut key = Key::default();
                match hash {
                    Hash::Sha256 => pbkdf2::pbkdf2_hmac::<Sha256>(&password, &salt, rounds, &mut key),
                    Hash::Sha512 => pbkdf2::pbkdf2_hmac::<Sha512>(&password, &salt, rounds, &mut key),
                }
                key
            }
        })?;
        all.push(Kept { hash, password, salt, rounds, key: key.clone() });
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{block_on, Backend};

    fn key(salted: &Salted, password: &str, salt: &[u8], rounds: u32) -> Key {
        let found = salted.key(Hash::Sha256, password.as_bytes(), salt, rounds, Duration::from_secs(60));
        block_on(Backend::Epoll, found, || false).unwrap().unwrap().unwrap()
    }

    fn kept(salted: &Salted) -> usize {
        salted.0.lock().unwrap().len()
    }

    #[test]
    fn a_password_is_salted_once() {
        let salted = Salted::default();
        let keys = [(); 3].map(|()| key(&salted, "pencil", b"salt", 2));
        let mut expected = Key::default();
        pbkdf2::pbkdf2_hmac::<Sha256>(b"pencil", b"salt", 2, &mut expected);
        assert_eq!((keys, kept(&salted)), ([expected; 3], 1));
        let others = [("pencil", b"SALT", 2), ("pencil", b"salt", 3), ("pencils", b"salt", 2)];
        for (count, (password, salt, rounds)) in others.into_iter().enumerate() {
            assert_ne!(key(&salted, password, salt, rounds), expected);
            assert_eq!(kept(&salted), count + 2);
        }
    }

    #[test]
    fn a_server_with_a_new_salt_each_time_does_not_fill_the_memory() {
        let salted = Salted::default();
        for number in 0..100u8 {
            key(&salted, "pencil", &[number], 1);
        }
        assert_eq!(kept(&salted), KEPT_MAX);
    }
}
