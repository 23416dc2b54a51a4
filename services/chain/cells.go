package chain

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// cells is into how many parts a chain's packets are divided: by six bits of
// the client's port or address, which are the source's forward and the
// destination's back. So both directions of a flow are in the same cell, on
// every switch and whatever it hashes.
const cells = 64

// portShift leaves out the lowest bit of a port: Linux gives connections ports
// of one parity first.
const portShift = 1

// clientPort returns the fields of the client's port, forward and back; false
// if the match does not say the protocol.
func clientPort(m *flow.Match) (f [2]flow.Field, ok bool) {
	if !m.Set.Has(flow.FieldIPProto) {
		return f, false
	}
	switch m.Key.IPProto {
	case flow.IPProtoTCP:
		return [2]flow.Field{flow.FieldTCPSrc, flow.FieldTCPDst}, true
	case flow.IPProtoUDP:
		return [2]flow.Field{flow.FieldUDPSrc, flow.FieldUDPDst}, true
	case flow.IPProtoSCTP:
		return [2]flow.Field{flow.FieldSCTPSrc, flow.FieldSCTPDst}, true
	}
	return f, false
}

// clientAddress returns the fields of the client's address, forward and back.
func clientAddress(m *flow.Match) [2]flow.Field {
	if m.Key.EthType == flow.EthTypeIPv6 {
		return [2]flow.Field{flow.FieldIPv6Src, flow.FieldIPv6Dst}
	}
	return [2]flow.Field{flow.FieldIPv4Src, flow.FieldIPv4Dst}
}

// cellOf returns value and mask of a field in a cell.
func cellOf(f flow.Field, cell int) (value, mask [16]byte) {
	n := f.Len()
	if n == 2 {
		binary.BigEndian.PutUint16(value[:], uint16(cell)<<portShift)
		binary.BigEndian.PutUint16(mask[:], (cells-1)<<portShift)
		return value, mask
	}
	value[n-1], mask[n-1] = byte(cell), cells-1
	return value, mask
}

// free reports whether no bit that tells cells apart is one that the match names.
func free(m *flow.Match, f flow.Field) bool {
	_, named, set := m.Get(f)
	_, mask := cellOf(f, 0)
	for i := range mask {
		if set && named[i]&mask[i] != 0 {
			return false
		}
	}
	return true
}

// readHash reads what chooses the copy; empty is what the match permits.
func (c *chain) readHash(m *api.ServiceChain) error {
	match := &c.match[forward]
	port, ported := clientPort(match)
	byPort, byAddress := ported && free(match, port[forward]), free(match, clientAddress(match)[forward])
	switch m.Hash {
	case "":
		switch {
		case byPort:
			m.Hash = "ports"
		case byAddress:
			m.Hash = "addresses"
		}
	case "ports":
		if !byPort {
			return fmt.Errorf("hash ports: the match must name TCP, UDP or SCTP, and not the client's port")
		}
	case "addresses":
		if !byAddress {
			return fmt.Errorf("hash addresses: the match names the client's address")
		}
	default:
		return fmt.Errorf("hash %q: want ports or addresses", m.Hash)
	}
	return nil
}

// cell returns the condition of a cell in a direction, with what it requires.
func (c *chain) cell(d direction, cell int) flow.Match {
	match := &c.match[forward]
	m := flow.Match{}.WithEthType(match.Key.EthType)
	f := clientAddress(match)
	if c.said.Hash == "ports" {
		m = m.WithIPProto(match.Key.IPProto)
		f, _ = clientPort(match)
	}
	value, mask := cellOf(f[d], cell)
	m.PutMasked(f[d], value, mask)
	return m
}

// chooses returns which of n copies a cell goes to, given those that are alive:
// the same for both directions. Cells of copies that are alive stay when others
// die. It is called with one that is alive at least.
func chooses(cell, n int, alive []int) int {
	home := cell % n
	for _, i := range alive {
		if i == home {
			return home
		}
	}
	return alive[(cell/n)%len(alive)]
}
