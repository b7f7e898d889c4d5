//! Move notations.
//!
//! | notation | examples |
//! |---|---|
//! | SAN | `Nf3`, `exd5`, `O-O`, `e8=Q+` |
//! | SAN variants | `0-0`, `e8Q`, `e8(Q)`, `e8/Q`, `exd6e.p.`; `Nd5` for a capture |
//! | long algebraic | `Ng1-f3`, `Ng1xf3`, `e2-e4`, `e7xd8Q`, `Ke1-g1` |
//! | UCI | `g1f3`, `e7e8q`; castling as `e1g1` or `e1h1` |
//! | null moves | `--`, `Z0`, `null`, `@@@@`, `0000` |

use shakmaty::san::{San, SanError};
use shakmaty::uci::UciMove;
use shakmaty::{CastlingSide, Chess, Move, Position, Role, Square};
use std::borrow::Cow;

/// Dashes that word processors and web pages use in place of a hyphen.
const DASHES: [char; 4] = ['‐', '–', '—', '−'];
/// Suffixes of an en-passant capture, without the last dot.
const IN_PASSING: [&str; 2] = ["e.p", "ep"];

/// A parsed word, before a position determines the move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// A move in algebraic notation.
    San(San),
    /// A move given by its origin and destination squares.
    Squares {
        /// The role of the piece, if the word names it.
        role: Option<Role>,
        /// The two squares and the promotion, if any.
        squares: UciMove,
    },
    /// A null move, with which the side to move passes.
    Null,
}

impl Notation {
    /// Reads a word in one of the notations listed above.
    pub(crate) fn parse(word: &[u8]) -> Option<Notation> {
        match San::from_ascii(word) {
            // A longer word, which includes a check sign, is an annotation instead of a null move.
            Ok(San::Null) => (word.len() == 2).then_some(Notation::Null),
            Ok(san) => Some(Notation::of(san, word)),
            Err(_) => unbend(word),
        }
    }

    /// Returns the notation of `word`, which has been parsed as `san`.
    fn of(san: San, word: &[u8]) -> Notation {
        match san {
            // UCI notation does not name the piece, and a king move in it may be castling.
            San::Normal {
                role: role @ (Role::Pawn | Role::King),
                file: Some(file),
                rank: Some(rank),
                to,
                promotion,
                ..
            } => Notation::Squares {
                role: (role == Role::King || word.starts_with(b"P")).then_some(role),
                squares: UciMove::Normal {
                    from: Square::from_coords(file, rank),
                    to,
                    promotion,
                },
            },
            san => Notation::San(san),
        }
    }

    /// Returns the legal move that the notation denotes.
    ///
    /// # Errors
    /// [`SanError`] if no move matches, or if several do.
    pub(crate) fn to_move(self, position: &Chess) -> Result<Move, SanError> {
        match self {
            Notation::San(san) => match san.to_move(position) {
                Err(SanError::IllegalSan) => match recaptured(san) {
                    Some(san) => san.to_move(position),
                    None => Err(SanError::IllegalSan),
                },
                read => read,
            },
            Notation::Squares { role, squares } => {
                let mv = squares.to_move(position).ok();
                mv.filter(|mv| role.is_none_or(|role| role == mv.role()))
                    .ok_or(SanError::IllegalSan)
            }
            Notation::Null => Err(SanError::IllegalSan),
        }
    }

    /// Returns all legal moves that the notation may denote.
    pub(crate) fn meant(self, position: &Chess) -> Vec<Move> {
        let matching = |san: San| -> Vec<Move> {
            let legal = position.legal_moves().into_iter();
            legal.filter(|&mv| san.matches(mv)).collect()
        };
        match self {
            Notation::San(san) => match (matching(san), recaptured(san)) {
                (moves, Some(san)) if moves.is_empty() => matching(san),
                (moves, _) => moves,
            },
            other => other.to_move(position).into_iter().collect(),
        }
    }
}

/// Adds or removes the capture sign of a move, because some writers omit the `x`. Captures by pawns
/// are recognised by the pawn's file instead.
fn recaptured(san: San) -> Option<San> {
    match san {
        San::Normal {
            role: Role::Pawn,
            file: None,
            ..
        } => None,
        San::Normal {
            role,
            file,
            rank,
            capture,
            to,
            promotion,
        } => Some(San::Normal {
            role,
            file,
            rank,
            capture: !capture,
            to,
            promotion,
        }),
        _ => None,
    }
}

/// Converts a word to standard SAN and parses it.
fn unbend(word: &[u8]) -> Option<Notation> {
    let text = with_hyphens(word)?;
    let text = unmarked(&text);
    if text.eq_ignore_ascii_case("null") || text == "@@@@" || text == "0000" {
        return Some(Notation::Null);
    }
    match text.replace(['0', 'o'], "O").as_str() {
        "O-O" => return Some(Notation::San(San::Castle(CastlingSide::KingSide))),
        "O-O-O" => return Some(Notation::San(San::Castle(CastlingSide::QueenSide))),
        _ => {}
    }
    let (squares, promotion) = promotion(text);
    let mut san = match squares.split_once('-') {
        None => squares.to_owned(),
        // The hyphen separates the piece or its origin from the destination.
        Some((from, to)) if !from.is_empty() && to.len() == 2 => format!("{from}{to}"),
        Some(_) => return None,
    };
    if let Some(piece) = promotion {
        san.extend(['=', piece]);
    }
    let word = san.as_bytes();
    let san = San::from_ascii(word).ok().filter(|&san| san != San::Null)?;
    Some(Notation::of(san, word))
}

/// Replaces all dashes with hyphens. Returns `None` if the word is not UTF-8.
pub(crate) fn with_hyphens(word: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(word).ok()?;
    Some(match text.is_ascii() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.replace(DASHES, "-")),
    })
}

/// Removes the suffixes for check and en passant.
fn unmarked(text: &str) -> &str {
    let text = text.trim_end_matches(['+', '#', '.']);
    let unmarked = IN_PASSING.iter().find_map(|mark| text.strip_suffix(mark));
    unmarked.map_or(text, |text| text.trim_end_matches(['+', '#']))
}

/// Separates a move from its promotion.
fn promotion(text: &str) -> (&str, Option<char>) {
    let open = text.strip_suffix(')').unwrap_or(text);
    let Some(piece) = open
        .chars()
        .next_back()
        .filter(|it| "QRBNqrbn".contains(*it))
    else {
        return (text, None);
    };
    let squares = open[..open.len() - 1].trim_end_matches(['=', '/', '(']);
    match squares.ends_with(['1', '8']) {
        true => (squares, Some(piece)),
        false => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use proptest::prelude::*;
    use shakmaty::CastlingMode;

    /// Reads `words` as moves in a position, and returns the moves in UCI notation.
    fn read(fen: &str, words: &[&str]) -> Vec<String> {
        let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        let words = words.iter();
        let moves = words.map(|word| {
            let notation = Notation::parse(word.as_bytes());
            let mv = notation.map(|notation| notation.to_move(game.position()));
            match mv {
                Some(Ok(mv)) => game.format_move(mv),
                Some(Err(error)) => format!("{word}: {error}"),
                None => format!("{word}: no move"),
            }
        });
        moves.collect()
    }

    #[track_caller]
    fn assert_all(fen: &str, words: &[&str], expected: &str) {
        assert_eq!(read(fen, words), vec![expected; words.len()]);
    }

    const CASTLING: &str = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
    const PAWNS: &str = "3rk3/4P3/8/3pP3/8/8/3P4/4K3 w - d6 0 1";

    #[test]
    fn every_form_of_a_promotion() {
        let quiet = "8/P3k3/8/8/8/8/8/4K3 w - - 0 1";
        let queen = [
            "a8=Q", "a8Q", "a8(Q)", "a8=(Q)", "a8/Q", "a8=q", "a8q", "a8Q+", "a8(Q)#", "a7a8q",
            "a7a8Q", "a7-a8Q", "a7-a8=Q", "Pa8=Q", "a7-a8(Q)",
        ];
        assert_all(quiet, &queen, "a7a8q");
        let knight = ["a8=N", "a8N", "a8(N)", "a7a8n", "a7-a8=n"];
        assert_all(quiet, &knight, "a7a8n");
        let bishop = ["a8=B", "a8B", "a8b", "a7a8b"];
        assert_all(quiet, &bishop, "a7a8b");
        let capture = ["exd8=R+", "exd8R", "ed8R", "e7xd8(R)", "e7-d8R", "e7d8r"];
        assert_all(PAWNS, &capture, "e7d8r");
    }

    #[test]
    fn every_form_of_castling() {
        let short = [
            "O-O", "0-0", "o-o", "O-O+", "0-0#", "O–O", "0—0", "e1g1", "e1h1", "Ke1-g1", "e1-g1",
        ];
        assert_all(CASTLING, &short, "e1g1");
        let long = ["O-O-O", "0-0-0", "o-o-o", "0–0–0+", "e1c1", "e1a1", "Ke1c1"];
        assert_all(CASTLING, &long, "e1c1");
        let chess960 = "1rk3r1/pppppppp/8/8/8/8/PPPPPPPP/1RK3R1 w GBgb - 0 1";
        assert_all(chess960, &["O-O", "0-0", "c1g1"], "c1g1");
    }

    #[test]
    fn every_form_of_a_move() {
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
        let knight = [
            "Nf3", "Ng1f3", "Ng1-f3", "N-f3", "Ng-f3", "N1f3", "g1f3", "g1-f3", "Nxf3",
        ];
        assert_all(start, &knight, "g1f3");
        assert_all(
            start,
            &["e4", "e2-e4", "e2e4", "e2–e4", "Pe4", "Pe2-e4", "e4."],
            "e2e4",
        );
        let takes = "4k3/8/8/3p4/8/4N3/2P1P3/4K3 w - - 0 1";
        assert_all(
            takes,
            &["Nxd5", "Nd5", "Ne3xd5", "Ne3-d5", "e3d5", "Ne3d5"],
            "e3d5",
        );
        let passing = [
            "exd6",
            "exd6e.p.",
            "exd6ep",
            "exd6ep.",
            "exd6e.p.+",
            "exd6+e.p.",
            "ed6",
            "e5xd6",
            "e5-d6",
            "e5d6",
            "e5d6ep",
        ];
        assert_all(PAWNS, &passing, "e5d6");
        for word in ["--", "Z0", "null", "NULL", "@@@@", "0000"] {
            assert_eq!(Notation::parse(word.as_bytes()), Some(Notation::Null));
        }
    }

    #[test]
    fn rejects_illegal_and_unreadable_moves() {
        for word in [
            "", "-", "+", "--+", "N", "Sf3", "Cf3", "-e4", "e-4", "e4-", "e2--e4", "e2-e4-e5",
            "e4Q", "0-0-", "0-0-0-0", "1-0", "e9", "nf3", "exd6epep", "♘f3", "é", "0", "000",
        ] {
            assert_eq!(Notation::parse(word.as_bytes()), None, "{word}");
        }
        assert_eq!(Notation::parse(b"\xff"), None);
        // A pawn's capture must name the pawn's file, and a named piece must exist.
        let illegal = [
            "d6", "Pe1f1", "Kd2d4", "Qe1f1", "e1e3", "e8=Q", "N@d4", "O-O",
        ];
        for (word, read) in illegal.iter().zip(read(PAWNS, &illegal)) {
            assert_eq!(read, format!("{word}: {}", SanError::IllegalSan));
        }
        let two = "4k3/8/8/8/8/8/8/R3K2R w - - 0 1";
        let ambiguous = Notation::parse(b"Rf1").unwrap();
        let game = Game::from_fen(two, CastlingMode::Standard).unwrap();
        assert!(ambiguous.to_move(game.position()).is_ok());
        let two = "4k3/8/8/8/8/N7/8/4K1N1 w - - 0 1";
        assert_eq!(read(two, &["Nc2", "Ne2"]), ["a3c2", "g1e2"]);
        let two = "4k3/8/8/8/8/2N5/8/4K1N1 w - - 0 1";
        assert_eq!(
            read(two, &["Ne2"]),
            [format!("Ne2: {}", SanError::AmbiguousSan)]
        );
        let game = Game::from_fen(two, CastlingMode::Standard).unwrap();
        let both = Notation::parse(b"Ne2").unwrap().meant(game.position());
        assert_eq!(both.len(), 2);
    }

    proptest! {
        #[test]
        fn no_word_panics(word in "[-0Oo+#.=/()xPKQNa-h1-8qep]{0,12}|\\PC{0,8}") {
            if let Some(notation) = Notation::parse(word.as_bytes()) {
                let game = Game::from_fen(CASTLING, CastlingMode::Standard).unwrap();
                let _ = notation.to_move(game.position());
                notation.meant(game.position());
            }
        }

        #[test]
        fn no_bytes_panic(word in proptest::collection::vec(any::<u8>(), 0..9)) {
            Notation::parse(&word);
        }
    }
}
