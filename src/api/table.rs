//! Tables. Their rows check requests, show, filter and order resources, and generate the description of the API.

pub(crate) mod dialect;
pub(crate) mod field;
pub(crate) mod frame;
pub(crate) mod json;
pub(crate) mod like_pattern;
pub(crate) mod openapi;
pub(crate) mod page;
pub(crate) mod parameter;
pub(crate) mod query;
pub(crate) mod route;
pub(crate) mod row;
pub(crate) mod rule;
pub(crate) mod select;
pub(crate) mod shape;
pub(crate) mod smallest_keys;
pub(crate) mod version;

// For modules outside this folder. The modules in it import each other directly, so that no import is circular.
pub(crate) use dialect::{Dialect, DialectSet};
pub(crate) use frame::Frame;
pub(crate) use page::{Estimate, Listing};
pub(crate) use parameter::{Parameter, both};
pub(crate) use route::{Call, Outcome};
pub(crate) use row::Member;
pub(crate) use rule::{Bound, Check, ParameterValue, Rule};
pub(crate) use shape::Shape;
