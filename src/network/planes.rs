//! Converts bitboard rows to Lc0's 112 input planes.

use super::bitboards;
use crate::encode::{BOARDS, SCALARS};
use tch::Tensor;

/// Number of input planes.
pub(super) const PLANES: i64 = 112;

/// Number of [`SCALARS`] that Lc0 networks read, which are all except the ratings.
pub(super) const READ: usize = 7;

/// Returns whether an Lc0 format encodes castling rights as the squares of the castling rooks.
fn has_castling_planes(format: u32) -> bool {
    format >= 2
}

/// Returns whether an Lc0 format transforms every board to a canonical orientation.
fn is_canonical(format: u32) -> bool {
    format >= 3
}

/// Returns whether an Lc0 format counts the 50-move rule in hundreds of plies.
fn is_hectoplies(format: u32) -> bool {
    format >= 4
}

/// Returns whether an Lc0 format encodes which side a draw favours.
fn is_armageddon(format: u32) -> bool {
    format >= 132
}

/// Returns the planes of rows i64 [B, 104 + 7] as [B, 64, 112] in the dtype of `like`.
///
/// `shifts` is the tensor from [`bitboards::shifts`], and `format` is Lc0's number of the input
/// format.
pub(super) fn planes(rows: &Tensor, shifts: &Tensor, format: u32, like: &Tensor) -> Tensor {
    let boards = BOARDS as i64;
    let word = |name: &str| {
        let place = SCALARS[..READ].iter().position(|&scalar| scalar == name);
        rows.narrow(1, boards + place.expect("a scalar's name") as i64, 1)
    };
    let us = [word("castling_us_queenside"), word("castling_us_kingside")];
    let them = [
        word("castling_them_queenside"),
        word("castling_them_kingside"),
    ];
    let black_to_move = word("black_to_move");
    let nothing = black_to_move.zeros_like();

    // Some words are bitboards, and others become planes that are filled with one value.
    let mut words = vec![rows.narrow(1, 0, boards)];
    let mut numbers = Vec::new();
    if has_castling_planes(format) {
        let [queenside, kingside] = [0, 1].map(|side| us[side].bitwise_or_tensor(&them[side]));
        words.extend([
            queenside,
            kingside,
            nothing.shallow_clone(),
            nothing.shallow_clone(),
        ]);
    } else {
        let rights = us.into_iter().chain(them);
        numbers.extend(rights.map(|right| right.ne(0).type_as(like)));
    }
    if is_canonical(format) {
        // Instead of the square that the pawn passed over, Lc0 marks the last rank of the pawn's
        // file.
        words.push(word("en_passant").bitwise_left_shift_tensor_scalar(16));
    } else {
        numbers.push(black_to_move.type_as(like));
    }
    let plies = word("rule50").type_as(like);
    numbers.push(if is_hectoplies(format) {
        plies * 0.01
    } else {
        plies
    });
    numbers.push(match is_armageddon(format) {
        true => black_to_move.type_as(like),
        false => nothing.type_as(like),
    });
    numbers.push(nothing.type_as(like) + 1.0);

    let numbers = Tensor::cat(&numbers, 1)
        .unsqueeze(1)
        .expand([-1, 64, -1], false);
    let squares = bitboards::squares(&Tensor::cat(&words, 1), shifts, like);
    Tensor::cat(&[squares, numbers], 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::encode::Input;
    use shakmaty::CastlingMode;
    use tch::{Device, Kind};

    /// Returns plane `index` of a position, with one value per square.
    fn plane(fen: &str, format: u32, index: i64) -> Vec<f32> {
        let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        let input = Input::encode(&game);
        let words: &[i64] = bytemuck::cast_slice(input.words());
        let rows = Tensor::from_slice(words).view([1, -1]);
        let shifts = bitboards::shifts();
        let like = Tensor::zeros([1], (Kind::Float, Device::Cpu));
        let planes = planes(&rows, &shifts, format, &like);
        assert_eq!(planes.size(), [1, 64, 112]);
        planes.select(2, index).view([-1]).try_into().unwrap()
    }

    fn squares(values: &[f32]) -> Vec<usize> {
        (0..64).filter(|&square| values[square] == 1.0).collect()
    }

    const FEN: &str = "r3k2r/8/8/3pP3/8/8/8/4K2R w Kq d6 37 1";

    #[test]
    fn the_classical_format_fills_whole_planes() {
        assert_eq!(squares(&plane(FEN, 1, 105)).len(), 64);
        assert_eq!(squares(&plane(FEN, 1, 106)).len(), 64);
        assert!(squares(&plane(FEN, 1, 104)).is_empty());
        assert!(squares(&plane(FEN, 1, 108)).is_empty());
        assert_eq!(plane(FEN, 1, 109), [37.0; 64]);
        assert_eq!(plane(FEN, 1, 110), [0.0; 64]);
        assert_eq!(plane(FEN, 1, 111), [1.0; 64]);
        assert_eq!(squares(&plane(FEN, 1, 0)), [36]);
        assert_eq!(squares(&plane(&FEN.replace('w', "b"), 1, 108)).len(), 64);
    }

    #[test]
    fn later_formats_show_rooks_and_en_passant() {
        for format in [2, 3, 4, 5, 132, 133] {
            assert_eq!(squares(&plane(FEN, format, 104)), [56]);
            assert_eq!(squares(&plane(FEN, format, 105)), [7]);
            assert_eq!(plane(FEN, format, 106), [0.0; 64]);
            let rule50 = if format < 4 { 37.0 } else { 0.37 };
            assert!((plane(FEN, format, 109)[5] - rule50).abs() < 1e-6);
            let marked = squares(&plane(FEN, format, 108));
            assert_eq!(marked, if format < 3 { vec![] } else { vec![59] });
            let black = FEN.replace(" w Kq d6", " b Kq -");
            let armageddon = squares(&plane(&black, format, 110)).len();
            assert_eq!(armageddon, if format < 132 { 0 } else { 64 });
        }
    }
}
