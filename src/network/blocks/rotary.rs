//! Rotary position embeddings (Su et al. 2021): pairs of features rotate by angles proportional
//! to the position, so that the dot product of two tokens depends on their distance.

use crate::torch::fused;
use tch::{Device, Kind, Tensor};

/// Base of the rotation rates, as in the paper: pair i turns by `BASE`^(−2i / head width) radians
/// per position.
const BASE: f64 = 10_000.0;

/// The rotation rate of each pair of features, f32 [head width / 2].
#[derive(Debug)]
pub(in crate::network) struct Rotary(pub Tensor);

/// The rotations at given positions: cosines and sines [B, 1, T, head width / 2].
#[derive(Debug)]
pub(in crate::network) struct Rotations {
    cos: Tensor,
    sin: Tensor,
}

impl Rotary {
    /// Returns the rotation rates for heads of this width, which must be even.
    pub fn new(head_width: i64, device: Device) -> Rotary {
        let pairs = Tensor::arange(head_width / 2, (Kind::Float, device));
        Rotary((pairs * (-2.0 * BASE.ln() / head_width as f64)).exp())
    }

    /// Returns the rotations at positions i64 [B, T], in this dtype.
    pub fn at(&self, positions: &Tensor, kind: Kind) -> Rotations {
        let angles = positions.to_kind(Kind::Float).unsqueeze(-1) * &self.0;
        let angles = angles.unsqueeze(1);
        Rotations {
            cos: angles.cos().to_kind(kind),
            sin: angles.sin().to_kind(kind),
        }
    }
}

impl Rotations {
    /// Splits a joint projection [B, T, 3 · heads · head width] into queries, keys and values [B,
    /// heads, T, head width], and rotates the queries and keys. `is_frozen` states whether the
    /// weights are frozen.
    pub fn split(&self, joint: &Tensor, heads: i64, is_frozen: bool) -> [Tensor; 3] {
        // TorchScript does not know the fused operation. Networks are traced without gradients and
        // before they are frozen, so this branch is never traced.
        if is_frozen || joint.requires_grad() {
            return fused::rotated_heads(joint, heads, [&self.cos, &self.sin]);
        }
        let [query, key, value] = by_head(joint, heads);
        [self.turn(&query), self.turn(&key), value]
    }

    /// Rotates queries or keys [B, heads, T, head width]. Features i and i + head width / 2 form a
    /// pair, as in GPT-NeoX.
    pub fn turn(&self, x: &Tensor) -> Tensor {
        let halves = x.chunk(2, -1);
        let (first, second) = (&halves[0], &halves[1]);
        let turned = [
            first * &self.cos - second * &self.sin,
            second * &self.cos + first * &self.sin,
        ];
        Tensor::cat(&turned, -1)
    }
}

/// Splits a joint projection into queries, keys and values [B, heads, T, head width].
pub(in crate::network) fn by_head(joint: &Tensor, heads: i64) -> [Tensor; 3] {
    let parts = joint
        .unflatten(-1, [3, heads, -1])
        .permute([2, 0, 3, 1, 4])
        .unbind(0);
    parts.try_into().expect("three were joined")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_projection_is_split_in_one_pass_as_in_many() {
        tch::manual_seed(1);
        let rotary = Rotary::new(16, Device::Cpu);
        for kind in [Kind::Float, Kind::BFloat16, Kind::Double] {
            for rows in [1, 2] {
                let options = (Kind::Float, Device::Cpu);
                let joint = || {
                    tch::manual_seed(2);
                    let joint = Tensor::randn([2, 5, 3 * 4 * 16], options).to_kind(kind);
                    joint.set_requires_grad(true)
                };
                let positions =
                    Tensor::arange(5 * rows, (Kind::Int64, Device::Cpu)).view([rows, 5]);
                let rotations = rotary.at(&positions, kind);
                let plain = |joint: &Tensor| {
                    let [query, key, value] = by_head(joint, 4);
                    [rotations.turn(&query), rotations.turn(&key), value]
                };
                let weights = [(); 3].map(|()| Tensor::randn([2, 4, 5, 16], options).to_kind(kind));
                let run = |split: &dyn Fn(&Tensor) -> [Tensor; 3]| {
                    let joint = joint();
                    let parts = split(&joint);
                    let sum: Tensor = parts.iter().zip(&weights).map(|(a, b)| a * b).sum();
                    sum.sum(kind).backward();
                    (parts, joint.grad())
                };
                let (parts, gradient) = run(&|joint| rotations.split(joint, 4, false));
                let (expected, expected_gradient) = run(&plain);
                let tolerance = if kind == Kind::BFloat16 { 2e-2 } else { 1e-5 };
                let off = |a: &Tensor, b: &Tensor| (a - b).abs().max().double_value(&[]);
                for (found, expected) in parts.iter().zip(&expected) {
                    assert!(off(found, expected) < tolerance, "{kind:?}");
                }
                assert!(off(&gradient, &expected_gradient) < tolerance, "{kind:?}");
            }
        }
    }

    #[test]
    fn products_know_the_distance_alone() {
        tch::manual_seed(1);
        let options = (Kind::Float, Device::Cpu);
        let [query, key] = [(); 2].map(|()| Tensor::randn([1, 1, 1, 16], options));
        let rotary = Rotary::new(16, Device::Cpu);
        let product = |at: [i64; 2]| {
            let turn = |x: &Tensor, place| {
                let place = Tensor::from_slice(&[place]).unsqueeze(0);
                rotary.at(&place, Kind::Float).turn(x)
            };
            let product = turn(&query, at[0]) * turn(&key, at[1]);
            product.sum(Kind::Float).double_value(&[])
        };
        let near = product([5, 3]);
        assert!((near - product([105, 103])).abs() < 1e-4);
        assert!((near - product([5, 4])).abs() > 1e-2);
        let plain = (&query * &key).sum(Kind::Float).double_value(&[]);
        assert!((plain - product([7, 7])).abs() < 1e-4);
    }
}
