//! The canonical encoding: what goes into a digest, byte for byte. It is specified in the module's page and
//! frozen by golden vectors, so that no change here may change a byte.

/// The version of the encoding itself, the byte behind the domain tag.
const ENCODING_VERSION: u8 = 1;

/// What a value is. The numbers are part of the encoding.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(super) enum Tag {
    None = 0x00,
    Some = 0x01,
    Unit = 0x02,
    Bool = 0x03,
    Char = 0x04,
    Text = 0x05,
    Bytes = 0x06,
    Uuid = 0x07,
    List = 0x08,
    Tuple = 0x09,
    Map = 0x0a,
    Set = 0x0b,
    Record = 0x0c,
    Variant = 0x0d,
    U8 = 0x10,
    U16 = 0x11,
    U32 = 0x12,
    U64 = 0x13,
    U128 = 0x14,
    Usize = 0x15,
    I8 = 0x18,
    I16 = 0x19,
    I32 = 0x1a,
    I64 = 0x1b,
    I128 = 0x1c,
    Isize = 0x1d,
    F32 = 0x20,
    F64 = 0x21,
    Duration = 0x22,
    Json = 0x23,
}

/// Receives the canonical encoding of a value.
///
/// There is nothing to call on it: a derive writes into it, and a type with an own implementation of
/// [`Identity`](crate::Identity) passes it on to a type that already has one.
#[derive(Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

/// A value whose end is not yet written.
#[doc(hidden)]
#[must_use = "the value's length is written when it is closed"]
pub struct Open {
    content: usize,
}

impl Encoder {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes) }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Starts a new input of the digest, over what an earlier use of this encoder left.
    pub(super) fn restart(&mut self, domain: &str) {
        self.bytes.clear();
        self.bytes.extend_from_slice(domain.as_bytes());
        self.bytes.extend_from_slice(&[0, ENCODING_VERSION]);
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        blake3::hash(&self.bytes).into()
    }

    /// The digest that nobody without the key can try values against.
    pub(super) fn keyed_digest(&self, key: &[u8; 32]) -> [u8; 32] {
        blake3::keyed_hash(key, &self.bytes).into()
    }

    /// Writes a value whose content is at hand.
    pub(super) fn value(&mut self, tag: Tag, content: &[u8]) {
        self.bytes.push(tag as u8);
        self.length_and(content);
    }

    /// Begins a value whose content follows; [`close`](Self::close) ends it.
    pub(super) fn open(&mut self, tag: Tag) -> Open {
        self.bytes.push(tag as u8);
        self.bytes.extend_from_slice(&[0; 8]);
        Open { content: self.bytes.len() }
    }

    /// Ends a value by filling in the length of its content.
    #[doc(hidden)]
    pub fn close(&mut self, open: Open) {
        let length = (self.bytes.len() - open.content) as u64;
        self.bytes[open.content - 8..open.content].copy_from_slice(&length.to_be_bytes());
    }

    /// Ends a value whose entries have no order of their own: they are sorted by their bytes. `ends` holds
    /// where each entry ends.
    pub(super) fn close_sorted(&mut self, open: Open, ends: &[usize]) {
        let content = &self.bytes[open.content..];
        let starts = std::iter::once(open.content).chain(ends.iter().copied());
        let entry = |(start, &end): (usize, &usize)| &content[start - open.content..end - open.content];
        let mut entries: Vec<&[u8]> = starts.zip(ends).map(entry).collect();
        if !entries.is_sorted() {
            entries.sort_unstable();
            let sorted = entries.concat();
            self.bytes.truncate(open.content);
            self.bytes.extend_from_slice(&sorted);
        }
        self.close(open);
    }

    pub(super) fn position(&self) -> usize {
        self.bytes.len()
    }

    /// Appends what another encoder has already written.
    pub(super) fn append(&mut self, encoded: &[u8]) {
        self.bytes.extend_from_slice(encoded);
    }

    /// Begins a struct with named fields; the fields follow, sorted by the bytes of their names.
    #[doc(hidden)]
    pub fn open_record(&mut self) -> Open {
        self.open(Tag::Record)
    }

    /// Begins a tuple; its elements follow.
    #[doc(hidden)]
    pub fn open_tuple(&mut self) -> Open {
        self.open(Tag::Tuple)
    }

    /// Begins a variant of an enum; one value follows.
    #[doc(hidden)]
    pub fn open_variant(&mut self, name: &str) -> Open {
        let open = self.open(Tag::Variant);
        self.name(name);
        open
    }

    /// Writes the name of a field; its value follows.
    #[doc(hidden)]
    pub fn name(&mut self, name: &str) {
        self.length_and(name.as_bytes());
    }

    /// Writes the value without content: `()`, a unit struct, a unit variant.
    #[doc(hidden)]
    pub fn unit(&mut self) {
        self.value(Tag::Unit, &[]);
    }

    fn length_and(&mut self, content: &[u8]) {
        self.bytes.extend_from_slice(&(content.len() as u64).to_be_bytes());
        self.bytes.extend_from_slice(content);
    }
}
