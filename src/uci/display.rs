//! `d`: displays the position for people.

use crate::chess::{Game, fen};
use shakmaty::{Color, Position, Rank, Square};

/// Returns the board from White's side, followed by the FEN, the key, the checkers, and the legal
/// moves.
pub(crate) fn display(game: &Game) -> String {
    const RULE: &str = " +---+---+---+---+---+---+---+---+\n";
    let position = game.position();
    let mut text = String::from(RULE);
    for rank in Rank::ALL.into_iter().rev() {
        for square in Square::ALL
            .into_iter()
            .filter(|square| square.rank() == rank)
        {
            let piece = position.board().piece_at(square);
            text.push_str(&format!(" | {}", piece.map_or(' ', |piece| piece.char())));
        }
        text.push_str(&format!(" | {}\n{RULE}", rank.char()));
    }
    text.push_str("   a   b   c   d   e   f   g   h\n\n");

    let fen = fen(position);
    let checkers = position.checkers().into_iter();
    let moves = position.legal_moves();
    let moves = moves.iter().map(|&mv| game.format_move(mv));
    let turn = match position.turn() {
        Color::White => "White",
        Color::Black => "Black",
    };
    text.push_str(&format!(
        "Fen: {fen}\nKey: {:016X}\nTo move: {turn}\nRepetitions: {}\nCheckers:{}\nLegal moves:{}\n",
        game.current().key,
        game.current().repetitions,
        listed(checkers.map(|square| square.to_string())),
        listed(moves),
    ));
    if let Some(ending) = game.ending() {
        text.push_str(&format!("Ended: {ending:?}\n"));
    }
    text
}

fn listed(words: impl Iterator<Item = String>) -> String {
    words.map(|word| format!(" {word}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakmaty::CastlingMode;

    #[test]
    fn the_board_and_what_goes_with_it_are_shown() {
        let text = display(&Game::default());
        assert!(text.contains(" | r | n | b | q | k | b | n | r | 8\n"));
        assert!(text.contains("Fen: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n"));
        assert!(text.contains("Checkers:\n"));
        let moves = text
            .lines()
            .find_map(|line| line.strip_prefix("Legal moves:"))
            .unwrap();
        assert_eq!(moves.split_whitespace().count(), 20);

        let mate =
            Game::from_fen("R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1", CastlingMode::Standard).unwrap();
        let text = display(&mate);
        assert!(
            text.contains("Checkers: a8\nLegal moves:\nEnded: Checkmate\n"),
            "{text}"
        );
    }
}
