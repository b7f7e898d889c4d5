//! Displays the progress of a loop for `tessera-train loop`.

use crate::console;
use indicatif::{HumanCount, ProgressBar};
use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::ops::Bound::{Excluded, Unbounded};
use std::time::{Duration, Instant};
use tessera::cycle::{self, CycleConfig, CycleError, Rows};
use tessera::error_report::tell;
use tessera::progress;
use tessera::store::{Generation, Store, Strength, elo};

/// Minimum time between two progress lines if there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// Displays the loop's progress as recorded in the store.
pub(super) struct Display {
    store: Store,
    samples_per_row: f64,
    generations: Vec<Generation>,
    strengths: BTreeMap<u64, Strength>,
    rows: Rows,
    /// The number of rows at the start of this session, and the time at which the session started.
    began: Option<(u64, Instant)>,
    last_line: Option<Instant>,
    bar: ProgressBar,
}

impl Display {
    pub(super) fn new(config: &CycleConfig, store: Store) -> anyhow::Result<Display> {
        let bar = console::bar(config.generations, "generations");
        Ok(Display {
            store,
            samples_per_row: config.learner.samples_per_row,
            generations: Vec::new(),
            strengths: BTreeMap::new(),
            rows: Rows::default(),
            began: None,
            last_line: None,
            bar,
        })
    }

    pub(super) fn look(&mut self) {
        let before = self.generations.len();
        let measured = self.strengths.keys().next_back().copied();
        if let Err(error) = self.find() {
            tracing::warn!("{error}");
            return;
        }
        self.began
            .get_or_insert_with(|| (self.rows.total(), Instant::now()));
        let Some(last) = self.generations.last() else {
            progress::say(&self.bar, "no network yet");
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
        progress::say(&self.bar, message);
        let after = measured.map_or(Unbounded, Excluded);
        let new = self.strengths.range((after, Unbounded));
        for (number, strength) in new {
            self.bar
                .suspend(|| tell(format_args!("generation {number}: {strength}")));
        }
    }

    /// Looks for new rows, generations and strengths.
    fn find(&mut self) -> Result<(), CycleError> {
        self.rows.look(&self.store)?;
        self.store.add_generations(&mut self.generations)?;
        Ok(self.store.add_strengths(&mut self.strengths)?)
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

    pub(super) fn finish(
        self,
        config: &CycleConfig,
        is_finished: bool,
        json: bool,
    ) -> anyhow::Result<()> {
        self.bar.finish_and_clear();
        if !self.strengths.is_empty() {
            // The learner may have ended before the last measurement.
            if let Err(error) = cycle::write_report(config, &self.strengths) {
                tracing::warn!("{error}");
            }
        }
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
                false => "stopped; run again to resume",
            },
            number.map_or("none".to_owned(), |number| number.to_string()),
            self.rows.shards(),
        )?;
        if let Some((number, strength)) = self.strengths.last_key_value() {
            writeln!(stdout(), "generation {number}: {strength}")?;
        }
        if json {
            let report = serde_json::json!({
                "finished": is_finished,
                "generation": number,
                "shards": self.rows.shards(),
                "rows": rows,
                "samples": samples,
                "samples_a_row": last.map_or(0.0, |last| self.samples_a_row(last)),
                "elo": elo,
                "strengths": self.strengths.values().collect::<Vec<_>>(),
            });
            writeln!(stdout(), "{report}")?;
        }
        Ok(())
    }
}
