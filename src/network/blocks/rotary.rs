//! Rotary position embeddings (Su et al. 2021): pairs of features turn by angles that
//! grow with the position, so that a product of two tokens knows their distance.

use tch::{Device, Kind, Tensor};

/// The slowest pair turns by one in so many positions, as in the paper.
const BASE: f64 = 10_000.0;

/// How fast each pair of features turns, f32 [head width / 2].
#[derive(Debug)]
pub(in crate::network) struct Rotary(Tensor);

/// The angles of some positions: cosines and sines [B, 1, T, head width / 2].
#[derive(Debug)]
pub(in crate::network) struct Rotations {
    cos: Tensor,
    sin: Tensor,
}

impl Rotary {
    /// For heads of this width, which is even.
    pub fn new(head_width: i64, device: Device) -> Rotary {
        let pairs = Tensor::arange(head_width / 2, (Kind::Float, device));
        Rotary((pairs * (-2.0 * BASE.ln() / head_width as f64)).exp())
    }

    /// The speeds, for a network file.
    pub fn speeds(&self) -> &Tensor {
        &self.0
    }

    /// The angles of positions i64 [B, T], to turn tensors of this type.
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
    /// Queries or keys [B, heads, T, head width], turned: feature i with feature
    /// i + head width / 2, as GPT-NeoX pairs them.
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

#[cfg(test)]
mod tests {
    use super::*;

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
