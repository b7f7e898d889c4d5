//! Walking the tree: from the root down to the leaves that a batch is made of.

use super::arena::{Index, Span};
use super::backup::Backup;
use super::children::Unvisited;
use super::node::{MAX_IN_FLIGHT, Node};
use super::numeric::{exp2, log2};
use super::packed::{pack_move, unpack_move};
use super::picks::{Arrival, DRAWN, Pick, Picks};
use super::prior::{self, Rank};
use super::select::{Candidate, exploration, first_play_urgency, share_out};
use super::shape::{Outcome, Shape, Stage};
use super::tree::{Full, ROOT, Tree};
use super::{Parameters, shared::Shared};
use crate::chess::{CLAIMABLE_RULE50, Game};
use crate::nn::{BackendError, Batch, Evaluations};
use shakmaty::{Move, MoveList, Position};

/// No line is followed further than this; a leaf there is evaluated again on
/// each visit.
const MAX_DEPTH: usize = 500;

/// One thread's way through the tree.
pub(crate) struct Walker<'a> {
    shared: &'a Shared<'a>,
    tree: &'a Tree,
    parameters: &'a Parameters,
    game: Game,
    encode: bool,
    span: Span,
    path: Vec<Index>,
    candidates: Vec<Candidate>,
    /// Children among them without visits.
    unvisited: Vec<usize>,
    ranks: Vec<Rank>,
    branches: Vec<Branch>,
    picks: Picks,
    backup: Backup,
    batch: Batch,
    evaluations: Evaluations,
    scratch: Vec<f32>,
}

/// What a thread has gathered.
pub(crate) struct Gathered {
    /// Leaves in the batch.
    pub(crate) leaves: usize,
    /// Visits that did not collide: those of the leaves and those that ended at
    /// known values.
    pub(crate) visits: u32,
}

/// Visits on their way into a child.
#[derive(Clone, Copy)]
struct Branch {
    child: Index,
    visits: u32,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(shared: &'a Shared<'a>) -> Walker<'a> {
        Walker {
            shared,
            tree: shared.tree,
            parameters: shared.parameters,
            game: shared.game.clone(),
            encode: shared.backend.properties().reads_input,
            span: Span::default(),
            path: Vec::with_capacity(64),
            candidates: Vec::with_capacity(256),
            unvisited: Vec::with_capacity(256),
            ranks: Vec::with_capacity(256),
            branches: Vec::with_capacity(256),
            picks: Picks::default(),
            backup: Backup::default(),
            batch: Batch::default(),
            evaluations: Evaluations::default(),
            scratch: Vec::with_capacity(256),
        }
    }

    /// Fills the batch with up to `want` leaves. Visits that end at known
    /// values are backed up at once.
    pub(crate) fn gather(&mut self, want: usize) -> Gathered {
        self.picks.clear();
        self.batch.clear();
        let root = self.tree.root();
        let mut collisions = collision_allowance(self.parameters, root.visits(), want);
        let mut at_once = self.parameters.out_of_order.max(0.0) * want as f32;
        let mut visits = 0;
        while self.batch.len() < want && collisions > 0 && at_once >= 0.0 {
            // All visits of a descent might collide, as Lc0 reckons too: in a
            // small tree they are sent one by one.
            let room = collisions.min((want - self.batch.len()) as u32);
            let granted = self.shared.grant(room);
            if granted == 0 {
                break;
            }
            if root.in_flight() + granted > MAX_IN_FLIGHT {
                self.shared.refund(granted);
                break;
            }
            let first = self.picks.list.len();
            root.start(granted);
            self.path.clear();
            self.path.push(ROOT);
            self.descend(ROOT, granted);
            let mut collided = 0;
            for pick in &self.picks.list[first..] {
                match pick.arrival {
                    Arrival::Collision => collided += pick.visits,
                    Arrival::Leaf { .. } => {}
                    Arrival::Known { .. } | Arrival::Valued(_) => at_once -= pick.visits as f32,
                }
            }
            visits += granted - collided;
            self.shared.refund(collided);
            collisions = collisions.saturating_sub(collided);
            self.backup
                .known(self.tree, &mut self.picks, first, self.shared);
        }
        Gathered {
            leaves: self.batch.len(),
            visits,
        }
    }

    /// Evaluates the batch.
    pub(crate) fn evaluate(&mut self) -> Result<(), BackendError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.shared
            .backend
            .evaluate(&self.batch, &mut self.evaluations)
    }

    /// Opens the evaluated leaves and backs everything up.
    pub(crate) fn finish(&mut self) {
        for pick in &self.picks.list {
            if let Arrival::Leaf { slot, .. } = pick.arrival {
                let leaf = self
                    .tree
                    .node(self.picks.paths[pick.start + pick.length - 1]);
                let logits = self.evaluations.logits(slot);
                let temperature = self.parameters.policy_temperature;
                self.tree
                    .expand(&mut self.span, leaf, logits, temperature, &mut self.scratch);
            }
        }
        self.backup
            .all(self.tree, &self.picks, &self.evaluations, self.shared);
    }

    /// Undoes what [`Walker::gather`] did: the evaluation failed.
    pub(crate) fn abandon(&mut self) {
        for pick in &mut self.picks.list {
            if let Arrival::Leaf { .. } = pick.arrival {
                let leaf = self
                    .tree
                    .node(self.picks.paths[pick.start + pick.length - 1]);
                leaf.reshape(|shape| Some(shape.with_stage(Stage::New)));
                pick.arrival = Arrival::Collision;
            }
        }
        self.backup
            .all(self.tree, &self.picks, &self.evaluations, self.shared);
    }

    /// Gives back what memory is left over.
    pub(crate) fn retire(self) {
        self.tree.retire(self.span);
    }

    fn arrive(&mut self, visits: u32, arrival: Arrival) {
        let start = self.picks.paths.len();
        self.picks.paths.extend_from_slice(&self.path);
        self.picks.list.push(Pick {
            start,
            length: self.path.len(),
            visits,
            arrival,
        });
    }

    /// Takes `visits`, already in flight through this node, on to leaves. The
    /// game stands at the node's position.
    fn descend(&mut self, index: Index, visits: u32) {
        let node = self.tree.node(index);
        let shape = node.shape();
        let depth = self.path.len() - 1;
        if depth > 0 && shape.outcome() != Outcome::Unknown {
            return self.arrive(visits, Arrival::Known { news: false });
        }
        match shape.stage() {
            Stage::Expanded => self.branch_out(node, visits),
            Stage::Pending => self.arrive(visits, Arrival::Collision),
            Stage::Repeated if self.repeats_within(depth) => {
                self.arrive(visits, Arrival::Valued(DRAWN));
            }
            // The root has moved past the position that a node repeats: what is
            // known of it is wrong.
            stage @ (Stage::New | Stage::Repeated) => self.explore(node, stage, visits),
        }
    }

    /// Sees what kind of leaf this is. Not inlined: the list of moves would
    /// weigh on every level of the recursion.
    #[inline(never)]
    fn explore(&mut self, node: Node<'a>, stage: Stage, visits: u32) {
        let claim =
            |shape: Shape| (shape.stage() == stage).then_some(shape.with_stage(Stage::Pending));
        if node.reshape(claim).is_none() {
            return self.arrive(visits, Arrival::Collision);
        }
        let again = stage == Stage::Repeated;
        let depth = self.path.len() - 1;
        if depth == 0 {
            let shared = self.shared;
            return self.leaf(&shared.root_moves, visits, again);
        }
        let moves = self.game.position().legal_moves();
        if let Some((outcome, plies)) = self.rules(&moves) {
            node.prove(outcome, plies);
            node.reshape(|shape| Some(shape.with_stage(Stage::New)));
            self.arrive(visits, Arrival::Known { news: true });
        } else if self.repeats_within(depth) {
            node.reshape(|shape| Some(shape.with_stage(Stage::Repeated)));
            self.arrive(visits, Arrival::Valued(DRAWN));
        } else {
            self.leaf(&moves, visits, again);
        }
    }

    /// One visit evaluates the leaf, the others come for nothing.
    fn leaf(&mut self, moves: &[Move], visits: u32, again: bool) {
        let slot = self.batch.len();
        self.batch.push(&self.game, moves, self.encode);
        self.arrive(1, Arrival::Leaf { slot, again });
        if visits > 1 {
            self.arrive(visits - 1, Arrival::Collision);
        }
    }

    /// What the rules say of the position: the outcome for the side to move.
    fn rules(&self, moves: &MoveList) -> Option<(Outcome, u8)> {
        let position = self.game.position();
        if moves.is_empty() {
            return Some(match position.is_check() {
                true => (Outcome::Loss, 0),
                false => (Outcome::Draw, 0),
            });
        }
        let drawn = self.game.current().repetitions >= 2
            || self.game.rule50() >= CLAIMABLE_RULE50
            || position.is_insufficient_material();
        drawn.then_some((Outcome::Draw, 0))
    }

    /// Whether the position has stood on the board since the root, itself
    /// included: whoever could bring that about can do it again.
    fn repeats_within(&self, depth: usize) -> bool {
        let ply = self.game.current();
        self.parameters.two_fold_draws && ply.repetitions > 0 && usize::from(ply.cycle) <= depth
    }

    fn branch_out(&mut self, node: Node<'a>, visits: u32) {
        if self.path.len() > MAX_DEPTH {
            return self.arrive(visits, Arrival::Valued(node.statistics()));
        }
        let first = self.branches.len();
        if !self.select(node, visits) {
            // No memory for the next child: this node's own value stands in.
            self.branches.truncate(first);
            return self.arrive(visits, Arrival::Valued(node.statistics()));
        }
        let last = self.branches.len();
        for number in first..last {
            let Branch { child, visits } = self.branches[number];
            let child_node = self.tree.node(child);
            let board = self.game.position().board();
            let mv = unpack_move(child_node.mv(), board);
            child_node.start(visits);
            self.game.play(mv);
            self.path.push(child);
            self.descend(child, visits);
            self.path.pop();
            self.game.undo();
        }
        self.branches.truncate(first);
    }

    /// Shares the visits out and puts a branch for each move that gets any on
    /// the stack; false if the memory does not suffice.
    fn select(&mut self, node: Node<'a>, visits: u32) -> bool {
        let shape = node.shape();
        let table = prior::table();
        let (own_visits, own_q) = node.visits_and_q();
        let scale = exploration(self.parameters, own_visits);
        let mut visited_policy = 0.0;
        let mut last = Rank::TOP;
        self.candidates.clear();
        self.unvisited.clear();
        for (number, child) in self.tree.children(shape).enumerate() {
            let (child_visits, q) = child.visits_and_q();
            last = child.rank();
            let prior = table[usize::from(last.code())];
            let mut candidate = Candidate::new(q, prior, child_visits + child.in_flight());
            if child_visits == 0 {
                self.unvisited.push(number);
            } else {
                visited_policy += prior;
                // A move proven to win or to lose needs no visits.
                if matches!(child.shape().outcome(), Outcome::Unknown | Outcome::Draw) {
                    candidate.rate(scale);
                }
            }
            self.candidates.push(candidate);
        }
        let fpu = first_play_urgency(self.parameters, -own_q, visited_policy);
        for &number in &self.unvisited {
            let candidate = &mut self.candidates[number];
            candidate.q = fpu;
            candidate.rate(scale);
        }
        let tried = self.candidates.len();
        let mut untried = Unvisited::new(self.tree, node, shape, last, &mut self.ranks);
        share_out(&mut self.candidates, &mut untried, fpu, scale, visits);
        for number in 0..tried {
            let visits = self.candidates[number].given;
            if visits > 0 {
                let child = self.tree.child(shape, number as u32);
                self.branches.push(Branch { child, visits });
            }
        }
        // Untried moves come in order, so the first tells of all.
        let fresh = self.candidates.get(tried);
        fresh.is_none_or(|candidate| candidate.given == 0) || self.add_children(node, tried)
    }

    /// Makes children of the untried moves that were given visits; false if the
    /// memory does not suffice.
    fn add_children(&mut self, node: Node<'_>, tried: usize) -> bool {
        let moves = self.moves_here();
        for (&rank, number) in self.ranks.iter().zip(tried..) {
            let visits = self.candidates[number].given;
            if visits == 0 {
                break;
            }
            let mv = pack_move(moves[usize::from(rank.number())]);
            let number = number as u32;
            match self.tree.add_child(&mut self.span, node, number, mv, rank) {
                Ok(child) => self.branches.push(Branch { child, visits }),
                Err(Full) => return false,
            }
        }
        true
    }

    /// The moves of the node the game stands at, in the order of their numbers.
    fn moves_here(&self) -> MoveList {
        if self.path.len() == 1 {
            self.shared.root_moves.clone()
        } else {
            self.game.position().legal_moves()
        }
    }
}

/// Visits that may come for nothing while a batch is gathered. Lc0's curve: few
/// while the tree is small and every visit should know of those before, many
/// when it is large; and never so many that gathering crawls.
fn collision_allowance(parameters: &Parameters, visits: u32, want: usize) -> u32 {
    const START: f32 = 28.0;
    const END: f32 = 145_000.0;
    const POWER: f32 = 1.25;
    let grown = ((visits as f32 - START) / (END - START)).clamp(0.0, 1.0);
    let most = parameters.max_collisions.max(1) as f32;
    let allowed = 1.0 + (most - 1.0) * exp2(POWER * log2(grown.max(1e-9)));
    (allowed as u32).min(8 * want as u32).max(1)
}
