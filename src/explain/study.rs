//! A study of attention over many positions: dot products against position encodings.
//!
//! Attention's logits are a sum of parts: scaled products of queries and keys, what the
//! position encoding adds (GAB, Shaw, a table), and what attacks add. A part's logits of
//! one square that looks are a row of 64 numbers. Rows are compared by Pearson's
//! correlation, as in Table 3 of "Chessformer: A Unified Architecture for Chess
//! Modeling" (ICLR 2026):
//!
//! * between positions: two positions, the same head and the same square that looks;
//! * across queries: one position and head, two squares that look.
//!
//! Both are means over all pairs, then over heads. Squares are those that the network
//! sees: the board from the mover's side.

use super::ExplainError;
use super::evaluator::{Evaluator, floats};
use super::heads::{self, RelationScore};
use crate::chess::{Game, epd};
use crate::network::Network;
use serde::Serialize;
use shakmaty::CastlingMode;
use std::collections::BTreeMap;
use tch::{Kind, Tensor};

/// Positions that are looked into at once: their maps are all in memory.
const BATCH: usize = 8;
/// Rows of logits with a smaller standard deviation are constant but for rounding, and
/// have no correlation.
const FLAT: f64 = 1e-4;

/// The attention of a network over many positions.
#[derive(Clone, Debug, Serialize)]
pub struct Study {
    /// The network's name.
    pub network: String,
    /// Positions that were looked into.
    pub positions: usize,
    /// Means over all heads.
    pub all: AttentionSummary,
    /// Means over the heads of each layer, the first layer first.
    pub layers: Vec<AttentionSummary>,
    /// Every head.
    pub heads: Vec<HeadStudy>,
}

/// One head over many positions.
#[derive(Clone, Debug, Serialize)]
pub struct HeadStudy {
    /// Its layer, from 1.
    pub layer: usize,
    /// Its number in the layer, from 1.
    pub head: usize,
    /// Its attention.
    #[serde(flatten)]
    pub summary: AttentionSummary,
    /// How it looks along each relation of chess.
    pub relations: Vec<RelationScore>,
}

/// Attention of one head, or a mean over heads.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AttentionSummary {
    /// Mean entropy of a square's attention, in nats: 0 is one square, ln 64 = 4.16 all
    /// alike.
    pub entropy: f64,
    /// Scaled products of queries and keys.
    pub products: PartSummary,
    /// What the position encoding adds, without attacks.
    pub position: Option<PartSummary>,
    /// What attacks add, where the network is told of them.
    pub attacks: Option<PartSummary>,
}

/// One part of the logits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PartSummary {
    /// Mean correlation of rows between positions; `None` if all rows are constant.
    pub between_positions: Option<f64>,
    /// Mean correlation of rows of one position; `None` likewise.
    pub across_queries: Option<f64>,
    /// Mean variance of a row: the squares that are looked at tell its part in the
    /// attention.
    pub variance: f64,
}

/// Reads positions: a FEN or an EPD on each line, whose operations are left aside.
/// Empty lines and those that begin with `#` are skipped.
///
/// # Errors
/// [`ExplainError::Line`] for the first line that is no legal position,
/// [`ExplainError::NoPositions`] if there are fewer than two.
pub fn read_positions(text: &str) -> Result<Vec<Game>, ExplainError> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let games: Vec<Game> = lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            let (fen, _) = epd::split(line);
            let game = Game::from_fen(&fen, CastlingMode::Standard);
            game.map_err(|error| ExplainError::Line(number, error.to_string()))
        })
        .collect::<Result<_, _>>()?;
    match games.len() {
        0 | 1 => Err(ExplainError::NoPositions),
        _ => Ok(games),
    }
}

/// Studies a network's attention over these positions, of which there are two at least.
///
/// # Errors
/// [`ExplainError`] if the network has no attention, or is no player's.
pub fn study(network: &Network, games: &[Game]) -> Result<Study, ExplainError> {
    let _guard = tch::no_grad_guard();
    let evaluator = Evaluator::new(network)?;
    let mut tallies: Vec<LayerTally> = Vec::new();
    for games in games.chunks(BATCH) {
        let taps = evaluator.taps(games);
        for layer in 0.. {
            let Some(tensors) = LayerTensors::of(&taps, layer) else {
                break;
            };
            if tallies.len() == layer {
                tallies.push(LayerTally::new(&tensors));
            }
            tallies[layer].add(&tensors);
        }
    }
    if tallies.is_empty() {
        return Err(ExplainError::NoAttention(network.about.name.clone()));
    }
    let layers: Vec<Vec<AttentionSummary>> = tallies.iter().map(LayerTally::heads).collect();
    if layers
        .iter()
        .flatten()
        .any(|head| !head.entropy.is_finite())
    {
        return Err(ExplainError::NotFinite(network.about.name.clone()));
    }
    let heads = heads::score(&evaluator, games)?;
    let heads = heads.into_iter().map(|head| HeadStudy {
        layer: head.layer,
        head: head.head,
        summary: layers[head.layer - 1][head.head - 1],
        relations: head.relations,
    });
    Ok(Study {
        network: network.about.name.clone(),
        positions: games.len(),
        all: AttentionSummary::mean(&layers.concat()),
        layers: layers
            .iter()
            .map(|heads| AttentionSummary::mean(heads))
            .collect(),
        heads: heads.collect(),
    })
}

/// What one layer's attention is made of, each [B, heads, 64, 64].
struct LayerTensors {
    weights: Tensor,
    products: Tensor,
    position: Option<Tensor>,
    attacks: Option<Tensor>,
}

impl LayerTensors {
    fn of(taps: &BTreeMap<String, Tensor>, layer: usize) -> Option<LayerTensors> {
        let part = |name: &str| taps.get(&format!("encoder.{layer}.attention.{name}"));
        let weights = part("weights")?.shallow_clone();
        let attacks = taps.get("attacks").map(|it| it.expand_as(&weights));
        // The bias is the sum of both.
        let position = part("bias").map(|bias| {
            let bias = bias.expand_as(&weights);
            attacks
                .as_ref()
                .map_or(bias.shallow_clone(), |attacks| bias - attacks)
        });
        Some(LayerTensors {
            products: part("products")?.shallow_clone(),
            weights,
            position,
            attacks,
        })
    }
}

/// Sums over positions of one layer.
struct LayerTally {
    positions: i64,
    /// Entropy [heads], summed over positions.
    entropy: Tensor,
    products: RowTally,
    position: Option<RowTally>,
    attacks: Option<RowTally>,
}

impl LayerTally {
    fn new(tensors: &LayerTensors) -> LayerTally {
        let heads = tensors.weights.size()[1];
        let rows = || RowTally::new(heads);
        LayerTally {
            positions: 0,
            entropy: zeros(&[heads]),
            products: rows(),
            position: tensors.position.as_ref().map(|_| rows()),
            attacks: tensors.attacks.as_ref().map(|_| rows()),
        }
    }

    fn add(&mut self, tensors: &LayerTensors) {
        let weights = tensors.weights.to_kind(Kind::Double);
        self.positions += weights.size()[0];
        // What has no weight has no part in the sum.
        let terms = &weights * weights.clamp_min(f64::MIN_POSITIVE).log();
        let entropy = -terms.sum_dim_intlist([0i64, 3].as_slice(), false, None::<Kind>);
        self.entropy += entropy.mean_dim([1i64].as_slice(), false, None::<Kind>);
        self.products.add(&tensors.products);
        for (tally, logits) in [
            (&mut self.position, &tensors.position),
            (&mut self.attacks, &tensors.attacks),
        ] {
            if let (Some(tally), Some(logits)) = (tally, logits) {
                tally.add(logits);
            }
        }
    }

    fn heads(&self) -> Vec<AttentionSummary> {
        let entropy = floats(&self.entropy);
        let part = |tally: &Option<RowTally>| tally.as_ref().map(RowTally::heads);
        let (position, attacks) = (part(&self.position), part(&self.attacks));
        let products = self.products.heads();
        let heads = entropy.iter().zip(&products).enumerate();
        heads
            .map(|(head, (&entropy, &products))| AttentionSummary {
                entropy: f64::from(entropy) / self.positions as f64,
                products,
                position: position.as_ref().map(|heads| heads[head]),
                attacks: attacks.as_ref().map(|heads| heads[head]),
            })
            .collect()
    }
}

/// Sums over positions of one part's rows, from which the mean correlation of all pairs
/// follows: of n rows of unit length that sum to s it is (s · s − n) / (n (n − 1)).
struct RowTally {
    positions: i64,
    /// Rows of unit length, summed over positions [heads, 64, 64].
    rows: Tensor,
    /// How many there are [heads, 64].
    counts: Tensor,
    /// Correlations of the pairs within a position, summed over positions [heads].
    within: Tensor,
    /// How many there are [heads].
    pairs: Tensor,
    /// Variance [heads], summed over positions.
    variance: Tensor,
}

impl RowTally {
    fn new(heads: i64) -> RowTally {
        RowTally {
            positions: 0,
            rows: zeros(&[heads, 64, 64]),
            counts: zeros(&[heads, 64]),
            within: zeros(&[heads]),
            pairs: zeros(&[heads]),
            variance: zeros(&[heads]),
        }
    }

    /// Adds logits [B, heads, 64, 64].
    fn add(&mut self, logits: &Tensor) {
        let sum = |tensor: &Tensor, dim: &[i64]| tensor.sum_dim_intlist(dim, false, None::<Kind>);
        let logits = logits.to_kind(Kind::Double);
        let rows = &logits - logits.mean_dim([3i64].as_slice(), true, None::<Kind>);
        let variance = rows
            .square()
            .mean_dim([3i64].as_slice(), true, None::<Kind>);
        let varies = variance.gt(FLAT * FLAT).to_kind(Kind::Double);
        let length = (&variance * 64.0).clamp_min(FLAT * FLAT).sqrt();
        let rows = rows / length * &varies;
        let (variance, varies) = (variance.squeeze_dim(3), varies.squeeze_dim(3));
        self.positions += logits.size()[0];
        self.rows += sum(&rows, &[0]);
        self.counts += sum(&varies, &[0]);
        let count = sum(&varies, &[2]);
        let total = sum(&rows, &[2]).square();
        self.within += sum(&(sum(&total, &[2]) - &count), &[0]);
        self.pairs += sum(&(&count * (&count - 1.0)), &[0]);
        self.variance += sum(&variance, &[0, 2]) / 64.0;
    }

    fn heads(&self) -> Vec<PartSummary> {
        let by_query = self.rows.square();
        let by_query = by_query.sum_dim_intlist([2i64].as_slice(), false, None::<Kind>);
        let sum = |tensor: Tensor| tensor.sum_dim_intlist([1i64].as_slice(), false, None::<Kind>);
        let between = doubles(&sum(by_query - &self.counts));
        let pairs = doubles(&sum(&self.counts * (&self.counts - 1.0)));
        let (within, within_pairs) = (doubles(&self.within), doubles(&self.pairs));
        let variance = doubles(&self.variance);
        let mean = |sum: f64, count: f64| (count > 0.0).then(|| sum / count);
        (0..variance.len())
            .map(|head| PartSummary {
                between_positions: mean(between[head], pairs[head]),
                across_queries: mean(within[head], within_pairs[head]),
                variance: variance[head] / self.positions as f64,
            })
            .collect()
    }
}

impl AttentionSummary {
    /// The mean over heads; a correlation's over the heads that have it.
    fn mean(heads: &[AttentionSummary]) -> AttentionSummary {
        let part = |of: fn(&AttentionSummary) -> Option<PartSummary>| {
            let parts: Vec<PartSummary> = heads.iter().filter_map(of).collect();
            (!parts.is_empty()).then(|| PartSummary {
                between_positions: mean(parts.iter().filter_map(|it| it.between_positions)),
                across_queries: mean(parts.iter().filter_map(|it| it.across_queries)),
                variance: mean(parts.iter().map(|it| it.variance)).unwrap_or_default(),
            })
        };
        AttentionSummary {
            entropy: mean(heads.iter().map(|it| it.entropy)).unwrap_or_default(),
            products: part(|it| Some(it.products)).expect("a head"),
            position: part(|it| it.position),
            attacks: part(|it| it.attacks),
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn zeros(shape: &[i64]) -> Tensor {
    Tensor::zeros(shape, (Kind::Double, tch::Device::Cpu))
}

fn doubles(tensor: &Tensor) -> Vec<f64> {
    let flat = tensor.contiguous().view(-1);
    flat.try_into().expect("f64 on the CPU")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pearson's correlation by its definition.
    fn correlation(one: &[f64], other: &[f64]) -> f64 {
        let mean = |row: &[f64]| row.iter().sum::<f64>() / row.len() as f64;
        let (a, b) = (mean(one), mean(other));
        let product = |x: &[f64], y: &[f64], a: f64, b: f64| -> f64 {
            x.iter().zip(y).map(|(x, y)| (x - a) * (y - b)).sum()
        };
        product(one, other, a, b) / (product(one, one, a, a) * product(other, other, b, b)).sqrt()
    }

    #[test]
    fn correlations_are_means_over_all_pairs() {
        const COUNT: usize = 5;
        tch::manual_seed(7);
        let logits = Tensor::randn([COUNT as i64, 1, 64, 64], (Kind::Double, tch::Device::Cpu));
        // Something in common between positions, and a square that looks nowhere.
        let logits = &logits + logits.get(0).unsqueeze(0);
        let _ = logits.select(2, 9).fill_(0.25);
        let mut tally = RowTally::new(1);
        tally.add(&logits.narrow(0, 0, 2));
        tally.add(&logits.narrow(0, 2, 3));
        let found = tally.heads()[0];
        let values = doubles(&logits);
        let row = |position: usize, query: usize| &values[64 * (64 * position + query)..][..64];
        let looking = || (0..64usize).filter(|&query| query != 9);
        let (mut between, mut across) = (Vec::new(), Vec::new());
        for one in 0..COUNT {
            for query in looking() {
                let others = (0..one).map(|other| correlation(row(one, query), row(other, query)));
                between.extend(others);
                let others = looking().filter(|&other| other < query);
                across.extend(others.map(|other| correlation(row(one, query), row(one, other))));
            }
        }
        for (found, expected) in [
            (found.between_positions, between),
            (found.across_queries, across),
        ] {
            let expected = mean(expected.into_iter()).unwrap();
            assert!(
                (found.unwrap() - expected).abs() < 1e-9,
                "{found:?} {expected}"
            );
        }
        let variances = (0..COUNT).flat_map(|position| (0..64).map(move |query| (position, query)));
        let variances = variances.map(|(position, query)| {
            let row = row(position, query);
            let middle = row.iter().sum::<f64>() / 64.0;
            row.iter()
                .map(|value| (value - middle).powi(2))
                .sum::<f64>()
                / 64.0
        });
        assert!((found.variance - mean(variances).unwrap()).abs() < 1e-9);
    }

    #[test]
    fn rows_that_do_not_vary_have_no_correlation() {
        let mut tally = RowTally::new(2);
        tally.add(&Tensor::ones(
            [3, 2, 64, 64],
            (Kind::Float, tch::Device::Cpu),
        ));
        let found = tally.heads();
        let nothing = PartSummary {
            between_positions: None,
            across_queries: None,
            variance: 0.0,
        };
        assert_eq!(found, [nothing, nothing]);
    }

    #[test]
    fn positions_are_fens_and_epds() {
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -";
        let text = format!("# two\n{start} bm e4; id \"x\";\n\n{start} 0 1\r\n");
        assert_eq!(read_positions(&text).unwrap().len(), 2);
        let error = read_positions(&format!("{start}\nnonsense")).unwrap_err();
        assert!(error.to_string().starts_with("line 2:"), "{error}");
        let error = read_positions(start).unwrap_err();
        assert!(matches!(error, ExplainError::NoPositions));
    }
}
