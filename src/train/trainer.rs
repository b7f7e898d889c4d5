//! The trainer: a run's state, training steps and checkpoints.

mod rank;
mod replicas;
mod run;
mod task;
mod traced_steps;
mod validation;

use super::checkpoint::{Checkpoint, State};
use super::checkpoint_folder::{CHECKPOINTS, newest};
use super::config::{ConfigError, Task, TrainConfig};
use super::distributed::{GroupError, World};
use super::error::TrainError;
use super::guard::Guard;
use super::harmony::Harmony;
use super::objective::{Objective, Term};
use super::optimizer::{Memory, Optimizer};
use super::parts::parts;
use super::start::{Start, StartError, first_weights};
use super::stopwatch::{Phase, Stopwatch};
use super::threads::Threads;
use super::window::Window;
use crate::data::loader::{BatchOf, Cursor};
use crate::network::Architecture;
use replicas::Replicas;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use task::with_objective;
use tch::{Device, Kind, Tensor};

/// Options of a run that are not part of its configuration.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The folder for checkpoints and metrics.
    pub folder: PathBuf,
    /// Number of threads that decode samples. On the CPU, this is also the number of threads that
    /// compute, each with its own replica of the network; see [`Trainer::run`].
    pub threads: usize,
    /// Time after which the run stops with a checkpoint, from which it can be resumed.
    pub time: Option<Duration>,
    /// Write a [trace](crate::torch::Trace) of ten steps to this file.
    pub trace: Option<PathBuf>,
    /// Set to true to stop with a checkpoint after the current step.
    pub stop: Arc<AtomicBool>,
}

/// The mean of each loss and accuracy with its name in the metrics, or `None` if no sample has the
/// target. Progress reports show the first entry as the loss.
pub type Measurements = Vec<(&'static str, Option<f64>)>;

/// Metrics of a validation.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Terms by name.
    pub terms: Measurements,
    /// Additional metrics of the objective, as JSON fields.
    pub diagnostics: serde_json::Map<String, serde_json::Value>,
}

/// Progress of a run.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Number of steps taken.
    pub step: u64,
    /// Total number of steps.
    pub steps: u64,
    /// Number of samples seen.
    pub samples: u64,
    /// Samples per second, averaged since the last metrics line.
    pub samples_per_second: f64,
    /// Averages since the last metrics line, or empty between two lines.
    pub trained: Measurements,
    /// Averages from the validation that has just ended, if any.
    pub validated: Option<Measurements>,
}

impl Progress {
    /// Describes the first of the trained losses, or returns `None` before the first one.
    pub fn loss(&self) -> Option<String> {
        let (name, loss) = self.trained.first()?;
        Some(format!("{name} loss {:.4}", loss.unwrap_or(f64::NAN)))
    }

    /// Returns the time that the remaining steps take at the present speed, if it is known.
    pub fn time_left(&self) -> Option<Duration> {
        let samples_per_step = self.samples as f64 / self.step as f64;
        let steps_left = self.steps.saturating_sub(self.step) as f64;
        Duration::try_from_secs_f64(steps_left * samples_per_step / self.samples_per_second).ok()
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Number of steps taken since the run started.
    pub step: u64,
    /// Number of samples seen since the run started.
    pub samples: u64,
    /// Whether all steps have been taken.
    pub finished: bool,
    /// The newest checkpoint.
    pub checkpoint: PathBuf,
}

/// A network being trained.
pub struct Trainer {
    config: TrainConfig,
    /// The device that computes.
    pub device: Device,
    model: Box<dyn Architecture>,
    task: Task,
    terms: Vec<Term>,
    /// The balance between groups of terms.
    harmony: Option<Harmony>,
    /// The parameters, f32 `[parameters]`.
    parameters: Tensor,
    /// The averaged parameters, f32 `[parameters]`.
    average: Tensor,
    optimizer: Optimizer,
    world: Arc<World>,
    /// The number of steps taken so far.
    pub step: u64,
    samples: u64,
    /// Number of samples that the initial weights had seen.
    earlier_samples: u64,
    seconds: f64,
    cursor: Cursor,
    window: Window,
    guard: Guard,
    /// Number of rollbacks to the last checkpoint.
    rollbacks: u32,
    /// The configuration in the checkpoint from which the run was resumed.
    resumed: Option<TrainConfig>,
}

impl Trainer {
    /// Starts a run.
    ///
    /// # Errors
    /// [`TrainError`] if the configuration is inconsistent, or if it names initial weights that
    /// cannot be used.
    pub fn new(config: &TrainConfig, device: Device) -> Result<Trainer, TrainError> {
        Trainer::build(config, device, |model| first_weights(config, model))
    }

    fn build(
        config: &TrainConfig,
        device: Device,
        start: impl FnOnce(&dyn Architecture) -> Result<Start, StartError>,
    ) -> Result<Trainer, TrainError> {
        config.check()?;
        let model = config
            .architecture()?
            .build(device)
            .map_err(ConfigError::from)?;
        let start = start(&*model)?;
        let task = Task::of(&model.config());
        let terms = with_objective!(task, O => O::terms(config));
        let balanced = with_objective!(task, O => O::balanced(config));
        let parameters = start.weights.to_device(device);
        Ok(Trainer {
            world: Arc::new(World::alone()),
            optimizer: Optimizer::new(
                &config.optimizer,
                &config.frozen,
                model.parameters(),
                (Kind::Float, device),
            ),
            config: config.clone(),
            device,
            average: parameters.copy(),
            parameters,
            model,
            step: 0,
            samples: 0,
            earlier_samples: start.samples,
            seconds: 0.0,
            cursor: Cursor::default(),
            window: Window::new(terms.len(), device),
            harmony: Harmony::new(&balanced, &terms, device),
            task,
            terms,
            guard: Guard::default(),
            rollbacks: 0,
            resumed: None,
        })
    }

    /// Resumes from a checkpoint with `config`, which may differ from the checkpoint's
    /// configuration in everything but the architecture. `source` names the checkpoint in errors.
    ///
    /// # Errors
    /// [`TrainError`] if the configuration is inconsistent or specifies another network.
    pub fn resume(
        config: &TrainConfig,
        checkpoint: &Checkpoint,
        source: &Path,
        device: Device,
    ) -> Result<Trainer, TrainError> {
        let state = &checkpoint.state;
        let other = || TrainError::Architecture(source.to_owned());
        if state.config.architecture()? != config.architecture()? {
            return Err(other());
        }
        let mut trainer = Trainer::follower(config, device)?;
        if checkpoint.parameters.size() != trainer.parameters.size() {
            return Err(other());
        }
        trainer.load_checkpoint(checkpoint);
        trainer.resumed = Some(state.config.clone());
        Ok(trainer)
    }

    /// Loads a checkpoint's weights and state.
    fn load_checkpoint(&mut self, checkpoint: &Checkpoint) {
        let _guard = tch::no_grad_guard();
        self.parameters.copy_(&checkpoint.parameters);
        self.average.copy_(&checkpoint.average);
        self.load_state(&checkpoint.state, &checkpoint.memory, &checkpoint.sums);
    }

    /// Loads everything but the weights from a checkpoint.
    fn load_state(&mut self, state: &State, memory: &Memory, sums: &Tensor) {
        self.optimizer.restore(state.optimizer_steps, memory);
        self.step = state.step;
        self.samples = state.samples;
        self.earlier_samples = state.earlier_samples;
        self.seconds = state.seconds;
        let (then, now) = (&state.config, &self.config);
        let same_samples = then.data.draws_like(&now.data);
        self.cursor = match same_samples {
            true => state.cursor,
            // A cursor is meaningless for other data, so start a new epoch.
            false => Cursor {
                epoch: state.cursor.epoch + 1,
                ..Cursor::default()
            },
        };
        let same_losses = then.loss == now.loss && then.unroll == now.unroll;
        self.guard = match same_samples && same_losses {
            true => state.guard.clone(),
            // The running average is of a different loss.
            false => Guard::default(),
        };
        if let Some(harmony) = &mut self.harmony {
            harmony.restore(&state.harmony);
        }
        self.window = self.window.resume(sums, state.window);
        self.rollbacks = state.rollbacks;
    }

    /// Starts a run in `options.folder`, or resumes the existing one.
    ///
    /// # Errors
    /// As [`Trainer::new`] and [`Trainer::resume`].
    pub fn open(
        config: &TrainConfig,
        options: &RunOptions,
        device: Device,
    ) -> Result<Trainer, TrainError> {
        let folder = options.folder.join(CHECKPOINTS);
        match newest(&folder)? {
            Some(checkpoint) => Trainer::resume(config, &checkpoint, &folder, device),
            None => Trainer::new(config, device),
        }
    }

    /// Returns the configuration in the checkpoint from which this run was resumed.
    pub fn resumed(&self) -> Option<&TrainConfig> {
        self.resumed.as_ref()
    }

    /// Returns the total number of steps.
    pub fn steps(&self) -> u64 {
        self.config.steps
    }

    /// Returns the network's structure.
    pub fn model(&self) -> &dyn Architecture {
        &*self.model
    }

    /// Returns the threads that compute: `wanted` threads on the CPU. On a GPU, and in each of
    /// several processes, which sum gradients during backward, only the caller's thread computes.
    fn threads(&self, wanted: usize) -> Result<Threads, TrainError> {
        let is_cpu = self.device == Device::Cpu;
        Ok(match is_cpu && self.world.is_alone() {
            true => Threads::new(wanted.min(self.config.batch))?,
            false => Threads::one(),
        })
    }

    /// Takes one training step.
    fn train_step<O: Objective>(
        &mut self,
        replicas: &mut Replicas<O>,
        batch: BatchOf<O::Examples>,
        watch: &mut Stopwatch,
    ) -> Result<(), TrainError> {
        let (global_batch, next) = (batch.global_batch, batch.next);
        replicas.begin(self.step, &self.average);
        if let Some(harmony) = &self.harmony {
            replicas.balance(&harmony.factors());
        }
        let losses = replicas.backward(batch, &self.world, watch)?;
        let norm = self.optimizer_step(replicas)? / self.world.size as f64;
        watch.mark(Phase::Step);
        let targets = (&losses.target_weight, &losses.target_count);
        if let Some(harmony) = &mut self.harmony {
            harmony.learn(&losses.losses.sums, targets.0, &self.world)?;
        }
        self.window.add(&losses.losses, targets, &norm);
        self.window.count(global_batch);
        self.step += 1;
        self.samples += global_batch as u64;
        self.cursor = next;
        Ok(())
    }

    /// Updates the parameters and their average, and returns the gradient's norm.
    fn optimizer_step<O: Objective>(
        &mut self,
        replicas: &mut Replicas<O>,
    ) -> Result<Tensor, GroupError> {
        let _guard = tch::no_grad_guard();
        let gradient = replicas.gradient(&self.world)?;
        let rate = self.config.schedule.rate(self.step, self.config.steps);
        let threads = &replicas.threads;
        let norm = self
            .optimizer
            .step(&mut self.parameters, &gradient, rate, threads);
        let share = self.config.average.share(self.step + 1);
        if share > 0.0 {
            let items = parts(&self.average)
                .map(|part| (part.of(&self.average), part.of(&self.parameters)));
            threads.map(items.collect(), |(mut average, parameters)| {
                let _ = average.lerp_(&parameters, share);
            });
        }
        replicas.zero();
        Ok(norm)
    }

    fn state(&self, window: (u64, usize)) -> State {
        State {
            config: self.config.clone(),
            step: self.step,
            samples: self.samples,
            earlier_samples: self.earlier_samples,
            seconds: self.seconds,
            cursor: self.cursor,
            optimizer_steps: self.optimizer.steps,
            rollbacks: self.rollbacks,
            window,
            guard: self.guard.clone(),
            harmony: self
                .harmony
                .as_ref()
                .map(Harmony::means)
                .unwrap_or_default(),
        }
    }

    /// Returns a checkpoint of the run. All processes must call it together.
    ///
    /// # Errors
    /// [`GroupError`] if another process is gone.
    pub fn checkpoint(&self) -> Result<Checkpoint, GroupError> {
        let (sums, window) = self.window.state(&self.world)?;
        Ok(Checkpoint {
            state: self.state(window),
            parameters: self.parameters.copy(),
            average: self.average.copy(),
            memory: self.optimizer.memory(),
            sums,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_speed() {
        let progress = Progress {
            step: 100,
            steps: 500,
            samples: 12_800,
            samples_per_second: 256.0,
            trained: Measurements::default(),
            validated: None,
        };
        assert_eq!(progress.time_left(), Some(Duration::from_secs(200)));
        let unknown = Progress {
            samples_per_second: 0.0,
            ..progress
        };
        assert_eq!(unknown.time_left(), None);
    }
}
