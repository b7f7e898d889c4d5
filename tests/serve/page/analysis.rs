//! Tests analysis, human moves, explanations, and the editor.

use super::{contains, count, open};
use crate::serve::Server;

const RUN: &str = "document.querySelector('#analyse-run').textContent";
const CURRENT: &str = "document.querySelector('#analyse-moves [aria-current]')?.textContent";

#[test]
fn an_analysis_grows_and_its_lines_are_played() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    let bar = "document.querySelector('#analyse-bar')";
    assert_eq!(
        browser.evaluate(&format!("{bar}.ariaLabel")),
        "Evaluation: not known yet"
    );
    browser.load("1. e4 e5 2. Nf3 Nc6 3. Bb5");
    browser.fill("#analyse-engine [name=nodes]", "3000");
    browser.wait(&format!("{} === 5", count("#analyse-moves button")));
    browser.wait(&contains("#analyse-opening", "C60 Ruy Lopez"));
    browser.click("#analyse-run");
    browser.wait(&format!("{} === 3", count("#analyse-lines b")));
    browser.wait("/ 3,0\\d\\d nodes/.test(document.querySelector('#analyse-info').textContent)");
    browser.wait(&format!("{} > 0", count("#analyse-board .cg-shapes line")));
    browser.wait(&format!("{bar}.ariaLabel.includes('White wins')"));
    // The analysis has ended by itself.
    browser.wait(&format!("{RUN} === 'Analyse'"));
    // Its number is rounded.
    let rounded = browser.evaluate(
        "import('/page/evalbar.js').then(({ EvalBar }) => { \
           const place = document.createElement('div'); \
           new EvalBar(place).show({ score: { cp: 26 }, wdl: { win: 0.5, draw: 0.3, loss: 0.2 } }, 'white'); \
           return place.textContent; \
         })",
    );
    assert_eq!(rounded, "0.3");
    // Clicking a line's third move appends the line to the game, up to that move.
    browser.click("#analyse-lines li button:nth-of-type(3)");
    browser.wait(&format!("{} === 8", count("#analyse-moves button")));
    browser.evaluate("document.activeElement.blur()");
    for _ in 0..4 {
        browser.key("ArrowLeft");
    }
    browser.wait(&format!("{CURRENT} === 'Nc6'"));
    // A different move starts a variation.
    browser.play("#analyse-board", "f1", "c4");
    browser.wait(&contains("#analyse-moves .variation", "3. Bc4"));
    browser.click("#analyse-promote");
    browser.wait(&contains("#analyse-moves .variation", "3. Bb5"));
    // Several moves are not deleted by mistake.
    browser.click("#analyse-moves .variation button");
    browser.click("#analyse-delete");
    browser.wait(&contains(
        "dialog[open]",
        "Delete Bb5 and everything after it?",
    ));
    browser.click("dialog[open] [value=yes]");
    browser.wait(&format!("{} === 0", count("#analyse-moves .variation")));
    browser.click("#analyse-run");
    browser.click("#analyse-run");
    browser.wait(&format!("{RUN} === 'Analyse'"));
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_link_opens_its_position_and_a_reload_keeps_the_game() {
    let server = Server::start(&[]);
    let fen = "4k3/8/8/8/8/8/4P3/4K3_w_-_-_0_1";
    let Some(mut browser) = open(&server, &format!("analyse/{fen}")) else {
        return;
    };
    let words = "document.querySelector('#analyse-board').ariaLabel";
    browser.wait(&format!("{words}.includes('white: king e1, pawn e2')"));
    browser.play("#analyse-board", "e2", "e4");
    browser.wait("location.hash.includes('/4P3/8/8/4K3_b_')");
    browser.reload();
    browser.wait(&format!("{CURRENT} === '1. e4'"));
    browser.key("ArrowLeft");
    browser.wait(&format!("location.hash === '#analyse/{fen}'"));
    browser.click("nav [href=\"#review\"]");
    browser.click("nav [href=\"#analyse\"]");
    browser.wait(&format!("{} === 1", count("#analyse-moves button")));
    // A game can be started from that position.
    browser.go(&format!("http://{}/#play/{fen}", server.address));
    browser.play("#play-board", "e2", "e3");
    browser.wait(&contains("#play-moves", "1. e3"));
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn mistakes_are_explained_in_chess_terms() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    for (text, problem) in [
        (
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBN w KQkq - 0 1",
            "Rank 1 (RNBQKBN) describes 7 squares instead of 8.",
        ),
        (
            "rnbqkbnr/pppppppp/8/8/PPPPPPPP/RNBQKBNR w - - 0 1",
            "A FEN has eight ranks with slashes between them; this one has 6.",
        ),
        (
            "4k2x/8/8/8/8/8/8/4K3 w - - 0 1",
            "Rank 8 (4k2x) contains “x”, which stands for no piece.",
        ),
        ("4k3/8/8/8/8/8/8/8 w - - 0 1", "White has no king."),
        (
            "4k3/4R3/8/8/8/8/8/4K3 w - - 0 1",
            "Black is in check although it is White's move.",
        ),
        (
            "4k2P/8/8/8/8/8/8/4K3 w - - 0 1",
            "A pawn cannot stand on the first or the last rank.",
        ),
        (
            "[Variant \"Atomic\"]\n\n1. e4 e5",
            "This is a game of “Atomic”, which has other rules than chess.",
        ),
        (
            "hello",
            "This is not a FEN, and it does not begin with a legal move.",
        ),
        (
            "1. e4 e5 2. Qh9 Nc6",
            r"The moves were read up to 1… e5: “Qh9” is not a move.",
        ),
        (
            "1. e4 e5 2. Nf6 Nc6",
            r"The moves were read up to 1… e5: “Nf6” is no legal move there.",
        ),
    ] {
        browser.load(text);
        assert_eq!(browser.text("#analyse-problem"), problem, "{text}");
    }
    // The legal part is shown on the board.
    assert_eq!(browser.evaluate(&count("#analyse-moves button")), 2);
    let typed = [
        (
            "4k3/8/8/3p4/2P5/8/8/4K3 w - - 0 1",
            "d5",
            "A pawn reaches d5 only by capturing: type cxd5.",
        ),
        (
            "1r2k3/P7/8/8/8/8/8/4K3 w - - 0 1",
            "b8",
            "The pawn promotes: type axb8=Q for a queen.",
        ),
        (
            "4k3/8/8/8/8/8/8/4K1N1 w - - 0 1",
            "Nf3=Q",
            "Only a pawn that reaches the last rank is promoted.",
        ),
        (
            "4k3/8/8/8/8/8/8/4K1N1 w - - 0 1",
            "g1f3q",
            "Only a pawn that reaches the last rank is promoted.",
        ),
        (
            "4k3/8/8/K2pP2r/8/8/8/8 w - d6 0 1",
            "exd6",
            "This capture would leave your king in check.",
        ),
        (
            "8/P6k/8/8/8/8/8/K7 w - - 0 1",
            "a8",
            "The pawn promotes: type a8=Q for a queen.",
        ),
        (
            "4k3/8/8/8/4r3/8/4N3/4K3 w - - 0 1",
            "Nc3",
            "The knight on e2 is pinned: the move would leave your king in check.",
        ),
        (
            "4k3/8/8/8/8/5r2/8/4K2R w K - 0 1",
            "O-O",
            "You cannot castle with O-O: the king would pass over or come to an attacked square.",
        ),
        (
            "4k3/8/8/8/8/2N5/8/4K1N1 w - - 0 1",
            "Ne2",
            "2 knights can go to e2: type Nge2 or Nce2.",
        ),
        (
            "4k3/8/8/8/8/8/8/4K3 w - - 0 1",
            "e8e7",
            "The king on e8 is Black's, and it is White's move.",
        ),
        (
            "3rk3/8/8/8/8/8/8/4K3 w - - 0 1",
            "Kd1",
            "The king cannot go to d1: it would be in check there.",
        ),
        (
            "4k3/8/8/8/8/8/8/4K3 w - - 0 1",
            "castle",
            "“castle” is not a move. Type e4, Nf3, exd5, O-O or e2e4.",
        ),
    ];
    for (fen, text, problem) in typed {
        browser.load(fen);
        browser.type_move("analyse", text);
        assert_eq!(
            browser.text("#analyse-typed-move-problem"),
            problem,
            "{fen}"
        );
    }
    browser.assert_quiet();
}

/// Marks, numbers, brackets and small letters do not change a typed move.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn typed_moves_are_read_as_meant() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    let initial = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
    let castling = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
    let promotion = "8/P6k/8/8/8/8/8/K7 w - - 0 1";
    let passant = "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1";
    for (fen, text, san) in [
        (castling, "o-o", "O-O"),
        (castling, "O-O!", "O-O"),
        (castling, "oo", "O-O"),
        (castling, "0-0", "O-O"),
        (castling, "o-o-o", "O-O-O"),
        (castling, "Kg1", "O-O"),
        (castling, "e1c1", "O-O-O"),
        (initial, "e4!", "e4"),
        (initial, "d4?", "d4"),
        (initial, "Nf3!", "Nf3"),
        (initial, "1. e4", "e4"),
        (initial, "E2-E4", "e4"),
        (initial, "♘f3", "Nf3"),
        (promotion, "a8(R)", "a8=R"),
        (promotion, "a8r", "a8=R"),
        (promotion, "a7a8n", "a8=N"),
        (passant, "exd6 e.p.", "exd6"),
        (passant, "e5:d6", "exd6"),
    ] {
        browser.load(fen);
        browser.type_move("analyse", text);
        assert_eq!(browser.text("#analyse-typed-move-problem"), "", "{text}");
        let moves = browser.text("#analyse-moves button");
        assert_eq!(moves, format!("1. {san}"), "{text}");
    }
    browser.assert_quiet();
}

/// The analysis field reads the letters of other languages, or stops: it never plays another move
/// than the one that stands there.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn moves_of_other_languages_are_read_or_end_the_game() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    const RUY: &str = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Bxc6 dxc6 5. O-O Qd4";
    let sans = "[...document.querySelectorAll('#analyse-moves button')].map((it) => it.textContent).join(' ')";
    for (text, moves, problem) in [
        (
            "1. e4 e5 2. Sf3 Sc6 3. Lb5 a6 4. Lxc6 dxc6 5. 0-0 Dd4",
            RUY,
            "",
        ),
        (
            "1. e4 e5 2. Cf3 Cc6 3. Fb5 a6 4. Fxc6 dxc6 5. 0-0 Dd4",
            RUY,
            "",
        ),
        (
            "1. e4 e5 2. Cf3 Cc6 3. Ab5 a6 4. Axc6 dxc6 5. O-O Dd4",
            RUY,
            "",
        ),
        (
            "1. e4 e5 2. Кf3 Кc6 3. Сb5 a6 4. С:c6 d:c6 5. 0-0 Фd4",
            RUY,
            "",
        ),
        (
            "1. e4 e5 2. ♘f3 ♞c6 3. ♗b5 a6 4. ♗xc6 dxc6 5. O-O ♛d4",
            RUY,
            "",
        ),
        // R is the rook in English and the king in French.
        ("1. e4 e5 2. Re2 Re7", "1. e4 e5 2. Ke2 Ke7", ""),
        (
            "1. e4 e5 2. Nf3 Nc6 3. h4 h5 4. Rh3",
            "1. e4 e5 2. Nf3 Nc6 3. h4 h5 4. Rh3",
            "",
        ),
        (
            "e2e4 e7e5 g1h3 b8c6 f1c4 d7d6 h1f1 g8f6 f2f4 h7h6 Rf2 a6",
            "1. e4 e5 2. Nh3 Nc6 3. Bc4 d6 4. Rf1 Nf6 5. f4 h6",
            "The moves were read up to 5… h6: “Rf2” is Rf2 in English and Kf2 in French, and the \
             other moves do not decide.",
        ),
        (
            "1. e4 e5 2. Xf3 Nc6",
            "1. e4 e5",
            "The moves were read up to 1… e5: “Xf3” is not a move.",
        ),
        (
            "1. e4 e5 2. Sf3 (2. Zf3) Sc6",
            "1. e4 e5 2. Nf3 Nc6",
            "A variation was read up to 1… e5: “Zf3” is not a move.",
        ),
        (
            "1. e4 e5 2. Sf3 Nc6",
            "1. e4 e5 2. Nf3",
            "The moves were read up to 2. Nf3: “Nc6” is not a move.",
        ),
        ("1. e4 c5 1-0 1. d4", "1. e4 c5", ""),
    ] {
        browser.load(text);
        assert_eq!(browser.text("#analyse-problem"), problem, "{text}");
        assert_eq!(browser.evaluate(sans), moves, "{text}");
    }
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_position_is_set_up() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    browser.click("#analyse-edit");
    browser.click("#editor-clear");
    browser.wait(&contains("#editor-problem", "White has no king."));
    let done = "document.querySelector('#editor-done').disabled";
    assert_eq!(browser.evaluate(done), true);
    let fen = "document.querySelector('#editor [name=fen]').value";
    for (piece, square, placement) in [
        ("white king", "e1", "8/8/8/8/8/8/8/4K3"),
        ("black king", "e8", "4k3/8/8/8/8/8/8/4K3"),
        ("white rook", "h1", "4k3/8/8/8/8/8/8/4K2R"),
    ] {
        browser.click(&format!("#editor [aria-label=\"{piece}\"]"));
        browser.click_square("#editor-board", square);
        // The board updates asynchronously.
        browser.wait(&format!("{fen}.startsWith('{placement} ')"));
    }
    browser.click("#editor [name=K]");
    browser.wait(&format!("{fen} === '4k3/8/8/8/8/8/8/4K2R w K - 0 1'"));
    browser.choose("#editor", "black");
    browser.click("#editor-done");
    browser.wait("location.hash === '#analyse/4k3/8/8/8/8/8/8/4K2R_b_K_-_0_1'");
    browser.assert_quiet();
}

/// This test uses the built-in networks.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn human_moves_are_shown_by_rating() {
    let server = Server::start(&["--backend", "torch"]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    browser.wait(&format!("{} > 1", count("#people-chart path.line")));
    let order =
        "[...document.querySelectorAll('#people-moves li')].map((it) => it.textContent).join()";
    let at_1500 = browser.evaluate(order);
    browser.evaluate(
        "{ const it = document.querySelector('#people-rating'); it.value = 2600; it.dispatchEvent(new Event('input')) }",
    );
    assert_ne!(browser.evaluate(order), at_1500);
    assert!(browser.text(".people .rated b").contains("2600"));
    let san = browser.text("#people-moves b");
    browser.click("#people-moves button");
    browser.wait(&contains("#analyse-moves", &san));
    browser.wait(&format!("{order} !== ''"));
    browser.assert_quiet();
}

/// This test uses the built-in networks.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn explanations_are_shown_in_place() {
    let server = Server::start(&["--backend", "torch"]);
    let Some(mut browser) = open(&server, "explain") else {
        return;
    };
    let seen = format!("{} > 0", count("#explain-board square.seen"));
    browser.wait(&seen);
    let told = browser.text("#explain-status");
    assert!(
        told.starts_with("White is to move and can expect "),
        "{told}"
    );
    assert!(told.contains("matters most: without it, "), "{told}");
    browser.wait(&contains("#explain-figure", "White's queen on d1"));
    browser.choose("#explain-form", "squares");
    browser.wait(&contains("#explain-figure", "weight"));
    browser.wait(&seen);
    browser.choose("#explain-form", "network");
    browser.wait(&format!("{} > 1", count("#explain-figure path.line")));
    browser.wait(&contains("#explain-values", "after the best moves"));
    browser.choose("#explain-form", "attention");
    browser.wait(&seen);
    browser.click_square("#explain-board", "d2");
    browser.wait(&contains("#explain-status", "From d2 the head looks at"));
    // Clicking there selects a square and does not move a piece.
    assert_eq!(
        browser.evaluate(&count("#explain-board square.move-dest")),
        0
    );
    browser.evaluate("document.querySelector('#compare').open = true");
    browser.wait(&format!("{} > 5", count("#compare-table tr")));
    browser.assert_quiet();
}

/// This test uses the network that ships with the engine.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_network_writes_games_that_are_replayed() {
    let server = Server::start(&["--backend", "torch"]);
    let Some(mut browser) = open(&server, "generate") else {
        return;
    };
    browser.wait("!document.querySelector('nav [href=\"#generate\"]').hidden");
    browser.fill("#generate-form [name=games]", "1");
    browser.fill("#generate-form [name=opening]", "1. d4 d5");
    browser.click("#generate-start");
    browser.wait(&contains("#generate-games", "1. d4 d5"));
    browser.wait(&contains("#generate-move", "1. d4"));
    browser.click("#generate-analyse");
    browser.wait(&contains("#analyse-moves", "1. d4"));
    browser.assert_quiet();
}
