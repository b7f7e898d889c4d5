//! Simulates a bucket that speaks the S3 protocol over loopback and has realistic faults: it
//! sometimes rejects requests or loses responses after doing the work, and its listings lag.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The bucket's name.
pub const NAME: &str = "bucket";
/// The headers in every response about an object.
const FIXED: &str = "ETag: \"one\"\r\nLast-Modified: Sat, 01 Jan 2022 00:00:00 GMT\r\n";

/// The faults to inject.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    /// Every n-th request is rejected; 0 rejects none.
    pub refuses: u64,
    /// The status and the body of the response to every request.
    pub answers: Option<(&'static str, &'static str)>,
    /// The response to every n-th put is lost; 0 loses none.
    pub loses: u64,
    /// The time before a new object is listed.
    pub lag: Duration,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, (Vec<u8>, Instant)>,
    requests: u64,
    puts: u64,
    overwritten: u64,
}

/// A simulated bucket.
#[derive(Clone)]
pub struct Bucket {
    address: String,
    faults: Faults,
    state: Arc<Mutex<State>>,
}

struct Request {
    method: String,
    path: String,
    query: String,
    range: Option<(usize, usize)>,
    is_conditional: bool,
    body: Vec<u8>,
}

impl Bucket {
    pub fn start(faults: Faults) -> Bucket {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let bucket = Bucket {
            address: format!("http://{}", listener.local_addr().unwrap()),
            faults,
            state: Arc::default(),
        };
        let served = bucket.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (bucket, Ok(stream)) = (served.clone(), stream) else {
                    return;
                };
                thread::spawn(move || {
                    let mut reader = BufReader::new(stream);
                    while let Some(request) = Request::read(&mut reader) {
                        if bucket.answer(&request, reader.get_mut()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        bucket
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sets the environment variables through which programs find the bucket.
    pub fn show<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("AWS_ENDPOINT_URL", &self.address)
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_REGION", "nowhere-1")
            .env_remove("AWS_SESSION_TOKEN")
            .env("NO_PROXY", "127.0.0.1")
    }

    /// Returns the number of requests so far, and the number of puts that replaced an object.
    pub fn counts(&self) -> (u64, u64) {
        let state = self.state.lock().unwrap();
        (state.requests, state.overwritten)
    }

    /// Copies the objects below a prefix to a folder.
    pub fn copy_to(&self, prefix: &str, folder: &Path) {
        let state = self.state.lock().unwrap();
        for (key, (bytes, _)) in &state.objects {
            let Some(name) = key.strip_prefix(prefix) else {
                continue;
            };
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
    }

    fn answer(&self, request: &Request, stream: &mut TcpStream) -> std::io::Result<()> {
        let state = &mut *self.state.lock().unwrap();
        state.requests += 1;
        let hits = |number: u64, every: u64| every > 0 && number.is_multiple_of(every);
        if hits(state.requests, self.faults.refuses) {
            return send(stream, "503 Slow Down", "", b"");
        }
        if let Some((status, body)) = self.faults.answers {
            return send(stream, status, "", body.as_bytes());
        }
        let root = format!("/{NAME}");
        let key = request.path.strip_prefix(&root).unwrap_or_default();
        let key = key.trim_start_matches('/');
        match request.method.as_str() {
            "PUT" => {
                state.puts += 1;
                let is_there = state.objects.contains_key(key);
                if is_there && request.is_conditional {
                    return send(stream, "412 Precondition Failed", "", b"");
                }
                state.overwritten += u64::from(is_there);
                let object = (request.body.clone(), Instant::now());
                state.objects.insert(key.to_owned(), object);
                if hits(state.puts, self.faults.loses) {
                    return Err(std::io::ErrorKind::ConnectionAborted.into());
                }
                send(stream, "200 OK", FIXED, b"")
            }
            "GET" if key.is_empty() => {
                let list = list(&state.objects, &request.query, self.faults.lag);
                send(stream, "200 OK", "", list.as_bytes())
            }
            method => {
                let Some((bytes, _)) = state.objects.get(key) else {
                    return send(stream, "404 Not Found", "", b"");
                };
                match request.range {
                    _ if method == "HEAD" => head(stream, "200 OK", FIXED, bytes.len()),
                    None => send(stream, "200 OK", FIXED, bytes),
                    Some((first, last)) => {
                        let last = last.min(bytes.len() - 1);
                        let whole = bytes.len();
                        let range =
                            format!("{FIXED}Content-Range: bytes {first}-{last}/{whole}\r\n");
                        send(stream, "206 Partial Content", &range, &bytes[first..=last])
                    }
                }
            }
        }
    }
}

/// Returns the response to a request that lists one folder.
fn list(objects: &BTreeMap<String, (Vec<u8>, Instant)>, query: &str, lag: Duration) -> String {
    let mut prefix = String::new();
    for pair in query.split('&') {
        if let Some(value) = pair.strip_prefix("prefix=") {
            prefix = value.replace("%2F", "/");
        }
    }
    let (mut files, mut folders) = (String::new(), Vec::new());
    for (key, (bytes, since)) in objects {
        let Some(rest) = key.strip_prefix(&prefix) else {
            continue;
        };
        if since.elapsed() < lag {
            continue;
        }
        match rest.split_once('/') {
            Some((folder, _)) => folders.push(format!("{prefix}{folder}/")),
            None => files.push_str(&format!(
                "<Contents><Key>{key}</Key><LastModified>2022-01-01T00:00:00.000Z</LastModified>\
                 <Size>{}</Size><ETag>\"one\"</ETag></Contents>",
                bytes.len()
            )),
        }
    }
    folders.dedup();
    let folders = folders
        .iter()
        .map(|folder| format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>"));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult>{files}{}</ListBucketResult>",
        folders.collect::<String>()
    )
}

impl Request {
    fn read(reader: &mut impl BufRead) -> Option<Request> {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&read| read > 0)?;
        let mut words = line.split(' ').map(str::to_owned);
        let (method, target) = (words.next()?, words.next()?);
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let mut request = Request {
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            range: None,
            is_conditional: false,
            body: Vec::new(),
        };
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "range" => {
                    let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
                    request.range = Some((first.parse().ok()?, last.parse().ok()?));
                }
                "if-none-match" => request.is_conditional = value == "*",
                "content-length" => length = value.parse().ok()?,
                _ => {}
            }
        }
        request.body = vec![0; length];
        reader.read_exact(&mut request.body).ok()?;
        Some(request)
    }
}

fn head(stream: &mut TcpStream, status: &str, headers: &str, length: usize) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes())
}

fn send(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    head(stream, status, headers, body.len())?;
    stream.write_all(body)
}
