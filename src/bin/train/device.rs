//! The device used for training.

use clap::Args;
use std::num::NonZeroUsize;
use tch::{Cuda, Device};
use tessera::backend::DeviceChoice;
use tessera::train::Launch;

/// The device and the number of CPU threads.
#[derive(Args, Clone, Debug)]
pub struct DeviceArguments {
    /// Device: auto, cpu, cuda or cuda:1.
    #[arg(long, default_value_t, value_name = "DEVICE")]
    device: DeviceChoice,
    /// Threads that decode samples; on the CPU, each also trains on its part of every batch. By
    /// default one for each processor. Repeating a run bit for bit requires the same number.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

impl DeviceArguments {
    /// Sets up libtorch and returns the device.
    pub fn prepare(&self) -> anyhow::Result<Device> {
        let device = tessera::torch::device(self.device)?;
        // On the CPU, the trainer itself runs several threads, each of which uses a single libtorch
        // thread.
        tch::set_num_threads(match device {
            Device::Cpu => 1,
            _ => self.threads() as i32,
        });
        Ok(device)
    }

    /// Sets up libtorch for one process of several. On a machine with GPUs, each process uses the
    /// GPU of its local rank; on the CPU, each operation is split over the process's threads.
    fn prepare_for(&self, launch: &Launch) -> anyhow::Result<Device> {
        let threads = self.threads_for(launch);
        tch::set_num_threads(threads as i32);
        let device = tessera::torch::device(self.device)?;
        // A launcher may make only one GPU visible to each process.
        let own = match device {
            Device::Cuda(0) if Cuda::device_count() > 1 => DeviceChoice::Cuda(launch.local_rank),
            _ => self.device,
        };
        Ok(tessera::torch::device(own)?)
    }

    /// Sets up libtorch for this process, which is one of several if `launch` is given. Returns the
    /// device and the number of threads.
    pub fn prepare_with(&self, launch: Option<&Launch>) -> anyhow::Result<(Device, usize)> {
        Ok(match launch {
            Some(launch) => (self.prepare_for(launch)?, self.threads_for(launch)),
            None => (self.prepare()?, self.threads()),
        })
    }

    /// Returns the number of threads to use in one process of several.
    fn threads_for(&self, launch: &Launch) -> usize {
        let here = launch.local_size.map_or(1, NonZeroUsize::get);
        self.threads.unwrap_or(self.threads() / here).max(1)
    }

    /// Returns the number of threads to use.
    pub fn threads(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(all).max(1)
    }
}

/// Returns a device's name in the form that `--device` accepts.
pub fn name(device: Device) -> String {
    match device {
        Device::Cuda(number) => DeviceChoice::Cuda(number).to_string(),
        other => format!("{other:?}").to_lowercase(),
    }
}
