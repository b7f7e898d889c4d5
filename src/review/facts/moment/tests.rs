//! Tests of reasons, from Tessera's own lines and from a judge's.

use super::super::testing::{line, mv, position};
use super::*;

/// Returns the sentences about the played move and those about the best move.
fn told(fen: &str, played: &str, best: &str, reply: &str, mates: [bool; 2]) -> [Vec<String>; 2] {
    scored(fen, [played, best, reply], mates, None)
}

/// Returns the same sentences for a reply with a score.
fn scored(
    fen: &str,
    [played, best, reply]: [&str; 3],
    mates: [bool; 2],
    score: Option<i32>,
) -> [Vec<String>; 2] {
    let before = position(fen);
    let played = mv(&before, played);
    let best = line(&before, best);
    let reply = line(&after(&before, played), reply);
    let moment = Moment {
        before: &before,
        last: None,
        played,
        best: Variation {
            moves: &best,
            mates: mates[0],
            centipawns: None,
        },
        reply: Variation {
            moves: &reply,
            mates: mates[1],
            centipawns: score,
        },
        is_judged: false,
    };
    let reasons = moment.reasons();
    [reasons.played, reasons.best].map(|facts| facts.into_iter().map(|it| it.text).collect())
}

#[test]
fn a_piece_is_left_where_it_is_attacked() {
    let fen = "4k3/8/8/4r3/4N3/8/7P/6K1 w - - 0 1";
    let [played, best] = told(fen, "h3", "Ng3 Kd7", "Rxe4 Kf2", [false; 2]);
    assert_eq!(
        played,
        [
            "Rxe4 takes the knight on e4, which nothing defends.",
            "Black was threatening Rxe4 before the move.",
            "After Rxe4, White has lost a knight.",
        ]
    );
    assert!(best.is_empty());
}

#[test]
fn lines_that_go_astray_say_nothing() {
    let fen = "4k3/8/8/4r3/4N3/8/7P/6K1 w - - 0 1";
    let told = |reply: &str, score| {
        let [played, _] = scored(fen, ["h3", "Ng3 Kd7", reply], [false; 2], score);
        played.len()
    };
    assert_eq!(told("Rxe4 Kf2", Some(500)), 3);
    // The score for Black does not fit a rook for a pawn.
    assert_eq!(told("Rxe4 Kf2", Some(-100)), 0);
    // Results beyond the horizon do not count, but the threat is reported.
    assert_eq!(told("Rd5 Kf2 Rd4 Kg2 Rd5 Kf2 Re5 Kf3 Rxe4", None), 1);
}

#[test]
fn a_fork_is_missed() {
    let fen = "r3k3/8/8/3N4/8/8/7P/4K3 w q - 0 1";
    let [played, best] = told(fen, "h3", "Nc7+ Kd7 Nxa8", "Rc8", [false; 2]);
    assert!(played.is_empty());
    assert_eq!(
        best,
        [
            "Nc7+ forks the rook on a8 and the king on e8.",
            "After Nc7+ Kd7 Nxa8, White has won a rook.",
        ]
    );
}

#[test]
fn mates_are_told_before_all_else() {
    let fen = "3r2k1/5ppp/8/8/8/8/P4PPP/R5K1 w - - 0 1";
    let [played, best] = told(fen, "Rc1", "Kf1", "h6", [false; 2]);
    assert!(played.is_empty() && best.is_empty());
    let fen = "3r2k1/5ppp/8/8/8/8/P4PPP/4R1K1 w - - 0 1";
    let [played, best] = told(fen, "Ra1", "Re8+ Rxe8", "Rd1+ Rxd1", [false; 2]);
    assert!(played.is_empty() && best.is_empty(), "{played:?} {best:?}");
    let fen = "3r2k1/5ppp/8/8/8/8/B4PPP/4R1K1 w - - 0 1";
    let [played, best] = told(fen, "Re2", "h3", "Rd1+ Re1 Rxe1#", [false, true]);
    assert_eq!(
        played,
        [
            "Black mates in 2 moves, beginning with Rd1+.",
            "The mate is on the back rank: White's king is shut in by its own men.",
        ]
    );
    assert!(best.is_empty());
    let fen = "6k1/5ppp/8/8/8/8/B4PPP/4R1K1 w - - 0 1";
    let [_, best] = told(fen, "h3", "Re8#", "Kf8", [true, false]);
    assert_eq!(
        best,
        [
            "Re8# is mate.",
            "The mate is on the back rank: Black's king is shut in by its own men.",
        ]
    );
}

#[test]
fn nothing_is_invented() {
    let fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
    let [played, best] = told(fen, "a4", "e4 e5 Nf3 Nc6", "e5 e4 Nf6", [false; 2]);
    assert!(played.is_empty() && best.is_empty(), "{played:?} {best:?}");
    // A line that ends in the middle of an exchange says nothing about material.
    let fen = "4k3/8/3p4/4n3/8/8/4R3/4K3 w - - 0 1";
    let [played, _] = told(fen, "Rxe5+", "Kd1", "", [false; 2]);
    assert!(played.is_empty());
}

#[test]
fn a_stalemate_is_told() {
    for (fen, mv, is_stalemate) in [
        ("7k/5Q2/8/6K1/8/8/8/8 w - - 0 1", "Kg6", true),
        ("7k/8/8/5QK1/8/8/8/8 w - - 0 1", "Qf7", true),
        ("k7/8/1K6/8/8/8/8/2Q5 w - - 0 1", "Qc7", true),
        ("7k/8/8/5QK1/8/8/8/8 w - - 0 1", "Qf6+", false),
        ("7k/8/8/5QK1/8/8/8/8 w - - 0 1", "Qe6", false),
        ("7k/5Q2/8/6K1/8/8/8/8 w - - 0 1", "Qe7", false),
        ("k7/8/1K6/8/8/8/8/2Q5 w - - 0 1", "Qd2", false),
    ] {
        let [played, _] = told(fen, mv, "", "", [false; 2]);
        let text = ["The move is stalemate."];
        assert_eq!(played, text[..usize::from(is_stalemate)], "{mv} in {fen}");
    }
}

/// Returns the sentences for a judge's lines and scores: `[played, best, reply]` and the player's
/// scores before and after the move.
fn judged(fen: &str, [played, best, reply]: [&str; 3], scores: [i32; 2]) -> [Vec<String>; 2] {
    let before = position(fen);
    let played = mv(&before, played);
    let best = line(&before, best);
    let reply = line(&after(&before, played), reply);
    let moment = Moment {
        before: &before,
        last: None,
        played,
        best: Variation {
            moves: &best,
            mates: false,
            centipawns: Some(scores[0]),
        },
        reply: Variation {
            moves: &reply,
            mates: false,
            centipawns: Some(-scores[1]),
        },
        is_judged: true,
    };
    let reasons = moment.reasons();
    [reasons.played, reasons.best].map(|facts| facts.into_iter().map(|it| it.text).collect())
}

#[test]
fn a_capture_that_drops_a_piece() {
    let fen = "r2q1rk1/ppp2p1p/3p1n2/4p3/4P1P1/2NP3P/PPP3R1/2RQKB2 b - - 0 11";
    let lines = [
        "Nxg4",
        "Kh8 Be2 Rg8 Kd2 a6 Ke3 b5",
        "Rxg4+ Kh8 Qf3 a6 Kd2 b5 Ke2",
    ];
    let [played, best] = judged(fen, lines, [-700, -1000]);
    assert_eq!(
        played,
        [
            "Rxg4+ takes the knight on g4, which nothing defends.",
            "After Nxg4 Rxg4+, Black has lost a knight for a pawn.",
        ]
    );
    assert_eq!(best, ["Kh8 keeps the knight on f6."]);
}

#[test]
fn a_piece_that_was_to_be_taken() {
    let fen = "r2qk2r/ppp2ppp/2n2n2/2b5/2BP4/5N2/PP3PPP/RNBQK2R w KQkq - 0 15";
    let lines = [
        "Bd5",
        "dxc5 Qe7+ Be3 Rd8 Nbd2 O-O O-O",
        "Bb6 Bxc6+ bxc6 O-O O-O h3",
    ];
    let [played, best] = judged(fen, lines, [650, 330]);
    assert!(played.is_empty(), "{played:?}");
    assert_eq!(
        best,
        [
            "dxc5 takes the bishop on c5, which nothing defends.",
            "After dxc5, White has won a bishop.",
        ]
    );
}

/// The move that is criticised is neither praised nor described.
#[test]
fn the_move_played_is_not_praised() {
    let fen = "6k1/p4ppp/8/8/8/6P1/R4PKP/1r6 w - - 0 39";
    let lines = [
        "Rxa7",
        "h4 h5 Rxa7 Rb2 Ra4 g6 Kf3",
        "h5 h4 Rb2 Kf3 g6 Ra4 Kg7",
    ];
    let [played, best] = judged(fen, lines, [180, 60]);
    let all = [played, best].concat();
    assert!(
        !all.iter().any(|text| text.contains("Rxa7 takes")),
        "{all:?}"
    );
    assert!(!all.is_empty());
}

/// A threat that the judge's line does not carry out is not told: in the Opera game, 9... b5 loses
/// to 10. Nxb5.
#[test]
fn empty_threats_are_not_told() {
    let fen = "rn2kb1r/pp2qppp/2p2n2/4p3/2B1P3/1QN5/PPP2PPP/R1B1K2R w KQkq - 0 9";
    let lines = [
        "Bg5",
        "O-O b5 Be2 a5 a4 b4 Nd1",
        "b5 Nxb5 cxb5 Bxb5+ Nbd7 O-O-O Rd8 Rxd7 Rxd7 Rd1",
    ];
    let [played, best] = judged(fen, lines, [230, 180]);
    assert!(!played.concat().contains("threatens") && !best.concat().contains("threatens"));
}

/// 6... Nf6 in the Opera game.
#[test]
fn a_double_attack_is_told() {
    let fen = "rn1qkbnr/ppp2ppp/8/4p3/2B1P3/5Q2/PPP2PPP/RNB1K2R b KQkq - 1 6";
    let lines = [
        "Nf6",
        "Qf6 Qb3 Bc5 O-O Bb6 a4 a5 Nc3 Ne7 Be3",
        "Qb3 Qe7 Qxb7 Qb4+ Qxb4 Bxb4+ c3 Bc5 f3 Nc6 b4 Bd6 Be3 Ke7",
    ];
    let [played, _] = judged(fen, lines, [-80, -230]);
    assert_eq!(
        played,
        [
            "Qb3 threatens Qxb7 and Bxf7+ at once.",
            "After Qb3 Qe7 Qxb7, Black has lost a pawn.",
        ]
    );
}

/// A lost right to castle is not worth telling beside a lost piece.
#[test]
fn castling_does_not_matter_beside_a_piece() {
    let fen = "r3k2r/ppp2ppp/8/4n3/8/4N3/PPP2PPP/R3K2R w KQkq - 0 15";
    let lines = [
        "Nd5",
        "O-O O-O Rad1 Rad8 h3 h6 b3 b6",
        "Nf3+ gxf3 O-O-O Ke2 Rxd5 Rad1 Re8+ Kf1 Red8 Rxd5 Rxd5",
    ];
    let [played, _] = judged(fen, lines, [0, -150]);
    assert!(!played.concat().contains("castle"), "{played:?}");
    let text = "After Nd5 O-O-O";
    assert!(played.iter().all(|it| !it.starts_with(text)));
}

#[test]
fn losses_that_are_not_of_material() {
    let fen = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3";
    let quiet = "Nf6 d3 Bc5 c3 d6 Be2 O-O";
    let best = "Bb5 a6 Ba4 Nf6 O-O Be7 Re1";
    let [played, _] = judged(fen, ["h4", best, quiet], [40, -120]);
    assert_eq!(
        played,
        ["The move loses no material; the loss is positional."]
    );
    // A large drop has another reason, and a short line shows nothing.
    let [played, _] = judged(fen, ["h4", best, quiet], [40, -600]);
    assert!(played.is_empty(), "{played:?}");
    let [played, _] = judged(fen, ["h4", best, "Nf6 d3"], [40, -120]);
    assert!(played.is_empty(), "{played:?}");
}

/// Pawns and pieces are exchanged in both lines, and come out even.
#[test]
fn material_that_comes_out_even() {
    let fen = "r1b1k1nr/p2pqpp1/1pp4p/2b1P3/2Q5/1B6/PPP2PPP/RNB2RK1 w kq - 4 12";
    let lines = [
        "Re1",
        "Nc3 Qxe5 Qxf7+ Kd8 Be3 Qe7 Qf3 Nf6 Bxc5 Qxc5 Rad1 Ba6 Rfe1 Re8 Rxe8+ Kxe8",
        "d5 Qe2 Qh4 Be3 Ne7 Bxc5 bxc5 c4 O-O Nc3 Be6 Na4 dxc4 Bc2 Nf5 Nxc5",
    ];
    let even =
        "At the end of the lines, White has as much material as after Nc3; the loss is positional.";
    assert_eq!(
        judged(fen, lines, [161, 36]),
        [vec![even.to_owned()], vec![]]
    );
    // A large drop has another reason.
    let [played, _] = judged(fen, lines, [361, 36]);
    assert!(played.is_empty(), "{played:?}");
}

/// The line never rests, because the knight that has taken the queen can be taken as well.
#[test]
fn a_queen_is_trapped() {
    let fen = "rnbqkbnr/p3pppp/1p1p4/2p5/2B1P3/2P2N2/PP1P1PPP/RNBQK2R b KQkq - 0 4";
    let lines = [
        "Nd7",
        "e6 d4 a6 O-O Nf6 Qe2 Be7 e5 dxe5",
        "Bxf7+ Kxf7 Ng5+ Ke8 Ne6 Ne5 Nxd8 Nd3+ Kf1 g6 Na3 Nf6 Qc2 Ba6 c4 Nxc1",
    ];
    let [played, _] = judged(fen, lines, [-87, -395]);
    let trap = "Later in the line, Ne6 attacks the queen on d8, which has no safe square.";
    assert_eq!(played, [trap]);
}
