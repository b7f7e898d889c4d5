//! The material that remains after captures: an alpha–beta search without a network.

use super::exchange::exchange;
use super::material::{balance, gain, value};
use crate::chess::after;
use shakmaty::{Chess, Move, MoveList, Position};

/// The worth of giving mate in centipawns, which exceeds every balance of material.
pub const MATE: i32 = 100_000;
/// The maximum number of captures in a row, including moves out of check.
const LONGEST: u32 = 8;

/// Returns the balance of material, in centipawns for the side to move, when both sides have made
/// `depth` moves each of any kind, and then only captures that lose nothing by [`exchange`] and
/// promotions to a queen. A side may stop capturing, except in check, where all moves are tried; a
/// side in check after `depth` moves makes one more move of any kind.
///
/// Results below `alpha` or above `beta` are bounds.
pub fn material_after(position: &Chess, depth: u32, alpha: i32, beta: i32) -> i32 {
    match depth {
        0 if position.is_check() => search(position, 1, alpha, beta, false),
        _ => search(position, depth, alpha, beta, true),
    }
}

/// Searches `depth` plies of any moves. `extends` tells whether a side in check at the end makes
/// one more move.
fn search(position: &Chess, depth: u32, mut alpha: i32, beta: i32, extends: bool) -> i32 {
    if depth == 0 {
        return match extends && position.is_check() {
            true => search(position, 1, alpha, beta, false),
            false => quiet(position, LONGEST, alpha, beta),
        };
    }
    let mut moves = position.legal_moves();
    if moves.is_empty() {
        return ended(position);
    }
    order(&mut moves);
    let mut best = -MATE;
    for mv in moves {
        let after = after(position, mv);
        best = best.max(-search(&after, depth - 1, -beta, -alpha, extends));
        alpha = alpha.max(best);
        if alpha >= beta {
            break;
        }
    }
    best
}

/// Searches captures that lose nothing, promotions to a queen, and moves out of check.
fn quiet(position: &Chess, plies: u32, mut alpha: i32, beta: i32) -> i32 {
    let is_check = position.is_check();
    let mut best = -MATE;
    if !is_check || plies == 0 {
        best = balance(position);
        alpha = alpha.max(best);
        if plies == 0 || alpha >= beta {
            return best;
        }
    }
    let mut moves = match is_check {
        true => position.legal_moves(),
        false => captures(position),
    };
    if moves.is_empty() && is_check {
        return ended(position);
    }
    order(&mut moves);
    for mv in moves {
        let after = after(position, mv);
        if !is_check && exchange(after.board(), mv.to(), after.turn()) > gain(mv) {
            continue;
        }
        best = best.max(-quiet(&after, plies - 1, -beta, -alpha));
        alpha = alpha.max(best);
        if alpha >= beta {
            break;
        }
    }
    best
}

/// Returns the captures, and the promotions to a queen.
fn captures(position: &Chess) -> MoveList {
    let mut moves = position.capture_moves();
    if position.board().pawns().any() {
        let promotions = position.promotion_moves().into_iter();
        let quiet = promotions.filter(|mv| !mv.is_capture());
        moves.extend(quiet.filter(|mv| mv.promotion() == Some(shakmaty::Role::Queen)));
    }
    moves
}

/// Returns the worth of a position without legal moves: mate, or a draw.
fn ended(position: &Chess) -> i32 {
    match position.is_check() {
        true => -MATE,
        false => 0,
    }
}

/// Sorts captures of much by little to the front.
fn order(moves: &mut MoveList) {
    let merit = |mv: &Move| match gain(*mv) {
        0 => 0,
        gain => 10 * gain - value(mv.role()),
    };
    moves.sort_by_key(|mv| -merit(mv));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::chess::tests::game_of_choices;
    use proptest::prelude::*;
    use shakmaty::CastlingMode;
    use std::cell::Cell;

    /// Maximum number of positions of a search without bounds, which can take minutes in positions
    /// with many captures.
    const BUDGET: u32 = 200_000;

    /// Computes the balance after `depth` plies of any moves, without bounds. The result counts only
    /// if some of the budget is left.
    fn minimax(position: &Chess, depth: u32, extends: bool, budget: &Cell<u32>) -> i32 {
        match depth {
            0 if extends && position.is_check() => minimax(position, 1, false, budget),
            0 => captures_by_minimax(position, LONGEST, budget),
            _ => {
                let replies = position.legal_moves().into_iter();
                let worths =
                    replies.map(|mv| -minimax(&after(position, mv), depth - 1, extends, budget));
                worths.max().unwrap_or_else(|| ended(position))
            }
        }
    }

    fn captures_by_minimax(position: &Chess, plies: u32, budget: &Cell<u32>) -> i32 {
        let is_check = position.is_check();
        budget.set(budget.get().saturating_sub(1));
        if plies == 0 || budget.get() == 0 {
            return balance(position);
        }
        let is_tried = |&mv: &Move| {
            let after = after(position, mv);
            let loses = exchange(after.board(), mv.to(), after.turn()) > gain(mv);
            let is_forcing = mv.is_capture() || mv.promotion() == Some(shakmaty::Role::Queen);
            is_check || is_forcing && !loses
        };
        let tried = position.legal_moves().into_iter().filter(is_tried);
        let worths = tried.map(|mv| -captures_by_minimax(&after(position, mv), plies - 1, budget));
        match is_check {
            true => worths.max().unwrap_or_else(|| ended(position)),
            false => worths.fold(balance(position), i32::max),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4))]
        #[test]
        fn bounds_change_nothing(
            choices in prop::collection::vec(any::<u32>(), 10..60),
            low in -500..400,
        ) {
            let game = game_of_choices(&choices);
            let position = game.position();
            for depth in [0, 1] {
                let budget = Cell::new(BUDGET);
                let exact = minimax(position, depth, true, &budget);
                prop_assume!(budget.get() > 0);
                prop_assert_eq!(material_after(position, depth, -MATE, MATE), exact);
                let bounded = material_after(position, depth, low, low + 100);
                prop_assert_eq!(bounded.clamp(low, low + 100), exact.clamp(low, low + 100));
            }
        }
    }

    #[test]
    fn material_after_captures() {
        for (fen, depth, expected) in [
            // The knight is free.
            ("4k3/8/8/4n3/8/8/8/4R1K1 w - - 0 1", 0, 500),
            // The knight is defended.
            ("4k3/8/3p4/4n3/8/8/8/4R1K1 w - - 0 1", 0, 90),
            // A fork is seen a move ahead, by the side that moves again.
            ("4k3/8/8/8/4N3/8/8/4K3 w - - 0 1", 1, 310),
            // Mate.
            ("R5k1/5ppp/8/8/8/8/8/7K b - - 0 1", 0, -MATE),
            ("6k1/5ppp/8/8/8/8/8/R6K w - - 0 1", 1, MATE),
        ] {
            let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
            let found = material_after(game.position(), depth, -MATE, MATE);
            assert_eq!(found, expected, "{fen}");
        }
    }
}
