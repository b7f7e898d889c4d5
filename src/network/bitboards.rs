//! Converts bitboards to tensors inside a network.

use tch::{Kind, Tensor};

/// Returns the constant that [`squares`] needs: u8 0…7.
pub(crate) fn shifts() -> Tensor {
    Tensor::from_slice(&[0u8, 1, 2, 3, 4, 5, 6, 7])
}

/// Returns the squares of bitboards i64 [B, n] as zeros and ones, [B, 64, n], in the dtype of
/// `like`.
///
/// Byte r of a bitboard is rank r. Words are first shifted to bytes and then bytes to bits:
/// shifting words directly to bits would move eight times as much memory, and viewing words as
/// bytes cannot be traced. `shifts` is the tensor from [`shifts`], a buffer of the network.
pub(crate) fn squares(bitboards: &Tensor, shifts: &Tensor, like: &Tensor) -> Tensor {
    let count = bitboards.size()[1];
    bitboards
        .unsqueeze(2)
        .bitwise_right_shift(&(shifts.to_kind(Kind::Int64) * 8))
        .bitwise_and(0xff)
        .to_kind(Kind::Uint8)
        .unsqueeze(3)
        .bitwise_right_shift(shifts)
        .bitwise_and(1)
        .view([-1, count, 64])
        .type_as(like)
        .transpose(1, 2)
}

/// Returns bitboards i64 [B, n] flipped vertically, to the other side's view. `shifts` is as in
/// [`squares`].
pub(crate) fn reversed(bitboards: &Tensor, shifts: &Tensor) -> Tensor {
    let shifts = shifts.to_kind(Kind::Int64) * 8;
    let bytes = bitboards
        .unsqueeze(2)
        .bitwise_right_shift(&shifts)
        .bitwise_and(0xff);
    // The shift moves the highest byte into the sign bit, but sums of disjoint bits remain correct.
    bytes
        .bitwise_left_shift(&(56 - shifts))
        .sum_dim_intlist([2i64].as_slice(), false, Kind::Int64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitboards_turn_rank_by_rank() {
        let words = [0x8000_0000_0000_00ffu64, 1 << 63, 0x0123_4567_89ab_cdef, 0];
        let as_signed = |words: [u64; 4]| words.map(|word| word as i64);
        let tensor = Tensor::from_slice(&as_signed(words)).view([2, 2]);
        let found = Vec::<i64>::try_from(reversed(&tensor, &shifts()).reshape([-1])).unwrap();
        assert_eq!(found, as_signed(words.map(u64::swap_bytes)));
    }
}
