//! The binding: the only Rust file that knows Python.

use pyo3::prelude::*;

#[pymodule]
fn _driver(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
