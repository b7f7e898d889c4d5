//! Keys and values of the tokens that a network has read, so that each is computed once.

use tch::{Device, Kind, Tensor};

/// Keys and values of B runs of tokens in each layer. All runs are equally long: shorter
/// ones begin with filling that nobody looks at.
#[derive(Debug)]
pub struct KvCache {
    /// Keys and values of a layer, [B, heads, capacity, head width] each.
    layers: Vec<[Tensor; 2]>,
    /// Tokens that all layers hold.
    length: i64,
    capacity: i64,
}

impl KvCache {
    /// Room for `runs` runs of up to `capacity` tokens.
    #[must_use]
    pub fn new(
        layers: usize,
        [runs, heads, capacity, head_width]: [i64; 4],
        options: (Kind, Device),
    ) -> KvCache {
        let empty = || Tensor::zeros([runs, heads, capacity, head_width], options);
        KvCache {
            layers: std::iter::repeat_with(|| [empty(), empty()])
                .take(layers)
                .collect(),
            length: 0,
            capacity,
        }
    }

    /// Tokens of each run.
    #[must_use]
    pub fn len(&self) -> i64 {
        self.length
    }

    /// Whether no token has been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Most tokens of a run.
    #[must_use]
    pub fn capacity(&self) -> i64 {
        self.capacity
    }

    /// Forgets all tokens but the first so many: moves that were taken back.
    pub fn truncate(&mut self, length: i64) {
        self.length = self.length.min(length.max(0));
    }

    /// Keeps the runs of these numbers, i64 `[B]`, in this order.
    pub fn select(&mut self, runs: &Tensor) {
        for tensor in self.layers.iter_mut().flatten() {
            *tensor = tensor.index_select(0, runs);
        }
    }
}

/// Keys and values of earlier tokens, which new ones are added to.
pub(in crate::network) trait KeyValues {
    /// Tokens of each run before the new ones.
    fn past(&self) -> i64;

    /// Appends the new tokens' keys and values [B, heads, n, head width] to a layer's;
    /// all of them. The new ones count as earlier ones once [`KeyValues::grow`] says so.
    fn extend(&mut self, layer: usize, key: &Tensor, value: &Tensor) -> (Tensor, Tensor);

    /// So many new tokens are in all layers.
    fn grow(&mut self, new: i64);
}

impl KeyValues for KvCache {
    fn past(&self) -> i64 {
        self.length
    }

    fn extend(&mut self, layer: usize, key: &Tensor, value: &Tensor) -> (Tensor, Tensor) {
        let new = key.size()[2];
        let kept = |held: &Tensor, new_ones: &Tensor| {
            held.narrow(2, self.length, new).copy_(new_ones);
            held.narrow(2, 0, self.length + new)
        };
        let [keys, values] = &self.layers[layer];
        (kept(keys, key), kept(values, value))
    }

    fn grow(&mut self, new: i64) {
        self.length += new;
    }
}
