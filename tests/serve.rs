//! Tests the real binary of `tessera serve` over HTTP.

mod access;
mod analyse;
pub mod browser;
mod connections;
mod end;
#[cfg(feature = "cloud")]
mod lichess;
mod networks;
mod page;
mod requests;
mod review;
mod review_page;
mod share;
mod stockfish_page;

use crate::support::wait_until;
use crate::waiting::PATIENCE;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// Arguments that allow [`LONG`].
const LONG_SEARCHES: [&str; 2] = ["--max-time", "2h"];
/// A search that would take longer than the tests wait for anything.
const LONG: &str = r#"{"limits": {"movetime_ms": 7200000}}"#;

/// A server process, killed on drop.
pub struct Server {
    child: Child,
    pub address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Server {
    /// Starts a server without a network or a judge and waits until it is ready.
    pub fn start(arguments: &[&str]) -> Server {
        let server = Server::starting(arguments);
        server.wait_until_ready();
        server
    }

    pub fn wait_until_ready(&self) {
        wait_until("the server is ready", || self.get("/readyz").status == 200);
    }

    /// Returns the value of a metric without labels.
    fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").body;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name} ")));
        let value = line.unwrap_or_else(|| panic!("{name} in {text}"));
        value.parse().unwrap()
    }

    /// Waits until that many searches of different games have begun.
    fn wait_for_searches(&self, count: u64) {
        let what = format!("{count} searches have begun");
        wait_until(&what, || self.metric("tessera_trees") == count);
    }

    /// Waits until that many requests are queued.
    fn wait_for_queue(&self, length: u64) {
        let what = format!("{length} requests are queued");
        wait_until(&what, || self.metric("tessera_waiting") == length);
    }

    fn starting(arguments: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
        command.args(["serve", "--port", "0"]);
        if !arguments.contains(&"--backend") {
            command.args(["--backend", "random"]);
        }
        if !arguments.contains(&"--judge") {
            command.args(["--judge", "none"]);
        }
        Server::of(command.args(arguments))
    }

    /// Starts a server with this command.
    pub fn of(command: &mut Command) -> Server {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Server { child, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a raw request.
    fn send(&self, request: &str) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    fn ask(&self, request: &str) -> Answer {
        let mut stream = self.send(request);
        let (status, headers) = read_head(&mut stream);
        let mut body = String::new();
        stream.read_to_string(&mut body).unwrap();
        Answer {
            status,
            headers,
            body,
        }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask(&format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        ))
    }

    fn post(&self, path: &str, body: &str) -> Answer {
        self.ask(&post(path, "", body))
    }

    /// Returns the JSON of a successful response.
    pub fn json(&self, path: &str, body: &str) -> Value {
        let answer = self.post(path, body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Returns the status and the problem of an error response.
    pub fn problem(&self, path: &str, body: &str) -> (u16, Value) {
        let answer = self.post(path, body);
        let kind = answer.header("content-type");
        assert_eq!(kind, Some("application/problem+json"), "{answer:?}");
        let problem = answer.json();
        assert_eq!(problem["status"], answer.status);
        (answer.status, problem)
    }
}

/// Returns a request with a body; each line of `headers` ends in a line break.
fn post(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Returns the status and the headers, whose names are in lower case.
fn read_head(stream: &mut impl BufRead) -> (u16, Vec<(String, String)>) {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status: {line:?}"));
    let mut headers = Vec::new();
    loop {
        line.clear();
        stream.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim().split_once(':') else {
            return (status, headers);
        };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
}
