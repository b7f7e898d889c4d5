//! Selects the device and the number format of a network on this machine.

use super::fused;
use super::module::{ComputeType, TorchError, check};
use super::process::{self, CudaStatus};
use super::shim;
use crate::backend::{DeviceChoice, Precision, Way};
use std::ffi::c_int;
use std::ptr;
use tch::{Device, Kind, Tensor};

/// Why a device cannot compute a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// libtorch's CUDA libraries are not installed.
    #[error(
        "libtorch's CUDA library cannot be loaded ({0}): run `tools/setup --cuda` (for the wheel install PyTorch with CUDA), or choose the device cpu"
    )]
    NoCudaLibrary(String),
    /// There is no driver or no device.
    #[error(
        "no CUDA device was found: install NVIDIA's driver (`nvidia-smi` lists what it sees), or choose the device cpu"
    )]
    NoCudaDevice,
    /// The machine has no device with this number.
    #[error("there is no device cuda:{number}: the last one is cuda:{last}")]
    NoSuchDevice {
        /// The requested device.
        number: usize,
        /// The highest available device number.
        last: usize,
    },
    /// fp16 was requested on the CPU, where libtorch's fp16 kernels are not worth using.
    #[error("fp16 is for CUDA: on the CPU choose the precision int8, bf16 or f32")]
    Fp16OnCpu,
    /// int8 was requested on a GPU, but the int8 kernels run only on the CPU.
    #[error("int8 is for the CPU: on CUDA choose the precision fp16, bf16 or f32")]
    Int8OnCuda,
    /// int8 was requested on a CPU without int8 kernels, which require x86 with AVX2.
    #[error("int8 needs an x86 processor with AVX2: here choose the precision bf16 or f32")]
    NoInt8,
}

/// Returns the requested device and prepares libtorch for it.
///
/// # Errors
/// [`DeviceError`], which states what is missing and how to install it.
pub fn device(choice: DeviceChoice) -> Result<Device, DeviceError> {
    resolve(choice, Precision::F32).map(|(device, _)| device)
}

/// Returns CPU memory, i64 `[count]`, for words that [`send`] will copy to the device. If the
/// device is a GPU, the memory is pinned, so that the copy can be asynchronous.
///
/// # Errors
/// [`TorchError`] if memory is insufficient.
pub(crate) fn staged(count: usize, device: Device) -> Result<Tensor, TorchError> {
    let count = count as i64;
    if device == Device::Cpu {
        return Ok(Tensor::f_empty([count], (Kind::Int64, device))?);
    }
    let mut out = ptr::null_mut();
    // SAFETY: the shim writes a new tensor to `out` unless it fails.
    unsafe {
        check(shim::tessera_pinned(count, &raw mut out))?;
        Ok(Tensor::from_ptr(out.cast()))
    }
}

/// Returns the words of a tensor from [`staged`].
pub(crate) fn words_of(staged: &mut Tensor) -> &mut [u64] {
    assert!(staged.kind() == Kind::Int64 && staged.is_contiguous());
    // SAFETY: the tensor is borrowed mutably. It holds this many words in CPU memory, to which no
    // other reference exists.
    unsafe { std::slice::from_raw_parts_mut(staged.data_ptr().cast(), staged.numel()) }
}

/// Copies a tensor from a device to the CPU's memory.
///
/// # Errors
/// [`TorchError`] if the device fails.
pub(crate) fn receive(tensor: Tensor) -> Result<Tensor, TorchError> {
    if tensor.device() == Device::Cpu {
        return Ok(tensor);
    }
    let mut out = ptr::null_mut();
    // SAFETY: the tensor is valid for the call. The shim writes a new tensor to `out` unless it
    // fails.
    unsafe {
        let tensor = tensor.as_ptr().cast();
        check(shim::tessera_receive(tensor, &raw mut out))?;
        Ok(Tensor::from_ptr(out.cast()))
    }
}

/// Copies a tensor from CPU memory to a device. Copies to a GPU are asynchronous.
///
/// # Panics
/// Panics if the device does not have enough memory.
pub(crate) fn send(tensor: Tensor, device: Device) -> Tensor {
    let Device::Cuda(number) = device else {
        return tensor;
    };
    // SAFETY: the tensor is valid for the call.
    let [copy] = fused::outputs(|out| unsafe {
        shim::tessera_send(tensor.as_ptr().cast(), number as c_int, out)
    });
    copy
}

/// Returns whether a device is available and supports a format.
pub(crate) fn has_format(choice: DeviceChoice, precision: Precision) -> bool {
    resolve(choice, precision).is_ok()
}

/// Returns the requested device and the formats that it may use, in order of preference. There is
/// always at least one format.
pub(crate) fn resolve(
    choice: DeviceChoice,
    precision: Precision,
) -> Result<(Device, Vec<ComputeType>), DeviceError> {
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
    let dtype = match (precision, device) {
        (Precision::F32, _) => Kind::Float.into(),
        (Precision::Bf16, _) => Kind::BFloat16.into(),
        (Precision::Fp16 | Precision::Auto, Device::Cuda(_)) => Kind::Half.into(),
        (Precision::Int8, Device::Cuda(_)) => return Err(DeviceError::Int8OnCuda),
        (Precision::Fp16, _) => return Err(DeviceError::Fp16OnCpu),
        (Precision::Int8, _) => fused::int8().ok_or(DeviceError::NoInt8)?.dtype,
        (Precision::Auto, _) => return Ok((device, formats_of_cpu())),
    };
    Ok((device, vec![dtype]))
}

/// Like [`resolve`], for a network that runs by this way. The code for GPUs also runs in fp16 on the
/// CPU, where it can be examined without a GPU.
pub(crate) fn resolve_for(
    way: Way,
    choice: DeviceChoice,
    precision: Precision,
) -> Result<(Device, Vec<ComputeType>), DeviceError> {
    match (resolve(choice, precision), way) {
        (Err(DeviceError::Fp16OnCpu), Way::Operators | Way::Encoder) => {
            Ok((Device::Cpu, vec![Kind::Half.into()]))
        }
        (found, _) => found,
    }
}

/// Returns the formats that may be the fastest on this CPU, in the order of their expected speed
/// for a Chessformer. With AMX, bf16 is expected to be faster than int8.
fn formats_of_cpu() -> Vec<ComputeType> {
    let bf16 = process::prepare().cpu_bf16.then(|| Kind::BFloat16.into());
    let mut formats: Vec<ComputeType> = bf16.into_iter().chain([Kind::Float.into()]).collect();
    if let Some(int8) = fused::int8() {
        formats.insert(usize::from(!int8.is_preferred), int8.dtype);
    }
    formats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formats_to_choose_from_are_those_the_processor_computes_in() {
        if matches!(process::cuda_status(), CudaStatus::Devices(_)) {
            let (_, formats) = resolve(DeviceChoice::Cuda(0), Precision::Auto).unwrap();
            assert_eq!(formats, [Kind::Half.into()]);
        }
        for sets in 0..=fused::ALL_SETS {
            let (formats, int8) = fused::without_fastest(sets, || {
                let (_, formats) = resolve(DeviceChoice::Cpu, Precision::Auto).unwrap();
                (formats, fused::int8())
            });
            let has = |kind: Kind| formats.contains(&kind.into());
            assert!(has(Kind::Float) && !has(Kind::Half), "{formats:?}");
            assert_eq!(has(Kind::BFloat16), process::prepare().cpu_bf16);
            let Some(int8) = int8 else {
                assert!(formats.iter().all(|dtype| !dtype.int8));
                continue;
            };
            // The first format is int8, or bf16 if the CPU has AMX.
            assert!(formats.contains(&int8.dtype));
            assert_eq!(formats[0] == int8.dtype, int8.is_preferred);
            assert!(formats[0].int8 || formats[0].kind == Kind::BFloat16);
        }
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
            Ok((Device::Cpu, vec![Kind::Float.into()]))
        );
    }
}
