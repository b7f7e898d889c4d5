//! Groups of processes that sum and broadcast tensors through libtorch's c10d.

use super::launch::Launch;
use super::shim::{self, RawGroup, RawStore, RawWork};
use crate::torch::shim::take_text;
use std::ffi::{CString, c_char, c_int};
use std::ptr::{self, NonNull};
use std::time::Duration;
use tch::{Device, Tensor};

/// Why processes cannot work together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// The processes did not find each other.
    #[error(
        "process {rank} of {size} cannot meet the others at {address}: {reason}; \
         see that all {size} are started (in a batch script of Slurm by srun) \
         and that this address is reached from every machine"
    )]
    Meeting {
        /// This process.
        rank: usize,
        /// The expected number of processes.
        size: usize,
        /// The rendezvous address, as host:port.
        address: String,
        /// libtorch's message.
        reason: String,
    },
    /// The processes found each other, but could not form a group with this backend.
    #[error("process {rank} of {size} cannot join the others by {backend}: {reason}")]
    Joining {
        /// This process.
        rank: usize,
        /// The number of processes.
        size: usize,
        /// Gloo or NCCL.
        backend: &'static str,
        /// libtorch's message.
        reason: String,
    },
    /// Another process has ended, or its machine cannot be reached.
    #[error(
        "process {rank} of {size} lost another process while {doing} ({reason}): the first to stop \
         reports why; restart all to resume from the last checkpoint"
    )]
    Lost {
        /// This process.
        rank: usize,
        /// The number of processes.
        size: usize,
        /// The operation in progress.
        doing: &'static str,
        /// libtorch's message.
        reason: String,
    },
    /// Another process does not respond.
    #[error(
        "process {rank} of {size} waited {} s for the others while {doing}: one of them hangs \
         or is far slower; restart all to resume from the last checkpoint",
        timeout.as_secs()
    )]
    TimedOut {
        /// This process.
        rank: usize,
        /// The number of processes.
        size: usize,
        /// The operation in progress.
        doing: &'static str,
        /// How long this process waited.
        timeout: Duration,
    },
}

/// Returns libtorch's message without its source location.
fn reason(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    let line = match line.split_once("] ") {
        Some((place, rest)) if place.starts_with('[') => rest,
        _ => line,
    };
    line.trim_end_matches('.').to_owned()
}

/// Takes ownership of the shim's error message.
///
/// # Safety
/// `text` must be null or come from the shim, and must not be used afterwards.
unsafe fn check(text: *mut c_char) -> Result<(), String> {
    // SAFETY: guaranteed by the caller.
    unsafe { take_text(text) }.map_or(Ok(()), Err)
}

fn milliseconds(timeout: Duration) -> i64 {
    i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX)
}

/// The store through which the processes of a run meet.
#[derive(Debug)]
pub(super) struct Store {
    raw: NonNull<RawStore>,
    rank: usize,
    size: usize,
    timeout: Duration,
}

// SAFETY: c10d's stores do their own locking.
unsafe impl Send for Store {}
// SAFETY: as above.
unsafe impl Sync for Store {}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: the pointer came from the shim and is dropped once.
        unsafe { shim::tessera_store_free(self.raw.as_ptr()) }
    }
}

impl Store {
    /// Waits until all processes have connected, for at most `timeout`.
    pub fn open(launch: &Launch, timeout: Duration) -> Result<Store, GroupError> {
        let failed = |reason: String| GroupError::Meeting {
            rank: launch.rank,
            size: launch.size,
            address: format!("{}:{}", launch.host, launch.port),
            reason,
        };
        let host = CString::new(launch.host.as_str()).map_err(|error| failed(error.to_string()))?;
        // torchrun's agent keeps its store across restarts, including entries from the previous
        // attempt.
        let (hosts, workers, prefix) = match launch.agent_restarts {
            Some(restarts) => (false, 0, format!("worker/attempt_{restarts}")),
            None => (launch.rank == 0, launch.size, "tessera".to_owned()),
        };
        let prefix = CString::new(prefix).expect("without zeros");
        let mut raw = ptr::null_mut();
        // SAFETY: the texts outlive the call, `raw` is valid for it.
        let opened = unsafe {
            check(shim::tessera_store_open(
                host.as_ptr(),
                launch.port,
                hosts,
                workers,
                prefix.as_ptr(),
                milliseconds(timeout),
                &raw mut raw,
            ))
        };
        opened.map_err(|text| failed(reason(&text)))?;
        Ok(Store {
            raw: NonNull::new(raw).expect("a store, as there is no error"),
            rank: launch.rank,
            size: launch.size,
            timeout,
        })
    }
}

/// A group of all processes of a run, for tensors on one device. Every process must call the same
/// functions in the same order.
#[derive(Debug)]
pub(super) struct Group {
    raw: NonNull<RawGroup>,
    rank: usize,
    size: usize,
    timeout: Duration,
}

// SAFETY: c10d's groups do their own locking.
unsafe impl Send for Group {}
// SAFETY: as above.
unsafe impl Sync for Group {}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: the pointer came from the shim and is dropped once.
        unsafe { shim::tessera_group_free(self.raw.as_ptr()) }
    }
}

impl Group {
    /// Forms a group for `device`, using Gloo for the CPU and NCCL for CUDA. All processes must use
    /// the same name.
    pub fn new(store: &Store, name: &str, device: Device) -> Result<Group, GroupError> {
        let (backend, number) = match device {
            Device::Cuda(number) => ("NCCL", number as c_int),
            _ => ("Gloo", -1),
        };
        let failed = |text: String| GroupError::Joining {
            rank: store.rank,
            size: store.size,
            backend,
            reason: reason(&text),
        };
        let name = CString::new(name).map_err(|error| failed(error.to_string()))?;
        let mut raw = ptr::null_mut();
        // SAFETY: the store is valid, the text outlives the call, and `raw` is valid
        // for it.
        let created = unsafe {
            check(shim::tessera_group_create(
                store.raw.as_ptr(),
                name.as_ptr(),
                store.rank as c_int,
                store.size as c_int,
                number,
                milliseconds(store.timeout),
                &raw mut raw,
            ))
        };
        created.map_err(failed)?;
        Ok(Group {
            raw: NonNull::new(raw).expect("a group, as there is no error"),
            rank: store.rank,
            size: store.size,
            timeout: store.timeout,
        })
    }

    pub(super) fn raw(&self) -> *const RawGroup {
        self.raw.as_ptr()
    }

    /// Starts an operation that replaces `tensor` with the sum of all processes' tensors.
    pub fn sum(&self, tensor: &Tensor, doing: &'static str) -> Result<Operation<'_>, GroupError> {
        self.start(shim::tessera_group_sum, tensor, doing)
    }

    /// Starts an operation that replaces `tensor` with the tensor of process 0.
    pub fn broadcast(
        &self,
        tensor: &Tensor,
        doing: &'static str,
    ) -> Result<Operation<'_>, GroupError> {
        self.start(shim::tessera_group_broadcast, tensor, doing)
    }

    /// Aborts pending operations without waiting for the other processes.
    pub fn abort(&self) {
        // SAFETY: the group is valid. A failed abort has no consequences.
        let _ = unsafe { check(shim::tessera_group_abort(self.raw.as_ptr())) };
    }

    fn start(
        &self,
        function: unsafe extern "C" fn(
            *const RawGroup,
            *const crate::torch::shim::RawTensor,
            *mut *mut RawWork,
        ) -> *mut c_char,
        tensor: &Tensor,
        doing: &'static str,
    ) -> Result<Operation<'_>, GroupError> {
        let mut raw = ptr::null_mut();
        // SAFETY: group and tensor are valid; the operation takes its own reference to the
        // tensor.
        let started = unsafe {
            check(function(
                self.raw.as_ptr(),
                tensor.as_ptr().cast(),
                &raw mut raw,
            ))
        };
        started.map_err(|text| self.failure(&text, doing))?;
        Ok(Operation {
            raw: NonNull::new(raw).expect("an operation, as there is no error"),
            group: self,
            doing,
        })
    }

    /// Converts an error message from libtorch to an error about the run.
    pub(super) fn failure(&self, text: &str, doing: &'static str) -> GroupError {
        let (rank, size, timeout) = (self.rank, self.size, self.timeout);
        let lower = text.to_ascii_lowercase();
        if lower.contains("timed out") || lower.contains("timeout") {
            return GroupError::TimedOut {
                rank,
                size,
                doing,
                timeout,
            };
        }
        GroupError::Lost {
            rank,
            size,
            doing,
            reason: reason(text),
        }
    }
}

/// A pending operation of a group.
#[derive(Debug)]
#[must_use = "the result is available only after waiting"]
pub(super) struct Operation<'a> {
    raw: NonNull<RawWork>,
    group: &'a Group,
    doing: &'static str,
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        // SAFETY: the pointer came from the shim and is dropped once.
        unsafe { shim::tessera_work_free(self.raw.as_ptr()) }
    }
}

impl Operation<'_> {
    /// Waits for the result on the CPU. On CUDA, returns immediately, and later work on the device
    /// waits for the result.
    pub fn wait(self) -> Result<(), GroupError> {
        // SAFETY: the operation is valid.
        let waited = unsafe { check(shim::tessera_work_wait(self.raw.as_ptr())) };
        waited.map_err(|text| self.group.failure(&text, self.doing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_told_without_their_place() {
        let text = "[../third_party/gloo/transport/tcp/pair.cc:547] Connection closed by peer \
                    [127.0.0.1]:4711. This may help:\nmore";
        let found = reason(text);
        assert!(found.starts_with("Connection closed by peer"), "{found}");
        assert_eq!(reason("plain."), "plain");
    }
}
