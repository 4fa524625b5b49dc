//! The vector set: plain binary files of 32-bit floats, read row by row; and what a right answer is.
//!
//! A folder holds `data.json` (`vectors`, `dimensions`, `queries`), `train.f32` and `test.f32` (row by row,
//! little-endian), and for each distance `DISTANCE.neighbors.i32` and `DISTANCE.distances.f32`: per query the rows of its
//! nearest vectors, nearest first, and their distances.

use crate::error::{Error, Result};
use serde::Deserialize;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Distances are kept in 32 bits: two that differ by less than this share are a tie.
const TIE_SHARE: f64 = 1e-6;
/// What 64-bit arithmetic leaves of a cosine distance that is 0.
const TIE_COSINE: f64 = 1e-12;
const FLOAT_BYTES: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distance {
    Euclidean,
    /// 1 - cos.
    Cosine,
}

impl Distance {
    pub fn as_str(self) -> &'static str {
        match self {
            Distance::Euclidean => "euclidean",
            Distance::Cosine => "cosine",
        }
    }

    /// The largest distance that counts as equal to this one.
    fn tied_with(self, distance: f64) -> f64 {
        let rounding = if self == Distance::Cosine { TIE_COSINE } else { 0.0 };
        distance + distance.abs() * TIE_SHARE + rounding
    }

    fn between(self, left: &[u8], right: &[u8]) -> f64 {
        let pairs = || floats(left).zip(floats(right)).map(|(x, y)| (f64::from(x), f64::from(y)));
        match self {
            Distance::Euclidean => pairs().map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt(),
            Distance::Cosine => {
                let (dot, left, right) = pairs()
                    .fold((0.0, 0.0, 0.0), |sum, (x, y)| (sum.0 + x * y, sum.1 + x * x, sum.2 + y * y));
                1.0 - dot / (left * right).sqrt()
            }
        }
    }
}

/// The values of a vector as the files hold it.
pub(super) fn floats(vector: &[u8]) -> impl Iterator<Item = f32> + '_ {
    vector.chunks_exact(FLOAT_BYTES).map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

#[derive(Deserialize)]
struct About {
    vectors: usize,
    dimensions: usize,
    queries: usize,
}

/// A vector set with the exact neighbours under one distance.
pub(super) struct VectorSet {
    pub vectors: usize,
    pub dimensions: usize,
    pub queries: usize,
    folder: PathBuf,
    /// Far larger than memory, it may be. It is read and not mapped, because a mapped file that is cut short kills the
    /// process that looks at it.
    train: File,
    test: Vec<u8>,
    truth: Truth,
}

impl VectorSet {
    /// Opens the set in `folder`; it must have at least `k` neighbours per query.
    pub fn open(folder: &str, distance: Distance, k: usize) -> Result<Self> {
        let folder = Path::new(folder);
        let text = std::fs::read_to_string(folder.join("data.json"))
            .map_err(|error| unreadable(folder, "data.json", &error))?;
        let About { vectors, dimensions, queries } = serde_json::from_str(&text)
            .map_err(|error| damaged(folder, &format!("its data.json is not as expected: {error}")))?;
        if vectors == 0 || dimensions == 0 || queries == 0 {
            return Err(damaged(folder, "it is empty"));
        }
        if k > vectors {
            return Err(Error::user(format!("k is {k}, but the set has only {vectors} vectors"))
                .hint(format!("give k = 1 to {vectors}")));
        }
        let train = opened(folder, "train.f32", vectors, dimensions)?;
        let mut test = vec![0; queries * dimensions * FLOAT_BYTES];
        opened(folder, "test.f32", queries, dimensions)?
            .read_exact_at(&mut test, 0)
            .map_err(|error| unreadable(folder, "test.f32", &error))?;
        let truth = Truth::read(folder, distance, queries, vectors)?;
        if truth.kept < k {
            return Err(no_truth(folder, distance, k));
        }
        Ok(VectorSet { vectors, dimensions, queries, folder: folder.to_owned(), train, test, truth })
    }

    /// Puts a vector as the files hold it into `vector`: 32-bit floats, little-endian.
    pub fn read(&self, row: usize, vector: &mut Vec<u8>) -> Result<()> {
        let bytes = self.dimensions * FLOAT_BYTES;
        vector.resize(bytes, 0);
        self.train
            .read_exact_at(vector, (row * bytes) as u64)
            .map_err(|error| unreadable(&self.folder, "train.f32", &error).fatal())
    }

    /// The same in memory of its own.
    pub fn vector(&self, row: usize) -> Result<Vec<u8>> {
        let mut vector = Vec::new();
        self.read(row, &mut vector)?;
        Ok(vector)
    }

    /// A query, likewise.
    pub fn query(&self, row: usize) -> &[u8] {
        let bytes = self.dimensions * FLOAT_BYTES;
        &self.test[row * bytes..(row + 1) * bytes]
    }

    /// The recall of an answer to a query for its `k` nearest: the share of the true k that it holds, where every
    /// vector at the k-th distance counts as one of them. Missing rows are misses; a row given twice counts once.
    ///
    /// Rows beyond the set as loaded (inserted during the run) are set aside: with i of them in the answer, the rest is
    /// scored against the nearest k - i of the set. `None` when nothing is left to score.
    pub fn recall(&self, query: usize, answer: &[i64], k: usize) -> Result<Option<f64>> {
        let loaded = |id: &i64| usize::try_from(*id).is_ok_and(|row| row < self.vectors);
        let inserted = answer.iter().filter(|id| **id >= self.vectors as i64).count();
        let wanted = k.saturating_sub(inserted);
        let Some(last) = wanted.checked_sub(1) else { return Ok(None) };
        let right = self.truth.within(query, last);
        let mut hits = 0;
        for (index, id) in answer.iter().enumerate() {
            if !loaded(id) || answer[..index].contains(id) {
                continue;
            }
            let known = right.rows.contains(&(*id as i32));
            hits += usize::from(known || (right.open_ended && self.is_within(query, *id, right.limit)?));
        }
        Ok(Some(hits.min(wanted) as f64 / wanted as f64))
    }

    /// For ties that reach beyond the neighbours kept: asks the vector itself.
    fn is_within(&self, query: usize, id: i64, limit: f64) -> Result<bool> {
        Ok(self.truth.distance.between(self.query(query), &self.vector(id as usize)?) <= limit)
    }
}

/// The exact neighbours of every query.
struct Truth {
    distance: Distance,
    /// Neighbours per query.
    kept: usize,
    rows: Vec<i32>,
    distances: Vec<f32>,
}

/// The rows that are right, and how far they may be away. `open_ended`: more may be at that distance than are kept.
struct Right<'a> {
    rows: &'a [i32],
    limit: f64,
    open_ended: bool,
}

impl Truth {
    fn read(folder: &Path, distance: Distance, queries: usize, vectors: usize) -> Result<Self> {
        let (rows_name, distances_name) =
            (format!("{}.neighbors.i32", distance.as_str()), format!("{}.distances.f32", distance.as_str()));
        let read = |name: &str| std::fs::read(folder.join(name));
        let (Ok(rows), Ok(distances)) = (read(&rows_name), read(&distances_name)) else {
            return Err(no_truth(folder, distance, 1));
        };
        let kept = rows.len() / FLOAT_BYTES / queries;
        if rows.len() != queries * kept * FLOAT_BYTES || distances.len() != rows.len() {
            return Err(damaged(folder, "its neighbours are cut short"));
        }
        let rows: Vec<i32> = rows
            .chunks_exact(FLOAT_BYTES)
            .map(|bytes| i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect();
        if !rows.iter().all(|row| usize::try_from(*row).is_ok_and(|row| row < vectors)) {
            return Err(damaged(folder, "its neighbours name vectors that it has not"));
        }
        Ok(Truth { distance, kept, rows, distances: floats(&distances).collect() })
    }

    /// The neighbours of a query up to the distance of the one at `last`.
    fn within(&self, query: usize, last: usize) -> Right<'_> {
        let part = query * self.kept..(query + 1) * self.kept;
        let (rows, distances) = (&self.rows[part.clone()], &self.distances[part]);
        let limit = self.distance.tied_with(f64::from(distances[last]));
        let count =
            last + distances[last..].iter().take_while(|distance| f64::from(**distance) <= limit).count();
        Right { rows: &rows[..count], limit, open_ended: count == self.kept }
    }
}

/// A file of so many vectors.
fn opened(folder: &Path, name: &str, rows: usize, dimensions: usize) -> Result<File> {
    let file = File::open(folder.join(name)).map_err(|error| unreadable(folder, name, &error))?;
    let bytes = file.metadata().map_err(|error| unreadable(folder, name, &error))?.len();
    let needed = rows.checked_mul(dimensions).and_then(|values| values.checked_mul(FLOAT_BYTES));
    if needed.map(|needed| needed as u64) != Some(bytes) {
        return Err(damaged(folder, &format!("{name} has {bytes} bytes, not {rows} x {dimensions} floats")));
    }
    Ok(file)
}

fn unreadable(folder: &Path, name: &str, error: &std::io::Error) -> Error {
    Error::user(format!("cannot read {name} of the vector set in {}: {error}", folder.display()))
        .hint("make a set with: dyno cache data make, dyno cache data import")
}

fn damaged(folder: &Path, how: &str) -> Error {
    Error::user(format!("the vector set in {} is damaged: {how}", folder.display()))
        .hint("remove the folder and make the set again")
}

fn no_truth(folder: &Path, distance: Distance, k: usize) -> Error {
    let (folder, distance) = (folder.display(), distance.as_str());
    Error::user(format!(
        "the vector set in {folder} has not the {k} exact {distance} neighbours of its queries"
    ))
    .hint(format!("compute them: dyno cache data neighbors {folder} --distance {distance} --k {k}"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Vectors on a line at 0, 1, 1, 2, 3, ...: row 1 and row 2 are at the same place. One query, at 0.
    pub fn write_line(folder: &Path, kept: usize) {
        let places = [0.0f32, 1.0, 1.0, 2.0, 3.0, 4.0];
        let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(
            folder.join("data.json"),
            r#"{"vectors": 6, "dimensions": 2, "queries": 1, "digest": ""}"#,
        )
        .unwrap();
        let train: Vec<f32> = places.iter().flat_map(|place| [*place, 0.0]).collect();
        std::fs::write(folder.join("train.f32"), bytes(&train)).unwrap();
        std::fs::write(folder.join("test.f32"), bytes(&[0.0, 0.0])).unwrap();
        let rows: Vec<u8> = (0..kept as i32).flat_map(i32::to_le_bytes).collect();
        std::fs::write(folder.join("euclidean.neighbors.i32"), rows).unwrap();
        std::fs::write(folder.join("euclidean.distances.f32"), bytes(&places[..kept])).unwrap();
    }

    fn folder(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("dyno-vectors-{}-{name}", std::process::id()))
    }

    fn with_line<T>(name: &str, kept: usize, task: impl FnOnce(&Path) -> T) -> T {
        let folder = folder(name);
        write_line(&folder, kept);
        let outcome = task(&folder);
        std::fs::remove_dir_all(folder).unwrap();
        outcome
    }

    fn line(name: &str, kept: usize, k: usize) -> VectorSet {
        with_line(name, kept, |folder| {
            VectorSet::open(folder.to_str().unwrap(), Distance::Euclidean, k).unwrap()
        })
    }

    #[test]
    fn recall_is_the_share_of_the_true_neighbours() {
        let set = line("share", 6, 4);
        assert_eq!(set.recall(0, &[0, 1, 2, 3], 4).unwrap(), Some(1.0));
        assert_eq!(set.recall(0, &[3, 5, 1, 4], 4).unwrap(), Some(0.5));
        assert_eq!(set.recall(0, &[0], 4).unwrap(), Some(0.25));
        assert_eq!(set.recall(0, &[0, 0, 0, 0], 4).unwrap(), Some(0.25));
        assert_eq!(set.recall(0, &[-1, 5, i64::MAX, 4], 3).unwrap(), Some(0.0));
    }

    #[test]
    fn a_tie_at_the_last_distance_is_a_hit() {
        let set = line("tie", 6, 2);
        assert_eq!(set.recall(0, &[0, 1], 2).unwrap(), Some(1.0));
        assert_eq!(set.recall(0, &[0, 2], 2).unwrap(), Some(1.0));
        assert_eq!(set.recall(0, &[1, 2], 2).unwrap(), Some(1.0));
        assert_eq!(set.recall(0, &[0, 3], 2).unwrap(), Some(0.5));
    }

    #[test]
    fn a_tie_beyond_the_kept_neighbours_is_a_hit_too() {
        let set = line("beyond", 2, 2);
        assert_eq!(set.recall(0, &[0, 2], 2).unwrap(), Some(1.0));
        assert_eq!(set.recall(0, &[0, 3], 2).unwrap(), Some(0.5));
    }

    #[test]
    fn inserted_rows_are_set_aside() {
        let set = line("inserted", 6, 3);
        assert_eq!(set.recall(0, &[0, 77, 1], 3).unwrap(), Some(1.0));
        assert_eq!(set.recall(0, &[0, 77, 4], 3).unwrap(), Some(0.5));
        assert_eq!(set.recall(0, &[6, 7, 8], 3).unwrap(), None);
    }

    #[test]
    fn a_set_that_is_cut_short_while_it_is_used_is_an_error_that_names_it() {
        with_line("cut", 2, |folder| {
            let set = VectorSet::open(folder.to_str().unwrap(), Distance::Euclidean, 2).unwrap();
            std::fs::write(folder.join("train.f32"), b"").unwrap();
            std::fs::write(folder.join("test.f32"), b"").unwrap();
            assert_eq!(set.query(0), [0; 8], "queries are in memory");
            let failures = [set.vector(5).err(), set.recall(0, &[0, 2], 2).err()];
            for error in failures.map(Option::unwrap) {
                assert!(error.message().contains("train.f32") && !error.hint_text().is_empty(), "{error}");
                assert_eq!(error.fate(), crate::error::Fate::Fatal);
            }
        });
    }

    #[test]
    fn distances_are_those_of_the_definition() {
        let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let (left, right) = (bytes(&[3.0, 4.0]), bytes(&[-4.0, 3.0]));
        assert!((Distance::Euclidean.between(&left, &right) - 50f64.sqrt()).abs() < 1e-12);
        assert!((Distance::Cosine.between(&left, &right) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_wrong_with_a_set_is_said_once_and_with_a_remedy() {
        let complaint = |change: &dyn Fn(&Path), k| {
            with_line("wrong", 6, |folder| {
                change(folder);
                let error = VectorSet::open(folder.to_str().unwrap(), Distance::Euclidean, k).err().unwrap();
                assert_eq!(error.kind(), crate::error::Kind::User);
                assert!(!error.hint_text().is_empty(), "{error}");
                error.message().to_owned()
            })
        };
        let cut =
            |name: &'static str| move |folder: &Path| std::fs::write(folder.join(name), b"12345").unwrap();
        assert!(complaint(&|_| {}, 7).contains("only 6 vectors"));
        assert!(complaint(&cut("train.f32"), 1).contains("train.f32 has 5 bytes"));
        assert!(complaint(&cut("data.json"), 1).contains("data.json"));
        assert!(complaint(&cut("euclidean.neighbors.i32"), 1).contains("cut short"));
        assert!(complaint(
            &|folder| std::fs::remove_file(folder.join("euclidean.distances.f32")).unwrap(),
            1
        )
        .contains("exact euclidean neighbours"));
        assert!(complaint(
            &|folder| std::fs::write(folder.join("euclidean.neighbors.i32"), [255; 24]).unwrap(),
            1
        )
        .contains("that it has not"));
    }
}
