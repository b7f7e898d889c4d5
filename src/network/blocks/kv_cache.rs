//! Keys and values of the tokens that a network has read, so that each is computed once.

use tch::{Device, Kind, Tensor};

/// Keys and values of B runs of tokens in each layer. All runs are equally long: shorter
/// ones are padded on the left, where nobody looks.
#[derive(Debug)]
pub struct KvCache {
    /// Keys and values of a layer, [B, heads, capacity, head width] each.
    layers: Vec<[Tensor; 2]>,
    /// Tokens that all layers hold.
    length: i64,
}

impl KvCache {
    /// Room for `runs` runs of `capacity` tokens at first; it grows with them.
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
        let (length, new) = (self.length, key.size()[2]);
        let kept = |held: &mut Tensor, new_ones: &Tensor| {
            let capacity = held.size()[2];
            if length + new > capacity {
                let mut size = held.size();
                size[2] = (length + new).max(2 * capacity);
                let larger = Tensor::zeros(size, (held.kind(), held.device()));
                larger.narrow(2, 0, capacity).copy_(held);
                *held = larger;
            }
            held.narrow(2, length, new).copy_(new_ones);
            held.narrow(2, 0, length + new)
        };
        let [keys, values] = &mut self.layers[layer];
        (kept(keys, key), kept(values, value))
    }

    fn grow(&mut self, new: i64) {
        self.length += new;
    }
}
