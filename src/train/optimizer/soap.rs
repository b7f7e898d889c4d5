//! SOAP: Adam in the eigenbasis of Shampoo's preconditioner (Vyas et al. 2024, "SOAP: Improving
//! and Stabilizing Shampoo using Adam").
//!
//! For a matrix with gradient G, the running means of G·Gᵀ and Gᵀ·G have eigenvectors that change
//! slowly. Adam runs in the basis of these eigenvectors, in which the squared gradients approximate
//! the curvature along each axis. Every few steps, the bases are updated by one round of power
//! iteration and a QR decomposition, which is cheaper than a full eigendecomposition.

use super::super::config::OptimizerConfig;
use super::matrices::MatrixGroup;
use super::rule::{Memory, Rule};
use crate::network::Parameter;
use crate::train::threads::Threads;
use tch::{Device, Kind, Tensor};

/// SOAP for the hidden matrices. Its steps have the same size as Adam's, so that the same learning
/// rate suits the parameters that NAdam updates.
#[derive(Debug)]
pub(super) struct Soap {
    beta1: f64,
    beta2: f64,
    epsilon: f64,
    frequency: u64,
    /// Number of gradients seen, i64 [1] on the CPU. If the run started with another optimizer,
    /// this is smaller than the number of steps.
    seen: Tensor,
    stacks: Vec<Stack>,
}

/// The optimizer state for n matrices of the same shape.
#[derive(Debug)]
struct Stack {
    group: MatrixGroup,
    /// Running mean of the gradient in the parameters' own basis, [n, rows, columns].
    mean: Tensor,
    /// Running mean of the squared gradient in the eigenbases, [n, rows, columns].
    square: Tensor,
    rows: Side,
    columns: Side,
}

/// One side, rows or columns, of a stack of matrices.
#[derive(Debug)]
struct Side {
    /// Running mean of G·Gᵀ for rows, or of Gᵀ·G for columns, [n, side, side].
    covariance: Tensor,
    /// The eigenvectors of the covariance as columns, [n, side, side].
    basis: Tensor,
}

impl Soap {
    pub fn new(
        config: &OptimizerConfig,
        parameters: &[Parameter],
        options: (Kind, Device),
    ) -> Soap {
        let stack = |group: MatrixGroup| {
            let [rows, columns] = group.shape;
            let zeros = |rows, columns| Tensor::zeros([group.len(), rows, columns], options);
            let side = |side| Side {
                covariance: zeros(side, side),
                basis: zeros(side, side),
            };
            Stack {
                mean: zeros(rows, columns),
                square: zeros(rows, columns),
                rows: side(rows),
                columns: side(columns),
                group,
            }
        };
        Soap {
            beta1: config.beta1,
            beta2: config.beta2,
            epsilon: config.epsilon,
            frequency: config.soap_frequency,
            seen: Tensor::zeros([1], (Kind::Int64, Device::Cpu)),
            stacks: MatrixGroup::all(parameters)
                .into_iter()
                .map(stack)
                .collect(),
        }
    }
}

impl Rule for Soap {
    fn direct(&mut self, gradient: &Tensor, direction: &mut Tensor, _step: u64, threads: &Threads) {
        let seen = self.seen.int64_value(&[0]);
        self.seen += 1;
        let (beta1, beta2, epsilon) = (self.beta1, self.beta2, self.epsilon);
        let refreshes = (seen as u64).is_multiple_of(self.frequency);
        let shares = self
            .stacks
            .iter()
            .flat_map(|stack| stack.split(threads.count()));
        let items =
            shares.map(|share| (share, gradient.shallow_clone(), direction.shallow_clone()));
        threads.map(items.collect(), |(mut stack, gradient, mut direction)| {
            let gradient = stack.group.gather(&gradient);
            if seen == 0 {
                // The first gradient only initializes the bases, and the step computed by NAdam is
                // kept. In bases derived from this gradient alone, a step of Adam would carry no
                // information about the relative sizes of its elements.
                stack.watch(&gradient, 0.0);
                stack.rows.decompose();
                stack.columns.decompose();
                return;
            }
            let _ = stack.mean.lerp_(&gradient, 1.0 - beta1);
            stack.square *= beta2;
            stack.square += stack.project(&gradient).square() * (1.0 - beta2);
            let unbiased = |beta: f64| 1.0 - beta.powf(seen as f64);
            let mean = stack.project(&stack.mean) / unbiased(beta1);
            let scale = (&stack.square / unbiased(beta2)).sqrt() + epsilon;
            let steps = stack.unproject(&(mean / scale));
            stack.group.scatter(&steps, &mut direction);
            stack.watch(&gradient, beta2);
            if refreshes {
                stack.refresh();
            }
        });
    }

    fn memory(&self) -> Memory {
        let named = |stack: &Stack| {
            let [rows, columns] = stack.group.shape;
            [
                ("mean", &stack.mean),
                ("square", &stack.square),
                ("row_covariance", &stack.rows.covariance),
                ("row_basis", &stack.rows.basis),
                ("column_covariance", &stack.columns.covariance),
                ("column_basis", &stack.columns.basis),
            ]
            .map(|(what, tensor)| {
                let name = format!("soap.{rows}x{columns}.{what}");
                (name, tensor.shallow_clone())
            })
        };
        let seen = ("soap.seen".to_owned(), self.seen.shallow_clone());
        std::iter::once(seen)
            .chain(self.stacks.iter().flat_map(named))
            .collect()
    }
}

impl Stack {
    /// Splits the state into at most `count` groups of matrices.
    fn split(&self, count: usize) -> impl Iterator<Item = Stack> {
        let mut start = 0;
        self.group.split(count).map(move |group| {
            let of = |tensor: &Tensor| tensor.narrow(0, start, group.len());
            let side = |side: &Side| Side {
                covariance: of(&side.covariance),
                basis: of(&side.basis),
            };
            let stack = Stack {
                mean: of(&self.mean),
                square: of(&self.square),
                rows: side(&self.rows),
                columns: side(&self.columns),
                group,
            };
            start += stack.group.len();
            stack
        })
    }

    /// Decays both covariances by `decay` and adds the covariances of `gradient`.
    fn watch(&mut self, gradient: &Tensor, decay: f64) {
        let across = gradient.transpose(1, 2);
        let _ = self
            .rows
            .covariance
            .lerp_(&gradient.bmm(&across), 1.0 - decay);
        let _ = self
            .columns
            .covariance
            .lerp_(&across.bmm(gradient), 1.0 - decay);
    }

    /// Projects matrices onto the bases.
    fn project(&self, matrices: &Tensor) -> Tensor {
        let rows = self.rows.basis.transpose(1, 2);
        rows.bmm(matrices).bmm(&self.columns.basis)
    }

    /// Projects matrices back from the bases to the parameters' own axes.
    fn unproject(&self, matrices: &Tensor) -> Tensor {
        let columns = self.columns.basis.transpose(1, 2);
        self.rows.basis.bmm(matrices).bmm(&columns)
    }

    /// Updates both bases and reorders the squared gradients accordingly.
    fn refresh(&mut self) {
        let [rows, columns] = self.group.shape;
        let order = self
            .rows
            .turn()
            .unsqueeze(2)
            .expand([-1, -1, columns], false);
        let square = self.square.gather(1, &order, false);
        let order = self
            .columns
            .turn()
            .unsqueeze(1)
            .expand([-1, rows, -1], false);
        self.square.copy_(&square.gather(2, &order, false));
    }
}

impl Side {
    /// Computes the eigenvectors from scratch.
    fn decompose(&mut self) {
        // The guard reports NaN gradients later, but in `linalg_eigh` a NaN would abort the
        // program.
        let (_, basis) = self.covariance.nan_to_num(0.0, 0.0, 0.0).linalg_eigh("L");
        self.basis.copy_(&basis.flip([2]));
    }

    /// Runs one round of power iteration. The axes are first sorted by their share of the
    /// covariance, largest first, so that the QR decomposition changes the most important axes
    /// least. Returns the old index of each axis, i64 [n, side].
    fn turn(&mut self) -> Tensor {
        let moved = self.covariance.bmm(&self.basis);
        let carried =
            (&self.basis * &moved).sum_dim_intlist([1i64].as_slice(), false, None::<Kind>);
        let order = carried.argsort(-1, true);
        let columns = order.unsqueeze(1).expand_as(&moved);
        let (basis, _) = Tensor::linalg_qr(&moved.gather(2, &columns, false), "reduced");
        self.basis.copy_(&basis);
        order
    }
}
