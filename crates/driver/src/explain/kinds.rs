//! The kinds of statements that were met, each with its plan.

use crate::count::digest::digest;
use crate::error::{Error, Result};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};

/// A script that puts other names into each text has no end of kinds.
const KINDS_MAX: usize = 100;
/// A plan that is longer is told by nobody.
const PLAN_BYTES_MAX: usize = 512 * 1024;

thread_local! {
    /// Of all sessions of the thread, those that a script opens by itself included.
    static KINDS: RefCell<Kinds> = RefCell::default();
}

#[derive(Debug, Default)]
pub(super) struct Kinds {
    pub found: Vec<Found>,
    known: HashSet<String>,
    transaction: String,
    /// Reads are executed, so that their plans tell rows.
    executed: bool,
    /// What each transaction failed with; empty where a draw got to its end.
    ends: BTreeMap<String, String>,
}

/// One kind of statement, and the transaction that asked it first.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    transaction: String,
    text: String,
    /// In the engine's own form.
    plan: Option<String>,
    why_not: String,
}

impl Kinds {
    /// Why statements of some transactions may not have been met, by the transaction's name.
    pub fn unreached(&self, late: Option<String>) -> BTreeMap<String, String> {
        let mut why: BTreeMap<_, _> = self
            .ends
            .iter()
            .filter(|(_, why)| !why.is_empty())
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect();
        if let Some(late) = late {
            why.insert(self.transaction.clone(), late);
        }
        why
    }
}

pub(super) fn begin(executed: bool) {
    KINDS.set(Kinds { executed, ..Kinds::default() });
}

pub(super) fn executed() -> bool {
    KINDS.with_borrow(|kinds| kinds.executed)
}

pub(super) fn take() -> Kinds {
    KINDS.take()
}

pub(super) fn transaction(name: &str) {
    KINDS.with_borrow_mut(|kinds| kinds.transaction = name.to_owned());
}

pub(super) fn count() -> usize {
    KINDS.with_borrow(|kinds| kinds.found.len())
}

/// The digest of a statement that was not met before.
pub(super) fn unmet(sql: &str, escaped_texts: bool) -> Option<String> {
    let mut text = String::new();
    digest(sql, escaped_texts, &mut text);
    KINDS.with_borrow_mut(|kinds| {
        let wanted = kinds.found.len() < KINDS_MAX && kinds.known.insert(text.clone());
        wanted.then_some(text)
    })
}

/// Keeps a kind with its plan, or with why it has none.
pub(super) fn keep(text: String, outcome: Result<String>) {
    let (plan, why_not) = match outcome {
        Ok(plan) if plan.len() > PLAN_BYTES_MAX => (None, format!("its plan has {} bytes", plan.len())),
        Ok(plan) => (Some(plan), String::new()),
        Err(error) => (None, error.message().to_owned()),
    };
    KINDS.with_borrow_mut(|kinds| {
        let transaction = kinds.transaction.clone();
        kinds.found.push(Found { transaction, text, plan, why_not });
    });
}

/// The transaction was done to its end.
pub(super) fn reached_end() {
    ended(|why| why.clear());
}

/// The transaction failed, which counts where no draw gets to the end.
pub(super) fn failed(error: &Error) {
    KINDS.with_borrow_mut(|kinds| {
        kinds.ends.entry(kinds.transaction.clone()).or_insert_with(|| error.message().to_owned());
    });
}

fn ended(note: impl FnOnce(&mut String)) {
    KINDS.with_borrow_mut(|kinds| note(kinds.ends.entry(kinds.transaction.clone()).or_default()));
}
