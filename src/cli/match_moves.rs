//! `tessera match-moves`: compares networks' predictions with the moves that people played.

use super::output::{print, print_json};
use anyhow::Context;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tessera::agent::{AgentKind, Options};
use tessera::backend::{Backend, BackendOptions};
use tessera::chess::weights_near;
use tessera::command_line::{BackendArguments, DeviceArguments, network_file, number_that};
use tessera::encode::Encoder;
use tessera::error_report::tell;
use tessera::eval::move_match::{
    Answer, Band, Difference, Estimate, Evaluator, HABIT_NAMES, Interval, Position, Positions,
    Prediction, Respondent, Sampler, Score, Selection, Uncorrected, ask, by_band, compare, list,
    read, samples, score,
};
use tessera::inference;
use tessera::search::Parameters;
use tessera::{output, overwrite, progress};

/// Memory for the search tree of one player in MiB, enough for more nodes than any level uses.
const HASH: usize = 16;
/// Name of the column for the network whose rating is nearest to the player's.
const NEAREST: &str = "nearest by rating";
/// Name of the column for the mean over networks with ratings similar to the player's.
const ENSEMBLE: &str = "ensemble by rating";

/// Measure how well networks predict human moves and results, by rating
///
/// For each band of the mover's rating, the table shows how often the policy's likeliest move was
/// played, the log-loss of the played move, the expected calibration error of the likeliest move's
/// probability (15 bins), and the same three figures for the game's result. Further tables compare how
/// often people give mate in one, allow it, or leave a piece to be taken for nothing, with the
/// predicted probability of such moves. Standard errors treat
/// the games as a random sample; differences between networks come with 95 % intervals from a
/// paired bootstrap over games. Networks that read ratings are given both players' ratings.
#[derive(clap::Args)]
pub struct Arguments {
    /// The games: PGN with ratings, plain or compressed with gzip or zstd
    #[arg(value_name = "FILE.pgn")]
    file: PathBuf,
    /// Networks, separated by commas: files, or names such as tessera-s. By default the network
    /// built into the program
    #[arg(long, value_name = "NET", value_delimiter = ',', value_parser = network_file)]
    net: Vec<PathBuf>,
    /// Compare people's moves with those that the agent `human`, including its short search, plays
    /// with each network, instead of with the networks' policies
    #[arg(long)]
    search: bool,
    /// Add a column that evaluates each position with the network whose rating is nearest to the
    /// mover's. Example: maia-1100.pt=1100,maia-1500.pt=1500
    #[arg(long, value_name = "NET=ELO", value_delimiter = ',', value_parser = rated)]
    by_rating: Vec<(PathBuf, u16)>,
    /// Add a column with the mean policy and value of all networks of --by-rating, weighted by a
    /// Gaussian of the distance from the mover's rating. This is its standard deviation in rating
    /// points, such as 200
    #[arg(long, value_name = "POINTS", requires = "by_rating")]
    rating_spread: Option<u32>,
    /// Use only this share of the games, selected by a hash of their moves. A training run whose
    /// `data.validation` is at least as large never trains on them
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    held_out: f64,
    /// Skip this many plies at the beginning of each game
    #[arg(long, value_name = "PLIES", default_value_t = 10)]
    skip_plies: usize,
    /// Leave out the moves of players below this rating
    #[arg(long, default_value_t = 1000, value_name = "ELO")]
    min_elo: u16,
    /// Use at most this many positions of each rating band, sampled uniformly
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Seed of that sampling
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Instead of measuring, print each position with its game so far, as one JSON object per line
    #[arg(long, conflicts_with_all = ["net", "search", "by_rating", "json"])]
    list: bool,
    /// Instead of measuring, write samples for bench/fit-correction from the games outside the share
    /// of --held-out: the network's uncorrected policy and each move's features, one JSON object per
    /// line
    #[arg(long, value_name = "OUT.jsonl", requires = "held_out", conflicts_with_all = ["list", "search", "by_rating", "json"])]
    samples: Option<PathBuf>,
    /// Threads that evaluate; 0 uses the number that suits the network
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    threads: u16,
    #[command(flatten)]
    backend: BackendArguments,
    #[command(flatten)]
    on: DeviceArguments,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn rated(text: &str) -> Result<(PathBuf, u16), String> {
    let usage = || "write the network's file, `=` and a rating, as in maia-1100.pt=1100".to_owned();
    let (path, rating) = text.rsplit_once('=').ok_or_else(usage)?;
    Ok((network_file(path)?, rating.parse().map_err(|_| usage())?))
}

fn share(text: &str) -> Result<f64, String> {
    let rule = "above 0, and at most 1";
    number_that(text, |&share| share > 0.0 && share <= 1.0, rule)
}

/// A column of the comparison: one network for all positions, or a choice among several for each
/// position.
struct Column {
    name: String,
    predictions: Vec<Prediction>,
}

#[derive(Serialize)]
struct Output {
    games_read: usize,
    games_unusable: usize,
    games: usize,
    positions: usize,
    networks: Vec<Measured>,
    differences: Vec<Compared>,
    seconds: f64,
}

#[derive(Serialize)]
struct Measured {
    network: String,
    bands: Vec<Row<Score>>,
}

#[derive(Serialize)]
struct Compared {
    network: String,
    against: String,
    bands: Vec<Row<Difference>>,
}

/// The results for one rating band; `None` stands for all bands.
#[derive(Serialize)]
struct Row<T> {
    band: Option<Band>,
    #[serde(flatten)]
    measured: T,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        let selection = Selection {
            held_out: self.held_out,
            is_training: self.samples.is_some(),
            skip_plies: self.skip_plies,
            lowest: self.min_elo,
            per_band: self.limit,
            seed: self.seed,
        };
        let mut left_out = Vec::new();
        let positions = read(&self.file, &selection, |error| left_out.push(error))?;
        for error in &left_out {
            tell(format_args!("left out: {error}"));
        }
        if self.list {
            return list(&positions)?.iter().try_for_each(print_json);
        }
        if let Some(path) = &self.samples {
            return self.write_samples(&positions, path);
        }
        let clock = Instant::now();
        let columns = self.columns(&positions)?;
        let networks = columns.iter().map(|column| Measured {
            network: column.name.clone(),
            bands: rows(&positions, |places| {
                score(&positions, &column.predictions, places)
            }),
        });
        let (first, others) = columns.split_first().context("there is no network")?;
        let differences = others.iter().map(|other| Compared {
            network: first.name.clone(),
            against: other.name.clone(),
            bands: rows(&positions, |places| {
                compare(&positions, &first.predictions, &other.predictions, places)
            }),
        });
        let output = Output {
            games_read: positions.games_read,
            games_unusable: positions.games_unusable,
            games: positions.games.len(),
            positions: positions.positions.len(),
            networks: networks.collect(),
            differences: differences.collect(),
            seconds: clock.elapsed().as_secs_f64(),
        };
        match self.json {
            true => print_json(&output),
            false => print(&table(&output)?),
        }
    }

    fn write_samples(&self, positions: &Positions, path: &Path) -> anyhow::Result<()> {
        output::check_bytes(path, "samples")?;
        overwrite::refuse(path, [&self.file])?;
        let backend = self.backend(self.net.first().cloned())?;
        let threads = backend.properties().recommended_threads.max(1);
        let evaluators = (0..threads).map(|_| Uncorrected(&*backend)).collect();
        let answers = answers(evaluators, positions, |_| true)?;
        let failed = || format!("cannot write {}", path.display());
        let mut lines = Vec::new();
        samples(positions, &answers, |sample| {
            serde_json::to_writer(&mut lines, &sample).with_context(failed)?;
            lines.push(b'\n');
            anyhow::Ok(())
        })?;
        output::write(path, lines).with_context(failed)
    }

    fn columns(&self, positions: &Positions) -> anyhow::Result<Vec<Column>> {
        let mut columns = Vec::new();
        let built_in = self.net.is_empty() && self.by_rating.is_empty();
        let nets = self.net.iter().cloned().map(Some);
        for net in nets.chain(built_in.then_some(None)) {
            let backend = self.backend(net)?;
            let name = &backend.properties().name;
            let (name, answers) = match self.search {
                true => (
                    format!("{name}, searching"),
                    self.play(positions, &backend)?,
                ),
                false => (name.clone(), self.ask(positions, &*backend, |_| true)?),
            };
            let predictions = answers.iter().map(|(_, answer)| answer.prediction());
            let predictions = predictions.collect();
            columns.push(Column { name, predictions });
        }
        if !self.by_rating.is_empty() {
            columns.extend(self.columns_by_rating(positions)?);
        }
        Ok(columns)
    }

    /// Returns the column of the nearest network and, if requested, the column of the ensemble.
    fn columns_by_rating(&self, positions: &Positions) -> anyhow::Result<Vec<Column>> {
        let ratings: Vec<u16> = self.by_rating.iter().map(|&(_, rating)| rating).collect();
        let mut nearest = vec![Prediction::default(); positions.positions.len()];
        let mut means = vec![Answer::default(); positions.positions.len()];
        for (network, (net, _)) in self.by_rating.iter().enumerate() {
            let is_nearest = |position: &Position| self.nearest(position.rating) == Some(network);
            let wanted = |position: &Position| self.rating_spread.is_some() || is_nearest(position);
            let backend = self.backend(Some(net.clone()))?;
            for (place, answer) in self.ask(positions, &*backend, wanted)? {
                let position = &positions.positions[place];
                if is_nearest(position) {
                    nearest[place] = answer.prediction();
                }
                if let Some(spread) = self.rating_spread {
                    let weights = weights_near(&ratings, position.rating, spread);
                    let share = weights[network] / weights.iter().sum::<f64>();
                    means[place].add(&answer, share as f32);
                }
            }
        }
        let mut columns = vec![Column {
            name: NEAREST.to_owned(),
            predictions: nearest,
        }];
        if self.rating_spread.is_some() {
            columns.push(Column {
                name: ENSEMBLE.to_owned(),
                predictions: means.iter().map(Answer::prediction).collect(),
            });
        }
        Ok(columns)
    }

    /// Returns the index of the network for a player's rating.
    fn nearest(&self, rating: u16) -> Option<usize> {
        let nets = self.by_rating.iter().enumerate();
        let nearest = nets.min_by_key(|(_, (_, of))| of.abs_diff(rating));
        nearest.map(|(place, _)| place)
    }

    fn backend(&self, net: Option<PathBuf>) -> anyhow::Result<Arc<dyn Backend>> {
        Ok(inference::load(&BackendOptions {
            kind: self.backend.backend,
            network: self.on.network(net),
            threads: self.threads.into(),
            ..BackendOptions::default()
        })?)
    }

    /// Returns a network's predictions for the `wanted` positions.
    fn ask(
        &self,
        positions: &Positions,
        backend: &dyn Backend,
        wanted: impl Fn(&Position) -> bool + Sync,
    ) -> anyhow::Result<Vec<(usize, Answer)>> {
        let threads = backend.properties().recommended_threads.max(1);
        let evaluators = (0..threads).map(|_| Evaluator(backend)).collect();
        answers(evaluators, positions, wanted)
    }

    /// Returns the moves of the agent `human`.
    fn play(
        &self,
        positions: &Positions,
        backend: &Arc<dyn Backend>,
    ) -> anyhow::Result<Vec<(usize, Answer)>> {
        let options = Options::from(Parameters {
            hash: HASH,
            ..Parameters::default()
        });
        let agent = || AgentKind::Human.build(backend.clone(), &options);
        let properties = backend.properties();
        // A short search gathers only a few positions at a time, so only many players together fill
        // the batches.
        let count = match properties.encoder {
            Encoder::Nothing => properties.recommended_threads,
            _ => properties.recommended_batch,
        };
        let agents = (0..count.max(1)).map(|_| Sampler(agent())).collect();
        answers(agents, positions, |_| true)
    }
}

/// Collects the answers of the respondents and shows the progress.
fn answers<R: Respondent>(
    respondents: Vec<R>,
    positions: &Positions,
    wanted: impl Fn(&Position) -> bool + Sync,
) -> anyhow::Result<Vec<(usize, Answer)>> {
    let count = positions
        .positions
        .iter()
        .filter(|position| wanted(position));
    let bar = progress::bar(Some(count.count() as u64), "positions");
    let answers = ask(respondents, positions, &wanted, |count| {
        bar.inc(count as u64)
    })?;
    bar.finish_and_clear();
    Ok(answers)
}

fn rows<T>(positions: &Positions, measure: impl FnMut(&[usize]) -> T) -> Vec<Row<T>> {
    let bands = by_band(positions, measure).into_iter();
    bands
        .map(|(band, measured)| Row { band, measured })
        .collect()
}

fn table(output: &Output) -> anyhow::Result<String> {
    let mut text = String::new();
    for Measured { network, bands } in &output.networks {
        writeln!(text, "{network}")?;
        writeln!(
            text,
            "mover      positions    matched, %        log-loss  calibr.     result, %        log-loss  calibr."
        )?;
        for Row { band, measured } in bands {
            writeln!(
                text,
                "{:<9} {:>10}  {}  {}  {:>6.2}%  {}  {}  {:>6.2}%",
                name(*band),
                measured.positions,
                percent(measured.move_match),
                plain(measured.log_loss),
                100.0 * measured.calibration_error,
                percent(measured.result_accuracy),
                plain(measured.result_log_loss),
                100.0 * measured.score_calibration_error,
            )?;
        }
        text.push('\n');
        write_habits(&mut text, bands)?;
    }
    for compared in &output.differences {
        writeln!(text, "{} less {}", compared.network, compared.against)?;
        writeln!(
            text,
            "mover                   matched, %                  log-loss"
        )?;
        for Row { band, measured } in &compared.bands {
            let Interval { mean, low, high } = measured.move_match;
            let [mean, low, high] = [mean, low, high].map(|share| 100.0 * share);
            write!(
                text,
                "{:<9}  {mean:+6.2} ({low:+6.2} … {high:+6.2})",
                name(*band)
            )?;
            let Interval { mean, low, high } = measured.log_loss;
            writeln!(text, "  {mean:+7.4} ({low:+7.4} … {high:+7.4})")?;
        }
        text.push('\n');
    }
    let Output {
        games_read,
        games_unusable,
        games,
        positions,
        seconds,
        ..
    } = output;
    writeln!(
        text,
        "{positions} positions of {games} games; {games_read} were read, {games_unusable} of them unusable; {seconds:.1} s"
    )?;
    Ok(text)
}

/// Writes how often people follow each habit, and how often the network predicts that they do.
fn write_habits(text: &mut String, bands: &[Row<Score>]) -> std::fmt::Result {
    for (place, habit) in HABIT_NAMES.iter().enumerate() {
        writeln!(
            text,
            "{habit}\nmover      positions       people, %    predicted, %      difference"
        )?;
        for Row { band, measured } in bands {
            let of = &measured.habits[place];
            write!(text, "{:<9} {:>10}", name(*band), of.positions)?;
            if of.positions > 0 {
                for estimate in [of.people, of.predicted, of.difference] {
                    write!(text, "  {}", percent(estimate))?;
                }
            }
            text.push('\n');
        }
        text.push('\n');
    }
    Ok(())
}

fn name(band: Option<Band>) -> String {
    match band {
        None => "all".to_owned(),
        Some(Band { from, to: None }) => format!("{from}–"),
        Some(Band { from, to: Some(to) }) => format!("{from}–{to}"),
    }
}

fn percent(estimate: Estimate) -> String {
    let Estimate { mean, error } = estimate;
    format!("{:>6.2} ± {:<5.2}", 100.0 * mean, 100.0 * error)
}

fn plain(estimate: Estimate) -> String {
    let Estimate { mean, error } = estimate;
    format!("{mean:>6.4} ± {error:<6.4}")
}
