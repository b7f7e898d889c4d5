//! Random input of every kind: the session stays alive and answers each `go` exactly once.

use super::super::parse::{Command, parse};
use super::super::{LONGEST_LINE, Settings, serve_with};
use super::client::{Client, PATIENT, Script};
use super::mutate::mutated;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::io::Cursor;

const LINES: usize = 120_000;
/// Number of lines between checks that everything is idle and complete.
const ROUND: usize = 500;

#[test]
fn no_input_breaks_the_session_and_every_go_has_one_answer() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut client = Client::new();
    let mut total = 0;
    for round in 0..LINES / ROUND {
        let mut asked = 0;
        for _ in 0..ROUND {
            let line = mutated(&mut random);
            asked += usize::from(matches!(parse(&line).command, Some(Command::Go(_))));
            assert!(client.send(&line).is_continue());
        }
        let said = client.settle();
        let answered = said
            .iter()
            .filter(|line| line.starts_with("bestmove "))
            .count();
        assert_eq!(asked, answered, "round {round}");
        total += asked;
    }
    assert!(total > LINES / 10);
}

#[test]
fn bytes_that_are_no_text_and_endless_lines_are_survived() {
    let mut input = b"\xff\xfe\x00go\xff nodes\n\n\r\nposition startpos moves \xc3\x28\n".to_vec();
    input.extend(std::iter::repeat_n(b'a', 3 * LONGEST_LINE as usize));
    input.extend(b"\nposition startpos moves ");
    input.extend(b"g1f3 g8f6 f3g1 f6g8 ".repeat(1000));
    input.extend(b"\ngo nodes 1\nisready");
    let output = tempfile::NamedTempFile::new().unwrap();
    serve_with(
        Script::default(),
        PATIENT,
        Cursor::new(input),
        output.reopen().unwrap(),
        Settings::default(),
    )
    .unwrap();
    let said = std::fs::read_to_string(output.path()).unwrap();
    assert_eq!(said.matches("bestmove ").count(), 1, "{said}");
    assert!(said.contains("info string a line of more than a megabyte is ignored\n"));
    assert!(said.contains("readyok\n"));
}
