//! Devices and number formats of networks.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The device that a network runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first CUDA device if available, otherwise the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The CUDA device with this index.
    Cuda(usize),
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            DeviceChoice::Auto => formatter.write_str("auto"),
            DeviceChoice::Cpu => formatter.write_str("cpu"),
            DeviceChoice::Cuda(0) => formatter.write_str("cuda"),
            DeviceChoice::Cuda(number) => write!(formatter, "cuda:{number}"),
        }
    }
}

/// Maximum number of devices that can share a network. Each loads its own copy.
const MOST_DEVICES: usize = 32;

/// Why a string is not a valid device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseDeviceError {
    /// The name is unknown.
    #[error("`{0}` is not a device: write auto, cpu, cuda, cuda:1 or, for several, cuda:0,cuda:1")]
    Unknown(String),
    /// There are too many devices.
    #[error("{0} devices exceed the limit of {MOST_DEVICES}")]
    TooMany(usize),
}

impl FromStr for DeviceChoice {
    type Err = ParseDeviceError;

    fn from_str(text: &str) -> Result<DeviceChoice, ParseDeviceError> {
        let unknown = || ParseDeviceError::Unknown(text.to_owned());
        match text.to_ascii_lowercase().as_str() {
            "auto" => Ok(DeviceChoice::Auto),
            "cpu" => Ok(DeviceChoice::Cpu),
            "cuda" => Ok(DeviceChoice::Cuda(0)),
            other => {
                let number = other.strip_prefix("cuda:").ok_or_else(unknown)?;
                number
                    .parse()
                    .map(DeviceChoice::Cuda)
                    .map_err(|_| unknown())
            }
        }
    }
}

/// The devices that share a network: never empty, and written as a comma-separated list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices(Vec<DeviceChoice>);

impl Devices {
    /// Returns the devices. A device that is named twice computes two batches concurrently.
    pub fn iter(&self) -> impl Iterator<Item = DeviceChoice> {
        self.0.iter().copied()
    }

    /// Returns the first device.
    pub fn first(&self) -> DeviceChoice {
        self.0.first().copied().unwrap_or_default()
    }
}

impl Default for Devices {
    fn default() -> Devices {
        DeviceChoice::default().into()
    }
}

impl From<DeviceChoice> for Devices {
    fn from(device: DeviceChoice) -> Devices {
        Devices(vec![device])
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        for (number, device) in self.0.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(formatter, "{comma}{device}")?;
        }
        Ok(())
    }
}

impl FromStr for Devices {
    type Err = ParseDeviceError;

    fn from_str(text: &str) -> Result<Devices, ParseDeviceError> {
        let count = text.split(',').count();
        if count > MOST_DEVICES {
            return Err(ParseDeviceError::TooMany(count));
        }
        let devices = text.split(',').map(|device| device.trim().parse());
        devices.collect::<Result<_, _>>().map(Devices)
    }
}

/// The format a network is computed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// fp16 on CUDA; on the CPU the network's fastest format, measured once. Among formats of
    /// about equal speed it prefers bf16 with AMX, then int8, then bf16.
    #[default]
    Auto,
    /// 32-bit floating point.
    F32,
    /// bfloat16.
    Bf16,
    /// IEEE half precision; CUDA only.
    Fp16,
    /// Dense layers of Chessformers in 8-bit integers, everything else in bf16 if the CPU
    /// computes in it, otherwise in f32; CPU only. Networks without such layers run in that
    /// format.
    Int8,
}

/// Formats the precision as users write it.
impl fmt::Display for Precision {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let value = self.to_possible_value();
        formatter.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn devices_are_written_as_they_are_read() {
        for (text, device) in [
            ("auto", DeviceChoice::Auto),
            ("cpu", DeviceChoice::Cpu),
            ("cuda", DeviceChoice::Cuda(0)),
            ("cuda:1", DeviceChoice::Cuda(1)),
        ] {
            assert_eq!(text.parse(), Ok(device));
            assert_eq!(device.to_string(), text);
        }
        assert_eq!("CUDA:0".parse(), Ok(DeviceChoice::Cuda(0)));
    }

    proptest! {
        #[test]
        fn rejects_unknown_devices(text in "(cuda|cpu|auto)?:?[-+a-z0-9 ]{0,24}") {
            if let Ok(device) = text.parse::<DeviceChoice>() {
                prop_assert_eq!(device.to_string().parse(), Ok(device));
            }
        }
    }
}
