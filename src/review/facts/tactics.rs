//! The tactics by which a line wins material. A tactic counts only if the line carries it out: a
//! forked or trapped piece is captured, a threat is executed.

use super::board::after;
use super::{
    Fact, Topic, capture, discovered_attack, double_attack, fork, mate_threat, new_threat, pin,
    skewer, trapped_piece,
};
use shakmaty::{Chess, Move, Position, Role, Square};

/// Maximum number of tactics of one move.
const MOST: usize = 2;
/// Number of own moves of the line among which the tactic is looked for.
const MOVES: usize = 3;

/// Returns the tactics of the side to move: those of its first move in the line or, if it has none,
/// one of a later move.
pub fn tactics(position: &Chess, line: &[Move]) -> Vec<Fact> {
    let Some(&first) = line.first() else {
        return Vec::new();
    };
    let own = aimed(position, line);
    let own = own
        .chain(capture(position, first))
        .chain(double_attack(position, line))
        .chain(mate_threat(position, first));
    let mut facts: Vec<Fact> = own.take(MOST).collect();
    if facts.is_empty() {
        facts.extend(new_threat(position, line));
    }
    match facts.is_empty() {
        true => later(position, line).into_iter().collect(),
        false => facts,
    }
}

/// Returns the tactic of a later move of the side that begins the line.
fn later(position: &Chess, line: &[Move]) -> Option<Fact> {
    let mut position = position.clone();
    for (place, &mv) in line.iter().enumerate().take(2 * MOVES) {
        // Recapturing is not a tactic.
        let takes_back = place > 0 && line[place - 1].to() == mv.to();
        if place > 0 && place % 2 == 0 && !takes_back {
            let found = aimed(&position, &line[place..]).next();
            if let Some(mut fact) = found {
                fact.text = format!("Later in the line, {}", fact.text);
                return Some(fact);
            }
        }
        position = after(&position, mv);
    }
    None
}

/// Returns the tactics of a line's first move that aim at certain pieces and that the line carries
/// out.
fn aimed(position: &Chess, line: &[Move]) -> impl Iterator<Item = Fact> {
    let all = [fork, skewer, discovered_attack, pin, trapped_piece];
    let facts = all.into_iter().filter_map(|fact| fact(position, line[0]));
    facts.filter(|fact| is_carried_out(position, line, fact))
}

/// Returns whether a line captures one of the pieces that a fact is about, on its square. A
/// discovered check is carried out by the piece that gave it.
fn is_carried_out(position: &Chess, line: &[Move], fact: &Fact) -> bool {
    let next = after(position, line[0]);
    let side = position.turn();
    let is_enemy = |square: &Square| next.board().color_at(*square) == Some(!side);
    let mut targets: Vec<Square> = fact.squares.iter().copied().filter(is_enemy).collect();
    if fact.topic == Topic::Discovered {
        let is_check = targets
            .iter()
            .all(|&it| next.board().role_at(it) == Some(Role::King));
        let again = line.get(2).filter(|mv| mv.from() == Some(line[0].to()));
        let takes = line[0].is_capture() || again.is_some_and(|mv| mv.is_capture());
        if is_check {
            return takes;
        }
    }
    for (place, mv) in line.iter().enumerate().skip(1) {
        match place % 2 {
            0 if mv.is_capture() && targets.contains(&mv.to()) => return true,
            0 => {}
            _ => targets.retain(|&target| mv.from() != Some(target)),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::testing::{line, position};
    use super::*;

    #[test]
    fn tactics_that_the_line_carries_out() {
        for (fen, moves, expected) in [
            (
                "r3k3/8/8/3N4/8/8/7P/4K3 w q - 0 1",
                "Nc7+ Kd7 Nxa8",
                &["Nc7+ forks the rook on a8 and the king on e8."][..],
            ),
            // The line does not take the rook.
            ("r3k3/8/8/3N4/8/8/7P/4K3 w q - 0 1", "Nc7+ Kd7 h3", &[]),
            (
                "r3k3/7p/8/1N6/8/8/7P/3RK3 w q - 0 1",
                "Rd5 h6 Nc7+ Ke7 Nxa8",
                &["Later in the line, Nc7+ forks the rook on a8 and the king on e8."],
            ),
        ] {
            let position = position(fen);
            let found = tactics(&position, &line(&position, moves));
            let found: Vec<String> = found.into_iter().map(|fact| fact.text).collect();
            assert_eq!(found, expected, "{moves} in {fen}");
        }
    }
}
