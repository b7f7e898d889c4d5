//! Trains generation by generation.

mod lineage;
mod publish;
mod restore;

use super::config::CycleConfig;
use super::context::WorkerContext;
use super::error::CycleError;
use super::report::write_report;
use super::rows::Rows;
use crate::data::loader::SourceConfig;
use crate::data::shard::Shard;
use crate::store::{Generation, Generations, Name};
use crate::train::{
    Checkpoint, GroupError, Progress, RunOptions, TrainConfig, TrainError, Trainer, World,
};
use restore::keep;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tch::Device;

/// The learner's state.
#[derive(Clone, Debug)]
pub enum Learning {
    /// Waiting for rows.
    Waits {
        /// Number of rows in the store.
        rows: u64,
        /// Rows needed to train the next generation.
        needs: u64,
    },
    /// Training a generation.
    Trains {
        /// The generation's number.
        number: u64,
        /// Number of rows in the generation's window.
        window: u64,
        /// The training progress.
        progress: Progress,
    },
    /// A generation was published.
    Published {
        /// The generation.
        generation: Generation,
        /// The seconds spent on training, and the seconds spent waiting for rows beforehand.
        seconds: [f64; 2],
    },
}

/// The worker that trains, in one or several processes. If there are several, each trains on its
/// part of every batch; the first one polls the store and sends commands to the others.
pub struct Learner<'a> {
    /// The loop's configuration.
    pub config: &'a CycleConfig,
    /// The compute device.
    pub device: Device,
    /// The processes that train together.
    pub world: Arc<World>,
    /// Called with the learner's progress.
    pub observe: &'a mut dyn FnMut(&Learning),
}

/// The training data of the next generation.
struct Lesson {
    config: TrainConfig,
    rows: u64,
    window: u64,
    /// The share of samples that come from the window.
    share: f64,
}

/// Commands from the first process to the others.
#[derive(Serialize, Deserialize)]
enum Order {
    /// Wait for the next command. Sent at every poll of the store, so that waiting for a command
    /// does not time out.
    Wait,
    /// Train to the last step of this configuration.
    Train(Box<TrainConfig>),
    /// Stop following commands, because training has ended.
    End,
}

impl Learner<'_> {
    /// Trains until stopped, or until the loop's last generation is published. Resumes an
    /// interrupted generation.
    ///
    /// # Errors
    /// [`CycleError`]; checkpoints and generations that have been written are kept.
    pub fn run(&mut self, context: &WorkerContext) -> Result<(), CycleError> {
        let done = match self.world.is_first() {
            true => self.lead(context).and_then(|()| self.order(&Order::End)),
            false => self.follow(context),
        };
        if done.is_err() {
            self.world.abort();
        }
        done
    }

    fn order(&self, order: &Order) -> Result<(), CycleError> {
        let text = serde_json::to_string(order).expect("plain data");
        self.share(&text).map(drop)
    }

    /// Broadcasts the first process's text to all processes and returns it.
    fn share(&self, text: &str) -> Result<String, CycleError> {
        let shared = self.world.share(text, "waiting for what is next");
        shared.map_err(|error: GroupError| TrainError::from(error).into())
    }

    /// Executes the commands of the first process.
    fn follow(&self, context: &WorkerContext) -> Result<(), CycleError> {
        loop {
            let order = self.share("")?;
            match serde_json::from_str(&order).expect("written by the first process") {
                Order::Wait => {}
                Order::Train(config) => {
                    let trainer = Trainer::follower(&config, self.device)?;
                    let mut trainer = trainer.join(Arc::clone(&self.world))?;
                    trainer.run(&self.options(context), &mut |_| {})?;
                }
                Order::End => return Ok(()),
            }
        }
    }

    fn options(&self, context: &WorkerContext) -> RunOptions {
        RunOptions {
            folder: self.config.run_folder(),
            threads: context.threads,
            time: None,
            trace: None,
            stop: Arc::clone(&context.stop),
        }
    }

    fn lead(&mut self, context: &WorkerContext) -> Result<(), CycleError> {
        let base = self.config.training()?;
        let mut generations = Generations::of(self.manifest());
        let mut rows = Rows::default();
        let mut strengths = BTreeMap::new();
        loop {
            // An unreachable store must not be mistaken for an empty one, in which the learner
            // would begin a new loop.
            let looked = generations.look(context.store).map(Some);
            if context.tolerate(looked)?.is_none() {
                if !context.wait(self.config.poll) {
                    return Ok(());
                }
                self.order(&Order::Wait)?;
                continue;
            }
            let number = generations.next_number();
            let last = generations.last().cloned();
            if self.config.generations.is_some_and(|last| number > last) {
                return Ok(());
            }
            let Some(last) = last else {
                self.begin(context, &base)?;
                continue;
            };
            let published = self.advance(context, &base, &last, &mut rows);
            // If the store was moved, its files are missing, which no other error explains as well.
            let published = published.map_err(|error| {
                let lost = self.check_store(context, &last).err();
                lost.unwrap_or(error)
            })?;
            match published {
                None => return Ok(()),
                Some(false) => {}
                Some(true) => {
                    context.tolerate(context.store.add_strengths(&mut strengths))?;
                    write_report(self.config, &strengths)?;
                }
            }
        }
    }

    /// Trains and publishes the generation after `last`. Returns whether this learner was the first
    /// to publish it, or `None` if the learner was stopped.
    fn advance(
        &mut self,
        context: &WorkerContext,
        base: &TrainConfig,
        last: &Generation,
        rows: &mut Rows,
    ) -> Result<Option<bool>, CycleError> {
        let number = last.number + 1;
        self.restore(context, base, last)?;
        let waited = Instant::now();
        let Some(lesson) = self.lesson(context, base, last, rows)? else {
            return Ok(None);
        };
        let began = Instant::now();
        let Some(checkpoint) = self.train(context, number, &lesson)? else {
            return Ok(None);
        };
        // A put would create the folder of a store that was moved.
        self.check_store(context, last)?;
        let claim = self.claim(context.store, number, &checkpoint)?;
        let steps = claim.checkpoint.state.step.saturating_sub(last.steps);
        let samples = steps * base.batch as u64;
        let drawn = (samples as f64 * lesson.share).round() as u64;
        let generation = Generation {
            number,
            parent: Some(last.number),
            steps: last.steps + steps,
            samples: last.samples + samples,
            drawn: last.drawn + drawn,
            rows: lesson.rows,
            window: lesson.window,
            ..Generation::unfinished(number)
        };
        let seconds = [began.elapsed(), began.duration_since(waited)];
        let is_first = self.publish(context, Some(last), generation, claim, seconds)?;
        Ok(Some(is_first))
    }

    /// Checks that the store still contains the generation `last`. A restarted learner would take a
    /// store without it for a new one, and start over.
    fn check_store(&self, context: &WorkerContext, last: &Generation) -> Result<(), CycleError> {
        let number = last.number;
        match context.store.get(&self.manifest()(number)) {
            Ok(None) => Err(CycleError::StoreLost {
                store: context.store.place.clone(),
                number,
            }),
            // Other requests report a store that cannot be reached.
            Ok(Some(_)) | Err(_) => Ok(()),
        }
    }

    /// Publishes the loop's initial network.
    fn begin(&mut self, context: &WorkerContext, base: &TrainConfig) -> Result<(), CycleError> {
        let run = self.config.run_folder();
        if Checkpoint::read(&run).is_ok_and(|it| it.state.step > 0) {
            // A trained run belongs to a store that already had a network.
            self.set_aside(context)?;
        }
        let place = Checkpoint::place(&run, 0);
        // If publishing was interrupted, the same initial weights must be used again.
        if !place.exists() {
            let trainer = Trainer::new(base, self.device)?;
            let checkpoint = trainer.checkpoint().map_err(TrainError::from)?;
            keep(&checkpoint, &run)?;
        }
        let claim = self.claim(context.store, 0, &place)?;
        let generation = Generation::unfinished(0);
        self.publish(context, None, generation, claim, [Duration::ZERO; 2])?;
        Ok(())
    }

    /// Waits until there are enough rows for the next generation. Returns `None` if the learner was
    /// stopped.
    fn lesson(
        &mut self,
        context: &WorkerContext,
        base: &TrainConfig,
        last: &Generation,
        rows: &mut Rows,
    ) -> Result<Option<Lesson>, CycleError> {
        let learner = &self.config.learner;
        let beside = beside(base)?;
        let mut told = None;
        loop {
            context.tolerate(rows.look(context.store))?;
            self.check_store(context, last)?;
            let total = rows.total();
            let (shards, window) = rows.newest(learner.window.size(total));
            let share = window as f64 / (window as f64 + beside).max(1.0);
            let next = (base.steps * base.batch as u64) as f64 * share;
            let needs = (last.drawn as f64 + next) / learner.samples_per_row;
            let needs = (needs.ceil() as u64).max(learner.least_rows).max(1);
            if total >= needs {
                let mut config = base.clone();
                config.steps = last.steps + base.steps;
                let sources = shards.iter().map(|name| SourceConfig {
                    path: context.store.path(&name.name()),
                    rate: 1.0,
                });
                config.data.shards.extend(sources);
                return Ok(Some(Lesson {
                    config,
                    rows: total,
                    window,
                    share,
                }));
            }
            if told != Some(total) {
                told = Some(total);
                (self.observe)(&Learning::Waits { rows: total, needs });
            }
            if !context.wait(self.config.poll) {
                return Ok(None);
            }
            self.order(&Order::Wait)?;
        }
    }

    /// Trains a generation to its last step and returns the checkpoint's path, or `None` if the
    /// learner was stopped.
    fn train(
        &mut self,
        context: &WorkerContext,
        number: u64,
        lesson: &Lesson,
    ) -> Result<Option<PathBuf>, CycleError> {
        let options = self.options(context);
        let trainer = Trainer::open(&lesson.config, &options, self.device)?;
        if let Some(mut then) = trainer.resumed().cloned() {
            // The window advances with each generation, so changed shards are not reported.
            then.data.shards.clone_from(&lesson.config.data.shards);
            if let Some(changes) = lesson.config.changes_since(&then) {
                (context.tell)(&format!("resuming with a changed configuration: {changes}"));
            }
        }
        self.order(&Order::Train(Box::new(lesson.config.clone())))?;
        let mut trainer = trainer.join(Arc::clone(&self.world))?;
        let window = lesson.window;
        let observe = &mut self.observe;
        let summary = trainer.run(&options, &mut |progress| {
            observe(&Learning::Trains {
                number,
                window,
                progress: progress.clone(),
            });
        })?;
        Ok(summary.finished.then_some(summary.checkpoint))
    }

    /// Returns the function from a generation's number to the name of the learner's manifest.
    fn manifest(&self) -> fn(u64) -> Name {
        match self.config.gate {
            Some(_) => Name::candidate,
            None => Name::generation,
        }
    }
}

/// Returns the number of rows per epoch that come from the shards named in the training
/// configuration.
fn beside(base: &TrainConfig) -> Result<f64, CycleError> {
    let mut rows = 0.0;
    for source in &base.data.shards {
        let shard = Shard::open(&source.path)?;
        let samples: u64 = shard.blocks().iter().map(|block| block.samples).sum();
        rows += samples as f64 * source.rate;
    }
    Ok(rows)
}
