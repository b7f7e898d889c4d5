//! The inputs and outputs of networks. The input is a game, either as packed bitboards or as
//! tokens, one per move. In the output, a move is an index into the policy.
//!
//! Bitboards and the policy are in the mover's view. If Black is to move, the board is flipped
//! vertically, so that the side to move always plays upwards.

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
