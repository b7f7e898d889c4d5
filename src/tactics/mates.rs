//! Mates in one.

use crate::chess::mate_in_one;
use shakmaty::{Chess, Position};

/// Returns whether the side to move can give mate at once.
pub fn can_mate(position: &Chess) -> bool {
    mate_in_one(position, &position.legal_moves()).is_some()
}

/// Returns whether the opponent would give mate at once if the side to move passed. A side in check
/// cannot pass, so the answer is then `false`.
pub fn faces_mate(position: &Chess) -> bool {
    position
        .clone()
        .swap_turn()
        .is_ok_and(|passed| can_mate(&passed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::tests::game_of_choices;
    use crate::chess::{Game, after};
    use proptest::prelude::*;
    use shakmaty::CastlingMode;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn mates_are_those_among_the_legal_moves(
            choices in prop::collection::vec(any::<u32>(), 0..90),
        ) {
            let game = game_of_choices(&choices);
            let position = game.position();
            let moves = position.legal_moves();
            let mates = moves.iter().any(|&mv| after(position, mv).is_checkmate());
            prop_assert_eq!(can_mate(position), mates);
        }
    }

    #[test]
    fn a_mate_that_is_threatened_is_faced() {
        for (fen, expected) in [
            // The rook mates on the back rank.
            ("6k1/5ppp/8/8/8/8/8/R6K b - - 0 1", true),
            ("6k1/5pp1/7p/8/8/8/8/R6K b - - 0 1", false),
            // In check.
            ("R5k1/5ppp/8/8/8/8/8/7K b - - 0 1", false),
        ] {
            let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
            assert_eq!(faces_mate(game.position()), expected, "{fen}");
        }
    }
}
