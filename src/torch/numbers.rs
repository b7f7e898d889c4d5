//! Converts network inputs and outputs between tensors and plain numbers.

use super::TorchError;
use crate::encode::{BOARDS, Input, SCALARS, WIDTH};
use crate::panics;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tch::{Device, Kind, Tensor};

/// Returns the indices of the bitboards and of the named scalars among the words of an [`Input`],
/// or `None` if they are all words in order. The names must have been checked.
pub(crate) fn words(scalars: &[impl AsRef<str>]) -> Option<Vec<i64>> {
    let names = || scalars.iter().map(AsRef::as_ref);
    let position = |name: &str| SCALARS.iter().position(|&scalar| scalar == name);
    (!names().eq(SCALARS)).then(|| {
        let scalars = names().filter_map(position);
        let words = (0..BOARDS).chain(scalars.map(|scalar| BOARDS + scalar));
        words.map(|word| word as i64).collect()
    })
}

/// Returns the rows, i64 [B, words], of positions for a network that reads these [`words`].
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

/// Returns the elements of a tensor of any dtype on any device, row by row.
pub(crate) fn floats(tensor: &Tensor) -> Vec<f32> {
    let tensor = tensor
        .detach()
        .to_kind(Kind::Float)
        .to_device(Device::Cpu)
        .reshape([-1]);
    tensor.try_into().expect("f32 on the CPU")
}

/// Returns a tensor's contents in memory order.
pub(crate) fn bytes(tensor: &Tensor) -> Vec<u8> {
    let tensor = tensor.detach().to_device(Device::Cpu);
    let mut bytes = vec![0; tensor.numel() * tensor.kind().elt_size_in_bytes()];
    tensor.copy_data_u8(&mut bytes, tensor.numel());
    bytes
}

/// Runs `compute` and returns libtorch's exceptions, such as lack of memory, as errors. Without
/// this function, tch would panic.
pub(crate) fn caught<T>(compute: impl FnOnce() -> T) -> Result<T, TorchError> {
    catch_unwind(AssertUnwindSafe(compute))
        .map_err(|panic| TorchError::new(panics::message(&*panic)))
}
