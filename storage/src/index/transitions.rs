//! What an index does, by what it is about: each method is one whole transition or one read.

mod assets;
mod ends;
mod resumable;
mod runs;
mod upkeep;
mod uploads;
mod urls;

pub use self::assets::Assets;
pub use self::ends::Ends;
pub use self::resumable::ResumableUploads;
pub use self::runs::Runs;
pub use self::upkeep::Upkeep;
pub use self::uploads::Uploads;
pub use self::urls::Urls;
