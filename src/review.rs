//! A player's own game, reviewed: what went wrong, what players of a rating do there, and
//! why.
//!
//! | part | holds |
//! |---|---|
//! | `facts` | reasons in sentences, each checked on the board |

pub mod facts;
