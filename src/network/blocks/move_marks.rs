//! Moves marked on their origin and destination squares, as bitboards or as learned vectors.

use crate::encode::{POLICY_SIZE, from_square_to_square};
use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Dense, Initial, Slot, Weights};
use crate::network::size::Part;
use shakmaty::Role;
use tch::{Device, Kind, Tensor};

/// The promotions that have their own policy entries. A promotion to a knight uses the entry of the
/// move without a suffix.
const PROMOTIONS: [Role; 3] = [Role::Queen, Role::Rook, Role::Bishop];

/// Number of promotion kinds: one for no promotion or a knight, and one for each of [`PROMOTIONS`].
pub(super) const KINDS: i64 = PROMOTIONS.len() as i64 + 1;

/// Number of bitboards per move: the origin, the destination, and the destination again for each
/// promotion to a queen, rook or bishop.
pub(in crate::network) const MOVE_MARKS: usize = 2 + PROMOTIONS.len();

/// Returns the origin square, the destination square and the promotion of a policy entry. The
/// promotion is 0 for none or a knight, otherwise its index in [`PROMOTIONS`] plus 1.
fn parts(index: usize) -> Option<[usize; 3]> {
    let (from, to, promotion) = from_square_to_square(index)?;
    let place = |role| PROMOTIONS.iter().position(|&other| other == role);
    Some([
        from,
        to,
        promotion.and_then(place).map_or(0, |place| place + 1),
    ])
}

/// Returns the bitboards that mark a move, given its policy index. They are empty for an invalid
/// index.
pub(in crate::network) fn move_marks(index: u16) -> [u64; MOVE_MARKS] {
    let mut marks = [0; MOVE_MARKS];
    if let Some([from, to, promotion]) = parts(index.into()) {
        (marks[0], marks[1]) = (1 << from, 1 << to);
        if promotion > 0 {
            marks[1 + promotion] = 1 << to;
        }
    }
    marks
}

/// Initial standard deviation of the marks, which is that of the latents in trained networks.
const MARK: f64 = 0.2;

/// Marks on a move's origin and destination squares. The destination square also receives a
/// projection of the origin square's latent.
#[derive(Debug)]
pub(in crate::network) struct LearnedMarks {
    /// Vectors [width].
    from: Slot,
    to: Slot,
    /// A vector for each promotion kind, [4, width].
    promotion: Slot,
    carried: Linear,
    /// i64 [3, 1858], from [`move_parts`].
    pub parts: Tensor,
    /// i64 0…63.
    squares: Tensor,
}

impl LearnedMarks {
    pub fn build(builder: &mut Builder, width: i64, device: Device) -> LearnedMarks {
        builder.scope("move", |builder| LearnedMarks {
            from: builder.add("from", &[width], Initial::Normal(MARK)),
            to: builder.add("to", &[width], Initial::Normal(MARK)),
            promotion: builder.add("promotion", &[KINDS, width], Initial::Normal(MARK)),
            carried: builder.linear(
                "carried",
                Dense::per_board(width, width).without_bias(),
                Part::Other,
            ),
            parts: move_parts(device),
            squares: Tensor::arange(64, (Kind::Int64, device)),
        })
    }

    /// Returns the index tensors, by their names in network files.
    pub fn constants(&self) -> [(&'static str, &Tensor); 2] {
        [("move_parts", &self.parts), ("squares", &self.squares)]
    }

    /// Adds the marks of moves, given as policy indices i64 `[B]`, to latents [B, 64, width].
    pub fn on(&self, weights: &Weights, latents: &Tensor, moves: &Tensor) -> Tensor {
        let parts = self.parts.index_select(1, moves);
        let is_at = |part: i64| -> Tensor {
            let square = parts.select(0, part).unsqueeze(1);
            let is_elsewhere = square.ne_tensor(&self.squares.unsqueeze(0));
            1.0 - is_elsewhere.to_kind(latents.kind())
        };
        let (from, to) = (is_at(0), is_at(1));
        let left = from.unsqueeze(1).bmm(latents);
        let promotion = weights[self.promotion].index_select(0, &parts.select(0, 2));
        let reached =
            self.carried.forward(weights, &left) + promotion.unsqueeze(1) + &weights[self.to];
        latents + from.unsqueeze(2) * &weights[self.from] + to.unsqueeze(2) * reached
    }
}

/// Returns the origin square, the destination square and the promotion of every policy entry, i64
/// [3, 1858].
pub(in crate::network) fn move_parts(device: Device) -> Tensor {
    let all = (0..POLICY_SIZE).filter_map(parts);
    let rows: Vec<i64> = all.flatten().map(|part| part as i64).collect();
    Tensor::from_slice(&rows)
        .view([-1, 3])
        .transpose(0, 1)
        .contiguous()
        .to_device(device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_move_has_marks_of_its_own() {
        let all: HashSet<_> = (0..POLICY_SIZE as u16).map(move_marks).collect();
        assert_eq!(all.len(), POLICY_SIZE);
        assert_eq!(move_marks(u16::MAX), [0; MOVE_MARKS]);
        // a7a8q is the first entry with a suffix.
        assert_eq!(move_marks(1792), [1 << 48, 1 << 56, 1 << 56, 0, 0]);
    }
}
