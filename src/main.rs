//! The `specgap` program: the command line of the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(feature = "onnx")]
    send_no_telemetry();
    ExitCode::from(specgap::cli::main(std::env::args_os()))
}

/// Builds of ONNX Runtime send events to their maker over the network, and keep those that are
/// not sent yet in the user's cache, unless this variable is set when they are loaded. Their own
/// switch, which is off too, does not stop that. A user's setting stays.
#[cfg(feature = "onnx")]
#[allow(unsafe_code)]
fn send_no_telemetry() {
    const SWITCH: &str = "ORT_DISABLE_TELEMETRY";
    if std::env::var_os(SWITCH).is_none() {
        // SAFETY: the program begins here; no other thread reads the environment.
        unsafe { std::env::set_var(SWITCH, "1") };
    }
}
