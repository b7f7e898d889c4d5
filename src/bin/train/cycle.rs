//! `train loop`: all workers of a loop on this machine.

use super::console;
use super::run::stop_when_interrupted;
use super::worker::lock;
use anyhow::{Context, bail};
use clap::Args;
use indicatif::{HumanCount, ProgressBar};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tessera::cycle::{CycleConfig, Rows, Share};
use tessera::error_report::tell;
use tessera::store::{Generation, Name, Store};

/// Time between two looks at the workers.
const BLINK: Duration = Duration::from_millis(100);
/// Time that workers have to end by themselves.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause before a worker that failed is started again: it doubles from here …
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// … up to here.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Failures in a row, each soon after the start, that end the loop.
const FAILURES: u32 = 5;
/// What is soon after the start.
const SOON: Duration = Duration::from_secs(20);
/// POSIX's numbers of the signals by which people and systems end a process, whatever it
/// does: SIGINT, SIGKILL and SIGTERM.
#[cfg(unix)]
const ORDERED: [i32; 3] = [2, 9, 15];
/// Least time between two lines of progress without a terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(60);
/// The lock that the loop holds in its folder.
const LOCK: &str = "loop.lock";
/// Folder of the workers' words.
const LOGS: &str = "logs";

/// Arguments of `train loop`.
#[derive(Args)]
pub struct Loop {
    /// The loop's configuration. A loop whose store and folder are there goes on.
    #[arg(value_name = "FILE.toml")]
    config: PathBuf,
    /// Processors that the workers share; by default all.
    #[arg(long, value_name = "N")]
    processors: Option<usize>,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
}

impl Loop {
    /// Starts the workers, and again those that fail, until the loop ends.
    pub fn run(self) -> anyhow::Result<()> {
        let config = CycleConfig::read(&self.config)?;
        // Rather now than in the learner's log.
        config.training().context("[training]")?;
        let store = Store::open(&config.store)?;
        let logs = config.folder.join(LOGS);
        std::fs::create_dir_all(&logs)
            .with_context(|| format!("cannot make the folder {}", logs.display()))?;
        let Some(_lock) = lock(&config.folder.join(LOCK), || false)? else {
            let folder = config.folder.display();
            bail!("another `train loop` is at work in {folder}");
        };
        let stop = stop_when_interrupted("stopping the workers; press again to stop at once")?;
        store.sweep()?;
        let mut workers = self.workers(&config, &logs);
        let mut display = Display::new(&config, store)?;
        let mut looked: Option<Instant> = None;
        let outcome = loop {
            if stop.load(Relaxed) {
                break Ok(false);
            }
            let kept = workers
                .iter_mut()
                .try_for_each(|it| it.keep(&display.store));
            if let Err(error) = kept {
                break Err(error);
            }
            // Actors end by themselves only after those who train and judge.
            if workers
                .iter()
                .filter(|it| it.is_needed)
                .all(Worker::is_done)
            {
                break Ok(true);
            }
            let poll = Duration::from_secs_f64(config.poll);
            if looked.is_none_or(|looked| looked.elapsed() >= poll) {
                display.look();
                looked = Some(Instant::now());
            }
            std::thread::sleep(BLINK);
        };
        for worker in &mut workers {
            worker.let_go();
        }
        let end = Instant::now() + PATIENCE;
        for worker in &mut workers {
            worker.bury(end);
        }
        display.look();
        let is_finished = outcome?;
        display.finish(is_finished, self.json)
    }

    fn workers(&self, config: &CycleConfig, logs: &Path) -> Vec<Worker> {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        let processors = self.processors.unwrap_or_else(all).max(1);
        let end = config.generations;
        let until = config.reanalysers.as_ref().and_then(|it| it.until);
        let until = end.into_iter().chain(until).min();
        let learned = match config.gate {
            Some(_) => Name::candidate,
            None => Name::generation,
        };
        let actors = config.actors.as_ref().map(|it| it.cores);
        let reanalysers = config.reanalysers.as_ref().map(|it| it.cores);
        let gate = config.gate.as_ref().map(|it| it.cores);
        let kinds: [(&'static str, Option<Share>, bool, Option<Name>); 4] = [
            (
                "learner",
                Some(config.learner.cores),
                true,
                end.map(learned),
            ),
            ("actor", actors, false, end.map(Name::generation)),
            (
                "reanalyser",
                reanalysers,
                false,
                until.map(Name::generation),
            ),
            ("gate", gate, true, end.map(Name::generation)),
        ];
        let mut workers = Vec::new();
        for (kind, cores, is_needed, end) in kinds {
            let Some(cores) = cores else { continue };
            for number in 0..cores.processes {
                let name = format!("{kind}{number}");
                workers.push(Worker {
                    kind,
                    config: self.config.clone(),
                    log: logs.join(format!("{name}.log")),
                    name,
                    threads: config.threads(cores, processors),
                    is_needed,
                    end: end.clone(),
                    state: State::Waits(Instant::now()),
                    failures: 0,
                });
            }
        }
        workers
    }
}

/// A worker's process, started again where it fails.
struct Worker {
    kind: &'static str,
    name: String,
    config: PathBuf,
    log: PathBuf,
    threads: usize,
    /// Whether the loop ends with it.
    is_needed: bool,
    /// The manifest with which its work is done; `None` if it goes on for ever.
    end: Option<Name>,
    state: State,
    /// Failures in a row.
    failures: u32,
}

enum State {
    /// It is to be started.
    Waits(Instant),
    Runs {
        child: Child,
        since: Instant,
    },
    Done,
}

impl Worker {
    /// Starts the worker if it does not run, and sees how it is.
    fn keep(&mut self, store: &Store) -> anyhow::Result<()> {
        match &mut self.state {
            State::Waits(until) if Instant::now() >= *until => {
                self.state = State::Runs {
                    child: self.start()?,
                    since: Instant::now(),
                };
            }
            State::Runs { child, since } => {
                let since = *since;
                let ended = child.try_wait().context("cannot wait for a worker")?;
                if let Some(status) = ended {
                    self.ended(status, since, store)?;
                }
            }
            State::Waits(_) | State::Done => {}
        }
        Ok(())
    }

    fn start(&self) -> anyhow::Result<Child> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.with_context(|| format!("cannot open {}", self.log.display()))?;
        let errors = log.try_clone().context("cannot use a log twice")?;
        Command::new(program)
            .arg(self.kind)
            .arg("--config")
            .arg(&self.config)
            .args(["--threads", &self.threads.to_string()])
            .args(["--name", &self.name, "--with-parent"])
            // It ends when this pipe does, however this process ends.
            .stdin(Stdio::piped())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot start {}", self.name))
    }

    fn ended(&mut self, status: ExitStatus, since: Instant, store: &Store) -> anyhow::Result<()> {
        // One that somebody ended says success too: it has stopped in good order.
        if status.success() && self.has_done_its_work(store) {
            self.state = State::Done;
            return Ok(());
        }
        let last = self.last_words();
        if since.elapsed() > SOON {
            self.failures = 0;
        }
        self.failures += u32::from(!was_ended_by_others(status));
        let (name, log) = (&self.name, self.log.display());
        if self.failures >= FAILURES {
            bail!("{name} failed {FAILURES} times in a row, last so: {last} ({log})");
        }
        tracing::warn!("{name} ended early ({status}) and is started again: {last}");
        let pause = FIRST_PAUSE * 2u32.pow(self.failures);
        self.state = State::Waits(Instant::now() + pause.min(LONGEST_PAUSE));
        Ok(())
    }

    /// Whether the manifest is there with which its work is done.
    fn has_done_its_work(&self, store: &Store) -> bool {
        let Some(end) = &self.end else { return false };
        match store.get(end) {
            Ok(found) => found.is_some(),
            Err(error) => {
                tracing::warn!("{error}");
                false
            }
        }
    }

    /// The last line of its log.
    fn last_words(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text[text.len().saturating_sub(4096)..]);
        text.lines().next_back().unwrap_or("no word").to_owned()
    }

    fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Lets the worker end.
    fn let_go(&mut self) {
        if let State::Runs { child, .. } = &mut self.state {
            drop(child.stdin.take());
        }
    }

    /// Waits for its end, until then.
    fn bury(&mut self, end: Instant) {
        let State::Runs { child, .. } = &mut self.state else {
            return;
        };
        while matches!(child.try_wait(), Ok(None)) {
            if Instant::now() >= end {
                tracing::warn!("{} does not end, and is killed", self.name);
                // It may have ended just now.
                let _ = child.kill();
                let _ = child.wait();
                break;
            }
            std::thread::sleep(BLINK);
        }
        self.state = State::Done;
    }
}

/// Whether a process ended because it was told to, and did nothing wrong. Signals such
/// as SIGABRT and SIGSEGV are its own doing.
fn was_ended_by_others(status: ExitStatus) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        let signal = status.signal();
        if signal.is_some_and(|signal| ORDERED.contains(&signal)) {
            return true;
        }
    }
    status.success()
}

/// The loop's progress, as the store shows it.
struct Display {
    store: Store,
    samples_per_row: f64,
    generations: Vec<Generation>,
    rows: Rows,
    /// Rows when this session began, and when that was.
    began: Option<(u64, Instant)>,
    last_line: Option<Instant>,
    bar: ProgressBar,
}

impl Display {
    fn new(config: &CycleConfig, store: Store) -> anyhow::Result<Display> {
        let length = config.generations.unwrap_or(0);
        let template = match config.generations {
            Some(_) => "{elapsed} generation {pos} of {len}, {msg}",
            None => "{elapsed} generation {pos}, {msg}",
        };
        let bar = console::bar(length, template)?;
        bar.enable_steady_tick(Duration::from_millis(250));
        Ok(Display {
            store,
            samples_per_row: config.learner.samples_per_row,
            generations: Vec::new(),
            rows: Rows::default(),
            began: None,
            last_line: None,
            bar,
        })
    }

    fn look(&mut self) {
        let before = self.generations.len();
        let looked = self.rows.look(&self.store).map_err(anyhow::Error::from);
        let found = looked.and_then(|()| Ok(self.store.add_generations(&mut self.generations)?));
        if let Err(error) = found {
            tracing::warn!("{error:#}");
            return;
        }
        self.began
            .get_or_insert_with(|| (self.rows.total(), Instant::now()));
        let Some(last) = self.generations.last() else {
            self.bar.set_message("no network yet");
            return;
        };
        let message = self.message(last);
        self.bar.set_position(last.number);
        let is_new = self.generations.len() > before;
        let is_late = self
            .last_line
            .is_none_or(|line| line.elapsed() >= BETWEEN_LINES);
        if self.bar.is_hidden() && (is_new || is_late) {
            tell(format_args!("generation {}, {message}", last.number));
            self.last_line = Some(Instant::now());
        }
        self.bar.set_message(message);
    }

    fn message(&self, last: &Generation) -> String {
        let total = self.rows.total();
        let mut message = format!("{} rows", HumanCount(total));
        if let Some((rows, since)) = self.began {
            let seconds = since.elapsed().as_secs_f64();
            if seconds > 1.0 {
                let rate = total.saturating_sub(rows) as f64 / seconds;
                message.push_str(&format!(", {rate:.1}/s"));
            }
        }
        message.push_str(&format!(
            ", window {}, {:.1} of {} samples a row",
            HumanCount(last.window),
            self.samples_a_row(last),
            self.samples_per_row,
        ));
        if let Some(elo) = elo(&self.generations) {
            message.push_str(&format!(", {elo:+.0} Elo"));
        }
        message
    }

    fn samples_a_row(&self, last: &Generation) -> f64 {
        last.drawn as f64 / self.rows.total().max(1) as f64
    }

    fn finish(self, is_finished: bool, json: bool) -> anyhow::Result<()> {
        self.bar.finish_and_clear();
        let last = self.generations.last();
        let number = last.map(|last| last.number);
        let samples = last.map_or(0, |last| last.samples);
        let elo = elo(&self.generations);
        let rows = self.rows.total();
        writeln!(
            stdout(),
            "{}: generation {}, {} shards with {rows} rows, {samples} samples seen",
            match is_finished {
                true => "finished",
                false => "stopped; run again to go on",
            },
            number.map_or("none".to_owned(), |number| number.to_string()),
            self.rows.shards(),
        )?;
        if json {
            let report = serde_json::json!({
                "finished": is_finished,
                "generation": number,
                "shards": self.rows.shards(),
                "rows": rows,
                "samples": samples,
                "samples_a_row": last.map_or(0.0, |last| self.samples_a_row(last)),
                "elo": elo,
            });
            writeln!(stdout(), "{report}")?;
        }
        Ok(())
    }
}

/// Elo of the newest accepted generation above the first, by the matches at the gate;
/// `None` without a gate.
fn elo(generations: &[Generation]) -> Option<f64> {
    let mut by_number: BTreeMap<u64, f64> = BTreeMap::from([(0, 0.0)]);
    let mut newest = None;
    for generation in generations {
        if let Some(outcome) = generation.gate {
            let opponent = by_number.get(&outcome.opponent).copied().unwrap_or(0.0);
            let elo = opponent + outcome.elo();
            by_number.insert(generation.number, elo);
            if outcome.is_accepted {
                newest = Some(elo);
            } else {
                newest.get_or_insert(0.0);
            }
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera::store::Outcome;

    #[cfg(unix)]
    #[test]
    fn crashes_are_failures_and_orders_to_end_are_not() {
        use std::os::unix::process::ExitStatusExt;
        let is_failure = |status| !was_ended_by_others(ExitStatus::from_raw(status));
        // SIGILL, SIGABRT, SIGBUS and SIGSEGV, and an exit with status 1.
        for status in [4, 6, 7, 11, 1 << 8] {
            assert!(is_failure(status), "{status}");
        }
        for status in [2, 9, 15, 0] {
            assert!(!is_failure(status), "{status}");
        }
    }

    #[test]
    fn elo_adds_up_along_the_accepted() {
        let judged = |number, gate: Option<(u64, u64, u64, bool)>| Generation {
            gate: gate.map(|(opponent, wins, losses, is_accepted)| Outcome {
                is_accepted,
                opponent,
                wins,
                draws: 0,
                losses,
                llr: 0.0,
            }),
            ..Generation::unfinished(number)
        };
        assert_eq!(elo(&[judged(0, None)]), None);
        let up = judged(1, Some((0, 3, 1, true)));
        let down = judged(2, Some((1, 1, 3, false)));
        let again = judged(3, Some((1, 3, 1, true)));
        let elo = elo(&[judged(0, None), up, down, again]).unwrap();
        assert!((elo - 2.0 * 190.85).abs() < 0.1, "{elo}");
    }
}
