//! Programs that speak only UCI learn of everything that the engine does not do as told.

use super::Engine;

const PREFIX: &str = "info string ERROR: ";

/// Searches, and returns the errors that come ahead of everything else.
fn errors(engine: &mut Engine) -> Vec<String> {
    engine.say("go nodes 1");
    let lines = engine.wait_for("bestmove ");
    let first = lines
        .iter()
        .take_while(|line| line.starts_with(PREFIX))
        .count();
    let later = lines[first..].iter().any(|line| line.contains("ERROR"));
    assert!(!later, "{lines:?}");
    lines[..first].to_vec()
}

#[test]
fn a_refused_value_is_reported_at_every_search_until_a_valid_one() {
    let mut engine = Engine::random();
    assert!(errors(&mut engine).is_empty());
    for (option, refused, valid) in [
        ("CPuct", "abc", "2"),
        ("Threads", "5000", "1"),
        ("Device", "gpu", "auto"),
        ("Agent", "people", "mcts"),
        ("Ponder", "maybe", "true"),
        ("LogFile", "/no/such/folder/log.txt", ""),
    ] {
        engine.say(&format!("setoption name {option} value {refused}"));
        let told = engine.settle();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with(PREFIX), "{told:?}");
        for _ in 0..2 {
            assert_eq!(errors(&mut engine), told[..1]);
        }
        engine.say(&format!("setoption name {option} value {valid}"));
        assert_eq!(engine.settle(), ["readyok"]);
        assert!(errors(&mut engine).is_empty(), "{option}");
    }
}

#[test]
fn errors_in_commands_are_reported_once() {
    let mut engine = Engine::random();
    for command in [
        "setoption name CPukt value 2",
        "setoption CPuct 2",
        "position startpos moves e2e5",
        "position fen 8/8/8 w",
        "go nodes many",
    ] {
        engine.say(command);
        if command.starts_with("go") {
            engine.wait_for("bestmove ");
        } else {
            let told = engine.settle();
            assert!(told[0].starts_with(PREFIX), "{command}: {told:?}");
        }
        assert!(errors(&mut engine).is_empty(), "{command}");
    }
}

#[cfg(feature = "torch")]
#[test]
fn a_substitute_is_reported_before_readyok_and_at_every_search() {
    let mut engine = Engine::start();
    for (option, value, named, reset) in [
        ("Net", "/no/such/net.pt", "/no/such/net.pt", ""),
        ("HumanNet", "/no/such/people.pt", "/no/such/people.pt", ""),
        // No machine has as many.
        ("Device", "cuda:97", "CUDA", "auto"),
    ] {
        engine.say(&format!("setoption name {option} value {value}"));
        let told = engine.settle();
        assert!(told[0].starts_with(PREFIX), "{told:?}");
        assert!(told[0].contains(named), "{told:?}");
        for _ in 0..2 {
            assert_eq!(errors(&mut engine), told[..1]);
        }
        engine.say(&format!("setoption name {option} value {reset}"));
        engine.settle();
        assert!(errors(&mut engine).is_empty(), "{option}");
    }
    engine.say("setoption name HumanNet value /no/such/people.pt");
    engine.settle();
    engine.say("setoption name UCI_LimitStrength value true");
    let told = engine.settle();
    assert!(told[0].starts_with(PREFIX), "{told:?}");
    assert!(told[0].contains("/no/such/people.pt"), "{told:?}");
    assert_eq!(errors(&mut engine), told[..1]);
}

#[test]
fn the_name_contains_a_chosen_network() {
    let mut engine = Engine::start();
    engine.say("uci");
    let own = concat!("id name Tessera ", env!("CARGO_PKG_VERSION"));
    assert_eq!(engine.wait_for("uciok")[0], own);
    engine.say("setoption name Net value nets/maia 1900.pt");
    engine.say("uci");
    assert_eq!(engine.wait_for("uciok")[0], format!("{own} (maia 1900)"));
}
