//! The matrices that Muon and SOAP move, as stacks of one shape each.

use crate::network::Parameter;
use tch::Tensor;

/// Matrices of one shape, whose steps are computed together.
#[derive(Debug)]
pub(super) struct MatrixGroup {
    /// Rows and columns.
    pub shape: [i64; 2],
    offsets: Vec<i64>,
}

impl MatrixGroup {
    /// The matrices between tokens and tokens. Both methods are made for hidden
    /// layers; first and last ones keep NAdam.
    pub fn all(parameters: &[Parameter]) -> Vec<MatrixGroup> {
        let mut groups: Vec<MatrixGroup> = Vec::new();
        let mut offset = 0;
        for parameter in parameters {
            if let ([rows, columns], true) = (parameter.shape.as_slice(), is_hidden(parameter)) {
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

    /// The same matrices in at most `count` groups that follow each other.
    pub fn split(&self, count: usize) -> impl Iterator<Item = MatrixGroup> {
        let share = self.offsets.len().div_ceil(count);
        self.offsets.chunks(share).map(|offsets| MatrixGroup {
            shape: self.shape,
            offsets: offsets.to_vec(),
        })
    }

    /// How many there are.
    pub fn len(&self) -> i64 {
        self.offsets.len() as i64
    }

    /// The matrices out of the flat vector, [n, rows, columns].
    pub fn gather(&self, flat: &Tensor) -> Tensor {
        let count = self.shape[0] * self.shape[1];
        let slices: Vec<Tensor> = self
            .offsets
            .iter()
            .map(|&offset| flat.narrow(0, offset, count).view(self.shape))
            .collect();
        Tensor::stack(&slices, 0)
    }

    /// Writes a stack [n, rows, columns] to the matrices' places.
    pub fn scatter(&self, stack: &Tensor, flat: &mut Tensor) {
        let count = self.shape[0] * self.shape[1];
        for (&offset, matrix) in self.offsets.iter().zip(stack.unbind(0)) {
            let mut slice = flat.narrow(0, offset, count);
            slice.copy_(&matrix.reshape([count]));
        }
    }
}

/// Whether a parameter is the matrix of a dense layer.
pub(super) fn is_matrix(parameter: &Parameter) -> bool {
    parameter.name.ends_with(".weight") && parameter.shape.len() == 2
}

fn is_hidden(parameter: &Parameter) -> bool {
    let hidden = ["encoder.", "policy."];
    let outer = ["promotion", "generator"];
    is_matrix(parameter)
        && hidden.iter().any(|start| parameter.name.starts_with(start))
        && !outer.iter().any(|part| parameter.name.contains(part))
}
