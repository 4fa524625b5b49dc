//! Columns and rows: from the binary and the text protocol into values.

use super::packet::Reader;
use crate::error::{Error, Result};
use crate::session::{widened, Row, Value};
use std::fmt::{Display, Formatter};
use std::io::Write;
use std::ops::Range;

/// The types of the protocol that are not sent as a string.
mod kind {
    pub const TINY: u8 = 0x01;
    pub const SHORT: u8 = 0x02;
    pub const LONG: u8 = 0x03;
    pub const FLOAT: u8 = 0x04;
    pub const DOUBLE: u8 = 0x05;
    pub const NULL: u8 = 0x06;
    pub const TIMESTAMP: u8 = 0x07;
    pub const LONGLONG: u8 = 0x08;
    pub const INT24: u8 = 0x09;
    pub const DATE: u8 = 0x0A;
    pub const TIME: u8 = 0x0B;
    pub const DATETIME: u8 = 0x0C;
    pub const YEAR: u8 = 0x0D;
}

const UNSIGNED: u16 = 1 << 5;
/// The character set that means: bytes.
const BINARY: u16 = 63;
const BLOBS: std::ops::RangeInclusive<u8> = 0xF9..=0xFC;

/// What is needed of a column to read its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    kind: u8,
    unsigned: bool,
    bytes: bool,
    /// How many digits a second's fraction is written with.
    decimals: u8,
}

impl Column {
    /// Takes a column's definition apart; the name, for those who ask.
    pub fn parse(payload: &[u8]) -> Result<(Column, &[u8])> {
        let mut reader = Reader::new(payload);
        for _catalog_schema_table_and_original_table in 0..4 {
            reader.string()?;
        }
        let name = reader.string()?.unwrap_or_default();
        reader.string()?;
        reader.count()?;
        let charset = reader.u16()?;
        reader.u32()?;
        let kind = reader.u8()?;
        let flags = reader.u16()?;
        let decimals = reader.u8()?;
        let bytes = charset == BINARY && (BLOBS.contains(&kind) || matches!(kind, 0x0F | 0xFD | 0xFE));
        Ok((Column { kind, unsigned: flags & UNSIGNED != 0, bytes, decimals }, name))
    }
}

#[derive(Clone, Debug)]
enum Cell {
    Null,
    Int(i64),
    Float(f64),
    /// Text of the payload, or of `scratch` for what the protocol sends as numbers but is text here.
    Text(Range<usize>),
    Bytes(Range<usize>),
    Written(Range<usize>),
}

/// The cells of one row. Kept by the session and filled again for each row, so that reading allocates nothing.
#[derive(Debug, Default)]
pub(super) struct Cells {
    cells: Vec<Cell>,
    scratch: Vec<u8>,
}

impl Cells {
    /// Decodes a row of the binary protocol.
    pub fn read_binary(&mut self, payload: &[u8], columns: &[Column]) -> Result<()> {
        self.clear();
        let mut reader = Reader::new(payload);
        reader.u8()?;
        let nulls = reader.bytes((columns.len() + 9) / 8)?;
        for (index, column) in columns.iter().enumerate() {
            let bit = index + 2;
            let cell = if nulls[bit / 8] & 1 << (bit % 8) != 0 {
                Cell::Null
            } else {
                self.binary_cell(&mut reader, payload, *column)?
            };
            self.cells.push(cell);
        }
        Ok(())
    }

    fn binary_cell(&mut self, reader: &mut Reader<'_>, payload: &[u8], column: Column) -> Result<Cell> {
        let number = |signed: i64, unsigned: u64| if column.unsigned { unsigned as i64 } else { signed };
        Ok(match column.kind {
            kind::NULL => Cell::Null,
            kind::TINY => reader.u8().map(|n| Cell::Int(number((n as i8).into(), n.into())))?,
            kind::SHORT | kind::YEAR => {
                reader.u16().map(|n| Cell::Int(number((n as i16).into(), n.into())))?
            }
            kind::LONG | kind::INT24 => {
                reader.u32().map(|n| Cell::Int(number((n as i32).into(), n.into())))?
            }
            kind::LONGLONG => match reader.u64()? {
                large if column.unsigned && large > i64::MAX as u64 => self.written(format_args!("{large}")),
                n => Cell::Int(n as i64),
            },
            kind::FLOAT => Cell::Float(widened(f32::from_le_bytes(reader.array()?))),
            kind::DOUBLE => Cell::Float(f64::from_le_bytes(reader.array()?)),
            kind::DATE | kind::DATETIME | kind::TIMESTAMP => self.date(reader, column)?,
            kind::TIME => self.time(reader, column)?,
            _ => match reader.string()? {
                Some(bytes) => string_cell(payload, reader, bytes.len(), column),
                None => Cell::Null,
            },
        })
    }

    /// Decodes a row of the text protocol.
    pub fn read_text(&mut self, payload: &[u8], columns: &[Column]) -> Result<()> {
        self.clear();
        let mut reader = Reader::new(payload);
        for column in columns {
            let cell = match reader.string()? {
                None => Cell::Null,
                Some(bytes) => text_number(column.kind, bytes)
                    .unwrap_or_else(|| string_cell(payload, &reader, bytes.len(), *column)),
            };
            self.cells.push(cell);
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.scratch.clear();
    }

    fn written(&mut self, text: std::fmt::Arguments<'_>) -> Cell {
        let from = self.scratch.len();
        // Writing to a Vec cannot fail.
        let _ = self.scratch.write_fmt(text);
        Cell::Written(from..self.scratch.len())
    }

    fn date(&mut self, reader: &mut Reader<'_>, column: Column) -> Result<Cell> {
        let length = reader.u8()?;
        let mut fields = Reader::new(reader.bytes(length.into())?);
        let (mut day, mut time, mut micros) = ((0, 0, 0), (0, 0, 0), None);
        if length >= 4 {
            day = (fields.u16()?, fields.u8()?, fields.u8()?);
        }
        if length >= 7 {
            time = (fields.u8()?, fields.u8()?, fields.u8()?);
        }
        if length >= 11 {
            micros = Some(fields.u32()?);
        }
        let (year, month, day) = day;
        let (hour, minute, second) = time;
        Ok(match length {
            0 | 4 if column.kind == kind::DATE => self.written(format_args!("{year:04}-{month:02}-{day:02}")),
            // The binary protocol leaves out a time of midnight, the text protocol writes it.
            0 | 4 | 7 | 11 => self.written(format_args!(
                "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{}",
                Fraction { decimals: column.decimals, micros }
            )),
            _ => return Err(Error::protocol(format!("the server sent a date of {length} bytes"))),
        })
    }

    fn time(&mut self, reader: &mut Reader<'_>, column: Column) -> Result<Cell> {
        let length = reader.u8()?;
        let mut fields = Reader::new(reader.bytes(length.into())?);
        if length == 0 {
            let fraction = Fraction { decimals: column.decimals, micros: None };
            return Ok(self.written(format_args!("00:00:00{fraction}")));
        }
        let sign = if fields.u8()? == 0 { "" } else { "-" };
        let (days, hour, minute, second) = (fields.u32()?, fields.u8()?, fields.u8()?, fields.u8()?);
        let hours = u64::from(days) * 24 + u64::from(hour);
        let micros = match length {
            8 => None,
            12 => Some(fields.u32()?),
            _ => return Err(Error::protocol(format!("the server sent a time of {length} bytes"))),
        };
        let fraction = Fraction { decimals: column.decimals, micros };
        Ok(self.written(format_args!("{sign}{hours:02}:{minute:02}:{second:02}{fraction}")))
    }
}

/// A second's fraction as the text protocol writes it: with the digits of its column. The binary one has microseconds or,
/// where they are zero, leaves them out.
struct Fraction {
    decimals: u8,
    micros: Option<u32>,
}

impl Display for Fraction {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match (self.decimals, self.micros) {
            (digits @ 1..=6, micros) => {
                let (width, unit) = (usize::from(digits), 10u32.pow(6 - u32::from(digits)));
                write!(f, ".{:0width$}", micros.unwrap_or_default() / unit)
            }
            (_, Some(micros)) => write!(f, ".{micros:06}"),
            (_, None) => Ok(()),
        }
    }
}

/// The cell of a string that `reader` has just stepped over.
fn string_cell(payload: &[u8], reader: &Reader<'_>, length: usize, column: Column) -> Cell {
    let end = payload.len() - reader.rest().len();
    if column.bytes {
        Cell::Bytes(end - length..end)
    } else {
        Cell::Text(end - length..end)
    }
}

/// Numbers of the text protocol become numbers again; decimals stay text, for they are exact.
fn text_number(kind: u8, bytes: &[u8]) -> Option<Cell> {
    match kind {
        kind::TINY | kind::SHORT | kind::LONG | kind::INT24 | kind::LONGLONG | kind::YEAR => {
            std::str::from_utf8(bytes).ok()?.parse().ok().map(Cell::Int)
        }
        kind::FLOAT | kind::DOUBLE => std::str::from_utf8(bytes).ok()?.parse().ok().map(Cell::Float),
        _ => None,
    }
}

/// A decoded row together with the payload that its text lies in.
pub(super) struct Decoded<'a> {
    pub cells: &'a Cells,
    pub payload: &'a [u8],
}

impl Row for Decoded<'_> {
    fn columns(&self) -> usize {
        self.cells.cells.len()
    }

    fn value(&self, column: usize) -> Value<'_> {
        let text = |bytes| std::str::from_utf8(bytes).map_or(Value::Bytes(bytes), Value::Text);
        match self.cells.cells.get(column) {
            None | Some(Cell::Null) => Value::Null,
            Some(Cell::Int(n)) => Value::Int(*n),
            Some(Cell::Float(x)) => Value::Float(*x),
            Some(Cell::Text(range)) => text(&self.payload[range.clone()]),
            Some(Cell::Bytes(range)) => Value::Bytes(&self.payload[range.clone()]),
            Some(Cell::Written(range)) => text(&self.cells.scratch[range.clone()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column(kind: u8, unsigned: bool) -> Column {
        Column { kind, unsigned, bytes: false, decimals: 0 }
    }

    fn binary(payload: &[u8], columns: &[Column]) -> Vec<crate::session::Owned> {
        let mut cells = Cells::default();
        cells.read_binary(payload, columns).unwrap();
        let row = Decoded { cells: &cells, payload };
        (0..row.columns()).map(|column| row.value(column).to_owned()).collect()
    }

    #[test]
    fn binary_values_are_decoded() {
        use crate::session::Owned;
        let mut payload = vec![0, 0];
        payload.extend_from_slice(&(-5i32).to_le_bytes());
        payload.extend_from_slice(&[3, b'a', b'b', b'c']);
        payload.extend_from_slice(&[7, 0xEA, 0x07, 11, 21, 20, 30, 5]);
        payload.extend_from_slice(&u64::MAX.to_le_bytes());
        payload.extend_from_slice(&1.5f64.to_le_bytes());
        let columns = [
            column(kind::LONG, false),
            column(0xFD, false),
            column(kind::DATETIME, false),
            column(kind::LONGLONG, true),
            column(kind::DOUBLE, false),
        ];
        assert_eq!(
            binary(&payload, &columns),
            [
                Owned::Int(-5),
                Owned::Text("abc".into()),
                Owned::Text("2026-11-21 20:30:05".into()),
                Owned::Text(u64::MAX.to_string()),
                Owned::Float(1.5)
            ]
        );
    }

    #[test]
    fn a_time_has_its_days_its_sign_and_its_microseconds() {
        use crate::session::Owned;
        let mut payload = vec![0, 0, 0];
        payload.extend_from_slice(&[8, 0, 0, 0, 0, 0, 1, 2, 3]);
        payload.extend_from_slice(&[12, 1, 2, 0, 0, 0, 3, 4, 5]);
        payload.extend_from_slice(&6u32.to_le_bytes());
        let times = binary(&payload, &[column(kind::TIME, false); 3]);
        let texts = ["00:00:00", "01:02:03", "-51:04:05.000006"];
        assert_eq!(times, texts.map(|text| Owned::Text(text.into())));
    }

    #[test]
    fn a_fraction_has_the_digits_of_its_column() {
        let half = Some(500_000);
        let shown = [(0, None), (0, half), (2, half), (3, None), (6, Some(6)), (39, half)]
            .map(|(decimals, micros)| Fraction { decimals, micros }.to_string());
        assert_eq!(shown, ["", ".500000", ".50", ".000", ".000006", ".500000"]);
    }

    #[test]
    fn nulls_stand_in_the_map_from_the_third_bit_on() {
        use crate::session::Owned;
        let columns = [column(kind::TINY, false), column(kind::TINY, false)];
        assert_eq!(binary(&[0, 0b0000_1000, 9], &columns), [Owned::Int(9), Owned::Null]);
    }

    #[test]
    fn text_numbers_become_numbers_and_decimals_stay_text() {
        let mut cells = Cells::default();
        let payload = b"\x0212\x0412.5\x00\xFB".to_vec();
        let columns =
            [column(kind::LONG, false), column(0xF6, false), column(0xFD, false), column(kind::LONG, false)];
        cells.read_text(&payload, &columns).unwrap();
        let row = Decoded { cells: &cells, payload: &payload };
        assert_eq!(
            (0..4).map(|i| row.value(i)).collect::<Vec<_>>(),
            [Value::Int(12), Value::Text("12.5"), Value::Text(""), Value::Null]
        );
    }

    proptest! {
        #[test]
        fn no_row_makes_the_decoder_panic(
            payload in proptest::collection::vec(any::<u8>(), 0..80),
            kinds in proptest::collection::vec((any::<u8>(), any::<bool>()), 0..12),
        ) {
            let columns: Vec<Column> = kinds.into_iter().map(|(kind, unsigned)| column(kind, unsigned)).collect();
            let mut cells = Cells::default();
            for text in [false, true] {
                let read =
                    if text { cells.read_text(&payload, &columns) } else { cells.read_binary(&payload, &columns) };
                let row = Decoded { cells: &cells, payload: &payload };
                if read.is_ok() {
                    (0..=row.columns()).for_each(|column| drop(row.value(column).to_owned()));
                }
            }
        }

        #[test]
        fn no_definition_makes_the_parser_panic(payload in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Column::parse(&payload);
        }
    }
}
