//! Reads a configuration and applies overrides. If the configuration specifies no architecture, it
//! is read from `init`.

use super::checkpoint::Checkpoint;
use super::config::{ConfigError, Override, TrainConfig, refuse_infinite};
use crate::backend::shipped;
use crate::network::{self, ArchitectureConfig};
use std::path::Path;

impl TrainConfig {
    /// Reads a configuration file. Relative paths in it are resolved from the current directory.
    ///
    /// # Errors
    /// [`ConfigError`], naming the file, the line and the key.
    pub fn read(path: &Path) -> Result<TrainConfig, ConfigError> {
        parse::<TrainConfig>(path)?.complete()
    }

    /// Reads a configuration file like [`TrainConfig::read`], with some keys overridden.
    ///
    /// # Errors
    /// [`ConfigError`], naming the key.
    pub fn read_with(path: &Path, overrides: &[Override]) -> Result<TrainConfig, ConfigError> {
        if overrides.is_empty() {
            // Parsing the file directly preserves the line numbers in errors.
            return TrainConfig::read(path);
        }
        TrainConfig::from_table(parse(path)?, overrides)
    }

    /// Reads a configuration from a table, with some keys overridden.
    ///
    /// # Errors
    /// [`ConfigError`], naming the key.
    pub fn from_table(
        mut table: toml::Table,
        overrides: &[Override],
    ) -> Result<TrainConfig, ConfigError> {
        for set in overrides {
            set.apply(&mut table)?;
        }
        refuse_infinite(&table)?;
        let read: Result<TrainConfig, _> = serde_path_to_error::deserialize(table);
        let config = read.map_err(|error| ConfigError::Key {
            key: error.path().to_string(),
            reason: error.inner().message().to_owned(),
        })?;
        config.complete()
    }

    /// Completes and checks a parsed configuration. If it specifies no architecture, that of `init`
    /// is used. An empty `init` counts as unset.
    fn complete(mut self) -> Result<TrainConfig, ConfigError> {
        self.init.take_if(|init| init.as_os_str().is_empty());
        let names_none = self.preset.is_none() && self.model.is_none() && self.network.is_none();
        let config = match self.init.clone().filter(|_| names_none) {
            Some(init) => self.with_architecture(architecture_of(&shipped::file(init))?),
            None => self,
        };
        config.check()?;
        Ok(config)
    }
}

/// Returns the architecture of a network file or of a run.
fn architecture_of(init: &Path) -> Result<ArchitectureConfig, ConfigError> {
    let failed = |reason: String| ConfigError::Init {
        path: init.to_owned(),
        reason,
    };
    if init.extension().is_none_or(|extension| extension != "pt") {
        let checkpoint = Checkpoint::read(init).map_err(|error| failed(error.to_string()))?;
        return checkpoint.state.config.architecture();
    }
    let file = std::fs::read(init).map_err(|error| failed(error.to_string()))?;
    network::architecture(&file).map_err(|error| failed(error.to_string()))
}

/// Reads a TOML file.
pub(super) fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })?;
    let syntax = |source| ConfigError::Syntax {
        path: path.to_owned(),
        source: Box::new(source),
    };
    refuse_infinite(&text.parse().map_err(syntax)?)?;
    toml::from_str(&text).map_err(syntax)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_to_start_from_can_be_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("small.toml");
        // The text begins with a byte-order mark, as written by Notepad on Windows.
        let text = "\u{feff}name = \"small\"\npreset = \"cf-1m-gab\"\ninit = \"some.pt\"\nsteps = 9\n\
            batch = 4\n[data]\nshards = [{ path = \"games.shard\" }]\n";
        std::fs::write(&file, text).unwrap();
        let read = |set: &[Override]| TrainConfig::read_with(&file, set).unwrap().init;
        assert_eq!(read(&[]).as_deref(), Some(Path::new("some.pt")));
        assert_eq!(read(&["init=".parse().unwrap()]), None);
    }

    #[test]
    fn a_shipped_network_is_found_by_its_name() {
        let text = "name = \"more\"\ninit = \"tessera-xs\"\nsteps = 9\nbatch = 4\n[data]\n\
            shards = [{ path = \"games.shard\" }]\n";
        let config = TrainConfig::from_table(text.parse().unwrap(), &[]).unwrap();
        let ArchitectureConfig::Chessformer { model } = config.architecture().unwrap() else {
            panic!("{config:?}");
        };
        assert_eq!((model.layers, model.width), (4, 128));
    }
}
