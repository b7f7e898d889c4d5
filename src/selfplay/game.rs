//! Plays one game of the engine against itself.

use super::choose::{draw, surest};
use super::position::{Evaluation, judged, result_of, searched};
use super::{Event, Foresight, SelfPlay, SelfPlayError};
use crate::adjudication::{known, result};
use crate::backend::Backend;
use crate::chess::{Game, fen};
use crate::data::Legal;
use crate::data::pgn::{AnnotatedGame, IDENTITY};
use crate::data::record::{Node, Record, SearchResult};
use crate::data::sample::Wdl;
use crate::data::v6::{Ending, Searched};
use crate::encode::policy_index;
use crate::openings::generator;
use crate::play::{Control, Limits};
use crate::search::{Parameters, Search};
use rand::Rng;
use shakmaty::{Color, Position};
use std::sync::Arc;

/// The tag for the side that would have resigned in a game played without resignation.
pub(super) const MIGHT_RESIGN: &str = "WouldResign";
/// Number of plies of the best line to write if a different move was played.
const LINE: usize = 1;

/// How a game ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Termination {
    Rules,
    Resignation,
    Tablebase,
    Length,
}

impl Termination {
    /// Returns the value for the tag Termination.
    pub(super) fn name(self) -> &'static str {
        match self {
            Termination::Rules => "normal",
            Termination::Resignation => "resignation",
            Termination::Tablebase => "tablebase",
            Termination::Length => "length",
        }
    }
}

/// A finished game.
pub struct Played {
    pub(super) searched: Vec<Searched>,
    /// For each searched position, whether its search was cheap.
    cheap: Vec<bool>,
    pub(super) ending: Ending,
    annotated: AnnotatedGame,
    termination: Termination,
    might_resign: Option<Color>,
}

impl Played {
    /// Returns the game as PGN, with its best moves and their scores.
    pub(super) fn to_pgn(&self, number: u64, event: &str, network: &str) -> String {
        let mut annotated = self.annotated.clone();
        let [event_tag, number_tag] = IDENTITY;
        let tags = [
            (event_tag, event.to_owned()),
            (number_tag, number.to_string()),
            ("White", network.to_owned()),
            ("Black", network.to_owned()),
            ("Termination", self.termination.name().to_owned()),
            ("Searched", self.searched.len().to_string()),
        ];
        let side = self
            .might_resign
            .map(|side| (MIGHT_RESIGN, side.to_string()));
        let tags = tags.into_iter().chain(side);
        annotated.tags = tags.map(|(name, value)| (name.to_owned(), value)).collect();
        annotated.to_pgn(LINE)
    }

    /// Returns the game as a record. Positions in the opening and positions with a cheap search
    /// count as unsearched.
    pub fn to_record(&self) -> Record {
        let game = &self.annotated.game;
        let plies = game.plies();
        let opening = plies.len() - 1 - self.searched.len();
        let mut nodes = Vec::with_capacity(plies.len() - 1);
        let mut searches = vec![SearchResult::UNSEARCHED; opening];
        for (ply, pair) in plies.windows(2).enumerate() {
            let (before, mv) = (&pair[0].position, pair[1].played);
            let turn = before.turn();
            let legal = Legal::of(&before.legal_moves(), turn);
            let ordinal = mv.map_or(0, |mv| legal.ordinal(policy_index(mv, turn)));
            nodes.push(Node {
                ordinal: ordinal as u8,
                depth: 0,
                starts_line: false,
                eval: None,
            });
            if let Some(place) = ply.checked_sub(opening) {
                searches.push(match self.cheap[place] {
                    true => SearchResult::UNSEARCHED,
                    false => result_of(&self.searched[place], &legal),
                });
            }
        }
        let fen = || fen(&plies[0].position);
        Record {
            fen: (!game.from_initial_position()).then(fen),
            result: self.ending.result,
            ratings: game.ratings(),
            nodes,
            searches,
            unplayed: self.unplayed(),
        }
    }

    /// Returns the expected number of plies after the last move, or 0 if the game ended under the
    /// rules of chess.
    fn unplayed(&self) -> u16 {
        let last = self.searched.last();
        match last.filter(|_| self.termination != Termination::Rules) {
            // `moves_left` includes the move itself.
            Some(last) => (last.played.moves_left - 1.0).max(0.0).round() as u16,
            None => 0,
        }
    }
}

/// Plays games one after another with a single search.
pub struct GamePlayer<'a> {
    plan: &'a SelfPlay,
    newest: Box<dyn Fn() -> Arc<dyn Backend> + 'a>,
    search: Search,
    foresight: Option<Foresight>,
}

impl<'a> GamePlayer<'a> {
    /// Creates a player that follows the plan. For each move, the player calls `newest` to get a
    /// network, and uses only this network to search the move.
    pub fn new(plan: &'a SelfPlay, newest: impl Fn() -> Arc<dyn Backend> + 'a) -> GamePlayer<'a> {
        GamePlayer {
            plan,
            search: plan.search(newest(), &parameters(plan, 0)),
            newest: Box::new(newest),
            foresight: None,
        }
    }

    /// Sets the share of moves that are chosen by predicted futures, starting with the next game.
    pub fn play_by_futures(&mut self, foresight: Option<Foresight>) {
        self.foresight = foresight;
    }

    /// Plays the game with this number. Returns `None` if `stopped` returned true before the end of
    /// the game.
    ///
    /// # Errors
    /// [`SelfPlayError`] if the backend fails or there is no opening for the game.
    pub fn play(
        &mut self,
        number: u64,
        stopped: &dyn Fn() -> bool,
        observe: &(dyn Fn(Event) + Sync),
    ) -> Result<Option<Played>, SelfPlayError> {
        let plan = self.plan;
        let mut random = generator(plan.seed, number);
        let parameters = parameters(plan, random.random());
        self.search.adjust(&parameters);
        let plays_on = random.random_bool(plan.played_on);
        let mut game = plan.openings.game(number)?;
        game.set_ratings(plan.ratings);
        let opening = game.plies().len() - 1;
        let mut annotated = vec![Vec::new(); opening];
        let (mut positions, mut cheap) = (Vec::new(), Vec::new());
        let mut given_up = None;
        let (result, termination) = loop {
            if let Some(over) = self.over(&game, given_up.filter(|_| !plays_on)) {
                break over;
            }
            if stopped() {
                return Ok(None);
            }
            let fewer = plan.cheap.filter(|cheap| random.random_bool(cheap.share));
            if plan.cheap.is_some() && parameters.noise_epsilon > 0.0 {
                self.search.adjust(&Parameters {
                    noise_epsilon: fewer.map_or(parameters.noise_epsilon, |_| 0.0),
                    ..parameters.clone()
                });
            }
            let limits = Limits::of_nodes(fewer.map_or(plan.visits, |cheap| cheap.visits));
            self.search.clear();
            let backend = (self.newest)();
            self.search.set_backend(Arc::clone(&backend));
            let network = Evaluation::new(&*backend, &game)?;
            let choice = self
                .search
                .run(&game, &limits, &Control::default(), &mut |_| {})?;
            let Some(best) = choice.best else {
                // Not reached, because a position without legal moves has already ended the game.
                break (Wdl::Draw, Termination::Rules);
            };
            let is_early = game.plies().len() - 1 - opening < plan.temperature_plies;
            let played = match (is_early, parameters.gumbel_moves) {
                (true, 0) => draw(&choice, best, plan.temperature, &mut random),
                (true, _) => best,
                (false, _) => surest(&choice, best),
            };
            let predicted = match &self.foresight {
                Some(of) => of.choose(&*backend, &game, is_early, &mut random)?,
                None => None,
            };
            let played = predicted.unwrap_or(played);
            let position = searched(&game, &network, &choice, best, played, &parameters);
            let q = position.best.q;
            if given_up.is_none() && plan.resign.is_some_and(|resign| q <= resign) {
                given_up = Some(game.position().turn());
            }
            annotated.push(vec![judged(&game, &choice, best, q)]);
            positions.push(position);
            cheap.push(fewer.is_some());
            game.play(played);
            observe(Event::Move);
        };
        Ok(Some(Played {
            searched: positions,
            cheap,
            ending: Ending {
                result: Some(result),
                is_adjudicated: termination != Termination::Rules,
                is_cut_off: termination == Termination::Length,
            },
            annotated: AnnotatedGame::new(game, annotated, Some(result)),
            termination,
            might_resign: given_up.filter(|_| plays_on),
        }))
    }

    /// If the game is over, returns the result for White and how the game ended.
    fn over(&self, game: &Game, resigns: Option<Color>) -> Option<(Wdl, Termination)> {
        if let Some(result) = result(game) {
            return Some((result, Termination::Rules));
        }
        if let Some(loser) = resigns {
            return Some((loser.fold_wb(Wdl::Loss, Wdl::Win), Termination::Resignation));
        }
        if let Some(result) = known(&self.plan.tablebase, game) {
            return Some((result, Termination::Tablebase));
        }
        let is_long = game.plies().len() > self.plan.max_plies;
        is_long.then_some((Wdl::Draw, Termination::Length))
    }
}

/// Returns the search parameters for a game.
fn parameters(plan: &SelfPlay, seed: u64) -> Parameters {
    Parameters {
        threads: 1,
        seed,
        temperature: 0.0,
        ..plan.parameters.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Random;
    use crate::data::Curve;
    use crate::data::label::TargetRules;
    use crate::data::replay::main_line;
    use crate::openings::Openings;
    use crate::search::WorldOptions;
    use crate::selfplay::{CheapSearches, EvaluationCounter};
    use crate::tablebase::Tablebase;
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    fn plan(cheap: Option<CheapSearches>) -> SelfPlay {
        SelfPlay {
            concurrency: 1,
            parameters: Parameters {
                hash: 1,
                gumbel_moves: 4,
                ..Parameters::default()
            },
            imagination: None,
            visits: 12,
            cheap,
            temperature: 1.0,
            temperature_plies: 30,
            resign: None,
            played_on: 0.0,
            ratings: Default::default(),
            openings: Openings::open(&[], 4, 1).unwrap(),
            max_plies: 24,
            tablebase: Tablebase::default(),
            cache: 0,
            seed: 5,
        }
    }

    fn network() -> Arc<dyn Backend> {
        Arc::new(Random::new(1))
    }

    fn play(plan: &SelfPlay, number: u64) -> Played {
        let mut player = GamePlayer::new(plan, network);
        let played = player.play(number, &|| false, &|_| {});
        played.unwrap().unwrap()
    }

    #[test]
    fn records_hold_the_game_and_its_full_searches() {
        let cheap = CheapSearches {
            share: 0.5,
            visits: 4,
        };
        let plan = plan(Some(cheap));
        let mut cheap = 0;
        for number in 0..4 {
            let played = play(&plan, number);
            let record = played.to_record();
            let game = main_line(&record).unwrap();
            let moves = |game: &Game| -> Vec<_> {
                game.plies().iter().filter_map(|ply| ply.played).collect()
            };
            assert_eq!(moves(&game), moves(&played.annotated.game));
            assert_eq!(
                (record.fen.as_ref(), record.result),
                (None, played.ending.result)
            );
            let searched: Vec<bool> = record.searches.iter().map(|it| it.is_searched()).collect();
            assert_eq!(searched[..4], [false; 4], "the opening");
            let full: Vec<bool> = played.cheap.iter().map(|cheap| !cheap).collect();
            assert_eq!(searched[4..], full);
            cheap += played.cheap.iter().filter(|&&cheap| cheap).count();
            let rules = TargetRules {
                evals: None,
                played: false,
                noise: false,
                curve: Curve::Lc0,
                alternatives: None,
            };
            let full = full.iter().filter(|&&full| full).count();
            assert_eq!(rules.samples(&record), full as u64);
        }
        assert!(cheap > 10, "{cheap}");
    }

    #[test]
    fn plies_are_left_only_where_the_rules_did_not_end_the_game() {
        let mut played = play(&plan(None), 0);
        let last = played.searched.last_mut().unwrap();
        (last.best.moves_left, last.played.moves_left) = (60.0, 9.4);
        for (termination, unplayed) in [
            (Termination::Rules, 0),
            (Termination::Resignation, 8),
            (Termination::Tablebase, 8),
            (Termination::Length, 8),
        ] {
            played.termination = termination;
            assert_eq!(played.to_record().unplayed, unplayed, "{termination:?}");
        }
        // The network does not predict the number of plies left.
        played.searched.last_mut().unwrap().played.moves_left = 0.0;
        assert_eq!(played.to_record().unplayed, 0);
    }

    #[test]
    fn futures_choose_moves_and_the_targets_stay_the_searchs() {
        let plan = SelfPlay {
            temperature_plies: 0,
            ..plan(None)
        };
        let mut player = GamePlayer::new(&plan, network);
        player.play_by_futures(Some(Foresight {
            share: 1.0,
            steps: 2,
        }));
        let played = player.play(3, &|| false, &|_| {}).unwrap().unwrap();
        let mut surprising = 0;
        let mut game = Game::default();
        game.set_ratings(plan.ratings);
        let plies = played
            .annotated
            .game
            .plies()
            .iter()
            .filter_map(|ply| ply.played);
        for (place, mv) in plies.enumerate() {
            if let Some(searched) = place.checked_sub(4).map(|place| &played.searched[place]) {
                let evaluated = crate::backend::evaluate_games(&*network(), [&game]).unwrap();
                let priors = evaluated[0].priors();
                let (likeliest, _) = priors.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
                assert_eq!(mv, likeliest);
                surprising += usize::from(searched.best_index != searched.played_index);
            }
            game.play(mv);
        }
        assert!(surprising > 4, "{surprising}");
    }

    #[test]
    fn every_move_is_of_one_network() {
        let plan = plan(None);
        let asked = RefCell::new(Vec::new());
        let newest = || -> Arc<dyn Backend> {
            let evaluations = Arc::<AtomicU64>::default();
            let counts = EvaluationCounter::new(network(), Arc::clone(&evaluations));
            asked.borrow_mut().push(evaluations);
            Arc::new(counts)
        };
        let mut player = GamePlayer::new(&plan, newest);
        player.play_by_futures(Some(Foresight {
            share: 1.0,
            steps: 50,
        }));
        let played = player.play(3, &|| false, &|_| {}).unwrap().unwrap();
        // The first network was requested when the player was created.
        let moves: Vec<u64> = asked.borrow()[1..]
            .iter()
            .map(|it| it.load(Relaxed))
            .collect();
        assert_eq!(moves.len(), played.searched.len());
        // The count includes the root's evaluation and the denoising steps of predicted futures.
        assert!(
            moves.iter().all(|&evaluations| evaluations >= 52),
            "{moves:?}"
        );
    }

    #[test]
    fn rejects_imagined_games_without_imagination() {
        let plan = SelfPlay {
            imagination: Some(WorldOptions::default()),
            ..plan(None)
        };
        let mut player = GamePlayer::new(&plan, network);
        let Err(error) = player.play(0, &|| false, &|_| {}) else {
            panic!("it played")
        };
        assert!(error.to_string().contains("family world"), "{error}");
    }

    #[test]
    fn a_game_can_be_stopped() {
        let plan = plan(None);
        let mut player = GamePlayer::new(&plan, network);
        let played = player.play(0, &|| true, &|_| {}).unwrap();
        assert!(played.is_none());
    }
}
