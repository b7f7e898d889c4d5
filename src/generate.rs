//! Games that a GPT over moves writes: many side by side, each move one step of the
//! network.

mod choice;

pub use choice::Sampling;

use crate::chess::{Ending, Game};
use crate::data::sample::Wdl;
use crate::encode::{GameEnd, MoveEncoder, Token, Unencodable, Vocabulary};
use crate::network::gpt::{Conditions, Decoder};
use crate::network::{Gpt, Network, Weights};
use choice::Choices;
use rand_xoshiro::Xoshiro256PlusPlus;
use shakmaty::{Color, Position};
use tch::{Device, Kind, Tensor};

/// Share of finished games among those side by side above which they are left out: that
/// copies all the others' keys and values.
const FINISHED_SHARE: f64 = 0.25;

/// What a game begins with.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The moves so far, from the initial position.
    pub game: Game,
    /// Who plays, and how it is to end.
    pub conditions: Conditions,
    /// What decides the moves, with the network's probabilities.
    pub random: Xoshiro256PlusPlus,
}

/// A game that was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Its moves, all of them legal.
    pub game: Game,
    /// How it ended.
    pub end: WrittenEnd,
}

/// How a game ended that was written.
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
            weights: network.weights.to(kind, device),
            encoder: gpt.encoder(),
            gpt,
        }
    }

    /// What prompts are told by.
    #[must_use]
    pub fn encoder(&self) -> &MoveEncoder {
        &self.encoder
    }

    /// Goes on with all games until each has ended; in the order of the prompts.
    ///
    /// # Errors
    /// [`Unencodable`] if the network cannot be told how one begins.
    pub fn write(
        &self,
        prompts: Vec<Prompt>,
        sampling: &Sampling,
    ) -> Result<Vec<Written>, Unencodable> {
        let _guard = tch::no_grad_guard();
        let mut games = prompts
            .into_iter()
            .map(|prompt| Course::begin(prompt, &self.encoder))
            .collect::<Result<Vec<Course>, _>>()?;
        let mut rows: Vec<usize> = (0..games.len())
            .filter(|&it| games[it].end.is_none())
            .collect();
        if !rows.is_empty() {
            let begun: Vec<_> = rows
                .iter()
                .map(|&game| (&*games[game].tokens, games[game].conditions))
                .collect();
            let (mut decoder, mut next) = Decoder::start(&self.gpt, &self.weights, &begun);
            loop {
                self.advance(&next.tokens, &rows, &mut games, sampling);
                let open: Vec<usize> = (0..rows.len())
                    .filter(|&row| games[rows[row]].end.is_none())
                    .collect();
                if open.is_empty() {
                    break;
                }
                let finished = rows.len() - open.len();
                if finished as f64 > FINISHED_SHARE * rows.len() as f64 {
                    decoder.keep(&open);
                    rows = open.iter().map(|&row| rows[row]).collect();
                }
                // A finished game repeats its last token, and nobody looks at it.
                let last: Vec<u16> = rows.iter().map(|&game| games[game].last()).collect();
                next = decoder.step(&last);
            }
        }
        let written = games.into_iter().map(|course| Written {
            game: course.game,
            end: course.end.expect("all have ended"),
        });
        Ok(written.collect())
    }

    /// One more token of each game that is open, drawn by logits [B, 1, vocabulary].
    fn advance(&self, logits: &Tensor, rows: &[usize], games: &mut [Course], sampling: &Sampling) {
        let width = self.encoder.vocabulary.size();
        let logits = logits
            .to_kind(Kind::Float)
            .to_device(Device::Cpu)
            .reshape([-1]);
        let logits: Vec<f32> = Vec::try_from(logits).expect("a vector of floats");
        for (logits, &game) in logits.chunks(width).zip(rows) {
            let course = &mut games[game];
            if course.end.is_none() {
                course.advance(logits, &self.encoder, sampling);
            }
        }
    }
}

/// A game that is being written.
struct Course {
    game: Game,
    tokens: Vec<u16>,
    conditions: Conditions,
    random: Xoshiro256PlusPlus,
    end: Option<WrittenEnd>,
}

impl Course {
    fn begin(prompt: Prompt, encoder: &MoveEncoder) -> Result<Course, Unencodable> {
        let mut tokens = Vec::new();
        encoder.encode(&prompt.game, &mut tokens)?;
        Ok(Course {
            end: prompt.game.ending().map(WrittenEnd::Rules),
            game: prompt.game,
            tokens,
            conditions: prompt.conditions,
            random: prompt.random,
        })
    }

    fn last(&self) -> u16 {
        self.tokens.last().copied().unwrap_or_default()
    }

    /// Goes on by a token that is drawn by these logits.
    fn advance(&mut self, logits: &[f32], encoder: &MoveEncoder, sampling: &Sampling) {
        let vocabulary = &encoder.vocabulary;
        let position = self.game.position();
        let choices = match sampling.legal_only {
            true => Choices::legal(position, vocabulary, logits),
            false => Choices::all(vocabulary, logits),
        };
        let Some(token) = choices.draw(sampling, &mut self.random) else {
            self.end = Some(WrittenEnd::Unfinished);
            return;
        };
        match vocabulary.read(token) {
            Some(Token::End(end)) if !end.is_mate() => self.end = Some(WrittenEnd::Said(end)),
            // The game would have ended by the rules if there were a mate.
            Some(Token::End(_)) => self.end = Some(WrittenEnd::Illegal("mate".to_owned())),
            _ => match vocabulary.legal_move(position, token) {
                Some(mv) => {
                    self.game.play(mv);
                    self.tokens.push(token);
                    self.end = match self.game.ending() {
                        Some(ending) => Some(WrittenEnd::Rules(ending)),
                        None if self.tokens.len() >= encoder.context => {
                            Some(WrittenEnd::Unfinished)
                        }
                        None => None,
                    };
                }
                None => {
                    let text = vocabulary.text(token).unwrap_or_default();
                    self.end = Some(WrittenEnd::Illegal(text));
                }
            },
        }
    }
}

#[cfg(test)]
mod tests;
