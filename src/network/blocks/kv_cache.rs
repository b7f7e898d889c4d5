//! The key–value cache, which avoids computing a token again for each later one.

use tch::{Device, Kind, Tensor};

/// Keys and values of B token sequences in each layer. All sequences are equally long: shorter
/// sequences are padded on the left, and the attention mask hides the padding.
#[derive(Debug)]
pub struct KvCache {
    /// Keys and values of a layer, [B, heads, capacity, head width] each.
    layers: Vec<[Tensor; 2]>,
    /// The number of tokens cached in all layers.
    length: i64,
}

impl KvCache {
    /// Returns an empty cache with space for `runs` sequences of `capacity` tokens. The capacity
    /// grows on demand.
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

    /// Returns the length of each sequence in tokens.
    pub fn len(&self) -> i64 {
        self.length
    }

    /// Returns whether the cache holds no tokens.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Keeps only the first tokens, for example after a takeback.
    pub fn truncate(&mut self, length: i64) {
        self.length = self.length.min(length.max(0));
    }

    /// Replaces the sequences at these indices, i64 `[B]`, with those of `other`, aligned right.
    /// The sequences of `other` must not be longer than those of `self`.
    pub fn put(&mut self, runs: &Tensor, other: &KvCache) {
        let first = self.length - other.length;
        assert!(first >= 0, "room for {} tokens", other.length);
        let pairs = self.layers.iter_mut().flatten();
        for (held, new) in pairs.zip(other.layers.iter().flatten()) {
            let new = new.narrow(2, 0, other.length);
            let mut place = held.narrow(2, first, other.length);
            let _ = place.index_copy_(0, runs, &new);
        }
    }

    /// Shifts all sequences by a number of tokens: a positive number leaves room for padding on the
    /// left, and a negative number drops their first tokens.
    pub fn shift(&mut self, tokens: i64) {
        let length = (self.length + tokens).max(0);
        let kept = self.length.min(length);
        for held in self.layers.iter_mut().flatten() {
            let mut size = held.size();
            size[2] = size[2].max(length);
            let shifted = Tensor::zeros(size, (held.kind(), held.device()));
            let last = held.narrow(2, self.length - kept, kept);
            shifted.narrow(2, length - kept, kept).copy_(&last);
            *held = shifted;
        }
        self.length = length;
    }

    /// Keeps the sequences at these indices, i64 `[B]`, in this order.
    pub fn select(&mut self, runs: &Tensor) {
        for tensor in self.layers.iter_mut().flatten() {
            *tensor = tensor.index_select(0, runs);
        }
    }
}

/// A store of the keys and values of earlier tokens, to which new ones are appended.
pub(in crate::network) trait KeyValues {
    /// Returns the number of tokens in each sequence before the new ones.
    fn past(&self) -> i64;

    /// Appends the new tokens' keys and values [B, heads, n, head width] to those of a layer and
    /// returns all of them. The tokens remain new until [`KeyValues::grow`] is called.
    fn extend(&mut self, layer: usize, key: &Tensor, value: &Tensor) -> (Tensor, Tensor);

    /// Marks this number of new tokens, which all layers now hold, as earlier tokens.
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
