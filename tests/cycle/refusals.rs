//! Tests workers whose object store refuses all requests.

use super::bucket::{Bucket, Faults, NAME};
use super::{ACTORS, config, train, workplace};
use crate::support::{exit, wait_until};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

/// Runs a worker that must end by itself, and returns its output.
fn run(kind: &str, set_up: impl FnOnce(&mut Command)) -> Output {
    let folder = workplace(&config(1, ACTORS));
    let address = format!("s3://{NAME}/loop");
    let mut command = train(folder.path(), &[kind, "loop.toml", &address]);
    set_up(&mut command);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    exit(&mut child);
    child.wait_with_output().unwrap()
}

/// Asserts that a worker ended with status 78 after a single line.
#[track_caller]
fn assert_final(output: &Output, named: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(78), "{errors}");
    let lines: Vec<&str> = errors.lines().collect();
    let [line] = lines[..] else {
        panic!("{errors}");
    };
    let told = line.starts_with("error: cannot list ") && line.contains(named);
    assert!(told, "{named}: {line}");
}

#[test]
fn lasting_refusals_end_a_worker() {
    for (kind, status, body, named) in [
        (
            "actor",
            "403 Forbidden",
            "<Error><Code>InvalidAccessKeyId</Code></Error>",
            "access is denied (InvalidAccessKeyId)",
        ),
        ("learner", "401 Unauthorized", "", "access is denied (401"),
        (
            "learner",
            "404 Not Found",
            "<Error><Code>NoSuchBucket</Code></Error>",
            "the bucket does not exist (NoSuchBucket)",
        ),
        (
            "actor",
            "400 Bad Request",
            "<Error><Code>AuthorizationHeaderMalformed</Code></Error>",
            "the store rejects the request (AuthorizationHeaderMalformed)",
        ),
        (
            "actor",
            "301 Moved Permanently",
            "",
            "check its region or endpoint",
        ),
    ] {
        let faults = Faults {
            answers: Some((status, body)),
            ..Faults::default()
        };
        let bucket = Bucket::start(faults);
        let output = run(kind, |command| {
            bucket.show(command);
        });
        assert_final(&output, named);
    }
}

#[test]
fn missing_credentials_end_a_worker() {
    // Nobody listens at the first address, and a service without credentials at the second.
    let bucket = Bucket::start(Faults {
        answers: Some(("404 Not Found", "")),
        ..Faults::default()
    });
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    for metadata in [nobody.as_str(), bucket.address()] {
        let output = run("actor", |command| {
            bucket.show(command);
            for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
                command.env_remove(name);
            }
            command.env("AWS_METADATA_ENDPOINT", metadata);
        });
        assert_final(
            &output,
            "there are no credentials: set AWS_ACCESS_KEY_ID and",
        );
    }
}

#[cfg(unix)]
#[test]
fn a_busy_store_is_tried_again_until_the_worker_is_told_to_stop() {
    let bucket = Bucket::start(Faults {
        refuses: 1,
        ..Faults::default()
    });
    let folder = workplace(&config(1, ACTORS));
    let errors = folder.path().join("errors");
    let address = format!("s3://{NAME}/loop");
    let mut command = train(folder.path(), &["actor", "loop.toml", &address]);
    bucket.show(&mut command);
    command.stderr(std::fs::File::create(&errors).unwrap());
    let mut actor = command.spawn().unwrap();
    wait_until("the actor has tried twice", || {
        let told = std::fs::read_to_string(&errors).unwrap();
        told.matches("status code: 503").count() >= 2
    });
    let id = actor.id().to_string();
    let status = Command::new("kill").args(["-TERM", &id]).status();
    assert!(status.unwrap().success());
    assert_eq!(exit(&mut actor).code(), Some(75));
    let told = std::fs::read_to_string(&errors).unwrap();
    assert!(told.contains("trying again"), "{told}");
}
