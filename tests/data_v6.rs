//! Tests the encoding on real Lc0 chunks: positions, legal moves and whole games must match Lc0's.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use shakmaty::{Position, Role};
use tessera::chess::Game;
use tessera::data::Legal;
use tessera::data::Wdl;
use tessera::data::v6::{
    ADJUDICATED, CUT_OFF, Chunk, Ending, Expectation, PROVEN, RECORD_SIZE, Searched, V6Fault,
    V6Record, game_records, write_chunk,
};
use tessera::encode::{BOARDS, HISTORY, Input, PLANES_PER_BOARD, WIDTH, policy_index, policy_move};

/// Returns the chunks. If the data is missing, prints a note and returns none.
fn chunks() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/lc0-v6");
    let mut folders = vec![folder.clone()];
    let mut chunks = Vec::new();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            match path.extension() {
                None if path.is_dir() => folders.push(path),
                Some(extension) if extension == "gz" => chunks.push(path),
                _ => {}
            }
        }
    }
    if chunks.is_empty() {
        crate::skip::skip(&format!("chunks in {}", folder.display()));
    }
    chunks.sort();
    chunks
}

fn records(chunk: &Path) -> Vec<V6Record> {
    let chunk = Chunk::open(chunk).unwrap();
    chunk.records().map(|record| *record.unwrap()).collect()
}

/// Encodes a row again, given only its boards and its position.
fn encode_again(input: &Input) -> Input {
    let position = input.position().unwrap();
    let turn = position.turn();
    let orient = |squares: shakmaty::Bitboard| turn.fold_wb(squares.0, squares.flip_vertical().0);
    let mut words = [0; WIDTH];
    for (age, planes) in words[..BOARDS].chunks_mut(PLANES_PER_BOARD).enumerate() {
        let board = match age {
            0 => Some(position.board().clone()),
            _ => input.board(age).unwrap(),
        };
        let Some(board) = board else { continue };
        for (plane, role) in Role::ALL.into_iter().enumerate() {
            planes[plane] = orient(board.by_role(role) & board.by_color(turn));
            planes[plane + 6] = orient(board.by_role(role) & board.by_color(!turn));
        }
        // The repetition plane depends on history that the boards do not contain.
        planes[12] = input.words()[age * PLANES_PER_BOARD + 12];
    }
    words[BOARDS..].copy_from_slice(&input.words()[BOARDS..]);
    let rights = position.castles().castling_rights();
    let claimed = words[BOARDS..BOARDS + 4]
        .iter()
        .fold(0, |all, &rook| all | rook);
    assert_eq!(orient(rights), claimed);
    assert_eq!(u64::from(position.halfmoves()), words[BOARDS + 5]);
    Input::from_words(words)
}

#[test]
fn planes_to_position_to_planes_is_the_identity() {
    for chunk in chunks() {
        for (number, record) in records(&chunk).iter().enumerate() {
            let input = record.input().unwrap();
            let mut again = *record;
            again.planes = [0; BOARDS];
            again.set_input(&encode_again(&input));
            assert!(
                bytemuck::bytes_of(&again) == bytemuck::bytes_of(record),
                "{}, record {number}",
                chunk.display()
            );
        }
    }
}

#[test]
fn moves_with_a_probability_are_the_legal_ones() {
    for chunk in chunks() {
        for (number, record) in records(&chunk).iter().enumerate() {
            let position = record.input().unwrap().position().unwrap();
            let legal = Legal::of(&position.legal_moves(), position.turn());
            assert_eq!(
                record.legal(),
                legal,
                "{}, record {number}",
                chunk.display()
            );
        }
    }
}

#[test]
fn replayed_games_give_every_record() {
    let mut replayed = 0;
    for chunk in chunks() {
        let records = records(&chunk);
        let first = records[0].input().unwrap();
        if first != Input::encode(&Game::default()) {
            eprintln!("{} does not begin at the initial position", chunk.display());
            continue;
        }
        let mut game = Game::default();
        for (number, record) in records.iter().enumerate() {
            let input = Input::encode(&game);
            let expected = record.input().unwrap();
            for (word, (ours, theirs)) in input.words().iter().zip(expected.words()).enumerate() {
                assert_eq!(
                    ours,
                    theirs,
                    "{}, record {number}, word {word}",
                    chunk.display()
                );
            }
            let mv = policy_move(game.position(), record.played_idx).unwrap();
            game.play(mv);
            replayed += 1;
        }
    }
    eprintln!("{replayed} records replayed over {HISTORY} boards of history");
}

#[test]
fn samples_hold_what_the_search_found() {
    for chunk in chunks() {
        for record in records(&chunk) {
            let sample = record.sample().unwrap();
            let position = sample.input.position().unwrap();
            let tessera::data::Policy::Distribution(moves) = sample.policy else {
                panic!("{}: no policy", chunk.display());
            };
            let sum: f32 = moves.iter().map(|&(_, probability)| probability).sum();
            assert!((sum - 1.0).abs() < 1e-3, "{sum}");
            assert!(moves.iter().all(|&(index, _)| sample.legal.contains(index)));
            let best = policy_move(&position, record.best_idx).unwrap();
            assert_eq!(policy_index(best, position.turn()), { record.best_idx });
            assert!(sample.q.unwrap().abs() <= 1.0 && sample.moves_left.unwrap() >= 0.0);
            assert_eq!(sample.result.unwrap().q(), { record.result_q });
        }
    }
}

/// Returns a record's search result.
fn searched(record: &V6Record) -> Searched {
    let expectation = |q, draw, moves_left| Expectation {
        q,
        draw,
        moves_left,
    };
    let probabilities = record.probabilities;
    let orig = expectation(record.orig_q, record.orig_d, record.orig_m);
    Searched {
        input: record.input().unwrap(),
        policy: record
            .legal()
            .iter()
            .map(|index| (index, probabilities[usize::from(index)]))
            .collect(),
        root: expectation(record.root_q, record.root_d, record.root_m),
        best: expectation(record.best_q, record.best_d, record.best_m),
        played: expectation(record.played_q, record.played_d, record.played_m),
        network: (!orig.q.is_nan()).then_some(orig),
        visits: record.visits,
        best_index: record.best_idx,
        played_index: record.played_idx,
        is_proven: record.invariance_info & PROVEN != 0,
        policy_divergence: record.policy_kld,
    }
}

#[test]
fn rewritten_games_equal_lc0s_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    for chunk in chunks() {
        let records = records(&chunk);
        let game: Vec<Searched> = records.iter().map(searched).collect();
        let first = &records[0];
        let result = match (first.result_d, first.result_q) {
            (1.0, _) => Wdl::Draw,
            (_, q) if q > 0.0 => Wdl::Win,
            _ => Wdl::Loss,
        };
        let ending = Ending {
            result: Some(match first.black_to_move {
                0 => result,
                _ => result.reversed(),
            }),
            is_adjudicated: first.invariance_info & ADJUDICATED != 0,
            is_cut_off: first.invariance_info & CUT_OFF != 0,
        };
        let written = folder.path().join("game.gz");
        write_chunk(&written, &game_records(&game, &ending)).unwrap();
        assert!(
            unpacked(&written) == unpacked(&chunk),
            "{}",
            chunk.display()
        );
    }
    let left_behind = std::fs::read_dir(folder.path()).unwrap();
    assert!(left_behind.count() <= 1);
}

/// Returns a chunk's bytes, decompressed independently of the writer.
fn unpacked(chunk: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(File::open(chunk).unwrap());
    reader.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn errors_locate_the_damage_in_chunks() {
    let Some(chunk) = chunks().into_iter().next() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let error = |bytes: &[u8]| {
        let path = folder.path().join("damaged.gz");
        std::fs::write(&path, bytes).unwrap();
        let chunk = Chunk::open(&path).unwrap();
        let errors: Vec<_> = chunk.records().filter_map(Result::err).collect();
        assert_eq!(errors.len(), 1);
        let error = errors.into_iter().next().unwrap();
        assert!(error.to_string().contains("damaged.gz"));
        (error.offset, error.fault)
    };
    let packed = std::fs::read(&chunk).unwrap();
    let (offset, fault) = error(&packed[..packed.len() / 2]);
    assert_eq!(offset % RECORD_SIZE as u64, 0);
    assert!(matches!(fault, V6Fault::Unpack(_)), "{fault}");
    assert!(matches!(
        error(b"not gzip at all").1,
        V6Fault::Version(0x2074_6f6e)
    ));

    let mut plain = unpacked(&chunk);
    let pack = |bytes: &[u8]| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    };
    let (offset, fault) = error(&pack(&plain[..RECORD_SIZE + 100]));
    assert_eq!(offset, RECORD_SIZE as u64);
    assert!(matches!(fault, V6Fault::Truncated(100)), "{fault}");
    plain[2 * RECORD_SIZE] = 9;
    let (offset, fault) = error(&pack(&plain));
    assert_eq!(offset, 2 * RECORD_SIZE as u64);
    assert!(matches!(fault, V6Fault::Version(9)), "{fault}");
}
