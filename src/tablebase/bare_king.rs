//! King and queen, rook or pawn against king: perfect play until mate, without tables on disk.
//!
//! A network knows that these endings are won, but it sees no difference between the moves. The
//! endings are small enough to be solved in a few tenths of a second by retrograde analysis
//! (Thompson 1986). The analysis works backwards from the mates, through positions in which the
//! strong side can reach a solved position or every move of the bare king does. The endings are
//! solved on first use or, as a game approaches them, in advance.

use crate::chess::{CLAIMABLE_RULE50, after};
use shakmaty::{Bitboard, Chess, Color, File, Move, Position, Rank, Role, Square, attacks};
use std::sync::{Once, OnceLock};

/// The endings are solved in advance once a position has at most this many pieces, with the kings.
const NEAR: usize = 10;

/// The result of perfect play, for the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The side to move forces mate in this many plies.
    Mates(u8),
    /// The side to move is mated in this many plies.
    Mated(u8),
    /// Neither side can mate.
    Draw,
}

/// Returns the result of perfect play, or `None` for other endings and for positions with castling
/// rights. The 50-move rule is ignored.
///
/// ```
/// use shakmaty::CastlingMode;
/// use tessera::chess::Game;
/// use tessera::tablebase::bare_king::{Known, known, line};
///
/// let game = Game::from_fen("8/8/8/4k3/8/8/8/K6R w - - 0 1", CastlingMode::Standard)?;
/// assert_eq!(known(game.position()), Some(Known::Mates(29)));
/// assert_eq!(line(game.position()).unwrap().len(), 29);
/// # Ok::<(), tessera::chess::FenError>(())
/// ```
pub fn known(position: &Chess) -> Option<Known> {
    let (role, place) = Place::of(position)?;
    Some(match (table(role).plies(place), place.strong_moves) {
        (None, _) => Known::Draw,
        (Some(plies), true) => Known::Mates(plies),
        (Some(plies), false) => Known::Mated(plies),
    })
}

/// Starts to solve the endings on a thread of their own if the position is near them, so that later
/// moves in a game need not wait for it.
pub fn solve_ahead(position: &Chess) {
    static STARTED: Once = Once::new();
    if position.board().occupied().count() <= NEAR {
        STARTED.call_once(|| {
            let solver = std::thread::Builder::new().name("endings".to_owned());
            // Without a thread, the endings are solved on first use.
            let _ = solver.spawn(|| table(Role::Pawn).role);
        });
    }
}

/// Returns the moves up to the mate, or `None` unless mate can be forced before the 50-move rule
/// applies.
pub fn line(position: &Chess) -> Option<Vec<Move>> {
    let mut position = position.clone();
    let mut line = Vec::new();
    loop {
        let (Known::Mates(plies) | Known::Mated(plies)) = known(&position)? else {
            return None;
        };
        if plies == 0 {
            return Some(line);
        }
        if position.halfmoves() >= CLAIMABLE_RULE50 {
            return None;
        }
        let (mv, after) = position.legal_moves().into_iter().find_map(|mv| {
            let after = after(&position, mv);
            let nearer = match known(&after)? {
                Known::Mates(left) | Known::Mated(left) => left + 1 == plies,
                Known::Draw => false,
            };
            nearer.then_some((mv, after))
        })?;
        line.push(mv);
        position = after;
    }
}

/// The squares of the pieces, with the strong side as White.
#[derive(Clone, Copy, Debug)]
struct Place {
    king: Square,
    piece: Square,
    bare: Square,
    strong_moves: bool,
}

impl Place {
    fn of(position: &Chess) -> Option<(Role, Place)> {
        let board = position.board();
        if board.occupied().count() != 3 || position.castles().any() {
            return None;
        }
        let piece = (board.occupied() & !board.kings()).single_square()?;
        let kind = board.piece_at(piece)?;
        if !matches!(kind.role, Role::Queen | Role::Rook | Role::Pawn) {
            return None;
        }
        let strong = kind.color;
        let seen = |square: Square| match strong {
            Color::White => square,
            Color::Black => square.flip_vertical(),
        };
        let place = Place {
            king: seen(board.king_of(strong)?),
            piece: seen(piece),
            bare: seen(board.king_of(strong.other())?),
            strong_moves: position.turn() == strong,
        };
        Some((kind.role, place))
    }

    /// Returns whether the table contains this place instead of its mirror image.
    fn is_standard(&self) -> bool {
        self.king.file() < File::E
    }

    /// Returns the index of the place or its mirror image in the table, below [`Place::COUNT`].
    fn number(self) -> usize {
        let mirrored = |square: Square| match self.is_standard() {
            true => square,
            false => square.flip_horizontal(),
        };
        let [king, piece, bare] = [self.king, self.piece, self.bare].map(mirrored);
        let king = usize::from(king.file()) + 4 * usize::from(king.rank());
        let squares = (king * 64 + usize::from(piece)) * 64 + usize::from(bare);
        2 * squares + usize::from(self.strong_moves)
    }

    const COUNT: usize = 2 * 32 * 64 * 64;

    /// Returns the squares that the piece attacks, where only the strong king blocks lines.
    fn attacked(self, role: Role) -> Bitboard {
        attacked(role, self.piece, self.king.into())
    }

    /// Returns whether the position is legal.
    fn is_legal(self, role: Role) -> bool {
        let Place {
            king, piece, bare, ..
        } = self;
        let apart = king != piece && king != bare && piece != bare;
        let stands = role != Role::Pawn || !Bitboard::BACKRANKS.contains(piece);
        let near = attacks::king_attacks(king).contains(bare);
        let checks = self.attacked(role).contains(bare);
        apart && stands && !near && !(self.strong_moves && checks)
    }

    /// Returns the squares to which the bare king can move, including a capture of the piece.
    fn flights(self, role: Role) -> Bitboard {
        let near = attacks::king_attacks(self.bare) & !attacks::king_attacks(self.king);
        let piece = Bitboard::from(self.piece);
        near & (piece | !self.attacked(role))
    }

    /// Returns the positions from which a move of the bare king leads to this position.
    fn before_bare(self, role: Role) -> impl Iterator<Item = Place> {
        let squares = attacks::king_attacks(self.bare);
        squares
            .into_iter()
            .map(move |bare| Place {
                bare,
                strong_moves: false,
                ..self
            })
            .filter(move |place| place.is_legal(role))
    }

    /// Returns the positions with the same pieces from which a move of the strong side leads to
    /// this position.
    fn before_strong(self, role: Role) -> impl Iterator<Item = Place> {
        let occupied = Bitboard::from(self.king) | self.piece | self.bare;
        let strong_moves = true;
        let kings = attacks::king_attacks(self.king) & !occupied;
        let kings = kings.into_iter().map(move |king| Place {
            king,
            strong_moves,
            ..self
        });
        let origins = match role {
            Role::Pawn => pawn_origins(self.piece, occupied),
            _ => attacked(role, self.piece, occupied) & !occupied,
        };
        let pieces = origins.into_iter().map(move |piece| Place {
            piece,
            strong_moves,
            ..self
        });
        kings
            .chain(pieces)
            .filter(move |place| place.is_legal(role))
    }
}

fn attacked(role: Role, square: Square, occupied: Bitboard) -> Bitboard {
    match role {
        Role::Pawn => attacks::pawn_attacks(Color::White, square),
        Role::Rook => attacks::rook_attacks(square, occupied),
        _ => attacks::queen_attacks(square, occupied),
    }
}

/// Returns the squares from which a pawn may have moved to this square.
fn pawn_origins(square: Square, occupied: Bitboard) -> Bitboard {
    let free = |square: Option<Square>| square.filter(|&square| !occupied.contains(square));
    let behind = free(square.offset(-8)).filter(|square| square.rank() > Rank::First);
    let far = behind
        .filter(|_| square.rank() == Rank::Fourth)
        .and_then(|behind| free(behind.offset(-8)));
    behind.into_iter().chain(far).collect()
}

/// The number of plies to the mate plus 1, for each place. It is 0 for draws.
struct Table {
    role: Role,
    plies: Vec<u8>,
}

static QUEEN: OnceLock<Table> = OnceLock::new();
static ROOK: OnceLock<Table> = OnceLock::new();
static PAWN: OnceLock<Table> = OnceLock::new();

fn table(role: Role) -> &'static Table {
    let solved = match role {
        Role::Pawn => &PAWN,
        Role::Rook => &ROOK,
        _ => &QUEEN,
    };
    solved.get_or_init(|| Table::solve(role))
}

impl Table {
    /// Solves the endings backwards from the mates, ply by ply.
    fn solve(role: Role) -> Table {
        let mut table = Table {
            role,
            plies: vec![0; Place::COUNT],
        };
        // The positions at each distance from the mate, in plies.
        let mut waves = table.ends();
        let mut plies = 0;
        while plies < waves.len() {
            let wave = std::mem::take(&mut waves[plies]);
            let mut next = Vec::new();
            for place in wave {
                let number = place.number();
                if table.plies[number] > 0 {
                    continue;
                }
                table.plies[number] = plies as u8 + 1;
                let unknown = |place: &Place| table.plies(*place).is_none();
                match place.strong_moves {
                    true => {
                        let before = place.before_bare(role).filter(unknown);
                        next.extend(before.filter(|&place| table.is_lost(place)));
                    }
                    false => next.extend(place.before_strong(role).filter(unknown)),
                }
            }
            plies += 1;
            if waves.len() == plies && !next.is_empty() {
                waves.push(Vec::new());
            }
            if let Some(wave) = waves.get_mut(plies) {
                wave.append(&mut next);
            }
        }
        table
    }

    fn plies(&self, place: Place) -> Option<u8> {
        self.plies[place.number()].checked_sub(1)
    }

    /// Returns the positions with which the solution starts, by the number of plies to the mate.
    /// They are mates and winning promotions.
    fn ends(&self) -> Vec<Vec<Place>> {
        let mut ends = vec![Vec::new()];
        for place in self.places() {
            let plies = match place.strong_moves {
                true => self.promotion(place),
                false => {
                    let check = place.attacked(self.role).contains(place.bare);
                    (check && place.flights(self.role).is_empty()).then_some(0)
                }
            };
            if let Some(plies) = plies {
                let plies = usize::from(plies);
                ends.resize(ends.len().max(plies + 1), Vec::new());
                ends[plies].push(place);
            }
        }
        ends
    }

    /// Returns all legal places, up to symmetry.
    fn places(&self) -> impl Iterator<Item = Place> {
        let role = self.role;
        let squares = Square::ALL.into_iter();
        let pairs = squares.flat_map(|king| Square::ALL.map(|piece| (king, piece)));
        let all = pairs.flat_map(move |(king, piece)| {
            let turns = move |bare| {
                [true, false].map(|strong_moves| Place {
                    king,
                    piece,
                    bare,
                    strong_moves,
                })
            };
            Square::ALL.into_iter().flat_map(turns)
        });
        all.filter(Place::is_standard)
            .filter(move |place| place.is_legal(role))
    }

    /// Returns the number of plies to the mate if a promotion wins.
    fn promotion(&self, place: Place) -> Option<u8> {
        if self.role != Role::Pawn || place.piece.rank() != Rank::Seventh {
            return None;
        }
        let piece = place.piece.offset(8)?;
        if piece == place.king || piece == place.bare {
            return None;
        }
        let after = Place {
            piece,
            strong_moves: false,
            ..place
        };
        let plies = [Role::Queen, Role::Rook].map(|role| table(role).plies(after));
        plies.into_iter().flatten().min().map(|plies| plies + 1)
    }

    /// Returns whether every move of the bare king leads to a solved position.
    fn is_lost(&self, place: Place) -> bool {
        let mut flights = place.flights(self.role).into_iter();
        flights.all(|bare| {
            let after = Place {
                bare,
                strong_moves: true,
                ..place
            };
            bare != place.piece && self.plies(after).is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::waiting::PATIENCE;
    use shakmaty::{Board, CastlingMode, FromSetup, Piece, Setup};
    use std::time::{Duration, Instant};

    fn positions(role: Role, strong: Color) -> impl Iterator<Item = Chess> {
        let place = move |place: Place| {
            let seen = |square: Square| strong.fold_wb(square, square.flip_vertical());
            let mut board = Board::empty();
            for (square, color, role) in [
                (place.king, strong, Role::King),
                (place.piece, strong, role),
                (place.bare, strong.other(), Role::King),
            ] {
                board.set_piece_at(seen(square), Piece { color, role });
            }
            let turn = if place.strong_moves {
                strong
            } else {
                strong.other()
            };
            let setup = Setup {
                board,
                turn,
                ..Setup::empty()
            };
            Chess::from_setup(setup, CastlingMode::Standard).unwrap()
        };
        table(role).places().map(place)
    }

    /// Derives a position's outcome from the table's outcomes after each legal move, as generated
    /// by shakmaty.
    fn follows(position: &Chess) -> Known {
        let moves = position.legal_moves();
        if moves.is_empty() {
            return match position.is_check() {
                true => Known::Mated(0),
                false => Known::Draw,
            };
        }
        let results = moves
            .into_iter()
            .map(|mv| known(&after(position, mv)).unwrap_or(Known::Draw));
        // Prefer the shortest mate, then a draw, then the longest way to be mated.
        let rank = |known: &Known| match *known {
            Known::Mated(plies) => 1000 - i32::from(plies),
            Known::Draw => 0,
            Known::Mates(plies) => i32::from(plies) - 1000,
        };
        match results.max_by_key(rank).unwrap() {
            Known::Mated(plies) => Known::Mates(plies + 1),
            Known::Draw => Known::Draw,
            Known::Mates(plies) => Known::Mated(plies + 1),
        }
    }

    #[test]
    fn endings_are_solved_as_a_game_approaches_them() {
        let game = Game::from_fen(
            "4k3/pppp4/8/8/8/8/PPPP4/4K3 w - - 0 1",
            CastlingMode::Standard,
        );
        solve_ahead(game.unwrap().position());
        let begun = Instant::now();
        while PAWN.get().is_none() {
            assert!(begun.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn every_position_follows_from_its_moves() {
        // The longest mates take 10, 16 and 28 moves.
        for (role, longest) in [(Role::Queen, 19), (Role::Rook, 31), (Role::Pawn, 55)] {
            let mut most = 0;
            for (number, position) in positions(role, Color::White).enumerate() {
                let known = known(&position).unwrap();
                if let Known::Mates(plies) = known {
                    most = most.max(plies);
                }
                // Debug builds are too slow to check every position.
                if number % 7 == 0 {
                    assert_eq!(known, follows(&position), "{position:?}");
                }
            }
            assert_eq!(most, longest);
        }
    }

    #[test]
    fn black_is_as_strong() {
        for role in [Role::Queen, Role::Rook, Role::Pawn] {
            let black = positions(role, Color::Black).map(|position| known(&position));
            let white = positions(role, Color::White).map(|position| known(&position));
            assert!(white.step_by(31).eq(black.step_by(31)));
        }
    }

    fn position(fen: &str) -> Chess {
        let fen: shakmaty::fen::Fen = fen.parse().unwrap();
        fen.into_position(CastlingMode::Standard).unwrap()
    }

    #[test]
    fn lines_lead_to_mate() {
        for (fen, plies) in [
            ("8/8/8/4k3/8/8/8/K6R w - - 0 1", None),
            ("8/8/8/8/8/3k4/8/QK6 b - - 0 1", None),
            ("4k3/8/4K3/4P3/8/8/8/8 w - - 0 1", None),
            ("k7/8/1K6/8/8/8/8/7r w - - 0 1", None),
            ("7k/8/6K1/8/8/8/8/R7 w - - 0 1", Some(Some(1))),
            // The 50-move rule would apply before the mate.
            ("8/8/8/4k3/8/8/8/K6R w - - 90 1", Some(None)),
            ("4k3/4P3/4K3/8/8/8/8/8 b - - 0 1", Some(None)),
        ] {
            let position = position(fen);
            let line = line(&position);
            if let Some(plies) = plies {
                assert_eq!(line.map(|line| line.len()), plies, "{fen}");
                continue;
            }
            let mut after = position;
            for mv in line.unwrap() {
                assert!(after.is_legal(mv));
                after.play_unchecked(mv);
            }
            assert!(after.is_checkmate(), "{fen}");
        }
    }

    #[test]
    fn other_positions_are_left_alone() {
        for fen in [
            "4k3/8/8/8/8/8/8/4K3 w - - 0 1",
            "4k3/8/8/8/8/8/8/4KB2 w - - 0 1",
            "4k3/8/8/8/8/8/8/R3K3 w Q - 0 1",
            "4k3/8/8/8/8/8/8/RR2K3 w - - 0 1",
            "4k2r/8/8/8/8/8/8/R3K3 w - - 0 1",
        ] {
            assert_eq!(known(&position(fen)), None, "{fen}");
        }
        let corner = position("k7/8/K7/P7/8/8/8/8 w - - 0 1");
        assert_eq!(known(&corner), Some(Known::Draw));
    }
}
