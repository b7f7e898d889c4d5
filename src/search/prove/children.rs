//! The moves to try, and the initial proof and disproof numbers of a new position.

use super::{Attack, FLIGHT, MOVES_A_PROOF, ProofNumbers};
use crate::chess::{CLAIMABLE_RULE50, Checks, after, mate_in_one};
use shakmaty::{Chess, Move, Position, Role};

/// A move of a node on the path, with the proof and disproof numbers of the position after it.
#[derive(Clone, Copy)]
pub(super) struct Child {
    pub(super) mv: Move,
    pub(super) key: u64,
    pub(super) numbers: ProofNumbers,
}

/// Returns those of `moves` that are tried, with the positions after them.
pub(super) fn played(
    position: &Chess,
    moves: &[Move],
    attacks: bool,
    attack: Attack,
) -> impl Iterator<Item = (Move, Chess)> {
    let only_checks = attacks && attack == Attack::Checks;
    let checks = match only_checks {
        true => Checks::new(position),
        false => None,
    };
    moves
        .iter()
        .filter(move |&&mv| {
            checks
                .as_ref()
                .is_none_or(|checks| checks.may_be_given_by(mv))
        })
        .map(move |&mv| (mv, after(position, mv)))
        .filter(move |(_, after)| !only_checks || after.is_check())
}

/// Returns the initial proof and disproof numbers of a position that has not been searched.
pub(super) fn judge(position: &Chess, attacks: bool, attack: Attack) -> ProofNumbers {
    let moves = position.legal_moves();
    let attacker = match attacks {
        true => position.turn(),
        false => position.turn().other(),
    };
    if moves.is_empty() && position.is_check() && !attacks {
        return ProofNumbers::proven(0);
    }
    let drawn = position.halfmoves() >= CLAIMABLE_RULE50;
    if moves.is_empty() || drawn || position.has_insufficient_material(attacker) {
        return ProofNumbers::disproven(false);
    }
    match attacks {
        true => judge_attacker(position, &moves, attack),
        false => judge_defender(position, &moves),
    }
}

fn judge_attacker(position: &Chess, moves: &[Move], attack: Attack) -> ProofNumbers {
    if mate_in_one(position, moves).is_some() {
        return ProofNumbers::proven(1);
    }
    let tried = match (attack, Checks::new(position)) {
        (Attack::Checks, Some(checks)) => {
            let possible = moves.iter().filter(|&&mv| checks.may_be_given_by(mv));
            possible.count()
        }
        _ => moves.len(),
    };
    match tried {
        0 => ProofNumbers::disproven(false),
        tried => ProofNumbers::open(1, tried as u32),
    }
}

fn judge_defender(position: &Chess, moves: &[Move]) -> ProofNumbers {
    let count = moves.len() as u32;
    let pn = match position.is_check() {
        true => count,
        false => {
            let flights = moves
                .iter()
                .filter(|mv| mv.role() == Role::King && !mv.is_castle());
            count / MOVES_A_PROOF + 1 + FLIGHT * flights.count() as u32
        }
    };
    ProofNumbers::open(pn, 1)
}
