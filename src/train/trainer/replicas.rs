//! Replicas of the network that learn a batch side by side.
//!
//! On a CPU every thread has a replica, which learns its part of each batch: it
//! has leaves of its own over the same parameters, and a gradient of its own.
//! The gradients are summed in the replicas' order, so a run repeats bit for bit
//! with the same number of them, and to rounding with any other. A GPU, and each
//! of several processes, has one replica.

use super::TrainError;
use crate::data::loader::Batch;
use crate::train::config::{ConfigError, TrainConfig};
use crate::train::distributed::{Buckets, GroupError, World};
use crate::train::lessons::{Lesson, Lessons};
use crate::train::loss::Losses;
use crate::train::parts::parts;
use crate::train::stopwatch::{Part, Stopwatch};
use crate::train::teacher::{Teacher, TeacherError};
use crate::train::threads::Threads;
use tch::{Device, Tensor};

/// All replicas of a process.
#[derive(Debug)]
pub(super) struct Replicas {
    replicas: Vec<Replica>,
    threads: Threads,
}

/// One replica. It shares no tensor with another one, only the parameters'
/// memory.
#[derive(Debug)]
struct Replica {
    lessons: Lessons,
    leaves: Buckets,
}

/// What this process's part of a batch came to.
#[derive(Debug)]
pub(super) struct Learnt {
    pub losses: Losses,
    /// Weight that carries each loss's target, f32 [losses].
    pub carried: Tensor,
    /// Samples that carry each loss's target, f32 [losses].
    pub counts: Tensor,
}

impl Replicas {
    /// One replica for each of the threads, all over `parameters`, f32
    /// `[parameters]`.
    ///
    /// # Errors
    /// [`TrainError::Teacher`] if there is to be a teacher and it cannot be had,
    /// [`TrainError::Group`] if libtorch refuses.
    pub fn new(
        config: &TrainConfig,
        parameters: &Tensor,
        world: &World,
        device: Device,
        threads: Threads,
    ) -> Result<Replicas, TrainError> {
        let architecture = config.architecture()?;
        let teacher = config.distillation.as_ref();
        let teacher =
            teacher.map(|teacher| Teacher::load(teacher, device, config.precision.kind()));
        let teacher = teacher.transpose()?;
        let replica = |_| {
            let model = architecture.build(device).map_err(ConfigError::from)?;
            let leaves = Buckets::new(parameters, model.parameters(), world)?;
            let teacher = teacher.as_ref().map(Teacher::share);
            let lessons = Lessons::new(config, model, device, teacher);
            Ok(Replica { lessons, leaves })
        };
        let replicas: Result<Vec<Replica>, TrainError> =
            (0..threads.count()).map(replica).collect();
        Ok(Replicas {
            replicas: replicas?,
            threads,
        })
    }

    /// The threads, one for each replica.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Adds the gradient of this process's part of a batch to the replicas'. The
    /// stopwatch is the first replica's until it has waited for the others.
    ///
    /// # Errors
    /// [`TrainError`] if the teacher fails or another process is gone.
    pub fn learn(
        &mut self,
        batch: Batch,
        world: &World,
        watch: &mut Stopwatch,
    ) -> Result<Learnt, TrainError> {
        let parts = batch.split(self.replicas.len());
        let items = self.replicas.iter_mut().zip(parts).collect();
        let lessons = self
            .threads
            .map(items, |(replica, part)| replica.lessons.prepare(part));
        let mut lessons = lessons
            .into_iter()
            .collect::<Result<Vec<Lesson>, TeacherError>>()?;
        watch.mark(Part::Prepare);

        let carried = total(lessons.iter().map(|lesson| &lesson.carried));
        let counts = total(lessons.iter().map(|lesson| &lesson.counts));
        let joint = carried.copy();
        world.sum(&joint, "weighing a batch")?;
        for lesson in &mut lessons {
            lesson.carried = joint.shallow_clone();
        }

        let others = 1..lessons.len();
        let mut others: Vec<_> = others.map(|_| Stopwatch::new(Device::Cpu)).collect();
        let watches = std::iter::once(&mut *watch).chain(&mut others);
        let items = self.replicas.iter_mut().zip(lessons).zip(watches).collect();
        let losses = self.threads.map(items, |((replica, lesson), watch)| {
            replica.lessons.learn(&replica.leaves, &lesson, watch)
        });
        watch.mark(Part::Backward);
        let losses = losses.into_iter();
        let losses = losses.reduce(|before, losses| before.plus(&losses));
        Ok(Learnt {
            losses: losses.expect("a batch is never empty"),
            carried,
            counts,
        })
    }

    /// The gradient, f32 `[parameters]`, summed over all replicas and processes.
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
                    // While it is in the cache.
                    let _ = part.zero_();
                }
            });
        }
        Ok(gradients.swap_remove(0))
    }

    /// Forgets the gradient, after [`Replicas::gradient`].
    pub fn zero(&mut self) {
        self.replicas[0].leaves.zero();
    }
}

/// The sum of tensors, in their order.
fn total<'a>(mut tensors: impl Iterator<Item = &'a Tensor>) -> Tensor {
    let first = tensors.next().expect("a batch is never empty");
    tensors.fold(first.shallow_clone(), |sum, tensor| sum + tensor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::lessons::tests::{batch, config, parameters};

    struct Fixture {
        replicas: Replicas,
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

        fn learn(&mut self, batch: Batch) -> (Learnt, Tensor) {
            let world = World::alone();
            let mut watch = Stopwatch::new(Device::Cpu);
            let learnt = self.replicas.learn(batch, &world, &mut watch).unwrap();
            let gradient = self.replicas.gradient(&world).unwrap().copy();
            self.replicas.zero();
            (learnt, gradient)
        }
    }

    fn largest(tensor: &Tensor) -> f64 {
        tensor.abs().max().double_value(&[])
    }

    #[test]
    fn replicas_learn_what_one_learns() {
        let few = || batch().split(20).swap_remove(3);
        assert!(few().len() < 3, "fewer samples than replicas");
        for text in ["", "accumulate = 4", "augment = { mirror = 0.5 }"] {
            let config = config(text);
            for batch in [batch, few] {
                let (whole, expected) = Fixture::new(&config, 1).learn(batch());
                for count in [2, 3] {
                    let (learnt, gradient) = Fixture::new(&config, count).learn(batch());
                    let off = largest(&(&gradient - &expected)) / largest(&expected);
                    assert!(off < 1e-5, "{text}, {count} replicas: off by {off}");
                    for (found, expected) in [
                        (&learnt.losses.total, &whole.losses.total),
                        (&learnt.losses.sums, &whole.losses.sums),
                        (&learnt.carried, &whole.carried),
                        (&learnt.counts, &whole.counts),
                    ] {
                        let off = largest(&(found - expected)) / largest(expected);
                        assert!(off < 1e-5, "{text}, {count} replicas: off by {off}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_replicas_learn_repeats_to_the_bit() {
        let config = config("accumulate = 2");
        let run = || -> Vec<Vec<f32>> {
            let mut fixture = Fixture::new(&config, 3);
            let step = |_| {
                let (_, gradient) = fixture.learn(batch());
                let _guard = tch::no_grad_guard();
                // The replicas see the step through the memory that they share.
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
