//! Where training computes.

use clap::Args;
use tch::Device;
use tessera::nn::DeviceChoice;

/// The device and how many threads of the processor help it.
#[derive(Args, Clone, Debug)]
pub struct DeviceArguments {
    /// Where to compute: auto, cpu, cuda or cuda:1.
    #[arg(long, default_value_t)]
    device: DeviceChoice,
    /// Threads that decode samples and, on the CPU, compute; by default all.
    #[arg(long)]
    threads: Option<usize>,
}

impl DeviceArguments {
    /// Readies libtorch and names the device.
    pub fn prepare(&self) -> anyhow::Result<Device> {
        let device = tessera::nn::torch::device(self.device)?;
        tch::set_num_threads(self.threads() as i32);
        Ok(device)
    }

    /// Threads to use.
    pub fn threads(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(all).max(1)
    }
}
