//! The forward pass of Maia-3.

use super::config::{Maia3Config, PIECES};
use super::policy::Translation;
use crate::encode::{BOARDS, PLANES_PER_BOARD};
use crate::model::bitboards;
use std::collections::HashMap;
use tch::{Kind, Tensor};

/// The rating at which the first of the two embeddings is all that counts; at 0
/// it is the second. Ratings beyond are brought back to it.
const HIGHEST_RATING: i64 = 5000;

/// What the norms add to variances: PyTorch's defaults for centred norms and
/// for root mean squares, the latter in f32.
const NORM_EPSILON: f64 = 1e-5;
const RMS_EPSILON: f64 = f32::EPSILON as f64;

/// What evaluates: all of a network but its weights.
#[derive(Debug)]
pub(super) struct Structure {
    config: Maia3Config,
    /// Where a parameter stands among the weights.
    places: HashMap<String, usize>,
    /// u8 0…7.
    shifts: Tensor,
    /// i64 [12 · history]: the words of a row that are planes, in Maia-3's order.
    planes: Tensor,
    translation: Translation,
}

impl Structure {
    pub fn new(config: &Maia3Config) -> Structure {
        let names = config.parameters().into_iter().map(|(name, _)| name);
        // Rows begin with the newest board, Maia-3 with the oldest.
        let planes: Vec<i64> = (0..config.history)
            .rev()
            .flat_map(|age| (0..PIECES).map(move |piece| age * PLANES_PER_BOARD as i64 + piece))
            .collect();
        Structure {
            config: config.clone(),
            places: names.zip(0..).collect(),
            shifts: bitboards::shifts(),
            planes: Tensor::from_slice(&planes),
            translation: Translation::new(),
        }
    }

    /// Its constants, by the names of the buffers that hold them in a file.
    pub fn buffers(&self) -> Vec<(String, Tensor)> {
        [
            ("shifts", &self.shifts),
            ("planes", &self.planes),
            ("policy_gather", &self.translation.gather),
            ("policy_choices", &self.translation.choices),
        ]
        .map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone()))
        .into()
    }

    /// Logits of the policy and of win, draw and loss, from weights in the order
    /// of the configuration's parameters and rows i64 [B, 104 + 2].
    pub fn forward(&self, weights: &[Tensor], rows: &Tensor) -> Vec<Tensor> {
        let squares = self.squares(rows, &weights[0]);
        let ratings = rows.narrow(1, BOARDS as i64, 2);
        self.evaluate(weights, &squares, &ratings, &self.translation.seen(rows))
    }

    /// The same from planes [B, 104, 8, 8], the bitboards of rows bit by bit, and
    /// the ratings [B, 2] of the mover and of the opponent.
    pub fn forward_planes(
        &self,
        weights: &[Tensor],
        planes: &Tensor,
        ratings: &Tensor,
    ) -> Vec<Tensor> {
        let boards = planes.flatten(2, 3);
        let squares = boards.index_select(1, &self.planes).transpose(1, 2);
        let seen = self.translation.seen_in_planes(&boards);
        self.evaluate(weights, &squares, ratings, &seen)
    }

    fn evaluate(
        &self,
        weights: &[Tensor],
        squares: &Tensor,
        ratings: &Tensor,
        seen: &Tensor,
    ) -> Vec<Tensor> {
        let layer = Scope {
            places: &self.places,
            weights,
            path: String::new(),
        };
        let mut x = self.tokens(&layer, squares, ratings);
        for number in 0..self.config.layers {
            x = self.encode(&layer.within(&format!("transformer.layers.{number}.")), &x);
        }
        let x = layer.norm("transformer.norm", &x);
        let policy = self.translation.policy(&self.moves(&layer, &x), seen);
        let board = layer.norm("last_ln", &mean_of_squares(&x));
        let hidden = layer.linear("fc_value_hid", &board).relu();
        // Maia-3's order is loss, draw, win.
        let wdl = layer.linear("fc_value", &hidden).flip([1]);
        vec![policy.to_kind(Kind::Float), wdl.to_kind(Kind::Float)]
    }

    /// Tokens [B, 64, width] from the pieces on the squares [B, 64, 12 · history]
    /// and the players' ratings [B, 2].
    fn tokens(&self, layer: &Scope, squares: &Tensor, ratings: &Tensor) -> Tensor {
        let planes = self.config.planes();
        let weight = layer.get("token_projection.weight");
        let ratings = Tensor::cat(
            &[0, 1].map(|player| rating(layer, &ratings.narrow(1, player, 1))),
            1,
        );
        // The players are the same on every square: they are projected once.
        let players = ratings.linear(
            &weight.narrow(1, planes, 2 * self.config.rating),
            Some(layer.get("token_projection.bias")),
        );
        let squares = squares.linear(&weight.narrow(1, 0, planes), None::<&Tensor>);
        squares + players.unsqueeze(1)
    }

    /// The pieces on each square of each board, oldest first: [B, 64, 12 ·
    /// history] in the type of `like`.
    fn squares(&self, rows: &Tensor, like: &Tensor) -> Tensor {
        let boards = rows.index_select(1, &self.planes);
        bitboards::squares(&boards, &self.shifts, like)
    }

    /// One encoder layer, normalised after each residual.
    fn encode(&self, layer: &Scope, x: &Tensor) -> Tensor {
        let attention = self.attend(&layer.within("self_attn."), x);
        let x = layer.rms_norm("norm1", &(x + attention));
        let hidden = layer.linear("linear1", &x).gelu("none");
        layer.rms_norm("norm2", &(&x + layer.linear("linear2", &hidden)))
    }

    fn attend(&self, layer: &Scope, x: &Tensor) -> Tensor {
        let (heads, width) = (self.config.heads, self.config.width);
        let head_width = width / heads;
        let projected = x
            .linear(layer.get("mha.in_proj_weight"), None::<&Tensor>)
            .view([-1, 64, 3, heads, head_width])
            .permute([2, 0, 3, 1, 4]);
        let [query, key, value] = [0, 1, 2].map(|index| projected.select(0, index));
        let bias = self.biases(layer, x).view([-1, heads, 64, 64]);
        let seen = Tensor::scaled_dot_product_attention(
            &query,
            &key,
            &value,
            Some(bias),
            0.0,
            false,
            None,
            false,
        );
        let seen = seen.transpose(1, 2).reshape([-1, 64, width]);
        seen.linear(layer.get("mha.out_proj.weight"), None::<&Tensor>)
    }

    /// The geometric attention bias of every head, [B · heads, 64, 64].
    fn biases(&self, layer: &Scope, x: &Tensor) -> Tensor {
        let board = match self.config.gab.compress {
            Some(_) => layer.linear("sm1", x).flatten(1, 2),
            None => mean_of_squares(x),
        };
        let summary = layer.linear("sm2", &board).gelu("none");
        let summary = layer.norm("ln1", &summary);
        let heads = layer.linear("sm3", &summary).gelu("none");
        layer
            .norm("ln2", &heads)
            .view([-1, self.config.heads, self.config.gab.generator])
            .linear(layer.root("gab_shared_weight"), None::<&Tensor>)
            .view([-1, 64, 64])
    }

    /// Logits of Maia-3's own moves, [B, 4352].
    fn moves(&self, layer: &Scope, x: &Tensor) -> Tensor {
        let root = (self.config.hidden as f64).sqrt();
        let from = x.linear(layer.get("proj_sq_from.weight"), None::<&Tensor>);
        let to = x.linear(layer.get("proj_sq_to.weight"), None::<&Tensor>);
        let pairs = from.bmm(&to.transpose(1, 2)) / root;
        let last_rank = to.narrow(1, 56, 8);
        let pieces = last_rank.linear(layer.get("promo_bias_proj.weight"), None::<&Tensor>);
        let pieces = (pieces * root).unsqueeze(1);
        let promotions = pairs.narrow(1, 48, 8).narrow(2, 56, 8).unsqueeze(3) + pieces;
        Tensor::cat(&[pairs.flatten(1, 2), promotions.flatten(1, 3)], 1)
    }
}

/// The embedding [B, rating] of ratings [B, 1].
fn rating(layer: &Scope, ratings: &Tensor) -> Tensor {
    // The names are as in the checkpoints: `low` is what a high rating is worth.
    let low = layer.get("elo_embedding_low.weight");
    let high = layer.get("elo_embedding_high.weight");
    let share = ratings.clamp(0, HIGHEST_RATING).to_kind(Kind::Float) / HIGHEST_RATING as f64;
    let share = share.type_as(low);
    &share * low + (1.0 - &share) * high
}

fn mean_of_squares(x: &Tensor) -> Tensor {
    x.mean_dim([1i64].as_slice(), false, None::<Kind>)
}

/// A part of a network: its weights by the ends of their names.
struct Scope<'a> {
    places: &'a HashMap<String, usize>,
    weights: &'a [Tensor],
    path: String,
}

impl<'a> Scope<'a> {
    fn within(&self, part: &str) -> Scope<'a> {
        let path = format!("{}{part}", self.path);
        Scope { path, ..*self }
    }

    fn get(&self, name: &str) -> &'a Tensor {
        self.root(&format!("{}{name}", self.path))
    }

    /// A weight by its whole name.
    fn root(&self, name: &str) -> &'a Tensor {
        &self.weights[self.places[name]]
    }

    fn linear(&self, name: &str, x: &Tensor) -> Tensor {
        let weight = self.get(&format!("{name}.weight"));
        x.linear(weight, Some(self.get(&format!("{name}.bias"))))
    }

    fn norm(&self, name: &str, x: &Tensor) -> Tensor {
        let weight = self.get(&format!("{name}.weight"));
        let bias = self.get(&format!("{name}.bias"));
        x.layer_norm(weight.size(), Some(weight), Some(bias), NORM_EPSILON, true)
    }

    fn rms_norm(&self, name: &str, x: &Tensor) -> Tensor {
        let weight = self.get(&format!("{name}.weight"));
        x.rms_norm(weight.size(), Some(weight), RMS_EPSILON)
    }
}
