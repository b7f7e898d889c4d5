//! Provides the parameters as autograd leaves, whose gradients are summed over the processes during
//! backward.
//!
//! In a process that trains alone, each replica has a single leaf, the flat vector of all
//! parameters. With several processes, this vector is split into buckets of whole parameters. The
//! sum over the processes of a bucket's gradient starts as soon as backward has completed the
//! bucket, and overlaps with the rest of backward, as in PyTorch's DistributedDataParallel (Li et
//! al. 2020, arXiv:2006.15704). The gradients of all buckets lie in one contiguous vector. They are
//! summed in place, and the optimizer reads the vector without a copy.

use super::group::{Group, GroupError};
use super::shim::{self, RawSums};
use super::world::World;
use crate::network::{Parameter, Weights};
use crate::torch::shim::{RawTensor, take_text};
use std::ops::Range;
use std::ptr::{self, NonNull};
use tch::{Kind, Tensor};

/// Minimum bucket size in elements, equal to 4 MB of f32. The sums of smaller buckets are bound by
/// network latency, and the sums of larger buckets start late. PyTorch's buckets have 25 MB,
/// because it also trains networks of a gigabyte.
const BUCKET: i64 = 1 << 20;

/// The parameters in buckets, and the vector of their gradients.
#[derive(Debug)]
pub(crate) struct Buckets {
    leaves: Vec<Tensor>,
    /// The parameters of each leaf.
    parameters: Vec<Range<usize>>,
    gradient: Tensor,
    sums: Option<Sums>,
}

impl Buckets {
    /// Creates leaves that share the memory of `flat`, f32 `[parameters]`.
    ///
    /// # Errors
    /// [`GroupError`] if libtorch fails.
    pub fn new(
        flat: &Tensor,
        parameters: &[Parameter],
        world: &World,
    ) -> Result<Buckets, GroupError> {
        let group = world.gradients();
        let ranges = match group {
            Some(_) => cut(parameters, BUCKET),
            None => std::iter::once(0..parameters.len()).collect(),
        };
        let gradient = flat.detach().zeros_like();
        let mut offset = 0;
        let mut leaves = Vec::with_capacity(ranges.len());
        for range in &ranges {
            let count = parameters[range.clone()].iter().map(Parameter::count).sum();
            let leaf = flat.detach().narrow(0, offset, count);
            let leaf = leaf.detach().set_requires_grad(true);
            let place = gradient.narrow(0, offset, count);
            // SAFETY: both tensors are valid; the leaf takes its own reference to its gradient.
            let failure = unsafe {
                take_text(shim::tessera_leaf_gradient(
                    leaf.as_ptr().cast(),
                    place.as_ptr().cast(),
                ))
            };
            if let Some(reason) = failure {
                panic!("a gradient of its leaf's own shape was refused: {reason}");
            }
            leaves.push(leaf);
            offset += count;
        }
        let sums = group.map(|group| Sums::new(group, &leaves)).transpose()?;
        Ok(Buckets {
            leaves,
            parameters: ranges,
            gradient,
            sums,
        })
    }

    /// Returns the network's tensors in dtype `kind`. Gradients flow back through them.
    pub fn weights(&self, kind: Kind, parameters: &[Parameter]) -> Weights {
        let mut tensors = Vec::with_capacity(parameters.len());
        for (leaf, range) in self.leaves.iter().zip(&self.parameters) {
            let part = Weights::from_flat(&leaf.to_kind(kind), &parameters[range.clone()]);
            tensors.extend(part.tensors().iter().map(Tensor::shallow_clone));
        }
        Weights::new(tensors)
    }

    /// Announces that the next backward pass is the last one of this step, so that each bucket is
    /// summed when this pass completes it.
    pub fn arm(&self) {
        if let Some(sums) = &self.sums {
            // SAFETY: the sums are valid.
            unsafe { shim::tessera_sums_arm(sums.raw.as_ptr()) }
        }
    }

    /// Returns the gradient, f32 `[parameters]`, summed over all processes.
    ///
    /// # Errors
    /// [`GroupError`] if another process is gone.
    pub fn gradient(&mut self, world: &World) -> Result<&Tensor, GroupError> {
        if let (Some(sums), Some(group)) = (&mut self.sums, world.gradients()) {
            sums.finish(group)?;
            if !sums.is_ordered {
                sums.order(self.leaves.len(), group, world)?;
            }
        }
        Ok(&self.gradient)
    }

    /// Sets the gradient to zero.
    pub fn zero(&mut self) {
        let _ = self.gradient.zero_();
    }
}

/// Splits the parameters into ranges of at least `least` elements. Only the first range may be
/// smaller: backward reaches it last, so its sum cannot be hidden and should be short.
fn cut(parameters: &[Parameter], least: i64) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut end = parameters.len();
    let mut held = 0;
    for (number, parameter) in parameters.iter().enumerate().rev() {
        held += parameter.count();
        if held >= least || number == 0 {
            ranges.push(number..end);
            (end, held) = (number, 0);
        }
    }
    ranges.reverse();
    ranges
}

const SUMMING: &str = "summing gradients";

/// The pending sums of a step.
#[derive(Debug)]
struct Sums {
    raw: NonNull<RawSums>,
    /// Whether the buckets have been put into the order in which backward completes them.
    is_ordered: bool,
}

// SAFETY: the sums do their own locking.
unsafe impl Send for Sums {}

impl Drop for Sums {
    fn drop(&mut self) {
        // SAFETY: the pointer came from the shim and is freed once; the leaves' hooks hold their
        // own references.
        unsafe { shim::tessera_sums_free(self.raw.as_ptr()) }
    }
}

impl Sums {
    fn new(group: &Group, leaves: &[Tensor]) -> Result<Sums, GroupError> {
        let pointers: Vec<*const RawTensor> =
            leaves.iter().map(|leaf| leaf.as_ptr() as _).collect();
        let mut raw = ptr::null_mut();
        // SAFETY: all pointers are valid for the call; group and gradients are reference-counted,
        // and the sums take their own references.
        let failure = unsafe {
            take_text(shim::tessera_sums_create(
                group.raw(),
                pointers.as_ptr(),
                pointers.len(),
                &raw mut raw,
            ))
        };
        match failure {
            Some(text) => Err(group.failure(&text, SUMMING)),
            None => Ok(Sums {
                raw: NonNull::new(raw).expect("sums, as there is no error"),
                is_ordered: false,
            }),
        }
    }

    fn finish(&mut self, group: &Group) -> Result<(), GroupError> {
        // SAFETY: the sums are valid.
        let failure = unsafe { take_text(shim::tessera_sums_finish(self.raw.as_ptr())) };
        failure.map_or(Ok(()), |text| Err(group.failure(&text, SUMMING)))
    }

    /// Adopts the order in which process 0's first backward pass completed the buckets. In all
    /// later steps, every process sums the buckets in this order. It can differ from the reverse
    /// order of the layers: a table that every layer uses is completed last, wherever it is stored.
    fn order(&mut self, count: usize, group: &Group, world: &World) -> Result<(), GroupError> {
        let told = |failure: Option<String>| {
            failure.map_or(Ok(()), |text| Err(group.failure(&text, SUMMING)))
        };
        let mut order = vec![0i64; count];
        // SAFETY: the buffer has room for every bucket.
        told(unsafe {
            take_text(shim::tessera_sums_seen(
                self.raw.as_ptr(),
                order.as_mut_ptr(),
            ))
        })?;
        let shared = Tensor::from_slice(&order);
        world.broadcast(&shared, "agreeing on an order")?;
        shared.copy_data(&mut order, count);
        // SAFETY: the order contains every bucket once, as process 0 saw them.
        told(unsafe {
            take_text(shim::tessera_sums_reorder(
                self.raw.as_ptr(),
                order.as_ptr(),
            ))
        })?;
        self.is_ordered = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Initial, ParameterGroup};

    fn parameters(counts: &[i64]) -> Vec<Parameter> {
        let parameter = |&count: &i64| Parameter {
            name: "x".to_owned(),
            shape: vec![count],
            initial: Initial::Zeros,
            group: ParameterGroup::Other,
        };
        counts.iter().map(parameter).collect()
    }

    #[test]
    fn buckets_hold_whole_parameters() {
        let ranges = |counts: &[i64]| cut(&parameters(counts), 10);
        assert_eq!(ranges(&[4, 4, 4, 4]), [0..1, 1..4]);
        assert_eq!(ranges(&[20, 1, 20]), [0..2, 2..3]);
        assert_eq!(ranges(&[1]).as_slice(), std::slice::from_ref(&(0..1)));
    }

    #[test]
    fn one_process_has_one_leaf_and_its_gradient() {
        let parameters = parameters(&[2, 3]);
        let flat = Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0, 5.0]);
        let mut buckets = Buckets::new(&flat, &parameters, &World::alone()).unwrap();
        for pass in 1..=2 {
            let weights = buckets.weights(Kind::Float, &parameters);
            let [a, b] = weights.tensors() else {
                panic!("two parameters")
            };
            buckets.arm();
            (a.square().sum(Kind::Float) + b.sum(Kind::Float)).backward();
            let gradient = buckets.gradient(&World::alone()).unwrap();
            let gradient: Vec<f32> = gradient.shallow_clone().try_into().unwrap();
            // The gradients of consecutive backward passes accumulate.
            let expected = [2.0, 4.0, 1.0, 1.0, 1.0].map(|x| x * pass as f32);
            assert_eq!(gradient, expected);
        }
        buckets.zero();
        let gradient = buckets.gradient(&World::alone()).unwrap();
        assert_eq!(gradient.abs().sum(Kind::Float).double_value(&[]), 0.0);
    }
}
