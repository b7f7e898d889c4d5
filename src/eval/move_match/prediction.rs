//! Predictions by networks and agents for the positions.

use super::habits::{Followed, HABITS, Habit, followed};
use super::positions::{Position, Positions};
use crate::backend::{Backend, BackendError, Evaluated, evaluate_games, evaluate_people};
use crate::chess::Game;
use crate::data::replay::{ReplayError, main_line};
use crate::play::{Agent, AgentError, Limits, MoveStatistics, Question};
use crate::scoped_threads::side_by_side;
use shakmaty::Position as _;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A network's prediction for a position, compared with the move played there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Whether the policy's likeliest move was played.
    pub matched: bool,
    /// The likeliest move's probability.
    pub confidence: f32,
    /// The played move's probability.
    pub played: f32,
    /// The probabilities of win, draw and loss for the player to move.
    pub wdl: [f32; 3],
    /// The habits that the position tests.
    pub habits: [Option<Habit>; HABITS],
}

/// A network's full prediction for a position, or the mean of several networks' predictions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Each legal move's probability, in the order of the move generator.
    pub policy: Vec<f32>,
    /// The index of the played move.
    pub played: usize,
    /// The probabilities of win, draw and loss for the player to move.
    pub wdl: [f32; 3],
    /// Which of the moves follow the habits that the position tests.
    pub followed: Followed,
}

impl Answer {
    /// Adds another network's prediction for the same position, with a weight.
    pub fn add(&mut self, other: &Answer, weight: f32) {
        self.played = other.played;
        self.followed.clone_from(&other.followed);
        self.policy.resize(other.policy.len(), 0.0);
        let own = self.policy.iter_mut().chain(&mut self.wdl);
        for (own, other) in own.zip(other.policy.iter().chain(&other.wdl)) {
            *own += weight * other;
        }
    }

    /// Returns the prediction for the move played.
    pub fn prediction(&self) -> Prediction {
        // If several moves are equally likely, the first is the network's choice.
        let policy = &self.policy;
        let top = (0..policy.len())
            .rev()
            .max_by(|&a, &b| policy[a].total_cmp(&policy[b]));
        let habit = |moves: &Vec<bool>| Habit {
            played: moves.get(self.played).copied().unwrap_or_default(),
            predicted: moves
                .iter()
                .zip(policy)
                .filter(|(of, _)| **of)
                .map(|(_, p)| p)
                .sum(),
        };
        Prediction {
            habits: self
                .followed
                .each_ref()
                .map(|moves| moves.as_ref().map(habit)),
            matched: top == Some(self.played),
            confidence: top.map_or(0.0, |top| policy[top]),
            played: policy.get(self.played).copied().unwrap_or(0.0),
            wdl: self.wdl,
        }
    }
}

/// Why there are no predictions.
#[derive(Debug, thiserror::Error)]
pub enum PredictionError {
    /// An evaluation failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// An agent could not answer.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A game cannot be replayed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// A player that answers positions.
pub trait Respondent: Send {
    /// Returns the player's preferred batch size.
    fn batch(&self) -> usize;

    /// Returns, for each position, the probability of each legal move, in the order of the move
    /// generator, and the probabilities of win, draw and loss for the player to move.
    ///
    /// # Errors
    /// [`PredictionError`], in which case there are no predictions at all.
    fn respond(&mut self, games: &[Game]) -> Result<Vec<Response>, PredictionError>;
}

/// A policy over the legal moves, and probabilities of win, draw and loss.
pub type Response = (Vec<f32>, [f32; 3]);

/// A network's policy of people's moves and its value, from one evaluation per position. Networks
/// that use ratings receive both players' ratings.
pub struct Evaluator<'a>(pub &'a dyn Backend);

impl Respondent for Evaluator<'_> {
    fn batch(&self) -> usize {
        self.0.properties().recommended_batch
    }

    fn respond(&mut self, games: &[Game]) -> Result<Vec<Response>, PredictionError> {
        Ok(responses(&evaluate_people(self.0, games)?))
    }
}

/// A network's own policy, without a correction, and its value.
pub struct Uncorrected<'a>(pub &'a dyn Backend);

impl Respondent for Uncorrected<'_> {
    fn batch(&self) -> usize {
        self.0.properties().recommended_batch
    }

    fn respond(&mut self, games: &[Game]) -> Result<Vec<Response>, PredictionError> {
        Ok(responses(&evaluate_games(self.0, games)?))
    }
}

fn responses(evaluated: &[Evaluated]) -> Vec<Response> {
    let evaluated = evaluated.iter();
    evaluated
        .map(|it| (it.policy(1.0), it.value.wdl()))
        .collect()
}

/// An agent, such as `human`, with the policy from which it samples its moves.
pub struct Sampler(pub Box<dyn Agent>);

impl Respondent for Sampler {
    fn batch(&self) -> usize {
        self.0.batch()
    }

    fn respond(&mut self, games: &[Game]) -> Result<Vec<Response>, PredictionError> {
        let limits = Limits::default();
        let question = |game| Question {
            game,
            limits: limits.clone(),
        };
        let questions: Vec<Question<'_>> = games.iter().map(question).collect();
        let choices = self.0.choose_many(&questions)?;
        let responses = games.iter().zip(choices).map(|(game, choice)| {
            let legal = game.position().legal_moves();
            let moves = &choice.statistics;
            let prior = |mv| {
                moves
                    .iter()
                    .find(|of| of.mv == mv)
                    .map_or(0.0, |of| of.prior)
            };
            let policy = legal.into_iter().map(prior).collect();
            (policy, mean_wdl(moves))
        });
        Ok(responses.collect())
    }
}

/// Returns the mean over moves, weighted by visits; the mean is unweighted if nothing was visited.
fn mean_wdl(moves: &[MoveStatistics]) -> [f32; 3] {
    let visited = moves.iter().any(|of| of.visits > 0);
    let weight = |of: &MoveStatistics| if visited { of.visits as f32 } else { 1.0 };
    let total: f32 = moves.iter().map(weight).sum();
    std::array::from_fn(|outcome| {
        let sum: f32 = moves.iter().map(|of| weight(of) * of.wdl[outcome]).sum();
        sum / total.max(1.0)
    })
}

/// Returns the predictions for the `wanted` positions with their indices, in ascending order. The
/// respondents must be equivalent and are used in parallel. `done` receives the number of positions
/// answered.
///
/// # Errors
/// [`PredictionError`], in which case there are no predictions at all.
pub fn ask<R: Respondent>(
    respondents: Vec<R>,
    positions: &Positions,
    wanted: impl Fn(&Position) -> bool + Sync,
    done: impl Fn(usize) + Sync,
) -> Result<Vec<(usize, Answer)>, PredictionError> {
    let next = AtomicUsize::new(0);
    let work = |mut respondent: R| {
        let mut waiting = Waiting::default();
        let mut found = Vec::new();
        while let Some((record, places)) = positions.games.get(next.fetch_add(1, Relaxed)) {
            let all = &positions.positions;
            if !places.clone().any(|place| wanted(&all[place])) {
                continue;
            }
            let mut game = main_line(record)?;
            for place in places.clone().rev().filter(|&place| wanted(&all[place])) {
                let ply = all[place].ply;
                let played = game.plies().get(ply + 1).and_then(|after| after.played);
                game.truncate(ply + 1);
                let legal = game.position().legal_moves();
                let played = legal.iter().position(|&mv| Some(mv) == played);
                waiting.places.push((place, played.unwrap_or_default()));
                waiting.games.push(game.clone());
                if waiting.games.len() >= respondent.batch() {
                    done(waiting.ask(&mut respondent, &mut found)?);
                }
            }
        }
        done(waiting.ask(&mut respondent, &mut found)?);
        Ok::<_, PredictionError>(found)
    };
    let work = &work;
    let found = side_by_side(respondents.into_iter().map(|of| move || work(of)))?;
    let mut found: Vec<_> = found.into_iter().flatten().collect();
    found.sort_unstable_by_key(|&(place, _)| place);
    Ok(found)
}

/// Positions to answer together, each with its index and the played move's index among the legal
/// moves.
#[derive(Default)]
struct Waiting {
    games: Vec<Game>,
    places: Vec<(usize, usize)>,
}

impl Waiting {
    /// Answers the positions and clears them; returns how many there were.
    fn ask(
        &mut self,
        respondent: &mut impl Respondent,
        found: &mut Vec<(usize, Answer)>,
    ) -> Result<usize, PredictionError> {
        let count = self.games.len();
        if count > 0 {
            let responses = respondent.respond(&self.games)?;
            let asked = self.places.drain(..).zip(&self.games);
            for (((place, played), game), (policy, wdl)) in asked.zip(responses) {
                let position = game.position();
                let answer = Answer {
                    policy,
                    played,
                    wdl,
                    followed: followed(position, &position.legal_moves()),
                };
                found.push((place, answer));
            }
            self.games.clear();
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::positions::tests::{ALL, positions};
    use super::*;
    use crate::agent::{AgentKind, Options};
    use crate::backend::{Random, Uniform};
    use crate::search::Parameters;
    use std::sync::Arc;

    const GAMES: &str = "\
[WhiteElo \"1500\"]\n[BlackElo \"1700\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 *\n
[WhiteElo \"1100\"]\n[BlackElo \"2700\"]\n\n1. d4 d5 2. c4 e6 *\n";

    #[test]
    fn the_move_played_is_looked_up_in_the_policy() {
        let set = positions(GAMES, &ALL);
        let backend = Random::new(3);
        let found = ask(vec![Evaluator(&backend)], &set, |_| true, |_| {}).unwrap();
        let places: Vec<_> = found.iter().map(|&(place, _)| place).collect();
        assert_eq!(places, (0..12).collect::<Vec<_>>());
        for (place, answer) in found {
            let prediction = answer.prediction();
            let position = set.positions[place];
            let mut game = main_line(&set.games[position.game].0).unwrap();
            let played = game.plies()[position.ply + 1].played.unwrap();
            game.truncate(position.ply + 1);
            let evaluated = evaluate_games(&backend, [&game]).unwrap().remove(0);
            let policy = evaluated.policy(1.0);
            let best = policy.iter().copied().fold(0.0, f32::max);
            let index = evaluated.moves.iter().position(|&mv| mv == played).unwrap();
            assert_eq!(prediction.played, policy[index]);
            assert_eq!(prediction.confidence, best);
            assert_eq!(prediction.matched, policy[index] == best);
            assert_eq!(prediction.wdl, evaluated.value.wdl());
        }
    }

    #[test]
    fn a_mean_of_answers_is_that_of_probabilities() {
        let set = positions(GAMES, &ALL);
        let [one, two] = [3, 4]
            .map(|seed| ask(vec![Evaluator(&Random::new(seed))], &set, |_| true, |_| {}).unwrap());
        for ((_, one), (_, two)) in one.iter().zip(&two) {
            let mut mean = Answer::default();
            mean.add(one, 0.25);
            mean.add(two, 0.75);
            let expected = 0.25 * one.prediction().played + 0.75 * two.prediction().played;
            assert!((mean.prediction().played - expected).abs() < 1e-6);
            assert!((mean.policy.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            assert!((mean.wdl.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn only_what_is_wanted_is_evaluated() {
        let set = positions(GAMES, &ALL);
        let evaluated = AtomicUsize::new(0);
        let count = |positions| _ = evaluated.fetch_add(positions, Relaxed);
        let wanted = |position: &Position| position.rating == 2700;
        let found = ask(vec![Evaluator(&Uniform::default())], &set, wanted, count).unwrap();
        let places: Vec<_> = found.iter().map(|&(place, _)| place).collect();
        assert_eq!(places, [9, 11]);
        assert_eq!(evaluated.into_inner(), 2);
    }

    #[test]
    fn an_agent_answers_with_the_policy_that_it_samples_from() {
        let set = positions(GAMES, &ALL);
        let backend = || -> Arc<dyn Backend> { Arc::new(Random::new(3)) };
        let options = Options::from(Parameters {
            seed: 1,
            ..Parameters::default()
        });
        let ask_agents = |count| {
            let agent = |_| Sampler(AgentKind::Human.build(backend(), &options));
            ask((0..count).map(agent).collect(), &set, |_| true, |_| {}).unwrap()
        };
        let (found, alike) = (ask_agents(1), ask_agents(3));
        assert_eq!(found, alike);
        let alone = ask(vec![Evaluator(&*backend())], &set, |_| true, |_| {}).unwrap();
        for ((place, answer), (_, alone)) in found.iter().zip(&alone) {
            assert!((answer.policy.iter().sum::<f32>() - 1.0).abs() < 1e-4);
            assert!((answer.wdl.iter().sum::<f32>() - 1.0).abs() < 1e-4);
            assert_eq!(answer.played, alone.played);
            // Only strong players are simulated with a search.
            let searches = set.positions[*place].rating > 1400;
            assert_eq!(answer.policy != alone.policy, searches, "place {place}");
        }
    }
}
