//! The objective of networks that read whole games: to predict the next token and the result.
//!
//! The games in a batch are sorted from the longest to the shortest, and each micro-batch is padded
//! to its longest game. Little computation is wasted on padding, and unlike in a packed sequence,
//! no game can attend to another.

mod legality;
mod random_moves;
mod rules;

use super::{IGNORED, Narrow, Objective, Term, build, classification, hits, random_of, send, sum};
use crate::data::examples::{GameColumns, GameExamples, GameTokens};
use crate::data::loader::Batch;
use crate::data::sample::Wdl;
use crate::encode::Vocabulary;
use crate::network::gpt::{Gpt, Next};
use crate::network::{Architecture, ArchitectureConfig, Parameter, Weights, gpt};
use crate::train::config::{AugmentConfig, TrainConfig};
use crate::train::error::TrainError;
use legality::Legality;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rules::{Rules, Told};
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

/// The objective of networks that read whole games.
#[derive(Debug)]
pub(in crate::train) struct GameObjective {
    model: Gpt,
    device: Device,
    augment: AugmentConfig,
    told: Told,
}

/// A batch of B games on the device, from the longest to the shortest. T is the number of tokens
/// that the network reads from the longest game.
#[derive(Debug)]
pub(in crate::train) struct GameSamples {
    /// The input tokens, i64 [B, T], padded.
    tokens: Tensor,
    /// The token after each input token, i64 [B, T]; [`IGNORED`] in the padding.
    next: Tensor,
    /// The result, i64 `[B]`: 0 if White won, 1 for a draw, 2 if Black won; [`IGNORED`] if unknown.
    result: Tensor,
    /// Ratings of White and Black, f32 [B, 1, 2]; 0 where unknown or hidden.
    ratings: Tensor,
    /// The requested result, i64 [B, 1], encoded as in [`gpt::Sequences::results`].
    wanted: Tensor,
    /// The targets of the losses on the rules.
    rules: Rules,
    /// Number of tokens read from each game.
    lengths: Vec<i64>,
    /// The vocabulary of tokens.
    vocabulary: Arc<Vocabulary>,
}

impl Narrow for GameSamples {
    fn narrow(&self, start: i64, count: i64) -> GameSamples {
        let lengths = self.lengths[start as usize..][..count as usize].to_vec();
        let longest = lengths.first().copied().unwrap_or(0);
        let part = |tensor: &Tensor| tensor.narrow(0, start, count);
        GameSamples {
            tokens: part(&self.tokens).narrow(1, 0, longest),
            next: part(&self.next).narrow(1, 0, longest),
            result: part(&self.result),
            ratings: part(&self.ratings),
            wanted: part(&self.wanted),
            rules: self.rules.narrow(start, count, longest),
            lengths,
            vocabulary: Arc::clone(&self.vocabulary),
        }
    }
}

/// The random choices made for one game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chance {
    hides_ratings: bool,
    hides_result: bool,
    /// Seed of the random moves that replace the rest of the game from a random ply; `None` keeps
    /// the game.
    random_moves: Option<u64>,
}

impl Chance {
    fn draw(config: &AugmentConfig, random: &mut Xoshiro256PlusPlus) -> Chance {
        let mut is_of = |share: f64| random.random::<f64>() < share;
        let [hides_ratings, hides_result] =
            [config.hide_ratings, config.hide_result].map(&mut is_of);
        let goes_on = is_of(config.random_moves);
        let seed = random.random();
        Chance {
            hides_ratings,
            hides_result,
            random_moves: goes_on.then_some(seed),
        }
    }
}

/// The network's outputs for B games.
#[derive(Debug)]
pub(in crate::train) struct GameOutputs {
    next: Next,
    /// Logits of the classes of the squares, [B, T, 64, classes].
    board: Option<Tensor>,
}

impl GameObjective {
    /// Returns the random choices for each game, which depend only on the seed and the game's index
    /// in the sample order.
    fn chances(&self, batch: &Batch<GameColumns>) -> Vec<Chance> {
        let mut random = random_of(self.augment.seed, batch);
        let mut draw = || Chance::draw(&self.augment, &mut random);
        // Skip the random numbers for the games of other ranks and replicas.
        for _ in 0..batch.first {
            draw();
        }
        (0..batch.len()).map(|_| draw()).collect()
    }

    /// Returns the augmented games.
    fn changed(&self, batch: Batch<GameColumns>) -> Vec<(GameTokens, Chance)> {
        let chances = self.chances(&batch);
        let vocabulary = &self.model.vocabulary;
        let games = batch.columns.games.into_par_iter().zip(chances);
        let changed = games.map(
            |(game, chance): (GameTokens, Chance)| match chance.random_moves {
                Some(seed) => {
                    let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
                    (random_moves::go_on(&game, vocabulary, random), chance)
                }
                None => (game, chance),
            },
        );
        changed.collect()
    }

    /// Uploads the games, with those ratings and results that are known and not hidden.
    fn upload(&self, mut games: Vec<(GameTokens, Chance)>) -> GameSamples {
        games.sort_by_key(|(game, _)| std::cmp::Reverse(game.tokens.len()));
        let count = games.len() as i64;
        let lengths: Vec<i64> = games
            .iter()
            .map(|(game, _)| game.tokens.len() as i64 - 1)
            .collect();
        let longest = lengths.first().copied().unwrap_or(0);
        let padding = i64::from(self.model.vocabulary.padding());
        let padded = |tokens: &[u16], filling: i64| -> Vec<i64> {
            let tokens = tokens.iter().map(|&token| i64::from(token));
            let filling = std::iter::repeat(filling);
            tokens.chain(filling).take(longest as usize).collect()
        };
        let rows = |row: &dyn Fn(&[u16]) -> Vec<i64>| {
            let rows: Vec<i64> = games
                .iter()
                .flat_map(|(game, _)| row(&game.tokens))
                .collect();
            send(&rows, self.device).view([count, longest])
        };
        let result = |game: &GameTokens| match game.result {
            Some(Wdl::Win) => 0,
            Some(Wdl::Draw) => 1,
            Some(Wdl::Loss) => 2,
            None => IGNORED,
        };
        let results: Vec<i64> = games.iter().map(|(game, _)| result(game)).collect();
        let wanted = games.iter().zip(&results);
        let wanted: Vec<i64> = wanted
            .map(
                |((_, chance), &result)| match chance.hides_result || result == IGNORED {
                    true => 0,
                    false => result + 1,
                },
            )
            .collect();
        let ratings: Vec<f32> = games
            .iter()
            .flat_map(|(game, chance)| match chance.hides_ratings {
                true => [0.0; 2],
                false => game.ratings.map(f32::from),
            })
            .collect();
        let whole: Vec<&GameTokens> = games.iter().map(|(game, _)| game).collect();
        let vocabulary = &self.model.vocabulary;
        GameSamples {
            rules: Rules::of(&whole, longest as usize, vocabulary, self.told, self.device),
            tokens: rows(&|tokens| padded(&tokens[..tokens.len() - 1], padding)),
            next: rows(&|tokens| padded(&tokens[1..], IGNORED)),
            result: send(&results, self.device),
            ratings: send(&ratings, self.device).view([count, 1, 2]),
            wanted: send(&wanted, self.device).view([count, 1]),
            lengths,
            vocabulary: Arc::clone(vocabulary),
        }
    }
}

impl Objective for GameObjective {
    type Examples = GameExamples;
    type Samples = GameSamples;
    type Outputs = GameOutputs;
    type Diagnostics = Legality;

    fn terms(config: &TrainConfig) -> Vec<Term> {
        let loss = &config.loss;
        let mut terms = vec![
            ("policy", loss.policy),
            ("result", loss.result),
            ("policy_accuracy", 0.0),
        ];
        let told = Told::by(config);
        if told.legal {
            terms.push(("legality", loss.legality));
        }
        if told.board {
            terms.extend([("board", loss.board), ("board_accuracy", 0.0)]);
        }
        let terms = terms.into_iter();
        terms.map(|(name, weight)| Term { name, weight }).collect()
    }

    fn new(config: &TrainConfig, device: Device) -> Result<GameObjective, TrainError> {
        Ok(GameObjective {
            augment: config.augment.clone(),
            ..GameObjective::for_validation(config, device)?
        })
    }

    /// Validations show the network the ratings, but hide the results, which it predicts.
    fn for_validation(config: &TrainConfig, device: Device) -> Result<GameObjective, TrainError> {
        Ok(GameObjective {
            model: build(&config.architecture()?, device)?,
            device,
            told: Told::by(config),
            augment: AugmentConfig {
                hide_result: 1.0,
                ..AugmentConfig::default()
            },
        })
    }

    fn replica(&self) -> Result<GameObjective, TrainError> {
        Ok(GameObjective {
            model: build(&self.model.config(), self.device)?,
            augment: self.augment.clone(),
            ..*self
        })
    }

    fn examples(&self, _config: &TrainConfig) -> GameExamples {
        GameExamples {
            vocabulary: self.model.vocabulary.clone(),
            context: self.model.config.context as usize,
        }
    }

    fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    /// Prepares games. A game's weight in a term is the number of its tokens that have the target,
    /// so that the mean over the games is a mean over tokens.
    fn prepare(&self, batch: Batch<GameColumns>) -> Result<(GameSamples, Tensor), TrainError> {
        let samples = self.upload(self.changed(batch));
        let lengths: Vec<f32> = samples.lengths.iter().map(|&it| it as f32).collect();
        let lengths = send(&lengths, self.device);
        // A result that is shown to the network is not a target.
        let open = samples.result.ge(0) * samples.wanted.squeeze_dim(1).eq(0);
        let results = match self.model.config.outcome {
            true => &lengths * open,
            false => lengths.zeros_like(),
        };
        let mut weights = vec![&lengths, &results];
        // All other terms have the same weights.
        weights.resize(2 + 1 + self.told.terms(), &lengths);
        let weights = Tensor::stack(&weights, 0);
        Ok((samples, weights))
    }

    fn forward(&self, weights: &Weights, samples: &GameSamples) -> GameOutputs {
        let games = gpt::Sequences {
            ratings: samples.ratings.shallow_clone(),
            results: samples.wanted.shallow_clone(),
            ..gpt::Sequences::of_tokens(samples.tokens.shallow_clone())
        };
        let features = self.model.features(weights, &games, None);
        GameOutputs {
            next: self.model.next(weights, &features),
            board: self.model.board(weights, &features),
        }
    }

    fn values(&self, outputs: &GameOutputs, samples: &GameSamples) -> Vec<Tensor> {
        let GameOutputs { next, board } = outputs;
        let learned = samples.next.ge(0).to_kind(Kind::Float);
        let lengths = sum(&learned);
        let mean = |of_tokens: Tensor| sum(&(of_tokens * &learned)) / &lengths;
        let logits = next.tokens.to_kind(Kind::Float);
        let policy = mean(classification(&logits, &samples.next));
        let result = match &next.outcome {
            Some(outcome) => {
                let target = samples.result.unsqueeze(1).expand_as(&samples.next);
                mean(classification(&outcome.to_kind(Kind::Float), &target))
            }
            None => lengths.zeros_like(),
        };
        let mut values = vec![policy, result, mean(hits(&logits, &samples.next))];
        if let Some(legal) = &samples.rules.legal {
            values.push(mean(improbability(&logits, legal)));
        }
        if let (Some(board), Some(squares)) = (board, &samples.rules.board) {
            let of_squares = classification(&board.to_kind(Kind::Float), squares);
            values.extend(
                [of_squares, hits(board, squares)]
                    .map(|of_squares| mean(of_squares.mean_dim(-1, false, Kind::Float))),
            );
        }
        values
    }
}

impl Told {
    /// Returns which targets about the rules the configuration uses.
    fn by(config: &TrainConfig) -> Told {
        let architecture = config.architecture();
        Told {
            legal: config.loss.legality > 0.0,
            board: matches!(architecture, Ok(ArchitectureConfig::Gpt { model }) if model.board),
        }
    }

    /// Returns the number of enabled terms.
    fn terms(self) -> usize {
        usize::from(self.legal) + 2 * usize::from(self.board)
    }
}

/// Returns the negative log-probability of the legal tokens, [B, T], given logits and legality,
/// both [B, T, vocabulary].
fn improbability(logits: &Tensor, legal: &Tensor) -> Tensor {
    let illegal = legal.logical_not();
    let of_legal = logits.masked_fill(&illegal, f64::NEG_INFINITY);
    logits.logsumexp([-1i64].as_slice(), false) - of_legal.logsumexp([-1i64].as_slice(), false)
}

#[cfg(test)]
mod tests;
