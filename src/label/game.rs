//! Labels one game, by playing it or by scoring its positions.

use super::analyst::Analyst;
use super::sampler::SampledGame;
use super::source::Subject;
use super::{LabelError, Play, SampledGames};
use crate::adjudication::{Adjudication, GameEnd};
use crate::chess::Game;
use crate::data::pgn::{AnnotatedGame, GameError, Judged, LABELLED, parse_game, tags};
use crate::data::record::Eval;
use crate::data::replay::{ReplayError, main_line};
use crate::openings::{generator, position};
use rand::Rng;
use rand::seq::IndexedRandom;
use shakmaty::{Move, Position};

/// A mate in centipawns: more than any other score.
const MATE: i32 = 1 << 20;

/// Labels a game or position. The inner error explains why there is nothing to label.
pub(super) fn label(
    subject: &Subject<'_>,
    number: u64,
    seed: u64,
    analyst: &mut Analyst<'_>,
) -> Result<Result<AnnotatedGame, String>, LabelError> {
    let mut random = generator(seed, number);
    analyst.new_game();
    match subject {
        Subject::Play(rules) => match rules.openings.game(number) {
            Ok(opening) => play(opening, rules, &mut random, analyst).map(Ok),
            Err(error) => Ok(Err(error.to_string())),
        },
        Subject::Position(line, name) => match position(line) {
            Ok(game) if game.position().legal_moves().is_empty() => {
                Ok(Err(format!("{name}: there is no legal move")))
            }
            Ok(game) => solve(game, analyst).map(Ok),
            Err(error) => Ok(Err(format!("{name}: {error}"))),
        },
        Subject::Game(text, share, name) => match read(text) {
            Ok(game) => annotate(game, *share, &mut random, analyst).map(Ok),
            Err(error) => Ok(Err(format!("{name}: {error}"))),
        },
    }
}

/// Scores every position of a sampled game after its opening, if the plan requires it.
pub(super) fn judge(
    sampled: SampledGame,
    plan: &SampledGames,
    analyst: &mut Analyst<'_>,
) -> Result<AnnotatedGame, LabelError> {
    let adjudication = &plan.adjudication;
    if !plan.judged {
        let end = adjudication.verdict(&sampled.game, &[]);
        return Ok(AnnotatedGame {
            tags: sampled.tags,
            ..AnnotatedGame::new(sampled.game, Vec::new(), end.and_then(GameEnd::result))
        });
    }
    analyst.new_game();
    let mut game = sampled.game;
    let moves: Vec<Move> = game.plies().iter().filter_map(|ply| ply.played).collect();
    game.truncate(sampled.opening + 1);
    let mut moves = moves.into_iter().skip(sampled.opening);
    let next = |_: &Game, _: &[Judged]| moves.next();
    let mut judged = play_on(game, adjudication, next, analyst)?;
    judged.tags = sampled.tags;
    Ok(judged)
}

/// Plays a game from its opening to its end.
fn play(
    game: Game,
    rules: &Play,
    random: &mut impl Rng,
    analyst: &mut Analyst<'_>,
) -> Result<AnnotatedGame, LabelError> {
    let next = |game: &Game, judged: &[Judged]| {
        // If the engine failed, there is no move to play, and the game ends.
        let best = judged.first()?.moves[0];
        match random.random_bool(rules.random_moves) {
            true => game.position().legal_moves().choose(random).copied(),
            false => Some(best),
        }
    };
    let mut played = play_on(game, &rules.adjudication, next, analyst)?;
    if let Some(engine) = analyst.engine() {
        let players = ["White", "Black"].map(|tag| (tag.to_owned(), engine.to_owned()));
        played.tags.extend(players);
    }
    Ok(played)
}

/// Scores each position and plays the move that `next` returns, until the game is over or `next`
/// returns no move.
fn play_on(
    mut game: Game,
    adjudication: &Adjudication,
    mut next: impl FnMut(&Game, &[Judged]) -> Option<Move>,
    analyst: &mut Analyst<'_>,
) -> Result<AnnotatedGame, LabelError> {
    let mut judged = vec![Vec::new(); game.plies().len() - 1];
    let mut scores = Vec::new();
    let result = loop {
        if let Some(end) = adjudication.verdict(&game, &scores) {
            break end.result();
        }
        let lines = analyst.judge(&game)?;
        let Some(mv) = next(&game, &lines) else {
            break None;
        };
        // A position on which the engine failed counts as even.
        scores.push(lines.first().map_or(0, |best| centipawns(best.eval)));
        game.play(mv);
        judged.push(lines);
    };
    Ok(AnnotatedGame::new(game, judged, result))
}

/// Plays the best move of a position.
fn solve(mut game: Game, analyst: &mut Analyst<'_>) -> Result<AnnotatedGame, LabelError> {
    let lines = analyst.judge(&game)?;
    if let Some(best) = lines.first() {
        game.play(best.moves[0]);
    }
    Ok(AnnotatedGame::new(game, vec![lines], None))
}

/// Scores a share of the positions of a finished game.
fn annotate(
    mut annotated: AnnotatedGame,
    share: f64,
    random: &mut impl Rng,
    analyst: &mut Analyst<'_>,
) -> Result<AnnotatedGame, LabelError> {
    let mut game = annotated.game.clone();
    let moves: Vec<_> = game.plies().iter().filter_map(|ply| ply.played).collect();
    game.truncate(1);
    for mv in moves {
        annotated.judged.push(match random.random_bool(share) {
            true => analyst.judge(&game)?,
            false => Vec::new(),
        });
        game.play(mv);
    }
    Ok(annotated)
}

/// Parses a finished game with its tags, except for the tags of an earlier labelling.
fn read(text: &[u8]) -> Result<AnnotatedGame, Unreadable> {
    let record = parse_game(text)?;
    let mut tags = tags(text);
    tags.retain(|(name, _)| !LABELLED.contains(&name.as_str()));
    Ok(AnnotatedGame {
        tags,
        ..AnnotatedGame::new(main_line(&record)?, Vec::new(), record.result)
    })
}

/// Why a game cannot be annotated.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum Unreadable {
    Parse(#[from] GameError),
    Replay(#[from] ReplayError),
}

fn centipawns(eval: Eval) -> i32 {
    match eval {
        Eval::Centipawns(centipawns) => centipawns.into(),
        Eval::Mate(moves) => MATE * i32::from(moves.signum()),
    }
}
