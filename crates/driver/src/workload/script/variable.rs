//! Variables: their names while a script is read, their values while it runs.

use crate::session::{Owned, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Variables that are there without being set.
pub const BUILT_IN: [&str; 4] = ["client_id", "scale", "random_seed", "default_seed"];
pub const CLIENT_ID: usize = 0;
pub const SCALE: usize = 1;
pub const RANDOM_SEED: usize = 2;
pub const DEFAULT_SEED: usize = 3;

/// The names met so far, each with its slot, and what reads and writes it.
#[derive(Clone, Debug)]
pub struct Names {
    slots: HashMap<String, usize>,
    names: Vec<String>,
    written: Vec<bool>,
    /// The line that is being read, and for each slot the first line that reads it.
    pub line: usize,
    read_at: Vec<Option<usize>>,
    memories: usize,
}

impl Default for Names {
    fn default() -> Self {
        let (slots, names, written, read_at) = Default::default();
        let mut names = Names { slots, names, written, line: 0, read_at, memories: 0 };
        BUILT_IN.iter().for_each(|name| {
            names.write(name);
        });
        names
    }
}

impl Names {
    fn slot(&mut self, name: &str) -> usize {
        if let Some(&slot) = self.slots.get(name) {
            return slot;
        }
        let slot = self.names.len();
        self.slots.insert(name.to_owned(), slot);
        self.names.push(name.to_owned());
        self.written.push(false);
        self.read_at.push(None);
        slot
    }

    /// The slot of a variable that is read here.
    pub fn read(&mut self, name: &str) -> usize {
        let slot = self.slot(name);
        self.read_at[slot].get_or_insert(self.line);
        slot
    }

    /// The slot of a variable that is set here.
    pub fn write(&mut self, name: &str) -> usize {
        let slot = self.slot(name);
        self.written[slot] = true;
        slot
    }

    pub fn find(&self, name: &str) -> Option<usize> {
        self.slots.get(name).copied()
    }

    pub fn is_written(&self, name: &str) -> bool {
        self.find(name).is_some_and(|slot| self.written[slot])
    }

    /// Variables that something reads and nothing sets, each with the first line that reads it.
    pub fn never_set(&self) -> Vec<(&str, usize)> {
        (0..self.names.len())
            .filter(|&slot| !self.written[slot])
            .filter_map(|slot| Some((self.names[slot].as_str(), self.read_at[slot]?)))
            .collect()
    }

    /// The names of all variables that are set somewhere.
    pub fn set(&self) -> impl Iterator<Item = &str> {
        (0..self.names.len()).filter(|&slot| self.written[slot]).map(|slot| self.names[slot].as_str())
    }

    /// A place that a function keeps something in between calls.
    pub fn memory(&mut self) -> usize {
        self.memories += 1;
        self.memories - 1
    }

    pub fn memories(&self) -> usize {
        self.memories
    }

    pub fn all(&self) -> &[String] {
        &self.names
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Kind {
    #[default]
    Unset,
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text,
    Bytes,
    List,
}

/// A variable's value. Its buffer is kept when it takes another value, so that no operation allocates.
#[derive(Clone, Debug, Default)]
pub struct Variable {
    kind: Kind,
    text: String,
    bytes: Vec<u8>,
    /// All clients share it, because it can be long.
    list: Option<Arc<[Owned]>>,
}

impl Variable {
    pub fn int(value: i64) -> Self {
        Variable { kind: Kind::Int(value), ..Variable::default() }
    }

    /// Values that `pick` draws from; as a parameter it is null.
    pub fn of_list(values: Vec<Owned>) -> Self {
        Variable { kind: Kind::List, list: Some(values.into()), ..Variable::default() }
    }

    pub fn list(&self) -> Option<&[Owned]> {
        self.list.as_deref().filter(|_| self.kind == Kind::List)
    }

    pub fn is_set(&self) -> bool {
        self.kind != Kind::Unset
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.kind {
            Kind::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// As a statement's parameter; truth values go as 1 and 0.
    pub fn value(&self) -> Value<'_> {
        match self.kind {
            Kind::Unset | Kind::Null | Kind::List => Value::Null,
            Kind::Bool(value) => Value::Int(i64::from(value)),
            Kind::Int(value) => Value::Int(value),
            Kind::Double(value) => Value::Float(value),
            Kind::Text => Value::Text(&self.text),
            Kind::Bytes => Value::Bytes(&self.bytes),
        }
    }

    pub fn set_bool(&mut self, value: bool) {
        self.kind = Kind::Bool(value);
    }

    pub fn set(&mut self, value: Value<'_>) {
        self.kind = match value {
            Value::Null => Kind::Null,
            Value::Int(value) => Kind::Int(value),
            Value::Float(value) => Kind::Double(value),
            Value::Text(text) => {
                self.text.clear();
                self.text.push_str(text);
                Kind::Text
            }
            Value::Bytes(bytes) => {
                self.bytes.clear();
                self.bytes.extend_from_slice(bytes);
                Kind::Bytes
            }
        };
    }

    /// Takes over another variable's value, reusing this one's buffers.
    pub fn copy_from(&mut self, other: &Variable) {
        self.kind = other.kind;
        match other.kind {
            Kind::Text => {
                self.text.clear();
                self.text.push_str(&other.text);
            }
            Kind::Bytes => {
                self.bytes.clear();
                self.bytes.extend_from_slice(&other.bytes);
            }
            Kind::List => self.list.clone_from(&other.list),
            _ => {}
        }
    }
}
