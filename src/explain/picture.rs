//! Boards as SVG files, in colours that suit colour-blind readers and print. Blue means a high
//! value or an effect in favour, and hatched orange means an effect against.

use super::Explanation;
use shakmaty::{Board, Color, Square};
use std::fmt::Write;

/// The symbols `piece-p` to `piece-k`, which were drawn for this program.
pub(super) const PIECES: &str = include_str!("pieces.svg");

/// Side length of a square.
const SIDE: usize = 40;
/// Minimum probability of a move to get an arrow.
const LEAST_PRIOR: f32 = 0.03;
/// Number of boards per row.
const COLUMNS: usize = 4;
/// Height of the caption below a board.
const CAPTION: usize = 24;
/// Gap between two boards.
const GAP: usize = 16;

const PLUS: &str = "#0072b2";
const MINUS: &str = "#d55e00";

/// Returns the pictures of an explanation with their file names: the position with arrows for the
/// policy, the four attributions, and for each layer the attention of the explained move's origin
/// square by head.
pub fn pictures(explanation: &Explanation) -> Vec<(String, String)> {
    let placement = explanation.fen.split(' ').next().unwrap_or_default();
    let board = Board::from_ascii_board_fen(placement.as_bytes()).unwrap_or_default();
    let occluded = |worth: &dyn Fn(&super::Occluded) -> Option<f32>| {
        let mut values = [0.0; 64];
        for piece in &explanation.occlusion.pieces {
            values[piece.square] = worth(piece).unwrap_or_default();
        }
        values
    };
    let occlusion = &explanation.occlusion;
    let value = occluded(&|piece| Some(occlusion.q - piece.q?));
    let mv = occluded(&|piece| Some((occlusion.prior / piece.prior?).ln()));
    let gradients = &explanation.gradients;
    let single = |board: String| document(&[(String::new(), board)]);
    let mut found = vec![("position".to_owned(), single(position(&board, explanation)))];
    for (name, values) in [
        ("occlusion-value", &value[..]),
        ("occlusion-move", &mv[..]),
        ("gradients-value", &gradients.value.squares),
        ("gradients-move", &gradients.mv.squares),
    ] {
        found.push((name.to_owned(), single(shaded(&board, values, None))));
    }
    let from = explanation.moves[explanation.chosen].from;
    let layers = explanation.attention.iter().flat_map(|it| &it.layers);
    for (layer, maps) in (1..).zip(layers) {
        let heads = maps.weights.iter().enumerate().map(|(head, map)| {
            let shaded = shaded(&board, &map[64 * from..][..64], Some(from));
            (format!("layer {layer}, head {}", head + 1), shaded)
        });
        let picture = document(&heads.collect::<Vec<_>>());
        found.push((format!("attention-layer-{layer}"), picture));
    }
    let named = found.into_iter();
    named
        .map(|(name, text)| (format!("{name}.svg"), text))
        .collect()
}

/// Returns an SVG document of boards with captions, arranged in rows.
fn document(boards: &[(String, String)]) -> String {
    let side = 8 * SIDE;
    let has_captions = boards.iter().any(|(caption, _)| !caption.is_empty());
    let below = if has_captions { CAPTION } else { 0 };
    let columns = boards.len().clamp(1, COLUMNS);
    let rows = boards.len().div_ceil(columns);
    let (width, height) = (columns * (side + GAP) - GAP, rows * (side + below));
    let mut content = String::new();
    for (number, (caption, board)) in boards.iter().enumerate() {
        let (x, y) = (
            number % columns * (side + GAP),
            number / columns * (side + below),
        );
        let _ = writeln!(content, "<g transform=\"translate({x} {y})\">\n{board}");
        if has_captions {
            let baseline = side + 2 * CAPTION / 3;
            let _ = writeln!(
                content,
                "<text y=\"{baseline}\" font-family=\"sans-serif\" font-size=\"15\" \
                 fill=\"#6a6f78\">{caption}</text>"
            );
        }
        content.push_str("</g>\n");
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\">\n<defs>\n{PIECES}</defs>\n{content}</svg>\n"
    )
}

/// Returns the coordinates of a square's left and top edges, with White at the bottom.
fn corner(square: usize) -> (usize, usize) {
    (SIDE * (square % 8), SIDE * (7 - square / 8))
}

/// Draws a board whose squares are shaded by values. One square may be framed.
fn shaded(board: &Board, values: &[f32], marked: Option<usize>) -> String {
    let most = values
        .iter()
        .fold(f32::MIN_POSITIVE, |most, value| most.max(value.abs()));
    let mut text = String::new();
    for square in Square::ALL {
        let (x, y) = corner(usize::from(square));
        let fill = if square.is_light() {
            "#f3f0e9"
        } else {
            "#d5cfc2"
        };
        let value = values[usize::from(square)];
        let share = value.abs() / most;
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"{fill}\"/>"
        );
        if share > 0.01 {
            let colour = if value < 0.0 { MINUS } else { PLUS };
            let _ = writeln!(
                text,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"{colour}\" \
                 opacity=\"{:.3}\"/>",
                0.85 * share
            );
            if value < 0.0 {
                let _ = writeln!(
                    text,
                    "<path transform=\"translate({x} {y})\" d=\"M2 20L20 2M2 38L38 2M20 38L38 20\" \
                     stroke=\"{MINUS}\" stroke-width=\"2\" opacity=\"{share:.3}\"/>"
                );
            }
        }
        if let Some(piece) = board.piece_at(square) {
            let fill = match piece.color {
                Color::White => "#ffffff",
                Color::Black => "#3a3a40",
            };
            let _ = writeln!(
                text,
                "<use href=\"#piece-{}\" x=\"{x}\" y=\"{y}\" width=\"{SIDE}\" height=\"{SIDE}\" \
                 fill=\"{fill}\" stroke=\"#1a1a1d\" stroke-width=\"1.3\"/>",
                piece.role.char()
            );
        }
    }
    if let Some(square) = marked {
        let (x, y) = corner(square);
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" \
             stroke=\"#1a1a1d\" stroke-width=\"3\"/>"
        );
    }
    text
}

/// Draws the position with an arrow for each probable move.
fn position(board: &Board, explanation: &Explanation) -> String {
    let mut text = shaded(board, &[0.0; 64], None);
    let probable = explanation
        .moves
        .iter()
        .filter(|mv| mv.prior >= LEAST_PRIOR);
    for mv in probable {
        let middle = |square| {
            let (x, y) = corner(square);
            ((x + SIDE / 2) as f32, (y + SIDE / 2) as f32)
        };
        let ((x, y), (to_x, to_y)) = (middle(mv.from), middle(mv.to));
        let (right, down) = (to_x - x, to_y - y);
        // `hypot` is avoided, because it would be our only function that requires glibc 2.35.
        let length = (right * right + down * down).sqrt().max(1.0);
        let (dx, dy) = (right / length, down / length);
        let (half, tip) = (1.0 + 4.0 * mv.prior.sqrt(), length - 4.0);
        let (head, neck) = (half + 5.0, tip - 1.4 * (half + 5.0));
        let corners = [
            (8.0, half),
            (neck, half),
            (neck, head),
            (tip, 0.0),
            (neck, -head),
            (neck, -half),
            (8.0, -half),
        ];
        let points = corners.map(|(along, across)| {
            let (x, y) = (x + dx * along - dy * across, y + dy * along + dx * across);
            format!("{x:.1},{y:.1}")
        });
        let _ = writeln!(
            text,
            "<polygon points=\"{}\" fill=\"{PLUS}\" opacity=\"{:.3}\"/>",
            points.join(" "),
            0.35 + 0.5 * mv.prior
        );
    }
    text
}
