//! The binding: the only Rust that knows Python. JSON in, JSON out; the GIL is released while the driver works.

mod sql_log;

use dyno_driver::workload::Acknowledged;
use dyno_driver::{Error, Watch};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use serde_json::{json, Value};
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Mutex;

create_exception!(
    _driver,
    DriverError,
    PyException,
    "What went wrong; `kind`, `message` and `hint` say it apart."
);

/// Calls the driver without the GIL; signals are looked at between whiles, and Python's own handlers run. What a callback
/// raises ends the run and is raised here, but for an interrupt, after which a run returns what it counted.
fn call(
    py: Python<'_>,
    on_second: Option<Py<PyAny>>,
    next_slice: Option<Py<PyAny>>,
    work: impl FnOnce(&mut Watch<'_>) -> Result<Value, Error> + Send,
) -> PyResult<String> {
    let mut raised = None;
    let (outcome, failed) = py.detach(|| {
        // What a callback has raised. A signal that arrives while one runs is raised there, and nowhere else.
        let failed = RefCell::new(None);
        let note = |error| {
            failed.borrow_mut().get_or_insert(error);
        };
        let mut interrupted = || {
            failed.borrow().is_some()
                || Python::attach(|py| py.check_signals().map_err(|error| raised = Some(error)).is_err())
        };
        let mut show = |second: &Value| {
            let Some(callback) = &on_second else { return };
            Python::attach(|py| callback.call1(py, (second.to_string(),)).map(drop)).unwrap_or_else(note);
        };
        let mut may_go_on = |told: &Acknowledged| {
            let Some(callback) = &next_slice else { return true };
            let told = json!(told).to_string();
            let answer =
                Python::attach(|py| callback.call1(py, (told,)).and_then(|answer| answer.extract(py)));
            answer.map_err(note).unwrap_or(false)
        };
        let mut watch = Watch { interrupted: &mut interrupted, on_second: None, next_slice: None };
        if on_second.is_some() {
            watch.on_second = Some(&mut show);
        }
        if next_slice.is_some() {
            watch.next_slice = Some(&mut may_go_on);
        }
        // A panic is a defect of the driver; Python hears of it as of any other failure.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut watch)));
        (outcome, failed.into_inner())
    });
    match outcome {
        Ok(Ok(value)) => {
            match failed.filter(|error: &PyErr| !error.is_instance_of::<PyKeyboardInterrupt>(py)) {
                Some(error) => Err(error),
                // An interrupted run returns what it counted, marked as interrupted; anything else is over.
                None => Ok(value.to_string()),
            }
        }
        Ok(Err(error)) => Err(raised.or(failed).unwrap_or_else(|| driver_error(py, &error))),
        Err(_) => Err(driver_error(
            py,
            &Error::internal("the driver panicked").hint("this is a defect: please report it"),
        )),
    }
}

fn driver_error(py: Python<'_>, error: &Error) -> PyErr {
    let raised = DriverError::new_err(error.to_string());
    let value = raised.value(py);
    for (name, text) in
        [("kind", error.kind().as_str()), ("message", error.message()), ("hint", error.hint_text())]
    {
        if let Err(failure) = value.setattr(name, text) {
            return failure;
        }
    }
    raised
}

/// Makes the workload's tables and loads its rows.
#[pyfunction]
fn prepare(py: Python<'_>, job: &str) -> PyResult<String> {
    call(py, None, None, |watch| dyno_driver::prepare(job, watch))
}

/// Makes the workload's tables without their rows.
#[pyfunction]
fn create(py: Python<'_>, job: &str) -> PyResult<String> {
    call(py, None, None, |watch| dyno_driver::create(job, watch).map(|()| Value::Object(Default::default())))
}

/// Has the server prepare the statements of the workload that are the user's own.
#[pyfunction]
fn examine(py: Python<'_>, job: &str) -> PyResult<String> {
    call(py, None, None, |watch| dyno_driver::examine(job, watch))
}

/// The mistakes in the files of a workload, and the SQL in them.
#[pyfunction]
fn review(py: Python<'_>, workload: &str, options: &str, folder: &str) -> PyResult<String> {
    let reviewed =
        dyno_driver::review(workload, options, folder).map_err(|error| driver_error(py, &error))?;
    Ok(reviewed.to_string())
}

/// Runs the workload; returns its tally.
#[pyfunction]
#[pyo3(signature = (job, on_second=None, next_slice=None))]
fn run(
    py: Python<'_>,
    job: &str,
    on_second: Option<Py<PyAny>>,
    next_slice: Option<Py<PyAny>>,
) -> PyResult<String> {
    call(py, on_second, next_slice, |watch| dyno_driver::run(job, watch))
}

/// The tally of a load from what the runs on several hosts returned.
#[pyfunction]
fn merge(py: Python<'_>, portions: &str) -> PyResult<String> {
    call(py, None, None, |_| dyno_driver::merge(portions))
}

/// Compares the data with the workload's invariants.
#[pyfunction]
#[pyo3(signature = (job, acknowledged=None))]
fn check(py: Python<'_>, job: &str, acknowledged: Option<&str>) -> PyResult<String> {
    call(py, None, None, |watch| dyno_driver::check(job, acknowledged, watch))
}

/// Asks how the engine would execute the workload's statements.
#[pyfunction]
fn explain(py: Python<'_>, job: &str) -> PyResult<String> {
    call(py, None, None, |watch| dyno_driver::explain(job, watch))
}

/// What the server answers to each of the user's statements.
#[pyfunction]
fn answers(py: Python<'_>, job: &str) -> PyResult<String> {
    call(py, None, None, |watch| dyno_driver::answers(job, watch))
}

/// Drops what `prepare` made.
#[pyfunction]
fn cleanup(py: Python<'_>, job: &str) -> PyResult<String> {
    call(py, None, None, |watch| dyno_driver::cleanup(job, watch).map(|()| Value::Object(Default::default())))
}

/// Asks a server one question.
#[pyfunction]
fn query(py: Python<'_>, url: &str, sql: &str) -> PyResult<String> {
    call(py, None, None, |watch| dyno_driver::query(url, sql, watch))
}

/// One session with a server, which is asked one statement after another. It ends with `close`.
#[pyclass]
struct Conversation(Mutex<Option<dyno_driver::Conversation>>);

#[pymethods]
impl Conversation {
    #[new]
    fn new(py: Python<'_>, url: &str) -> PyResult<Self> {
        let opened = dyno_driver::Conversation::open(url).map_err(|error| driver_error(py, &error))?;
        Ok(Conversation(Mutex::new(Some(opened))))
    }

    /// The rows of one statement.
    fn ask(&self, py: Python<'_>, sql: &str) -> PyResult<String> {
        call(py, None, None, |watch| match self.0.lock() {
            Ok(mut held) => match held.as_mut() {
                Some(session) => session.ask(sql, watch),
                None => Err(Error::connect("the session is closed")),
            },
            Err(_) => Err(Error::internal("a statement before this one panicked")),
        })
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.lock().map(|mut held| drop(held.take())).unwrap_or_default());
    }
}

/// Whether clients of a workload wait by themselves between transactions.
#[pyfunction]
fn pauses(py: Python<'_>, workload: &str, options: &str, folder: &str) -> PyResult<bool> {
    dyno_driver::pauses(workload, options, folder).map_err(|error| driver_error(py, &error))
}

/// The files that a workload reads.
#[pyfunction]
fn files(py: Python<'_>, workload: &str, options: &str, folder: &str) -> PyResult<String> {
    call(py, None, None, |_| dyno_driver::files(workload, options, folder))
}

/// Every workload with its options.
#[pyfunction]
fn workloads() -> String {
    dyno_driver::workloads().to_string()
}

/// What URLs may have behind their `?`.
#[pyfunction]
fn url_parameters() -> String {
    dyno_driver::url_parameters().to_string()
}

/// What the driver can do on this machine.
#[pyfunction]
fn capabilities() -> String {
    dyno_driver::capabilities().to_string()
}

#[pymodule]
fn _driver(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("DriverError", module.py().get_type::<DriverError>())?;
    module.add_class::<Conversation>()?;
    module.add_class::<sql_log::LogLines>()?;
    module.add_class::<sql_log::LogGroups>()?;
    module.add_class::<sql_log::LogReader>()?;
    module.add_function(wrap_pyfunction!(sql_log::sql_tokens, module)?)?;
    module.add_function(wrap_pyfunction!(sql_log::sql_database, module)?)?;
    module.add_function(wrap_pyfunction!(sql_log::sql_shaped, module)?)?;
    module.add_function(wrap_pyfunction!(sql_log::slow_log_begins, module)?)?;
    module.add_function(wrap_pyfunction!(sql_log::general_log_begins, module)?)?;
    module.add_function(wrap_pyfunction!(sql_log::csv_log_begins, module)?)?;
    module.add_function(wrap_pyfunction!(prepare, module)?)?;
    module.add_function(wrap_pyfunction!(create, module)?)?;
    module.add_function(wrap_pyfunction!(examine, module)?)?;
    module.add_function(wrap_pyfunction!(review, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(merge, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(explain, module)?)?;
    module.add_function(wrap_pyfunction!(answers, module)?)?;
    module.add_function(wrap_pyfunction!(cleanup, module)?)?;
    module.add_function(wrap_pyfunction!(query, module)?)?;
    module.add_function(wrap_pyfunction!(pauses, module)?)?;
    module.add_function(wrap_pyfunction!(files, module)?)?;
    module.add_function(wrap_pyfunction!(workloads, module)?)?;
    module.add_function(wrap_pyfunction!(url_parameters, module)?)?;
    module.add_function(wrap_pyfunction!(capabilities, module)?)
}
