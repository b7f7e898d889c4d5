//! The levels of beginners. The network hardly tells players below [`FROM`] apart, since
//! those whose games it has learned play about alike. So below it moves are drawn at a
//! rising temperature, and unlikely ones, most of them mistakes, are played more often.
//! `bench/people.md` has the matches.

/// The rating from which on people are imitated as the network knows them.
const FROM: u16 = 1200;
/// The temperature's increase per point below.
const RISE: f32 = 0.001;

/// The temperature at which a player of this rating is imitated.
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
