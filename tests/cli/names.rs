//! Each concept has one name: the test compares the command lines of both programs with the table
//! of names in .github/CONTRIBUTING.md.

use super::help::PROGRAMS;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};

/// The table's symbol for an option without a value.
const SWITCH: &str = "—";
/// The name of every value that is a time.
const TIME: &str = "TIME";

/// Returns a program's own description of its command line.
pub(super) fn described(program: &str) -> Value {
    let output = Command::new(program)
        .arg("--describe-command-line")
        .output();
    let output = output.unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(super) fn commands(described: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let commands = described["commands"].as_array().unwrap().iter();
    commands.filter_map(|command| {
        let is_own = command["hidden"] == false && command["name"] != "help";
        is_own.then(|| (command["name"].as_str().unwrap(), command))
    })
}

/// Returns the values that the table allows for each option.
fn table(document: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let (_, rest) = document.split_once("<!-- names -->").unwrap();
    let (rows, _) = rest.split_once("<!-- /names -->").unwrap();
    let mut table = BTreeMap::new();
    for row in rows.lines().filter(|line| line.contains("`--")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [values, _, options] = cells[..] else {
            panic!("{row}");
        };
        let values: BTreeSet<&str> = match values.contains(SWITCH) {
            true => [SWITCH].into(),
            false => values.split('`').skip(1).step_by(2).collect(),
        };
        for option in options.split('`').skip(1).step_by(2) {
            let before = table.insert(option.trim_start_matches('-'), values.clone());
            assert!(before.is_none(), "{option} has two rows");
        }
    }
    table
}

/// Returns the deviations of a program's options from the table.
fn faults(described: &Value, table: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, command) in commands(described) {
        for argument in command["arguments"].as_array().unwrap() {
            if argument["hidden"] == true || argument["option"] == "help" {
                continue;
            }
            let value = argument["value"].as_str().unwrap_or(SWITCH);
            let mut fault = |text: &str| {
                let option = &argument["option"];
                faults.push(format!("{name} {option} {value}: {text}"));
            };
            if let Some(option) = argument["option"].as_str() {
                match table.get(option) {
                    None => fault("not in the table"),
                    Some(values) if !values.contains(value) => fault("another value in the table"),
                    Some(_) => {}
                }
                // Composed values contain commas of their own.
                let is_composed = value.contains("=VALUE") || value.contains('[');
                let has_commas = argument["delimiter"] == ",";
                if argument["several"] == true && has_commas == is_composed {
                    fault("use commas for lists, and repeat options whose values have commas");
                }
            }
            if (argument["is_time"] == true) != (value == TIME) {
                fault("use TIME for times, and for nothing else");
            }
        }
    }
    faults
}

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/.github/CONTRIBUTING.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_option_has_its_name_and_value_in_the_table() {
    let document = document();
    let table = table(&document);
    let mut faults = Vec::new();
    let mut used = BTreeSet::new();
    for (_, program) in PROGRAMS {
        let described = described(program);
        faults.extend(self::faults(&described, &table));
        for (_, command) in commands(&described) {
            let arguments = command["arguments"].as_array().unwrap().iter();
            let options = arguments.filter_map(|it| it["option"].as_str());
            used.extend(options.map(str::to_owned));
        }
    }
    // A build without libtorch has fewer commands.
    if cfg!(feature = "torch") {
        let stale = table.keys().filter(|option| !used.contains(**option));
        faults.extend(stale.map(|option| format!("no command has --{option}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn commands_of_both_programs_do_the_same() {
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    for (program, path) in PROGRAMS {
        for (name, command) in commands(&described(path)) {
            let about = command["about"].clone();
            if let Some(other) = known.insert(name.to_owned(), about.clone()) {
                assert_eq!(about, other, "{program} {name}");
            }
        }
    }
}

#[test]
fn deviations_from_the_table_are_found() {
    let document = "<!-- names -->\n| `N` | a count | `--limit`, `--jobs` |\n\
        | `TIME` | a time | `--time` |\n| — | a switch | `--json` |\n\
        | `OPTION=VALUE` | a setting | `--set` |\n<!-- /names -->";
    let table = table(document);
    let found = |option: &str, value: Option<&str>, more: Value| {
        let mut argument = json!({
            "option": option, "value": value, "hidden": false, "several": false,
            "delimiter": null, "is_time": false,
        });
        let more = more.as_object().unwrap().clone();
        argument.as_object_mut().unwrap().extend(more);
        let command = json!({ "name": "x", "hidden": false, "arguments": [argument] });
        faults(&json!({ "commands": [command] }), &table).len()
    };
    let list = json!({ "several": true, "delimiter": "," });
    assert_eq!(found("limit", Some("N"), json!({})), 0);
    assert_eq!(found("json", None, json!({})), 0);
    assert_eq!(found("jobs", Some("N"), list.clone()), 0);
    assert_eq!(found("time", Some("TIME"), json!({ "is_time": true })), 0);
    assert_eq!(
        found("set", Some("OPTION=VALUE"), json!({ "several": true })),
        0
    );
    for (option, value, more) in [
        ("games", Some("N"), json!({})),
        ("limit", Some("GAMES"), json!({})),
        ("json", Some("FILE"), json!({})),
        ("jobs", Some("N"), json!({ "several": true })),
        ("set", Some("OPTION=VALUE"), list),
        ("time", Some("TIME"), json!({})),
        ("limit", Some("N"), json!({ "is_time": true })),
    ] {
        assert_eq!(
            found(option, value, more.clone()),
            1,
            "{option} {value:?} {more}"
        );
    }
}

fn errors(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn times_need_units() {
    let arguments = ["backendbench", "--backend", "uniform", "--time", "3"];
    let output = Command::new(super::TESSERA).args(arguments).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = errors(&output);
    assert!(told.contains("such as 500ms, 90s"), "{told}");
}

#[test]
fn moves_are_uci_or_san_with_commas_or_as_in_pgn() {
    let fen = "rnbqkbnr/pp1ppppp/8/2p5/4P3/5N2/PPPP1PPP/RNBQKB1R b KQkq - 1 2";
    let eval = |moves: &str| {
        let arguments = ["eval", "--backend", "uniform", "--moves", moves];
        super::json(&arguments)["fen"].clone()
    };
    for moves in [
        "e2e4,c5,Nf3",
        "e4 c5 g1f3",
        "1. e4 c5 2. Nf3",
        "1.e4 1...c5 2.Nf3,",
    ] {
        assert_eq!(eval(moves), fen, "{moves}");
    }
    let (status, told) = super::failure(&["eval", "--backend", "uniform", "--moves", "e4,e4"]);
    assert_eq!(status, 1);
    assert!(told.contains("--moves") && told.contains("e4"), "{told}");
}

#[cfg(feature = "torch")]
#[test]
fn networks_that_ship_are_found_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let describe = |net: &str| {
        let mut command = Command::new(super::TESSERA);
        command.current_dir(folder.path()).args(["describe", net]);
        command.output().unwrap()
    };
    let output = describe("tessera-xs");
    assert!(output.status.success(), "{}", errors(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("name: tessera-xs"));
    let unknown = describe("tessera-q");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        errors(&unknown).contains("tessera-gpt, tessera-human"),
        "{}",
        errors(&unknown)
    );
}
