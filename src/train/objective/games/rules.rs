//! Derives targets about the rules from games: the legal tokens, and the pieces on the board.
//!
//! The move played shows a network only one of about thirty legal moves, and does not show why the
//! move is legal. With all legal moves and the board as targets, a network learns the rules from
//! far fewer games.

use super::IGNORED;
use crate::chess::Game;
use crate::data::examples::GameTokens;
use crate::encode::{Squares, Vocabulary};
use crate::train::objective::send;
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;
use shakmaty::{Chess, Color, Position};
use tch::{Device, Tensor};

const SQUARES: usize = 64;

/// Which targets about the rules are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub legal: bool,
    pub board: bool,
}

/// The targets about the rules after each input token.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// Marks the legal next tokens, bool [B, T, vocabulary]; marks all tokens if the position is
    /// unknown.
    pub legal: Option<Tensor>,
    /// The class of each square from a1, from White's perspective, i64 [B, T, 64]; [`IGNORED`] if
    /// the position is unknown.
    pub board: Option<Tensor>,
}

impl Rules {
    /// Computes the targets for games, padded to `longest` tokens.
    pub fn of(
        games: &[&GameTokens],
        longest: usize,
        vocabulary: &Vocabulary,
        told: Told,
        device: Device,
    ) -> Rules {
        let legal = || {
            padded(
                games,
                longest,
                vocabulary,
                vocabulary.size(),
                true,
                |position, row| {
                    row.fill(false);
                    for token in vocabulary.legal_tokens(position) {
                        row[usize::from(token)] = true;
                    }
                },
            )
        };
        let board = || {
            padded(
                games,
                longest,
                vocabulary,
                SQUARES,
                IGNORED,
                |position, row| {
                    let squares = Squares::of_board(position.board(), Color::White);
                    for (square, class) in row.iter_mut().enumerate() {
                        *class = squares.class(square) as i64;
                    }
                },
            )
        };
        let shape = [games.len() as i64, longest as i64, -1];
        Rules {
            legal: told.legal.then(|| send(&legal(), device).view(shape)),
            board: told.board.then(|| send(&board(), device).view(shape)),
        }
    }

    /// Returns the targets for `count` games from `start`, up to `longest` tokens.
    pub fn narrow(&self, start: i64, count: i64, longest: i64) -> Rules {
        let part = |tensor: &Option<Tensor>| {
            let tensor = tensor.as_ref()?;
            Some(tensor.narrow(0, start, count).narrow(1, 0, longest))
        };
        Rules {
            legal: part(&self.legal),
            board: part(&self.board),
        }
    }
}

/// Returns a row of `width` elements for each of `longest` tokens of each game. The row describes
/// the position after the token; if that position is unknown, it contains the padding value.
fn padded<T: Copy + Send>(
    games: &[&GameTokens],
    longest: usize,
    vocabulary: &Vocabulary,
    width: usize,
    filling: T,
    write: impl Fn(&Chess, &mut [T]) + Sync,
) -> Vec<T> {
    let mut values = vec![filling; games.len() * longest * width];
    let of_games = values.par_chunks_mut((longest * width).max(1));
    of_games.zip(games).for_each(|(rows, game)| {
        let positions = positions(game, vocabulary);
        for (row, position) in rows.chunks_mut(width).zip(positions) {
            write(&position, row);
        }
    });
    values
}

/// Returns the positions after each token, up to the first unknown position.
fn positions<'a>(
    game: &'a GameTokens,
    vocabulary: &'a Vocabulary,
) -> impl Iterator<Item = Chess> + 'a {
    let read = &game.tokens[..game.tokens.len() - 1];
    let mut played = Game::default();
    read.iter().enumerate().map_while(move |(place, &token)| {
        if place > 0 {
            played.play(vocabulary.legal_move(played.position(), token)?);
        }
        Some(played.position().clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::GameEnd;

    /// Returns a game that ends in mate after four plies.
    fn mate() -> GameTokens {
        let vocabulary = Vocabulary::Uci;
        let token = |text: &str| {
            let mut moves = 0..vocabulary.moves() as u16;
            moves.find(|&it| vocabulary.text(it).as_deref() == Some(text))
        };
        let moves = ["f2f3", "e7e5", "g2g4", "d8h4"].map(|mv| token(mv).unwrap());
        GameTokens {
            tokens: [vocabulary.start()]
                .into_iter()
                .chain(moves)
                .chain([vocabulary.end(GameEnd::BlackMates)])
                .collect(),
            ratings: [0; 2],
            result: None,
        }
    }

    fn rules(games: &[&GameTokens], longest: usize) -> Rules {
        let told = Told {
            legal: true,
            board: true,
        };
        Rules::of(games, longest, &Vocabulary::Uci, told, Device::Cpu)
    }

    #[test]
    fn legal_moves_follow_the_game() {
        let vocabulary = Vocabulary::Uci;
        let game = mate();
        let legal = rules(&[&game], 6).legal.unwrap();
        let counts = legal.sum_dim_intlist([2i64].as_slice(), false, tch::Kind::Int64);
        let counts: Vec<i64> = Vec::try_from(counts.reshape([-1])).unwrap();
        // Each of the first two positions has twenty legal moves and three legal end tokens. After
        // the mate, only its end token is legal; in the padding, all tokens are marked.
        assert_eq!(counts[..2], [23, 23]);
        assert_eq!(counts[4..], [1, vocabulary.size() as i64]);
        for (place, &token) in game.tokens[1..].iter().enumerate() {
            let is_legal = legal.int64_value(&[0, place as i64, i64::from(token)]);
            assert_eq!(is_legal, 1, "{place}");
        }
        let mate = vocabulary.end(GameEnd::BlackMates);
        assert_eq!(legal.int64_value(&[0, 3, i64::from(mate)]), 0);
    }

    #[test]
    fn boards_are_those_before_the_next_move() {
        let game = mate();
        let board = rules(&[&game], 6).board.unwrap();
        let class = |place: i64, square: shakmaty::Square| {
            board.int64_value(&[0, place, i64::from(u32::from(square))])
        };
        use shakmaty::Square::{A1, D8, F2, F3, H4};
        assert_eq!([class(0, F2), class(0, F3), class(0, A1)], [1, 0, 4]);
        assert_eq!([class(1, F2), class(1, F3)], [0, 1]);
        // The squares of Black's queen before and after its move.
        assert_eq!([class(3, D8), class(3, H4)], [11, 0]);
        assert_eq!([class(4, D8), class(4, H4)], [0, 11]);
        assert_eq!(class(5, A1), IGNORED);
    }

    #[test]
    fn nothing_is_known_behind_an_illegal_move() {
        let mut game = mate();
        // White moves Black's queen, an illegal move.
        game.tokens[3] = game.tokens[4];
        let Rules { legal, board } = rules(&[&game], 5);
        let known = legal.unwrap().all_dim(2, false).logical_not();
        let known: Vec<bool> = Vec::try_from(known.reshape([-1])).unwrap();
        assert_eq!(known, [true, true, true, false, false]);
        let known = board.unwrap().select(2, 0).ge(0);
        let known: Vec<bool> = Vec::try_from(known.reshape([-1])).unwrap();
        assert_eq!(known, [true, true, true, false, false]);
    }

    #[test]
    fn parts_are_those_of_their_games() {
        let (game, short) = (
            mate(),
            GameTokens {
                tokens: mate().tokens[..3].to_vec(),
                ..mate()
            },
        );
        let whole = rules(&[&game, &short], 5).narrow(1, 1, 2);
        let alone = rules(&[&short], 2);
        assert_eq!(whole.legal, alone.legal);
        assert_eq!(whole.board, alone.board);
    }
}
