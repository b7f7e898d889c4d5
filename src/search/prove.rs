//! Forced mates, proven by proof-number search.
//!
//! Depth-first proof-number search (df-pn: Nagai 2002; the 1 + ε trick of Pawlewicz and Lew 2007)
//! for one side, the attacker. A node's *proof number* is the minimum number of leaves that must be
//! proven mates to prove the node, and its *disproof number* is the minimum number needed to
//! disprove it. The search continues where the fewest proofs or disproofs are missing. In an
//! attacker's node, the proof number is the minimum over the children and the disproof number is
//! their sum; in a defender's node it is the other way round.
//!
//! The initial numbers guide the search. The proof number of a defender's position in check starts
//! at one per evasion. Without a check, it starts at one per four moves plus two per square to
//! which the king can flee ([`FLIGHT`]). Without this count of mobility, the search finds hardly
//! any quiet attacking moves.
//!
//! The search is sound: a proof rests only on proofs completed before it, so its lines never return
//! to an earlier position. Positions whose next occurrence would allow a draw claim are listed in
//! [`Goal::draws`], and a position's key includes its 50-move clock if a mate could come too late.
//! Disproofs that hold only for the path on which a position was reached, or only up to a depth,
//! are marked as provisional and are used only by the search that made them.

mod children;
mod line;
mod table;
#[cfg(test)]
mod tests;

use crate::chess::{CLAIMABLE_RULE50, after, key_of};
use children::{Child, judge};
use shakmaty::{Chess, Color, Move, Position};
use table::Table;

/// The longest mate to search for, in plies.
pub const MAX_MATE_PLIES: u32 = 64;
/// The proof or disproof number of a node that cannot be proven or disproven.
const INFINITE: u32 = 1 << 30;
/// Added to a position's proof number for each square to which the king can flee.
const FLIGHT: u32 = 2;
/// Number of the defender's quiet moves that count as one proof.
const MOVES_A_PROOF: u32 = 4;
/// Number of nodes between calls of [`Goal::halt`], about a quarter of a millisecond.
const HALT_INTERVAL: u64 = 256;
/// The inverse of ε: the search leaves a child once its number exceeds the second-best child's
/// number by the fraction ε.
const EPSILON: u32 = 4;

/// The moves that the attacker tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Attack {
    /// Checks only; hundreds of nodes suffice to decide most positions.
    Checks,
    /// All moves.
    All,
}

/// The goal of a proof.
#[derive(Clone, Copy)]
pub struct Goal<'a> {
    /// The mating side.
    pub attacker: Color,
    /// The moves that the attacker tries.
    pub attack: Attack,
    /// The longest mate in plies, at most [`MAX_MATE_PLIES`].
    pub max_plies: u32,
    /// Node limit. Each position counts when it is created and judged, and again whenever it is
    /// entered.
    pub nodes: u64,
    /// The moves of the root position to consider; `None` for all.
    pub moves: Option<&'a [Move]>,
    /// Keys of positions that are draws because of the preceding game.
    pub draws: &'a [u64],
    /// Returns whether to stop, as if the nodes were spent. It is called often, so it must be fast.
    pub halt: &'a dyn Fn() -> bool,
}

impl Goal<'_> {
    /// Returns the goal of proving that `attacker` mates, with all root moves considered.
    pub fn new(attacker: Color, attack: Attack, nodes: u64) -> Goal<'static> {
        Goal {
            attacker,
            attack,
            max_plies: MAX_MATE_PLIES,
            nodes,
            moves: None,
            draws: &[],
            halt: &|| false,
        }
    }
}

/// The search result for a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofNumbers {
    /// Proof number; 0 if a mate is proven.
    pub pn: u32,
    /// Disproof number; 0 if the tried moves do not force mate.
    pub dn: u32,
    /// Upper bound on the plies to the mate, if one is proven.
    plies: u8,
    /// Whether a disproof depends on the path or the depth.
    provisional: bool,
}

impl ProofNumbers {
    fn proven(plies: u32) -> ProofNumbers {
        ProofNumbers {
            pn: 0,
            dn: INFINITE,
            plies: plies as u8,
            provisional: false,
        }
    }

    fn disproven(provisional: bool) -> ProofNumbers {
        ProofNumbers {
            pn: INFINITE,
            dn: 0,
            plies: 0,
            provisional,
        }
    }

    fn open(pn: u32, dn: u32) -> ProofNumbers {
        ProofNumbers {
            pn: pn.clamp(1, INFINITE - 1),
            dn: dn.clamp(1, INFINITE - 1),
            plies: 0,
            provisional: false,
        }
    }

    /// Returns an upper bound on the number of plies to the mate, if one is proven. The mate may
    /// turn out to be shorter, never longer.
    pub fn mate(&self) -> Option<u32> {
        (self.pn == 0).then_some(self.plies.into())
    }

    /// Returns whether the search is complete.
    pub fn is_decided(&self) -> bool {
        self.pn == 0 || self.dn == 0
    }
}

/// A mate prover with its table.
///
/// ```
/// use shakmaty::{CastlingMode, Color};
/// use tessera::chess::Game;
/// use tessera::search::{Attack, Goal, Prover};
///
/// // Smothered: Qg8+ Rxg8, Nf7 mate.
/// let game = Game::from_fen("5r1k/6pp/7N/8/8/1Q6/8/6K1 w - - 0 1", CastlingMode::Standard)?;
/// let mut prover = Prover::new(1 << 20);
/// let goal = Goal { max_plies: 3, ..Goal::new(Color::White, Attack::Checks, 1000) };
/// let found = prover.prove(game.position(), &goal);
/// assert_eq!(found.mate(), Some(3));
/// let line = prover.line(game.position(), &goal).unwrap();
/// assert_eq!(game.format_move(line[0]), "b3g8");
/// # Ok::<(), tessera::chess::FenError>(())
/// ```
pub struct Prover {
    table: Table,
    /// Children of all nodes on the path, node by node.
    children: Vec<Child>,
    /// Keys on the path from the root.
    path: Vec<u64>,
    /// Number of nodes created since the prover was created.
    pub nodes: u64,
    /// The last result of [`Goal::halt`], …
    halted: bool,
    /// … and the node count at which it is called again.
    asked_again: u64,
}

/// The settings of one call.
struct Context<'a> {
    goal: &'a Goal<'a>,
    salt: u64,
    /// The value of [`Prover::nodes`] at which to stop.
    last: u64,
}

/// The thresholds at which the search of a node ends.
#[derive(Clone, Copy)]
struct Thresholds {
    pn: u32,
    dn: u32,
}

/// The highest 50-move clock at which no mate can come too late.
const EARLY: u32 = CLAIMABLE_RULE50 - MAX_MATE_PLIES;

impl Context<'_> {
    /// Returns the table key of a position, which depends on the attacking side and on the moves
    /// tried.
    fn key(&self, position: &Chess, zobrist: u64) -> u64 {
        let late = position.halfmoves().saturating_sub(EARLY);
        zobrist ^ self.salt ^ mix(u64::from(late))
    }

    fn attacks(&self, position: &Chess) -> bool {
        position.turn() == self.goal.attacker
    }
}

/// Hashes a number to 64 bits; 0 is mapped to 0 (a step of splitmix64).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Prover {
    /// Creates a prover with a table of at most this many bytes.
    pub fn new(bytes: usize) -> Prover {
        Prover {
            table: Table::new(bytes),
            children: Vec::new(),
            path: Vec::new(),
            nodes: 0,
            halted: false,
            asked_again: 0,
        }
    }

    /// Clears the table.
    pub fn clear(&mut self) {
        self.table.clear();
    }

    /// Begins a search with another root. Provisional entries, which depend on paths from the old
    /// root, are dropped.
    pub fn begin_search(&mut self) {
        self.table.begin_search();
    }

    /// Continues the search within the node limit of `goal`, and returns the result so far.
    /// Repeating the same call resumes where the last one ended.
    pub fn prove(&mut self, position: &Chess, goal: &Goal<'_>) -> ProofNumbers {
        let context = self.context(goal);
        let open = Thresholds {
            pn: INFINITE,
            dn: INFINITE,
        };
        self.path.clear();
        self.children.clear();
        self.asked_again = self.nodes;
        let key = context.key(position, key_of(position));
        self.node(&context, position, key, open)
    }

    /// Returns whether the nodes are spent or the goal requests a stop.
    fn is_over(&mut self, goal: &Goal<'_>, last: u64) -> bool {
        if self.nodes >= self.asked_again {
            self.asked_again = self.nodes + HALT_INTERVAL;
            self.halted = (goal.halt)();
        }
        self.halted || self.nodes >= last
    }

    fn context<'a>(&self, goal: &'a Goal<'a>) -> Context<'a> {
        let max_plies = goal.max_plies.min(MAX_MATE_PLIES);
        let kind = 1
            + u64::from(goal.attack == Attack::All)
            + 2 * u64::from(goal.attacker == Color::White);
        let draws = goal.draws.iter().fold(0, |salt, &key| salt ^ mix(key));
        Context {
            goal,
            salt: mix(kind << 8 | u64::from(MAX_MATE_PLIES - max_plies)) ^ draws,
            last: self.nodes.saturating_add(goal.nodes),
        }
    }

    /// Searches an undecided position until its numbers reach the thresholds or the nodes are
    /// spent.
    fn node(
        &mut self,
        context: &Context<'_>,
        position: &Chess,
        key: u64,
        thresholds: Thresholds,
    ) -> ProofNumbers {
        let before = self.nodes;
        self.nodes += 1;
        let first = self.children.len();
        self.path.push(key);
        self.add_children(context, position);
        let attacks = context.attacks(position);
        let numbers = loop {
            let Selection {
                numbers,
                best,
                second,
            } = select(&self.children[first..], attacks);
            let enough = numbers.pn >= thresholds.pn || numbers.dn >= thresholds.dn;
            if numbers.is_decided() || enough || self.is_over(context.goal, context.last) {
                break numbers;
            }
            let child = self.children[first + best];
            let beyond = second.saturating_add(second / EPSILON).saturating_add(1);
            let others = |whole: u32, part: u32, of: u32| of.saturating_sub(whole - part);
            let thresholds = match attacks {
                true => Thresholds {
                    pn: thresholds.pn.min(beyond),
                    dn: others(numbers.dn, child.numbers.dn, thresholds.dn),
                },
                false => Thresholds {
                    pn: others(numbers.pn, child.numbers.pn, thresholds.pn),
                    dn: thresholds.dn.min(beyond),
                },
            };
            let after = after(position, child.mv);
            let found = self.node(context, &after, child.key, thresholds);
            self.children[first + best].numbers = found;
        };
        self.path.pop();
        self.children.truncate(first);
        // The goal may restrict the root's moves.
        if !self.path.is_empty() || context.goal.moves.is_none() {
            self.table.set(key, numbers, self.nodes - before);
        }
        numbers
    }

    /// Pushes a position's children onto the stack, with their known numbers.
    fn add_children(&mut self, context: &Context<'_>, position: &Chess) {
        let at_root = self.path.len() == 1;
        // The ply of the children.
        let ply = self.path.len() as u32;
        let max_plies = context.goal.max_plies.min(MAX_MATE_PLIES);
        let moves = match context.goal.moves {
            Some(moves) if at_root => moves.iter().copied().collect(),
            _ => position.legal_moves(),
        };
        let attacks = context.attacks(position);
        for (mv, after) in children::played(position, &moves, attacks, context.goal.attack) {
            let zobrist = key_of(&after);
            let key = context.key(&after, zobrist);
            let numbers = if self.path.contains(&key) {
                ProofNumbers::disproven(true)
            } else if context.goal.draws.contains(&zobrist) {
                ProofNumbers::disproven(false)
            } else {
                let known = self.table.get(key);
                known.unwrap_or_else(|| {
                    self.nodes += 1;
                    judge(&after, !attacks, context.goal.attack)
                })
            };
            // The minimum number of plies still missing: the attacker's last move and, if the
            // defender is to move, the defender's move before it.
            let least = match numbers.mate() {
                Some(plies) => plies,
                None if attacks => 2,
                None => 1,
            };
            let numbers = match numbers.dn > 0 && ply + least > max_plies {
                true => ProofNumbers::disproven(true),
                false => numbers,
            };
            self.children.push(Child { mv, key, numbers });
            // An immediate mate is enough.
            if attacks && numbers.pn == 0 && numbers.plies == 0 {
                break;
            }
        }
    }
}

/// A node's result, computed from its children.
struct Selection {
    numbers: ProofNumbers,
    /// The index of the child to continue with.
    best: usize,
    /// The proof or disproof number of the second-best child.
    second: u32,
}

fn select(children: &[Child], attacks: bool) -> Selection {
    // Attacker and defender nodes swap the roles of the proof and disproof numbers: `low` is the
    // number that is minimised.
    let numbers = |child: &Child| match attacks {
        true => (child.numbers.pn, child.numbers.dn),
        false => (child.numbers.dn, child.numbers.pn),
    };
    let (mut least, mut second, mut best) = (INFINITE, INFINITE, 0);
    let mut sum = 0u32;
    let (mut shortest, mut longest, mut provisional) = (u32::MAX, 0, false);
    for (place, child) in children.iter().enumerate() {
        let (low, high) = numbers(child);
        sum = (sum + high).min(INFINITE);
        if low < least {
            second = least;
            (least, best) = (low, place);
        } else if low < second {
            second = low;
        }
        match child.numbers.mate() {
            Some(plies) => {
                shortest = shortest.min(plies);
                longest = longest.max(plies);
            }
            None => provisional |= child.numbers.provisional,
        }
    }
    let (pn, dn) = match attacks {
        true => (least, sum),
        false => (sum, least),
    };
    let numbers = if pn == 0 {
        ProofNumbers::proven(1 + if attacks { shortest } else { longest })
    } else if dn == 0 {
        // The defender needs one refutation, preferably one that is not provisional.
        let sound = |child: &Child| child.numbers.dn == 0 && !child.numbers.provisional;
        ProofNumbers::disproven(provisional && (attacks || !children.iter().any(sound)))
    } else {
        ProofNumbers::open(pn, dn)
    };
    Selection {
        numbers,
        best,
        second,
    }
}
