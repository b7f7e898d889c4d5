//! Generates games with a move-token GPT. Many games are generated concurrently: each step of the
//! network adds one token to every game.

mod choice;
mod course;

pub use choice::Sampling;

use crate::chess::{Ending, Game, Ratings};
use crate::data::pgn::AnnotatedGame;
use crate::data::sample::Wdl;
use crate::encode::{GameEnd, MoveEncoder, Unencodable, Vocabulary};
use crate::network::gpt::{Conditions, Decoder, Next};
use crate::network::{Gpt, Network, Weights};
use crate::scoped_threads::side_by_side;
use crate::torch::{self, ComputeType};
use course::Course;
use parking_lot::Mutex;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use shakmaty::{Color, KnownOutcome, Position};
use tch::{Device, Kind};

/// Share of free rows above which new games begin in the free rows or, if no prompts are left, the
/// free rows are removed. Beginning games requires a separate pass, and removing rows copies all
/// keys and values, so it is not worthwhile for a single row.
const FREE_SHARE: f64 = 0.125;

/// The beginning of a game to generate.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The moves so far, from the initial position.
    pub game: Game,
    /// The players' ratings and the requested result.
    pub conditions: Conditions,
    /// The random generator used for sampling moves.
    pub random: Xoshiro256PlusPlus,
}

impl Prompt {
    /// Returns the prompt of the game with this number, whose moves depend on the seed alone.
    pub fn new(game: Game, conditions: Conditions, seed: u64, number: u64) -> Prompt {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number;
        Prompt {
            game,
            conditions,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }
}

/// A result in PGN notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[expect(missing_docs, reason = "the command line's help would show it")]
pub enum GameResult {
    #[value(name = "1-0")]
    #[serde(rename = "1-0")]
    White,
    #[value(name = "1/2-1/2")]
    #[serde(rename = "1/2-1/2")]
    Draw,
    #[value(name = "0-1")]
    #[serde(rename = "0-1")]
    Black,
}

impl From<GameResult> for KnownOutcome {
    fn from(result: GameResult) -> KnownOutcome {
        let winner = match result {
            GameResult::White => Color::White,
            GameResult::Black => Color::Black,
            GameResult::Draw => return KnownOutcome::Draw,
        };
        KnownOutcome::Decisive { winner }
    }
}

/// A generated game.
#[derive(Clone, Debug)]
pub struct Written {
    /// The game's moves, all of them legal.
    pub game: Game,
    /// How the game ended.
    pub end: WrittenEnd,
}

/// How a generated game ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrittenEnd {
    /// The game ended under the rules of chess; draws are claimed immediately.
    Rules(Ending),
    /// The network chose an end token: one side resigned, or both agreed to a draw.
    Said(GameEnd),
    /// The network chose this illegal token, written in the vocabulary's notation.
    Illegal(String),
    /// The game reached the maximum length that the network supports.
    Unfinished,
}

impl WrittenEnd {
    /// Returns the ending's name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            WrittenEnd::Rules(Ending::Checkmate) => "mate",
            WrittenEnd::Rules(_) => "drawn",
            WrittenEnd::Said(end) if end.winner().is_some() => "resigned",
            WrittenEnd::Said(_) => "agreed",
            WrittenEnd::Illegal(_) => "illegal",
            WrittenEnd::Unfinished => "unfinished",
        }
    }
}

impl Written {
    /// Returns the game for PGN: with the tags that identify it, the name of the network that
    /// played both sides, and the ratings that it was asked for.
    #[must_use]
    pub fn annotated(
        self,
        identity: [(&str, String); 2],
        network: &str,
        ratings: Ratings,
    ) -> AnnotatedGame {
        let (termination, comment) = match &self.end {
            WrittenEnd::Rules(_) | WrittenEnd::Said(_) => ("normal", None),
            WrittenEnd::Illegal(text) => ("rules infraction", Some(format!("illegal: {text}"))),
            WrittenEnd::Unfinished => ("unterminated", None),
        };
        let players = ["White", "Black"].map(|side| (side, network.to_owned()));
        let elos = [("WhiteElo", ratings.white), ("BlackElo", ratings.black)];
        let elos = elos
            .into_iter()
            .filter_map(|(tag, elo)| Some((tag, elo?.to_string())));
        let tags = identity.into_iter().chain(players).chain(elos);
        let tags = tags.chain([("Termination", termination.to_owned())]);
        AnnotatedGame {
            judged: Vec::new(),
            result: self.result(),
            comment,
            tags: tags.map(|(name, value)| (name.to_owned(), value)).collect(),
            game: self.game,
        }
    }

    /// Returns the result for White, if the game has one.
    pub fn result(&self) -> Option<Wdl> {
        let winner = match &self.end {
            WrittenEnd::Rules(Ending::Checkmate) => Some(!self.game.position().turn()),
            WrittenEnd::Rules(_) => None,
            WrittenEnd::Said(end) => end.winner(),
            WrittenEnd::Illegal(_) | WrittenEnd::Unfinished => return None,
        };
        Some(match winner {
            Some(Color::White) => Wdl::Win,
            Some(Color::Black) => Wdl::Loss,
            None => Wdl::Draw,
        })
    }
}

/// The number of games to generate concurrently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideBySide {
    /// Number of games per thread.
    pub games: usize,
    /// Number of threads, at least one.
    pub threads: usize,
}

/// Generates games.
#[derive(Debug)]
pub struct Generator {
    gpt: Box<Gpt>,
    weights: Weights,
    /// The encoder for prompts.
    pub encoder: MoveEncoder,
}

impl Generator {
    /// Creates a generator that runs this network with this dtype on this device.
    pub fn new(network: Network<Gpt>, kind: Kind, device: Device) -> Generator {
        let gpt = network.architecture;
        Generator {
            weights: network.weights.frozen(ComputeType::from(kind), device),
            encoder: gpt.encoder(),
            gpt,
        }
    }

    /// Returns a copy for another thread; both copies share the weights.
    fn replica(&self) -> Generator {
        let (kind, device) = (self.weights.kind(), self.weights.tensors()[0].device());
        let gpt = Gpt::new(&self.gpt.config, device).expect("the same sizes");
        Generator {
            weights: self.weights.frozen(ComputeType::from(kind), device),
            encoder: self.encoder.clone(),
            gpt: Box::new(gpt),
        }
    }

    /// Continues the games of all prompts concurrently until each has ended, and returns the games
    /// in the order of the prompts.
    ///
    /// # Errors
    /// [`Unencodable`] if the beginning of a game cannot be encoded.
    pub fn write(
        &self,
        prompts: Vec<Prompt>,
        sampling: &Sampling,
    ) -> Result<Vec<Written>, Unencodable> {
        let mut all: Vec<Option<Written>> = prompts.iter().map(|_| None).collect();
        let rows = SideBySide {
            games: prompts.len(),
            threads: 1,
        };
        let prompts = prompts.into_iter().map(Ok::<Prompt, Unencodable>);
        self.write_each(prompts, rows, sampling, |number, game| {
            all[number] = Some(game);
            Ok(())
        })?;
        Ok(all.into_iter().flatten().collect())
    }

    /// Continues the games of these prompts, `rows` of them concurrently. As soon as a game has
    /// ended, it is passed to `hand_on` with the index of its prompt, and another game takes its
    /// place.
    ///
    /// # Errors
    /// The errors of `prompts` and `hand_on`, and [`Unencodable`] if the beginning of a game cannot
    /// be encoded. After an error, no further games begin.
    pub fn write_each<E: From<Unencodable> + Send>(
        &self,
        prompts: impl Iterator<Item = Result<Prompt, E>> + Send,
        rows: SideBySide,
        sampling: &Sampling,
        hand_on: impl FnMut(usize, Written) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        let queue = Queue {
            prompts: Mutex::new(Some(prompts.enumerate())),
            hand_on: Mutex::new(hand_on),
        };
        if rows.threads <= 1 {
            return self.work(&queue, rows.games, sampling);
        }
        // Each replica uses a single libtorch thread, because its operations are too small to be
        // split over several threads.
        let replicas: Vec<Generator> = (0..rows.threads).map(|_| self.replica()).collect();
        let workers = replicas.into_iter().map(|generator| {
            let queue = &queue;
            move || {
                tch::set_num_threads(1);
                let done = generator.work(queue, rows.games, sampling);
                done.inspect_err(|_| queue.close())
            }
        });
        side_by_side(workers).map(drop)
    }

    /// Generates the games in the queue, `games` of them concurrently, until the queue is empty.
    fn work<P, H, E>(&self, queue: &Queue<P, H>, games: usize, sampling: &Sampling) -> Result<(), E>
    where
        P: Iterator<Item = (usize, Result<Prompt, E>)>,
        H: FnMut(usize, Written) -> Result<(), E>,
        E: From<Unencodable>,
    {
        let _guard = tch::no_grad_guard();
        let mut rows = queue.begin(games, &self.encoder)?;
        if rows.is_empty() {
            return Ok(());
        }
        let (mut decoder, next) = Decoder::start(&self.gpt, &self.weights, &beginnings(&rows));
        self.advance(&next, &mut rows, sampling);
        queue.take_ended(&mut rows)?;
        loop {
            let is_free = |&row: &usize| rows[row].is_none();
            let (free, open): (Vec<usize>, Vec<usize>) = (0..rows.len()).partition(is_free);
            if free.len() as f64 > FREE_SHARE * rows.len() as f64 {
                let mut newcomers = queue.begin(free.len(), &self.encoder)?;
                if !newcomers.is_empty() {
                    let places = &free[..newcomers.len()];
                    let next = decoder.replace(places, &beginnings(&newcomers));
                    self.advance(&next, &mut newcomers, sampling);
                    queue.take_ended(&mut newcomers)?;
                    for (&place, newcomer) in places.iter().zip(newcomers) {
                        rows[place] = newcomer;
                    }
                    continue;
                }
                if open.is_empty() {
                    return Ok(());
                }
                decoder.keep(&open);
                rows.retain(Option::is_some);
            }
            // The output of a free row is never used.
            let nothing = self.encoder.vocabulary.start();
            if queue.is_closed() {
                return Ok(());
            }
            let last = |row: &Option<Course>| row.as_ref().map_or(nothing, Course::last);
            let next = decoder.step(&rows.iter().map(last).collect::<Vec<u16>>());
            self.advance(&next, &mut rows, sampling);
            queue.take_ended(&mut rows)?;
        }
    }

    /// Samples the next token of each game.
    fn advance(&self, next: &Next, rows: &mut [Option<Course>], sampling: &Sampling) {
        let width = self.encoder.vocabulary.size();
        let logits = torch::floats(&next.tokens);
        for (logits, row) in logits.chunks(width).zip(rows) {
            if let Some(course) = row {
                course.advance(logits, &self.encoder, sampling);
            }
        }
    }
}

/// The waiting prompts and the destination of finished games, which all threads share.
struct Queue<P, H> {
    /// The waiting prompts; `None` once the queue is closed.
    prompts: Mutex<Option<P>>,
    hand_on: Mutex<H>,
}

impl<P, H> Queue<P, H> {
    /// Closes the queue: no further games begin, and running games are discarded.
    fn close(&self) {
        *self.prompts.lock() = None;
    }

    fn is_closed(&self) -> bool {
        self.prompts.lock().is_none()
    }
}

impl<P, H, E> Queue<P, H>
where
    P: Iterator<Item = (usize, Result<Prompt, E>)>,
    H: FnMut(usize, Written) -> Result<(), E>,
    E: From<Unencodable>,
{
    /// Returns at most `most` new games. Games that are already over at the start are passed on
    /// immediately.
    fn begin(&self, most: usize, encoder: &MoveEncoder) -> Result<Vec<Option<Course>>, E> {
        let mut begun = Vec::new();
        while begun.len() < most {
            let next = self.prompts.lock().as_mut().and_then(P::next);
            let Some((number, prompt)) = next else {
                break;
            };
            begun.push(Some(Course::begin(number, prompt?, encoder)?));
            self.take_ended(&mut begun)?;
            begun.retain(Option::is_some);
        }
        Ok(begun)
    }

    /// Passes on the games that have ended and frees their rows.
    fn take_ended(&self, rows: &mut [Option<Course>]) -> Result<(), E> {
        for row in rows {
            if let Some(course) = row.take_if(|course| course.end.is_some()) {
                let number = course.number;
                (self.hand_on.lock())(number, course.written())?;
            }
        }
        Ok(())
    }
}

/// Returns the decoder's first inputs for the games in these rows.
fn beginnings(rows: &[Option<Course>]) -> Vec<(&[u16], Conditions)> {
    let courses = rows.iter().flatten();
    courses
        .map(|course| (&*course.tokens, course.conditions))
        .collect()
}

#[cfg(test)]
mod tests;
