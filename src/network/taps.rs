//! A look inside a forward pass: attention maps and activations by name.

use std::cell::RefCell;
use std::collections::BTreeMap;
use tch::Tensor;

/// Collects the inner tensors of one forward pass by name:
///
/// | name | tensor |
/// |---|---|
/// | `embedding` | tokens before the first layer, [B, 64, width] |
/// | `encoder.N` | tokens after layer N, [B, 64, width] |
/// | `encoder.N.attention.products` | scaled products of queries and keys, [B, heads, 64, 64] |
/// | `encoder.N.attention.bias` | what the position encoding and attacks add to them, [B or 1, heads, 64, 64] |
/// | `encoder.N.attention.weights` | softmax of their sum: rows are squares that look, columns those looked at |
/// | `encoder.N.feed_forward.input` | tokens that the block reads, [B, 64, width] |
/// | `encoder.N.feed_forward.hidden` | its hidden units after the activation, [B, 64, wide] |
/// | `encoder.N.feed_forward.output` | what it adds to its input, [B, 64, width] |
///
/// Nothing is computed for a tap that is not asked for, and an exported network
/// has none.
#[derive(Debug, Default)]
pub struct Taps {
    taken: RefCell<BTreeMap<String, Tensor>>,
}

impl Taps {
    /// What was collected.
    #[must_use]
    pub fn into_tensors(self) -> BTreeMap<String, Tensor> {
        self.taken.into_inner()
    }
}

/// Where in a network a forward pass is, and who listens.
#[derive(Clone, Debug, Default)]
pub struct Tap<'a> {
    taps: Option<&'a Taps>,
    path: String,
}

impl<'a> Tap<'a> {
    /// Collects into `taps`.
    #[must_use]
    pub fn into(taps: &'a Taps) -> Tap<'a> {
        Tap {
            taps: Some(taps),
            path: String::new(),
        }
    }

    /// Whether anybody listens.
    pub(super) fn is_open(&self) -> bool {
        self.taps.is_some()
    }

    /// A part of this part of the network.
    pub(super) fn scope(&self, name: impl std::fmt::Display) -> Tap<'a> {
        Tap {
            path: match self.taps {
                Some(_) => self.name(name),
                None => String::new(),
            },
            taps: self.taps,
        }
    }

    /// Hands over a tensor under a name of this part, or of the part itself if the
    /// name is empty.
    pub(super) fn give(&self, name: &str, tensor: &Tensor) {
        if let Some(taps) = self.taps {
            let mut taken = taps.taken.borrow_mut();
            taken.insert(self.name(name), tensor.detach());
        }
    }

    fn name(&self, name: impl std::fmt::Display) -> String {
        let name = name.to_string();
        match (self.path.as_str(), name.as_str()) {
            ("", _) => name,
            (path, "") => path.to_owned(),
            (path, name) => format!("{path}.{name}"),
        }
    }
}
