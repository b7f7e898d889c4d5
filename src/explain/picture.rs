//! Boards as SVG files, in colours for the colour-blind and for print: blue is much or
//! for, hatched orange against.

use super::Explanation;
use shakmaty::{Board, Color, Square};
use std::fmt::Write;

/// Symbols `piece-p` to `piece-k`, drawn for this program.
pub(super) const PIECES: &str = include_str!("pieces.svg");

/// Side of a square.
const SIDE: usize = 40;
/// Moves below this probability have no arrow.
const LEAST_PRIOR: f32 = 0.03;
/// Boards in a row of small multiples.
const COLUMNS: usize = 4;

const PLUS: &str = "#0072b2";
const MINUS: &str = "#d55e00";

/// The pictures of an explanation, with the names of their files: the position with
/// the policy's arrows, the four attributions, and for each layer what the square of
/// the explained move attends to by head.
#[must_use]
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
    let mut found = vec![(
        "position".to_owned(),
        document(1, 1, &position(&board, explanation)),
    )];
    for (name, values) in [
        ("occlusion-value", &value[..]),
        ("occlusion-move", &mv[..]),
        ("gradients-value", &gradients.value.squares),
        ("gradients-move", &gradients.mv.squares),
    ] {
        found.push((name.to_owned(), document(1, 1, &shaded(&board, values))));
    }
    let from = explanation.moves[explanation.chosen].from;
    let layers = explanation.attention.iter().flat_map(|it| &it.layers);
    for (number, layer) in layers.enumerate() {
        let mut boards = String::new();
        for (head, map) in layer.weights.iter().enumerate() {
            let (column, row) = (head % COLUMNS, head / COLUMNS);
            let step = 8 * SIDE + SIDE / 2;
            let shaded = shaded(&board, &map[64 * from..][..64]);
            let _ = write!(
                boards,
                "<g transform=\"translate({} {})\">{shaded}</g>\n",
                column * step,
                row * step
            );
        }
        let heads = layer.weights.len();
        let picture = document(heads.min(COLUMNS), heads.div_ceil(COLUMNS), &boards);
        found.push((format!("attention-layer-{}", number + 1), picture));
    }
    let named = found.into_iter();
    named
        .map(|(name, text)| (format!("{name}.svg"), text))
        .collect()
}

/// An SVG document for so many boards side by side and below each other.
fn document(columns: usize, rows: usize, content: &str) -> String {
    let side = |boards: usize| boards * 8 * SIDE + (boards - 1) * SIDE / 2;
    let (width, height) = (side(columns.max(1)), side(rows.max(1)));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\">\n<defs>\n{PIECES}</defs>\n{content}</svg>\n"
    )
}

/// Left and upper edge of a square, White below.
fn corner(square: usize) -> (usize, usize) {
    (SIDE * (square % 8), SIDE * (7 - square / 8))
}

/// A board whose squares are shaded by numbers.
fn shaded(board: &Board, values: &[f32]) -> String {
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
    text
}

/// The position with an arrow for each probable move.
fn position(board: &Board, explanation: &Explanation) -> String {
    let mut text = shaded(board, &[0.0; 64]);
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
        let length = (to_x - x).hypot(to_y - y).max(1.0);
        let (dx, dy) = ((to_x - x) / length, (to_y - y) / length);
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
