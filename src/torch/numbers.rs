//! Between tensors and numbers: what networks read, and what they return.

use super::TorchError;
use crate::encode::{BOARDS, Input, SCALARS, WIDTH};
use crate::panics;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tch::{Device, Kind, Tensor};

/// The words of an [`Input`] behind the bitboards and the scalars named; `None`
/// if those are all of them in order. The names have been checked.
pub(crate) fn words(scalars: &[impl AsRef<str>]) -> Option<Vec<i64>> {
    let names = || scalars.iter().map(AsRef::as_ref);
    let position = |name: &str| SCALARS.iter().position(|&scalar| scalar == name);
    (!names().eq(SCALARS)).then(|| {
        let scalars = names().filter_map(position);
        let words = (0..BOARDS).chain(scalars.map(|scalar| BOARDS + scalar));
        words.map(|word| word as i64).collect()
    })
}

/// Positions as a network reads them whose [`words`] these are, i64 [B, words].
pub(crate) fn rows(inputs: &[Input], words: Option<&[i64]>) -> Result<Tensor, TorchError> {
    let all: &[i64] = bytemuck::cast_slice(inputs);
    let (tensor, width) = match words {
        None => (Tensor::f_from_slice(all)?, WIDTH),
        Some(words) => {
            let mut chosen = Vec::with_capacity(inputs.len() * words.len());
            for row in all.chunks_exact(WIDTH) {
                chosen.extend(words.iter().map(|&word| row[word as usize]));
            }
            (Tensor::f_from_slice(&chosen)?, words.len())
        }
    };
    Ok(tensor.f_view([inputs.len() as i64, width as i64])?)
}

/// The numbers of a tensor of any type on any device, row by row.
pub(crate) fn floats(tensor: &Tensor) -> Vec<f32> {
    let tensor = tensor
        .detach()
        .to_kind(Kind::Float)
        .to_device(Device::Cpu)
        .reshape([-1]);
    tensor.try_into().expect("f32 on the CPU")
}

/// Computes, and returns what libtorch throws, as for lack of memory: tch panics then.
pub(crate) fn caught<T>(compute: impl FnOnce() -> T) -> Result<T, TorchError> {
    catch_unwind(AssertUnwindSafe(compute))
        .map_err(|panic| TorchError::new(panics::message(&*panic)))
}
