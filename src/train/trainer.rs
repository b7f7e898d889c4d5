//! A network being trained: what one step does, and what a run consists of.

mod run;
mod together;

use super::calibration::Calibration;
use super::checkpoint::{Checkpoint, CheckpointError, State, newest};
use super::config::{ConfigError, TrainConfig};
use super::distributed::{Buckets, GroupError, World};
use super::guard::{Guard, Trouble};
use super::lessons::Lessons;
use super::loss::NAMES;
use super::optimizer::{Memory, Optimizer};
use super::start::{Start, StartError, first_weights};
use super::stopwatch::{Part, Stopwatch};
use super::teacher::TeacherError;
use super::window::{Averages, Window};
use crate::data::loader::{Batch, Loader, LoaderError, Position, Split};
use crate::model::Chessformer;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tch::{Device, Kind, Tensor};

/// Where a run's folder keeps its checkpoints.
pub(super) const CHECKPOINTS: &str = "checkpoints";

/// What a run is told besides its configuration.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Where checkpoints and metrics go.
    pub folder: PathBuf,
    /// Threads that decode samples.
    pub threads: usize,
    /// Stop (with a checkpoint) after so long; the run can go on later.
    pub time: Option<Duration>,
    /// Stop (with a checkpoint) after the step during which this becomes true.
    pub stop: Arc<AtomicBool>,
}

/// How far a run is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Steps taken.
    pub step: u64,
    /// Steps in all.
    pub steps: u64,
    /// Samples seen.
    pub samples: u64,
    /// Samples a second, averaged since the last report.
    pub samples_per_second: f64,
    /// Average policy loss since the last report.
    pub policy_loss: f64,
    /// Share of validation moves found, where this report follows a validation.
    pub validation_accuracy: Option<f64>,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Steps taken since the run began.
    pub step: u64,
    /// Samples seen since the run began.
    pub samples: u64,
    /// Whether all steps are done.
    pub finished: bool,
    /// The newest checkpoint.
    pub checkpoint: PathBuf,
}

/// Why training stopped.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There are no samples.
    #[error(transparent)]
    Loader(#[from] LoaderError),
    /// The network to learn from cannot be used.
    #[error(transparent)]
    Teacher(#[from] TeacherError),
    /// The weights to start from cannot be used.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The processes cannot train together any more.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The processes cannot share a batch.
    #[error("a batch of {batch} cannot be shared evenly by {size} processes: change `batch`")]
    Uneven {
        /// Samples of a batch.
        batch: usize,
        /// How many processes there are.
        size: usize,
    },
    /// A checkpoint cannot be written or read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The checkpoint belongs to another network.
    #[error(
        "the checkpoint in {0} is of another architecture: train into another folder, or restore the configuration"
    )]
    Architecture(PathBuf),
    /// Somebody else trains into the same folder.
    #[error(
        "another process is training into {0}: wait for it, or train into another folder with -o"
    )]
    Busy(PathBuf),
    /// Metrics cannot be written.
    #[error("cannot write {path}: {source}")]
    Metrics {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Processes that train together were configured differently.
    #[error("the first process was given another configuration: give all of them the same")]
    OtherConfiguration,
    /// Going back to the last checkpoint did not help.
    #[error(
        "step {step}: {trouble}, {times} times from the checkpoint of step {from}: \
         lower schedule.peak, or allow more guard.rollbacks"
    )]
    Unstable {
        /// The step at which it showed last.
        step: u64,
        /// What showed.
        trouble: Trouble,
        /// How often.
        times: u32,
        /// The step that each time began at.
        from: u64,
    },
}

/// A network being trained.
pub struct Trainer {
    config: TrainConfig,
    device: Device,
    model: Chessformer,
    /// f32 `[parameters]`.
    parameters: Tensor,
    /// The parameters as autograd sees them; they share their memory.
    leaves: Buckets,
    /// f32 `[parameters]`.
    average: Tensor,
    optimizer: Optimizer,
    world: Arc<World>,
    step: u64,
    samples: u64,
    /// Samples that the weights it began with had seen.
    earlier_samples: u64,
    seconds: f64,
    position: Position,
    window: Window,
    guard: Guard,
    /// Times the run has come back to the checkpoint it began at last.
    rollbacks: u32,
}

/// What a validation found.
struct Validation {
    averages: Averages,
    calibration: Map<String, Value>,
}

impl Trainer {
    /// Begins a run.
    ///
    /// # Errors
    /// [`TrainError`] if the configuration does not fit together, or names
    /// weights to start from that cannot be used.
    pub fn new(config: &TrainConfig, device: Device) -> Result<Trainer, TrainError> {
        Trainer::build(config, device, |model| first_weights(config, model))
    }

    fn build(
        config: &TrainConfig,
        device: Device,
        start: impl FnOnce(&Chessformer) -> Result<Start, StartError>,
    ) -> Result<Trainer, TrainError> {
        config.check()?;
        let model = Chessformer::new(&config.architecture()?, device).map_err(ConfigError::from)?;
        let start = start(&model)?;
        let parameters = start.weights.to_device(device);
        let world = Arc::new(World::alone());
        Ok(Trainer {
            leaves: Buckets::new(&parameters, model.parameters(), &world)?,
            world,
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
            position: Position::default(),
            window: Window::new(device),
            guard: Guard::default(),
            rollbacks: 0,
        })
    }

    /// Goes on from a checkpoint with `config`, which may differ from the
    /// checkpoint's in all but the architecture.
    ///
    /// # Errors
    /// [`TrainError`] if the configuration does not fit together or is of
    /// another network; `source` names where the checkpoint is from.
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
        trainer.restore(checkpoint);
        Ok(trainer)
    }

    /// Stands where the checkpoint stood.
    fn restore(&mut self, checkpoint: &Checkpoint) {
        let _guard = tch::no_grad_guard();
        self.parameters.copy_(&checkpoint.parameters);
        self.average.copy_(&checkpoint.average);
        self.stand(&checkpoint.state, &checkpoint.memory, &checkpoint.sums);
    }

    fn stand(&mut self, state: &State, memory: &Memory, sums: &Tensor) {
        self.optimizer.restore(state.optimizer_steps, memory);
        self.step = state.step;
        self.samples = state.samples;
        self.earlier_samples = state.earlier_samples;
        self.seconds = state.seconds;
        let (then, now) = (&state.config, &self.config);
        let same_samples = then.data.draws_like(&now.data);
        self.position = match same_samples {
            true => state.position,
            // Places in other data mean nothing: it is gone through from the start.
            false => Position {
                epoch: state.position.epoch + 1,
                ..Position::default()
            },
        };
        self.guard = match same_samples && then.loss == now.loss {
            true => state.guard.clone(),
            // Other losses are usual now.
            false => Guard::default(),
        };
        self.window = Window::resume(sums, state.window, self.device);
        self.rollbacks = state.rollbacks;
    }

    /// Begins a run in `options.folder`, or goes on with the one that is there.
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

    /// Steps taken so far.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Steps to train in all.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.config.steps
    }

    /// Where it computes.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// The network's structure.
    #[must_use]
    pub fn model(&self) -> &Chessformer {
        &self.model
    }

    /// Learns from one batch.
    fn learn(
        &mut self,
        lessons: &Lessons,
        batch: Batch,
        watch: &mut Stopwatch,
    ) -> Result<(), TrainError> {
        let (joint, next) = (batch.joint, batch.next);
        let lesson = lessons.prepare(batch)?;
        watch.mark(Part::Prepare);
        let own = lesson.carried.copy();
        self.world.sum(&lesson.carried, "weighing a batch")?;
        let losses = lessons.learn(&self.model, &self.leaves, &lesson, watch);
        let norm = self.descend()? / self.world.size() as f64;
        watch.mark(Part::Step);
        self.window
            .add(&losses, (&own, &lesson.counts), &norm, joint);
        self.step += 1;
        self.samples += joint as u64;
        self.position = next;
        Ok(())
    }

    /// Losses of the averaged weights over the validation games.
    fn validate(&self, threads: usize) -> Result<Validation, TrainError> {
        let _guard = tch::no_grad_guard();
        let mut window = Window::new(self.device);
        let mut calibration = Calibration::new(self.device);
        let lessons = Lessons::plain(&self.config, &self.model, self.device);
        let batches = Loader::sharing(
            &self.config.data,
            Split::Validation,
            self.config.batch,
            Position::default(),
            self.share(),
            threads,
        )?;
        for batch in batches {
            let batch = batch?;
            let joint = batch.joint;
            if batch.is_empty() {
                window.skip(joint);
            } else {
                let lesson = lessons.prepare(batch)?;
                let (outputs, losses) = lessons.measure(&self.model, &self.average, &lesson);
                calibration.add(&outputs, &lesson.targets);
                let carriers = (&lesson.carried, &lesson.counts);
                window.add(&losses, carriers, &losses.total, joint);
            }
            if window.samples() >= self.config.validation_samples {
                break;
            }
        }
        Ok(Validation {
            averages: window.close(&self.world)?.averages,
            calibration: calibration.finish(&self.world)?,
        })
    }

    /// Validates as a run does: each loss by name, where it had a target.
    ///
    /// # Errors
    /// [`TrainError`] if the data cannot be read.
    pub fn evaluate(&self, threads: usize) -> Result<Vec<(&'static str, Option<f64>)>, TrainError> {
        let validation = self.validate(threads)?;
        Ok(NAMES.into_iter().zip(validation.averages).collect())
    }

    /// Moves the parameters against their gradient and the average after them;
    /// returns the gradient's length.
    fn descend(&mut self) -> Result<Tensor, GroupError> {
        let _guard = tch::no_grad_guard();
        let gradient = self.leaves.gradient(&self.world)?;
        let rate = self.config.schedule.rate(self.step, self.config.steps);
        let norm = self.optimizer.step(&mut self.parameters, gradient, rate);
        self.leaves.zero();
        let share = self.config.average.share(self.step + 1);
        if share > 0.0 {
            let _ = self.average.lerp_(&self.parameters, share);
        }
        Ok(norm)
    }

    fn state(&self, window: (u64, usize)) -> State {
        State {
            config: self.config.clone(),
            step: self.step,
            samples: self.samples,
            earlier_samples: self.earlier_samples,
            seconds: self.seconds,
            position: self.position,
            optimizer_steps: self.optimizer.steps(),
            rollbacks: self.rollbacks,
            window,
            guard: self.guard.clone(),
        }
    }

    /// The run as it stands. All processes must ask for it together.
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
