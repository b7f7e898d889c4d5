//! `tessera-train label`: labels games and positions with another engine.

use super::games::{GamesArguments, RANDOM_PLIES, from_before, make_folder, share};
use super::policies::{PolicyArguments, PolicyOptions, policy};
use anyhow::bail;
use clap::{ArgGroup, Args};
use indicatif::ProgressBar;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tessera::adjudication::{Adjudication, DrawRule, ResignRule};
use tessera::command_line::{TimeSpan, name_and_value};
use tessera::data::pgn::Journal;
use tessera::engine::{EngineCommand, Limit};
use tessera::error_report::tell;
use tessera::label::{Event, GameSource, LabelSummary, Labelling, Play, SampledGames};
use tessera::output;
use tessera::plural::counted;
use tessera::{overwrite, progress};

/// Arguments of `tessera-train label`.
#[derive(Args)]
#[command(group(ArgGroup::new("source").args(["inputs", "play", "sample"]).required(true)))]
#[command(group(ArgGroup::new("networks").args(["policies"])))]
#[command(group(ArgGroup::new("played").args(["play", "sample"])))]
#[command(group(ArgGroup::new("effort").args(["nodes", "depth", "time"])))]
pub struct Label {
    /// Games (PGN) and positions (FEN or EPD) to label, plain or compressed; they may
    /// come through a pipe, such as /dev/stdin.
    #[arg(value_name = "IN")]
    inputs: Vec<PathBuf>,
    /// Let the engine play --limit games against itself instead.
    #[arg(long, requires = "limit")]
    play: bool,
    /// Sample --limit games from the policies of networks (--policy) instead, with one evaluation
    /// per move. The engine scores every position after the opening.
    #[arg(long, requires_all = ["limit", "policies"])]
    sample: bool,
    /// With --play or --sample: the number of games.
    #[arg(long, value_name = "N", requires = "played")]
    limit: Option<u64>,
    /// With --sample: a network to sample moves from; may be repeated. Each game draws the networks
    /// of White and Black at random. Temperatures above the default of 1 flatten the policy. The
    /// rating is written to the games' tags and given to networks that read ratings. Example:
    /// maia-1500.pt,temperature=0.8,elo=1500.
    #[arg(
        long = "policy",
        value_name = "FILE[,temperature=T][,elo=N]",
        value_parser = policy,
        requires = "sample"
    )]
    policies: Vec<PolicyOptions>,
    /// With --sample: use no engine. The games then have only moves and results to learn from, as
    /// with `tessera-train pack --played`.
    #[arg(long, requires = "sample", conflicts_with_all = [
        "engine", "options", "nodes", "depth", "time", "multipv", "line", "resign", "draw",
    ])]
    unjudged: bool,
    #[command(flatten)]
    networks: PolicyArguments,
    /// The games to write: PGN, compressed if the name ends in .gz or .zst. An unfinished output is
    /// resumed. `-` is standard output.
    #[arg(short, long, value_name = "OUT.pgn")]
    output: PathBuf,
    /// The engine: a path, or a name on PATH.
    #[arg(long, default_value = "stockfish", value_name = "PROGRAM")]
    engine: PathBuf,
    /// Set a UCI option of the engine; may be repeated.
    #[arg(long = "set", value_name = "OPTION=VALUE", value_parser = name_and_value)]
    options: Vec<(String, String)>,
    /// Engine processes; by default one for each processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Search this many nodes per position (by default 5000).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    nodes: Option<u64>,
    /// Search each position to this depth.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,
    /// Search each position for this time.
    #[arg(long, value_name = "TIME", value_parser = TimeSpan::positive)]
    time: Option<TimeSpan>,
    /// Moves scored in each position; with more than one, `tessera-train pack
    /// --alternatives` makes the policy target a distribution.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    multipv: u32,
    /// Plies of the engine's line to write where a different move was played.
    #[arg(long, default_value_t = 4, value_name = "PLIES")]
    line: usize,
    /// Restart the engine if it has not answered within this time after its search should have
    /// ended.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = TimeSpan::positive)]
    timeout: TimeSpan,
    /// Share of the games' positions to score.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share, conflicts_with = "played")]
    share: f64,
    /// Probability that a move is random instead of the engine's; pack such games
    /// with `tessera-train pack --unscored-random`.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share, requires = "play")]
    random_moves: f64,
    /// A side resigns after MOVES consecutive moves with a score of -CP or less.
    #[arg(long, value_name = "MOVES,CP", value_parser = resign_rule, requires = "played")]
    resign: Option<ResignRule>,
    /// From move FROM on, a game is adjudicated a draw after MOVES consecutive moves by each side
    /// with scores within CP of 0.
    #[arg(long, value_name = "FROM,MOVES,CP", value_parser = draw_rule, requires = "played")]
    draw: Option<DrawRule>,
    #[command(flatten)]
    games: GamesArguments,
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
    summary: LabelSummary,
    seconds: f64,
    positions_per_second: f64,
}

impl Label {
    /// Labels the inputs, resuming an unfinished output.
    pub fn run(self) -> anyhow::Result<()> {
        let labelling = Labelling {
            engine: EngineCommand {
                program: self.engine.clone(),
                options: self.options.clone(),
            },
            limit: self.limit(),
            multipv: self.multipv,
            patience: self.timeout.0 + self.time.map_or(Duration::ZERO, |time| time.0),
            processes: self.jobs.map_or_else(
                || std::thread::available_parallelism().map_or(1, usize::from),
                usize::from,
            ),
            line: self.line,
            seed: self.seed,
        };
        make_folder(&self.output)?;
        self.spare_inputs()?;
        let source = self.source(labelling.processes)?;
        let event = labelling.event(&source)?;
        let mut journal = Journal::open(&self.output, &event, |_| {})?;
        let bar = progress::bar(source.count()?, "games");
        let clock = Instant::now();
        let positions = AtomicU64::new(0);
        let summary = labelling.run(&source, &event, &mut journal, &|event| {
            observe(event, &bar, &positions, clock);
        })?;
        bar.finish_and_clear();
        let seconds = clock.elapsed().as_secs_f64();
        self.tell(&event, &summary, seconds)
    }

    /// Refuses to overwrite a file that is an input.
    fn spare_inputs(&self) -> anyhow::Result<()> {
        for output in Journal::files(&self.output) {
            let files = self.inputs.iter().map(PathBuf::as_path);
            let networks = self.policies.iter().map(|it| it.net.as_path());
            let inputs = files.chain(networks).chain(self.games.files());
            overwrite::refuse(&output, inputs.chain([self.engine.as_path()]))?;
        }
        Ok(())
    }

    fn limit(&self) -> Limit {
        match (self.nodes, self.depth, self.time) {
            (_, Some(depth), _) => Limit::Depth(depth),
            (_, _, Some(time)) => Limit::Time(time.0),
            (nodes, ..) => Limit::Nodes(nodes.unwrap_or(5000)),
        }
    }

    fn source(&self, processes: usize) -> anyhow::Result<GameSource> {
        let games = self.limit.unwrap_or_default();
        if self.sample {
            return Ok(GameSource::Sample(SampledGames {
                games,
                players: self.networks.players(&self.policies, processes)?,
                precision: self.networks.precision,
                // Sampled moves make the games differ.
                openings: self.games.openings(0, self.seed)?,
                adjudication: self.adjudication()?,
                judged: !self.unjudged,
            }));
        }
        if self.play {
            return Ok(GameSource::Play(Play {
                games,
                openings: self.games.openings(RANDOM_PLIES, self.seed)?,
                random_moves: self.random_moves,
                adjudication: self.adjudication()?,
            }));
        }
        if self.games.is_given() {
            bail!("--openings, --random-plies, --max-plies and --syzygy need --play or --sample");
        }
        Ok(GameSource::Files {
            paths: self.inputs.clone(),
            share: self.share,
        })
    }

    fn adjudication(&self) -> anyhow::Result<Adjudication> {
        Ok(Adjudication {
            resign: self.resign,
            draw: self.draw,
            max_plies: self.games.max_plies(),
            tablebase: self.games.tablebase()?,
        })
    }
}

impl Label {
    fn tell(&self, event: &str, summary: &LabelSummary, seconds: f64) -> anyhow::Result<()> {
        let positions_per_second = summary.positions as f64 / seconds;
        let line = format_args!(
            "{}: {}{}, {} ({:.1} and {positions_per_second:.1} per second); {} unreadable, {} \
             given up",
            self.output.display(),
            counted(summary.games, "game"),
            from_before(summary.found),
            counted(summary.positions, "position"),
            summary.games as f64 / seconds,
            counted(summary.unreadable, "game"),
            counted(summary.given_up, "position"),
        );
        output::announce(&self.output, line)?;
        if self.json {
            let report = Report {
                output: &self.output,
                event,
                summary: *summary,
                seconds,
                positions_per_second,
            };
            output::announce(&self.output, serde_json::to_string(&report)?)?;
        }
        Ok(())
    }
}

fn observe(event: Event, bar: &ProgressBar, positions: &AtomicU64, clock: Instant) {
    match event {
        Event::Judged => {
            let judged = positions.fetch_add(1, Relaxed) + 1;
            let rate = judged as f64 / clock.elapsed().as_secs_f64();
            let rate = progress::rate(rate);
            progress::say(bar, format_args!("{judged} positions, {rate}"));
        }
        Event::Finished => bar.inc(1),
        Event::Warning(line) => bar.suspend(|| tell(line)),
    }
}

fn resign_rule(text: &str) -> Result<ResignRule, String> {
    let [moves, centipawns] = numbers(text)?;
    Ok(ResignRule {
        moves: moves.max(1) as usize,
        centipawns,
    })
}

fn draw_rule(text: &str) -> Result<DrawRule, String> {
    let [from, moves, centipawns] = numbers(text)?;
    Ok(DrawRule {
        from: from as usize,
        moves: moves.max(1) as usize,
        centipawns,
    })
}

/// Parses comma-separated whole numbers, none of them negative.
fn numbers<const COUNT: usize>(text: &str) -> Result<[i32; COUNT], String> {
    let numbers: Vec<i32> = text
        .split(',')
        .map_while(|part| part.trim().parse().ok().filter(|&number| number >= 0))
        .collect();
    let parts = text.split(',').count();
    match numbers.try_into() {
        Ok(numbers) if parts == COUNT => Ok(numbers),
        _ => Err(format!(
            "write {COUNT} whole numbers with commas between them"
        )),
    }
}
