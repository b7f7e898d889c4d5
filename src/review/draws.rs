//! Draws that the rules offer: threefold repetition, and fifty moves without progress.

use super::curve::Evaluation;
use super::report::DrawReport;
use crate::chess::{CLAIMABLE_RULE50, Game};
use shakmaty::{Color, Position};

/// Winning chances, in −1…1, below which a draw would have helped.
const WORSE: f64 = -0.1;

/// Returns the draws that could be claimed in a game, the first of each run of positions. `is_over`
/// states whether the last position ended the game; `evaluation` returns the evaluation of a
/// position for its side to move.
pub(super) fn draws(
    game: &Game,
    is_over: bool,
    evaluation: impl Fn(usize) -> Option<Evaluation>,
) -> Vec<DrawReport> {
    let plies = game.plies();
    let last = plies.len() - 1;
    let claimable = |place: usize| {
        let ply = &plies[place];
        match (
            ply.repetitions >= 2,
            ply.position.halfmoves() >= CLAIMABLE_RULE50,
        ) {
            _ if ply.position.legal_moves().is_empty() => None,
            (true, _) => Some("the position stands on the board for the third time"),
            (false, true) => Some("fifty moves were played without a capture or pawn move"),
            (false, false) => None,
        }
    };
    let is_first = |place: &usize| *place == 0 || claimable(place - 1).is_none();
    let places = (0..=last).filter(|&place| claimable(place).is_some());
    let places = places.filter(|place| is_first(place) || *place == last && is_over);
    let found = places.filter_map(|place| {
        let reason = claimable(place)?;
        let claimed = place == last && is_over;
        let side = plies[place].position.turn();
        let is_worse = evaluation(place).is_some_and(|it| it.chances() < WORSE);
        Some(DrawReport {
            ply: place,
            claimed,
            text: sentence(reason, side, claimed, is_worse),
        })
    });
    found.collect()
}

fn sentence(reason: &str, side: Color, claimed: bool, is_worse: bool) -> String {
    let name = side.fold_wb("White", "Black");
    match (claimed, is_worse) {
        (true, _) => format!("A draw by rule: {reason}."),
        (false, true) => {
            format!("A draw was missed: {reason}, and {name}, who is worse, could claim it.")
        }
        (false, false) => format!("A draw could be claimed by {name}: {reason}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shuffled(times: usize) -> Game {
        let mut game = Game::default();
        for mv in ["g1f3", "g8f6", "f3g1", "f6g8"].repeat(times) {
            game.play(game.parse_move(mv).unwrap());
        }
        game
    }

    #[test]
    fn draws_are_claimed_or_missed() {
        let worse = |_: usize| Some(Evaluation::Centipawns(-300));
        assert!(draws(&shuffled(1), false, worse).is_empty());
        let claimed = draws(&shuffled(2), true, worse);
        assert!(claimed[0].claimed && claimed[0].ply == 8);
        assert!(claimed[0].text.contains("third time"));
        let mut game = shuffled(2);
        game.play(game.parse_move("e2e4").unwrap());
        let missed = draws(&game, false, worse);
        assert_eq!(missed.len(), 1);
        assert!(
            missed[0].text.contains("White, who is worse"),
            "{}",
            missed[0].text
        );
        let even = draws(&game, false, |_| None);
        assert_eq!(
            even[0].text,
            "A draw could be claimed by White: the position stands on the board for the third time."
        );
    }

    #[test]
    fn fifty_moves_are_a_draw() {
        let fen = "4k3/8/8/8/8/8/4R3/4K3 b - - 99 80";
        let mut game = Game::from_fen(fen, shakmaty::CastlingMode::Standard).unwrap();
        game.play(game.read_move("Kd7").unwrap());
        let found = draws(&game, true, |_| None);
        assert!(found[0].text.contains("fifty moves"));
    }
}
