//! The imagination of a network that has learned the rules: from the root on, it predicts the
//! results of moves from its latents alone.
//!
//! The actual rules apply only at the root, where the chosen move must be legal. The root's
//! candidates are the legal moves and the moves that the network believes to be legal; the
//! frequency with which one of the latter would have been chosen measures how well the network
//! knows the rules. Below the root, the candidates are the likeliest moves by policy and legality,
//! except those that are more likely illegal than legal. Nothing is proven, and nodes have no
//! transpositions. Once the network predicts that the game has ended, the game stays ended: each
//! further ply has the same value, seen from the other side.

use super::Environment;
use crate::backend::{BackendError, Imagination, Imagined, ImaginedBoard, Scene, Value};
use crate::encode::{Input, policy_index};
use crate::search::memory::{Memory, Thought};
use crate::search::shared::Shared;
use crate::search::tree::arena::Index;
use crate::search::tree::header::Outcome;
use crate::search::tree::packed::pack_move;
use shakmaty::Position;
use std::sync::Arc;

/// Probability at or above which the game counts as ended.
const ENDED: f32 = 0.5;

/// Marks a root edge whose move is not legal; the move's policy index follows. No packed move has
/// this form.
const IMAGINED: u16 = 8 << 12;

/// Options of a search in imagination, in addition to the options of every search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldOptions {
    /// Number of candidates per position (1…248): the moves that the network considers likeliest to
    /// be legal and good.
    pub top: usize,
    /// Maximum number of moves of context, including the move being imagined; at least 1.
    pub context: usize,
}

impl Default for WorldOptions {
    fn default() -> WorldOptions {
        WorldOptions {
            top: 16,
            context: 8,
        }
    }
}

/// The imagination as used by one search thread.
pub(crate) struct Latent<'a> {
    shared: &'a Shared<'a>,
    options: &'a WorldOptions,
    imagination: &'a dyn Imagination,
    memory: &'a Memory,
    /// The legal moves considered at the root, as packed moves and policy indices.
    root_moves: Vec<(u16, u16)>,
    /// All legal moves at the root, as policy indices.
    legal: Vec<u16>,
    /// For each move of the path, the node from which it was played, and the move in the form that
    /// its edge stores.
    path: Vec<(Index, u16)>,
    batch: Vec<Asked>,
    answers: Vec<Answer>,
}

/// A node in the batch, with the path to it.
enum Asked {
    Root {
        at: Index,
    },
    After {
        at: Index,
        path: Vec<(Index, u16)>,
    },
    /// The game had already ended at this node.
    Ended {
        at: Index,
        value: Value,
    },
}

struct Answer {
    value: Value,
    logits: Vec<f32>,
}

impl<'a> Latent<'a> {
    pub(crate) fn new(
        shared: &'a Shared<'a>,
        options: &'a WorldOptions,
        imagination: &'a dyn Imagination,
        memory: &'a Memory,
    ) -> Latent<'a> {
        let position = shared.game.position();
        let turn = position.turn();
        let entry = |mv| policy_index(mv, turn);
        let root_moves = shared.root_moves.iter();
        Latent {
            shared,
            options,
            imagination,
            memory,
            root_moves: root_moves.map(|&mv| (pack_move(mv), entry(mv))).collect(),
            legal: position.legal_moves().into_iter().map(entry).collect(),
            path: Vec::new(),
            batch: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Returns the policy index of an edge's move, `depth` plies below the root.
    fn entry(&self, mv: u16, depth: usize) -> u16 {
        let known = || self.root_moves.iter().find(|(packed, _)| *packed == mv);
        match depth {
            0 => known().map_or(mv & !IMAGINED, |&(_, entry)| entry),
            _ => mv,
        }
    }

    /// Returns the board of the node from which the path's last move was played. Evicted boards are
    /// imagined again.
    fn board(&self, path: &[(Index, u16)]) -> Result<Arc<ImaginedBoard>, BackendError> {
        let Some((&(at, _), before)) = path.split_last() else {
            return Err(BackendError::Torch("a path has a move".to_owned()));
        };
        let thought = self.memory.thought(at);
        if let Some(board) = thought.as_ref().and_then(|thought| thought.board.clone()) {
            return Ok(board);
        }
        let scene = match before {
            [] => self.present(),
            _ => self.after(before)?,
        };
        let [imagined] = &self.imagine(&[scene])?[..] else {
            return Err(BackendError::Stopped);
        };
        if let Some(thought) = thought {
            let board = Some(imagined.board.clone());
            self.memory
                .keep(self.shared.tree, at, Thought { board, ..thought });
        }
        Ok(imagined.board.clone())
    }

    fn present(&self) -> Scene {
        Scene::Present {
            input: Box::new(Input::encode(self.shared.game)),
            moves: self.root_moves.iter().map(|&(_, entry)| entry).collect(),
        }
    }

    /// Returns the result of the path's last move.
    fn after(&self, path: &[(Index, u16)]) -> Result<Scene, BackendError> {
        let context = self.options.context.min(self.imagination.context());
        // Earlier boards may have been evicted, in which case the context omits them.
        let kept = |&(at, _): &(Index, u16)| self.memory.thought(at)?.board;
        let from = self.board(path)?;
        let back = path.iter().rev().take(context.saturating_sub(1));
        Ok(Scene::After {
            from,
            path: back.map_while(kept).collect(),
            mv: self.entry(path[path.len() - 1].1, path.len() - 1),
        })
    }

    fn imagine(&self, scenes: &[Scene]) -> Result<Vec<Imagined>, BackendError> {
        self.imagination.imagine(scenes, self.options.top.max(1))
    }

    /// Returns the root's moves with their logits: first the legal moves in order, then those that
    /// the network believes to be legal.
    fn root(&self, imagined: &Imagined) -> (Vec<u16>, Vec<f32>) {
        let mut moves: Vec<u16> = self.root_moves.iter().map(|&(packed, _)| packed).collect();
        let mut logits = imagined.logits.clone();
        let parameters = self.shared.parameters;
        // Noise and Gumbel selection apply to the legal moves only.
        if parameters.gumbel_moves == 0 && parameters.noise_epsilon <= 0.0 {
            let others = imagined.likeliest.iter();
            for &(entry, logit) in others.filter(|(entry, _)| !self.legal.contains(entry)) {
                moves.push(IMAGINED | entry);
                logits.push(logit);
            }
        }
        (moves, logits)
    }
}

/// Returns the same value from the other side's view.
fn turned(value: Value) -> Value {
    Value {
        q: -value.q,
        ..value
    }
}

impl Environment for Latent<'_> {
    type Moves = Arc<[u16]>;

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

    fn moves(&self, at: Index) -> Arc<[u16]> {
        let thought = self.memory.thought(at);
        match (thought, self.path.is_empty()) {
            (Some(thought), _) => thought.moves,
            (None, true) => self.root_moves.iter().map(|&(packed, _)| packed).collect(),
            (None, false) => Arc::new([]),
        }
    }

    fn packed(moves: &Arc<[u16]>, number: usize) -> u16 {
        moves[number]
    }

    fn outcome(&self, _: &Arc<[u16]>) -> Option<(Outcome, u8)> {
        None
    }

    fn mate_by_checks(&mut self) -> Option<u8> {
        None
    }

    fn correct(&self, _: &Arc<[u16]>, _: &mut [f32]) -> bool {
        false
    }

    fn clear(&mut self) {
        self.batch.clear();
        self.answers.clear();
    }

    fn gathered(&self) -> usize {
        self.batch.len()
    }

    fn push(&mut self, at: Index, _: &Arc<[u16]>) -> Result<usize, BackendError> {
        let asked = match self.path.last() {
            None => Asked::Root { at },
            Some(&(from, _)) => match self.memory.thought(from).and_then(|it| it.end) {
                Some(value) => Asked::Ended {
                    at,
                    value: turned(value),
                },
                None => Asked::After {
                    at,
                    path: self.path.clone(),
                },
            },
        };
        self.batch.push(asked);
        Ok(self.batch.len() - 1)
    }

    fn evaluate(&mut self) -> Result<(), BackendError> {
        let mut scenes = Vec::with_capacity(self.batch.len());
        for asked in &self.batch {
            match asked {
                Asked::Root { .. } => scenes.push(self.present()),
                Asked::After { path, .. } => scenes.push(self.after(path)?),
                Asked::Ended { .. } => {}
            }
        }
        let mut imagined = self.imagine(&scenes)?.into_iter();
        let mut answers = Vec::with_capacity(self.batch.len());
        for asked in &self.batch {
            let (at, value, board, end, moves, logits) = match *asked {
                Asked::Ended { at, value } => (at, value, None, Some(value), vec![0], vec![0.0]),
                Asked::Root { at } | Asked::After { at, .. } => {
                    let Some(imagined) = imagined.next() else {
                        return Err(BackendError::Stopped);
                    };
                    let is_root = matches!(asked, Asked::Root { .. });
                    let end = (imagined.ended > ENDED && !is_root).then_some(imagined.value);
                    let (moves, logits) = match (is_root, end) {
                        (true, _) => self.root(&imagined),
                        (_, Some(_)) => (vec![0], vec![0.0]),
                        _ => imagined.likeliest.iter().copied().unzip(),
                    };
                    let board = Some(imagined.board);
                    (at, imagined.value, board, end, moves, logits)
                }
            };
            let thought = Thought {
                board,
                moves: moves.into(),
                end,
            };
            self.memory.keep(self.shared.tree, at, thought);
            answers.push(Answer { value, logits });
        }
        self.answers = answers;
        Ok(())
    }

    fn value(&self, slot: usize) -> Value {
        self.answers[slot].value
    }

    fn logits(&self, slot: usize) -> &[f32] {
        &self.answers[slot].logits
    }
}
