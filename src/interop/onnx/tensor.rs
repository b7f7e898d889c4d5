//! Reads tensors from ONNX's protobuf.

use super::schema::{DataType, TensorProto};
use half::{bf16, f16};
use tch::Tensor;

/// Why a tensor cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// The data is in another file.
    #[error("it is stored in another file, which is not read: store it in the model")]
    External,
    /// The data type is not one that Lc0's converter writes.
    #[error("its data type {0} is not supported")]
    DataType(i32),
    /// The data does not fit the shape.
    #[error("it contains {found} bytes of numbers, which does not match the shape {shape:?}")]
    Shape {
        /// The tensor's sizes.
        shape: Vec<i64>,
        /// Length of the data in bytes.
        found: usize,
    },
    /// The tensor has NaN or infinite values.
    #[error("it holds numbers that are not finite")]
    NotFinite,
}

/// Reads a tensor as f32, or as i64 if it contains integers.
pub(super) fn read(proto: &TensorProto) -> Result<Tensor, TensorError> {
    if proto.data_location != 0 {
        return Err(TensorError::External);
    }
    let raw = &proto.raw_data;
    let tensor = match proto.data_type() {
        DataType::Float => floats(raw, f32::from_le_bytes),
        DataType::Float16 => floats(raw, |bytes| f16::from_le_bytes(bytes).to_f32()),
        DataType::Bfloat16 => floats(raw, |bytes| bf16::from_le_bytes(bytes).to_f32()),
        DataType::Int64 => Ok(integers(raw, i64::from_le_bytes)),
        DataType::Int32 => Ok(integers(raw, |bytes| i32::from_le_bytes(bytes).into())),
        DataType::Undefined => Err(TensorError::DataType(proto.data_type)),
    }?;
    let count = proto.dims.iter().try_fold(1usize, |count, &size| {
        count.checked_mul(usize::try_from(size).ok()?)
    });
    // If one size is 0, the other sizes might overflow the strides.
    match count.is_some_and(|count| count > 0 && count == tensor.numel()) {
        true => Ok(tensor.reshape(&proto.dims)),
        false => Err(TensorError::Shape {
            shape: proto.dims.clone(),
            found: raw.len(),
        }),
    }
}

fn floats<const N: usize>(
    raw: &[u8],
    number: impl Fn([u8; N]) -> f32,
) -> Result<Tensor, TensorError> {
    let (numbers, _) = raw.as_chunks();
    let numbers: Vec<f32> = numbers.iter().map(|&bytes| number(bytes)).collect();
    match numbers.iter().all(|number| number.is_finite()) {
        true => Ok(Tensor::from_slice(&numbers)),
        false => Err(TensorError::NotFinite),
    }
}

fn integers<const N: usize>(raw: &[u8], number: impl Fn([u8; N]) -> i64) -> Tensor {
    let (numbers, _) = raw.as_chunks();
    let numbers: Vec<i64> = numbers.iter().map(|&bytes| number(bytes)).collect();
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
    fn numbers_are_read_as_they_are_stored() {
        let one = [
            (DataType::Float, &1f32.to_le_bytes()[..]),
            (DataType::Float16, &f16::ONE.to_le_bytes()),
            (DataType::Bfloat16, &bf16::ONE.to_le_bytes()),
            (DataType::Int64, &1i64.to_le_bytes()),
            (DataType::Int32, &1i32.to_le_bytes()),
        ];
        for (kind, bytes) in one {
            let read = read(&proto(kind, &[1, 1], bytes)).unwrap();
            assert_eq!(read.size(), [1, 1]);
            assert_eq!(read.double_value(&[0, 0]), 1.0, "{kind:?}");
        }
    }

    #[test]
    fn rejects_tensors_of_wrong_size() {
        let outside = TensorProto {
            data_location: 1,
            ..proto(DataType::Float, &[1], &[])
        };
        assert_eq!(read(&outside).unwrap_err(), TensorError::External);
        for dims in [
            &[2][..],
            &[-1],
            &[i64::MAX, i64::MAX],
            &[1 << 40],
            &[0, i64::MAX, i64::MAX],
            &[i64::MAX, 0, i64::MAX],
        ] {
            for raw in [&[0; 4][..], &[]] {
                let error = read(&proto(DataType::Float, dims, raw)).unwrap_err();
                assert!(matches!(error, TensorError::Shape { .. }), "{dims:?}");
            }
        }
        let error = read(&proto(DataType::Undefined, &[1], &[0])).unwrap_err();
        assert_eq!(error, TensorError::DataType(0));
        let infinite = proto(DataType::Float, &[1], &f32::INFINITY.to_le_bytes());
        assert_eq!(read(&infinite).unwrap_err(), TensorError::NotFinite);
    }
}
