//! The help of all commands of both programs.

use super::names;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Both programs with their paths.
#[cfg(feature = "torch")]
pub(super) const PROGRAMS: [(&str, &str); 2] = [
    ("tessera", env!("CARGO_BIN_EXE_tessera")),
    ("tessera-train", env!("CARGO_BIN_EXE_tessera-train")),
];
#[cfg(not(feature = "torch"))]
pub(super) const PROGRAMS: [(&str, &str); 1] = [("tessera", env!("CARGO_BIN_EXE_tessera"))];

/// Returns the help of every command that a program's help lists, after checking that each is
/// listed once.
fn helps(program: &str) -> BTreeMap<String, String> {
    let text = output(program, &["--help"]);
    let described = names::described(program);
    let commands = names::commands(&described).map(|(name, command)| {
        let lines = text.lines().filter(|line| {
            let words = line.strip_prefix("  ").unwrap_or_default();
            words.split(' ').next() == Some(name)
        });
        assert_eq!(lines.count(), 1, "{name}: {text}");
        let help = command["help"].as_str().unwrap();
        (name.to_owned(), help.to_owned())
    });
    commands.collect()
}

/// Returns the long options in a text.
fn options(text: &str) -> BTreeSet<&str> {
    let places = text.match_indices("--").map(|(at, _)| &text[at..]);
    let options = places.filter_map(|rest| {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        let option = &rest[..rest.find(|letter| !is_part(letter)).unwrap_or(rest.len())];
        option[2..]
            .starts_with(|letter: char| letter.is_ascii_alphabetic())
            .then_some(option)
    });
    options.collect()
}

/// Returns the options of a command, which are the lines of its help that begin with an option.
fn own(help: &str) -> BTreeSet<&str> {
    let lines = help.lines().map(str::trim_start);
    let lines = lines.filter(|line| line.starts_with('-'));
    lines
        .flat_map(|line| options(line.split("  ").next().unwrap_or(line)))
        .collect()
}

/// Returns the faults in a command's help; `all` contains the help of all commands.
fn faults(command: &str, help: &str, all: &BTreeMap<String, String>) -> Vec<String> {
    let mut faults = Vec::new();
    let parts = help.lines().flat_map(|line| line.split('`').enumerate());
    for (number, part) in parts {
        let is_code = number % 2 == 1;
        let other = part.split(' ').take(2).collect::<Vec<_>>().join(" ");
        let of = match all.get(&other) {
            Some(other) if is_code => own(other),
            _ => own(help),
        };
        for option in options(part).difference(&of) {
            faults.push(format!("{command} speaks of {option}: {part}"));
        }
    }
    for line in help.lines() {
        // These values are explained in one place only; otherwise they would take up most of the
        // help of many commands.
        let explains = ["- mcts: ", "- uniform: ", "- int8: "];
        if explains.iter().any(|it| line.trim_start().starts_with(it)) {
            faults.push(format!(
                "{command} explains values of many commands: {line}"
            ));
        }
        let has_path = line.contains("::") || line.contains("](");
        let default = line.split_once("[default: ").map(|(_, value)| value);
        let is_list = default.is_some_and(|value| {
            let value = value.split(']').next().unwrap_or(value);
            value.split(' ').count() > 1
        });
        if has_path || is_list {
            faults.push(format!("{command}: {line}"));
        }
    }
    faults
}

#[test]
fn helps_mention_only_existing_options_and_no_code() {
    let mut all = BTreeMap::new();
    for (name, program) in PROGRAMS {
        let version = output(program, &["--version"]);
        assert!(version.starts_with(&format!("{name} ")), "{version}");
        let first = output(program, &["--help"]);
        let speaks_of_uci = first.lines().next().unwrap().contains("UCI");
        assert_eq!(speaks_of_uci, name == "tessera", "{first}");
        let groups = first.lines().filter(|line| line.ends_with(':')).count();
        assert!(groups > 2, "{first}");
        let helps = helps(program);
        assert!(helps.len() > 6);
        let (command, help) = helps.first_key_value().unwrap();
        assert_eq!(&output(program, &[command, "--help"]), help);
        for command in [
            "bench",
            "perft",
            "backendbench",
            "puzzles",
            "epd",
            "eval",
            "stats",
        ] {
            let json = helps
                .get(command)
                .is_none_or(|help| own(help).contains("--json"));
            assert!(json, "{command} has no --json");
        }
        all.extend(
            helps
                .into_iter()
                .map(|(command, help)| (format!("{name} {command}"), help)),
        );
    }
    let faults = all
        .iter()
        .flat_map(|(command, help)| faults(command, help, &all));
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn faults_of_a_help_are_found() {
    let help = "Do it\n\nUsage: x [OPTIONS]\n\nOptions:\n  -a, --all <ALL>  All; not --some, \
                see `tessera-train pack --played` and `tessera-train pack --none`\n";
    let pack = "Options:\n      --played\n          Play\n";
    let all = BTreeMap::from([("tessera-train pack".to_owned(), pack.to_owned())]);
    let found = |help: &str| faults("x", help, &all).len();
    assert_eq!(found(help), 2);
    assert_eq!(found("a [`B`](super::B)"), 1);
    assert_eq!(found("      --batch <N>  Sizes [default: 1 8]"), 1);
    assert_eq!(found("      --batch <N>  Sizes [default: 1,8]"), 0);
    assert_eq!(found("          - mcts:      PUCT over the network"), 1);
}
