//! The phases of a game.
//!
//! The opening lasts as long as more than ten pieces other than kings and pawns are on the board
//! and each side has at least four pieces or pawns on its back rank. The endgame begins with six
//! such pieces or fewer. These are two of Lichess's three rules; the third considers how far the
//! two sides' pieces have mixed. A phase that has ended does not return.

use serde::{Deserialize, Serialize};
use shakmaty::{Bitboard, Chess, Color, Position};

/// A phase of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The opening.
    Opening,
    /// The middlegame.
    Middlegame,
    /// The endgame.
    Endgame,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Phase; 3] = [Phase::Opening, Phase::Middlegame, Phase::Endgame];

    fn of(position: &Chess) -> Phase {
        let board = position.board();
        let pieces = (board.occupied() & !board.pawns() & !board.kings()).count();
        let is_sparse = |side: Color| {
            let home = Bitboard::from_rank(side.backrank());
            (board.by_color(side) & home).count() < 4
        };
        match pieces {
            0..=6 => Phase::Endgame,
            7..=10 => Phase::Middlegame,
            _ if Color::ALL.into_iter().any(is_sparse) => Phase::Middlegame,
            _ => Phase::Opening,
        }
    }
}

/// Returns the phase of each position of a game.
pub fn phases<'a>(positions: impl IntoIterator<Item = &'a Chess>) -> Vec<Phase> {
    let mut latest = Phase::Opening;
    let phase = |position| {
        latest = latest.max(Phase::of(position));
        latest
    };
    positions.into_iter().map(phase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use shakmaty::CastlingMode;

    #[test]
    fn phases_follow_each_other() {
        let position = |fen: &str| {
            let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
            game.position().clone()
        };
        let opening = Chess::default();
        let sparse = position("r1b2rk1/ppqnbppp/2n1p3/3p4/3P4/2NBPN2/PPQB1PPP/2R2R1K w - - 0 1");
        let few = position("r4rk1/pp3ppp/2n2n2/8/8/2N2N2/PP3PPP/R4RK1 w - - 0 1");
        let endgame = position("4k3/8/8/8/8/8/4R3/4K3 b - - 0 1");
        let all = [&opening, &sparse, &endgame, &opening];
        let expected = [
            Phase::Opening,
            Phase::Middlegame,
            Phase::Endgame,
            Phase::Endgame,
        ];
        assert_eq!(phases(all), expected);
        assert_eq!(phases([&few]), [Phase::Middlegame]);
        assert!(phases([]).is_empty());
    }
}
