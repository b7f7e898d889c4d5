//! Positions from a file of games, in which people's moves are predicted.

use super::Band;
use crate::data::held_out::is_held_out;
use crate::data::pgn;
use crate::data::record::Record;
use crate::data::sample::Wdl;
use crate::eval::SuiteError;
use rand::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::path::Path;

/// The selection of the positions to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// The share of the games to use, selected by [`is_held_out`], in 0…1; 1 uses all.
    pub held_out: f64,
    /// Whether to use the other games instead, on which networks may be trained.
    pub is_training: bool,
    /// The number of plies to skip at the start of a game; Maia's authors skip ten.
    pub skip_plies: usize,
    /// The lowest rating of a player whose moves are predicted.
    pub lowest: u16,
    /// The maximum number of positions per band, sampled evenly; `None` uses all.
    pub per_band: Option<usize>,
    /// Seed of the sample.
    pub seed: u64,
}

/// A position in which a person made a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The game's index in [`Positions`].
    pub game: usize,
    /// The number of plies before the position.
    pub ply: usize,
    /// The rating of the player to move.
    pub rating: u16,
    /// The result for the player to move, if the game has ended.
    pub result: Option<Wdl>,
}

/// Positions from games, ordered by game and ply.
#[derive(Clone, Debug, Default)]
pub struct Positions {
    /// The games, each with the indices of its positions.
    pub games: Vec<(Record, Range<usize>)>,
    /// The positions.
    pub positions: Vec<Position>,
    /// Number of games in the file, including skipped ones.
    pub games_read: usize,
    /// Number of games that cannot be read or replayed.
    pub games_unusable: usize,
}

impl Positions {
    fn add(&mut self, mut record: Record, plies: &[usize]) {
        let first = self.positions.len();
        let game = self.games.len();
        self.positions.extend(plies.iter().filter_map(|&ply| {
            let (rating, result) = mover(&record, ply)?;
            Some(Position {
                game,
                ply,
                rating,
                result,
            })
        }));
        record.nodes.retain(|node| node.depth == 0);
        self.games.push((record, first..self.positions.len()));
    }
}

/// Returns the rating of the player to move, if known, and the result for that player.
fn mover(record: &Record, ply: usize) -> Option<(u16, Option<Wdl>)> {
    let begins = record.first_mover();
    let turn = match ply.is_multiple_of(2) {
        true => begins,
        false => begins.other(),
    };
    let rating = turn.fold_wb(record.ratings.white, record.ratings.black)?;
    Some((rating, record.result.map(|result| result.seen_by(turn))))
}

/// Reads the games in a PGN, plain or compressed, and selects positions. A game that is not chess
/// or cannot be read is counted, passed to `unusable` and skipped. The moves of unrated players are
/// skipped.
///
/// # Errors
/// [`SuiteError`] if the file cannot be read, or if nothing in it is selected.
pub fn read(
    path: &Path,
    selection: &Selection,
    mut unusable: impl FnMut(SuiteError),
) -> Result<Positions, SuiteError> {
    let failed = SuiteError::read(path);
    let mut found = Positions::default();
    let mut games: Vec<(Record, Vec<usize>)> = Vec::new();
    // For each band, the positions with the lowest random numbers; the highest of these is on top.
    let mut drawn: BTreeMap<Band, BinaryHeap<(u64, usize, usize)>> = BTreeMap::new();
    for text in pgn::open(path, |file| file).map_err(&failed)? {
        found.games_read += 1;
        let text = text.map_err(&failed)?;
        let record = match pgn::parse_game(&text) {
            Ok(record) => record,
            Err(source) => {
                found.games_unusable += 1;
                unusable(SuiteError::Game {
                    path: path.to_owned(),
                    game: text.place,
                    source,
                });
                continue;
            }
        };
        let hash = record.hash();
        if is_held_out(hash, selection.held_out) == selection.is_training {
            continue;
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(selection.seed ^ hash);
        for ply in selection.skip_plies..record.main_line().count() {
            let draw = random.next_u64();
            let rating = mover(&record, ply).map(|(rating, _)| rating);
            if let Some(rating) = rating.filter(|&rating| rating >= selection.lowest) {
                let band = drawn.entry(Band::of(rating)).or_default();
                band.push((draw, games.len(), ply));
                if selection.per_band.is_some_and(|most| band.len() > most) {
                    band.pop();
                }
            }
        }
        games.push((record, Vec::new()));
    }
    let lacking = lacking(&found, &games, selection);
    for (_, game, ply) in drawn.into_values().flatten() {
        games[game].1.push(ply);
    }
    for (record, mut plies) in games {
        if !plies.is_empty() {
            plies.sort_unstable();
            found.add(record, &plies);
        }
    }
    match found.positions.is_empty() {
        true => Err(SuiteError::Unselected {
            path: path.to_owned(),
            reason: lacking,
        }),
        false => Ok(found),
    }
}

/// Returns why nothing was selected; `games` are those that `held_out` selects.
fn lacking(found: &Positions, games: &[(Record, Vec<usize>)], selection: &Selection) -> String {
    let Selection {
        held_out,
        skip_plies,
        lowest,
        ..
    } = selection;
    let ratings = games.iter().map(|(record, _)| record.ratings);
    let best = ratings.filter_map(|it| it.white.max(it.black)).max();
    match best {
        _ if found.games_read == 0 => "it holds no game".to_owned(),
        _ if found.games_unusable == found.games_read => "no game in it can be read".to_owned(),
        _ if games.is_empty() => format!("no game is in the held-out share of {held_out}"),
        None => "the games have no ratings (tags WhiteElo and BlackElo)".to_owned(),
        Some(best) if best < *lowest => {
            format!("no player is rated {lowest} or higher, the best one is rated {best}")
        }
        Some(_) => format!(
            "after the first {skip_plies} plies no player rated {lowest} or higher has moved"
        ),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::eval::move_match) const ALL: Selection = Selection {
        held_out: 1.0,
        is_training: false,
        skip_plies: 0,
        lowest: 0,
        per_band: None,
        seed: 0,
    };

    /// Two games between rated players, one with an unrated player, and one that is invalid.
    const GAMES: &str = "\
[Result \"1-0\"]\n[WhiteElo \"1150\"]\n[BlackElo \"1250\"]\n\n1. e4 e5 (1... c5) 2. Nf3 1-0\n
[Result \"1/2-1/2\"]\n[WhiteElo \"2450\"]\n\n1. d4 d5 2. c4 e6 1/2-1/2\n
[WhiteElo \"2150\"]\n[BlackElo \"900\"]\n\n1. Ke2 *\n
[FEN \"4k3/8/8/8/8/8/4P3/4K3 b - - 0 1\"]\n[WhiteElo \"2199\"]\n[BlackElo \"900\"]\n\n1... Kd7 2. e4 *\n";

    pub(in crate::eval::move_match) fn positions(text: &str, selection: &Selection) -> Positions {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("games.pgn");
        std::fs::write(&path, text).unwrap();
        read(&path, selection, |_| ()).unwrap()
    }

    #[test]
    fn names_unreadable_games() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("games.pgn");
        std::fs::write(&path, GAMES.replace("1. Ke2", "1. e4 Sf6")).unwrap();
        let mut said = Vec::new();
        read(&path, &ALL, |error| said.push(error.to_string())).unwrap();
        let [said] = &said[..] else {
            panic!("{said:?}")
        };
        assert!(
            said.ends_with("games.pgn, game 3, line 12: `Sf6` at ply 2 is not a move"),
            "{said}"
        );
    }

    #[test]
    fn positions_belong_to_the_player_who_moves() {
        let found = positions(GAMES, &ALL);
        assert_eq!((found.games_read, found.games_unusable), (4, 1));
        let rows: Vec<_> = found
            .positions
            .iter()
            .map(|position| {
                let Position {
                    game,
                    ply,
                    rating,
                    result,
                } = *position;
                (game, ply, rating, result)
            })
            .collect();
        let expected = [
            (0, 0, 1150, Some(Wdl::Win)),
            (0, 1, 1250, Some(Wdl::Loss)),
            (0, 2, 1150, Some(Wdl::Win)),
            (1, 0, 2450, Some(Wdl::Draw)),
            (1, 2, 2450, Some(Wdl::Draw)),
            (2, 0, 900, None),
            (2, 1, 2199, None),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn openings_and_low_ratings_are_left_out() {
        let found = positions(
            GAMES,
            &Selection {
                skip_plies: 1,
                lowest: 1200,
                ..ALL
            },
        );
        let ratings: Vec<_> = found
            .positions
            .iter()
            .map(|position| position.rating)
            .collect();
        assert_eq!(ratings, [1250, 2450, 2199]);
    }

    #[test]
    fn states_why_no_position_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("games.pgn");
        let select = |held_out, skip_plies, lowest| Selection {
            held_out,
            skip_plies,
            lowest,
            ..ALL
        };
        let unrated = "1. e4 e5 *\n";
        for (games, selection, expected) in [
            ("", ALL, "holds no game"),
            ("1. Ke2 *\n", ALL, "can be read"),
            (GAMES, select(0.0, 0, 0), "held-out share of 0"),
            (unrated, ALL, "no ratings (tags WhiteElo and BlackElo)"),
            (GAMES, select(1.0, 0, 3000), "the best one is rated 2450"),
            (GAMES, select(1.0, 10, 0), "after the first 10 plies"),
        ] {
            std::fs::write(&path, games).unwrap();
            let error = read(&path, &selection, |_| ()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    /// Games that differ in their first moves.
    fn many() -> String {
        let files = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let pairs = files
            .iter()
            .flat_map(|white| files.map(|black| (white, black)));
        pairs
            .map(|(white, black)| {
                format!(
                    "[WhiteElo \"1500\"]\n[BlackElo \"1700\"]\n\n1. {white}4 {black}5 2. Nf3 Nf6 *\n\n"
                )
            })
            .collect()
    }

    #[test]
    fn a_band_is_sampled_evenly_and_alike() {
        let text = many();
        let sample = |seed| {
            let selection = Selection {
                per_band: Some(32),
                seed,
                ..ALL
            };
            let found = positions(&text, &selection);
            found
                .positions
                .iter()
                .map(|position| {
                    let hash = found.games[position.game].0.hash();
                    (hash, position.ply)
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(sample(1).len(), 64);
        assert_eq!(sample(1), sample(1));
        assert_ne!(sample(1), sample(2));
        let late = sample(1).iter().filter(|&&(_, ply)| ply >= 2).count();
        assert!((20..44).contains(&late), "{late}");
    }

    #[test]
    fn the_games_held_out_are_those_that_no_training_saw() {
        let text = many();
        let games = |share| {
            let selection = Selection {
                held_out: share,
                ..ALL
            };
            let found = positions(&text, &selection);
            let hashes = found.games.iter().map(|(record, _)| record.hash());
            hashes.collect::<Vec<_>>()
        };
        let (all, some, fewer) = (games(1.0), games(0.3), games(0.15));
        assert_eq!(all.len(), 64);
        assert!(some.len() < 40 && fewer.len() < some.len(), "{some:?}");
        assert!(fewer.iter().all(|hash| some.contains(hash)));
        assert!(some.iter().all(|&hash| is_held_out(hash, 0.3)));
        let selection = Selection {
            held_out: 0.3,
            is_training: true,
            ..ALL
        };
        let training = positions(&text, &selection);
        let training: Vec<u64> = training.games.iter().map(|(it, _)| it.hash()).collect();
        assert_eq!(training.len() + some.len(), 64);
        assert!(training.iter().all(|hash| !some.contains(hash)));
    }
}
