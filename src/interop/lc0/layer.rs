//! Tensor values in Lc0's four encodings.

use super::Lc0Error;
use super::schema::{Encoding, Layer};
use half::{bf16, f16};

/// The storage of tensors in written files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Lc0Encoding {
    /// 65,536 steps between a tensor's minimum and maximum; supported by every version of Lc0.
    #[default]
    Linear16,
    /// IEEE half precision; Lc0 0.33 and newer.
    Float16,
    /// bfloat16; Lc0 0.33 and newer.
    Bfloat16,
    /// 32-bit floating point, without loss; Lc0 0.33 and newer.
    Float32,
}

impl Lc0Encoding {
    /// Returns the value that stands for this encoding in a [`Layer`].
    pub(super) fn field(self) -> Encoding {
        match self {
            Lc0Encoding::Linear16 => Encoding::Linear16,
            Lc0Encoding::Float16 => Encoding::Float16,
            Lc0Encoding::Bfloat16 => Encoding::Bfloat16,
            Lc0Encoding::Float32 => Encoding::Float32,
        }
    }
}

impl Layer {
    /// Returns the layer's encoding, LINEAR16 by default.
    fn encoding_or_default(&self) -> Encoding {
        match self.encoding {
            None => Encoding::Linear16,
            Some(number) => Encoding::try_from(number).unwrap_or(Encoding::Unknown),
        }
    }

    /// Returns the number of elements.
    pub(super) fn count(&self) -> i64 {
        let bytes = self.params.as_ref().map_or(0, |params| params.len());
        let each = match self.encoding_or_default() {
            Encoding::Float32 => 4,
            _ => 2,
        };
        (bytes / each) as i64
    }

    /// Returns the layer's values, decoded as in Lc0.
    ///
    /// # Errors
    /// [`Lc0Error::Unsupported`] if the encoding is unknown.
    pub(super) fn decode(&self) -> Result<Vec<f32>, Lc0Error> {
        let bytes = self.params.as_deref().unwrap_or_default();
        let words = || {
            bytes
                .as_chunks()
                .0
                .iter()
                .map(|&two| u16::from_le_bytes(two))
        };
        Ok(match self.encoding_or_default() {
            Encoding::Linear16 => {
                let (min, max) = (self.min_val(), self.max_val());
                let number = |word| {
                    let theta = f32::from(word) / 65535.0;
                    min * (1.0 - theta) + max * theta
                };
                words().map(number).collect()
            }
            Encoding::Float16 => words().map(|word| f16::from_bits(word).into()).collect(),
            Encoding::Bfloat16 => words().map(|word| bf16::from_bits(word).into()).collect(),
            Encoding::Float32 => {
                let (chunks, _) = bytes.as_chunks();
                chunks
                    .iter()
                    .map(|&four| f32::from_le_bytes(four))
                    .collect()
            }
            Encoding::Unknown => {
                let number = self.encoding.unwrap_or_default();
                return Err(Lc0Error::Unsupported(format!("weights encoding {number}")));
            }
        })
    }

    /// Returns a layer that contains `numbers`, which must be finite.
    pub(super) fn encode(numbers: &[f32], encoding: Lc0Encoding) -> Layer {
        let (min, max) = numbers
            .iter()
            .fold((f32::INFINITY, f32::NEG_INFINITY), |(min, max), &number| {
                (min.min(number), max.max(number))
            });
        let words = |word: &dyn Fn(f32) -> u16| -> Vec<u8> {
            let bytes = numbers.iter().map(|&number| word(number).to_le_bytes());
            bytes.flatten().collect()
        };
        let params = match encoding {
            Lc0Encoding::Linear16 => {
                let range = f64::from(max) - f64::from(min);
                words(&|number| match range > 0.0 {
                    true => ((f64::from(number) - f64::from(min)) / range * 65535.0).round() as u16,
                    false => 0,
                })
            }
            Lc0Encoding::Float16 => words(&|number| f16::from_f32(number).to_bits()),
            Lc0Encoding::Bfloat16 => words(&|number| bf16::from_f32(number).to_bits()),
            Lc0Encoding::Float32 => numbers.iter().flat_map(|n| n.to_le_bytes()).collect(),
        };
        let is_linear = encoding == Lc0Encoding::Linear16 && !numbers.is_empty();
        Layer {
            min_val: is_linear.then_some(min),
            max_val: is_linear.then_some(max),
            params: Some(params.into()),
            // Versions of Lc0 that support only LINEAR16 do not know this field.
            encoding: (!is_linear).then_some(encoding.field() as i32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn linear16_spreads_its_steps_from_least_to_largest() {
        let layer = Layer::encode(&[-1.0, 3.0, 1.0], Lc0Encoding::Linear16);
        assert_eq!(layer.params.as_deref(), Some(&[0, 0, 255, 255, 0, 128][..]));
        let numbers = layer.decode().unwrap();
        assert_eq!(numbers[..2], [-1.0, 3.0]);
        assert!((numbers[2] - 1.0).abs() < 4.0 / 65535.0);
        let constant = Layer::encode(&[0.25; 3], Lc0Encoding::Linear16);
        assert_eq!(constant.decode().unwrap(), [0.25; 3]);
    }

    #[test]
    fn an_unknown_encoding_is_named() {
        let mut layer = Layer::encode(&[1.0], Lc0Encoding::Float32);
        layer.encoding = Some(77);
        assert!(layer.decode().unwrap_err().to_string().contains("77"));
    }

    proptest! {
        #[test]
        fn decoded_layers_encode_to_themselves(
            numbers in prop::collection::vec(-5f32..5.0, 1..40),
        ) {
            for encoding in [
                Lc0Encoding::Linear16,
                Lc0Encoding::Float16,
                Lc0Encoding::Bfloat16,
                Lc0Encoding::Float32,
            ] {
                let layer = Layer::encode(&numbers, encoding);
                prop_assert_eq!(layer.count(), numbers.len() as i64);
                let decoded = layer.decode().unwrap();
                prop_assert_eq!(Layer::encode(&decoded, encoding), layer);
            }
        }
    }
}
