//! Fuzz targets, one for each kind of untrusted input. A target may reject its input, but it must
//! not panic, hang or exhaust memory.

use std::io::Write;
use std::path::Path;
use tessera::backend::BackendKind;
use tessera::chess::Game;
use tessera::data::Curve;
use tessera::data::label::{EvalRefersTo, TargetRules};
use tessera::data::pgn::{AnnotatedGame, Games, read_game, tags};
use tessera::data::record::Record;
use tessera::data::replay::{VariationWeight, main_line, replay};
use tessera::data::shard::Shard;
use tessera::data::v6::{Chunk, V6Error};
use tessera::encode::InputFormat;
use tessera::eval::{epd, puzzles};
use tessera::serve;
use tessera::uci::{self, Settings};

mod networks;

/// A function that reads an input.
pub type Target = fn(&[u8]);

/// The targets with their names. A target's corpus folder has the same name.
pub const TARGETS: &[(&str, Target)] = &[
    ("uci", read_uci),
    ("pgn", read_pgn),
    ("epd", read_epd),
    ("puzzles", read_puzzles),
    ("shard", read_shard),
    ("v6", read_v6),
    ("lc0", networks::read_lc0),
    ("onnx", networks::read_onnx),
    ("maia3", networks::read_maia3),
    ("torch", networks::read_torch),
    ("torch-code", networks::read_torch_code),
    ("torch-pickle", networks::read_torch_pickle),
    ("serve", read_serve),
];

/// Runs a UCI session without a network until the input ends.
fn read_uci(input: &[u8]) {
    let mut settings = Settings::default();
    settings.player.backend.kind = BackendKind::Uniform;
    settings.player.set_hash(1);
    let input = std::io::Cursor::new(input.to_vec());
    uci::serve(input, std::io::sink(), settings).unwrap();
}

/// Parses the input as a request body for every endpoint that takes one, as a host and as an
/// origin.
fn read_serve(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input) {
        let _ = text.parse::<serve::Host>();
        let _ = text.parse::<serve::Origin>();
    }
    for endpoint in [
        "move",
        "analyse",
        "eval",
        "people",
        "generate",
        "review",
        "explain",
        "attention",
    ] {
        let _ = serve::is_request(&format!("/v1/{endpoint}"), input);
    }
}

/// Reads games, which must follow each other in the input without gaps, and extracts their samples.
fn read_pgn(input: &[u8]) {
    let mut rest = input;
    for game in Games::new(input).map_while(Result::ok) {
        rest = rest.strip_prefix(&*game).expect("the games in their order");
        if let Ok(read) = read_game(&game) {
            let record = read.record;
            assert!(read.null_move.is_none() || record.result.is_none());
            write_again(main_line(&record).expect("a game that was parsed"), &game);
            for evals in [EvalRefersTo::MovePlayed, EvalRefersTo::PositionReached] {
                let rules = TargetRules {
                    evals: Some(evals),
                    played: true,
                    noise: false,
                    curve: Curve::Lichess,
                    alternatives: None,
                };
                give_samples(&record, &rules);
            }
        }
    }
}

/// Writes a game with the tags of its source, and asserts that it reads back unchanged.
fn write_again(game: Game, text: &[u8]) {
    let annotated = AnnotatedGame {
        game,
        judged: Vec::new(),
        result: None,
        comment: Some(String::from_utf8_lossy(text).into_owned()),
        tags: tags(text),
    };
    let written = annotated.to_pgn(1);
    let games: Vec<_> = Games::new(written.as_bytes())
        .map_while(Result::ok)
        .map(|game| game.text)
        .collect();
    assert_eq!(games, [written.as_bytes()]);
    let record = read_game(written.as_bytes())
        .expect("a game that was written")
        .record;
    let again = main_line(&record).expect("a game that was written");
    assert_eq!(again.plies().len(), annotated.game.plies().len());
    assert_eq!(again.current().key, annotated.game.current().key);
}

/// Reads test suites, line by line.
fn read_epd(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for line in text.lines() {
        if let Ok(entry) = epd::Entry::parse(line, 1) {
            let _ = (entry.question(), entry.most_points());
        }
    }
}

/// Reads puzzles and their positions.
fn read_puzzles(input: &[u8]) {
    if let Ok((puzzles, _)) = puzzles::parse(input, Path::new("fuzzed.csv")) {
        for puzzle in puzzles {
            assert!(puzzle.positions().count() > 0);
        }
    }
}

/// Reads all games of a shard and extracts their samples.
fn read_shard(input: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(input).unwrap();
    let Ok(shard) = Shard::open(file.path()) else {
        return;
    };
    for block in 0..shard.blocks().len() {
        for record in shard.read(block).unwrap_or_default() {
            let _ = main_line(&record);
            give_samples(&record, &shard.header.rules);
        }
    }
}

fn give_samples(record: &Record, rules: &TargetRules) {
    let variations = VariationWeight {
        first: 0.5,
        decay: 0.9,
    };
    let _ = replay(
        InputFormat::Classical,
        record,
        rules,
        variations,
        || true,
        |_| (),
    );
}

/// Extracts the samples of a chunk.
fn read_v6(input: &[u8]) {
    let chunk = Chunk::new("fuzzed".into(), input);
    let bad = |_| Ok::<(), V6Error>(());
    let read = chunk.samples(|| true, |_| (), bad);
    read.expect("damage does not end the iteration");
}
