//! Edges and their children.

use super::tree::Tree;
use super::tree::arena::{Index, Span};
use super::tree::header::Stage;
use super::tree::move_order::visited;
use super::tree::node::Statistics;
use super::tree::prior::Rank;
use super::tree::testing::{expanded, grow};
use crate::check;
use loom::thread;
use std::sync::Arc;

/// Edge counts after which the next edge lies in new memory: in the first chunk, after the
/// directory, in a chunk of four, and after the directory of directories.
const BEFORE_NEW_MEMORY: [u32; 4] = [0, 2, 4, 24];

/// Returns a tree whose root has this many edges, and the next move to get one.
fn tree_of(edges: u32) -> (Arc<Tree>, Rank) {
    let tree = Tree::new(2);
    let mut span = Span::default();
    expanded(&tree, &mut span, tree.root(), 30);
    for _ in 0..edges {
        grow(&tree, &mut span, tree.root()).unwrap();
    }
    let header = tree.root().header();
    let last = tree.last_edge(header).map_or(Rank::TOP, |edge| edge.rank());
    let next = tree.next_rank(header, last).unwrap();
    (Arc::new(tree), next)
}

fn mv(rank: Rank) -> u16 {
    rank.number().into()
}

/// A thread reads the edges while another adds one.
pub(crate) fn an_edge_is_seen_with_its_move() {
    for edges in BEFORE_NEW_MEMORY {
        check(2, move || {
            let (tree, next) = tree_of(edges);
            let reader = {
                let tree = Arc::clone(&tree);
                thread::spawn(move || {
                    let header = tree.root().header();
                    if let Some(last) = tree.last_edge(header)
                        && header.count() > edges
                    {
                        assert_eq!((last.rank(), last.mv()), (next, mv(next)));
                        assert_eq!((last.visits(), last.node()), (0, 0));
                    }
                })
            };
            let root = (tree.root(), tree.root().header());
            tree.add_edge(&mut Span::default(), root, edges, mv(next), next)
                .unwrap();
            reader.join().unwrap();
            assert_eq!(tree.root().header().count(), edges + 1);
        });
    }
}

/// Two threads add an edge for the same move.
pub(crate) fn two_threads_make_the_same_edge_once() {
    for edges in BEFORE_NEW_MEMORY {
        check(2, move || {
            let (tree, next) = tree_of(edges);
            let add = move |tree: &Tree| -> Index {
                let mut span = Span::default();
                let root = (tree.root(), tree.root().header());
                let edge = tree.add_edge(&mut span, root, edges, mv(next), next);
                let edge = edge.unwrap();
                tree.edge(edge).add_in_flight(1);
                edge
            };
            let other = {
                let tree = Arc::clone(&tree);
                thread::spawn(move || add(&tree))
            };
            let here = add(&tree);
            assert_eq!(here, other.join().unwrap());
            let header = tree.root().header();
            assert_eq!((header.count(), header.locked()), (edges + 1, false));
            assert_eq!(tree.edge(here).edge_visits().in_flight(), 2);
            assert_eq!(tree.edge(here).mv(), mv(next));
        });
    }
}

/// A thread adds an edge while another corrects the priors: each move still gets exactly one edge.
pub(crate) fn a_correction_and_a_new_edge_do_not_mix() {
    check(2, || {
        let (tree, next) = tree_of(1);
        let seen = tree.root().header();
        let other = {
            let tree = Arc::clone(&tree);
            thread::spawn(move || {
                // The priors now fall with the number.
                let logits: Vec<f32> = (0..seen.moves()).map(|number| -f32::from(number)).collect();
                tree.correct(tree.root(), &logits, 1.0, &mut Vec::new());
            })
        };
        let mut span = Span::default();
        let added = tree.add_edge(&mut span, (tree.root(), seen), 1, mv(next), next);
        other.join().unwrap();
        let header = tree.root().header();
        assert_eq!(
            (header.count(), header.locked()),
            (1 + u32::from(added.is_ok()), false)
        );
        assert!(header.is_corrected() || added.is_ok());
        while tree.root().header().count() < u32::from(header.moves()) {
            grow(&tree, &mut span, tree.root()).unwrap();
        }
        let edges = tree.edges(tree.root().header());
        let mut numbers: Vec<u8> = edges.map(|edge| edge.rank().number()).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..header.moves()));
    });
}

/// Two threads each link the same edge to a node of their own, and count their visits.
pub(crate) fn the_first_link_wins() {
    check(2, || {
        let (tree, _) = tree_of(1);
        let edge = tree.edge_indices(tree.root().header()).next().unwrap();
        let visit = move |tree: &Tree, key: u64| -> Index {
            let edge = tree.edge(edge);
            edge.add_in_flight(1);
            let node = tree.add_node(&mut Span::default(), key).unwrap();
            let linked = edge.link(node);
            // A thread that sees the edge also sees the node.
            assert!([1, 2].contains(&tree.node(linked).key()));
            edge.complete(1, 1, 0);
            linked
        };
        let other = {
            let tree = Arc::clone(&tree);
            thread::spawn(move || visit(&tree, 1))
        };
        let here = visit(&tree, 2);
        let edge = tree.edge(edge);
        assert_eq!(edge.node(), here);
        assert_eq!(here, other.join().unwrap());
        assert_eq!((edge.visits(), edge.edge_visits().in_flight()), (2, 0));
    });
}

/// Two threads reach a new node; one of them evaluates it.
pub(crate) fn a_node_is_opened_once_and_whole() {
    check(3, || {
        let tree = Arc::new(Tree::new(2));
        let visit = |tree: &Tree| -> bool {
            let root = tree.root();
            let claim = root.update(|header| {
                (header.stage() == Stage::New).then_some(header.with_stage(Stage::Pending))
            });
            if claim.is_some() {
                let mut blocks = Span::default();
                expanded(tree, &mut blocks, root, 3);
            }
            let header = root.header();
            if header.stage() == Stage::Expanded {
                let own = tree.block(header).own();
                assert_eq!((own.m, header.moves()), (1.0, 3));
                assert!(tree.prior_codes(header).iter().all(|&code| code > 0));
                assert_eq!(tree.block(header).edge_pointers(), (0, 0));
            }
            claim.is_some()
        };
        let other = {
            let tree = Arc::clone(&tree);
            thread::spawn(move || visit(&tree))
        };
        let here = visit(&tree);
        assert!(here ^ other.join().unwrap());
        let statistics = tree.root().statistics();
        assert_eq!(
            statistics,
            Statistics {
                visits: 1,
                m: 1.0,
                ..Statistics::default()
            }
        );
    });
}

/// A thread reads the moves for a report while another visits both of them.
pub(crate) fn a_report_shows_each_move_at_one_moment() {
    check(1, || {
        let (tree, _) = tree_of(2);
        let reporter = {
            let tree = Arc::clone(&tree);
            thread::spawn(move || {
                let visited = visited(&tree, tree.root().header());
                assert!(visited.is_sorted_by(|a, b| a.statistics.visits >= b.statistics.visits));
                // Each edge is linked to an evaluated node.
                let complete = |node: Index, m: f64| node != 0 && m == 1.0;
                assert!(visited.iter().all(|of| complete(of.node, of.statistics.m)));
            })
        };
        let (mut nodes, mut blocks) = (Span::default(), Span::default());
        for (index, visits) in tree.edge_indices(tree.root().header()).zip(1..) {
            let edge = tree.edge(index);
            edge.add_in_flight(visits);
            let node = tree.add_node(&mut nodes, 1).unwrap();
            edge.link(node);
            expanded(&tree, &mut blocks, tree.node(node), 1);
            edge.complete(visits, visits, 0);
        }
        reporter.join().unwrap();
    });
}
