package discovery

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// A probe is an LLDP frame with the chassis id of the switch (16 hex digits),
// the port id (8 hex digits) and one organisation-specific TLV: the time at
// which it was sent, which serves as its sequence number, too (nanoseconds, 8
// octets), and the HMAC-SHA256 of
//
//	"weft probe 1\n" | DPID (8) | port (4) | time (8)
//
// A probe crosses one link, so nothing else in the frame has a meaning.
const (
	keySize   = 32
	stampSize = 8
	orgSize   = stampSize + sha256.Size
	domain    = "weft probe 1\n"
	orgKind   = 1
)

// orgID is our organisation in LLDP: locally administered, and not registered.
var orgID = [3]byte{0x02, 'W', 'F'}

// probeSource begins the Ethernet address that probes come from, locally
// administered: by it an entry tells our LLDP from a customer's. What follows
// differs from port to port.
var probeSource, probeSourceMask = flow.MAC{0x02, 'W', 'F'}, flow.MAC{0xff, 0xff, 0xff}

// newProbe returns the probe of a port without stamp and signature.
func newProbe(at flow.Location, ttl uint16) []byte {
	src := flow.MACFrom(probeSource.Uint64() | (uint64(at.Switch)<<12|uint64(at.Port)&0xfff)&0xffffff)
	return packet.AppendLLDP(nil, packet.Ether{Dst: packet.LLDPNearestBridge, Src: src}, packet.LLDPFields{
		ChassisSubtype: packet.ChassisLocal, ChassisID: appendHex(nil, uint64(at.Switch), 16),
		PortSubtype: packet.PortLocal, PortID: appendHex(nil, uint64(at.Port), 8),
		TTL:          ttl,
		Organization: []packet.OrgTLV{{OUI: orgID, Subtype: orgKind, Value: make([]byte, orgSize)}},
	})
}

// A signer makes and checks signatures. It keeps the state of the hash, so
// each goroutine has its own.
type signer struct {
	mac hash.Hash
	msg [len(domain) + 8 + 4 + stampSize]byte
	sum [sha256.Size]byte
}

func newSigner(key []byte) *signer {
	s := &signer{mac: hmac.New(sha256.New, key)}
	copy(s.msg[:], domain)
	return s
}

// sign returns the signature, valid until the next call.
func (s *signer) sign(at flow.Location, sent int64) []byte {
	m := s.msg[len(domain):]
	binary.BigEndian.PutUint64(m, uint64(at.Switch))
	binary.BigEndian.PutUint32(m[8:], uint32(at.Port))
	binary.BigEndian.PutUint64(m[12:], uint64(sent))
	s.mac.Reset()
	s.mac.Write(s.msg[:])
	return s.mac.Sum(s.sum[:0])
}

// appendProbe appends the probe of a port, signed.
func (s *signer) appendProbe(dst, probe []byte, at flow.Location, sent int64) []byte {
	dst = append(dst, probe...)
	org := dst[len(dst)-2-orgSize:]
	binary.BigEndian.PutUint64(org, uint64(sent))
	copy(org[stampSize:], s.sign(at, sent))
	return dst
}

// read returns the port that sent a probe and the time, or why it is not ours.
func (s *signer) read(frame []byte) (at flow.Location, sent int64, why refusal) {
	unit, ok := packet.ParseLLDP(frame)
	if !ok {
		return at, 0, malformed
	}
	org, ok := unit.Organization(orgID, orgKind)
	if !ok {
		return at, 0, foreign
	}
	chassisKind, chassis := unit.ChassisID()
	portKind, port := unit.PortID()
	dpid, ok1 := parseHex(chassis, 16)
	number, ok2 := parseHex(port, 8)
	if chassisKind != packet.ChassisLocal || portKind != packet.PortLocal || !ok1 || !ok2 || len(org) != orgSize {
		return at, 0, malformed
	}
	at = flow.Location{Switch: flow.DPID(dpid), Port: flow.Port(number)}
	sent = int64(binary.BigEndian.Uint64(org))
	if !hmac.Equal(org[stampSize:], s.sign(at, sent)) {
		return flow.Location{}, 0, forged
	}
	return at, sent, accepted
}

// appendHex appends the last n hex digits of v.
func appendHex(dst []byte, v uint64, n int) []byte {
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, "0123456789abcdef"[v>>(4*i)&15])
	}
	return dst
}

// parseHex parses exactly n hex digits as appendHex writes them.
func parseHex(b []byte, n int) (v uint64, ok bool) {
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return v, len(b) == n
}
