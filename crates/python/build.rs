//! Symbols of Python are resolved when Python loads the library.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
