//! Evaluates positions with a move-token model.

use crate::backend::{Backend, BackendError, Batch, Evaluations, Format, Properties, Value, Way};
use crate::chess::Ratings;
use crate::encode::Encoder;
use crate::network::gpt::{Conditions, Decoder};
use crate::network::{Gpt, Network, Weights};
use crate::torch::{self, ComputeType};
use std::sync::{Arc, Mutex, PoisonError};
use tch::{Device, Kind, Tensor};

/// Number of games read per batch. Larger batches are no faster.
const BATCH: usize = 64;

/// A move-token model. The policy is the distribution over next moves, and the value is the
/// predicted result if the model has an outcome head.
#[derive(Clone, Debug)]
pub(super) struct SequenceBackend {
    network: Arc<Mutex<Played>>,
    properties: Properties,
    /// The device of the network.
    pub device: Device,
}

/// The weights, in the network's dtype on its device.
#[derive(Debug)]
struct Played {
    gpt: Box<Gpt>,
    weights: Weights,
}

impl SequenceBackend {
    /// Prepares a network for play on a device in this dtype.
    pub fn new(network: Network<Gpt>, device: Device, dtype: ComputeType) -> SequenceBackend {
        let gpt = network.architecture;
        let properties = Properties {
            name: network.about.name,
            encoder: Encoder::Moves(gpt.encoder()),
            has_value: gpt.config.outcome,
            has_moves_left: false,
            has_error: false,
            reads_ratings: true,
            correction: None,
            recommended_batch: BATCH,
            recommended_threads: 1,
            format: Some(Format::only(Way::Operators, dtype.into())),
        };
        let played = Played {
            weights: network.weights.to(dtype.kind, device),
            gpt,
        };
        SequenceBackend {
            network: Arc::new(Mutex::new(played)),
            properties,
            device,
        }
    }
}

impl Backend for SequenceBackend {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        let rows = Rows::of(batch);
        // Evaluation never modifies the network.
        let network = self.network.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answers = vec![Answer::default(); batch.len()];
        for games in rows.games.chunks(BATCH) {
            for (position, answer) in torch::caught(|| network.read(games, batch))? {
                answers[position] = answer;
            }
        }
        out.clear();
        for Answer { value, logits } in answers {
            let is_finite = value.q.is_finite() && logits.iter().all(|logit| logit.is_finite());
            if !is_finite {
                return Err(BackendError::NotFinite(self.properties.name.clone()));
            }
            out.push(value, logits);
        }
        Ok(())
    }
}

/// The evaluation of a position.
#[derive(Clone, Debug, Default)]
struct Answer {
    value: Value,
    logits: Vec<f32>,
}

/// The games to read. A position that is a prefix of another game is evaluated as part of that
/// game.
#[derive(Debug, Default)]
struct Rows {
    games: Vec<Row>,
}

/// A game, identified by the index of its last position, with all positions that are its prefixes.
/// Each prefix is a position's index and its number of tokens.
#[derive(Debug)]
struct Row {
    longest: usize,
    positions: Vec<(usize, usize)>,
}

impl Rows {
    fn of(batch: &Batch) -> Rows {
        let sequence = |index: usize| batch.sequence(index).unwrap_or_default();
        let key = |&index: &usize| {
            let (tokens, Ratings { white, black }) = sequence(index);
            (white, black, tokens)
        };
        let mut order: Vec<usize> = (0..batch.len()).collect();
        order.sort_by(|a, b| key(a).cmp(&key(b)));
        // In ascending order, the continuations of a game directly follow it.
        let mut games: Vec<Row> = Vec::new();
        for index in order.into_iter().rev() {
            let (tokens, ratings) = sequence(index);
            let is_on_the_way = |row: &&mut Row| {
                let (longer, others) = sequence(row.longest);
                ratings == others && longer.starts_with(tokens)
            };
            match games.last_mut().filter(is_on_the_way) {
                Some(row) => row.positions.push((index, tokens.len())),
                None => games.push(Row {
                    longest: index,
                    positions: vec![(index, tokens.len())],
                }),
            }
        }
        // Games of similar length are adjacent, so they need little padding.
        games.sort_by_key(|row| sequence(row.longest).0.len());
        Rows { games }
    }
}

impl Played {
    /// Returns the evaluations of all positions of these games.
    fn read(&self, games: &[Row], batch: &Batch) -> Vec<(usize, Answer)> {
        let _guard = tch::no_grad_guard();
        let tokens: Vec<(&[u16], Conditions)> = games
            .iter()
            .map(|row| {
                let (tokens, ratings) = batch.sequence(row.longest).unwrap_or_default();
                let conditions = Conditions {
                    ratings,
                    result: None,
                };
                (tokens, conditions)
            })
            .collect();
        let longest = tokens.iter().map(|(tokens, _)| tokens.len()).max();
        let longest = longest.unwrap_or(0);
        let features = Decoder::features(&self.gpt, &self.weights, &tokens);
        let width = features.size()[2];
        // Games are padded on the left.
        let positions = games.iter().zip(&tokens).enumerate();
        let positions = positions.flat_map(|(number, (row, (tokens, _)))| {
            let padding = longest - tokens.len();
            row.positions.iter().map(move |&(index, length)| {
                (index, (number * longest + padding + length - 1) as i64)
            })
        });
        let (indices, places): (Vec<usize>, Vec<i64>) = positions.unzip();
        let places = Tensor::from_slice(&places).to_device(features.device());
        let features = features.reshape([-1, width]).index_select(0, &places);
        let next = self.gpt.next(&self.weights, &features);
        let classes = self.gpt.vocabulary.size();
        let logits = torch::floats(&next.tokens);
        let outcomes = next.outcome;
        let outcomes = outcomes.map(|logits| torch::floats(&logits.softmax(-1, Kind::Float)));
        let answers = indices.into_iter().enumerate().map(|(place, index)| {
            let logits = &logits[place * classes..][..classes];
            let of_moves = batch.moves(index);
            let logits = of_moves.iter().map(|&token| logits[usize::from(token)]);
            let value = outcomes.as_ref().map_or_else(Value::default, |outcomes| {
                // The start token is not a move, so White is to move after an odd number of tokens.
                let is_black = batch
                    .sequence(index)
                    .is_some_and(|(it, _)| it.len() % 2 == 0);
                let [white, draw, black] = [0, 1, 2].map(|class| outcomes[3 * place + class]);
                let q = match is_black {
                    true => black - white,
                    false => white - black,
                };
                Value {
                    q,
                    d: draw,
                    ..Value::default()
                }
            });
            let logits = logits.collect();
            (index, Answer { value, logits })
        });
        answers.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::network::{About, Architecture};
    use shakmaty::{Move, Position};

    fn backend() -> SequenceBackend {
        let config = r#"{"layers": 2, "width": 32, "heads": 2, "feed_forward": 48, "context": 20}"#;
        let gpt = Gpt::new(&serde_json::from_str(config).unwrap(), Device::Cpu).unwrap();
        tch::manual_seed(1);
        let flat = gpt.initial_weights();
        let flat = &flat + Tensor::randn_like(&flat) * 0.1;
        let about = About {
            correction: None,
            name: "random".to_owned(),
            search_value: String::new(),
            training: serde_json::Value::Null,
            licence: "CC0-1.0".to_owned(),
        };
        let network = Network::new(Box::new(gpt), &flat, about);
        SequenceBackend::new(network, Device::Cpu, Kind::Float.into())
    }

    /// Returns the positions of a game, each with its legal moves.
    fn positions(moves: &str, white: u16) -> Vec<(Game, Vec<Move>)> {
        let mut game = Game::default();
        game.set_ratings(Ratings {
            white: Some(white),
            black: None,
        });
        let mut positions = Vec::new();
        for mv in moves.split_whitespace() {
            game.play(game.parse_move(mv).unwrap());
            let legal = game.position().legal_moves().to_vec();
            positions.push((game.clone(), legal));
        }
        positions
    }

    #[test]
    fn positions_are_evaluated_alike_alone_and_together() {
        let backend = backend();
        let mut games = positions("e2e4 e7e5 g1f3 b8c6 f1b5", 1500);
        games.extend(positions("e2e4 e7e5 g1f3 b8c6 f1b5", 2000));
        games.extend(positions("e2e4 c7c5", 1500));
        games.extend(positions("d2d4", 1500));
        let evaluate = |games: &[(Game, Vec<Move>)]| {
            let (mut batch, mut evaluations) = (Batch::default(), Evaluations::default());
            for (game, moves) in games {
                batch
                    .push(game, moves, &backend.properties().encoder)
                    .unwrap();
            }
            backend.evaluate(&batch, &mut evaluations).unwrap();
            (batch, evaluations)
        };
        let (batch, together) = evaluate(&games);
        // `e2e4` is a prefix of two games but is evaluated as part of only one of them.
        assert_eq!(Rows::of(&batch).games.len(), 4);
        let mut values = Vec::new();
        for (index, game) in games.iter().enumerate() {
            let (_, alone) = evaluate(std::slice::from_ref(game));
            let (value, expected) = (together.value(index), alone.value(0));
            assert!((value.q - expected.q).abs() < 1e-5 && (value.d - expected.d).abs() < 1e-5);
            assert!(value.q.abs() + value.d <= 1.0 + 1e-5);
            for (one, other) in together.logits(index).iter().zip(alone.logits(0)) {
                assert!((one - other).abs() < 1e-4, "{one} {other}");
            }
            values.push(value.q);
        }
        // Ratings change the values.
        assert_ne!(values[0], values[5]);
    }
}
