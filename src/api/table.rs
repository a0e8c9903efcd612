//! Tables. Their rows check requests, show, filter and order resources, and generate the description of the API.

pub mod dialect;
pub mod field;
pub mod frame;
pub mod json;
pub mod like_pattern;
pub mod openapi;
pub mod page;
pub mod parameter;
pub mod query;
pub mod route;
pub mod row;
pub mod rule;
pub mod select;
pub mod shape;
pub mod smallest_keys;
pub mod version;

// For modules outside this folder. The modules in it import each other directly, so that no import is circular.
pub use dialect::{Dialect, DialectSet};
pub use frame::Frame;
pub use page::{Estimate, Listing};
pub use parameter::{Parameter, both};
pub use route::{Call, Outcome};
pub use row::Member;
pub use rule::{Bound, Check, ParameterValue, Rule};
pub use shape::Shape;
