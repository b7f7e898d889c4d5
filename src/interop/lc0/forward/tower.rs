//! Residual towers. Between convolutions all is [B, 64, channels]: to libtorch
//! those are images whose channels come last, which its CPU kernels like best.

use super::Pass;
use crate::interop::lc0::config::Tower;
use tch::{Kind, Tensor};

impl Pass<'_> {
    /// From planes [B, 64, 112] to [B, 64, filters].
    pub(super) fn tower(&self, tower: &Tower, planes: &Tensor) -> Tensor {
        let activation = self.config.activation;
        let mut x = activation.forward(&self.convolution("input", planes));
        for block in 0..tower.blocks {
            let path = format!("body.{block}");
            let y = activation.forward(&self.convolution(&format!("{path}.conv1"), &x));
            let y = self.convolution(&format!("{path}.conv2"), &y);
            let sum = match tower.squeeze {
                None => y + x,
                Some(_) => {
                    let [gain, shift] = self.excitation(&path, &y);
                    (x + shift).addcmul(&y, &gain)
                }
            };
            x = activation.forward(&sum);
        }
        x
    }

    /// Squeeze and excitation (Hu et al., 2018) with a shift besides the gain:
    /// both [B, 1, filters].
    fn excitation(&self, path: &str, y: &Tensor) -> [Tensor; 2] {
        let squeezed = y.mean_dim([1i64].as_slice(), false, None::<Kind>);
        let hidden = self.dense(&format!("{path}.squeeze"), &squeezed);
        let hidden = self.config.activation.forward(&hidden);
        let both = self.dense(&format!("{path}.excite"), &hidden).unsqueeze(1);
        let filters = both.size()[2] / 2;
        [
            both.narrow(2, 0, filters).sigmoid(),
            both.narrow(2, filters, filters),
        ]
    }

    /// A 3 × 3 convolution that keeps the board's size.
    pub(super) fn convolution(&self, name: &str, x: &Tensor) -> Tensor {
        let weight = self.weight(&format!("{name}.weight"));
        let [output, input] = [0, 1].map(|dimension| weight.size()[dimension]);
        let bias = self.weight(&format!("{name}.bias"));
        x.view([-1, 8, 8, input])
            .permute([0, 3, 1, 2])
            .conv2d(weight, Some(bias), [1, 1], [1, 1], [1, 1], 1)
            .permute([0, 2, 3, 1])
            .reshape([-1, 64, output])
    }
}
