package forwarding

import (
	"time"

	"weft/api"
	"weft/flow"
)

// knownHosts is where hosts are, for the proactive mode; it belongs to the
// goroutine of the events.
type knownHosts map[knownHost]flow.Location

type knownHost struct {
	mac  flow.MAC
	vlan uint16 // as in flow.Key
}

func vlanKey(vlan uint32) uint16 {
	if vlan == 0 {
		return 0
	}
	return uint16(vlan) | flow.VLANPresent
}

func (k knownHosts) update(mac flow.MAC, ev *api.HostChanged) {
	if ev.Change == "gone" {
		delete(k, knownHost{mac, vlanKey(ev.Host.Vlan)})
	} else {
		k[knownHost{mac, vlanKey(ev.Host.Vlan)}] = ev.Host.At.Flow()
	}
}

// connectAll programs the routes between a host and all others of its VLAN.
func (e *engine) connectAll(mac flow.MAC, host *api.Host) {
	at := host.At.Flow()
	vlan := vlanKey(host.Vlan)
	d := &flow.Decision{}
	now := time.Now().UnixNano()
	for other, where := range e.known {
		if where == at || other.vlan != vlan || other.mac == mac {
			continue
		}
		for _, r := range []*route{
			e.compute(pair{src: mac, dst: other.mac, vlan: vlan}, at, where, nil),
			e.compute(pair{src: other.mac, dst: mac, vlan: vlan}, where, at, nil),
		} {
			if r == nil {
				continue
			}
			there := false
			e.routes.with(r.pair, func(m map[pair]*route) { there = m[r.pair] != nil })
			if !there {
				r.since, r.sent = now, now
				e.install(d, r, nil)
			}
		}
	}
	if d.Empty() {
		return
	}
	if _, err := e.send(d); err != nil {
		e.log.Error("proactive routes not programmed", "error", err)
	}
}
