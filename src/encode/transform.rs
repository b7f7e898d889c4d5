//! Board symmetries that leave the game unchanged.

use super::policy::moved_index;
use shakmaty::Bitboard;

/// The transform that is applied to a board before a network sees it: a horizontal flip, then a
/// vertical flip, then a transposition along the diagonal from h1 to a8, each of them optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transform {
    /// Whether to reverse the files, which swaps a and h.
    pub flip: bool,
    /// Whether to reverse the ranks, which swaps the first and the eighth.
    pub mirror: bool,
    /// Whether to swap files and ranks, which leaves h1 and a8 in place.
    pub transpose: bool,
}

impl Transform {
    /// Returns whether the transform leaves the board unchanged.
    pub fn is_identity(self) -> bool {
        self == Transform::default()
    }

    /// Returns the transformed squares.
    pub fn squares(self, squares: u64) -> u64 {
        let mut squares = Bitboard(squares);
        if self.flip {
            squares = squares.flip_horizontal();
        }
        if self.mirror {
            squares = squares.flip_vertical();
        }
        if self.transpose {
            squares = squares.flip_anti_diagonal();
        }
        squares.0
    }

    /// Returns the policy entry of a move on the transformed board. Boards with pawns may only be
    /// flipped horizontally, and boards with castling rights may not be transformed at all. Other
    /// transforms leave entries that need pawns or castling rights unchanged.
    pub fn index(self, index: u16) -> u16 {
        if self.is_identity() {
            return index;
        }
        moved_index(index, |square| {
            let seen = self.squares(Bitboard::from(square).0);
            Bitboard(seen).first().unwrap_or(square)
        })
    }

    /// All eight transforms.
    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = Transform> {
        (0..8).map(|bits| Transform {
            flip: bits & 1 != 0,
            mirror: bits & 2 != 0,
            transpose: bits & 4 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{mirrored_index, policy_index};
    use shakmaty::fen::Fen;
    use shakmaty::{CastlingMode, Chess, Position, Square};

    #[test]
    fn corners_go_where_they_should() {
        let corner = |flip, mirror, transpose| {
            let transform = Transform {
                flip,
                mirror,
                transpose,
            };
            Bitboard(transform.squares(Bitboard::from(Square::A1).0)).first()
        };
        assert_eq!(corner(true, false, false), Some(Square::H1));
        assert_eq!(corner(false, true, false), Some(Square::A8));
        assert_eq!(corner(false, false, true), Some(Square::H8));
        assert_eq!(corner(true, false, true), Some(Square::H1));
    }

    #[test]
    fn moves_are_seen_as_the_pieces_are() {
        let fen: Fen = "8/1k6/3n4/8/2Q2r2/6B1/4N3/2K5 w - - 0 1".parse().unwrap();
        let position: Chess = fen.clone().into_position(CastlingMode::Standard).unwrap();
        for transform in Transform::all() {
            let mut setup = fen.clone().into_setup();
            let (roles, colors) = position.board().clone().into_bitboards();
            let turned = |squares: Bitboard| Bitboard(transform.squares(squares.0));
            setup.board =
                shakmaty::Board::try_from_bitboards(roles.map(turned), colors.map(turned)).unwrap();
            let seen: Chess = setup.position(CastlingMode::Standard).unwrap();
            let indices = |position: &Chess, transform: Transform| {
                let moves = position.legal_moves().into_iter();
                let mut indices: Vec<u16> = moves
                    .map(|mv| transform.index(policy_index(mv, position.turn())))
                    .collect();
                indices.sort_unstable();
                indices
            };
            assert_eq!(
                indices(&position, transform),
                indices(&seen, Transform::default()),
                "{transform:?}"
            );
        }
    }

    #[test]
    fn to_flip_is_to_mirror_promotions_too() {
        let flip = Transform {
            flip: true,
            ..Transform::default()
        };
        for index in 0..crate::encode::POLICY_SIZE as u16 {
            assert_eq!(flip.index(index), mirrored_index(index));
        }
    }
}
