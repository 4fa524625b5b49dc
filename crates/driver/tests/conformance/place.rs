//! Where a check runs: a target, a table of its own, and the loop that drives the session.

use dyno_driver::io::{self, Backend};
use dyno_driver::session::{Collect, Owned, Session, Target};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// One check on one engine over one back end.
pub struct Place {
    pub target: Target,
    pub table: String,
    backend: Backend,
    /// Removed with what is in it when the check is over.
    folder: Option<PathBuf>,
}

impl Place {
    fn new(url: &str, check: &str, backend: Backend, folder: Option<PathBuf>) -> Self {
        let mut target = Target::parse(url).unwrap();
        target.answer_timeout = Duration::from_secs(60);
        // Firebird 3 takes names of 31 bytes; the check's initials tell the tables of one database apart.
        let initials: String = check.split('_').filter_map(|word| word.chars().next()).collect();
        let table = format!("dyno_{initials}_{}_{}", backend.as_str(), std::process::id());
        Place { target, table, backend, folder }
    }

    /// Runs a future of sessions to its end.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        io::block_on(self.backend, future, || false).unwrap().expect("nobody interrupts a test")
    }

    pub async fn connect<S: Session>(&self) -> S {
        S::connect(&self.target).await.unwrap()
    }

    /// The same place with another URL parameter.
    pub fn with_parameter(&self, name: &str, value: &str) -> Target {
        let mut target = self.target.clone();
        target.parameters.insert(name.to_owned(), value.to_owned());
        target
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// A folder of the check's own.
fn folder(engine: &str, check: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("dyno-{engine}-{check}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub fn sqlite(check: &str) -> Vec<Place> {
    let folder = folder("sqlite", check);
    let url = format!("sqlite://{}?journal_mode=wal&synchronous=off", folder.join("test.db").display());
    vec![Place::new(&url, check, Backend::Blocking, Some(folder))]
}

pub fn firebird(check: &str) -> Vec<Place> {
    let mut places = embedded_firebird(check);
    if let Ok(url) = std::env::var("DYNO_TEST_FIREBIRD_URL") {
        places.push(Place::new(&url, check, Backend::Blocking, None));
    }
    places
}

fn embedded_firebird(check: &str) -> Vec<Place> {
    let Some(library) = firebird_library() else {
        println!("skipped: no Firebird library; set DYNO_TEST_FIREBIRD_LIBRARY to a libfbclient.so.2");
        return Vec::new();
    };
    let folder = folder("firebird", check);
    let file = folder.join("test.fdb");
    let url = format!("firebird://{}?create=1&library={}", file.display(), library.display());
    let place = Place::new(&url, check, Backend::Blocking, Some(folder));
    let first = place.run(dyno_driver::session::firebird::Firebird::connect(&place.target));
    match first {
        Ok(_) => vec![place],
        Err(error) if error.message().contains("cannot be loaded") => {
            println!("skipped: {error}");
            Vec::new()
        }
        Err(error) => panic!("{error}"),
    }
}

fn firebird_library() -> Option<PathBuf> {
    static LAID_OUT: OnceLock<Option<PathBuf>> = OnceLock::new();
    if let Some(path) = std::env::var_os("DYNO_TEST_FIREBIRD_LIBRARY") {
        return Some(path.into());
    }
    let environment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    let pythons = std::fs::read_dir(environment).ok()?.flatten();
    let wheel = pythons
        .map(|python| python.path().join("site-packages/firebird/embedded/runtime"))
        .find(|runtime| runtime.join("libfbclient.so.2").is_file())?;
    LAID_OUT.get_or_init(|| laid_out(&wheel.canonicalize().ok()?).ok()).clone()
}

/// The wheel as an installation: the libraries look for each other in `../lib` and for plug-ins in `../plugins`, seen
/// from where they really are, so that symbolic links will not do.
fn laid_out(wheel: &Path) -> std::io::Result<PathBuf> {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("firebird");
    place_files(wheel, &root, |name| !name.contains(".so") && name != "firebird.log")?;
    place_files(wheel, &root.join("lib"), |name| name.contains(".so"))?;
    for folder in ["plugins", "intl", "tzdata"] {
        place_files(&wheel.join(folder), &root.join(folder), |_| true)?;
    }
    if let Some(folder) = fetched_libtommath() {
        place_files(&folder, &root.join("lib"), |name| name == "libtommath.so.1")?;
    }
    Ok(root.join("lib/libfbclient.so.2"))
}

/// Copies the wanted files of a folder, unless an earlier test run has.
fn place_files(from: &Path, to: &Path, is_wanted: impl Fn(&str) -> bool) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)?.flatten() {
        let place = to.join(entry.file_name());
        if entry.path().is_file() && is_wanted(&entry.file_name().to_string_lossy()) && !place.exists() {
            std::fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}

/// The folder of libtommath, which Firebird's library needs: a host without it may have the copy that `dyno engines fetch firebird` keeps.
fn fetched_libtommath() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    let engines = std::fs::read_dir(cache.join("dyno/engines")).ok()?.flatten();
    engines
        .map(|engine| engine.path().join("usr/lib/x86_64-linux-gnu"))
        .find(|folder| folder.join("libtommath.so.1").is_file())
}

pub fn mysql(check: &str) -> Vec<Place> {
    server("DYNO_TEST_MYSQL_URL", check)
}

pub fn postgresql(check: &str) -> Vec<Place> {
    server("DYNO_TEST_POSTGRESQL_URL", check)
}

fn server(variable: &str, check: &str) -> Vec<Place> {
    let Ok(url) = std::env::var(variable) else {
        println!("skipped: {variable} is not set");
        return Vec::new();
    };
    let mut backends = vec![Backend::Epoll];
    backends.extend(Backend::choose("io_uring"));
    backends.into_iter().map(|backend| Place::new(&url, check, backend, None)).collect()
}

/// All rows of a statement given as text.
pub async fn rows_of<S: Session>(session: &mut S, sql: &str) -> Vec<Vec<Owned>> {
    let mut all = Collect::default();
    session.text(sql, &mut all).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    all.rows
}

/// The whole number that a statement gives.
pub async fn number_of<S: Session>(session: &mut S, sql: &str) -> i64 {
    let rows = rows_of(session, sql).await;
    rows[0][0].borrow().as_i64().unwrap_or_else(|| panic!("{sql} gave {:?}", rows[0][0]))
}

/// Runs statements that give nothing back.
pub async fn run_all<S: Session>(session: &mut S, statements: &[String]) {
    for sql in statements {
        session.text(sql, &mut ()).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

/// Makes the check's table with these columns, and leaves nothing of an earlier run.
pub async fn make_table<S: Session>(session: &mut S, place: &Place, columns: &str) {
    session.drop_table(&place.table).await.unwrap();
    let suffix = session.dialect().table_suffix;
    run_all(session, &[format!("CREATE TABLE {} ({columns}){suffix}", place.table)]).await;
}
