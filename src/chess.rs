//! A game of chess: the position, the moves that led to it, and the rules that depend on history
//! (repetition, and the 50- and 75-move rules).
//!
//! The rules, move generation, notation and their types come from shakmaty.

pub(crate) mod epd;
mod mate;
mod notation;
pub mod perft;
mod ratings;

pub use mate::Checks;
pub use mate::mate_in_one;
pub(crate) use notation::{Notation, with_hyphens};
pub use ratings::{RATING_SPREAD, Ratings, weights_near};

use shakmaty::fen::{Fen, ParseFenError};
use shakmaty::san::SanError;
use shakmaty::uci::{IllegalUciMoveError, ParseUciMoveError, UciMove};
use shakmaty::zobrist::Zobrist64;
use shakmaty::{CastlingMode, Chess, EnPassantMode, Move, Position, PositionError};

/// Number of plies without a capture or pawn move after which a player may claim a draw.
pub const CLAIMABLE_RULE50: u32 = 100;
/// Number of plies without a capture or pawn move after which the game is drawn without a claim.
pub const FORCED_RULE50: u32 = 150;

/// Returns the FEN of a position. The en passant square is left out unless a pawn can capture there.
pub fn fen(position: &Chess) -> String {
    Fen::from_position(position, EnPassantMode::Legal).to_string()
}

/// Returns the position after a legal move.
#[inline]
pub fn after(position: &Chess, mv: Move) -> Chess {
    let mut after = position.clone();
    after.play_unchecked(mv);
    after
}

/// The error of an invalid FEN.
#[derive(Debug, thiserror::Error)]
pub enum FenError {
    /// The text is not a FEN.
    #[error("`{fen}` is not a FEN: {source}")]
    Syntax {
        /// The text as given.
        fen: String,
        /// The parser's error.
        source: ParseFenError,
    },
    /// The text is a FEN, but the position is not playable.
    #[error("`{fen}` is not a legal position: {reason}")]
    Position {
        /// The text as given.
        fen: String,
        /// The reason, in words.
        reason: String,
    },
}

/// Maximum number of characters of an invalid move that an error quotes.
const SHOWN: usize = 20;

/// The error of an invalid move.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The text is not a move in UCI notation.
    #[error("`{0}` is not a move in UCI notation, such as e2e4 or a7a8q")]
    Syntax(String, #[source] ParseUciMoveError),
    /// The move is illegal in the position.
    #[error("`{0}` is not a legal move in this position")]
    Illegal(String, #[source] IllegalUciMoveError),
    /// The text is not a move in any known notation.
    #[error("`{0}` is not a move, such as e2e4, Nf3 or a8=Q")]
    Unreadable(String),
    /// The move is illegal in the position, or ambiguous.
    #[error(
        "`{text}` is {} in this position",
        match .reason {
            SanError::IllegalSan => "not a legal move",
            SanError::AmbiguousSan => "ambiguous",
        }
    )]
    San {
        /// The text, or its beginning.
        text: String,
        /// The parser's error, which states whether the move is illegal or ambiguous.
        reason: SanError,
    },
}

/// The reason why a game has ended, or why the side to move may claim a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The side to move is mated.
    Checkmate,
    /// The side to move has no legal move and is not in check.
    Stalemate,
    /// Neither side can mate by any sequence of legal moves.
    InsufficientMaterial,
    /// The position has occurred at least three times, so that a draw may be claimed.
    Repetition,
    /// Each side has made at least fifty moves without a capture or pawn move, so that a draw may
    /// be claimed.
    FiftyMoves,
}

/// A position of a game and the move that led to it.
#[derive(Clone, Debug)]
pub struct Ply {
    /// The position.
    pub position: Chess,
    /// The move that led to the position, or `None` for the starting position.
    pub played: Option<Move>,
    /// Zobrist key of the position. It covers the pieces, the side to move, castling rights and the
    /// en-passant square if a capture on it is legal.
    pub key: u64,
    /// Number of earlier occurrences of the position in the game.
    pub repetitions: u8,
    /// Number of plies since the latest earlier occurrence of the position. 0 if it has not
    /// occurred before.
    pub cycle: u16,
}

/// A game: the starting position and all later positions.
///
/// Playing and undoing moves is cheap, so each search thread uses its own `Game`.
///
/// ```
/// use tessera::chess::{Ending, Game};
///
/// let mut game = Game::default();
/// for text in ["f2f3", "e7e5", "g2g4", "d8h4"] {
///     let mv = game.parse_move(text)?;
///     game.play(mv);
/// }
/// assert_eq!(game.ending(), Some(Ending::Checkmate));
/// game.undo();
/// assert_eq!(game.ending(), None);
/// # Ok::<(), tessera::chess::MoveError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Game {
    mode: CastlingMode,
    initial: bool,
    ratings: Ratings,
    plies: Vec<Ply>,
}

impl Default for Game {
    fn default() -> Game {
        Game::new(Chess::default(), CastlingMode::Standard)
    }
}

impl Game {
    /// Creates a game that starts from `position`. `mode` determines how castling is written.
    pub fn new(position: Chess, mode: CastlingMode) -> Game {
        let initial = position == Chess::default();
        Game {
            mode,
            initial,
            ratings: Ratings::default(),
            plies: vec![Ply {
                key: key_of(&position),
                position,
                played: None,
                repetitions: 0,
                cycle: 0,
            }],
        }
    }

    /// Creates a game that starts from a FEN in the standard form, with four fields, in X-FEN or in
    /// Shredder-FEN. If `mode` is [`CastlingMode::Standard`] but the FEN has castling rights that
    /// only Chess960 allows, the game becomes a Chess960 game.
    ///
    /// # Errors
    /// [`FenError`] if the text is not a FEN or the position is not playable. Positions that no
    /// game can reach, because of too many pieces or an impossible check, are accepted: studies and
    /// test suites contain them.
    pub fn from_fen(fen: &str, mode: CastlingMode) -> Result<Game, FenError> {
        let parsed: Fen = fen.trim().parse().map_err(|source| FenError::Syntax {
            fen: fen.to_owned(),
            source,
        })?;
        let setup = parsed.into_setup();
        let mode = match mode {
            CastlingMode::Chess960 => CastlingMode::Chess960,
            CastlingMode::Standard => CastlingMode::detect(&setup),
        };
        let position = setup
            .position::<Chess>(mode)
            .or_else(PositionError::ignore_too_much_material)
            .or_else(PositionError::ignore_impossible_check)
            .or_else(PositionError::ignore_invalid_ep_square)
            .or_else(PositionError::ignore_invalid_castling_rights)
            .map_err(|error| FenError::Position {
                fen: fen.to_owned(),
                reason: error.to_string(),
            })?;
        Ok(Game::new(position, mode))
    }

    /// Returns the current position.
    pub fn position(&self) -> &Chess {
        &self.current().position
    }

    /// Returns the current position with its history.
    pub fn current(&self) -> &Ply {
        &self.plies[self.plies.len() - 1]
    }

    /// Returns all positions of the game, oldest first. There is at least one.
    pub fn plies(&self) -> &[Ply] {
        &self.plies
    }

    /// Returns the castling mode.
    pub fn mode(&self) -> CastlingMode {
        self.mode
    }

    /// Sets the castling mode, which determines how later moves are written.
    pub fn set_mode(&mut self, mode: CastlingMode) {
        self.mode = mode;
    }

    /// Returns the players' ratings.
    pub fn ratings(&self) -> Ratings {
        self.ratings
    }

    /// Sets the players' ratings, which some networks read.
    pub fn set_ratings(&mut self, ratings: Ratings) {
        self.ratings = ratings;
    }

    /// Returns whether the game began at the initial position of standard chess, which has no
    /// history.
    pub fn from_initial_position(&self) -> bool {
        self.initial
    }

    /// Returns the number of plies since the last capture or pawn move.
    pub fn rule50(&self) -> u32 {
        self.position().halfmoves()
    }

    /// Plays a legal move.
    ///
    /// `mv` must be a legal move in the current position. Any other move may lead to an illegal
    /// position, but never to undefined behaviour.
    pub fn play(&mut self, mv: Move) {
        let mut position = self.position().clone();
        position.play_unchecked(mv);
        let key = key_of(&position);
        let (repetitions, cycle) = self.occurrences(&position, key);
        self.plies.push(Ply {
            position,
            played: Some(mv),
            key,
            repetitions,
            cycle,
        });
    }

    /// Undoes the last move, if there is one.
    pub fn undo(&mut self) {
        if self.plies.len() > 1 {
            self.plies.pop();
        }
    }

    /// Undoes moves until `plies` positions remain. The starting position always remains.
    pub fn truncate(&mut self, plies: usize) {
        self.plies.truncate(plies.max(1));
    }

    /// Parses a move in UCI notation. Castling may be written as the king's two-square move or as
    /// the king taking the rook.
    ///
    /// # Errors
    /// [`MoveError`] if the text is not a move or the move is illegal.
    pub fn parse_move(&self, text: &str) -> Result<Move, MoveError> {
        let uci: UciMove = text
            .parse()
            .map_err(|error| MoveError::Syntax(text.to_owned(), error))?;
        uci.to_move(self.position())
            .map_err(|error| MoveError::Illegal(text.to_owned(), error))
    }

    /// Parses a move as people and programs write it: in UCI notation or in SAN, with or without
    /// annotations such as `!?`.
    ///
    /// # Errors
    /// [`MoveError`] if the text is not a move, or if the move is illegal or ambiguous.
    pub fn read_move(&self, text: &str) -> Result<Move, MoveError> {
        let word = text.trim().trim_end_matches(['!', '?']);
        if let Ok(mv) = self.parse_move(word) {
            return Ok(mv);
        }
        let shown = || text.chars().take(SHOWN).collect();
        let notation = Notation::parse(word.as_bytes());
        let notation = notation.ok_or_else(|| MoveError::Unreadable(shown()))?;
        let mv = notation.to_move(self.position());
        mv.map_err(|reason| MoveError::San {
            text: shown(),
            reason,
        })
    }

    /// Formats a move in UCI notation, in this game's castling mode.
    pub fn format_move(&self, mv: Move) -> String {
        mv.to_uci(self.mode).to_string()
    }

    /// Returns how the game ends if every draw is claimed immediately: checkmate, stalemate,
    /// insufficient material, threefold repetition or 50 moves.
    pub fn ending(&self) -> Option<Ending> {
        self.ending_at(2, CLAIMABLE_RULE50)
    }

    /// Returns how the game ends without claims, in which case fivefold repetition and 75 moves
    /// replace threefold repetition and 50 moves.
    pub fn forced_ending(&self) -> Option<Ending> {
        self.ending_at(4, FORCED_RULE50)
    }

    fn ending_at(&self, repetitions: u8, rule50: u32) -> Option<Ending> {
        let ply = self.current();
        let position = &ply.position;
        if position.legal_moves().is_empty() {
            return Some(if position.is_check() {
                Ending::Checkmate
            } else {
                Ending::Stalemate
            });
        }
        if position.is_insufficient_material() {
            Some(Ending::InsufficientMaterial)
        } else if ply.repetitions >= repetitions {
            Some(Ending::Repetition)
        } else if position.halfmoves() >= rule50 {
            Some(Ending::FiftyMoves)
        } else {
            None
        }
    }

    /// Returns the number of earlier occurrences of a position that is about to be appended, and
    /// the number of plies since the latest of them.
    fn occurrences(&self, position: &Chess, key: u64) -> (u8, u16) {
        let reversible = position.halfmoves() as usize;
        // Only positions with the same side to move can be equal, and a position cannot recur after
        // two plies.
        let latest = self
            .plies
            .iter()
            .rev()
            .take(reversible)
            .enumerate()
            .skip(3)
            .step_by(2)
            .find(|(_, ply)| ply.key == key);
        match latest {
            Some((back, ply)) => (ply.repetitions.saturating_add(1), back as u16 + 1),
            None => (0, 0),
        }
    }
}

pub(crate) fn key_of(position: &Chess) -> u64 {
    position.zobrist_hash::<Zobrist64>(EnPassantMode::Legal).0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Plays one legal move per number, which selects the move, until the game ends.
    pub(crate) fn game_of_choices(choices: &[u32]) -> Game {
        let mut game = Game::default();
        for &choice in choices {
            let moves = game.position().legal_moves();
            if moves.is_empty() {
                break;
            }
            game.play(moves[choice as usize % moves.len()]);
        }
        game
    }

    fn game(moves: &str) -> Game {
        let mut game = Game::default();
        for mv in moves.split_whitespace() {
            let mv = game.parse_move(mv).unwrap();
            game.play(mv);
        }
        game
    }

    #[test]
    fn moves_are_read_in_uci_notation_and_as_pgn_has_them() {
        let fen = "4k3/P7/8/8/8/8/8/R3K2R w KQ - 0 1";
        let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        for (uci, texts) in [
            ("e1g1", &["e1g1", "e1h1", "O-O", "0-0", "0-0!"][..]),
            ("a7a8q", &["a7a8q", "a8=Q", "a8Q+", "a8(Q)"]),
            ("h1h8", &["h1h8", "Rh8", "Rh8+", "Rh8#!?", " Rh8 "]),
        ] {
            for text in texts {
                let mv = game.read_move(text).unwrap();
                assert_eq!(game.format_move(mv), uci, "{text}");
            }
        }
        for (text, reason) in [
            ("e1e5", "not a legal move"),
            ("Rh9", "not a move"),
            ("--", "not a legal move"),
            ("", "not a move"),
            (
                "nonsense that carries on without end",
                "`nonsense that carrie` is not a move",
            ),
        ] {
            let error = game.read_move(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        let two = Game::from_fen("4k3/8/8/8/8/2N5/8/4K1N1 w - - 0 1", CastlingMode::Standard);
        let error = two.unwrap().read_move("Ne2").unwrap_err().to_string();
        assert!(error.contains("ambiguous"), "{error}");
    }

    #[test]
    fn repetitions_are_counted_with_their_distance() {
        let shuffle = "g1f3 g8f6 f3g1 f6g8 ";
        let once = game(shuffle);
        assert_eq!((once.current().repetitions, once.current().cycle), (1, 4));
        assert_eq!(once.ending(), None);
        let twice = game(&shuffle.repeat(2));
        assert_eq!(twice.current().repetitions, 2);
        assert_eq!(twice.ending(), Some(Ending::Repetition));
        assert_eq!(twice.forced_ending(), None);
        assert_eq!(
            game(&shuffle.repeat(4)).forced_ending(),
            Some(Ending::Repetition)
        );
    }

    #[test]
    fn a_pawn_move_ends_the_search_for_repetitions() {
        let mut game = game("g1f3 g8f6 f3g1 f6g8 e2e4");
        assert_eq!(game.current().repetitions, 0);
        game.undo();
        assert_eq!(game.current().repetitions, 1);
    }

    #[test]
    fn lost_castling_rights_make_another_position() {
        let after = game("e2e4 e7e5 e1e2 e8e7 e2e1 e7e8");
        assert_eq!(after.current().repetitions, 0);
    }

    #[test]
    fn rule_50_and_75() {
        let claim = Game::from_fen("4k3/8/8/8/8/8/3R4/4K3 w - - 100 80", CastlingMode::Standard);
        let claim = claim.unwrap();
        assert_eq!(claim.ending(), Some(Ending::FiftyMoves));
        assert_eq!(claim.forced_ending(), None);
        let mate = "R5k1/5ppp/8/8/8/8/8/4K3 b - - 150 80";
        let mate = Game::from_fen(mate, CastlingMode::Standard).unwrap();
        assert_eq!(mate.forced_ending(), Some(Ending::Checkmate));
    }

    #[test]
    fn every_fen_form_that_clients_send() {
        let standard = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
        let key = Game::from_fen(standard, CastlingMode::Standard).unwrap();
        for fen in [
            "r3k2r/8/8/8/8/8/8/R3K2R w KQkq -",
            "r3k2r/8/8/8/8/8/8/R3K2R w HAha - 0 1",
            " r3k2r/8/8/8/8/8/8/R3K2R  w KQkq - 0 1 ",
        ] {
            for mode in [CastlingMode::Standard, CastlingMode::Chess960] {
                let game = Game::from_fen(fen, mode).unwrap();
                assert_eq!(game.current().key, key.current().key, "{fen}");
            }
        }
        let shredder = "1rk3r1/8/8/8/8/8/8/1RK3R1 w GBgb - 0 1";
        let xfen = "1rk3r1/8/8/8/8/8/8/1RK3R1 w KQkq - 0 1";
        let shredder = Game::from_fen(shredder, CastlingMode::Standard).unwrap();
        let xfen = Game::from_fen(xfen, CastlingMode::Chess960).unwrap();
        assert_eq!(shredder.mode(), CastlingMode::Chess960);
        assert_eq!(shredder.current().key, xfen.current().key);
    }

    #[test]
    fn castling_is_read_both_ways_and_written_in_the_games_mode() {
        let fen = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
        let mut game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        let short = game.parse_move("e1g1").unwrap();
        assert_eq!(short, game.parse_move("e1h1").unwrap());
        assert_eq!(game.format_move(short), "e1g1");
        game.set_mode(CastlingMode::Chess960);
        assert_eq!(game.format_move(short), "e1h1");
    }

    #[test]
    fn rejects_unplayable_positions_with_a_reason() {
        for fen in [
            "",
            "nonsense",
            "8/8/8/8/8/8/8/8 w - - 0 1",
            "kk6/8/8/8/8/8/8/K7 w - - 0 1",
        ] {
            let error = Game::from_fen(fen, CastlingMode::Standard).unwrap_err();
            assert!(error.to_string().contains(fen));
        }
        let game = Game::default();
        assert!(matches!(
            game.parse_move("e2e5"),
            Err(MoveError::Illegal(..))
        ));
        assert!(matches!(
            game.parse_move("castle"),
            Err(MoveError::Syntax(..))
        ));
        assert!(matches!(
            game.parse_move("0000"),
            Err(MoveError::Illegal(..))
        ));
    }
}
