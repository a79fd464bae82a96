//! Links the library so that symbols of Python are resolved when Python loads it.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
