//! Samples games from the policies of networks. Like people's games, they contain mistakes.
//!
//! Many games are in progress at once. Each step of a [`Sampler`] plays one move in every one of
//! them, with one batch per network, so a move costs one evaluation.

use crate::adjudication::Adjudication;
use crate::backend::{Backend, BackendError, Batch, Evaluations, Precision};
use crate::chess::{Game, Ratings};
use crate::openings::{Openings, OpeningsError, generator};
use crate::softmax::softmax;
use rand::Rng;
use rand::distr::weighted::WeightedIndex;
use rand_xoshiro::Xoshiro256PlusPlus;
use shakmaty::{Move, Position};
use std::fmt;
use std::sync::Arc;

/// Number of games that a sampler keeps in progress: enough to fill a CPU's batches even if several
/// networks share them.
const IN_FLIGHT: u64 = 128;

/// A network that plays by its policy.
#[derive(Clone)]
pub struct PolicyPlayer {
    /// The network's name, for the tags White and Black.
    pub name: String,
    /// Hash that distinguishes the network's weights from others of the same name.
    pub hash: String,
    /// The backend that evaluates the network; players may share one.
    pub backend: Arc<dyn Backend>,
    /// Temperature, positive: moves are sampled from softmax(logits / temperature).
    pub temperature: f32,
    /// The player's rating (Elo), for the tags WhiteElo and BlackElo, and for networks that read
    /// ratings.
    pub rating: Option<u16>,
}

impl fmt::Display for PolicyPlayer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PolicyPlayer { name, hash, .. } = self;
        write!(formatter, "{name} {hash} temperature {}", self.temperature)?;
        match self.rating {
            Some(rating) => write!(formatter, " elo {rating}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for PolicyPlayer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PolicyPlayer({self})")
    }
}

/// The plan for games to be sampled.
#[derive(Debug)]
pub struct SampledGames {
    /// Number of games.
    pub games: u64,
    /// The players, at least one. White and Black are sampled independently for each game.
    pub players: Vec<PolicyPlayer>,
    /// The floating-point format in which the networks are computed.
    pub precision: Precision,
    /// The games' openings.
    pub openings: Openings,
    /// When games end. Its scores are those of the engine that labels the games.
    pub adjudication: Adjudication,
    /// Whether an engine scores the games.
    pub judged: bool,
}

impl fmt::Display for SampledGames {
    /// Summarises everything on which the games depend.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let players: Vec<String> = self.players.iter().map(ToString::to_string).collect();
        let precision = format!("{:?}", self.precision).to_lowercase();
        write!(
            formatter,
            "sampled from {}, {precision}; ",
            players.join(", ")
        )?;
        write!(formatter, "{}", self.openings)?;
        let mut rules = self.adjudication.rules().into_iter();
        rules.try_for_each(|rule| write!(formatter, ", {rule}"))
    }
}

/// A game that has been sampled to its end.
#[derive(Clone, Debug)]
pub(super) struct SampledGame {
    /// The game's number.
    pub(super) number: u64,
    /// The game.
    pub(super) game: Game,
    /// Number of plies in the game's opening.
    pub(super) opening: usize,
    /// The tags that name the players.
    pub(super) tags: Vec<(String, String)>,
}

/// A game in progress.
struct InFlight {
    number: u64,
    game: Game,
    opening: usize,
    /// Indices of the players of White and Black.
    players: [usize; 2],
    random: Xoshiro256PlusPlus,
}

impl InFlight {
    fn mover(&self) -> usize {
        let [white, black] = self.players;
        self.game.position().turn().fold_wb(white, black)
    }
}

/// Samples many games concurrently on its caller's thread.
pub(super) struct Sampler<'a> {
    /// The plan for the games.
    pub(super) plan: &'a SampledGames,
    seed: u64,
    capacity: usize,
    in_flight: Vec<InFlight>,
    /// The distinct backends.
    backends: Vec<&'a Arc<dyn Backend>>,
    batch: Batch,
    evaluations: Evaluations,
}

impl<'a> Sampler<'a> {
    /// Creates one of `samplers` samplers that share the games.
    pub(super) fn new(plan: &'a SampledGames, seed: u64, samplers: usize) -> Sampler<'a> {
        let mut backends: Vec<&Arc<dyn Backend>> = Vec::new();
        for player in &plan.players {
            if !backends
                .iter()
                .any(|known| Arc::ptr_eq(known, &player.backend))
            {
                backends.push(&player.backend);
            }
        }
        let share = plan.games.div_ceil(samplers.max(1) as u64);
        Sampler {
            plan,
            seed,
            capacity: share.clamp(1, IN_FLIGHT) as usize,
            in_flight: Vec::new(),
            backends,
            batch: Batch::default(),
            evaluations: Evaluations::default(),
        }
    }

    /// Returns whether the sampler has as many games in progress as it should.
    pub(super) fn is_full(&self) -> bool {
        self.in_flight.len() >= self.capacity
    }

    /// Returns whether no game is in progress.
    pub(super) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Begins the game with this number.
    ///
    /// # Errors
    /// [`OpeningsError`] if there is no opening for the game.
    pub(super) fn begin(&mut self, number: u64) -> Result<(), OpeningsError> {
        let mut game = self.plan.openings.game(number)?;
        let mut random = generator(self.seed, number);
        let count = self.plan.players.len();
        let players = [0; 2].map(|_| random.random_range(0..count));
        let [white, black] = players.map(|player| self.plan.players[player].rating);
        // A player without a rating gets the opponent's.
        game.set_ratings(Ratings {
            white: white.or(black),
            black: black.or(white),
        });
        self.in_flight.push(InFlight {
            number,
            opening: game.plies().len() - 1,
            game,
            players,
            random,
        });
        Ok(())
    }

    /// Plays until at least one game has ended, and returns the games that have. Returns none if no
    /// game is in progress.
    ///
    /// # Errors
    /// [`BackendError`] if a network fails.
    pub(super) fn play(&mut self) -> Result<Vec<SampledGame>, BackendError> {
        loop {
            let plan = self.plan;
            let is_over =
                |game: &mut InFlight| plan.adjudication.verdict(&game.game, &[]).is_some();
            let over = self.in_flight.extract_if(.., is_over);
            let over: Vec<_> = over.map(|game| plan.finish(game)).collect();
            if !over.is_empty() || self.in_flight.is_empty() {
                return Ok(over);
            }
            self.step()?;
        }
    }

    /// Plays a move in every game in progress.
    fn step(&mut self) -> Result<(), BackendError> {
        let players = &self.plan.players;
        let movers: Vec<&PolicyPlayer> = self
            .in_flight
            .iter()
            .map(|game| &players[game.mover()])
            .collect();
        for backend in &self.backends {
            let encoder = &backend.properties().encoder;
            self.batch.clear();
            let mut asked = Vec::new();
            let games = self.in_flight.iter_mut().zip(&movers);
            for (game, mover) in games.filter(|(_, mover)| Arc::ptr_eq(&mover.backend, backend)) {
                let legal = game.game.position().legal_moves();
                self.batch.push(&game.game, &legal, encoder)?;
                asked.push((game, mover.temperature, legal));
            }
            if asked.is_empty() {
                continue;
            }
            backend.evaluate(&self.batch, &mut self.evaluations)?;
            for (index, (game, temperature, legal)) in asked.into_iter().enumerate() {
                let logits = self.evaluations.logits(index);
                let mv = sample(&legal, logits, temperature, &mut game.random);
                game.game.play(mv);
            }
        }
        Ok(())
    }
}

impl SampledGames {
    fn finish(&self, played: InFlight) -> SampledGame {
        let [white, black] = played.players.map(|player| &self.players[player]);
        let names = [("White", white), ("Black", black)];
        let names = names.map(|(tag, player)| (tag.to_owned(), player.name.clone()));
        let ratings = [("WhiteElo", white.rating), ("BlackElo", black.rating)];
        let ratings = ratings
            .into_iter()
            .filter_map(|(tag, rating)| Some((tag.to_owned(), rating?.to_string())));
        let tags = names.into_iter().chain(ratings).collect();
        SampledGame {
            number: played.number,
            game: played.game,
            opening: played.opening,
            tags,
        }
    }
}

/// Samples one of the legal moves from softmax(logits / temperature).
fn sample(legal: &[Move], logits: &[f32], temperature: f32, random: &mut impl Rng) -> Move {
    let mut policy = logits.to_vec();
    softmax(&mut policy, temperature);
    // Logits are finite, so the largest probability is positive.
    let index = WeightedIndex::new(&policy).map_or(0, |policy| random.sample(policy));
    legal[index]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::tests::Counting;
    use crate::backend::{Properties, Random, Uniform, Value};
    use crate::encode::Encoder;
    use std::collections::BTreeMap;

    fn player(name: &str, backend: Arc<dyn Backend>, rating: Option<u16>) -> PolicyPlayer {
        PolicyPlayer {
            name: name.to_owned(),
            hash: "0".to_owned(),
            backend,
            temperature: 1.0,
            rating,
        }
    }

    fn plan(players: Vec<PolicyPlayer>, games: u64) -> SampledGames {
        SampledGames {
            games,
            players,
            precision: Precision::F32,
            openings: Openings::open(&[], 2, 5).unwrap(),
            adjudication: Adjudication {
                max_plies: Some(20),
                ..Adjudication::default()
            },
            judged: true,
        }
    }

    /// Returns all games of a plan by number, produced by this many samplers.
    fn games(plan: &SampledGames, samplers: usize) -> BTreeMap<u64, SampledGame> {
        let mut games = BTreeMap::new();
        for first in 0..samplers {
            let mut sampler = Sampler::new(plan, 9, samplers);
            let mut numbers = (0..plan.games).skip(first).step_by(samplers);
            loop {
                while !sampler.is_full()
                    && let Some(number) = numbers.next()
                {
                    sampler.begin(number).unwrap();
                }
                let ended = sampler.play().unwrap();
                if ended.is_empty() {
                    break;
                }
                games.extend(ended.into_iter().map(|game| (game.number, game)));
            }
            assert!(sampler.is_empty());
        }
        games
    }

    fn moves(game: &SampledGame) -> Vec<Option<Move>> {
        game.game.plies().iter().map(|ply| ply.played).collect()
    }

    #[test]
    fn games_depend_on_seed_and_number_alone() {
        let players = |count| {
            let players = (0..count).map(|seed| {
                let name = format!("random {seed}");
                player(&name, Arc::new(Random::new(seed)), Some(1000 + seed as u16))
            });
            plan(players.collect(), 150)
        };
        let (together, apart) = (games(&players(3), 1), games(&players(3), 4));
        assert_eq!((together.len(), apart.len()), (150, 150));
        for (number, game) in &together {
            assert_eq!(moves(game), moves(&apart[number]));
            assert_eq!(game.tags, apart[number].tags);
            assert_eq!((game.opening, game.game.plies().len()), (2, 21));
        }
        let tag = |game: &SampledGame, at: usize| game.tags[at].1.clone();
        let pairs = together.values().map(|game| (tag(game, 0), tag(game, 1)));
        let pairs: std::collections::BTreeSet<_> = pairs.collect();
        assert_eq!(pairs.len(), 9);
        assert_eq!(together[&0].tags[2].0, "WhiteElo");
        let (white, elo) = (tag(&together[&0], 0), tag(&together[&0], 2));
        assert_eq!(white.strip_prefix("random "), elo.strip_prefix("100"));
    }

    #[test]
    fn a_move_costs_one_evaluation_and_batches_are_full() {
        let shared = Arc::new(Counting::new(Uniform::default()));
        let both = ["hot", "cold"].map(|name| player(name, shared.clone(), None));
        let plan = plan(both.to_vec(), 200);
        let games = games(&plan, 1);
        let played = |game: &SampledGame| game.game.plies().len() - 1 - game.opening;
        let plies: usize = games.values().map(played).sum();
        assert_eq!((shared.positions(), shared.largest()), (plies, 128));
        assert!(games.values().all(|game| game.tags.len() == 2));
    }

    /// A backend that prefers moves by their place in the list, with logits 0, 1, 2 …
    struct Graded(Properties);

    impl Backend for Graded {
        fn properties(&self) -> &Properties {
            &self.0
        }

        fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
            out.clear();
            for index in 0..batch.len() {
                let logits = (0..batch.moves(index).len()).map(|place| place as f32);
                out.push(Value::default(), logits);
            }
            Ok(())
        }
    }

    #[test]
    fn moves_follow_the_policy_at_its_temperature() {
        const GAMES: u64 = 4000;
        let graded = Arc::new(Graded(Uniform::default().properties().clone()));
        for (temperature, backend) in [
            (1.0, Arc::new(Uniform::default()) as Arc<dyn Backend>),
            (1.0, graded.clone()),
            (4.0, graded),
        ] {
            let mut plan = plan(vec![player("one", backend.clone(), None)], GAMES);
            plan.players[0].temperature = temperature;
            plan.openings = Openings::open(&[], 0, 5).unwrap();
            plan.adjudication.max_plies = Some(1);
            let start = Game::default();
            let legal = start.position().legal_moves();
            let mut batch = Batch::default();
            batch.push(&start, &legal, &Encoder::Nothing).unwrap();
            let mut evaluations = Evaluations::default();
            backend.evaluate(&batch, &mut evaluations).unwrap();
            let mut expected = evaluations.logits(0).to_vec();
            softmax(&mut expected, temperature);
            let mut counts = vec![0u32; legal.len()];
            for game in games(&plan, 1).values() {
                let played = game.game.plies()[1].played.unwrap();
                counts[legal.iter().position(|&mv| mv == played).unwrap()] += 1;
            }
            // Slightly more than four standard deviations of a binomial distribution.
            for (place, (&count, &share)) in counts.iter().zip(&expected).enumerate() {
                let mean = GAMES as f32 * share;
                let bound = 4.0 * (mean * (1.0 - share)).sqrt() + 1.0;
                let difference = (count as f32 - mean).abs();
                assert!(difference <= bound, "move {place}: {count} for {mean}");
            }
        }
    }

    #[test]
    fn networks_see_the_ratings() {
        let rated = player("rated", Arc::new(Uniform::default()), Some(1500));
        let unrated = player("unrated", Arc::new(Uniform::default()), None);
        let games = games(&plan(vec![rated, unrated], 40), 1);
        for game in games.values() {
            let told = game.tags.iter().filter(|(name, _)| name.ends_with("Elo"));
            let expected = (told.count() > 0).then_some(1500);
            let Ratings { white, black } = game.game.ratings();
            assert_eq!((white, black), (expected, expected));
        }
    }

    #[test]
    fn games_end_by_the_rules() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("endgame.epd");
        std::fs::write(&path, "7k/5Q2/6K1/8/8/8/8/8 w - - 0 1").unwrap();
        let mut plan = plan(vec![player("one", Arc::new(Uniform::default()), None)], 60);
        plan.openings = Openings::open(&[path.into()], 0, 0).unwrap();
        plan.adjudication.max_plies = None;
        let games = games(&plan, 2);
        let endings = games.values().map(|game| game.game.ending().unwrap());
        let endings: std::collections::HashSet<_> = endings.collect();
        assert!(endings.len() > 1, "{endings:?}");
        for game in games.values() {
            let mut before = game.game.clone();
            before.undo();
            assert_eq!(before.ending(), None);
        }
    }
}
