//! The tokens of networks that read and write games move by move.
//!
//! Move tokens come first, followed by the start of a game, the ends of a game, and the padding
//! token, which never contributes to training.

use super::policy::{PAIRS, from_square_to_square, pair_index};
use shakmaty::san::SanPlus;
use shakmaty::uci::UciMove;
use shakmaty::{CastlingMode, Chess, Color, Move, Position, Role, Square};
use std::collections::HashMap;

/// Number of moves that UCI notation can express: every pair of squares between which a queen or a
/// knight could move, and four promotions for each of the 44 ways in which pawns can reach the last
/// rank.
pub const UCI_MOVES: usize = PAIRS + 2 * PROMOTIONS;

/// Number of promotions per colour.
const PROMOTIONS: usize = 22 * ROLES.len();
const ROLES: [Role; 4] = [Role::Queen, Role::Rook, Role::Bishop, Role::Knight];
/// Maximum number of moves in a vocabulary. It is limited because tokens are u16.
const MOST: usize = u16::MAX as usize - 16;

/// The end of a game, as a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GameEnd {
    /// White has checkmated.
    WhiteMates,
    /// Black has checkmated.
    BlackMates,
    /// White has won in another way, for example by resignation or on time.
    WhiteWins,
    /// Black has won in another way.
    BlackWins,
    /// A draw of any kind.
    Draw,
}

impl GameEnd {
    /// All ends of a game, in token order.
    pub const ALL: [GameEnd; 5] = [
        GameEnd::WhiteMates,
        GameEnd::BlackMates,
        GameEnd::WhiteWins,
        GameEnd::BlackWins,
        GameEnd::Draw,
    ];

    /// Returns the end of a game with this winner. `is_mate` states whether the last position is
    /// checkmate.
    pub fn new(winner: Option<Color>, is_mate: bool) -> GameEnd {
        match (winner, is_mate) {
            (Some(Color::White), true) => GameEnd::WhiteMates,
            (Some(Color::Black), true) => GameEnd::BlackMates,
            (Some(Color::White), false) => GameEnd::WhiteWins,
            (Some(Color::Black), false) => GameEnd::BlackWins,
            (None, _) => GameEnd::Draw,
        }
    }

    /// Returns the winner.
    pub fn winner(self) -> Option<Color> {
        match self {
            GameEnd::WhiteMates | GameEnd::WhiteWins => Some(Color::White),
            GameEnd::BlackMates | GameEnd::BlackWins => Some(Color::Black),
            GameEnd::Draw => None,
        }
    }

    /// Returns whether the game ended in checkmate.
    pub fn is_mate(self) -> bool {
        matches!(self, GameEnd::WhiteMates | GameEnd::BlackMates)
    }
}

/// The meaning of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Token {
    /// The move with this number.
    Move(u16),
    /// The start of a game.
    Start,
    /// The end of a game.
    End(GameEnd),
    /// Padding.
    Padding,
}

/// The set of tokens that represent games.
#[derive(Clone, Debug, PartialEq)]
pub enum Vocabulary {
    /// The 1,968 moves that UCI notation can express. Castling is the king's two-square move.
    Uci,
    /// The moves of the vocabulary's training games, in standard algebraic notation with check and
    /// mate marks.
    San(SanMoves),
}

/// Moves in standard algebraic notation, by number.
#[derive(Clone, Debug, PartialEq)]
pub struct SanMoves {
    texts: Vec<String>,
    numbers: HashMap<String, u16>,
}

/// Why strings do not form a vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VocabularyError {
    /// There are no moves, or there are more moves than tokens can represent.
    #[error("a vocabulary has 1 to {MOST} moves, not {0}")]
    Size(usize),
    /// A string is not a move.
    #[error("`{0}` is not a move in standard algebraic notation")]
    NoMove(String),
    /// A string occurs twice.
    #[error("`{0}` is in the vocabulary twice")]
    Twice(String),
}

impl Vocabulary {
    /// Returns the vocabulary of these moves in standard algebraic notation.
    ///
    /// # Errors
    /// [`VocabularyError`], which names the string.
    pub fn san(texts: impl IntoIterator<Item = String>) -> Result<Vocabulary, VocabularyError> {
        let texts: Vec<String> = texts.into_iter().collect();
        if !(1..=MOST).contains(&texts.len()) {
            return Err(VocabularyError::Size(texts.len()));
        }
        let mut numbers = HashMap::with_capacity(texts.len());
        for (number, text) in texts.iter().enumerate() {
            let san = text.parse::<SanPlus>().ok();
            if san.map(|san| san.to_string()).as_ref() != Some(text) {
                return Err(VocabularyError::NoMove(text.clone()));
            }
            if numbers.insert(text.clone(), number as u16).is_some() {
                return Err(VocabularyError::Twice(text.clone()));
            }
        }
        Ok(Vocabulary::San(SanMoves { texts, numbers }))
    }

    /// Returns the number of moves. All smaller numbers are tokens of moves.
    pub fn moves(&self) -> usize {
        match self {
            Vocabulary::Uci => UCI_MOVES,
            Vocabulary::San(san) => san.texts.len(),
        }
    }

    /// Returns the number of tokens.
    pub fn size(&self) -> usize {
        self.moves() + 2 + GameEnd::ALL.len()
    }

    /// Returns the token of the start of a game.
    pub fn start(&self) -> u16 {
        self.moves() as u16
    }

    /// Returns the token of the end of a game.
    pub fn end(&self, end: GameEnd) -> u16 {
        self.start() + 1 + end as u16
    }

    /// Returns the padding token.
    pub fn padding(&self) -> u16 {
        self.size() as u16 - 1
    }

    /// Returns the meaning of a token, or `None` if the vocabulary has no such token.
    pub fn read(&self, token: u16) -> Option<Token> {
        let beyond = usize::from(token).checked_sub(self.moves());
        match beyond {
            None => Some(Token::Move(token)),
            Some(0) => Some(Token::Start),
            Some(next) => match GameEnd::ALL.get(next - 1) {
                Some(&end) => Some(Token::End(end)),
                None => (token == self.padding()).then_some(Token::Padding),
            },
        }
    }

    /// Returns the token of a legal move, or `None` if the vocabulary lacks the move. A UCI
    /// vocabulary lacks no move.
    pub fn token(&self, position: &Chess, mv: Move) -> Option<u16> {
        match self {
            Vocabulary::Uci => uci_number(mv),
            Vocabulary::San(san) => {
                let text = SanPlus::from_move(position.clone(), mv).to_string();
                san.numbers.get(&text).copied()
            }
        }
    }

    /// Returns the legal move of a token, or `None` if the token is not a legal move in this
    /// position.
    pub fn legal_move(&self, position: &Chess, token: u16) -> Option<Move> {
        let mv = match self {
            Vocabulary::Uci => uci_move(token)?.to_move(position).ok()?,
            Vocabulary::San(san) => {
                let text = san.texts.get(usize::from(token))?;
                text.parse::<SanPlus>().ok()?.san.to_move(position).ok()?
            }
        };
        // Reject alternative spellings of castling and check marks without a check.
        (self.token(position, mv) == Some(token)).then_some(mv)
    }

    /// Returns the tokens that may follow a position: the legal moves in the vocabulary, and the
    /// possible ends of the game. Only the mate token may follow a checkmate. In other positions,
    /// players may resign or agree to a draw at any time.
    pub fn legal_tokens(&self, position: &Chess) -> Vec<u16> {
        let moves = position.legal_moves();
        let tokens = moves.iter().filter_map(|&mv| self.token(position, mv));
        let mate = position.is_checkmate().then(|| !position.turn());
        let ends = GameEnd::ALL.into_iter().filter(|end| match mate {
            Some(winner) => end.is_mate() && end.winner() == Some(winner),
            None => !end.is_mate(),
        });
        tokens.chain(ends.map(|end| self.end(end))).collect()
    }

    /// Returns a move as text, in the notation of the vocabulary.
    pub fn text(&self, token: u16) -> Option<String> {
        match self {
            Vocabulary::Uci => uci_move(token).map(|mv| mv.to_string()),
            Vocabulary::San(san) => san.texts.get(usize::from(token)).cloned(),
        }
    }
}

/// Returns the parts of a [`Vocabulary::Uci`] move: its origin and destination squares from 0 (a1)
/// to 63 (h8), and its promotion, which is 0 for none, 1 for a queen, 2 for a rook, 3 for a bishop
/// and 4 for a knight.
pub fn uci_parts(number: u16) -> Option<(usize, usize, usize)> {
    match uci_move(number)? {
        UciMove::Normal {
            from,
            to,
            promotion,
        } => {
            let role = promotion.and_then(|role| ROLES.iter().position(|&it| it == role));
            Some((from.into(), to.into(), role.map_or(0, |role| role + 1)))
        }
        _ => None,
    }
}

fn uci_number(mv: Move) -> Option<u16> {
    let UciMove::Normal {
        from,
        to,
        promotion,
    } = mv.to_uci(CastlingMode::Standard)
    else {
        return None;
    };
    let Some(promotion) = promotion else {
        return pair_index(from, to);
    };
    let role = ROLES.iter().position(|&role| role == promotion)?;
    let step = 2 * usize::from(from.file()) + usize::from(to.file());
    let of_black = to.rank() == shakmaty::Rank::First;
    let number = PAIRS + PROMOTIONS * usize::from(of_black) + step * ROLES.len() + role;
    Some(number as u16)
}

fn uci_move(number: u16) -> Option<UciMove> {
    let number = usize::from(number);
    let Some(promotion) = number.checked_sub(PAIRS) else {
        let (from, to, _) = from_square_to_square(number)?;
        return Some(UciMove::Normal {
            from: Square::new(from as u32),
            to: Square::new(to as u32),
            promotion: None,
        });
    };
    if promotion >= 2 * PROMOTIONS {
        return None;
    }
    let of_black = promotion >= PROMOTIONS;
    let (step, role) = (
        (promotion % PROMOTIONS) / ROLES.len(),
        promotion % ROLES.len(),
    );
    let file = (step + 1) / 3;
    let target = step - 2 * file;
    let ranks = if of_black { [1, 0] } else { [6, 7] };
    Some(UciMove::Normal {
        from: Square::new((8 * ranks[0] + file) as u32),
        to: Square::new((8 * ranks[1] + target) as u32),
        promotion: Some(ROLES[role]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use std::collections::HashSet;

    #[test]
    fn every_uci_move_has_a_number_of_its_own() {
        let mut texts = HashSet::new();
        for number in 0..UCI_MOVES as u16 {
            let text = Vocabulary::Uci.text(number).unwrap();
            let (from, to, role) = uci_parts(number).unwrap();
            let squares = [from, to].map(|square| Square::new(square as u32).to_string());
            let promotion = ["", "q", "r", "b", "n"][role];
            assert_eq!(text, squares.concat() + promotion);
            assert!(texts.insert(text));
        }
        assert_eq!(Vocabulary::Uci.text(UCI_MOVES as u16), None);
        assert!(
            ["e1g1", "a7a8n", "h2g1q", "b1c3"]
                .iter()
                .all(|&it| texts.contains(it))
        );
    }

    #[test]
    fn legal_moves_come_back_from_their_tokens() {
        for fen in [
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R b KQkq - 0 1",
            "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
            "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N w - - 0 1",
            "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
        ] {
            let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
            let position = game.position();
            let moves = position.legal_moves();
            let texts = moves
                .iter()
                .map(|&mv| SanPlus::from_move(position.clone(), mv));
            let san = Vocabulary::san(texts.map(|san| san.to_string())).unwrap();
            for vocabulary in [Vocabulary::Uci, san] {
                let tokens: HashSet<u16> = moves
                    .iter()
                    .map(|&mv| {
                        let token = vocabulary.token(position, mv).unwrap();
                        assert_eq!(vocabulary.legal_move(position, token), Some(mv));
                        assert_eq!(vocabulary.read(token), Some(Token::Move(token)));
                        token
                    })
                    .collect();
                assert_eq!(tokens.len(), moves.len());
                let legal =
                    (0..=u16::MAX).filter(|&it| vocabulary.legal_move(position, it).is_some());
                assert_eq!(legal.count(), moves.len(), "{fen}");
            }
        }
    }

    #[test]
    fn tokens_besides_moves_follow_them() {
        let san = Vocabulary::san(["e4", "Nf3", "O-O"].map(str::to_owned)).unwrap();
        for vocabulary in [Vocabulary::Uci, san] {
            let start = vocabulary.start();
            assert_eq!(vocabulary.read(start), Some(Token::Start));
            assert_eq!(vocabulary.read(start - 1), Some(Token::Move(start - 1)));
            for end in GameEnd::ALL {
                assert_eq!(vocabulary.read(vocabulary.end(end)), Some(Token::End(end)));
                assert_eq!(GameEnd::new(end.winner(), end.is_mate()), end);
            }
            assert_eq!(vocabulary.read(vocabulary.padding()), Some(Token::Padding));
            assert_eq!(vocabulary.read(vocabulary.size() as u16), None);
            assert_eq!(vocabulary.text(start), None);
        }
    }

    #[test]
    fn a_vocabulary_says_what_is_wrong_with_it() {
        let san = |texts: &[&str]| Vocabulary::san(texts.iter().map(|&it| it.to_owned())).err();
        assert_eq!(san(&[]), Some(VocabularyError::Size(0)));
        assert_eq!(
            san(&["e4", "e4"]),
            Some(VocabularyError::Twice("e4".to_owned()))
        );
        for text in ["", "e9", "Nf3 ", "0-0", "e"] {
            assert_eq!(
                san(&["d4", text]),
                Some(VocabularyError::NoMove(text.to_owned()))
            );
        }
    }
}
