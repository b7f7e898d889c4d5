//! Reports from the tree: moves in order of preference, lines, scores.

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

/// Maximum length of a reported line.
const MAX_LINE: usize = 60;

/// A root move with its statistics.
struct Ranked {
    mv: Move,
    prior: f32,
    /// The statistics for the side to move at the root; without visits, the value is the first-play
    /// urgency.
    statistics: Statistics,
    /// The node that the move leads to; 0 if it has none.
    node: Index,
    /// The node's proven outcome.
    header: NodeHeader,
}

impl Ranked {
    /// Returns whether the move has been visited or proven.
    fn is_known(&self) -> bool {
        self.statistics.visits > 0 || self.header.outcome() != Outcome::Unknown
    }
}

/// Returns the report on the tree's current state.
pub(crate) fn report(shared: &Shared<'_>) -> (Report, Vec<MoveStatistics>) {
    let ranked = ranked(shared);
    let has_moves_left = shared.backend.properties().has_moves_left;
    // The first move is the one to play. The other moves are lines if they have been visited or
    // proven.
    let others = ranked.iter().skip(1).filter(|of| of.is_known());
    let lines = ranked
        .iter()
        .take(1)
        .chain(others)
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
        depth: (progress.mean_depth() as u32).max(1),
        selective_depth: progress.deepest().max(1),
        nodes: shared.tree.root().visits().into(),
        new_nodes: progress.visits(),
        elapsed: shared.elapsed(),
        memory_use: shared
            .memory
            .map_or(shared.tree.fullness(), Memory::fullness),
        tablebase_hits: progress.tablebase_hits(),
        likelihood: None,
        lines,
    };
    (report, statistics)
}

/// Returns the root moves in order of preference: the move to play, the other moves that are
/// visited or proven, then the rest by prior.
fn ranked(shared: &Shared<'_>) -> Vec<Ranked> {
    let tree = shared.tree;
    let root = tree.root();
    let header = root.header();
    let board = shared.game.position().board();
    let mut visited = visited(tree, header);
    // A search in imagination may have visited illegal moves.
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
    // The first-play urgency is capped at the position's own value, because anything above that is
    // optimism, not evidence. Before the first move is visited, only the position's own value
    // exists.
    let urgency = match ranked.is_empty() {
        true => value,
        false => first_play_urgency(shared.parameters, value, visited_policy).min(value),
    };
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
    // Do not wait for a thread that is searching for mates; the last report comes after all threads
    // have ended.
    if let Some(mates) = shared.mates.and_then(|mates| mates.try_lock()) {
        add_proofs(&mut ranked, &mates);
    }
    // Mating moves come before all others, the shortest mate first. Moves proven to lose come after
    // the untried ones, the longest mate first.
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

/// Adds the proofs from outside the tree that were not entered in the tree before visits ran out.
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

/// Returns the line of a mate proven outside the tree, unless the tree has a shorter one.
fn proven_line(shared: &Shared<'_>, first: &Ranked) -> Option<Vec<Move>> {
    let mates = shared.mates?.try_lock()?;
    let proof = mates.proof_of(first.mv)?;
    let known = (first.header.outcome(), first.header.mate());
    (known == (proof.outcome, Some(proof.plies()))).then(|| proof.line.clone())
}

/// Returns the line of the best moves in the tree.
fn likeliest_line(shared: &Shared<'_>, first: &Ranked) -> Vec<Move> {
    let mut moves = vec![first.mv];
    let mut game = shared.game.clone();
    game.play(first.mv);
    let tree = shared.tree;
    let mut node = first.node;
    // Paths share nodes, so the game may have ended by repetition or the 50-move rule on this path
    // although it has not on others.
    while node != 0 && moves.len() < MAX_LINE && game.ending().is_none() {
        let Some(next) = best_edge(tree, tree.node(node)) else {
            break;
        };
        let position = game.position();
        let mv = match shared.memory {
            None => Some(unpack_move(next.mv(), position.board())),
            // An imagined line is shown up to its first illegal move.
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

/// Returns the moves that complete a line if its mate was found without visiting them.
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
    use crate::backend::{
        Backend, BackendError, Batch, Evaluations, Properties, Random, Uniform, Value,
    };
    use crate::chess::Game;
    use crate::play::{Choice, Control, Limits};
    use crate::search::{Parameters, Search};
    use crate::waiting::PATIENCE;
    use shakmaty::CastlingMode;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    /// Strongly prefers one of the moves in every position.
    struct Sharp(Uniform);

    impl Backend for Sharp {
        fn properties(&self) -> &Properties {
            self.0.properties()
        }

        fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
            out.clear();
            for index in 0..batch.len() {
                let moves = batch.moves(index).len();
                let value = Value {
                    q: 0.1,
                    ..Value::default()
                };
                out.push(
                    value,
                    (0..moves).map(|place| if place == 0 { 20.0 } else { 0.0 }),
                );
            }
            Ok(())
        }
    }

    /// Returns a single-threaded search that reports this many lines.
    fn several(lines: usize, gumbel_moves: u32) -> Search {
        let parameters = Parameters {
            threads: 1,
            multi_pv: lines,
            gumbel_moves,
            ..Parameters::default()
        };
        Search::new(Arc::new(Sharp(Uniform::default())), &parameters)
    }

    fn run(search: &mut Search, game: &Game, limits: &Limits) -> Choice {
        let control = Control::default();
        let choice = search.run(game, limits, &control, &mut |_| {}).unwrap();
        let visited = |line: &Line| {
            let first = line.moves[0];
            let of = choice.statistics.iter().find(|of| of.mv == first);
            of.is_some_and(|of| of.is_known())
        };
        assert!(choice.report.lines.iter().skip(1).all(visited));
        choice
    }

    fn nodes(nodes: u64) -> Limits {
        Limits {
            nodes: Some(nodes),
            ..Limits::default()
        }
    }

    #[test]
    fn every_line_of_an_analysis_is_visited() {
        let start = Game::default();
        let visits = |choice: &Choice| -> Vec<u64> {
            let visits = choice.statistics.iter().map(|of| of.visits);
            visits.filter(|&visits| visits > 0).collect()
        };
        let alone = run(&mut several(1, 0), &start, &nodes(3000));
        assert_eq!(
            visits(&alone),
            [2999],
            "there is nothing to see but one move"
        );
        let five = run(&mut several(5, 0), &start, &nodes(3000));
        let found = visits(&five);
        assert_eq!(five.report.lines.len(), 5);
        assert_eq!(five.report.nodes, 3000);
        assert!(
            found.len() == 5 && found[4] >= 50 && found[0] > 2700,
            "{found:?}"
        );
        // Every move is a line, and together the lines get a quarter of the visits.
        let all = run(&mut several(500, 0), &start, &nodes(3000));
        assert_eq!(all.report.lines.len(), 20);
        assert!(visits(&all)[0] > 2000);
        // This also holds with an existing tree and with several threads.
        let mut search = several(1, 0);
        run(&mut search, &start, &nodes(200));
        search.adjust(&Parameters {
            multi_pv: 4,
            ..search.parameters.clone()
        });
        assert_eq!(run(&mut search, &start, &nodes(220)).report.lines.len(), 4);
        search.adjust(&Parameters {
            threads: 3,
            ..search.parameters.clone()
        });
        search.clear();
        assert_eq!(run(&mut search, &start, &nodes(500)).report.lines.len(), 4);
    }

    #[test]
    fn there_are_no_more_lines_than_visits() {
        let start = Game::default();
        for (count, expected) in [(1, 1), (2, 1), (3, 2), (5, 4), (6, 5), (7, 5)] {
            let choice = run(&mut several(5, 0), &start, &nodes(count));
            assert_eq!(choice.report.lines.len(), expected, "{count}");
            // The score is the position's own value as long as no other is known.
            let score = choice.report.lines[0].score;
            let is_own = |score| matches!(score, Score::Expected(q) if (q - 0.1).abs() < 1e-4);
            assert!(is_own(score) || count > 1, "{score:?}");
            assert_eq!(choice.best, Some(choice.report.lines[0].moves[0]));
            assert_eq!(choice.report.nodes, count);
        }
        // In a timed game, no visits are spent on lines.
        let clock = Limits {
            time: Some(Duration::from_secs(3600)),
            ..nodes(300)
        };
        let choice = run(&mut several(5, 0), &start, &clock);
        assert_eq!(choice.report.lines.len(), 1);
    }

    #[test]
    fn lines_are_visited_whatever_ends_or_steers_the_search() {
        let start = Game::default();
        let shallow = Limits {
            depth: Some(1),
            ..Limits::default()
        };
        let choice = run(&mut several(5, 0), &start, &shallow);
        assert_eq!(choice.report.lines.len(), 5);
        let choice = run(&mut several(5, 2), &start, &nodes(64));
        assert_eq!(choice.report.lines.len(), 5);
        let moves = ["a2a4", "h2h4"].map(|mv| start.parse_move(mv).unwrap());
        let few = Limits {
            search_moves: moves.to_vec(),
            ..nodes(100)
        };
        assert_eq!(run(&mut several(5, 0), &start, &few).report.lines.len(), 2);
        // A mate ends the search once the other moves have scores.
        let mate = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1";
        let mate = Game::from_fen(mate, CastlingMode::Standard).unwrap();
        let choice = run(&mut several(3, 0), &mate, &nodes(100_000));
        let scores: Vec<Score> = choice.report.lines.iter().map(|it| it.score).collect();
        assert_eq!((scores.len(), scores[0]), (3, Score::Mate(1)));
        assert!(choice.report.nodes < 1000);
        // One move wins and all others lose; losing moves are lines too.
        let pinned = "k7/8/1K6/8/8/8/7r/6R1 b - - 0 1";
        let pinned = Game::from_fen(pinned, CastlingMode::Standard).unwrap();
        let choice = run(&mut several(4, 0), &pinned, &nodes(3000));
        assert_eq!(choice.report.lines.len(), 4);
    }

    #[test]
    fn depth_is_that_of_the_tree_whichever_search_grew_it() {
        let mut game = Game::default();
        let parameters = Parameters {
            threads: 1,
            ..Parameters::default()
        };
        let mut search = Search::new(Arc::new(Random::new(1)), &parameters);
        let first = run(&mut search, &game, &nodes(2000)).report;
        assert!(first.depth >= 3 && first.selective_depth > first.depth);
        let began = Instant::now();
        let again = run(&mut search, &game, &nodes(2000)).report;
        assert!(again.elapsed <= began.elapsed(), "{again:?}");
        assert_eq!((again.new_nodes, again.nodes_per_second()), (0, None));
        assert!(again.depth.abs_diff(first.depth) <= 1, "{again:?}");
        assert_eq!(again.selective_depth, first.selective_depth);
        // A depth limit applies to the reported depth.
        let deep = Limits {
            depth: Some(again.depth),
            ..Limits::default()
        };
        assert_eq!(run(&mut search, &game, &deep).report.new_nodes, 0);
        game.play(first.lines[0].moves[0]);
        let next = run(&mut search, &game, &nodes(1)).report;
        assert!(next.nodes > 10 && next.new_nodes == 0, "{next:?}");
        assert!(next.depth + 2 >= first.depth && next.selective_depth > next.depth);
        // A single position, evaluated once.
        let mut search = Search::new(Arc::new(Random::new(1)), &parameters);
        let one = run(&mut search, &game, &nodes(1)).report;
        assert_eq!((one.depth, one.selective_depth), (1, 1));
    }

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
            let report = reports.recv_timeout(PATIENCE);
            drop(busy);
            assert!(!report.unwrap().lines.is_empty());
        });
    }
}
