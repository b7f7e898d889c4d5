//! Tests that nothing of a person's work is lost and that every part leads on to the others.

use super::{contains, count, open};
use crate::serve::Server;
use crate::serve::browser::Browser;
use serde_json::json;

const STATUS: &str = "#play-status";
/// The names in the list of kept analyses.
const KEPT: &str =
    "[...document.querySelectorAll('#analyse-list span')].map((it) => it.textContent)";
/// An endgame that any opponent loses or draws slowly.
const ENDGAME: &str = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1";

/// Loads the page as another window does, which shares only the browser's storage.
fn open_another_window(browser: &mut Browser, server: &Server, part: &str) {
    // The page stores its game for this window when it is left.
    browser.go(&format!("http://{}/docs", server.address));
    browser.evaluate("sessionStorage.clear()");
    browser.go(&format!("http://{}/#{part}", server.address));
}

fn moves(part: &str) -> String {
    count(&format!("#{part}-moves button"))
}

/// An opponent that could not be reached is asked again when the player returns to the game.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_game_goes_on_once_the_server_is_back() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    browser.evaluate(
        "window.online = fetch; window.fetch = async () => { throw new TypeError('Failed to fetch'); }",
    );
    browser.type_move("play", "e4");
    browser.wait(&contains("#trouble", "The server does not answer"));
    browser.wait(&contains(STATUS, "cannot answer"));
    // The message and its button are gone after a click.
    browser.click("#trouble");
    browser.evaluate("location.hash = 'analyse'");
    browser.wait("!document.getElementById('analyse').hidden");
    browser.evaluate("window.fetch = window.online");
    browser.evaluate("location.hash = 'play'");
    browser.wait(&format!("{} === 2", moves("play")));
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn an_analysis_stays_whatever_is_opened() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    browser.load("1. e4 e5 2. Nf3");
    browser.evaluate("document.querySelector('#analyse-kept').open = true");
    browser.fill("#analyse-name", "My first");
    browser.wait(&format!("{KEPT}.join() === 'My first'"));
    // A link replaces it on the board only, and is not kept before a move is made.
    let link = ENDGAME.replace(' ', "_");
    browser.go(&format!("http://{}/#analyse/{link}", server.address));
    browser.wait(&format!("{} === 0", moves("analyse")));
    assert_eq!(browser.evaluate(KEPT), json!(["My first"]));
    browser.type_move("analyse", "e4");
    browser.wait(&format!("{KEPT}.length === 2"));
    browser.reload();
    browser.wait(&format!("{} === 1", moves("analyse")));
    // Other windows begin with an empty board, whether they name a position or not.
    for (number, text) in [(3, "d4"), (4, "c4")] {
        open_another_window(&mut browser, &server, "analyse");
        browser.wait(&format!("{KEPT}.length === {}", number - 1));
        assert_eq!(browser.evaluate(&moves("analyse")), 0);
        browser.type_move("analyse", text);
        browser.wait(&format!("{KEPT}.length === {number}"));
    }
    assert_eq!(
        browser.evaluate(KEPT),
        json!(["1. c4", "1. d4", "1. e4", "My first"])
    );
    // Another window has changed this one's analysis: both remain.
    browser.evaluate(
        "{ const { key } = JSON.parse(sessionStorage.analysis); \
         localStorage[key] = JSON.stringify({ ...JSON.parse(localStorage[key]), name: 'Theirs' }); }",
    );
    browser.type_move("analyse", "e5");
    browser.wait(&format!(
        "{KEPT}.join() === '1. c4 e5,Theirs,1. d4,1. e4,My first'"
    ));
    browser.evaluate("document.querySelector('#analyse-kept').open = true");
    browser.click("#analyse-list li:last-child button:first-child");
    browser.wait(&format!("{} === 3", moves("analyse")));
    browser.click("#analyse-list li:nth-child(2) button:last-child");
    browser.wait(&contains("dialog[open]", "Delete the analysis “Theirs”?"));
    browser.click("dialog[open] [value=yes]");
    browser.wait(&format!(
        "{KEPT}.join() === '1. c4 e5,1. d4,1. e4,My first'"
    ));
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn what_is_stored_in_another_form_is_set_aside() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    browser.evaluate(
        "for (const key of ['games', 'game', 'settings', 'setup', 'mistakes', 'analysis.1', 'rating-people']) \
         for (const [end, value] of Object.entries({ '': '{\"a\":[1]}' })) localStorage[key + end] = value; \
         localStorage.settings = '[7]'; localStorage.setup = '{\"clock\":{},\"kind\":9}'; localStorage.game = '{'; \
         sessionStorage.review = '7'; sessionStorage.game = '[]'; sessionStorage.analysis = '{\"key\":\"analysis.1\"}'",
    );
    for part in ["play", "analyse", "review", "mistakes"] {
        browser.go("about:blank");
        browser.go(&format!("http://{}/#{part}", server.address));
        browser.assert_quiet();
    }
    let aside = "Object.keys(localStorage).filter((key) => key.startsWith('aside.')).map((key) => key.split('.')[1]).sort().join()";
    assert_eq!(
        browser.evaluate(aside),
        "analysis,game,games,mistakes,rating-people,settings"
    );
    browser.click("nav [href=\"#play\"]");
    browser.click("#settings-open");
    browser.click("#settings .main");
    browser.play("#play-board", "e2", "e4");
    browser.wait(&format!("{} === 2", moves("play")));
    browser.assert_quiet();
}

/// Single values that are unreadable hinder nothing else, and are not overwritten.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn what_is_partly_unreadable_stays() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    let mistake = json!({
        "fen": ENDGAME, "played": "Kd1", "facts": [], "due": 1, "solved": 0, "game": "A – B",
        "best": { "moves": [{ "uci": "e2e4", "san": "e4" }], "evaluation": { "centipawns": 12 } },
    });
    let mut mistakes: [_; 4] = std::array::from_fn(|_| mistake.clone());
    mistakes[0]["fen"] = json!("8/8/8");
    mistakes[1]["best"]["moves"] = json!([]);
    mistakes[2]["due"] = json!(1e99);
    let mistakes = json!(mistakes).to_string();
    let position = json!({"pgn": format!("[FEN \"{ENDGAME}\"]\n\n*\n"), "name": "", "date": 3});
    let position = position.to_string();
    let garbage = r#"{"pgn":"garbage","name":"mine","date":2}"#;
    for (key, value) in [
        ("settings", r#"{"a":1}"#),
        ("analysis.1", r#"{"pgn":"1. e4 *","name":"","date":1e99}"#),
        ("analysis.2", garbage),
        ("analysis.3", &position),
        ("mistakes", &mistakes),
    ] {
        let [key, value] = [key, value].map(|it| json!(it));
        browser.evaluate(&format!("localStorage.setItem({key}, {value})"));
    }
    open_another_window(&mut browser, &server, "mistakes");
    browser.wait(&contains("#mistakes-status", "a better move than Kd1"));
    assert!(browser.text("#mistakes-count").contains("1 kept"));
    browser.click("#settings-open");
    browser.click("#settings .main");
    browser.click("nav [href=\"#analyse\"]");
    assert_eq!(browser.evaluate(KEPT), json!([ENDGAME, "mine"]));
    browser.evaluate("document.querySelector('#analyse-kept').open = true");
    browser.assert_quiet();
    browser.click("#analyse-list li:last-child button");
    browser.wait(&contains("#trouble", "cannot be opened"));
    browser.type_move("analyse", "e4");
    browser.wait(&format!("{KEPT}.length === 3"));
    assert_eq!(browser.evaluate("localStorage['analysis.2']"), garbage);
}

/// A browser may refuse to store anything.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_page_without_storage_plays() {
    let server = Server::start(&[]);
    let Some(mut browser) = Browser::start() else {
        return;
    };
    if server.get("/").body.contains("built without the board") {
        crate::skip::skip("the board of the page (tools/setup fetches it by npm)");
        return;
    }
    let source = "for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name, \
        { get() { throw new DOMException('denied', 'SecurityError'); } })";
    browser.send(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({"source": source}),
    );
    browser.go(&format!("http://{}/#play", server.address));
    browser.type_move("play", "e4");
    browser.wait(&format!("{} === 2", moves("play")));
    browser.click("nav [href=\"#analyse\"]");
    browser.type_move("analyse", "e4");
    browser.wait(&format!("{} === 1", moves("analyse")));
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_finished_game_can_be_taken_back_and_is_kept() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    // Its day is tomorrow during most of the day.
    browser.send(
        "Emulation.setTimezoneOverride",
        json!({"timezoneId": "Pacific/Kiritimati"}),
    );
    browser.choose("#play-form", "3+2");
    browser.fill("#play-form [name=fen]", "6k1/R7/8/8/8/8/8/1R4K1 w - - 0 1");
    browser.type_move("play", "Rb8#");
    browser.wait(&contains(STATUS, "You win"));
    // Enter in the field of moves, or anywhere else, begins no other game.
    browser.key("Enter");
    assert_eq!(browser.evaluate(&moves("play")), 1);
    browser.click("#play-back");
    browser.wait(&contains(STATUS, "Your move."));
    assert_eq!(browser.evaluate(&moves("play")), 0);
    browser.type_move("play", "Kf2");
    browser.wait(&format!("{} === 2", moves("play")));
    browser.click("#play-resign");
    browser.click("dialog[open] [value=yes]");
    browser.wait(&contains("#play-count", "(2)"));
    let games = browser.evaluate("JSON.parse(localStorage.games)");
    let [first, second] = [0, 1].map(|index| games[index].as_str().unwrap());
    assert!(
        first.contains("1. Rb8# { [%clk 0:03:0") && first.contains("1-0\n"),
        "{first}"
    );
    assert!(
        second.contains("1. Kf2") && second.ends_with("0-1\n"),
        "{second}"
    );
    let today = browser.evaluate("new Date().toLocaleDateString('sv').replaceAll('-', '.')");
    let [today, utc] = [
        today,
        browser.evaluate("new Date().toISOString().slice(0, 10).replaceAll('-', '.')"),
    ]
    .map(|it| it.as_str().unwrap().to_owned());
    assert!(
        second.contains(&format!("[Date \"{today}\"]"))
            && second.contains(&format!("[UTCDate \"{utc}\"]")),
        "{second}"
    );
    let names = second
        .lines()
        .map_while(|line| line.strip_prefix('[')?.split(' ').next());
    let names: Vec<&str> = names.collect();
    let roster = ["Event", "Site", "Date", "Round", "White", "Black", "Result"];
    assert_eq!(names[..7], roster, "{second}");
    assert!(second.contains("[TimeControl \"180+2\"]"), "{second}");
    // From any position of a game, another one can be played, and the choice of side comes first.
    browser.key("Home");
    browser.click("#play-from");
    browser.wait("!document.querySelector('#play-form').hidden");
    browser.choose("#play-form", "black");
    browser.wait(&contains(STATUS, "Your opponent moves first."));
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_game_of_another_window_is_kept() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    browser.type_move("play", "e4");
    browser.wait(&format!("{} === 2", moves("play")));
    // Another window has its own game in the storage.
    browser.evaluate(
        "{ const game = JSON.parse(localStorage.game); game.tags.UTCTime = '01:02:03'; \
         game.played = ['d2d4']; localStorage.game = JSON.stringify(game); }",
    );
    browser.wait(&contains(STATUS, "Your move."));
    browser.type_move("play", "a3");
    browser.wait(&format!("{} === 4", moves("play")));
    browser.reload();
    browser.wait(&format!("{} === 4", moves("play")));
    let games = browser.evaluate("JSON.parse(localStorage.games)");
    assert_eq!(games.as_array().unwrap().len(), 1, "{games}");
    assert!(games[0].as_str().unwrap().contains("1. d4 *"), "{games}");
    // Another window plays on in this one's game, and this window is left later.
    let goes_on = |uci: &str| {
        format!(
            "{{ const game = JSON.parse(localStorage.game); game.played.push('{uci}'); \
             localStorage.game = JSON.stringify(game); }}"
        )
    };
    browser.evaluate(&goes_on("h2h3"));
    open_another_window(&mut browser, &server, "play");
    browser.wait(&format!("{} === 6", moves("play")));
    // This window plays another move than the other one, and takes it back.
    browser.evaluate(&goes_on("g2g3"));
    browser.type_move("play", "c3");
    browser.wait(&format!("{} === 8", moves("play")));
    browser.wait(&contains(STATUS, "Your move."));
    browser.click("#play-back");
    browser.wait(&format!("{} === 6", moves("play")));
    let games = browser.evaluate("JSON.parse(localStorage.games)");
    assert_eq!(games.as_array().unwrap().len(), 2, "{games}");
    assert!(games[1].as_str().unwrap().contains("4. g3 *"), "{games}");
    let stored = browser.evaluate("JSON.parse(localStorage.game).played.length");
    assert_eq!(stored, 6);
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_failed_request_is_repeated() {
    let server = Server::start(&["--backend", "torch"]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    browser.evaluate(
        "window.answer = fetch; window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))",
    );
    browser.type_move("play", "e4");
    browser.wait(&contains("#trouble", "The server does not answer"));
    browser.wait(&contains(STATUS, "try again"));
    browser.evaluate("window.fetch = window.answer");
    browser.click("#trouble button");
    browser.wait(&format!("{} === 2", moves("play")));
    browser.wait(&contains(STATUS, "Your move."));
    let fail = "window.failed = []; window.fetch = (path) => { \
         window.failed.push(path); return Promise.reject(new TypeError('Failed to fetch')); }";
    browser.evaluate(fail);
    browser.click("#play-draw");
    browser.wait(&contains("#trouble", "The server does not answer"));
    browser.evaluate("window.fetch = window.answer");
    browser.click("#trouble button");
    browser.wait(&format!(
        "/declines|agreement/.test(document.querySelector('{STATUS}').textContent)"
    ));
    // Several requests fail, and are repeated together.
    browser.click("nav [href=\"#analyse\"]");
    let people = count("#people-chart path.line");
    browser.wait(&format!("{people} > 0"));
    browser.evaluate(fail);
    browser.click("#analyse-run");
    browser.wait(&contains("#trouble", "The server does not answer"));
    browser.evaluate("document.querySelector('#people-chart').replaceChildren()");
    browser.type_move("analyse", "e4");
    for path in ["/v1/analyse", "/v1/people"] {
        browser.wait(&format!("window.failed.includes('{path}')"));
    }
    browser.evaluate("window.fetch = window.answer");
    browser.click("#trouble button");
    browser.wait(&format!("{} > 0", count("#analyse-lines b")));
    browser.wait(&format!("{people} > 0"));
    browser.click("#analyse-run");
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn an_analysis_is_played_on_and_a_played_game_analysed_where_it_stands() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    browser.load("1. e4 e5 2. Nf3");
    // The form may hold anything, and the side to move is chosen.
    browser.fill("#play-form [name=fen]", "8/8/8");
    browser.click("#analyse-play");
    browser.wait("location.hash.startsWith('#play/')");
    browser.wait(&contains(STATUS, "Make a move to start."));
    assert_eq!(browser.text("#play-fen-problem"), "");
    let link = browser.evaluate("location.hash");
    // A link that cannot be shown is only told, until the next one.
    browser.evaluate("location.hash = 'play/8/8/8'");
    browser.wait(&contains("#trouble", "cannot be shown"));
    browser.evaluate(&format!(
        "location.hash = 'play/{}'",
        ENDGAME.replace(' ', "_")
    ));
    browser.wait("document.querySelector('#trouble').hidden");
    browser.evaluate(&format!("location.hash = {link}"));
    browser.wait("document.forms['play-form'].elements.color.value === 'black'");
    // The board is shown from Black's side, so the move is typed. The next game has the usual side again.
    browser.type_move("play", "Nc6");
    browser.wait(&format!("{} === 2", moves("play")));
    assert_eq!(browser.evaluate("location.hash"), "#play");
    browser.evaluate("document.activeElement.blur()");
    browser.key("ArrowLeft");
    browser.click("#play-analyse");
    browser.wait("location.hash.startsWith('#analyse/')");
    browser.wait(&format!("{} === 2", moves("analyse")));
    let current = "document.querySelector('#analyse-moves [aria-current]').textContent";
    assert_eq!(browser.evaluate(current), "2… Nc6");
    browser.click("nav [href=\"#play\"]");
    browser.click("#play-new");
    browser.click("dialog[open] [value=yes]");
    let color = "document.forms['play-form'].elements.color.value";
    browser.wait(&format!("{color} === 'white'"));
    browser.assert_quiet();
}
