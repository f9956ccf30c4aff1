//! A `multipart/form-data` body, byte for byte.

/// Its `Content-Type`.
pub const TYPE: &str = "multipart/form-data; boundary=frontier";

/// A form in the making.
#[derive(Clone, Default)]
pub struct Form(Vec<u8>);

impl Form {
    pub fn new() -> Self {
        Self::default()
    }

    /// A part that is a member.
    pub fn text(self, name: &str, value: &str) -> Self {
        self.part(&format!("Content-Disposition: form-data; name=\"{name}\"\r\n"), value.as_bytes())
    }

    /// The part `file`, without a name or type.
    pub fn file(self, bytes: &[u8]) -> Self {
        self.part("Content-Disposition: form-data; name=\"file\"\r\n", bytes)
    }

    /// The part `file`, as a browser sends it.
    pub fn named_file(self, file_name: &str, mime_type: &str, bytes: &[u8]) -> Self {
        let disposition = format!("Content-Disposition: form-data; name=\"file\"; filename=\"{file_name}\"\r\n");
        self.part(&format!("{disposition}Content-Type: {mime_type}\r\n"), bytes)
    }

    /// A part with these header lines.
    pub fn part(mut self, headers: &str, bytes: &[u8]) -> Self {
        self.0.extend(format!("--frontier\r\n{headers}\r\n").as_bytes());
        self.0.extend(bytes);
        self.0.extend(b"\r\n");
        self
    }

    /// The form without its last boundary.
    pub fn open_end(self) -> Vec<u8> {
        self.0
    }

    /// The whole form.
    pub fn end(mut self) -> Vec<u8> {
        self.0.extend(b"--frontier--\r\n");
        self.0
    }
}
