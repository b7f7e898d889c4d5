//! Input encodings of supported networks.

use super::input::Input;
use super::transform::Transform;
use super::{canonical, perspective};
use crate::chess::Game;

/// The input format of a network, which determines the parts of a game that a row contains and the
/// orientation of the board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputFormat {
    /// Lc0's classical planes: eight positions in the view of the side to move.
    #[default]
    Classical,
    /// Like the classical planes, except that the network reads castling rights as rook squares.
    /// The rows are identical.
    CastlingPlanes,
    /// Lc0's canonical planes: equivalent boards, such as mirror images without castling rights,
    /// look the same to the network. History ends where play could not return to earlier positions.
    Canonical,
    /// Canonical planes, with `rule50` divided by 100 in the network.
    CanonicalHectoplies,
    /// Like the previous format, but the network also reads the side to move, for armageddon games.
    CanonicalHectopliesArmageddon,
    /// Canonical planes that include earlier positions only if they are repetitions.
    CanonicalV2,
    /// Like the previous format, but the network also reads the side to move, for armageddon games.
    CanonicalV2Armageddon,
    /// Maia-3's format, in which each earlier position is in the view of its own mover.
    Maia3,
}

impl InputFormat {
    /// All formats.
    pub const ALL: [InputFormat; 8] = [
        InputFormat::Classical,
        InputFormat::CastlingPlanes,
        InputFormat::Canonical,
        InputFormat::CanonicalHectoplies,
        InputFormat::CanonicalHectopliesArmageddon,
        InputFormat::CanonicalV2,
        InputFormat::CanonicalV2Armageddon,
        InputFormat::Maia3,
    ];

    /// Returns the format's number in network metadata, which is Lc0's number if Lc0 has this
    /// format.
    pub fn number(self) -> u32 {
        match self {
            InputFormat::Classical => 1,
            InputFormat::CastlingPlanes => 2,
            InputFormat::Canonical => 3,
            InputFormat::CanonicalHectoplies => 4,
            InputFormat::CanonicalHectopliesArmageddon => 132,
            InputFormat::CanonicalV2 => 5,
            InputFormat::CanonicalV2Armageddon => 133,
            InputFormat::Maia3 => 1003,
        }
    }

    /// Returns the format with this number.
    pub fn from_number(number: u32) -> Option<InputFormat> {
        let mut all = InputFormat::ALL.into_iter();
        all.find(|format| format.number() == number)
    }

    /// Returns whether rows and policy entries are the same as with [`Input::encode`].
    pub fn is_classical(self) -> bool {
        matches!(self, InputFormat::Classical | InputFormat::CastlingPlanes)
    }

    /// Returns whether equivalent boards, such as mirror images without castling rights, have the
    /// same row.
    pub fn is_canonical(self) -> bool {
        !self.is_classical() && self != InputFormat::Maia3
    }

    /// Returns the game's current position with the history that the format includes, and the board
    /// transform, which also applies to moves.
    pub fn encode(self, game: &Game) -> (Input, Transform) {
        match self {
            InputFormat::Classical | InputFormat::CastlingPlanes => {
                (Input::encode(game), Transform::default())
            }
            InputFormat::Canonical
            | InputFormat::CanonicalHectoplies
            | InputFormat::CanonicalHectopliesArmageddon => canonical::encode(game, false),
            InputFormat::CanonicalV2 | InputFormat::CanonicalV2Armageddon => {
                canonical::encode(game, true)
            }
            InputFormat::Maia3 => (perspective::encode(game), Transform::default()),
        }
    }
}
