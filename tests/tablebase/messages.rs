//! Tablebase messages to chess programs, sent by the real program over pipes.

use crate::tablebase::table::{DRAW, LOSS, WIN, write_flat};
use shakmaty::Role;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

struct Engine {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Engine {
    fn start() -> Engine {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tessera"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Engine {
            child,
            input,
            output,
        }
    }

    /// Sends a line; returns the output up to the line that starts with `answer`.
    fn ask(&mut self, line: &str, answer: &str) -> Vec<String> {
        writeln!(self.input, "{line}").unwrap();
        let mut said = Vec::new();
        for line in self.output.by_ref() {
            let line = line.unwrap();
            let last = line.starts_with(answer);
            said.push(line);
            if last {
                return said;
            }
        }
        panic!("no `{answer}` after {said:?}");
    }

    fn set(&mut self, name: &str, value: &str) -> Vec<String> {
        writeln!(self.input, "setoption name {name} value {value}").unwrap();
        self.ask("isready", "readyok")
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn found_tables_are_reported_to_users() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut engine = Engine::start();
    assert!(
        engine
            .ask("uci", "uciok")
            .contains(&"option name SyzygyPath type string default <empty>".to_owned())
    );
    engine.set("Backend", "random");
    let said = engine.set("SyzygyPath", path).join("\n");
    assert!(
        said.contains(&format!("info string ERROR: no tablebases from `{path}`")),
        "{said}"
    );
    assert!(said.contains("info string found no tablebases"), "{said}");
    engine.set("SyzygyPath", "/no/such folder");
    // The problem is reported for as long as it lasts.
    for _ in 0..2 {
        let said = engine.ask("go nodes 1", "bestmove ").join("\n");
        let missing = "info string ERROR: no tablebases from `/no/such folder`";
        assert!(said.starts_with(missing), "{said}");
    }

    write_flat(folder.path(), Role::Rook, [WIN, LOSS]);
    write_flat(folder.path(), Role::Knight, [DRAW; 2]);
    let said = engine.set("SyzygyPath", path).join("\n");
    let found = "info string found 2 WDL and 0 DTZ tablebases of up to 3 pieces\n";
    assert!(said.contains(found), "{said}");
    // The message is sent only once.
    assert_eq!(engine.set("MultiPV", "1"), ["readyok"]);

    // One of these endings is a mate in two, which would replace the table's score.
    engine.set("MateSearch", "false");
    for (fen, best, score) in [
        (
            "7k/8/8/3n4/8/8/8/K2R4 w - - 0 1",
            "d1d5",
            " score cp 20000 ",
        ),
        (
            "8/8/8/8/8/1R6/P7/k1K5 b - - 0 1",
            "a1a2",
            " score cp -20000 ",
        ),
        ("8/8/8/4k3/8/8/8/KR6 w - - 0 1", "", " score cp 20000 "),
    ] {
        engine.set("UCI_ShowWDL", "true");
        writeln!(engine.input, "position fen {fen}").unwrap();
        let said = engine.ask("go nodes 400", "bestmove ");
        let [.., info, answer] = &said[..] else {
            panic!("{said:?}")
        };
        assert!(info.contains(score), "{info}");
        assert!(!info.contains(" tbhits 0 "), "{info}");
        assert!(answer.starts_with(&format!("bestmove {best}")), "{answer}");
    }
    let said = engine.set("SyzygyPath", "<empty>");
    assert_eq!(said, ["readyok"]);
    let said = engine.ask("go nodes 400", "bestmove ");
    assert!(said[said.len() - 2].contains(" tbhits 0 "), "{said:?}");
}
