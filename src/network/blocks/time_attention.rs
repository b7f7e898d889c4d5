//! Attention of each square to the same square on all boards.

use super::attention::attention;
use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Dense, Weights};
use crate::network::size::Part;
use crate::torch::fused;
use tch::Tensor;

/// Multi-head attention along the time axis of tokens [B, T, 64, width]: each square attends to the
/// same square on all T boards. Each board is in its mover's view, so boards of odd plies are
/// flipped vertically.
#[derive(Debug)]
pub(in crate::network) struct TimeAttention {
    heads: i64,
    /// Queries, keys and values.
    projection: Linear,
    output: Linear,
}

impl TimeAttention {
    /// Builds the block for this number of boards, which is T.
    pub fn build(builder: &mut Builder, width: i64, heads: i64, boards: i64) -> TimeAttention {
        let dense = |output| {
            Dense::per_token(width, output)
                .with_rows(64 * boards)
                .without_bias()
        };
        builder.count_macs(2 * 64 * boards * boards * width);
        TimeAttention {
            heads,
            // The gain gives the tall joint matrix the initial deviation of a square matrix.
            projection: builder.linear(
                "qkv",
                dense(3 * width).with_gain(2.0f64.sqrt()),
                Part::Main,
            ),
            output: builder.linear("output", dense(width), Part::Main),
        }
    }

    /// Attends to the same square on all boards.
    pub fn forward(&self, weights: &Weights, x: &Tensor) -> Tensor {
        let joint = self.projection.forward(weights, x);
        // TorchScript does not know the kernel. Networks are traced without gradients and before
        // they are frozen.
        let is_traced = !weights.are_frozen() && !weights[self.projection.weight].requires_grad();
        let learned = match !is_traced && fused::takes_time_attention(&joint, self.heads) {
            true => fused::time_attention(&joint, self.heads),
            false => attend(&joint, self.heads),
        };
        self.output.forward(weights, &learned)
    }
}

/// Computes the same as [`fused::time_attention`], using libtorch's operators.
fn attend(joint: &Tensor, heads: i64) -> Tensor {
    // Squares and heads share one dimension, because CUDA kernels accept at most 65,535 batches.
    let parts = by_square(joint)
        .unflatten(-1, [3, heads, -1])
        .permute([3, 0, 1, 4, 2, 5])
        .flatten(2, 3)
        .unbind(0);
    let [query, key, value]: [Tensor; 3] = parts.try_into().expect("three were joined");
    let learned = attention(&query, &key, &value, None, false)
        .unflatten(1, [64, heads])
        .transpose(2, 3)
        .flatten(3, 4);
    by_board(&learned)
}

/// Rearranges tokens [B, T, 64, width] by square, [B, 64, T, width].
fn by_square(x: &Tensor) -> Tensor {
    let boards = x.unflatten(2, [8, 8]).unbind(1);
    Tensor::stack(&turned(boards), 3).flatten(1, 2)
}

/// Reverses [`by_square`].
fn by_board(x: &Tensor) -> Tensor {
    let boards = x.unflatten(1, [8, 8]).unbind(3);
    Tensor::stack(&turned(boards), 1).flatten(2, 3)
}

/// Returns boards [B, 8, 8, width], with the boards of odd plies flipped vertically.
fn turned(boards: Vec<Tensor>) -> Vec<Tensor> {
    let boards = boards.into_iter().enumerate();
    let turned = boards.map(|(ply, board)| match ply % 2 {
        0 => board,
        _ => board.flip([1]),
    });
    turned.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Device, Kind};

    #[test]
    fn squares_meet_themselves_on_other_boards() {
        let options = (Kind::Int64, Device::Cpu);
        let x = Tensor::arange(2 * 3 * 64, options).view([2, 3, 64, 1]);
        let met = by_square(&x);
        // The tokens of e2 on the present board, on the next board, which is in the opponent's
        // view, and on the board after that.
        let e2 = Vec::<i64>::try_from(met.get(1).get(12).squeeze_dim(1)).unwrap();
        assert_eq!(e2, [192 + 12, 192 + 64 + 52, 192 + 128 + 12]);
        assert!(by_board(&met).equal(&x));
    }

    #[test]
    fn the_kernel_computes_what_libtorch_does() {
        tch::manual_seed(3);
        for (kind, boards, heads, width, bound) in [
            (Kind::Float, 1, 1, 16, 1e-5),
            (Kind::Float, 5, 4, 32, 1e-5),
            (Kind::Float, 16, 2, 128, 1e-5),
            (Kind::BFloat16, 5, 4, 32, 0.03),
            (Kind::BFloat16, 8, 2, 48, 0.03),
        ] {
            let options = (Kind::Float, Device::Cpu);
            let joint = Tensor::randn([3, boards, 64, 3 * heads * width], options);
            let wanted = Tensor::randn([3, boards, 64, heads * width], options);
            let of = |attend: &dyn Fn(&Tensor) -> Tensor, kind: Kind| {
                let joint = joint.copy().set_requires_grad(true);
                let learned = attend(&joint.to_kind(kind)).to_kind(Kind::Float);
                (&learned * &wanted).sum(Kind::Float).backward();
                (learned.detach(), joint.grad())
            };
            assert!(fused::takes_time_attention(&joint.to_kind(kind), heads));
            let (found, gradient) = of(&|joint| fused::time_attention(joint, heads), kind);
            let (expected, expected_gradient) = of(&|joint| attend(joint, heads), Kind::Float);
            for (found, expected) in [(found, expected), (gradient, expected_gradient)] {
                let off = (found - &expected).abs().max().double_value(&[]);
                let scale = expected.abs().max().double_value(&[]);
                assert!(off < bound * scale, "{kind:?} {boards}: {off} of {scale}");
            }
        }
    }

    #[test]
    fn the_kernel_refuses_what_it_cannot_read() {
        let joint = |sizes: &[i64]| Tensor::zeros(sizes, (Kind::Float, Device::Cpu));
        assert!(fused::takes_time_attention(&joint(&[2, 5, 64, 96]), 2));
        for (sizes, heads) in [
            ([2, 17, 64, 96], 2),
            ([2, 5, 63, 96], 2),
            ([2, 5, 64, 96], 3),
            ([2, 5, 64, 96], 0),
            ([2, 0, 64, 96], 2),
        ] {
            assert!(
                !fused::takes_time_attention(&joint(&sizes), heads),
                "{sizes:?}"
            );
        }
        let strided = joint(&[2, 64, 5, 96]).transpose(1, 2);
        assert!(!fused::takes_time_attention(&strided, 2));
    }
}
