//! The rules of chess, with tablebases and a check-only search for mates.

use super::Environment;
use crate::backend::{BackendError, Batch, Evaluations, Value};
use crate::chess::{CLAIMABLE_RULE50, Game, mate_in_one};
use crate::encode::Encoder;
use crate::search::mates::LeafMates;
use crate::search::shared::Shared;
use crate::search::tree::arena::Index;
use crate::search::tree::header::{OUT_OF_SIGHT, Outcome};
use crate::search::tree::packed::{pack_move, unpack_move};
use crate::tablebase::bare_king::{self, Known};
use crate::tactics::features;
use shakmaty::{MoveList, Position};

/// Distinguishes positions that tablebases cover from other positions with the same key.
const WDL_HOLDS: u64 = 0x9e37_79b9_7f4a_7c15;

/// The paths to a node differ in their 50-move clocks by at most this many plies (see
/// [`crate::encode::Encoder::key`]).
const SHARED_CLOCK: u32 = 8;

/// The game, continued from the root by the rules of chess. No per-node state is needed, because
/// positions follow from the moves.
pub(crate) struct Rules<'a> {
    shared: &'a Shared<'a>,
    game: Game,
    /// Number of plies since the root.
    depth: usize,
    encoder: &'a Encoder,
    batch: Batch,
    evaluations: Evaluations,
    mates: Option<LeafMates>,
}

impl<'a> Rules<'a> {
    pub(crate) fn new(shared: &'a Shared<'a>) -> Rules<'a> {
        Rules {
            shared,
            game: shared.game.clone(),
            depth: 0,
            encoder: &shared.backend.properties().encoder,
            batch: Batch::default(),
            evaluations: Evaluations::default(),
            mates: shared.mates.map(|_| LeafMates::new()),
        }
    }

    /// Returns the result of an ending with king and one piece against king.
    fn bare_king(&self) -> Option<(Outcome, u8)> {
        self.mates.as_ref()?;
        let position = self.game.position();
        let (outcome, plies) = match bare_king::known(position)? {
            Known::Draw => return Some((Outcome::Draw, 0)),
            Known::Mates(plies) => (Outcome::Win, plies),
            Known::Mated(plies) => (Outcome::Loss, plies),
        };
        let end = position.halfmoves() + u32::from(plies) + SHARED_CLOCK;
        (end < CLAIMABLE_RULE50).then_some((outcome, plies))
    }
}

impl Environment for Rules<'_> {
    type Moves = MoveList;

    fn play(&mut self, _: Index, mv: u16) {
        self.game
            .play(unpack_move(mv, self.game.position().board()));
        self.depth += 1;
    }

    fn undo(&mut self) {
        self.game.undo();
        self.depth -= 1;
    }

    fn key(&self) -> u64 {
        let key = self.encoder.key(&self.game);
        // WDL tables are valid only immediately after a capture or pawn move.
        let tablebase = &self.shared.parameters.tablebase;
        match self.game.rule50() == 0 && tablebase.covers(self.game.position()) {
            true => key ^ WDL_HOLDS,
            false => key,
        }
    }

    fn is_drawn_by_history(&self) -> bool {
        let ply = self.game.current();
        // A side that could reach a position twice can do so again.
        let twice = self.shared.parameters.two_fold_draws
            && ply.repetitions > 0
            && usize::from(ply.cycle) <= self.depth;
        twice
            || ply.repetitions >= 2
            || self.game.rule50() >= CLAIMABLE_RULE50 && !self.game.position().is_checkmate()
    }

    fn moves(&self, _: Index) -> MoveList {
        match self.depth {
            0 => self.shared.root_moves.clone(),
            _ => self.game.position().legal_moves(),
        }
    }

    fn packed(moves: &MoveList, number: usize) -> u16 {
        pack_move(moves[number])
    }

    fn outcome(&self, moves: &MoveList) -> Option<(Outcome, u8)> {
        if self.depth == 0 {
            // At the root, a move must be chosen even if the outcome is known.
            return None;
        }
        let position = self.game.position();
        match (moves.is_empty(), position.is_check()) {
            (true, true) => Some((Outcome::Loss, 0)),
            (true, false) => Some((Outcome::Draw, 0)),
            (false, _) if position.is_insufficient_material() => Some((Outcome::Draw, 0)),
            // A network may assign no probability to the mating move.
            (false, _) if mate_in_one(position, moves).is_some() => Some((Outcome::Win, 1)),
            (false, _) if let Some(known) = self.bare_king() => Some(known),
            (false, _) => {
                let verdict = self.shared.parameters.tablebase.probe(position)?;
                self.shared.progress.hit_tablebase(1);
                Some((verdict.into(), OUT_OF_SIGHT))
            }
        }
    }

    fn mate_by_checks(&mut self) -> Option<u8> {
        let position = self.game.position();
        let mates = self.mates.as_mut()?;
        let line = mates.line(position, &position.legal_moves(), &self.shared.draws)?;
        Some(line.len() as u8)
    }

    fn correct(&self, moves: &MoveList, logits: &mut [f32]) -> bool {
        let properties = self.shared.backend.properties();
        // A node keeps the priors of a limited number of moves.
        let whole = logits.len() == moves.len();
        let Some(correction) = properties.search_correction().filter(|_| whole) else {
            return false;
        };
        let features = features(self.game.position(), moves);
        correction.correct(&features, None, logits);
        true
    }

    fn clear(&mut self) {
        self.batch.clear();
    }

    fn gathered(&self) -> usize {
        self.batch.len()
    }

    fn push(&mut self, _: Index, moves: &MoveList) -> Result<usize, BackendError> {
        let slot = self.batch.len();
        self.batch.push(&self.game, moves, self.encoder)?;
        Ok(slot)
    }

    fn evaluate(&mut self) -> Result<(), BackendError> {
        let backend = self.shared.backend;
        backend.evaluate(&self.batch, &mut self.evaluations)
    }

    fn value(&self, slot: usize) -> Value {
        self.evaluations.value(slot)
    }

    fn logits(&self, slot: usize) -> &[f32] {
        self.evaluations.logits(slot)
    }
}
