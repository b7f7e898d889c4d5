//! Tokens whose features are copied.
//!
//! A layer norm subtracts the mean, so features of zero would change its output for the others.
//! Copies keep mean and variance (Net2Wider, Chen et al. 2016).

use crate::network::chessformer::{ModelConfig, NormKind};
use tch::{Kind, Tensor};

/// The number of times that tokens of `to` hold each feature of `from`, if they hold copies.
pub(super) fn copies(from: &ModelConfig, to: &ModelConfig) -> Option<i64> {
    let is_multiple = to.width > from.width && to.width % from.width == 0;
    (to.norm == NormKind::Layer && is_multiple).then_some(to.width / from.width)
}

/// The relation of a parameter to token features, and their axis.
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

/// `old` for tokens that hold each feature `copies` times. What writes features writes
/// each copy alike. What reads them reads each in equal parts, and in differences that
/// come from `fresh` and add up to nothing: so the copies get gradients of their own and
/// part. No axis of `old` is longer than that of `fresh`.
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
