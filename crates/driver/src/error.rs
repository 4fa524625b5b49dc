//! The driver's only error: what happened, what to do about it, and what the transaction runner needs to know.

use serde::Serialize;
use std::fmt;

/// Who is to blame; the binding and the command line choose exit codes by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The job asks for something that cannot be.
    User,
    /// No session could be had.
    Connect,
    /// The server refused a statement, or the connection to it was lost.
    Server,
    /// The server's bytes do not follow its protocol.
    Protocol,
    /// A defect of the driver, or the operating system refused it something.
    Internal,
}

impl Kind {
    /// The word that stands for the kind outside of Rust.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::User => "user",
            Kind::Connect => "connect",
            Kind::Server => "server",
            Kind::Protocol => "protocol",
            Kind::Internal => "internal",
        }
    }
}

/// What a failed statement means for the transaction that it was part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The statement failed; nothing says that another try would do better.
    Failed,
    /// Another transaction was in the way: roll back and try the same transaction again.
    Retry,
    /// The connection is gone. Whether a commit under way took effect is unknown.
    Lost,
    /// The workload itself is at fault: the whole run makes no sense any more.
    Fatal,
}

/// What has happened, for those who act on it. A server's own code begins the error's label as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Code {
    /// Nobody acts on it.
    #[default]
    Other,
    /// The server closed the connection in order.
    Closed,
    /// The connection broke.
    Broken,
    /// An answer did not come in time.
    Silent,
    /// The user has interrupted the driver.
    Interrupted,
    /// Of MariaDB and MySQL.
    Mysql(u16),
    /// PostgreSQL's SQLSTATE.
    State([u8; 5]),
    /// PostgreSQL would answer a prepared statement with other columns than it has described, which has this state too.
    Stale([u8; 5]),
    Sqlite(i32),
    /// SQLite has no code of its own for a table that is not there.
    SqliteNoTable(i32),
    Firebird(isize),
}

impl Code {
    /// That of an SQLSTATE as it was sent; `Other` where it has not five bytes.
    pub fn state(text: &str) -> Self {
        text.as_bytes().try_into().map_or(Code::Other, Code::State)
    }

    /// The class and the state of an SQLSTATE begin with this.
    pub fn is_of_class(self, class: &str) -> bool {
        matches!(self, Code::State(state) | Code::Stale(state) if state.starts_with(class.as_bytes()))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Code::Other | Code::Closed | Code::Broken | Code::Silent | Code::Interrupted => Ok(()),
            Code::Mysql(code) => write!(f, "{code}"),
            Code::State(state) | Code::Stale(state) => f.write_str(&String::from_utf8_lossy(state)),
            Code::Sqlite(code) | Code::SqliteNoTable(code) => write!(f, "{code}"),
            Code::Firebird(code) => write!(f, "{code}"),
        }
    }
}

/// One of several things that are wrong with a file of the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mistake {
    /// A file and a line, such as `shop.toml:7`; empty where there is none.
    pub place: String,
    pub message: String,
    pub hint: String,
}

/// Boxed, so that the `Result` of every call on the hot path stays one word wide.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: Kind,
    fate: Fate,
    code: Code,
    label: String,
    message: String,
    hint: String,
    sqlstate: String,
    mistakes: Vec<Mistake>,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    fn new(kind: Kind, fate: Fate, label: &str, message: impl Into<String>) -> Self {
        let (label, message, hint, sqlstate) =
            (label.to_owned(), message.into(), String::new(), String::new());
        Error(Box::new(Inner {
            kind,
            fate,
            code: Code::Other,
            label,
            message,
            hint,
            sqlstate,
            mistakes: Vec::new(),
        }))
    }

    pub fn user(message: impl Into<String>) -> Self {
        Self::new(Kind::User, Fate::Failed, "user", message)
    }

    pub fn connect(message: impl Into<String>) -> Self {
        Self::new(Kind::Connect, Fate::Lost, "connect", message)
    }

    /// A statement that the server refused with a code of its own. The tally counts it under this and the words, such as
    /// "1213 deadlock".
    pub fn refused(code: Code, words: &str, fate: Fate, message: impl Into<String>) -> Self {
        Self::new(Kind::Server, fate, &format!("{code} {words}"), message).coded(code)
    }

    /// A statement that did not do what it should. The tally counts it under `label`.
    pub fn server(label: &str, fate: Fate, message: impl Into<String>) -> Self {
        Self::new(Kind::Server, fate, label, message)
    }

    /// The connection ended (reset, closed, no answer in time). `label` says how, for the tally.
    pub fn lost(label: &str, message: impl Into<String>) -> Self {
        Self::new(Kind::Server, Fate::Lost, label, message)
    }

    /// The server closed the connection in order.
    pub fn closed(message: impl Into<String>) -> Self {
        Self::lost("connection closed", message).coded(Code::Closed)
    }

    /// The connection broke.
    pub fn broken(message: impl Into<String>) -> Self {
        Self::lost("connection lost", message).coded(Code::Broken)
    }

    /// An answer did not come in time.
    pub fn silent(message: impl Into<String>) -> Self {
        Self::lost("no answer", message).coded(Code::Silent)
    }

    /// The user has interrupted the driver.
    pub fn interrupted() -> Self {
        Self::user("interrupted").coded(Code::Interrupted)
    }

    /// Bytes that break the protocol. The connection cannot be used any further.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new(Kind::Protocol, Fate::Lost, "protocol", message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, Fate::Failed, "internal", message)
    }

    /// The same error as one that has this code.
    pub fn coded(mut self, code: Code) -> Self {
        self.0.code = code;
        self
    }

    /// The same error as one that another transaction has caused.
    pub fn retried(mut self) -> Self {
        self.0.fate = Fate::Retry;
        self
    }

    /// The same error as one that no other try would mend.
    pub fn failed(mut self) -> Self {
        self.0.fate = Fate::Failed;
        self
    }

    /// The same error as one that ends the run.
    pub fn fatal(mut self) -> Self {
        self.0.fate = Fate::Fatal;
        self
    }

    /// The same error with the five letters of SQL's standard that the server sent beside its own code.
    pub fn with_sqlstate(mut self, sqlstate: impl Into<String>) -> Self {
        self.0.sqlstate = sqlstate.into();
        self
    }

    /// The same error with what the user can do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = hint.into();
        self
    }

    /// The same error with where it happened put before its message.
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.0.message = format!("{place}: {}", self.0.message);
        self
    }

    /// The same error with the mistakes that it tells of, one by one.
    pub fn with_mistakes(mut self, mistakes: Vec<Mistake>) -> Self {
        self.0.mistakes = mistakes;
        self
    }

    /// The same error as a failure to connect: for what goes wrong during a handshake.
    pub fn while_connecting(mut self) -> Self {
        if self.0.kind != Kind::User {
            self.0.kind = Kind::Connect;
        }
        self
    }

    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    pub fn fate(&self) -> Fate {
        self.0.fate
    }

    pub fn code(&self) -> Code {
        self.0.code
    }

    /// By what the tally counts it: for people.
    pub fn label(&self) -> &str {
        &self.0.label
    }

    /// Whether a server says that a table is not there.
    pub fn is_table_missing(&self) -> bool {
        const NO_TABLE: Code = Code::State(*b"42P01");
        self.kind() == Kind::Server
            && matches!(
                self.code(),
                Code::Mysql(1146) | NO_TABLE | Code::Firebird(335_544_580) | Code::SqliteNoTable(_)
            )
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The mistakes that it tells of: itself where it is the only one.
    pub fn mistakes(&self) -> Vec<Mistake> {
        match &self.0.mistakes[..] {
            [] => vec![Mistake {
                place: String::new(),
                message: self.0.message.clone(),
                hint: self.0.hint.clone(),
            }],
            all => all.to_vec(),
        }
    }

    /// Empty where the server sent none, or none beside its own code.
    pub fn sqlstate(&self) -> &str {
        &self.0.sqlstate
    }

    pub fn hint_text(&self) -> &str {
        &self.0.hint
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if !self.0.hint.is_empty() {
            write!(f, " ({})", self.0.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
