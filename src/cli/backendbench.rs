//! `tessera backendbench`: the speed of a network.

use super::options::NetworkArguments;
use super::output::{print, print_json};
use serde_json::json;
use std::time::Duration;
use tessera::eval::throughput::{measure, positions};
use tessera::nn::{self, BackendKind};

/// Different positions evaluated in turn; more than any batch holds.
const POSITIONS: usize = 4096;

/// Measure a network's evaluations a second by batch size
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    network: NetworkArguments,
    /// What evaluates positions
    #[arg(long, value_enum, default_value_t)]
    backend: BackendKind,
    /// Threads that call at once; 0 takes as many as the backend recommends
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    threads: u16,
    /// Batch sizes
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32, 64, 256],
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    batch: Vec<u32>,
    /// Time for each batch size
    #[arg(long, default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("0 to 3600 seconds".to_owned())
    }
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        // No cache: it would answer in the network's place.
        let threads = usize::from(self.threads);
        let backend = nn::load(&self.network.options(self.backend, threads))?;
        let properties = backend.properties();
        let threads = match threads {
            0 => properties.recommended_threads,
            threads => threads,
        };
        let positions = positions(POSITIONS, properties.input);
        let time = Duration::from_secs_f64(self.seconds);
        if !self.json {
            let name = &properties.name;
            print(&format!(
                "{name}, {threads} threads\nbatch  evaluations/s  ms/call\n"
            ))?;
        }
        let mut results = Vec::new();
        for &size in &self.batch {
            let result = measure(&*backend, &positions, size as usize, threads, time)?;
            if !self.json {
                let rate = result.evaluations_per_second;
                print(&format!(
                    "{size:5}  {rate:13.0}  {:7.2}\n",
                    result.milliseconds
                ))?;
            }
            results.push(result);
        }
        if self.json {
            print_json(&json!({
                "network": properties.name,
                "device": self.network.on.device.to_string(),
                "threads": threads,
                "results": results,
            }))?;
        }
        Ok(())
    }
}
