//! Scripts of requests against an application on a real socket: captures, keep-alive and its end, chunks, refusals,
//! and answers that are none. The application is this test's own and keeps its users in memory.

use dyno_driver::session::http::{Http, MARK};
use dyno_driver::session::Session;
use dyno_driver::{Error, Watch};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// No client of these tests is silent for so long.
const PATIENCE: Duration = Duration::from_secs(30);

const USERS: &str = r#"
[options]
password = 'se"cret'

[[start.statements]]
request = "POST /tokens"
body = { password = ":password" }
expect = 201
into = { token = "header X-Subject-Token" }

[[transactions]]
name = "create"
weight = 3
values = { number = "sequence(1)" }

[[transactions.statements]]
request = "POST /users"
headers = { X-Auth-Token = ":token" }
body.user = { name = "user :number", number = ":number", enabled = true }
expect = 201
into = { id = "body /user/id" }

[[transactions.statements]]
request = "GET /users/:id"
headers = { X-Auth-Token = ":token" }
into = { name = "body /name" }

[[transactions]]
name = "list"

[[transactions.statements]]
request = "GET /users?sort=name"
headers = { X-Auth-Token = ":token" }
into = { count = "body /users" }

[[transactions]]
name = "pass"
values = { number = "sequence(1)" }

[[transactions.statements]]
request = "POST /users"
headers = { X-Auth-Token = ":token" }
body.user = { name = "guest", number = ":number", enabled = true }
into = { id = "body /user/id" }

[[transactions.statements]]
request = "DELETE /users/:id"
headers = { X-Auth-Token = ":token" }

[[transactions.statements]]
request = "GET /users/:id"
headers = { X-Auth-Token = ":token" }
expect = 404
"#;

#[derive(Default)]
struct Users {
    names: BTreeMap<u64, String>,
    made: u64,
    signed_in: u64,
    connections: u64,
}

/// An application on a free port; it ends when it is dropped.
struct Application {
    port: u16,
    users: Arc<Mutex<Users>>,
    ended: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
    folder: PathBuf,
}

impl Application {
    fn start(name: &str) -> Self {
        Self::with(name, |serve| drop(std::thread::spawn(serve)))
    }

    /// One that has a single worker, which serves a connection to its end before it takes the next.
    fn with_one_worker(name: &str) -> Self {
        Self::with(name, |serve| serve())
    }

    fn with(name: &str, work: fn(Box<dyn FnOnce() + Send>)) -> Self {
        let folder = std::env::temp_dir().join(format!("dyno-http-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (users, ended) = (Arc::new(Mutex::new(Users::default())), Arc::new(AtomicBool::new(false)));
        let listening = Some(std::thread::spawn({
            let (users, ended) = (Arc::clone(&users), Arc::clone(&ended));
            move || {
                for stream in listener.incoming() {
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                    let (users, stream) = (Arc::clone(&users), stream.unwrap());
                    users.lock().unwrap().connections += 1;
                    // A client may leave in the middle of a request: that is the end of its connection only.
                    work(Box::new(move || drop(serve(stream, &users))));
                }
            }
        }));
        Application { port, users, ended, listening, folder }
    }

    fn run(&self, script: &str, more: Value) -> Value {
        self.try_run(&self.file(script), more).unwrap()
    }

    fn file(&self, script: &str) -> String {
        let file = self.folder.join("script.toml");
        std::fs::write(&file, script).unwrap();
        file.to_str().unwrap().to_owned()
    }

    fn try_run(&self, file: &str, more: Value) -> Result<Value, Error> {
        let mut job = json!({
            "url": format!("http://127.0.0.1:{}", self.port), "workload": file, "clients": 4, "threads": 1,
            "duration_s": 60.0,
        });
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut never = || false;
        let mut watch = Watch { interrupted: &mut never, on_second: None, next_slice: None };
        dyno_driver::run(&job.to_string(), &mut watch)
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the thread that listens.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Request {
    method: String,
    path: String,
    token: String,
    body: Value,
}

impl Request {
    /// `None` at the end of the connection.
    fn read(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Self>> {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        assert_eq!(words.next().as_deref(), Some("HTTP/1.1\r\n"));
        let (mut token, mut length) = (String::new(), 0);
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                None => break,
                Some(("X-Auth-Token", value)) => token = value.to_owned(),
                Some(("Content-Length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let body = if length == 0 { Value::Null } else { serde_json::from_slice(&body).unwrap() };
        Ok(Some(Request { method, path, token, body }))
    }
}

fn serve(stream: TcpStream, users: &Mutex<Users>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let (mut reader, mut writer) = (BufReader::new(stream.try_clone()?), stream);
    while let Some(request) = Request::read(&mut reader)? {
        let (answer, goes_on) = match request.path.as_str() {
            "/garbage" => ("220 ready for mail\r\n".to_owned(), true),
            "/half" => ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc".to_owned(), false),
            "/broken" => (counted("500 Internal Server Error", &json!({"at": "line 7"})), true),
            "/silence" => (String::new(), true),
            "/alone" => (counted("200 OK\r\nConnection: close", &json!({})), false),
            "/quits" => (counted("200 OK", &json!({})), false),
            "/page" => ("HTTP/1.0 200 OK\r\n\r\n{\"to\": \"the end\"}".to_owned(), false),
            "/early" => (format!("HTTP/1.1 103 Early Hints\r\n\r\n{}", counted("200 OK", &json!({}))), true),
            "/users?sort=name" => (answer(&request, users), false),
            _ => (answer(&request, users), true),
        };
        writer.write_all(answer.as_bytes())?;
        if !goes_on {
            break;
        }
    }
    Ok(())
}

fn answer(request: &Request, users: &Mutex<Users>) -> String {
    let mut users = users.lock().unwrap();
    let id = request.path.strip_prefix("/users/").and_then(|id| id.parse::<u64>().ok());
    match (request.method.as_str(), request.path.as_str(), id) {
        ("POST", "/tokens", _) if request.body == json!({"password": "se\"cret"}) => {
            users.signed_in += 1;
            "HTTP/1.1 201 Created\r\nX-Subject-Token: abc\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
        _ if request.token != "abc" => counted("401 Unauthorized", &json!({})),
        ("POST", "/users", _) => {
            let user = &request.body["user"];
            assert!(user["number"].is_i64() && user["enabled"] == true, "{user}");
            users.made += 1;
            let id = users.made;
            users.names.insert(id, user["name"].as_str().unwrap().to_owned());
            let body = json!({"user": {"id": id}}).to_string();
            let (start, end) = body.split_at(3);
            let head = "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n";
            format!("{head}3\r\n{start}\r\n{:x}\r\n{end}\r\n0\r\n\r\n", end.len())
        }
        ("GET", "/users?sort=name", _) => {
            let names: Vec<&String> = users.names.values().collect();
            counted("200 OK\r\nConnection: close", &json!({"users": names}))
        }
        ("GET", _, Some(id)) if users.names.contains_key(&id) => {
            counted("200 OK", &json!({"name": users.names[&id]}))
        }
        ("DELETE", _, Some(id)) => {
            users.names.remove(&id);
            "HTTP/1.1 204 No Content\r\n\r\n".to_owned()
        }
        _ => counted("404 Not Found", &json!({"error": "there is none"})),
    }
}

fn counted(status: &str, body: &Value) -> String {
    let body = body.to_string();
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn backends() -> Vec<&'static str> {
    match dyno_driver::io::io_uring_works() {
        Ok(()) => vec!["epoll", "io_uring"],
        Err(_) => vec!["epoll"],
    }
}

/// A script of one request.
fn one(request: &str) -> String {
    format!("[[transactions]]\nname = \"one\"\nstatements = [{{ request = \"{request}\" }}]\n")
}

#[test]
fn every_user_of_whom_a_client_was_told_is_there() {
    for backend in backends() {
        let application = Application::start(backend);
        let tally = application.run(USERS, json!({"operations": 300, "backend": backend}));
        assert_eq!((&tally["operations"], &tally["errors"]), (&json!(300), &json!({})), "{tally}");
        let done = |name: &str| tally["by_transaction"][name]["operations"].as_u64().unwrap();
        let users = application.users.lock().unwrap();
        assert_eq!(users.signed_in, 1, "one client asks for the token of all");
        assert_eq!(users.names.len() as u64, done("create"), "guests are deleted again");
        assert!(users.names.values().all(|name| name.starts_with("user ")), "{:?}", users.names);
        // Each client opens one to find the application there, and one for its requests. A list ends its connection;
        // nothing else does.
        assert!(users.connections <= 2 * 8 + done("list"), "{} connections", users.connections);
    }
}

#[test]
fn the_script_of_the_documentation_is_read_as_a_whole() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/keystone.toml");
    let application = Application::start("keystone");
    let refused = application.try_run(script, json!({"operations": 1})).unwrap_err();
    // Reading it found no mistake: it is the application that does not know the administrator.
    assert!(refused.to_string().contains("POST /v3/auth/tokens was answered with 401"), "{refused}");
}

#[test]
fn a_refusal_counts_by_its_status() {
    let application = Application::start("refusal");
    let tally = application.run(&one("GET /users/1"), json!({"operations": 20}));
    assert_eq!((&tally["operations"], &tally["errors"]), (&json!(0), &json!({"401 Unauthorized": 20})));
}

#[test]
fn an_application_that_only_fails_ends_the_run_with_what_it_said() {
    let application = Application::start("broken");
    let failed = application.try_run(&application.file(&one("GET /broken")), json!({})).unwrap_err();
    let told = failed.to_string();
    assert!(
        told.contains("GET /broken was answered with 500 Internal Server Error: {\"at\":\"line 7\"}"),
        "{told}"
    );
    assert!(told.contains("in a row failed") && told.contains("read the log of the application"), "{told}");
}

#[test]
fn answers_that_are_none_lose_the_connection() {
    for (path, label) in [("/garbage", "protocol"), ("/half", "connection closed"), ("/silence", "no answer")]
    {
        let application = Application::start(&path[1..]);
        let limits = json!({"duration_s": 0.5, "answer_timeout_s": 0.2, "reconnect": true});
        let tally = application.run(&one(&format!("GET {path}")), limits);
        assert_eq!(tally["operations"], 0, "{tally}");
        assert!(tally["errors"][label].as_u64().is_some_and(|count| count > 0), "{path}: {tally}");
    }
}

#[test]
fn a_page_may_end_with_its_connection_and_hints_may_come_first() {
    for path in ["/page", "/early"] {
        let application = Application::start(&path[1..]);
        let tally = application.run(&one(&format!("GET {path}")), json!({"operations": 20}));
        assert_eq!((&tally["operations"], &tally["errors"]), (&json!(20), &json!({})), "{path}: {tally}");
    }
}

#[test]
fn what_tells_requests_apart_holds_neither_headers_nor_body() {
    let request = format!("POST /v3/users/{MARK}\nX-Auth-Token: secret\n\n{{\"password\":\"secret\"}}");
    assert_eq!(Http::telling(&request), "POST /v3/users/?");
}

#[test]
fn a_worker_that_serves_one_connection_at_a_time_is_held_by_no_idle_client() {
    let script = format!(
        "[[start.statements]]\nrequest = \"GET /alone\"\n[[start.statements]]\nrequest = \"GET /alone\"\n{}",
        one("GET /alone")
    );
    for backend in backends() {
        let application = Application::with_one_worker(&format!("alone-{backend}"));
        let job =
            json!({"operations": 40, "backend": backend, "answer_timeout_s": PATIENCE.as_secs_f64() / 2.0});
        let tally = application.run(&script, job);
        assert_eq!((&tally["operations"], &tally["errors"]), (&json!(40), &json!({})), "{tally}");
    }
}

#[test]
fn what_changes_nothing_is_asked_again_where_the_application_closes_between_requests() {
    for backend in backends() {
        let application = Application::start(&format!("quits-{backend}"));
        let tally = application.run(&one("GET /quits"), json!({"operations": 40, "backend": backend}));
        assert_eq!((&tally["operations"], &tally["errors"]), (&json!(40), &json!({})), "{tally}");
        assert!(application.users.lock().unwrap().connections >= 40);
    }
}

#[test]
fn an_application_that_does_not_answer_start_ends_the_run_with_the_place_of_the_request() {
    let application = Application::start("start");
    let script = format!("[[start.statements]]\nrequest = \"GET /silence\"\n{}", one("GET /early"));
    let failed =
        application.try_run(&application.file(&script), json!({"answer_timeout_s": 0.2})).unwrap_err();
    let told = failed.to_string();
    assert!(told.contains("after 0.2 s a client still waits for the answer to start ("), "{told}");
    assert!(told.contains("script.toml:1") && told.contains("log"), "{told}");
}

#[test]
fn an_application_that_is_not_there_is_told_before_any_request() {
    let application = Application::start("gone");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let file = application.file(&one("GET /early"));
    let refused = application.try_run(&file, json!({"url": format!("http://127.0.0.1:{free}")})).unwrap_err();
    assert_eq!(refused.kind().as_str(), "connect", "{refused}");
}
