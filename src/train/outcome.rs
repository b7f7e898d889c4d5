//! Converts a checkpoint to the network that a run has trained.

use super::checkpoint::Checkpoint;
use super::config::ConfigError;
use crate::network::{About, Architecture, Network};
use tch::Device;

impl Checkpoint {
    /// Returns the checkpoint's network with the averaged weights, or with the last weights if
    /// `last` is set.
    ///
    /// # Errors
    /// [`ConfigError`] if its architecture cannot be built.
    pub fn into_network(self, last: bool) -> Result<Network<dyn Architecture>, ConfigError> {
        let state = self.state;
        let sources = &state.config.data;
        let data: Vec<_> = sources
            .shards
            .iter()
            .chain(&sources.chunks)
            .filter_map(|source| source.path.file_stem())
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        let flat = match last {
            true => self.parameters,
            false => self.average,
        };
        let architecture = state.config.architecture()?.build(Device::Cpu)?;
        let has_q = architecture.exported().has_output("q");
        let about = About {
            correction: None,
            search_value: if has_q { "q" } else { "wdl" }.to_owned(),
            licence: "GPL-3.0-or-later".to_owned(),
            training: serde_json::json!({
                "steps": state.step,
                "samples": state.earlier_samples + state.samples,
                "seconds": state.seconds.round(),
                "batch": state.config.batch,
                "data": data,
                "optimizer": state.config.optimizer.kind,
                "peak_rate": state.config.schedule.peak,
                "averaged": !last,
                "note": "",
            }),
            name: state.config.name,
        };
        Ok(Network::new(architecture, &flat, about))
    }
}
