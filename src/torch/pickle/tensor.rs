//! Tensors in an archive, which are views of the archive's storages.

use tch::{Kind, Tensor};

/// A storage: an entry of the archive with elements of one dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Storage<'a> {
    pub kind: Kind,
    /// The entry's name in the folder `data`.
    pub key: &'a str,
    /// Number of elements.
    pub len: usize,
}

impl Storage<'_> {
    /// Returns the storage's size in bytes, or `None` if it overflows.
    pub fn bytes(&self) -> Option<usize> {
        self.len.checked_mul(self.kind.elt_size_in_bytes())
    }
}

/// Maximum number of dimensions.
pub(super) const MOST_DIMENSIONS: usize = 8;

/// A tensor: a view of its storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View<'a> {
    pub storage: Storage<'a>,
    offset: usize,
    /// The shape of the tensor.
    pub shape: Vec<i64>,
    strides: Vec<usize>,
    /// The number of elements.
    pub count: usize,
    /// The index of the last element in the storage. For an empty tensor, returns the index
    /// that the formula for the last element yields.
    pub(super) last: usize,
}

impl<'a> View<'a> {
    /// Returns `None` unless all elements lie in the storage and there are at most as many of them
    /// as elements in the storage. A broadcast tensor would take far more memory than the file.
    pub(super) fn new(
        storage: Storage<'a>,
        offset: usize,
        shape: Vec<i64>,
        strides: Vec<usize>,
    ) -> Option<View<'a>> {
        if shape.len() != strides.len() || shape.len() > MOST_DIMENSIONS {
            return None;
        }
        let mut count = 1usize;
        let mut last = offset;
        for (&size, &stride) in shape.iter().zip(&strides) {
            let size = usize::try_from(size).ok()?;
            count = count.checked_mul(size)?;
            last = last.checked_add(size.saturating_sub(1).checked_mul(stride)?)?;
        }
        let fits = count == 0 || last < storage.len && count <= storage.len;
        fits.then_some(View {
            storage,
            offset,
            shape,
            strides,
            count,
            last,
        })
    }

    /// Returns the dtype of the tensor.
    pub fn kind(&self) -> Kind {
        self.storage.kind
    }

    /// Builds the tensor from the bytes of its storage. Returns `None` if there are fewer bytes
    /// than the storage requires or if libtorch fails.
    pub fn tensor(&self, bytes: &[u8]) -> Option<Tensor> {
        let width = self.kind().elt_size_in_bytes();
        if bytes.len() != self.storage.bytes()? {
            return None;
        }
        let gathered;
        let data = if self.is_contiguous() {
            let start = if self.count == 0 { 0 } else { self.offset };
            &bytes[start * width..][..self.count * width]
        } else {
            gathered = self.gather(bytes, width);
            &gathered
        };
        Tensor::f_from_data_size(data, &self.shape, self.kind()).ok()
    }

    /// Returns whether the elements are contiguous.
    fn is_contiguous(&self) -> bool {
        if self.count == 0 {
            return true;
        }
        let mut expected = 1;
        let mut dimensions = self.shape.iter().zip(&self.strides).rev();
        dimensions.all(|(&size, &stride)| {
            let is_next = size == 1 || stride == expected;
            expected *= size as usize;
            is_next
        })
    }

    /// Copies the elements, which have `width` bytes each, in row-major order.
    fn gather(&self, bytes: &[u8], width: usize) -> Vec<u8> {
        let mut data = Vec::with_capacity(self.count * width);
        let mut index = vec![0; self.shape.len()];
        for _ in 0..self.count {
            let steps = index.iter().zip(&self.strides);
            let place = self.offset + steps.map(|(index, stride)| index * stride).sum::<usize>();
            data.extend_from_slice(&bytes[place * width..][..width]);
            for (index, &size) in index.iter_mut().zip(&self.shape).rev() {
                *index += 1;
                if *index < size as usize {
                    break;
                }
                *index = 0;
            }
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(len: usize) -> Storage<'static> {
        Storage {
            kind: Kind::Float,
            key: "0",
            len,
        }
    }

    fn view(offset: usize, shape: &[i64], strides: &[usize]) -> Option<View<'static>> {
        View::new(storage(12), offset, shape.to_vec(), strides.to_vec())
    }

    #[test]
    fn strides_and_offsets_are_honoured() {
        let numbers: Vec<f32> = (0..12u8).map(f32::from).collect();
        let bytes: &[u8] = bytemuck::cast_slice(&numbers);
        let whole = Tensor::from_slice(&numbers).view([3, 4]);
        for (offset, shape, strides) in [
            (0, vec![3, 4], vec![4, 1]),
            (0, vec![4, 3], vec![1, 4]),
            (5, vec![2, 2], vec![4, 1]),
            (2, vec![1, 3], vec![99, 4]),
            (11, vec![], vec![]),
            (0, vec![12], vec![1]),
            (3, vec![0, 5], vec![7, 7]),
            (1, vec![3, 2, 2], vec![4, 0, 1]),
        ] {
            let steps: Vec<i64> = strides.iter().map(|&stride| stride as i64).collect();
            let expected = whole.as_strided(&shape, &steps, offset as i64);
            let found = view(offset, &shape, &strides)
                .unwrap()
                .tensor(bytes)
                .unwrap();
            assert_eq!(found.size(), shape);
            assert_eq!(found, expected, "{offset} {shape:?} {strides:?}");
        }
    }

    #[test]
    fn rejects_views_beyond_the_storage() {
        assert!(view(1, &[12], &[1]).is_none());
        assert!(view(0, &[2, 2], &[11, 1]).is_none());
        assert!(view(usize::MAX, &[2], &[1]).is_none());
        assert!(view(0, &[i64::MAX, i64::MAX], &[0, 0]).is_none());
        assert!(view(0, &[2], &[usize::MAX]).is_none());
        assert!(view(0, &[-1], &[1]).is_none());
        assert!(view(0, &[2], &[1, 1]).is_none());
        // A broadcast tensor, in which one element appears a hundred times.
        assert!(view(0, &[100], &[0]).is_none());
        assert!(view(12, &[], &[]).is_none());
        let short = view(0, &[12], &[1]).unwrap().tensor(&[0; 47]);
        assert!(short.is_none());
    }
}
