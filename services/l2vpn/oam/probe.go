// Package oam measures circuits from inside: it sends probes the way that a
// circuit's frames go, and takes them back from the switch at the far end before they
// reach the customer (RFC 5085's VCCV). It has no clock and sends nothing by itself:
// time is passed in, in nanoseconds.
package oam

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/weft-sdn/weft/flow"
)

// A probe is an Ethernet frame with one label, that of the circuit, and an
// associated channel header (RFC 4385) of an experimental type. Then come, in network
// order, version and kind (2), lane (4), sequence number (4), the time of sending in
// nanoseconds (8), and the first half of the HMAC-SHA256 of all of these; zeros fill
// the frame.
const (
	channel    = 0x10007ff8
	version    = 1
	headersLen = 14 + 4
	signedAt   = headersLen + 4
	signedLen  = 2 + 4 + 4 + 8
	sumLen     = 16

	// FrameMin is the length of the shortest probe.
	FrameMin = signedAt + signedLen + sumLen
	// FrameMax is the length of the longest one.
	FrameMax = 9216
)

// source begins the Ethernet addresses of probes, locally administered.
var source = flow.MAC{0x02, 'W', 'O', 'A', 'M', 0}

// kind is what a probe is for.
type kind uint8

const (
	kindWay  kind = 1 + iota // through a circuit
	kindTurn                 // to a switch and straight back
	kindPing                 // through a circuit, asked for by somebody
)

// probe is what a probe says.
type probe struct {
	kind kind
	lane uint32
	seq  uint32
	sent int64
}

// signer makes and reads probes. It keeps the state of the hash: one goroutine
// uses it at a time.
type signer struct {
	mac hash.Hash
	sum [sha256.Size]byte
}

func newSigner(key []byte) *signer { return &signer{mac: hmac.New(sha256.New, key)} }

// appendFrame appends the frame of a probe with a label, filled up to a length.
func (s *signer) appendFrame(b []byte, label uint32, p probe, length int) []byte {
	start := len(b)
	b = append(b, source[:]...)
	b = append(b, source[:]...)
	b = binary.BigEndian.AppendUint16(b, flow.EthTypeMPLS)
	b = binary.BigEndian.AppendUint32(b, label<<12|1<<8|uint32(flow.ProbeTTL))
	b = binary.BigEndian.AppendUint32(b, channel)
	b = append(b, version, byte(p.kind))
	b = binary.BigEndian.AppendUint32(b, p.lane)
	b = binary.BigEndian.AppendUint32(b, p.seq)
	b = binary.BigEndian.AppendUint64(b, uint64(p.sent))
	b = append(b, s.sign(b[start+signedAt:])...)
	for len(b)-start < length {
		b = append(b, 0)
	}
	return b
}

// sign returns the first half of the signature, valid until the next call.
func (s *signer) sign(signed []byte) []byte {
	s.mac.Reset()
	s.mac.Write(signed)
	return s.mac.Sum(s.sum[:0])[:sumLen]
}

// isProbe reports whether a frame looks like a probe.
func isProbe(frame []byte) bool {
	return len(frame) >= FrameMin && binary.BigEndian.Uint16(frame[12:]) == flow.EthTypeMPLS &&
		binary.BigEndian.Uint32(frame[14:])&0x1ff == 1<<8|uint32(flow.ProbeTTL) && binary.BigEndian.Uint32(frame[headersLen:]) == channel
}

// read reads a frame for which isProbe is true; false if it is not ours.
func (s *signer) read(frame []byte) (p probe, ok bool) {
	b := frame[signedAt:]
	if b[0] != version || !hmac.Equal(b[signedLen:signedLen+sumLen], s.sign(b[:signedLen])) {
		return probe{}, false
	}
	return probe{kind(b[1]), binary.BigEndian.Uint32(b[2:]), binary.BigEndian.Uint32(b[6:]), int64(binary.BigEndian.Uint64(b[10:]))}, true
}
