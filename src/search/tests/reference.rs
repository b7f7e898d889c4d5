//! A minimal implementation of PUCT, one visit at a time, with which the search is compared.

use crate::backend::{Backend, BackendError, Batch, Evaluations, Properties, Value};
use crate::chess::{Game, mate_in_one};
use crate::encode::Encoder;
use crate::play::{Control, Limits};
use crate::search::Search;
use crate::search::parameters::Parameters;
use crate::search::tree::Tree;
use crate::search::tree::arena::{Arena, Index};
use crate::search::tree::header::Outcome;
use crate::search::tree::prior;
use shakmaty::{CastlingMode, Move, Position};
use std::sync::Arc;

struct Hashed(Properties);

fn hashed() -> Hashed {
    Hashed(Properties {
        name: "hashed".to_owned(),
        encoder: Encoder::Nothing,
        has_value: true,
        has_moves_left: false,
        has_error: false,
        reads_ratings: false,
        correction: None,
        recommended_batch: 1,
        recommended_threads: 1,
        format: None,
    })
}

fn unit(key: u64) -> f32 {
    let mixed = (key ^ (key >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 40) as f32 / (1 << 24) as f32
}

impl Backend for Hashed {
    fn properties(&self) -> &Properties {
        &self.0
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        out.clear();
        for (index, &key) in batch.keys().iter().enumerate() {
            let q = unit(key) * 1.6 - 0.8;
            let value = Value {
                q,
                ..Value::default()
            };
            let logit = |&mv: &u16| unit(key.wrapping_add(u64::from(mv) << 40)) * 4.0;
            out.push(value, batch.moves(index).iter().map(logit));
        }
        Ok(())
    }
}

#[derive(Default)]
struct Plain {
    visits: u32,
    /// Sum of the values for the side that moved here.
    sum: f64,
    edges: Vec<(Move, f32, Plain)>,
}

impl Plain {
    /// Makes one visit; returns its value for the side that moved here.
    fn visit(&mut self, game: &mut Game, depth: usize, parameters: &Parameters) -> f64 {
        let value = if self.visits > 0 && !self.edges.is_empty() {
            let best = self.select(parameters);
            let (mv, _, child) = &mut self.edges[best];
            game.play(*mv);
            let value = -child.visit(game, depth + 1, parameters);
            game.undo();
            value
        } else {
            self.leaf(game, depth, parameters)
        };
        self.visits += 1;
        self.sum += value;
        value
    }

    fn leaf(&mut self, game: &Game, depth: usize, parameters: &Parameters) -> f64 {
        let ply = game.current();
        if depth > 0 {
            let moves = game.position().legal_moves();
            let mate = mate_in_one(game.position(), &moves);
            assert!(
                mate.is_none() && !game.position().is_checkmate(),
                "too simple for mates"
            );
            if game.ending().is_some() || ply.repetitions > 0 && usize::from(ply.cycle) <= depth {
                return 0.0;
            }
        }
        let moves = game.position().legal_moves();
        let (mut batch, mut evaluations) = (Batch::default(), Evaluations::default());
        batch.push(game, &moves, &Encoder::Nothing).unwrap();
        hashed().evaluate(&batch, &mut evaluations).unwrap();
        let arena = Arena::new(1);
        let logits = evaluations.logits(0);
        let temperature = parameters.policy_temperature;
        prior::write(&arena, 8, logits, temperature, &mut Vec::new());
        let mut rank = prior::Rank::TOP;
        while let Some(next) = rank.next(&arena, 8, moves.len() as u8) {
            let mv = moves[usize::from(next.number())];
            let prior = prior::table()[usize::from(next.code())];
            self.edges.push((mv, prior, Plain::default()));
            rank = next;
        }
        -f64::from(evaluations.value(0).q)
    }

    fn select(&self, parameters: &Parameters) -> usize {
        let n = self.visits as f32;
        let base = parameters.cpuct_base;
        let cpuct = parameters.cpuct + parameters.cpuct_factor * ((n + base) / base).ln();
        let scale = cpuct * (n - 1.0).max(1.0).sqrt();
        let tried = self.edges.iter().filter(|edge| edge.2.visits > 0);
        let policy: f32 = tried.map(|edge| edge.1).sum();
        let own = -(self.sum / f64::from(self.visits)) as f32;
        let fpu = own - parameters.fpu_value * policy.sqrt();
        let score = |(_, prior, child): &(Move, f32, Plain)| {
            let q = match child.visits {
                0 => fpu,
                visits => (child.sum / f64::from(visits)) as f32,
            };
            q + scale * prior / (1 + child.visits) as f32
        };
        let mut best = 0;
        for number in 1..self.edges.len() {
            if score(&self.edges[number]) > score(&self.edges[best]) {
                best = number;
            }
        }
        best
    }
}

#[test]
fn batches_of_one_are_plain_puct() {
    let parameters = Parameters {
        threads: 1,
        minibatch: 1,
        hash: 4,
        transpositions: false,
        ..Parameters::default()
    };
    for fen in [
        "4k3/pppppppp/8/8/8/8/PPPPPPPP/4K3 w - - 0 1",
        "1nb1k1n1/pppppppp/8/8/8/8/PPPPPPPP/1NB1K1N1 w - - 0 1",
        "8/8/4k3/1p1p1p1p/1P1P1P1P/4K3/8/8 w - - 0 1",
    ] {
        let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        let mut plain = Plain::default();
        for _ in 0..1500 {
            plain.visit(&mut game.clone(), 0, &parameters);
        }
        let limits = Limits {
            nodes: Some(1500),
            ..Limits::default()
        };
        let choice = Search::new(Arc::new(hashed()), &parameters)
            .run(&game, &limits, &Control::default(), &mut |_| {})
            .unwrap();
        for found in &choice.statistics {
            let (_, prior, child) = plain.edges.iter().find(|edge| edge.0 == found.mv).unwrap();
            assert_eq!(found.prior, *prior);
            assert_eq!(found.visits, u64::from(child.visits), "{fen} {}", found.mv);
            if child.visits > 0 {
                let q = child.sum / f64::from(child.visits);
                assert!((f64::from(found.q) - q).abs() < 1e-5);
            }
        }
    }
}

/// A proof on one path to a position applies to every other path: the next visit to each parent
/// proves the parent too.
#[test]
fn proofs_serve_all_paths() {
    let parameters = Parameters {
        threads: 1,
        minibatch: 1,
        hash: 4,
        // Each visit descends to a leaf; none reuses the results of others.
        transpositions: false,
        ..Parameters::default()
    };
    let fen = "8/8/4k3/1p1p1p1p/1P1P1P1P/4K3/8/8 w - - 0 1";
    let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
    for (child, parent) in [
        (Outcome::Loss, (Outcome::Win, 3)),
        (Outcome::Win, (Outcome::Loss, 3)),
    ] {
        let mut search = Search::new(Arc::new(hashed()), &parameters);
        let mut run = |nodes, prove: &dyn Fn(&Tree, Index) -> Index| {
            let limits = Limits {
                nodes: Some(nodes),
                ..Limits::default()
            };
            search
                .run(&game, &limits, &Control::default(), &mut |_| {})
                .unwrap();
            let tree = &search.tree;
            let likeliest = |of: Index| {
                let edges = tree.edges(tree.node(of).header());
                let most = edges.max_by_key(|edge| edge.edge_visits().visits());
                most.unwrap().node()
            };
            prove(tree, likeliest(likeliest(tree.root_index())))
        };
        let found = run(1000, &|tree, found| {
            let header = tree.node(found).header();
            assert_eq!(header.outcome(), Outcome::Unknown);
            assert_eq!(header.count(), u32::from(header.moves()));
            let mut edges: Vec<_> = tree.edges(header).collect();
            edges.sort_by_key(|edge| edge.edge_visits().visits());
            let needed = match child {
                Outcome::Win => edges.len(),
                _ => 1,
            };
            // Record the proofs that a visit on another path would record.
            for edge in edges.iter().rev().take(needed) {
                let to = tree.node(edge.node());
                to.prove(child, 2);
                tree.refresh(to);
            }
            found
        });
        run(3000, &|tree, _| {
            let header = tree.node(found).header();
            assert_eq!((header.outcome(), header.plies()), parent);
            found
        });
    }
}
