//! Games written by a move-token GPT: many side by side, each move one step of the network.

mod choice;
mod course;

pub use choice::Sampling;

use crate::chess::{Ending, Game};
use crate::data::sample::Wdl;
use crate::encode::{GameEnd, MoveEncoder, Unencodable, Vocabulary};
use crate::network::gpt::{Conditions, Decoder, Next};
use crate::network::{Gpt, Network, Weights};
use crate::scoped_threads::side_by_side;
use crate::torch::ComputeType;
use course::Course;
use parking_lot::Mutex;
use rand_xoshiro::Xoshiro256PlusPlus;
use shakmaty::{Color, Position};
use tch::{Device, Kind};

/// Share of rows without a game above which games begin there, or these rows are left out:
/// the one is a pass of its own, the other copies all keys and values.
const FREE_SHARE: f64 = 0.125;

/// A game's start.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The moves so far, from the initial position.
    pub game: Game,
    /// The players, and the requested result.
    pub conditions: Conditions,
    /// The agent that decides the moves, with the network's probabilities.
    pub random: Xoshiro256PlusPlus,
}

/// A game that was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Its moves, all of them legal.
    pub game: Game,
    /// Its ending.
    pub end: WrittenEnd,
}

/// The ending of a written game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrittenEnd {
    /// By the rules; draws are claimed at once.
    Rules(Ending),
    /// As the network says: somebody resigns, both agree on a draw.
    Said(GameEnd),
    /// With what is not legal, as the vocabulary writes it.
    Illegal(String),
    /// The network reads no longer games.
    Unfinished,
}

impl Written {
    /// The result for White, if the game came to one.
    #[must_use]
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

/// The number of games written at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideBySide {
    /// By each thread.
    pub games: usize,
    /// Threads; at least one.
    pub threads: usize,
}

/// Writes games.
#[derive(Debug)]
pub struct Generator {
    gpt: Box<Gpt>,
    weights: Weights,
    encoder: MoveEncoder,
}

impl Generator {
    /// A generator by this network, computed in this type on this device.
    #[must_use]
    pub fn new(network: Network<Gpt>, kind: Kind, device: Device) -> Generator {
        let gpt = network.architecture;
        Generator {
            weights: network.weights.frozen(ComputeType::from(kind), device),
            encoder: gpt.encoder(),
            gpt,
        }
    }

    /// The mark of prompts.
    #[must_use]
    pub fn encoder(&self) -> &MoveEncoder {
        &self.encoder
    }

    /// The same generator for another thread: its weights are these.
    fn replica(&self) -> Generator {
        let (kind, device) = (self.weights.kind(), self.weights.tensors()[0].device());
        let gpt = Gpt::new(self.gpt.model(), device).expect("the same sizes");
        Generator {
            weights: self.weights.frozen(ComputeType::from(kind), device),
            encoder: self.encoder.clone(),
            gpt: Box::new(gpt),
        }
    }

    /// Continues all games side by side until each has ended; returns them in the order of the
    /// prompts.
    ///
    /// # Errors
    /// [`Unencodable`] if a game's beginning cannot be encoded.
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

    /// Continues the games of these prompts, several side by side, and passes each to `hand_on`
    /// with the number of its prompt as soon as it has ended. Another game then takes its place.
    ///
    /// # Errors
    /// The errors of the prompts and of `hand_on`, and [`Unencodable`] if a game's beginning
    /// cannot be encoded. No further games begin then.
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
        // One thread of libtorch's each: a step is too small to be shared.
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

    /// Writes the queue's games, a number side by side, until it is empty.
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
            // Nobody looks at what follows in a free row.
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

    /// One more token of each game, drawn by what follows it.
    fn advance(&self, next: &Next, rows: &mut [Option<Course>], sampling: &Sampling) {
        let width = self.encoder.vocabulary.size();
        let logits = next
            .tokens
            .to_kind(Kind::Float)
            .to_device(Device::Cpu)
            .reshape([-1]);
        let logits: Vec<f32> = Vec::try_from(logits).expect("a vector of floats");
        for (logits, row) in logits.chunks(width).zip(rows) {
            if let Some(course) = row {
                course.advance(logits, &self.encoder, sampling);
            }
        }
    }
}

/// Games that wait, and where those go that have ended; threads share both.
struct Queue<P, H> {
    /// `None` once it is closed.
    prompts: Mutex<Option<P>>,
    hand_on: Mutex<H>,
}

impl<P, H> Queue<P, H> {
    /// No more games begin, and nobody takes those that have begun.
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
    /// Returns the next games, up to a limit; games that are over at the start are passed on.
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

    /// Hands on the games that have ended, and leaves their rows free.
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

/// A decoder's first inputs in these rows.
fn beginnings(rows: &[Option<Course>]) -> Vec<(&[u16], Conditions)> {
    let courses = rows.iter().flatten();
    courses
        .map(|course| (&*course.tokens, course.conditions))
        .collect()
}

#[cfg(test)]
mod tests;
