package hosts

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// pages are the hosts as stored for the next run: a change costs
// writing one page, and many changes write each page once. table.mu guards it.
type pages struct {
	pages []*page
	room  []*page // pages with room
	dirty map[*page]struct{}
}

// A page holds up to pageHosts hosts.
type page struct {
	number int
	hosts  map[*host]struct{}
	open   bool // it is in pages.room
}

// A page stays below 512 KiB whatever its hosts are: an address in it has at
// most 40 characters, with its time.
const (
	pageHosts     = 256
	pageAddresses = 32 // of one host, the last confirmed ones
)

// key returns the page's key in the store.
func (p *page) key() string { return fmt.Sprintf("page/%06d", p.number) }

// note marks the page of a changed host to be written; a host that is gone is
// left out.
func (b *pages) note(h *host) {
	p := h.page
	switch {
	case h.gone.Load() && p == nil:
		return
	case h.gone.Load():
		delete(p.hosts, h)
		h.page = nil
		if !p.open {
			p.open = true
			b.room = append(b.room, p)
		}
	case p == nil:
		p = b.free()
		b.enter(p, h)
	}
	if b.dirty == nil {
		b.dirty = map[*page]struct{}{}
	}
	b.dirty[p] = struct{}{}
}

// free returns a page with room.
func (b *pages) free() *page {
	for len(b.room) > 0 {
		p := b.room[len(b.room)-1]
		if len(p.hosts) < pageHosts {
			return p
		}
		p.open = false
		b.room = b.room[:len(b.room)-1]
	}
	return b.page(len(b.pages))
}

// page returns the page with a number; it makes one if there is none.
func (b *pages) page(number int) *page {
	for len(b.pages) <= number {
		p := &page{number: len(b.pages), hosts: map[*host]struct{}{}, open: true}
		b.pages = append(b.pages, p)
		b.room = append(b.room, p)
	}
	return b.pages[number]
}

func (b *pages) enter(p *page, h *host) {
	p.hosts[h] = struct{}{}
	h.page = p
}

// entry is the line of a host in a page: "MAC VLAN DPID PORT FIRST SEEN MOVES
// [ADDRESS@CONFIRMED ...]", with times in seconds since 1970.
type entry struct {
	id          id
	at          flow.Location
	first, seen int64
	moves       uint32
	addresses   []address
}

// appendEntry appends the line of a host.
func appendEntry(b []byte, h *host) []byte {
	l := h.at.Load().Location
	b = fmt.Appendf(b, "%v %d %v %d %d %d %d", h.id.mac(), h.id.vlan(), l.Switch, uint32(l.Port), seconds(h.first), seconds(h.seen.Load()), h.moves)
	list := h.addresses
	if len(list) > pageAddresses {
		list = slices.SortedFunc(slices.Values(list), func(x, y address) int { return int(seconds(y.confirmed) - seconds(x.confirmed)) })[:pageAddresses]
	}
	for _, a := range list {
		b = fmt.Appendf(b, " %v@%d", a.ip, seconds(a.confirmed))
	}
	return append(b, '\n')
}

func seconds(ns int64) int64 { return ns / int64(time.Second) }

// parseEntry parses the line of a host.
func parseEntry(line string) (e entry, err error) {
	bad := func(what string) (entry, error) {
		return e, fmt.Errorf("line %q: %s; want MAC VLAN DPID PORT FIRST SEEN MOVES [ADDRESS@CONFIRMED ...]", line, what)
	}
	f := strings.Fields(line)
	if len(f) < 7 {
		return bad("too short")
	}
	mac, err := flow.ParseMAC(f[0])
	if err != nil {
		return bad(err.Error())
	}
	if e.at.Switch, err = flow.ParseDPID(f[2]); err != nil {
		return bad(err.Error())
	}
	var n [5]uint64
	for i, j := range [...]int{1, 3, 4, 5, 6} {
		bits := [...]int{12, 32, 34, 34, 32}[i]
		if n[i], err = strconv.ParseUint(f[j], 10, bits); err != nil {
			return bad(err.Error())
		}
	}
	e.id, e.at.Port, e.moves = newID(mac, uint16(n[0])), flow.Port(n[1]), uint32(n[4])
	e.first, e.seen = int64(n[2])*int64(time.Second), int64(n[3])*int64(time.Second)
	for _, a := range f[7:] {
		text, when, _ := strings.Cut(a, "@")
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return bad(err.Error())
		}
		s, err := strconv.ParseUint(when, 10, 34)
		if err != nil {
			return bad(err.Error())
		}
		e.addresses = append(e.addresses, address{ip: ip, confirmed: int64(s) * int64(time.Second), used: true})
	}
	return e, nil
}
