//! What the tree says: moves in the order of choice, lines, scores.

pub(crate) mod outline;

use super::choice::Surest;
use super::descent::select::first_play_urgency;
use super::mates::{LeafMates, MateSearch};
use super::memory::Memory;
use super::shared::Shared;
use super::tree::arena::Index;
use super::tree::header::{NodeHeader, Outcome};
use super::tree::move_order::{best_edge, prior_of, visited};
use super::tree::node::Statistics;
use super::tree::packed::unpack_move;
use super::tree::prior;
use super::tree::value::proven_value;
use crate::chess::mate_in_one;
use crate::encode::policy_move;
use crate::play::{Line, MoveStatistics, Report, Score};
use crate::tablebase::bare_king;
use shakmaty::{Chess, Move, Position};
use std::cmp::Ordering;

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
            score: score(ranked),
        })
        .collect();
    let progress = &shared.progress;
    let report = Report {
        depth: progress.mean_depth() as u32,
        selective_depth: progress.deepest(),
        nodes: shared.tree.root().visits().into(),
        new_nodes: progress.visits(),
        elapsed: shared.began.elapsed(),
        memory_use: shared
            .memory
            .map_or(shared.tree.fullness(), Memory::fullness),
        tablebase_hits: progress.tablebase_hits(),
        likelihood: None,
        lines,
    };
    (report, statistics)
}

/// The root moves in the order of choice: the one to play, the others that are visited or
/// proven, then the rest by prior.
fn ranked(shared: &Shared<'_>) -> Vec<Ranked> {
    let tree = shared.tree;
    let root = tree.root();
    let header = root.header();
    let board = shared.game.position().board();
    let mut visited = visited(tree, header);
    // In imagination there may be moves that no rules allow.
    visited.retain(|of| usize::from(of.edge.rank().number()) < shared.root_moves.len());
    let visited_policy = visited.iter().map(|of| prior_of(of.edge)).sum();
    let mut ranked: Vec<Ranked> = visited
        .into_iter()
        .map(|of| Ranked {
            mv: unpack_move(of.edge.mv(), board),
            prior: prior_of(of.edge),
            statistics: of.statistics,
            node: of.node,
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
    // A thread that looks for mates now is not waited for: the last report meets none.
    if let Some(mates) = shared.mates.and_then(|mates| mates.try_lock()) {
        add_proofs(&mut ranked, &mates);
    }
    // A move that mates stands before all others, the sooner the better; one proven lost,
    // behind the moves not tried, the later the better.
    ranked.sort_by_key(|ranked| {
        let plies = i32::from(ranked.header.plies());
        match ranked.header.outcome() {
            Outcome::Loss => (0, plies),
            Outcome::Unknown | Outcome::Draw => (1, 0),
            Outcome::Win => (2, -plies),
        }
    });
    let judged = ranked.iter().map(|of| (of.header, &of.statistics));
    let chosen = Surest::new(shared).place(judged);
    if chosen > 0 {
        ranked[..=chosen].rotate_right(1);
    }
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

/// Adds what was proven beside the tree where no visit was left to enter it.
fn add_proofs(ranked: &mut [Ranked], mates: &MateSearch) {
    let unproven = |of: &&mut Ranked| of.header.outcome() == Outcome::Unknown;
    for of in ranked.iter_mut().filter(unproven) {
        if let Some(proof) = mates.proof_of(of.mv) {
            of.header = of.header.with_outcome(proof.outcome, proof.plies());
            of.statistics = Statistics {
                visits: of.statistics.visits,
                ..proven_value(proof.outcome, proof.plies())
            };
        }
    }
}

fn line(shared: &Shared<'_>, first: &Ranked, has_moves_left: bool) -> Line {
    let score = score(first);
    let has_end = has_moves_left && !matches!(score, Score::Tablebase { .. });
    let mut line = Line {
        score,
        wdl: wdl(&first.statistics),
        moves_left: has_end.then_some(first.statistics.m as f32 + 1.0),
        moves: proven_line(shared, first).unwrap_or_else(|| likeliest_line(shared, first)),
    };
    if let Some(verdict) = shared.verdict {
        line.settle(verdict);
    }
    line
}

/// The line of a mate that was proven beside the tree, where none in the tree is
/// shorter.
fn proven_line(shared: &Shared<'_>, first: &Ranked) -> Option<Vec<Move>> {
    let mates = shared.mates?.try_lock()?;
    let proof = mates.proof_of(first.mv)?;
    let known = (first.header.outcome(), first.header.mate());
    (known == (proof.outcome, Some(proof.plies()))).then(|| proof.line.clone())
}

/// The line of the best moves in the tree.
fn likeliest_line(shared: &Shared<'_>, first: &Ranked) -> Vec<Move> {
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
        let position = game.position();
        let mv = match shared.memory {
            None => Some(unpack_move(next.mv(), position.board())),
            // An imagined line is shown as far as the rules go along.
            Some(_) => policy_move(position, next.mv()),
        };
        let Some(mv) = mv else { break };
        game.play(mv);
        moves.push(mv);
        node = next.node();
    }
    if node != 0 && game.ending().is_none() {
        moves.extend(unvisited_end(
            shared,
            game.position(),
            tree.node(node).header(),
        ));
    }
    moves
}

/// The end of a mate that was seen, not visited.
fn unvisited_end(shared: &Shared<'_>, position: &Chess, header: NodeHeader) -> Vec<Move> {
    let Some(plies) = header.mate() else {
        return Vec::new();
    };
    let known = shared.mates.and_then(|_| bare_king::line(position));
    let legal = position.legal_moves();
    match (header.outcome(), plies) {
        _ if known.is_some() => known,
        (Outcome::Win, 1) => mate_in_one(position, &legal).map(|mv| vec![mv]),
        (Outcome::Win, _) => LeafMates::new().line(position, &legal, &shared.draws),
        _ => None,
    }
    .unwrap_or_default()
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
    use super::*;
    use crate::chess::Game;
    use crate::nn::Uniform;
    use crate::play::{Control, Limits};
    use crate::search::Search;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    #[test]
    fn a_report_does_not_wait_for_who_looks_for_mates() {
        let game = Game::default();
        let mut search = Search::new(Arc::new(Uniform::default()), &Default::default());
        let limits = Limits {
            nodes: Some(10),
            ..Limits::default()
        };
        let control = Control::default();
        search.run(&game, &limits, &control, &mut |_| {}).unwrap();
        let moves = game.position().legal_moves();
        let shared = search.share(&game, moves, None, &limits, &control, Instant::now());
        let (told, reports) = channel();
        std::thread::scope(|scope| {
            let busy = shared.mates.map(|mates| mates.lock());
            assert!(busy.is_some());
            scope.spawn(|| told.send(report(&shared).0));
            let report = reports.recv_timeout(Duration::from_secs(10));
            drop(busy);
            assert!(!report.unwrap().lines.is_empty());
        });
    }
}
