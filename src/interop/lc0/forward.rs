//! The forward pass, over rows as [`crate::encode::Input`] lays them out.

mod attention;
mod heads;
mod planes;
mod tower;

use super::choice::HeadChoice;
use super::config::{Lc0Config, PolicyHead, PolicyHeadConfig, SquareEmbedding, ValueHead};
use crate::encode::{POLICY_SIZE, from_square_to_square};
use crate::model::policy_gather;
pub(in crate::interop) use planes::{READ, planes};
use std::collections::BTreeMap;
use tch::{Kind, Tensor};

/// Tensors that the forward pass reads besides the parameters.
#[derive(Debug)]
pub(super) struct Constants {
    /// u8 0…7.
    shifts: Tensor,
    /// i64 [1858]: where each policy entry stands among the logits of a policy
    /// by convolution or by attention.
    policy: Option<Tensor>,
    /// f32 [64, 64]: for each square, which others a queen or a knight reaches.
    reach: Option<Tensor>,
}

impl Constants {
    pub fn of(config: &Lc0Config) -> Constants {
        let shifts: Vec<u8> = (0..8).collect();
        let policy = match config.policy.heads.values().next() {
            Some(PolicyHeadConfig::Attention { .. }) => Some(policy_gather()),
            Some(&PolicyHeadConfig::Convolutional { channels }) => {
                Some(heads::convolutional_gather(channels))
            }
            _ => None,
        };
        let has_map = config
            .attention
            .is_some_and(|body| body.embedding == SquareEmbedding::Map);
        Constants {
            shifts: Tensor::from_slice(&shifts),
            policy: policy.map(|policy| Tensor::from_slice(&policy)),
            reach: has_map.then(reach),
        }
    }

    /// The tensors by the names that they have in a TorchScript file.
    pub fn named(&self) -> Vec<(String, Tensor)> {
        let all = [
            ("shifts", Some(&self.shifts)),
            ("policy_gather", self.policy.as_ref()),
            ("reach", self.reach.as_ref()),
        ];
        let present = all
            .into_iter()
            .filter_map(|(name, tensor)| Some((name, tensor?)));
        present
            .map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone()))
            .collect()
    }
}

/// Lc0's position encoding: −1 on the square itself, 1 where a queen or a
/// knight reaches, 0 elsewhere. The pairs are those of the policy.
fn reach() -> Tensor {
    let mut values = [[0f32; 64]; 64];
    for (from, to, _) in (0..POLICY_SIZE).filter_map(from_square_to_square) {
        values[from][to] = 1.0;
    }
    for (square, row) in values.iter_mut().enumerate() {
        row[square] = -1.0;
    }
    Tensor::from_slice(values.as_flattened()).view([64, 64])
}

/// One evaluation: what a network is, and the tensors that it is computed with.
pub(super) struct Pass<'a> {
    pub config: &'a Lc0Config,
    /// Places of the parameters.
    pub places: &'a BTreeMap<String, usize>,
    pub weights: &'a [Tensor],
    pub constants: &'a Constants,
}

impl Pass<'_> {
    /// The outputs that [`HeadChoice::outputs`] names, from rows i64
    /// [B, 104 + 7].
    pub fn forward(&self, rows: &Tensor, choice: &HeadChoice) -> Vec<Tensor> {
        let planes = planes(
            rows,
            &self.constants.shifts,
            self.config.input_format,
            &self.weights[0],
        );
        self.forward_planes(planes, choice)
    }

    /// The same from planes [B, 64, 112].
    pub fn forward_planes(&self, planes: Tensor, choice: &HeadChoice) -> Vec<Tensor> {
        let mut x = planes;
        if let Some(tower) = &self.config.tower {
            x = self.tower(tower, &x);
        }
        if let Some(body) = &self.config.attention {
            x = self.attention_body(body, &x);
        }
        let names = choice.outputs(self.config);
        names
            .iter()
            .map(|name| self.output(name, choice, &x))
            .collect()
    }

    fn output(&self, name: &str, choice: &HeadChoice, x: &Tensor) -> Tensor {
        let output = match name {
            "policy" => self.policy(choice.policy, x),
            "policy_optimistic" => self.policy(PolicyHead::Optimistic, x),
            "wdl" => self.wdl(choice.value, x),
            "q" if !self.config.value.contains_key(&ValueHead::Q) => {
                self.expectation(ValueHead::Winner, x)
            }
            "q" => self.expectation(ValueHead::Q, x),
            "q_error" => self.expected_error(ValueHead::Q, x),
            "st" => self.expectation(ValueHead::St, x),
            "st_error" => self.expected_error(ValueHead::St, x),
            _ => self.moves_left(x),
        };
        output.to_kind(Kind::Float)
    }

    fn weight(&self, name: &str) -> &Tensor {
        &self.weights[self.places[name]]
    }

    /// A dense layer over the last dimension.
    fn dense(&self, name: &str, x: &Tensor) -> Tensor {
        let bias = self.weight(&format!("{name}.bias"));
        x.linear(self.weight(&format!("{name}.weight")), Some(bias))
    }

    /// The same times `gain`.
    fn dense_scaled(&self, name: &str, x: &Tensor, gain: f64) -> Tensor {
        let weight = self.weight(&format!("{name}.weight")) * gain;
        let bias = self.weight(&format!("{name}.bias")) * gain;
        x.linear(&weight, Some(&bias))
    }

    /// A norm over the last dimension.
    fn norm(&self, name: &str, x: &Tensor, epsilon: f64) -> Tensor {
        let weight = self.weight(&format!("{name}.weight"));
        let bias = self.weight(&format!("{name}.bias"));
        x.layer_norm(weight.size(), Some(weight), Some(bias), epsilon, true)
    }
}
