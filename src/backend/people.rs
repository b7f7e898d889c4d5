//! Policies that stand for people's moves.

use super::{Backend, BackendError, Evaluated, Properties, evaluate_games};
use crate::chess::Game;
use crate::tactics::{Features, features};
use shakmaty::{Chess, Move, Position};

/// Evaluates like [`evaluate_games`] and [corrects](correct) the policies, so that they predict the
/// moves of people with the ratings of the games.
///
/// # Errors
/// As [`evaluate_games`].
pub fn evaluate_people<'a>(
    backend: &dyn Backend,
    games: impl IntoIterator<Item = &'a Game, IntoIter: Clone>,
) -> Result<Vec<Evaluated>, BackendError> {
    let games = games.into_iter();
    let mut evaluated = evaluate_games(backend, games.clone())?;
    let of_games = evaluated.iter_mut().zip(games);
    correct(
        backend.properties(),
        of_games.map(|(of, game)| (game, &of.moves[..], &mut of.logits[..])),
    );
    Ok(evaluated)
}

/// Corrects the logits of games' legal moves by the network's
/// [correction](crate::tactics::correction), if it has one, for the ratings of the players to move.
/// Features are computed once for consecutive games with the same position.
pub fn correct<'a>(
    properties: &Properties,
    games: impl IntoIterator<Item = (&'a Game, &'a [Move], &'a mut [f32])>,
) {
    let Some(correction) = properties.people_correction() else {
        return;
    };
    let mut known: Option<(&Chess, &[Move], Vec<Features>)> = None;
    for (game, moves, logits) in games {
        let position = game.position();
        let is_known = known
            .as_ref()
            .is_some_and(|(of, listed, _)| *of == position && *listed == moves);
        if !is_known {
            known = Some((position, moves, features(position, moves)));
        }
        if let Some((_, _, features)) = &known {
            correction.correct(features, rating(game), logits);
        }
    }
}

/// Returns the rating of the player to move, if it is known.
fn rating(game: &Game) -> Option<u16> {
    let ratings = game.ratings();
    let rating = game.position().turn().fold_wb(ratings.white, ratings.black);
    rating.filter(|&rating| rating > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::tests::Corrected;
    use crate::backend::{Random, evaluate_games};
    use crate::chess::Ratings;
    use shakmaty::CastlingMode;

    #[test]
    fn only_the_policy_of_people_is_corrected() {
        let backend = Corrected::new(Random::new(1), 3.0);
        let mate = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1";
        let mut mate = Game::from_fen(mate, CastlingMode::Standard).unwrap();
        mate.set_ratings(Ratings::both(1800));
        let games = [Game::default(), mate.clone(), mate];
        let plain = evaluate_games(&backend, &games).unwrap();
        let people = evaluate_people(&backend, &games).unwrap();
        assert_eq!(plain[0].logits, people[0].logits);
        for (plain, people) in plain.iter().zip(&people).skip(1) {
            for (place, &mv) in plain.moves.iter().enumerate() {
                let expected = match games[1].format_move(mv) == "a1a8" {
                    true => 3.0,
                    false => 0.0,
                };
                let added = people.logits[place] - plain.logits[place];
                assert!((added - expected).abs() < 1e-5, "{mv}: {added}");
            }
        }
        assert_eq!(people[1].value, plain[1].value);
    }

    #[test]
    fn the_rating_is_that_of_the_player_to_move() {
        let mut game = Game::default();
        game.set_ratings(Ratings {
            white: Some(1500),
            black: Some(0),
        });
        assert_eq!(rating(&game), Some(1500));
        game.play(game.position().legal_moves()[0]);
        assert_eq!(rating(&game), None);
    }
}
