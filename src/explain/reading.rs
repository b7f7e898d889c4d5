//! Shows how a move-token GPT reads a game: the next moves that it predicts, legal or not, the
//! moves that it attends to, and its knowledge of the board after each layer.

use super::ExplainError;
use super::denoising::letters;
use crate::chess::{Game, fen};
use crate::encode::{GameEnd, SQUARE_CLASSES, Squares, Token, Unencodable, Vocabulary};
use crate::network::gpt::{Conditions, Sequences};
use crate::network::{Gpt, Network};
use crate::page::Page;
use crate::torch::floats;
use serde::Serialize;
use serde_json::json;
use shakmaty::{Color, Position};
use tch::{Kind, Tensor};

const BODY: &str = include_str!("reading/page.html");
const STYLE: &str = concat!(include_str!("board.css"), include_str!("reading/style.css"));
const SCRIPT: &str = concat!(include_str!("board.js"), include_str!("reading/script.js"));

/// Number of likeliest tokens to list, for the network and for each layer.
const LISTED: usize = 40;
const OF_LAYER: usize = 3;

/// A network's reading of a game.
#[derive(Clone, Debug, Serialize)]
pub struct Reading {
    /// The network's name.
    pub network: String,
    /// The position.
    pub fen: String,
    /// Whether Black is to move.
    pub black: bool,
    /// The pieces of the position, from a1 to h8: the letters of a FEN, and `.` for an empty
    /// square.
    pub pieces: String,
    /// The tokens that the network read: the start of the game and its moves.
    pub tokens: Vec<String>,
    /// The likeliest next tokens, most probable first.
    pub next: Vec<NextToken>,
    /// The total probability of legal moves.
    pub legal_mass: f32,
    /// The probabilities that White wins, that the game is drawn and that Black wins, if the
    /// network predicts them.
    pub outcome: Option<[f32; 3]>,
    /// The network's knowledge after each layer.
    pub layers: Vec<ReadLayer>,
}

/// A token that the network predicts.
#[derive(Clone, Debug, Serialize)]
pub struct NextToken {
    /// A move in the vocabulary's notation, or the end of the game.
    pub text: String,
    /// The token's probability.
    pub probability: f32,
    /// Whether the token is legal.
    pub legal: bool,
}

/// The network's knowledge after a layer, read out as if the layer were the last.
#[derive(Clone, Debug, Serialize)]
pub struct ReadLayer {
    /// The attention of the last token to each token, averaged over the heads.
    pub looks: Vec<f32>,
    /// The likeliest tokens.
    pub next: Vec<NextToken>,
    /// The board according to the network, if the network predicts it.
    pub board: Option<KnownBoard>,
}

/// A board according to a network.
#[derive(Clone, Debug, Serialize)]
pub struct KnownBoard {
    /// The likeliest contents of the squares, in the format of [`Reading::pieces`].
    pub pieces: String,
    /// The probability of each square's contents, in percent.
    pub sure: Vec<u8>,
    /// The number of squares whose likeliest contents are correct.
    pub right: usize,
}

/// Reads a game up to its last position.
///
/// # Errors
/// [`ExplainError`] if the game is over or cannot be encoded.
pub fn read_game(network: &Network<Gpt>, game: &Game) -> Result<Reading, ExplainError> {
    let (gpt, weights) = (&network.architecture, &network.weights);
    let position = game.position();
    if game.ending().is_some() {
        return Err(ExplainError::Over("there is nothing to predict"));
    }
    let vocabulary = &gpt.vocabulary;
    let mut tokens = Vec::new();
    let encoded = gpt.encoder().encode(game, &mut tokens);
    encoded.map_err(|error: Unencodable| ExplainError::Unreadable(error.to_string()))?;
    tch::set_num_threads(1);
    let _guard = tch::no_grad_guard();
    let row: Vec<i64> = tokens.iter().map(|&token| i64::from(token)).collect();
    let conditions = [Conditions {
        ratings: game.ratings(),
        result: None,
    }];
    let sequences = Sequences {
        ratings: Conditions::ratings(&conditions),
        ..Sequences::of_tokens(Tensor::from_slice(&row).unsqueeze(0))
    };
    let legal = vocabulary.legal_tokens(position);
    let last = row.len() as i64 - 1;
    let mut layers = Vec::new();
    let mut said = None;
    for [looks, features] in gpt.look(weights, &sequences) {
        let features = features.narrow(1, last, 1);
        let next = gpt.next(weights, &features);
        let probabilities = floats(&next.tokens.softmax(-1, Kind::Float));
        let looks = looks
            .select(2, last)
            .mean_dim([1i64].as_slice(), false, Kind::Float);
        layers.push(ReadLayer {
            looks: floats(&looks),
            next: likeliest(vocabulary, &probabilities, &legal, OF_LAYER),
            board: gpt
                .board(weights, &features)
                .map(|board| known_board(&board, position.board())),
        });
        said = Some((probabilities, next.outcome));
    }
    let (probabilities, outcome) = said.expect("there are layers");
    if !probabilities.iter().all(|it| it.is_finite()) {
        return Err(ExplainError::NotFinite(network.about.name.clone()));
    }
    let outcome = outcome.map(|outcome| {
        let outcome = floats(&outcome.softmax(-1, Kind::Float));
        [outcome[0], outcome[1], outcome[2]]
    });
    Ok(Reading {
        network: network.about.name.clone(),
        fen: fen(position),
        black: position.turn().is_black(),
        pieces: letters(position.board()),
        tokens: tokens
            .iter()
            .map(|&token| name(vocabulary, token))
            .collect(),
        next: likeliest(vocabulary, &probabilities, &legal, LISTED),
        legal_mass: legal
            .iter()
            .map(|&token| probabilities[usize::from(token)])
            .sum(),
        outcome,
        layers,
    })
}

/// Returns the page that shows a reading.
pub fn reading_page(reading: &Reading) -> String {
    let page = Page {
        title: &format!("{} – reading of a game", reading.network),
        body: &BODY.replace("{{pieces}}", super::picture::PIECES),
        style: STYLE,
        script: SCRIPT,
    };
    page.render(&json!(reading))
}

fn likeliest(
    vocabulary: &Vocabulary,
    probabilities: &[f32],
    legal: &[u16],
    count: usize,
) -> Vec<NextToken> {
    let mut order: Vec<u16> = (0..probabilities.len() as u16).collect();
    let probability = |token: u16| probabilities[usize::from(token)];
    order.sort_by(|&one, &other| probability(other).total_cmp(&probability(one)));
    let tokens = order.into_iter().take(count);
    tokens
        .map(|token| NextToken {
            text: name(vocabulary, token),
            probability: probability(token),
            legal: legal.contains(&token),
        })
        .collect()
}

/// Returns a token's name.
fn name(vocabulary: &Vocabulary, token: u16) -> String {
    match vocabulary.read(token) {
        Some(Token::Move(_)) => vocabulary.text(token).unwrap_or_default(),
        Some(Token::Start) => "start".to_owned(),
        Some(Token::End(end)) => match end {
            GameEnd::WhiteMates => "White has mated",
            GameEnd::BlackMates => "Black has mated",
            GameEnd::WhiteWins => "Black resigns",
            GameEnd::BlackWins => "White resigns",
            GameEnd::Draw => "a draw",
        }
        .to_owned(),
        Some(Token::Padding) | None => "filling".to_owned(),
    }
}

/// Returns the likeliest board according to logits [1, 1, 64, classes], compared with the true
/// board.
fn known_board(logits: &Tensor, truth: &shakmaty::Board) -> KnownBoard {
    let probabilities = floats(&logits.softmax(-1, Kind::Float));
    let truth = Squares::of_board(truth, Color::White);
    let mut squares = Squares::default();
    let mut known = KnownBoard {
        pieces: String::new(),
        sure: Vec::new(),
        right: 0,
    };
    for (square, classes) in probabilities.chunks(SQUARE_CLASSES).enumerate() {
        let likeliest = (0..).zip(classes).max_by(|a, b| a.1.total_cmp(b.1));
        let (class, &probability) = likeliest.expect("there are classes");
        squares.set(square, class);
        known.sure.push((100.0 * probability).round() as u8);
        known.right += usize::from(class == truth.class(square));
    }
    known.pieces = letters(&squares.board(Color::White));
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::gpt::GptConfig;
    use crate::network::{About, Architecture};
    use crate::page::assert_self_contained;
    use shakmaty::CastlingMode;
    use tch::Device;

    fn network(board: bool) -> Network<Gpt> {
        let config = serde_json::json!({
            "layers": 2, "width": 32, "heads": 2, "feed_forward": 48, "context": 24,
            "board": board,
        });
        let config: GptConfig = serde_json::from_value(config).unwrap();
        let gpt = Gpt::new(&config, Device::Cpu).unwrap();
        tch::manual_seed(1);
        let flat = gpt.initial_weights();
        let about = About {
            correction: None,
            name: "reader".to_owned(),
            search_value: String::new(),
            training: serde_json::Value::Null,
            licence: "CC0-1.0".to_owned(),
        };
        Network::new(Box::new(gpt), &flat, about)
    }

    fn game(moves: &str) -> Game {
        let mut game = Game::default();
        for mv in moves.split_whitespace() {
            game.play(game.parse_move(mv).unwrap());
        }
        game
    }

    #[test]
    fn a_game_is_read_layer_by_layer() {
        let reading = read_game(&network(true), &game("e2e4 c7c5 g1f3")).unwrap();
        assert_eq!(reading.tokens, ["start", "e2e4", "c7c5", "g1f3"]);
        assert!(reading.black && reading.pieces.starts_with("RNBQKB.RPPPP.PPP"));
        assert_eq!((reading.next.len(), reading.layers.len()), (LISTED, 2));
        assert!(
            reading
                .next
                .is_sorted_by(|a, b| a.probability >= b.probability)
        );
        // The network is untrained, and of 1,975 tokens, 22 legal moves and three ends of the game
        // are legal.
        assert!(
            (0.005..0.03).contains(&reading.legal_mass),
            "{}",
            reading.legal_mass
        );
        let outcome: f32 = reading.outcome.unwrap().iter().sum();
        assert!((outcome - 1.0).abs() < 1e-4);
        for layer in &reading.layers {
            let looks: f32 = layer.looks.iter().sum();
            assert!(layer.looks.len() == 4 && (looks - 1.0).abs() < 1e-4);
            let board = layer.board.as_ref().unwrap();
            assert!(board.right <= 64 && board.pieces.len() == 64 && board.sure.len() == 64);
        }
        // The output after the last layer is that of the network.
        let last = reading.layers.last().unwrap();
        assert_eq!(last.next[0].text, reading.next[0].text);
        let page = reading_page(&reading);
        assert_self_contained(&page);
        assert!(page.contains("reader"));
        assert!(
            read_game(&network(false), &game("")).unwrap().layers[0]
                .board
                .is_none()
        );
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let network = network(true);
        let over = read_game(&network, &game("f2f3 e7e5 g2g4 d8h4")).unwrap_err();
        assert!(matches!(over, ExplainError::Over(_)));
        let fen = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1";
        let study = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        let error = read_game(&network, &study).unwrap_err();
        assert!(error.to_string().contains("initial position"), "{error}");
    }
}
