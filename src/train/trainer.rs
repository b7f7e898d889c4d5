//! A network being trained: what one step does, and what a run consists of.

mod run;

use super::calibration::Calibration;
use super::checkpoint::{Checkpoint, CheckpointError, State, newest};
use super::config::{ConfigError, Precision, TrainConfig};
use super::guard::{Guard, Trouble};
use super::loss::{NAMES, losses};
use super::optimizer::Optimizer;
use super::stopwatch::{Part, Stopwatch};
use super::tensors::upload;
use super::window::{Averages, Window};
use crate::data::loader::{Batch, Loader, LoaderError, Position, Split};
use crate::model::{Chessformer, Weights};
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
    /// A checkpoint cannot be written or read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The checkpoint belongs to another network.
    #[error(
        "the checkpoint in {0} is of another architecture: train into another folder, or restore the configuration"
    )]
    Architecture(PathBuf),
    /// Metrics cannot be written.
    #[error("cannot write {path}: {source}")]
    Metrics {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
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
    parameters: Tensor,
    average: Tensor,
    optimizer: Optimizer,
    step: u64,
    samples: u64,
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
    /// Begins a run from fresh weights.
    ///
    /// # Errors
    /// [`ConfigError`] if the configuration does not fit together.
    pub fn new(config: &TrainConfig, device: Device) -> Result<Trainer, TrainError> {
        config.check()?;
        let model = Chessformer::new(&config.architecture()?, device).map_err(ConfigError::from)?;
        tch::manual_seed(config.seed);
        let parameters = model.initial_weights().to_device(device);
        Ok(Trainer {
            optimizer: Optimizer::new(
                &config.optimizer,
                &config.frozen,
                model.parameters(),
                (Kind::Float, device),
            ),
            config: config.clone(),
            device,
            average: parameters.copy(),
            parameters: parameters.set_requires_grad(true),
            model,
            step: 0,
            samples: 0,
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
        let mut trainer = Trainer::new(config, device)?;
        let state = &checkpoint.state;
        let same = state.config.architecture()? == config.architecture()?
            && checkpoint.parameters.size() == trainer.parameters.size();
        if !same {
            return Err(TrainError::Architecture(source.to_owned()));
        }
        trainer.restore(checkpoint);
        if state.config.data != config.data || state.config.loss != config.loss {
            // Other losses are usual now.
            trainer.guard = Guard::default();
        }
        Ok(trainer)
    }

    /// Stands where the checkpoint stood.
    fn restore(&mut self, checkpoint: &Checkpoint) {
        let (state, device) = (&checkpoint.state, self.device);
        let parameters = checkpoint.parameters.to_device(device);
        self.parameters = parameters.set_requires_grad(true);
        self.average = checkpoint.average.to_device(device);
        self.optimizer
            .restore(state.optimizer_steps, &checkpoint.memory);
        self.step = state.step;
        self.samples = state.samples;
        self.seconds = state.seconds;
        self.position = state.position;
        self.window = Window::resume(&checkpoint.sums, state.window, device);
        self.guard = state.guard.clone();
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
    fn learn(&mut self, batch: &Batch, watch: &mut Stopwatch) {
        let (rows, targets) = upload(batch, self.device);
        let losses = {
            let outputs = self.forward(&self.parameters, &rows);
            losses(&outputs, &targets, &self.config.loss)
        };
        watch.mark(Part::Forward);
        losses.total.backward();
        watch.mark(Part::Backward);
        let norm = self.descend();
        watch.mark(Part::Step);
        self.window.add(&losses, &norm, batch.len());
        self.step += 1;
        self.samples += batch.len() as u64;
        self.position = batch.next;
    }

    /// Losses of the averaged weights over the validation games.
    fn validate(&self, threads: usize) -> Result<Validation, TrainError> {
        let _guard = tch::no_grad_guard();
        let mut window = Window::new(self.device);
        let mut calibration = Calibration::new(self.device);
        let batches = Loader::new(
            &self.config.data,
            Split::Validation,
            self.config.batch,
            Position::default(),
            threads,
        )?;
        for batch in batches {
            let batch = batch?;
            let (rows, targets) = upload(&batch, self.device);
            let outputs = self.forward(&self.average, &rows);
            let losses = losses(&outputs, &targets, &self.config.loss);
            calibration.add(&outputs, &targets);
            window.add(&losses, &losses.total, batch.len());
            if window.samples() >= self.config.validation_samples {
                break;
            }
        }
        Ok(Validation {
            averages: window.close().averages,
            calibration: calibration.finish(),
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

    fn forward(&self, parameters: &Tensor, rows: &Tensor) -> crate::model::Outputs {
        let kind = match self.config.precision {
            Precision::F32 => Kind::Float,
            Precision::Bf16 => Kind::BFloat16,
        };
        let weights = Weights::from_flat(&parameters.to_kind(kind), self.model.parameters());
        let soft = self.config.loss.policy_soft > 0.0;
        self.model.forward(&weights, rows, soft)
    }

    /// Moves the parameters against their gradient and the average after them;
    /// returns the gradient's length.
    fn descend(&mut self) -> Tensor {
        let _guard = tch::no_grad_guard();
        let gradient = self.parameters.grad();
        let rate = self.config.schedule.rate(self.step, self.config.steps);
        let norm = self.optimizer.step(&mut self.parameters, &gradient, rate);
        self.parameters.zero_grad();
        // The first average would remember the random start for 1/(1 − decay) steps.
        let young = (self.step as f64 + 1.0) / (self.step as f64 + 10.0);
        let decay = self.config.average_decay.min(young);
        let _ = self.average.lerp_(&self.parameters.detach(), 1.0 - decay);
        norm
    }

    /// The run as it stands.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        let (sums, window) = self.window.state();
        Checkpoint {
            state: State {
                config: self.config.clone(),
                step: self.step,
                samples: self.samples,
                seconds: self.seconds,
                position: self.position,
                optimizer_steps: self.optimizer.steps(),
                rollbacks: self.rollbacks,
                window,
                guard: self.guard.clone(),
            },
            parameters: self.parameters.detach().copy(),
            average: self.average.copy(),
            memory: self.optimizer.memory(),
            sums,
        }
    }
}
