//! Occlusion: the value and a move's probability when one piece is removed, for each piece.

use super::ExplainError;
use super::evaluator::Evaluator;
use crate::chess::{Game, fen};
use serde::Serialize;
use shakmaty::fen::Fen;
use shakmaty::{EnPassantMode, Move, Position, Role, Square};

/// The effect of each piece on the value and on the probability of a move.
#[derive(Clone, Debug, Serialize)]
pub struct Occlusion {
    /// The expected result for the side to move with all pieces. Like the positions without a
    /// piece, the position is evaluated without its history.
    pub q: f32,
    /// The probability of the move.
    pub prior: f32,
    /// The effects of all pieces other than the kings.
    pub pieces: Vec<Occluded>,
}

/// The effects of removing a piece.
#[derive(Clone, Debug, Serialize)]
pub struct Occluded {
    /// The piece's square.
    pub square: usize,
    /// The piece's letter in a FEN.
    pub piece: char,
    /// The position without the piece. `None` if the position is illegal, because the side that has
    /// just moved would be in check, or if there is no legal move.
    pub fen: Option<String>,
    /// The expected result for the side to move without the piece.
    pub q: Option<f32>,
    /// The probability of the move without the piece, if the move is still legal.
    pub prior: Option<f32>,
}

/// Removes each piece of the game's position in turn.
pub(super) fn occlude(
    evaluator: &Evaluator,
    game: &Game,
    mv: Move,
) -> Result<Occlusion, ExplainError> {
    let position = game.position();
    let squares = position.board().occupied().into_iter();
    let pieces = squares.filter_map(|square| Some((square, position.board().piece_at(square)?)));
    let removable = pieces.filter(|(_, piece)| piece.role != Role::King);
    let mut games = vec![set_up(game, &fen(game.position())).unwrap_or_else(|| game.clone())];
    let mut occluded = Vec::new();
    for (square, piece) in removable {
        // Without a legal move, there is no policy.
        let without =
            without(game, square).filter(|game| !game.position().legal_moves().is_empty());
        occluded.push(Occluded {
            square: usize::from(square),
            piece: piece.char(),
            fen: without.as_ref().map(|game| fen(game.position())),
            q: None,
            prior: None,
        });
        games.extend(without);
    }
    let text = game.format_move(mv);
    let mut evaluated = evaluator
        .evaluate(&games)?
        .into_iter()
        .zip(&games)
        .map(|(it, game)| {
            let moves = game.position().legal_moves();
            let place = moves.iter().position(|&mv| game.format_move(mv) == text);
            (it.evaluation.q, place.map(|place| it.policy[place]))
        });
    let (q, prior) = evaluated.next().expect("the position itself");
    let mover = mv.from().map(usize::from);
    for piece in occluded.iter_mut().filter(|piece| piece.fen.is_some()) {
        let (q, prior) = evaluated.next().expect("as many as were asked");
        piece.q = Some(q);
        // If the moving piece is removed, another piece may be able to make a move with the same
        // notation.
        piece.prior = prior.filter(|_| Some(piece.square) != mover);
    }
    Ok(Occlusion {
        q,
        prior: prior.unwrap_or_default(),
        pieces: occluded,
    })
}

/// Returns the position without the piece on `square`, as a new game, or `None` if it is illegal.
fn without(game: &Game, square: Square) -> Option<Game> {
    let mut setup = game.position().to_setup(EnPassantMode::Legal);
    setup.board.discard_piece_at(square);
    setup.castling_rights.discard(square);
    let fen = Fen::try_from_setup(setup).ok()?;
    set_up(game, &fen.to_string())
}

/// Creates a game from a FEN, with the players' ratings and the castling mode of another game.
fn set_up(game: &Game, fen: &str) -> Option<Game> {
    let mut found = Game::from_fen(fen, game.mode()).ok()?;
    found.set_mode(game.mode());
    found.set_ratings(game.ratings());
    Some(found)
}
