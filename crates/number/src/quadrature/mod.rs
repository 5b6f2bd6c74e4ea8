//! Nodes and weights of the integrals behind plans and scans, and the linear systems of
//! their Newton steps.
//!
//! [`gauss_legendre`] is for audits, which share nothing with what they check; everything
//! else here is for solves.

mod elimination;
mod geometric;
mod laplace;
mod legendre;
mod log_time;

pub use elimination::{dense, laplacian};
pub use geometric::{GeometricGrid, Resolution};
pub use laplace::{BLOCK, LaplaceGrid, PER_OCTAVE, QUADRATURE_ERROR, decay};
pub use legendre::gauss_legendre;
pub use log_time::{log_time_error, log_time_step};
