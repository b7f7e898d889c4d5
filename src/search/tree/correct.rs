//! Corrected priors: those of a node that has edges already.
//!
//! Edges are created in order of prior, so the last one tells which move is next. A correction
//! changes this order. It therefore overwrites the bytes of the moves that have edges with a code
//! that no other move has then ([`prior::TAKEN`]); their priors are in the edges alone. The next
//! move is then the first one of the remaining order, or the one after the last edge that was
//! created since.

use super::Tree;
use super::block::priors;
use super::header::NodeHeader;
use super::node::Node;
use super::prior::{self, Rank};

impl Tree {
    /// Returns the rank before that of the first move without an edge, if no edge [orders the
    /// rest](Tree::orders_the_rest).
    #[inline]
    pub(crate) fn first_rank(header: NodeHeader) -> Rank {
        match header.is_corrected() {
            true => Rank::CORRECTED,
            false => Rank::TOP,
        }
    }

    /// Returns whether all moves without an edge rank below this edge.
    #[inline]
    pub(crate) fn orders_the_rest(&self, header: NodeHeader, edge: Rank) -> bool {
        let index = priors(header.block());
        !header.is_corrected() || prior::code(&self.arena, index, edge.number()) != prior::TAKEN
    }

    /// Overwrites `logits` with the logits of an expanded node that has not been corrected, up to a
    /// constant, in the order of its moves.
    pub(crate) fn logits(&self, header: NodeHeader, temperature: f32, logits: &mut Vec<f32>) {
        let index = priors(header.block());
        let of_move = |number| {
            let code = prior::code(&self.arena, index, number);
            temperature * prior::table()[usize::from(code)].ln()
        };
        logits.clear();
        logits.extend((0..header.moves()).map(of_move));
    }

    /// Replaces the priors of an expanded node by the softmax of `logits` at `temperature`, unless
    /// they have been corrected before or another thread is adding an edge.
    pub(crate) fn correct(
        &self,
        node: Node<'_>,
        logits: &[f32],
        temperature: f32,
        scratch: &mut Vec<f32>,
    ) {
        let free = |header: NodeHeader| {
            (!header.locked() && !header.is_corrected()).then_some(header.lock())
        };
        let Some(header) = node.update(free) else {
            return;
        };
        let index = priors(header.block());
        prior::write(&self.arena, index, logits, temperature, scratch);
        let code = |number| prior::code(&self.arena, index, number);
        let ranks = self.edges(header).map(|edge| {
            let rank = edge.rank();
            let rank = rank.with_code(code(rank.number()));
            edge.set_rank(rank);
            rank
        });
        prior::take(&self.arena, index, header.moves(), ranks);
        node.update(|header| Some(header.with_corrected().unlock()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::arena::Span;
    use super::super::testing::{expanded, grow};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Moves get edges in order of the corrected priors, each exactly once.
        #[test]
        fn moves_without_edges_follow_the_corrected_order(
            (logits, before) in prop::collection::vec(-9.0f32..0.0, 1..80)
                .prop_flat_map(|logits| {
                    let moves = logits.len();
                    (Just(logits), 0..=moves)
                }),
        ) {
            let tree = Tree::new(1);
            let mut span = Span::default();
            let root = tree.root();
            expanded(&tree, &mut span, root, logits.len());
            for _ in 0..before {
                grow(&tree, &mut span, root).unwrap();
            }
            tree.correct(root, &logits, 1.0, &mut Vec::new());
            let header = root.header();
            prop_assert!(header.is_corrected() && !header.locked());
            for _ in before..logits.len() {
                grow(&tree, &mut span, root).unwrap();
            }
            let header = root.header();
            let ranks: Vec<Rank> = tree.edges(header).map(|edge| edge.rank()).collect();
            let mut numbers: Vec<u8> = ranks.iter().map(|rank| rank.number()).collect();
            prop_assert!(ranks[before..].is_sorted_by(|a, b| a > b));
            numbers.sort_unstable();
            prop_assert!(numbers.into_iter().eq(0..header.moves()));
            let mut exact = logits.clone();
            crate::softmax::softmax(&mut exact, 1.0);
            for rank in ranks {
                let prior = prior::table()[usize::from(rank.code())];
                let truth = exact[usize::from(rank.number())].max(prior::table()[0]);
                prop_assert!((prior / truth - 1.0).abs() < 0.04, "{prior} {truth}");
            }
        }
    }

    #[test]
    fn logits_come_back_up_to_a_constant() {
        let tree = Tree::new(1);
        expanded(&tree, &mut Span::default(), tree.root(), 30);
        let mut logits = Vec::new();
        tree.logits(tree.root().header(), 2.0, &mut logits);
        // `expanded` writes 0.01 times the number, at temperature 1.
        assert_eq!(logits.len(), 30);
        assert!(
            (logits[29] - logits[0] - 2.0 * 0.29).abs() < 0.08,
            "{logits:?}"
        );
        tree.correct(tree.root(), &logits, 2.0, &mut Vec::new());
        let corrected = tree.root().header();
        tree.correct(tree.root(), &[0.0; 30], 2.0, &mut Vec::new());
        assert_eq!(tree.root().header(), corrected);
    }
}
