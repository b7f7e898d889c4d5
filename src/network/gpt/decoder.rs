//! Decodes batches of games, move by move.

use super::{Gpt, Next, Sequences};
use crate::chess::Ratings;
use crate::network::blocks::KvCache;
use crate::network::parameters::Weights;
use shakmaty::{Color, KnownOutcome};
use tch::{Kind, Tensor};

/// Initial capacity of a cache, in tokens.
const ROOM: i64 = 128;

/// Unused columns are dropped when they exceed the fraction 1 / `UNUSED_PART` of all columns.
const UNUSED_PART: i64 = 4;

/// Known facts about a game other than its moves, and the requested result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// The players' ratings.
    pub ratings: Ratings,
    /// The requested result.
    pub result: Option<KnownOutcome>,
}

impl Conditions {
    /// Returns the ratings of B games in the form that networks read, f32 [B, 1, 2].
    pub fn ratings(games: &[Conditions]) -> Tensor {
        let ratings = games.iter().flat_map(|game| {
            let Ratings { white, black } = game.ratings;
            [white, black].map(|rating| f32::from(rating.unwrap_or(0)))
        });
        Tensor::from_slice(&ratings.collect::<Vec<f32>>()).view([-1, 1, 2])
    }

    /// Returns the results of B games in the form that networks read, i64 [B, 1].
    pub fn results(games: &[Conditions]) -> Tensor {
        let results = games.iter().map(|game| match game.result {
            None => 0i64,
            Some(KnownOutcome::Decisive { winner }) => match winner {
                Color::White => 1,
                Color::Black => 3,
            },
            Some(KnownOutcome::Draw) => 2,
        });
        Tensor::from_slice(&results.collect::<Vec<i64>>()).view([-1, 1])
    }
}

/// A batch of games that a network continues. Reading a move costs one token, regardless of the
/// game's length. Shorter games are padded on the left, and a mask hides the padding.
#[derive(Debug)]
pub struct Decoder<'a> {
    gpt: &'a Gpt,
    weights: &'a Weights,
    /// The vectors of all tokens.
    table: Tensor,
    cache: KvCache,
    /// Number of padding tokens before each game.
    padding: Vec<i64>,
    ratings: Tensor,
    results: Tensor,
}

impl<'a> Decoder<'a> {
    /// Reads the existing tokens and the conditions of each game. Every game must have at least one
    /// token. Returns the predictions for the next token, [B, 1, …].
    pub fn start(
        gpt: &'a Gpt,
        weights: &'a Weights,
        games: &[(&[u16], Conditions)],
    ) -> (Decoder<'a>, Next) {
        let (mut decoder, tokens) = Decoder::new(gpt, weights, games);
        let features = decoder.read(&tokens);
        let last = features.narrow(1, tokens.size()[1] - 1, 1);
        (decoder, gpt.next(weights, &last))
    }

    /// Returns the features [B, T, width] of each game's tokens. Every game must have at least one
    /// token. Games are right-aligned in rows of length T, the length of the longest game.
    pub fn features(gpt: &'a Gpt, weights: &'a Weights, games: &[(&[u16], Conditions)]) -> Tensor {
        let (decoder, tokens) = Decoder::new(gpt, weights, games);
        gpt.read(weights, &decoder.table, &decoder.sequences(&tokens), None)
    }

    /// Returns a decoder that has not read any tokens, and the padded tokens of the games.
    fn new(
        gpt: &'a Gpt,
        weights: &'a Weights,
        games: &[(&[u16], Conditions)],
    ) -> (Decoder<'a>, Tensor) {
        let device = weights.tensors()[0].device();
        let longest = games.iter().map(|(tokens, _)| tokens.len()).max();
        let longest = longest.unwrap_or(0) as i64;
        let padding: Vec<i64> = games
            .iter()
            .map(|(tokens, _)| longest - tokens.len() as i64)
            .collect();
        let token = i64::from(gpt.vocabulary.padding());
        let rows = games
            .iter()
            .zip(&padding)
            .flat_map(|((tokens, _), &count)| {
                let padding = std::iter::repeat_n(token, count as usize);
                padding.chain(tokens.iter().map(|&token| i64::from(token)))
            });
        let rows: Vec<i64> = rows.collect();
        let tokens = Tensor::from_slice(&rows).view([-1, longest]);
        let conditions: Vec<Conditions> = games.iter().map(|&(_, of)| of).collect();
        let decoder = Decoder {
            gpt,
            weights,
            table: gpt.tokens.table(weights),
            cache: gpt.cache(weights, games.len() as i64, longest.max(ROOM)),
            padding,
            ratings: Conditions::ratings(&conditions).to_device(device),
            results: Conditions::results(&conditions).to_device(device),
        };
        (decoder, tokens.to_device(device))
    }

    /// Reads one more token per game, and returns the predictions for the token after it, [B, 1,
    /// …].
    pub fn step(&mut self, tokens: &[u16]) -> Next {
        let tokens: Vec<i64> = tokens.iter().map(|&token| i64::from(token)).collect();
        let tokens = Tensor::from_slice(&tokens).unsqueeze(1);
        let features = self.read(&tokens.to_device(self.ratings.device()));
        self.gpt.next(self.weights, &features)
    }

    /// Replaces the games at these indices with new games. Each new game is given by its existing
    /// tokens; there must be at least one. Returns the predictions for the new games' next tokens,
    /// [new games, 1, …].
    pub fn replace(&mut self, numbers: &[usize], games: &[(&[u16], Conditions)]) -> Next {
        let (mut newcomers, tokens) = Decoder::new(self.gpt, self.weights, games);
        let features = newcomers.read(&tokens);
        let length = newcomers.cache.len();
        for (&number, padding) in numbers.iter().zip(&newcomers.padding) {
            self.padding[number] = self.cache.len() - (length - padding);
        }
        // Columns that are padding in every game cost time, but dropping them requires copying the
        // other columns.
        let unused = self.padding.iter().copied().min().unwrap_or(0);
        if unused < 0 || unused > self.cache.len() / UNUSED_PART {
            self.cache.shift(-unused);
            self.padding.iter_mut().for_each(|count| *count -= unused);
        }
        let places: Vec<i64> = numbers.iter().map(|&number| number as i64).collect();
        let places = Tensor::from_slice(&places).to_device(self.ratings.device());
        self.cache.put(&places, &newcomers.cache);
        let _ = self.ratings.index_copy_(0, &places, &newcomers.ratings);
        let _ = self.results.index_copy_(0, &places, &newcomers.results);
        let last = features.narrow(1, tokens.size()[1] - 1, 1);
        self.gpt.next(self.weights, &last)
    }

    /// Keeps only the games at these indices, in this order.
    pub fn keep(&mut self, games: &[usize]) {
        let numbers: Vec<i64> = games.iter().map(|&game| game as i64).collect();
        let numbers = Tensor::from_slice(&numbers).to_device(self.ratings.device());
        self.cache.select(&numbers);
        self.ratings = self.ratings.index_select(0, &numbers);
        self.results = self.results.index_select(0, &numbers);
        self.padding = games.iter().map(|&game| self.padding[game]).collect();
    }

    /// Reads tokens i64 [B, T] that follow those in the cache, and returns their features.
    fn read(&mut self, tokens: &Tensor) -> Tensor {
        let sequences = self.sequences(tokens);
        let past = Some(&mut self.cache as _);
        self.gpt.read(self.weights, &self.table, &sequences, past)
    }

    /// Returns the network's input for tokens i64 [B, T] that follow those in the cache.
    fn sequences(&self, tokens: &Tensor) -> Sequences {
        let (past, new) = (self.cache.len(), tokens.size()[1]);
        let device = tokens.device();
        let padding = Tensor::from_slice(&self.padding).to_device(device);
        let places = Tensor::arange_start(past, past + new, (Kind::Int64, device));
        let is_padded = self.padding.iter().any(|&count| count > 0);
        Sequences {
            tokens: tokens.shallow_clone(),
            positions: (places.unsqueeze(0) - padding.unsqueeze(1)).clamp_min(0),
            ratings: self.ratings.shallow_clone(),
            results: self.results.shallow_clone(),
            padding: is_padded.then_some(padding),
        }
    }
}
