package router

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

// keptRouter is a router as stored in the bucket.
type keptRouter struct {
	MAC       string        `json:"mac"`
	Next      [2]uint32     `json:"next"` // the last numbers given, of addresses and routes
	Addresses []keptAddress `json:"addresses,omitempty"`
	Routes    []keptRoute   `json:"routes,omitempty"`
}

type keptAddress struct {
	ID      uint32       `json:"id"`
	Address netip.Prefix `json:"address"`
}

type keptRoute struct {
	ID          uint32       `json:"id"`
	Destination netip.Prefix `json:"destination"`
	Gateway     netip.Addr   `json:"gateway"`
}

// marshal returns the stored form of the router.
func (r *router) marshal() ([]byte, error) {
	k := keptRouter{MAC: r.mac.String(), Next: r.next}
	for _, x := range r.addresses {
		k.Addresses = append(k.Addresses, keptAddress{x.id, x.Prefix})
	}
	for _, x := range r.routes {
		k.Routes = append(k.Routes, keptRoute{x.id, x.to, x.by})
	}
	return json.Marshal(k)
}

// parseRouter parses the result of marshal.
func parseRouter(name string, value []byte) (*router, error) {
	k, err := parseKey(name)
	if err != nil {
		return nil, err
	}
	var kept keptRouter
	if err := json.Unmarshal(value, &kept); err != nil {
		return nil, err
	}
	r := &router{key: k, next: kept.Next}
	if r.mac, err = flow.ParseMAC(kept.MAC); err != nil || r.mac.Multicast() {
		return nil, fmt.Errorf("mac %q: want an Ethernet address", kept.MAC)
	}
	for _, x := range kept.Addresses {
		if !x.Address.IsValid() || !usable(x.Address.Addr()) {
			return nil, fmt.Errorf("address %v", x.Address)
		}
		r.addresses = append(r.addresses, address{x.ID, x.Address})
	}
	for _, x := range kept.Routes {
		if !x.Destination.IsValid() || !usable(x.Gateway) {
			return nil, fmt.Errorf("route to %v by %v", x.Destination, x.Gateway)
		}
		r.routes = append(r.routes, static{x.ID, x.Destination, x.Gateway})
	}
	r.table = newTable(r)
	return r, nil
}
