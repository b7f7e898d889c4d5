//! Shows how a network denoises the future, step by step.

use super::ExplainError;
use crate::backend::Decoding;
use crate::chess::{Game, fen};
use crate::encode::{Input, WIDTH, from_square_to_square, policy_index, policy_move};
use crate::network::diffusion::{Revealed, RevealedMove};
use crate::network::{Diffusion, Network, Output};
use crate::page::Page;
use crate::softmax::softmax;
use crate::torch;
use serde::Serialize;
use serde_json::json;
use shakmaty::{Board, Color, Position, Square};
use tch::Tensor;

const BODY: &str = include_str!("denoising/page.html");
const STYLE: &str = concat!(
    include_str!("board.css"),
    include_str!("denoising/style.css")
);
const SCRIPT: &str = concat!(
    include_str!("board.js"),
    include_str!("denoising/script.js")
);

/// The future that a network predicts for a position.
#[derive(Clone, Debug, Serialize)]
pub struct Denoising {
    /// The network's name.
    pub network: String,
    /// The position.
    pub fen: String,
    /// Whether Black is to move.
    pub black: bool,
    /// The pieces of the position, from a1 to h8: the letters of a FEN, and `.` for an empty
    /// square.
    pub pieces: String,
    /// The parts that are known after each step.
    pub steps: Vec<DenoisingStep>,
    /// The legal moves according to the last step, most probable first.
    pub moves: Vec<ReadMove>,
    /// The predicted line in UCI notation, up to its first illegal move.
    pub line: Vec<String>,
}

/// The parts of the future that are known after a step.
#[derive(Clone, Debug, Serialize)]
pub struct DenoisingStep {
    /// The board after each ply.
    pub boards: Vec<Frame>,
    /// The moves between the boards.
    pub moves: Vec<ImaginedMove>,
}

/// A future board.
#[derive(Clone, Debug, Serialize)]
pub struct Frame {
    /// The likeliest contents of the squares, in the format of [`Denoising::pieces`].
    pub pieces: String,
    /// `1` for each square that is known, and `0` for each other square.
    pub known: String,
    /// The probability of each square's contents in the last evaluation, in percent.
    pub sure: Vec<u8>,
}

/// A future move.
#[derive(Clone, Debug, Serialize)]
pub struct ImaginedMove {
    /// The origin and destination squares of the move, and its promotion, if any.
    pub uci: String,
    /// The move's probability according to the network.
    pub probability: f32,
    /// Whether the move is known.
    pub known: bool,
}

/// A legal move.
#[derive(Clone, Debug, Serialize)]
pub struct ReadMove {
    /// The move in UCI notation.
    pub uci: String,
    /// The move's probability.
    pub prior: f32,
}

/// Denoises the future of a game's current position.
///
/// # Errors
/// [`ExplainError`] if the network does not predict futures, or if the game is over.
pub fn denoise(
    network: &Network,
    game: &Game,
    decoding: Decoding,
) -> Result<Denoising, ExplainError> {
    let denoiser = network.downcast::<Diffusion>();
    let denoiser = denoiser.filter(|it| it.config.horizon > 0);
    let denoiser = denoiser.ok_or(ExplainError::NoFutures)?;
    let position = game.position();
    let legal = position.legal_moves();
    if legal.is_empty() {
        return Err(ExplainError::Over("there is no legal move"));
    }
    tch::set_num_threads(1);
    let _guard = tch::no_grad_guard();
    let input = Input::encode(game);
    let rows = Tensor::from_slice(bytemuck::cast_slice::<u64, i64>(input.words()));
    let rows = rows.view([1, WIDTH as i64]);
    let turn = position.turn();
    let mut steps = Vec::new();
    let wanted = [Output::Policy].into_iter().collect();
    let (outputs, predicted) =
        denoiser.decode(&network.weights, &rows, decoding, wanted, |_, states| {
            steps.push(step(&states[0], turn));
        });
    let logits = torch::floats(outputs.policy());
    let mut priors: Vec<f32> = legal
        .iter()
        .map(|&mv| logits[usize::from(policy_index(mv, turn))])
        .collect();
    softmax(&mut priors, 1.0);
    let mut moves: Vec<_> = legal.iter().copied().zip(priors).collect();
    moves.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let mut imagined = game.clone();
    let mut line = vec![game.format_move(moves[0].0)];
    imagined.play(moves[0].0);
    for &(index, _) in &predicted[0].moves {
        let Some(mv) = policy_move(imagined.position(), index) else {
            break;
        };
        line.push(imagined.format_move(mv));
        imagined.play(mv);
    }
    Ok(Denoising {
        network: network.about.name.clone(),
        fen: fen(position),
        black: turn.is_black(),
        pieces: letters(position.board()),
        steps,
        moves: moves
            .into_iter()
            .map(|(mv, prior)| ReadMove {
                uci: game.format_move(mv),
                prior,
            })
            .collect(),
        line,
    })
}

/// Returns the page that shows the denoising of a future.
pub fn denoising_page(denoising: &Denoising) -> String {
    let page = Page {
        title: &format!("{} – imagined future", denoising.network),
        body: &BODY.replace("{{pieces}}", super::picture::PIECES),
        style: STYLE,
        script: SCRIPT,
    };
    page.render(&json!(denoising))
}

/// Returns the parts of a future that are known after a step, in White's view. `turn` is the side
/// to move in the current position.
fn step(state: &Revealed, turn: Color) -> DenoisingStep {
    // Returns the side to move after a number of plies.
    let mover = |ply: usize| if ply.is_multiple_of(2) { turn } else { !turn };
    let boards = (1..).zip(&state.boards);
    let boards = boards.map(|(ply, board)| {
        let mover = mover(ply);
        let seen = Square::ALL.map(|square| match mover {
            Color::White => usize::from(square),
            Color::Black => usize::from(square.flip_vertical()),
        });
        let known = seen
            .iter()
            .map(|&square| match board.unknown >> square & 1 {
                0 => '1',
                _ => '0',
            });
        let sure = seen.iter().map(|&square| board.probabilities[square]);
        Frame {
            pieces: letters(&board.squares.board(mover)),
            known: known.collect(),
            sure: sure.map(|share| (100.0 * share).round() as u8).collect(),
        }
    });
    let moves = (1..).zip(&state.moves);
    DenoisingStep {
        boards: boards.collect(),
        moves: moves.map(|(ply, it)| imagined(it, mover(ply))).collect(),
    }
}

fn imagined(played: &RevealedMove, mover: Color) -> ImaginedMove {
    let squares = from_square_to_square(usize::from(played.played));
    let name = |square: usize| {
        let square = Square::new(square as u32);
        match mover {
            Color::White => square.to_string(),
            Color::Black => square.flip_vertical().to_string(),
        }
    };
    let uci = squares.map_or_else(String::new, |(from, to, promotion)| {
        let suffix = promotion.map(|role| role.char().to_string());
        name(from) + &name(to) + &suffix.unwrap_or_default()
    });
    ImaginedMove {
        uci,
        probability: played.probability,
        known: played.is_known,
    }
}

/// Returns the pieces of a board from a1 to h8, as the letters of a FEN.
pub(super) fn letters(board: &Board) -> String {
    let letter = |square| board.piece_at(square).map_or('.', |piece| piece.char());
    Square::ALL.into_iter().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::diffusion::DiffusionConfig;
    use crate::network::{About, Architecture};
    use crate::page::assert_self_contained;
    use tch::Device;

    fn network(horizon: i64) -> Network {
        let config = format!(
            r#"{{"horizon": {horizon}, "trunk": {{"layers": 1, "width": 16, "heads": 2,
            "feed_forward": 16, "position": {{"kind": "absolute"}}}}}}"#
        );
        let config: DiffusionConfig = serde_json::from_str(&config).unwrap();
        let model = Diffusion::new(&config, Device::Cpu).unwrap();
        tch::manual_seed(1);
        let flat = model.initial_weights();
        let about = About {
            correction: None,
            name: "dreamer".to_owned(),
            search_value: "q".to_owned(),
            training: serde_json::Value::Null,
            licence: "unknown".to_owned(),
        };
        Network::new(Box::new(model), &flat, about)
    }

    #[test]
    fn every_step_is_a_row_of_boards() {
        let mut game = Game::default();
        game.play(game.parse_move("e2e4").unwrap());
        let decoding = Decoding::step_by_step(4);
        let found = denoise(&network(3), &game, decoding).unwrap();
        assert_eq!(
            (found.steps.len(), found.black, found.moves.len()),
            (4, true, 20)
        );
        assert!(found.pieces.starts_with("RNBQKBNRPPPP.PPP") && found.pieces.ends_with("rnbqkbnr"));
        for step in &found.steps {
            assert_eq!((step.boards.len(), step.moves.len()), (3, 2));
            assert!(
                step.boards
                    .iter()
                    .all(|it| it.known.len() == 64 && it.sure.len() == 64)
            );
        }
        let known = |step: usize| found.steps[step].boards[0].known.matches('1').count();
        assert!(known(0) < 64 && known(3) == 64);
        assert!(!found.line.is_empty());
        let page = denoising_page(&found);
        assert_self_contained(&page);
        assert!(page.contains("dreamer"));
    }

    #[test]
    fn what_imagines_nothing_is_refused() {
        let error = denoise(&network(0), &Game::default(), Decoding::default()).unwrap_err();
        assert!(error.to_string().contains("imagines no future"), "{error}");
    }
}
