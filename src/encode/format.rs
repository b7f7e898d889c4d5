//! Input encodings of supported networks.

use super::input::Input;
use super::transform::Transform;
use super::{canonical, perspective};
use crate::chess::Game;

/// Input formats of networks: the parts of a game in a row, and the board's orientation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputFormat {
    /// Lc0's classical planes: eight positions as the side to move sees them.
    #[default]
    Classical,
    /// The same with castling rights as squares of rooks (the row is the same).
    CastlingPlanes,
    /// Lc0's canonical planes: the network sees only one of all equivalent boards, such as mirror
    /// images without castling rights; history ends where no earlier position can recur.
    Canonical,
    /// The same; the network divides `rule50` by a hundred.
    CanonicalHectoplies,
    /// The same; the network sees the side to move, for armageddon.
    CanonicalHectopliesArmageddon,
    /// Canonical, with earlier positions only where they are repetitions.
    CanonicalV2,
    /// The same; the network sees the side to move, for armageddon.
    CanonicalV2Armageddon,
    /// Maia-3's: each earlier position from its own mover's view.
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

    /// Returns its number in a network's metadata: Lc0's, where Lc0 has one.
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

    /// Returns the format of this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<InputFormat> {
        let mut all = InputFormat::ALL.into_iter();
        all.find(|format| format.number() == number)
    }

    /// Returns whether rows and policy are those of [`Input::encode`].
    #[must_use]
    pub fn is_classical(self) -> bool {
        matches!(self, InputFormat::Classical | InputFormat::CastlingPlanes)
    }

    /// Returns whether equivalent boards, such as mirror images without castling rights, give the
    /// same row.
    #[must_use]
    pub fn is_canonical(self) -> bool {
        !self.is_classical() && self != InputFormat::Maia3
    }

    /// Returns the game's current position with the visible history, and the board's transform,
    /// which also applies to moves.
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
