//! `tessera-train selfplay`: lets the engine play games against itself.

use super::games::{GamesArguments, RANDOM_PLIES, from_before, share};
use anyhow::Context;
use clap::Args;
use serde::Serialize;
use sha2::{Digest, Sha256};
use shakmaty::Color;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use tessera::backend::BackendOptions;
use tessera::command_line::{BackendArguments, NetworkArguments, name_and_value, number_that};
use tessera::data::pgn::Journal;
use tessera::encode::Encoder;
use tessera::inference;
use tessera::output;
use tessera::player::PlayerSettings;
use tessera::plural::counted;
use tessera::selfplay::{Event, GAMES, HASH, NOISE, SelfPlay, SelfPlaySummary, set_search_options};
use tessera::{overwrite, progress};

/// Number of plies after which a game counts as drawn, as in Lc0's self-play.
const MAX_PLIES: usize = 450;
/// Temperature of the first moves, as in AlphaZero.
const TEMPERATURE: f32 = 1.0;

/// Arguments of `tessera-train selfplay`.
#[derive(Args)]
pub struct SelfPlayCommand {
    /// The folder for the games: one chunk per game (game_000017.gz), and games.pgn. Unfinished
    /// self-play is resumed.
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// Number of games.
    #[arg(long, value_name = "N")]
    limit: u64,
    #[command(flatten)]
    network: NetworkArguments,
    #[command(flatten)]
    backend: BackendArguments,
    /// Threads that evaluate on a CPU; by default one for each processor.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Games in parallel; by default as many as fill the backend's batches.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Root visits per move.
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u64).range(2..))]
    visits: u64,
    /// Number of root moves that share the visits by Gumbel selection instead of
    /// PUCT. The policy target is then the improved policy instead of the visits.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    gumbel: Option<u32>,
    /// Share of Dirichlet noise in the root's policy; by default 0.25, or 0 with Gumbel selection.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    noise: Option<f64>,
    /// Temperature at which moves are sampled by their visits (by default 1).
    #[arg(long, value_name = "T", conflicts_with = "gumbel", value_parser = temperature)]
    temperature: Option<f32>,
    /// Plies after the opening for which moves are sampled; from then on, the best move is played.
    #[arg(long, value_name = "PLIES", default_value_t = 30)]
    temperature_plies: usize,
    /// A side resigns when its best move's value is Q or less, for example -0.95.
    #[arg(long, value_name = "Q", allow_negative_numbers = true, value_parser = hopeless)]
    resign_below: Option<f32>,
    /// Share of the games that are played without resignation, to count how many resignations would
    /// have been wrong.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = share, requires = "resign_below")]
    played_on: f64,
    /// Set a UCI option of the search, such as CPuct=2; may be repeated.
    #[arg(long = "set", value_name = "OPTION=VALUE", value_parser = name_and_value)]
    options: Vec<(String, String)>,
    /// Memory of the evaluation cache, in MiB.
    #[arg(long, default_value_t = 256, value_name = "MIB")]
    cache: usize,
    #[command(flatten)]
    games_arguments: GamesArguments,
    /// Seed of all random choices.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    output: &'a Path,
    event: &'a str,
    #[serde(flatten)]
    summary: SelfPlaySummary,
    seconds: f64,
    games_per_second: f64,
    evaluations_per_second: f64,
}

impl SelfPlayCommand {
    /// Plays the games, resuming unfinished self-play.
    pub fn run(self) -> anyhow::Result<()> {
        output::check_folder(&self.output)?;
        std::fs::create_dir_all(&self.output)
            .with_context(|| format!("cannot make the folder {}", self.output.display()))?;
        for output in Journal::files(&self.output.join(GAMES)) {
            let inputs = self
                .games_arguments
                .files()
                .chain(self.network.net.as_deref());
            overwrite::refuse(&output, inputs)?;
        }
        let settings = self.settings()?;
        let backend = inference::load_for_many(&settings.backend)?;
        let properties = backend.properties();
        let at_once = match properties.encoder != Encoder::Nothing {
            true => properties.recommended_batch * properties.recommended_threads,
            // Without a network, batching has no benefit.
            false => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let games = &self.games_arguments;
        let plan = SelfPlay {
            ratings: settings.ratings(Color::White),
            concurrency: self.jobs.map_or(at_once, usize::from),
            parameters: settings.options.search,
            imagination: None,
            visits: self.visits,
            cheap: None,
            temperature: self.temperature.unwrap_or(TEMPERATURE),
            temperature_plies: self.temperature_plies,
            resign: self.resign_below,
            played_on: self.played_on,
            openings: games.openings(RANDOM_PLIES, self.seed)?,
            max_plies: games.max_plies().unwrap_or(MAX_PLIES),
            tablebase: games.tablebase()?,
            cache: self.cache,
            seed: self.seed,
        };
        let mut event = properties.name.clone();
        if let Some(net) = &self.network.net {
            // Different exports of a run have the same name.
            let bytes = std::fs::read(net).with_context(|| net.display().to_string())?;
            let digest = format!("{:x}", Sha256::digest(bytes));
            event.push_str(&format!(" {}", &digest[..8]));
        }
        event.push_str(&format!(", {:?}", self.network.on.precision).to_lowercase());
        for (name, value) in &self.options {
            event.push_str(&format!(", {name} {value}"));
        }
        match self.gumbel {
            Some(moves) => event.push_str(&format!(", Gumbel {moves}, noise {}", self.noise())),
            None => event.push_str(&format!(", noise {}", self.noise())),
        }
        let event = format!("{event}, {plan}");
        let bar = progress::bar(Some(self.limit), "games");
        let clock = Instant::now();
        let moves = AtomicU64::new(0);
        let summary = plan.run(
            &self.output,
            self.limit,
            backend,
            &event,
            &|event| match event {
                Event::Move => {
                    let played = moves.fetch_add(1, Relaxed) + 1;
                    let rate = played as f64 / clock.elapsed().as_secs_f64();
                    let rate = progress::rate(rate);
                    progress::say(&bar, format_args!("{played} positions, {rate}"));
                }
                Event::Finished => bar.inc(1),
            },
        )?;
        bar.finish_and_clear();
        self.tell(&event, &summary, clock.elapsed().as_secs_f64())
    }

    /// Returns the search parameters and the backend.
    fn settings(&self) -> anyhow::Result<PlayerSettings> {
        let mut settings = PlayerSettings {
            backend: BackendOptions {
                seed: self.seed,
                ..self.network.options(self.backend.backend, self.threads)
            },
            ..PlayerSettings::default()
        };
        settings.options.search.hash = HASH;
        let options = self.options.iter();
        let options = options.map(|(name, value)| (name.as_str(), value.as_str()));
        set_search_options(&mut settings, options).context("--set")?;
        settings.options.search.noise_epsilon = self.noise();
        settings.options.search.gumbel_moves = self.gumbel.unwrap_or(0);
        Ok(settings)
    }

    fn noise(&self) -> f32 {
        match (self.noise, self.gumbel) {
            (Some(noise), _) => noise as f32,
            (None, Some(_)) => 0.0,
            (None, None) => NOISE,
        }
    }

    fn tell(&self, event: &str, summary: &SelfPlaySummary, seconds: f64) -> anyhow::Result<()> {
        let played = summary.games - summary.found;
        let games_per_second = played as f64 / seconds;
        let evaluations_per_second = summary.evaluations as f64 / seconds;
        writeln!(
            stdout(),
            "{}: {}{}, {}; won by White {}, drawn {}, won by Black {}; {} resigned, {} ended by \
             tablebases, {} broken off; {:.2} games/s, {:.0} evaluations/s",
            self.output.display(),
            counted(played, "game"),
            from_before(summary.found),
            counted(summary.positions, "position"),
            summary.white,
            summary.draw,
            summary.black,
            summary.resigned,
            summary.tablebase,
            summary.cut_off,
            games_per_second,
            evaluations_per_second,
        )?;
        if self.resign_below.is_some() {
            writeln!(
                stdout(),
                "in {} of {} played on after a side would have resigned, that side did not lose",
                summary.wrongly,
                counted(summary.would_resign, "game"),
            )?;
        }
        if self.json {
            let report = Report {
                output: &self.output,
                event,
                summary: *summary,
                seconds,
                games_per_second,
                evaluations_per_second,
            };
            writeln!(stdout(), "{}", serde_json::to_string(&report)?)?;
        }
        Ok(())
    }
}

fn temperature(text: &str) -> Result<f32, String> {
    number_that(text, |it: &f32| it.is_finite() && *it >= 0.0, "0 or more")
}

fn hopeless(text: &str) -> Result<f32, String> {
    let rule = "less than 0, and -1 or more";
    number_that(text, |it| (-1.0..0.0).contains(it), rule)
}
