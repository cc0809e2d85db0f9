//! The streams of a connection: one on a pipe, one for each exchange over HTTP.

use std::ops::{Index, IndexMut};

use super::keys::StreamId;
use super::stream::{Exchange, Stream};

/// Streams by index. The index of a closed stream is reused with a new generation.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place {
    generation: u32,
    stream: Option<Stream>,
}

impl Streams {
    pub fn open(&mut self, stream: Stream) -> StreamId {
        let stream = Some(stream);
        if let Some(index) = self.free.pop()
            && let Some(place) = self.places.get_mut(index as usize)
        {
            place.stream = stream;
            let generation = place.generation;
            return StreamId { index, generation };
        }
        let id = StreamId {
            index: self.places.len() as u32,
            generation: 0,
        };
        if self.places.len() == self.places.capacity() {
            // Most connections have one stream, idle sessions one stream and one free index: `Vec`
            // would allocate four.
            self.places.reserve_exact(self.places.len().max(1));
        }
        self.places.push(Place {
            generation: 0,
            stream,
        });
        id
    }

    pub fn close(&mut self, id: StreamId) -> Option<Stream> {
        let place = self.places.get_mut(id.index as usize)?;
        if place.generation != id.generation {
            return None;
        }
        let stream = place.stream.take()?;
        // An index whose generations are used up is not reused.
        if let Some(next) = place.generation.checked_add(1) {
            place.generation = next;
            self.free.push(id.index);
        }
        Some(stream)
    }

    pub fn get(&self, id: StreamId) -> Option<&Stream> {
        let place = self.places.get(id.index as usize)?;
        let stream = place.stream.as_ref();
        stream.filter(|_| place.generation == id.generation)
    }

    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        let place = self.places.get_mut(id.index as usize)?;
        let stream = place.stream.as_mut();
        stream.filter(|_| place.generation == id.generation)
    }

    pub fn exchange(&mut self, id: StreamId) -> Option<&mut Exchange> {
        self.get_mut(id).map(|stream| &mut stream.exchange)
    }

    /// The exchange of that stream, or of the first stream if that one is closed.
    pub fn exchange_or_first(&mut self, id: StreamId) -> Option<&mut Exchange> {
        let open = self.get(id).is_some();
        self.exchange(if open { id } else { StreamId::FIRST })
    }

    pub fn iter(&self) -> impl Iterator<Item = (StreamId, &Stream)> {
        (0..).zip(&self.places).filter_map(|(index, place)| {
            let generation = place.generation;
            Some((StreamId { index, generation }, place.stream.as_ref()?))
        })
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (StreamId, &mut Stream)> {
        (0..).zip(&mut self.places).filter_map(|(index, place)| {
            let generation = place.generation;
            Some((StreamId { index, generation }, place.stream.as_mut()?))
        })
    }

    /// Whether there has been more than one stream: then the connection is a session.
    pub fn are_many(&self) -> bool {
        self.places.len() > 1
    }
}

impl Index<StreamId> for Streams {
    type Output = Stream;

    fn index(&self, id: StreamId) -> &Stream {
        self.get(id).unwrap_or_else(|| not_open(id))
    }
}

impl IndexMut<StreamId> for Streams {
    fn index_mut(&mut self, id: StreamId) -> &mut Stream {
        self.get_mut(id).unwrap_or_else(|| not_open(id))
    }
}

#[cold]
fn not_open(id: StreamId) -> ! {
    panic!("{id:?} is not open on this connection")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Config, Framing};
    use crate::mcp::Side;

    #[test]
    fn a_place_is_used_again_and_its_old_stream_is_not_found() {
        let config = Config::new(Side::Server, "s", "1");
        let mut streams = Streams::default();
        let open = |streams: &mut Streams| streams.open(Stream::new(Framing::Whole, &config));
        let first = open(&mut streams);
        let second = open(&mut streams);
        assert_eq!(first, StreamId::FIRST);
        assert!(streams.close(second).is_some());
        assert!(streams.close(second).is_none());
        let third = open(&mut streams);
        assert_eq!(third.index, second.index);
        assert!(streams.get(second).is_none() && streams.close(second).is_none());
        assert!(streams.get(third).is_some());
        let open: Vec<_> = streams.iter().map(|(id, _)| id).collect();
        assert_eq!(open, [first, third]);
    }
}
