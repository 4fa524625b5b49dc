//! A server that answers as MySQL or PostgreSQL would, up to the stage at which it attacks.

mod mysql;
mod postgresql;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Mysql,
    Postgresql,
}

/// Which of the server's answers is attacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The first thing it says.
    Greeting,
    /// The answer to the credentials.
    Login,
    Prepare,
    Execute,
    /// The answer to a statement sent as text, such as BEGIN.
    Text,
}

impl Stage {
    pub const ALL: [Stage; 5] = [Stage::Greeting, Stage::Login, Stage::Prepare, Stage::Execute, Stage::Text];
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Attack {
    None,
    Close,
    Reset,
    /// Says nothing any more, and keeps the connection open.
    Silence,
    HalfThenClose,
    HalfThenReset,
    HalfThenSilence,
    Zeros,
    Ones,
    /// A header that announces more than comes.
    TooLong,
    /// MySQL: the packets' numbers are one too high.
    WrongSequence,
    /// Packets of 16 MB, one after another.
    Huge,
    /// Small well-formed packets without end.
    EndlessPackets,
    /// A packet of 16 MB, byte by byte.
    EndlessDrip,
    /// The right answer, byte by byte.
    Drip,
    SetByte {
        at: usize,
        to: u8,
    },
    TurnBit {
        at: usize,
    },
    /// Resets one of a few connections in the middle of a transaction.
    ResetSometimes,
}

impl Attack {
    pub fn is_a_wrong_byte(self) -> bool {
        matches!(self, Attack::SetByte { .. } | Attack::TurnBit { .. })
    }

    /// Of an answer, the byte that is changed; 0 where it is not one byte.
    pub fn place(self) -> usize {
        match self {
            Attack::SetByte { at, .. } | Attack::TurnBit { at } => at,
            _ => 0,
        }
    }
}

/// The answers of a protocol.
pub trait Voice: Send {
    /// What is said before the client has said anything.
    fn greeting(&self) -> Vec<u8>;

    /// Takes whole requests off the front of `received`, and answers the first; `None` while none is whole.
    fn answer(&mut self, received: &mut Vec<u8>) -> Option<(Stage, Vec<u8>)>;

    /// `count` well-formed packets of `bytes` of payload that may come at `stage`, after `before` others.
    fn packets(&self, stage: Stage, before: usize, count: usize, bytes: usize) -> Vec<u8>;

    /// `answer` with its packets' numbers made wrong; unchanged where packets have none.
    fn misnumbered(&self, answer: Vec<u8>) -> Vec<u8> {
        answer
    }
}

fn voice(protocol: Protocol) -> Box<dyn Voice> {
    match protocol {
        Protocol::Mysql => Box::new(mysql::Mysql::default()),
        Protocol::Postgresql => Box::new(postgresql::Postgresql::default()),
    }
}

/// No answer of either protocol has more bytes than this.
pub const LONGEST_ANSWER: usize = 120;

/// The bytes of the longest answer that was given at each stage of each protocol.
static LONGEST_GIVEN: [[AtomicUsize; Stage::ALL.len()]; 2] =
    [const { [const { AtomicUsize::new(0) }; Stage::ALL.len()] }; 2];

/// How many bytes the longest answer has that any connection was given at a stage.
pub fn longest_given(protocol: Protocol, stage: Stage) -> usize {
    LONGEST_GIVEN[protocol as usize][stage as usize].load(Ordering::Relaxed)
}

/// A server on a free port of the loopback interface; it ends when it is dropped.
pub struct Fake {
    protocol: Protocol,
    port: u16,
    /// What the URL ends with.
    parameters: &'static str,
    ended: Arc<AtomicBool>,
    pub folder: PathBuf,
}

static STARTED: AtomicU32 = AtomicU32::new(0);

impl Fake {
    pub fn start(protocol: Protocol, stage: Stage, attack: Attack) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ended = Arc::new(AtomicBool::new(false));
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("dyno-hostile-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let over = Arc::clone(&ended);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let attack = match attack {
                    Attack::ResetSometimes if number > 3 => Attack::None,
                    Attack::ResetSometimes => Attack::Reset,
                    attack => attack,
                };
                let over = Arc::clone(&over);
                let mut connection =
                    Connection { stream, protocol, voice: voice(protocol), stage, attack, attacked: 0, over };
                // A client that goes away in the middle is what this is about.
                std::thread::spawn(move || drop(connection.serve()));
            }
        });
        // PostgreSQL speaks first only where TLS is asked for.
        let tls = protocol == Protocol::Postgresql && stage == Stage::Greeting;
        Fake { protocol, port, parameters: if tls { "?tls=required" } else { "" }, ended, folder }
    }

    pub fn url(&self) -> String {
        match self.protocol {
            Protocol::Mysql => format!("mysql://root@127.0.0.1:{}/test", self.port),
            Protocol::Postgresql => {
                format!("postgresql://root@127.0.0.1:{}/test{}", self.port, self.parameters)
            }
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the listener.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Connection {
    stream: TcpStream,
    protocol: Protocol,
    voice: Box<dyn Voice>,
    stage: Stage,
    attack: Attack,
    attacked: u32,
    over: Arc<AtomicBool>,
}

type Io = std::io::Result<()>;

impl Connection {
    fn serve(&mut self) -> Io {
        self.stream.set_nodelay(true)?;
        // So that a server that nobody talks to any more ends.
        self.stream.set_read_timeout(Some(Duration::from_millis(100)))?;
        self.stream.set_write_timeout(Some(Duration::from_millis(100)))?;
        let greeting = self.voice.greeting();
        if !greeting.is_empty() {
            self.say(Stage::Greeting, greeting)?;
        }
        let mut received = Vec::new();
        let mut buffer = [0; 4096];
        while !self.over.load(Ordering::Relaxed) {
            while let Some((stage, answer)) = self.voice.answer(&mut received) {
                self.say(stage, answer)?;
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => received.extend_from_slice(&buffer[..count]),
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all, for as long as the test goes on.
    fn write(&mut self, mut bytes: &[u8]) -> Io {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if is_pause(&error) && !self.over.load(Ordering::Relaxed) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn say(&mut self, stage: Stage, answer: Vec<u8>) -> Io {
        assert!(answer.len() <= LONGEST_ANSWER);
        LONGEST_GIVEN[self.protocol as usize][stage as usize].fetch_max(answer.len(), Ordering::Relaxed);
        if stage != self.stage {
            return self.write(&answer);
        }
        self.attacked += 1;
        // Some transactions succeed before a connection is attacked in the midst of them.
        if matches!(stage, Stage::Execute | Stage::Text) && self.attacked < 4 {
            return self.write(&answer);
        }
        self.strike(answer)
    }

    fn strike(&mut self, mut answer: Vec<u8>) -> Io {
        let half = answer.len() / 2;
        match self.attack {
            Attack::None | Attack::ResetSometimes => self.write(&answer),
            Attack::Close => self.close(),
            Attack::Reset => self.reset(),
            Attack::Silence => self.silence(),
            Attack::HalfThenClose => self.write(&answer[..half]).and_then(|()| self.close()),
            Attack::HalfThenReset => self.write(&answer[..half]).and_then(|()| self.reset()),
            Attack::HalfThenSilence => self.write(&answer[..half]).and_then(|()| self.silence()),
            Attack::Zeros => self.write(&[0; 1000]).and_then(|()| self.silence()),
            Attack::Ones => self.write(&[0xFF; 1000]).and_then(|()| self.silence()),
            Attack::TooLong => {
                let packet = self.voice.packets(self.stage, 0, 1, 100_000);
                self.write(&packet[..1000]).and_then(|()| self.silence())
            }
            Attack::WrongSequence => {
                let answer = self.voice.misnumbered(answer);
                self.write(&answer).and_then(|()| self.silence())
            }
            Attack::Huge => self.forever((1 << 24) - 1),
            Attack::EndlessPackets => self.forever(7),
            Attack::EndlessDrip => {
                let packet = self.voice.packets(self.stage, 0, 1, (1 << 24) - 1);
                self.drip(&packet)
            }
            Attack::Drip => self.drip(&answer),
            Attack::SetByte { at, to } => {
                if let Some(byte) = answer.get_mut(at) {
                    *byte = to;
                }
                self.write(&answer)
            }
            Attack::TurnBit { at } => {
                if let Some(byte) = answer.get_mut(at) {
                    *byte ^= 0x80;
                }
                self.write(&answer)
            }
        }
    }

    fn forever(&mut self, bytes: usize) -> Io {
        // A multiple of 256 starts MySQL's numbers anew.
        let count = if bytes < 1000 { 4096 } else { 1 };
        for turn in 0.. {
            let packets = self.voice.packets(self.stage, turn * count, count, bytes);
            self.write(&packets)?;
        }
        Ok(())
    }

    fn drip(&mut self, bytes: &[u8]) -> Io {
        for byte in bytes.chunks(1) {
            self.write(byte)?;
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn close(&mut self) -> Io {
        self.stream.shutdown(Shutdown::Both)?;
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    /// Ends the connection with a reset: nothing lingers.
    fn reset(&mut self) -> Io {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        // SAFETY: the option's value and its size belong together, and the socket is open.
        unsafe {
            libc::setsockopt(
                self.stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                (&raw const linger).cast(),
                size_of::<libc::linger>() as libc::socklen_t,
            );
        }
        Err(std::io::ErrorKind::ConnectionReset.into())
    }

    fn silence(&mut self) -> Io {
        while !self.over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(std::io::ErrorKind::TimedOut.into())
    }
}

fn is_pause(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}
