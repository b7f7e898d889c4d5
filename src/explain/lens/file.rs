//! The file of a lens, which is JSON with the maps in base64.

use super::{AffineMap, Lens};
use crate::atomic_file;
use crate::bounded;
use crate::explain::fingerprint::fingerprint;
use crate::network::Network;
use crate::torch;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use tch::{Device, Kind, Tensor};

/// Version of the file format.
const FORMAT: u32 = 1;
/// Maximum size of a file in bytes. A lens of 100 layers of width 1,024 takes about 0.3 GB.
const LARGEST_FILE: u64 = 1 << 29;
/// Maximum width of the network.
const LARGEST_WIDTH: usize = 1 << 13;

/// A lens's source and quality.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LensAbout {
    /// The network's name.
    pub network: String,
    /// SHA-256 of the network's weights in f32, in hexadecimal.
    pub weights: String,
    /// The number of positions to which the lens was fitted.
    pub positions: usize,
    /// The number of positions from other games, over which the distances were measured.
    pub held_out: usize,
    /// The distances of the lens's outputs from the network's, after the embedding and after each
    /// layer except the last.
    pub tuned: Vec<LensDistance>,
    /// The same without the lens: the distances of the heads' outputs for the layer's own tokens.
    pub untuned: Vec<LensDistance>,
}

/// A mean distance of outputs from the network's own outputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LensDistance {
    /// Mean Kullback–Leibler divergence of the network's policy, in nats.
    pub divergence: f64,
    /// Mean absolute difference of the expected result, 0…2.
    pub q: f64,
}

/// Why a file cannot be used as a lens for a network.
#[derive(Debug, thiserror::Error)]
pub enum LensError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is not a lens.
    #[error("not a lens: {0}")]
    Invalid(String),
    /// The lens was made for another network.
    #[error("made for the weights of another network, {0}: make one with `tessera-train lens`")]
    OtherNetwork(String),
}

#[derive(Serialize, Deserialize)]
struct File {
    format: u32,
    about: LensAbout,
    width: usize,
    /// For each map, the matrix [width, width] and then the bias `[width]`, in little-endian fp16.
    maps: Vec<String>,
}

impl Lens {
    /// Writes the lens's file atomically, with the maps in fp16.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self, path: &Path) -> Result<(), LensError> {
        let maps = self.maps.iter().map(|AffineMap { matrix, bias }| {
            let numbers = Tensor::cat(&[matrix.flatten(0, -1), bias.shallow_clone()], 0);
            STANDARD.encode(torch::bytes(&numbers.to_kind(Kind::Half)))
        });
        let width = self.maps.first().map_or(0, |map| map.bias.size()[0]);
        let file = File {
            format: FORMAT,
            about: self.about.clone(),
            width: width as usize,
            maps: maps.collect(),
        };
        let text = serde_json::to_string(&file).map_err(io::Error::from)?;
        Ok(atomic_file::write(path, text + "\n")?)
    }

    /// Reads the file of a lens that was made for this network.
    ///
    /// # Errors
    /// [`LensError`] if the file is not a lens, or was made for other weights.
    pub fn open(path: &Path, network: &Network) -> Result<Lens, LensError> {
        let bytes = bounded::read(path, LARGEST_FILE)?;
        let lens = Lens::parse(&bytes)?;
        match lens.about.weights == fingerprint(network) {
            true => Ok(lens),
            false => Err(LensError::OtherNetwork(lens.about.network)),
        }
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Lens, LensError> {
        let invalid = |reason: &str| LensError::Invalid(reason.to_owned());
        let file: File =
            serde_json::from_slice(bytes).map_err(|error| invalid(&error.to_string()))?;
        if file.format != FORMAT {
            return Err(invalid(&format!("format {} is not known", file.format)));
        }
        if !(1..=LARGEST_WIDTH).contains(&file.width) {
            return Err(invalid("its width is out of range"));
        }
        let (tuned, untuned) = (&file.about.tuned, &file.about.untuned);
        if file.maps.is_empty() || [tuned, untuned].map(Vec::len) != [file.maps.len(); 2] {
            return Err(invalid("its layers are not described"));
        }
        let width = file.width as i64;
        let map = |text: &String| {
            let bytes = STANDARD
                .decode(text)
                .map_err(|error| invalid(&error.to_string()))?;
            if bytes.len() != 2 * file.width * (file.width + 1) {
                return Err(invalid("its maps do not have the width that it states"));
            }
            let stored = Tensor::from_data_size(&bytes, &[width * (width + 1)], Kind::Half);
            let numbers = stored.to_kind(Kind::Float).to_device(Device::Cpu);
            if !torch::floats(&numbers).iter().all(|it| it.is_finite()) {
                return Err(invalid("its maps are NaN or infinite"));
            }
            Ok(AffineMap {
                matrix: numbers.narrow(0, 0, width * width).view([width, width]),
                bias: numbers.narrow(0, width * width, width),
            })
        };
        Ok(Lens {
            maps: file.maps.iter().map(map).collect::<Result<_, _>>()?,
            about: file.about,
        })
    }
}
