//! The statements of a log by digest: how often each was seen, for how long, and with which values.

use crate::anonymise::Anonymiser;
use crate::lexer::{Dialect, Kind};
use crate::literal::plain;
use crate::shape::{digest, Shape};
use crate::values::{Plain, Room, Together, Values, DISTINCT_MOST, KEPT_BYTES_MOST};
use crate::Seen;
use crate::{Map, Set};

/// Of a digest; further ones are counted, and their values are not kept.
const SHAPES_MOST: usize = 128;
/// Further digests of a verb are one, so that a log of any kind fits into memory.
const DIGESTS_MOST: usize = 20_000;
/// Shapes that lead to their digest without its being made again.
const KNOWN_BYTES_MOST: usize = 128 << 20;
/// Further connections are not counted.
const SESSIONS_MOST: usize = 100_000;
/// A statement with more values keeps fewer of each, so that one shape does not take what all may take.
const VALUES_OF_SHAPE_MOST: usize = 1_000_000;

/// Which places of a shape belong together, from what stands around its values: whether their distance counts, and where
/// they are.
pub type Plan<'a> = dyn FnMut(&[Vec<u8>]) -> Vec<(bool, Vec<usize>)> + 'a;

/// Statements that differ in their values alone. `values` has one entry for each place, with the value that stood there
/// first in `first`.
pub struct GroupShape {
    pub pieces: Vec<Vec<u8>>,
    pub first: Vec<(Kind, Vec<u8>)>,
    pub values: Vec<Values>,
    pub together: Vec<Together>,
    pub count: u64,
}

/// The statements of one digest in one database. `took_s` is None where the log does not tell of times; `line` and
/// `file` are where the first one stood. Of `cut` ones a part of the text is missing.
pub struct Group {
    pub digest: Vec<u8>,
    pub verb: Vec<u8>,
    pub database: Vec<u8>,
    pub line: u64,
    pub file: u32,
    pub cut: bool,
    pub count: u64,
    pub untimed: u64,
    pub unknown: u64,
    pub took_s: Option<f64>,
    pub rows: Mean,
    pub affected: Mean,
    pub examined: Mean,
    pub shapes: Vec<GroupShape>,
}

/// A sum over those statements of which a log tells it.
#[derive(Clone, Copy, Default)]
pub struct Mean {
    pub sum: f64,
    pub count: u64,
}

impl Mean {
    fn add(&mut self, value: Option<u64>, times: u64) {
        if let Some(value) = value {
            self.sum += value as f64 * times as f64;
            self.count += times;
        }
    }
}

/// How often each name was seen, in the order in which they came first.
#[derive(Default)]
pub struct Tallies {
    places: Map<Box<[u8]>, usize>,
    last: usize,
    pub counts: Vec<(Box<[u8]>, u64)>,
}

impl Tallies {
    fn add(&mut self, name: &[u8], times: u64) {
        // Most often it is the one of before.
        if let Some((_, count)) = self.counts.get_mut(self.last).filter(|(last, _)| **last == *name) {
            *count += times;
            return;
        }
        self.last = self.places.get(name).copied().unwrap_or(self.counts.len());
        match self.places.get(name) {
            Some(place) => self.counts[*place].1 += times,
            None => {
                self.places.insert(name.into(), self.counts.len());
                self.counts.push((name.into(), times));
            }
        }
    }
}

/// What is measured over all statements of a log.
#[derive(Default)]
pub struct Meter {
    pub least_s: Option<f64>,
    /// Each behind the number of its file.
    pub sessions: Set<Box<[u8]>>,
    pub ends_s: Option<(f64, f64)>,
    key: Vec<u8>,
}

impl Meter {
    fn add(&mut self, seen: &Seen<'_>, file: u32) {
        if let Some(took_s) = seen.took_s {
            let each_s = took_s / seen.times as f64;
            self.least_s = Some(self.least_s.map_or(each_s, |least| least.min(each_s)));
        }
        if !seen.session.is_empty() && self.sessions.len() < SESSIONS_MOST {
            self.key.clear();
            self.key.extend(file.to_le_bytes());
            self.key.extend_from_slice(seen.session);
            if !self.sessions.contains(&self.key[..]) {
                self.sessions.insert(self.key.as_slice().into());
            }
        }
        if let Some(at_s) = seen.at_s {
            let (first, last) = self.ends_s.unwrap_or((at_s, at_s));
            self.ends_s = Some((first.min(at_s), last.max(at_s)));
        }
    }
}

/// Takes in the statements of a log. With a `database`, the groups are those of its statements alone.
pub struct Groups {
    dialect: Dialect,
    database: Vec<u8>,
    anonymiser: Option<Anonymiser>,
    pub groups: Vec<Group>,
    pub rest: Tallies,
    pub databases: Tallies,
    pub meter: Meter,
    pub file: u32,
    names: Map<Box<[u8]>, usize>,
    known: Map<Box<[u8]>, (usize, Option<usize>)>,
    known_bytes: usize,
    room: Room,
    taken: Shape,
    key: Vec<u8>,
    scratch: Vec<u8>,
    /// Room for the values of a statement that are not written as they count.
    held: Vec<Vec<u8>>,
}

impl Groups {
    /// With an `anonymiser` it takes in what that makes of statements.
    pub fn new(dialect: Dialect, database: &[u8], anonymiser: Option<Anonymiser>) -> Groups {
        Groups {
            dialect,
            database: database.to_vec(),
            anonymiser,
            groups: Vec::new(),
            rest: Tallies::default(),
            databases: Tallies::default(),
            meter: Meter::default(),
            file: 0,
            names: Map::default(),
            known: Map::default(),
            known_bytes: 0,
            room: Room { bytes: KEPT_BYTES_MOST, distinct_most: DISTINCT_MOST },
            taken: Shape::default(),
            key: Vec::new(),
            scratch: Vec::new(),
            held: Vec::new(),
        }
    }

    pub fn add(&mut self, seen: &Seen<'_>, plan: &mut Plan<'_>) {
        if !seen.rest.is_empty() {
            self.rest.add(seen.rest.as_bytes(), seen.times);
            return;
        }
        if !seen.executes.is_empty() {
            // What was prepared in a session is there for that one alone.
            return self.add(&Seen { text: seen.executes, executes: b"", ..seen.clone() }, plan);
        }
        let wanted = self.database.is_empty() || seen.database == self.database;
        if let Some(anonymiser) = &mut self.anonymiser {
            let database = anonymiser.database(seen.database);
            let text = anonymiser.statement(seen.text, self.dialect);
            let other = Seen { text: &text, database: &database, ..seen.clone() };
            return self.add_known(&other, wanted, plan);
        }
        self.add_known(seen, wanted, plan);
    }

    fn add_known(&mut self, seen: &Seen<'_>, wanted: bool, plan: &mut Plan<'_>) {
        self.databases.add(seen.database, seen.times);
        if !wanted {
            return;
        }
        self.meter.add(seen, self.file);
        self.taken.take(seen.text, self.dialect);
        self.key.clear();
        self.key.extend_from_slice(seen.database);
        self.key.push(0);
        self.key.extend_from_slice(&self.taken.text);
        self.key.extend((self.taken.values.len() as u32).to_le_bytes());
        let (group, shape) = match self.known.get(&self.key[..]) {
            Some(found) => *found,
            None => self.enter(seen, plan),
        };
        let group = &mut self.groups[group];
        let unknown = self.taken.values.iter().any(|value| value.kind == Kind::Parameter);
        group.count += seen.times;
        group.unknown += seen.times * u64::from(unknown);
        group.rows.add(seen.rows, seen.times);
        group.affected.add(seen.affected, seen.times);
        group.examined.add(seen.examined, seen.times);
        match seen.took_s {
            Some(took_s) => group.took_s = Some(group.took_s.unwrap_or(0.0) + took_s),
            None => group.untimed += seen.times,
        }
        if let Some(shape) = shape {
            let places = self.taken.values.len().max(1);
            self.room.distinct_most = DISTINCT_MOST.min((VALUES_OF_SHAPE_MOST / places).max(50));
            let shape = &mut group.shapes[shape];
            shape.count += seen.times;
            let taken = &self.taken;
            let room = (&mut self.room, &mut self.scratch, &mut self.held);
            add_values(shape, taken, seen, self.dialect, room);
        }
    }

    /// The group of the statement that was taken apart, and its shape where values are kept of it.
    fn enter(&mut self, seen: &Seen<'_>, plan: &mut Plan<'_>) -> (usize, Option<usize>) {
        let mut name = digest(&self.taken.text);
        let key = |name: &[u8]| [seen.database, &[0], name].concat().into_boxed_slice();
        let is_new = !self.names.contains_key(&key(&name));
        let pooled = is_new && self.groups.len() >= DIGESTS_MOST;
        if pooled {
            name = [&self.taken.verb[..], b" ..."].concat();
        }
        let place = *self.names.entry(key(&name)).or_insert_with(|| {
            self.groups.push(Group {
                digest: name,
                verb: self.taken.verb.clone(),
                database: seen.database.to_vec(),
                line: seen.line,
                file: self.file,
                cut: self.taken.cut,
                count: 0,
                untimed: 0,
                unknown: 0,
                took_s: None,
                rows: Mean::default(),
                affected: Mean::default(),
                examined: Mean::default(),
                shapes: Vec::new(),
            });
            self.groups.len() - 1
        });
        let shapes = &mut self.groups[place].shapes;
        let mut shape = None;
        if !pooled && shapes.len() < SHAPES_MOST {
            let pieces = self.taken.pieces();
            let together =
                plan(&pieces).into_iter().map(|(distance, places)| Together::new(places, distance));
            let written =
                |value: &crate::shape::Value| (value.kind, seen.text[value.start..value.end].to_vec());
            shapes.push(GroupShape {
                together: together.collect(),
                first: self.taken.values.iter().map(written).collect(),
                values: self.taken.values.iter().map(|_| Values::default()).collect(),
                pieces,
                count: 0,
            });
            shape = Some(shapes.len() - 1);
        }
        if shape.is_some() || self.known_bytes < KNOWN_BYTES_MOST {
            self.known_bytes += self.key.len() + 64;
            self.known.insert(self.key.as_slice().into(), (place, shape));
        }
        (place, shape)
    }
}

fn add_values(
    shape: &mut GroupShape,
    taken: &Shape,
    seen: &Seen<'_>,
    dialect: Dialect,
    (room, scratch, held): (&mut Room, &mut Vec<u8>, &mut Vec<Vec<u8>>),
) {
    if shape.together.is_empty() {
        for (values, value) in shape.values.iter_mut().zip(&taken.values) {
            let literal = &seen.text[value.start..value.end];
            values.add(&plain(literal, value.kind, dialect, seen.bound, scratch), seen.times, room);
        }
        return;
    }
    held.resize_with(taken.values.len().max(held.len()), Vec::new);
    let plains: Vec<Plain<'_>> = taken
        .values
        .iter()
        .zip(held)
        .map(|(value, held)| plain(&seen.text[value.start..value.end], value.kind, dialect, seen.bound, held))
        .collect();
    for (values, value) in shape.values.iter_mut().zip(&plains) {
        values.add(value, seen.times, room);
    }
    for together in &mut shape.together {
        together.add(&plains, seen.times, room, scratch);
    }
}
