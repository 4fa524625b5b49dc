//! Values on their way to the server and back: integers, floats and bytes in binary; the rest, decimals and dates among
//! them, as text, which is what a `Value` holds anyway.

use super::message::{put_value, Reader};
use crate::error::{Error, Result};
use crate::session::{widened, Row, Value};
use std::io::Write;

/// The numbers of built-in types (`pg_type.oid`), which never change.
mod oid {
    pub const BOOL: u32 = 16;
    pub const BYTEA: u32 = 17;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT4: u32 = 23;
    pub const OID: u32 = 26;
    pub const FLOAT4: u32 = 700;
    pub const FLOAT8: u32 = 701;
}

/// More columns than this no table and no answer has (`MaxTupleAttributeNumber`).
const COLUMNS_MAX: usize = 1664;

/// A value's form on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Binary,
}

impl Format {
    fn code(self) -> [u8; 2] {
        [0, u8::from(self == Format::Binary)]
    }
}

/// How long a whole number is as a parameter of a type that always takes it in binary, if it fits; `None` for others.
pub(super) fn whole_number_bytes(kind: u32) -> Option<usize> {
    match kind {
        oid::INT4 => Some(4),
        oid::INT8 => Some(8),
        _ => None,
    }
}

/// How a value is sent as a parameter of type `kind`.
fn parameter_format(kind: u32, value: Value<'_>) -> Format {
    let fits = |low: i64, high: i64| matches!(value, Value::Int(n) if (low..=high).contains(&n));
    let binary = match kind {
        oid::INT2 => fits(i16::MIN.into(), i16::MAX.into()),
        oid::INT4 => fits(i32::MIN.into(), i32::MAX.into()),
        oid::INT8 => fits(i64::MIN, i64::MAX),
        oid::FLOAT4 | oid::FLOAT8 => matches!(value, Value::Float(_) | Value::Int(_)),
        // Bytes are the binary form of whatever type they are given for, bytea or pgvector's.
        _ => matches!(value, Value::Bytes(_)),
    };
    if binary {
        Format::Binary
    } else {
        Format::Text
    }
}

/// Appends formats and values of a Bind message, for parameters of these types.
#[inline]
pub(super) fn put_parameters(out: &mut Vec<u8>, kinds: &[u32], values: &[Value<'_>]) {
    let count = (values.len() as u16).to_be_bytes();
    out.extend_from_slice(&count);
    for (kind, value) in kinds.iter().zip(values) {
        out.extend_from_slice(&parameter_format(*kind, *value).code());
    }
    out.extend_from_slice(&count);
    for (kind, value) in kinds.iter().zip(values) {
        put_parameter(out, *kind, *value);
    }
}

#[inline]
fn put_parameter(out: &mut Vec<u8>, kind: u32, value: Value<'_>) {
    if value.is_null() {
        return out.extend_from_slice(&(-1i32).to_be_bytes());
    }
    put_value(out, |out| match (parameter_format(kind, value), kind, value) {
        (Format::Binary, oid::INT2, Value::Int(n)) => out.extend_from_slice(&(n as i16).to_be_bytes()),
        (Format::Binary, oid::INT4, Value::Int(n)) => out.extend_from_slice(&(n as i32).to_be_bytes()),
        (Format::Binary, oid::INT8, Value::Int(n)) => out.extend_from_slice(&n.to_be_bytes()),
        (Format::Binary, oid::FLOAT4, _) => {
            out.extend_from_slice(&(value.as_f64().unwrap_or_default() as f32).to_be_bytes());
        }
        (Format::Binary, oid::FLOAT8, _) => {
            out.extend_from_slice(&value.as_f64().unwrap_or_default().to_be_bytes());
        }
        _ => put_text(out, value),
    });
}

/// Appends a value as the server's input functions read it.
pub(super) fn put_text(out: &mut Vec<u8>, value: Value<'_>) {
    // Writing to a Vec cannot fail.
    let _ = match value {
        Value::Null => Ok(()),
        Value::Int(n) => write!(out, "{n}"),
        Value::Float(x) => write!(out, "{x}"),
        Value::Text(text) => out.write_all(text.as_bytes()),
        Value::Bytes(bytes) => out.write_all(bytes),
    };
}

/// What is needed of a column to read its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    kind: u32,
    format: Format,
}

impl Column {
    fn new(kind: u32) -> Self {
        let binary = matches!(
            kind,
            oid::BOOL | oid::BYTEA | oid::INT8 | oid::INT2 | oid::INT4 | oid::OID | oid::FLOAT4 | oid::FLOAT8
        );
        Column { kind, format: if binary { Format::Binary } else { Format::Text } }
    }

    fn value<'a>(self, bytes: &'a [u8]) -> Value<'a> {
        match self.format {
            Format::Binary => self.binary(bytes).unwrap_or(Value::Bytes(bytes)),
            Format::Text => match std::str::from_utf8(bytes) {
                Ok(text) => self.text(text).unwrap_or(Value::Text(text)),
                Err(_) => Value::Bytes(bytes),
            },
        }
    }

    /// `None` where the bytes do not fit the type.
    #[inline]
    fn binary(self, bytes: &[u8]) -> Option<Value<'static>> {
        Some(match self.kind {
            oid::BOOL => Value::Int(i64::from(*bytes.first()? != 0)),
            oid::INT2 => Value::Int(i16::from_be_bytes(bytes.try_into().ok()?).into()),
            oid::INT4 => Value::Int(i32::from_be_bytes(bytes.try_into().ok()?).into()),
            oid::OID => Value::Int(u32::from_be_bytes(bytes.try_into().ok()?).into()),
            oid::INT8 => Value::Int(i64::from_be_bytes(bytes.try_into().ok()?)),
            oid::FLOAT4 => Value::Float(widened(f32::from_be_bytes(bytes.try_into().ok()?))),
            oid::FLOAT8 => Value::Float(f64::from_be_bytes(bytes.try_into().ok()?)),
            _ => return None,
        })
    }

    /// Numbers of a simple query become numbers again; decimals stay text, for they are exact.
    fn text(self, text: &str) -> Option<Value<'static>> {
        match self.kind {
            oid::BOOL => Some(Value::Int(i64::from(text == "t"))),
            oid::INT2 | oid::INT4 | oid::INT8 | oid::OID => text.parse().ok().map(Value::Int),
            oid::FLOAT4 | oid::FLOAT8 => text.parse().ok().map(Value::Float),
            _ => None,
        }
    }
}

/// The columns of an answer with their names.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    pub names: Vec<String>,
    pub columns: Vec<Column>,
    /// The end of a Bind message: the form in which each column is wanted.
    pub formats: Vec<u8>,
}

impl Columns {
    /// Takes a RowDescription apart. Columns that go over the wire `as_text` are read as such.
    pub fn parse(payload: &[u8], as_text: bool) -> Result<Self> {
        let mut reader = Reader::new(payload);
        let count = reader.u16()?;
        if usize::from(count) > COLUMNS_MAX {
            return Err(Error::protocol(format!("the server announced {count} columns")));
        }
        let mut found = Columns::default();
        found.formats.extend_from_slice(&count.to_be_bytes());
        for _ in 0..count {
            found.names.push(String::from_utf8_lossy(reader.string()?).into_owned());
            let (_table, _column) = (reader.u32()?, reader.u16()?);
            let mut column = Column::new(reader.u32()?);
            let (_size, _modifier, _format) = (reader.u16()?, reader.u32()?, reader.u16()?);
            if as_text {
                column.format = Format::Text;
            }
            found.formats.extend_from_slice(&column.format.code());
            found.columns.push(column);
        }
        Ok(found)
    }

    /// A statement without an answer: no column, and none wanted.
    pub fn none() -> Self {
        Columns { formats: vec![0, 0], ..Columns::default() }
    }
}

/// The types of a ParameterDescription.
pub(super) fn parameter_kinds(payload: &[u8]) -> Result<Vec<u32>> {
    let mut reader = Reader::new(payload);
    (0..reader.u16()?).map(|_| reader.u32()).collect()
}

/// Where in the payload a column's value lies; `None` for null.
pub(super) type Place = Option<(u32, u32)>;

/// Finds the values of a DataRow.
#[inline]
pub(super) fn locate(payload: &[u8], places: &mut Vec<Place>) -> Result<()> {
    places.clear();
    let mut reader = Reader::new(payload);
    for _ in 0..reader.u16()? {
        let place = match reader.i32()? {
            -1 => None,
            length => {
                let from = (payload.len() - reader.rest().len()) as u32;
                let length = u32::try_from(length)
                    .map_err(|_| Error::protocol("the server sent a value of a negative length"))?;
                reader.bytes(length as usize)?;
                Some((from, from + length))
            }
        };
        places.push(place);
    }
    Ok(())
}

/// A row whose values have been found.
pub(super) struct Located<'a> {
    pub payload: &'a [u8],
    pub places: &'a [Place],
    pub columns: &'a [Column],
}

impl Row for Located<'_> {
    fn columns(&self) -> usize {
        self.places.len()
    }

    #[inline]
    fn value(&self, column: usize) -> Value<'_> {
        match (self.places.get(column), self.columns.get(column)) {
            (Some(Some((from, to))), Some(kind)) => kind.value(&self.payload[*from as usize..*to as usize]),
            _ => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parameters(kinds: &[u32], values: &[Value<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        put_parameters(&mut out, kinds, values);
        out
    }

    #[test]
    fn integers_travel_in_the_width_of_their_type() {
        let out = parameters(&[oid::INT4, oid::INT8], &[Value::Int(-2), Value::Null]);
        assert_eq!(out, b"\0\x02\0\x01\0\0\0\x02\0\0\0\x04\xFF\xFF\xFF\xFE\xFF\xFF\xFF\xFF");
    }

    #[test]
    fn what_a_type_cannot_hold_is_left_to_the_server_to_refuse() {
        let out = parameters(&[oid::INT2], &[Value::Int(40_000)]);
        assert_eq!(out, b"\0\x01\0\0\0\x01\0\0\0\x0540000");
    }

    #[test]
    fn decimals_and_dates_travel_as_text() {
        const NUMERIC: u32 = 1700;
        let out = parameters(&[NUMERIC, NUMERIC], &[Value::Text("12.50"), Value::Int(7)]);
        assert_eq!(out, b"\0\x02\0\0\0\0\0\x02\0\0\0\x0512.50\0\0\0\x017");
    }

    fn row_description(kinds: &[u32]) -> Vec<u8> {
        let mut payload = (kinds.len() as u16).to_be_bytes().to_vec();
        for kind in kinds {
            payload.extend_from_slice(b"name\0\0\0\0\0\0\0");
            payload.extend_from_slice(&kind.to_be_bytes());
            payload.extend_from_slice(&[0; 8]);
        }
        payload
    }

    #[test]
    fn values_are_read_in_both_forms() {
        let binary = Columns::parse(&row_description(&[oid::INT4, 25, oid::BOOL]), false).unwrap();
        assert_eq!(binary.formats, [0, 3, 0, 1, 0, 0, 0, 1]);
        assert_eq!(binary.names, ["name", "name", "name"]);
        let payload = b"\0\x03\0\0\0\x04\0\0\x01\0\0\0\0\x02ab\0\0\0\x01\x01";
        let mut places = Vec::new();
        locate(payload, &mut places).unwrap();
        let row = Located { payload, places: &places, columns: &binary.columns };
        let values: Vec<Value<'_>> = (0..4).map(|column| row.value(column)).collect();
        assert_eq!(values, [Value::Int(256), Value::Text("ab"), Value::Int(1), Value::Null]);

        let text = Columns::parse(&row_description(&[oid::INT8, oid::FLOAT8, 1700]), true).unwrap();
        let payload = b"\0\x03\0\0\0\x02-7\0\0\0\x031.5\xFF\xFF\xFF\xFF";
        locate(payload, &mut places).unwrap();
        let row = Located { payload, places: &places, columns: &text.columns };
        let values: Vec<Value<'_>> = (0..3).map(|column| row.value(column)).collect();
        assert_eq!(values, [Value::Int(-7), Value::Float(1.5), Value::Null]);
    }

    #[test]
    fn a_row_that_promises_more_than_it_holds_is_refused() {
        let mut places = Vec::new();
        assert!(locate(b"\0\x01\0\0\0\x05abcd", &mut places).is_err());
        assert!(locate(b"\0\x01\xFF\xFF\xFF\xFE", &mut places).is_err());
        assert!(locate(b"\0\x02\xFF\xFF\xFF\xFF", &mut places).is_err());
    }

    proptest! {
        #[test]
        fn an_integer_survives_the_way_there_and_back(n: i64) {
            let mut payload = vec![0, 1];
            put_parameter(&mut payload, oid::INT8, Value::Int(n));
            let columns = Columns::parse(&row_description(&[oid::INT8]), false).unwrap().columns;
            let mut places = Vec::new();
            locate(&payload, &mut places).unwrap();
            let row = Located { payload: &payload, places: &places, columns: &columns };
            prop_assert_eq!(row.value(0), Value::Int(n));
        }

        #[test]
        fn no_payload_makes_a_parser_panic(
            payload in proptest::collection::vec(any::<u8>(), 0..80),
            kinds in proptest::collection::vec(
                prop_oneof![Just(oid::INT4), Just(oid::FLOAT8), Just(oid::BOOL), any::<u32>()], 0..8),
            as_text: bool,
        ) {
            let _ = Columns::parse(&payload, as_text);
            let _ = parameter_kinds(&payload);
            let columns = Columns::parse(&row_description(&kinds), as_text).unwrap().columns;
            let mut places = Vec::new();
            if locate(&payload, &mut places).is_ok() {
                let row = Located { payload: &payload, places: &places, columns: &columns };
                (0..=row.columns()).for_each(|column| drop(row.value(column).to_owned()));
            }
        }
    }
}
