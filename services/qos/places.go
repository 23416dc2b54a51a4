package qos

import (
	"cmp"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// of returns the hosts that a name stands for and whose places are known, in a
// fixed order.
func (n hostName) of(hosts *object.Hosts) []*object.Host {
	list := hosts.WithMAC(n.mac)
	if n.ip.IsValid() {
		list = hosts.WithAddr(n.ip)
	}
	list = slices.DeleteFunc(slices.Clone(list), func(h *object.Host) bool { return h.At == flow.Location{} })
	slices.SortFunc(list, func(a, b *object.Host) int {
		return cmp.Or(cmp.Compare(a.VLAN, b.VLAN), slices.Compare(a.MAC[:], b.MAC[:]))
	})
	return list
}

// is reports whether the name stands for a host.
func (n hostName) is(h *object.Host) bool {
	if n.ip.IsValid() {
		return slices.Contains(h.Addrs, n.ip)
	}
	return h.MAC == n.mac
}
