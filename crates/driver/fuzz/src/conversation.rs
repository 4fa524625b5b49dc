//! A conversation of a network session with a server whose words are the fuzzer's.

use dyno_driver::io::{block_on, Backend};
use dyno_driver::session::{Collect, RowBuffer, Session, Target, Value};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::mpsc::{channel, Sender};
use std::time::Duration;

/// A socket on which each connection is told what was handed in for it, and then nothing more.
pub struct Listener {
    words: Sender<Vec<u8>>,
    pub path: PathBuf,
}

impl Listener {
    pub fn start(file_name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("dyno-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
        let path = folder.join(file_name);
        let listener = UnixListener::bind(&path).expect("a socket can be made there");
        let (words, received) = channel::<Vec<u8>>();
        std::thread::spawn(move || {
            for words in received {
                let Ok((mut stream, _)) = listener.accept() else { return };
                // The driver may hang up at any word.
                let _ = stream.write_all(&words);
                let _ = stream.shutdown(std::net::Shutdown::Write);
                let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
                let mut heard = [0; 4096];
                while matches!(stream.read(&mut heard), Ok(count) if count > 0) {}
            }
        });
        Listener { words, path }
    }

    pub fn say(&self, words: Vec<u8>) {
        self.words.send(words).expect("the server's thread lives as long as the process");
    }
}

/// Connects, and uses the session in every way. Errors are what the driver is to answer; a panic is a finding.
pub fn converse<S: Session>(url: &str) {
    let mut target = Target::parse(url).expect("the target's own URL is right");
    target.connect_timeout = Duration::from_secs(1);
    target.answer_timeout = Duration::from_secs(1);
    let conversation = async {
        let Ok(mut session) = S::connect(&target).await else { return };
        let mut rows = Collect::default();
        let prepared = session.prepare("SELECT a, b FROM t WHERE a = ?").await;
        if let Ok(statement) = prepared {
            let _ = session.execute(statement, &[Value::Int(7)], &mut rows).await;
            let _ = session.execute(statement, &[Value::Text("x")], &mut ()).await;
            let _ = session.execute_batch(statement, &[Value::Int(1), Value::Null], 1, &mut rows).await;
        }
        let _ = session.text("SELECT 1", &mut rows).await;
        let _ = session.begin().await;
        let _ = session.commit().await;
        let mut left = 2;
        let next = |row: &mut RowBuffer| {
            left -= 1;
            row.int(1).text("b");
            left >= 0
        };
        let _ = session.bulk_insert("t", &["a", "b"], next).await;
        session.close().await;
    };
    // The server's words end, so this does too.
    let _ = block_on(Backend::Epoll, conversation, || false);
}
