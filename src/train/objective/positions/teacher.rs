//! Distillation: uses another network's outputs as targets.

use super::tensors::Targets;
use crate::backend::{CodePolicy, Way};
use crate::encode::{InputFormat, POLICY_SIZE};
use crate::inference::Planned;
use crate::network::Program;
use crate::torch;
use crate::train::config::DistillationConfig;
use crate::train::error::TeacherError;
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

/// A network whose outputs for every batch are targets.
#[derive(Debug)]
pub(super) struct Teacher {
    program: Arc<dyn Program>,
    /// Indices of the words that the teacher reads in a row, i64; `None` if it reads all of them.
    words: Option<Tensor>,
    policy: usize,
    wdl: usize,
    q: Option<usize>,
    temperature: f64,
}

/// A teacher's outputs for B positions.
#[derive(Debug)]
pub(in crate::train::objective) struct TeacherOutputs {
    /// Probabilities of the legal moves at the temperature, f32 [B, 1858].
    pub policy: Tensor,
    /// Probabilities of win, draw and loss, f32 [B, 3].
    pub wdl: Tensor,
    /// The value in −1…1, f32 `[B]`, if the teacher has this output.
    pub q: Option<Tensor>,
}

impl Teacher {
    /// Loads the teacher of a network that reads `format`. The teacher computes in dtype `kind` on
    /// `device`. Code in its file is subject to the code policy.
    pub fn load(
        config: &DistillationConfig,
        policy: CodePolicy,
        format: InputFormat,
        device: Device,
        kind: Kind,
    ) -> Result<Teacher, TeacherError> {
        let path = config.net.clone();
        let failed = |source| TeacherError::Network {
            path: config.net.clone(),
            source,
        };
        let file = std::fs::read(&path).map_err(|source| TeacherError::Read {
            path: path.clone(),
            source,
        })?;
        let planned = Planned::new(&file, policy, device, &[kind.into()], Way::Auto);
        let planned = planned.map_err(failed)?;
        let metadata = planned.metadata();
        let planes = metadata.planes().map_err(|error| failed(error.into()))?;
        // All classical formats have the same rows.
        let is_same =
            |own: InputFormat| own == format || own.is_classical() && format.is_classical();
        if !metadata.format().is_some_and(is_same) {
            return Err(TeacherError::Format {
                path,
                format: planes.format,
                expected: format.number(),
            });
        }
        let words = torch::words(&planes.scalars);
        let words = words.map(|words| Tensor::from_slice(&words).to_device(device));
        let required = |name| metadata.output(name).unwrap_or_default();
        Ok(Teacher {
            program: planned.trusted_program().map_err(failed)?,
            words,
            policy: required("policy"),
            wdl: required("wdl"),
            q: metadata.output("q"),
            temperature: config.temperature,
        })
    }

    /// Returns a handle to the same teacher for another thread.
    pub fn share(&self) -> Teacher {
        Teacher {
            program: Arc::clone(&self.program),
            words: self.words.as_ref().map(Tensor::shallow_clone),
            ..*self
        }
    }

    /// Returns the outputs for rows, i64 [B, WIDTH].
    pub fn evaluate(
        &self,
        rows: &Tensor,
        targets: &Targets,
    ) -> Result<TeacherOutputs, TeacherError> {
        let read = match &self.words {
            Some(words) => rows.index_select(1, words),
            None => rows.shallow_clone(),
        };
        let outputs = self.program.forward(&read)?;
        let policy = outputs[self.policy].to_kind(Kind::Float);
        debug_assert_eq!(policy.size()[1], POLICY_SIZE as i64);
        let policy = targets.masked(&(policy / self.temperature));
        Ok(TeacherOutputs {
            policy: policy.softmax(-1, Kind::Float),
            wdl: outputs[self.wdl].softmax(-1, Kind::Float),
            // A copy, because inference-mode tensors cannot take part in autograd.
            q: self
                .q
                .map(|q| outputs[q].to_kind(Kind::Float).clamp(-1.0, 1.0)),
        })
    }
}

impl TeacherOutputs {
    /// Returns the outputs for `count` positions from `start`.
    pub fn narrow(&self, start: i64, count: i64) -> TeacherOutputs {
        let part = |tensor: &Tensor| tensor.narrow(0, start, count);
        TeacherOutputs {
            policy: part(&self.policy),
            wdl: part(&self.wdl),
            q: self.q.as_ref().map(part),
        }
    }
}
