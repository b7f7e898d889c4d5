//! The cache of attention over time.

use tch::Tensor;

/// Flips tensors with one entry per square, [B, 64, …], to the other side's view. Tensors with one
/// entry per board, [B, 1, …], are unchanged.
pub(super) fn flipped(by_square: &Tensor) -> Tensor {
    match by_square.size()[1] {
        1 => by_square.shallow_clone(),
        _ => by_square.unflatten(1, [8, 8]).flip([1]).flatten(1, 2),
    }
}

/// Keys and values of earlier steps in each block. Each side has its own view of the board, so a
/// step flips the keys and values of earlier steps before it appends its own. All of them are then
/// in the view of the side to move after the latest step.
#[derive(Debug)]
pub struct Past {
    /// Keys and values of each block, [B, squares, T, heads, head width]. `None` before the first
    /// step.
    blocks: Vec<Option<[Tensor; 2]>>,
    /// Maximum number of earlier steps to keep.
    most: i64,
    /// Marks the missing ones among the initial steps, bool [B, 1, T, 1].
    absent: Option<Tensor>,
    /// Whether keys and values are already in the view of the side to move after the next step.
    is_turned: bool,
}

impl Past {
    /// Returns an empty cache for this number of blocks. `context` includes the new step.
    pub(super) fn new(blocks: i64, context: i64) -> Past {
        Past {
            blocks: (0..blocks).map(|_| None).collect(),
            most: context - 1,
            absent: None,
            is_turned: false,
        }
    }

    /// Returns a cache with the keys and values [blocks, B, squares, T, heads, head width] of T
    /// steps. T may be 0.
    pub(super) fn of(keys: &Tensor, values: &Tensor, context: i64) -> Past {
        let blocks = keys.unbind(0).into_iter().zip(values.unbind(0));
        Past {
            blocks: blocks.map(|(key, value)| Some([key, value])).collect(),
            ..Past::new(0, context)
        }
    }

    /// Returns a cache for a single further step. `kept` contains the keys and values of all
    /// blocks, [2 · blocks, B, squares, T, width], oldest step first, in the view of the side to
    /// move after that step. `absent`, bool [B, T], marks missing steps.
    pub(super) fn of_kept(kept: &Tensor, absent: &Tensor, heads: i64) -> Past {
        let mut parts = kept.unflatten(-1, [heads, -1]).unbind(0).into_iter();
        let mut blocks = Vec::new();
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            blocks.push(Some([key, value]));
        }
        Past {
            blocks,
            most: i64::MAX,
            absent: Some(absent.unsqueeze(1).unsqueeze(3)),
            is_turned: true,
        }
    }

    /// Returns the keys and values [blocks, B, squares, T, heads, head width] of all kept steps.
    /// There must be at least one step.
    pub(super) fn stacked(&self) -> [Tensor; 2] {
        [0, 1].map(|part| {
            let of_block = |block: &Option<[Tensor; 2]>| {
                let block = block.as_ref().expect("after a step");
                block[part].shallow_clone()
            };
            let blocks: Vec<Tensor> = self.blocks.iter().map(of_block).collect();
            Tensor::stack(&blocks, 0)
        })
    }

    /// Returns the key and value of the latest step in each block,
    /// [B, 2 · blocks, squares, width].
    pub(super) fn newest(&self) -> Tensor {
        let latest = |tensor: &Tensor| tensor.select(2, -1).flatten(2, 3);
        let parts = self.blocks.iter().flatten().flatten().map(latest);
        Tensor::stack(&parts.collect::<Vec<_>>(), 1)
    }

    /// Returns a mask, bool [B, 1, T, 1], of the missing steps among those that a block attends to,
    /// which include the new step.
    pub(super) fn absent(&self) -> Option<Tensor> {
        let absent = self.absent.as_ref()?;
        let newest = absent.narrow(2, 0, 1).zeros_like();
        Some(Tensor::cat(&[absent, &newest], 2))
    }

    /// Appends a step's key and value, [B, squares, 1, heads, head width], to those of a block, and
    /// returns all keys and values.
    pub(super) fn extend(&mut self, block: usize, new: [Tensor; 2]) -> &[Tensor; 2] {
        let all = match self.blocks[block].take() {
            None => new,
            Some([keys, values]) => {
                let joined = |earlier: Tensor, new: Tensor| {
                    let length = earlier.size()[2];
                    let kept = match length > self.most {
                        true => earlier.narrow(2, length - self.most, self.most),
                        false => earlier,
                    };
                    let kept = match self.is_turned {
                        true => kept,
                        false => flipped(&kept),
                    };
                    Tensor::cat(&[kept, new], 2)
                };
                let [key, value] = new;
                [joined(keys, key), joined(values, value)]
            }
        };
        self.blocks[block].insert(all)
    }
}
