//! An opponent that plays like people with a given rating.
//!
//! It samples its move from a network's policy: a network trained on human games (one of ours that
//! reads ratings, Maia-3 or a Maia network) predicts the probability with which people play each
//! move. The players' ratings are those of the game ([`crate::chess::Game::ratings`]). Below 1200,
//! where the network hardly distinguishes between players, moves are sampled at a higher
//! temperature (see [`beginners`]). Above the rating at which the policy alone suffices, a short
//! search adds strength (see [`effort`]), but sees no mate in one for the player (see [`people`]).

mod beginners;
mod effort;
mod pace;
mod people;

use super::immediate::Candidates;
use super::policy::{lay_out, line, priors_of_people};
use super::sampling::sample;
use super::{ConfigurableAgent, Options};
use crate::backend::{Backend, evaluate_games};
use crate::chess::Game;
use crate::play::{Agent, AgentError, Choice, Control, Limits, Question, Report};
use crate::search::Search;
use effort::Effort;
pub use pace::thinking_time;
use people::People;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use shakmaty::{Move, Position};
use std::sync::Arc;
use std::time::Instant;

/// The lowest rating offered, which is that of the weakest players in the training games.
pub const LOWEST_RATING: u16 = 600;
/// The highest rating offered, which is the highest level that won its match against the level
/// rated 200 points lower (`bench/people.md`).
pub const HIGHEST_RATING: u16 = 2400;

/// The agent `human`.
pub(super) struct HumanAgent {
    backend: Arc<dyn Backend>,
    options: Options,
    /// The seed of the current game, used if [`Parameters::seed`](crate::search::Parameters::seed)
    /// is 0.
    game_seed: u64,
    /// The search for high levels, created when it is first needed.
    search: Option<Search>,
}

impl HumanAgent {
    pub(super) fn new(backend: Arc<dyn Backend>, options: &Options) -> HumanAgent {
        HumanAgent {
            backend,
            options: options.clone(),
            game_seed: rand::random(),
            search: None,
        }
    }

    /// Returns the search effort for the side to move, or `None` if the network has no value.
    fn effort(&self, game: &Game) -> Option<Effort> {
        Effort::of(rating(game)).filter(|_| self.backend.properties().has_value)
    }

    /// Returns the random number generator for one position; with a fixed seed, its numbers are
    /// always the same.
    fn random(&self, game: &Game) -> Xoshiro256PlusPlus {
        let seed = match self.options.search.seed {
            0 => self.game_seed,
            seed => seed,
        };
        let ply = game.plies().len() as u64;
        Xoshiro256PlusPlus::seed_from_u64(seed ^ game.current().key ^ ply << 48)
    }

    /// Runs a short search and samples a move from the policy shifted by its results.
    fn search(
        &mut self,
        question: &Question<'_>,
        effort: Effort,
        control: &Control,
    ) -> Result<Choice, AgentError> {
        let game = question.game;
        let evaluated = evaluate_games(&*self.backend, [game])?.remove(0);
        let people = People::of(self.backend.properties(), game, evaluated);
        let choice = self.search_with(question, effort, control, &people)?;
        Ok(self.sampled(game, choice))
    }

    /// Runs the search, and returns the shifted policy as the statistics' priors.
    fn search_with(
        &mut self,
        question: &Question<'_>,
        effort: Effort,
        control: &Control,
        people: &People,
    ) -> Result<Choice, AgentError> {
        let (settled, open): (Vec<Move>, Vec<Move>) = question
            .moves()
            .into_iter()
            .partition(|mv| people.settled.contains(mv));
        if open.is_empty() {
            return Ok(lay_out(people.value, people.priors(&settled)));
        }
        let search = self.search.get_or_insert_with(|| {
            Search::new(
                self.backend.clone(),
                &effort::parameters(&self.options.search),
            )
        });
        // An old tree would make a level's strength depend on the preceding moves.
        search.clear();
        search.shift_root(people.shifts());
        let mut limits = effort.limits(&question.limits);
        if !settled.is_empty() {
            limits.search_moves = open.clone();
        }
        let mut choice = search.run(question.game, &limits, control, &mut |_| {})?;
        // An unvisited move gets the position's own value.
        let unvisited = choice.statistics.iter_mut().filter(|of| !of.is_known());
        unvisited.for_each(|of| (of.q, of.wdl) = (people.value.q, people.value.wdl()));
        // The tree rounds priors and stores none below 2⁻¹³, so with the tree's priors, a move that
        // nobody plays would be sampled once every few games.
        let priors = people.priors(&open);
        let share: f32 = priors.iter().map(|(_, prior)| prior).sum();
        for (mv, prior) in priors {
            let of = choice.statistics.iter_mut().find(|of| of.mv == mv);
            of.into_iter().for_each(|of| of.prior = prior);
        }
        effort.shift(&mut choice.statistics);
        choice
            .statistics
            .iter_mut()
            .for_each(|of| of.prior *= share);
        let settled = lay_out(people.value, people.priors(&settled));
        choice.statistics.extend(settled.statistics);
        choice
            .statistics
            .sort_by(|a, b| b.prior.total_cmp(&a.prior));
        Ok(choice)
    }

    /// Samples the move by the priors and reports it. With several lines, it also reports the
    /// likeliest moves that a search has visited.
    fn sampled(&self, game: &Game, mut choice: Choice) -> Choice {
        let temperature = match self.options.search.temperature {
            0.0 => beginners::temperature(rating(game)),
            temperature => temperature,
        };
        let priors: Vec<f32> = choice.statistics.iter().map(|of| of.prior).collect();
        let random = &mut self.random(game);
        if let Some(place) = sample(&priors, temperature, self.options.top_p, random) {
            let sampled = &choice.statistics[place];
            let visited = choice.statistics.iter().filter(|of| of.visits > 0);
            let lines = self.options.search.multi_pv;
            let likeliest: Vec<_> = visited.take(lines).map(line).collect();
            choice.report.lines = match likeliest.is_empty() || lines <= 1 {
                true => vec![line(sampled)],
                false => likeliest,
            };
            choice.best = Some(sampled.mv);
            choice.ponder = None;
        }
        choice
    }

    /// Waits until a person who started thinking at `began` might answer.
    fn wait(&self, question: &Question<'_>, choice: &Choice, began: Instant, control: &Control) {
        let priors = choice.statistics.iter().map(|of| of.prior);
        // Uses random numbers after those for the move.
        let mut random = self.random(question.game);
        random.jump();
        let overhead = self.options.search.overhead();
        let rating = rating(question.game);
        let time = pace::thinking_time(&question.limits, overhead, rating, priors, &mut random);
        if let Some(time) = time {
            control.wait_until(began + time);
        }
    }
}

/// Returns the rating of the side to move, if it is known.
fn rating(game: &Game) -> Option<u16> {
    let ratings = game.ratings();
    let rating = game.position().turn().fold_wb(ratings.white, ratings.black);
    rating.filter(|&rating| rating > 0)
}

impl Agent for HumanAgent {
    fn new_game(&mut self) {
        self.game_seed = rand::random();
    }

    fn choose(
        &mut self,
        game: &Game,
        limits: &Limits,
        control: &Control,
        report: &mut dyn FnMut(&Report),
    ) -> Result<Choice, AgentError> {
        let began = control.now();
        let limits = limits.clone();
        let question = Question { game, limits };
        let mut choice = match self.effort(game) {
            Some(effort) if !question.moves().is_empty() => {
                self.search(&question, effort, control)?
            }
            _ => {
                let choices = self.choose_many(std::slice::from_ref(&question))?;
                choices.into_iter().next().unwrap_or_default()
            }
        };
        if choice.best.is_some() {
            choice.report.elapsed = control.now().saturating_duration_since(began);
            report(&choice.report);
        }
        control.hold_back(&question.limits);
        if self.options.human.takes_time && choice.best.is_some() {
            self.wait(&question, &choice, began, control);
        }
        Ok(choice)
    }

    fn choose_many(&mut self, questions: &[Question<'_>]) -> Result<Vec<Choice>, AgentError> {
        let mut choices = vec![Choice::default(); questions.len()];
        let (mut open, mut places) = (Vec::new(), Vec::new());
        for (place, question) in questions.iter().enumerate() {
            let (game, moves) = (question.game, question.moves());
            match self.effort(game) {
                _ if moves.is_empty() => {}
                Some(effort) => {
                    choices[place] = self.search(question, effort, &Control::default())?;
                }
                None => {
                    open.push(Candidates { game, moves });
                    places.push(place);
                }
            }
        }
        if open.is_empty() {
            return Ok(choices);
        }
        let (priors, values) = priors_of_people(&*self.backend, &open)?;
        for (((place, candidates), priors), value) in
            places.into_iter().zip(&open).zip(priors).zip(values)
        {
            let choice = lay_out(value, priors);
            choices[place] = self.sampled(candidates.game, choice);
        }
        Ok(choices)
    }

    fn batch(&self) -> usize {
        self.backend.properties().recommended_batch
    }
}

impl ConfigurableAgent for HumanAgent {
    fn adjust(&mut self, options: &Options) {
        self.options = options.clone();
        self.search = None;
    }

    fn set_backend(&mut self, backend: Arc<dyn Backend>) {
        self.backend = backend;
        self.search = None;
    }
}

#[cfg(test)]
mod tests;
