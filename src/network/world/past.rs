//! What attention over time remembers of the steps so far.

use super::flipped;
use tch::Tensor;

/// Keys and values of earlier steps in each block. A side sees the board from its own
/// side of it, so those of earlier steps are turned round with every step: all are by the
/// squares as the side to move after the latest step sees them.
#[derive(Debug)]
pub struct Past {
    /// Keys and values of a block, [B, 64, heads, T, head width] each; none before the
    /// first step.
    blocks: Vec<Option<[Tensor; 2]>>,
    /// Most earlier steps that are kept.
    most: i64,
}

impl Past {
    /// Nothing yet, for so many blocks, the new step included in `context`.
    pub(super) fn new(blocks: i64, context: i64) -> Past {
        Past {
            blocks: (0..blocks).map(|_| None).collect(),
            most: context - 1,
        }
    }

    /// The same from keys and values [blocks, B, 64, heads, T, head width] of T steps,
    /// which may be none.
    pub(super) fn of(keys: &Tensor, values: &Tensor, context: i64) -> Past {
        let blocks = keys.unbind(0).into_iter().zip(values.unbind(0));
        Past {
            blocks: blocks.map(|(key, value)| Some([key, value])).collect(),
            most: context - 1,
        }
    }

    /// Keys and values [blocks, B, 64, heads, T, head width] of all steps that are kept;
    /// there is one at least.
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

    /// Appends a step's key and value, [B, 64, heads, 1, head width], to those of a
    /// block; all of them.
    pub(super) fn extend(&mut self, block: usize, new: [Tensor; 2]) -> &[Tensor; 2] {
        let all = match self.blocks[block].take() {
            None => new,
            Some([keys, values]) => {
                let joined = |earlier: Tensor, new: Tensor| {
                    let length = earlier.size()[3];
                    let kept = match length > self.most {
                        true => earlier.narrow(3, length - self.most, self.most),
                        false => earlier,
                    };
                    Tensor::cat(&[flipped(&kept), new], 3)
                };
                let [key, value] = new;
                [joined(keys, key), joined(values, value)]
            }
        };
        self.blocks[block].insert(all)
    }
}
