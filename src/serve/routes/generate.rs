//! `/v1/generate`: games written by a move-token model.

use crate::chess::{Ending, Game, Ratings};
use crate::data::pgn::AnnotatedGame;
use crate::data::sample::Wdl;
use crate::encode::Encoder;
use crate::generate::{Generator, Prompt, Written, WrittenEnd};
use crate::network::gpt::Conditions;
use crate::play::Control;
use crate::serve::access::{Client, OpenStream};
use crate::serve::answer::PlayedMove;
use crate::serve::body::Body;
use crate::serve::media::{JSON, PGN, preferred};
use crate::serve::networks::{Loaded, Networks};
use crate::serve::problem::Problem;
use crate::serve::request::{GameResult, GenerateRequest, Writing};
use crate::serve::state::State;
use crate::serve::stream::{self, EVENTS, Format, NDJSON, Piece};
use axum::Json;
use axum::extract::{Extension, State as Shared};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use rand::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
#[cfg(test)]
use utoipa::ToSchema;

/// Games written side by side: few, so that the first ones arrive sooner.
const SIDE_BY_SIDE: usize = 8;

/// A written game.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct WrittenGame {
    /// Its number, from 1.
    number: usize,
    moves: Vec<PlayedMove>,
    /// `1-0`, `1/2-1/2` or `0-1`, if the game reached a result.
    #[cfg_attr(test, schema(value_type = Option<String>))]
    result: Option<&'static str>,
    /// Its ending: `mate`, `drawn`, `resigned`, `agreed`, `illegal` or `unfinished`.
    #[cfg_attr(test, schema(value_type = String))]
    end: &'static str,
    /// The game as PGN.
    pgn: String,
}

/// The written games.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct WrittenGames {
    /// The network's name.
    network: String,
    /// The same seed writes the same games.
    seed: u64,
    games: Vec<WrittenGame>,
}

/// A line of a stream of games.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(tag = "event", rename_all = "lowercase")]
pub(in crate::serve) enum GameUpdate {
    /// A game.
    Game(WrittenGame),
    /// Why the games end here: the last line.
    Error(Problem),
}

impl Piece for GameUpdate {
    fn name(&self) -> &'static str {
        match self {
            GameUpdate::Game(_) => "game",
            GameUpdate::Error(_) => "error",
        }
    }
}

/// Writes games with a network of the family gpt, as JSON or, by `Accept:
/// application/x-chess-pgn`, as PGN. `text/event-stream` and `application/x-ndjson` stream each
/// game when it is finished, and so does PGN. Writing stops when the client leaves.
#[cfg_attr(test, utoipa::path(post, path = "/v1/generate", request_body = GenerateRequest, responses(
    (status = 200, description = "The games, or a stream of them", content(
        (WrittenGames = "application/json"),
        (String = "application/x-chess-pgn"),
        (GameUpdate = "application/x-ndjson"),
        (GameUpdate = "text/event-stream"),
    )),
)))]
pub(in crate::serve) async fn generate(
    Shared(state): Shared<Arc<State>>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
    Body(request): Body<GenerateRequest>,
) -> Result<Response, Problem> {
    let mut writing = request.writing(&state.config)?;
    if writing.seed == 0 {
        writing.seed = rand::rng().next_u64() >> 11;
    }
    let networks = state.networks()?.clone();
    let network = writer(&networks, writing.network.as_deref())?;
    let properties = network.backend.properties();
    if let Encoder::Moves(encoder) = &properties.encoder {
        let told = encoder.encode(&writing.game, &mut Vec::new());
        told.map_err(|error| Problem::field("moves", error.to_string()))?;
    }
    let (name, seed) = (properties.name.clone(), writing.seed);
    let kind = preferred(&headers, &[JSON, PGN, NDJSON, EVENTS]);
    let open = match kind {
        JSON => None,
        _ => Some(state.access.open_stream(&client)?),
    };
    let games = ReceiverStream::new(write(&state, networks.clone(), writing, open)?);
    let beat = state.config.limits.beat();
    if kind == PGN {
        let games = games.map(|game| match game {
            Ok(game) => Ok(game.pgn),
            // PGN cannot express it.
            Err(problem) => Err(format!("{problem:?}")),
        });
        return Ok(stream::text(PGN, games, beat));
    }
    if let Some(format) = Format::of(kind) {
        let games = games.map(|game| match game {
            Ok(game) => GameUpdate::Game(game),
            Err(problem) => GameUpdate::Error(problem),
        });
        return Ok(format.respond(games, beat));
    }
    let games: Result<Vec<WrittenGame>, Problem> = games.collect().await;
    let games = WrittenGames {
        network: name,
        seed,
        games: games?,
    };
    Ok(Json(games).into_response())
}

/// Returns the network that writes.
fn writer<'a>(networks: &'a Networks, name: Option<&str>) -> Result<&'a Loaded, Problem> {
    match name {
        Some(name) => networks.named(name)?.that_writes(),
        None => networks.of_family("gpt").ok_or_else(|| {
            let detail =
                "no network here writes games: start the server with --also and one of the family gpt";
            Problem::field("network", detail)
        }),
    }
}

/// Writes games on its own thread, once it has a slot and while the client listens.
fn write(
    state: &State,
    networks: Arc<Networks>,
    writing: Writing,
    open: Option<OpenStream>,
) -> Result<mpsc::Receiver<Result<WrittenGame, Problem>>, Problem> {
    let place = state.players.places.enter()?;
    let (control, stop) = state.control();
    // A slow reader does not hold the slot.
    let (games, taken) = mpsc::channel(writing.games);
    tokio::spawn(async move {
        let place = tokio::select! {
            place = place => place,
            () = games.closed() => return,
        };
        let last_word = games.clone();
        let written = match place {
            Ok(place) => spawn_blocking(move || {
                let _held = (place, open, stop);
                write_all(&networks, &writing, &control, &games);
            })
            .await
            .map_err(|_| Problem::internal("a mistake in the program; please report it")),
            Err(problem) => Err(problem),
        };
        if let Err(problem) = written {
            let _ = last_word.send(Err(problem)).await;
        }
    });
    Ok(taken)
}

/// Forwards games as they are written.
fn write_all(
    networks: &Networks,
    writing: &Writing,
    control: &Control,
    games: &mpsc::Sender<Result<WrittenGame, Problem>>,
) {
    let numbers: Vec<usize> = (1..=writing.games).collect();
    for numbers in numbers.chunks(SIDE_BY_SIDE) {
        if control.stopped() || games.is_closed() {
            return;
        }
        let network = writer(networks, writing.network.as_deref());
        let written = network.and_then(|network| {
            let name = &network.backend.properties().name;
            network.generate(|generator| some(generator, writing, numbers, name))
        });
        let written = match written {
            Ok(written) => written.into_iter().map(Ok).collect(),
            Err(problem) => vec![Err(problem)],
        };
        let is_over = written.iter().any(Result::is_err);
        for game in written {
            if games.blocking_send(game).is_err() {
                return;
            }
        }
        if is_over {
            return;
        }
    }
}

/// Returns the games of these numbers.
fn some(
    generator: &Generator,
    writing: &Writing,
    numbers: &[usize],
    name: &str,
) -> Result<Vec<WrittenGame>, Problem> {
    let prompts = numbers.iter().map(|&number| Prompt {
        game: writing.game.clone(),
        conditions: Conditions {
            ratings: Ratings {
                white: writing.white_elo,
                black: writing.black_elo,
            },
            result: writing.result.map(GameResult::outcome),
        },
        random: Xoshiro256PlusPlus::seed_from_u64(
            writing.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number as u64,
        ),
    });
    let written = generator.write(prompts.collect(), &writing.sampling);
    let written = written.map_err(|error| Problem::field("moves", error.to_string()))?;
    let written = numbers.iter().zip(written);
    Ok(written
        .map(|(&number, written)| tell(written, number, writing, name))
        .collect())
}

fn tell(written: Written, number: usize, writing: &Writing, name: &str) -> WrittenGame {
    let result = written.result();
    let (end, termination) = match &written.end {
        WrittenEnd::Rules(Ending::Checkmate) => ("mate", "normal"),
        WrittenEnd::Rules(_) => ("drawn", "normal"),
        WrittenEnd::Said(end) if end.winner().is_some() => ("resigned", "normal"),
        WrittenEnd::Said(_) => ("agreed", "normal"),
        WrittenEnd::Illegal(_) => ("illegal", "rules infraction"),
        WrittenEnd::Unfinished => ("unfinished", "unterminated"),
    };
    let comment = match &written.end {
        WrittenEnd::Illegal(text) => Some(format!("illegal: {text}")),
        _ => None,
    };
    let mut tags = vec![
        ("Event", format!("{name}, seed {}", writing.seed)),
        ("Round", number.to_string()),
        ("White", name.to_owned()),
        ("Black", name.to_owned()),
    ];
    let ratings = [
        ("WhiteElo", writing.white_elo),
        ("BlackElo", writing.black_elo),
    ];
    tags.extend(
        ratings
            .into_iter()
            .filter_map(|(tag, elo)| Some((tag, elo?.to_string()))),
    );
    tags.push(("Termination", termination.to_owned()));
    let moves = moves(&written.game);
    let annotated = AnnotatedGame {
        game: written.game,
        judged: Vec::new(),
        result,
        comment,
        tags: tags
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    };
    WrittenGame {
        number,
        moves,
        result: result.map(|result| match result {
            Wdl::Win => "1-0",
            Wdl::Draw => "1/2-1/2",
            Wdl::Loss => "0-1",
        }),
        end,
        pgn: annotated.to_pgn(1),
    }
}

/// Returns a game's moves, from its first position.
fn moves(game: &Game) -> Vec<PlayedMove> {
    let plies = game.plies();
    let played = plies.iter().zip(&plies[1..]);
    let played = played.filter_map(|(before, after)| Some((&before.position, after.played?)));
    played
        .map(|(position, mv)| PlayedMove::of(game, position, mv))
        .collect()
}
