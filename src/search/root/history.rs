//! Tree reuse: stores earlier roots, so that a game in which a move is taken back, or which leaves
//! the pondered line, still finds its subtree.

use crate::chess::Game;
use crate::search::tree::Tree;
use crate::search::tree::arena::Index;
use crate::search::tree::packed::pack_move;
use shakmaty::{Move, Position};

/// Number of roots kept.
const LENGTH: usize = 16;

/// The most recent roots, in the order in which they were searched.
#[derive(Default)]
pub(crate) struct RootHistory {
    roots: Vec<FormerRoot>,
}

struct FormerRoot {
    node: Index,
    /// The root's game, and the moves searched, if not all were.
    game: Game,
    searched: Vec<Move>,
    /// [`Tree::evictions`] when the root was searched.
    evictions: u32,
}

impl RootHistory {
    /// Returns the game that was searched last.
    pub(crate) fn game(&self) -> Option<&Game> {
        self.roots.last().map(|root| &root.game)
    }

    pub(crate) fn clear(&mut self) {
        self.roots.clear();
    }

    /// Stores the root for this game.
    pub(crate) fn push(&mut self, tree: &Tree, game: &Game, searched: &[Move]) {
        if self.roots.len() == LENGTH {
            self.roots.remove(0);
        }
        self.roots.push(FormerRoot {
            node: tree.root_index(),
            game: game.clone(),
            searched: searched.to_vec(),
            evictions: tree.evictions(),
        });
    }

    /// Returns the node of the game's position if it can be reached from the last stored root that
    /// the game passed through; drops later roots.
    pub(crate) fn find_root(
        &mut self,
        tree: &Tree,
        game: &Game,
        searched: &[Move],
    ) -> Option<Index> {
        let last = self.roots.len().checked_sub(1)?;
        let (kept, node) = (0..=last).rev().find_map(|number| {
            let root = &self.roots[number];
            // An eviction keeps only the nodes reachable from the last root.
            let is_there = number == last || root.evictions == tree.evictions();
            let node = is_there
                .then(|| root.find_root(tree, game, searched))
                .flatten()?;
            Some((number + usize::from(node != root.node), node))
        })?;
        self.roots.truncate(kept);
        Some(node)
    }
}

impl FormerRoot {
    fn find_root(&self, tree: &Tree, game: &Game, searched: &[Move]) -> Option<Index> {
        let played = plies_since(&self.game, game)?;
        if played > 0 && has_repeated(game) {
            return None;
        }
        // A tree restricted to some root moves cannot serve a search of all moves, except below
        // those moves.
        let complete = match played {
            0 => self.searched == searched,
            _ => searched.is_empty(),
        };
        let plies = game.plies();
        let mut line = plies[plies.len() - played..].iter();
        complete
            .then(|| {
                line.try_fold(self.node, |node, ply| {
                    tree.child(node, pack_move(ply.played?))
                })
            })
            .flatten()
    }
}

/// Returns whether a position has occurred twice since the last capture or pawn move; otherwise no
/// move can lead to a third occurrence. If a move can, an earlier tree may have thousands of visits
/// for this move, which now ends the game, and new visits would not outvote them.
fn has_repeated(game: &Game) -> bool {
    let reversible = game.rule50() as usize + 1;
    let mut plies = game.plies().iter().rev().take(reversible);
    plies.any(|ply| ply.repetitions > 0)
}

/// Returns the number of plies from `before` to `now`, or `None` if they are different games. Games
/// with different ratings are different, because a network may evaluate their positions
/// differently.
pub(crate) fn plies_since(before: &Game, now: &Game) -> Option<usize> {
    let (old, new) = (before.plies(), now.plies());
    let played = new.len().checked_sub(old.len())?;
    let same_start = before.from_initial_position() == now.from_initial_position()
        && before.ratings() == now.ratings()
        && old[0].position.halfmoves() == new[0].position.halfmoves();
    let same = same_start && old.iter().zip(new).all(|(old, new)| old.key == new.key);
    same.then_some(played)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Ratings;

    #[test]
    fn a_game_goes_on_with_the_same_players() {
        let before = Game::default();
        let mut now = before.clone();
        now.play(now.parse_move("e2e4").unwrap());
        assert_eq!(plies_since(&before, &now), Some(1));
        assert_eq!(plies_since(&now, &before), None);
        now.set_ratings(Ratings {
            white: Some(1100),
            black: None,
        });
        assert_eq!(plies_since(&before, &now), None);
    }

    #[test]
    fn a_position_that_came_twice_is_remembered_until_a_capture_or_pawn_move() {
        let mut game = Game::default();
        let mut after = |moves: &str| {
            for mv in moves.split_whitespace() {
                game.play(game.parse_move(mv).unwrap());
            }
            has_repeated(&game)
        };
        assert!(!after("g1f3 g8f6 f3g1"));
        assert!(after("f6g8"));
        assert!(after("b1c3 b8c6"));
        assert!(!after("e2e4"));
        assert!(!after("g8f6 c3d5"));
    }
}
