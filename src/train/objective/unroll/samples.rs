//! Uploads examples to the device.

use super::OWN;
use crate::data::examples::{Columns, Moment, UnrollColumns};
use crate::network::OutputSet;
use crate::network::bitboards;
use crate::train::objective::Narrow;
use crate::train::objective::positions::loss::loss_weights;
use crate::train::objective::positions::tensors::{Targets, upload};
use crate::train::objective::send;
use tch::{Device, Kind, Tensor};

/// Planes of a position's pieces: ours from pawn to king, followed by theirs.
const PIECES: i64 = 12;

/// A batch of B examples with D moves each: N = B · (D + 1) positions, grouped by example.
#[derive(Debug)]
pub(in crate::train) struct UnrollSamples {
    /// The input rows, i64 [N, words].
    pub rows: Tensor,
    /// The moves, i64 [B, D].
    pub moves: Tensor,
    /// Targets of the encoder's heads for N positions, including their legal moves.
    pub targets: Targets,
    /// Whether the game has ended, bool `[N]`.
    pub ended: Tensor,
    /// The classes of the squares, i64 [N, 64].
    pub board: Tensor,
    /// Squares whose class differs from the example's first board, bool [N, 64].
    pub changed: Tensor,
    /// The weight of each position in each term, f32 [L, B, D + 1].
    pub weights: Tensor,
}

impl UnrollSamples {
    /// Returns the number D of moves.
    pub fn plies(&self) -> i64 {
        self.moves.size()[1]
    }

    /// Uploads each example with its first `plies` moves, and the weights of its positions. `heads`
    /// lists the outputs of the encoder's heads that are trained.
    pub(super) fn upload(
        columns: &UnrollColumns,
        plies: usize,
        boards: &Boards,
        heads: OutputSet,
        device: Device,
    ) -> UnrollSamples {
        let (all, plies) = (columns.plies as i64, plies.min(columns.plies) as i64);
        let count = columns.len() as i64;
        let cut = |tensor: &Tensor| match plies == all {
            true => tensor.shallow_clone(),
            false => tensor
                .unflatten(0, [-1, all + 1])
                .narrow(1, 0, plies + 1)
                .flatten(0, 1),
        };
        let (rows, targets) = upload(&columns.positions, device);
        let (rows, targets) = (cut(&rows), targets.map(cut));
        let moments: Vec<i8> = columns.moments.iter().map(|&it| it as i8).collect();
        let moments = cut(&send(&moments, device));
        let moves = send(&columns.moves, device);
        let board = boards.classes(&rows);
        let changed = boards.changed(&board.view([count, plies + 1, 64]));
        let changed = changed.flatten(0, 1);
        let is = |moment: Moment| moments.eq(moment as i64).to_kind(Kind::Float);
        let (playing, gone) = (is(Moment::Playing), is(Moment::Gone));
        let there = &playing + is(Moment::Over);
        let foretold = there.view([count, plies + 1]);
        let is_later = Tensor::arange(plies + 1, (Kind::Int64, device)).gt(0);
        let foretold = (foretold * is_later.to_kind(Kind::Float)).flatten(0, 1);
        let has_changed = changed.any_dim(-1, false).to_kind(Kind::Float);
        let own: [Tensor; OWN.len()] = [
            playing.shallow_clone(),
            &there + &gone,
            playing.shallow_clone(),
            there.shallow_clone(),
            foretold.shallow_clone(),
            there.shallow_clone(),
            foretold * has_changed,
        ];
        let heads = loss_weights(&targets, None, heads);
        let weights = Tensor::cat(&[heads, Tensor::stack(&own, 0)], 0);
        UnrollSamples {
            weights: weights.view([-1, count, plies + 1]),
            moves: moves.view([count, all]).narrow(1, 0, plies),
            ended: moments
                .eq(Moment::Over as i64)
                .logical_or(&moments.eq(Moment::Gone as i64)),
            rows,
            targets,
            board,
            changed,
        }
    }
}

impl Narrow for UnrollSamples {
    fn narrow(&self, start: i64, count: i64) -> UnrollSamples {
        let each = self.plies() + 1;
        let part = |tensor: &Tensor| tensor.narrow(0, start * each, count * each);
        UnrollSamples {
            rows: part(&self.rows),
            moves: self.moves.narrow(0, start, count),
            targets: self.targets.narrow(start * each, count * each),
            ended: part(&self.ended),
            board: part(&self.board),
            changed: part(&self.changed),
            weights: self.weights.narrow(1, start, count),
        }
    }
}

/// Computes the classes of squares.
#[derive(Debug)]
pub(super) struct Boards {
    shifts: Tensor,
    /// The class of each plane, f32 [12, 1].
    classes: Tensor,
    /// The class of the same piece from the other side's perspective, i64 `[13]`.
    turned: Tensor,
}

impl Boards {
    pub fn new(device: Device) -> Boards {
        let classes: Vec<f32> = (1..=PIECES).map(|class| class as f32).collect();
        let half = PIECES / 2;
        let turned = (0..=PIECES).map(|class| match class {
            0 => 0,
            ours if ours <= half => ours + half,
            theirs => theirs - half,
        });
        let turned: Vec<i64> = turned.collect();
        Boards {
            shifts: bitboards::shifts().to_device(device),
            classes: Tensor::from_slice(&classes).unsqueeze(1).to_device(device),
            turned: Tensor::from_slice(&turned).to_device(device),
        }
    }

    /// Returns the classes of the squares in rows, i64 [N, 64], see
    /// [`SQUARE_CLASSES`](crate::encode::SQUARE_CLASSES).
    pub fn classes(&self, rows: &Tensor) -> Tensor {
        let pieces = bitboards::squares(&rows.narrow(1, 0, PIECES), &self.shifts, &self.classes);
        pieces
            .matmul(&self.classes)
            .squeeze_dim(-1)
            .to_kind(Kind::Int64)
    }

    /// Returns the first board of each example as seen by the side to move at each later position,
    /// [B, D + 1, 64].
    pub fn copied(&self, boards: &Tensor) -> Tensor {
        let first = boards.narrow(1, 0, 1);
        let turned = self
            .turned
            .index_select(0, &first.flatten(0, 2))
            .view([-1, 1, 8, 8])
            .flip([2])
            .flatten(2, 3);
        let both = Tensor::cat(&[first, turned], 1);
        let later = boards.size()[1];
        both.repeat([1, (later + 1) / 2, 1]).narrow(1, 0, later)
    }

    /// Marks the squares of boards [B, D + 1, 64] that differ from the first board.
    fn changed(&self, boards: &Tensor) -> Tensor {
        self.copied(boards).ne_tensor(boards)
    }
}
