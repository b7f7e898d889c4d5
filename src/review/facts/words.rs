//! Words for sides, pieces, moves and lists.

use shakmaty::san::SanPlus;
use shakmaty::{Board, Chess, Color, Move, Position, Role, Square};

/// Returns a side's name.
pub(super) fn side(color: Color) -> &'static str {
    color.fold_wb("White", "Black")
}

/// Returns a piece's name.
pub(super) fn name(role: Role) -> &'static str {
    match role {
        Role::Pawn => "pawn",
        Role::Knight => "knight",
        Role::Bishop => "bishop",
        Role::Rook => "rook",
        Role::Queen => "queen",
        Role::King => "king",
    }
}

/// Names the piece on a square, as in "the knight on f3".
pub(super) fn piece(board: &Board, square: Square) -> String {
    let role = board.role_at(square).unwrap_or(Role::Pawn);
    format!("the {} on {square}", name(role))
}

/// Returns a legal move in SAN, with its suffix for check or mate.
pub fn san(position: &Chess, mv: Move) -> String {
    SanPlus::from_move(position.clone(), mv).to_string()
}

/// Returns moves in SAN, separated by spaces; the line ends before the first illegal move.
pub(super) fn line(position: &Chess, moves: &[Move]) -> String {
    let mut position = position.clone();
    let mut words = Vec::new();
    for &mv in moves {
        if !position.legal_moves().contains(&mv) {
            break;
        }
        words.push(SanPlus::from_move_and_play_unchecked(&mut position, mv).to_string());
    }
    words.join(" ")
}

/// Formats a list, as in "a, b and c".
pub(super) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// Returns a text with its first letter in upper case.
pub(super) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
