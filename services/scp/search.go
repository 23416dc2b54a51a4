package scp

import (
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/sbi"
)

// search is a discovery that has been asked for. The proxy's mu guards it.
type search struct {
	by      string     // who asked first (ownerOf)
	of      sbi.NFType // that is asked for
	from    netip.Addr // of a client with producers beside it, the same as others that ask so; invalid if there are none
	until   int64      // answered from what is known, in nanoseconds
	version uint64
	found   []byte // nfInstances, of that version
	vips    []string
	etag    string
	failed  error            // why the NRF was last of no help, nil if it was
	result  sbi.SearchResult // what the NRF has answered
}

func (s *search) owner() string  { return s.by }
func (s *search) validTo() int64 { return s.until }

func (s *search) size() int {
	n := 0
	for _, instance := range s.result.Raw {
		n += len(instance.Text)
	}
	return n
}

// Bounds of the searches that are remembered.
const (
	mostSearches = 4096
	mostResults  = 64 << 20 // octets that the NRF has answered to all of them
)

// searches are the discoveries that are remembered, by their keys. The proxy's mu guards
// them.
type searches map[string]*search

// note records what the NRF has answered to a search.
func (all searches) note(s *search, result *sbi.SearchResult) {
	s.result, s.failed, s.found = *result, nil, nil
	s.result.Raw = slices.Clone(result.Raw) // others may have the same answer
	size := 0
	for _, x := range all {
		size += x.size()
	}
	for size > mostResults && len(all) > 1 {
		makeRoom(all, (*search).size)
		size = 0
		for _, x := range all {
			size += x.size()
		}
	}
}

// askAnew ends the validity of the searches for a type: an instance that is handed on as
// the NRF has it has changed.
func (all searches) askAnew(of sbi.NFType) {
	for _, s := range all {
		if s.of == of {
			s.until = 0
		}
	}
}

// drop removes an instance from what the NRF has answered.
func (all searches) drop(id string) {
	for _, s := range all {
		s.result.Raw = slices.DeleteFunc(s.result.Raw, func(x sbi.Instance) bool { return x.ID == id })
	}
}
