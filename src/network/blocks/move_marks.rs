//! Moves as marks on the squares that they go from and to.

use crate::encode::from_square_to_square;
use shakmaty::Role;

/// Bitboards of a move: the square it leaves, the square it reaches, and the latter again
/// where a pawn becomes a queen, a rook or a bishop.
pub(in crate::network) const MOVE_MARKS: usize = 5;

/// The marks of a move by its policy index; none of an index that is no move.
pub(in crate::network) fn move_marks(index: u16) -> [u64; MOVE_MARKS] {
    let Some((from, to, promotion)) = from_square_to_square(index.into()) else {
        return [0; MOVE_MARKS];
    };
    let becomes = |role| u64::from(promotion == Some(role)) << to;
    [
        1 << from,
        1 << to,
        becomes(Role::Queen),
        becomes(Role::Rook),
        becomes(Role::Bishop),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::POLICY_SIZE;
    use std::collections::HashSet;

    #[test]
    fn every_move_has_marks_of_its_own() {
        let all: HashSet<_> = (0..POLICY_SIZE as u16).map(move_marks).collect();
        assert_eq!(all.len(), POLICY_SIZE);
        assert_eq!(move_marks(u16::MAX), [0; MOVE_MARKS]);
        // a7a8q is the first with a suffix.
        assert_eq!(move_marks(1792), [1 << 48, 1 << 56, 1 << 56, 0, 0]);
    }
}
