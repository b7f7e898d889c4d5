//! The geometry of pieces, which the facts share.

pub(super) use crate::chess::after;
use shakmaty::attacks::ray;
use shakmaty::{Bitboard, Board, Chess, Color, Move, Piece, Position, Role, Square};

/// Returns a piece's value in pawns; a king is worth more than everything else.
pub(super) fn value(role: Role) -> i32 {
    match role {
        Role::Pawn => 1,
        Role::Knight | Role::Bishop => 3,
        Role::Rook => 5,
        Role::Queen => 9,
        Role::King => 100,
    }
}

/// Returns White's material minus Black's, in pawns.
pub fn balance(position: &Chess) -> i32 {
    let side = |color| -> i32 {
        let material = position.board().material_side(color);
        let pieces = Role::ALL.into_iter().filter(|&role| role != Role::King);
        pieces
            .map(|role| i32::from(*material.get(role)) * value(role))
            .sum()
    };
    side(Color::White) - side(Color::Black)
}

/// Returns the same position with the other side to move, or `None` if the side to move is in check
/// and cannot pass.
pub(super) fn passed(position: &Chess) -> Option<Chess> {
    if position.is_check() {
        return None;
    }
    position.clone().swap_turn().ok()
}

/// A piece that has just moved, other than by castling, in the position after the move.
#[derive(Clone, Copy)]
pub(super) struct Moved {
    pub from: Square,
    pub to: Square,
    pub piece: Piece,
}

/// Returns the piece that `mv` moves in `position`, as it is after the move.
pub(super) fn moved(position: &Chess, mv: Move) -> Option<Moved> {
    let (Move::Normal { from, to, .. } | Move::EnPassant { from, to }) = mv else {
        return None;
    };
    let role = mv.promotion().unwrap_or(mv.role());
    let piece = role.of(position.turn());
    Some(Moved { from, to, piece })
}

/// Returns the pieces of `color` that attack a square.
pub(super) fn attackers(board: &Board, square: Square, color: Color) -> Bitboard {
    board.attacks_to(square, color, board.occupied())
}

/// Returns whether no piece of its own side defends the piece on a square.
pub(super) fn is_undefended(board: &Board, square: Square, color: Color) -> bool {
    attackers(board, square, color).is_empty()
}

/// Returns whether the piece on a square stands between its own king and an enemy slider.
pub(super) fn is_pinned(board: &Board, square: Square, color: Color) -> bool {
    let Some(king) = board.king_of(color).filter(|&king| king != square) else {
        return false;
    };
    let mut without = board.clone();
    without.discard_piece_at(square);
    let before = attackers(board, king, !color);
    (attackers(&without, king, !color) & !before).any()
}

/// Returns the first two pieces that a slider meets in each direction.
pub(super) fn lines(board: &Board, slider: Square) -> Vec<(Square, Square)> {
    let occupied = board.occupied();
    let first = board.attacks_from(slider) & occupied;
    let behind = |first: Square| {
        let line = ray(slider, first);
        let mut without = occupied;
        without.discard(first);
        let piece = board.piece_at(slider)?;
        let reached = shakmaty::attacks::attacks(slider, piece, without);
        let behind = reached & line & without & !board.attacks_from(slider);
        Some((first, behind.first()?))
    };
    first.into_iter().filter_map(behind).collect()
}
