//! Renames the tensors of heads. Files with a single head of each kind store them at different
//! paths from files with several, and towers use different names for some tensors.

use super::schema::PolicyFormat;
use super::tensors::Tensors;
use crate::network::lc0::{Lc0Config, PolicyHead, PolicyHeadConfig, ValueHead};
use clap::ValueEnum;

/// Renames a file's head tensors to the network's names. The heads of files with one policy and one
/// value get the names that files with several heads use.
pub(super) fn gather(tensors: &mut Tensors, policy: PolicyFormat, has_body: bool) {
    for kind in ["policy.", "value."] {
        let single = format!("single.{kind}");
        if tensors.has_any(kind) {
            tensors.rename("single.policy.embedding.", "policy.embedding.");
            tensors.remove(&single);
        }
        tensors.rename(&single, kind);
    }
    for squares in squares() {
        if !has_body {
            tensors.remove(&format!("{squares}.squares."));
            tensors.rename(&format!("{squares}.conv."), &format!("{squares}.squares."));
        }
        tensors.remove(&format!("{squares}.conv."));
    }
    let heads = PolicyHead::value_variants().iter();
    let heads = heads.map(|head| format!("policy.{}.", head.name()));
    let present: Vec<String> = heads.filter(|head| tensors.has_any(head)).collect();
    // The last layer of a classical policy uses the same field as the embedding of attention
    // policies.
    if policy == PolicyFormat::Classical {
        for head in &present {
            tensors.rename(&format!("{head}conv2."), &format!("{head}squares."));
            tensors.rename(&format!("{head}embedding."), &format!("{head}moves."));
            for part in ["weight", "bias"] {
                if let Some(shared) = tensors.layers.get(&format!("policy.embedding.{part}")) {
                    let (name, shared) = (format!("{head}moves.{part}"), shared.clone());
                    tensors.layers.entry(name).or_insert(shared);
                }
            }
        }
        tensors.remove("policy.embedding.");
        return;
    }
    let has_own = |head: &String| tensors.has_any(&format!("{head}embedding."));
    let has_shared = tensors.has_any("policy.embedding.");
    match &present[..] {
        [head] if !has_shared => tensors.rename(&format!("{head}embedding."), "policy.embedding."),
        _ if present.iter().all(has_own) => tensors.remove("policy.embedding."),
        _ => {}
    }
}

/// Reverses [`gather`]. `single` selects the layout with one head of each kind.
pub(super) fn spread(tensors: &mut Tensors, config: &Lc0Config, single: bool) {
    if config.attention.is_none() {
        for squares in squares() {
            tensors.rename(&format!("{squares}.squares."), &format!("{squares}.conv."));
        }
    }
    for (name, head) in &config.policy.heads {
        let head_name = format!("policy.{}.", name.name());
        if let PolicyHeadConfig::Classical { .. } = head {
            tensors.rename(
                &format!("{head_name}squares."),
                &format!("{head_name}conv2."),
            );
            tensors.rename(
                &format!("{head_name}moves."),
                &format!("{head_name}embedding."),
            );
        }
    }
    if single {
        tensors.rename("policy.vanilla.embedding.", "policy.embedding.");
        for kind in ["policy.", "value."] {
            tensors.rename(kind, &format!("single.{kind}"));
        }
    }
}

/// Returns the heads that read towers through a convolution.
fn squares() -> impl Iterator<Item = String> {
    let values = ValueHead::value_variants().iter();
    let values = values.map(|head| format!("value.{}", head.name()));
    values.chain(["moves_left".to_owned()])
}
