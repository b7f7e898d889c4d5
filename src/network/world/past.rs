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
    /// Which of the steps before the first new one are none, bool [B, 1, 1, T].
    absent: Option<Tensor>,
    /// Most earlier steps that are kept.
    most: i64,
}

impl Past {
    /// Nothing yet, for so many blocks, the new step included in `context`.
    pub(super) fn new(blocks: i64, context: i64) -> Past {
        Past {
            blocks: (0..blocks).map(|_| None).collect(),
            absent: None,
            most: context - 1,
        }
    }

    /// The same from keys and values [blocks, B, 64, heads, T, head width] of T steps,
    /// which may be none.
    pub(super) fn of(keys: &Tensor, values: &Tensor, context: i64) -> Past {
        let blocks = keys.unbind(0).into_iter().zip(values.unbind(0));
        Past {
            blocks: blocks.map(|(key, value)| Some([key, value])).collect(),
            absent: None,
            most: context - 1,
        }
    }

    /// The same from what is kept of boards, the latest first, each as the side to move
    /// there sees it, [B, 1 + 2 · blocks, 64, width]: see [`FrozenWorld`]. `absent` bool
    /// [B, T] says which did not come of a step. T is 1 at least and below the context.
    ///
    /// [`FrozenWorld`]: super::FrozenWorld
    pub(super) fn of_path(path: &[Tensor], absent: &Tensor, heads: i64, context: i64) -> Past {
        let steps = path.len();
        let blocks = (path[0].size()[1] - 1) / 2;
        // From the oldest on, as the side to move after the latest sees them.
        let turned = path.iter().enumerate().rev().map(|(age, kept)| {
            let kept = kept.narrow(1, 1, 2 * blocks);
            match age % 2 {
                0 => kept,
                _ => kept.unflatten(2, [8, 8]).flip([2]).flatten(2, 3),
            }
        });
        let turned: Vec<Tensor> = turned.collect();
        // [B, 2 · blocks, 64, heads, T, head width].
        let all = Tensor::stack(&turned, 3)
            .unflatten(4, [heads, -1])
            .transpose(3, 4);
        let part = |number: i64| all.select(1, number).contiguous();
        Past {
            blocks: (0..blocks)
                .map(|block| Some([part(2 * block), part(2 * block + 1)]))
                .collect(),
            absent: Some(absent.narrow(1, 0, steps as i64).flip([1]).view([
                -1,
                1,
                1,
                steps as i64,
            ])),
            most: context - 1,
        }
    }

    /// Key and value of the latest step in each block, [B, 2 · blocks, 64, width].
    pub(super) fn newest(&self) -> Tensor {
        let latest = |tensor: &Tensor| tensor.select(3, -1).flatten(2, 3);
        let parts = self.blocks.iter().flatten().flatten().map(latest);
        Tensor::stack(&parts.collect::<Vec<_>>(), 1)
    }

    /// Which of the steps that a block now sees are none, bool [B, 1, 1, T].
    pub(super) fn absent(&self) -> Option<Tensor> {
        let absent = self.absent.as_ref()?;
        let newest = absent.narrow(3, 0, 1).zeros_like();
        Some(Tensor::cat(&[absent, &newest], 3))
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
