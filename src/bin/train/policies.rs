//! Options for networks that play moves sampled from their policies.

use super::games::{file_and_settings, number, positive};
use anyhow::bail;
use clap::Args;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tessera::backend::{
    Backend, BackendOptions, CodeArguments, Devices, Metadata, NetworkOptions, PlanesSpec,
    Precision,
};
use tessera::command_line::network_file;
use tessera::inference;
use tessera::label::PolicyPlayer;

/// Number of digits of the hash that distinguishes networks of the same name.
const HASH_DIGITS: usize = 8;

/// The device and format of networks that play by their policies.
#[derive(Args)]
pub struct PolicyArguments {
    #[command(flatten)]
    code: CodeArguments,
    /// Device that runs the networks: auto, cpu, cuda, cuda:1 or several.
    #[arg(long, default_value_t, value_name = "DEVICE", requires = "networks")]
    device: Devices,
    /// Number format that the networks run in.
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        requires = "networks"
    )]
    pub precision: Precision,
}

/// A network that plays moves sampled from its policy, as specified by the user.
#[derive(Clone, Debug)]
pub struct PolicyOptions {
    /// The network's file.
    pub net: PathBuf,
    temperature: f32,
    rating: Option<u16>,
}

impl PolicyArguments {
    /// Loads the networks, each file once, for `threads` callers.
    pub fn players(
        &self,
        policies: &[PolicyOptions],
        threads: usize,
    ) -> anyhow::Result<Vec<PolicyPlayer>> {
        let mut networks: BTreeMap<&PathBuf, (Metadata, Arc<dyn Backend>)> = BTreeMap::new();
        let mut players = Vec::new();
        for policy in policies {
            if !networks.contains_key(&policy.net) {
                let metadata = inference::describe(Some(&policy.net), self.code.policy())?;
                let backend = inference::load(&BackendOptions {
                    network: NetworkOptions {
                        net: Some(policy.net.clone()),
                        code: self.code.policy(),
                        devices: self.device.clone(),
                        precision: self.precision,
                        ..NetworkOptions::default()
                    },
                    threads,
                    ..BackendOptions::default()
                })?;
                networks.insert(&policy.net, (metadata, backend));
            }
            let (metadata, backend) = &networks[&policy.net];
            let file = policy.net.display();
            if policy.rating.is_none() && metadata.planes().is_ok_and(PlanesSpec::reads_ratings) {
                bail!("{file} imitates players of a given rating: write {file},elo=1500");
            }
            players.push(PolicyPlayer {
                name: metadata.name.clone(),
                hash: metadata.hash.chars().take(HASH_DIGITS).collect(),
                backend: backend.clone(),
                temperature: policy.temperature,
                rating: policy.rating,
            });
        }
        Ok(players)
    }
}

/// Parses a network with its settings.
pub fn policy(text: &str) -> Result<PolicyOptions, String> {
    let (mut temperature, mut rating) = (1.0, None);
    let net = file_and_settings(text, |name, value| {
        match name {
            "temperature" => temperature = positive(name, value)? as f32,
            "elo" => rating = Some(number(name, value)?),
            _ => return Err(format!("`{name}`: the settings are temperature and elo")),
        }
        Ok(())
    })?;
    Ok(PolicyOptions {
        net: network_file(&net.to_string_lossy())?,
        temperature,
        rating,
    })
}
