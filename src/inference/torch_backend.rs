//! Networks that libtorch holds in memory, as backends.

mod exchange;

use super::candidate::Candidate;
use crate::backend::{
    Backend, BackendError, Batch, ContractError, Evaluations, Format, Metadata, PredictedFuture,
    Properties, Value, Way,
};
use crate::chess::Game;
use crate::encode::{Encoder, Input, POLICY_SIZE};
use crate::network::Program;
use crate::torch::{self, ComputeType, NetworkError, TorchError, process};
use exchange::Returned;
use std::borrow::Cow;
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

/// A network on its device. Clones share the memory of the parameters.
#[derive(Clone, Debug)]
pub struct TorchBackend {
    program: Arc<dyn Program>,
    /// The network's metadata.
    pub metadata: Metadata,
    properties: Properties,
    heads: Heads,
    /// The indices of the words of an [`Input`] that the network reads, in the network's order.
    /// `None` if the network reads all words in their order.
    words: Option<Vec<i64>>,
    /// The network's device.
    pub device: Device,
    /// The network's dtype. It is int8 only if the network has layers that support int8.
    pub dtype: ComputeType,
    /// Maximum number of positions per batch.
    largest: usize,
    /// Whether evaluating a batch takes only one copy to the device and one copy back, which
    /// contains only the logits of legal moves.
    pub(super) exchanges: bool,
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
    /// Wraps a program that runs on a device by this way and in this dtype.
    ///
    /// # Errors
    /// [`NetworkError`] if the program does not compute the outputs that players need.
    pub(crate) fn of_program(
        program: Arc<dyn Program>,
        metadata: &Metadata,
        device: Device,
        Candidate { way, dtype }: Candidate,
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
            words: torch::words(&planes.scalars),
            metadata: metadata.clone(),
            device,
            dtype,
            largest,
            exchanges: device != Device::Cpu || matches!(way, Way::Operators | Way::Encoder),
        };
        backend.warm_up()?;
        backend.dtype.int8 &= backend.program.multiplies_in_int8();
        let format = Format::only(way, backend.dtype.into());
        Ok(backend.with_format(format))
    }

    /// Checks that a network has the outputs that players need.
    pub(crate) fn require(metadata: &Metadata) -> Result<(), ContractError> {
        metadata.require("a player", &["policy", "wdl"])
    }

    pub(super) fn with_format(mut self, format: Format) -> TorchBackend {
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

    /// Changes to evaluating each batch with one copy to the device and one copy back, or with a
    /// plain copy for each output.
    pub(super) fn exchanging(self, exchanges: bool) -> TorchBackend {
        TorchBackend { exchanges, ..self }
    }

    /// Returns the way in which the network runs.
    pub fn way(&self) -> Way {
        let format = self.properties.format.as_ref();
        format.map_or(Way::Auto, |format| format.way)
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
        let on_device = torch::rows(&padded, self.words.as_deref())?.f_to_device(self.device);
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
    fn value(&self, outputs: &[Vec<f32>], index: usize) -> Option<Value> {
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
            let moves: Vec<&[u16]> = moves.by_ref().take(inputs.len()).collect();
            let returned = match self.exchanges {
                true => self.exchange(inputs, &moves, batch.steps),
                false => self.gathered(inputs, &moves, batch.steps),
            };
            let returned = returned.map_err(failed)?;
            let mut later = &returned.logits[..];
            for (index, moves) in moves.iter().enumerate() {
                let (logits, rest) = later.split_at(moves.len());
                match self.value(&returned.outputs, index) {
                    Some(value) if logits.iter().all(|logit| logit.is_finite()) => {
                        out.push(value, logits.iter().copied());
                    }
                    _ => return Err(BackendError::NotFinite(self.metadata.name.clone())),
                }
                later = rest;
            }
            out.futures.extend(returned.predicted);
        }
        Ok(())
    }
}

impl TorchBackend {
    /// Evaluates positions like [`exchange`](TorchBackend::exchange), but selects the logits of
    /// the moves on the CPU.
    fn gathered(
        &self,
        inputs: &[Input],
        moves: &[&[u16]],
        steps: Option<usize>,
    ) -> Result<Returned, NetworkError> {
        let (tensors, predicted) = self.outputs(inputs, steps)?;
        let outputs = tensors.iter().enumerate();
        let outputs: Vec<Vec<f32>> = outputs
            .map(|(index, tensor)| match index == self.heads.policy {
                true => Vec::new(),
                false => torch::slice(tensor).to_vec(),
            })
            .collect();
        let policies = torch::slice(&tensors[self.heads.policy]).chunks_exact(POLICY_SIZE);
        let logits = policies.zip(moves);
        let logits =
            logits.flat_map(|(policy, moves)| moves.iter().map(|&mv| policy[usize::from(mv)]));
        Ok(Returned {
            logits: logits.collect(),
            outputs,
            predicted,
        })
    }
}

impl Heads {
    /// Finds the heads of a network whose metadata has been checked.
    fn new(metadata: &Metadata) -> Heads {
        let required = |name| metadata.output(name).unwrap_or_default();
        let [q, error] = metadata.ranking_outputs().map_or([None, None], |names| {
            names.map(|name| metadata.output(name))
        });
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
