//! Native part of the Python package `meshpace`: scenarios, campaigns and tables. The public
//! interface is in `python/meshpace`.
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod campaign;
mod errors;
mod frame;
mod lines;
mod lists;
mod pacing;
mod progress;
mod records;
mod reproduce;
mod scenario;
#[cfg(target_os = "linux")]
mod sockets;
mod workers;

use pyo3::prelude::*;

/// The native part of meshpace.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::campaign::Campaign;
    #[pymodule_export]
    use super::frame::{Table, restored, table};
    #[pymodule_export]
    use super::lists::{keys, transports};
    #[pymodule_export]
    use super::pacing::Sample;
    #[pymodule_export]
    use super::records::{Records, compare, compare_robustly, drawings, open, records, report};
    #[pymodule_export]
    use super::reproduce::{experiments, reproduce};
    #[pymodule_export]
    use super::scenario::{Scenario, kept_scenario, models, restored_scenario};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::sockets::{TpaDescriptor, TpaListener, TpaOptions, TpaPort, TpaStream, tpa_finish_process, tpa_new_key};
    #[pymodule_export]
    use super::workers::{identity, work};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::campaign::silence_panics();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("MODEL_REVISION", meshpace_sim::MODEL_REVISION)
    }
}
