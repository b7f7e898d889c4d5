//! The processes of a run as a whole.

use super::group::{Group, GroupError, Operation, Store};
use super::launch::Launch;
use std::time::Duration;
use tch::{Device, Kind, Tensor};

/// The processes of a run, possibly only this one.
#[derive(Debug)]
pub struct World {
    /// This process's rank, from 0.
    pub rank: usize,
    /// The number of processes.
    pub size: usize,
    members: Option<Members>,
}

/// The groups used if there are several processes. They are dropped before the store.
#[derive(Debug)]
struct Members {
    /// Sums tensors on the training device.
    gradients: Group,
    /// Sums and broadcasts tensors on the CPU. This is a separate group even if `gradients` is also
    /// on the CPU: all processes must start a group's operations in the same order, and the sums of
    /// gradients are started during backward.
    control: Group,
    _store: Store,
}

impl World {
    /// Returns a world with only this process.
    pub fn alone() -> World {
        World {
            rank: 0,
            size: 1,
            members: None,
        }
    }

    /// Connects to the other processes, for training on `device`. From then on, no process waits
    /// for another one longer than `timeout`.
    ///
    /// # Errors
    /// [`GroupError`] if the other processes do not arrive or cannot work together.
    pub fn join(launch: &Launch, device: Device, timeout: Duration) -> Result<World, GroupError> {
        let store = Store::open(launch, timeout)?;
        let control = Group::new(&store, "control", Device::Cpu)?;
        let gradients = Group::new(&store, "gradients", device)?;
        let world = World {
            rank: launch.rank,
            size: launch.size,
            members: Some(Members {
                gradients,
                control,
                _store: store,
            }),
        };
        // If a process stopped while another one was still connecting, the other could not tell this
        // from a network that does not work.
        world.barrier("joining the others")?;
        Ok(world)
    }

    /// Returns whether this process trains alone.
    pub(crate) fn is_alone(&self) -> bool {
        self.members.is_none()
    }

    /// Returns whether this is the first process, which writes the files.
    pub fn is_first(&self) -> bool {
        self.rank == 0
    }

    pub(super) fn gradients(&self) -> Option<&Group> {
        self.members.as_ref().map(|members| &members.gradients)
    }

    fn group_of(&self, tensor: &Tensor) -> Option<&Group> {
        self.members.as_ref().map(|members| match tensor.device() {
            Device::Cpu => &members.control,
            _ => &members.gradients,
        })
    }

    /// Replaces `tensor` with the sum of all processes' tensors.
    ///
    /// # Errors
    /// [`GroupError`] if another process is gone or hangs. The methods below fail in the same way.
    pub(crate) fn sum(&self, tensor: &Tensor, doing: &'static str) -> Result<(), GroupError> {
        match self.group_of(tensor) {
            Some(group) => group.sum(tensor, doing)?.wait(),
            None => Ok(()),
        }
    }

    /// Replaces `tensor` with the first process's tensor.
    pub(crate) fn broadcast(&self, tensor: &Tensor, doing: &'static str) -> Result<(), GroupError> {
        match self.group_of(tensor) {
            Some(group) => group.broadcast(tensor, doing)?.wait(),
            None => Ok(()),
        }
    }

    /// Broadcasts the first process's text to all processes and returns it.
    pub(crate) fn share(&self, text: &str, doing: &'static str) -> Result<String, GroupError> {
        if self.members.is_none() {
            return Ok(text.to_owned());
        }
        let length = Tensor::from_slice(&[text.len() as i64]);
        self.broadcast(&length, doing)?;
        let length = length.int64_value(&[0]) as usize;
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(length, 0);
        let shared = Tensor::from_slice(&bytes);
        self.broadcast(&shared, doing)?;
        shared.copy_data(&mut bytes, length);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Waits until all processes have called this method.
    pub(crate) fn barrier(&self, doing: &'static str) -> Result<(), GroupError> {
        self.sum(&Tensor::zeros([1], (Kind::Int64, Device::Cpu)), doing)
    }

    /// Notifies the other processes immediately that this one stops because of an error.
    pub(crate) fn abort(&self) {
        if let Some(members) = &self.members {
            members.gradients.abort();
            members.control.abort();
        }
    }
}

/// Decisions that all processes make in the same step, such as the decision to stop.
///
/// A request made in one step takes effect in the next, so that no process has to wait for the
/// others' requests.
#[derive(Debug)]
pub(crate) struct Agreement<'a> {
    world: &'a World,
    asked: Option<(Tensor, Operation<'a>)>,
}

impl<'a> Agreement<'a> {
    /// Starts without any requests.
    pub fn new(world: &'a World) -> Agreement<'a> {
        Agreement { world, asked: None }
    }

    /// Sends this process's requests to the others, and returns for each whether any process made
    /// it in the previous call. If there is only one process, its requests are granted immediately.
    pub fn ask<const N: usize>(&mut self, wishes: [bool; N]) -> Result<[bool; N], GroupError> {
        let Some(members) = &self.world.members else {
            return Ok(wishes);
        };
        let decided = match self.asked.take() {
            Some((wishes, operation)) => {
                operation.wait()?;
                std::array::from_fn(|place| wishes.int64_value(&[place as i64]) > 0)
            }
            None => [false; N],
        };
        let wishes = Tensor::from_slice(&wishes.map(i64::from));
        let operation = members.control.sum(&wishes, "taking a step")?;
        self.asked = Some((wishes, operation));
        Ok(decided)
    }
}
