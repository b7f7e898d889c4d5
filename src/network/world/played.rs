//! A move, as it is shown to a latent board.

use crate::encode::{POLICY_SIZE, from_square_to_square};
use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Dense, Initial, Slot, Weights};
use crate::network::size::Part;
use shakmaty::Role;
use tch::{Device, Kind, Tensor};

/// What a pawn becomes: nothing or a knight, for which the policy has one entry, or one
/// of the others.
const PROMOTIONS: [Role; 3] = [Role::Queen, Role::Rook, Role::Bishop];

/// Standard deviation of marks at the start: of the size of the latents of trained networks.
const MARK: f64 = 0.2;

/// Marks on the squares that a move leaves and reaches. The square that it reaches also
/// learns what stood on the one that it leaves.
#[derive(Debug)]
pub(super) struct MoveShown {
    /// Vectors [width].
    from: Slot,
    to: Slot,
    /// [4, width]: by what a pawn becomes.
    promotion: Slot,
    carried: Linear,
    /// i64 [3, 1858]: the parts of each entry of the policy.
    parts: Tensor,
    /// i64 0…63.
    squares: Tensor,
}

impl MoveShown {
    pub fn build(builder: &mut Builder, width: i64, device: Device) -> MoveShown {
        builder.scope("move", |builder| MoveShown {
            from: builder.add("from", &[width], Initial::Normal(MARK)),
            to: builder.add("to", &[width], Initial::Normal(MARK)),
            promotion: builder.add(
                "promotion",
                &[PROMOTIONS.len() as i64 + 1, width],
                Initial::Normal(MARK),
            ),
            carried: builder.linear(
                "carried",
                Dense::per_board(width, width).without_bias(),
                Part::Other,
            ),
            parts: parts().to_device(device),
            squares: Tensor::arange(64, (Kind::Int64, device)),
        })
    }

    /// Index tensors of a network file.
    pub fn buffers(&self) -> [(&'static str, &Tensor); 2] {
        [("move_parts", &self.parts), ("squares", &self.squares)]
    }

    /// Latents [B, 64, width] with the moves, entries of the policy i64 `[B]`, shown.
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

fn parts() -> Tensor {
    let all = (0..POLICY_SIZE).filter_map(from_square_to_square);
    let rows: Vec<i64> = all
        .flat_map(|(from, to, promotion)| {
            let place = |role| PROMOTIONS.iter().position(|&other| other == role);
            let promotion = promotion.and_then(place).map_or(0, |place| place + 1);
            [from as i64, to as i64, promotion as i64]
        })
        .collect();
    Tensor::from_slice(&rows)
        .view([-1, 3])
        .transpose(0, 1)
        .contiguous()
}
