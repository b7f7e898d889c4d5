//! Replicas of the network that compute a batch's gradient in parallel.
//!
//! On a CPU, every thread has a replica, which computes a part of each batch. Each replica has its
//! own leaves, which share the memory of the parameters, and its own gradient. The gradients are
//! summed in the order of the replicas. A run is therefore reproducible bit for bit with the same
//! number of replicas, and up to rounding with a different number. On a GPU, and in each of several
//! processes, there is a single replica.

use crate::data::loader::BatchOf;
use crate::train::config::TrainConfig;
use crate::train::distributed::{Buckets, GroupError, World};
use crate::train::error::TrainError;
use crate::train::learner::Learner;
use crate::train::losses::Losses;
use crate::train::objective::Objective;
use crate::train::parts::parts;
use crate::train::stopwatch::{Phase, Stopwatch};
use crate::train::threads::Threads;
use tch::{Device, Tensor};

/// All replicas in a process.
#[derive(Debug)]
pub(super) struct Replicas<O> {
    replicas: Vec<Replica<O>>,
    /// The threads, one for each replica.
    pub threads: Threads,
}

/// One replica. Replicas share the memory of the parameters, but no tensor handles.
#[derive(Debug)]
struct Replica<O> {
    learner: Learner<O>,
    leaves: Buckets,
}

/// The losses for this process's part of a batch.
#[derive(Debug)]
pub(super) struct StepLosses {
    pub losses: Losses,
    /// The total weight of the samples that have each term's target, f32 `[L]`.
    pub target_weight: Tensor,
    /// The number of samples that have each term's target, f32 `[L]`.
    pub target_count: Tensor,
}

impl<O: Objective> Replicas<O> {
    /// Creates one replica per thread; all of them use `parameters`, f32 `[parameters]`.
    ///
    /// # Errors
    /// The objective's errors, such as [`TrainError::Teacher`] if a teacher cannot be loaded;
    /// [`TrainError::Group`] if libtorch fails.
    pub fn new(
        config: &TrainConfig,
        parameters: &Tensor,
        world: &World,
        device: Device,
        threads: Threads,
    ) -> Result<Replicas<O>, TrainError> {
        let first = O::new(config, device)?;
        let replica = |_| {
            let objective = first.replica()?;
            let leaves = Buckets::new(parameters, objective.parameters(), world)?;
            let learner = Learner::new(config, objective, device);
            Ok(Replica { learner, leaves })
        };
        let replicas: Result<Vec<Replica<O>>, TrainError> =
            (0..threads.count()).map(replica).collect();
        Ok(Replicas {
            replicas: replicas?,
            threads,
        })
    }

    /// Calls [`Objective::begin`] on every replica.
    pub fn begin(&mut self, steps: u64, average: &Tensor) {
        for replica in &mut self.replicas {
            replica.learner.objective.begin(steps, average);
        }
    }

    /// Sets the factor by which each term's weight is multiplied, f32 `[L]`.
    pub fn balance(&mut self, factors: &Tensor) {
        for replica in &mut self.replicas {
            replica.learner.weights.balance(factors);
        }
    }

    /// Returns the kind of examples that the replicas train on.
    pub fn examples(&self, config: &TrainConfig) -> O::Examples {
        self.replicas[0].learner.objective.examples(config)
    }

    /// Computes the gradient of this process's part of a batch, and adds it to the replicas'
    /// gradients. The stopwatch times the first replica and its wait for the others.
    ///
    /// # Errors
    /// [`TrainError`] if the teacher fails or another process is gone.
    pub fn backward(
        &mut self,
        batch: BatchOf<O::Examples>,
        world: &World,
        watch: &mut Stopwatch,
    ) -> Result<StepLosses, TrainError> {
        let parts = batch.split(self.replicas.len());
        let items = self.replicas.iter_mut().zip(parts).collect();
        let prepared = self
            .threads
            .map(items, |(replica, part)| replica.learner.prepare(part));
        let mut prepared = prepared
            .into_iter()
            .collect::<Result<Vec<_>, TrainError>>()?;
        watch.mark(Phase::Prepare);

        let target_weight = total(prepared.iter().map(|part| &part.target_weight));
        let target_count = total(prepared.iter().map(|part| &part.target_count));
        let global_weight = target_weight.copy();
        world.sum(&global_weight, "summing target weights")?;
        for part in &mut prepared {
            part.target_weight = global_weight.shallow_clone();
        }

        let others = 1..prepared.len();
        let mut others: Vec<_> = others.map(|_| Stopwatch::new(Device::Cpu)).collect();
        let watches = std::iter::once(&mut *watch).chain(&mut others);
        let items = self
            .replicas
            .iter_mut()
            .zip(prepared)
            .zip(watches)
            .collect();
        let losses = self.threads.map(items, |((replica, part), watch)| {
            replica.learner.backward(&replica.leaves, &part, watch)
        });
        watch.mark(Phase::Backward);
        let losses = losses.into_iter();
        let losses = losses.reduce(|before, losses| before.plus(&losses));
        Ok(StepLosses {
            losses: losses.expect("a batch is never empty"),
            target_weight,
            target_count,
        })
    }

    /// Returns the gradient, f32 `[parameters]`, summed over all replicas and processes.
    ///
    /// # Errors
    /// [`GroupError`] if another process is gone.
    pub fn gradient(&mut self, world: &World) -> Result<Tensor, GroupError> {
        let mut gradients = Vec::with_capacity(self.replicas.len());
        for replica in &mut self.replicas {
            gradients.push(replica.leaves.gradient(world)?.shallow_clone());
        }
        if let [first, _, ..] = gradients.as_slice() {
            let of_all = parts(first).map(|part| gradients.iter().map(|it| part.of(it)).collect());
            let items: Vec<Vec<Tensor>> = of_all.collect();
            self.threads.map(items, |parts| {
                let mut parts = parts.into_iter();
                let mut sum = parts.next().expect("several replicas");
                for mut part in parts {
                    sum += &part;
                    // Reset the part while it is still in the cache.
                    let _ = part.zero_();
                }
            });
        }
        Ok(gradients.swap_remove(0))
    }

    /// Resets the gradient. Call this after using the result of [`Replicas::gradient`].
    pub fn zero(&mut self) {
        self.replicas[0].leaves.zero();
    }
}

/// Returns the sum of tensors, added in order.
fn total<'a>(mut tensors: impl Iterator<Item = &'a Tensor>) -> Tensor {
    let first = tensors.next().expect("a batch is never empty");
    tensors.fold(first.shallow_clone(), |sum, tensor| sum + tensor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::loader::Batch;
    use crate::train::learner::tests::{batch, config, parameters};
    use crate::train::objective::PositionObjective;

    struct Fixture {
        replicas: Replicas<PositionObjective>,
        parameters: Tensor,
    }

    impl Fixture {
        fn new(config: &TrainConfig, count: usize) -> Fixture {
            let model = config.architecture().unwrap().build(Device::Cpu).unwrap();
            let (parameters, threads) = (parameters(&*model), Threads::new(count).unwrap());
            let world = World::alone();
            let replicas = Replicas::new(config, &parameters, &world, Device::Cpu, threads);
            Fixture {
                replicas: replicas.unwrap(),
                parameters,
            }
        }

        fn step(&mut self, batch: Batch) -> (StepLosses, Tensor) {
            let world = World::alone();
            let mut watch = Stopwatch::new(Device::Cpu);
            let losses = self.replicas.backward(batch, &world, &mut watch).unwrap();
            let gradient = self.replicas.gradient(&world).unwrap().copy();
            self.replicas.zero();
            (losses, gradient)
        }
    }

    fn largest(tensor: &Tensor) -> f64 {
        tensor.abs().max().double_value(&[])
    }

    #[test]
    fn replicas_have_the_gradient_of_one() {
        let few = || batch().split(20).swap_remove(3);
        assert!(few().len() < 3, "fewer samples than replicas");
        for text in ["", "accumulate = 4", "augment = { mirror = 0.5 }"] {
            let config = config(text);
            for batch in [batch, few] {
                let (whole, expected) = Fixture::new(&config, 1).step(batch());
                for count in [2, 3] {
                    let (losses, gradient) = Fixture::new(&config, count).step(batch());
                    let off = largest(&(&gradient - &expected)) / largest(&expected);
                    assert!(off < 1e-5, "{text}, {count} replicas: off by {off}");
                    for (found, expected) in [
                        (&losses.losses.total, &whole.losses.total),
                        (&losses.losses.sums, &whole.losses.sums),
                        (&losses.target_weight, &whole.target_weight),
                        (&losses.target_count, &whole.target_count),
                    ] {
                        let off = largest(&(found - expected)) / largest(expected);
                        assert!(off < 1e-5, "{text}, {count} replicas: off by {off}");
                    }
                }
            }
        }
    }

    #[test]
    fn gradients_of_replicas_repeat_to_the_bit() {
        let config = config("accumulate = 2");
        let run = || -> Vec<Vec<f32>> {
            let mut fixture = Fixture::new(&config, 3);
            let step = |_| {
                let (_, gradient) = fixture.step(batch());
                let _guard = tch::no_grad_guard();
                // The replicas share the memory of the parameters, so they use the updated values.
                fixture.parameters -= &gradient * 0.05;
                gradient.try_into().unwrap()
            };
            (0..4).map(step).collect()
        };
        let gradients = run();
        assert!(gradients[0] != gradients[1]);
        for _ in 0..3 {
            assert!(run() == gradients);
        }
    }
}
