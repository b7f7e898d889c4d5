//! Measures how well a network has learned the rules without being given them.
//!
//! At each ply of the validation games, this module records whether the likeliest move is legal,
//! and the total probability of the legal tokens, which is the probability that a sampled token is
//! legal. Errors compound over a game and are concentrated in a few situations, so the results are
//! split by ply and by situation.

use super::{GameObjective, GameOutputs, GameSamples};
use crate::chess::Game;
use crate::encode::{Token, Vocabulary};
use crate::torch;
use crate::train::distributed::{GroupError, World};
use crate::train::objective::{Diagnostics, totals};
use serde_json::{Map, Value, json};
use shakmaty::attacks::{between, bishop_attacks, rook_attacks};
use shakmaty::{Bitboard, Chess, Move, Position};
use tch::{Device, Kind, Tensor};

/// Number of plies per row of the table.
const PLIES: usize = 20;
/// Number of rows by ply; the last one covers all later plies as well.
const ROWS: usize = 10;
/// Situations in which knowing how pieces move is not enough. The first three are that the side to
/// move is in check, is in double check, or has a pinned piece; the others, that castling, an en
/// passant capture or a promotion is legal.
const SITUATIONS: [&str; 6] = [
    "check",
    "double_check",
    "pin",
    "castling",
    "en_passant",
    "promotion",
];

/// Counts over positions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    positions: f32,
    /// Number of positions in which the likeliest move is legal.
    legal: f32,
    /// Sum of the probabilities of legal tokens.
    mass: f32,
}

/// Counts by ply, followed by counts by situation.
type Counts = [Count; ROWS + SITUATIONS.len()];

/// Counts of predictions and of legal predictions, by ply and by situation.
#[derive(Debug)]
pub(in crate::train) struct Legality {
    /// The counts, f32 [rows, 3]; the columns are the fields of a [`Count`].
    sums: Tensor,
}

impl Diagnostics<GameObjective> for Legality {
    fn new(device: Device) -> Legality {
        let rows = Counts::default().len() as i64;
        Legality {
            sums: Tensor::zeros([rows, 3], (Kind::Float, device)),
        }
    }

    fn add(&mut self, outputs: &GameOutputs, samples: &GameSamples) {
        let mut counts = Counts::default();
        let next: Vec<Vec<i64>> =
            Vec::try_from(samples.next.to_device(Device::Cpu)).expect("rows of tokens");
        for (game, next) in next.iter().enumerate() {
            let logits = outputs.next.tokens.select(0, game as i64);
            let probabilities = torch::floats(&logits.softmax(-1, Kind::Float));
            count(&samples.vocabulary, &probabilities, next, &mut counts);
        }
        let fields: Vec<f32> = counts
            .iter()
            .flat_map(|count| [count.positions, count.legal, count.mass])
            .collect();
        let counts = Tensor::from_slice(&fields).view([-1, 3]);
        self.sums += counts.to_device(self.sums.device());
    }

    /// Returns one entry, `legality`, with these fields: `all` is the share of positions in which
    /// the likeliest move was legal, `by_ply` contains this share for each range of twenty plies,
    /// and `mass` is the mean probability of the legal tokens. For each situation, `situations`
    /// contains the number of `positions`, the share `legal` and the mean `mass`. Values without
    /// positions are `null`.
    fn finish(&self, world: &World) -> Result<Map<String, Value>, GroupError> {
        let sums = totals(&self.sums, world, "summing what was legal")?;
        let counts: Vec<Count> = sums
            .chunks(3)
            .map(|row| Count {
                positions: row[0],
                legal: row[1],
                mass: row[2],
            })
            .collect();
        // Without positions, the quotient is NaN, which becomes null.
        let share = |part: f32, count: &Count| json!(part / count.positions);
        let (by_ply, situations) = counts.split_at(ROWS);
        let all = by_ply.iter().fold(Count::default(), |sum, row| Count {
            positions: sum.positions + row.positions,
            legal: sum.legal + row.legal,
            mass: sum.mass + row.mass,
        });
        let by_ply: Vec<Value> = by_ply.iter().map(|row| share(row.legal, row)).collect();
        let situations = SITUATIONS.iter().zip(situations).map(|(&name, row)| {
            let row = json!({
                "positions": row.positions,
                "legal": share(row.legal, row),
                "mass": share(row.mass, row),
            });
            (name.to_owned(), row)
        });
        let legality = json!({
            "all": share(all.legal, &all),
            "mass": share(all.mass, &all),
            "by_ply": by_ply,
            "situations": situations.collect::<Map<String, Value>>(),
        });
        Ok(Map::from_iter([("legality".to_owned(), legality)]))
    }
}

/// Adds the plies of a game to the counts, up to the first token that is not a move. `next`
/// contains the tokens played, and `probabilities` the probabilities of all tokens at each ply.
fn count(vocabulary: &Vocabulary, probabilities: &[f32], next: &[i64], counts: &mut Counts) {
    let mut game = Game::default();
    let width = vocabulary.size();
    for (ply, (probabilities, &next)) in probabilities.chunks(width).zip(next).enumerate() {
        let played = u16::try_from(next).ok();
        let Some(played) = played.filter(|&it| matches!(vocabulary.read(it), Some(Token::Move(_))))
        else {
            break;
        };
        let position = game.position();
        let moves = position.legal_moves();
        let tokens = vocabulary.legal_tokens(position);
        let of_tokens = tokens
            .iter()
            .map(|&token| probabilities[usize::from(token)]);
        let mass: f32 = of_tokens.sum();
        let moves_only = &probabilities[..vocabulary.moves()];
        let likeliest = (0..).zip(moves_only).max_by(|a, b| a.1.total_cmp(b.1));
        let is_legal = likeliest.is_some_and(|(token, _)| tokens.contains(&token));
        let by_ply = (ply / PLIES).min(ROWS - 1);
        let met = situations(position, &moves).into_iter().enumerate();
        let met = met.filter_map(|(index, is_met)| is_met.then_some(ROWS + index));
        for row in std::iter::once(by_ply).chain(met) {
            counts[row].positions += 1.0;
            counts[row].legal += f32::from(u8::from(is_legal));
            counts[row].mass += mass;
        }
        match vocabulary.legal_move(position, played) {
            Some(mv) => game.play(mv),
            None => break,
        }
    }
}

/// Returns which of the [`SITUATIONS`] apply to a position.
fn situations(position: &Chess, moves: &[Move]) -> [bool; SITUATIONS.len()] {
    let checkers = position.checkers().count();
    let has = |is_such: fn(&Move) -> bool| moves.iter().any(is_such);
    [
        checkers > 0,
        checkers > 1,
        pinned(position).any(),
        has(|mv| mv.is_castle()),
        has(|mv| mv.is_en_passant()),
        has(|mv| mv.promotion().is_some()),
    ]
}

/// Returns the pieces of the side to move that are pinned to their king.
fn pinned(position: &Chess) -> Bitboard {
    let board = position.board();
    let (own, enemy) = (
        board.by_color(position.turn()),
        board.by_color(!position.turn()),
    );
    let Some(king) = board.king_of(position.turn()) else {
        return Bitboard::EMPTY;
    };
    let straight = rook_attacks(king, enemy) & board.rooks_and_queens();
    let diagonal = bishop_attacks(king, enemy) & board.bishops_and_queens();
    let mut pinned = Bitboard::EMPTY;
    for attacker in (straight | diagonal) & enemy {
        let shield = between(king, attacker) & board.occupied();
        if shield.count() == 1 {
            pinned |= shield & own;
        }
    }
    pinned
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::{CastlingMode, Square};

    fn token(text: &str) -> u16 {
        let vocabulary = Vocabulary::Uci;
        let found = (0..1968).find(|&it| vocabulary.text(it).as_deref() == Some(text));
        found.unwrap()
    }

    #[test]
    fn choices_are_judged_by_the_game_that_was_played() {
        let vocabulary = Vocabulary::Uci;
        let end = i64::from(vocabulary.start()) + 1;
        let next = ["e2e4", "e7e5", "g1f3"].map(|mv| i64::from(token(mv)));
        let next: Vec<i64> = next.into_iter().chain([end, -100]).collect();
        // The likeliest move gets a probability of 3/4; the rest is spread over the legal moves.
        let liked = ["d2d4", "e2e4", "e1e2", "a2a3", "a2a3"];
        let rest = ["a2a3", "a7a6", "a2a3", "a2a3", "a2a3"];
        let mut probabilities = vec![0.0; 5 * vocabulary.size()];
        for (row, (liked, rest)) in probabilities
            .chunks_mut(vocabulary.size())
            .zip(liked.into_iter().zip(rest))
        {
            row[usize::from(token(liked))] = 0.75;
            row[usize::from(token(rest))] = 0.25;
        }
        let mut counts = Counts::default();
        count(&vocabulary, &probabilities, &next, &mut counts);
        // Black's likeliest move is illegal, because it moves White's pawn. The end token ends the
        // count.
        let expected = Count {
            positions: 3.0,
            legal: 2.0,
            mass: 2.25,
        };
        assert_eq!(counts[0], expected);
        assert!(counts[1..].iter().all(|&count| count == Count::default()));
    }

    #[test]
    fn situations_are_told_apart() {
        for (fen, expected) in [
            ("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "castling"),
            ("4k3/8/8/8/4r3/8/3P4/4K3 w - - 0 1", "check"),
            ("4k3/8/8/8/4r3/5n2/8/4K3 w - - 0 1", "check double_check"),
            ("4k3/8/8/8/4r3/8/4B3/4K3 w - - 0 1", "pin"),
            ("4k3/8/8/8/7b/8/5P2/4K3 w - - 0 1", "pin"),
            ("4k3/8/8/8/7b/6N1/5P2/4K3 w - - 0 1", ""),
            ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "en_passant"),
            ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "promotion"),
        ] {
            let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
            let position = game.position();
            let met = situations(position, &position.legal_moves());
            let names = SITUATIONS.iter().zip(met).filter(|(_, is_met)| *is_met);
            let names: Vec<&str> = names.map(|(&name, _)| name).collect();
            assert_eq!(names.join(" "), expected, "{fen}");
        }
        let game = Game::from_fen("4k3/8/8/8/4r3/8/4B3/4K3 w - - 0 1", CastlingMode::Standard);
        assert_eq!(pinned(game.unwrap().position()), Square::E2.into());
    }
}
