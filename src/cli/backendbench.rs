//! `tessera backendbench`: measures the speed of a network.

use super::output::{print, print_json};
use anyhow::ensure;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use tessera::backend::{Backend, BackendOptions, Batch, NetworkOptions, Precision, Properties};
use tessera::command_line::{BackendArguments, PlaceArguments, TimeSpan, network_file};
use tessera::eval::throughput::{Throughput, measure, positions};
use tessera::inference;
use tessera::plural::counted;

/// Number of different positions that are evaluated in turn, and the largest batch.
const POSITIONS: usize = 4096;

/// Measure a network's evaluations per second by batch size
#[derive(clap::Args)]
pub struct Arguments {
    /// The network: a file, or a name such as tessera-s; by default the network built into the
    /// program
    #[arg(long, value_name = "NET", value_parser = network_file)]
    net: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceArguments,
    /// Number format that the network runs in; `all` compares every format that it supports
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    precision: Formats,
    #[command(flatten)]
    backend: BackendArguments,
    /// Threads that call the backend concurrently; 0 uses the number that the backend recommends
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    threads: u16,
    /// Batch sizes, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,8,32,64,256",
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    batch: Vec<u32>,
    /// Time for each batch size
    #[arg(long, value_name = "TIME", default_value = "3s")]
    time: TimeSpan,
    /// Trace ten evaluations at the last batch size and write libtorch's operators and, on a GPU,
    /// kernel launches and kernels to this file, in Chrome's trace format
    #[arg(long, value_name = "OUT.json")]
    trace: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Number of evaluations in a trace.
#[cfg(feature = "torch")]
const TRACED: usize = 10;

/// The dtypes to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Formats {
    One(Precision),
    All,
}

impl Default for Formats {
    fn default() -> Formats {
        Formats::One(Precision::default())
    }
}

impl ValueEnum for Formats {
    fn value_variants<'a>() -> &'a [Formats] {
        static VARIANTS: LazyLock<Vec<Formats>> = LazyLock::new(|| {
            let each = Precision::value_variants().iter().copied();
            each.map(Formats::One).chain([Formats::All]).collect()
        });
        &VARIANTS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Formats::One(precision) => precision.to_possible_value(),
            Formats::All => {
                Some(PossibleValue::new("all").help("Every format that the network supports"))
            }
        }
    }
}

/// The speed in one dtype; the dtype is `None` for a backend without a network.
#[derive(Serialize)]
struct Measured {
    precision: Option<Precision>,
    #[serde(flatten)]
    throughput: Throughput,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        // If several dtypes are measured, the results describe the backend in the default dtype.
        let chosen = self.load(match self.precision {
            Formats::One(precision) => precision,
            Formats::All => Precision::Auto,
        })?;
        let backends = match self.precision {
            Formats::One(_) => vec![chosen.clone()],
            Formats::All => self.load_each()?,
        };
        let properties = chosen.properties();
        let threads = match self.threads {
            0 => properties.recommended_threads,
            threads => usize::from(threads),
        };
        let positions = positions(POSITIONS, &properties.encoder)?;
        if !self.json {
            print(&self.heading(&*chosen, &backends, threads))?;
        }
        let mut results = Vec::new();
        for &size in &self.batch {
            let mut row = format!("{size:5}");
            for backend in &backends {
                let throughput =
                    measure(&**backend, &positions, size as usize, threads, self.time.0)?;
                row.push_str(&format!("  {:13.0}", throughput.evaluations_per_second));
                if self.precision != Formats::All {
                    row.push_str(&format!("  {:7.2}", throughput.milliseconds));
                }
                results.push(Measured {
                    precision: precision(&**backend),
                    throughput,
                });
            }
            if !self.json {
                print(&format!("{row}\n"))?;
            }
        }
        if let (Some(path), Some(&size)) = (&self.trace, self.batch.last()) {
            trace(path, &*chosen, &positions, size as usize)?;
        }
        if self.json {
            print_json(&json!({
                "network": properties.name,
                "device": self.place.device.to_string(),
                "threads": threads,
                "format": properties.format,
                "results": results,
            }))?;
        }
        Ok(())
    }

    fn load(&self, precision: Precision) -> Result<Arc<dyn Backend>, inference::LoadError> {
        inference::load(&BackendOptions {
            kind: self.backend.backend,
            network: self.network(precision),
            threads: usize::from(self.threads),
            // With a cache, repeated positions would not reach the network.
            cache: 0,
            ..BackendOptions::default()
        })
    }

    fn network(&self, precision: Precision) -> NetworkOptions {
        self.place.network(self.net.clone(), precision)
    }

    /// Loads the network in each dtype that it supports.
    fn load_each(&self) -> anyhow::Result<Vec<Arc<dyn Backend>>> {
        let mut backends = Vec::new();
        for wanted in inference::formats(self.place.device.first()) {
            match self.load(wanted) {
                // A network without int8 layers runs in a different dtype than requested.
                Ok(backend) if precision(&*backend) != Some(wanted) => {}
                Ok(backend) => backends.push(backend),
                Err(error) => tracing::warn!("not in {wanted}: {error}"),
            }
        }
        ensure!(!backends.is_empty(), "--precision all is for networks");
        Ok(backends)
    }

    /// Returns the heading.
    fn heading(&self, chosen: &dyn Backend, all: &[Arc<dyn Backend>], threads: usize) -> String {
        let Properties { name, format, .. } = chosen.properties();
        let format = format.as_ref();
        let threads = counted(threads, "thread");
        match self.precision {
            Formats::One(_) => {
                let format = format.map_or(String::new(), |format| format!(" in {format}"));
                format!("{name}{format}, {threads}\nbatch  evaluations/s  ms/call\n")
            }
            Formats::All => {
                let auto = format.map_or(Precision::Auto, |format| format.precision);
                let precisions = all.iter().filter_map(|backend| precision(&**backend));
                let columns =
                    precisions.map(|precision| format!("  {:>13}", precision.to_string()));
                let columns: String = columns.collect();
                format!("{name}, {threads}, evaluations/s; auto selects {auto}\nbatch{columns}\n")
            }
        }
    }
}

/// Records a trace of evaluations of the first positions.
#[cfg(feature = "torch")]
fn trace(path: &Path, backend: &dyn Backend, positions: &Batch, size: usize) -> anyhow::Result<()> {
    let mut batch = Batch::default();
    (0..size).for_each(|index| batch.push_from(positions, index));
    let mut out = tessera::backend::Evaluations::default();
    let trace = tessera::torch::Trace::begin(path)?;
    (0..TRACED).try_for_each(|_| backend.evaluate(&batch, &mut out))?;
    Ok(trace.finish()?)
}

#[cfg(not(feature = "torch"))]
fn trace(_: &Path, _: &dyn Backend, _: &Batch, _: usize) -> anyhow::Result<()> {
    anyhow::bail!("--trace needs a program built with libtorch")
}

/// Returns the dtype in which a backend's network runs.
fn precision(backend: &dyn Backend) -> Option<Precision> {
    let format = backend.properties().format.as_ref();
    format.map(|format| format.precision)
}
