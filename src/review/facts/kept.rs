//! A piece that one line loses and the better line keeps.

use super::board::{after, value};
use super::words::{name, san};
use super::{Fact, Topic};
use shakmaty::{Chess, Move, Position, Role, Square};

/// States that the first move of `best` keeps the most valuable piece that `worse` loses, among the
/// kinds that `is_lost` names. Both lines begin in the same position, and the piece is still there at the end
/// of the best one.
pub fn kept(
    position: &Chess,
    best: &[Move],
    worse: &[Move],
    is_lost: impl Fn(Role) -> bool,
) -> Option<Fact> {
    let (square, role) = lost(position, worse, is_lost)?;
    let mut current = position.clone();
    let mut stands = square;
    for &mv in best {
        if current.turn() == position.turn() {
            stands = moved(&current, mv, stands);
        } else if captured(mv) == Some(stands) {
            return None;
        }
        current = after(&current, mv);
    }
    let text = format!(
        "{} keeps the {} on {square}.",
        san(position, *best.first()?),
        name(role)
    );
    let is_there = current.board().role_at(stands) == Some(role);
    is_there.then(|| Fact::new(Topic::Kept, text, [square]))
}

/// Returns where the most valuable such piece that the other side captures stood before the line.
fn lost(position: &Chess, line: &[Move], is_lost: impl Fn(Role) -> bool) -> Option<(Square, Role)> {
    let own = position.board().by_color(position.turn());
    let mut pieces: Vec<(Square, Square)> = own.into_iter().map(|it| (it, it)).collect();
    let mut found: Option<(Square, Role)> = None;
    let mut current = position.clone();
    for &mv in line {
        if current.turn() == position.turn() {
            for (_, stands) in &mut pieces {
                *stands = moved(&current, mv, *stands);
            }
        } else if let Some(square) = captured(mv) {
            let place = pieces.iter().position(|(_, stands)| *stands == square)?;
            let (from, _) = pieces.swap_remove(place);
            let role = position.board().role_at(from)?;
            let is_more = found.is_none_or(|(_, other)| value(role) > value(other));
            if is_lost(role) && is_more {
                found = Some((from, role));
            }
        }
        current = after(&current, mv);
    }
    found
}

/// Returns where the piece on a square stands after a move of its own side.
fn moved(position: &Chess, mv: Move, square: Square) -> Square {
    match mv {
        Move::Castle { king, rook } => {
            let to = mv.castling_side().map(|side| {
                let turn = position.turn();
                (side.king_to(turn), side.rook_to(turn))
            });
            match to {
                Some((to, _)) if king == square => to,
                Some((_, to)) if rook == square => to,
                _ => square,
            }
        }
        _ if mv.from() == Some(square) => mv.to(),
        _ => square,
    }
}

/// Returns the square of the piece that a move captures.
fn captured(mv: Move) -> Option<Square> {
    match mv {
        Move::EnPassant { from, to } => Some(Square::from_coords(to.file(), from.rank())),
        _ => mv.is_capture().then_some(mv.to()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{line, position};
    use super::*;

    #[test]
    fn pieces_that_are_kept() {
        let fen = "4k3/8/8/4r3/4N3/8/3P3P/6K1 w - - 0 1";
        for (best, worse, expected) in [
            ("Ng3 Kd7", "h3 Rxe4", "Ng3 keeps the knight on e4."),
            ("d3 Kd7", "h3 Rxe4", "d3 keeps the knight on e4."),
            // No fact: the best line loses it as well; the other line loses nothing.
            ("Ng3 Re1+ Kf2 Rg1 Kf3 Rxg3+", "h3 Rxe4", ""),
            ("Ng3 Kd7", "h3 Kd7", ""),
        ] {
            let position = position(fen);
            let [best, worse] = [best, worse].map(|moves| line(&position, moves));
            let found =
                kept(&position, &best, &worse, |role| role == Role::Knight).map(|fact| fact.text);
            assert_eq!(found.unwrap_or_default(), expected);
        }
    }
}
