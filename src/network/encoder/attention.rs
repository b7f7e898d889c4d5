//! Self-attention over the 64 squares.

use super::position::PositionEncoding;
use crate::network::blocks::attention;
use crate::network::layers::{Linear, Norm};
use crate::network::parameters::{Slot, Weights};
use crate::network::taps::Tap;
use crate::torch::fused::{self, Block as _};
use tch::{Device, Kind, Tensor};

/// A block that adds multi-head attention to its input and normalises the sum.
#[derive(Debug)]
pub(in crate::network) struct Attention {
    pub heads: i64,
    pub head_width: i64,
    /// Scale of the block's output before the residual.
    pub residual_gain: f64,
    pub projection: Projection,
    pub output: Linear,
    pub norm: Norm,
    pub position: PositionEncoding,
}

/// The projection of tokens to queries, keys and values.
#[derive(Debug)]
pub(in crate::network) enum Projection {
    /// One matrix for queries and keys, and another for values.
    QueryKey { query_key: Linear, value: Linear },
    /// Three matrices, for queries, keys and values.
    Separate([Linear; 3]),
    /// One matrix for queries, keys and values.
    Joint(Linear),
}

/// The inputs of attention other than tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::network) struct Board<'a> {
    /// i64 [4096]: the pairs' indices into position tables, from
    /// [`displacements`](super::displacements). Present if the network has such tables.
    pub displacements: Option<&'a Tensor>,
    /// Present if the network reads attacks. They are given as pairs if the block
    /// [`is_fused`](Attention::is_fused).
    pub attacks: Option<&'a AttackLogits>,
}

/// The attack bias of the attention logits, which all layers share.
#[derive(Debug)]
pub(in crate::network) enum AttackLogits {
    /// Biases [B · h, 4096].
    Biases(Tensor),
    /// For fused kernels: bitboards i64 [B, 2, 64] of the squares that each square's piece attacks
    /// and of the squares whose pieces attack it, and each head's two attack weights, [h, 2].
    Pairs { pairs: Tensor, worth: Tensor },
}

impl Projection {
    /// Projects tokens [B, 64, width] to queries, keys and values, [B, h, 64, head width] each.
    fn forward(&self, weights: &Weights, x: &Tensor, heads: i64, head_width: i64) -> [Tensor; 3] {
        let single = |layer: &Linear| {
            let projected = layer.forward(weights, x);
            projected.view([-1, 64, heads, head_width]).transpose(1, 2)
        };
        // Unbinding is the way of splitting them that has the cheapest gradient.
        let joined = |layer: &Linear, count: i64| {
            let projected = layer.forward(weights, x);
            projected
                .view([-1, 64, count, heads, head_width])
                .permute([2, 0, 3, 1, 4])
                .unbind(0)
        };
        match self {
            Projection::QueryKey { query_key, value } => {
                let [query, key] = joined(query_key, 2).try_into().expect("two were joined");
                [query, key, single(value)]
            }
            Projection::Separate(layers) => layers.each_ref().map(single),
            Projection::Joint(layer) => joined(layer, 3).try_into().expect("three were joined"),
        }
    }
}

impl Attention {
    /// Applies the block to tokens [B, 64, width].
    pub fn forward(&self, weights: &Weights, x: &Tensor, board: Board, tap: &Tap) -> Tensor {
        if !tap.is_open() && self.is_fused(weights) {
            return self.forward_fused(weights, x, board.attacks);
        }
        let attacks = board.attacks.map(|attacks| match attacks {
            AttackLogits::Biases(biases) => biases,
            AttackLogits::Pairs { .. } => unreachable!("pairs are for fused blocks"),
        });
        let (heads, head_width) = (self.heads, self.head_width);
        let placed = match &self.position {
            PositionEncoding::Absolute { offset } => x + &weights[*offset],
            _ => x.shallow_clone(),
        };
        let [query, key, value] = self.projection.forward(weights, &placed, heads, head_width);
        let table = |slot: Slot| {
            let displacements = board.displacements.expect("given with position tables");
            self.table(weights, slot, displacements)
        };
        let logits = Logits {
            query: &query,
            key: &key,
            bias: self.bias(
                weights,
                x,
                [&query, &key],
                table,
                board.displacements,
                attacks,
            ),
        };
        if tap.is_open() {
            logits.report(tap);
        }
        let seen = match &self.position {
            PositionEncoding::Shaw { value: slot, .. } => {
                let attention = logits.softmax();
                let placed = contract(&attention, &table(*slot));
                attention.matmul(&value) + placed
            }
            _ => logits.attend(&value),
        };
        let joined = seen.transpose(1, 2).reshape([-1, 64, heads * head_width]);
        let y = self
            .output
            .forward_scaled(weights, &joined, self.residual_gain);
        self.norm.forward(weights, &(x + y))
    }

    /// Returns whether the block uses a fused kernel with these weights.
    pub fn is_fused(&self, weights: &Weights) -> bool {
        let (PositionEncoding::Gab(gab), Projection::QueryKey { value, .. }) =
            (&self.position, &self.projection)
        else {
            return false;
        };
        let value = &weights[value.weight];
        let [wide, hidden] = gab.widths(weights);
        let widths = [value.size()[0], self.head_width, wide, hidden];
        let has_kernels = value.requires_grad() || weights.are_packed();
        gab.is_fusible() && has_kernels && fused::is_available(value, &widths)
    }

    fn forward_fused(
        &self,
        weights: &Weights,
        x: &Tensor,
        attacks: Option<&AttackLogits>,
    ) -> Tensor {
        let (PositionEncoding::Gab(gab), Projection::QueryKey { query_key, value }) =
            (&self.position, &self.projection)
        else {
            unreachable!("only GAB is fused");
        };
        let attacks = attacks.map(|attacks| match attacks {
            AttackLogits::Pairs { pairs, worth } => (pairs, worth),
            AttackLogits::Biases(_) => unreachable!("fused blocks take pairs"),
        });
        let block = fused::Attention {
            heads: self.heads,
            query_key: &weights[query_key.weight],
            value: &weights[value.weight],
            output: self.output.fused(weights),
            gab: gab.fused(weights),
            attacks,
            norm: self.norm.fused(weights, self.residual_gain),
        };
        if !weights.are_packed() {
            return block.forward(x);
        }
        let (weight, bias) = self.output.scaled(weights, self.residual_gain);
        let block = fused::Attention {
            output: fused::Dense {
                weight: &weight,
                bias: bias.as_ref().expect("fused layers have biases"),
            },
            norm: self.norm.fused(weights, 1.0),
            ..block
        };
        let (slot, inputs) = (value.weight, &weights[value.weight].size()[1..]);
        let packed = weights.packed("attention", slot, inputs, |int8| block.pack(int8));
        let packed = packed.expect("packed weights");
        block.infer(x, &packed.weights, packed.int8)
    }

    /// Returns the sum of the position encoding's bias and the attack bias.
    fn bias(
        &self,
        weights: &Weights,
        x: &Tensor,
        [query, key]: [&Tensor; 2],
        table: impl Fn(Slot) -> Tensor,
        displacements: Option<&Tensor>,
        attacks: Option<&Tensor>,
    ) -> Option<Tensor> {
        let attacks_of_heads = || attacks.map(|bias| bias.view([-1, self.heads, 64, 64]));
        let plus_attacks = |bias: Tensor| match attacks_of_heads() {
            Some(attacks) => attacks + bias,
            None => bias,
        };
        match &self.position {
            PositionEncoding::None | PositionEncoding::Absolute { .. } => attacks_of_heads(),
            PositionEncoding::Relative { bias } => {
                let displacements = displacements.expect("given with position tables");
                let of_pairs = weights.made("biases of pairs", *bias, || {
                    let of_pairs = weights[*bias].index_select(0, displacements);
                    of_pairs.view([1, 64, 64, self.heads]).permute([0, 3, 1, 2])
                });
                Some(plus_attacks(of_pairs))
            }
            PositionEncoding::Gab(gab) => {
                let biases = gab.biases(weights, x, attacks);
                Some(biases.view([-1, self.heads, 64, 64]))
            }
            PositionEncoding::Shaw {
                query: q, key: k, ..
            } => {
                let (query_slot, q, k) = (*q, table(*q), table(*k));
                let of_query = contract(query, &k.permute([0, 1, 3, 2]));
                let of_key = contract(key, &q.permute([0, 2, 3, 1])).transpose(2, 3);
                let constant = weights.made("products of tables", query_slot, || {
                    (&q * &k).sum_dim_intlist([-1i64].as_slice(), false, None::<Kind>)
                });
                Some(plus_attacks((of_query + of_key + constant) * scale(query)))
            }
        }
    }

    /// Returns a table of position vectors as [h, i, j, head width] for pairs of squares (i, j).
    fn table(&self, weights: &Weights, slot: Slot, displacements: &Tensor) -> Tensor {
        weights.made("table", slot, || {
            weights[slot]
                .index_select(0, displacements)
                .view([64, 64, self.heads, self.head_width])
                .permute([2, 0, 1, 3])
        })
    }
}

/// The terms from which the attention logits between all squares are computed.
struct Logits<'a> {
    /// [B, h, 64, head width].
    query: &'a Tensor,
    /// [B, h, 64, head width].
    key: &'a Tensor,
    /// The bias that is added to the scaled products, [B or 1, h, 64, 64].
    bias: Option<Tensor>,
}

impl Logits<'_> {
    /// Attends to the values [B, h, 64, head width], and returns a tensor of their shape.
    fn attend(&self, value: &Tensor) -> Tensor {
        let bias = self.bias.as_ref();
        // On the CPU, libtorch's fused kernel has no gradient for biases.
        if bias.is_some_and(|b| b.requires_grad() && b.device() == Device::Cpu) {
            return self.softmax().matmul(value);
        }
        attention(self.query, self.key, value, bias, false)
    }

    /// Passes the scaled products, the bias and the attention weights to the tap.
    fn report(&self, tap: &Tap) {
        let products = self.query.matmul(&self.key.transpose(2, 3)) * scale(self.query);
        tap.give("products", &products);
        if let Some(bias) = &self.bias {
            tap.give("bias", bias);
        }
        tap.give("weights", &self.softmax());
    }

    /// Returns the attention weights, [B, h, 64, 64].
    fn softmax(&self) -> Tensor {
        let (heads, head_width) = (self.query.size()[1], self.query.size()[3]);
        let flat = |x: &Tensor| x.reshape([-1, 64, head_width]);
        let (query, key) = (flat(self.query), flat(self.key).transpose(1, 2));
        let scale = scale(self.query);
        let unflat = |x: Tensor| x.view([-1, heads, 64, 64]);
        let logits = match &self.bias {
            // The bias is the same for all boards.
            Some(bias) if bias.size()[0] == 1 => unflat(query.bmm(&key) * scale) + bias,
            // A single pass over memory multiplies, scales and adds.
            Some(bias) => unflat(bias.reshape([-1, 64, 64]).baddbmm(&query, &key, 1.0, scale)),
            None => unflat(query.bmm(&key) * scale),
        };
        logits.softmax(-1, None::<Kind>)
    }
}

/// Returns the factor that scales the products of queries [B, h, 64, head width] and keys.
fn scale(query: &Tensor) -> f64 {
    1.0 / (query.size()[3] as f64).sqrt()
}

/// Multiplies each square's vectors with the square's own matrix. `x` is [B, h, 64, n], the
/// matrices are [h, 64, n, m], and the result is [B, h, 64, m].
fn contract(x: &Tensor, matrices: &Tensor) -> Tensor {
    x.permute([1, 2, 0, 3])
        .matmul(matrices)
        .permute([2, 0, 1, 3])
}
