//! The values that stood in one place of a statement: how often each was seen, and the ends of all of them.

use crate::number::{whole, Number};
use crate::Map;
use std::cmp::Ordering;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::Write;

/// Of more values than this of a place only the first are counted; the ends are those of all.
pub const DISTINCT_MOST: usize = 10_000;
/// So many bytes of values are kept for a whole log; the ends are those of all nevertheless.
pub const KEPT_BYTES_MOST: usize = 384 << 20;
/// What a kept value takes beside its bytes.
const COSTS_BYTES: usize = 64;
/// Longer texts are counted by their beginning and length alone, because nobody draws among them.
const TEXT_BYTES_MOST: usize = 4_096;

/// How much may still be kept.
pub struct Room {
    pub bytes: usize,
    pub distinct_most: usize,
}

/// How often each of many byte strings was seen, in the order in which they came first.
#[derive(Default)]
pub struct Counts {
    found: Map<Box<[u8]>, (u64, u32)>,
}

impl Counts {
    /// Counts a text, and says whether it is new.
    fn add(&mut self, text: &[u8], times: u64, room: &mut Room) -> bool {
        if let Some((count, _)) = self.found.get_mut(text) {
            *count += times;
            return false;
        }
        let costs = text.len() + COSTS_BYTES;
        if self.found.len() < room.distinct_most && (costs <= room.bytes || self.found.len() < 2) {
            room.bytes = room.bytes.saturating_sub(costs);
            let place = self.found.len() as u32;
            self.found.insert(text.into(), (times, place));
        }
        true
    }

    pub fn len(&self) -> usize {
        self.found.len()
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The most frequent ones; of equally frequent ones those that came first.
    pub fn most(&self, count: usize) -> Vec<(&[u8], u64)> {
        let mut all: Vec<_> =
            self.found.iter().map(|(text, (times, place))| (&**text, *times, *place)).collect();
        all.sort_unstable_by_key(|(_, times, place)| (std::cmp::Reverse(*times), *place));
        all.into_iter().take(count).map(|(text, times, _)| (text, times)).collect()
    }
}

/// The least and the greatest.
pub type Ends = (Box<[u8]>, Box<[u8]>);

/// Numbers as they were written: the least, the greatest, and the most decimals. `plain` tells that all of them can be
/// written without an exponent.
pub struct Numbers {
    pub counts: Counts,
    pub ends: Option<Ends>,
    pub places: u32,
    pub plain: bool,
    /// Both ends, where they are whole numbers.
    whole: Option<(i64, i64)>,
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers { counts: Counts::default(), ends: None, places: 0, plain: true, whole: None }
    }
}

impl Numbers {
    pub fn add(&mut self, text: &[u8], times: u64, room: &mut Room) {
        if !self.counts.add(text, times, room) {
            return;
        }
        if let (Some(number), Some((low, high))) = (whole(text), self.whole) {
            if (low..=high).contains(&number) {
                return;
            }
        }
        let Some(number) = Number::of(text) else {
            self.plain = false;
            return;
        };
        self.places = self.places.max(number.places());
        let (low, high) = self.ends.get_or_insert_with(|| (text.into(), text.into()));
        for (end, order) in [(&mut *low, Ordering::Less), (&mut *high, Ordering::Greater)] {
            if Number::of(end).is_some_and(|known| number.compare(&known) == order) {
                *end = text.into();
            }
        }
        self.whole = whole(low).zip(whole(high));
    }
}

/// Texts without their quotes: the first and the last in order, the least and the greatest length in letters, and whether
/// all of them are days, or moments.
pub struct Texts {
    pub counts: Counts,
    pub ends: (Vec<u8>, Vec<u8>),
    pub lengths: (u64, u64),
    pub days: bool,
    pub moments: bool,
    long: Hashes,
}

impl Default for Texts {
    fn default() -> Self {
        let (none, long) = ((Vec::new(), Vec::new()), Hashes::default());
        Texts { counts: Counts::default(), ends: none, lengths: (0, 0), days: true, moments: true, long }
    }
}

/// Hashes of up to two byte strings, which tell whether more than one was seen.
#[derive(Default)]
struct Hashes(Vec<u64>);

impl Hashes {
    fn add(&mut self, bytes: &[u8]) {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let hash = hasher.finish();
        if self.0.len() < 2 && !self.0.contains(&hash) {
            self.0.push(hash);
        }
    }
}

impl Texts {
    /// How many texts were told apart: at least two where there are several.
    pub fn distinct(&self) -> usize {
        self.counts.len().max(self.long.0.len())
    }

    fn add(&mut self, text: &str, times: u64, room: &mut Room) {
        let kept = &text.as_bytes()[..text.len().min(TEXT_BYTES_MOST)];
        let first = self.counts.is_empty();
        if !self.counts.add(kept, times, room) && text.len() <= TEXT_BYTES_MOST {
            return;
        }
        if text.len() > TEXT_BYTES_MOST {
            self.long.add(text.as_bytes());
        }
        let length = text.chars().count() as u64;
        if first {
            self.ends = (kept.to_vec(), kept.to_vec());
            self.lengths = (length, length);
        }
        if kept < &self.ends.0[..] {
            self.ends.0 = kept.to_vec();
        }
        if kept > &self.ends.1[..] {
            self.ends.1 = kept.to_vec();
        }
        self.lengths = (self.lengths.0.min(length), self.lengths.1.max(length));
        self.days &= text.len() == 10 && is_day(text.as_bytes());
        self.moments &= is_moment(text.as_bytes());
    }
}

fn number_at(text: &[u8], from: usize, to: usize) -> Option<u32> {
    let digits = text.get(from..to)?;
    digits.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u32::from(byte - b'0')))
}

/// Whether a text begins with a day that exists.
fn is_day(text: &[u8]) -> bool {
    let (Some(year), Some(month), Some(day)) =
        (number_at(text, 0, 4), number_at(text, 5, 7), number_at(text, 8, 10))
    else {
        return false;
    };
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    year > 0 && text[4] == b'-' && text[7] == b'-' && (1..=days).contains(&day)
}

/// Whether a text is a day with a time of day, which may have decimals.
fn is_moment(text: &[u8]) -> bool {
    let (Some(hour), Some(minute), Some(second)) =
        (number_at(text, 11, 13), number_at(text, 14, 16), number_at(text, 17, 19))
    else {
        return false;
    };
    let decimals = match text[19..].split_first() {
        None => true,
        Some((b'.', digits)) => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        Some(_) => false,
    };
    is_day(text)
        && matches!(text[10], b' ' | b'T')
        && text[13] == b':'
        && text[16] == b':'
        && hour < 24
        && minute < 60
        && second < 60
        && decimals
}

/// What was seen in one place. Of binary values, which no script can draw, it is known whether they changed.
#[derive(Default)]
pub struct Values {
    pub texts: Texts,
    pub numbers: Numbers,
    binaries: Hashes,
    pub unknown: bool,
}

/// A value as it counts: a text without its quotes.
pub enum Plain<'a> {
    Unknown,
    Binary(&'a [u8]),
    Number(&'a [u8]),
    Text(&'a str),
}

impl Values {
    pub fn add(&mut self, value: &Plain<'_>, times: u64, room: &mut Room) {
        match value {
            Plain::Unknown => self.unknown = true,
            Plain::Number(text) => self.numbers.add(text, times, room),
            Plain::Text(text) => self.texts.add(text, times, room),
            Plain::Binary(bytes) => self.binaries.add(bytes),
        }
    }

    /// How many binary values were told apart, two at most.
    pub fn binaries(&self) -> usize {
        self.binaries.0.len()
    }
}

/// Values that belong together, by their places: the ends of a range (`distance`), or others that are drawn as they stood
/// side by side.
pub struct Together {
    pub places: Vec<usize>,
    pub distance: bool,
    /// How far the ends of a range lay apart, where both are numbers.
    pub distances: Numbers,
    /// What stood together, each behind its length and a letter for its kind.
    pub rows: Counts,
    /// Whether something stood there that is neither.
    pub others: bool,
}

impl Together {
    pub fn new(places: Vec<usize>, distance: bool) -> Together {
        Together { places, distance, distances: Numbers::default(), rows: Counts::default(), others: false }
    }

    pub fn add(&mut self, values: &[Plain<'_>], times: u64, room: &mut Room, scratch: &mut Vec<u8>) {
        let of = |place: &usize| &values[*place];
        if self.distance {
            if let [Plain::Number(low), Plain::Number(high)] = [of(&self.places[0]), of(&self.places[1])] {
                scratch.clear();
                if let (Some(low), Some(high)) = (whole(low), whole(high)) {
                    // Into memory, which takes all.
                    let _ = write!(scratch, "{}", high - low);
                    self.distances.add(scratch, times, room);
                    return;
                }
                let apart = Number::of(low).zip(Number::of(high)).and_then(|(low, high)| high.less(&low));
                match apart {
                    Some(apart) => self.distances.add(&apart, times, room),
                    None => self.others = true,
                }
                return;
            }
        }
        scratch.clear();
        for place in &self.places {
            let (kind, text) = match of(place) {
                Plain::Text(text) => (b't', text.as_bytes()),
                Plain::Number(text) if !self.distance => (b'n', *text),
                _ => {
                    self.others = true;
                    return;
                }
            };
            scratch.push(kind);
            scratch.extend((text.len() as u32).to_le_bytes());
            scratch.extend_from_slice(text);
        }
        self.rows.add(scratch, times, room);
    }
}
