//! Policies, values, and the plies to the end of the game.

use super::Pass;
use crate::encode::{POLICY_SIZE, from_square_to_square};
use crate::interop::lc0::config::{PolicyHead, PolicyHeadConfig, ValueHead};
use shakmaty::Role;
use tch::{Kind, Tensor};

/// The logit of a draw where a value tells none: no probability is left of it.
const NO_DRAW: f64 = -1e4;

/// Channels of convolutional policies: 56 for queens (eight directions, clockwise
/// from the front, of seven distances), 8 for knights (likewise), 9 for
/// promotions other than to knights (to the left, straight, to the right; each
/// to rook, bishop and queen).
fn channel(from: usize, to: usize, promotion: Option<Role>) -> usize {
    const DIRECTIONS: [(i32, i32); 8] = [
        (0, 1),
        (1, 1),
        (1, 0),
        (1, -1),
        (0, -1),
        (-1, -1),
        (-1, 0),
        (-1, 1),
    ];
    const KNIGHT: [(i32, i32); 8] = [
        (1, 2),
        (2, 1),
        (2, -1),
        (1, -2),
        (-1, -2),
        (-2, -1),
        (-2, 1),
        (-1, 2),
    ];
    let files = to as i32 % 8 - from as i32 % 8;
    let ranks = to as i32 / 8 - from as i32 / 8;
    let piece = match promotion {
        Some(Role::Rook) => Some(0),
        Some(Role::Bishop) => Some(1),
        Some(_) => Some(2),
        None => None,
    };
    if let Some(piece) = piece {
        return 64 + 3 * (files + 1) as usize + piece;
    }
    if let Some(knight) = KNIGHT.iter().position(|&step| step == (files, ranks)) {
        return 56 + knight;
    }
    let step = (files.signum(), ranks.signum());
    let direction = DIRECTIONS.iter().position(|&other| other == step);
    let distance = files.abs().max(ranks.abs()) as usize;
    7 * direction.expect("a queen's move") + distance - 1
}

/// Where each of the 1858 policy entries stands among the logits
/// [64, channels] of a convolutional policy: its channel on the square a piece
/// leaves.
pub(super) fn convolutional_gather(channels: i64) -> Vec<i64> {
    (0..POLICY_SIZE)
        .filter_map(from_square_to_square)
        .map(|(from, to, promotion)| from as i64 * channels + channel(from, to, promotion) as i64)
        .collect()
}

impl Pass<'_> {
    /// Logits [B, 1858] of one of the policies.
    pub(super) fn policy(&self, head: PolicyHead, x: &Tensor) -> Tensor {
        let path = format!("policy.{}", head.name());
        let at = |name: &str| format!("{path}.{name}");
        let activation = self.config.activation;
        let logits = match &self.config.policy.heads[&head] {
            PolicyHeadConfig::Classical { .. } => {
                let squares = activation.forward(&self.dense(&at("squares"), x));
                return self.dense(&at("moves"), &channels_first(&squares));
            }
            PolicyHeadConfig::Convolutional { .. } => {
                let hidden = activation.forward(&self.convolution(&at("conv1"), x));
                self.convolution(&at("conv2"), &hidden).flatten(1, 2)
            }
            PolicyHeadConfig::Attention {
                embedding, encoder, ..
            } => {
                let shared = "policy.embedding".to_owned();
                let embedding = embedding.map_or(shared, |_| at("embedding"));
                let (activation, _) = self.config.policy_activations();
                let mut moves = activation.forward(&self.dense(&embedding, x));
                if let Some(encoder) = encoder {
                    moves = self.policy_encoder(&format!("{path}."), encoder, moves);
                }
                self.pairs_and_promotions(&path, &moves)
            }
        };
        let gather = self
            .constants
            .policy
            .as_ref()
            .expect("made for such policies");
        logits.index_select(1, gather)
    }

    /// Logits of the 64 · 64 pairs of squares, then of 8 · 8 · 3 promotions.
    fn pairs_and_promotions(&self, path: &str, moves: &Tensor) -> Tensor {
        let query = self.dense(&format!("{path}.query"), moves);
        let key = self.dense(&format!("{path}.key"), moves);
        let scale = 1.0 / (key.size()[2] as f64).sqrt();
        let pairs = query.bmm(&key.transpose(1, 2)) * scale;
        let promotion = self.weight(&format!("{path}.promotion.weight"));
        let offsets = key.narrow(1, 56, 8).linear(promotion, None::<&Tensor>);
        // Queen, rook and bishop, each on top of what the knight has.
        let offsets = (offsets.narrow(2, 0, 3) + offsets.narrow(2, 3, 1)).unsqueeze(1);
        let promotions = pairs.narrow(1, 48, 8).narrow(2, 56, 8).unsqueeze(3) + offsets;
        Tensor::cat(&[pairs.flatten(1, 2), promotions.flatten(1, 3)], 1)
    }

    /// Logits [B, 3] of win, draw and loss; of a value without draws such that
    /// W − L is that value.
    pub(super) fn wdl(&self, head: ValueHead, x: &Tensor) -> Tensor {
        let output = self.value(head, x);
        if self.config.value[&head].wdl {
            return output;
        }
        // tanh y = (e^y − e^−y) / (e^y + e^−y).
        Tensor::cat(&[&output, &(output.zeros_like() + NO_DRAW), &-&output], 1)
    }

    /// W − L of one of the values, `[B]`.
    pub(super) fn expectation(&self, head: ValueHead, x: &Tensor) -> Tensor {
        let output = self.value(head, x);
        if !self.config.value[&head].wdl {
            return output.squeeze_dim(1).tanh();
        }
        let wdl = output.softmax(-1, None::<Kind>);
        wdl.select(1, 0) - wdl.select(1, 2)
    }

    /// The squared error to expect of one of the values, `[B]`.
    pub(super) fn expected_error(&self, head: ValueHead, x: &Tensor) -> Tensor {
        let path = format!("value.{}", head.name());
        let hidden = self.summary(&path, x);
        self.dense(&format!("{path}.error"), &hidden)
            .squeeze_dim(1)
            .sigmoid()
    }

    fn value(&self, head: ValueHead, x: &Tensor) -> Tensor {
        let path = format!("value.{}", head.name());
        self.dense(&format!("{path}.output"), &self.summary(&path, x))
    }

    /// Plies to the end of the game, `[B]`.
    pub(super) fn moves_left(&self, x: &Tensor) -> Tensor {
        let hidden = self.summary("moves_left", x);
        self.dense("moves_left.output", &hidden)
            .squeeze_dim(1)
            .relu()
    }

    /// One vector for the whole board, made for one head.
    fn summary(&self, path: &str, x: &Tensor) -> Tensor {
        let activation = self.config.activation;
        let squares = activation.forward(&self.dense(&format!("{path}.squares"), x));
        let flat = match self.config.attention {
            Some(_) => squares.flatten(1, 2),
            None => channels_first(&squares),
        };
        activation.forward(&self.dense(&format!("{path}.hidden"), &flat))
    }
}

/// [B, 64, channels] channel by channel, as dense layers after convolutions
/// expect it.
fn channels_first(x: &Tensor) -> Tensor {
    x.transpose(1, 2).flatten(1, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_entry_has_its_own_channel_and_square() {
        let gather = convolutional_gather(80);
        assert_eq!(gather.len(), POLICY_SIZE);
        let mut distinct = gather.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), POLICY_SIZE);
        assert!(gather.iter().all(|place| place % 80 < 73));
        // a1a2, e1h1, a7a8, a7a8q, h7h8b.
        assert_eq!(gather[7], 0);
        assert_eq!(gather[103], 4 * 80 + 16);
        assert_eq!(gather[1401], 48 * 80);
        assert_eq!(gather[1792], 48 * 80 + 69);
        assert_eq!(gather[1857], 55 * 80 + 68);
    }
}
