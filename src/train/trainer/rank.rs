//! Training in one of several processes, all of which have the same state.

use super::Trainer;
use crate::data::loader::RankShard;
use crate::train::config::TrainConfig;
use crate::train::distributed::{GroupError, World};
use crate::train::error::TrainError;
use crate::train::start::Start;
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

impl Trainer {
    /// Returns a trainer for a process other than the first; [`Trainer::join`] then copies the
    /// first process's weights.
    ///
    /// # Errors
    /// [`TrainError`] if the configuration is inconsistent.
    pub fn follower(config: &TrainConfig, device: Device) -> Result<Trainer, TrainError> {
        Trainer::build(config, device, |model| {
            let count = model.size().parameters;
            Ok(Start {
                weights: Tensor::zeros([count], (Kind::Float, Device::Cpu)),
                samples: 0,
            })
        })
    }

    /// Checks whether this many processes can share a batch, which a process does best before it
    /// joins the others.
    ///
    /// # Errors
    /// [`TrainError::Uneven`] if they cannot share it evenly.
    pub fn check_split(config: &TrainConfig, size: usize) -> Result<(), TrainError> {
        let batch = config.batch;
        let is_even = batch.is_multiple_of(size);
        is_even
            .then_some(())
            .ok_or(TrainError::Uneven { batch, size })
    }

    /// Joins the other processes. All processes adopt the first one's state, and each trains on its
    /// part of every batch.
    ///
    /// # Errors
    /// [`TrainError::Uneven`] if the batch cannot be split evenly,
    /// [`TrainError::OtherConfiguration`] if the first process has another configuration,
    /// [`TrainError::Group`] if another process is gone.
    pub fn join(mut self, world: impl Into<Arc<World>>) -> Result<Trainer, TrainError> {
        let world = world.into();
        Trainer::check_split(&self.config, world.size)?;
        self.world = world;
        let own = serde_json::to_string(&self.config).expect("plain data");
        if self.world.share(&own, "comparing configurations")? != own {
            return Err(TrainError::OtherConfiguration);
        }
        self.take_over_state()?;
        Ok(self)
    }

    /// Adopts the first process's weights and state.
    pub(super) fn take_over_state(&mut self) -> Result<(), GroupError> {
        const DOING: &str = "taking over the state of the first process";
        let _guard = tch::no_grad_guard();
        let (sums, window) = self.window.state(&World::alone())?;
        let own = serde_json::to_string(&self.state(window)).expect("plain data");
        let shared = self.world.share(&own, DOING)?;
        let memory = self.optimizer.memory();
        let vectors = [&self.parameters, &self.average];
        for tensor in vectors
            .into_iter()
            .chain(memory.iter().map(|(_, tensor)| tensor))
        {
            self.world.broadcast(tensor, DOING)?;
        }
        if !self.world.is_first() {
            let state = serde_json::from_str(&shared).expect("written by the first process");
            // The first process already has the totals, to which the other processes' sums are
            // added.
            self.load_state(&state, &memory, &sums.zeros_like());
        }
        Ok(())
    }

    /// Returns this process's part of every batch.
    pub(super) fn shard(&self) -> RankShard {
        RankShard {
            rank: self.world.rank,
            world_size: self.world.size,
        }
    }
}
