//! Encodes games as a network's input, which is a row or tokens. Provides the key that determines
//! which evaluations are shared, and the reasons why a game cannot be encoded.

use super::format::InputFormat;
use super::vocabulary::Vocabulary;
use crate::chess::{Game, Ratings};
use shakmaty::Move;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A network's input.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Encoder {
    /// No input: the backend needs no encoding.
    #[default]
    Nothing,
    /// The current position and its most recent predecessors, as one row.
    Rows(InputFormat),
    /// The moves since the initial position of standard chess, one token each.
    Moves(MoveEncoder),
}

/// Encodes a game's moves as tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct MoveEncoder {
    /// The tokens that the network knows.
    pub vocabulary: Arc<Vocabulary>,
    /// Maximum number of tokens that the network reads, including the start token.
    pub context: usize,
}

/// Why a network cannot evaluate a game.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unencodable {
    /// The network reads moves, but the game did not begin at the initial position.
    #[error(
        "it reads the moves from the initial position of standard chess, so it cannot evaluate a position that is given without them"
    )]
    NoMoves,
    /// The game has more moves than the network reads.
    #[error("it reads up to {most} moves, and the game has {plies}")]
    TooLong {
        /// Number of moves played.
        plies: usize,
        /// Maximum number of moves that the network reads.
        most: usize,
    },
    /// The vocabulary lacks a move of the game.
    #[error("its vocabulary lacks the move {mv} at ply {}", ply + 1)]
    UnknownMove {
        /// The move in UCI notation.
        mv: String,
        /// Number of moves played before this move.
        ply: usize,
    },
}

impl Encoder {
    /// Returns the key of a game's current position for the search and the evaluation cache. Games
    /// with equal keys share an evaluation.
    ///
    /// For networks that read rows, the key covers the position, whether it is a repetition, the
    /// players' ratings, and the plies of the 50-move rule (in steps of eight below 64, and exactly
    /// from 64 on). Earlier history is ignored, as in Lc0's cache (CacheHistoryLength 0). For
    /// networks that read moves, the key covers all moves of the game.
    pub fn key(&self, game: &Game) -> u64 {
        match self {
            Encoder::Nothing | Encoder::Rows(_) => key_of_position(game),
            Encoder::Moves(_) => key_of_moves(game),
        }
    }
}

impl MoveEncoder {
    /// Appends the tokens of a game: the start token, then the moves.
    ///
    /// # Errors
    /// [`Unencodable`] if the game cannot be encoded. Nothing is appended in that case.
    pub fn encode(&self, game: &Game, tokens: &mut Vec<u16>) -> Result<(), Unencodable> {
        let plies = game.plies();
        if !game.from_initial_position() {
            return Err(Unencodable::NoMoves);
        }
        if plies.len() > self.context {
            return Err(Unencodable::TooLong {
                plies: plies.len() - 1,
                most: self.context - 1,
            });
        }
        let first = tokens.len();
        tokens.push(self.vocabulary.start());
        for (ply, mv) in moves(game).enumerate() {
            match self.vocabulary.token(&plies[ply].position, mv) {
                Some(token) => tokens.push(token),
                None => {
                    tokens.truncate(first);
                    let mv = game.format_move(mv);
                    return Err(Unencodable::UnknownMove { mv, ply });
                }
            }
        }
        Ok(())
    }
}

fn moves(game: &Game) -> impl Iterator<Item = Move> {
    game.plies().iter().filter_map(|ply| ply.played)
}

fn key_of_position(game: &Game) -> u64 {
    let rule50 = u64::from(game.rule50());
    let rule50 = if rule50 < 64 { rule50 / 8 } else { rule50 };
    let repeated = u64::from(game.current().repetitions > 0);
    let Ratings { white, black } = game.ratings();
    let [white, black] = [white, black].map(|rating| u64::from(rating.unwrap_or(0)));
    let salt =
        (white << 32 | black << 16 | rule50 << 1 | repeated).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    game.current().key ^ salt
}

fn key_of_moves(game: &Game) -> u64 {
    let mut hasher = DefaultHasher::new();
    game.plies()[0].key.hash(&mut hasher);
    let Ratings { white, black } = game.ratings();
    (white, black).hash(&mut hasher);
    moves(game).for_each(|mv| mv.hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::CastlingMode;

    fn game(moves: &str) -> Game {
        let mut game = Game::default();
        for mv in moves.split_whitespace() {
            let mv = game.parse_move(mv).unwrap();
            game.play(mv);
        }
        game
    }

    fn moves_encoder(context: usize) -> MoveEncoder {
        MoveEncoder {
            vocabulary: Arc::new(Vocabulary::Uci),
            context,
        }
    }

    #[test]
    fn keys_cover_what_the_network_reads() {
        let (one, other) = (game("g1f3 g8f6 b1c3"), game("b1c3 g8f6 g1f3"));
        let rows = Encoder::Rows(InputFormat::Classical);
        let moves = Encoder::Moves(moves_encoder(512));
        assert_eq!(rows.key(&one), rows.key(&other));
        assert_eq!(rows.key(&one), Encoder::Nothing.key(&one));
        assert_ne!(moves.key(&one), moves.key(&other));
        assert_eq!(moves.key(&one), moves.key(&one.clone()));
        let mut rated = one.clone();
        rated.set_ratings(Ratings {
            white: Some(1500),
            black: None,
        });
        for encoder in [rows, moves] {
            assert_ne!(encoder.key(&one), encoder.key(&rated));
        }
    }

    #[test]
    fn a_game_is_its_start_and_its_moves() {
        let encoder = moves_encoder(4);
        let mut tokens = vec![7];
        encoder.encode(&game("e2e4 c7c5"), &mut tokens).unwrap();
        let start = encoder.vocabulary.start();
        assert_eq!((tokens[0], tokens[1], tokens.len()), (7, start, 4));
        encoder.encode(&Game::default(), &mut tokens).unwrap();
        assert_eq!(tokens[4..], [start]);
    }

    #[test]
    fn names_positions_that_cannot_be_encoded() {
        let mut tokens = Vec::new();
        let longer = game("e2e4 c7c5 g1f3 d7d6");
        let error = moves_encoder(4).encode(&longer, &mut tokens).unwrap_err();
        assert_eq!(error, Unencodable::TooLong { plies: 4, most: 3 });
        let study = Game::from_fen("8/8/8/8/8/4k3/4p3/4K3 w - - 0 1", CastlingMode::Standard);
        let error = moves_encoder(4).encode(&study.unwrap(), &mut tokens);
        assert_eq!(error, Err(Unencodable::NoMoves));
        let san = Vocabulary::san(["e4", "c5"].map(str::to_owned)).unwrap();
        let encoder = MoveEncoder {
            vocabulary: Arc::new(san),
            context: 9,
        };
        let error = encoder.encode(&longer, &mut tokens).unwrap_err();
        assert_eq!(
            error.to_string(),
            "its vocabulary lacks the move g1f3 at ply 3"
        );
        assert!(tokens.is_empty());
    }
}
