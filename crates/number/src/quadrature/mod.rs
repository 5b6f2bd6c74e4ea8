//! Nodes and weights of the integrals behind plans and scans, and a linear system.
//!
//! [`gauss_legendre`] is for the audit of plans, which shares nothing with what it checks.

mod elimination;
mod legendre;
mod log_time;

pub use elimination::dense;
pub use legendre::gauss_legendre;
pub use log_time::log_time_step;
