//! Messages: the buffers in which a statement's parameters and rows cross the library's interface. Their layout is
//! described once, when a statement is prepared.

use super::interfaces::{call, BlobId, Handle, Metadata, MetadataBuilder};
use super::status::{Status, STRING_TRUNCATION};
use super::text;
use crate::error::{Code, Error, Result};
use crate::session::{widened, Value};
use std::ffi::{c_uint, c_void, CStr};
use std::io::Write;

const SQL_VARYING: c_uint = 448;
const CHARSET_OCTETS: c_uint = 1;
const CHARSET_ASCII: c_uint = 2;
const CHARSET_UNICODE_FSS: c_uint = 3;
const CHARSET_UTF8: c_uint = 4;
/// Long enough for any number, date or time with zone as text.
const SHORT_TEXT_BYTES: usize = 64;
/// The most that a VARCHAR holds.
const LONGEST_TEXT_BYTES: usize = 32_765;

/// How a column or parameter lies in the buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Text,
    Varying,
    Short,
    Long,
    Int64,
    Int128,
    Float,
    Double,
    Date,
    Time,
    Timestamp,
    Boolean,
    Blob,
    /// The parameter of `? IS NULL`: its indicator is all there is.
    NullOnly,
    /// Decimal floats, times with zone: the engine is asked to turn them into text.
    ByText,
    Unsupported,
}

impl Kind {
    fn of(sql_type: c_uint) -> Self {
        match sql_type & !1 {
            452 => Kind::Text,
            448 => Kind::Varying,
            500 => Kind::Short,
            496 => Kind::Long,
            580 => Kind::Int64,
            32752 => Kind::Int128,
            482 => Kind::Float,
            480 | 530 => Kind::Double,
            570 => Kind::Date,
            560 => Kind::Time,
            510 => Kind::Timestamp,
            32764 => Kind::Boolean,
            520 => Kind::Blob,
            32766 => Kind::NullOnly,
            32748 | 32750 | 32754 | 32756 | 32760 | 32762 => Kind::ByText,
            _ => Kind::Unsupported,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Field {
    kind: Kind,
    offset: usize,
    null_offset: usize,
    /// Bytes of the value; without the count of a `Varying`.
    length: usize,
    /// The value is the integer times 10 to this power; never above 0.
    scale: i32,
    sub_type: i32,
    charset: c_uint,
}

impl Field {
    /// Values that a number does not say by itself are written out as text when a row is read.
    fn is_rendered(&self) -> bool {
        match self.kind {
            Kind::Short | Kind::Long | Kind::Int64 => self.scale != 0,
            Kind::Int128 | Kind::Date | Kind::Time | Kind::Timestamp | Kind::Blob => true,
            _ => false,
        }
    }

    /// Bytes that one character may take.
    fn bytes_per_character(&self) -> usize {
        match self.charset & 0xff {
            CHARSET_UTF8 => 4,
            CHARSET_UNICODE_FSS => 3,
            _ => 1,
        }
    }

    fn has_too_few_characters_for(&self, text: &[u8]) -> bool {
        let room = self.length / self.bytes_per_character();
        text.len() > room && text.iter().filter(|&&byte| starts_a_character(byte)).count() > room
    }
}

/// What became of a value that was to be put into a message.
#[derive(Debug, PartialEq)]
pub(super) enum Fit {
    Done,
    /// The parameter must first become text of at least so many bytes.
    Widen(usize),
    /// The value must be made a blob, whose id is put instead.
    Blob,
}

/// A buffer and its layout.
pub(super) struct Message {
    metadata: Handle<Metadata>,
    fields: Vec<Field>,
    /// Words, so that the buffer is aligned for every type.
    buffer: Vec<u64>,
    length: usize,
    stride: usize,
    names: Vec<String>,
}

impl Message {
    /// The message of a statement's parameters: its CHARs travel as VARCHARs, which need no padding.
    pub fn of_parameters(metadata: Handle<Metadata>, status: &mut Status) -> Result<Self> {
        Self::described(metadata, status)?.adapted(status, |field| match field.kind {
            Kind::Text => Some((field.length, field.charset)),
            Kind::ByText | Kind::Unsupported => Some((SHORT_TEXT_BYTES, CHARSET_ASCII)),
            _ => None,
        })
    }

    /// The message of a row.
    pub fn of_columns(metadata: Handle<Metadata>, status: &mut Status) -> Result<Self> {
        let message = Self::described(metadata, status)?.adapted(status, |field| {
            (field.kind == Kind::ByText).then_some((SHORT_TEXT_BYTES, CHARSET_ASCII))
        })?;
        match message.fields.iter().position(|field| field.kind == Kind::Unsupported) {
            None => Ok(message),
            Some(column) => Err(Error::user(format!(
                "column {:?} has a type that cannot be read: an array",
                message.names.get(column).map_or("?", String::as_str)
            ))),
        }
    }

    fn described(metadata: Handle<Metadata>, status: &mut Status) -> Result<Self> {
        let (object, filled) = (metadata.get(), status.get());
        // SAFETY: Firebird's interfaces count references (IReferenceCounted): the metadata's is held.
        // IMessageMetadata takes indexes below getCount.
        let (fields, names, length, stride) = unsafe {
            let count = call!(object, get_count, filled);
            let fields: Vec<Field> = (0..count).map(|index| describe(object, status, index)).collect();
            let names = (0..count).map(|index| name(call!(object, get_alias, filled, index))).collect();
            (
                fields,
                names,
                call!(object, get_message_length, filled),
                call!(object, get_aligned_length, filled),
            )
        };
        status.check()?;
        let (length, stride) = (length as usize, stride as usize);
        let words = length.max(stride).div_ceil(size_of::<u64>());
        Ok(Message { metadata, fields, buffer: vec![0; words], length, stride, names })
    }

    /// The same message with some fields turned into text of a length (bytes) and character set.
    fn adapted(
        self,
        status: &mut Status,
        as_text: impl Fn(&Field) -> Option<(usize, c_uint)>,
    ) -> Result<Self> {
        let changes: Vec<Option<(usize, c_uint)>> = self.fields.iter().map(as_text).collect();
        if changes.iter().all(Option::is_none) {
            return Ok(self);
        }
        let builder = self.builder(status)?;
        for (index, change) in changes.iter().enumerate() {
            if let Some((length, charset)) = change {
                set_text(&builder, status, index as c_uint, *length, *charset);
            }
        }
        status.check()?;
        // SAFETY: Firebird's interfaces count references (IReferenceCounted): the builder's is held, and the one that
        // getMetadata gives is the caller's.
        let metadata = unsafe { Handle::take(call!(builder.get(), get_metadata, status.get())) };
        status.check()?;
        let metadata = metadata.ok_or_else(|| Error::internal("Firebird gave no metadata"))?;
        let names = self.names;
        Ok(Message { names, ..Self::described(metadata, status)? })
    }

    fn builder(&self, status: &mut Status) -> Result<Handle<MetadataBuilder>> {
        // SAFETY: Firebird's interfaces count references (IReferenceCounted): the metadata's is held, and the one
        // that getBuilder gives is the caller's.
        let builder = unsafe { Handle::take(call!(self.metadata.get(), get_builder, status.get())) };
        status.check()?;
        builder.ok_or_else(|| Error::internal("Firebird gave no metadata builder"))
    }

    /// Makes parameter `index` text of at least `bytes`; what the message held is lost.
    pub fn widen(&mut self, status: &mut Status, index: usize, bytes: usize) -> Result<()> {
        let field = self.fields[index];
        let (charset, bytes) = match field.kind {
            // The engine takes the length for so many of the longest characters.
            Kind::Varying => {
                (field.charset, (bytes * field.bytes_per_character()).min(LONGEST_TEXT_BYTES.max(bytes)))
            }
            _ => (CHARSET_ASCII, bytes),
        };
        if bytes > LONGEST_TEXT_BYTES {
            return Err(Error::refused(
                Code::Firebird(STRING_TRUNCATION),
                "string_truncation",
                crate::error::Fate::Failed,
                format!(
                    "parameter {} has {bytes} bytes; a VARCHAR takes at most {LONGEST_TEXT_BYTES}",
                    index + 1
                ),
            ));
        }
        let builder = self.builder(status)?;
        set_text(&builder, status, index as c_uint, bytes.max(SHORT_TEXT_BYTES), charset);
        // SAFETY: Firebird's interfaces count references (IReferenceCounted): the builder's is held, and the one that
        // getMetadata gives is the caller's.
        let metadata = unsafe { Handle::take(call!(builder.get(), get_metadata, status.get())) };
        status.check()?;
        let metadata = metadata.ok_or_else(|| Error::internal("Firebird gave no metadata"))?;
        let names = std::mem::take(&mut self.names);
        *self = Message { names, ..Self::described(metadata, status)? };
        Ok(())
    }

    pub fn metadata(&self) -> *mut Metadata {
        self.metadata.get()
    }

    pub fn data(&mut self) -> *mut c_void {
        self.buffer.as_mut_ptr().cast()
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn count(&self) -> usize {
        self.fields.len()
    }

    pub fn has_blobs(&self) -> bool {
        self.fields.iter().any(|field| field.kind == Kind::Blob)
    }

    /// Bytes from one message to the next in a batch.
    pub fn stride(&self) -> usize {
        self.stride
    }

    fn bytes(&self) -> &[u8] {
        let pointer = self.buffer.as_ptr().cast::<u8>();
        // SAFETY: from_raw_parts wants as many bytes as are said in one allocation: the words hold `length` at least.
        unsafe { std::slice::from_raw_parts(pointer, self.length) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let pointer = self.buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: as in `bytes`.
        unsafe { std::slice::from_raw_parts_mut(pointer, self.length) }
    }

    /// Puts a parameter's value. `index` is below `count`.
    #[inline]
    pub fn put(&mut self, index: usize, value: Value<'_>) -> Fit {
        let field = self.fields[index];
        let absent = value.is_null();
        let flag = if absent { [0xff; 2] } else { [0; 2] };
        self.bytes_mut()[field.null_offset..field.null_offset + 2].copy_from_slice(&flag);
        if absent || field.kind == Kind::NullOnly {
            return Fit::Done;
        }
        match (field.kind, value) {
            (Kind::Blob, _) => Fit::Blob,
            (Kind::Varying, Value::Text(text)) => self.put_text(field, text.as_bytes()),
            (Kind::Varying, Value::Bytes(bytes)) => self.put_text(field, bytes),
            (Kind::Varying, Value::Int(number)) => self.put_display(field, number),
            (Kind::Varying, Value::Float(number)) => self.put_float_text(field, number),
            (_, Value::Int(number)) => self.put_integer(field, number),
            (Kind::Double, Value::Float(number)) => self.put_bytes(field, &number.to_ne_bytes()),
            (_, Value::Text(text)) => Fit::Widen(text.len()),
            (_, Value::Bytes(bytes)) => Fit::Widen(bytes.len()),
            _ => Fit::Widen(SHORT_TEXT_BYTES),
        }
    }

    /// Puts the blob that stands for a parameter's value.
    pub fn put_blob(&mut self, index: usize, id: BlobId) {
        let offset = self.fields[index].offset;
        self.bytes_mut()[offset..offset + 4].copy_from_slice(&id.high.to_ne_bytes());
        self.bytes_mut()[offset + 4..offset + 8].copy_from_slice(&id.low.to_ne_bytes());
    }

    fn put_integer(&mut self, field: Field, number: i64) -> Fit {
        let misfit = Fit::Widen(SHORT_TEXT_BYTES);
        match field.kind {
            Kind::Double => return self.put_bytes(field, &(number as f64).to_ne_bytes()),
            Kind::Boolean => return self.put_bytes(field, &[u8::from(number != 0)]),
            _ => {}
        }
        let Some(scaled) = scaled_up(number, field.scale) else { return misfit };
        match field.kind {
            Kind::Short => i16::try_from(scaled).map_or(misfit, |n| self.put_bytes(field, &n.to_ne_bytes())),
            Kind::Long => i32::try_from(scaled).map_or(misfit, |n| self.put_bytes(field, &n.to_ne_bytes())),
            Kind::Int64 => i64::try_from(scaled).map_or(misfit, |n| self.put_bytes(field, &n.to_ne_bytes())),
            Kind::Int128 => self.put_bytes(field, &scaled.to_ne_bytes()),
            _ => misfit,
        }
    }

    fn put_bytes(&mut self, field: Field, bytes: &[u8]) -> Fit {
        self.bytes_mut()[field.offset..field.offset + bytes.len()].copy_from_slice(bytes);
        Fit::Done
    }

    fn put_text(&mut self, field: Field, text: &[u8]) -> Fit {
        if text.len() > field.length || field.has_too_few_characters_for(text) {
            return Fit::Widen(text.len());
        }
        let place = &mut self.bytes_mut()[field.offset..];
        place[..2].copy_from_slice(&(text.len() as u16).to_ne_bytes());
        place[2..2 + text.len()].copy_from_slice(text);
        Fit::Done
    }

    fn put_display(&mut self, field: Field, value: impl std::fmt::Display) -> Fit {
        let place = &mut self.bytes_mut()[field.offset..field.offset + 2 + field.length];
        let (count, mut room) = place.split_at_mut(2);
        let free = room.len();
        if write!(room, "{value}").is_err() {
            return Fit::Widen(field.length + SHORT_TEXT_BYTES);
        }
        let used = free - room.len();
        count.copy_from_slice(&(used as u16).to_ne_bytes());
        Fit::Done
    }

    fn put_float_text(&mut self, field: Field, number: f64) -> Fit {
        // Plain notation for what fits a screen; an exponent for the rest, which would be hundreds of digits.
        if number == 0.0 || (1e-5..1e15).contains(&number.abs()) {
            self.put_display(field, number)
        } else {
            self.put_display(field, format_args!("{number:e}"))
        }
    }

    /// The value of a column that is not rendered. `column` is below `count`.
    pub fn value(&self, column: usize) -> Value<'_> {
        let field = &self.fields[column];
        let bytes = &self.bytes()[field.offset..];
        match field.kind {
            _ if self.is_null(column) => Value::Null,
            Kind::Text => characters(field, padded(field, &bytes[..field.length])),
            Kind::Varying => {
                let length = usize::from(u16::from_ne_bytes(array(bytes)));
                characters(field, &bytes[2..2 + length.min(field.length)])
            }
            Kind::Short => Value::Int(i16::from_ne_bytes(array(bytes)).into()),
            Kind::Long => Value::Int(i32::from_ne_bytes(array(bytes)).into()),
            Kind::Int64 => Value::Int(i64::from_ne_bytes(array(bytes))),
            Kind::Float => Value::Float(widened(f32::from_ne_bytes(array(bytes)))),
            Kind::Double => Value::Float(f64::from_ne_bytes(array(bytes))),
            Kind::Boolean => Value::Int((bytes[0] != 0).into()),
            _ => Value::Null,
        }
    }

    pub fn is_null(&self, column: usize) -> bool {
        let at = self.fields[column].null_offset;
        self.bytes()[at..at + 2] != [0; 2]
    }

    pub fn is_rendered(&self, column: usize) -> bool {
        self.fields[column].is_rendered()
    }

    /// The blob in `column`, if the column holds blobs.
    pub fn blob(&self, column: usize) -> Option<BlobId> {
        let field = &self.fields[column];
        let bytes = &self.bytes()[field.offset..];
        (field.kind == Kind::Blob).then(|| BlobId {
            high: i32::from_ne_bytes(array(bytes)),
            low: u32::from_ne_bytes(array(&bytes[4..])),
        })
    }

    /// True for a blob of text, false for one of bytes.
    pub fn blob_is_text(&self, column: usize) -> bool {
        self.fields[column].sub_type == 1
    }

    /// Appends the text of a rendered column that is no blob.
    pub fn render(&self, column: usize, out: &mut Vec<u8>) {
        let field = &self.fields[column];
        let bytes = &self.bytes()[field.offset..];
        match field.kind {
            Kind::Short => text::decimal(out, i16::from_ne_bytes(array(bytes)).into(), field.scale),
            Kind::Long => text::decimal(out, i32::from_ne_bytes(array(bytes)).into(), field.scale),
            Kind::Int64 => text::decimal(out, i64::from_ne_bytes(array(bytes)).into(), field.scale),
            Kind::Int128 => text::decimal(out, i128::from_ne_bytes(array(bytes)), field.scale),
            Kind::Date => text::date(out, i32::from_ne_bytes(array(bytes))),
            Kind::Time => text::time(out, u32::from_ne_bytes(array(bytes))),
            Kind::Timestamp => {
                text::date(out, i32::from_ne_bytes(array(bytes)));
                out.push(b' ');
                text::time(out, u32::from_ne_bytes(array(&bytes[4..])));
            }
            _ => {}
        }
    }

    /// The integer of a rendered column that has no fraction and fits.
    pub fn small_integer(&self, column: usize) -> Option<i64> {
        let field = &self.fields[column];
        if field.kind != Kind::Int128 || field.scale != 0 {
            return None;
        }
        i64::try_from(i128::from_ne_bytes(array(&self.bytes()[field.offset..]))).ok()
    }
}

unsafe fn describe(object: *mut Metadata, status: &Status, index: c_uint) -> Field {
    let filled = status.get();
    Field {
        kind: Kind::of(call!(object, get_type, filled, index)),
        offset: call!(object, get_offset, filled, index) as usize,
        null_offset: call!(object, get_null_offset, filled, index) as usize,
        length: call!(object, get_length, filled, index) as usize,
        scale: call!(object, get_scale, filled, index),
        sub_type: call!(object, get_sub_type, filled, index),
        charset: call!(object, get_char_set, filled, index),
    }
}

unsafe fn name(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

fn set_text(
    builder: &Handle<MetadataBuilder>,
    status: &Status,
    index: c_uint,
    bytes: usize,
    charset: c_uint,
) {
    let (builder, filled) = (builder.get(), status.get());
    // SAFETY: IMetadataBuilder is the caller's while this runs, and the caller checks the status, which keeps what
    // failed.
    unsafe {
        call!(builder, set_type, filled, index, SQL_VARYING);
        call!(builder, set_length, filled, index, bytes as c_uint);
        call!(builder, set_char_set, filled, index, charset);
        call!(builder, set_scale, filled, index, 0);
    }
}

/// `number` in units of 10 to the power of `scale`, which is never above 0.
fn scaled_up(number: i64, scale: i32) -> Option<i128> {
    10i128.checked_pow(scale.unsigned_abs())?.checked_mul(number.into())
}

/// The first bytes as an array; the layout guarantees that they are there.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[..N]);
    array
}

/// A CHAR's characters: its buffer has room for the longest encoding of each and is filled with blanks.
fn padded<'a>(field: &Field, bytes: &'a [u8]) -> &'a [u8] {
    let width = field.bytes_per_character();
    if width == 1 {
        return bytes;
    }
    let wanted = bytes.len() / width;
    match bytes.iter().enumerate().filter(|(_, &byte)| starts_a_character(byte)).nth(wanted) {
        Some((end, _)) => &bytes[..end],
        None => bytes,
    }
}

/// UTF-8: every byte but those that continue a character.
fn starts_a_character(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

fn characters<'a>(field: &Field, bytes: &'a [u8]) -> Value<'a> {
    match std::str::from_utf8(bytes) {
        Ok(text) if field.charset & 0xff != CHARSET_OCTETS => Value::Text(text),
        _ => Value::Bytes(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(kind: Kind, length: usize, charset: c_uint) -> Field {
        Field { kind, offset: 0, null_offset: 0, length, scale: 0, sub_type: 0, charset }
    }

    #[test]
    fn types_are_known_whether_they_may_be_null_or_not() {
        for (sql_type, kind) in
            [(496, Kind::Long), (448, Kind::Varying), (32752, Kind::Int128), (540, Kind::Unsupported)]
        {
            assert_eq!((Kind::of(sql_type), Kind::of(sql_type | 1)), (kind, kind));
        }
    }

    #[test]
    fn integers_are_scaled_without_overflow() {
        assert_eq!(scaled_up(-7, -4), Some(-70_000));
        assert_eq!(scaled_up(i64::MIN, -18), Some(i128::from(i64::MIN) * 1_000_000_000_000_000_000));
        assert_eq!(scaled_up(i64::MAX, -38), None);
        assert_eq!(scaled_up(1, -39), None);
    }

    #[test]
    fn a_char_ends_after_its_characters_not_after_its_bytes() {
        // CHAR(3) in UTF-8: 12 bytes, of which the blanks beyond the third character are no part of the value.
        let three = field(Kind::Text, 12, CHARSET_UTF8);
        assert_eq!(padded(&three, "kůň       ".as_bytes()), "kůň".as_bytes());
        assert_eq!(padded(&three, "a           ".as_bytes()), b"a  ");
        assert_eq!(padded(&field(Kind::Text, 3, CHARSET_ASCII), b"a  "), b"a  ");
    }

    #[test]
    fn room_is_counted_in_characters() {
        let three = field(Kind::Varying, 12, CHARSET_UTF8);
        assert!(!three.has_too_few_characters_for("漢字🐎".as_bytes()));
        assert!(three.has_too_few_characters_for(b"four"));
        assert!(!field(Kind::Varying, 12, CHARSET_OCTETS).has_too_few_characters_for(&[0xff; 12]));
    }

    #[test]
    fn bytes_that_are_no_text_are_bytes() {
        let bytes = |charset, content| characters(&field(Kind::Varying, 8, charset), content);
        assert_eq!(bytes(CHARSET_UTF8, "é".as_bytes()), Value::Text("é"));
        assert_eq!(bytes(CHARSET_UTF8, &[0xff]), Value::Bytes(&[0xff]));
        assert_eq!(bytes(CHARSET_OCTETS, b"a"), Value::Bytes(b"a"));
    }
}
