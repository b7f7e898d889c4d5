//! Positions from games and the network that reads them, for commands that look into networks.

use anyhow::{Context, bail};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::path::{Path, PathBuf};
use tessera::backend::CodeArguments;
use tessera::chess::Game;
use tessera::data::pgn;
use tessera::data::replay::main_line;
use tessera::inference;
use tessera::network::{self, Network};

/// Number of positions that [`spread`] takes from a game.
const PER_GAME: usize = 8;
/// One game in this many is held out.
const HELD_OUT: usize = 10;
/// Minimum number of positions of [`one_each`], which are averaged.
const LEAST: usize = 2;
/// Seed of the positions that [`one_each`] takes.
const SEED: u64 = 1;

/// Opens a network. `None` means the built-in network.
pub fn open(net: Option<&Path>, code: &CodeArguments) -> anyhow::Result<Network> {
    let shown = net.map_or("the network built in".to_owned(), |net| {
        net.display().to_string()
    });
    let file = inference::read_network(net)?;
    network::open(&file, code.policy()).with_context(|| format!("cannot open {shown}"))
}

/// Returns at least `limit` training positions, eight from each game evenly spread over it, as far
/// as there are games, and held-out positions of every tenth game.
///
/// # Errors
/// If a game cannot be read, or if the games or the limit leave no game to hold out.
pub fn spread(files: &[PathBuf], limit: usize) -> anyhow::Result<[Vec<Game>; 2]> {
    let mut sampled = [Vec::new(), Vec::new()];
    let mut number = 0;
    for path in files {
        for game in games(path)? {
            if sampled[0].len() >= limit {
                if sampled.iter().any(Vec::is_empty) {
                    bail!(
                        "--limit {limit} is reached before a game is held out: raise it to {} or more",
                        (HELD_OUT - 1) * PER_GAME + 1
                    );
                }
                return Ok(sampled);
            }
            let game = game?;
            number += 1;
            let plies = game.plies().len();
            let count = PER_GAME.min(plies - 1);
            let part = usize::from(number % HELD_OUT == 0);
            // The first position is excluded.
            let places = (1..=count).map(|place| 1 + place * (plies - 1) / count);
            sampled[part].extend(places.map(|plies| truncated(&game, plies)));
        }
    }
    match sampled.iter().any(Vec::is_empty) {
        true => bail!("there are too few games: at least {HELD_OUT} are needed"),
        false => Ok(sampled),
    }
}

/// Returns one random position of each of the first `limit` games. Positions without a legal move
/// are excluded, and so is the first position.
///
/// # Errors
/// If a game cannot be read, or if the games or the limit allow fewer than two positions.
pub fn one_each(files: &[PathBuf], limit: usize) -> anyhow::Result<Vec<Game>> {
    if limit < LEAST {
        bail!("--limit {limit} is too small: at least {LEAST} positions are needed");
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut sampled = Vec::new();
    for path in files {
        for game in games(path)? {
            if sampled.len() >= limit {
                return Ok(sampled);
            }
            let mut game = game?;
            if game.ending().is_some() {
                game.truncate(game.plies().len() - 1);
            }
            let plies = game.plies().len();
            if plies > 1 {
                sampled.push(truncated(&game, random.random_range(2..=plies)));
            }
        }
    }
    match sampled.len() {
        count if count < LEAST => bail!("there are too few games: at least {LEAST} are needed"),
        _ => Ok(sampled),
    }
}

fn truncated(game: &Game, plies: usize) -> Game {
    let mut game = game.clone();
    game.truncate(plies);
    game
}

/// Returns the main lines of a file's games.
fn games(path: &Path) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Game>>> {
    let shown = path.display().to_string();
    let games = pgn::open(path, |file| file).with_context(|| format!("cannot read {shown}"))?;
    Ok(games.map(move |text| {
        let text = text.with_context(|| format!("cannot read {shown}"))?;
        let which = || format!("{shown}, {}", text.place);
        let record = pgn::parse_game(&text).with_context(which)?;
        main_line(&record).with_context(which)
    }))
}
