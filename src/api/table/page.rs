//! Pages: the part of a list that is shown, and the figures about the whole. Source: api.md 2.

use super::{
    json::{Object, write_list},
    parameter::Parameters,
    query,
};
use serde_json::{Map, Value};

/// The requested part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// The page's number, from 1.
    pub number: u64,
    /// The largest number of rows, 1 to 100.
    pub limit: usize,
    /// Index of the first row.
    pub start: u64,
}

/// One page of a list.
pub(crate) struct Listing<T> {
    /// The rows of this page.
    pub rows: Vec<T>,
    /// The number of rows of all pages.
    pub total: u64,
    pub estimate: Estimate,
}

/// The flag of a list that its total is an estimate. It never is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Estimate {
    Unsaid,
    No,
    /// Clients expect the flag to be set exactly when a page is full or empty.
    WhenFullOrEmpty,
}

impl Page {
    /// From the parameters of [`PAGING`](super::parameter::PAGING).
    pub fn of(parameters: &Parameters) -> Self {
        let (number, limit) =
            (parameters.number("page").unwrap_or(1_u64), parameters.number("limit").unwrap_or(100_u64));
        let start = match parameters.number("offset") {
            None | Some(0) => number.saturating_sub(1).saturating_mul(limit),
            Some(offset) => offset,
        };
        Self { number, limit: limit as usize, start }
    }

    /// The indexes of this page's rows in a list of `total` rows.
    pub fn range(self, total: u64) -> std::ops::Range<u64> {
        let start = self.start.min(total);
        start..start.saturating_add(self.limit as u64).min(total)
    }

    /// The number of rows up to the end of this page.
    pub fn end(self) -> usize {
        usize::try_from(self.start).unwrap_or(usize::MAX).saturating_add(self.limit)
    }

    /// This page of a whole list.
    pub fn cut<T>(self, rows: Vec<T>) -> Listing<T> {
        let total = rows.len() as u64;
        let rows = rows.into_iter().skip(self.range(total).start as usize).take(self.limit).collect();
        Listing { rows, total, estimate: Estimate::Unsaid }
    }

    /// This page of a list whose rows are made one by one.
    pub fn pick<T>(self, total: u64, row: impl FnMut(u64) -> Option<T>) -> Listing<T> {
        Listing { rows: self.range(total).filter_map(row).collect(), total, estimate: Estimate::Unsaid }
    }
}

impl<T> Listing<T> {
    /// A list without rows.
    pub fn empty() -> Self {
        Self { rows: Vec::new(), total: 0, estimate: Estimate::Unsaid }
    }

    /// The same list, saying whether its total is an estimate.
    pub fn with_estimate(self, estimate: Estimate) -> Self {
        Self { estimate, ..self }
    }

    /// `{"meta":…,"data":[…]}`.
    pub fn write(
        self,
        page: Page,
        (path, values, transform): (&str, &Map<String, Value>, bool),
        write: impl FnMut(&mut Vec<u8>, T),
    ) -> Vec<u8> {
        let pages = self.total.div_ceil(page.limit as u64).max(1);
        let link = |number| query::link(path, values, transform, page.limit, number);
        let mut out = Vec::with_capacity(512 + 512 * self.rows.len());
        out.extend_from_slice(br#"{"meta":"#);
        let mut meta = Object::open(&mut out);
        let is_full_or_empty = self.rows.is_empty() || self.rows.len() == page.limit;
        match self.estimate {
            Estimate::Unsaid => {}
            Estimate::No => meta.member("totalCountIsEstimate").put(&false),
            Estimate::WhenFullOrEmpty => meta.member("totalCountIsEstimate").put(&is_full_or_empty),
        }
        meta.member("count").put(&self.rows.len());
        meta.member("pageCount").put(&pages);
        meta.member("totalCount").put(&self.total);
        meta.member("next").put(&(page.number < pages).then(|| link(page.number + 1)));
        let has_previous = self.total > 0 && page.number > 1 && page.number <= pages + 1;
        meta.member("previous").put(&has_previous.then(|| link(page.number - 1)));
        meta.member("self").put(&link(page.number));
        meta.member("first").put(&link(1));
        meta.member("last").put(&(self.total > 0).then(|| link(pages)));
        meta.close();
        out.extend_from_slice(br#","data":"#);
        write_list(&mut out, self.rows, write);
        out.push(b'}');
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::table::{dialect::Dialect, json::write_value, parameter::PAGING};

    fn page(query: &str) -> (Page, Map<String, Value>) {
        let values = query::parse(query);
        (Page::of(&Parameters::check(&[PAGING], &values, Dialect::Documented).unwrap()), values)
    }

    fn meta(query: &str, total: u32) -> Value {
        let (page, values) = page(query);
        let listing = page.cut((0..total).collect()).with_estimate(Estimate::WhenFullOrEmpty);
        let out = listing.write(page, ("/x", &values, false), |out, row| write_value(out, &row));
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn an_offset_beats_the_page() {
        assert_eq!(page("page=3&limit=10").0, Page { number: 3, limit: 10, start: 20 });
        assert_eq!(page("page=3&limit=10&offset=5").0.start, 5);
        assert_eq!(page("page=9007199254740991").0.range(7), 7..7);
    }

    #[test]
    fn links_end_where_the_list_ends() {
        let first = meta("limit=2", 5);
        assert_eq!(first["meta"]["next"], "/x?limit=2&page=2");
        assert_eq!(first["meta"]["previous"], Value::Null);
        assert_eq!(first["meta"]["last"], "/x?limit=2&page=3");
        assert_eq!(first["meta"]["totalCountIsEstimate"], true);
        let last = meta("limit=2&page=3", 5);
        assert_eq!(last["meta"]["next"], Value::Null);
        assert_eq!(last["meta"]["totalCountIsEstimate"], false);
        assert_eq!(last["data"], serde_json::json!([4]));
        let beyond = meta("limit=2&page=4", 5);
        assert_eq!(beyond["meta"]["previous"], "/x?limit=2&page=3");
        assert_eq!(beyond["meta"]["count"], 0);
        assert_eq!(meta("limit=2&page=5", 5)["meta"]["previous"], Value::Null);
        let empty = meta("", 0);
        assert_eq!(empty["meta"]["last"], Value::Null);
        assert_eq!(empty["meta"]["pageCount"], 1);
    }
}
