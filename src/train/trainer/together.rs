//! A trainer as one of several, which all stand where the first one stands.

use super::{TrainError, Trainer};
use crate::data::loader::Share;
use crate::train::config::TrainConfig;
use crate::train::distributed::{GroupError, World};
use crate::train::start::Start;
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

impl Trainer {
    /// A trainer that takes its weights from the first of several processes,
    /// see [`Trainer::join`].
    ///
    /// # Errors
    /// [`TrainError`] if the configuration does not fit together.
    pub fn follower(config: &TrainConfig, device: Device) -> Result<Trainer, TrainError> {
        Trainer::build(config, device, |model| {
            let count = model.size().parameters;
            Ok(Start {
                weights: Tensor::zeros([count], (Kind::Float, Device::Cpu)),
                samples: 0,
            })
        })
    }

    /// Trains together with other processes from now on, all from where the
    /// first of them stands. Each takes its share of every batch.
    ///
    /// # Errors
    /// [`TrainError::Uneven`] if the batch has no equal shares,
    /// [`TrainError::OtherConfiguration`] if the first one is to do another thing,
    /// [`TrainError::Group`] if another process is gone.
    pub fn join(mut self, world: World) -> Result<Trainer, TrainError> {
        let (batch, size) = (self.config.batch, world.size());
        if !batch.is_multiple_of(size) {
            return Err(TrainError::Uneven { batch, size });
        }
        self.world = Arc::new(world);
        let own = serde_json::to_string(&self.config).expect("plain data");
        if self.world.share(&own, "comparing configurations")? != own {
            return Err(TrainError::OtherConfiguration);
        }
        self.follow()?;
        Ok(self)
    }

    /// Stands where the first process stands.
    pub(super) fn follow(&mut self) -> Result<(), GroupError> {
        const DOING: &str = "taking over where the first one stands";
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
            let state = serde_json::from_str(&shared).expect("what the first one wrote");
            // Sums are summed over the processes; the first has them.
            self.stand(&state, &memory, &sums.zeros_like());
        }
        Ok(())
    }

    /// This process's part of every batch.
    pub(super) fn share(&self) -> Share {
        Share {
            number: self.world.rank(),
            of: self.world.size(),
        }
    }
}
