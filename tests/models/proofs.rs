//! Propagation of proofs.

use super::tree::Tree;
use super::tree::arena::{Index, Span};
use super::tree::header::Outcome;
use super::tree::testing::{expanded, grow};
use crate::check;
use loom::thread;
use std::sync::Arc;

/// Returns a root with two moves, and their nodes.
fn fork() -> (Arc<Tree>, [Index; 2]) {
    let tree = Tree::new(2);
    let (mut nodes, mut blocks) = (Span::default(), Span::default());
    expanded(&tree, &mut blocks, tree.root(), 2);
    let children = [1, 2].map(|key| {
        let edge = grow(&tree, &mut blocks, tree.root()).unwrap();
        let child = tree.add_node(&mut nodes, key).unwrap();
        tree.edge(edge).link(child)
    });
    (Arc::new(tree), children)
}

/// Propagates a child's proven outcome to the root.
fn prove(tree: &Tree, child: Index, outcome: Outcome, plies: u8) {
    tree.node(child).prove(outcome, plies);
    if let Some((outcome, plies)) = tree.proof(tree.root()) {
        tree.root().prove(outcome, plies);
    }
}

/// Two threads prove these outcomes of the two children concurrently; checks the root's outcome.
fn check_fork(first: (Outcome, u8), second: (Outcome, u8), root: (Outcome, u8)) {
    check(3, move || {
        let (tree, [left, right]) = fork();
        let other = {
            let tree = Arc::clone(&tree);
            thread::spawn(move || prove(&tree, left, first.0, first.1))
        };
        prove(&tree, right, second.0, second.1);
        other.join().unwrap();
        let header = tree.root().header();
        assert_eq!((header.outcome(), header.plies()), root);
    });
}

/// The root is proven only if at least one thread sees both proofs.
pub(crate) fn the_last_two_proofs_of_a_node_meet() {
    check_fork((Outcome::Win, 3), (Outcome::Win, 5), (Outcome::Loss, 6));
    check_fork((Outcome::Win, 3), (Outcome::Draw, 0), (Outcome::Draw, 0));
}

/// A thread that knows only the longer mate does not hide the shorter one.
pub(crate) fn the_shortest_known_mate_is_kept() {
    check_fork((Outcome::Loss, 4), (Outcome::Loss, 2), (Outcome::Win, 3));
}
