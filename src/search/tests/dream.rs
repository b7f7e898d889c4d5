//! A search in an environment that has no rules but has per-node state.

use crate::backend::{BackendError, Uniform, Value};
use crate::chess::Game;
use crate::play::{Control, Limits};
use crate::search::descent::worker::SearchWorker;
use crate::search::environment::Environment;
use crate::search::tree::arena::Index;
use crate::search::tree::header::Outcome;
use crate::search::tree::move_order::{best_edge, visited};
use crate::search::tree::packed::pack_move;
use crate::search::{Parameters, Search};
use parking_lot::Mutex;
use shakmaty::Position;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Number of moves in every position below the root.
const MOVES: u16 = 3;
/// The number of the winning root move.
const WINNING: u16 = 7;

/// The moves that led to a node.
type Latent = Vec<u16>;

/// An environment in which a position is the sequence of moves from the root. A node's state is
/// computed from its parent's when it is evaluated.
struct Dream<'a> {
    latents: &'a Mutex<HashMap<Index, Latent>>,
    root_moves: Vec<u16>,
    /// For each move of the path, the node from which it was played.
    path: Vec<(Index, u16)>,
    batch: Vec<Latent>,
}

impl Environment for Dream<'_> {
    type Moves = Vec<u16>;

    fn play(&mut self, from: Index, mv: u16) {
        self.path.push((from, mv));
    }

    fn undo(&mut self) {
        self.path.pop();
    }

    fn key(&self) -> u64 {
        0
    }

    fn is_drawn_by_history(&self) -> bool {
        false
    }

    fn moves(&self, _: Index) -> Vec<u16> {
        match self.path.is_empty() {
            true => self.root_moves.clone(),
            false => (0..MOVES).collect(),
        }
    }

    fn packed(moves: &Vec<u16>, number: usize) -> u16 {
        moves[number]
    }

    fn outcome(&self, _: &Vec<u16>) -> Option<(Outcome, u8)> {
        None
    }

    fn mate_by_checks(&mut self) -> Option<u8> {
        None
    }

    fn correct(&self, _: &Vec<u16>, _: &mut [f32]) -> bool {
        false
    }

    fn clear(&mut self) {
        self.batch.clear();
    }

    fn gathered(&self) -> usize {
        self.batch.len()
    }

    fn push(&mut self, at: Index, moves: &Vec<u16>) -> Result<usize, BackendError> {
        let mut latents = self.latents.lock();
        let latent = match self.path.last() {
            None => Latent::new(),
            Some(&(from, mv)) => {
                let mut latent = latents[&from].clone();
                latent.push(mv);
                latent
            }
        };
        let path: Latent = self.path.iter().map(|&(_, mv)| mv).collect();
        assert_eq!(latent, path, "{} moves", moves.len());
        assert!(latents.insert(at, latent.clone()).is_none());
        self.batch.push(latent);
        Ok(self.batch.len() - 1)
    }

    fn evaluate(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    fn value(&self, slot: usize) -> Value {
        let latent = &self.batch[slot];
        let won = latent.first() == Some(&self.root_moves[usize::from(WINNING)]);
        // The value is for the side to move, which is the root's after every second move.
        let sign = [1.0, -1.0][latent.len() % 2];
        Value {
            q: sign * [-0.5, 0.5][usize::from(won)],
            ..Value::default()
        }
    }

    fn logits(&self, slot: usize) -> &[f32] {
        match self.batch[slot].is_empty() {
            true => &[0.0; 20],
            false => &[0.0; MOVES as usize],
        }
    }
}

#[test]
fn an_environment_without_rules_is_searched_by_what_it_keeps_at_nodes() {
    let parameters = Parameters {
        threads: 1,
        transpositions: false,
        mate_search: false,
        ..Parameters::default()
    };
    let game = Game::default();
    let root_moves = game.position().legal_moves();
    let packed: Vec<u16> = root_moves.iter().map(|&mv| pack_move(mv)).collect();
    let mut search = Search::new(Arc::new(Uniform::default()), &parameters);
    search.enter(&game, &[]);
    let limits = Limits {
        nodes: Some(2000),
        ..Limits::default()
    };
    let control = Control::default();
    let shared = search.share(&game, root_moves, None, &limits, &control, Instant::now());
    let latents = Mutex::default();
    let dream = Dream {
        latents: &latents,
        root_moves: packed.clone(),
        path: Vec::new(),
        batch: Vec::new(),
    };
    SearchWorker::new(&shared, dream).run(|| false);
    let root = shared.tree.root();
    assert_eq!(root.visits(), 2000);
    let best = best_edge(shared.tree, root).unwrap();
    assert_eq!(best.mv(), packed[usize::from(WINNING)]);
    let visits: u32 = visited(shared.tree, root.header())
        .iter()
        .map(|of| of.statistics.visits)
        .sum();
    assert_eq!(visits, 1999);
    assert!(latents.lock().values().any(|latent| latent.len() > 3));
}
