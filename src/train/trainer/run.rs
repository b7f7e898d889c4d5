//! The training loop: takes steps, validates, and writes metrics and checkpoints at the configured
//! intervals, and rolls back to the last checkpoint if training becomes unstable.

use super::replicas::Replicas;
use super::task::with_objective;
use super::traced_steps::TracedSteps;
use super::{Measurements, Progress, RunOptions, Summary, Trainer};
use crate::data::loader::{Loader, LoaderError, Split};
use crate::train::checkpoint::{Checkpoint, CheckpointError};
use crate::train::checkpoint_folder::CHECKPOINTS;
use crate::train::config::Interval;
use crate::train::distributed::{Agreement, GroupError};
use crate::train::error::TrainError;
use crate::train::guard::Instability;
use crate::train::metrics::named;
use crate::train::objective::Objective;
use crate::train::recorder::Recorder;
use crate::train::stopwatch::{Phase, Stopwatch};
use crate::train::window::Measured;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tch::Kind;

/// Longest time between two progress reports, as far as steps are shorter.
const BETWEEN_REPORTS: Duration = Duration::from_secs(5);

/// The state of one call to [`Trainer::run`].
struct Session<'a, O> {
    options: &'a RunOptions,
    /// Present only in the first process.
    recorder: Option<Recorder>,
    agreement: Agreement<'a>,
    replicas: Replicas<O>,
    traced: TracedSteps,
    /// Set to false once a validation has found no games.
    validates: bool,
    report: &'a mut dyn FnMut(&Progress),
    /// Time of the last call of `report`.
    reported: Instant,
    /// Time of the last checkpoint, or of the last attempt to write one.
    saved: Instant,
    started: Instant,
    /// Seconds of training in earlier sessions.
    earlier: f64,
}

impl<O> Session<'_, O> {
    /// Returns whether this process requests to stop after this step.
    fn is_over(&self) -> bool {
        let time = self.options.time;
        self.options.stop.load(Ordering::Relaxed)
            || time.is_some_and(|time| self.started.elapsed() >= time)
    }

    fn line(&mut self, split: &str, step: u64, fields: Map<String, Value>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.line(split, step, fields);
        }
    }

    fn write(&mut self, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        match &mut self.recorder {
            Some(recorder) => recorder.checkpoint(checkpoint),
            None => Ok(()),
        }
    }
}

impl Trainer {
    /// Trains until all steps are done, the time is up or a stop is requested. If one process
    /// stops, all processes stop. `report` is called every
    /// [`log_every`](super::TrainConfig::log_every) steps, after each validation, and whenever
    /// neither has happened for a few seconds.
    ///
    /// If a single process trains on the CPU, each of [`RunOptions::threads`] threads has a replica
    /// of the network, which computes a part of each batch. A run is then reproducible bit for bit
    /// with the same number of threads, and up to rounding with a different number.
    ///
    /// # Errors
    /// [`TrainError`]; the last checkpoint is kept.
    pub fn run(
        &mut self,
        options: &RunOptions,
        report: &mut dyn FnMut(&Progress),
    ) -> Result<Summary, TrainError> {
        self.config.check_keys()?;
        with_objective!(self.task, O => self.run_with::<O>(options, report))
    }

    /// Implements [`Trainer::run`] for this objective.
    fn run_with<O: Objective>(
        &mut self,
        options: &RunOptions,
        report: &mut dyn FnMut(&Progress),
    ) -> Result<Summary, TrainError> {
        let world = Arc::clone(&self.world);
        let started = Instant::now();
        let mut session = Session {
            options,
            recorder: None,
            agreement: Agreement::new(&world),
            replicas: Replicas::<O>::new(
                &self.config,
                &self.parameters,
                &world,
                self.device,
                self.threads(options.threads)?,
            )?,
            traced: TracedSteps::new(options.trace.clone()),
            validates: true,
            report,
            reported: started,
            saved: started,
            started,
            earlier: self.seconds,
        };
        let outcome = self.train(&mut session);
        if outcome.is_err() {
            world.abort();
        }
        outcome
    }

    fn train<O: Objective>(&mut self, session: &mut Session<O>) -> Result<Summary, TrainError> {
        // The data is opened first, so that a missing shard leaves no folder behind.
        let mut batches = self.batches(session)?;
        if self.world.is_first() {
            let recorder = Recorder::open(&session.options.folder, &self.config, self.step);
            session.recorder = Some(recorder?);
        }
        while let Some(instability) = self.advance(session, batches)? {
            self.roll_back(session, instability)?;
            batches = self.batches(session)?;
        }
        session.traced.finish().map_err(TrainError::Trace)?;
        if self.step < self.config.steps && !self.is_sound(self.loss_so_far()?) {
            // The run stopped during a loss spike and must resume from before it.
            if let Some(recorder) = &session.recorder {
                self.load_checkpoint(&recorder.newest()?);
            }
            self.take_over_state()?;
        }
        let last = self.checkpoint()?;
        let checkpoint = match &mut session.recorder {
            Some(recorder) => recorder.last(&last)?,
            None => session.options.folder.join(CHECKPOINTS),
        };
        self.world.barrier("writing the last checkpoint")?;
        Ok(Summary {
            step: self.step,
            samples: self.samples,
            finished: self.step >= self.config.steps,
            checkpoint,
        })
    }

    /// Starts preparing the batches that follow the cursor.
    fn batches<O: Objective>(
        &self,
        session: &Session<O>,
    ) -> Result<Loader<O::Examples>, TrainError> {
        Ok(Loader::for_rank(
            session.replicas.examples(&self.config),
            &self.config.data,
            Split::Train,
            self.config.batch,
            self.cursor,
            self.shard(),
            session.options.threads,
        )?)
    }

    /// Trains until the session is over or training becomes unstable. Returns the instability, if
    /// any.
    fn advance<O: Objective>(
        &mut self,
        session: &mut Session<O>,
        mut batches: Loader<O::Examples>,
    ) -> Result<Option<Instability>, TrainError> {
        if self.step == 0 {
            // The first rollback needs a checkpoint.
            session.write(&self.checkpoint()?)?;
        }
        let mut watch = Stopwatch::new(self.device);
        while self.step < self.config.steps {
            session.traced.before_step().map_err(TrainError::Trace)?;
            watch.begin();
            let Some(batch) = batches.next() else { break };
            let batch = batch?;
            watch.mark(Phase::Data);
            self.train_step(&mut session.replicas, batch, &mut watch)?;
            self.seconds = session.earlier + session.started.elapsed().as_secs_f64();

            let due =
                |every: u64| self.step.is_multiple_of(every) || self.step == self.config.steps;
            let validates = due(self.config.validate_every);
            if due(self.config.log_every) || validates {
                let measured = self.window.close(&self.world)?;
                let judged = self
                    .guard
                    .judge(measured.loss, measured.norm, &self.config.guard);
                if let Err(instability) = judged {
                    return Ok(Some(instability));
                }
                self.log(session, &measured, &mut watch, validates)?;
            } else if session.reported.elapsed() >= BETWEEN_REPORTS {
                self.report(session, self.window.speed(), Measurements::new(), None);
            }
            let wishes = [session.is_over(), self.is_checkpoint_late(session)];
            let [is_over, is_late] = session.agreement.ask(wishes)?;
            let is_due = is_late || self.is_checkpoint_due();
            if is_over || is_due || self.step == self.config.steps {
                let loss = self.loss_so_far()?;
                if !loss.is_finite() {
                    return Ok(Some(Instability::NotFinite));
                }
                let is_sound = self.is_sound(loss);
                if is_sound {
                    self.rollbacks = 0;
                }
                if is_due && is_sound && !is_over {
                    session.write(&self.checkpoint()?)?;
                    session.saved = Instant::now();
                }
            }
            if is_over {
                break;
            }
        }
        Ok(None)
    }

    /// Writes the metrics line of a step, validates if this is due, and reports progress to the
    /// caller.
    fn log<O: Objective>(
        &mut self,
        session: &mut Session<O>,
        measured: &Measured,
        watch: &mut Stopwatch,
        validates: bool,
    ) -> Result<(), TrainError> {
        let fields = self.fields(measured, watch);
        session.line("train", self.step, fields);
        let mut validated = None;
        if validates && session.validates {
            let started = Instant::now();
            let threads = &session.replicas.threads;
            match self.validate::<O>(session.options.threads, threads) {
                Err(TrainError::Loader(nothing @ LoaderError::NothingKept { .. })) => {
                    session.validates = false;
                    if self.world.is_first() && self.config.data.validation > 0.0 {
                        tracing::warn!("{nothing}");
                    }
                }
                validation => {
                    let validation = validation?;
                    let mut fields = named(&self.terms, &validation.averages);
                    fields.extend(validation.diagnostics);
                    session.line("validation", self.step, fields);
                    validated = Some(self.by_name(&validation.averages));
                }
            }
            self.window.pause(started.elapsed());
        }
        let trained = self.by_name(&measured.averages);
        self.report(session, measured.speed, trained, validated);
        Ok(())
    }

    /// Reports progress to the caller.
    fn report<O>(
        &self,
        session: &mut Session<O>,
        samples_per_second: f64,
        trained: Measurements,
        validated: Option<Measurements>,
    ) {
        (session.report)(&Progress {
            step: self.step,
            steps: self.config.steps,
            samples: self.samples,
            samples_per_second,
            trained,
            validated,
        });
        session.reported = Instant::now();
    }

    /// Returns whether the number of this step requires a checkpoint.
    fn is_checkpoint_due(&self) -> bool {
        let is_step_of = |every: u64| every > 0 && self.step.is_multiple_of(every);
        let is_regular = match self.config.checkpoint_every {
            Interval::Steps(steps) => is_step_of(steps),
            Interval::Time(_) => false,
        };
        is_regular || is_step_of(self.config.keep.every)
    }

    /// Returns whether this process requests a checkpoint because the last one is too old. Only the
    /// first process does, because the processes' clocks differ.
    fn is_checkpoint_late<O>(&self, session: &Session<O>) -> bool {
        match self.config.checkpoint_every {
            Interval::Steps(_) => false,
            Interval::Time(time) => session.recorder.is_some() && session.saved.elapsed() >= time,
        }
    }

    /// Returns the fields of a metrics line.
    fn fields(&self, measured: &Measured, watch: &mut Stopwatch) -> Map<String, Value> {
        let parts = watch.close(measured.seconds, measured.steps);
        let rate = self.config.schedule.rate(self.step - 1, self.config.steps);
        let target_counts: Vec<_> = measured.target_counts.iter().copied().map(Some).collect();
        let target_counts = named(&self.terms, &target_counts);
        let memory = memory_stats::memory_stats().map(|memory| memory.physical_mem);
        let more = json!({
            "loss": measured.loss,
            "target_counts": target_counts,
            "samples": self.samples,
            "rate": rate,
            "gradient_norm": measured.norm,
            "samples_per_second": measured.speed,
            "seconds": self.seconds,
            "time": parts,
            "memory": memory,
        });
        let mut fields = named(&self.terms, &measured.averages);
        if let Value::Object(more) = more {
            fields.extend(more);
        }
        if let Some(harmony) = &self.harmony {
            fields.insert("scales".to_owned(), Value::Object(harmony.scales()));
        }
        fields
    }

    /// Returns the mean loss since the last metrics line. If a gradient or a weight is NaN or
    /// infinite in any process, returns NaN, so that no checkpoint is written.
    fn loss_so_far(&self) -> Result<f64, GroupError> {
        let _guard = tch::no_grad_guard();
        let (loss, norm) = self.window.loss_and_norm(&self.world)?;
        let wrong = self.parameters.isfinite().all().logical_not();
        let wrong = wrong.to_kind(Kind::Float);
        self.world.sum(&wrong, "checking the weights")?;
        let is_wrong = !norm.is_finite() || wrong.double_value(&[]) > 0.0;
        Ok(if is_wrong { f64::NAN } else { loss })
    }

    /// Returns whether training is stable: neither the last line's loss nor `loss`, the mean loss
    /// since then, is high.
    fn is_sound(&self, loss: f64) -> bool {
        !self.guard.is_alarmed() && !self.guard.is_high(loss, &self.config.guard)
    }

    /// Rolls back to the last checkpoint, but keeps the data cursor, so that training resumes with
    /// the batches that follow the bad ones.
    fn roll_back<O>(
        &mut self,
        session: &mut Session<O>,
        instability: Instability,
    ) -> Result<(), TrainError> {
        let (step, cursor) = (self.step, self.cursor);
        if let Some(recorder) = &session.recorder {
            self.load_checkpoint(&recorder.newest()?);
        }
        self.take_over_state()?;
        let from = self.step;
        if self.rollbacks >= self.config.guard.rollbacks {
            return Err(TrainError::Unstable {
                step,
                instability,
                times: self.rollbacks + 1,
                from,
            });
        }
        self.cursor = cursor;
        self.rollbacks += 1;
        let checkpoint = self.checkpoint()?;
        if let Some(recorder) = &mut session.recorder {
            tracing::warn!(
                "step {step}: {instability}; back to step {from}, continuing with the batches after these"
            );
            recorder.rewind(&checkpoint)?;
        }
        let event = json!({ "rolled_back_from": step, "reason": instability.to_string() });
        if let Value::Object(event) = event {
            session.line("event", from, event);
        }
        Ok(())
    }
}
