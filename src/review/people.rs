//! The moves of people by rating, as predicted by a network of human play.

use crate::backend::{Backend, BackendError, evaluate_people};
use crate::chess::{Game, Ratings};
use serde::{Deserialize, Serialize};
use shakmaty::Move;

/// The ratings that the network is asked about.
pub const RATINGS: [u16; 11] = [
    600, 800, 1000, 1200, 1400, 1600, 1800, 2000, 2200, 2400, 2600,
];

/// One value for each of [`RATINGS`].
pub type Curve = [f32; RATINGS.len()];

/// The shares of players who would play the move that was played and the best move, if both players
/// have the same rating.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Shares {
    /// The share of players who would play the move that was played.
    #[cfg_attr(test, schema(value_type = Vec<f32>))]
    pub played: Curve,
    /// The share of players who would play the best move; absent if no best move is known.
    #[cfg_attr(test, schema(value_type = Option<Vec<f32>>))]
    pub best: Option<Curve>,
}

/// Returns, for each of these moves in a position, the shares of players who play it, by rating;
/// all are evaluated in one batch.
///
/// # Errors
/// [`BackendError`] if the network fails.
pub fn shares(
    backend: &dyn Backend,
    game: &Game,
    moves: &[Move],
) -> Result<Vec<Curve>, BackendError> {
    let at = |rating: u16| {
        let mut game = game.clone();
        game.set_ratings(Ratings::both(rating));
        game
    };
    let games = RATINGS.map(at);
    let evaluated = evaluate_people(backend, &games)?;
    let policies: Vec<Vec<(Move, f32)>> =
        evaluated.iter().map(|it| it.priors().collect()).collect();
    let share = |policy: &[(Move, f32)], mv: Move| {
        let found = policy.iter().find(|(other, _)| *other == mv);
        found.map_or(0.0, |(_, share)| *share)
    };
    let curve = |&mv: &Move| std::array::from_fn(|place| share(&policies[place], mv));
    Ok(moves.iter().map(curve).collect())
}

/// Returns the share at a rating, interpolated between those of a curve.
pub fn at(curve: &Curve, rating: u16) -> f32 {
    let last = RATINGS.len() - 1;
    let place = (f32::from(rating) - f32::from(RATINGS[0])) / 200.0;
    let place = place.clamp(0.0, last as f32);
    let low = (place as usize).min(last - 1);
    let part = place - low as f32;
    curve[low] * (1.0 - part) + curve[low + 1] * part
}

/// Expresses a share in words, as in "4 in 10 players".
fn share_in_words(share: f32) -> String {
    match share {
        0.95.. => "nearly all players".to_owned(),
        0.095.. => format!(
            "{:.0} in 10 players",
            (10.0 * share).round().clamp(1.0, 9.0)
        ),
        0.01.. => format!("1 in {:.0} players", (1.0 / share).round()),
        _ => "fewer than 1 in 100 players".to_owned(),
    }
}

/// Returns a sentence with the shares of a move at a rating and at another one. `subject` names the
/// move, as in "this" or "Nf3".
pub fn in_words(curve: &Curve, rating: u16, subject: &str) -> String {
    let here = share_in_words(at(curve, rating));
    let verb = match here.starts_with("1 in ") {
        true => "plays",
        false => "play",
    };
    let other = other_rating(curve, rating);
    let there = share_in_words(at(curve, other));
    let sentence = format!("{} rated {rating} {verb} {subject}", capitalized(&here));
    match there == here {
        true => format!("{sentence}, and about as many at {other}."),
        false => format!(
            "{sentence}; at {other} it is {}.",
            there.replace(" players", "")
        ),
    }
}

/// Returns the rating to compare with, which is 600 points higher. Near the highest rating, it is
/// 600 points lower instead if the share differs more there.
fn other_rating(curve: &Curve, rating: u16) -> u16 {
    let [lowest, highest] = [RATINGS[0], RATINGS[RATINGS.len() - 1]];
    let above = rating.saturating_add(600).min(highest);
    let below = rating.saturating_sub(600).max(lowest);
    let differs = |other: u16| (at(curve, other) - at(curve, rating)).abs();
    match above.saturating_sub(rating) >= 300 || differs(above) > differs(below) {
        true => above,
        false => below,
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Uniform;
    use shakmaty::Position;

    #[test]
    fn shares_are_those_of_the_policy() {
        let game = Game::default();
        let moves = game.position().legal_moves();
        let found = shares(&Uniform::default(), &game, &moves).unwrap();
        assert_eq!(found.len(), 20);
        assert!(
            found
                .iter()
                .flatten()
                .all(|share| (share - 0.05).abs() < 1e-6)
        );
    }

    #[test]
    fn shares_lie_between_those_of_the_ratings() {
        let curve: Curve = std::array::from_fn(|place| place as f32 / 10.0);
        for (rating, expected) in [
            (600, 0.0),
            (700, 0.05),
            (1500, 0.45),
            (2600, 1.0),
            (100, 0.0),
            (3000, 1.0),
        ] {
            assert!((at(&curve, rating) - expected).abs() < 1e-6, "{rating}");
        }
    }

    #[test]
    fn shares_in_words() {
        let flat: Curve = [0.4; 11];
        assert_eq!(
            in_words(&flat, 1500, "this"),
            "4 in 10 players rated 1500 play this, and about as many at 2100."
        );
        let falling: Curve = std::array::from_fn(|place| 0.8 - 0.08 * place as f32);
        assert_eq!(
            in_words(&falling, 1400, "this"),
            "5 in 10 players rated 1400 play this; at 2000 it is 2 in 10."
        );
        let rare: Curve = std::array::from_fn(|place| if place < 8 { 0.03 } else { 0.002 });
        assert_eq!(
            in_words(&rare, 1800, "Nf3"),
            "1 in 33 players rated 1800 plays Nf3; at 2400 it is fewer than 1 in 100."
        );
        let sure: Curve = [0.99; 11];
        assert!(
            in_words(&sure, 2600, "this").starts_with("Nearly all players rated 2600 play this")
        );
    }
}
