//! What reads logs, for Python: lines, statements, groups. One call takes a piece of a file, not a statement. Text that is
//! no UTF-8 stands in Python's as `surrogateescape` writes it.

use dyno_sql_log::anonymise::Anonymiser;
use dyno_sql_log::groups::{Group, GroupShape, Groups as AllGroups, Mean};
use dyno_sql_log::lexer::{self, Dialect, Kind};
use dyno_sql_log::lines::Lines as AllLines;
use dyno_sql_log::mysql::{self, General, Slow};
use dyno_sql_log::postgresql::{csv_begins, Entry, Messages, RowForm, Rows, Texts};
use dyno_sql_log::shape::{digest, Shape};
use dyno_sql_log::values::{Numbers, Texts as SeenTexts, Together, Values};
use dyno_sql_log::{Fault, Seen, Sink};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

/// Of the values of a place so many are told: the most frequent ones.
const TOLD_MOST: usize = 50;

fn dialect_of(mysql: bool) -> Dialect {
    if mysql {
        Dialect::MySql
    } else {
        Dialect::PostgreSql
    }
}

fn number_of(kind: Kind) -> u8 {
    kind as u8
}

/// A text for Python.
fn text<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text)),
        Err(_) => {
            let decoded = PyBytes::new(py, bytes).call_method1(
                intern!(py, "decode"),
                (intern!(py, "utf-8"), intern!(py, "surrogateescape")),
            )?;
            Ok(decoded.cast_into::<PyString>()?)
        }
    }
}

/// The bytes of a text of Python's.
fn bytes_of(text: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let text = text.cast::<PyString>()?;
    if let Ok(plain) = text.to_str() {
        return Ok(plain.as_bytes().to_vec());
    }
    let py = text.py();
    let encoded =
        text.call_method1(intern!(py, "encode"), (intern!(py, "utf-8"), intern!(py, "surrogateescape")))?;
    Ok(encoded.cast::<PyBytes>()?.as_bytes().to_vec())
}

fn raised(fault: Fault) -> PyErr {
    match fault.downcast::<PyErr>() {
        Ok(error) => *error,
        Err(other) => PyRuntimeError::new_err(other.to_string()),
    }
}

fn fault(error: PyErr) -> Fault {
    Box::new(error)
}

/// The tokens of a statement: the number of each one's kind, its text, and whether it has its end.
#[pyfunction]
pub fn sql_tokens<'py>(
    py: Python<'py>,
    statement: &Bound<'py, PyAny>,
    mysql: bool,
) -> PyResult<Vec<(u8, Bound<'py, PyString>, bool)>> {
    let bytes = bytes_of(statement)?;
    lexer::tokens(&bytes, dialect_of(mysql))
        .map(|token| Ok((number_of(token.kind), text(py, &bytes[token.start..token.end])?, token.closed)))
        .collect()
}

type Written<'py> = (u8, Bound<'py, PyString>);

/// A statement taken apart: its pieces, its values, its verb, whether it is cut, and its digest.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn sql_shaped<'py>(
    py: Python<'py>,
    statement: &Bound<'py, PyAny>,
    mysql: bool,
) -> PyResult<(Vec<Bound<'py, PyString>>, Vec<Written<'py>>, Bound<'py, PyString>, bool, Bound<'py, PyString>)>
{
    let bytes = bytes_of(statement)?;
    let mut shape = Shape::default();
    shape.take(&bytes, dialect_of(mysql));
    let pieces = shape.pieces().iter().map(|piece| text(py, piece)).collect::<PyResult<_>>()?;
    let values = shape
        .values
        .iter()
        .map(|value| Ok((number_of(value.kind), text(py, &bytes[value.start..value.end])?)))
        .collect::<PyResult<_>>()?;
    Ok((pieces, values, text(py, &shape.verb)?, shape.cut, text(py, &digest(&shape.text))?))
}

/// Whether an entry of a slow log begins with a line.
#[pyfunction]
pub fn slow_log_begins(line: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(mysql::slow_begins(&bytes_of(line)?))
}

/// Whether a command of a general log begins with a line.
#[pyfunction]
pub fn general_log_begins(line: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(mysql::general_begins(&bytes_of(line)?))
}

/// Whether a row of PostgreSQL's log as CSV begins with a line.
#[pyfunction]
pub fn csv_log_begins(line: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(csv_begins(&bytes_of(line)?))
}

/// What replaces values by a key; none where that is empty.
fn anonymiser(key: &[u8]) -> Option<Anonymiser> {
    (!key.is_empty()).then(|| Anonymiser::new(key))?
}

/// What a key makes of the name of a database.
#[pyfunction]
pub fn sql_database<'py>(
    py: Python<'py>,
    name: &Bound<'py, PyAny>,
    key: &[u8],
) -> PyResult<Bound<'py, PyString>> {
    let name = bytes_of(name)?;
    match anonymiser(key) {
        Some(mut anonymiser) => text(py, &anonymiser.database(&name)),
        None => text(py, &name),
    }
}

/// Cuts what comes in pieces into lines.
#[pyclass]
pub struct LogLines(AllLines);

#[pymethods]
impl LogLines {
    #[new]
    fn new(bytes_most: usize) -> LogLines {
        LogLines(AllLines::new(bytes_most))
    }

    /// The lines that are whole with this piece, with their numbers.
    fn feed<'py>(&mut self, py: Python<'py>, piece: &[u8]) -> PyResult<Bound<'py, PyList>> {
        let found = PyList::empty(py);
        let mut each = |number: u64, line: &[u8]| {
            text(py, line).and_then(|line| found.append((number, line))).map_err(fault)
        };
        self.0.feed(piece, &mut each).map_err(raised)?;
        Ok(found)
    }

    /// What is left.
    fn end<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let found = PyList::empty(py);
        let mut each = |number: u64, line: &[u8]| {
            text(py, line).and_then(|line| found.append((number, line))).map_err(fault)
        };
        self.0.end(&mut each).map_err(raised)?;
        Ok(found)
    }
}

/// The statements of a log by digest. `plan` says of the pieces of a shape which places belong together: whether their
/// distance counts, and where they are.
#[pyclass]
pub struct LogGroups {
    groups: AllGroups,
    plan: Py<PyAny>,
}

impl LogGroups {
    fn add(&mut self, py: Python<'_>, seen: &Seen<'_>) -> PyResult<()> {
        let mut failed = None;
        let plan = &self.plan;
        self.groups.add(seen, &mut |pieces| {
            let asked = pieces
                .iter()
                .map(|piece| text(py, piece))
                .collect::<PyResult<Vec<_>>>()
                .and_then(|pieces| plan.bind(py).call1((pieces,))?.extract());
            asked.map_err(|error| failed = Some(error)).unwrap_or_default()
        });
        failed.map_or(Ok(()), Err)
    }
}

#[pymethods]
impl LogGroups {
    #[new]
    fn new(mysql: bool, database: &Bound<'_, PyAny>, plan: Py<PyAny>, key: &[u8]) -> PyResult<LogGroups> {
        let groups = AllGroups::new(dialect_of(mysql), &bytes_of(database)?, anonymiser(key));
        Ok(LogGroups { groups, plan })
    }

    /// Has what comes next be of the file with this number.
    fn next_file(&mut self, number: u32) {
        self.groups.file = number;
    }

    /// Takes statements that Python read.
    fn take<'py>(&mut self, py: Python<'py>, statements: &Bound<'py, PyList>) -> PyResult<()> {
        for seen in statements {
            let get = |name: &Bound<'py, PyString>| seen.getattr(name);
            let (written, rest) = (bytes_of(&get(intern!(py, "text"))?)?, get(intern!(py, "rest"))?);
            let session = bytes_of(&get(intern!(py, "session"))?)?;
            let database = bytes_of(&get(intern!(py, "database"))?)?;
            let seen = Seen {
                text: &written,
                line: get(intern!(py, "line"))?.extract()?,
                took_s: get(intern!(py, "took_s"))?.extract()?,
                times: get(intern!(py, "times"))?.extract()?,
                rest: rest.extract()?,
                session: &session,
                at_s: get(intern!(py, "at_s"))?.extract()?,
                database: &database,
                bound: get(intern!(py, "bound"))?.extract()?,
                rows: get(intern!(py, "rows"))?.extract()?,
                affected: get(intern!(py, "affected"))?.extract()?,
                examined: get(intern!(py, "examined"))?.extract()?,
                ..Seen::default()
            };
            self.add(py, &seen)?;
        }
        Ok(())
    }

    /// The groups, what is no statement, the databases, the fastest statement's seconds, how many sessions there were,
    /// and the first and the last begin.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let all = &self.groups;
        let tallies = |counts: &[(Box<[u8]>, u64)]| -> PyResult<Vec<(Bound<'py, PyString>, u64)>> {
            counts.iter().map(|(name, count)| Ok((text(py, name)?, *count))).collect()
        };
        let groups = all.groups.iter().map(|group| of_group(py, group)).collect::<PyResult<Vec<_>>>()?;
        let (sessions, ends_s) = (all.meter.sessions.len(), all.meter.ends_s);
        let (rest, databases) = (tallies(&all.rest.counts)?, tallies(&all.databases.counts)?);
        (groups, rest, databases, all.meter.least_s, sessions, ends_s).into_pyobject(py)
    }
}

fn of_group<'py>(py: Python<'py>, group: &Group) -> PyResult<Bound<'py, PyTuple>> {
    let shapes = group.shapes.iter().map(|shape| of_shape(py, shape)).collect::<PyResult<Vec<_>>>()?;
    let mean = |mean: Mean| (mean.count > 0).then(|| mean.sum / mean.count as f64);
    let about = (text(py, &group.digest)?, text(py, &group.verb)?, group.line, group.file);
    let named = (text(py, &group.database)?, group.cut, group.count, group.untimed, group.unknown);
    let rows = (mean(group.rows), mean(group.affected), mean(group.examined));
    (about, named, group.took_s, rows, shapes).into_pyobject(py)
}

fn of_shape<'py>(py: Python<'py>, shape: &GroupShape) -> PyResult<Bound<'py, PyTuple>> {
    let pieces = shape.pieces.iter().map(|piece| text(py, piece)).collect::<PyResult<Vec<_>>>()?;
    let first = shape
        .first
        .iter()
        .map(|(kind, written)| Ok((number_of(*kind), text(py, written)?)))
        .collect::<PyResult<Vec<_>>>()?;
    let values = shape.values.iter().map(|values| of_values(py, values)).collect::<PyResult<Vec<_>>>()?;
    let together = shape.together.iter().map(|one| of_together(py, one)).collect::<PyResult<Vec<_>>>()?;
    (pieces, first, values, together, shape.count).into_pyobject(py)
}

fn of_values<'py>(py: Python<'py>, values: &Values) -> PyResult<Bound<'py, PyTuple>> {
    (of_texts(py, &values.texts)?, of_numbers(py, &values.numbers)?, values.binaries(), values.unknown)
        .into_pyobject(py)
}

fn counted<'py>(py: Python<'py>, most: Vec<(&[u8], u64)>) -> PyResult<Vec<(Bound<'py, PyString>, u64)>> {
    most.into_iter().map(|(written, count)| Ok((text(py, written)?, count))).collect()
}

fn of_texts<'py>(py: Python<'py>, texts: &SeenTexts) -> PyResult<Bound<'py, PyTuple>> {
    let ends = (text(py, &texts.ends.0)?, text(py, &texts.ends.1)?);
    let most = counted(py, texts.counts.most(TOLD_MOST))?;
    (most, texts.distinct(), ends, texts.lengths, texts.days, texts.moments).into_pyobject(py)
}

fn of_numbers<'py>(py: Python<'py>, numbers: &Numbers) -> PyResult<Bound<'py, PyTuple>> {
    let ends = match &numbers.ends {
        Some((low, high)) => Some((text(py, low)?, text(py, high)?)),
        None => None,
    };
    let most = counted(py, numbers.counts.most(TOLD_MOST))?;
    (most, numbers.counts.len(), ends, numbers.places, numbers.plain).into_pyobject(py)
}

fn of_together<'py>(py: Python<'py>, together: &Together) -> PyResult<Bound<'py, PyTuple>> {
    let mut rows = Vec::new();
    for (row, count) in together.rows.most(TOLD_MOST) {
        let (mut cells, mut rest) = (Vec::new(), row);
        while let Some((kind, more)) = rest.split_first() {
            let Some((length, more)) = more.split_at_checked(4) else { break };
            let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
            let (cell, more) = more.split_at(length);
            cells.push((*kind == b'n', text(py, cell)?));
            rest = more;
        }
        rows.push((cells, count));
    }
    let distances = of_numbers(py, &together.distances)?;
    (together.distance, together.places.clone(), distances, rows, together.rows.len(), together.others)
        .into_pyobject(py)
}

/// Where the statements of a log go: into groups, or into a list for Python.
enum Out<'a, 'py> {
    Groups(&'a mut LogGroups),
    List(Bound<'py, PyList>, Option<&'a mut Anonymiser>, Dialect),
}

impl Out<'_, '_> {
    fn take(&mut self, py: Python<'_>, seen: &Seen<'_>) -> PyResult<()> {
        match self {
            Out::Groups(groups) => groups.add(py, seen),
            Out::List(list, None, _) => list.append(of_seen(py, seen)?),
            Out::List(list, Some(anonymiser), dialect) => {
                let database = anonymiser.database(seen.database);
                let statement = anonymiser.statement(seen.text, *dialect);
                let other = Seen { text: &statement, database: &database, ..seen.clone() };
                list.append(of_seen(py, &other)?)
            }
        }
    }
}

fn of_seen<'py>(py: Python<'py>, seen: &Seen<'_>) -> PyResult<Bound<'py, PyTuple>> {
    let about = [
        text(py, seen.text)?.into_any(),
        seen.line.into_pyobject(py)?.into_any(),
        seen.took_s.into_pyobject(py)?.into_any(),
        seen.times.into_pyobject(py)?.into_any(),
        PyString::new(py, seen.rest).into_any(),
        text(py, seen.session)?.into_any(),
        seen.at_s.into_pyobject(py)?.into_any(),
        text(py, seen.database)?.into_any(),
        seen.bound.into_pyobject(py)?.to_owned().into_any(),
        intern!(py, "").to_owned().into_any(),
        seen.rows.into_pyobject(py)?.into_any(),
        seen.affected.into_pyobject(py)?.into_any(),
        seen.failed.into_pyobject(py)?.to_owned().into_any(),
        seen.whole_s.into_pyobject(py)?.into_any(),
        seen.sampled.into_pyobject(py)?.to_owned().into_any(),
        seen.examined.into_pyobject(py)?.into_any(),
    ];
    PyTuple::new(py, about)
}

enum Form {
    Slow(mysql::Reader<Slow>),
    General(mysql::Reader<General>),
    Postgresql(Box<Texts>, Messages),
    Rows(Box<Rows>, Messages),
    Entries(Messages),
}

/// Reads the files of one log: `slow`, `general`, `postgresql` with the pattern of its lines, `csv`, `json` or `cluster`
/// of PostgreSQL and CloudNativePG, or `entries`, which Python cuts. `at_s` tells seconds since 1970 of a moment and the zone behind it. A `key` has values replaced by its hash. What is read goes into the groups that a
/// call names, and elsewhere it is returned.
#[pyclass]
pub struct LogReader {
    form: Form,
    lines: AllLines,
    bytes_most: usize,
    at_s: Py<PyAny>,
    anonymiser: Option<Anonymiser>,
}

impl Form {
    fn dialect(&self) -> Dialect {
        dialect_of(matches!(self, Form::Slow(_) | Form::General(_)))
    }
}

#[pymethods]
impl LogReader {
    #[new]
    fn new(
        form: &str,
        pattern: &str,
        whole: bool,
        bytes_most: usize,
        at_s: Py<PyAny>,
        key: &[u8],
    ) -> PyResult<LogReader> {
        let form = match form {
            "slow" => Form::Slow(mysql::Reader::new(Slow::new(whole), bytes_most)),
            "general" => Form::General(mysql::Reader::new(General::new(whole), bytes_most)),
            "postgresql" => {
                let texts = Texts::new(pattern, whole, bytes_most);
                Form::Postgresql(Box::new(texts.map_err(raised)?), Messages::default())
            }
            "csv" | "json" | "cluster" => {
                let written = match form {
                    "csv" => RowForm::Csv,
                    "json" => RowForm::Json,
                    _ => RowForm::Cluster,
                };
                Form::Rows(Box::new(Rows::new(written, bytes_most)), Messages::default())
            }
            "entries" => Form::Entries(Messages::default()),
            _ => return Err(PyValueError::new_err(format!("no form {form:?}"))),
        };
        let (lines, anonymiser) = (AllLines::new(bytes_most), anonymiser(key));
        Ok(LogReader { form, lines, bytes_most, at_s, anonymiser })
    }

    /// Takes a piece of a file.
    #[pyo3(signature = (piece, groups=None))]
    fn feed<'py>(
        &mut self,
        py: Python<'py>,
        piece: &[u8],
        groups: Option<PyRefMut<'py, LogGroups>>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.with(py, groups, |form, lines, out, at_s| {
            lines.feed(piece, &mut |number, line| of_line(py, form, number, line, b"", None, out, at_s))
        })
    }

    /// Takes lines with their numbers; an empty one stands for what is damaged.
    #[pyo3(signature = (lines, groups=None))]
    fn take<'py>(
        &mut self,
        py: Python<'py>,
        lines: Vec<(u64, Bound<'py, PyAny>)>,
        groups: Option<PyRefMut<'py, LogGroups>>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.with(py, groups, |form, _, out, at_s| {
            lines.iter().try_for_each(|(number, line)| {
                of_line(py, form, *number, &bytes_of(line)?, b"", None, out, at_s)
            })
        })
    }

    /// Takes what Python cut: lines of a process as `(number, line, process, at_s)`, the end of a process's entry that
    /// is certain as `(process,)`, and entries as `(number, severity, message, detail, context, session, database, at_s,
    /// whole, lacks)`.
    #[pyo3(signature = (parts, groups=None))]
    fn parts<'py>(
        &mut self,
        py: Python<'py>,
        parts: Vec<Bound<'py, PyTuple>>,
        groups: Option<PyRefMut<'py, LogGroups>>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.with(py, groups, |form, _, out, at_s| {
            parts.iter().try_for_each(|part| of_part(py, form, part, out, at_s))
        })
    }

    /// Ends a file, or with `all` the log.
    #[pyo3(signature = (all, groups=None))]
    fn end<'py>(
        &mut self,
        py: Python<'py>,
        all: bool,
        groups: Option<PyRefMut<'py, LogGroups>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let bytes_most = self.bytes_most;
        self.with(py, groups, |form, lines, out, at_s| {
            if all {
                let sink: &mut Sink<'_> = &mut |seen| out.take(py, seen).map_err(fault);
                return match form {
                    Form::Slow(reader) => reader.ended(sink),
                    Form::General(reader) => reader.ended(sink),
                    Form::Postgresql(_, messages) | Form::Rows(_, messages) | Form::Entries(messages) => {
                        messages.ended(sink)
                    }
                };
            }
            lines.end(&mut |number, line| of_line(py, form, number, line, b"", None, out, at_s))?;
            *lines = AllLines::new(bytes_most);
            let sink: &mut Sink<'_> = &mut |seen| out.take(py, seen).map_err(fault);
            match form {
                Form::Slow(reader) => reader.end(at_s, sink),
                Form::General(reader) => reader.end(at_s, sink),
                Form::Postgresql(texts, messages) => texts.end(true, messages, at_s, sink),
                Form::Rows(rows, messages) => rows.end(messages, at_s, sink),
                Form::Entries(_) => Ok(()),
            }
        })
    }
}

type AtS<'a> = dyn FnMut(&str, &str) -> Result<Option<f64>, Fault> + 'a;

impl LogReader {
    fn with<'py>(
        &mut self,
        py: Python<'py>,
        mut groups: Option<PyRefMut<'py, LogGroups>>,
        work: impl FnOnce(&mut Form, &mut AllLines, &mut Out<'_, 'py>, &mut AtS<'_>) -> Result<(), Fault>,
    ) -> PyResult<Bound<'py, PyList>> {
        let found = PyList::empty(py);
        let mut out = match &mut groups {
            Some(groups) => Out::Groups(groups),
            None => Out::List(found.clone(), self.anonymiser.as_mut(), self.form.dialect()),
        };
        let clock = self.at_s.clone_ref(py);
        let mut at_s = |moment: &str, zone: &str| {
            clock.bind(py).call1((moment, zone)).and_then(|told| told.extract()).map_err(fault)
        };
        work(&mut self.form, &mut self.lines, &mut out, &mut at_s).map_err(raised)?;
        Ok(found)
    }
}

#[allow(clippy::too_many_arguments)]
fn of_line(
    py: Python<'_>,
    form: &mut Form,
    number: u64,
    line: &[u8],
    process: &[u8],
    written_s: Option<f64>,
    out: &mut Out<'_, '_>,
    at_s: &mut AtS<'_>,
) -> Result<(), Fault> {
    let sink: &mut Sink<'_> = &mut |seen| out.take(py, seen).map_err(fault);
    match form {
        Form::Slow(reader) => reader.line(number, line, at_s, sink),
        Form::General(reader) => reader.line(number, line, at_s, sink),
        Form::Postgresql(texts, messages) => {
            texts.line(number, line, process, written_s, messages, at_s, sink)
        }
        Form::Rows(rows, messages) => rows.line(number, line, messages, at_s, sink),
        Form::Entries(_) => Err(fault(PyValueError::new_err("entries have no lines"))),
    }
}

fn of_part(
    py: Python<'_>,
    form: &mut Form,
    part: &Bound<'_, PyTuple>,
    out: &mut Out<'_, '_>,
    at_s: &mut AtS<'_>,
) -> Result<(), Fault> {
    let bytes = |place: usize| bytes_of(&part.get_item(place)?);
    if part.len() == 4 {
        let (number, written_s) = (part.get_item(0)?.extract()?, part.get_item(3)?.extract()?);
        return of_line(py, form, number, &bytes(1)?, &bytes(2)?, written_s, out, at_s);
    }
    let sink: &mut Sink<'_> = &mut |seen| out.take(py, seen).map_err(fault);
    let messages = match form {
        Form::Postgresql(texts, messages) if part.len() == 1 => {
            return texts.end_of(&bytes(0)?, true, messages, at_s, sink);
        }
        Form::Postgresql(_, messages) | Form::Entries(messages) if part.len() == 10 => messages,
        _ => return Err(fault(PyValueError::new_err("no part of a log"))),
    };
    let lacks: String = part.get_item(9)?.extract()?;
    let (severity, message, detail) = (bytes(1)?, bytes(2)?, bytes(3)?);
    let (context, session, database) = (bytes(4)?, bytes(5)?, bytes(6)?);
    let entry = Entry {
        line: part.get_item(0)?.extract()?,
        severity: &severity,
        message: &message,
        detail: &detail,
        context: &context,
        session: &session,
        database: &database,
        at_s: part.get_item(7)?.extract()?,
        whole: part.get_item(8)?.extract()?,
        lacks: &lacks,
    };
    messages.take(&entry, sink)
}
