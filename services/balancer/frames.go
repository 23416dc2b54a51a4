package balancer

import "encoding/binary"

// Of the frames of HTTP/2 (RFC 9113, 4.1).
const (
	frameHead     = 9
	frameLongest  = 16384 // unless a peer says otherwise
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4
	framePing     = 6
	frameGoAway   = 7
	frameWindow   = 8
	frameLast     = 9 // the last type
	lastStream    = 1<<31 - 1
)

// frame returns the type, the stream and the whole length of the frame whose header begins
// some octets; false if these are no header, such as the middle of a frame, TLS or HTTP/1.1.
func frame(p []byte) (kind uint8, stream uint32, n int, ok bool) {
	if len(p) < frameHead {
		return 0, 0, 0, false
	}
	n = int(p[0])<<16 | int(p[1])<<8 | int(p[2])
	kind, stream = p[3], binary.BigEndian.Uint32(p[5:])
	fits := stream%2 == 1 && stream <= lastStream
	switch kind {
	case frameSettings, framePing, frameGoAway:
		fits = stream == 0
	case frameWindow:
		fits = fits || stream == 0
	}
	return kind, stream, frameHead + n, fits && n <= frameLongest && kind <= frameLast
}

// newStream returns the stream of the first HEADERS frame among the frames of a client's
// segment, and where that frame begins; false if there is none, or the segment begins within
// a frame.
func newStream(p []byte) (stream uint32, at int, ok bool) {
	for at < len(p) {
		kind, stream, n, ok := frame(p[at:])
		if !ok {
			return 0, 0, false
		}
		if kind == frameHeaders {
			return stream, at, true
		}
		at += n
	}
	return 0, 0, false
}

// goAway returns the frame that asks a client to open no more streams (RFC 9113, 6.8). Those
// above last were not processed: it may send them again elsewhere.
func goAway(last uint32) []byte {
	p := []byte{0, 0, 8, frameGoAway, 0, 0, 0, 0, 0}
	p = binary.BigEndian.AppendUint32(p, last)
	return binary.BigEndian.AppendUint32(p, 0) // NO_ERROR
}

// frames follows a stream of frames.
type frames struct {
	seen bool
	left int // octets of a frame under way; -1: not known
}

// between reports whether the next octet begins a frame.
func (f *frames) between() bool { return !f.seen || f.left == 0 }

// follow takes the octets that come next.
func (f *frames) follow(p []byte) {
	f.seen, f.left = true, max(f.left, 0) // if it is not known, a header says that they begin a frame
	for f.left < len(p) {
		p = p[f.left:]
		_, _, n, ok := frame(p)
		if !ok {
			f.left = -1
			return
		}
		f.left = n
	}
	f.left -= len(p)
}

// lose forgets where frames begin: octets were not seen.
func (f *frames) lose() { f.seen, f.left = true, -1 }
