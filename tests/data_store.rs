//! Shards in an object store, which is a small S3 server over loopback that occasionally fails,
//! like real ones.

use crate::support::{fail, games, succeed, train};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const KEY: &str = "AKIATEST";
const BUCKET: &str = "games";

/// A server for the files in a folder, as the objects of a bucket.
struct Server {
    address: String,
    requests: Arc<AtomicUsize>,
}

impl Server {
    /// Starts a server that answers every `errors_every`-th request with an error, and breaks off
    /// every `breaks_every`-th response midway; 0 means never.
    fn start(folder: &Path, errors_every: usize, breaks_every: usize) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let (folder, counter) = (folder.to_owned(), Arc::clone(&requests));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (folder, counter) = (folder.clone(), Arc::clone(&counter));
                thread::spawn(move || {
                    let Ok(stream) = stream else { return };
                    let mut reader = BufReader::new(stream);
                    while let Some(request) = Request::read(&mut reader) {
                        let number = counter.fetch_add(1, Ordering::Relaxed) + 1;
                        let hits = |every: usize| every > 0 && number.is_multiple_of(every);
                        let stream = reader.get_mut();
                        let is_whole = match hits(errors_every) {
                            true => answer(stream, "503 Slow Down", "", &[], 0).is_ok(),
                            false => request.answer(stream, &folder, hits(breaks_every)).is_ok(),
                        };
                        if !is_whole {
                            return;
                        }
                    }
                });
            }
        });
        Server { address, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

/// A request from a client.
struct Request {
    method: String,
    path: String,
    range: Option<(usize, usize)>,
    is_signed: bool,
}

impl Request {
    fn read(reader: &mut impl BufRead) -> Option<Request> {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&read| read > 0)?;
        let mut words = line.split(' ').map(str::to_owned);
        let mut request = Request {
            method: words.next()?,
            path: words.next()?,
            range: None,
            is_signed: false,
        };
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                return Some(request);
            };
            match name.to_ascii_lowercase().as_str() {
                "range" => {
                    let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
                    request.range = Some((first.parse().ok()?, last.parse().ok()?));
                }
                "authorization" => {
                    let signature = format!("AWS4-HMAC-SHA256 Credential={KEY}/");
                    request.is_signed = value.starts_with(&signature);
                }
                _ => {}
            }
        }
    }

    fn answer(&self, stream: &mut TcpStream, folder: &Path, breaks: bool) -> std::io::Result<()> {
        if !self.is_signed {
            return answer(stream, "403 Forbidden", "", &[], 0);
        }
        let name = self.path.strip_prefix(&format!("/{BUCKET}/"));
        let Some(bytes) = name.and_then(|name| std::fs::read(folder.join(name)).ok()) else {
            return answer(stream, "404 Not Found", "", &[], 0);
        };
        let fixed = "ETag: \"one\"\r\nLast-Modified: Sat, 01 Jan 2022 00:00:00 GMT\r\n";
        match self.range {
            None if self.method == "HEAD" => answer(stream, "200 OK", fixed, &[], bytes.len()),
            None => answer(stream, "200 OK", fixed, &bytes, bytes.len()),
            Some((first, last)) => {
                let part = &bytes[first..=last];
                let sent = if breaks {
                    &part[..part.len() / 2]
                } else {
                    part
                };
                let range = format!("Content-Range: bytes {first}-{last}/{}\r\n", bytes.len());
                let headers = format!("{fixed}{range}");
                answer(stream, "206 Partial Content", &headers, sent, part.len())?;
                match breaks {
                    true => Err(std::io::ErrorKind::ConnectionAborted.into()),
                    false => Ok(()),
                }
            }
        }
    }
}

fn answer(
    stream: &mut TcpStream,
    status: &str,
    headers: &str,
    body: &[u8],
    length: usize,
) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

fn with_store<'a>(command: &'a mut Command, server: &Server, key: &str) -> &'a mut Command {
    command
        .env("AWS_ENDPOINT_URL", &server.address)
        .env("AWS_ACCESS_KEY_ID", key)
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "nowhere-1")
        .env_remove("AWS_SESSION_TOKEN")
        .env("NO_PROXY", "127.0.0.1")
}

/// Returns a folder with a shard of real games.
fn workplace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let games = games("tcec-standard.pgn");
    let games = games.to_str().unwrap();
    let arguments = ["pack", games, "-o", "a.shard", "--evals", "chooser"];
    succeed(&mut train(folder.path(), &arguments));
    folder
}

#[test]
fn shards_are_read_from_a_store_that_fails_now_and_then() {
    let folder = workplace();
    let here = succeed(&mut train(folder.path(), &["stats", "a.shard", "--json"]));
    let server = Server::start(folder.path(), 3, 4);
    let address = format!("s3://{BUCKET}/a.shard");
    let mut command = train(folder.path(), &["stats", &address, "--json"]);
    let there = succeed(with_store(&mut command, &server, KEY));
    let last = |text: &str| -> serde_json::Value {
        let text = text.lines().next_back().unwrap();
        serde_json::from_str(&text.replace(&address, "a.shard")).unwrap()
    };
    assert_eq!(last(&here), last(&there));
    assert!(server.requests() >= 4, "{}", server.requests());
}

#[test]
fn training_from_a_store_is_training_from_files() {
    let folder = workplace();
    let server = Server::start(folder.path(), 5, 7);
    let config = |shard: &str| {
        format!(
            r#"
name = "tiny"
steps = 4
batch = 32
log_every = 1
validate_every = 4
[model]
layers = 1
width = 16
heads = 2
feed_forward = 16
position = {{ kind = "absolute" }}
[data]
group = 1000
validation = 0.2
shards = [{{ path = "{shard}" }}]
"#
        )
    };
    let losses = |name: &str, shard: &str| -> Vec<f64> {
        let file = format!("{name}.toml");
        std::fs::write(folder.path().join(&file), config(shard)).unwrap();
        let arguments = ["run", &file, "-o", name, "--device", "cpu"];
        let mut command = train(folder.path(), &arguments);
        succeed(with_store(command.args(["--threads", "1"]), &server, KEY));
        let metrics = folder.path().join(name).join("metrics.jsonl");
        let lines = std::fs::read_to_string(metrics).unwrap();
        lines
            .lines()
            .filter_map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                line["policy"].as_f64()
            })
            .collect()
    };
    let here = losses("here", "a.shard");
    let there = losses("there", &format!("s3://{BUCKET}/a.shard"));
    assert_eq!(here.len(), 5);
    assert_eq!(here, there);
}

#[test]
fn mistakes_get_one_line() {
    let folder = workplace();
    let server = Server::start(folder.path(), 0, 0);
    let none = format!("s3://{BUCKET}/none.shard");
    let whole = format!("s3://{BUCKET}/a.shard");
    for (address, key, named) in [
        (none.as_str(), KEY, "no object"),
        (whole.as_str(), "ANOTHER", "access is denied (403"),
        ("ftp://host/a.shard", KEY, "ftp"),
    ] {
        let mut command = train(folder.path(), &["stats", address]);
        let output = with_store(&mut command, &server, key).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        let told: Vec<&str> = errors.lines().collect();
        assert_eq!(told.len(), 1, "{errors}");
        assert!(
            told[0].contains(address) && told[0].contains(named),
            "{errors}"
        );
    }
}

#[test]
fn missing_credentials_are_named() {
    let folder = tempfile::tempdir().unwrap();
    // A metadata service without credentials.
    let server = Server::start(folder.path(), 0, 0);
    let address = format!("s3://{BUCKET}/a.shard");
    let mut command = train(folder.path(), &["stats", &address]);
    with_store(&mut command, &server, KEY).env("AWS_METADATA_ENDPOINT", &server.address);
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
        command.env_remove(name);
    }
    let errors = fail(&mut command);
    let expected = format!(
        "error: cannot use the shard {address}: there are no credentials: set AWS_ACCESS_KEY_ID and \
         AWS_SECRET_ACCESS_KEY;"
    );
    assert!(errors.starts_with(&expected), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}
