//! Looks up attacks from bitboards, for training without tracing on a CPU. This is far cheaper than
//! the matrix multiplications that compute attacks in an exported network.

use super::{ATTACKS, PLANES};
use crate::encode::look_up_attacks;
use tch::Tensor;

/// The attacks on each of B boards.
#[derive(Debug)]
pub(in crate::network::chessformer) struct BoardAttacks {
    /// The features of the squares, u8 [B, 64, ATTACKS].
    pub squares: Tensor,
    /// Bitboards i64 [B, 2, 64]: the squares that each square's piece attacks, then the squares
    /// whose pieces attack it.
    pub pairs: Tensor,
}

impl BoardAttacks {
    /// Looks up the attacks on the boards in the first 12 words of rows i64 [B, 12 or more], on the
    /// CPU.
    pub fn of(rows: &Tensor) -> BoardAttacks {
        let boards = rows.size()[0];
        let words = rows.narrow(1, 0, PLANES).contiguous().view(-1);
        let words: Vec<i64> = words.try_into().expect("i64 on the CPU");
        let mut squares = vec![0; (boards * 64 * ATTACKS) as usize];
        let mut pairs = vec![0i64; (boards * 2 * 64) as usize];
        let planes: &[u64] = bytemuck::cast_slice(&words);
        for ((planes, squares), pairs) in planes
            .chunks_exact(PLANES as usize)
            .zip(squares.chunks_exact_mut((64 * ATTACKS) as usize))
            .zip(pairs.chunks_exact_mut(2 * 64))
        {
            look_up_attacks(planes, squares, bytemuck::cast_slice_mut(pairs));
        }
        BoardAttacks {
            squares: Tensor::from_slice(&squares).view([boards, 64, ATTACKS]),
            pairs: Tensor::from_slice(&pairs).view([boards, 2, 64]),
        }
    }
}
