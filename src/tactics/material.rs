//! The worth of pieces.

use shakmaty::{Board, Chess, Color, Move, Position, Role};

/// Returns the worth of a piece in centipawns; that of a king is 0.
pub const fn value(role: Role) -> i32 {
    match role {
        Role::Pawn => 100,
        Role::Knight => 310,
        Role::Bishop => 330,
        Role::Rook => 500,
        Role::Queen => 950,
        Role::King => 0,
    }
}

/// Returns the worth of the pieces of the side to move, less that of the opponent's.
pub fn balance(position: &Chess) -> i32 {
    let worth = |color: Color| of_side(position.board(), color);
    worth(position.turn()) - worth(!position.turn())
}

fn of_side(board: &Board, color: Color) -> i32 {
    let own = board.by_color(color);
    let count = |role| (own & board.by_role(role)).count() as i32;
    Role::ALL
        .into_iter()
        .map(|role| value(role) * count(role))
        .sum()
}

/// Returns the material that a move gains at once, by a capture or a promotion.
pub fn gain(mv: Move) -> i32 {
    let captured = mv.capture().map_or(0, value);
    let promoted = mv
        .promotion()
        .map_or(0, |role| value(role) - value(Role::Pawn));
    captured + promoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::tests::game_of_choices;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_move_gains_what_changes_on_the_board(
            choices in prop::collection::vec(any::<u32>(), 0..90),
        ) {
            let game = game_of_choices(&choices);
            let before = balance(game.position());
            for mv in game.position().legal_moves() {
                let after = crate::chess::after(game.position(), mv);
                prop_assert_eq!(-balance(&after), before + gain(mv));
            }
        }
    }
}
