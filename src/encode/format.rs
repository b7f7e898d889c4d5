//! Input encodings of supported networks.

use super::input::Input;
use super::transform::Transform;
use super::{canonical, perspective};
use crate::chess::Game;

/// The input format of a network: which parts of a game a row contains, and how the board is
/// oriented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputFormat {
    /// Lc0's classical planes: eight positions from the view of the side to move.
    #[default]
    Classical,
    /// Like the classical planes, but with castling rights as rook squares. Rows are identical.
    CastlingPlanes,
    /// Lc0's canonical planes: equivalent boards, such as mirror images without castling rights,
    /// look the same to the network. History ends where no earlier position can recur.
    Canonical,
    /// Canonical planes whose `rule50` the network divides by a hundred.
    CanonicalHectoplies,
    /// Like the previous format, but the network also sees the side to move, for armageddon.
    CanonicalHectopliesArmageddon,
    /// Canonical planes with earlier positions only if they are repetitions.
    CanonicalV2,
    /// Like the previous format, but the network also sees the side to move, for armageddon.
    CanonicalV2Armageddon,
    /// Maia-3's format: each earlier position from its own mover's view.
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

    /// Returns the format's number in network metadata: Lc0's number, if it has one.
    #[must_use]
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
    #[must_use]
    pub fn from_number(number: u32) -> Option<InputFormat> {
        let mut all = InputFormat::ALL.into_iter();
        all.find(|format| format.number() == number)
    }

    /// Returns whether rows and policy entries match [`Input::encode`].
    #[must_use]
    pub fn is_classical(self) -> bool {
        matches!(self, InputFormat::Classical | InputFormat::CastlingPlanes)
    }

    /// Returns whether equivalent boards, such as mirror images without castling rights, have the
    /// same row.
    #[must_use]
    pub fn is_canonical(self) -> bool {
        !self.is_classical() && self != InputFormat::Maia3
    }

    /// Returns the game's current position with its visible history, and the board transform, which
    /// also applies to moves.
    #[must_use]
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
