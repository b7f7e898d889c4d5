//! Reasons in sentences. Each sentence is based on a fact that is checked on the board: a function
//! of positions and moves that returns nothing if the fact does not apply.
//!
//! A sentence describes either the board ("Nc2+ forks the king on e1 and the rook on a1") or a line
//! that it names ("After Rxe5 dxe5, White has lost a rook for a knight"). It claims nothing else,
//! so no search can prove it false.

mod back_rank;
mod board;
mod castling;
mod counted;
mod course;
mod defender;
mod discovered;
mod double_attack;
mod ends;
mod exchange;
mod forced;
mod fork;
mod hanging;
mod kept;
mod mate;
mod material;
mod moment;
mod new_threat;
mod passed_pawn;
mod pin;
mod positional;
mod quiet;
mod recapture;
mod situation;
mod skewer;
mod structure;
mod tactics;
#[cfg(test)]
#[path = "facts/tests/testing.rs"]
mod testing;
mod threat;
mod trade;
mod trapped;
mod words;

pub use back_rank::back_rank_mate;
pub use board::balance;
pub use castling::{castling_given_up, castling_missed};
pub use defender::{defence_given_up, defender_removed, line_opened};
pub use discovered::discovered_attack;
pub use double_attack::double_attack;
pub use exchange::{best_capture, gain};
pub use forced::{Forced, forced, gives_away};
pub use fork::fork;
pub use hanging::capture;
pub use kept::kept;
pub use mate::forced_mate;
pub use material::{Outcome, material, outcome, outcomes};
pub use moment::Reasons;
pub use new_threat::{mate_threat, new_threat};
pub use passed_pawn::{blockade, new_passed_pawn, passed_pawn_advanced, promotion};
pub use pin::pin;
pub use quiet::{is_quiet, is_settled};
pub use recapture::recapture;
pub use situation::{Moment, Variation};
pub use skewer::skewer;
pub use structure::doubled_pawns;
pub use tactics::tactics;
pub use threat::{mate_threatened, threat_left, threatened};
pub use trade::{pawn_ending, queens_off};
pub use trapped::trapped_piece;
pub use words::san;

use serde::{Deserialize, Serialize};
use shakmaty::Square;

/// The kind of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// A forced mate.
    Mate,
    /// A mate on the back rank.
    BackRank,
    /// The side to move has no move and is not in check.
    Stalemate,
    /// A capture that gains material.
    Hanging,
    /// One piece attacks two.
    Fork,
    /// A piece stands before one that is worth more.
    Pin,
    /// A piece stands before one that falls when it moves.
    Skewer,
    /// A piece moves out of the way of another one's attack.
    Discovered,
    /// A piece that is attacked and cannot go anywhere.
    Trapped,
    /// A piece leaves another one without its defence.
    Defender,
    /// A piece leaves a line open.
    OpenedLine,
    /// Threats that existed before the move.
    Threat,
    /// A piece that could have been taken back.
    Recapture,
    /// A pawn that no pawn can stop, or one that promotes.
    PassedPawn,
    /// Castling that was given up or missed.
    Castling,
    /// Pawns that an exchange doubles.
    Structure,
    /// An exchange that changes the character of the game.
    Exchange,
    /// The material that a line wins or loses.
    Material,
    /// A piece that the better move keeps.
    Kept,
    /// A loss that is not one of material.
    Positional,
}

/// A fact in words, with the squares that it concerns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Fact {
    /// Its kind.
    pub topic: Topic,
    /// A sentence.
    pub text: String,
    /// Squares to highlight.
    #[cfg_attr(test, schema(value_type = Vec<String>))]
    #[serde(with = "names")]
    pub squares: Vec<Square>,
}

impl Fact {
    fn new(topic: Topic, text: String, squares: impl IntoIterator<Item = Square>) -> Fact {
        Fact {
            topic,
            text,
            squares: squares.into_iter().collect(),
        }
    }
}

/// Serialises squares by their names.
mod names {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use shakmaty::Square;

    pub(super) fn serialize<S: Serializer>(
        squares: &[Square],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let names: Vec<String> = squares.iter().map(Square::to_string).collect();
        names.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Square>, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        let squares = names
            .iter()
            .map(|name| name.parse().map_err(D::Error::custom));
        squares.collect()
    }
}
