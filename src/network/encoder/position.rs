//! The position encoding of attention.

use crate::network::layers::{Activation, Linear, Norm};
use crate::network::parameters::{Slot, Weights};
use crate::torch::fused;
use tch::{Kind, Tensor};

/// Number of displacements between two squares: 15 files times 15 ranks.
pub(in crate::network) const DISPLACEMENTS: i64 = 225;

/// Epsilon of GAB's norms, which Lc0's smolgen fixes.
pub(in crate::network) const GAB_EPSILON: f64 = 1e-3;

/// Returns the displacement of each pair of squares (i, j), row by row, as 64 · 64 indices into
/// tables with 225 entries.
pub(in crate::network) fn displacements() -> Vec<i64> {
    let pairs = (0..64i64).flat_map(|i| (0..64i64).map(move |j| (i, j)));
    pairs
        .map(|(i, j)| (i / 8 - j / 8 + 7) * 15 + (i % 8 - j % 8 + 7))
        .collect()
}

/// Returns the numbers of files and ranks from square j to square i for a displacement's index.
pub(in crate::network) fn steps(displacement: i64) -> (i64, i64) {
    (displacement % 15 - 7, displacement / 15 - 7)
}

/// One layer's position encoding.
#[derive(Debug)]
pub(in crate::network) enum PositionEncoding {
    /// No position encoding: only the tokens encode positions.
    None,
    /// A vector added to each token, [64, width].
    Absolute {
        offset: Slot,
    },
    /// A bias for each displacement and head, [225, h].
    Relative {
        bias: Slot,
    },
    /// Vectors for each displacement, [225, width] (Shaw et al.).
    Shaw {
        query: Slot,
        key: Slot,
        value: Slot,
    },
    Gab(Gab),
}

/// Geometric attention bias: features of the whole board generate biases [h, 64, 64] of the
/// attention logits. If the norms are centred and the activation is SiLU, Lc0's smolgen can express
/// it.
#[derive(Debug)]
pub(in crate::network) struct Gab {
    /// Width of the vector from which each head's biases are generated.
    pub wide: i64,
    pub activation: Activation,
    /// The features that are read per square. If absent, the mean of all squares is read.
    pub squares: Option<Linear>,
    pub summary: Linear,
    pub summary_norm: Norm,
    pub heads_of: Linear,
    pub heads_norm: Norm,
    /// The weights that generate biases, which all layers share, [4096, wide].
    pub generator: Slot,
}

impl Gab {
    /// Returns biases [B · h, 64, 64] generated from tokens [B, 64, width]. If `others` [B · h,
    /// 4096] are given, they are added.
    pub fn biases(&self, weights: &Weights, x: &Tensor, others: Option<&Tensor>) -> Tensor {
        let squares = match &self.squares {
            Some(squares) => squares.forward(weights, x).flatten(1, 2),
            None => x.mean_dim([1i64].as_slice(), false, None::<Kind>),
        };
        let activate = |x: Tensor| self.activation.forward(&x);
        let summary = activate(self.summary.forward(weights, &squares));
        let summary = self.summary_norm.forward(weights, &summary);
        let heads = activate(self.heads_of.forward(weights, &summary));
        let heads = self.heads_norm.forward(weights, &heads);
        let heads = heads.view([-1, self.wide]);
        let generator = &weights[self.generator];
        let biases = match others {
            // A single pass over memory generates the biases and adds them.
            Some(others) => others.addmm(&heads, &generator.tr()),
            None => heads.linear(generator, None::<&Tensor>),
        };
        biases.view([-1, 64, 64])
    }

    /// Returns the width of the vector from which each head's biases are generated, and the width
    /// of the board summary.
    pub fn widths(&self, weights: &Weights) -> [i64; 2] {
        [self.wide, weights[self.summary.weight].size()[0]]
    }

    /// Returns whether a fused block can compute the biases, which requires SiLU and features per
    /// square.
    pub fn is_fusible(&self) -> bool {
        self.activation == Activation::Swish && self.squares.is_some()
    }

    /// Returns the layers for a fused block. The encoding must be [fusible](Gab::is_fusible).
    pub fn fused<'a>(&self, weights: &'a Weights) -> fused::Gab<'a> {
        let squares = self.squares.expect("fused blocks read squares");
        fused::Gab {
            squares: &weights[squares.weight],
            summary: self.summary.fused(weights),
            summary_norm: self.summary_norm.centred(weights),
            heads: self.heads_of.fused(weights),
            heads_norm: self.heads_norm.centred(weights),
            epsilon: GAB_EPSILON,
            generator: &weights[self.generator],
        }
    }
}
