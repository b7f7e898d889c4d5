//! Players' ratings.

use shakmaty::Color;

/// The players' ratings (Elo), if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Ratings {
    /// White's rating.
    pub white: Option<u16>,
    /// Black's rating.
    pub black: Option<u16>,
}

impl Ratings {
    /// Returns the ratings in a game in which the player of this color has the rating `own`, and
    /// the other player `opponent`.
    pub fn of(color: Color, own: u16, opponent: u16) -> Ratings {
        let (white, black) = color.fold_wb((own, opponent), (opponent, own));
        Ratings {
            white: Some(white),
            black: Some(black),
        }
    }

    /// Returns the ratings of two players with the same rating.
    pub fn both(rating: u16) -> Ratings {
        Ratings::of(Color::White, rating, rating)
    }
}

/// The default spread of [`weights_near`]. The ensemble of the ten Maia networks predicts human
/// moves best, or nearly so, with a spread of 200 to 300 rating points (bench/people.md).
pub const RATING_SPREAD: u32 = 200;

/// Returns the weights of models with these `ratings` for a player with this `rating`. They are a
/// Gaussian of the rating difference, whose standard deviation is `spread` rating points. The
/// nearest model has weight 1, even if `rating` is outside the range of `ratings`. With a spread of
/// 0, only the nearest model counts.
pub fn weights_near(ratings: &[u16], rating: u16, spread: u32) -> Vec<f64> {
    let lowest = ratings.iter().copied().min().unwrap_or(rating);
    let highest = ratings.iter().copied().max().unwrap_or(rating);
    let rating = rating.clamp(lowest, highest);
    let distances = ratings.iter().map(|of| of.abs_diff(rating));
    let nearest = f64::from(distances.clone().min().unwrap_or(0));
    let weight = |distance| {
        let more = f64::from(distance).powi(2) - nearest.powi(2);
        if more > 0.0 {
            (-0.5 * more / f64::from(spread).powi(2)).exp()
        } else {
            1.0
        }
    };
    distances.map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::weights_near;

    #[test]
    fn weights_fall_with_the_distance_as_a_gaussian() {
        let ratings = [1100, 1500, 1900];
        let [one, two] = [-0.5_f64, -2.0].map(f64::exp);
        // Below the lowest rating, the weights are the same as at the lowest rating.
        for rating in [1100, 800] {
            assert_eq!(weights_near(&ratings, rating, 400), [1.0, one, two]);
        }
        assert_eq!(weights_near(&ratings, 1500, 400), [one, 1.0, one]);
        let [first, second, third] = weights_near(&ratings, 1600, 400)[..] else {
            panic!("three weights");
        };
        assert_eq!(second, 1.0);
        assert!((first - (-0.75_f64).exp()).abs() < 1e-12, "{first}");
        assert!((third - (-0.25_f64).exp()).abs() < 1e-12, "{third}");
        assert_eq!(weights_near(&ratings, 1300, 0), [1.0, 1.0, 0.0]);
        assert_eq!(weights_near(&ratings, 2400, 0), [0.0, 0.0, 1.0]);
        assert!(weights_near(&[], 1500, 200).is_empty());
    }
}
