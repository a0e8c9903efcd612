//! Tables as files: CSV for every tool, Parquet for the ones that matter.
//!
//! Rows are written as they come, in row groups of a fixed size, so memory does not grow with their number; and the same
//! rows give the same bytes.

use crate::files;
use parquet::{
    basic::{LogicalType, Repetition, Type as Physical},
    data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type},
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::Type,
};
use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Rows of a row group.
const GROUP: usize = 65_536;

/// The type of a column's cells. Any cell may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A count, below 2^63.
    Count,
    Number,
    Text,
    Flag,
}

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Count(u64),
    Number(f64),
    Text(String),
    Flag(bool),
    Empty,
}

/// A column: its name and the kind of its cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
}

/// A column of this name and kind.
pub(crate) fn column(name: impl Into<String>, kind: Kind) -> Column {
    Column { name: name.into(), kind }
}

/// A writer of a table to `NAME.csv` and `NAME.parquet`. Both files appear whole or not at all.
pub(crate) struct Sheet {
    /// The two files without their endings.
    stem: PathBuf,
    columns: Vec<Column>,
    csv: csv::Writer<BufWriter<Pending>>,
    parquet: SerializedFileWriter<BufWriter<Pending>>,
    group: Vec<Vec<Cell>>,
}

/// The error of a table that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SheetError {
    #[error("{}: {source}", file.display())]
    Io { file: PathBuf, source: io::Error },
    #[error("{}: {source}", file.display())]
    Csv { file: PathBuf, source: csv::Error },
    #[error("{}: {source}", file.display())]
    Parquet { file: PathBuf, source: ParquetError },
}

/// A file that takes its name only when it is whole.
pub(crate) struct Pending {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
}

impl Pending {
    /// Begins a file beside `path`.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".part");
        let temporary = PathBuf::from(temporary);
        Ok(Self { file: files::create(&temporary)?, temporary, path: path.to_path_buf() })
    }

    /// Renames the file to its path, and replaces an earlier file there.
    ///
    /// # Errors
    /// It cannot be written out or renamed.
    pub fn finish(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.path)
    }
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a whole file at once; it appears whole or not at all.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), SheetError> {
    let io = |source| SheetError::Io { file: path.to_path_buf(), source };
    let mut pending = Pending::create(path).map_err(io)?;
    pending.write_all(bytes).map_err(io)?;
    pending.finish().map_err(io)
}

impl Sheet {
    /// Begins the table of this name in a folder. `about` holds keys and values for the metadata of the Parquet file.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn create(
        folder: &Path,
        name: &str,
        columns: Vec<Column>,
        about: &[(String, String)],
    ) -> Result<Self, SheetError> {
        let stem = folder.join(name);
        let open = |file: PathBuf| {
            Pending::create(&file).map(BufWriter::new).map_err(|source| SheetError::Io { file, source })
        };
        let mut csv = csv::Writer::from_writer(open(stem.with_extension("csv"))?);
        csv.write_record(columns.iter().map(|column| &column.name)).map_err(|source| csv_error(&stem, source))?;
        let about = about.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
        let properties = WriterProperties::builder().set_created_by("dposlab".to_owned());
        let properties = Arc::new(properties.set_key_value_metadata(Some(about)).build());
        let out = open(stem.with_extension("parquet"))?;
        let schema = schema(&columns).map_err(|source| parquet_error(&stem, source))?;
        let parquet = SerializedFileWriter::new(out, schema, properties);
        let parquet = parquet.map_err(|source| parquet_error(&stem, source))?;
        Ok(Self { stem, columns, csv, parquet, group: Vec::new() })
    }

    /// Writes a row, with a cell for each column.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn row(&mut self, row: Vec<Cell>) -> Result<(), SheetError> {
        assert_eq!(row.len(), self.columns.len(), "a row has a cell for each column");
        self.csv.write_record(row.iter().map(text)).map_err(|source| csv_error(&self.stem, source))?;
        self.group.push(row);
        if self.group.len() == GROUP {
            self.write_group()?;
        }
        Ok(())
    }

    /// Writes the remaining rows and renames the files to their paths.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn finish(mut self) -> Result<(), SheetError> {
        if !self.group.is_empty() {
            self.write_group()?;
        }
        let io = |ending: &str, source| SheetError::Io { file: self.stem.with_extension(ending), source };
        let csv = self.csv.into_inner().map_err(|error| io("csv", error.into_error()))?;
        let parquet = self.parquet.into_inner().map_err(|source| parquet_error(&self.stem, source))?;
        for (out, ending) in [(csv, "csv"), (parquet, "parquet")] {
            let pending = out.into_inner().map_err(|error| io(ending, error.into_error()))?;
            pending.finish().map_err(|source| io(ending, source))?;
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), SheetError> {
        self.try_group().map_err(|source| parquet_error(&self.stem, source))
    }

    fn try_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.parquet.next_row_group()?;
        for (index, column) in self.columns.iter().enumerate() {
            write_column(&mut group, column.kind, self.group.iter().map(|row| &row[index]))?;
        }
        group.close()?;
        self.group.clear();
        Ok(())
    }
}

/// The error of the `.csv` file. An error of the disk is reported as such.
fn csv_error(stem: &Path, source: csv::Error) -> SheetError {
    let file = stem.with_extension("csv");
    match source.is_io_error() {
        true => SheetError::Io { file, source: source.into() },
        false => SheetError::Csv { file, source },
    }
}

/// The error of the `.parquet` file, likewise.
fn parquet_error(stem: &Path, source: ParquetError) -> SheetError {
    let file = stem.with_extension("parquet");
    let source = match source {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(source) => return SheetError::Io { file, source: *source },
            Err(inner) => ParquetError::External(inner),
        },
        other => other,
    };
    SheetError::Parquet { file, source }
}

fn schema(columns: &[Column]) -> Result<Arc<Type>, ParquetError> {
    let fields = columns.iter().map(|column| {
        let (physical, logical) = match column.kind {
            Kind::Count => (Physical::INT64, None),
            Kind::Number => (Physical::DOUBLE, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Flag => (Physical::BOOLEAN, None),
        };
        let field = Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::OPTIONAL);
        field.with_logical_type(logical).build().map(Arc::new)
    });
    let fields = fields.collect::<Result<_, _>>()?;
    Type::group_type_builder("row").with_fields(fields).build().map(Arc::new)
}

fn write_column<'a, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    kind: Kind,
    cells: impl Iterator<Item = &'a Cell> + Clone,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = cells.clone().map(|cell| i16::from(*cell != Cell::Empty)).collect();
    let mut column = group.next_column()?.expect("the schema has this column");
    match kind {
        Kind::Count => {
            let values: Vec<i64> = cells
                .filter_map(|cell| match cell {
                    Cell::Count(count) => Some(i64::try_from(*count).unwrap_or(i64::MAX)),
                    _ => None,
                })
                .collect();
            column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
        }
        Kind::Number => {
            let values: Vec<f64> = cells
                .filter_map(|cell| match cell {
                    Cell::Number(number) => Some(*number),
                    _ => None,
                })
                .collect();
            column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
        }
        Kind::Text => {
            let values: Vec<ByteArray> = cells
                .filter_map(|cell| match cell {
                    Cell::Text(text) => Some(ByteArray::from(text.as_str())),
                    _ => None,
                })
                .collect();
            column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
        }
        Kind::Flag => {
            let values: Vec<bool> = cells
                .filter_map(|cell| match cell {
                    Cell::Flag(flag) => Some(*flag),
                    _ => None,
                })
                .collect();
            column.typed::<BoolType>().write_batch(&values, Some(&levels), None)?;
        }
    }
    column.close()
}

fn text(cell: &Cell) -> String {
    match cell {
        Cell::Count(count) => count.to_string(),
        Cell::Number(number) => number.to_string(),
        Cell::Text(text) => text.clone(),
        Cell::Flag(flag) => flag.to_string(),
        Cell::Empty => String::new(),
    }
}

impl From<u32> for Cell {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Cell {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Self::Empty, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::{
        file::reader::{FileReader, SerializedFileReader},
        record::RowAccessor,
    };

    #[test]
    fn what_is_written_is_read_again_in_either_form() {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let columns = [("count", Kind::Count), ("number", Kind::Number), ("text", Kind::Text), ("flag", Kind::Flag)];
        let columns = columns.map(|(name, kind)| column(name, kind)).to_vec();
        let mut sheet = Sheet::create(folder.path(), "all", columns, &[("of".to_owned(), "what".to_owned())])
            .expect("the folder is there");
        let rows = GROUP as u64 + 3;
        for index in 0..rows {
            let number = (index % 2 == 0).then_some(index as f64 / 4.0);
            let text = format!("row, \"{index}\"");
            sheet.row(vec![index.into(), number.into(), text.into(), (index % 3 == 0).into()]).expect("it is written");
        }
        assert!(!folder.path().join("all.parquet").exists(), "not before it is whole");
        sheet.finish().expect("it is written");
        let file = File::open(folder.path().join("all.parquet")).expect("it is there");
        let reader = SerializedFileReader::new(file).expect("it is a Parquet file");
        assert_eq!(reader.num_row_groups(), 2);
        let about = reader.metadata().file_metadata().key_value_metadata().expect("it has some");
        assert_eq!(about, &vec![KeyValue::new("of".to_owned(), "what".to_owned())]);
        let mut read = 0;
        for (index, row) in reader.into_iter().enumerate() {
            let row = row.expect("every row is whole");
            assert_eq!(row.get_long(0).expect("a count"), index as i64);
            assert_eq!(row.get_double(1).ok(), (index % 2 == 0).then_some(index as f64 / 4.0));
            assert_eq!(*row.get_string(2).expect("text"), format!("row, \"{index}\""));
            assert_eq!(row.get_bool(3).expect("a flag"), index % 3 == 0);
            read += 1;
        }
        assert_eq!(read, rows);
        let mut csv = csv::Reader::from_path(folder.path().join("all.csv")).expect("it is there");
        let last = csv.records().last().expect("it has rows").expect("every row is whole");
        assert_eq!(last.iter().collect::<Vec<_>>(), ["65538", "16384.5", "row, \"65538\"", "true"]);
        assert_eq!(fs::read_dir(folder.path()).expect("it can be listed").count(), 2, "nothing is left over");
    }
}
