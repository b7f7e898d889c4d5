//! What a network reads and writes: a game as packed bitboards, a move as an
//! index into the policy.
//!
//! Everything is from the mover's view: where Black is to move the board is
//! flipped top to bottom, so that the side to move always plays upwards.

mod input;
mod policy;

pub use input::{BOARDS, HISTORY, Input, InputError, PLANES_PER_BOARD, SCALARS, WIDTH};
pub use policy::{POLICY_SIZE, from_square_to_square, mirrored_index, policy_index, policy_move};
