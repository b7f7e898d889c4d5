//! Stacks the matrices that Muon and SOAP update by their shapes.

use crate::network::{Parameter, ParameterGroup};
use tch::Tensor;

/// Matrices of the same shape, whose steps are computed together.
#[derive(Debug)]
pub(super) struct MatrixGroup {
    /// The numbers of rows and columns.
    pub shape: [i64; 2],
    offsets: Vec<i64>,
}

impl MatrixGroup {
    /// Returns the matrices in [`ParameterGroup::Hidden`], grouped by shape. Muon and SOAP are
    /// designed for hidden layers, so the first and last layers use NAdam.
    pub fn all(parameters: &[Parameter]) -> Vec<MatrixGroup> {
        let mut groups: Vec<MatrixGroup> = Vec::new();
        let mut offset = 0;
        for parameter in parameters {
            if let ([rows, columns], ParameterGroup::Hidden) =
                (parameter.shape.as_slice(), parameter.group)
            {
                let shape = [*rows, *columns];
                match groups.iter_mut().find(|group| group.shape == shape) {
                    Some(group) => group.offsets.push(offset),
                    None => groups.push(MatrixGroup {
                        shape,
                        offsets: vec![offset],
                    }),
                }
            }
            offset += parameter.count();
        }
        groups
    }

    /// Splits the matrices into at most `count` consecutive groups.
    pub fn split(&self, count: usize) -> impl Iterator<Item = MatrixGroup> {
        let share = self.offsets.len().div_ceil(count);
        self.offsets.chunks(share).map(|offsets| MatrixGroup {
            shape: self.shape,
            offsets: offsets.to_vec(),
        })
    }

    /// Returns the number of matrices.
    pub fn len(&self) -> i64 {
        self.offsets.len() as i64
    }

    /// Gathers the matrices from the flat vector into a stack [n, rows, columns].
    pub fn gather(&self, flat: &Tensor) -> Tensor {
        let count = self.shape[0] * self.shape[1];
        let slices: Vec<Tensor> = self
            .offsets
            .iter()
            .map(|&offset| flat.narrow(0, offset, count).view(self.shape))
            .collect();
        Tensor::stack(&slices, 0)
    }

    /// Writes a stack [n, rows, columns] back into the flat vector.
    pub fn scatter(&self, stack: &Tensor, flat: &mut Tensor) {
        let count = self.shape[0] * self.shape[1];
        for (&offset, matrix) in self.offsets.iter().zip(stack.unbind(0)) {
            let mut slice = flat.narrow(0, offset, count);
            slice.copy_(&matrix.reshape([count]));
        }
    }
}
