//! From a URL to an attachment.

use super::interfaces::{call, Attachment, Handle, MIN_ATTACHMENT_VERSION};
use super::library::Library;
use super::status::{Status, NETWORK_ERROR};
use crate::error::{Code, Error, Result};
use crate::io::{no_thread, Interrupt};
use crate::session::Target;
use std::ffi::{c_int, c_uint, c_void, CString};
use std::path::Path;
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex, Once, PoisonError};

/// Of a thread that waits for an attachment.
const THREAD_NAME: &str = "dyno-attach";

const DPB_VERSION: u8 = 1;
const DPB_PAGE_SIZE: u8 = 4;
const DPB_USER_NAME: u8 = 28;
const DPB_PASSWORD: u8 = 29;
const DPB_CHARSET: u8 = 48;
const DPB_CONNECT_TIMEOUT: u8 = 57;
const DPB_ROLE: u8 = 60;
const DPB_SQL_DIALECT: u8 = 63;
const DPB_DATABASE_CHARSET: u8 = 68;
const DPB_FILE_NAME_IS_UTF8: u8 = 77;

/// The library, a status for the session, and its attachment.
type Attached = (Library, Status, Handle<Attachment>);

/// What the thread that attaches brings back; nothing where it is not waited for any more.
struct Brought(Option<Result<Attached>>);

// SAFETY: status and attachment are for any thread, one at a time, and the thread that brings them is through with
// them.
unsafe impl Send for Brought {}

/// A session that waits for its attachment, as other threads see it.
struct Waiting(Sender<Brought>);

impl Interrupt for Waiting {
    fn interrupt(&self) {
        let _ = self.0.send(Brought(None));
    }

    fn cut(&self) {}
}

/// An attachment that a thread waits for.
struct UnderWay(Mutex<Recipient>);

/// To whom the thread gives it.
enum Recipient {
    Waits(Sender<Brought>),
    /// It is closed when it comes.
    Nobody,
    /// The thread has ended.
    Over,
}

/// Those that nobody waits for, each with what tells where it leads. A server that stands still would else get a thread of
/// this process with each new try.
static LEFT: Mutex<Vec<(String, Arc<UnderWay>)>> = Mutex::new(Vec::new());

impl UnderWay {
    /// Begins to attach on a thread of its own.
    fn begin(target: &Target, sender: Sender<Brought>) -> Result<Arc<Self>> {
        let (under_way, its_own) = (Arc::new(UnderWay(Mutex::new(Recipient::Waits(sender)))), target.clone());
        let given = Arc::clone(&under_way);
        std::thread::Builder::new()
            .name(THREAD_NAME.to_owned())
            .spawn(move || {
                let outcome = attach_now(&its_own);
                if let Recipient::Waits(sender) = given.given_to(Recipient::Over) {
                    let _ = sender.send(Brought(Some(outcome)));
                }
            })
            .map_err(|error| no_thread("the thread that opens a connection", &error))?;
        Ok(under_way)
    }

    /// Goes on waiting for one that was left and leads to the same place.
    fn take_up(place: &str, sender: &Sender<Brought>) -> Option<Arc<Self>> {
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(found) = left.iter().position(|(its_place, _)| its_place == place) {
            let (_, under_way) = left.swap_remove(found);
            let mut recipient = under_way.0.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(*recipient, Recipient::Nobody) {
                *recipient = Recipient::Waits(sender.clone());
                drop(recipient);
                return Some(under_way);
            }
        }
        None
    }

    /// Leaves it to whoever tries next.
    fn leave(self: Arc<Self>, place: String) {
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Recipient::Over = self.given_to(Recipient::Nobody) {
            self.given_to(Recipient::Over);
            return;
        }
        left.push((place, self));
    }

    fn given_to(&self, recipient: Recipient) -> Recipient {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), recipient)
    }
}

/// Loads the library and attaches to (or, with `create=1`, makes) the database. The library waits without end for a
/// server that stands still, and there is no attachment yet whose call could be cancelled. So a thread of its own does
/// that, and is left behind where it does not come back in time. The next try for the same place waits for that one.
pub(super) fn attach(target: &Target) -> Result<Attached> {
    if target.host.is_empty() {
        return attach_now(target);
    }
    let (sender, receiver) = channel();
    let waiting = Arc::new(Waiting(sender.clone()));
    target.shared.interrupts.add(&waiting);
    let place =
        format!("{} {:?} {:?}", database(target), (&target.user, &target.password), target.parameters);
    let under_way = match UnderWay::take_up(&place, &sender) {
        Some(under_way) => under_way,
        None => UnderWay::begin(target, sender)?,
    };
    if let Ok(Brought(Some(outcome))) = receiver.recv_timeout(target.connect_timeout) {
        return outcome;
    }
    under_way.leave(place);
    end_without_the_library();
    let patience_s = target.connect_timeout.as_secs_f64();
    let error = Error::connect(format!("no session within {patience_s} s"));
    Err(explained(error, target).hint("is the server stopped? Raise connect_timeout_s if it is only slow"))
}

/// The library's own exit handler waits for all threads that are in it, and so for one that was left behind. From now on
/// the process ends before that.
fn end_without_the_library() {
    static ONCE: Once = Once::new();
    // SAFETY: on_exit(3) keeps a function, which lives as long as the process, and an argument that it does not look
    // at.
    ONCE.call_once(|| unsafe {
        on_exit(end_at_once, std::ptr::null_mut());
    });
}

extern "C" {
    /// Of the GNU C library: `handler` is called by exit() with its status, before those that were named earlier.
    fn on_exit(handler: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

extern "C" fn end_at_once(status: c_int, _: *mut c_void) {
    // SAFETY: _exit(2) takes a number, and does not return.
    unsafe { libc::_exit(status) }
}

pub(super) fn load_library(target: &Target) -> Result<Library> {
    Library::load(target.parameter("library"))
}

fn attach_now(target: &Target) -> Result<Attached> {
    target.allow_parameters()?;
    let name =
        CString::new(database(target)).map_err(|_| Error::user("the database's path holds a zero byte"))?;
    let create = wants_to_create(target)?;
    let dpb = parameter_block(target, create)?;
    let library = load_library(target)?;
    let mut status = library.status();
    let (text, length) = (name.as_ptr(), dpb.len() as c_uint);
    // SAFETY: IProvider's attachDatabase wants a name that ends with a zero, reads no more of the block than the length
    // says, and gives a reference that is the caller's.
    let attachment = unsafe {
        let dispatcher = library.dispatcher;
        Handle::take(if create {
            call!(dispatcher, create_database, status.get(), text, length, dpb.as_ptr())
        } else {
            call!(dispatcher, attach_database, status.get(), text, length, dpb.as_ptr())
        })
    };
    status.check_connect().map_err(|error| explained(error, target))?;
    let attachment = attachment.ok_or_else(|| Error::connect("Firebird gave no attachment and no reason"))?;
    // SAFETY: each of Firebird's interfaces begins with a table, whose version says which functions it has. It lives as
    // long as the attachment, whose reference is held.
    if unsafe { (*(*attachment.get()).table).version } < MIN_ATTACHMENT_VERSION {
        let (major, minor) = library.version();
        return Err(Error::connect(format!("the client library is that of Firebird {major}.{minor}"))
            .hint("use the library of Firebird 4.0.1 or later: it speaks to older servers as well"));
    }
    Ok((library, status, attachment))
}

/// The name to attach to: a file of this machine, or one (or an alias) of a server's.
fn database(target: &Target) -> String {
    if target.host.is_empty() {
        return target.path();
    }
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
    let port = target.port.map(|port| format!(":{port}")).unwrap_or_default();
    // An alias is a plain word; everything else is a path from the server's root.
    let root = if target.database.contains('/') && !target.database.starts_with('/') { "/" } else { "" };
    format!("inet://{host}{port}/{root}{}", target.database)
}

fn explained(error: Error, target: &Target) -> Error {
    if !target.host.is_empty() {
        return error.at(format_args!("Firebird database {:?} on {}", target.database, target.host));
    }
    let error = error.at(format_args!("Firebird database {}", target.path()));
    if error.code() == Code::Firebird(NETWORK_ERROR) {
        return error.hint(
            "the embedded engine was not found: beside the library's directory must stand plugins/ with it, \
             or the environment's FIREBIRD must name the directory that holds plugins/",
        );
    }
    error
}

/// Whether the database is to be made: asked for, and not there yet.
fn wants_to_create(target: &Target) -> Result<bool> {
    match target.parameter("create") {
        None | Some("0") => Ok(false),
        Some("1") if target.host.is_empty() => Ok(!Path::new(&target.path()).exists()),
        Some("1") => Err(Error::user("create=1 makes a database file of this machine only")
            .hint("make the server's database with the server's own tools")),
        Some(_) => Err(Error::user("the URL parameter create takes 0 or 1")),
    }
}

fn parameter_block(target: &Target, create: bool) -> Result<Vec<u8>> {
    let charset = target.parameter("charset").unwrap_or("UTF8");
    let user = match (target.user.as_str(), target.host.is_empty()) {
        ("", true) => "SYSDBA",
        (user, _) => user,
    };
    let mut block = vec![DPB_VERSION];
    put(&mut block, DPB_FILE_NAME_IS_UTF8, b"")?;
    put(&mut block, DPB_SQL_DIALECT, &[3])?;
    put(&mut block, DPB_CHARSET, charset.as_bytes())?;
    put(&mut block, DPB_USER_NAME, user.as_bytes())?;
    if !target.host.is_empty() {
        put(&mut block, DPB_PASSWORD, target.password.as_bytes())?;
        let seconds = target.connect_timeout.as_secs().clamp(1, 3600) as u32;
        put(&mut block, DPB_CONNECT_TIMEOUT, &seconds.to_le_bytes())?;
    }
    if let Some(role) = target.parameter("role") {
        put(&mut block, DPB_ROLE, role.as_bytes())?;
    }
    let page_size = page_size(target)?;
    if create {
        put(&mut block, DPB_PAGE_SIZE, &page_size.to_le_bytes())?;
        put(&mut block, DPB_DATABASE_CHARSET, charset.as_bytes())?;
    }
    Ok(block)
}

fn page_size(target: &Target) -> Result<u32> {
    match target.parameter("page_size").map(str::parse) {
        None => Ok(8192),
        Some(Ok(size @ (4096 | 8192 | 16384 | 32768))) => Ok(size),
        Some(_) => Err(Error::user("the URL parameter page_size takes 4096, 8192, 16384 or 32768")),
    }
}

fn put(block: &mut Vec<u8>, tag: u8, value: &[u8]) -> Result<()> {
    let length = u8::try_from(value.len()).map_err(|_| {
        Error::user("user, password, role and charset of a Firebird URL take at most 255 bytes")
    })?;
    block.extend([tag, length]);
    block.extend_from_slice(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::parse(url).unwrap()
    }

    #[test]
    fn a_file_an_alias_and_a_servers_path_are_told_apart() {
        assert_eq!(database(&target("firebird:///data/a.fdb")), "/data/a.fdb");
        assert_eq!(database(&target("firebird://u:p@host:3051/employee")), "inet://host:3051/employee");
        assert_eq!(database(&target("firebird://u:p@host/data/a.fdb")), "inet://host//data/a.fdb");
        assert_eq!(
            database(&target("firebird://u:p@[::1]:3050//data/a.fdb")),
            "inet://[::1]:3050//data/a.fdb"
        );
    }

    #[test]
    fn a_wrong_parameter_is_the_users_mistake() {
        for url in
            ["firebird:///x?page_size=5000", "firebird:///x?forced_writes=0", "firebird:///x?create=yes"]
        {
            let error = attach(&target(url)).err().unwrap();
            assert_eq!(error.kind(), crate::error::Kind::User, "{url}: {error}");
        }
        let long = format!("firebird://{}@h/x", "u".repeat(300));
        assert_eq!(parameter_block(&target(&long), false).unwrap_err().kind(), crate::error::Kind::User);
    }
}
