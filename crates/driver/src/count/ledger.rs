//! The clients' own books: what they were told, written down at once, so that the end of this process or of the server
//! cannot take it along.

use crate::error::{Error, Result};
use crate::job;
use std::fs::{File, OpenOptions};
use std::io::Write;

/// The length of an entry: three whole numbers of 64 bits, little-endian.
const ENTRY_BYTES: usize = 24;

/// A file of entries, one for each transaction that was acknowledged: the client, the transaction's number in the
/// client's rows, and when the client was told, in nanoseconds of the monotonic clock.
pub(crate) struct Ledger {
    file: File,
    path: String,
}

impl Ledger {
    pub fn open(job: &job::Ledger) -> Result<Self> {
        let opened = OpenOptions::new().create(true).append(true).open(&job.path);
        let file = opened.map_err(|error| cannot_write(&job.path, &error))?;
        Ok(Ledger { file, path: job.path.clone() })
    }

    /// Notes one acknowledgement. An entry is written by one call, so those of several threads do not mix.
    pub fn note(&self, client: u32, entry: u64, told_ns: u64) -> Result<()> {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&u64::from(client).to_le_bytes());
        bytes[8..16].copy_from_slice(&entry.to_le_bytes());
        bytes[16..].copy_from_slice(&told_ns.to_le_bytes());
        (&self.file).write_all(&bytes).map_err(|error| cannot_write(&self.path, &error))
    }
}

fn cannot_write(path: &str, error: &std::io::Error) -> Error {
    Error::user(format!("the ledger {path} cannot be written: {error}"))
        .hint("give a file in a folder that this process may write to, with room for it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_follow_one_another() {
        let path = std::env::temp_dir().join(format!("dyno-ledger-{}", std::process::id()));
        let job = job::Ledger { path: path.to_string_lossy().into_owned(), cut: 3 };
        Ledger::open(&job).unwrap().note(1, 2, 3).unwrap();
        Ledger::open(&job).unwrap().note(4, 5, 6).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let numbers: Vec<u64> =
            bytes.chunks(8).map(|eight| u64::from_le_bytes(eight.try_into().unwrap())).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_the_users_mistake() {
        let job = job::Ledger { path: "/nowhere/at/all/ledger".to_owned(), cut: 1 };
        let error = Ledger::open(&job).err().unwrap();
        assert_eq!(error.kind(), crate::error::Kind::User);
        assert!(!error.hint_text().is_empty());
    }
}
