//! A norm and an activation that take one pass over memory on the CPU. Elsewhere, and in the code of
//! exported files, they are libtorch's operators.

use super::super::shim;
use super::{outputs, raw};
use tch::Tensor;

/// Computes the root-mean-square norm over the last dimension. Gradients flow through the input and
/// the weight.
pub(crate) fn rms_norm(x: &Tensor, weight: &Tensor, epsilon: f64) -> Tensor {
    let [x, weight] = raw([Some(x), Some(weight)]);
    // SAFETY: the tensors are valid for the call.
    let [y] = outputs(|out| unsafe { shim::tessera_rms_norm(x, weight, epsilon, out) });
    y
}

/// Computes mish. Gradients flow through the input.
pub(crate) fn mish(x: &Tensor) -> Tensor {
    let [x] = raw([Some(x)]);
    // SAFETY: the tensor is valid for the call.
    let [y] = outputs(|out| unsafe { shim::tessera_mish(x, out) });
    y
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Device, Kind};

    /// Returns mish and its derivative, in f64.
    fn mish_of(x: f64) -> (f64, f64) {
        let tanh = x.exp().ln_1p().tanh();
        let sigmoid = 1.0 / (1.0 + (-x).exp());
        (x * tanh, tanh + x * sigmoid * (1.0 - tanh * tanh))
    }

    #[test]
    fn mish_and_its_slope_are_right() {
        let count = 20_000;
        let points = Tensor::linspace(-100, 100, count, (Kind::Double, Device::Cpu));
        let gradient = Tensor::linspace(-2, 2, count, (Kind::Double, Device::Cpu));
        for (kind, tolerance) in [(Kind::Float, 1e-6), (Kind::BFloat16, 0.01)] {
            for turned in [false, true] {
                let shaped = |x: &Tensor| {
                    let x = x.to_kind(kind).view([100, -1]);
                    if turned { x.transpose(0, 1) } else { x }
                };
                let (x, gradient) = (shaped(&points), shaped(&gradient));
                let leaf = x.copy().set_requires_grad(true);
                // The transposed tensor is a view, not a copy.
                let y = if turned {
                    mish(&leaf.transpose(0, 1)).transpose(0, 1)
                } else {
                    mish(&leaf)
                };
                (&y * &gradient).sum(Kind::Float).backward();
                let numbers = |x: &Tensor| -> Vec<f64> {
                    let x = x.detach().to_kind(Kind::Double).contiguous();
                    x.view([-1]).try_into().unwrap()
                };
                let grad = numbers(&leaf.grad());
                for (((x, gradient), y), slope) in numbers(&x)
                    .into_iter()
                    .zip(numbers(&gradient))
                    .zip(numbers(&y))
                    .zip(grad)
                {
                    let expected = mish_of(x);
                    let close = |a: f64, b: f64| (a - b).abs() <= tolerance * b.abs().max(1.0);
                    assert!(close(y, expected.0), "mish({x}): {y}");
                    assert!(close(slope, gradient * expected.1), "slope at {x}: {slope}");
                }
            }
        }
    }

    #[test]
    fn mish_keeps_what_is_no_number() {
        let odd = [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            -1e30,
            1e30,
            -0.0,
            -95.0,
        ];
        for kind in [Kind::Float, Kind::BFloat16] {
            let out = mish(&Tensor::from_slice(&odd).to_kind(kind));
            let out: Vec<f32> = out.to_kind(Kind::Float).try_into().unwrap();
            assert!(out[0].is_nan() && out[1] == f32::INFINITY && out[4] > 0.99e30);
            assert!(
                !out[2].is_finite() && [out[3], out[5], out[6]].iter().all(|x| x.abs() < 1e-6),
                "{out:?}"
            );
        }
    }

    /// Compares our kernel for the norm, and its gradients, in `kind` with libtorch's own
    /// operations in f64.
    #[test]
    fn the_root_mean_square_norm_and_its_gradients_are_right() {
        tch::manual_seed(4);
        let random = |shape: &[i64]| Tensor::randn(shape, (Kind::Float, Device::Cpu));
        for (rows, width) in [(1, 5), (3, 32), (1300, 100)] {
            let (x, weight) = (random(&[rows, width]), random(&[width]));
            let gradient = random(&[rows, width]);
            let pass = |kind: Kind| -> [Tensor; 3] {
                let cast = |tensor: &Tensor| tensor.to_kind(Kind::BFloat16).to_kind(kind);
                let x = cast(&x).set_requires_grad(true);
                let weight = cast(&weight).set_requires_grad(true);
                let y = rms_norm(&x, &weight, 1e-6);
                (&y * cast(&gradient)).sum(kind).backward();
                [y.detach(), x.grad(), weight.grad()].map(|found| found.to_kind(Kind::Double))
            };
            let expected = pass(Kind::Double);
            for (kind, tolerance) in [(Kind::Float, 1e-5), (Kind::BFloat16, 0.02)] {
                for (found, expected) in pass(kind).iter().zip(&expected) {
                    let off = (found - expected).abs().max().double_value(&[]);
                    let size = expected.abs().max().double_value(&[]);
                    assert!(off <= tolerance * size, "{rows} × {width}: {off} of {size}");
                }
            }
        }
    }

    #[test]
    fn a_norm_over_what_is_laid_out_otherwise_is_right_too() {
        let x = Tensor::randn([6, 8], (Kind::Float, Device::Cpu)).transpose(0, 1);
        let weight = Tensor::ones([6], (Kind::Float, Device::Cpu));
        let turned = rms_norm(&x, &weight, 1e-6);
        let straight = rms_norm(&x.contiguous(), &weight, 1e-6);
        assert_eq!(turned.size(), [8, 6]);
        assert!((turned - straight).abs().max().double_value(&[]) < 1e-6);
    }
}
