//! The files that a workload reads, and the folder that their paths count from.

use serde::Serialize;
use std::path::Path;

/// A file that a workload reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileRead {
    /// As it is named: from the folder of the job where the name is relative.
    pub name: String,
    pub path: String,
    /// The option that leads to it, by itself or through other files.
    pub option: &'static str,
    /// The place in another file that names it; empty where the option does.
    pub named_at: String,
}

/// Finds files one after the other, each of them once.
pub(super) struct Finder<'a> {
    folder: &'a Path,
    pub option: &'static str,
    pub found: Vec<FileRead>,
}

impl<'a> Finder<'a> {
    pub fn new(folder: &'a Path) -> Self {
        Finder { folder, option: "", found: Vec::new() }
    }

    pub fn folder(&self) -> &Path {
        self.folder
    }

    /// Where a name leads.
    pub fn path(&self, name: &str) -> String {
        located(self.folder, name)
    }

    /// Notes a file, and gives its bytes where it can be read and was not noted before.
    pub fn read(&mut self, name: &str, named_at: String) -> Option<Vec<u8>> {
        let path = self.note(name, named_at)?;
        // A pipe can be read once, and a device may not end.
        Path::new(&path).is_file().then(|| std::fs::read(&path).ok()).flatten()
    }

    /// Notes a file, and gives its path where it was not noted before.
    pub fn note(&mut self, name: &str, named_at: String) -> Option<String> {
        let path = self.path(name);
        if self.found.iter().any(|one| one.path == path) {
            return None;
        }
        self.found.push(FileRead {
            name: name.to_owned(),
            path: path.clone(),
            option: self.option,
            named_at,
        });
        Some(path)
    }
}

/// Where a path leads that counts from a folder. Without a folder it counts from the process's own.
pub fn located(folder: &Path, name: &str) -> String {
    match name {
        "" => String::new(),
        _ => folder.join(name).to_string_lossy().into_owned(),
    }
}
