//! What the tree says: moves in the order of choice, lines, scores.

use super::arena::Index;
use super::edge::Edge;
use super::gumbel::Contender;
use super::header::{NodeHeader, Outcome};
use super::node::{Node, Statistics};
use super::packed::unpack_move;
use super::prior::{self, Rank};
use super::select::first_play_urgency;
use super::shared::Shared;
use super::tree::Tree;
use super::value::edge_value;
use crate::chess::mate_in_one;
use crate::play::{Line, MoveStatistics, Report, Score};
use shakmaty::{Move, Position};
use std::cmp::{Ordering, Reverse};

/// Longest line reported.
const MAX_LINE: usize = 60;

/// A root move with what is known of it.
struct Ranked {
    mv: Move,
    prior: f32,
    /// For the side to move at the root; the FPU without visits.
    statistics: Statistics,
    /// The node it leads to; 0 where there is none.
    node: Index,
    /// What is proven of that node.
    header: NodeHeader,
}

/// A visited edge as it was at one moment. The other threads go on changing the
/// tree: what is sorted, chosen and shown is read once.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot<'a> {
    pub(crate) edge: Edge<'a>,
    header: NodeHeader,
    statistics: Statistics,
    standing: Standing,
}

/// The place of a move in the order of choice, the greater the better: a proven
/// win (the shorter, a tablebase's last), then visits, value and prior, then a
/// proven loss (the longer, a tablebase's first).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    class: u8,
    urgency: i32,
    visits: u32,
    q: f64,
    rank: Rank,
}

impl Standing {
    fn new(header: NodeHeader, statistics: &Statistics, rank: Rank) -> Standing {
        let plies = i32::from(header.plies());
        let (class, urgency) = match header.outcome() {
            Outcome::Loss => (2, -plies),
            Outcome::Win => (0, plies),
            Outcome::Unknown | Outcome::Draw => (1, 0),
        };
        Standing {
            class,
            urgency,
            visits: if class == 1 { statistics.visits } else { 0 },
            // Of the two zeros neither is the greater.
            q: statistics.q + 0.0,
            rank,
        }
    }
}

impl Ord for Standing {
    fn cmp(&self, other: &Standing) -> Ordering {
        let whole = |standing: &Standing| (standing.class, standing.urgency, standing.visits);
        whole(self)
            .cmp(&whole(other))
            .then(self.q.total_cmp(&other.q))
            .then(self.rank.cmp(&other.rank))
    }
}

impl PartialOrd for Standing {
    fn partial_cmp(&self, other: &Standing) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Standing {
    fn eq(&self, other: &Standing) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Standing {}

/// Everything to be told of the tree at this moment.
pub(crate) fn report(shared: &Shared<'_>) -> (Report, Vec<MoveStatistics>) {
    let ranked = ranked(shared);
    let has_moves_left = shared.backend.properties().has_moves_left;
    let lines = ranked
        .iter()
        .take(shared.parameters.multi_pv.max(1))
        .map(|first| line(shared, first, has_moves_left))
        .collect();
    let statistics = ranked
        .iter()
        .map(|ranked| MoveStatistics {
            mv: ranked.mv,
            visits: ranked.statistics.visits.into(),
            prior: ranked.prior,
            q: ranked.statistics.q as f32,
            wdl: wdl(&ranked.statistics),
            moves_left: has_moves_left.then_some(ranked.statistics.m as f32 + 1.0),
        })
        .collect();
    let progress = &shared.progress;
    let report = Report {
        depth: progress.mean_depth() as u32,
        selective_depth: progress.deepest(),
        nodes: shared.tree.root().visits().into(),
        new_nodes: progress.visits(),
        elapsed: shared.began.elapsed(),
        memory_use: shared.tree.fullness(),
        tablebase_hits: progress.tablebase_hits(),
        lines,
    };
    (report, statistics)
}

/// What is known of the position that an edge leads to.
fn destination(tree: &Tree, edge: Edge<'_>) -> NodeHeader {
    match edge.node() {
        0 => NodeHeader::default(),
        node => tree.node(node).header(),
    }
}

/// The value of a move for the side that plays it, with its visits.
pub(crate) fn edge_statistics(tree: &Tree, edge: Edge<'_>) -> Statistics {
    let edge_visits = edge.edge_visits();
    let value = match edge.node() {
        0 => edge_value(&Statistics::default(), 1.0),
        node => edge_value(&tree.node(node).statistics(), edge_visits.drawn()),
    };
    Statistics {
        visits: edge_visits.visits(),
        ..value
    }
}

/// Where a move stands at this moment.
pub(crate) fn standing(tree: &Tree, edge: Edge<'_>) -> Standing {
    let statistics = edge_statistics(tree, edge);
    Standing::new(destination(tree, edge), &statistics, edge.rank())
}

/// The edges of a node as Gumbel's selection sees them.
pub(crate) fn contenders(tree: &Tree, node: Node<'_>) -> Vec<Contender> {
    tree.edges(node.header())
        .map(|edge| Contender {
            number: edge.rank().number(),
            prior: prior_of(edge),
            q: (edge.visits() > 0).then(|| edge_statistics(tree, edge).q as f32),
            started: edge.edge_visits().started(),
            lost: destination(tree, edge).outcome() == Outcome::Win,
        })
        .collect()
}

/// The best edge, if any has been visited.
pub(crate) fn best_edge<'a>(tree: &'a Tree, node: Node<'_>) -> Option<Edge<'a>> {
    tree.edges(node.header())
        .filter(|edge| edge.visits() > 0)
        .max_by_key(|&edge| standing(tree, edge))
}

/// The visited edges of a node in the order of choice, the best first.
pub(crate) fn visited<'a>(tree: &'a Tree, header: NodeHeader) -> Vec<Snapshot<'a>> {
    let snapshot = |edge: Edge<'a>| {
        let header = destination(tree, edge);
        let statistics = edge_statistics(tree, edge);
        Snapshot {
            edge,
            header,
            statistics,
            standing: Standing::new(header, &statistics, edge.rank()),
        }
    };
    let mut visited: Vec<Snapshot<'a>> = tree
        .edges(header)
        .map(snapshot)
        .filter(|snapshot| snapshot.statistics.visits > 0)
        .collect();
    visited.sort_by_key(|snapshot| Reverse(snapshot.standing));
    visited
}

/// The root moves in the order of choice: the visited ones, then the others by
/// prior.
fn ranked(shared: &Shared<'_>) -> Vec<Ranked> {
    let tree = shared.tree;
    let root = tree.root();
    let header = root.header();
    let board = shared.game.position().board();
    let visited = visited(tree, header);
    let visited_policy = visited.iter().map(|of| prior_of(of.edge)).sum();
    let mut ranked: Vec<Ranked> = visited
        .into_iter()
        .map(|of| Ranked {
            mv: unpack_move(of.edge.mv(), board),
            prior: prior_of(of.edge),
            statistics: of.statistics,
            node: of.edge.node(),
            header: of.header,
        })
        .collect();
    let own = root.statistics();
    let value = -own.q as f32;
    // An urgency above the position's own value is a hope, and no news.
    let urgency = first_play_urgency(shared.parameters, true, value, visited_policy).min(value);
    let unvisited = Statistics {
        visits: 0,
        q: urgency.clamp(own.d as f32 - 1.0, 1.0 - own.d as f32).into(),
        ..own
    };
    let even = 1.0 / shared.root_moves.len().max(1) as f32;
    let mut rest: Vec<(Move, f32)> = Vec::new();
    let seen: Vec<Move> = ranked.iter().map(|ranked| ranked.mv).collect();
    let codes = (header.moves() > 0).then(|| tree.prior_codes(header));
    for (number, &mv) in shared.root_moves.iter().enumerate() {
        if !seen.contains(&mv) {
            let code = codes.as_ref().and_then(|codes| codes.get(number));
            let prior = code.map_or(even, |&code| prior::table()[usize::from(code)]);
            rest.push((mv, prior));
        }
    }
    rest.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap_or(Ordering::Equal));
    ranked.extend(rest.into_iter().map(|(mv, prior)| Ranked {
        mv,
        prior,
        statistics: unvisited,
        node: 0,
        header: NodeHeader::default(),
    }));
    // A move proven lost stands behind the moves not tried.
    ranked.sort_by_key(|ranked| ranked.header.outcome() == Outcome::Win);
    if let Some(rescaling) = shared.rescaling {
        let turn = shared.game.position().turn();
        let share = shared.parameters.contempt.objectivity;
        for Ranked { statistics, .. } in &mut ranked {
            let (q, d) = (statistics.q as f32, statistics.d as f32);
            let (q, d) = rescaling.without_contempt(q, d, share, turn);
            (statistics.q, statistics.d) = (q.into(), d.into());
        }
    }
    ranked
}

pub(crate) fn prior_of(edge: Edge<'_>) -> f32 {
    prior::table()[usize::from(edge.rank().code())]
}

fn line(shared: &Shared<'_>, first: &Ranked, has_moves_left: bool) -> Line {
    let mut moves = vec![first.mv];
    let mut game = shared.game.clone();
    game.play(first.mv);
    let tree = shared.tree;
    let mut node = first.node;
    // Nodes are shared by all paths: on this one the game may be over by repetition
    // or the 50-move rule where others go on.
    while node != 0 && moves.len() < MAX_LINE && game.ending().is_none() {
        let Some(next) = best_edge(tree, tree.node(node)) else {
            break;
        };
        let mv = unpack_move(next.mv(), game.position().board());
        game.play(mv);
        moves.push(mv);
        node = next.node();
    }
    // The last move of a mate was seen, not visited.
    if node != 0 && tree.node(node).header().mate() == Some(1) && game.ending().is_none() {
        let position = game.position();
        moves.extend(mate_in_one(position, &position.legal_moves()));
    }
    let score = score(first);
    let has_end = has_moves_left && !matches!(score, Score::Tablebase { .. });
    let mut line = Line {
        score,
        wdl: wdl(&first.statistics),
        moves_left: has_end.then_some(first.statistics.m as f32 + 1.0),
        moves,
    };
    if let Some(verdict) = shared.verdict {
        line.settle(verdict);
    }
    line
}

fn score(ranked: &Ranked) -> Score {
    let header = ranked.header;
    match (header.outcome(), header.mate().map(i32::from)) {
        (Outcome::Loss, Some(plies)) => Score::Mate((plies + 2) / 2),
        (Outcome::Loss, None) => Score::Tablebase { won: true },
        (Outcome::Win, Some(plies)) => Score::Mate(-(plies + 1) / 2),
        (Outcome::Win, None) => Score::Tablebase { won: false },
        (Outcome::Draw | Outcome::Unknown, _) => Score::Expected(ranked.statistics.q as f32),
    }
}

fn wdl(statistics: &Statistics) -> [f32; 3] {
    let (q, d) = (statistics.q as f32, statistics.d as f32);
    let win = ((1.0 - d + q) / 2.0).clamp(0.0, 1.0 - d);
    [win, d, 1.0 - d - win]
}

#[cfg(test)]
mod tests {
    use super::super::arena::Span;
    use super::super::tree::testing::{expanded, grow};
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    /// An order that changed while it was sorted by would panic, or show in
    /// visits that rise.
    #[test]
    fn moves_are_in_order_while_other_threads_visit_them() {
        let tree = Tree::new(1);
        let mut span = Span::default();
        expanded(&tree, &mut span, tree.root(), 218);
        for _ in 0..200 {
            grow(&tree, &mut span, tree.root()).unwrap();
        }
        let header = tree.root().header();
        for edge in tree.edges(header) {
            edge.add_in_flight(1);
            edge.complete(1, 1, 0);
        }
        let over = AtomicBool::new(false);
        let visit = || {
            let mut number = 0;
            while !over.load(Relaxed) {
                number = (number + 73) % 200;
                let edge = tree.edges(header).nth(number).unwrap();
                edge.add_in_flight(number as u32);
                edge.complete(number as u32, number as u32, 0);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(visit);
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(300) {
                let visited = visited(&tree, header);
                let visits = visited.iter().map(|of| of.statistics.visits);
                let falls = visits.clone().is_sorted_by(|a, b| a >= b);
                // The other thread ends even where this one fails.
                over.store(!falls, Relaxed);
                assert!(falls, "{:?}", visits.collect::<Vec<_>>());
            }
            over.store(true, Relaxed);
        });
    }

    #[test]
    fn wins_come_first_and_losses_last() {
        let of = |outcome, plies, visits, q| {
            let header = NodeHeader::default().with_outcome(outcome, plies);
            let statistics = Statistics {
                visits,
                q,
                ..Statistics::default()
            };
            Standing::new(header, &statistics, Rank::new(9, 9))
        };
        let order = [
            of(Outcome::Loss, 3, 1, 1.0),
            of(Outcome::Loss, 5, 9, 1.0),
            of(Outcome::Unknown, 0, 5, 0.2),
            of(Outcome::Draw, 0, 4, 0.3),
            of(Outcome::Unknown, 0, 4, 0.0),
            of(Outcome::Win, 6, 9, -1.0),
            of(Outcome::Win, 2, 9, -1.0),
        ];
        assert!(order.is_sorted_by(|better, worse| better > worse));
        let zeros = [0.0, -0.0].map(|q| of(Outcome::Unknown, 0, 1, q));
        assert_eq!(zeros[0], zeros[1]);
    }
}
