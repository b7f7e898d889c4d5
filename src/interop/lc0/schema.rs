//! The messages of Lc0's weights files. Field types and numbers are from `net.proto` in
//! LeelaChessZero/lczero-common, with the additions in Lc0's repository. Messages that contain
//! tensors are in `tensors/table.rs`.
//!
//! Parts that Lc0 does not read, such as reserved fields and heads with unknown names, are omitted.

use prost::Message;
use prost::bytes::Bytes;
use std::fmt;

/// The four bytes in field 1 of every weights file.
pub(crate) const MAGIC: u32 = 0x1c0;

/// A whole file, with either weights or an ONNX model.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Net {
    #[prost(fixed32, optional, tag = "1")]
    pub magic: Option<u32>,
    #[prost(string, optional, tag = "2")]
    pub license: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub min_version: Option<EngineVersion>,
    #[prost(message, optional, tag = "4")]
    pub format: Option<Format>,
    #[prost(message, optional, tag = "5")]
    pub training_params: Option<TrainingParams>,
    /// The message that contains the tensors.
    #[prost(bytes = "bytes", optional, tag = "10")]
    pub weights: Option<Bytes>,
    #[prost(message, optional, tag = "11")]
    pub onnx_model: Option<OnnxModel>,
}

/// The oldest Lc0 that can read a file.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct EngineVersion {
    #[prost(uint32, optional, tag = "1")]
    pub major: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub minor: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub patch: Option<u32>,
}

impl EngineVersion {
    /// The version stated in the first files with attention bodies. It exceeds every real version,
    /// but Lc0 reads these files.
    const LEGACY: (u32, u32, u32) = (97, 98, 99);

    /// Major, minor and patch number.
    fn numbers(self) -> (u32, u32, u32) {
        (self.major(), self.minor(), self.patch())
    }

    /// Returns whether Lc0 version `known` can read the file.
    pub fn is_known_to(self, known: (u32, u32)) -> bool {
        let (major, minor, _) = self.numbers();
        (major, minor) <= known || self.numbers() == EngineVersion::LEGACY
    }
}

impl fmt::Display for EngineVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, patch) = self.numbers();
        write!(formatter, "{major}.{minor}.{patch}")
    }
}

/// One tensor, row by row, without its shape.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Layer {
    #[prost(float, optional, tag = "1")]
    pub min_val: Option<f32>,
    #[prost(float, optional, tag = "2")]
    pub max_val: Option<f32>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub params: Option<Bytes>,
    #[prost(enumeration = "Encoding", optional, tag = "4")]
    pub encoding: Option<i32>,
}

/// The encoding of a [`Layer`]'s values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum Encoding {
    Unknown = 0,
    Linear16 = 1,
    Float16 = 2,
    Bfloat16 = 3,
    Float32 = 4,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct Format {
    #[prost(enumeration = "Encoding", optional, tag = "1")]
    pub weights_encoding: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub network_format: Option<NetworkFormat>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct NetworkFormat {
    #[prost(int32, optional, tag = "1")]
    pub input: Option<i32>,
    #[prost(enumeration = "OutputFormat", optional, tag = "2")]
    pub output: Option<i32>,
    #[prost(enumeration = "NetworkStructure", optional, tag = "3")]
    pub network: Option<i32>,
    #[prost(enumeration = "PolicyFormat", optional, tag = "4")]
    pub policy: Option<i32>,
    #[prost(enumeration = "ValueFormat", optional, tag = "5")]
    pub value: Option<i32>,
    #[prost(enumeration = "MovesLeftFormat", optional, tag = "6")]
    pub moves_left: Option<i32>,
    #[prost(enumeration = "DefaultActivation", optional, tag = "7")]
    pub default_activation: Option<i32>,
    #[prost(enumeration = "ActivationFunction", optional, tag = "8")]
    pub smolgen_activation: Option<i32>,
    #[prost(enumeration = "ActivationFunction", optional, tag = "9")]
    pub ffn_activation: Option<i32>,
    #[prost(enumeration = "InputEmbedding", optional, tag = "10")]
    pub input_embedding: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum OutputFormat {
    Unknown = 0,
    Classical = 1,
    Wdl = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum NetworkStructure {
    Unknown = 0,
    Classical = 1,
    Se = 2,
    ClassicalWithHeads = 3,
    SeWithHeads = 4,
    Onnx = 5,
    AttentionBody = 6,
    AttentionBodyManyHeads = 7,
    AttentionBodyManyHeadsLegacy = 134,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum PolicyFormat {
    Unknown = 0,
    Classical = 1,
    Convolution = 2,
    Attention = 3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum ValueFormat {
    Unknown = 0,
    Classical = 1,
    Wdl = 2,
    Param = 3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum MovesLeftFormat {
    None = 0,
    V1 = 1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum DefaultActivation {
    Relu = 0,
    Mish = 1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum ActivationFunction {
    Default = 0,
    Mish = 1,
    Relu = 2,
    None = 3,
    Tanh = 4,
    Sigmoid = 5,
    Selu = 6,
    Swish = 7,
    Relu2 = 8,
    Softmax = 9,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum InputEmbedding {
    None = 0,
    PeMap = 1,
    PeDense = 2,
}

/// The trainer's notes.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrainingParams {
    #[prost(uint32, optional, tag = "1")]
    pub training_steps: Option<u32>,
    #[prost(float, optional, tag = "2")]
    pub learning_rate: Option<f32>,
    #[prost(float, optional, tag = "3")]
    pub mse_loss: Option<f32>,
    #[prost(float, optional, tag = "4")]
    pub policy_loss: Option<f32>,
    #[prost(float, optional, tag = "5")]
    pub accuracy: Option<f32>,
    #[prost(string, optional, tag = "6")]
    pub lc0_params: Option<String>,
}

/// An ONNX model, and the names of its inputs and outputs.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OnnxModel {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub model: Option<Bytes>,
    /// An ONNX type number.
    #[prost(int32, optional, tag = "2")]
    pub data_type: Option<i32>,
    #[prost(string, optional, tag = "3")]
    pub input_planes: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub output_value: Option<String>,
    #[prost(string, optional, tag = "5")]
    pub output_wdl: Option<String>,
    #[prost(string, optional, tag = "6")]
    pub output_policy: Option<String>,
    #[prost(string, optional, tag = "7")]
    pub output_mlh: Option<String>,
}
