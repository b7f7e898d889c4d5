//! Networks that run on libtorch.

mod answers;
mod archive;
pub mod check;
mod contents;
mod device;
mod exchange;
mod fastest;
pub(crate) mod fused;
pub(crate) mod gpu;
mod hash;
mod module;
mod numbers;
mod pickle;
mod process;
mod profile;
mod program;
mod script;
pub(crate) mod shim;
#[cfg(test)]
pub(crate) mod tiny;

pub use device::{DeviceError, device};
pub use fused::compute_as_on_a_gpu;
pub use hash::tensor_hash;
pub use module::{ComputeType, Module, TorchError};
pub use pickle::PickleError;
pub use process::{CudaStatus, Environment, LIBTORCH_VERSION, environment};
pub use profile::Trace;
pub use program::{Compact, Program};
pub use script::{ExportPrecision, Run, Script, ScriptError, TracedMethod};

pub(crate) use archive::{Archive, ArchiveError};
pub use contents::describe;
pub(crate) use contents::{NetworkFile, contents};
pub(crate) use device::{has_format, resolve, resolve_for, send};
pub(crate) use numbers::{bytes, caught, floats, rows, words};
pub(crate) use pickle::{Object, Pickle, View};
pub(crate) use program::Inference;

use crate::backend::{
    Backend, BackendError, Batch, CodePolicy, ContractError, DeviceChoice, Evaluations, Format,
    Metadata, Precision, PredictedFuture, Properties, Value,
};
use crate::chess::Game;
use crate::encode::{Encoder, Input, POLICY_SIZE};
use check::{CheckError, Refusal};
use std::borrow::Cow;
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

/// The first bytes of a zip archive.
const ZIP: [u8; 4] = *b"PK\x03\x04";

/// Why a network cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The file is not a network file.
    #[error(
        "it is not a TorchScript file: `tessera import` converts networks of other programs (Lc0's weights, ONNX, Maia-3 checkpoints)"
    )]
    OtherFormat,
    /// There is not enough memory to load the network.
    #[error("there is not enough memory for it: {0}")]
    OutOfMemory(String),
    /// The file is not TorchScript, or is damaged.
    #[error(
        "it is not a valid TorchScript file (truncated or corrupt?): {0}; fetch it again, or export it again with `tessera-train export`"
    )]
    NotTorchScript(String),
    /// The file contains code that our exporters do not write, which might do anything.
    #[error("{0}; AllowNetworkCode (--allow-code) runs it anyway: only if you trust the file")]
    Refused(#[from] Refusal),
    /// The TorchScript file was written by another program.
    #[error(
        "it is a TorchScript file without a method `meta`, so not a network of this engine: `tessera-train export` writes those"
    )]
    Foreign,
    /// The network file was written by another version of this program.
    #[error("{0}: export it again with `tessera-train export` of this version")]
    Contract(#[from] ContractError),
    /// The network belongs to a family that has been removed.
    #[error(
        "it is a graph of ONNX (family `onnx`), which is no longer played: if Lc0's leela2onnx wrote the file that it came from, import that again"
    )]
    Graph,
    /// The tensors differ from those that were exported.
    #[error("it is damaged (its tensors do not match its `hash`): fetch it again")]
    Hash,
    /// libtorch cannot run the network on this machine.
    #[error("libtorch cannot run it: {0}")]
    Torch(#[source] TorchError),
    /// An output's shape differs from the contract.
    #[error("its output `{name}` has the shape {found:?} in place of {expected:?}")]
    Output {
        /// The output.
        name: String,
        /// The shape of the output.
        found: Vec<i64>,
        /// The shape that the contract states.
        expected: Vec<i64>,
    },
    /// The device is not available.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl From<TorchError> for NetworkError {
    fn from(error: TorchError) -> NetworkError {
        match error.is_out_of_memory() {
            true => NetworkError::OutOfMemory(error.to_string()),
            false => NetworkError::Torch(error),
        }
    }
}

impl From<CheckError> for NetworkError {
    fn from(error: CheckError) -> NetworkError {
        match error {
            CheckError::Archive(ArchiveError::OutOfMemory(error)) => {
                NetworkError::OutOfMemory(error.to_string())
            }
            CheckError::Archive(error) => NetworkError::NotTorchScript(error.to_string()),
            CheckError::Refused(refusal) => NetworkError::Refused(refusal),
        }
    }
}

/// Opens a network file. Returns the exported module, on the CPU, and its checked metadata. Unless
/// the policy allows all code, the file is [checked](check) before any of its code runs.
///
/// # Errors
/// [`NetworkError`] if the file is not a network of this engine, is damaged, or contains code that
/// our exporters do not write.
pub fn open(file: &[u8], policy: CodePolicy) -> Result<(Module, Metadata), NetworkError> {
    process::prepare();
    if !file.starts_with(&ZIP) || Archive::open(file).is_ok_and(|archive| archive.is_checkpoint()) {
        return Err(NetworkError::OtherFormat);
    }
    let recorded = recorded(file).map(|json| parse(&json)).transpose()?;
    let module = match policy {
        CodePolicy::Allowed => Module::load(file),
        _ => Module::load(&check::check(file)?),
    };
    let module = module.map_err(|error| match error.is_out_of_memory() {
        true => NetworkError::OutOfMemory(error.to_string()),
        false => NetworkError::NotTorchScript(error.to_string()),
    })?;
    let metadata = match recorded {
        Some(metadata) => metadata,
        // The file follows version 1 of the contract.
        None => {
            let json = module.call_for_text("meta");
            let json = json.map_err(|_| NetworkError::Foreign)?;
            parse(&json.ok_or(NetworkError::Foreign)?)?
        }
    };
    if tensor_hash(module.tensors()?) != metadata.hash {
        return Err(NetworkError::Hash);
    }
    Ok((module, metadata))
}

/// Returns the metadata record of a network file, if it has one.
fn recorded(file: &[u8]) -> Option<String> {
    check::metadata(&mut Archive::open(file).ok()?).ok()?
}

/// Returns the metadata record of a network file, or `None` if the file follows version 1 of the
/// contract. No code in the file runs, and the rest of the file is not checked.
///
/// # Errors
/// [`NetworkError`] if the file is not an archive, or its metadata are invalid.
pub fn metadata(file: &[u8]) -> Result<Option<Metadata>, NetworkError> {
    let archive = Archive::open(file).map_err(CheckError::Archive);
    let json = check::metadata(&mut archive?).map_err(CheckError::Archive)?;
    json.map(|json| parse(&json)).transpose()
}

/// Parses metadata and rejects removed families.
fn parse(json: &str) -> Result<Metadata, NetworkError> {
    let metadata = Metadata::parse(json)?;
    match metadata.architecture["family"] == "onnx" {
        true => Err(NetworkError::Graph),
        false => Ok(metadata),
    }
}

/// A network on its device. Clones share the memory of the parameters.
#[derive(Clone, Debug)]
pub struct TorchBackend {
    program: Arc<dyn Program>,
    metadata: Metadata,
    properties: Properties,
    heads: Heads,
    /// The indices of the words of an [`Input`] that the network reads, in the network's order.
    /// `None` if the network reads all words in their order.
    words: Option<Vec<i64>>,
    device: Device,
    dtype: ComputeType,
    /// Maximum number of positions per batch.
    largest: usize,
    /// Whether evaluating a batch takes only one copy to the device and one copy back, which
    /// contains only the logits of legal moves.
    exchanges: bool,
}

/// Tuple indices of the outputs that players use.
#[derive(Clone, Debug)]
struct Heads {
    policy: usize,
    wdl: usize,
    /// The output with the expected result, if it is not `wdl` that ranks moves.
    q: Option<usize>,
    error: Option<usize>,
    moves_left: Option<usize>,
}

/// Batch size at which a CPU core reaches almost its full speed.
const CPU_BATCH: usize = 32;
/// Batch size above which a CPU core becomes slower, because the activations exceed its cache.
const CPU_LARGEST: usize = 64;
/// Batch size at which a CUDA device reaches almost its full speed.
const CUDA_BATCH: usize = 256;
/// Batch size whose activations, together with a large network, fit in the memory of any device.
const CUDA_LARGEST: usize = 1024;
/// Number of callers that keep a CUDA device busy: one batch is gathered while another is computed.
const CUDA_THREADS: usize = 2;

/// Returns the batch sizes for CUDA, smallest first. There are few of them, because the first batch
/// of each size selects and loads kernels, which can take tens of milliseconds.
fn cuda_batches() -> impl Iterator<Item = usize> {
    let powers = (1..).map(|power| 1 << power);
    let sizes = powers.flat_map(|size| [size, size + size / 2]);
    let sizes = std::iter::once(1).chain(sizes);
    sizes.take_while(|&size| size <= CUDA_LARGEST)
}

impl TorchBackend {
    /// Loads the TorchScript of a network file on a device. `threads` is the number of concurrent
    /// callers; if it is 0, the backend chooses. Players on the CPU use
    /// [`backends::open`](crate::network::backends::open) instead.
    ///
    /// # Errors
    /// [`NetworkError`] if the file is not a network or cannot run on the device.
    pub fn new(
        file: &[u8],
        policy: CodePolicy,
        device: DeviceChoice,
        precision: Precision,
        threads: usize,
    ) -> Result<TorchBackend, NetworkError> {
        let (device, formats) = resolve(device, precision)?;
        if device == Device::Cpu {
            tch::set_num_threads(1);
        }
        let (module, metadata) = open(file, policy)?;
        let backend = TorchBackend::fastest(file, &metadata, device, &formats, |dtype| {
            Ok(Arc::new(module.copy()?.freeze(device, dtype.kind)?))
        })?;
        Ok(backend.with_threads(threads))
    }

    /// Returns the network of a file on a device, in the fastest of these formats. `program`
    /// creates the network's program for a format.
    ///
    /// # Errors
    /// Returns the error for the first format if the network cannot run in any format.
    pub(crate) fn fastest(
        file: &[u8],
        metadata: &Metadata,
        device: Device,
        formats: &[ComputeType],
        program: impl Fn(ComputeType) -> Result<Arc<dyn Program>, NetworkError>,
    ) -> Result<TorchBackend, NetworkError> {
        let ready = |dtype| TorchBackend::of_program(program(dtype)?, metadata, device, dtype);
        if let &[dtype] = formats {
            return ready(dtype);
        }
        // The key includes the file's code, because files with the same tensors may differ in their
        // code.
        let network = format!("{}-{:08x}", metadata.hash, crc32fast::hash(file));
        fastest::choose(&network, formats, ready)
    }

    /// Wraps a program that runs on a device in this dtype.
    ///
    /// # Errors
    /// [`NetworkError`] if the program does not compute the outputs that players need.
    pub(crate) fn of_program(
        program: Arc<dyn Program>,
        metadata: &Metadata,
        device: Device,
        dtype: ComputeType,
    ) -> Result<TorchBackend, NetworkError> {
        TorchBackend::require(metadata)?;
        let (recommended_batch, largest, callers) = match device {
            Device::Cpu => (CPU_BATCH, CPU_LARGEST, process::threads()),
            _ => (CUDA_BATCH, CUDA_LARGEST, CUDA_THREADS),
        };
        let planes = metadata.planes()?;
        let heads = Heads::new(metadata);
        let mut backend = TorchBackend {
            program,
            properties: Properties {
                name: metadata.name.clone(),
                encoder: Encoder::Rows(metadata.format().unwrap_or_default()),
                has_value: true,
                has_moves_left: heads.moves_left.is_some(),
                has_error: heads.error.is_some(),
                reads_ratings: planes.reads_ratings(),
                correction: metadata.correction.clone().map(Arc::new),
                recommended_batch,
                recommended_threads: callers,
                format: None,
            },
            heads,
            words: words(&planes.scalars),
            metadata: metadata.clone(),
            device,
            dtype,
            largest,
            exchanges: false,
        };
        backend.warm_up()?;
        backend.dtype.int8 &= backend.program.multiplies_in_int8();
        let precision = Precision::from(backend.dtype);
        Ok(backend.with_format(Format::from(precision)))
    }

    /// Checks that a network has the outputs that players need.
    pub(crate) fn require(metadata: &Metadata) -> Result<(), ContractError> {
        metadata.require("a player", &["policy", "wdl"])
    }

    fn with_format(mut self, format: Format) -> TorchBackend {
        self.properties.format = Some(format);
        self
    }

    /// Sets the recommended number of threads, unless `threads` is 0.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> TorchBackend {
        if threads > 0 {
            self.properties.recommended_threads = threads;
        }
        self
    }

    /// Changes to evaluating each batch with one copy to the device and one copy back.
    pub(crate) fn exchanging(self) -> TorchBackend {
        TorchBackend {
            exchanges: true,
            ..self
        }
    }

    /// Returns the network's metadata.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the network's device.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// Returns the network's dtype. It is int8 only if the network has layers that support int8.
    #[must_use]
    pub fn dtype(&self) -> ComputeType {
        self.dtype
    }

    /// Makes the first calls, in which libtorch records types and optimises the code for them. They
    /// take up to 80 ms, which would otherwise delay a search.
    fn warm_up(&self) -> Result<(), NetworkError> {
        let input = Input::encode(&Game::default());
        let batches = match self.device {
            // On the CPU, new batch sizes cost nothing extra, and a large batch would take seconds.
            Device::Cpu => vec![1, 2, 2, 1],
            _ => [1, 1].into_iter().chain(cuda_batches()).collect(),
        };
        for batch in batches {
            // A single step runs the same code as several steps.
            self.outputs(&vec![input; batch], Some(1))?;
        }
        Ok(())
    }

    /// Evaluates positions. Returns the network's outputs in the network's order, as contiguous f32
    /// tensors on the CPU. The outputs that players need have checked shapes.
    ///
    /// # Errors
    /// [`NetworkError`] if libtorch fails or an output's shape is wrong.
    pub fn forward(&self, inputs: &[Input]) -> Result<Vec<Tensor>, NetworkError> {
        Ok(self.outputs(inputs, None)?.0)
    }

    /// Evaluates positions in this number of steps. Also returns the predicted futures.
    fn outputs(
        &self,
        inputs: &[Input],
        steps: Option<usize>,
    ) -> Result<(Vec<Tensor>, Vec<PredictedFuture>), NetworkError> {
        let count = inputs.len() as i64;
        let padded = self.padded(inputs);
        let on_device = rows(&padded, self.words.as_deref())?.f_to_device(self.device);
        let on_device = on_device.map_err(TorchError::from)?;
        let (outputs, mut predicted) = self.program.forward_with_futures(&on_device, steps)?;
        predicted.truncate(inputs.len());
        let outputs = outputs
            .into_iter()
            .map(|output| {
                let output = match padded {
                    Cow::Borrowed(_) => output,
                    Cow::Owned(_) => output.f_narrow(0, 0, count)?,
                };
                let output = output.f_to_device(Device::Cpu)?;
                output.f_to_kind(Kind::Float)?.f_contiguous()
            })
            .collect::<Result<Vec<Tensor>, tch::TchError>>()
            .map_err(TorchError::from)?;
        self.check_shapes(&outputs, count)?;
        Ok((outputs, predicted))
    }

    /// Checks that the outputs for `count` positions have the shapes that players need.
    fn check_shapes(&self, outputs: &[Tensor], count: i64) -> Result<(), NetworkError> {
        for (index, name) in self.metadata.outputs().enumerate() {
            let expected = match name {
                "policy" => vec![count, POLICY_SIZE as i64],
                "wdl" => vec![count, 3],
                _ if self.heads.reads(index) => vec![count],
                _ => continue,
            };
            let found = outputs.get(index).map(Tensor::size).unwrap_or_default();
            if found != expected {
                return Err(NetworkError::Output {
                    name: name.to_owned(),
                    found,
                    expected,
                });
            }
        }
        Ok(())
    }

    /// Returns the positions. On CUDA they are padded to a batch size that has been warmed up.
    fn padded<'a>(&self, inputs: &'a [Input]) -> Cow<'a, [Input]> {
        if self.device == Device::Cpu {
            return Cow::Borrowed(inputs);
        }
        let batch = cuda_batches().find(|&batch| batch >= inputs.len());
        match (batch, inputs.last()) {
            (Some(batch), Some(&last)) if batch > inputs.len() => {
                let mut padded = inputs.to_vec();
                padded.resize(batch, last);
                Cow::Owned(padded)
            }
            _ => Cow::Borrowed(inputs),
        }
    }

    /// Returns the value of position `index`, or `None` if one of the outputs is not finite.
    fn value(&self, outputs: &[&[f32]], index: usize) -> Option<Value> {
        let wdl = [0, 1, 2].map(|part| outputs[self.heads.wdl][3 * index + part]);
        let scalars = [self.heads.q, self.heads.moves_left, self.heads.error];
        Value::of_outputs(wdl, scalars.map(|head| Some(outputs[head?][index])))
    }
}

impl Backend for TorchBackend {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        out.clear();
        if batch.inputs().len() != batch.len() {
            let reason = "the positions were not encoded".to_owned();
            return Err(BackendError::Torch(reason));
        }
        let failed = |error: NetworkError| BackendError::Torch(error.to_string());
        let mut moves = (0..batch.len()).map(|index| batch.moves(index));
        for inputs in batch.inputs().chunks(self.largest) {
            if self.exchanges {
                let moves: Vec<&[u16]> = moves.by_ref().take(inputs.len()).collect();
                let returned = self.exchange(inputs, &moves, batch.steps).map_err(failed)?;
                let outputs: Vec<&[f32]> = returned.outputs.iter().map(Vec::as_slice).collect();
                let mut later = &returned.logits[..];
                for (index, moves) in moves.iter().enumerate() {
                    let (logits, rest) = later.split_at(moves.len());
                    self.push(&outputs, index, logits.iter().copied(), out)?;
                    later = rest;
                }
                out.futures.extend(returned.predicted);
                continue;
            }
            let (tensors, predicted) = self.outputs(inputs, batch.steps).map_err(failed)?;
            out.futures.extend(predicted);
            let outputs: Vec<&[f32]> = tensors.iter().map(module::floats).collect();
            let policies = outputs[self.heads.policy].chunks_exact(POLICY_SIZE);
            for (index, (policy, moves)) in policies.zip(&mut moves).enumerate() {
                let logits = moves.iter().map(|&mv| policy[usize::from(mv)]);
                self.push(&outputs, index, logits, out)?;
            }
        }
        Ok(())
    }
}

impl TorchBackend {
    /// Appends the evaluation of position `index` to `out`.
    fn push(
        &self,
        outputs: &[&[f32]],
        index: usize,
        logits: impl Iterator<Item = f32> + Clone,
        out: &mut Evaluations,
    ) -> Result<(), BackendError> {
        match self.value(outputs, index) {
            Some(value) if logits.clone().all(f32::is_finite) => out.push(value, logits),
            _ => return Err(BackendError::NotFinite(self.metadata.name.clone())),
        }
        Ok(())
    }
}

impl Heads {
    /// Finds the heads of a network whose metadata has been checked.
    fn new(metadata: &Metadata) -> Heads {
        let required = |name| metadata.output(name).unwrap_or_default();
        let [q, error] = match metadata.ranking_outputs() {
            Some(names) => names.map(|name| metadata.output(name)),
            None => [None, None],
        };
        Heads {
            policy: required("policy"),
            wdl: required("wdl"),
            q,
            error,
            moves_left: metadata.output("moves_left"),
        }
    }

    /// Returns whether the output at this index is one of the scalar heads.
    fn reads(&self, output: usize) -> bool {
        [self.q, self.error, self.moves_left].contains(&Some(output))
    }
}

#[cfg(test)]
mod tests;
