//! Lists of a scenario in CSV files: links, vote weights of delegates, regions and classes of nodes, matrices between regions.
//! `{ file = NAME }` stands for the list.
//!
//! A file is read with the scenario file that names it, and its list takes the place of the name. So a scenario as a value holds the
//! list, and its text is one of the scenario's texts, like that of an included file.

use crate::scenario::mistake::Mistake;
use std::{collections::BTreeMap, str::FromStr};
use toml::{Table, Value};

/// A list that may be in a file.
pub(crate) struct FileList {
    /// The keys that lead to it.
    pub path: &'static [&'static str],
    pub read: fn(&str) -> Result<ReadList, WrongLine>,
}

/// A list that was read, and the line of each entry.
#[derive(Debug)]
pub(crate) struct ReadList {
    pub values: Vec<Value>,
    pub lines: Vec<usize>,
}

/// A line of a file that is not allowed, counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrongLine {
    pub line: usize,
    pub found: String,
    pub allowed: String,
}

/// All lists that may be in files.
pub(crate) const FILE_LISTS: [FileList; 7] = [
    FileList { path: &["network", "topology", "edges"], read: edges },
    FileList { path: &["network", "links"], read: links },
    FileList { path: &["network", "regions", "nodes"], read: regions_of_nodes },
    FileList { path: &["network", "classes", "nodes"], read: classes_of_nodes },
    FileList { path: &["network", "regions", "latency_ms"], read: latencies },
    FileList { path: &["network", "regions", "bandwidth"], read: bandwidths },
    FileList { path: &["network", "vote_weights", "list"], read: vote_weights },
];

impl FileList {
    /// The path as one text.
    pub fn key(&self) -> String {
        self.path.join(".")
    }

    /// The value of the list in a table.
    pub fn value<'a>(&self, table: &'a mut Table) -> Option<&'a mut Value> {
        let (last, above) = self.path.split_last()?;
        above.iter().try_fold(table, |table, key| table.get_mut(*key)?.as_table_mut())?.get_mut(*last)
    }
}

/// The name of the file in `{ file = NAME }`.
pub(crate) fn file_of(value: &Value) -> Option<&str> {
    let table = value.as_table().filter(|table| table.len() == 1)?;
    table.get("file")?.as_str()
}

/// Checks that no list is a table. All files are already read, so a remaining name of a file is a replaced value.
pub(crate) fn check_read(table: &mut Table) -> Result<(), Mistake> {
    for list in &FILE_LISTS {
        if let Some(value @ Value::Table(_)) = list.value(table) {
            let allowed = "a list, or in a scenario file { file = NAME }";
            return Err(Mistake::new(list.key(), value.to_string(), allowed));
        }
    }
    Ok(())
}

/// The headers of a file of links. The longer one is the header of the table `links` of a run.
const LINKS: [&str; 2] = ["from,to", "from,to,latency_us,latency_back_us"];

/// Reads the links of a topology by the numbers of their nodes. Also accepts the table `links` of a run, and ignores its latencies.
fn edges(text: &str) -> Result<ReadList, WrongLine> {
    let rows = rows(text, &LINKS)?;
    let pair = |(line, cells): &(usize, Vec<&str>)| {
        let both = cells[..2].iter().map(|cell| node(*line, cell)).collect::<Result<Vec<_>, _>>()?;
        Ok(Value::Array(both))
    };
    let values = rows.iter().map(pair).collect::<Result<_, _>>()?;
    Ok(ReadList { values, lines: rows.into_iter().map(|(line, _)| line).collect() })
}

/// Reads latencies of links by direction. For an empty cell, the network decides the latency. Also accepts the table `links` of a run.
fn links(text: &str) -> Result<ReadList, WrongLine> {
    let (mut values, mut lines) = (Vec::new(), Vec::new());
    for (line, cells) in rows(text, &[LINKS[1], "from,to,latency_us"])? {
        let ends = [node(line, cells[0])?, node(line, cells[1])?];
        for (cell, [from, to]) in cells[2..].iter().zip([[0, 1], [1, 0]]).filter(|(cell, _)| !cell.is_empty()) {
            let micros: u64 = whole(line, cell, "a whole number of microseconds")?;
            let latency = [("distribution", Value::from("constant")), ("ms", Value::from(micros as f64 / 1_000.0))];
            let link = [("from", ends[from].clone()), ("to", ends[to].clone()), ("latency", table(latency))];
            values.push(table(link));
            lines.push(line);
        }
    }
    Ok(ReadList { values, lines })
}

/// The region of each node by number.
fn regions_of_nodes(text: &str) -> Result<ReadList, WrongLine> {
    numbers_of_nodes(text, "node,region", "the number of a region")
}

/// The class of each node by number.
fn classes_of_nodes(text: &str) -> Result<ReadList, WrongLine> {
    numbers_of_nodes(text, "node,class", "the number of a class")
}

/// A number for each node.
fn numbers_of_nodes(text: &str, header: &'static str, number: &'static str) -> Result<ReadList, WrongLine> {
    let (mut values, mut lines) = (Vec::new(), Vec::new());
    for (line, cells) in rows(text, &[header])? {
        if cells[0] != values.len().to_string() {
            let allowed = format!("'{}': each node once, in ascending order", values.len());
            return Err(WrongLine { line, found: format!("'{}'", cells[0]), allowed });
        }
        values.push(Value::from(i64::from(whole::<u16>(line, cells[1], number)?)));
        lines.push(line);
    }
    Ok(ReadList { values, lines })
}

/// A matrix of latencies in milliseconds.
fn latencies(text: &str) -> Result<ReadList, WrongLine> {
    matrix(text, |line, cell| match cell.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Value::from(number)),
        _ => Err(WrongLine { line, found: format!("'{cell}'"), allowed: "a number of milliseconds".to_owned() }),
    })
}

/// A matrix of bytes per second.
fn bandwidths(text: &str) -> Result<ReadList, WrongLine> {
    matrix(text, |line, cell| whole::<u64>(line, cell, "a whole number of bytes per second").map(whole_value))
}

/// Reads a matrix between regions. The header names the regions. Each row begins with the name of its region, in the same order.
fn matrix(text: &str, entry: fn(usize, &str) -> Result<Value, WrongLine>) -> Result<ReadList, WrongLine> {
    let header = text.strip_prefix('\u{feff}').unwrap_or(text).lines().next().unwrap_or_default();
    let names: Vec<&str> = cells(header);
    if names.len() < 2 || names[0] != "from" {
        let allowed = "the header 'from,' with the names of all regions".to_owned();
        return Err(WrongLine { line: 1, found: format!("'{header}'"), allowed });
    }
    let (mut values, mut lines) = (Vec::new(), Vec::new());
    for (line, row) in rows(text, &[header])? {
        let name = names.get(values.len() + 1);
        if name != Some(&row[0]) {
            let allowed = name.map_or("no more rows than the header has names".to_owned(), |name| format!("'{name}'"));
            return Err(WrongLine { line, found: format!("'{}'", row[0]), allowed });
        }
        values.push(Value::Array(row[1..].iter().map(|cell| entry(line, cell)).collect::<Result<_, _>>()?));
        lines.push(line);
    }
    Ok(ReadList { values, lines })
}

fn table<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Table(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn node(line: usize, cell: &str) -> Result<Value, WrongLine> {
    whole::<u32>(line, cell, "the number of a node").map(|number| Value::from(i64::from(number)))
}

fn whole<T: FromStr>(line: usize, cell: &str, allowed: &str) -> Result<T, WrongLine> {
    cell.parse().map_err(|_| WrongLine { line, found: format!("'{cell}'"), allowed: allowed.to_owned() })
}

/// Converts a number to TOML, whose numbers have 63 bits. A greater number becomes the greatest one.
fn whole_value(number: u64) -> Value {
    Value::from(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The vote weights of all delegates by number, in arktoshi. Each of the names `genesis_1` to `genesis_n` has one of the n rows.
fn vote_weights(text: &str) -> Result<ReadList, WrongLine> {
    let rows = rows(text, &["username,weight"])?;
    let mut by_number = BTreeMap::new();
    for (line, cells) in &rows {
        let (line, (name, weight)) = (*line, (cells[0], cells[1]));
        let number = name.strip_prefix("genesis_").and_then(|number| number.parse::<usize>().ok());
        let number = number.filter(|number| (1..=rows.len()).contains(number) && name == format!("genesis_{number}"));
        let Some(number) = number else {
            let allowed = format!("'genesis_1' to 'genesis_{0}', since the file has {0} rows", rows.len());
            return Err(WrongLine { line, found: format!("'{name}'"), allowed });
        };
        // A number of TOML has 63 bits.
        let Some(value) = weight.parse::<u64>().ok().and_then(|weight| i64::try_from(weight).ok()) else {
            let allowed = "a whole number of arktoshi".to_owned();
            return Err(WrongLine { line, found: format!("'{weight}'"), allowed });
        };
        if let Some((before, _)) = by_number.insert(number, (line, Value::from(value))) {
            let found = format!("'{name}' again, as in line {before}");
            return Err(WrongLine { line, found, allowed: "each delegate once".to_owned() });
        }
    }
    let (lines, values) = by_number.into_values().unzip();
    Ok(ReadList { values, lines })
}

/// The cells of each row below the header, with the row's line. The first line must be one of these headers. Cells may be in quotes.
fn rows<'a>(text: &'a str, headers: &[&str]) -> Result<Vec<(usize, Vec<&'a str>)>, WrongLine> {
    // Spreadsheets put a byte order mark before the first line.
    let mut lines = (1..).zip(text.strip_prefix('\u{feff}').unwrap_or(text).lines());
    let header = lines.next().map_or("", |(_, header)| header);
    let columns = cells(header);
    if !headers.iter().any(|allowed| cells(allowed) == columns) {
        let allowed = headers.iter().map(|header| format!("'{header}'")).collect::<Vec<_>>().join(" or ");
        return Err(WrongLine { line: 1, found: format!("'{header}'"), allowed: format!("the header {allowed}") });
    }
    let row = |(line, text): (usize, &'a str)| match cells(text) {
        cells if cells.len() == columns.len() => Ok((line, cells)),
        _ => Err(WrongLine { line, found: format!("'{text}'"), allowed: format!("{} cells", columns.len()) }),
    };
    lines.map(row).collect()
}

/// The cells of a line of a CSV file, without spaces and quotes around them.
pub(crate) fn cells(line: &str) -> Vec<&str> {
    line.split(',').map(|cell| unquoted(cell.trim())).collect()
}

fn unquoted(cell: &str) -> &str {
    cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')).unwrap_or(cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(of: fn(&str) -> Result<ReadList, WrongLine>, text: &str) -> Result<(String, Vec<usize>), String> {
        match of(text) {
            Ok(ReadList { values, lines }) => Ok((Value::Array(values).to_string(), lines)),
            Err(WrongLine { line, found, allowed }) => Err(format!("{line}: {found}, {allowed}")),
        }
    }

    #[test]
    fn edges_are_read_with_their_lines() {
        assert_eq!(read(edges, "from,to\n0,1\n2,1\n"), Ok(("[[0, 1], [2, 1]]".to_owned(), vec![2, 3])));
        assert_eq!(read(edges, "\"from\", \"to\"\r\n\"3\", 4\r\n"), Ok(("[[3, 4]]".to_owned(), vec![2])));
        let whole = "from,to,latency_us,latency_back_us\n0,1,5000,6000\n1,2,,\n";
        assert_eq!(read(edges, whole), Ok(("[[0, 1], [1, 2]]".to_owned(), vec![2, 3])));
        assert_eq!(read(edges, "from,to\n"), Ok(("[]".to_owned(), vec![])));
        assert_eq!(read(edges, "\u{feff}from,to\n5,6\n"), Ok(("[[5, 6]]".to_owned(), vec![2])));
        let header = "the header 'from,to' or 'from,to,latency_us,latency_back_us'";
        for (text, found) in
            [("", ""), ("0,1\n", "0,1"), ("to,from\n", "to,from"), ("from,to,weight\n", "from,to,weight")]
        {
            assert_eq!(read(edges, text), Err(format!("1: '{found}', {header}")));
        }
        for (row, found) in [("0", "0"), ("0,1,2", "0,1,2"), ("", ""), ("0;1", "0;1")] {
            assert_eq!(read(edges, &format!("from,to\n0,1\n{row}\n")), Err(format!("3: '{found}', 2 cells")));
        }
        for cell in ["-1", "1.0", "a", "", "4294967296"] {
            assert_eq!(read(edges, &format!("from,to\n0,{cell}\n")), Err(format!("2: '{cell}', the number of a node")));
        }
    }

    #[test]
    fn latencies_of_links_are_read_by_direction() {
        let text = "from,to,latency_us,latency_back_us\n0,1,5000,6500\n1,2,,\n2,3,,7\n";
        let link = |from, to, ms: &str| {
            format!("{{ from = {from}, latency = {{ distribution = \"constant\", ms = {ms} }}, to = {to} }}")
        };
        let expected = format!("[{}, {}, {}]", link(0, 1, "5.0"), link(1, 0, "6.5"), link(3, 2, "0.007"));
        assert_eq!(read(links, text), Ok((expected, vec![2, 2, 4])));
        let one_way = format!("[{}]", link(4, 0, "9.0"));
        assert_eq!(read(links, "from,to,latency_us\n4,0,9000\n"), Ok((one_way, vec![2])));
        for cell in ["-1", "1.5", "a", "1e3"] {
            let text = format!("from,to,latency_us\n0,1,{cell}\n");
            assert_eq!(read(links, &text), Err(format!("2: '{cell}', a whole number of microseconds")));
        }
        assert!(read(links, "from,to\n0,1\n").is_err_and(|why| why.contains("'from,to,latency_us'")));
    }

    #[test]
    fn matrices_have_the_rows_of_their_columns() {
        let text = "from,eu,us\neu,10,90.5\n\"us\",95,12\n";
        assert_eq!(read(latencies, text), Ok(("[[10.0, 90.5], [95.0, 12.0]]".to_owned(), vec![2, 3])));
        let text = "from,eu,us\neu,1000,20\nus,30,4000\n";
        assert_eq!(read(bandwidths, text), Ok(("[[1000, 20], [30, 4000]]".to_owned(), vec![2, 3])));
        for (text, why) in [
            ("", "1: '', the header 'from,' with the names of all regions"),
            ("to,eu\neu,1\n", "1: 'to,eu', the header 'from,' with the names of all regions"),
            ("from,eu,us\nus,1,2\neu,3,4\n", "2: 'us', 'eu'"),
            ("from,eu\neu,1\nus,2\n", "3: 'us', no more rows than the header has names"),
            ("from,eu\neu,1,2\n", "2: 'eu,1,2', 2 cells"),
            ("from,eu\neu,nan\n", "2: 'nan', a number of milliseconds"),
            ("from,eu\neu,fast\n", "2: 'fast', a number of milliseconds"),
        ] {
            assert_eq!(read(latencies, text), Err(why.to_owned()), "{text}");
        }
        let rate = "2: '1.5', a whole number of bytes per second";
        assert_eq!(read(bandwidths, "from,eu\neu,1.5\n"), Err(rate.to_owned()));
    }

    #[test]
    fn regions_are_read_by_node() {
        assert_eq!(read(regions_of_nodes, "node,region\n0,2\n1,0\n"), Ok(("[2, 0]".to_owned(), vec![2, 3])));
        let again = read(regions_of_nodes, "node,region\n0,2\n0,0\n");
        assert_eq!(again, Err("3: '0', '1': each node once, in ascending order".to_owned()));
        let wrong = read(regions_of_nodes, "node,region\n0,-1\n");
        assert_eq!(wrong, Err("2: '-1', the number of a region".to_owned()));
    }

    #[test]
    fn vote_weights_are_read_by_name() {
        let text = "username,weight\ngenesis_3,30\ngenesis_1,10\ngenesis_2,0\n";
        assert_eq!(read(vote_weights, text), Ok(("[10, 0, 30]".to_owned(), vec![3, 4, 2])));
        for name in ["genesis_0", "genesis_3", "genesis_01", "genesis_+1", "bob", "", "genesis_"] {
            let text = format!("username,weight\ngenesis_1,1\n{name},1\n");
            let allowed = "'genesis_1' to 'genesis_2', since the file has 2 rows";
            assert_eq!(read(vote_weights, &text), Err(format!("3: '{name}', {allowed}")));
        }
        let twice = "username,weight\ngenesis_2,1\ngenesis_1,1\ngenesis_2,1\n";
        assert_eq!(read(vote_weights, twice), Err("4: 'genesis_2' again, as in line 2, each delegate once".to_owned()));
        for weight in ["-1", "1.5", "1e3", "", "9223372036854775808"] {
            let text = format!("username,weight\ngenesis_1,{weight}\n");
            assert_eq!(read(vote_weights, &text), Err(format!("2: '{weight}', a whole number of arktoshi")));
        }
        assert!(read(vote_weights, "name,weight\n").is_err_and(|why| why.contains("the header 'username,weight'")));
    }
}
