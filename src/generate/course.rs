//! The state of a game that is being generated.

use super::choice::Choices;
use super::{Prompt, Sampling, Written, WrittenEnd};
use crate::chess::Game;
use crate::encode::{MoveEncoder, Token, Unencodable};
use crate::network::gpt::Conditions;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A game that is being generated.
pub(super) struct Course {
    /// The index of the game's prompt.
    pub number: usize,
    pub tokens: Vec<u16>,
    pub conditions: Conditions,
    pub end: Option<WrittenEnd>,
    game: Game,
    random: Xoshiro256PlusPlus,
}

impl Course {
    pub fn begin(
        number: usize,
        prompt: Prompt,
        encoder: &MoveEncoder,
    ) -> Result<Course, Unencodable> {
        let mut tokens = Vec::new();
        encoder.encode(&prompt.game, &mut tokens)?;
        Ok(Course {
            number,
            end: prompt.game.ending().map(WrittenEnd::Rules),
            game: prompt.game,
            tokens,
            conditions: prompt.conditions,
            random: prompt.random,
        })
    }

    pub fn last(&self) -> u16 {
        self.tokens.last().copied().unwrap_or_default()
    }

    /// Returns the finished game.
    pub fn written(self) -> Written {
        Written {
            game: self.game,
            end: self.end.expect("it has ended"),
        }
    }

    /// Continues the game with a token sampled from these logits.
    pub fn advance(&mut self, logits: &[f32], encoder: &MoveEncoder, sampling: &Sampling) {
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
            // If the position were mate, the game would already have ended.
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
