//! Copies token features.
//!
//! A layer norm subtracts the mean over all features, so new features of zero would change the
//! norm's output for the old features. Copies preserve the mean and the variance (Net2Wider, Chen
//! et al. 2016).

use crate::network::chessformer::{ModelConfig, NormKind};
use tch::{Kind, Tensor};

/// Returns how often the tokens of `to` contain each feature of `from`, or `None` if they do not
/// contain copies.
pub(super) fn copies(from: &ModelConfig, to: &ModelConfig) -> Option<i64> {
    let is_multiple = to.width > from.width && to.width % from.width == 0;
    (to.norm == NormKind::Layer && is_multiple).then_some(to.width / from.width)
}

/// Whether a parameter writes or reads token features, and along which axis.
enum Role {
    Writes(i64),
    Reads(i64),
}

fn role(name: &str, axes: i64) -> Option<Role> {
    let is_of = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if is_of(&["embedding.multiply", "embedding.add", "position.offset"]) {
        Some(Role::Writes(1))
    } else if is_of(&[
        "attention.output.",
        "feed_forward.narrow.",
        "attention.norm.",
        "feed_forward.norm.",
        "embedding.project.",
        "embedding.attacks.",
        "embedding.ratings.",
    ]) {
        Some(Role::Writes(0))
    } else if is_of(&[
        "attention.query_key.weight",
        "attention.value.weight",
        "feed_forward.widen.weight",
        "policy.embedding.weight",
        ".squares.weight",
    ]) {
        Some(Role::Reads(axes - 1))
    } else {
        None
    }
}

/// Returns `old` for tokens that contain each feature `copies` times. Weights that write a feature
/// write all its copies alike. Weights that read a feature are split evenly among its copies and
/// get differences from `fresh` that sum to zero, so that the copies get different gradients and
/// diverge. No axis of `old` may be longer than that of `fresh`.
pub(super) fn copy(name: &str, old: &Tensor, copies: i64, fresh: &Tensor) -> Tensor {
    match role(name, old.dim() as i64) {
        None => old.shallow_clone(),
        Some(Role::Writes(axis)) => Tensor::cat(&vec![old; copies as usize], axis),
        Some(Role::Reads(axis)) => {
            let sizes = old.size();
            let rows = (0..axis).fold(fresh.shallow_clone(), |rows, other| {
                rows.narrow(other, 0, sizes[other as usize])
            });
            let mut by_copy = sizes;
            by_copy.insert(axis as usize, copies);
            let fresh = rows.reshape(by_copy);
            let differences = &fresh - fresh.mean_dim([axis].as_slice(), true, Kind::Float);
            let read = old.unsqueeze(axis) / copies as f64 + differences;
            read.flatten(axis, axis + 1)
        }
    }
}
