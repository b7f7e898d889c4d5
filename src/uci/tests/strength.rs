//! `UCI_LimitStrength`: the player, its network, and messages.

use super::client::Client;

const ON: &str = "setoption name UCI_LimitStrength value true";
const OFF: &str = "setoption name UCI_LimitStrength value false";

/// Returns a client whose engine is ready to play at full strength.
fn ready() -> Client {
    let mut client = Client::new();
    client.say(&["isready"]);
    client.wait_for("readyok");
    assert_eq!(client.journal.take(), ["load", "build Mcts"]);
    client
}

#[test]
fn the_human_agent_comes_and_goes_in_the_middle_of_a_game() {
    let mut client = ready();
    client.say(&[ON, "setoption name UCI_Elo value 1400"]);
    assert!(client.journal.take().is_empty(), "nothing is loaded yet");
    for (switch, built) in [
        (ON, "build Human"),
        (OFF, "build Mcts"),
        (ON, "build Human"),
    ] {
        client.say(&[switch, "position startpos moves e2e4 e7e5", "go nodes 1"]);
        client.wait_for("bestmove ");
        assert_eq!(client.journal.take(), ["load", built]);
        client.say(&["position startpos moves e2e4 e7e5 g1f3", "go nodes 1"]);
        client.wait_for("bestmove ");
        assert!(client.journal.take().is_empty());
    }
}

#[test]
fn isready_loads_who_will_play() {
    let mut client = Client::new();
    client.say(&[ON, "isready"]);
    client.wait_for("readyok");
    assert_eq!(client.journal.take(), ["load", "build Human"]);
}

#[test]
fn a_switch_during_a_search_counts_from_the_next_one() {
    let mut client = ready();
    client.say(&["go infinite", ON, "stop"]);
    client.wait_for("bestmove ");
    assert!(client.journal.take().is_empty());
    client.say(&["go nodes 1"]);
    client.wait_for("bestmove ");
    assert_eq!(client.journal.take(), ["load", "build Human"]);
}

#[test]
fn analysis_has_full_strength() {
    let mut client = ready();
    client.say(&[ON, "go infinite", "stop"]);
    client.wait_for("bestmove ");
    client.say(&["setoption name MultiPV value 2", "go nodes 1"]);
    client.wait_for("bestmove ");
    client.say(&[
        "setoption name MultiPV value 1",
        "setoption name UCI_AnalyseMode value true",
        "go nodes 1",
    ]);
    client.wait_for("bestmove ");
    let journal = client.journal.take();
    assert!(journal.iter().all(|entry| entry == "adjust"), "{journal:?}");
}

#[test]
fn levels_beyond_the_bounds_are_refused() {
    let mut client = ready();
    for (value, expected) in [
        ("100", "600 to "),
        ("9999", "600 to "),
        ("strong", "600 to "),
    ] {
        client.say(&[&format!("setoption name UCI_Elo value {value}")]);
        let said = client.wait_for("info string ").concat();
        assert!(
            said.contains(expected) && said.contains("the option keeps its value, 1500"),
            "{said}"
        );
    }
}

#[test]
fn without_its_network_another_one_plays() {
    let mut client = ready();
    client.say(&[ON, "setoption name HumanNet value missing", "go nodes 1"]);
    let said = client.wait_for("bestmove ").concat();
    assert!(said.contains("ERROR: cannot read the network missing"));
    assert!(said.contains("the built-in network that plays like people plays in its place"));
    assert_eq!(client.journal.take(), ["load", "load", "build Human"]);
    client.say(&["setoption name HumanNet value people.pt", "go nodes 1"]);
    client.wait_for("bestmove ");
    assert_eq!(client.journal.take(), ["load", "build Human"]);
    // The human-like network is not built in either.
    client.say(&[
        "setoption name HumanNet value",
        "setoption name Backend value check",
    ]);
    client.say(&["setoption name Net value other.pt", "go nodes 1"]);
    let said = client.wait_for("bestmove ").concat();
    assert!(
        said.contains("the network of Net plays in its place"),
        "{said}"
    );
}

#[test]
fn an_unreadable_network_is_reported_before_it_is_needed() {
    let mut client = ready();
    client.say(&["setoption name HumanNet value missing", "go nodes 1"]);
    let said = client.wait_for("bestmove ").concat();
    let reports = said.matches("ERROR: cannot read the network missing");
    assert_eq!(reports.count(), 1, "{said}");
}

#[test]
fn a_network_without_ratings_says_so() {
    let mut client = ready();
    client.say(&[ON, "go nodes 1"]);
    let said = client.wait_for("bestmove ").concat();
    assert!(said.contains("nothing reads no ratings"), "{said}");
    client.say(&["go nodes 1"]);
    let said = client.wait_for("bestmove ").concat();
    assert!(!said.contains("ratings"), "{said}");
}
