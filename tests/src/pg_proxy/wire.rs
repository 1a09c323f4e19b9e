//! As much of PostgreSQL's protocol as it takes to know which statement is on its way.

use std::{collections::HashMap, io};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// One message: its type (0 for the messages before the first typed one) and all of its bytes.
pub(super) struct Message {
    pub(super) kind: u8,
    pub(super) bytes: Vec<u8>,
}

const LENGTH_MAX: usize = 64 << 20;

/// Reads a message that begins with its type. `None` at the end of the stream.
///
/// # Cancel safety
/// Not safe: a message that was read in part is lost with the future.
pub(super) async fn read_typed(stream: &mut (impl AsyncReadExt + Unpin)) -> io::Result<Option<Message>> {
    let mut head = [0; 5];
    if stream.read(&mut head[..1]).await? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut head[1..]).await?;
    let bytes = read_rest(stream, &head, 4).await?;
    Ok(Some(Message { kind: head[0], bytes }))
}

/// Reads a message from before a session has begun, which has no type.
pub(super) async fn read_untyped(stream: &mut (impl AsyncReadExt + Unpin)) -> io::Result<Option<Message>> {
    let mut head = [0; 4];
    if stream.read(&mut head[..1]).await? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut head[1..]).await?;
    let bytes = read_rest(stream, &head, 4).await?;
    Ok(Some(Message { kind: 0, bytes }))
}

async fn read_rest(
    stream: &mut (impl AsyncReadExt + Unpin),
    head: &[u8],
    counted: usize,
) -> io::Result<Vec<u8>> {
    let length = &head[head.len() - 4..];
    let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
    if !(counted..LENGTH_MAX).contains(&length) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a message of PostgreSQL's protocol"));
    }
    let mut bytes = head.to_vec();
    bytes.resize(head.len() + length - counted, 0);
    stream.read_exact(&mut bytes[head.len()..]).await?;
    Ok(bytes)
}

impl Message {
    /// The request for TLS, which is answered by one byte.
    pub(super) fn is_tls_request(&self) -> bool {
        self.bytes.len() == 8 && self.bytes[4..] == [4, 210, 22, 47]
    }

    pub(super) async fn send(&self, stream: &mut (impl AsyncWriteExt + Unpin)) -> io::Result<()> {
        stream.write_all(&self.bytes).await
    }

    /// The zero-terminated texts at the start of the body.
    fn texts(&self) -> impl Iterator<Item = String> {
        self.bytes[5..].split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned())
    }
}

/// What a client asks for in one go: its messages up to the one after which it waits for the server.
#[derive(Default)]
pub(super) struct Unit {
    pub(super) bytes: Vec<u8>,
    /// The statements that it executes.
    pub(super) statements: Vec<String>,
}

/// The statements that a connection has prepared.
#[derive(Default)]
pub(super) struct Prepared(HashMap<String, String>);

impl Prepared {
    /// Adds a message to the unit; says whether the client now waits.
    pub(super) fn add(&mut self, unit: &mut Unit, message: &Message) -> bool {
        unit.bytes.extend_from_slice(&message.bytes);
        let mut texts = message.texts();
        match message.kind {
            b'P' => {
                let (name, statement) = (texts.next(), texts.next());
                self.0.insert(name.unwrap_or_default(), statement.unwrap_or_default());
                false
            }
            b'B' => {
                let name = texts.nth(1).unwrap_or_default();
                unit.statements.extend(self.0.get(&name).cloned());
                false
            }
            b'Q' => {
                unit.statements.extend(texts.next());
                true
            }
            b'S' | b'X' => true,
            _ => false,
        }
    }
}
