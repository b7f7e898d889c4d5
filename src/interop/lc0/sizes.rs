//! An interface to the sizes of a network's tensors, independent of the file format.

use super::Lc0Error;

/// Access to a network's tensors by our names.
pub(in crate::interop) trait Sizes {
    /// Returns the number of elements of a tensor, or 0 if it is absent.
    fn count(&self, name: &str) -> i64;

    /// Returns the number of layers at a path or, for a name that ends in `heads`, the number of
    /// attention heads.
    fn number(&self, name: &str) -> i64;

    /// Returns [`Sizes::count`] of a required tensor.
    ///
    /// # Errors
    /// [`Lc0Error::Missing`] if it is absent.
    fn needed(&self, name: &str) -> Result<i64, Lc0Error> {
        match self.count(name) {
            0 => Err(Lc0Error::Missing(name.to_owned())),
            count => Ok(count),
        }
    }

    /// Returns [`Sizes::count`] of an optional tensor.
    fn optional(&self, name: &str) -> Option<i64> {
        Some(self.count(name)).filter(|&count| count > 0)
    }

    /// Returns the number of output channels of a convolution, whether or not its batch norm has
    /// been folded.
    ///
    /// # Errors
    /// [`Lc0Error::Missing`] if it is absent.
    fn channels(&self, module: &str) -> Result<i64, Lc0Error> {
        let [biases, means] =
            ["bias", "bn_means"].map(|part| self.count(&format!("{module}.{part}")));
        match biases.max(means) {
            0 => Err(Lc0Error::Missing(module.to_owned())),
            channels => Ok(channels),
        }
    }
}
