//! Tests games against the server's players.

use super::{contains, count, open};
use crate::serve::Server;

/// Two rooks against a king: White mates in two against any defence.
const LADDER: &str = "6k1/8/R7/8/8/8/8/1R4K1 w - - 0 1";
const STATUS: &str = "#play-status";

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn the_first_move_starts_a_game_that_a_reload_keeps() {
    let server = Server::start(&["--backend", "torch"]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    assert_eq!(
        browser.text("#play-theirs span"),
        "Like a player rated 1400"
    );
    browser.play("#play-board", "e2", "e4");
    browser.wait(&format!("{} === 2", count("#play-moves button")));
    browser.wait(&contains(STATUS, "Your move."));
    let opening = contains("#play-opening", " ");
    browser.wait(&opening);
    let moves = browser.text("#play-moves");
    browser.reload();
    assert_eq!(browser.text("#play-moves"), moves);
    browser.wait(&contains(STATUS, "Your move."));
    // The game continues.
    browser.type_move("play", "Ke2");
    browser.wait(&format!("{} === 4", count("#play-moves button")));
    browser.assert_quiet();
}

#[test]
fn a_game_is_played_to_mate_by_clicks() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    browser.fill("#play-form [name=fen]", LADDER);
    for (moves, [from, to]) in [(2, ["a6", "a7"]), (3, ["b1", "b8"])] {
        browser.play("#play-board", from, to);
        browser.wait(&format!("{} >= {moves}", count("#play-moves li")));
        browser.wait(&format!(
            "/Your move|You win/.test(document.querySelector('{STATUS}').textContent)"
        ));
    }
    browser.wait(&contains(STATUS, "You win"));
    assert_eq!(browser.text(STATUS), "You win: checkmate. 1-0");
    let games = browser.evaluate("localStorage.getItem('games')");
    let games = games.as_str().unwrap();
    assert!(games.contains("Rb8#") && games.contains(LADDER), "{games}");
    // Starting the next game saves this one.
    browser.click("#play-rematch");
    browser.wait(&contains("#play-count", "(1)"));
    browser.click("#play-flip");
    browser.wait(&format!("{} === 1", count("#play-games li")));
    browser.evaluate("document.querySelector('#play-kept').open = true");
    browser.click("#play-games button");
    browser.wait(&contains("#analyse-moves", "Rb8#"));
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn moves_are_typed_taken_back_hinted_and_stepped_through() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    let moves = count("#play-moves button");
    for (plies, text) in [(2, "e4"), (4, "b1c3")] {
        browser.type_move("play", text);
        browser.wait(&format!("{moves} === {plies}"));
        browser.wait(&contains(STATUS, "Your move"));
    }
    browser.type_move("play", "Ra5");
    let problem = browser.text("#play-typed-move-problem");
    assert_eq!(problem, "No rook can go to a5.");
    browser.evaluate("document.activeElement.blur()");
    // Keys and clicks step through the game, and no moves can be made meanwhile.
    let current = "document.querySelector('#play-moves [aria-current]')?.textContent";
    browser.key("ArrowLeft");
    browser.key("ArrowLeft");
    browser.key("ArrowLeft");
    browser.wait(&format!("{current} === '1. e4'"));
    browser.type_move("play", "d4");
    browser.wait(&contains("#play-typed-move-problem", "earlier position"));
    browser.evaluate("document.activeElement.blur()");
    browser.key("End");
    browser.wait(&format!("{moves} === 4 && {current} !== '1. e4'"));
    browser.click("#play-moves li:nth-child(3) button");
    browser.wait(&format!("{current} === '2. Nc3'"));
    browser.key("End");
    browser.click("#play-hint");
    browser.wait(&contains(STATUS, "Hint"));
    browser.click("#play-back");
    browser.wait(&format!("{moves} === 2"));
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn losing_a_game_needs_confirmation() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    browser.play("#play-board", "e2", "e4");
    browser.wait(&contains(STATUS, "Your move"));
    for (button, question) in [("resign", "Resign"), ("new", "Leave this game")] {
        browser.click(&format!("#play-{button}"));
        browser.wait(&contains("dialog[open]", question));
        browser.click("dialog[open] [value=no]");
        browser.wait("!document.querySelector('dialog[open]')");
        assert_eq!(browser.evaluate(&count("#play-moves button")), 2);
    }
    browser.click("#play-resign");
    browser.click("dialog[open] [value=yes]");
    browser.wait(&contains(STATUS, "You lose: resignation"));
    assert_eq!(browser.evaluate("document.activeElement.id"), "play-review");
    browser.evaluate("document.querySelector('#play-kept').open = true");
    browser.click("#play-forget");
    browser.wait(&contains("dialog[open]", "Forget the game"));
    browser.click("dialog[open] [value=no]");
    browser.wait(&format!("{} === 1", count("#play-games li")));
    browser.click("#play-forget");
    browser.click("dialog[open] [value=yes]");
    browser.wait("document.querySelector('#play-kept').hidden");
    assert!(browser.evaluate("localStorage.getItem('games')").is_null());
    // Leaving a finished game needs no confirmation.
    browser.click("#play-new");
    browser.wait("!document.querySelector('#play-form').hidden");
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn clocks_opponents_and_colours_are_chosen() {
    let server = Server::start(&["--backend", "torch"]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    let clock = |side: &str| format!("document.querySelector('#play-{side} time').textContent");
    for (preset, time) in [("1+0", "1:00"), ("10+5", "10:00"), ("3+2", "3:00")] {
        browser.choose("#play-form", preset);
        browser.wait(&format!("{} === '{time}'", clock("mine")));
    }
    // An invalid number keeps the game from starting only if it is used, and then it can be seen.
    browser.choose("#play-form", "custom");
    browser.fill("#play-form [name=minutes]", "200");
    browser.choose("#play-form", "3+2");
    let is_valid = "document.forms['play-form'].checkValidity()";
    assert_eq!(browser.evaluate(is_valid), true);
    let choose = |text: &str| {
        format!(
            "{{ const {{ player }} = document.forms['play-form'].elements; \
             player.selectedIndex = [...player.options].findIndex((it) => it.text.startsWith('{text}')); \
             player.dispatchEvent(new Event('change', {{ bubbles: true }})); }}"
        )
    };
    browser.evaluate(&choose("A search"));
    browser.fill("#play-form [name=nodes]", "0");
    let is_open = "document.querySelector('#play-form details').open";
    assert_eq!(browser.evaluate(is_open), false);
    browser.click("#play-form .main");
    browser.wait(&format!(
        "{is_open} && document.activeElement.name === 'nodes'"
    ));
    browser.evaluate(&choose("as chosen above"));
    browser.evaluate("document.querySelector('#play-form details').open = false");
    browser.choose("#play-form", "custom");
    browser.fill("#play-form [name=minutes]", "7");
    browser.wait(&format!("{} === '7:00'", clock("theirs")));
    let label = browser.text("#play-custom label:last-child");
    assert!(label.starts_with("Increment"), "{label}");
    browser.choose("#play-form", "engine");
    browser.wait(&contains("#play-theirs", "Full strength"));
    browser.wait("document.querySelector('#play-rated').hidden");
    browser.choose("#play-form", "human");
    let slider = "#play-form [name=elo]";
    let scale = browser.evaluate(&format!(
        "(({{ min, max }}) => [min, max])(document.querySelector('{slider}'))"
    ));
    assert_eq!(scale, serde_json::json!(["600", "2600"]));
    browser.fill(slider, "2600");
    browser.wait(&contains("#play-theirs", "rated 2600"));
    // If you play Black, the opponent moves first.
    browser.choose("#play-form", "black");
    browser.wait(&contains(STATUS, "opponent moves first"));
    browser.click("#play-form .main");
    browser.wait(&format!("{} === 1", count("#play-moves button")));
    browser.wait("document.querySelector('#play-mine').classList.contains('runs')");
    // A reload keeps the clock.
    browser.reload();
    browser.wait(&format!("/^[67]:/.test({})", clock("mine")));
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_bare_king_does_not_win_on_time() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    for (fen, ending) in [
        (
            "8/8/8/4k3/8/8/8/3QK3 w - - 0 1",
            "A draw: time forfeit, but Black cannot mate. 1/2-1/2",
        ),
        (
            "8/8/6p1/4k3/8/8/8/3QK3 w - - 0 1",
            "You lose: time forfeit. 0-1",
        ),
    ] {
        let game = serde_json::json!({
            "fen": fen, "tags": {}, "result": "*", "played": [], "stage": "playing", "mine": "white",
            "opponent": { "name": "Opponent", "agent": "human" }, "minutes": 1, "increment": 0,
            "left": { "mine": 200, "theirs": 60_000 },
        });
        browser.evaluate(&format!(
            "sessionStorage.setItem('game', JSON.stringify({game}))"
        ));
        browser.reload();
        browser.wait(&contains(STATUS, "time forfeit"));
        assert_eq!(browser.text(STATUS), ending);
        browser.click("#play-new");
        browser.wait("!document.querySelector('#play-form').hidden");
    }
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_pawn_is_promoted_beside_the_board_s_pieces() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    browser.fill("#play-form [name=fen]", "8/4P1k1/8/8/8/8/8/K7 w - - 0 1");
    browser.play("#play-board", "e7", "e8");
    browser.wait(&format!("{} === 4", count("#play-board .promotion button")));
    // The first choice appears on the pawn's square.
    let places = browser.evaluate(
        "[...document.querySelectorAll('#play-board .promotion button')].map((it) => [it.style.left, it.style.top])",
    );
    assert_eq!(places[0], serde_json::json!(["50%", "0%"]));
    browser.key("Escape");
    browser.wait("!document.querySelector('.promotion')");
    browser.play("#play-board", "e7", "e8");
    browser.wait("document.activeElement.ariaLabel === 'queen'");
    browser.key("ArrowDown");
    browser.key("Enter");
    browser.wait(&contains("#play-moves", "e8=N"));
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_phone_shows_board_and_controls_in_one_screen() {
    let server = Server::start(&["--backend", "torch"]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    browser.screen(390, 844);
    browser.reload();
    let seen = |selector: &str| {
        format!(
            "(() => {{ const {{ top, bottom, left, right }} = document.querySelector('{selector}')\
             .getBoundingClientRect(); \
             return top >= 0 && bottom <= 844 && left >= 0 && right <= 390 && bottom > top; }})()"
        )
    };
    for selector in ["#play-board", "#play-rated", "#play-form .main"] {
        browser.wait(&seen(selector));
    }
    browser.choose("#play-form", "3+2");
    browser.play("#play-board", "d2", "d4");
    browser.wait(&format!("{} === 2", count("#play-moves button")));
    let shown = ["#play-board", "#play-status", "#play-moves", "#play-new"];
    for selector in shown.into_iter().chain(["#play-mine", "#play-theirs"]) {
        browser.wait(&seen(selector));
    }
    assert_eq!(browser.evaluate("scrollY"), 0);
    browser.assert_quiet();
}
