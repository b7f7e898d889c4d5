//! The heads with folded weights: the standard policy and all values.

use super::layer::{FoldedLinear, activated, bias};
use super::{PAIRS, Target};
use crate::network::chessformer::Chessformer;
use crate::network::chessformer::heads::{MOVES_LEFT_SCALE, Summary};
use crate::network::layers::{Activation, Linear};
use crate::network::parameters::Weights;
use tch::Tensor;

/// Number of promotion logits, for each origin file, destination file and one of queen, rook and
/// bishop.
const PROMOTIONS: i64 = 8 * 8 * 3;

/// Number of logits of a position.
pub(super) const LOGITS: i64 = PAIRS + PROMOTIONS;

/// Multiple to which the number of promotion offsets is padded, for the matrix units of GPUs.
const MULTIPLE: i64 = 8;

/// Number of outputs of the last layers: win, draw, loss, plies left, and two rewards with their
/// errors.
const VALUES: usize = 8;

/// The heads. Mish follows every layer except the last.
pub(super) struct FoldedHeads {
    width: i64,
    /// Maps tokens [B · 64, width] to the policy's embedding and the square features of all heads.
    features: FoldedLinear,
    /// Maps the policy's embedding to scaled queries, keys, and the offsets of promotions.
    query_key: FoldedLinear,
    /// Maps a board's square features to the summaries of all heads.
    hidden: FoldedLinear,
    /// Maps all summaries to the values.
    values: FoldedLinear,
}

impl FoldedHeads {
    pub fn new(weights: &Weights, network: &Chessformer, target: Target) -> FoldedHeads {
        let heads: [(&Summary, Vec<&Linear>); 4] = [
            (&network.result.summary, vec![&network.result.wdl]),
            (&network.moves_left.summary, vec![&network.moves_left.plies]),
            (
                &network.q.summary,
                vec![&network.q.scalar, &network.q.error],
            ),
            (
                &network.short_term.summary,
                vec![&network.short_term.scalar, &network.short_term.error],
            ),
        ];
        let squares = heads.iter().map(|(summary, _)| &summary.squares);
        let squares: Vec<&Linear> = [&network.policy_embedding]
            .into_iter()
            .chain(squares)
            .collect();
        let hidden: Vec<&Linear> = heads.iter().map(|(summary, _)| &summary.hidden).collect();
        let last: Vec<Vec<&Linear>> = heads.iter().map(|(_, last)| last.clone()).collect();
        FoldedHeads {
            width: network.config.width,
            features: side_by_side(weights, &squares, target),
            query_key: query_key(weights, network, target),
            hidden: of_boards(weights, &squares, &hidden, target),
            values: of_summaries(weights, &hidden, &last, target),
        }
    }

    /// Reads tokens [B · 64, width]. Returns one vector that contains the values [B, VALUES],
    /// followed by the logits at the indices `places`, i64 `[n]`, of the flattened logits [B,
    /// LOGITS].
    pub fn forward(&self, x: &Tensor, places: &Tensor) -> Tensor {
        let (boards, count) = (x.size()[0] / 64, places.size()[0]);
        let values = boards * VALUES as i64;
        let found = Tensor::empty([count + values], (x.kind(), x.device()));
        let features = activated(Activation::Mish, self.features.forward(x));
        let logits = self.logits(&features).view([-1]);
        let _ = logits.index_select_out(&found.narrow(0, values, count), 0, places);
        let hidden = self.hidden.forward(&features.view([boards, -1]));
        let hidden = activated(Activation::Mish, hidden);
        // Values come first in the vector, because matrix multiplications are faster at aligned
        // addresses.
        let values = found.narrow(0, 0, values).view([boards, -1]);
        let FoldedLinear { weight, bias } = &self.values;
        let _ = bias.addmm_out(&values, &hidden, &weight.tr());
        found
    }

    /// Returns the logits of all pairs of squares and of promotions, [B, LOGITS].
    fn logits(&self, features: &Tensor) -> Tensor {
        let boards = features.size()[0] / 64;
        let joint = self.query_key.forward(&features.narrow(1, 0, self.width));
        let joint = joint.view([boards, 64, -1]);
        let part = |start, count| joint.narrow(2, start, count);
        let (query, key) = (part(0, self.width), part(self.width, self.width));
        let logits = Tensor::empty([boards, LOGITS], (features.kind(), features.device()));
        let pairs = logits.narrow(1, 0, PAIRS).view([boards, 64, 64]);
        let _ = query.bmm_out(&pairs, &key.transpose(1, 2));
        let promotions = logits.narrow(1, PAIRS, PROMOTIONS).view([boards, 8, 8, 3]);
        let offsets = part(2 * self.width, 3).narrow(1, 56, 8).unsqueeze(1);
        let last_ranks = pairs.narrow(1, 48, 8).narrow(2, 56, 8).unsqueeze(3);
        let _ = last_ranks.add_out(&promotions, &offsets);
        logits
    }
}

/// Converts raw values [B, VALUES] to the outputs, with one vector each for win, draw and loss, the
/// plies left, the reward, its error, the short-term reward, and the error of the short-term
/// reward.
pub(super) fn finish(values: &[f32]) -> Vec<Vec<f32>> {
    let rows = values.as_chunks::<VALUES>().0;
    let each = |at: usize, finish: fn(f32) -> f32| -> Vec<f32> {
        rows.iter().map(|row| finish(row[at])).collect()
    };
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    let plies = |x: f32| {
        let positive = if x > 20.0 { x } else { x.exp().ln_1p() };
        positive * MOVES_LEFT_SCALE as f32
    };
    vec![
        rows.iter()
            .flat_map(|row| row[..3].iter().copied())
            .collect(),
        each(3, plies),
        each(4, f32::tanh),
        each(5, sigmoid),
        each(6, f32::tanh),
        each(7, sigmoid),
    ]
}

/// Merges layers that have the same input.
fn side_by_side(weights: &Weights, layers: &[&Linear], target: Target) -> FoldedLinear {
    let matrices: Vec<&Tensor> = layers.iter().map(|layer| &weights[layer.weight]).collect();
    let biases: Vec<Tensor> = layers.iter().map(|layer| bias(weights, layer)).collect();
    FoldedLinear::new(&Tensor::cat(&matrices, 0), &Tensor::cat(&biases, 0), target)
}

fn query_key(weights: &Weights, network: &Chessformer, target: Target) -> FoldedLinear {
    let head = &network.policy;
    let scale = 1.0 / (network.config.width as f64).sqrt();
    let (query, key) = (&weights[head.query.weight], &weights[head.key.weight]);
    let promotion = &weights[head.promotion.weight];
    let biases = [&head.query, &head.key].map(|layer| bias(weights, layer));
    let parts = [
        query * scale,
        key.shallow_clone(),
        promotion.mm(key),
        key.narrow(0, 0, MULTIPLE - promotion.size()[0])
            .zeros_like(),
    ];
    let biases = [
        &biases[0] * scale,
        biases[1].shallow_clone(),
        promotion.mv(&biases[1]),
        biases[1]
            .narrow(0, 0, MULTIPLE - promotion.size()[0])
            .zeros_like(),
    ];
    FoldedLinear::new(&Tensor::cat(&parts, 0), &Tensor::cat(&biases, 0), target)
}

/// Merges the `hidden` layers into one layer that reads all features. Each hidden layer reads only
/// the features of one layer of `squares`, in the same order; the first layer of `squares` is the
/// policy's.
fn of_boards(
    weights: &Weights,
    squares: &[&Linear],
    hidden: &[&Linear],
    target: Target,
) -> FoldedLinear {
    let outputs = |layer: &Linear| weights[layer.weight].size()[0];
    let all: i64 = squares.iter().map(|layer| outputs(layer)).sum();
    let mut start = outputs(squares[0]);
    let matrices = hidden.iter().zip(&squares[1..]).map(|(hidden, squares)| {
        let (rows, own) = (outputs(hidden), outputs(squares));
        let matrix = weights[hidden.weight].view([rows, 64, own]);
        let placed = matrix.constant_pad_nd([start, all - start - own]);
        start += own;
        placed.flatten(1, 2)
    });
    let matrix = Tensor::cat(&matrices.collect::<Vec<Tensor>>(), 0);
    let biases: Vec<Tensor> = hidden.iter().map(|layer| bias(weights, layer)).collect();
    FoldedLinear::new(&matrix, &Tensor::cat(&biases, 0), target)
}

/// Merges the heads' `last` layers into one layer that reads all summaries. Each of the merged
/// layers reads only its own head's summary.
fn of_summaries(
    weights: &Weights,
    hidden: &[&Linear],
    last: &[Vec<&Linear>],
    target: Target,
) -> FoldedLinear {
    let widths = hidden.iter().map(|layer| weights[layer.weight].size()[0]);
    let widths: Vec<i64> = widths.collect();
    let all: i64 = widths.iter().sum();
    let (mut matrices, mut biases, mut start) = (Vec::new(), Vec::new(), 0);
    for (layers, own) in last.iter().zip(widths) {
        for layer in layers {
            let padding = [start, all - start - own];
            matrices.push(weights[layer.weight].constant_pad_nd(padding));
            biases.push(bias(weights, layer));
        }
        start += own;
    }
    FoldedLinear::new(&Tensor::cat(&matrices, 0), &Tensor::cat(&biases, 0), target)
}
