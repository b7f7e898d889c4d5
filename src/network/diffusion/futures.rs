//! The futures of positions as input tensors of a denoiser.

use crate::encode::{BOARDS, HISTORY};
use crate::network::bitboards;
use crate::network::blocks::{MOVE_MARKS, move_marks};
use tch::{Device, Kind, Tensor};

/// Number of piece planes per board.
pub(super) const PIECES: i64 = 12;
/// Number of bitboards per board in addition to its pieces: one for the masked squares, then those
/// that mark the move that is played from the board.
pub(super) const MARKS: i64 = 1 + MOVE_MARKS as i64;
/// Number of scalars per row: castling rights, the side to move and the plies of the 50-move rule.
const SCALARS: i64 = 6;
/// Number of castling rights in a row.
const RIGHTS: i64 = 4;

/// The known parts of the futures of B positions. There are T = 1 + H boards, each in the view of
/// its mover: the present board, then one board after each ply.
#[derive(Debug)]
pub struct Futures {
    /// Bitboards i64 [B, H, 12] of the pieces on the future boards: ours, then theirs. Masked
    /// squares show the pieces of the present board.
    pub pieces: Tensor,
    /// Bitboards i64 [B, T, 6], as returned by [`marks_of`].
    pub marks: Tensor,
    /// Share of unknown variables, f32 `[B]`.
    pub noise: Tensor,
}

/// Returns the marks of a board. `masked` is the bitboard of its masked squares, and `played` is
/// the policy index of the move played from it, if known.
pub fn marks_of(masked: u64, played: Option<u16>) -> [u64; MARKS as usize] {
    let mut marks = [masked; MARKS as usize];
    marks[1..].copy_from_slice(&played.map_or([0; MOVE_MARKS], move_marks));
    marks
}

/// Constant tensors that are needed to build the rows of future boards.
#[derive(Debug)]
pub(super) struct Constants {
    /// u8 0…7.
    pub shifts: Tensor,
    /// i64 [12]: the indices that swap our pieces and theirs.
    pub other_side: Tensor,
    /// i64 [4]: the indices that swap the castling rights of the two sides.
    pub other_rights: Tensor,
}

impl Constants {
    pub fn new(device: Device) -> Constants {
        let half =
            |count: i64| -> Vec<i64> { (0..count).map(|it| (it + count / 2) % count).collect() };
        Constants {
            shifts: bitboards::shifts().to_device(device),
            other_side: Tensor::from_slice(&half(PIECES)).to_device(device),
            other_rights: Tensor::from_slice(&half(RIGHTS)).to_device(device),
        }
    }

    /// Returns fully masked futures of positions given as rows.
    pub fn unknown(&self, rows: &Tensor, horizon: i64) -> Futures {
        let present = rows.narrow(1, 0, PIECES);
        let turned = bitboards::reversed(&present, &self.shifts).index_select(1, &self.other_side);
        let boards = (1..=horizon).map(|ply| match ply % 2 {
            1 => &turned,
            _ => &present,
        });
        let boards: Vec<&Tensor> = boards.collect();
        let pieces = match boards[..] {
            [] => present.unsqueeze(1).narrow(1, 0, 0),
            _ => Tensor::stack(&boards, 1),
        };
        let (marks, noise) = self.unknown_marks(&present.narrow(1, 0, 1), horizon);
        Futures {
            pieces,
            marks,
            noise,
        }
    }

    /// Returns the classes of the squares of the present board, once per ply and in the view of the
    /// ply's mover, i64 [B, plies, 64].
    pub fn present_classes(&self, rows: &Tensor, plies: i64) -> Tensor {
        let present = rows.narrow(1, 0, PIECES);
        let turned = bitboards::reversed(&present, &self.shifts).index_select(1, &self.other_side);
        let like = Tensor::zeros([1], (Kind::Float, rows.device()));
        let numbers = Tensor::arange_start(1, 1 + PIECES, (Kind::Float, rows.device()));
        let [present, turned] = [present, turned].map(|words| {
            let squares = bitboards::squares(&words, &self.shifts, &like);
            squares.matmul(&numbers).to_kind(Kind::Int64)
        });
        let boards = (1..=plies).map(|ply| if ply % 2 == 1 { &turned } else { &present });
        Tensor::stack(&boards.collect::<Vec<_>>(), 1)
    }

    /// Returns the marks and the noise of fully masked futures of B positions. Only the shape, the
    /// dtype and the device of `words`, i64 [B, 1], are used.
    pub fn unknown_marks(&self, words: &Tensor, horizon: i64) -> (Tensor, Tensor) {
        let none = words.zeros_like();
        let masked = &none - 1;
        let row = |first: &Tensor| {
            let others = [&none; MOVE_MARKS];
            let parts: Vec<&Tensor> = std::iter::once(first).chain(others).collect();
            Tensor::cat(&parts, 1)
        };
        let (of_present, of_future) = (row(&none), row(&masked));
        let marks = (0..=horizon).map(|ply| match ply {
            0 => &of_present,
            _ => &of_future,
        });
        let marks = Tensor::stack(&marks.collect::<Vec<_>>(), 1);
        (marks, none.squeeze_dim(1).to_kind(Kind::Float) + 1.0)
    }

    /// Returns the marks per square, [B, T, 64, 6], and the noise of fully masked futures, in the
    /// dtype of `planes`, which are positions [B, 112, 8, 8]. This function does not use bitboards,
    /// because ONNX exports cannot.
    pub fn unknown_squares(&self, planes: &[Tensor], horizon: i64) -> (Tensor, Tensor) {
        let none = planes[0].narrow(1, 0, 1).zeros_like();
        let none = none.flatten(2, 3).transpose(1, 2);
        let masked = &none + 1.0;
        let marks = (0..=horizon).map(|ply| {
            let first = if ply == 0 { &none } else { &masked };
            let others = [&none; MOVE_MARKS];
            let parts: Vec<&Tensor> = std::iter::once(first).chain(others).collect();
            Tensor::cat(&parts, 2)
        });
        let marks = Tensor::stack(&marks.collect::<Vec<_>>(), 1);
        (marks, none.select(2, 0).select(1, 0) + 1.0)
    }

    /// Returns the constant tensors by name.
    pub fn named(&self) -> [(&str, &Tensor); 3] {
        [
            ("board_shifts", &self.shifts),
            ("other_side", &self.other_side),
            ("other_rights", &self.other_rights),
        ]
    }

    /// Returns the rows i64 [B · T, words] of all boards. The history of a future board repeats
    /// that board, and its castling rights and 50-move count are those of the present.
    pub fn rows(&self, present: &Tensor, pieces: &Tensor, words: i64) -> Tensor {
        let horizon = pieces.size()[1];
        let boards = BOARDS as i64;
        let present = present.narrow(1, 0, words);
        let scalars = present.narrow(1, boards, SCALARS);
        let rights = bitboards::reversed(&scalars.narrow(1, 0, RIGHTS), &self.shifts);
        let turn = scalars.narrow(1, RIGHTS, 1);
        let turned = [
            rights.index_select(1, &self.other_rights),
            1 - turn,
            scalars.narrow(1, RIGHTS + 1, 1),
        ];
        let turned = Tensor::cat(&turned, 1);
        let scalars = (1..=horizon).map(|ply| match ply % 2 {
            1 => &turned,
            _ => &scalars,
        });
        let scalars = Tensor::stack(&scalars.collect::<Vec<_>>(), 1);
        // The repetition plane is empty, because it is unknown whether a future position repeats an
        // earlier one.
        let board = Tensor::cat(&[pieces, &pieces.narrow(2, 0, 1).zeros_like()], 2);
        let history = Tensor::cat(&[&board; HISTORY], 2);
        let mut parts = vec![history, scalars];
        let others = words - boards - SCALARS;
        if others > 0 {
            parts.push(parts[0].narrow(2, 0, others).zeros_like());
        }
        let futures = Tensor::cat(&parts, 2);
        Tensor::cat(&[present.unsqueeze(1), futures], 1).view([-1, words])
    }
}

/// Number of history planes per row, including the planes for repetitions.
const HISTORY_PLANES: i64 = BOARDS as i64;

impl Constants {
    /// Returns the planes of all boards with unknown futures, in analogy to [`Constants::rows`].
    /// Positions are given as planes f32 [B, 112, 8, 8] and optional ratings f32 `[B]`.
    pub fn planes(&self, present: &[Tensor], horizon: i64) -> Vec<Tensor> {
        let planes = &present[0];
        let pieces = planes.narrow(1, 0, PIECES);
        let turned = pieces.flip([2]).index_select(1, &self.other_side);
        let none = planes.narrow(1, 0, 1).zeros_like();
        let rights = planes.narrow(1, HISTORY_PLANES, RIGHTS);
        let other_rights = rights.index_select(1, &self.other_rights);
        let turn = planes.narrow(1, HISTORY_PLANES + RIGHTS, 1);
        let after_turn = HISTORY_PLANES + RIGHTS + 1;
        let rest = planes.narrow(1, after_turn, planes.size()[1] - after_turn);
        let boards = (1..=horizon).map(|ply| {
            let (copy, rights, turn) = match ply % 2 {
                1 => (&turned, &other_rights, 1.0 - &turn),
                _ => (&pieces, &rights, turn.shallow_clone()),
            };
            let board = Tensor::cat(&[copy, &none], 1);
            let history = Tensor::cat(&[&board; HISTORY], 1);
            Tensor::cat(&[&history, rights, &turn, &rest], 1)
        });
        let boards: Vec<Tensor> = std::iter::once(planes.shallow_clone())
            .chain(boards)
            .collect();
        let ratings = present[1..].iter().map(|rating| {
            let unknown = rating.zeros_like();
            let of_boards = (0..=horizon).map(|ply| if ply == 0 { rating } else { &unknown });
            Tensor::stack(&of_boards.collect::<Vec<_>>(), 1).flatten(0, 1)
        });
        let planes = Tensor::stack(&boards, 1).flatten(0, 1);
        std::iter::once(planes).chain(ratings).collect()
    }
}

impl Futures {
    /// Returns the futures of `count` positions, starting at `start`.
    pub fn narrow(&self, start: i64, count: i64) -> Futures {
        let part = |tensor: &Tensor| tensor.narrow(0, start, count);
        Futures {
            pieces: part(&self.pieces),
            marks: part(&self.marks),
            noise: part(&self.noise),
        }
    }

    /// Returns a copy in which `others` replace the futures at these indices, i64.
    pub fn with(&self, positions: &Tensor, others: &Futures) -> Futures {
        let put = |ours: &Tensor, theirs: &Tensor| ours.index_copy(0, positions, theirs);
        Futures {
            pieces: put(&self.pieces, &others.pieces),
            marks: put(&self.marks, &others.marks),
            noise: put(&self.noise, &others.noise),
        }
    }
}
