//! Splits the flat vectors into parts that fit into the processor's cache.

use crate::torch::fused::is_as_on_a_gpu;
use tch::Tensor;

/// Number of elements per part. At this size, the parts of five f32 vectors fit into a megabyte of
/// cache, while the overhead per operation is still small.
const LENGTH: i64 = 1 << 15;

/// A range of the flat vectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    start: i64,
    length: i64,
}

impl Part {
    /// Returns this part of a vector as a view.
    pub fn of(self, vector: &Tensor) -> Tensor {
        vector.narrow(0, self.start, self.length)
    }
}

/// Returns the parts of vectors like this one. On a GPU there is a single part.
pub(super) fn parts(vector: &Tensor) -> impl Iterator<Item = Part> + use<> {
    let count = vector.size()[0];
    let length = match is_as_on_a_gpu(vector) {
        true => count.max(1),
        false => LENGTH,
    };
    (0..count).step_by(length as usize).map(move |start| Part {
        start,
        length: length.min(count - start),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Device, Kind};

    #[test]
    fn parts_are_everything_once() {
        for count in [0, 1, LENGTH - 1, LENGTH, 2 * LENGTH + 3] {
            let vector = Tensor::zeros([count], (Kind::Float, Device::Cpu));
            for part in parts(&vector) {
                let _ = part.of(&vector).g_add_scalar_(1.0);
            }
            assert!(bool::try_from(vector.eq(1.0).all()).unwrap(), "{count}");
        }
    }
}
