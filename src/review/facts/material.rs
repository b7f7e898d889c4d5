//! The material that a line wins or loses, counted at a quiet position of the line.

use super::board::{after, value};
use super::exchange::best_capture;
use super::words::{list, name, side};
use super::{Fact, Topic};
use shakmaty::{Chess, Color, Move, Position, Role};

/// The pieces that are counted, most valuable first.
const COUNTED: [Role; 5] = [
    Role::Queen,
    Role::Rook,
    Role::Bishop,
    Role::Knight,
    Role::Pawn,
];

/// For each piece in [`COUNTED`], the number that a side has lost.
type Losses = [i32; 5];

/// The outcome of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The number of moves of the line up to that outcome.
    pub plies: usize,
    /// Whether a pawn was promoted on the way.
    promotes: bool,
    lost: [Losses; 2],
}

/// Returns White's material minus Black's, in pawns.
#[must_use]
pub fn balance(position: &Chess) -> i32 {
    let side = |color| -> i32 {
        let material = position.board().material_side(color);
        let of = |role: Role| i32::from(*material.get(role)) * value(role);
        COUNTED.into_iter().map(of).sum()
    };
    side(Color::White) - side(Color::Black)
}

/// Returns whether the side to move is not in check and has no capture that gains material.
fn is_at_rest(position: &Chess) -> bool {
    let captures = position.legal_moves().into_iter();
    let mut captures = captures.filter(|mv| mv.is_capture() || mv.is_promotion());
    !position.is_check()
        && captures.all(|mv| !mv.is_promotion() && best_capture(position, mv.to()) == 0)
}

/// Returns the outcome of a line, which is the material at its last quiet position;
/// [`Outcome::plies`] is the number of moves after which this material no longer changes. Returns
/// `None` if no position is quiet.
#[must_use]
pub fn outcome(position: &Chess, line: &[Move]) -> Option<Outcome> {
    let mut found: Option<Outcome> = None;
    let (mut current, mut promotes) = (position.clone(), false);
    for (plies, &mv) in (1..).zip(line) {
        promotes |= mv.is_promotion();
        current = after(&current, mv);
        if is_at_rest(&current) {
            let lost = [Color::White, Color::Black].map(|side| losses(position, &current, side));
            let is_new = found.as_ref().is_none_or(|found| found.lost != lost);
            if is_new {
                found = Some(Outcome {
                    plies,
                    promotes,
                    lost,
                });
            }
        }
    }
    found
}

fn losses(before: &Chess, after: &Chess, side: Color) -> Losses {
    let count =
        |position: &Chess, role: Role| i32::from(*position.board().material_side(side).get(role));
    COUNTED.map(|role| count(before, role) - count(after, role))
}

impl Outcome {
    /// Returns the material in pawns that `side` gains; negative if it loses material.
    #[must_use]
    pub fn gain(&self, side: Color) -> i32 {
        let worth = |losses: &Losses| -> i32 {
            let pairs = COUNTED.iter().zip(losses);
            pairs.map(|(&role, lost)| value(role) * lost).sum()
        };
        let [white, black] = &self.lost;
        side.fold_wb(1, -1) * (worth(black) - worth(white))
    }

    /// Describes the material that `side` has lost or won after these moves.
    #[must_use]
    pub fn fact(&self, side: Color, moves: &str) -> Option<Fact> {
        let gain = self.gain(side);
        let [white, black] = &self.lost;
        let (own, other) = side.fold_wb((white, black), (black, white));
        let (lost, won) = uneven(own, other);
        let verb = if gain < 0 { "has lost" } else { "has won" };
        let (first, second) = if gain < 0 { (lost, won) } else { (won, lost) };
        let name = self::side(side);
        let text = match (gain, self.promotes, &first[..], &second[..]) {
            (0, ..) => return None,
            (_, true, ..) | (_, _, [], _) => {
                let pawns = gain.abs();
                let unit = if pawns == 1 { "pawn" } else { "pawns" };
                format!("After {moves}, {name} {verb} material worth {pawns} {unit}.")
            }
            (_, _, first, []) => format!("After {moves}, {name} {verb} {}.", list(first)),
            (_, _, first, second) => format!(
                "After {moves}, {name} {verb} {} for {}.",
                list(first),
                list(second)
            ),
        };
        Some(Fact::new(Topic::Material, text, []))
    }
}

/// Returns the material that each side has lost in excess of the other; bishops and knights count
/// as equal.
fn uneven(own: &Losses, other: &Losses) -> (Vec<String>, Vec<String>) {
    let (mut own, mut other) = (*own, *other);
    let mut cancel = |a: usize, b: usize| {
        let both = own[a].min(other[b]).max(0);
        own[a] -= both;
        other[b] -= both;
    };
    for role in 0..COUNTED.len() {
        cancel(role, role);
    }
    let [bishop, knight] = [2, 3];
    cancel(bishop, knight);
    cancel(knight, bishop);
    (named(&own), named(&other))
}

fn named(losses: &Losses) -> Vec<String> {
    let numbers = [
        "no", "a", "two", "three", "four", "five", "six", "seven", "eight",
    ];
    let pairs = COUNTED.into_iter().zip(losses);
    let pairs = pairs.filter(|&(_, &count)| count > 0);
    pairs
        .map(|(role, &count)| {
            let number = numbers.get(count as usize).map(|&it| it.to_owned());
            let number = number.unwrap_or_else(|| count.to_string());
            let plural = if count > 1 { "s" } else { "" };
            format!("{number} {}{plural}", name(role))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{line, position};
    use super::super::words;
    use super::*;

    fn text(fen: &str, moves: &str, side: Color) -> String {
        let position = position(fen);
        let line = line(&position, moves);
        let fact = outcome(&position, &line).and_then(|outcome| {
            let moves = words::line(&position, &line[..outcome.plies]);
            outcome.fact(side, &moves)
        });
        fact.map(|fact| fact.text).unwrap_or_default()
    }

    #[test]
    fn lines_that_win_or_lose_material() {
        for (fen, moves, white, black) in [
            (
                "4k3/8/8/4n3/8/8/4R3/4K3 w - - 0 1",
                "Rxe5+ Kd7",
                "After Rxe5+ Kd7, White has won a knight.",
                "After Rxe5+ Kd7, Black has lost a knight.",
            ),
            (
                "4k3/8/3p4/4n3/8/8/4R3/4K3 w - - 0 1",
                "Rxe5+ dxe5",
                "After Rxe5+ dxe5, White has lost a rook for a knight.",
                "After Rxe5+ dxe5, Black has won a rook for a knight.",
            ),
            ("4k3/8/3p4/4b3/8/3N4/8/4K3 w - - 0 1", "Nxe5 dxe5", "", ""),
            (
                "4k3/8/8/2p1p3/3N4/8/8/4K3 w - - 0 1",
                "Kd1 exd4 Kc1 Kd7",
                "After Kd1 exd4, White has lost a knight.",
                "After Kd1 exd4, Black has won a knight.",
            ),
            (
                "7k/P7/8/8/8/8/8/7K w - - 0 1",
                "a8=Q+ Kg7",
                "After a8=Q+ Kg7, White has won material worth 8 pawns.",
                "After a8=Q+ Kg7, Black has lost material worth 8 pawns.",
            ),
        ] {
            assert_eq!(text(fen, moves, Color::White), white, "{moves} in {fen}");
            assert_eq!(text(fen, moves, Color::Black), black, "{moves} in {fen}");
        }
    }

    #[test]
    fn lines_are_counted_where_they_rest() {
        // No outcome: the recapture is still to come; a check; nothing happens; a promotion is
        // still to come.
        for (fen, moves) in [
            ("4k3/8/3p4/4n3/8/8/4R3/4K3 w - - 0 1", "Rxe5+"),
            ("4k3/8/8/8/8/8/3R4/3K4 w - - 0 1", "Re2+"),
            ("4k3/8/8/8/8/8/4R3/4K3 b - - 0 1", "Kd7 Kd1"),
            ("7k/P7/8/8/8/8/8/7K b - - 0 1", "Kg7"),
            ("4k3/8/8/8/8/8/4R3/4K3 b - - 0 1", ""),
        ] {
            assert_eq!(text(fen, moves, Color::White), "", "{moves} in {fen}");
        }
        let start = position("4k3/8/3p4/4n3/8/8/4R3/4K3 w - - 0 1");
        let moves = line(&start, "Kd2 Kd7 Rxe5");
        // Nothing has changed since the first move.
        assert_eq!(outcome(&start, &moves).unwrap().plies, 1);
        assert_eq!(balance(&start), 5 - 4);
    }
}
