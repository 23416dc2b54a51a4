package scp

import (
	"net/netip"

	"github.com/weft-sdn/weft/object"
)

// A remembered value is one of a bounded map that anybody may fill.
type remembered interface {
	owner() string  // at whose request it is there
	validTo() int64 // in nanoseconds
}

// makeRoom removes the value of a map that is over first, among those of the owner who has most
// values in it, or most octets: whoever asks for many things forgets his own.
func makeRoom[V remembered](m map[string]V, weigh func(V) int) {
	has := map[string]int{}
	for _, v := range m {
		has[v.owner()] += weigh(v)
	}
	most := ""
	for who, n := range has {
		if n > has[most] || n == has[most] && who < most {
			most = who
		}
	}
	first := ""
	for k, v := range m {
		if v.owner() == most && (first == "" || v.validTo() < m[first].validTo() || v.validTo() == m[first].validTo() && k < first) {
			first = k
		}
	}
	delete(m, first)
}

// one weighs each value alike.
func one[V remembered](V) int { return 1 }

// ownerOf names who has an address: the port of the network at which it is, the address itself
// if that is not known.
func ownerOf(a netip.Addr, at object.Station, known bool) string {
	if known {
		return at.At.String()
	}
	return a.String()
}
