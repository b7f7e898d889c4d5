//! The 1858 moves of the common policy vector, in Lc0's order.
//!
//! The first 1,792 entries are all pairs of squares between which a queen or a knight could move on
//! an empty board. They are sorted by origin from a1 to h8, then by target from a1 to h8. A knight
//! promotion uses the entry of its pair. The other 66 entries are promotions to queen, rook and
//! bishop, for a pawn on each of a7…h7 and each file that it can reach. Castling is encoded as the
//! king taking its own rook.

use shakmaty::{Color, Move, Position, Role, Square};
use std::sync::LazyLock;

/// Number of entries in the policy vector.
pub const POLICY_SIZE: usize = 1858;

/// Number of pairs of squares between which a queen or a knight could move.
pub(super) const PAIRS: usize = 1792;
const NONE: u16 = u16::MAX;
const PROMOTIONS: [Role; 3] = [Role::Queen, Role::Rook, Role::Bishop];

struct Tables {
    /// Index of each pair of squares, or [`NONE`] if no piece can move between them.
    index: [[u16; 64]; 64],
    /// The pair of squares at each index.
    squares: [(u8, u8); POLICY_SIZE],
}

static TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut index = [[NONE; 64]; 64];
    let mut squares = [(0, 0); POLICY_SIZE];
    let mut next = 0;
    let mut from = 0;
    while from < 64 {
        let mut to = 0;
        while to < 64 {
            let files = (from as i32 % 8 - to as i32 % 8).abs();
            let ranks = (from as i32 / 8 - to as i32 / 8).abs();
            let queen = files == 0 || ranks == 0 || files == ranks;
            let knight = files * ranks == 2;
            if from != to && (queen || knight) {
                index[from][to] = next as u16;
                squares[next] = (from as u8, to as u8);
                next += 1;
            }
            to += 1;
        }
        from += 1;
    }
    assert!(next == PAIRS);
    let mut file = 0;
    while file < 8 {
        let mut target = if file == 0 { 0 } else { file - 1 };
        while target <= file + 1 && target < 8 {
            let mut piece = 0;
            while piece < PROMOTIONS.len() {
                squares[next] = (48 + file as u8, 56 + target as u8);
                next += 1;
                piece += 1;
            }
            target += 1;
        }
        file += 1;
    }
    assert!(next == POLICY_SIZE);
    Tables { index, squares }
}

/// Returns the square in the mover's view.
fn orient(square: Square, turn: Color) -> Square {
    match turn {
        Color::White => square,
        Color::Black => square.flip_vertical(),
    }
}

/// Returns the policy index of a legal move of `turn`.
pub fn policy_index(mv: Move, turn: Color) -> u16 {
    let (from, to, promotion) = match mv {
        Move::Normal {
            from,
            to,
            promotion,
            ..
        } => (from, to, promotion),
        Move::EnPassant { from, to } => (from, to, None),
        Move::Castle { king, rook } => (king, rook, None),
        // Drops occur only in other variants, and shakmaty never generates one here.
        Move::Put { to, .. } => (to, to, None),
    };
    let (from, to) = (orient(from, turn), orient(to, turn));
    match promotion.and_then(|role| PROMOTIONS.iter().position(|&other| other == role)) {
        Some(piece) => {
            let (file, target) = (usize::from(from.file()), usize::from(to.file()));
            // Each file before this one has three target files, except the a-file, which has two.
            let before = (3 * file).saturating_sub(1) + target - file.saturating_sub(1);
            (PAIRS + PROMOTIONS.len() * before + piece) as u16
        }
        None => TABLES.index[usize::from(from)][usize::from(to)],
    }
}

/// Returns the legal move of `position` at `index` in its policy vector.
pub fn policy_move(position: &impl Position, index: u16) -> Option<Move> {
    let turn = position.turn();
    position
        .legal_moves()
        .into_iter()
        .find(|&mv| policy_index(mv, turn) == index)
}

/// Returns the policy entry of the same move on a board mirrored left to right, or back. Castling
/// moves have no mirror image, because kings castle to different squares on the two wings.
/// Therefore mirror entries only if neither side can castle.
pub fn mirrored_index(index: u16) -> u16 {
    static MIRRORED: LazyLock<[u16; POLICY_SIZE]> = LazyLock::new(|| {
        std::array::from_fn(|index| moved_index(index as u16, Square::flip_horizontal))
    });
    MIRRORED[usize::from(index)]
}

/// Returns the policy entry of a move whose squares are mapped by `to`, or the original entry if
/// the mapped move has no entry.
pub(super) fn moved_index(index: u16, to: impl Fn(Square) -> Square) -> u16 {
    let (from, target) = TABLES.squares[usize::from(index)];
    let moved = |square: u8| u8::from(to(Square::new(square.into())));
    let there = (moved(from), moved(target));
    match usize::from(index).checked_sub(PAIRS) {
        None => TABLES.index[usize::from(there.0)][usize::from(there.1)],
        Some(promotion) => {
            let piece = promotion % PROMOTIONS.len();
            let mut others = (PAIRS + piece..POLICY_SIZE).step_by(PROMOTIONS.len());
            let found = others.find(|&other| TABLES.squares[other] == there);
            found.map_or(index, |found| found as u16)
        }
    }
}

/// Returns the two squares of a policy entry (in the mover's view, a1 = 0 … h8 = 63) and, for
/// entries with a suffix, the piece to which the pawn promotes.
pub fn from_square_to_square(index: usize) -> Option<(usize, usize, Option<Role>)> {
    let &(from, to) = TABLES.squares.get(index)?;
    let promotion = index
        .checked_sub(PAIRS)
        .map(|promotion| PROMOTIONS[promotion % PROMOTIONS.len()]);
    Some((from.into(), to.into(), promotion))
}

/// Returns the index, below 1,792, of a pair of squares between which a queen or a knight could
/// move.
pub(super) fn pair_index(from: Square, to: Square) -> Option<u16> {
    let index = TABLES.index[usize::from(from)][usize::from(to)];
    (index != NONE).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use shakmaty::CastlingMode;

    fn index(fen: &str, mv: &str) -> u16 {
        let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        policy_index(game.parse_move(mv).unwrap(), game.position().turn())
    }

    #[test]
    fn known_entries() {
        let castling = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
        assert_eq!(index(castling, "e1g1"), 103);
        assert_eq!(index(&castling.replace('w', "b"), "e8g8"), 103);
        let promotion = "1r2k3/P7/8/8/8/8/8/4K3 w - - 0 1";
        assert_eq!(index(promotion, "a7a8n"), 1401);
        assert_eq!(index(promotion, "a7a8q"), 1792);
        assert_eq!(index(promotion, "a7b8b"), 1797);
        assert_eq!(index("4k3/7P/8/8/8/8/8/4K3 w - - 0 1", "h7h8b"), 1857);
    }

    #[test]
    fn mirrored_entries_are_the_moves_on_the_other_wing() {
        let (from, to) = (Square::G1, Square::F3);
        let knight = |from, to| {
            let mv = Move::Normal {
                role: Role::Knight,
                from,
                capture: None,
                to,
                promotion: None,
            };
            policy_index(mv, Color::White)
        };
        let other = knight(Square::B1, Square::C3);
        assert_eq!(mirrored_index(knight(from, to)), other);
        for index in 0..POLICY_SIZE {
            let mirrored = usize::from(mirrored_index(index as u16));
            assert_eq!(usize::from(mirrored_index(mirrored as u16)), index);
            let (from, to, promotion) = from_square_to_square(index).unwrap();
            let there = from_square_to_square(mirrored).unwrap();
            assert_eq!(there, (from ^ 7, to ^ 7, promotion));
        }
    }

    #[test]
    fn every_entry_is_reached_by_the_move_it_describes() {
        for entry in 0..POLICY_SIZE {
            let (from, to, promotion) = from_square_to_square(entry).unwrap();
            let mv = Move::Normal {
                role: Role::Queen,
                from: Square::new(from as u32),
                capture: None,
                to: Square::new(to as u32),
                promotion,
            };
            assert_eq!(usize::from(policy_index(mv, Color::White)), entry);
        }
        assert!(from_square_to_square(POLICY_SIZE).is_none());
    }
}
