//! Another network's answers as targets.

use super::config::DistillationConfig;
use super::tensors::Targets;
use crate::encode::{InputFormat, POLICY_SIZE};
use crate::nn::torch::{self, Module, NetworkError, TorchError};
use std::path::PathBuf;
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

/// Why there is no teacher.
#[derive(Debug, thiserror::Error)]
pub enum TeacherError {
    /// The file cannot be read.
    #[error("cannot read the teacher {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no network that can be used.
    #[error("cannot learn from {path}: {source}")]
    Network {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: NetworkError,
    },
    /// It does not see positions as they come in training.
    #[error(
        "cannot learn from {path}: it reads positions in input format {format}, and training data come in format 1"
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The format that it reads.
        format: u32,
    },
    /// libtorch failed while the teacher computed.
    #[error("the teacher could not be evaluated: {0}")]
    Torch(#[from] TorchError),
}

/// A network that is asked what it thinks of every batch.
#[derive(Debug)]
pub(super) struct Teacher {
    module: Arc<Module>,
    /// The words of a row that it reads, i64; `None` if it reads all.
    words: Option<Tensor>,
    policy: usize,
    wdl: usize,
    q: Option<usize>,
    temperature: f64,
}

/// What a teacher says of B positions.
#[derive(Debug)]
pub(super) struct Advice {
    /// Probabilities of legal moves at the temperature, f32 [B, 1858].
    pub policy: Tensor,
    /// Probabilities of win, draw and loss, f32 [B, 3].
    pub wdl: Tensor,
    /// The reward in −1…1, f32 `[B]`, if it knows one apart from `wdl`.
    pub q: Option<Tensor>,
}

impl Teacher {
    /// Loads the teacher, to compute in `kind` on `device`.
    pub fn load(
        config: &DistillationConfig,
        device: Device,
        kind: Kind,
    ) -> Result<Teacher, TeacherError> {
        let path = config.net.clone();
        let file = match std::fs::read(&path) {
            Ok(file) => file,
            Err(source) => return Err(TeacherError::Read { path, source }),
        };
        // The fuser would compile kernels for this batch size, then for another.
        tch::jit::set_tensor_expr_fuser_enabled(false);
        let (module, metadata) = match torch::open(&file) {
            Ok(opened) => opened,
            Err(source) => return Err(TeacherError::Network { path, source }),
        };
        if !metadata.format().is_some_and(InputFormat::is_classical) {
            let format = metadata.input_format;
            return Err(TeacherError::Format { path, format });
        }
        let words = torch::words(&metadata.scalars).map(|words| {
            let words: Vec<i64> = words.into_iter().map(|word| word as i64).collect();
            Tensor::from_slice(&words).to_device(device)
        });
        let required = |name| metadata.output(name).unwrap_or_default();
        Ok(Teacher {
            module: Arc::new(module.freeze(device, kind)?),
            words,
            policy: required("policy"),
            wdl: required("wdl"),
            q: metadata.output("q"),
            temperature: config.temperature,
        })
    }

    /// The same network, to be asked by another thread.
    pub fn share(&self) -> Teacher {
        Teacher {
            module: Arc::clone(&self.module),
            words: self.words.as_ref().map(Tensor::shallow_clone),
            ..*self
        }
    }

    /// What it says of rows i64 [B, WIDTH].
    pub fn advise(&self, rows: &Tensor, targets: &Targets) -> Result<Advice, TeacherError> {
        let read = match &self.words {
            Some(words) => rows.index_select(1, words),
            None => rows.shallow_clone(),
        };
        let outputs = self.module.forward(&read)?;
        let policy = outputs[self.policy].to_kind(Kind::Float);
        debug_assert_eq!(policy.size()[1], POLICY_SIZE as i64);
        let policy = targets.masked(&(policy / self.temperature));
        Ok(Advice {
            policy: policy.softmax(-1, Kind::Float),
            wdl: outputs[self.wdl].softmax(-1, Kind::Float),
            // A copy: what comes out of inference can take part in no gradient.
            q: self
                .q
                .map(|q| outputs[q].to_kind(Kind::Float).clamp(-1.0, 1.0)),
        })
    }
}

impl Advice {
    /// What it says of `count` positions from `start` on.
    pub fn narrow(&self, start: i64, count: i64) -> Advice {
        let part = |tensor: &Tensor| tensor.narrow(0, start, count);
        Advice {
            policy: part(&self.policy),
            wdl: part(&self.wdl),
            q: self.q.as_ref().map(part),
        }
    }
}
