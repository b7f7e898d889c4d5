//! The levels of beginners. The network hardly distinguishes players rated below [`FROM`], because
//! their moves in its training games are much alike. Below that rating, moves are therefore sampled
//! at a temperature that rises as the rating falls, so that unlikely moves, most of which are
//! mistakes, are played more often. The matches are in `bench/people.md`.

/// The lowest rating that is imitated at temperature 1.
const FROM: u16 = 1200;
/// The increase in temperature per rating point below it.
const RISE: f32 = 0.001;

/// Returns the temperature for imitating a player of this rating.
pub(super) fn temperature(rating: Option<u16>) -> f32 {
    let below = rating.map_or(0, |rating| FROM.saturating_sub(rating));
    1.0 + RISE * f32::from(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginners_are_less_steady_the_weaker_they_are() {
        for (rating, expected) in [
            (None, 1.0),
            (Some(2400), 1.0),
            (Some(1200), 1.0),
            (Some(1000), 1.2),
            (Some(600), 1.6),
        ] {
            assert!((temperature(rating) - expected).abs() < 1e-6, "{rating:?}");
        }
    }
}
