//! The messages that hold tensors.

use super::Encoding;
use prost::Message;
use prost::bytes::Bytes;

/// One tensor, row by row; whoever reads it knows its shape.
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

/// A convolution and the batch norm after it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ConvBlock {
    #[prost(message, optional, tag = "1")]
    pub weights: Option<Layer>,
    #[prost(message, optional, tag = "2")]
    pub biases: Option<Layer>,
    #[prost(message, optional, tag = "3")]
    pub bn_means: Option<Layer>,
    /// Variances, whatever the name says.
    #[prost(message, optional, tag = "4")]
    pub bn_stddivs: Option<Layer>,
    #[prost(message, optional, tag = "5")]
    pub bn_gammas: Option<Layer>,
    #[prost(message, optional, tag = "6")]
    pub bn_betas: Option<Layer>,
}

/// Squeeze and excitation (Hu et al., 2018).
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SeUnit {
    #[prost(message, optional, tag = "1")]
    pub w1: Option<Layer>,
    #[prost(message, optional, tag = "2")]
    pub b1: Option<Layer>,
    #[prost(message, optional, tag = "3")]
    pub w2: Option<Layer>,
    #[prost(message, optional, tag = "4")]
    pub b2: Option<Layer>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Residual {
    #[prost(message, optional, tag = "1")]
    pub conv1: Option<ConvBlock>,
    #[prost(message, optional, tag = "2")]
    pub conv2: Option<ConvBlock>,
    #[prost(message, optional, tag = "3")]
    pub se: Option<SeUnit>,
}

/// What generates a layer's attention biases from the board.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Smolgen {
    #[prost(message, optional, tag = "1")]
    pub compress: Option<Layer>,
    #[prost(message, optional, tag = "2")]
    pub dense1_w: Option<Layer>,
    #[prost(message, optional, tag = "3")]
    pub dense1_b: Option<Layer>,
    #[prost(message, optional, tag = "4")]
    pub ln1_gammas: Option<Layer>,
    #[prost(message, optional, tag = "5")]
    pub ln1_betas: Option<Layer>,
    #[prost(message, optional, tag = "6")]
    pub dense2_w: Option<Layer>,
    #[prost(message, optional, tag = "7")]
    pub dense2_b: Option<Layer>,
    #[prost(message, optional, tag = "8")]
    pub ln2_gammas: Option<Layer>,
    #[prost(message, optional, tag = "9")]
    pub ln2_betas: Option<Layer>,
}

/// Multi-head attention.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Mha {
    #[prost(message, optional, tag = "1")]
    pub q_w: Option<Layer>,
    #[prost(message, optional, tag = "2")]
    pub q_b: Option<Layer>,
    #[prost(message, optional, tag = "3")]
    pub k_w: Option<Layer>,
    #[prost(message, optional, tag = "4")]
    pub k_b: Option<Layer>,
    #[prost(message, optional, tag = "5")]
    pub v_w: Option<Layer>,
    #[prost(message, optional, tag = "6")]
    pub v_b: Option<Layer>,
    #[prost(message, optional, tag = "7")]
    pub dense_w: Option<Layer>,
    #[prost(message, optional, tag = "8")]
    pub dense_b: Option<Layer>,
    #[prost(message, optional, tag = "9")]
    pub smolgen: Option<Smolgen>,
    /// Relative position encodings, which Lc0 itself refuses.
    #[prost(message, optional, tag = "10")]
    pub rpe_q: Option<Layer>,
    #[prost(message, optional, tag = "11")]
    pub rpe_k: Option<Layer>,
    #[prost(message, optional, tag = "12")]
    pub rpe_v: Option<Layer>,
}

/// A feed-forward block.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Ffn {
    #[prost(message, optional, tag = "1")]
    pub dense1_w: Option<Layer>,
    #[prost(message, optional, tag = "2")]
    pub dense1_b: Option<Layer>,
    #[prost(message, optional, tag = "3")]
    pub dense2_w: Option<Layer>,
    #[prost(message, optional, tag = "4")]
    pub dense2_b: Option<Layer>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct EncoderLayer {
    #[prost(message, optional, tag = "1")]
    pub mha: Option<Mha>,
    #[prost(message, optional, tag = "2")]
    pub ln1_gammas: Option<Layer>,
    #[prost(message, optional, tag = "3")]
    pub ln1_betas: Option<Layer>,
    #[prost(message, optional, tag = "4")]
    pub ffn: Option<Ffn>,
    #[prost(message, optional, tag = "5")]
    pub ln2_gammas: Option<Layer>,
    #[prost(message, optional, tag = "6")]
    pub ln2_betas: Option<Layer>,
}

/// A policy: by attention, or by one or two convolutions.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PolicyHead {
    #[prost(message, optional, tag = "1")]
    pub ip_pol_w: Option<Layer>,
    #[prost(message, optional, tag = "2")]
    pub ip_pol_b: Option<Layer>,
    #[prost(message, optional, tag = "3")]
    pub ip2_pol_w: Option<Layer>,
    #[prost(message, optional, tag = "4")]
    pub ip2_pol_b: Option<Layer>,
    #[prost(message, optional, tag = "5")]
    pub ip3_pol_w: Option<Layer>,
    #[prost(message, optional, tag = "6")]
    pub ip3_pol_b: Option<Layer>,
    #[prost(message, optional, tag = "7")]
    pub ip4_pol_w: Option<Layer>,
    #[prost(message, repeated, tag = "8")]
    pub pol_encoder: Vec<EncoderLayer>,
    #[prost(uint32, optional, tag = "9")]
    pub pol_headcount: Option<u32>,
    #[prost(message, optional, tag = "10")]
    pub policy1: Option<ConvBlock>,
    #[prost(message, optional, tag = "11")]
    pub policy: Option<ConvBlock>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ValueHead {
    #[prost(message, optional, tag = "1")]
    pub ip_val_w: Option<Layer>,
    #[prost(message, optional, tag = "2")]
    pub ip_val_b: Option<Layer>,
    #[prost(message, optional, tag = "3")]
    pub ip1_val_w: Option<Layer>,
    #[prost(message, optional, tag = "4")]
    pub ip1_val_b: Option<Layer>,
    #[prost(message, optional, tag = "5")]
    pub ip2_val_w: Option<Layer>,
    #[prost(message, optional, tag = "6")]
    pub ip2_val_b: Option<Layer>,
    #[prost(message, optional, tag = "7")]
    pub ip_val_err_w: Option<Layer>,
    #[prost(message, optional, tag = "8")]
    pub ip_val_err_b: Option<Layer>,
    #[prost(message, optional, tag = "9")]
    pub ip_val_cat_w: Option<Layer>,
    #[prost(message, optional, tag = "10")]
    pub ip_val_cat_b: Option<Layer>,
    #[prost(message, optional, tag = "11")]
    pub value: Option<ConvBlock>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PolicyHeads {
    #[prost(message, optional, tag = "1")]
    pub ip_pol_w: Option<Layer>,
    #[prost(message, optional, tag = "2")]
    pub ip_pol_b: Option<Layer>,
    #[prost(message, optional, tag = "3")]
    pub vanilla: Option<PolicyHead>,
    #[prost(message, optional, tag = "4")]
    pub optimistic_st: Option<PolicyHead>,
    #[prost(message, optional, tag = "5")]
    pub soft: Option<PolicyHead>,
    #[prost(message, optional, tag = "6")]
    pub opponent: Option<PolicyHead>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ValueHeads {
    #[prost(message, optional, tag = "1")]
    pub winner: Option<ValueHead>,
    #[prost(message, optional, tag = "2")]
    pub q: Option<ValueHead>,
    #[prost(message, optional, tag = "3")]
    pub st: Option<ValueHead>,
}

/// All tensors. Files with one policy and one value keep them here, others in
/// `policy_heads` and `value_heads`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Weights {
    #[prost(message, optional, tag = "1")]
    pub input: Option<ConvBlock>,
    #[prost(message, repeated, tag = "2")]
    pub residual: Vec<Residual>,
    #[prost(message, optional, tag = "37")]
    pub ip_emb_preproc_w: Option<Layer>,
    #[prost(message, optional, tag = "38")]
    pub ip_emb_preproc_b: Option<Layer>,
    #[prost(message, optional, tag = "25")]
    pub ip_emb_w: Option<Layer>,
    #[prost(message, optional, tag = "26")]
    pub ip_emb_b: Option<Layer>,
    #[prost(message, optional, tag = "39")]
    pub ip_emb_ln_gammas: Option<Layer>,
    #[prost(message, optional, tag = "40")]
    pub ip_emb_ln_betas: Option<Layer>,
    #[prost(message, optional, tag = "33")]
    pub ip_mult_gate: Option<Layer>,
    #[prost(message, optional, tag = "34")]
    pub ip_add_gate: Option<Layer>,
    #[prost(message, optional, tag = "41")]
    pub ip_emb_ffn: Option<Ffn>,
    #[prost(message, optional, tag = "42")]
    pub ip_emb_ffn_ln_gammas: Option<Layer>,
    #[prost(message, optional, tag = "43")]
    pub ip_emb_ffn_ln_betas: Option<Layer>,
    #[prost(message, repeated, tag = "27")]
    pub encoder: Vec<EncoderLayer>,
    #[prost(uint32, optional, tag = "28")]
    pub headcount: Option<u32>,
    #[prost(message, repeated, tag = "21")]
    pub pol_encoder: Vec<EncoderLayer>,
    #[prost(uint32, optional, tag = "24")]
    pub pol_headcount: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub policy1: Option<ConvBlock>,
    #[prost(message, optional, tag = "3")]
    pub policy: Option<ConvBlock>,
    #[prost(message, optional, tag = "4")]
    pub ip_pol_w: Option<Layer>,
    #[prost(message, optional, tag = "5")]
    pub ip_pol_b: Option<Layer>,
    #[prost(message, optional, tag = "17")]
    pub ip2_pol_w: Option<Layer>,
    #[prost(message, optional, tag = "18")]
    pub ip2_pol_b: Option<Layer>,
    #[prost(message, optional, tag = "19")]
    pub ip3_pol_w: Option<Layer>,
    #[prost(message, optional, tag = "20")]
    pub ip3_pol_b: Option<Layer>,
    #[prost(message, optional, tag = "22")]
    pub ip4_pol_w: Option<Layer>,
    #[prost(message, optional, tag = "6")]
    pub value: Option<ConvBlock>,
    #[prost(message, optional, tag = "29")]
    pub ip_val_w: Option<Layer>,
    #[prost(message, optional, tag = "30")]
    pub ip_val_b: Option<Layer>,
    #[prost(message, optional, tag = "7")]
    pub ip1_val_w: Option<Layer>,
    #[prost(message, optional, tag = "8")]
    pub ip1_val_b: Option<Layer>,
    #[prost(message, optional, tag = "9")]
    pub ip2_val_w: Option<Layer>,
    #[prost(message, optional, tag = "10")]
    pub ip2_val_b: Option<Layer>,
    #[prost(message, optional, boxed, tag = "44")]
    pub value_heads: Option<Box<ValueHeads>>,
    #[prost(message, optional, boxed, tag = "45")]
    pub policy_heads: Option<Box<PolicyHeads>>,
    #[prost(message, optional, tag = "12")]
    pub moves_left: Option<ConvBlock>,
    #[prost(message, optional, tag = "31")]
    pub ip_mov_w: Option<Layer>,
    #[prost(message, optional, tag = "32")]
    pub ip_mov_b: Option<Layer>,
    #[prost(message, optional, tag = "13")]
    pub ip1_mov_w: Option<Layer>,
    #[prost(message, optional, tag = "14")]
    pub ip1_mov_b: Option<Layer>,
    #[prost(message, optional, tag = "15")]
    pub ip2_mov_w: Option<Layer>,
    #[prost(message, optional, tag = "16")]
    pub ip2_mov_b: Option<Layer>,
    #[prost(message, optional, tag = "35")]
    pub smolgen_w: Option<Layer>,
}
