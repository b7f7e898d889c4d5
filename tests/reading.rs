//! Games, positions and puzzles from other programs are either read or rejected with a precise
//! error: in the common formats, through pipes and under wrong names.

use assert_cmd::Command;
use std::path::{Path, PathBuf};

mod messages;
mod overwriting;
#[cfg(unix)]
mod pipes;

const TESSERA: &str = env!("CARGO_BIN_EXE_tessera");

/// Two games, one with tags and one without.
const GAMES: &str = "[Event \"a\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 1-0\n\n1. d4 d5 0-1\n";

fn train(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tessera-train"));
    command.args(arguments);
    command
}

fn tessera(arguments: &[&str]) -> Command {
    let mut command = Command::new(TESSERA);
    command.args(arguments);
    command
}

/// Runs a command that must succeed; returns its standard output and standard error.
#[track_caller]
fn told(mut command: Command) -> (String, String) {
    let done = command.assert().success();
    let output = done.get_output();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Runs a command that must fail; returns its last line of error output.
#[track_caller]
fn failure(mut command: Command) -> String {
    let done = command.assert().failure();
    let said = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    said.lines().last().unwrap_or_default().to_owned()
}

/// Creates an empty folder.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.at(name), bytes).unwrap();
        self.path(name)
    }

    /// Packs the games in a file; returns the output of `tessera-train pack`.
    #[track_caller]
    fn pack(&self, games: &str) -> (String, String) {
        let (input, output) = (self.write("games.pgn", games), self.path("out.shard"));
        let packed = told(train(&["pack", &input, "-o", &output, "--played"]));
        (packed.0.replace(&output, "out"), packed.1)
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packer, bytes).unwrap();
    packer.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 1).unwrap()
}

#[test]
fn invalid_moves_are_named_and_skip_their_game() {
    let folder = Folder::new();
    let games = format!("1. e4 e5 2. Sf3 Sc6 3. d4 exd4 1-0\n\n{GAMES}");
    let (packed, said) = folder.pack(&games);
    assert!(packed.starts_with("out: 2 games, 5 samples"), "{packed}");
    assert!(packed.ends_with("1 skipped\n"), "{packed}");
    assert!(
        said.contains("game 1, line 1: `Sf3` at ply 3 is not a move"),
        "{said}"
    );
    let (input, output) = (folder.path("games.pgn"), folder.path("strict.shard"));
    let strict = train(&["pack", &input, "-o", &output, "--played", "--strict"]);
    assert!(failure(strict).contains("`Sf3` at ply 3"));
    assert!(!Path::new(&output).exists());
    let (stats, said) = told(train(&["stats", &input]));
    assert!(
        stats.contains("\n  unusable records               1\n"),
        "{stats}"
    );
    assert!(said.contains("game 1, line 1: `Sf3` at ply 3"), "{said}");
}

#[test]
fn null_moves_are_counted_where_they_end_a_game() {
    let folder = Folder::new();
    for null in ["0000", "@@@@", "--"] {
        let games = format!("1. d4 (1. {null} e5) d5 0-1\n\n1. e4 e5 2. {null} Nf6 1-0\n");
        let (packed, said) = folder.pack(&games);
        assert!(packed.starts_with("out: 2 games, 4 samples"), "{packed}");
        assert!(
            packed.ends_with("0 skipped, 1 ended by a null move\n"),
            "{packed}"
        );
        let place = format!("games.pgn, game 2, line 3, from the null move `{null}` at ply 3");
        assert!(said.contains(&place), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        let (input, output) = (folder.path("games.pgn"), folder.path("strict.shard"));
        let strict = train(&["pack", &input, "-o", &output, "--played", "--strict"]);
        assert!(failure(strict).contains(&place));
        assert!(!Path::new(&output).exists());
        assert!(told(train(&["stats", &input])).1.contains(&place));
        assert!(failure(train(&["stats", "--strict", &input])).contains(&place));
    }
    let json = told(train(&["stats", &folder.path("out.shard"), "--json"])).0;
    let stats: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(stats["results"]["unknown"], 1, "{json}");
    let targets = &stats["targets"];
    assert_eq!(
        (&targets["result"], &targets["moves_left"]),
        (&2.into(), &2.into())
    );
}

#[test]
fn an_illegal_move_in_a_variation_costs_only_the_variation() {
    let folder = Folder::new();
    let game = |variation: &str| {
        format!(
            "1. e4 {{[%eval 0.3]}} e5 {{[%eval 0.2]}} {variation} 2. Nf3 {{[%eval 0.3]}} \
             (2. f4 {{[%eval 0.1]}} exf4) 2... Nc6 {{[%eval 0.2]}} 1-0\n"
        )
    };
    let output = folder.path("out.shard");
    let pack = |games: &str, more: &[&str]| {
        let input = folder.write("games.pgn", games);
        let pack = ["pack", &input, "-o", &output, "--evals", "analysis"];
        train(&[&pack[..], more].concat())
    };
    let (whole, said) = told(pack(&game(""), &[]));
    assert!(said.is_empty(), "{said}");
    let (packed, said) = told(pack(&game("(1... c5 {[%eval 0.2]} 2. Ke3 (2. c3))"), &[]));
    let place = "a variation of .*, game 1, line 1: `Ke3` at ply 3 of a variation is not a legal";
    let (what, place) = place.split_once(".*").unwrap();
    assert!(said.contains(what) && said.contains(place), "{said}");
    assert_eq!(packed.replace(", 1 variation left out", ""), whole);
    assert_ne!(packed, whole);
    let strict = pack(&game("(1... c5 2. Ke3)"), &["--strict"]);
    assert!(failure(strict).contains(place));
}

#[test]
fn games_that_share_a_line_are_read_each() {
    let folder = Folder::new();
    let games = "1. e4 e5 2. Nf3 1-0 1. d4 Sf6 0-1 1. c4 e5 *\n";
    let (packed, said) = folder.pack(games);
    assert!(packed.starts_with("out: 2 games, 5 samples"), "{packed}");
    assert!(packed.ends_with("1 skipped\n"), "{packed}");
    let place = "games.pgn, game 2, line 1: `Sf6` at ply 2 is not a move";
    let in_review = "games.pgn, game 2, line 1: read up to 1. d4: 1... Sf6 is not a move";
    assert!(said.contains(place), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let input = folder.path("games.pgn");
    // Every command that reads games, and what it prints about the second one.
    let output = folder.path("out.pgn");
    let uniform = ["--backend", "uniform", "--nodes", "1"];
    let review = ["review", &input, "--judge", "none"];
    let (_, said) = told(tessera(&[&review[..], &uniform].concat()));
    assert!(said.contains(in_review), "{said}");
    let (stats, said) = told(train(&["stats", &input]));
    assert!(
        stats.contains("unusable records               1\n"),
        "{stats}"
    );
    assert!(said.contains(place), "{said}");
    // Ratings are compared with moves after the tenth ply.
    let long = "1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. c3 Nf6 5. d3 d6 6. O-O O-O 1-0";
    let rated =
        format!("[WhiteElo \"1500\"] {long} [WhiteElo \"1500\"] 1. d4 Sf6 0-1 1. c4 e5 *\n");
    folder.write("games.pgn", rated);
    let (_, said) = told(tessera(&["match-moves", &input, "--backend", "uniform"]));
    assert!(said.contains(place), "{said}");
    let engine = ["--engine", TESSERA, "--set", "Backend=uniform"];
    let label = ["label", &input, "-o", &output, "--nodes", "1"];
    let (_, said) = told(train(&[&label[..], &engine].concat()));
    assert!(said.contains(place), "{said}");
    let labelled = std::fs::read_to_string(&output).unwrap();
    assert_eq!(labelled.matches("[Event ").count(), 2, "{labelled}");
}

#[test]
fn games_without_tags_and_escaped_lines_are_counted_correctly() {
    let folder = Folder::new();
    let games = "1. e4 e5 1-0\n\n1. d4 d5 0-1\n\n% no game\n";
    let (packed, said) = folder.pack(games);
    assert!(packed.starts_with("out: 2 games, 4 samples"), "{packed}");
    assert!(
        packed.ends_with("0 games without a target, 0 skipped\n"),
        "{packed}"
    );
    assert!(said.is_empty(), "{said}");
}

#[test]
fn games_are_left_out_by_positions_of_any_kind() {
    let folder = Folder::new();
    let games = folder.write("games.pgn", GAMES);
    let after_e4 = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -";
    let puzzles = format!("PuzzleId,FEN,Moves,Rating\na,{},e2e4 e7e5,1500\n", START);
    for (name, bytes) in [
        (
            "a.epd",
            format!("\u{feff}{after_e4} id \"no move\";\n").into_bytes(),
        ),
        ("a.fen", format!("{after_e4} 0 1\n").into_bytes()),
        ("a.epd.gz", gzip(format!("{after_e4} bm e5;\n").as_bytes())),
        ("a.csv", puzzles.clone().into_bytes()),
        ("a.csv.zst", zstd(puzzles.as_bytes())),
        ("a.csv.gz", gzip(puzzles.as_bytes())),
    ] {
        let without = folder.write(name, bytes);
        let output = folder.path("out.shard");
        let pack = [
            "pack",
            &games,
            "-o",
            &output,
            "--played",
            "--without",
            &without,
        ];
        let (packed, said) = told(train(&pack));
        assert!(packed.contains(": 1 game, 2 samples"), "{name}: {packed}");
        assert!(packed.ends_with(", 1 left out\n"), "{name}: {packed}");
        assert!(said.is_empty(), "{name}: {said}");
    }
    let odd = folder.write("odd.epd", format!("{after_e4}\nnonsense\n"));
    let output = folder.path("out.shard");
    let pack = ["pack", &games, "-o", &output, "--played", "--without", &odd];
    let (_, said) = told(train(&pack));
    assert!(said.contains("odd.epd, line 2: `nonsense`"), "{said}");
}

#[test]
fn puzzles_and_suites_are_read_packed_and_marked() {
    let folder = Folder::new();
    let mates = "6k1/2p2ppp/8/8/8/8/5PPP/QR4K1";
    let rows = format!(
        "\u{feff}PuzzleId,FEN,Moves,Rating\na,{mates} b - - 0 1,c7c6 b1b8,1500\n\
         b,{mates} b - - 0 1,c7c5 a1a8,\n"
    );
    let suite = format!("\u{feff}{mates} w - - bm Rb8#;\n{mates} w - - dm 1;\n");
    for (name, bytes) in [
        ("a.csv", rows.clone().into_bytes()),
        ("a.csv.zst", zstd(rows.as_bytes())),
        ("a.csv.gz", gzip(rows.as_bytes())),
    ] {
        let puzzles = folder.write(name, bytes);
        let arguments = [
            "puzzles",
            &puzzles,
            "--agent",
            "value",
            "--backend",
            "uniform",
        ];
        let (table, said) = told(tessera(&arguments));
        assert!(
            table.contains("all             1      1   100.0 %"),
            "{table}"
        );
        assert!(said.contains("left out: "), "{said}");
        assert!(
            said.contains("line 3: the column `Rating` is empty"),
            "{said}"
        );
    }
    let suite = folder.write("a.epd", suite);
    let arguments = ["epd", &suite, "--agent", "value", "--backend", "uniform"];
    let (table, said) = told(tessera(&arguments));
    assert!(table.starts_with("2 of 2 solved"), "{table}");
    assert!(said.is_empty(), "{said}");
}

/// The initial position.
const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
