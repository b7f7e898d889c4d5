use super::*;
use crate::data::Curve;
use crate::data::label::EvalRefersTo;
use crate::data::pgn::parse_game;
use crate::encode::{Input, policy_index};
use shakmaty::Color;

const RULES: TargetRules = TargetRules {
    evals: Some(EvalRefersTo::MovePlayed),
    played: false,
    noise: false,
    curve: Curve::Lichess,
    alternatives: None,
};

fn examples(pgn: &str, plies: usize) -> Vec<Unrolled> {
    let unroll = UnrollExamples {
        format: InputFormat::Classical,
        plies,
    };
    let record = parse_game(pgn.as_bytes()).unwrap();
    let mut found = Vec::new();
    unroll
        .of_record(&record, &RULES, || true, |example| found.push(example))
        .unwrap();
    found
}

fn columns(examples: &[Unrolled]) -> UnrollColumns {
    let mut columns = UnrollColumns::default();
    examples.iter().for_each(|example| columns.push(example));
    columns
}

/// Returns the positions of a game, and the game's moves as policy indices.
fn play(moves: &str) -> (Vec<Game>, Vec<i64>) {
    let mut game = Game::default();
    let (mut games, mut entries) = (vec![game.clone()], Vec::new());
    for mv in moves.split_whitespace() {
        let mv = game.parse_move(mv).unwrap();
        entries.push(policy_index(mv, game.position().turn()).into());
        game.play(mv);
        games.push(game.clone());
    }
    (games, entries)
}

const MATE: &str = "[Result \"0-1\"]\n\n1. f3 {[%eval 0.1]} 1... e5 (1... d5 {[%eval -0.2]} \
                    2. d4) (1... c5 {[%eval -0.9]}) 2. g4 {[%eval -0.3]} 2... Qh4# 0-1";

#[test]
fn games_are_followed_to_their_end_and_beyond() {
    let examples = examples(MATE, 3);
    let columns = columns(&examples);
    // The last positions of the game also get an example of full length.
    assert_eq!((columns.len(), columns.moments.len()), (4, 16));
    let (games, entries) = play("f2f3 e7e5 g2g4 d8h4");
    for (first, example) in examples.iter().enumerate() {
        for ply in 0..=3 {
            let place = first + ply;
            let (moment, sample, played) = example.at(ply);
            assert_eq!(sample.input, Input::encode(&games[place.min(4)]));
            let expected = match place {
                0..4 => Moment::Playing,
                4 => Moment::Over,
                _ => Moment::Gone,
            };
            assert_eq!(moment, expected, "{first} {ply}");
            let entry = entries.get(place).map(|&entry| entry as u16);
            assert_eq!(played, entry);
            let at = first * 4 + ply;
            let weight = columns.positions.weight[at];
            assert_eq!(weight, if place > 4 { 0.0 } else { 1.0 });
            let q = columns.positions.q[at];
            match place {
                // Checkmate.
                4 => assert_eq!((q, columns.positions.result[at]), (-1.0, 2)),
                _ => assert!(place < 3 || q.is_nan() || place > 4),
            }
            if ply < 3 {
                let mv = columns.moves[first * 3 + ply];
                assert_eq!(mv, entries.get(place).copied().unwrap_or(0));
            }
        }
    }
    // Black's first move is not a target, but the first variation that replaces it is.
    let (_, sample, _) = examples[1].at(0);
    let mv = games[1].parse_move("d7d5").unwrap();
    assert_eq!(sample.policy, Policy::Move(policy_index(mv, Color::Black)));
    assert_eq!(sample.q, Some(-Curve::Lichess.q(-20)));
    let (_, sample, _) = examples[3].at(0);
    assert_eq!((&sample.policy, sample.q), (&Policy::Unknown, None));
    let (_, sample, _) = examples[2].at(0);
    let legal = games[2].position().legal_moves();
    assert_eq!(sample.legal, Legal::of(&legal, Color::White));
}

#[test]
fn games_that_break_off_are_unknown_from_there() {
    let examples = examples("1. e4 e5 2. Nf3 *", 2);
    let moments = |example: &Unrolled| [0, 1, 2].map(|ply| example.at(ply).0);
    use Moment::{Playing, Unknown};
    assert_eq!(moments(&examples[0]), [Playing; 3]);
    assert_eq!(moments(&examples[2]), [Playing, Playing, Unknown]);
    // At the last position of an aborted game, the game has not ended.
    let (_, last, played) = examples[2].at(1);
    assert_eq!((last.legal.count(), played), (29, None));
    let columns = columns(&examples[2..]);
    assert_eq!(columns.positions.weight, [1.0, 1.0, 0.0]);
    assert!(columns.positions.q.iter().all(|q| q.is_nan()));
}

#[test]
fn draws_by_the_rules_are_ends() {
    let stalemate = "[SetUp \"1\"]\n[FEN \"7k/8/5KQ1/8/8/8/8/8 w - - 0 1\"]\n\n1. Qf7 1/2-1/2";
    let threefold = "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 1/2-1/2";
    for pgn in [stalemate, threefold] {
        let examples = examples(pgn, 1);
        let (moment, sample, _) = examples.last().unwrap().at(1);
        assert_eq!((moment, sample.q), (Moment::Over, Some(0.0)), "{pgn}");
        assert_eq!(sample.result, Some(Wdl::Draw));
        let (moment, ..) = examples[0].at(0);
        assert_eq!(moment, Moment::Playing);
    }
}

#[test]
fn parts_are_the_batch() {
    let examples = examples(MATE, 3);
    let whole = columns(&examples);
    let parts = [whole.part(0..1), whole.part(1..4)];
    assert_eq!(parts.each_ref().map(Columns::len), [1, 3]);
    let joined = parts.iter().flat_map(|part| part.moves.clone());
    assert_eq!(joined.collect::<Vec<i64>>(), whole.moves);
    let joined = parts.iter().flat_map(|part| part.positions.inputs.clone());
    assert_eq!(joined.collect::<Vec<Input>>(), whole.positions.inputs);
    let joined = parts.iter().flat_map(|part| part.moments.clone());
    assert_eq!(joined.collect::<Vec<Moment>>(), whole.moments);
}
