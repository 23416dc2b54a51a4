package scp

import (
	"slices"

	"github.com/weft-sdn/weft/sbi"
)

// search is a discovery that has been asked for. The proxy's mu guards it.
type search struct {
	of      sbi.NFType // that is asked for
	until   int64      // answered from what is known, in nanoseconds
	version uint64
	found   []byte // nfInstances, of that version
	vips    []string
	etag    string
	failed  error            // why the NRF was last of no help, nil if it was
	told    sbi.SearchResult // what the NRF has answered
	size    int              // octets of that
}

// Bounds of the searches that are remembered.
const (
	mostSearches = 4096
	mostTold     = 64 << 20 // octets that the NRF has answered to all of them
)

// searches are those that are remembered, by what they are known by. The proxy's mu
// guards them.
type searches map[string]*search

// note notes what the NRF has answered to a search.
func (all searches) note(k string, s *search, told *sbi.SearchResult) {
	s.told, s.failed, s.found = *told, nil, nil
	s.told.Told = slices.Clone(told.Told) // others may have the same answer
	size := 0
	for _, x := range all {
		for _, instance := range x.told.Told {
			size += len(instance.Text)
		}
	}
	if size > mostTold {
		clear(all)
		all[k] = s
	}
}

// askAnew has the NRF asked again for instances of a type: one of them is handed on as
// the NRF has it, and that has changed.
func (all searches) askAnew(of sbi.NFType) {
	for _, s := range all {
		if s.of == of {
			s.until = 0
		}
	}
}

// drop forgets that the NRF has told of an instance.
func (all searches) drop(id string) {
	for _, s := range all {
		s.told.Told = slices.DeleteFunc(s.told.Told, func(x sbi.Instance) bool { return x.ID == id })
	}
}
