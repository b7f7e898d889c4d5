//! Computes the hash that identifies a network's exported tensors.

use super::numbers::bytes;
use sha2::{Digest, Sha256};
use tch::Tensor;

/// Returns the SHA-256 hash, in hexadecimal, of a network's parameters and buffers as they are
/// stored. The tensors are sorted by name, and each contributes its name, type, shape and
/// little-endian data.
///
/// # Panics
/// Panics if a tensor is not a plain tensor that can be copied to the CPU.
pub fn tensor_hash(named: impl IntoIterator<Item = (String, Tensor)>) -> String {
    let mut named: Vec<(String, Tensor)> = named.into_iter().collect();
    named.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut hash = Sha256::new();
    for (name, tensor) in named {
        let shape = tensor.size();
        // The zero byte and the counts separate the fields.
        hash.update(format!("{name}\0{:?}\0", tensor.kind()));
        hash.update((shape.len() as u64).to_le_bytes());
        for size in shape {
            hash.update(size.to_le_bytes());
        }
        hash.update(bytes(&tensor));
    }
    format!("{:x}", hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Device, Kind};

    #[test]
    fn the_hash_depends_on_names_types_shapes_and_data_alone() {
        let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0]);
        let named = |name: &str, tensor: &Tensor| (name.to_owned(), tensor.shallow_clone());
        let other = Tensor::from_slice(&[7i64]);
        let hash = tensor_hash([named("a", &tensor), named("b", &other)]);
        assert_eq!(hash.len(), 64);
        assert_eq!(hash, tensor_hash([named("b", &other), named("a", &tensor)]));
        for changed in [
            named("c", &tensor),
            named("a", &tensor.view([2, 2])),
            named("a", &(&tensor + 1)),
            named("a", &tensor.to_kind(Kind::BFloat16)),
            named("a", &tensor.view_dtype(Kind::Int)),
        ] {
            assert_ne!(hash, tensor_hash([changed, named("b", &other)]));
        }
        // Transposed views, scalars and empty tensors are hashed by the elements that they contain.
        let square = tensor.view([2, 2]).transpose(0, 1);
        assert_eq!(
            tensor_hash([named("a", &square)]),
            tensor_hash([named("a", &square.contiguous())])
        );
        let scalar = Tensor::from(1f32);
        let empty = Tensor::zeros([0, 3], (Kind::Float, Device::Cpu));
        assert_ne!(
            tensor_hash([named("a", &scalar)]),
            tensor_hash([named("a", &empty)])
        );
    }
}
