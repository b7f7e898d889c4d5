//! Tensors out of ONNX's protobuf.

use super::schema::{DataType, TensorProto};
use half::{bf16, f16};
use tch::Tensor;

/// Why a tensor cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// Its numbers are elsewhere.
    #[error("it lies in another file ({0}), which is not read: store it inside")]
    External(String),
    /// A type that no network of the field stores.
    #[error("its data type {0} is not supported")]
    DataType(i32),
    /// Its data does not fit its shape.
    #[error("it holds {found} bytes or numbers, which the shape {shape:?} does not ask for")]
    Shape {
        /// Its sizes.
        shape: Vec<i64>,
        /// Bytes of raw data, or numbers.
        found: usize,
    },
}

/// A tensor of f32, or of i64 if it holds integers.
pub(super) fn read(proto: &TensorProto) -> Result<Tensor, TensorError> {
    if proto.data_location != 0 || !proto.external_data.is_empty() {
        let location = proto.external_data.iter().find(|e| e.key == "location");
        let location = location.map_or("unnamed", |entry| &entry.value);
        return Err(TensorError::External(location.to_owned()));
    }
    let wrong = |found| TensorError::Shape {
        shape: proto.dims.clone(),
        found,
    };
    let count = proto.dims.iter().try_fold(1usize, |count, &size| {
        count.checked_mul(usize::try_from(size).ok()?)
    });
    let raw = &proto.raw_data;
    let count = count.ok_or(wrong(raw.len()))?;
    // Beside a size of 0 the others may be too large for strides.
    let mut sizes = proto.dims.iter();
    let spanned = sizes.try_fold(1i64, |span, &size| span.checked_mul(size.max(1)));
    spanned.ok_or(wrong(raw.len()))?;
    let kind = proto.data_type();
    let width = match kind {
        DataType::Float16 | DataType::Bfloat16 => 2,
        DataType::Float | DataType::Int32 => 4,
        DataType::Double | DataType::Int64 => 8,
        DataType::Bool | DataType::Uint8 | DataType::Int8 => 1,
        DataType::Undefined => return Err(TensorError::DataType(proto.data_type)),
    };
    if !raw.is_empty() && count.checked_mul(width) != Some(raw.len()) {
        return Err(wrong(raw.len()));
    }
    let words = &proto.int32_data;
    let tensor = match (kind, raw.is_empty()) {
        (DataType::Float, false) => floats(raw, f32::from_le_bytes),
        (DataType::Float16, false) => floats(raw, |bytes| f16::from_le_bytes(bytes).to_f32()),
        (DataType::Bfloat16, false) => floats(raw, |bytes| bf16::from_le_bytes(bytes).to_f32()),
        (DataType::Double, false) => floats(raw, |bytes| f64::from_le_bytes(bytes) as f32),
        (DataType::Int64, false) => integers(raw, i64::from_le_bytes),
        (DataType::Int32, false) => integers(raw, |bytes| i32::from_le_bytes(bytes).into()),
        (DataType::Bool | DataType::Uint8, false) => integers(raw, |[byte]| byte.into()),
        (DataType::Int8, false) => integers(raw, |bytes| i8::from_le_bytes(bytes).into()),
        (DataType::Float, true) => Tensor::from_slice(&proto.float_data),
        (DataType::Int64, true) => Tensor::from_slice(&proto.int64_data),
        // Halves are stored as the bits of the lower word.
        (DataType::Float16, true) => halves(words, |bits| f16::from_bits(bits).to_f32()),
        (DataType::Bfloat16, true) => halves(words, |bits| bf16::from_bits(bits).to_f32()),
        (DataType::Int32 | DataType::Bool | DataType::Uint8 | DataType::Int8, true) => {
            let values: Vec<i64> = words.iter().map(|&word| word.into()).collect();
            Tensor::from_slice(&values)
        }
        (DataType::Double, true) if count > 0 => {
            return Err(TensorError::DataType(proto.data_type));
        }
        _ => Tensor::from_slice::<f32>(&[]),
    };
    if tensor.numel() != count {
        return Err(wrong(tensor.numel()));
    }
    tensor.f_reshape(&proto.dims).map_err(|_| wrong(count))
}

fn floats<const N: usize>(raw: &[u8], number: impl Fn([u8; N]) -> f32) -> Tensor {
    let (numbers, _) = raw.as_chunks();
    let numbers: Vec<f32> = numbers.iter().map(|&bytes| number(bytes)).collect();
    Tensor::from_slice(&numbers)
}

fn integers<const N: usize>(raw: &[u8], number: impl Fn([u8; N]) -> i64) -> Tensor {
    let (numbers, _) = raw.as_chunks();
    let numbers: Vec<i64> = numbers.iter().map(|&bytes| number(bytes)).collect();
    Tensor::from_slice(&numbers)
}

fn halves(words: &[i32], number: impl Fn(u16) -> f32) -> Tensor {
    let numbers: Vec<f32> = words.iter().map(|&word| number(word as u16)).collect();
    Tensor::from_slice(&numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proto(kind: DataType, dims: &[i64], raw: &[u8]) -> TensorProto {
        TensorProto {
            dims: dims.to_vec(),
            data_type: kind.into(),
            raw_data: raw.to_vec(),
            ..TensorProto::default()
        }
    }

    #[test]
    fn nothing_has_no_endless_shape() {
        for dims in [[0, i64::MAX, i64::MAX], [i64::MAX, 0, i64::MAX]] {
            let endless = read(&proto(DataType::Float, &dims, &[]));
            let wrong = TensorError::Shape {
                shape: dims.to_vec(),
                found: 0,
            };
            assert_eq!(endless.unwrap_err(), wrong);
        }
    }

    #[test]
    fn numbers_are_read_as_they_are_stored() {
        let one = [
            (DataType::Float, &1f32.to_le_bytes()[..]),
            (DataType::Double, &1f64.to_le_bytes()),
            (DataType::Float16, &f16::ONE.to_le_bytes()),
            (DataType::Bfloat16, &bf16::ONE.to_le_bytes()),
            (DataType::Int64, &1i64.to_le_bytes()),
            (DataType::Int32, &1i32.to_le_bytes()),
            (DataType::Int8, &[1]),
        ];
        for (kind, bytes) in one {
            let read = read(&proto(kind, &[1, 1], bytes)).unwrap();
            assert_eq!(read.size(), [1, 1]);
            assert_eq!(read.double_value(&[0, 0]), 1.0, "{kind:?}");
        }
        let minus_two = TensorProto {
            int32_data: vec![i32::from(f16::from_f32(-2.0).to_bits())],
            ..proto(DataType::Float16, &[], &[])
        };
        assert_eq!(read(&minus_two).unwrap().double_value(&[]), -2.0);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let outside = TensorProto {
            data_location: 1,
            external_data: vec![super::super::schema::StringStringEntryProto {
                key: "location".to_owned(),
                value: "/etc/passwd".to_owned(),
            }],
            ..proto(DataType::Float, &[1], &[])
        };
        let error = read(&outside).unwrap_err();
        assert!(error.to_string().contains("/etc/passwd"), "{error}");
        for dims in [&[2][..], &[-1], &[i64::MAX, i64::MAX], &[1 << 40]] {
            let error = read(&proto(DataType::Float, dims, &[0; 4])).unwrap_err();
            assert!(matches!(error, TensorError::Shape { .. }), "{dims:?}");
            assert!(read(&proto(DataType::Float, dims, &[])).is_err());
        }
        let error = read(&proto(DataType::Undefined, &[1], &[0])).unwrap_err();
        assert_eq!(error, TensorError::DataType(0));
    }
}
