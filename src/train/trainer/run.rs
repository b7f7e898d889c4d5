//! The loop: step after step, with lines, validations and checkpoints when they
//! are due, and back to the last checkpoint when the loss goes astray.

use super::{Progress, RunOptions, Summary, TrainError, Trainer};
use crate::data::loader::{Loader, Split};
use crate::train::guard::Trouble;
use crate::train::metrics::named;
use crate::train::recorder::Recorder;
use crate::train::stopwatch::{Part, Stopwatch};
use crate::train::window::Measured;
use serde_json::{Map, Value, json};
use std::sync::atomic::Ordering;
use std::time::Instant;
use tch::Tensor;

/// Where the share of moves found stands among the losses.
const POLICY_ACCURACY: usize = 10;

/// A call of [`Trainer::run`].
struct Session<'a> {
    options: &'a RunOptions,
    recorder: Recorder,
    report: &'a mut dyn FnMut(&Progress),
    started: Instant,
    /// Seconds of the sessions before.
    earlier: f64,
}

impl Session<'_> {
    /// Whether the run is to stop here and to go on another day.
    fn is_over(&self) -> bool {
        let time = self.options.time;
        self.options.stop.load(Ordering::Relaxed)
            || time.is_some_and(|time| self.started.elapsed() >= time)
    }
}

impl Trainer {
    /// Trains until all steps are done, the time is up or a stop is asked for.
    /// `report` is called every [`log_every`](super::TrainConfig::log_every)
    /// steps.
    ///
    /// # Errors
    /// [`TrainError`]; the last checkpoint then stands.
    pub fn run(
        &mut self,
        options: &RunOptions,
        report: &mut dyn FnMut(&Progress),
    ) -> Result<Summary, TrainError> {
        let recorder = Recorder::open(&options.folder, &self.config, self.step)?;
        let mut session = Session {
            options,
            recorder,
            report,
            started: Instant::now(),
            earlier: self.seconds,
        };
        if self.step == 0 {
            // There must be something to go back to.
            session.recorder.checkpoint(&self.checkpoint())?;
        }
        while let Err(trouble) = self.advance(&mut session)? {
            self.roll_back(&mut session, trouble)?;
        }
        Ok(Summary {
            step: self.step,
            samples: self.samples,
            finished: self.step >= self.config.steps,
            checkpoint: session.recorder.last(&self.checkpoint())?,
        })
    }

    /// Trains on until the session is over or the loss is not to be trusted.
    fn advance(&mut self, session: &mut Session) -> Result<Result<(), Trouble>, TrainError> {
        let mut batches = Loader::new(
            &self.config.data,
            Split::Train,
            self.config.batch,
            self.position,
            session.options.threads,
        )?;
        let mut watch = Stopwatch::new(self.device);
        while self.step < self.config.steps {
            watch.begin();
            let Some(batch) = batches.next() else { break };
            let batch = batch?;
            watch.mark(Part::Data);
            self.learn(&batch, &mut watch);
            self.seconds = session.earlier + session.started.elapsed().as_secs_f64();

            let due =
                |every: u64| self.step.is_multiple_of(every) || self.step == self.config.steps;
            let validates = due(self.config.validate_every);
            if due(self.config.log_every) || validates {
                let measured = self.window.close();
                let judged = self
                    .guard
                    .judge(measured.loss, measured.norm, &self.config.guard);
                if let Err(trouble) = judged {
                    return Ok(Err(trouble));
                }
                self.log(session, &measured, &mut watch, validates)?;
            }
            let is_over = session.is_over();
            let is_due =
                self.step.is_multiple_of(self.config.checkpoint_every) && !self.guard.is_alarmed();
            if is_over || is_due || self.step == self.config.steps {
                if !self.is_finite() {
                    return Ok(Err(Trouble::NotFinite));
                }
                self.rollbacks = 0;
            }
            if is_over {
                break;
            }
            if is_due {
                session.recorder.checkpoint(&self.checkpoint())?;
            }
        }
        Ok(Ok(()))
    }

    /// Writes the lines of a step and tells the caller.
    fn log(
        &mut self,
        session: &mut Session,
        measured: &Measured,
        watch: &mut Stopwatch,
        validates: bool,
    ) -> Result<(), TrainError> {
        let fields = self.fields(measured, watch);
        session.recorder.line("train", self.step, fields);
        let mut validation_accuracy = None;
        if validates {
            let started = Instant::now();
            let validation = self.validate(session.options.threads)?;
            let mut fields = named(&validation.averages);
            let calibration = Value::Object(validation.calibration);
            fields.insert("calibration".to_owned(), calibration);
            session.recorder.line("validation", self.step, fields);
            validation_accuracy = validation.averages[POLICY_ACCURACY];
            self.window.pause(started.elapsed());
        }
        (session.report)(&Progress {
            step: self.step,
            steps: self.config.steps,
            samples: self.samples,
            samples_per_second: measured.speed,
            policy_loss: measured.averages[0].unwrap_or(f64::NAN),
            validation_accuracy,
        });
        Ok(())
    }

    /// A line of the metrics.
    fn fields(&self, measured: &Measured, watch: &mut Stopwatch) -> Map<String, Value> {
        let parts = watch.close(measured.seconds, measured.steps);
        let rate = self.config.schedule.rate(self.step - 1, self.config.steps);
        let carried: Map<String, Value> =
            named(&measured.carried.iter().copied().map(Some).collect());
        let memory = memory_stats::memory_stats().map(|memory| memory.physical_mem);
        let more = json!({
            "loss": measured.loss,
            "carried": carried,
            "samples": self.samples,
            "rate": rate,
            "gradient_norm": measured.norm,
            "samples_per_second": measured.speed,
            "seconds": self.seconds,
            "time": parts,
            "memory": memory,
        });
        let mut fields = named(&measured.averages);
        if let Value::Object(more) = more {
            fields.extend(more);
        }
        fields
    }

    /// Whether weights and losses are numbers, so that a checkpoint is worth
    /// its place.
    fn is_finite(&self) -> bool {
        let _guard = tch::no_grad_guard();
        let (loss, norm) = self.window.loss_and_norm();
        let all_finite = |tensor: &Tensor| tensor.isfinite().all().int64_value(&[]) != 0;
        (loss + norm).is_finite() && all_finite(&self.parameters)
    }

    /// Goes back to the last checkpoint, and on from there with the batches
    /// that follow the bad ones.
    fn roll_back(&mut self, session: &mut Session, trouble: Trouble) -> Result<(), TrainError> {
        let checkpoint = session.recorder.newest()?;
        let from = checkpoint.state.step;
        let (step, position) = (self.step, self.position);
        if checkpoint.state.rollbacks >= self.config.guard.rollbacks {
            return Err(TrainError::Unstable {
                step,
                trouble,
                times: checkpoint.state.rollbacks + 1,
                from,
            });
        }
        tracing::warn!(
            "step {step}: {trouble}; back to step {from}, and on with the batches after these"
        );
        self.restore(&checkpoint);
        self.position = position;
        self.rollbacks += 1;
        session.recorder.rewind(&self.checkpoint())?;
        let event = json!({ "rolled_back_from": step, "reason": trouble.to_string() });
        if let Value::Object(event) = event {
            session.recorder.line("event", from, event);
        }
        Ok(())
    }
}
