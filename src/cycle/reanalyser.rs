//! Reanalyses earlier games.

use super::config::{CycleConfig, GamesConfig, ReanalyserConfig};
use super::context::WorkerContext;
use super::error::CycleError;
use super::latest::Latest;
use super::worker::work;
use crate::data::record::{Node, Record, SearchResult};
use crate::data::replay::main_line;
use crate::data::shard::{Shard, ShardError};
use crate::openings::generator;
use crate::play::Limits;
use crate::search::{Parameters, Search};
use crate::selfplay::search_position;
use crate::store::{ShardName, Shards};
use parking_lot::Mutex;
use rand::Rng;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use rand::seq::IndexedRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of games to take from a block before another block is read.
const GAMES: usize = 8;
/// Seconds before a retry when no games were found.
const PAUSE: f64 = 1.0;

/// A worker that searches positions of earlier games with the newest network. The games were played
/// by people or by the loop's actors. Like an actor, the worker writes shards. Each worker samples
/// games and positions at random, so the workers need no coordination.
pub struct Reanalyser<'a> {
    /// The loop's configuration.
    pub config: &'a CycleConfig,
    /// The positions to search.
    pub reanalysers: &'a ReanalyserConfig,
}

impl Reanalyser<'_> {
    /// Searches until stopped, or until the generation at which reanalysis ends.
    ///
    /// # Errors
    /// [`CycleError`]; shards that have been written are kept.
    pub fn run(&self, context: &WorkerContext) -> Result<(), CycleError> {
        let again = self.reanalysers;
        let shards = again.games.iter().map(|games| Shard::open(&games.path));
        let sources = Sources {
            shards: shards.collect::<Result<_, _>>()?,
            games: &again.games,
            own: again.own,
            context,
            poll: Duration::from_secs_f64(self.config.poll),
            listed: Mutex::default(),
            told: Mutex::default(),
        };
        if sources.shards.is_empty() && again.own <= 0.0 {
            return Err(CycleError::NothingToReanalyse);
        }
        let parameters = Parameters {
            threads: 1,
            noise_epsilon: 0.0,
            ..self.config.search.parameters()?
        };
        let seed: u64 = rand::rng().random();
        let ends = [self.config.generations, again.until];
        let until = ends.into_iter().flatten().min();
        let imagination = self.config.search.imagination()?;
        let (sources, parameters) = (&sources, &parameters);
        work(context, self.config, until, |latest| {
            let search = match &imagination {
                Some(options) => Search::in_imagination(latest.network(), parameters, options),
                None => Search::new(latest.network(), parameters),
            };
            let mut analyst = Analyst::new(latest, search, parameters, again);
            let mut waiting: Vec<Record> = Vec::new();
            move |number, stopped: &dyn Fn() -> bool| {
                let mut random = generator(seed, number);
                loop {
                    if waiting.is_empty() {
                        waiting = sources.draw(&mut random)?;
                    }
                    match waiting.pop() {
                        Some(record) => match analyst.search(&record, &mut random, stopped) {
                            Err(CycleError::Replay(error)) => sources.leave_out(&error),
                            searched => return searched,
                        },
                        // The loop has not written any shards yet, or the sampled shard cannot be
                        // read.
                        None if stopped() || !context.wait(PAUSE) => return Ok(None),
                        None => {}
                    }
                }
            }
        })
    }
}

/// The sources of games.
struct Sources<'a> {
    shards: Vec<Shard>,
    games: &'a [GamesConfig],
    own: f64,
    context: &'a WorkerContext<'a>,
    /// Interval between polls of the store.
    poll: Duration,
    listed: Mutex<Listed>,
    /// Shards and games that have been skipped; each is reported only once.
    told: Mutex<HashSet<String>>,
}

/// The known shards of the loop itself.
#[derive(Default)]
struct Listed {
    found: Shards,
    names: Vec<ShardName>,
    looked: Option<Instant>,
}

impl Sources<'_> {
    /// Returns some games, or none if the sampled source is empty or cannot be read.
    fn draw(&self, random: &mut Xoshiro256PlusPlus) -> Result<Vec<Record>, CycleError> {
        let weights = self.games.iter().map(|games| games.weight);
        let weights = WeightedIndex::new(weights.chain([self.own]));
        // The weights have been checked; if all are 0, no reanalyser runs.
        let drawn = weights.map_or(0, |weights| weights.sample(random));
        let Some(shard) = self.shards.get(drawn) else {
            return self.draw_own(random);
        };
        let mut some = match draw_from(shard, random) {
            Err(error @ ShardError::Io { .. }) => return Err(error.into()),
            Err(error) => {
                self.leave_out(&error);
                Vec::new()
            }
            Ok(some) => some,
        };
        if !self.games[drawn].results {
            for record in &mut some {
                record.result = None;
            }
        }
        Ok(some)
    }

    fn draw_own(&self, random: &mut Xoshiro256PlusPlus) -> Result<Vec<Record>, CycleError> {
        let Some(name) = self.own_shard(random)? else {
            return Ok(Vec::new());
        };
        let shard = Shard::open(&self.context.store.path(&name.name()));
        let drawn = shard.and_then(|shard| draw_from(&shard, random));
        Ok(drawn.unwrap_or_else(|error| {
            self.leave_out(&error);
            if !matches!(error, ShardError::Io { .. }) {
                self.listed.lock().names.retain(|it| *it != name);
            }
            Vec::new()
        }))
    }

    /// Returns a random shard written by the loop.
    fn own_shard(&self, random: &mut Xoshiro256PlusPlus) -> Result<Option<ShardName>, CycleError> {
        let listed = &mut *self.listed.lock();
        if listed.looked.is_none_or(|at| at.elapsed() >= self.poll) {
            let found = listed.found.look(self.context.store);
            listed.names.extend(self.context.tolerate(found)?);
            listed.looked = Some(Instant::now());
        }
        Ok(listed.names.choose(random).cloned())
    }

    /// Reports a skipped item and the reason.
    fn leave_out(&self, error: &dyn std::error::Error) {
        let text = error.to_string();
        if self.told.lock().insert(text.clone()) {
            tracing::warn!("left out: {text}");
        }
    }
}

/// Returns some games of a random block.
fn draw_from(shard: &Shard, random: &mut Xoshiro256PlusPlus) -> Result<Vec<Record>, ShardError> {
    if shard.blocks().is_empty() {
        return Ok(Vec::new());
    }
    let block = shard.read(random.random_range(0..shard.blocks().len()))?;
    Ok(block.choose_multiple(random, GAMES).cloned().collect())
}

/// Searches positions of games, one game at a time.
struct Analyst<'a> {
    latest: Arc<Latest>,
    search: Search,
    parameters: &'a Parameters,
    share: f64,
    limits: Limits,
}

impl<'a> Analyst<'a> {
    fn new(
        latest: Arc<Latest>,
        search: Search,
        parameters: &'a Parameters,
        again: &ReanalyserConfig,
    ) -> Analyst<'a> {
        Analyst {
            search,
            latest,
            parameters,
            share: again.positions,
            limits: Limits::of_nodes(again.visits),
        }
    }

    /// Returns a game's main line with search results for some of its positions, or `None` if the
    /// worker was stopped.
    fn search(
        &mut self,
        record: &Record,
        random: &mut Xoshiro256PlusPlus,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Record>, CycleError> {
        let mut game = main_line(record)?;
        let played: Vec<_> = game.plies().iter().filter_map(|ply| ply.played).collect();
        game.truncate(1);
        let parameters = Parameters {
            seed: random.random(),
            ..self.parameters.clone()
        };
        self.search.adjust(&parameters);
        let mut searches = Vec::with_capacity(played.len());
        for mv in played {
            let is_drawn = self.share >= 1.0 || random.random_bool(self.share);
            searches.push(match is_drawn {
                true if stopped() => return Ok(None),
                true => search_position(
                    &game,
                    &self.latest.network(),
                    &mut self.search,
                    &self.limits,
                    &parameters,
                )?,
                false => SearchResult::UNSEARCHED,
            });
            game.play(mv);
        }
        let nodes = record.main_line();
        let nodes = nodes.map(|&node| Node { eval: None, ..node });
        Ok(Some(Record {
            nodes: nodes.collect(),
            searches,
            ..record.clone()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Random;
    use crate::data::pgn::parse_game;
    use crate::store::Store;
    use shakmaty::Position;

    const GAME: &[u8] = b"1. e4 e5 2. Nf3 (2. f4 exf4) 2... Nc6 3. Bb5 a6 4. Bxc6 dxc6 5. O-O 1-0";

    fn analyst<'a>(parameters: &'a Parameters, again: &ReanalyserConfig) -> Analyst<'a> {
        let latest = Arc::new(Latest::new(Arc::new(Random::new(1)), 0));
        let search = Search::new(latest.network(), parameters);
        Analyst::new(latest, search, parameters, again)
    }

    fn reanalyse(positions: f64) -> Record {
        let parameters = Parameters {
            threads: 1,
            hash: 1,
            gumbel_moves: 8,
            ..Parameters::default()
        };
        let again = ReanalyserConfig {
            visits: 24,
            positions,
            ..ReanalyserConfig::default()
        };
        let mut analyst = analyst(&parameters, &again);
        let record = parse_game(GAME).unwrap();
        let searched = analyst.search(&record, &mut generator(1, 2), &|| false);
        searched.unwrap().unwrap()
    }

    #[test]
    fn the_main_line_is_searched_position_by_position() {
        let record = reanalyse(1.0);
        assert_eq!((record.nodes.len(), record.searches.len()), (9, 9));
        let header = super::super::config::header("x");
        assert_eq!(header.rules.samples(&record), 9);
        let game = main_line(&record).unwrap();
        for (ply, search) in record.searches.iter().enumerate() {
            let legal = game.plies()[ply].position.legal_moves().len();
            let sum: u32 = search
                .policy
                .iter()
                .map(|&(_, share)| u32::from(share))
                .sum();
            assert!(sum.abs_diff(65_535) < 50, "{search:?}");
            let mut ordinals = search.policy.iter().map(|&(ordinal, _)| ordinal);
            assert!(ordinals.all(|ordinal| usize::from(ordinal) < legal));
            assert!(search.policy.is_sorted_by_key(|&(ordinal, _)| ordinal));
        }
    }

    #[cfg(unix)]
    #[test]
    fn damaged_shards_are_left_out_and_the_others_drawn_from() {
        use crate::data::shard::{Block, ShardWriter};
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let context = WorkerContext::of(&store);
        let sources = Sources {
            shards: Vec::new(),
            games: &[],
            own: 1.0,
            context: &context,
            poll: Duration::ZERO,
            listed: Mutex::default(),
            told: Mutex::default(),
        };
        let mut random = generator(1, 2);
        let mut draw = || sources.draw(&mut random).unwrap().len();
        assert_eq!(draw(), 0);
        let [away, damaged, good] = [0, 1, 2].map(|serial| {
            let worker = "actor".parse().unwrap();
            let shard = ShardName {
                generation: 1,
                worker,
                serial,
            };
            shard.name()
        });
        // The first object is not a shard; the second is listed but cannot be read.
        store.put(&damaged, b"no shard").unwrap();
        let nowhere = folder.path().join("nowhere");
        std::os::unix::fs::symlink(nowhere, store.path(&away)).unwrap();
        let header = super::super::config::header("x");
        let mut writer = ShardWriter::create(&store.path(&good), &header).unwrap();
        let records = vec![parse_game(GAME).unwrap(); 2];
        writer.append(&Block::new(&records, 18).unwrap()).unwrap();
        writer.finish().unwrap();
        let drawn: Vec<usize> = (0..40).map(|_| draw()).collect();
        assert!(drawn.contains(&0) && drawn.contains(&2), "{drawn:?}");
        let listed = &sources.listed.lock().names;
        assert_eq!(
            listed.iter().map(|it| it.serial).collect::<Vec<_>>(),
            [0, 2]
        );
        assert_eq!(sources.told.lock().len(), 2);
    }

    #[test]
    fn some_positions_are_left_out() {
        let record = reanalyse(0.4);
        let searched = record.searches.iter().filter(|it| it.is_searched()).count();
        assert!((1..9).contains(&searched), "{searched}");
        let header = super::super::config::header("x");
        assert_eq!(header.rules.samples(&record), searched as u64);
    }

    #[test]
    fn a_stop_ends_a_game_early() {
        let parameters = Parameters {
            threads: 1,
            hash: 1,
            ..Parameters::default()
        };
        let again = ReanalyserConfig::default();
        let mut analyst = analyst(&parameters, &again);
        let record = parse_game(GAME).unwrap();
        let searched = analyst.search(&record, &mut generator(1, 2), &|| true);
        assert!(searched.unwrap().is_none());
    }
}
