//! King and one piece against king, solved by retrograde analysis, from which the test tables and
//! their expected values are derived.

use shakmaty::{
    Bitboard, Board, CastlingMode, Chess, Color, File, FromSetup, Position, Rank, Role, Setup,
    Square,
};

/// White comes first, as in all of these tables.
pub const TURNS: [Color; 2] = [Color::White, Color::Black];

/// All positions of White's king and one piece against Black's king.
pub struct Endgame {
    pub role: Role,
    /// The values by [`Endgame::index`], with White to move before Black to move.
    values: Vec<Option<i32>>,
}

/// A position while the endgame is being solved.
#[derive(Default)]
struct Node {
    legal: bool,
    mated: bool,
    /// Whether White can mate, or promote to a won position, in one move.
    wins_at_once: bool,
    /// Whether Black can capture or is stalemated.
    draws_at_once: bool,
    /// Positions after moves other than captures and pawn moves.
    quiet: Vec<usize>,
    /// Positions after pawn moves.
    pushes: Vec<usize>,
}

impl Endgame {
    /// Solves the endgame of `role`. A pawn may promote to any of `promoted`; promotions to other
    /// pieces count as draws.
    pub fn solve(role: Role, promoted: &[&Endgame]) -> Endgame {
        let mut endgame = Endgame {
            role,
            values: Vec::new(),
        };
        let mut nodes: Vec<Node> = Vec::new();
        nodes.resize_with(2 * Endgame::size(role), Node::default);
        for squares in triples() {
            for turn in TURNS {
                let number = endgame.number(squares, turn);
                if !nodes[number].legal
                    && let Some(position) = place(role, squares, turn)
                {
                    nodes[number] = endgame.node(&position, promoted);
                }
            }
        }
        let won = winning(&nodes);
        endgame.values = distances(&nodes, &won);
        endgame
    }

    /// Returns the number of placements, up to symmetry, in the order of Syzygy's tables.
    pub fn size(role: Role) -> usize {
        match role {
            Role::Pawn => 24 * 63 * 62,
            _ => 31_332,
        }
    }

    /// Returns the number of plies to the mate or pawn move that the winner can force, negative if
    /// the side to move loses and 0 in a draw; `None` for impossible positions.
    pub fn value(&self, position: &Chess) -> Option<i32> {
        self.values[self.number(squares(position, self.role)?, position.turn())]
    }

    /// Returns the value given the squares of White's king, the piece and Black's king.
    pub fn value_of(&self, squares: [Square; 3], turn: Color) -> Option<i32> {
        self.values[self.number(squares, turn)]
    }

    /// Returns the value at an index.
    pub fn value_at(&self, index: usize, turn: Color) -> Option<i32> {
        self.values[2 * index + usize::from(turn.is_black())]
    }

    /// Returns all positions with their values, up to symmetry.
    pub fn positions(&self) -> impl Iterator<Item = (Chess, i32)> {
        let mut seen = vec![false; self.values.len()];
        triples()
            .flat_map(|squares| TURNS.map(|turn| (squares, turn)))
            .filter_map(move |(squares, turn)| {
                let number = self.number(squares, turn);
                let value = self.values[number]?;
                let position = place(self.role, squares, turn)?;
                (!std::mem::replace(&mut seen[number], true)).then_some((position, value))
            })
    }

    fn number(&self, squares: [Square; 3], turn: Color) -> usize {
        2 * index(self.role, squares) + usize::from(turn.is_black())
    }

    fn node(&self, position: &Chess, promoted: &[&Endgame]) -> Node {
        let moves = position.legal_moves();
        let mut node = Node {
            legal: true,
            mated: position.is_checkmate(),
            draws_at_once: position.is_stalemate(),
            ..Node::default()
        };
        for mv in moves {
            let mut after = position.clone();
            after.play_unchecked(mv);
            if mv.is_capture() {
                node.draws_at_once = true;
            } else if after.is_checkmate() {
                node.wins_at_once = true;
            } else if let Some(role) = mv.promotion() {
                let endgame = promoted.iter().find(|endgame| endgame.role == role);
                let value = endgame.and_then(|endgame| endgame.value(&after));
                node.wins_at_once |= value.is_some_and(|value| value < 0);
            } else {
                let squares = squares(&after, self.role).expect("no piece has gone");
                let list = match mv.role() {
                    Role::Pawn => &mut node.pushes,
                    _ => &mut node.quiet,
                };
                list.push(self.number(squares, after.turn()));
            }
        }
        node
    }
}

/// Returns the positions that White wins.
fn winning(nodes: &[Node]) -> Vec<bool> {
    let mut won: Vec<bool> = nodes.iter().map(|node| node.mated).collect();
    loop {
        let mut changed = false;
        for (number, node) in nodes.iter().enumerate() {
            if won[number] || !node.legal {
                continue;
            }
            let mut next = node.quiet.iter().chain(&node.pushes);
            won[number] = match number % 2 {
                0 => node.wins_at_once || next.any(|&next| won[next]),
                _ => !node.draws_at_once && next.all(|&next| won[next]),
            };
            changed |= won[number];
        }
        if !changed {
            return won;
        }
    }
}

/// Returns the numbers of plies to the next mate or pawn move.
fn distances(nodes: &[Node], won: &[bool]) -> Vec<Option<i32>> {
    let mut values: Vec<Option<i32>> = nodes
        .iter()
        .zip(won)
        .map(|(node, &won)| (node.legal && !won).then_some(0))
        .collect();
    for plies in 1i32.. {
        let due: Vec<usize> = (0..nodes.len())
            .filter(|&number| won[number] && values[number].is_none())
            .collect();
        if due.is_empty() {
            break;
        }
        let mut found = Vec::new();
        for number in due {
            let node = &nodes[number];
            let known = |next: &usize| values[*next].is_some();
            let is_now = match number % 2 {
                0 => {
                    let zeroing = node.wins_at_once || node.pushes.iter().any(|&next| won[next]);
                    let quiet = node.quiet.iter().any(|next| won[*next] && known(next));
                    zeroing || quiet
                }
                // A mated side also counts, although no ply is left.
                _ => node.mated || node.quiet.iter().all(known),
            };
            if is_now {
                found.push((number, if number % 2 == 0 { plies } else { -plies }));
            }
        }
        for (number, value) in found {
            values[number] = Some(value);
        }
    }
    values
}

/// Returns all placements of White's king, White's piece and Black's king.
fn triples() -> impl Iterator<Item = [Square; 3]> {
    let three = |number: u32| {
        [number >> 12, number >> 6 & 63, number & 63].map(|square| Square::new(square))
    };
    (0..1 << 18)
        .map(three)
        .filter(|[a, b, c]| a != b && b != c && a != c)
}

fn place(role: Role, [king, piece, other]: [Square; 3], turn: Color) -> Option<Chess> {
    if role == Role::Pawn && Bitboard::BACKRANKS.contains(piece) {
        return None;
    }
    let mut board = Board::empty();
    board.set_piece_at(king, Color::White.king());
    board.set_piece_at(piece, role.of(Color::White));
    board.set_piece_at(other, Color::Black.king());
    let mut setup = Setup::empty();
    setup.board = board;
    setup.turn = turn;
    Chess::from_setup(setup, CastlingMode::Standard).ok()
}

fn squares(position: &Chess, role: Role) -> Option<[Square; 3]> {
    let board = position.board();
    let piece = board.by_piece(role.of(Color::White)).single_square()?;
    let kings = (board.king_of(Color::White)?, board.king_of(Color::Black)?);
    (board.occupied().count() == 3).then_some([kings.0, piece, kings.1])
}

/// Returns the index of a position in Syzygy's tables. The order of the pieces is king, piece,
/// other king, or pawn, king, other king.
fn index(role: Role, [king, piece, other]: [Square; 3]) -> usize {
    match role {
        Role::Pawn => index_with_pawn([piece, king, other]),
        _ => index_of_three(fold([king, piece, other], 3)),
    }
}

/// Orders positions by the pawn's file (a to d; the others are mirrored), then by its rank, then by
/// the placement of the other pieces on the free squares.
fn index_with_pawn(mut squares: [Square; 3]) -> usize {
    if squares[0].file() >= File::E {
        squares = squares.map(Square::flip_horizontal);
    }
    let (file, rank) = (squares[0].file(), squares[0].rank());
    // Pawns on the back ranks are never looked up.
    let rank = usize::from(rank).clamp(1, 6) - 1;
    let [second, third] = [1, 2].map(|number| place_of(&squares, number));
    usize::from(file) * 6 * 63 * 62 + rank + 6 * second + 6 * 63 * third
}

/// Rotates and mirrors the board so that the first piece is in the triangle a1-d1-d4. If that piece
/// is on the long diagonal, the first of the other `leading` pieces that is off the diagonal is
/// below it.
pub fn fold<const N: usize>(mut squares: [Square; N], leading: usize) -> [Square; N] {
    if squares[0].file() >= File::E {
        squares = squares.map(Square::flip_horizontal);
    }
    if squares[0].rank() >= Rank::Fifth {
        squares = squares.map(Square::flip_vertical);
    }
    let mut sides = squares.iter().take(leading).map(|&square| side(square));
    if sides.find(|&side| side != 0).is_some_and(|side| side < 0) {
        squares = squares.map(Square::flip_diagonal);
    }
    squares
}

/// Returns a square's signed distance from the long diagonal.
fn side(square: Square) -> i32 {
    i32::from(square.file()) - i32::from(square.rank())
}

/// Returns the index of three pieces after [`fold`].
pub fn index_of_three(squares: [Square; 3]) -> usize {
    let [a, b, c] = squares;
    let [second, third] = [1, 2].map(|number| place_of(&squares, number));
    if side(a) != 0 {
        return below_diagonal(a, 4) * 63 * 62 + second * 62 + third;
    }
    let mut start = 6 * 63 * 62;
    let rank = |square: Square| usize::from(square.rank());
    if side(b) != 0 {
        return start + (rank(a) * 28 + below_diagonal(b, 8)) * 62 + third;
    }
    start += 4 * 28 * 62;
    // On the diagonal, earlier pieces leave fewer ranks free.
    let second = rank(b) - usize::from(b > a);
    if side(c) != 0 {
        return start + (rank(a) * 7 + second) * 28 + below_diagonal(c, 8);
    }
    start += 4 * 7 * 28;
    let third = rank(c) - usize::from(c > a) - usize::from(c > b);
    start + (rank(a) * 7 + second) * 6 + third
}

/// Returns the index of a square among those that the squares before it leave free.
pub fn place_of(squares: &[Square], number: usize) -> usize {
    let square = squares[number];
    let before = squares[..number].iter().filter(|&&other| other < square);
    usize::from(square) - before.count()
}

/// Returns the index of a square among those below the diagonal of a board with this many files.
fn below_diagonal(square: Square, files: usize) -> usize {
    let (file, rank) = (usize::from(square.file()), usize::from(square.rank()));
    (0..rank).map(|rank| files - 1 - rank).sum::<usize>() + file - rank - 1
}
