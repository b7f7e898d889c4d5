//! The transcoder file, which is JSON with weights in base64.

use super::{ThemeFeature, Transcoder};
use crate::atomic_file;
use crate::bounded;
use crate::explain::evaluator::floats;
use crate::explain::fingerprint::fingerprint;
use crate::network::Network;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use tch::Tensor;

/// Version of the file format.
const FORMAT: u32 = 1;
/// Maximum size of a file in bytes. A transcoder with 65,536 features of width 1,024 takes about
/// 0.7 GB.
const LARGEST_FILE: u64 = 1 << 30;
/// Maximum number of features, and maximum width of the network.
const LARGEST_SIDE: usize = 1 << 16;

/// A transcoder's source and quality.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TranscoderAbout {
    /// The network's name.
    pub network: String,
    /// SHA-256 of the network's weights in f32, in hexadecimal.
    pub weights: String,
    /// The layer, numbered from 1.
    pub layer: usize,
    /// The number of features.
    pub features: usize,
    /// The maximum number of features that are active on a square.
    pub top_k: usize,
    /// The number of positions to which the transcoder was fitted.
    pub positions: usize,
    /// The number of positions from other games, over which the following values were measured.
    pub held_out: usize,
    /// 1 − (squared error) / (variance) of the block's output, which is 1 for a perfect
    /// reconstruction.
    pub explained_variance: f64,
    /// Fraction of the features that are inactive on every square of the held-out positions.
    pub dead: f64,
    /// For each feature, the held-out positions that activate it most.
    pub strongest: Vec<Vec<Strongest>>,
    /// Features that predict puzzle themes.
    pub themes: Vec<ThemeFeature>,
}

/// A position in which a feature is strongly active.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Strongest {
    /// The position.
    pub fen: String,
    /// The square on which the feature is active.
    pub square: usize,
    /// The activation on this square.
    pub activation: f32,
}

/// Why a file cannot be used as a transcoder for a network.
#[derive(Debug, thiserror::Error)]
pub enum TranscoderError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is not a transcoder.
    #[error("not a transcoder: {0}")]
    Invalid(String),
    /// The transcoder was made for another network.
    #[error(
        "made for the weights of another network, {0}: make one with `tessera-train transcoder`"
    )]
    OtherNetwork(String),
}

#[derive(Serialize, Deserialize)]
struct File {
    format: u32,
    about: TranscoderAbout,
    width: usize,
    encoder: String,
    encoder_bias: String,
    decoder: String,
    decoder_bias: String,
}

impl Transcoder {
    /// Writes the transcoder's file atomically.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self, path: &Path) -> Result<(), TranscoderError> {
        let encoded =
            |tensor: &Tensor| STANDARD.encode(bytemuck::cast_slice::<f32, u8>(&floats(tensor)));
        let file = File {
            format: FORMAT,
            about: self.about.clone(),
            width: self.decoder_bias.size()[0] as usize,
            encoder: encoded(&self.encoder),
            encoder_bias: encoded(&self.encoder_bias),
            decoder: encoded(&self.decoder),
            decoder_bias: encoded(&self.decoder_bias),
        };
        let text = serde_json::to_string(&file).map_err(io::Error::from)?;
        Ok(atomic_file::write(path, text)?)
    }

    /// Reads the file of a transcoder that was made for this network.
    ///
    /// # Errors
    /// [`TranscoderError`] if the file is not a transcoder, or was made for other weights.
    pub fn read(path: &Path, network: &Network) -> Result<Transcoder, TranscoderError> {
        let bytes = bounded::read(path, LARGEST_FILE)?;
        let transcoder = Transcoder::parse(&bytes)?;
        match transcoder.about.weights == fingerprint(network) {
            true => Ok(transcoder),
            false => Err(TranscoderError::OtherNetwork(transcoder.about.network)),
        }
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Transcoder, TranscoderError> {
        let invalid = |reason: &str| TranscoderError::Invalid(reason.to_owned());
        let file: File =
            serde_json::from_slice(bytes).map_err(|error| invalid(&error.to_string()))?;
        if file.format != FORMAT {
            return Err(invalid(&format!("format {} is not known", file.format)));
        }
        let (width, features) = (file.width, file.about.features);
        let sides = 1..=LARGEST_SIDE;
        if !sides.contains(&width) || !sides.contains(&features) {
            return Err(invalid("its sizes are out of range"));
        }
        if !(1..=features).contains(&file.about.top_k) || file.about.strongest.len() != features {
            return Err(invalid("its features are not described"));
        }
        let places = file.about.strongest.iter().flatten();
        if places.clone().any(|it| it.square >= 64)
            || file.about.themes.iter().any(|it| it.feature >= features)
        {
            return Err(invalid("it names squares or features that do not exist"));
        }
        let tensor = |text: &str, shape: &[usize]| {
            let bytes = STANDARD
                .decode(text)
                .map_err(|error| invalid(&error.to_string()))?;
            if bytes.len() != 4 * shape.iter().product::<usize>() {
                return Err(invalid("its weights do not have the sizes that it states"));
            }
            let values: Vec<f32> = bytemuck::pod_collect_to_vec(&bytes);
            if !values.iter().all(|value| value.is_finite()) {
                return Err(invalid("its weights are NaN or infinite"));
            }
            let shape: Vec<i64> = shape.iter().map(|&side| side as i64).collect();
            Ok(Tensor::from_slice(&values).view(shape.as_slice()))
        };
        Ok(Transcoder {
            encoder: tensor(&file.encoder, &[width, features])?,
            encoder_bias: tensor(&file.encoder_bias, &[features])?,
            decoder: tensor(&file.decoder, &[features, width])?,
            decoder_bias: tensor(&file.decoder_bias, &[width])?,
            about: file.about,
        })
    }
}
