//! Self-attention over the 64 squares.

use super::attacks::AttackLogits;
use super::config::ModelConfig;
use super::layers::{Linear, Norm};
use super::parameters::{Builder, Dense, Slot, Weights};
use super::position::PositionEncoding;
use super::size::Part;
use crate::nn::torch::fused;
use tch::{Device, Kind, Tensor};

/// A block that adds multi-head attention to its input and normalises.
#[derive(Debug)]
pub(super) struct Attention {
    heads: i64,
    head_width: i64,
    residual_gain: f64,
    query_key: Linear,
    value: Linear,
    output: Linear,
    norm: Norm,
    position: PositionEncoding,
}

impl Attention {
    /// `gains` are DeepNorm's: the scale of the block's output, and the scale at
    /// which values and output projection start. `layer` and `generator` as in
    /// [`PositionEncoding::build`].
    pub fn build(
        builder: &mut Builder,
        config: &ModelConfig,
        (residual_gain, initial_gain): (f64, f64),
        layer: i64,
        generator: Option<Slot>,
    ) -> Attention {
        let width = config.width;
        let square = Dense::per_token(width, width);
        // Xavier's deviation is meant for each projection by itself: the joint
        // matrix is taller, so its deviation is raised to that of a square one.
        let joint = Dense::per_token(width, 2 * width).with_gain((3.0f64 / 2.0).sqrt());
        builder.count_macs(2 * 64 * 64 * width);
        Attention {
            heads: config.heads,
            head_width: config.head_width(),
            residual_gain,
            query_key: builder.linear("query_key", joint.without_bias(), Part::Main),
            value: builder.linear(
                "value",
                square.without_bias().with_gain(initial_gain),
                Part::Main,
            ),
            output: builder.linear("output", square.with_gain(initial_gain), Part::Main),
            norm: builder.body_norm("norm", config),
            position: PositionEncoding::build(builder, config, layer, generator),
        }
    }

    /// Tokens [B, 64, width] to tokens; `displacements` are the pairs' indices
    /// into position tables; `attacks` are there where the network is told of
    /// them, as pairs if the block [`is_fused`](Attention::is_fused).
    pub fn forward(
        &self,
        weights: &Weights,
        x: &Tensor,
        displacements: &Tensor,
        attacks: Option<&AttackLogits>,
    ) -> Tensor {
        if self.is_fused(weights) {
            return self.forward_fused(weights, x, attacks);
        }
        let attacks = attacks.map(|attacks| match attacks {
            AttackLogits::Biases(biases) => biases,
            AttackLogits::Pairs { .. } => unreachable!("pairs are for fused blocks"),
        });
        let (heads, head_width) = (self.heads, self.head_width);
        let placed = match &self.position {
            PositionEncoding::Absolute { offset } => x + &weights[*offset],
            _ => x.shallow_clone(),
        };
        // Unbinding has the cheapest gradient of all ways to part them.
        let query_key = self
            .query_key
            .forward(weights, &placed)
            .view([-1, 64, 2, heads, head_width])
            .permute([2, 0, 3, 1, 4])
            .unbind(0);
        let [query, key] = query_key.try_into().expect("two were joined");
        let value = self
            .value
            .forward(weights, &placed)
            .view([-1, 64, heads, head_width])
            .transpose(1, 2);
        let logits = Logits {
            query: &query,
            key: &key,
            bias: self.bias(weights, x, [&query, &key], displacements, attacks),
        };
        let seen = match &self.position {
            PositionEncoding::Shaw { value: slot, .. } => {
                let attention = logits.softmax();
                let placed = contract(&attention, &self.table(weights, *slot, displacements));
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

    /// Whether these weights go through a fused kernel.
    pub fn is_fused(&self, weights: &Weights) -> bool {
        let PositionEncoding::Gab(gab) = &self.position else {
            return false;
        };
        let value = &weights[self.value.weight];
        let [wide, hidden] = gab.widths(weights);
        let widths = [value.size()[0], self.head_width, wide, hidden];
        value.requires_grad() && fused::is_available(value, &widths)
    }

    fn forward_fused(
        &self,
        weights: &Weights,
        x: &Tensor,
        attacks: Option<&AttackLogits>,
    ) -> Tensor {
        let PositionEncoding::Gab(gab) = &self.position else {
            unreachable!("only GAB is fused");
        };
        let attacks = attacks.map(|attacks| match attacks {
            AttackLogits::Pairs { pairs, worth } => (pairs, worth),
            AttackLogits::Biases(_) => unreachable!("fused blocks take pairs"),
        });
        let block = fused::Attention {
            heads: self.heads,
            query_key: &weights[self.query_key.weight],
            value: &weights[self.value.weight],
            output: self.output.fused(weights),
            gab: gab.fused(weights),
            attacks,
            norm: self.norm.fused(weights, self.residual_gain),
        };
        block.forward(x)
    }

    /// What the position encoding and the attacks add to the logits.
    fn bias(
        &self,
        weights: &Weights,
        x: &Tensor,
        [query, key]: [&Tensor; 2],
        displacements: &Tensor,
        attacks: Option<&Tensor>,
    ) -> Option<Tensor> {
        let attacks_of_heads = || attacks.map(|bias| bias.view([-1, self.heads, 64, 64]));
        let plus_attacks = |bias: Tensor| match attacks_of_heads() {
            Some(attacks) => attacks + bias,
            None => bias,
        };
        match &self.position {
            PositionEncoding::Absolute { .. } => attacks_of_heads(),
            PositionEncoding::Relative { bias } => {
                let table = weights[*bias].index_select(0, displacements);
                let of_pairs = table.view([1, 64, 64, self.heads]).permute([0, 3, 1, 2]);
                Some(plus_attacks(of_pairs))
            }
            PositionEncoding::Gab(gab) => {
                let biases = gab.biases(weights, x, attacks);
                Some(biases.view([-1, self.heads, 64, 64]))
            }
            PositionEncoding::Shaw {
                query: q, key: k, ..
            } => {
                let (q, k) = (
                    self.table(weights, *q, displacements),
                    self.table(weights, *k, displacements),
                );
                let of_query = contract(query, &k.permute([0, 1, 3, 2]));
                let of_key = contract(key, &q.permute([0, 2, 3, 1])).transpose(2, 3);
                let constant = (&q * &k).sum_dim_intlist([-1i64].as_slice(), false, None::<Kind>);
                Some(plus_attacks((of_query + of_key + constant) * scale(query)))
            }
        }
    }

    /// A table of position vectors as [h, 64 (i), 64 (j), head width].
    fn table(&self, weights: &Weights, slot: Slot, displacements: &Tensor) -> Tensor {
        weights[slot]
            .index_select(0, displacements)
            .view([64, 64, self.heads, self.head_width])
            .permute([2, 0, 1, 3])
    }
}

/// How much each square wants to see of every other, before the softmax.
struct Logits<'a> {
    /// [B, h, 64, head width].
    query: &'a Tensor,
    /// The same.
    key: &'a Tensor,
    /// Added to the products, [B or 1, h, 64, 64].
    bias: Option<Tensor>,
}

impl Logits<'_> {
    /// What each square sees of the values [B, h, 64, head width], in their shape.
    fn attend(&self, value: &Tensor) -> Tensor {
        let bias = self.bias.as_ref();
        // On a processor, libtorch's fused kernel has no gradient of biases.
        if bias.is_some_and(|b| b.requires_grad() && b.device() == Device::Cpu) {
            return self.softmax().matmul(value);
        }
        Tensor::scaled_dot_product_attention(
            self.query, self.key, value, bias, 0.0, false, None, false,
        )
    }

    /// The weights of the squares, [B, h, 64, 64].
    fn softmax(&self) -> Tensor {
        let (heads, head_width) = (self.query.size()[1], self.query.size()[3]);
        let flat = |x: &Tensor| x.reshape([-1, 64, head_width]);
        let (query, key) = (flat(self.query), flat(self.key).transpose(1, 2));
        let scale = scale(self.query);
        let unflat = |x: Tensor| x.view([-1, heads, 64, 64]);
        let logits = match &self.bias {
            // The same for all boards.
            Some(bias) if bias.size()[0] == 1 => unflat(query.bmm(&key) * scale) + bias,
            // One pass over the memory adds, scales and multiplies.
            Some(bias) => unflat(bias.reshape([-1, 64, 64]).baddbmm(&query, &key, 1.0, scale)),
            None => unflat(query.bmm(&key) * scale),
        };
        logits.softmax(-1, None::<Kind>)
    }
}

/// What the products of queries [B, h, 64, head width] with keys are scaled by.
fn scale(query: &Tensor) -> f64 {
    1.0 / (query.size()[3] as f64).sqrt()
}

/// Multiplies each square's vectors by that square's own matrix: x [B, h, 64, n]
/// and matrices [h, 64, n, m] give [B, h, 64, m].
fn contract(x: &Tensor, matrices: &Tensor) -> Tensor {
    x.permute([1, 2, 0, 3])
        .matmul(matrices)
        .permute([2, 0, 1, 3])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::parameters::initialise;
    use crate::model::position::displacements;
    use crate::model::{ModelConfig, PositionConfig};

    const WIDTH: usize = 6;
    const HEADS: usize = 2;
    const HEAD_WIDTH: usize = WIDTH / HEADS;
    const GAIN: f64 = 0.7;

    /// Equations 6 and 7, one number at a time.
    fn by_hand(parameter: impl Fn(&str) -> Vec<f64>, x: &[f64]) -> Vec<f64> {
        let (query_key, value) = (parameter("query_key.weight"), parameter("value.weight"));
        let [q, k, v] = ["query", "key", "value"].map(|t| parameter(&format!("position.{t}")));
        let project = |weight: &[f64], row: usize, square: usize| -> f64 {
            (0..WIDTH)
                .map(|c| weight[row * WIDTH + c] * x[square * WIDTH + c])
                .sum()
        };
        // The displacement from j to i: fifteen ranks of fifteen files.
        let pair = |i: usize, j: usize| ((i / 8 + 7 - j / 8) * 15 + i % 8 + 7 - j % 8) * WIDTH;
        let mut seen = vec![0.0; 64 * WIDTH];
        for head in 0..HEADS {
            let features = head * HEAD_WIDTH..(head + 1) * HEAD_WIDTH;
            for i in 0..64 {
                let logit = |j: usize| -> f64 {
                    let product = |f: usize| {
                        (project(&query_key, f, i) + q[pair(i, j) + f])
                            * (project(&query_key, WIDTH + f, j) + k[pair(i, j) + f])
                    };
                    features.clone().map(product).sum::<f64>() / (HEAD_WIDTH as f64).sqrt()
                };
                let weights: Vec<f64> = (0..64).map(|j| logit(j).exp()).collect();
                let total: f64 = weights.iter().sum();
                for f in features.clone() {
                    seen[i * WIDTH + f] = (0..64)
                        .map(|j| weights[j] / total * (project(&value, f, j) + v[pair(i, j) + f]))
                        .sum();
                }
            }
        }
        let (output, bias) = (parameter("output.weight"), parameter("output.bias"));
        let norm = parameter("norm.weight");
        let mut result = vec![0.0; 64 * WIDTH];
        for i in 0..64 {
            let sum = |row: usize| {
                let seen = (0..WIDTH).map(|c| output[row * WIDTH + c] * seen[i * WIDTH + c]);
                x[i * WIDTH + row] + GAIN * (seen.sum::<f64>() + bias[row])
            };
            let sums: Vec<f64> = (0..WIDTH).map(sum).collect();
            let square = sums.iter().map(|sum| sum * sum).sum::<f64>() / WIDTH as f64;
            for f in 0..WIDTH {
                result[i * WIDTH + f] = sums[f] / (square + 1e-6).sqrt() * norm[f];
            }
        }
        result
    }

    #[test]
    fn shaw_is_equations_6_and_7_with_every_product() {
        let mut config = ModelConfig::preset("cf-6m-shaw").unwrap();
        (config.width, config.heads) = (WIDTH as i64, HEADS as i64);
        assert_eq!(config.position, PositionConfig::Shaw);
        let mut builder = Builder::default();
        let attention = builder.scope("a", |b| Attention::build(b, &config, (GAIN, 1.0), 0, None));
        let (parameters, _) = builder.finish();
        tch::manual_seed(6);
        let flat = initialise(&parameters);
        // Position vectors as large as everything else, so that none is missed.
        let flat = &flat + flat.randn_like() * 0.5;
        let weights = Weights::from_flat(&flat, &parameters);
        let x = Tensor::randn([2, 64, WIDTH as i64], (Kind::Float, Device::Cpu));
        let pairs = Tensor::from_slice(&displacements());
        let found = attention.forward(&weights, &x, &pairs, None);
        let doubles = |tensor: &Tensor| -> Vec<f64> {
            Vec::try_from(tensor.to_kind(Kind::Double).flatten(0, -1)).unwrap()
        };
        let parameter = |name: &str| {
            let name = format!("a.{name}");
            let place = parameters
                .iter()
                .position(|parameter| parameter.name == name);
            doubles(&weights.tensors()[place.unwrap()])
        };
        for position in 0..2 {
            let expected = by_hand(parameter, &doubles(&x.get(position)));
            for (found, expected) in doubles(&found.get(position)).into_iter().zip(expected) {
                assert!((found - expected).abs() < 1e-4, "{found}, not {expected}");
            }
        }
    }
}
