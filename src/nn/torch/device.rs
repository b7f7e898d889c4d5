//! The device and the format of a network, on this machine.

use super::fused;
use super::module::Numbers;
use super::process::{self, CudaStatus};
use crate::nn::{DeviceChoice, Precision};
use tch::{Device, Kind};

/// Why a device cannot compute a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// libtorch's CUDA half is not installed.
    #[error(
        "libtorch's CUDA library cannot be loaded ({0}): run `tools/setup --cuda`, or choose the device cpu"
    )]
    NoCudaLibrary(String),
    /// There is no driver, or no device.
    #[error(
        "no CUDA device was found: install NVIDIA's driver (`nvidia-smi` lists what it sees), or choose the device cpu"
    )]
    NoCudaDevice,
    /// There are fewer devices.
    #[error("there is no device cuda:{number}: the last one is cuda:{last}")]
    NoSuchDevice {
        /// The device asked for.
        number: usize,
        /// The device with the highest number.
        last: usize,
    },
    /// libtorch has no fp16 kernels worth using on the CPU.
    #[error("fp16 is for CUDA: on the CPU choose the precision int8, bf16 or f32")]
    Fp16OnCpu,
    /// Kernels in int8 are for processors.
    #[error("int8 is for the CPU: on CUDA choose the precision fp16, bf16 or f32")]
    Int8OnCuda,
    /// Such kernels are written for x86.
    #[error("int8 needs an x86 processor with AVX2: here choose the precision bf16 or f32")]
    NoInt8,
}

/// The device that is meant, on this machine; readies libtorch for it.
///
/// # Errors
/// [`DeviceError`], saying what is missing and how to get it.
pub fn device(choice: DeviceChoice) -> Result<Device, DeviceError> {
    resolve(choice, Precision::F32).map(|(device, _)| device)
}

/// The device and format that are meant, on this machine.
pub(super) fn resolve(
    choice: DeviceChoice,
    precision: Precision,
) -> Result<(Device, Numbers), DeviceError> {
    let device = match (choice, process::cuda_status()) {
        (DeviceChoice::Cpu, _) => Device::Cpu,
        (DeviceChoice::Auto, CudaStatus::Devices(_)) => Device::Cuda(0),
        (DeviceChoice::Auto, _) => Device::Cpu,
        (DeviceChoice::Cuda(number), CudaStatus::Devices(devices)) if number < devices => {
            Device::Cuda(number)
        }
        (DeviceChoice::Cuda(number), CudaStatus::Devices(devices)) => {
            let last = devices.saturating_sub(1);
            return Err(DeviceError::NoSuchDevice { number, last });
        }
        (DeviceChoice::Cuda(_), CudaStatus::NoDevice) => return Err(DeviceError::NoCudaDevice),
        (DeviceChoice::Cuda(_), CudaStatus::NotLoaded(reason)) => {
            return Err(DeviceError::NoCudaLibrary(reason));
        }
    };
    let numbers = match (precision, device) {
        (Precision::F32, _) => Kind::Float.into(),
        (Precision::Bf16, _) => Kind::BFloat16.into(),
        (Precision::Fp16 | Precision::Auto, Device::Cuda(_)) => Kind::Half.into(),
        (Precision::Int8, Device::Cuda(_)) => return Err(DeviceError::Int8OnCuda),
        (Precision::Fp16, _) => return Err(DeviceError::Fp16OnCpu),
        (Precision::Int8, _) => fused::int8().ok_or(DeviceError::NoInt8)?.numbers,
        (Precision::Auto, _) => fastest_on_cpu(),
    };
    Ok((device, numbers))
}

/// The format that [`Precision::Auto`] stands for on this machine, and why it does.
///
/// # Errors
/// [`DeviceError`], as for [`device`].
pub fn auto_precision(choice: DeviceChoice) -> Result<(Precision, &'static str), DeviceError> {
    let (device, numbers) = resolve(choice, Precision::Auto)?;
    let features = &process::prepare().cpu_features;
    let has_amx = features.iter().any(|feature| feature == "amx_bf16");
    Ok(match (device, numbers.kind) {
        (Device::Cuda(_), _) => (Precision::Fp16, "CUDA devices are fastest in it"),
        _ if numbers.int8 => (
            Precision::Int8,
            "the processor multiplies bytes faster than other numbers, without AMX",
        ),
        (_, Kind::BFloat16) if has_amx => (
            Precision::Bf16,
            "the processor has AMX, which is faster in it than in int8",
        ),
        (_, Kind::BFloat16) => (
            Precision::Bf16,
            "the processor computes in it, and has no kernels in int8",
        ),
        _ => (Precision::F32, "the processor has kernels in nothing else"),
    })
}

fn fastest_on_cpu() -> Numbers {
    let process = process::prepare();
    match fused::int8() {
        Some(int8) if int8.is_fastest => int8.numbers,
        _ if process.cpu_bf16 => Kind::BFloat16.into(),
        _ => Kind::Float.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_auto_stands_for_is_what_runs() {
        for sets in 0..=fused::ALL_SETS {
            fused::without_fastest(sets, || {
                let (precision, why) = auto_precision(DeviceChoice::Cpu).unwrap();
                assert_eq!(
                    resolve(DeviceChoice::Cpu, precision),
                    resolve(DeviceChoice::Cpu, Precision::Auto),
                    "{precision:?}: {why}"
                );
            });
        }
        let missing = DeviceChoice::Cuda(usize::MAX);
        assert!(auto_precision(missing).is_err());
    }

    #[test]
    fn a_device_that_is_not_there_is_refused_with_the_remedy() {
        let error = resolve(DeviceChoice::Cuda(usize::MAX), Precision::Auto).unwrap_err();
        let remedy = match process::cuda_status() {
            CudaStatus::NotLoaded(_) => "tools/setup --cuda",
            CudaStatus::NoDevice => "driver",
            CudaStatus::Devices(_) => "the last one",
        };
        assert!(error.to_string().contains(remedy), "{error}");
        assert_eq!(
            resolve(DeviceChoice::Cpu, Precision::Fp16),
            Err(DeviceError::Fp16OnCpu)
        );
        assert_eq!(
            fused::without_fastest(fused::ALL_SETS, || {
                resolve(DeviceChoice::Cpu, Precision::Int8)
            }),
            Err(DeviceError::NoInt8)
        );
        assert_eq!(
            resolve(DeviceChoice::Cpu, Precision::F32),
            Ok((Device::Cpu, Kind::Float.into()))
        );
    }
}
