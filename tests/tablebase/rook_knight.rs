//! King and rook against king and knight, solved by retrograde analysis, backwards from mates and
//! White's winning captures. A capture by Black draws.

use crate::tablebase::endgame::{Endgame, TURNS, fold, index_of_three, place_of};
use shakmaty::{
    Bitboard, Board, ByColor, CastlingMode, Chess, Color, FromSetup, Position, Role, Setup, Square,
    attacks,
};

/// The squares of White's king and rook and of Black's king and knight.
type Places = [Square; 4];

const ROLES: [Role; 4] = [Role::King, Role::Rook, Role::King, Role::Knight];

/// Number of placements in Syzygy's tables: the placements of the first three pieces, multiplied by
/// the squares left for the knight.
const SIZE: usize = 31_332 * 61;

/// All positions of the endgame.
pub struct RookKnight<'a> {
    /// The endgame after the knight is captured.
    rook: &'a Endgame,
    /// Number of plies to the mate or capture that the winner can force, negative if the side to
    /// move loses and 0 in a draw; indexed by all four squares, up to symmetry. It is also −1 for
    /// mated positions, although no ply is left.
    values: ByColor<Vec<i8>>,
}

impl RookKnight<'_> {
    pub fn solve(rook: &Endgame) -> RookKnight<'_> {
        let mut solved = RookKnight {
            rook,
            values: ByColor::new_with(|_| vec![0; 1 << 24]),
        };
        // Positions in which the side to move loses, or wins, in exactly `plies`.
        let mut lost = solved.mates();
        let mut won = solved.captures();
        for plies in 1.. {
            for (places, turn) in lost.drain(..) {
                let winner = turn.other();
                let before = moves_back(places, winner);
                won.extend(
                    before
                        .filter(|&before| solved.note(before, winner, plies))
                        .map(|at| (at, winner)),
                );
            }
            if won.is_empty() {
                return solved;
            }
            for (places, turn) in won.drain(..) {
                let loser = turn.other();
                for before in moves_back(places, loser) {
                    if solved.is_lost(before, loser) && solved.note(before, loser, -plies - 1) {
                        lost.push((before, loser));
                    }
                }
            }
        }
        unreachable!("the wins end")
    }

    /// Returns the values of one side to move, by Syzygy's index.
    pub fn by_index(&self, turn: Color) -> Vec<i32> {
        let mut values = vec![0; SIZE];
        for (number, &value) in self.values.get(turn).iter().enumerate() {
            if value != 0 {
                // Syzygy distinguishes between positions mirrored along the long diagonal if only
                // the knight is off it.
                let places = places(number);
                for places in [places, places.map(Square::flip_diagonal)] {
                    values[index(places)] = value.into();
                }
            }
        }
        values
    }

    /// Returns every `step`-th position with its value, except for finished games.
    pub fn positions(&self, step: usize) -> impl Iterator<Item = (Chess, i32)> {
        TURNS.into_iter().flat_map(move |turn| {
            (0..1 << 24).step_by(step).filter_map(move |number| {
                let places = places(number);
                let position = position(places, turn)?;
                let value = self.values.get(turn)[canonical(places)];
                let goes_on = !position.legal_moves().is_empty();
                goes_on.then(|| (position, value.into()))
            })
        })
    }

    /// Records a value; returns false if a value is already known.
    fn note(&mut self, places: Places, turn: Color, value: i8) -> bool {
        let known = &mut self.values.get_mut(turn)[canonical(places)];
        let new = *known == 0;
        if new {
            *known = value;
        }
        new
    }

    /// Records every mate, and returns them.
    fn mates(&mut self) -> Vec<(Places, Color)> {
        let mut mates = Vec::new();
        for (places, turn) in all() {
            let is_mate =
                is_check(places, turn) && moves(places, turn).is_some_and(|moves| moves.is_empty());
            if is_mate && self.note(places, turn, -1) {
                mates.push((places, turn));
            }
        }
        mates
    }

    /// Records every position in which White has a winning capture, and returns them.
    fn captures(&mut self) -> Vec<(Places, Color)> {
        let mut won = Vec::new();
        for (places @ [king, rook, other, knight], turn) in all() {
            let wins = |after: [Square; 3]| {
                self.rook
                    .value_of(after, Color::Black)
                    .is_some_and(|value| value < 0)
            };
            let by_king = reach(places, 0).contains(knight) && wins([knight, rook, other]);
            let by_rook = reach(places, 1).contains(knight) && wins([king, knight, other]);
            if turn.is_white() && (by_king || by_rook) && self.note(places, turn, 1) {
                won.push((places, turn));
            }
        }
        won
    }

    /// Returns whether every move leads to a win for the other side.
    fn is_lost(&self, places: Places, turn: Color) -> bool {
        let wins = |after: &Places| self.values.get(turn.other())[canonical(*after)] > 0;
        self.values.get(turn)[canonical(places)] == 0
            && moves(places, turn).is_some_and(|moves| moves.iter().all(wins))
    }
}

/// Returns all possible positions, up to symmetry.
fn all() -> impl Iterator<Item = (Places, Color)> {
    let folded = (0..1 << 24).filter(|&number| canonical(places(number)) == number);
    folded
        .flat_map(|number| TURNS.map(|turn| (places(number), turn)))
        .filter(|&(places, turn)| is_possible(places, turn))
}

/// Returns the position if it is possible.
fn position(places: Places, turn: Color) -> Option<Chess> {
    let mut setup = Setup::empty();
    let mut board = Board::empty();
    for (piece, (&square, role)) in places.iter().zip(ROLES).enumerate() {
        board.set_piece_at(square, role.of(TURNS[piece / 2]));
    }
    setup.board = board;
    setup.turn = turn;
    let position = Chess::from_setup(setup, CastlingMode::Standard).ok()?;
    (occupied(places).count() == 4).then_some(position)
}

/// Returns the index of a position in Syzygy's tables, with the pieces in the order of [`Places`].
fn index(places: Places) -> usize {
    let folded @ [king, rook, other, _] = fold(places, 3);
    index_of_three([king, rook, other]) + 31_332 * place_of(&folded, 3)
}

/// Returns a number that is the same for all positions related by rotation or reflection.
fn canonical(places: Places) -> usize {
    let folded = fold(places, 4);
    folded
        .iter()
        .fold(0, |number, &square| number << 6 | usize::from(square))
}

fn places(number: usize) -> Places {
    [18, 12, 6, 0].map(|shift| Square::new((number >> shift & 63) as u32))
}

fn occupied(places: Places) -> Bitboard {
    places.into_iter().collect()
}

fn king(color: Color) -> usize {
    if color.is_white() { 0 } else { 2 }
}

/// Returns whether no two pieces share a square and the side that has just moved is not in check.
fn is_possible(places: Places, turn: Color) -> bool {
    occupied(places).count() == 4 && !is_check(places, turn.other())
}

/// Returns whether the king of this side is attacked, including by the other king.
fn is_check(places: Places, color: Color) -> bool {
    let others = king(color.other());
    (others..others + 2).any(|piece| reach(places, piece).contains(places[king(color)]))
}

/// Returns the squares that a piece attacks.
fn reach(places: Places, piece: usize) -> Bitboard {
    let square = places[piece];
    match ROLES[piece] {
        Role::King => attacks::king_attacks(square),
        Role::Knight => attacks::knight_attacks(square),
        _ => attacks::rook_attacks(square, occupied(places)),
    }
}

/// Returns the positions after a side's moves, or `None` if one of the moves captures.
fn moves(places: Places, turn: Color) -> Option<Vec<Places>> {
    let (own, others) = (king(turn), king(turn.other()));
    let mut found = Vec::new();
    for piece in own..own + 2 {
        for to in reach(places, piece) {
            let mut after = places;
            after[piece] = to;
            if to == places[others + 1] {
                // Only the other king could recapture.
                let guarded = attacks::king_attacks(places[others]).contains(to);
                if piece != own || !guarded {
                    return None;
                }
            } else if is_possible(after, turn.other()) {
                found.push(after);
            }
        }
    }
    Some(found)
}

/// Returns the positions from which a side's moves lead here.
fn moves_back(places: Places, mover: Color) -> impl Iterator<Item = Places> {
    let own = king(mover);
    (own..own + 2)
        .flat_map(move |piece| {
            reach(places, piece).into_iter().map(move |from| {
                let mut before = places;
                before[piece] = from;
                before
            })
        })
        .filter(move |&before| is_possible(before, mover))
}
