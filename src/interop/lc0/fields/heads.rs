//! The tensors of the heads.

use super::{BOARD, SQUARES, Visited, Walk};
use crate::encode::POLICY_SIZE;
use crate::interop::lc0::config::{Lc0Config, PolicyHead, PolicyHeadConfig, ValueHead};
use crate::interop::lc0::schema::{self, ConvBlock, PolicyHeads, ValueHeads, Weights};

impl Walk<'_, '_> {
    pub(super) fn policies(&mut self, config: &Lc0Config, heads: &mut PolicyHeads) -> Visited {
        let width = config.width();
        if let Some(embedding) = config.policy.embedding {
            let PolicyHeads {
                ip_pol_w, ip_pol_b, ..
            } = heads;
            self.dense("embedding", (embedding, width), SQUARES, ip_pol_w, ip_pol_b)?;
        }
        for (&name, head) in &config.policy.heads {
            let message = policy_head(heads, name).get_or_insert_default();
            self.within(name.name(), |walk| {
                walk.policy(head, config.policy.embedding, width, message)
            })?;
        }
        Ok(())
    }

    fn policy(
        &mut self,
        config: &PolicyHeadConfig,
        shared: Option<i64>,
        width: i64,
        message: &mut schema::PolicyHead,
    ) -> Visited {
        let schema::PolicyHead {
            ip_pol_w,
            ip_pol_b,
            ip2_pol_w,
            ip2_pol_b,
            ip3_pol_w,
            ip3_pol_b,
            ip4_pol_w,
            pol_encoder,
            pol_headcount,
            policy1,
            policy,
        } = message;
        match *config {
            PolicyHeadConfig::Classical { channels } => {
                let block = policy.get_or_insert_default();
                let ConvBlock {
                    weights, biases, ..
                } = block;
                self.dense("squares", (channels, width), SQUARES, weights, biases)?;
                let dense = (POLICY_SIZE as i64, 64 * channels);
                self.dense("moves", dense, BOARD, ip_pol_w, ip_pol_b)
            }
            PolicyHeadConfig::Convolutional { channels } => {
                self.convolution("conv1", (width, width), policy1)?;
                self.convolution("conv2", (channels, width), policy)
            }
            PolicyHeadConfig::Attention {
                embedding,
                encoder,
                width: attention,
            } => {
                if let Some(embedding) = embedding {
                    self.dense("embedding", (embedding, width), SQUARES, ip_pol_w, ip_pol_b)?;
                }
                let embedding = embedding.or(shared).unwrap_or_default();
                if let Some(encoder) = &encoder {
                    *pol_headcount = Some(encoder.heads as u32);
                    self.encoder(encoder, embedding, pol_encoder)?;
                }
                let shape = (attention, embedding);
                self.dense("query", shape, SQUARES, ip2_pol_w, ip2_pol_b)?;
                self.dense("key", shape, SQUARES, ip3_pol_w, ip3_pol_b)?;
                // The squares of the last rank.
                self.tensor("promotion.weight", &[4, attention], 8, ip4_pol_w)
            }
        }
    }

    pub(super) fn values(&mut self, config: &Lc0Config, heads: &mut ValueHeads) -> Visited {
        let width = config.width();
        for (&name, head) in &config.value {
            let message = value_head(heads, name).get_or_insert_default();
            let schema::ValueHead {
                ip_val_w,
                ip_val_b,
                ip1_val_w,
                ip1_val_b,
                ip2_val_w,
                ip2_val_b,
                ip_val_err_w,
                ip_val_err_b,
                ip_val_cat_w,
                ip_val_cat_b,
                value,
            } = message;
            let squares = match config.attention {
                Some(_) => (ip_val_w, ip_val_b),
                None => {
                    let block = value.get_or_insert_default();
                    (&mut block.weights, &mut block.biases)
                }
            };
            self.within(name.name(), |walk| {
                let (features, hidden) = (head.features, head.hidden);
                let (weight, bias) = squares;
                walk.dense("squares", (features, width), SQUARES, weight, bias)?;
                let board = (hidden, 64 * features);
                walk.dense("hidden", board, BOARD, ip1_val_w, ip1_val_b)?;
                let outputs = if head.wdl { 3 } else { 1 };
                walk.dense("output", (outputs, hidden), BOARD, ip2_val_w, ip2_val_b)?;
                if head.error {
                    walk.dense("error", (1, hidden), BOARD, ip_val_err_w, ip_val_err_b)?;
                }
                match head.buckets {
                    None => Ok(()),
                    Some(buckets) => {
                        let shape = (buckets, hidden);
                        walk.dense("categorical", shape, BOARD, ip_val_cat_w, ip_val_cat_b)
                    }
                }
            })?;
        }
        Ok(())
    }

    pub(super) fn moves_left(&mut self, config: &Lc0Config, weights: &mut Weights) -> Visited {
        let Some(head) = config.moves_left else {
            return Ok(());
        };
        let Weights {
            moves_left,
            ip_mov_w,
            ip_mov_b,
            ip1_mov_w,
            ip1_mov_b,
            ip2_mov_w,
            ip2_mov_b,
            ..
        } = weights;
        let squares = match config.attention {
            Some(_) => (ip_mov_w, ip_mov_b),
            None => {
                let block = moves_left.get_or_insert_default();
                (&mut block.weights, &mut block.biases)
            }
        };
        let (features, hidden) = (head.features, head.hidden);
        let shape = (features, config.width());
        let (weight, bias) = squares;
        self.dense("squares", shape, SQUARES, weight, bias)?;
        let board = (hidden, 64 * features);
        self.dense("hidden", board, BOARD, ip1_mov_w, ip1_mov_b)?;
        self.dense("output", (1, hidden), BOARD, ip2_mov_w, ip2_mov_b)
    }
}

/// The place of a policy.
pub(in crate::interop::lc0) fn policy_head(
    heads: &mut PolicyHeads,
    name: PolicyHead,
) -> &mut Option<schema::PolicyHead> {
    match name {
        PolicyHead::Vanilla => &mut heads.vanilla,
        PolicyHead::Optimistic => &mut heads.optimistic_st,
        PolicyHead::Soft => &mut heads.soft,
        PolicyHead::Opponent => &mut heads.opponent,
    }
}

/// The place of a value.
pub(in crate::interop::lc0) fn value_head(
    heads: &mut ValueHeads,
    name: ValueHead,
) -> &mut Option<schema::ValueHead> {
    match name {
        ValueHead::Winner => &mut heads.winner,
        ValueHead::Q => &mut heads.q,
        ValueHead::St => &mut heads.st,
    }
}
