//! What the tree says: moves in the order of choice, lines, scores.

use super::node::{Node, Statistics};
use super::packed::unpack_move;
use super::prior;
use super::select::first_play_urgency;
use super::shape::Outcome;
use super::shared::Shared;
use crate::agent::{Line, MoveStatistics, Report, Score};
use shakmaty::{Chess, Move, Position};
use std::cmp::Ordering;

/// Longest line reported.
const MAX_LINE: usize = 60;

/// A root move with what is known of it.
struct Ranked<'a> {
    mv: Move,
    prior: f32,
    /// For the side to move at the root; the FPU without visits.
    statistics: Statistics,
    node: Option<Node<'a>>,
}

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
        tablebase_hits: 0,
        lines,
    };
    (report, statistics)
}

/// The order of choice, the better first: a proven win (the shorter), then
/// visits, value and prior, then a proven loss (the longer).
pub(crate) fn compare(a: Node<'_>, b: Node<'_>) -> Ordering {
    let key = |node: Node<'_>| {
        let shape = node.shape();
        let plies = i32::from(shape.plies());
        let (class, urgency) = match shape.outcome() {
            Outcome::Loss => (2, -plies),
            Outcome::Win => (0, plies),
            Outcome::Unknown | Outcome::Draw => (1, 0),
        };
        let (visits, q) = node.visits_and_q();
        let visits = if class == 1 { visits } else { 0 };
        (class, urgency, visits, q, node.rank())
    };
    key(b).partial_cmp(&key(a)).unwrap_or(Ordering::Equal)
}

/// The best child, if any has been visited.
pub(crate) fn best_child<'a>(shared: &Shared<'a>, node: Node<'_>) -> Option<Node<'a>> {
    shared
        .tree
        .children(node.shape())
        .filter(|child| child.visits() > 0)
        .min_by(|&a, &b| compare(a, b))
}

/// The root moves in the order of choice: the visited ones, then the others by
/// prior.
fn ranked<'a>(shared: &Shared<'a>) -> Vec<Ranked<'a>> {
    let tree = shared.tree;
    let root = tree.root();
    let shape = root.shape();
    let board = shared.game.position().board();
    let mut nodes: Vec<Node<'a>> = tree
        .children(shape)
        .filter(|child| child.visits() > 0)
        .collect();
    let visited_policy = nodes.iter().map(|node| prior_of(*node)).sum();
    nodes.sort_by(|&a, &b| compare(a, b));
    let mut ranked: Vec<Ranked<'a>> = nodes
        .into_iter()
        .map(|node| Ranked {
            mv: unpack_move(node.mv(), board),
            prior: prior_of(node),
            statistics: node.statistics(),
            node: Some(node),
        })
        .collect();
    let own = root.statistics();
    let unvisited = Statistics {
        visits: 0,
        q: first_play_urgency(shared.parameters, -own.q as f32, visited_policy)
            .clamp(own.d as f32 - 1.0, 1.0 - own.d as f32)
            .into(),
        ..own
    };
    let even = 1.0 / shared.root_moves.len().max(1) as f32;
    let mut rest: Vec<(Move, f32)> = Vec::new();
    let seen: Vec<Move> = ranked.iter().map(|ranked| ranked.mv).collect();
    let codes = (shape.moves() > 0).then(|| tree.prior_codes(root, shape));
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
        node: None,
    }));
    // A move proven lost stands behind the moves not tried.
    ranked.sort_by_key(|ranked| {
        ranked
            .node
            .is_some_and(|node| node.shape().outcome() == Outcome::Win)
    });
    ranked
}

fn prior_of(node: Node<'_>) -> f32 {
    prior::table()[usize::from(node.rank().code())]
}

fn line(shared: &Shared<'_>, first: &Ranked<'_>, has_moves_left: bool) -> Line {
    let mut moves = vec![first.mv];
    let mut position: Chess = shared.game.position().clone();
    position.play_unchecked(first.mv);
    let mut node = first.node;
    while let Some(next) = node.and_then(|node| best_child(shared, node)) {
        if moves.len() == MAX_LINE {
            break;
        }
        let mv = unpack_move(next.mv(), position.board());
        position.play_unchecked(mv);
        moves.push(mv);
        node = Some(next);
    }
    Line {
        score: score(first),
        wdl: wdl(&first.statistics),
        moves_left: has_moves_left.then_some(first.statistics.m as f32 + 1.0),
        moves,
    }
}

fn score(ranked: &Ranked<'_>) -> Score {
    let expected = Score::Expected(ranked.statistics.q as f32);
    let Some(shape) = ranked.node.map(Node::shape) else {
        return expected;
    };
    let plies = i32::from(shape.plies());
    match shape.outcome() {
        Outcome::Loss => Score::Mate((plies + 2) / 2),
        Outcome::Win => Score::Mate(-(plies + 1) / 2),
        Outcome::Draw | Outcome::Unknown => expected,
    }
}

fn wdl(statistics: &Statistics) -> [f32; 3] {
    let (q, d) = (statistics.q as f32, statistics.d as f32);
    let win = ((1.0 - d + q) / 2.0).clamp(0.0, 1.0 - d);
    [win, d, 1.0 - d - win]
}
