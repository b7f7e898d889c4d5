use super::*;
use proptest::prelude::*;

#[test]
fn a_tree_with_its_scores() {
    let text = "[Result \"1-0\"]\n\n1. e4 {[%eval 0.3,20]} (1. d4 {[%eval 0.2]} d5 \
                (1... Nf6 2. c4) 2. c4) 1... e5 2. Nf3 {a long word} 1-0";
    let record = parse_game(text.as_bytes()).unwrap();
    assert_eq!((record.fen, record.result), (None, Some(Wdl::Win)));
    let shape: Vec<_> = record
        .nodes
        .iter()
        .map(|node| (node.depth, node.starts_line, node.eval.is_some()))
        .collect();
    let expected = [
        (0, false, true),
        (1, true, true),
        (1, false, false),
        (2, true, false),
        (2, false, false),
        (1, false, false),
        (0, false, false),
        (0, false, false),
    ];
    assert_eq!(shape, expected);
}

#[test]
fn lines_that_engines_expected_become_variations() {
    // Lines as written by TCEC. The second continues the first, the third departs from the game at
    // its first move, and the fourth extends past the end of the game.
    let text = "1. e4 {wv=0.30, pv=e4 c5 Nf3 d6 d4 cxd4 Nxd4 Nf6 Nc3 a6 Be3 e5,} \
                e5 {wv=0.25, pv=e5 Nf3 Nc6,} \
                2. Nc3 {wv=0.20, pv=Nf3 Nc6,} Nf6 {wv=0.10, pv=Nf6 Nf3,} *";
    let written = "1. e4 {[%eval 0.30]} 1... e5 {[%eval 0.25]} \
                   (1... c5 {[%eval 0.30]} 2. Nf3 d6 3. d4 cxd4 4. Nxd4 Nf6 5. Nc3) \
                   2. Nc3 {[%eval 0.20]} (2. Nf3 {[%eval 0.25]} 2... Nc6) \
                   2... Nf6 {[%eval 0.10]} *";
    let read = |text: &str| parse_game(text.as_bytes()).unwrap();
    assert_eq!(read(text), read(written));

    // Two lines have a common prefix, and one line contains an illegal move.
    let text = "1. e4 {wv=0.3, pv=e4 c5 Nf3,} c6 {wv=0.2, pv=c6 d4 d5 Ke4,} \
                2. d4 {wv=0.3, pv=d4 d5 Nc3 dxe4,} d5 {wv=0.4, pv=d5 Nc3 g6,} \
                3. e5 {wv=0.5, pv=e5 Bf5,} Bf5 *";
    let written = "1. e4 {[%eval 0.3]} c6 {[%eval 0.2]} (1... c5 {[%eval 0.3]} 2. Nf3) \
                   2. d4 {[%eval 0.3]} d5 {[%eval 0.4]} 3. e5 {[%eval 0.5]} \
                   (3. Nc3 {[%eval 0.3]} dxe4 (3... g6 {[%eval 0.4]})) 3... Bf5 *";
    assert_eq!(read(text), read(written));
}

#[test]
fn lines_nest_no_deeper_than_variations_may() {
    // Each line continues the previous one and departs from it slightly later.
    const LEAVE: usize = 400;
    let own = |ply: usize| ["Nh3", "Nh6", "Ng1", "Ng8"][ply % 4];
    let queenside = ["Na3", "Na6", "Nb1", "Nb8"];
    let kingside = ["Nf3", "Nf6", "Ng1", "Ng8"];
    let mut text = String::new();
    for ply in 0..LEAVE + 4 {
        let blocks = (0..=ply).chain([ply]);
        let away = blocks.flat_map(|block| [queenside, kingside][block % 2]);
        let line: Vec<_> = (ply..LEAVE).map(own).chain(away).collect();
        text.push_str(&format!("{} {{wv=0.0, pv={},}} ", own(ply), line.join(" ")));
    }
    let record = parse_game(text.as_bytes()).unwrap();
    let depths = record.nodes.iter().map(|node| usize::from(node.depth));
    assert_eq!(depths.max(), Some(MAX_DEPTH));
    assert_eq!(record.main_line().count(), LEAVE + 4);
    record.places().unwrap();
}

fn read(text: &str) -> Record {
    parse_game(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn dialects_are_read_as_the_moves_they_mean() {
    let start = "[FEN \"4k2r/P7/8/3pP3/8/8/4P3/R3K2R w KQk d6 0 1\"]\n\n";
    let expected = read(&format!(
        "{start}1. exd6 O-O 2. a8=Q Rxa8 3. Rxa8+ Kf7 4. O-O Kg6 5. e4 *"
    ));
    assert_eq!(expected.main_line().count(), 9);
    for moves in [
        "1. exd6e.p. 0-0 2. a8Q Rxa8 3. Rxa8 Kf7 4. 0-0 Kg6 5. e4 *",
        "1. exd6 e.p. o-o 2. a8(Q) Ra8 3. Ra8 Kf7 4. O–O Kg6 5. e2-e4 *",
        "1. e5xd6 ep O-O 2. a7-a8Q Rf8xa8 3. Ra1xa8+ Kg8-f7 4. 0–0 Kf7-g6 5. e2-e4 *",
        "1 e5d6 e8g8 2 a7a8q f8a8 3 a1a8 g8f7 4 e1g1 f7g6 5 e2e4",
        "1.exd6 O-O 2.a8=Q Rxa8 3.Rxa8 Kf7 4.O-O Kg6 5.e41-0",
        "1.exd6!(1.e4)0-0{a}2.a8(Q)$1Rxa8!?3.Rxa8+-Kf7 4.0-0 = Kg6 5.e4 N ± □",
    ] {
        let moves = moves.replace("Rxa8+-", "Rxa8 +- ");
        let record = read(&format!("{start}{moves}"));
        assert!(record.main_line().eq(expected.main_line()), "{moves}");
    }
}

#[test]
fn a_null_move_ends_its_variation_or_the_game() {
    let scored = "1. e4 {+0.3/10 1s} e5 {+0.2/10 1s} NULL 2. Nf3 {+0.3/10 1s} \
                  Nc6 {+0.2/10 1s} 1-0";
    let without = read(&scored.replace("NULL", ""));
    for null in ["--", "Z0", "null", "@@@@", "0000"] {
        for variation in [
            "1... NULL 2. d4",
            "1... NULL (1... c5) 2. d4 {a} 0-1",
            "NULL",
        ] {
            let variation = format!("({})", variation.replace("NULL", null));
            let text = scored.replace("NULL", &variation);
            assert_eq!(read(&text), without, "{text}");
        }
        let text = scored.replace("NULL", &format!("(1... c5 2. {null} Nc6 3. Nxx) (1... c6)"));
        assert_eq!(
            read(&text),
            read(&scored.replace("NULL", "(1... c5) (1... c6)"))
        );

        let text = format!("[Result \"1-0\"]\n\n1. e4 e5 (1... c5) 2. {null} Sf6 3. d4 ( 1-0");
        let cut = read_game(text.as_bytes()).unwrap();
        let place = cut.null_move.unwrap();
        assert_eq!(place.to_string(), format!("`{null}` at ply 3"));
        assert_eq!(cut.record, read("1. e4 e5 (1... c5) *"));
        assert_eq!(
            parse_game(text.as_bytes()).unwrap_err().to_string(),
            format!("`{null}` at ply 3 is a null move, with which the game ends")
        );
    }
    assert!(read_game(b"1. e4 (1. --) *").unwrap().null_move.is_none());
}

#[test]
fn an_unusable_variation_costs_only_itself() {
    let deep = format!("1. e4 {}{} e5 *", "(1. d4 ".repeat(300), ")".repeat(300));
    let kept = format!("1. e4 {}{} e5 *", "(1. d4 ".repeat(255), ")".repeat(255));
    for (text, without, error) in [
        (
            "1. e4 (1. e5 {0.1} d4) e5 {[%eval 0.2]} (1... c5 2. Ke4 (2. c3) 2... g6) 2. Nf3 1-0",
            "1. e4 e5 {[%eval 0.2]} 2. Nf3 1-0",
            "`e5` at ply 1 of a variation is not a legal move; \
             `Ke4` at ply 3 of a variation is not a legal move",
        ),
        // The variations around an unusable one remain.
        (
            "1. e4 e5 (1... c5 2. Nf3 (2. c3 Sf6 (2... d5)) 2... d6) 2. d4 *",
            "1. e4 e5 (1... c5 2. Nf3 2... d6) 2. d4 *",
            "`Sf6` at ply 4 of a variation is not a move",
        ),
        (
            "1. e4 (1. Nf3 d5 2. d3 d4 3. Nd2) e5 *",
            "1. e4 e5 *",
            "`Nd2` at ply 5 of a variation is ambiguous",
        ),
        (
            "(1. d4 {first} (1. c4) d5) 1. e4 ((1. c4) 1. d4 [%cal} d5) e5 *",
            "1. e4 e5 *",
            "a variation precedes the first move; a variation precedes the first move; \
             `[%cal` at ply 2 of a variation is not a move",
        ),
        (&deep, &kept, "variations nest deeper than 255"),
    ] {
        let game = read_game(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(game.record, read(without), "{text}");
        let errors: Vec<_> = game
            .bad_variations
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(errors.join("; "), error, "{text}");
    }
}

#[test]
fn a_question_mark_in_a_tag_is_unknown() {
    let expected = read("1. e4 *");
    for unknown in ["?", "??", " ? ", "-", ""] {
        for tag in ["Variant", "FEN", "Result", "WhiteElo"] {
            assert_eq!(read(&format!("[{tag} \"{unknown}\"]\n\n1. e4 *")), expected);
        }
    }
}

#[test]
fn results_are_those_of_the_game() {
    let tagged = |tag: &str, moves: &str| read(&format!("[Result \"{tag}\"]\n\n{moves}")).result;
    assert_eq!(tagged("?", "1. e4 (1. d4 0-1) 1-0 {0-1}"), Some(Wdl::Win));
    assert_eq!(tagged("1/2", "1. e4 *"), Some(Wdl::Draw));
    assert_eq!(tagged("1–0", "1. e4"), Some(Wdl::Win));
    assert_eq!(tagged("1-0", "1. e4 0-1 1-0"), Some(Wdl::Win));
    assert_eq!(tagged("*", "1. e4 e51/2-1/2"), Some(Wdl::Draw));
    // `0-0` means that both players lost. If castling is also possible, the Result tag decides.
    let castling = "1. e4 e5 2. Nf3 Nf6 3. Bc4 Bc5";
    for (tag, moves, plies) in [
        ("0-0", "0-0 {nobody came}".to_owned(), 0),
        ("?", "1. e4 0-0".to_owned(), 1),
        ("0-0", format!("{castling} 0-0"), 6),
        ("*", format!("{castling} 0-0"), 7),
        ("0-0", format!("{castling} 4. 0-0 0-0"), 7),
    ] {
        let record = read(&format!("[Result \"{tag}\"]\n\n{moves}"));
        assert_eq!(
            (record.result, record.nodes.len()),
            (None, plies),
            "{moves}"
        );
    }
}

#[test]
fn tags_do_not_lose_a_game() {
    let text = "% escaped\n[Annotator \"a \"b\" c\"]\n[FEN \"\"]\n%[Result \"0-1\"]\n\
                [WhiteElo \"1500\"]\n[Result \"1-0\"]\n\n%1. d4\n1. e4\n%d5\n e5 2. Nf3";
    let record = read(text);
    assert_eq!((record.nodes.len(), record.result), (3, Some(Wdl::Win)));
    assert_eq!(record.ratings.white, Some(1500));
    assert_eq!(record.fen, None);
}

#[test]
fn ratings_are_read_where_they_are_given() {
    for (tag, expected) in [
        ("1500", Some(1500)),
        (" 1712? ", Some(1712)),
        ("?", None),
        ("-", None),
        ("0", None),
        ("2700000", None),
    ] {
        let text = format!("[WhiteElo \"{tag}\"]\n[BlackElo \"2000\"]\n\n1. e4 *");
        let ratings = parse_game(text.as_bytes()).unwrap().ratings;
        assert_eq!((ratings.white, ratings.black), (expected, Some(2000)));
    }
}

#[test]
fn bad_games_are_refused_with_the_reason() {
    let crowd = "QQQQQQBk/Q6B/Q6Q/Q6Q/Q6Q/Q6Q/Q6Q/KQQQQQQQ w - - 0 1";
    for (text, reason) in [
        ("1. e4 e5 2. Ke3 *", "`Ke3` at ply 3 is not a legal move"),
        ("1. Nf3 d5 2. d3 d4 3. Nd2 *", "`Nd2` at ply 5 is ambiguous"),
        ("1. a8Q Kg7 *", "`a8Q` at ply 1 is not a legal move"),
        ("1. e4 e5 2. Sf3 Sc6 1-0", "`Sf3` at ply 3 is not a move"),
        ("1. e4 e5 } 2. Nf3 *", "`}` at ply 3 is not a move"),
        ("1. e4 [%clk 0:01] e5", "`[%clk` at ply 2 is not a move"),
        (
            "1. e4 e5 0-0 2. Nf3 *",
            "`0-0` at ply 3 is not a legal move",
        ),
        ("1. e4 e5 1-0 2. d4 *", "`d4` at ply 3 follows the result"),
        ("1. e4 e5 1-0 --", "`--` at ply 3 follows the result"),
        ("1. e4 (1. d4 d5 2. c4 *", "a variation has no end"),
        ("1. e4) e5 *", "a variation ends without having begun"),
        ("1. e4 e5 {2. Nf3 *", "a comment after ply 2 has no end"),
        (
            "1. e4 (1. d4 -- {2. c4) *",
            "a comment after ply 1 has no end",
        ),
        (
            "1. e4 (1. d4 Ke3 {2. c4) *",
            "a comment after ply 1 has no end",
        ),
        ("1. e4 (1. d4 Ke3 (2. c4) *", "a variation has no end"),
        (
            "[FEN \"8/8\"]\n\n1. e4 *",
            "`8/8` is not a FEN: invalid board part in fen",
        ),
        (
            "[Variant \"Atomic\"]\n\n1. e4 *",
            "variant `Atomic` is not chess",
        ),
        (&format!("[FEN \"{crowd}\"]\n\n1. Bg8b3 *"), ""),
        ("", "there is no game in the text"),
    ] {
        match parse_game(text.as_bytes()) {
            Ok(record) => assert!(reason.is_empty(), "{text}: {record:?}"),
            Err(error) if reason.is_empty() => drop(error),
            Err(error) => assert_eq!(error.to_string(), reason),
        }
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "([\\[\\](){};%eval#0-9. \n\"]|e4|Nf3|O-O|1-0|0-0|--|e2-e4|\\[FEN \"){0,80}") {
        let _ = parse_game(text.as_bytes());
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_game(&bytes);
    }
}
