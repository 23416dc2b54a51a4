// Package cfm is Ethernet OAM between maintenance end points: continuity checks and loopback
// (IEEE 802.1ag) and delay measurement (ITU-T Y.1731). It has no clock and sends nothing by itself:
// time is passed in, and frames are returned.
package cfm

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// EthType is that of its frames.
const EthType uint16 = 0x8902

// Group returns the address to which continuity checks of a level go (802.1ag table 8-9).
func Group(level uint8) flow.MAC { return flow.MAC{0x01, 0x80, 0xc2, 0, 0, 0x30 | level&7} }

// The codes of frames (802.1ag table 21-4, Y.1731 table 9-1).
const (
	codeCCM byte = 1
	codeLBR byte = 2
	codeLBM byte = 3
	codeDMR byte = 46
	codeDMM byte = 47
)

// The lengths of frames behind the header of four octets, up to their first TLV (802.1ag 21.6, 21.7;
// Y.1731 9.15).
const (
	headerLen = 4
	ccmLen    = 70
	lbmLen    = 4
	dmmLen    = 32
	maidLen   = 48
	maidAt    = headerLen + 4 + 2
)

// rdi is the flag by which a continuity check says that its sender does not hear all others.
const rdi = 0x80

// intervals are the codes of the times between continuity checks (802.1ag table 21-16) that there are here.
var intervals = map[time.Duration]byte{time.Second: 4, 10 * time.Second: 5, time.Minute: 6}

// IntervalOK reports whether continuity checks may be so far apart.
func IntervalOK(d time.Duration) bool { return intervals[d] != 0 }

// A MAID names a maintenance association (802.1ag 21.6.5).
type MAID [maidLen]byte

// The formats of its names (802.1ag tables 21-19 and 21-20).
const (
	noDomain   = 1
	domainText = 4
	nameText   = 2
	megText    = 32
	megLen     = 13
)

// NewMAID returns the identifier of an association with a name, of a domain or, if that is empty, of none.
func NewMAID(domain, name string) (id MAID, err error) {
	b := []byte{noDomain}
	if domain != "" {
		b = append([]byte{domainText, byte(len(domain))}, domain...)
	}
	b = append(b, nameText, byte(len(name)))
	b = append(b, name...)
	if name == "" || len(b) > maidLen {
		return id, fmt.Errorf("association %.60q of domain %.60q: want a name, and at most %d letters in both", name, domain, maidLen-4)
	}
	copy(id[:], b)
	return id, nil
}

// NewMEG returns the identifier of a maintenance entity group as Y.1731 names them (annex A): at most 13 letters, of which
// the first six are the carrier's (ICC).
func NewMEG(name string) (id MAID, err error) {
	if name == "" || len(name) > megLen {
		return id, fmt.Errorf("group %.60q: want a name of at most %d letters", name, megLen)
	}
	copy(id[:], append([]byte{noDomain, megText, megLen}, name...))
	return id, nil
}

// String returns the names in an identifier.
func (id MAID) String() string {
	b, domain := id[:], ""
	if b[0] == domainText && int(b[1]) < len(b)-4 {
		domain, b = string(b[2:2+b[1]])+"/", b[2+b[1]:]
	} else {
		b = b[1:]
	}
	if b[0] == megText {
		return fmt.Sprintf("%q", strings.TrimRight(string(b[2:2+megLen]), "\x00"))
	}
	if b[0] == nameText && int(b[1]) <= len(b)-2 {
		return fmt.Sprintf("%.60q", domain+string(b[2:2+b[1]]))
	}
	return fmt.Sprintf("%x", id[:])
}

// A pdu is what a frame has behind its type.
type pdu []byte

// read returns the unit in what is behind a frame's type; false if it is none.
func read(body []byte) (p pdu, ok bool) {
	if len(body) < headerLen || len(body) < headerLen+int(body[3]) {
		return nil, false // later versions are read as this one (802.1ag 20.46.4.3)
	}
	p = body
	least := map[byte]int{codeCCM: ccmLen, codeLBR: lbmLen, codeLBM: lbmLen, codeDMR: dmmLen, codeDMM: dmmLen}[p.code()]
	return p, least > 0 && int(p[3]) >= least
}

func (p pdu) level() uint8 { return p[0] >> 5 }
func (p pdu) code() byte   { return p[1] }

// ccm returns what a continuity check says.
func (p pdu) ccm() (mep uint16, interval byte, defect bool, id MAID) {
	copy(id[:], p[maidAt:])
	return binary.BigEndian.Uint16(p[maidAt-2:]) & 0x1fff, p[2] & 7, p[2]&rdi != 0, id
}

// transaction returns the number of a loopback message.
func (p pdu) transaction() uint32 { return binary.BigEndian.Uint32(p[headerLen:]) }

// The times in a delay message: when it left, arrived, and when its answer left.
const (
	sentAt     = headerLen
	receivedAt = headerLen + 8
	answeredAt = headerLen + 16
)

// stamp returns a time in a delay message, nanoseconds.
func (p pdu) stamp(at int) int64 {
	return int64(binary.BigEndian.Uint32(p[at:]))*int64(time.Second) + int64(binary.BigEndian.Uint32(p[at+4:]))
}

func (p pdu) setStamp(at int, now int64) {
	binary.BigEndian.PutUint32(p[at:], uint32(now/int64(time.Second)))
	binary.BigEndian.PutUint32(p[at+4:], uint32(now%int64(time.Second)))
}

// newPDU returns a unit with room for what its code has, and an end TLV.
func newPDU(level uint8, code, flags byte, room int) pdu {
	p := make(pdu, headerLen+room+1)
	p[0], p[1], p[2], p[3] = level<<5, code, flags, byte(room)
	return p
}
