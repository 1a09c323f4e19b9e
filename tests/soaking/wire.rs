//! Lines of words over a connection, for the bank and for the board.

use std::io;

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// Reads lines.
pub(crate) type Reader = Lines<BufReader<OwnedReadHalf>>;

/// Both ends of a connection.
pub(crate) fn split(stream: TcpStream) -> io::Result<(Reader, OwnedWriteHalf)> {
    stream.set_nodelay(true)?;
    let (reads, writes) = stream.into_split();
    Ok((BufReader::new(reads).lines(), writes))
}

/// Writes a line.
pub(crate) async fn say(writes: &mut OwnedWriteHalf, line: &str) -> io::Result<()> {
    writes.write_all(line.as_bytes()).await
}
