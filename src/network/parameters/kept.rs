//! Caches values that are derived from frozen weights.

use crate::torch::{ComputeType, fused};
use std::collections::HashMap;
use std::sync::RwLock;
use std::sync::atomic::AtomicBool;
use tch::Tensor;

/// The index of a parameter in its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::network) struct Slot(pub usize);

/// Values derived from frozen weights.
#[derive(Debug)]
pub(in crate::network) struct Frozen {
    /// Whether blocks use kernels with packed weights. Only in f32 are libtorch's own matrix
    /// multiplications as fast.
    pub has_kernels: bool,
    /// Whether layers multiply in int8 if their widths allow it.
    pub int8: bool,
    /// Whether any layer multiplies in int8.
    pub multiplies_in_int8: AtomicBool,
    /// Derived values, keyed by their kind and by one of the weights that they depend on.
    made: RwLock<HashMap<(&'static str, Slot), Tensor>>,
}

impl Frozen {
    pub fn new(dtype: ComputeType, like: &Tensor) -> Frozen {
        let is_narrow = dtype.int8 || dtype.kind == tch::Kind::BFloat16;
        Frozen {
            has_kernels: is_narrow && fused::is_available(like, &[]),
            int8: dtype.int8,
            multiplies_in_int8: AtomicBool::new(false),
            made: RwLock::default(),
        }
    }

    pub fn made(&self, what: (&'static str, Slot), make: impl FnOnce() -> Tensor) -> Tensor {
        let known = self.made.read().expect("nobody panics with it");
        if let Some(tensor) = known.get(&what) {
            return tensor.shallow_clone();
        }
        drop(known);
        let tensor = make();
        let mut known = self.made.write().expect("nobody panics with it");
        known.entry(what).or_insert(tensor).shallow_clone()
    }
}

/// The weights of a block in the layout of its kernel.
#[derive(Debug)]
pub(in crate::network) struct Packed {
    pub weights: Tensor,
    /// Whether the block multiplies in int8 if its widths allow it.
    pub int8: bool,
}
