//! A back-rank mate, in which the king's own pieces block its escape.

use super::{Fact, Topic};
use shakmaty::attacks::king_attacks;
use shakmaty::{Chess, Color, Position, Role};

/// States that a rook or queen mates the side to move along its own back rank, with its own pieces
/// on all squares in front of the king.
pub fn back_rank_mate(position: &Chess) -> Option<Fact> {
    let (board, turn) = (position.board(), position.turn());
    let king = board.king_of(turn)?;
    let home = turn.backrank();
    let checkers = position.checkers();
    let along = checkers.into_iter().all(|checker| {
        let is_heavy = matches!(board.role_at(checker), Some(Role::Rook | Role::Queen));
        is_heavy && checker.rank() == home
    });
    let before = king_attacks(king).into_iter();
    let before: Vec<_> = before.filter(|square| square.rank() != home).collect();
    let shut_in = before.iter().all(|&it| board.color_at(it) == Some(turn));
    if !position.is_checkmate() || king.rank() != home || !along || !shut_in {
        return None;
    }
    let text = format!(
        "The mate is on the back rank: {} king is shut in by its own men.",
        match turn {
            Color::White => "White's",
            Color::Black => "Black's",
        }
    );
    Some(Fact::new(
        Topic::BackRank,
        text,
        [king].into_iter().chain(checkers),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::testing::position;
    use super::*;

    #[test]
    fn mates_on_the_back_rank_and_elsewhere() {
        let holds = |fen: &str| back_rank_mate(&position(fen)).is_some();
        for fen in [
            "R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1",
            "3Q2k1/5ppp/8/8/8/8/8/6K1 b - - 0 1",
            "6k1/8/8/8/8/8/5PPP/3r2K1 w - - 0 1",
            "7k/8/8/8/8/8/5PRP/3q2K1 w - - 0 1",
        ] {
            assert!(holds(fen), "{fen}");
        }
        for fen in [
            // No fact: no mate; two rooks on the edge; the enemy guards the squares in front; a
            // mate from another direction; not the side's own back rank.
            "R5k1/5pp1/7p/8/8/8/8/6K1 b - - 0 1",
            "R5k1/1R6/8/8/8/8/8/6K1 b - - 0 1",
            "R5k1/8/6K1/8/8/8/8/8 b - - 0 1",
            "6rk/5Npp/8/8/8/8/8/6K1 b - - 0 1",
            "6k1/8/8/8/8/5PPP/6K1/3r4 w - - 0 1",
        ] {
            assert!(!holds(fen), "{fen}");
        }
    }
}
