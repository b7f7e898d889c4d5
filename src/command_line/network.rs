//! Options that select a network, its device and its dtype.

use crate::backend::{
    BackendKind, BackendOptions, CodeArguments, Devices, NetworkOptions, Precision, Way, shipped,
};
use clap::Args;
use std::path::PathBuf;

/// Returns the file of a network, given a path or the name of a network that ships with the
/// program.
///
/// # Errors
/// If a plain name matches no shipped network, the error lists them.
pub fn network_file(text: &str) -> Result<PathBuf, String> {
    let path = shipped::file(text);
    let is_name = path.extension().is_none() && path.components().count() == 1;
    if is_name && !path.exists() {
        let known = shipped::names();
        return Err(match known.is_empty() {
            true => "there is no such file, and no networks are next to the program".to_owned(),
            false => format!(
                "there is no such file, and the networks next to the program are {}",
                known.join(", ")
            ),
        });
    }
    Ok(path)
}

/// The device of networks.
#[derive(Args, Clone, Debug)]
pub struct PlaceArguments {
    /// The treatment of a network file's code.
    #[command(flatten)]
    pub code: CodeArguments,
    /// Device that runs the network: auto, cpu, cuda, cuda:1 or several, as in cuda:0,cuda:1
    #[arg(long, default_value_t, value_name = "DEVICE")]
    pub device: Devices,
    /// Way to run the network; `tessera doctor` shows what auto selects on this machine
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "WAY",
        hide_short_help = true
    )]
    pub way: Way,
}

impl PlaceArguments {
    /// Returns the options of a network in this dtype; `None` is the network built into the
    /// program.
    pub fn network(&self, net: Option<PathBuf>, precision: Precision) -> NetworkOptions {
        NetworkOptions {
            net,
            code: self.code.policy(),
            devices: self.device.clone(),
            precision,
            way: self.way,
            ..NetworkOptions::default()
        }
    }
}

/// The device and format of networks.
#[derive(Args, Clone, Debug)]
pub struct DeviceArguments {
    /// The device.
    #[command(flatten)]
    pub place: PlaceArguments,
    /// Number format that the network runs in; `tessera doctor` shows what auto selects on this
    /// machine
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub precision: Precision,
}

impl DeviceArguments {
    /// Returns the options of a network; `None` is the network built into the program.
    pub fn network(&self, net: Option<PathBuf>) -> NetworkOptions {
        self.place.network(net, self.precision)
    }
}

/// The network and the device that runs it.
#[derive(Args, Clone, Debug)]
pub struct NetworkArguments {
    /// The network: a file, or the name of one that ships with the program, such as tessera-s; if
    /// omitted, the default network
    #[arg(long, value_name = "NET", value_parser = network_file)]
    pub net: Option<PathBuf>,
    /// The device and format.
    #[command(flatten)]
    pub on: DeviceArguments,
}

impl NetworkArguments {
    /// Returns the options of a backend without a cache that `threads` threads call concurrently;
    /// with 0, the backend chooses the number.
    pub fn options(&self, kind: BackendKind, threads: usize) -> BackendOptions {
        BackendOptions {
            kind,
            network: self.on.network(self.net.clone()),
            threads,
            cache: 0,
            seed: 0,
        }
    }
}

/// The backend.
#[derive(Args, Clone, Copy, Debug)]
pub struct BackendArguments {
    /// Backend that evaluates positions
    #[arg(long, value_enum, default_value_t, value_name = "BACKEND")]
    pub backend: BackendKind,
}
