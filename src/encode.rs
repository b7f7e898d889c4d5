//! Inputs and outputs of networks: a game as packed bitboards and a move as an index into the
//! policy; or a game as tokens, one per move.
//!
//! Bitboards and the policy are from the mover's view: where Black is to move the board
//! is flipped top to bottom, so that the side to move always plays upwards.

#[cfg(feature = "torch")]
mod attacks;
mod canonical;
mod encoder;
mod format;
mod input;
mod perspective;
mod policy;
mod squares;
mod transform;
mod vocabulary;

#[cfg(feature = "torch")]
pub(crate) use attacks::{ATTACK_WORDS, ATTACKS, COUNT_BITS, look_up_attacks, slice_attacks};
pub use encoder::{Encoder, MoveEncoder, Unencodable};
pub use format::InputFormat;
pub(crate) use input::EN_PASSANT;
#[cfg(feature = "torch")]
pub(crate) use input::RATINGS;
pub use input::{BOARDS, HISTORY, Input, InputError, PLANES_PER_BOARD, SCALARS, WIDTH};
pub use policy::{POLICY_SIZE, from_square_to_square, mirrored_index, policy_index, policy_move};
pub use squares::{SQUARE_CLASSES, Squares};
pub use transform::Transform;
pub use vocabulary::{GameEnd, SanMoves, Token, UCI_MOVES, Vocabulary, VocabularyError, uci_parts};
