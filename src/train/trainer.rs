//! The loop that makes a network.

use super::checkpoint::{self, Checkpoint, CheckpointError, State};
use super::config::{ConfigError, TrainConfig};
use super::lessons::{Lesson, Lessons};
use super::loss::{Losses, NAMES, POLICY_ACCURACY};
use super::metrics::{Averages, Metrics};
use super::optimizer::Optimizer;
use super::plot::{PlotError, plot};
use super::start::{StartError, first_weights};
use super::teacher::TeacherError;
use crate::data::loader::{Loader, LoaderError, Position, Split};
use crate::model::Chessformer;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tch::{Device, Kind, Tensor};

/// Where a run's folder keeps its checkpoints.
pub(super) const CHECKPOINTS: &str = "checkpoints";

const METRICS: &str = "metrics.jsonl";
const PICTURE: &str = "metrics.svg";

/// What a run is told besides its configuration.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Where checkpoints, metrics and picture go.
    pub folder: PathBuf,
    /// Threads that decode samples.
    pub threads: usize,
    /// Stop (with a checkpoint) after so long; the run can go on later.
    pub time: Option<Duration>,
}

/// How far a run is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Steps taken.
    pub step: u64,
    /// Steps in all.
    pub steps: u64,
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
    /// The picture cannot be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// The loss is no number any more.
    #[error(
        "the loss is no longer finite at step {0}: lower schedule.peak, and go on from the last checkpoint"
    )]
    NotFinite(u64),
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
        weights: impl FnOnce(&Chessformer) -> Result<Tensor, StartError>,
    ) -> Result<Trainer, TrainError> {
        config.check()?;
        let model = Chessformer::new(&config.architecture()?, device).map_err(ConfigError::from)?;
        let parameters = weights(&model)?.to_device(device);
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
        let mut trainer = Trainer::build(config, device, |_| Ok(checkpoint.parameters.copy()))?;
        let state = &checkpoint.state;
        let same = state.config.architecture()? == config.architecture()?
            && checkpoint.parameters.size() == [trainer.model.size().parameters];
        if !same {
            return Err(TrainError::Architecture(source.to_owned()));
        }
        trainer.average = checkpoint.average.to_device(device);
        let optimizer = &mut trainer.optimizer;
        optimizer.restore(state.optimizer_steps, &checkpoint.memory);
        trainer.step = state.step;
        trainer.samples = state.samples;
        trainer.seconds = state.seconds;
        trainer.position = state.position;
        Ok(trainer)
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
        if checkpoint::exists(&folder)? {
            let checkpoint = Checkpoint::read(&folder)?;
            Trainer::resume(config, &checkpoint, &folder, device)
        } else {
            Trainer::new(config, device)
        }
    }

    /// Steps taken so far.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The network's structure.
    #[must_use]
    pub fn model(&self) -> &Chessformer {
        &self.model
    }

    /// Trains until all steps are done or the time is up. `report` is called
    /// every [`TrainConfig::log_every`] steps.
    ///
    /// # Errors
    /// [`TrainError`]; the last checkpoint then stands.
    pub fn run(
        &mut self,
        options: &RunOptions,
        report: &mut dyn FnMut(&Progress),
    ) -> Result<Summary, TrainError> {
        let path = options.folder.join(METRICS);
        let unwritable = |source| TrainError::Metrics {
            path: path.clone(),
            source,
        };
        std::fs::create_dir_all(&options.folder).map_err(unwritable)?;
        let mut metrics = Metrics::open(&path, self.step).map_err(unwritable)?;
        let started = Instant::now();
        let earlier = self.seconds;
        let mut window = Window::new(self.device);
        let lessons = Lessons::new(&self.config, &self.model, self.device)?;
        let mut batches = Loader::new(
            &self.config.data,
            Split::Train,
            self.config.batch,
            self.position,
            options.threads,
        )?;
        while self.step < self.config.steps {
            let Some(batch) = batches.next() else { break };
            let batch = batch?;
            let (count, next) = (batch.len(), batch.next);
            let lesson = lessons.prepare(batch)?;
            let losses = lessons.learn(&self.model, &self.parameters, &lesson);
            let norm = self.descend();
            window.add(&losses, &lesson, &norm, count);
            self.step += 1;
            self.samples += count as u64;
            self.position = next;
            self.seconds = earlier + started.elapsed().as_secs_f64();

            let due =
                |every: u64| self.step.is_multiple_of(every) || self.step == self.config.steps;
            let validation = if due(self.config.validate_every) {
                Some(self.validate(options.threads)?)
            } else {
                None
            };
            if let Some(validation) = &validation {
                let written = metrics.write("validation", self.step, validation, &[]);
                written.map_err(unwritable)?;
            }
            if due(self.config.log_every) || validation.is_some() {
                let report_of = window.close(self.step)?;
                let rate = self.config.schedule.rate(self.step - 1, self.config.steps);
                let own = [
                    ("samples", self.samples as f64),
                    ("rate", rate),
                    ("gradient_norm", report_of.norm),
                    ("samples_per_second", report_of.speed),
                    ("seconds", self.seconds),
                ];
                let more: Vec<_> = own.into_iter().chain(report_of.carriers).collect();
                let written = metrics.write("train", self.step, &report_of.averages, &more);
                written.map_err(unwritable)?;
                report(&Progress {
                    step: self.step,
                    steps: self.config.steps,
                    samples_per_second: report_of.speed,
                    policy_loss: report_of.averages[0].unwrap_or(f64::NAN),
                    validation_accuracy: validation.and_then(|averages| averages[POLICY_ACCURACY]),
                });
            }
            let time_is_up = options.time.is_some_and(|time| started.elapsed() >= time);
            if time_is_up || due(self.config.checkpoint_every) {
                window.check(self.step)?;
                self.checkpoint().write(&options.folder.join(CHECKPOINTS))?;
            }
            if time_is_up {
                break;
            }
        }
        plot(&path, &options.folder.join(PICTURE))?;
        Ok(Summary {
            step: self.step,
            samples: self.samples,
            finished: self.step >= self.config.steps,
            checkpoint: self.checkpoint().write(&options.folder.join(CHECKPOINTS))?,
        })
    }

    /// Averages over the validation games of the losses of the averaged
    /// weights, in the order of [`NAMES`].
    fn validate(&self, threads: usize) -> Result<Averages, TrainError> {
        let _guard = tch::no_grad_guard();
        let mut window = Window::new(self.device);
        let lessons = Lessons::plain(&self.config, &self.model, self.device);
        let batches = Loader::new(
            &self.config.data,
            Split::Validation,
            self.config.batch,
            Position::default(),
            threads,
        )?;
        for batch in batches {
            let batch = batch?;
            let count = batch.len();
            let lesson = lessons.prepare(batch)?;
            let losses = lessons.measure(&self.model, &self.average, &lesson);
            window.add(&losses, &lesson, &losses.total, count);
            if window.samples >= self.config.validation_samples {
                break;
            }
        }
        Ok(window.close(self.step)?.averages)
    }

    /// Validates as a run does: each loss by name, where it had a target.
    ///
    /// # Errors
    /// [`TrainError`] if the data cannot be read.
    pub fn evaluate(&self, threads: usize) -> Result<Vec<(&'static str, Option<f64>)>, TrainError> {
        Ok(NAMES.into_iter().zip(self.validate(threads)?).collect())
    }

    /// Moves the parameters against their gradient and the average after them;
    /// returns the gradient's length.
    fn descend(&mut self) -> Tensor {
        let _guard = tch::no_grad_guard();
        let gradient = self.parameters.grad();
        let rate = self.config.schedule.rate(self.step, self.config.steps);
        let norm = self.optimizer.step(&mut self.parameters, &gradient, rate);
        self.parameters.zero_grad();
        let share = self.config.average.share(self.step + 1);
        if share > 0.0 {
            let _ = self.average.lerp_(&self.parameters.detach(), share);
        }
        norm
    }

    /// The run as it stands.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            state: State {
                config: self.config.clone(),
                step: self.step,
                samples: self.samples,
                seconds: self.seconds,
                position: self.position,
                optimizer_steps: self.optimizer.steps(),
            },
            parameters: self.parameters.detach().copy(),
            average: self.average.copy(),
            memory: self.optimizer.memory(),
        }
    }
}

/// The targets whose carriers are counted in the metrics, by the names of their
/// losses and of the counts.
const CARRIERS: [(&str, &str); 6] = [
    ("policy", "policy_carried"),
    ("policy_soft", "policy_soft_carried"),
    ("result", "result_carried"),
    ("q", "q_carried"),
    ("short_term", "short_term_carried"),
    ("moves_left", "moves_left_carried"),
];

/// Sums on the device since the last report, so that steps wait for nothing.
struct Window {
    sums: Tensor,
    carried: Tensor,
    counts: Tensor,
    norm: Tensor,
    steps: u64,
    samples: usize,
    started: Instant,
}

/// What a window saw.
struct WindowReport {
    averages: Averages,
    /// Share of the samples that carried a target, by the count's name.
    carriers: Vec<(&'static str, f64)>,
    norm: f64,
    speed: f64,
}

impl Window {
    fn new(device: Device) -> Window {
        let zeros = |count: usize| Tensor::zeros([count as i64], (Kind::Float, device));
        Window {
            sums: zeros(NAMES.len()),
            carried: zeros(NAMES.len()),
            counts: zeros(NAMES.len()),
            norm: zeros(1),
            steps: 0,
            samples: 0,
            started: Instant::now(),
        }
    }

    fn add(&mut self, losses: &Losses, lesson: &Lesson, norm: &Tensor, samples: usize) {
        let _guard = tch::no_grad_guard();
        self.sums += &losses.sums;
        self.carried += &lesson.carried;
        self.counts += &lesson.counts;
        self.norm += norm;
        self.steps += 1;
        self.samples += samples;
    }

    /// Whether all that was seen is finite.
    fn check(&self, step: u64) -> Result<(), TrainError> {
        let sum = self.sums.sum(Kind::Float) + &self.norm;
        if sum.isfinite().all().int64_value(&[]) == 0 {
            return Err(TrainError::NotFinite(step));
        }
        Ok(())
    }

    /// Fetches the averages and begins anew.
    fn close(&mut self, step: u64) -> Result<WindowReport, TrainError> {
        self.check(step)?;
        let fetch = |tensor: &Tensor| -> Vec<f32> {
            Vec::try_from(tensor.to_device(Device::Cpu)).expect("a vector of floats")
        };
        let (sums, carried) = (fetch(&self.sums), fetch(&self.carried));
        let averages = sums.iter().zip(&carried);
        let counts = fetch(&self.counts);
        let share = |(loss, name): (&str, &'static str)| {
            let place = NAMES.iter().position(|known| *known == loss)?;
            Some((name, f64::from(counts[place]) / self.samples.max(1) as f64))
        };
        let report = WindowReport {
            averages: averages
                .map(|(&sum, &carried)| (carried > 0.0).then(|| f64::from(sum / carried)))
                .collect(),
            carriers: CARRIERS.into_iter().filter_map(share).collect(),
            norm: f64::from(fetch(&self.norm)[0]) / self.steps.max(1) as f64,
            speed: self.samples as f64 / self.started.elapsed().as_secs_f64().max(1e-9),
        };
        *self = Window::new(self.sums.device());
        Ok(report)
    }
}
