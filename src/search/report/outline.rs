//! The outline of a tree: its first plies, as data.

use crate::chess::Game;
use crate::search::tree::Tree;
use crate::search::tree::edge::Edge;
use crate::search::tree::move_order::{edge_statistics, prior_of, visited};
use crate::search::tree::node::Node;
use crate::search::tree::packed::unpack_move;
use shakmaty::{Move, Position};

/// The extent of a tree's outline.
#[derive(Clone, Copy, Debug)]
pub struct OutlineLimits {
    /// Number of plies below the root.
    pub plies: usize,
    /// Number of moves per position, best first.
    pub moves: usize,
    /// Minimum visits of a move.
    pub visits: u32,
    /// The chosen root move, which need not be the most visited. It comes first, and is included if
    /// it has been visited at all.
    pub chosen: Option<Move>,
}

/// A move in an outline. Values are for the side that plays it.
#[derive(Clone, Debug, PartialEq)]
pub struct OutlineMove {
    /// The move.
    pub mv: Move,
    /// The visits of the edge.
    pub visits: u32,
    /// The prior probability, in 0…1.
    pub prior: f32,
    /// The expected result, in −1…1.
    pub q: f32,
    /// The continuation.
    pub replies: Outline,
}

/// A position in an outline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline {
    /// The position's moves in order of preference, best first: by proven outcome and visits,
    /// except for [`OutlineLimits::chosen`].
    pub moves: Vec<OutlineMove>,
    /// The move with the highest prior; `None` if no move was visited.
    pub policy_first: Option<Move>,
}

impl Outline {
    /// Returns the outline of a tree below the node of `game`. With transpositions, a position may
    /// occur more than once.
    pub(crate) fn of(tree: &Tree, node: Node<'_>, game: &Game, limits: OutlineLimits) -> Outline {
        // On this path, the game may have ended by repetition.
        if limits.plies == 0 || game.ending().is_some() {
            return Outline::default();
        }
        let board = game.position().board();
        let header = node.header();
        let edges = visited(tree, header).into_iter().map(|of| of.edge);
        let is_chosen = |edge: &Edge<'_>| limits.chosen == Some(unpack_move(edge.mv(), board));
        let (chosen, others): (Vec<_>, Vec<_>) = edges.partition(is_chosen);
        let others = others.into_iter();
        let others = others.filter(|edge| edge.visits() >= limits.visits);
        let kept = chosen.into_iter().chain(others);
        let below = OutlineLimits {
            plies: limits.plies - 1,
            chosen: None,
            ..limits
        };
        let outlined = |edge: Edge<'_>| {
            let mv = unpack_move(edge.mv(), board);
            let mut after = game.clone();
            after.play(mv);
            OutlineMove {
                mv,
                visits: edge.visits(),
                prior: prior_of(edge),
                q: edge_statistics(tree, edge).q as f32,
                replies: match edge.node() {
                    0 => Outline::default(),
                    node => Outline::of(tree, tree.node(node), &after, below),
                },
            }
        };
        // Edges are sorted by prior.
        let first = tree.edges(header).next();
        Outline {
            moves: kept.take(limits.moves).map(outlined).collect(),
            policy_first: first.map(|edge| unpack_move(edge.mv(), board)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Random;
    use crate::play::{Control, Limits};
    use crate::search::{Parameters, Search};
    use std::sync::Arc;

    #[test]
    fn an_outline_is_the_tree_that_was_searched() {
        let parameters = Parameters {
            threads: 1,
            ..Parameters::default()
        };
        let mut search = Search::new(Arc::new(Random::new(1)), &parameters);
        let everything = OutlineLimits {
            plies: 2,
            moves: usize::MAX,
            visits: 1,
            chosen: None,
        };
        assert_eq!(search.outline(everything), Outline::default());
        let game = Game::default();
        let limits = Limits {
            nodes: Some(300),
            ..Limits::default()
        };
        let choice = search.run(&game, &limits, &Control::default(), &mut |_| {});
        let statistics = choice.unwrap().statistics;
        let outline = search.outline(everything);
        let visited: Vec<_> = statistics.iter().filter(|it| it.visits > 0).collect();
        assert_eq!(outline.moves.len(), visited.len());
        for (found, expected) in outline.moves.iter().zip(&visited) {
            assert_eq!(
                (found.mv, u64::from(found.visits)),
                (expected.mv, expected.visits)
            );
            assert_eq!((found.prior, found.q), (expected.prior, expected.q));
            assert!(
                found
                    .replies
                    .moves
                    .iter()
                    .all(|reply| reply.replies.moves.is_empty())
            );
        }
        let likeliest = statistics.iter().max_by(|a, b| a.prior.total_cmp(&b.prior));
        assert_eq!(outline.policy_first, likeliest.map(|it| it.mv));
        assert!(outline.moves[0].replies.moves.len() > 1);
        let few = search.outline(OutlineLimits {
            plies: 1,
            moves: 3,
            visits: visited[1].visits as u32,
            chosen: None,
        });
        assert_eq!(few.moves.len(), 2);
        assert_eq!(few.moves[0].replies, Outline::default());
        let last = visited[visited.len() - 1].mv;
        let by_visits = OutlineLimits {
            plies: 2,
            moves: 3,
            visits: visited[1].visits as u32,
            chosen: None,
        };
        let chosen = search.outline(OutlineLimits {
            chosen: Some(last),
            ..by_visits
        });
        let moves: Vec<Move> = chosen.moves.iter().map(|it| it.mv).collect();
        assert_eq!(moves, [last, visited[0].mv, visited[1].mv]);
        assert_eq!(chosen.moves[1..], search.outline(by_visits).moves);
    }
}
