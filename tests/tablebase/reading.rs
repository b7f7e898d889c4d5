//! Folders and files: found, read, or skipped.

use crate::tablebase::endgame::Endgame;
use crate::tablebase::rook_knight::RookKnight;
use crate::tablebase::table::{
    BLESSED_LOSS, CURSED_WIN, DRAW, write_dtz, write_flat, write_rook_knight, write_wdl,
};
use crate::tablebase::{Tables, game, game_at, generated, verdict_of};
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use shakmaty::fen::Fen;
use shakmaty::{Chess, EnPassantMode, Position, Role};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};
use tessera::tablebase::{Tablebase, TablebaseError, Verdict};

#[test]
fn tables_agree_with_retrograde_analysis() {
    let tables = Tables::write();
    let tablebase = tables.tablebase();
    let mut counts = [0; 3];
    for endgame in &tables.endgames {
        for (position, value) in endgame.positions().step_by(5) {
            if position.legal_moves().is_empty() {
                continue;
            }
            let verdict = verdict_of(value);
            assert_eq!(tablebase.probe(&position), Some(verdict), "{position:?}");
            counts[verdict as usize] += 1;
        }
    }
    assert!(counts.iter().all(|&count| count > 5_000), "{counts:?}");
}

/// Returns a Python with python-chess, if available.
fn python() -> Option<PathBuf> {
    crate::python::with_or_skip("chess.syzygy")
}

/// Asserts that python-chess reads these values from the tables in a folder.
fn assert_python_reads(python: &Path, folder: &Path, positions: &[(Chess, i32)]) {
    let mut lines = String::new();
    for (position, value) in positions {
        let fen = Fen::from_position(position, EnPassantMode::Legal);
        writeln!(lines, "{fen};{value}").unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/syzygy.py");
    let mut child = Command::new(python)
        .arg(script)
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // The script ends at the first difference.
    let _ = input.write_all(lines.as_bytes());
    drop(input);
    let output = child.wait_with_output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    let checked = String::from_utf8_lossy(&output.stdout);
    assert_eq!(checked.trim(), positions.len().to_string());
}

/// Our test tables are in Syzygy's format.
#[test]
#[ignore = "long: runs in tools/test --all"]
fn python_chess_reads_the_same() {
    let Some(python) = python() else { return };
    let tables = Tables::write();
    let all = tables.endgames.iter();
    let positions: Vec<_> = all
        .flat_map(|endgame| endgame.positions().step_by(61))
        .filter(|(position, _)| !position.legal_moves().is_empty())
        .collect();
    assert!(positions.len() > 3_000, "{}", positions.len());
    assert_python_reads(&python, tables.folder.path(), &positions);
}

/// Endgames with four pieces in which either side may win.
#[test]
#[ignore = "long: runs in tools/test --all"]
fn four_piece_tables_are_read_as_python_chess_does() {
    let folder = tempfile::tempdir().unwrap();
    let rook = Endgame::solve(Role::Rook, &[]);
    let solved = RookKnight::solve(&rook);
    write_rook_knight(folder.path(), &solved);
    write_wdl(folder.path(), &rook);
    write_dtz(folder.path(), &rook);
    write_flat(folder.path(), Role::Knight, [DRAW; 2]);
    let tablebase = Tablebase::new(folder.path().to_str().unwrap());
    let inventory = tablebase.inventory();
    assert_eq!((inventory.wdl, inventory.dtz, inventory.pieces), (3, 2, 4));
    let positions: Vec<_> = solved.positions(2_503).collect();
    let mut counts = [0; 3];
    for (position, value) in &positions {
        let verdict = verdict_of(*value);
        assert_eq!(tablebase.probe(position), Some(verdict), "{position:?}");
        counts[verdict as usize] += 1;
        let game = game_at(position, 0);
        let moves = position.legal_moves();
        let best = tablebase.best_moves(&game, &moves).unwrap();
        assert_eq!(best.verdict, verdict, "{position:?}");
        assert!(!best.moves.is_empty());
    }
    assert!(counts.iter().all(|&count| count > 100), "{counts:?}");
    let longest = positions.iter().map(|&(_, value)| value).max();
    println!("{counts:?}, mate in {longest:?} plies at most");
    if let Some(python) = python() {
        assert_python_reads(&python, folder.path(), &positions);
    }
}

#[test]
fn generated_tables_agree() {
    let Some(folder) = generated() else { return };
    let tables = Tables::write();
    let tablebase = Tablebase::new(folder.to_str().unwrap());
    for endgame in &tables.endgames {
        for (position, value) in endgame.positions().step_by(5) {
            if !position.legal_moves().is_empty() {
                let verdict = Some(verdict_of(value));
                assert_eq!(tablebase.probe(&position), verdict, "{position:?}");
            }
        }
    }
    println!("{}", tablebase.inventory());
}

#[test]
fn only_positions_that_tables_cover_are_looked_up() {
    let tables = Tables::write();
    let tablebase = tables.tablebase();
    for (fen, verdict) in [
        ("8/8/8/4k3/8/8/8/K6Q w - - 0 1", Some(Verdict::Win)),
        ("8/8/8/4k3/8/8/8/K6Q b - - 0 1", Some(Verdict::Loss)),
        ("8/8/8/4K3/8/8/8/k6q b - - 0 1", Some(Verdict::Win)),
        // The 50-move counter is not zero.
        ("8/8/8/4k3/8/8/8/K6Q w - - 1 1", None),
        ("4k3/8/8/8/8/8/8/4K2R w K - 0 1", None),
        ("8/8/8/4k3/8/8/8/KQ5Q w - - 0 1", None),
        (
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            None,
        ),
        // There are few enough pieces, but the folder lacks this table.
        ("8/8/8/4k3/8/8/8/K6n w - - 0 1", Some(Verdict::Draw)),
        ("8/8/8/4kq2/8/8/8/K6Q w - - 0 1", None),
    ] {
        assert_eq!(tablebase.probe(game(fen).position()), verdict, "{fen}");
    }
}

#[test]
fn cursed_wins_are_draws_under_the_50_move_rule() {
    let folder = tempfile::tempdir().unwrap();
    // No queen wins this slowly, but a table can claim that it does.
    write_flat(folder.path(), Role::Queen, [CURSED_WIN, BLESSED_LOSS]);
    let mut tablebase = Tablebase::new(folder.path().to_str().unwrap());
    let white = game("8/8/8/4k3/8/8/8/K6Q w - - 0 1");
    let black = game("8/8/8/4k3/8/8/8/K6Q b - - 0 1");
    let probe = |tablebase: &Tablebase| {
        [&white, &black].map(|game| tablebase.probe(game.position()).unwrap())
    };
    assert_eq!(probe(&tablebase), [Verdict::Draw; 2]);
    tablebase.fifty_move_rule = false;
    assert_eq!(probe(&tablebase), [Verdict::Win, Verdict::Loss]);
}

#[test]
fn folders_are_listed_with_their_faults() {
    let tables = Tables::write();
    let [other, empty] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    write_flat(other.path(), Role::Knight, [DRAW; 2]);
    fs::write(other.path().join("KRRvK.rtbw"), [0; 81]).unwrap();
    fs::write(other.path().join("notes.txt"), "not a table").unwrap();
    let missing = other.path().join("missing");
    let path = env::join_paths([tables.folder.path(), other.path(), empty.path(), &missing]);
    let tablebase = Tablebase::new(path.unwrap().to_str().unwrap());
    let inventory = tablebase.inventory();
    assert_eq!((inventory.wdl, inventory.dtz, inventory.pieces), (5, 3, 3));
    assert_eq!(
        inventory.to_string(),
        "found 5 WDL and 3 DTZ tablebases of up to 3 pieces"
    );
    use TablebaseError::{Empty, File, Folder};
    let [first, second, third] = &inventory.problems[..] else {
        panic!("{:?}", inventory.problems);
    };
    assert!(matches!(first, File { file, .. } if file.ends_with("KRRvK.rtbw")));
    assert!(matches!(second, Empty { folder } if folder == empty.path()));
    assert!(matches!(third, Folder { folder, .. } if *folder == missing));
    assert!(second.to_string().contains(empty.path().to_str().unwrap()));

    let none = Tablebase::default();
    assert!(none.inventory().problems.is_empty());
    assert_eq!(none.inventory().to_string(), "found no tablebases");
}

#[test]
fn damaged_tables_count_as_missing() {
    let tables = Tables::write();
    let wdl = tables.folder.path().join("KQvK.rtbw");
    let game = game("8/8/8/4k3/8/8/8/K6Q w - - 0 1");
    let length = fs::metadata(&wdl).unwrap().len() as usize;
    for content in [vec![0; length], vec![0xff; length], Vec::from([0x71; 16])] {
        fs::write(&wdl, content).unwrap();
        let tablebase = tables.tablebase();
        assert_eq!(tablebase.probe(game.position()), None);
        let moves = game.position().legal_moves();
        assert_eq!(tablebase.best_moves(&game, &moves), None);
    }
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn damage_is_never_fatal() {
    let tables = Tables::write();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let samples: Vec<_> = tables.endgames[2].positions().step_by(2003).collect();
    for name in ["KPvK.rtbw", "KPvK.rtbz"] {
        let file = tables.folder.path().join(name);
        let whole = fs::read(&file).unwrap();
        for round in 0..100 {
            let mut damaged = whole.clone();
            // Damage to the header does the most harm, so it is hit more often than the rest.
            let end = if round % 2 == 0 { 150 } else { damaged.len() };
            for _ in 0..round % 7 + 1 {
                damaged[random.random_range(0..end)] = random.random();
            }
            fs::write(&file, damaged).unwrap();
            let tablebase = tables.tablebase();
            for (position, _) in &samples {
                let game = game_at(position, 0);
                let moves = position.legal_moves();
                let _ = (
                    tablebase.probe(position),
                    tablebase.best_moves(&game, &moves),
                );
            }
        }
        fs::write(&file, whole).unwrap();
    }
}
