//! The material that a line wins or loses, counted at a quiet position of the line.

use super::board::{after, value};
use super::quiet::{is_quiet, is_settled, wins_nothing};
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

/// Their worth in centipawns.
const WORTH: [i32; 5] = [950, 500, 325, 325, 100];

/// For each piece in [`COUNTED`], the number that a side has lost.
type Losses = [i32; 5];

/// The material at a quiet position of a line, compared with that before the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The number of moves of the line up to the quiet position.
    pub quiet: usize,
    /// Whether nothing of either side is left to be taken in the line's next moves, so that the
    /// material can be counted.
    pub is_settled: bool,
    /// The number of moves that have to be told: up to the last one that changes the material, and
    /// its answer if it could be taken back.
    pub plies: usize,
    lost: [Losses; 2],
}

/// Returns the outcomes at all quiet positions of a line.
pub fn outcomes(position: &Chess, line: &[Move]) -> Vec<Outcome> {
    let mut found = Vec::new();
    let mut current = position.clone();
    let (mut changed, mut plies) = (0, 0);
    for (place, &mv) in (1..).zip(line) {
        current = after(&current, mv);
        if mv.is_capture() || mv.is_promotion() {
            (changed, plies) = (place, place);
        }
        // A capture that could be taken back is told with its answer.
        if place == changed && !wins_nothing(&current) {
            plies = place + 1;
        }
        if is_quiet(&current) {
            let lost = [Color::White, Color::Black].map(|side| losses(position, &current, side));
            found.push(Outcome {
                quiet: place,
                plies: plies.min(place),
                is_settled: is_settled(&current, &line[place..]),
                lost,
            });
        }
    }
    found
}

/// Returns the outcome of a line, which is the material at its last quiet position. Returns `None`
/// if no position is quiet.
pub fn outcome(position: &Chess, line: &[Move]) -> Option<Outcome> {
    let mut all = outcomes(position, line);
    all.retain(|it| it.is_settled);
    let lost = all.last()?.lost;
    let is_other = |outcome: &Outcome| outcome.lost != lost;
    let first = all.iter().rposition(is_other).map_or(0, |it| it + 1);
    all.into_iter().nth(first)
}

/// Returns White's material minus Black's in centipawns, on the scale of [`Outcome::worth`].
pub fn material(position: &Chess) -> i32 {
    let side = |color| -> i32 {
        let material = position.board().material_side(color);
        let pairs = COUNTED.iter().zip(WORTH);
        pairs
            .map(|(&role, worth)| i32::from(*material.get(role)) * worth)
            .sum()
    };
    side(Color::White) - side(Color::Black)
}

fn losses(before: &Chess, after: &Chess, side: Color) -> Losses {
    let count =
        |position: &Chess, role: Role| i32::from(*position.board().material_side(side).get(role));
    COUNTED.map(|role| count(before, role) - count(after, role))
}

impl Outcome {
    /// Compares two positions; unknown moves lead from the first to the second.
    pub fn between(before: &Chess, after: &Chess) -> Outcome {
        Outcome {
            quiet: 0,
            plies: 0,
            is_settled: false,
            lost: [Color::White, Color::Black].map(|side| losses(before, after, side)),
        }
    }

    /// Returns the material in pawns that `side` gains; negative if it loses material.
    pub fn gain(&self, side: Color) -> i32 {
        let worth = |losses: &Losses| -> i32 {
            let pairs = COUNTED.iter().zip(losses);
            pairs.map(|(&role, lost)| value(role) * lost).sum()
        };
        let [white, black] = &self.lost;
        side.fold_wb(1, -1) * (worth(black) - worth(white))
    }

    /// Returns the same in centipawns by a finer scale, on which two minor pieces are worth more than
    /// a rook and a pawn.
    pub fn worth(&self, side: Color) -> i32 {
        let worth = |losses: &Losses| -> i32 {
            let pairs = WORTH.iter().zip(losses);
            pairs.map(|(worth, lost)| worth * lost).sum()
        };
        let [white, black] = &self.lost;
        side.fold_wb(1, -1) * (worth(black) - worth(white))
    }

    /// Names the pieces that `side` has lost, if it has won nothing and no pawn was promoted.
    pub fn only_lost(&self, side: Color) -> Option<Vec<String>> {
        let [white, black] = &self.lost;
        let ([own, other], new) = uneven(side.fold_wb([white, black], [black, white]));
        (other.is_empty() && new == [None, None]).then_some(own)
    }

    /// Returns whether nothing has changed except by even exchanges.
    pub fn is_even(&self) -> bool {
        let [white, black] = &self.lost;
        let (lists, new) = uneven([white, black]);
        lists.iter().all(Vec::is_empty) && new.iter().all(Option::is_none)
    }

    /// Returns whether another outcome has the same losses.
    pub fn has_lost_as(&self, other: &Outcome) -> bool {
        self.lost == other.lost
    }

    /// Returns whether another outcome has the same material, except for even exchanges.
    pub fn is_like(&self, other: &Outcome) -> bool {
        let lists = |it: &Outcome| {
            let [white, black] = &it.lost;
            uneven([white, black])
        };
        lists(self) == lists(other)
    }

    /// Returns whether `side` has lost such a piece, rather than exchanged it for another.
    pub fn loses(&self, side: Color, role: Role) -> bool {
        let [white, black] = &self.lost;
        let (own, other) = side.fold_wb((white, black), (black, white));
        let net = |of: Role| {
            let place = COUNTED.iter().position(|it| *it == of);
            place.map_or(0, |it| own[it] - other[it])
        };
        match role {
            Role::Bishop | Role::Knight => net(Role::Bishop) + net(Role::Knight) > 0,
            role => net(role) > 0,
        }
    }

    /// Describes the material that `side` has lost or won after these moves.
    pub fn fact(&self, side: Color, moves: &str) -> Option<Fact> {
        let gain = self.worth(side);
        let winner = if gain > 0 { side } else { !side };
        let [white, black] = &self.lost;
        let ([up, down], new) = uneven(winner.fold_wb([white, black], [black, white]));
        let name = self::side;
        let what = match (gain, &new) {
            (0, _) => return None,
            (_, [Some(new), _]) => {
                let won = ending(" and has won ", &down);
                format!("{} has {new}{}{won}", name(winner), ending(" for ", &up))
            }
            (_, [None, Some(new)]) => {
                let rest = ending(" and ", &up);
                format!("{} has lost {} for {new}{rest}", name(!winner), list(&down))
            }
            (1.., _) => format!(
                "{} has won {}{}",
                name(side),
                list(&down),
                ending(" for ", &up)
            ),
            _ => format!(
                "{} has lost {}{}",
                name(side),
                list(&down),
                ending(" for ", &up)
            ),
        };
        Some(Fact::new(
            Topic::Material,
            format!("After {moves}, {what}."),
            [],
        ))
    }
}

/// Returns a list that follows other words; nothing if it is empty.
fn ending(before: &str, items: &[String]) -> String {
    match items {
        [] => String::new(),
        items => format!("{before}{}", list(items)),
    }
}

/// Returns the material that each of two sides has lost in excess of the other, and the pieces to
/// which it has promoted pawns in excess of the other. Bishops and knights count as equal.
fn uneven(sides: [&Losses; 2]) -> ([Vec<String>; 2], [Option<String>; 2]) {
    let [mut own, mut other] = sides.map(|losses| *losses);
    for role in 0..COUNTED.len() {
        // A piece more than before stands for a promoted pawn; pieces that both sides promote to
        // do not count.
        let both = own[role]
            .min(other[role])
            .max(own[role].max(other[role]).min(0));
        own[role] -= both;
        other[role] -= both;
    }
    let [bishop, knight, pawn] = [2, 3, 4];
    for (a, b) in [(bishop, knight), (knight, bishop)] {
        let both = own[a].min(other[b]).max(0);
        own[a] -= both;
        other[b] -= both;
    }
    let promoted = |losses: &mut Losses| {
        let new = losses.map(|lost| (-lost).max(0));
        losses[pawn] = (losses[pawn] - new.iter().sum::<i32>()).max(0);
        let names = named(&new, "new ");
        (!names.is_empty()).then(|| list(&names))
    };
    let new = [promoted(&mut own), promoted(&mut other)];
    ([named(&own, ""), named(&other, "")], new)
}

/// Names the pieces that are lost, as in "two pawns".
fn named(losses: &Losses, kind: &str) -> Vec<String> {
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
            format!("{number} {kind}{}{plural}", name(role))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::board::balance;
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
                "After Rxe5+, White has won a knight.",
                "After Rxe5+, Black has lost a knight.",
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
                "After a8=Q+, White has a new queen.",
                "After a8=Q+, White has a new queen.",
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
        // Nothing has changed when the line last rests.
        let last = outcome(&start, &moves).unwrap();
        assert_eq!((last.quiet, last.plies), (1, 0));
        assert_eq!(balance(&start), 5 - 4);
    }
}
