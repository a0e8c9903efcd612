//! The state that a cut chain is computed from.
//!
//! Where blocks have settled, no state below the cut is kept but one: that after the highest settled block, the base. All later
//! states follow from it. A process that starts again reads the base instead of applying every block from genesis on.

use super::{Link, saved::saved, state::Applied};
use crate::protocol::{BlockId, Height};
use std::sync::Arc;

/// The state after the highest settled block.
#[derive(Clone, Debug)]
pub struct Base {
    pub height: Height,
    pub id: BlockId,
    pub applied: Arc<Applied>,
}

saved!(struct Base { height, id, applied });

impl Base {
    /// Returns true if it is the state after this block.
    pub fn is_of(&self, link: &Link) -> bool {
        self.height == link.height() && self.id == link.id()
    }
}
